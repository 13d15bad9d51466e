//! Runs that are interrupted, by every means and at every place, end where the undisturbed one does.

#[path = "support/engine.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use muster::domain::event::{Body, EnrollResult, Event, Observation, Outcome, RunRecord};
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::request::EnrollRequest;
use muster::engine::{Clock, EngineError, LocalCx, ManualClock, SystemClock, Workflows};
use muster::store::{Store, StoreError};
use muster::workflows::cx::{ActivityError, Cancelled, Cx, Signal};
use serde_json::json;
use support::*;

type Outcomes = Result<EnrollResult, ActivityError>;

/// Everything that a workflow can do: a retried activity, a long wait, two things at once, a race, a branch, reports.
async fn everything(cx: LocalCx, request: EnrollRequest) -> Outcomes {
    let began = cx.now();
    note(&cx, "begins");
    let a = cx.activity::<A>(request.host.clone(), options()).await?;
    let new = cx.version("second-path");
    note(&cx, format!("has {a}, new path {new}"));
    cx.sleep_until(cx.now() + Duration::from_secs(90), reason("a while")).await?;
    let (b, c) = futures::join!(cx.activity::<B>("one".into(), options()), async {
        let c = cx.activity::<C>("two".into(), options()).await;
        note(&cx, "the second one is there");
        c
    });
    let looked = {
        let signal = cx.next_signal().fuse();
        let timer = cx.sleep_until(cx.now() + Duration::from_secs(30), reason("the next look")).fuse();
        futures::pin_mut!(signal, timer);
        futures::select_biased! { told = signal => matches!(told?, Signal::LookNow), slept = timer => { slept?; false } }
    };
    let undone = cx.activity::<Undo>("it".into(), options()).await;
    note(&cx, "ends");
    let waited = cx.now().duration_since(began).as_secs() >= 120;
    result(format!("{a} {} {} {looked} {} {new} {waited} {:.6}", b?, c?, undone.is_err(), cx.jitter("x")))
}

/// A world for `everything`: the first activity gets through at its second attempt, the last one never.
fn world() -> Arc<World> {
    let world = World::new();
    world.on("test.a", |input, call| async move {
        if call.attempt < 2 { Err(busy(FailureCode::BmcUnreachable)) } else { Ok(input) }
    });
    world.on("test.undo", |_, _| async move { Err(busy(FailureCode::BmcAuthFailed)) });
    world
}

fn workflows() -> Workflows {
    Workflows::new().with("test", everything)
}

fn leaping(records: &[RunRecord]) -> Arc<dyn Clock> {
    let latest = records.iter().map(|record| record.at).max().unwrap();
    Arc::new(ManualClock::leaping(latest))
}

/// The places of activities whose end is in the journal.
fn ended(store: &Store, run: RunId) -> BTreeSet<u32> {
    let end = |event| match event {
        Event::ActivityDone { seq, .. } | Event::ActivityFailed { seq, .. } => Some(seq),
        _ => None,
    };
    events(store, run).into_iter().filter_map(end).collect()
}

/// What a run came to, less times.
fn end_state(store: &Store, run: RunId) -> (Outcome, Vec<String>, Vec<String>) {
    let mut names: Vec<String> = events(store, run)
        .iter()
        .filter_map(|event| match event {
            Event::ActivityScheduled { seq, name, input, .. } => Some(format!("{seq} {name} {input}")),
            Event::TimerSet { seq, .. } => Some(format!("{seq} timer")),
            _ => None,
        })
        .collect();
    names.sort();
    let Some(Event::Finished { outcome }) = events(store, run).pop() else { panic!() };
    let mut notes = notes(store, run);
    notes.sort();
    (outcome, names, notes)
}

async fn undisturbed(run: RunId) -> (tempfile::TempDir, Store) {
    let (folder, store) = store();
    store.submit_as(run, "test", request(1)).await.unwrap();
    let engine = engine(Arc::new(store.clone()), &world(), workflows(), Arc::new(ManualClock::leaping(at(0))));
    engine.launch(run);
    outcome(&store, run).await;
    engine.shutdown().await;
    (folder, store)
}

/// One run's id, so that its jitter is one too.
fn real() -> Arc<SystemClock> {
    Arc::default()
}

fn the_run() -> RunId {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

/// Proves: G5, G6, G7
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_every_append_a_run_ends_where_the_undisturbed_one_does() {
    let run = the_run();
    let (_folder, whole) = undisturbed(run).await;
    let expected = end_state(&whole, run);
    assert!(matches!(&expected.0, Outcome::Succeeded { .. }), "{:?}", expected.0);
    let mut appends = 0;
    loop {
        let (_folder, store) = store();
        store.submit_as(run, "test", request(1)).await.unwrap();
        let first = world();
        let fuse = Fuse::after(&store, &first, appends);
        let clock = Arc::new(ManualClock::leaping(at(0)));
        let engine_one = engine(fuse.clone(), &first, workflows(), clock.clone());
        engine_one.launch(run);
        until("the end, or the kill", || {
            first.dead.load(Ordering::SeqCst) || matches!(events(&store, run).last(), Some(Event::Finished { .. }))
        })
        .await;
        let died = first.dead.load(Ordering::SeqCst);
        drop(engine_one);
        if !died {
            break;
        }
        let before = store.records(run).unwrap();
        let finished = ended(&store, run);

        let second = world();
        let engine_two = engine(Arc::new(store.clone()), &second, workflows(), clock);
        assert_eq!(engine_two.resume_all().await.unwrap(), 1);
        outcome(&store, run).await;
        assert_eq!(end_state(&store, run), expected, "killed after {appends} appends");
        let again: Vec<_> = second.calls().into_iter().filter(|(_, seq, _)| finished.contains(seq)).collect();
        assert_eq!(again, [], "killed after {appends} appends: a finished activity was repeated");
        assert_eq!(store.records(run).unwrap()[..before.len()], before, "the journal is only added to");
        engine_two.shutdown().await;
        appends += 1;
    }
    assert!(appends >= 6, "only {appends} places were tried");
}

/// A journal cut anywhere, also between two records of one append: the replay doesn't depend on how they were grouped.
///
/// Proves: G5, G7
#[tokio::test(flavor = "multi_thread")]
async fn resumed_from_every_beginning_of_its_journal_a_run_ends_where_it_did() {
    let run = the_run();
    let (_folder, whole) = undisturbed(run).await;
    let expected = end_state(&whole, run);
    let records = whole.records(run).unwrap();
    for cut in 1..records.len() {
        let (_folder, store) = store();
        let kept = restore(&store, &records[..cut]).await;
        let world = world();
        let finished = ended(&store, run);
        let engine = engine(Arc::new(store.clone()), &world, workflows(), leaping(&kept));
        engine.launch(run);
        outcome(&store, run).await;
        let (outcome, names, notes) = end_state(&store, run);
        assert_eq!((&outcome, &names), (&expected.0, &expected.1), "cut after {cut} records");
        let notes: BTreeSet<String> = notes.into_iter().collect();
        assert_eq!(notes, expected.2.iter().cloned().collect(), "cut after {cut} records");
        assert!(world.calls().iter().all(|(_, seq, _)| !finished.contains(seq)), "cut after {cut} records");
        engine.shutdown().await;
    }
}

/// Writes the beginning of a journal into another store.
async fn restore(store: &Store, records: &[RunRecord]) -> Vec<RunRecord> {
    let Body::Journal(Event::Submitted { workflow, request }) = &records[0].body else { panic!() };
    store.submit_as(records[0].run, workflow, (**request).clone()).await.unwrap();
    let rest: Vec<(Timestamp, Body)> = records[1..].iter().map(|record| (record.at, record.body.clone())).collect();
    if !rest.is_empty() {
        store.append(records[0].run, 1, rest).await.unwrap();
    }
    records.to_vec()
}

/// Proves: G6
#[tokio::test]
async fn a_timer_keeps_its_deadline_over_a_restart() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let workflow = |cx: LocalCx, _| async move {
        cx.sleep_until(cx.now() + Duration::from_secs(3600), reason("an hour")).await?;
        result(cx.now().to_string())
    };
    let workflows = Workflows::new().with("test", workflow);
    let clock = Arc::new(ManualClock::new(at(0)));
    let first = engine(Arc::new(store.clone()), &World::new(), workflows.clone(), clock.clone());
    first.launch(run);
    until("the wait", || store.run(run).unwrap().waiting.is_some()).await;
    assert_eq!(store.run(run).unwrap().waiting.unwrap().until, at(3600));
    first.shutdown().await;

    clock.set(at(3000));
    let second = engine(Arc::new(store.clone()), &World::new(), workflows, clock.clone());
    second.resume_all().await.unwrap();
    clock.set(at(3599));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(events(&store, run).len(), 2, "not a second earlier");
    clock.set(at(3600));
    assert_eq!(said(&store, run).await, at(3600).to_string());
    let timers = events(&store, run).iter().filter(|e| matches!(e, Event::TimerSet { .. })).count();
    assert_eq!(timers, 1, "it is not started anew");
}

/// Proves: G6, G11
#[tokio::test]
async fn failed_attempts_count_over_a_restart_and_so_does_the_wait_behind_them() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let world = World::new();
    world.on("test.a", |_, _| async move { Err(busy(FailureCode::BmcUnreachable)) });
    let workflow = |cx: LocalCx, _| async move {
        let mut options = options();
        options.retry.first = Duration::from_secs(600);
        options.retry.max = Duration::from_secs(600);
        result(cx.activity::<A>("x".into(), options).await?)
    };
    let workflows = Workflows::new().with("test", workflow);
    let clock = Arc::new(ManualClock::new(at(0)));
    for restart in 0..2 {
        let engine = engine(Arc::new(store.clone()), &world, workflows.clone(), clock.clone());
        engine.resume_all().await.unwrap();
        if restart > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(world.count("test.a"), restart, "its time has not come");
            clock.advance(Duration::from_secs(600));
        }
        until("one attempt more", || {
            observations(&store, run).iter().filter(|o| matches!(o, Observation::AttemptFailed { .. })).count()
                == restart + 1
        })
        .await;
        engine.shutdown().await;
    }
    clock.advance(Duration::from_secs(600));
    let engine = engine(Arc::new(store.clone()), &world, workflows, clock);
    engine.resume_all().await.unwrap();
    assert_eq!(failure(&store, run).await, busy(FailureCode::BmcUnreachable));
    let attempts: Vec<u32> = world.calls().into_iter().map(|(.., attempt)| attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

/// Proves: G5
#[tokio::test]
async fn a_program_that_stops_in_order_keeps_what_ends_in_time_and_repeats_the_rest() {
    let (_folder, store) = store();
    let runs = [submit(&store, request(1)).await, submit(&store, request(2)).await];
    let world = World::new();
    // The first run's activity comes to an end when it is told to stop, the second one's breaks off.
    world.on("test.b", |input, call| async move {
        call.stop.cancelled().await;
        if input == json!("ends") { Ok(input) } else { Err(busy(FailureCode::BmcUnreachable)) }
    });
    let workflow = |cx: LocalCx, request: EnrollRequest| async move {
        let input = if request.netbox_id == 1 { "ends" } else { "breaks off" };
        let b = cx.activity::<B>(input.into(), options()).await?;
        result(cx.activity::<C>(b, options()).await?)
    };
    let workflows = Workflows::new().with("test", workflow);
    let first = engine(Arc::new(store.clone()), &world, workflows.clone(), real());
    first.resume_all().await.unwrap();
    until("both are at work", || world.count("test.b") == 2).await;
    first.shutdown().await;
    assert_eq!((ended(&store, runs[0]).len(), ended(&store, runs[1]).len()), (1, 0));
    assert_eq!(world.count("test.c"), 0, "nothing new is begun");

    let world = World::new();
    let second = engine(Arc::new(store.clone()), &world, workflows, real());
    second.resume_all().await.unwrap();
    assert_eq!(said(&store, runs[0]).await, "test.c(ends)");
    assert_eq!(said(&store, runs[1]).await, "test.c(test.b(breaks off))");
    assert_eq!((world.count("test.b"), world.count("test.c")), (1, 2));
}

/// Proves: G9
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_kept_over_a_kill_at_every_place_behind_it() {
    let workflow = |cx: LocalCx, _: EnrollRequest| async move {
        cx.activity::<A>("set".into(), options()).await?;
        let waited = cx.sleep_until(at(3600), reason("waits")).await;
        if waited == Err(Cancelled) {
            cx.activity::<Undo>("set".into(), surviving()).await?;
            cx.activity::<B>("flag".into(), surviving()).await?;
            return Err(ActivityError::Cancelled);
        }
        result("not cancelled")
    };
    let workflows = Workflows::new().with("test", workflow);
    for appends in 0.. {
        let (_folder, store) = store();
        let run = submit(&store, request(1)).await;
        let world = World::new();
        // Up to the wait; the fuse burns from the cancel on.
        let fuse = Fuse::after(&store, &world, i64::MAX);
        let first = engine(fuse.clone(), &world, workflows.clone(), Arc::new(ManualClock::new(at(0))));
        first.launch(run);
        until("the wait", || store.run(run).unwrap().waiting.is_some()).await;
        fuse.left.store(appends, Ordering::SeqCst);
        first.cancel(run, "eve").await.ok();
        until("the end, or the kill", || {
            world.dead.load(Ordering::SeqCst) || matches!(events(&store, run).last(), Some(Event::Finished { .. }))
        })
        .await;
        drop(first);
        if !world.dead.load(Ordering::SeqCst) {
            assert!(appends > 2, "only {appends} places were tried");
            return;
        }
        let finished = ended(&store, run);
        let world = World::new();
        let second = engine(Arc::new(store.clone()), &world, workflows.clone(), Arc::new(ManualClock::new(at(1))));
        second.resume_all().await.unwrap();
        if appends == 0 {
            // The request itself was lost, and whoever made it was told so.
            second.cancel(run, "eve").await.unwrap();
        }
        assert_eq!(outcome(&store, run).await, Outcome::Cancelled { by: "eve".into(), left: vec![], why: None });
        assert!(world.calls().iter().all(|(_, seq, _)| !finished.contains(seq)), "{:?}", world.calls());
        second.shutdown().await;
    }
}

/// An activity with an intent and no result is not begun again where the run is cancelled meanwhile, by a process that
/// has no engine for it yet.
///
/// Proves: G9
#[tokio::test]
async fn a_cancel_reaches_a_run_that_waits_for_room_after_a_restart() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let intent = Event::ActivityScheduled {
        seq: 1,
        name: "test.a".into(),
        phase: muster::domain::phase::Phase::Bmc,
        input: json!("x"),
    };
    store.append(run, 1, vec![(at(1), Body::Journal(intent))]).await.unwrap();
    let world = World::new();
    let workflow = |cx: LocalCx, _| async move { result(cx.activity::<A>("x".into(), options()).await?) };
    let engine = engine(Arc::new(store.clone()), &world, Workflows::new().with("test", workflow), real());
    engine.cancel(run, "eve").await.unwrap();
    let left = vec!["'test.a' was broken off: it may have happened, whole or in part".to_owned()];
    assert_eq!(outcome(&store, run).await, Outcome::Cancelled { by: "eve".into(), left, why: None });
    assert_eq!(world.calls(), []);
}

/// Proves: G7
#[tokio::test]
async fn a_journal_that_the_code_does_not_fit_ends_that_run_alone_and_touches_nothing() {
    let one = |cx: LocalCx, _| async move {
        cx.activity::<A>("x".into(), options()).await?;
        cx.sleep_until(at(60), reason("waits")).await?;
        result(cx.activity::<B>("y".into(), options()).await?)
    };
    let (_folder, whole) = store();
    let run = submit(&whole, request(1)).await;
    let clock = Arc::new(ManualClock::leaping(at(0)));
    let before = engine(Arc::new(whole.clone()), &World::new(), Workflows::new().with("test", one), clock);
    before.launch(run);
    said(&whole, run).await;
    before.shutdown().await;
    let records = whole.records(run).unwrap();
    let journal: Vec<RunRecord> = records[..records.len() - 1].to_vec();

    let other_name = |cx: LocalCx, _| async move { result(cx.activity::<C>("x".into(), options()).await?) };
    let other_input = |cx: LocalCx, _| async move { result(cx.activity::<A>("z".into(), options()).await?) };
    let no_wait = |cx: LocalCx, _| async move {
        cx.activity::<A>("x".into(), options()).await?;
        result(cx.activity::<B>("y".into(), options()).await?)
    };
    let ends_early = |cx: LocalCx, _| async move {
        cx.activity::<A>("x".into(), options()).await?;
        result("early")
    };
    let asks_late = |cx: LocalCx, _| async move {
        cx.next_signal().await?;
        result(cx.activity::<A>("x".into(), options()).await?)
    };
    let changed: [(Workflows, &str, &str); 6] = [
        (
            Workflows::new().with("test", other_name),
            "activity 1 'test.a' with \"x\"",
            "asks for activity 1 'test.c' with \"x\"",
        ),
        (
            Workflows::new().with("test", other_input),
            "activity 1 'test.a' with \"x\"",
            "asks for activity 1 'test.a' with \"z\"",
        ),
        (Workflows::new().with("test", no_wait), "timer 2", "asks for activity 2 'test.b' with \"y\""),
        (Workflows::new().with("test", ends_early), "timer 2", "ends there"),
        (
            Workflows::new().with("test", asks_late),
            "activity 1 'test.a' with \"x\"",
            "asks for nothing that this could answer",
        ),
        (Workflows::new(), "a run of 'test'", "has no workflow 'test'"),
    ];
    for (workflows, history, code) in changed {
        let (_folder, store) = store();
        restore(&store, &journal).await;
        let sane = submit(&store, request(2)).await;
        let workflows = workflows.with("sane", |_, _| async { result("fine") });
        store.append(sane, 1, vec![]).await.unwrap();
        let world = World::new();
        let engine = engine(Arc::new(store.clone()), &world, workflows, real());
        engine.launch(run);
        let failure = failure(&store, run).await;
        assert_eq!(failure.code, FailureCode::JournalDiverged);
        assert!(failure.message.contains(history) && failure.message.contains(code), "{}", failure.message);
        assert_eq!(world.calls(), [], "{code}");
        let added = &store.records(run).unwrap()[journal.len()..];
        assert_eq!(added.len(), 1, "{added:?}");
        engine.shutdown().await;
    }
}

/// Proves: G7
#[tokio::test]
async fn a_run_of_before_a_change_keeps_to_its_old_path_and_a_new_one_takes_the_new() {
    let old = |cx: LocalCx, _| async move {
        cx.activity::<A>("x".into(), options()).await?;
        result(cx.activity::<B>("old".into(), options()).await?)
    };
    let new = |cx: LocalCx, _| async move {
        let new = cx.version("b-became-c");
        cx.activity::<A>("x".into(), options()).await?;
        assert_eq!(cx.version("b-became-c"), new);
        result(if new {
            cx.activity::<C>("new".into(), options()).await?
        } else {
            cx.activity::<B>("old".into(), options()).await?
        })
    };
    // Long after: nobody has runs of the old path any more, and the code asks no longer.
    let settled = |cx: LocalCx, _| async move {
        cx.activity::<A>("x".into(), options()).await?;
        result(cx.activity::<C>("new".into(), options()).await?)
    };
    let (_folder, whole) = store();
    let (run, clock) = (submit(&whole, request(1)).await, real());
    let world = World::new();
    world.on("test.b", |_, call| async move {
        call.stop.cancelled().await;
        Err(busy(FailureCode::BmcUnreachable))
    });
    let before = engine(Arc::new(whole.clone()), &world, Workflows::new().with("test", old), clock.clone());
    before.launch(run);
    until("the second activity", || world.count("test.b") == 1).await;
    before.shutdown().await;

    let after = engine(Arc::new(whole.clone()), &World::new(), Workflows::new().with("test", new), clock.clone());
    after.resume_all().await.unwrap();
    assert_eq!(said(&whole, run).await, "test.b(old)");
    let fresh = submit(&whole, request(2)).await;
    after.launch(fresh);
    assert_eq!(said(&whole, fresh).await, "test.c(new)");
    after.shutdown().await;

    let records = whole.records(fresh).unwrap();
    let (_folder, cut) = store();
    restore(&cut, &records[..records.len() - 2]).await;
    let later = engine(Arc::new(cut.clone()), &World::new(), Workflows::new().with("test", settled), clock);
    later.resume_all().await.unwrap();
    assert_eq!(said(&cut, fresh).await, "test.c(new)");
}

/// Proves: G12
#[tokio::test]
async fn a_run_whose_journal_cannot_be_written_is_put_aside_and_goes_on_when_it_can() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let world = World::new();
    let workflow = |cx: LocalCx, _| async move {
        let a = cx.activity::<A>("x".into(), options()).await?;
        result(cx.activity::<B>(a, options()).await?)
    };
    let fuse = Fuse::after(&store, &world, 2);
    let clock = Arc::new(ManualClock::new(at(0)));
    let engine = engine(fuse.clone(), &world, Workflows::new().with("test", workflow), clock.clone());
    engine.launch(run);
    until("the store fails", || world.dead.load(Ordering::SeqCst)).await;
    let calls = world.calls().len();
    fuse.left.store(i64::MAX, Ordering::SeqCst);
    world.dead.store(false, Ordering::SeqCst);
    // Half a minute by this clock; a pause of it ends when it is turned, or after a moment.
    clock.advance(Duration::from_secs(31));
    assert_eq!(said(&store, run).await, "test.b(test.a(x))");
    assert!(world.calls().len() >= calls);
    let told = observations(&store, run).into_iter().any(
        |o| matches!(o, Observation::Note { system, text } if system == "muster" && text.contains("goes on after")),
    );
    assert!(told, "the records say that there was a gap");
}

/// Proves: G5, G12
#[tokio::test]
async fn what_a_lost_append_leaves_at_work_is_stopped_before_it_is_begun_again_and_the_caller_hears_of_the_store() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let world = World::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (n, m) = (Arc::clone(&now), Arc::clone(&most));
    world.on("test.a", move |input, call| {
        let (now, most) = (Arc::clone(&n), Arc::clone(&m));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            if call.attempt == 1 && now.load(Ordering::SeqCst) == 1 {
                call.stop.cancelled().await;
                // It takes its time to come to an end.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(input)
        }
    });
    let workflow = |cx: LocalCx, _| async move { result(cx.activity::<A>("x".into(), options()).await?) };
    let fuse = Fuse::after(&store, &world, i64::MAX);
    let clock = Arc::new(ManualClock::leaping(at(0)));
    let engine = engine(fuse.clone(), &world, Workflows::new().with("test", workflow), clock);
    engine.launch(run);
    until("the activity is at work", || now.load(Ordering::SeqCst) == 1).await;
    // The next append is lost, and with it this request.
    fuse.left.store(0, Ordering::SeqCst);
    let answer = engine.cancel(run, "eve").await;
    assert_eq!(answer, Err(EngineError::Store(StoreError::Closed)));
    fuse.left.store(i64::MAX, Ordering::SeqCst);
    world.dead.store(false, Ordering::SeqCst);
    until("it was stopped", || now.load(Ordering::SeqCst) == 0 || world.count("test.a") == 2).await;
    engine.cancel(run, "eve").await.ok();
    outcome(&store, run).await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "never twice at once");
}
