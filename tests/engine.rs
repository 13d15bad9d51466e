//! The engine's promises about runs that nothing disturbs but their own failures, cancels and other runs.

#[path = "support/engine.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use muster::config::settings::Limits;
use muster::domain::event::{Body, Event, Observation, Outcome};
use muster::domain::failure::FailureCode;
use muster::domain::phase::Phase;
use muster::engine::{EngineError, LocalCx, ManualClock, SystemClock, Workflows};
use muster::store::RunStatus;
use muster::workflows::cx::{ActivityError, ActivityOptions, Cancelled, Cx, Signal};
use serde_json::json;
use support::*;

async fn two_steps(cx: LocalCx, _: muster::domain::request::EnrollRequest) -> Outcomes {
    let a = cx.activity::<A>("1".into(), options()).await?;
    let b = cx.activity::<B>(a, options()).await?;
    result(b)
}

type Outcomes = Result<muster::domain::event::EnrollResult, ActivityError>;

/// Proves: G5
#[tokio::test]
async fn an_intent_is_on_the_disk_before_its_effect_begins_and_the_result_before_the_next_intent() {
    let (_folder, store) = store();
    let seen = store.clone();
    let run = submit(&store, request(1)).await;
    let world = World::new();
    for (name, seq) in [("test.a", 1u32), ("test.b", 2)] {
        let seen = seen.clone();
        world.on(name, move |input, call| {
            // Read by a connection of its own: only what was committed is there.
            let events = events(&seen, run);
            assert!(matches!(events.last(), Some(Event::ActivityScheduled { seq: s, .. }) if *s == seq), "{events:?}");
            assert_eq!((call.seq, call.attempt), (seq, 1));
            async move { Ok(input) }
        });
    }
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", two_steps), clock());
    let mut feed = engine.subscribe();
    engine.launch(run);
    assert_eq!(said(&store, run).await, "1");
    let kinds: Vec<&str> = events(&store, run)
        .iter()
        .map(|event| match event {
            Event::Submitted { .. } => "submitted",
            Event::ActivityScheduled { .. } => "scheduled",
            Event::ActivityDone { .. } => "done",
            Event::Finished { .. } => "finished",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["submitted", "scheduled", "done", "scheduled", "done", "finished"]);
    // The feed carries what the journal has, in its order, without gaps.
    engine.shutdown().await;
    let mut heard = Vec::new();
    while let Ok(record) = feed.try_recv() {
        heard.push(record);
    }
    assert_eq!(heard, store.records(run).unwrap()[1..]);
}

fn clock() -> Arc<SystemClock> {
    Arc::new(SystemClock::default())
}

/// Proves: G11
#[tokio::test]
async fn a_retryable_failure_is_tried_as_often_as_the_policy_or_the_run_says_and_another_never() {
    let (_folder, store) = store();
    for (id, (code, own, expected)) in [
        (FailureCode::BmcUnreachable, None, 3),
        (FailureCode::BmcUnreachable, Some(1), 1),
        (FailureCode::BmcUnreachable, Some(5), 5),
        (FailureCode::BmcAuthFailed, Some(5), 1),
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::new();
        world.on("test.a", move |_, _| async move { Err(busy(code)) });
        let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", two_steps), clock());
        let mut request = request(id as u64 + 1);
        request.params.max_attempts = own;
        let run = submit(&store, request).await;
        engine.launch(run);
        assert_eq!(failure(&store, run).await, busy(code));
        assert_eq!(world.count("test.a"), expected);
        assert_eq!(world.count("test.b"), 0);
        let seen = observations(&store, run);
        let attempts: Vec<u32> = seen
            .iter()
            .filter_map(|o| match o {
                Observation::Attempt { attempt, max_attempts, .. } => {
                    assert_eq!(*max_attempts, own.unwrap_or(3));
                    Some(*attempt)
                }
                _ => None,
            })
            .collect();
        assert_eq!(attempts, (1..=expected as u32).collect::<Vec<_>>());
        let again = seen.iter().filter(|o| matches!(o, Observation::AttemptFailed { .. })).count();
        assert_eq!(again, expected - 1, "the last failure is the activity's own");
        let failed = events(&store, run).iter().filter(|e| matches!(e, Event::ActivityFailed { .. })).count();
        assert_eq!(failed, 1, "attempts are not the journal's");
    }
}

#[tokio::test]
async fn an_attempt_that_gets_through_after_failures_is_a_success() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |_, call| async move {
        if call.attempt < 3 { Err(busy(FailureCode::BmcUnreachable)) } else { Ok(json!("third")) }
    });
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", two_steps), clock());
    let run = submit(&store, request(1)).await;
    engine.launch(run);
    assert_eq!(said(&store, run).await, "test.b(third)");
}

/// Proves: G12
#[tokio::test]
async fn whatever_breaks_ends_its_own_run_classified_and_no_other() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |input, _| async move {
        match input.as_str().unwrap() {
            "panic" => panic!("index out of bounds: the len is 0"),
            "shape" => Ok(json!({"not": "a word"})),
            _ => Ok(json!("fine")),
        }
    });
    let workflow = |cx: LocalCx, request: muster::domain::request::EnrollRequest| async move {
        match request.netbox_id {
            1 => result(cx.activity::<A>("panic".into(), options()).await?),
            2 => result(cx.activity::<A>("shape".into(), options()).await?),
            3 => {
                cx.activity::<A>("x".into(), options()).await?;
                panic!("the workflow is wrong")
            }
            4 => Err(ActivityError::Cancelled),
            5 => futures::future::pending().await,
            _ => result(cx.activity::<A>("x".into(), options()).await?),
        }
    };
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), clock());
    let mut runs = Vec::new();
    for id in 1..=6 {
        let run = submit(&store, request(id)).await;
        engine.launch(run);
        runs.push(run);
    }
    let words = [
        "'test.a' broke: index out of bounds: the len is 0",
        "the result of 'test.a' can't be read (invalid type: map, expected a string): {\"not\":\"a word\"}",
        "the workflow broke: the workflow is wrong",
        "the workflow says that it was cancelled, and nobody cancelled it",
        "the workflow waits for nothing that could ever happen",
    ];
    for (run, expected) in runs.iter().zip(words) {
        let failure = failure(&store, *run).await;
        assert_eq!((failure.code, failure.retryable), (FailureCode::InternalError, false));
        assert_eq!(failure.message, expected);
        assert!(!failure.action.is_empty());
    }
    assert_eq!(failure(&store, runs[0]).await.phase, Phase::Bmc);
    assert_eq!(said(&store, runs[5]).await, "fine");
    assert_eq!(world.calls().iter().filter(|(.., attempt)| *attempt > 1).count(), 0, "none of it is tried again");
}

/// Proves: G12
#[tokio::test]
async fn an_attempt_that_does_not_end_is_stopped_and_tried_again_within_the_budget() {
    let (_folder, store) = store();
    let world = World::new();
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&stopped);
    world.on("test.a", move |_, call| {
        let count = Arc::clone(&count);
        async move {
            call.stop.cancelled().await;
            count.fetch_add(1, Ordering::SeqCst);
            Err(busy(FailureCode::BmcUnreachable))
        }
    });
    let workflow = |cx: LocalCx, _| async move {
        let options = ActivityOptions { timeout: Duration::from_millis(40), ..options() };
        result(cx.activity::<A>("x".into(), options).await?)
    };
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), clock());
    let run = submit(&store, request(1)).await;
    engine.launch(run);
    let failure = failure(&store, run).await;
    assert_eq!((failure.code, failure.phase), (FailureCode::ActivityTimeout, Phase::Bmc));
    assert_eq!(failure.message, "'test.a' did not end within 40ms (attempt 3 of 3)");
    assert_eq!((world.count("test.a"), stopped.load(Ordering::SeqCst)), (3, 3));
}

/// What a workflow does that has something to undo.
async fn undoing(cx: LocalCx, _: muster::domain::request::EnrollRequest) -> Outcomes {
    note(&cx, "set");
    cx.activity::<A>("set".into(), options()).await?;
    let waited = cx.sleep_until(at(3600), reason("waits")).await;
    let told = match waited {
        Ok(()) => cx.activity::<B>("go on".into(), options()).await,
        Err(Cancelled) => Err(ActivityError::Cancelled),
    };
    if told.is_err() {
        assert_eq!(cx.sleep_until(at(9999), reason("never")).await, Err(Cancelled));
        assert_eq!(cx.next_signal().await, Err(Cancelled));
        assert_eq!(cx.activity::<C>("never".into(), options()).await, Err(ActivityError::Cancelled));
    }
    // Beside the step that it undoes, and carried out whatever happened in between.
    cx.activity::<Undo>("set".into(), surviving()).await?;
    result(told?)
}

/// Proves: G9
#[tokio::test]
async fn a_cancel_ends_every_wait_but_what_undoes_and_says_what_is_left() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |_, call| async move {
        for after in ["first", "second"] {
            (call.sink)(Observation::Wrote {
                system: "ironic".into(),
                target: "node 1".into(),
                what: "maintenance".into(),
                before: String::new(),
                after: after.into(),
            });
        }
        Ok(json!("set"))
    });
    let clock = Arc::new(ManualClock::new(at(0)));
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", undoing), clock);
    let run = submit(&store, request(1)).await;
    engine.launch(run);
    until("the run waits", || store.run(run).unwrap().waiting.is_some()).await;
    engine.cancel(run, "eve").await.unwrap();
    engine.cancel(run, "mallory").await.ok();
    let Outcome::Cancelled { by, left, .. } = outcome(&store, run).await else { panic!() };
    assert_eq!((by.as_str(), left), ("eve", vec!["ironic node 1: maintenance is 'second'".to_owned()]));
    assert_eq!(world.count("test.undo"), 1);
    assert_eq!(world.count("test.b") + world.count("test.c"), 0);
    let cancels = events(&store, run).iter().filter(|e| matches!(e, Event::CancelRequested { .. })).count();
    assert_eq!(cancels, 1);
    assert_eq!(store.run(run).unwrap().status, RunStatus::Cancelled);
    assert_eq!(engine.cancel(run, "eve").await, Err(EngineError::NotActive(run)));
}

/// Proves: G9
#[tokio::test]
async fn a_cancelled_activity_is_told_to_stop_and_what_it_brought_to_an_end_counts() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |input, call| async move {
        call.stop.cancelled().await;
        if input == json!("ends well") { Ok(json!("done after all")) } else { Err(busy(FailureCode::BmcUnreachable)) }
    });
    let workflow = |cx: LocalCx, request: muster::domain::request::EnrollRequest| async move {
        let input = if request.netbox_id == 1 { "ends well" } else { "breaks off" };
        let ended = cx.activity::<A>(input.into(), options()).await;
        let text = format!("{ended:?}");
        note(&cx, text);
        cx.activity::<B>("x".into(), options()).await?;
        result("not cancelled?")
    };
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), clock());
    for (id, seen) in [(1, "Ok(\"done after all\")"), (2, "Err(Cancelled)")] {
        let run = submit(&store, request(id)).await;
        engine.launch(run);
        until("the attempt is at work", || world.count("test.a") == id as usize).await;
        engine.cancel(run, "eve").await.unwrap();
        let Outcome::Cancelled { left, .. } = outcome(&store, run).await else { panic!() };
        assert_eq!(notes(&store, run), [seen]);
        let stopped = events(&store, run).iter().any(|e| matches!(e, Event::ActivityCancelled { seq: 1 }));
        assert_eq!((stopped, left.len()), (id == 2, usize::from(id == 2)), "{left:?}");
    }
    assert_eq!(world.count("test.b"), 0);
}

#[tokio::test]
async fn a_signal_ends_the_wait_that_it_meets_and_the_timer_that_lost_never_fires() {
    let (_folder, store) = store();
    let world = World::new();
    let workflow = |cx: LocalCx, _| async move {
        let mut looks = Vec::new();
        for round in 0..3 {
            let timer = cx.sleep_until(at(100 * (round + 1)), reason("the next look")).fuse();
            let signal = cx.next_signal().fuse();
            futures::pin_mut!(timer, signal);
            let look = futures::select_biased! {
                told = signal => format!("{:?}", told?),
                slept = timer => { slept?; "timer".to_owned() }
            };
            looks.push(look);
        }
        result(looks.join(" "))
    };
    let clock = Arc::new(ManualClock::new(at(0)));
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), clock.clone());
    let run = submit(&store, request(1)).await;
    assert_eq!(engine.signal(run, Signal::LookNow).await, Err(EngineError::NotBegun(run)));
    engine.launch(run);
    let waits_for = |seq: u32| store.run(run).unwrap().waiting.is_some_and(|w| w.seq == seq);
    until("the first wait", || waits_for(1)).await;
    engine.signal(run, Signal::LookNow).await.unwrap();
    until("the second wait", || waits_for(2)).await;
    clock.set(at(250));
    until("the third wait", || waits_for(3)).await;
    engine.signal(run, Signal::LookNow).await.unwrap();
    assert_eq!(said(&store, run).await, "LookNow timer LookNow");
    let fired: Vec<u32> = events(&store, run)
        .iter()
        .filter_map(|e| if let Event::TimerFired { seq } = e { Some(*seq) } else { None })
        .collect();
    assert_eq!(fired, [2], "the first timer was given up, though its time has come too");
    assert_eq!(engine.signal(run, Signal::LookNow).await, Err(EngineError::NotActive(run)));
}

#[tokio::test]
async fn an_activity_that_lost_a_race_is_stopped_and_its_end_is_journaled() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |_, call| async move {
        call.stop.cancelled().await;
        Err(busy(FailureCode::BmcUnreachable))
    });
    let workflow = |cx: LocalCx, _| async move {
        {
            let slow = cx.activity::<A>("slow".into(), options()).fuse();
            let quick = cx.activity::<B>("quick".into(), options()).fuse();
            futures::pin_mut!(slow, quick);
            futures::select_biased! { _ = quick => {}, _ = slow => {} }
        }
        // Issued and given up at once: never begun.
        drop(cx.activity::<Undo>("never".into(), options()));
        result(cx.activity::<C>("x".into(), options()).await?)
    };
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), clock());
    let run = submit(&store, request(1)).await;
    engine.launch(run);
    assert_eq!(said(&store, run).await, "test.c(x)");
    assert_eq!(world.count("test.undo"), 0);
    let mut stopped: Vec<u32> = events(&store, run)
        .iter()
        .filter_map(|e| if let Event::ActivityCancelled { seq } = e { Some(*seq) } else { None })
        .collect();
    stopped.sort_unstable();
    assert_eq!(stopped, [1, 3]);
}

#[tokio::test]
async fn so_many_runs_and_attempts_at_once_as_the_limits_say_in_the_order_of_submission() {
    let (_folder, store) = store();
    let world = World::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (n, m) = (Arc::clone(&now), Arc::clone(&most));
    world.on("test.a", move |_, _| {
        let (now, most) = (Arc::clone(&n), Arc::clone(&m));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(30)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(json!("x"))
        }
    });
    let workflow = |cx: LocalCx, _| async move {
        let both = futures::join!(cx.activity::<A>("1".into(), options()), cx.activity::<A>("2".into(), options()));
        result(both.0? + &both.1?)
    };
    let engine = limited(
        Arc::new(store.clone()),
        &world,
        Workflows::new().with("test", workflow),
        clock(),
        Limits { runs: 2, activities: 3, ..Limits::default() },
    );
    let mut runs = Vec::new();
    for id in 1..=6 {
        runs.push(submit(&store, request(id)).await);
    }
    assert_eq!(engine.resume_all().await.unwrap(), 6);
    until("two are taken", || engine.queued().len() == 4).await;
    assert_eq!(engine.queued(), runs[2..]);
    // One that never began is over at once, and its place is the next one's.
    engine.cancel(runs[4], "eve").await.unwrap();
    assert_eq!(outcome(&store, runs[4]).await, Outcome::Cancelled { by: "eve".into(), left: vec![], why: None });
    for run in runs.iter().filter(|run| **run != runs[4]) {
        assert_eq!(said(&store, *run).await, "xx");
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    let begun = |run| store.records(run).unwrap()[1].at;
    assert!(begun(runs[0]) <= begun(runs[2]) && begun(runs[2]) <= begun(runs[5]));
}

#[tokio::test]
async fn jitter_is_the_runs_own_and_the_same_every_time() {
    let (_folder, store) = store();
    let workflow = |cx: LocalCx, _| async move {
        assert_eq!(cx.jitter("lock"), cx.jitter("lock"));
        assert_ne!(cx.jitter("lock"), cx.jitter("poll"));
        assert!((0.0..1.0).contains(&cx.jitter("lock")));
        result(cx.jitter("lock").to_string())
    };
    let engine = engine(Arc::new(store.clone()), &World::new(), Workflows::new().with("test", workflow), clock());
    let (one, two) = (submit(&store, request(1)).await, submit(&store, request(2)).await);
    engine.launch(one);
    engine.launch(two);
    assert_ne!(said(&store, one).await, said(&store, two).await);
}

#[tokio::test]
async fn reports_stand_in_the_records_where_the_workflow_made_them() {
    let (_folder, store) = store();
    let workflow = |cx: LocalCx, _| async move {
        note(&cx, "before");
        cx.activity::<A>("1".into(), options()).await?;
        note(&cx, "between");
        cx.activity::<B>("2".into(), options()).await?;
        note(&cx, "after");
        result("end")
    };
    let engine = engine(Arc::new(store.clone()), &World::new(), Workflows::new().with("test", workflow), clock());
    let run = submit(&store, request(1)).await;
    engine.launch(run);
    said(&store, run).await;
    let order: Vec<String> = store
        .records(run)
        .unwrap()
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Observation(Observation::Note { text, .. }) => Some(text),
            Body::Journal(Event::ActivityScheduled { seq, .. }) => Some(format!("asks {seq}")),
            Body::Journal(Event::ActivityDone { seq, .. }) => Some(format!("has {seq}")),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["before", "asks 1", "has 1", "between", "asks 2", "has 2", "after"]);
}
