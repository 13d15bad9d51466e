//! An activity that takes the program with it each time it is begun must not do so for ever.

#[path = "support/engine.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::domain::event::{Body, Event, Observation, RunRecord};
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::request::EnrollRequest;
use muster::engine::{Engine, Journal, LocalCx, ManualClock, SystemClock, Workflows};
use muster::store::{Store, StoreError};
use muster::workflows::cx::Cx;
use serde_json::json;
use support::*;

type Outcomes = Result<muster::domain::event::EnrollResult, muster::workflows::cx::ActivityError>;

async fn workflow(cx: LocalCx, _: EnrollRequest) -> Outcomes {
    let a = cx.activity::<A>("1".into(), options()).await?;
    result(cx.activity::<B>(a, options()).await?)
}

fn workflows() -> Workflows {
    Workflows::new().with("test", workflow).with("sane", |_, _| async { result("fine") })
}

fn begin(journal: Arc<dyn Journal>, world: &Arc<World>) -> Engine {
    engine(journal, world, workflows(), Arc::new(SystemClock::default()))
}

/// A world in which the second step never ends.
fn hanging() -> Arc<World> {
    World::new().on("test.b", |_, call| async move {
        call.stop.cancelled().await;
        Err(busy(FailureCode::BmcUnreachable))
    })
}

/// Lives until the step is under way, and ends out of order.
async fn die_in_the_step(store: &Store, run: RunId, appends: i64) -> usize {
    let world = hanging();
    let engine = begin(Fuse::after(store, &world, appends), &world);
    engine.resume_all().await.unwrap();
    let ended = || matches!(events(store, run).last(), Some(Event::Finished { .. }));
    until("the kill", || world.dead.load(std::sync::atomic::Ordering::SeqCst) || ended()).await;
    engine.shutdown().await;
    world.count("test.b")
}

/// Proves: G12
#[tokio::test]
async fn an_activity_that_ends_the_program_each_time_is_begun_six_times_and_then_ends_its_run_alone() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    // The first life: the first step with its attempt and its end, then the intent of the second.
    let first = {
        let world = hanging();
        let engine = begin(Arc::new(store.clone()), &world);
        engine.launch(run);
        until("the step", || world.count("test.b") == 1).await;
        // Dropped out of order: what it did not write is lost.
        let records = store.records(run).unwrap();
        engine.shutdown().await;
        records
    };
    let intent =
        |r: &RunRecord| matches!(&r.body, Body::Journal(Event::ActivityScheduled { name, .. }) if name == "test.b");
    let place = first.iter().position(intent).unwrap();
    let (_folder, store) = support::store();
    let Body::Journal(Event::Submitted { workflow, request }) = first[0].body.clone() else { panic!() };
    store.submit_as(run, &workflow, *request).await.unwrap();
    store.append(run, 1, first[1..=place].iter().map(|r| (r.at, r.body.clone())).collect()).await.unwrap();
    let mut begun = 1;
    for _ in 0..5 {
        begun += die_in_the_step(&store, run, 1).await;
    }
    // Each start is on the disk before it is made; a kill may come between the two.
    let marks = observations(&store, run).iter().filter(|o| matches!(o, Observation::Resumed { .. })).count();
    assert_eq!(marks, 5, "{:#?}", store.records(run).unwrap());
    assert!((1..=6).contains(&begun), "{begun}");
    // It is not begun a seventh time, and others go on.
    let sane = RunId(uuid::Uuid::now_v7());
    store.submit_as(sane, "sane", support::request(2)).await.unwrap();
    let world = hanging();
    let engine = begin(Arc::new(store.clone()), &world);
    engine.resume_all().await.unwrap();
    let failure = failure(&store, run).await;
    assert_eq!(failure.code, FailureCode::InternalError);
    assert!(failure.message.contains("'test.b' was begun 6 times"), "{}", failure.message);
    assert!(failure.action.contains("log"), "{}", failure.action);
    assert_eq!(world.count("test.b"), 0);
    assert_eq!(said(&store, sane).await, "fine");
    engine.shutdown().await;
}

/// Proves: G5, G12
#[tokio::test]
async fn a_program_that_is_stopped_in_order_again_and_again_poisons_nothing() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    for life in 0..9 {
        let world = hanging();
        let engine = begin(Arc::new(store.clone()), &world);
        engine.resume_all().await.unwrap();
        until("the step", || world.count("test.b") == 1).await;
        engine.shutdown().await;
        let stopped = observations(&store, run).iter().filter(|o| matches!(o, Observation::Stopped { .. })).count();
        assert_eq!(stopped, life + 1);
    }
    let world = World::new();
    let engine = begin(Arc::new(store.clone()), &world);
    engine.resume_all().await.unwrap();
    assert_eq!(said(&store, run).await, "test.b(test.a(1))");
}

/// The store of a process that may be dead: then it takes nothing.
struct Mortal {
    store: Store,
    world: Arc<World>,
}

impl Journal for Mortal {
    reads_the_store!(store);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        match self.world.dead.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::Closed) }),
            false => Journal::append(&self.store, run, expect_n, events),
        }
    }
}

/// A world in which the second step of one run ends the program, and that of every other takes a while.
fn poisoned(culprit: RunId) -> Arc<World> {
    let world = World::new();
    let killed = Arc::clone(&world);
    world.on("test.b", move |_, call| {
        let killed = Arc::clone(&killed);
        async move {
            if call.run == culprit {
                killed.dead.store(true, Ordering::SeqCst);
                call.stop.cancelled().await;
            }
            tokio::select! {
                () = call.stop.cancelled() => Err(busy(FailureCode::BmcUnreachable)),
                () = tokio::time::sleep(Duration::from_millis(200)) => Ok(json!("done")),
            }
        }
    })
}

/// Proves: G5, G12
#[tokio::test]
async fn of_many_runs_at_work_when_the_program_dies_only_the_culprit_ends() {
    for place in [0, 2, 4] {
        let (_folder, store) = store();
        let mut runs = Vec::new();
        for n in 0..5 {
            runs.push(submit(&store, request(n + 1)).await);
        }
        let culprit = runs[place];
        let over = || runs.iter().all(|run| matches!(events(&store, *run).last(), Some(Event::Finished { .. })));
        let mut lives = 0;
        while !over() {
            lives += 1;
            assert!(lives < 20, "no end of dying");
            let world = poisoned(culprit);
            let engine = begin(Arc::new(Mortal { store: store.clone(), world: Arc::clone(&world) }), &world);
            engine.resume_all().await.unwrap();
            until("the death", || world.dead.load(Ordering::SeqCst) || over()).await;
            engine.shutdown().await;
        }
        assert!((6..=8).contains(&lives), "{lives} lives");
        for run in runs {
            match run == culprit {
                true => assert!(failure(&store, run).await.message.contains("'test.b' was begun 6 times")),
                false => assert_eq!(said(&store, run).await, "done"),
            }
        }
    }
}

/// A store that takes no result of one step: too large, or anything else that trying again does not mend.
struct Refuses(Store);

impl Journal for Refuses {
    reads_the_store!(0);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let result =
            |body: &Body| matches!(body, Body::Journal(Event::ActivityDone { output, .. }) if output == "large");
        if events.iter().any(|(_, body)| result(body)) {
            let refused = StoreError::Refused { path: "muster.db".into(), cause: "string or blob too big".into() };
            return Box::pin(async { Err(refused) });
        }
        Journal::append(&self.0, run, expect_n, events)
    }
}

/// Proves: G12
#[tokio::test]
async fn a_result_that_the_store_never_takes_ends_its_run_and_no_loop() {
    let (_folder, store) = store();
    let run = submit(&store, request(1)).await;
    let world = World::new().on("test.b", |_, _| async { Ok(json!("large")) });
    let clock = Arc::new(ManualClock::leaping(at(0)));
    let engine = engine(Arc::new(Refuses(store.clone())), &world, workflows(), clock);
    engine.launch(run);
    let failure = tokio::time::timeout(Duration::from_secs(30), failure(&store, run)).await.unwrap();
    assert_eq!(failure.code, FailureCode::InternalError);
    assert_eq!(world.count("test.b"), 6);
    engine.shutdown().await;
}

/// The store, which breaks once.
struct Breaks {
    store: Store,
    next: AtomicBool,
}

impl Journal for Breaks {
    reads_the_store!(store);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        assert!(!self.next.swap(false, Ordering::SeqCst), "the engine is wrong");
        Journal::append(&self.store, run, expect_n, events)
    }
}

/// Proves: G12
#[tokio::test]
async fn an_error_of_the_engine_itself_takes_only_the_run_that_met_it() {
    let (_folder, store) = store();
    let (bad, good) = (submit(&store, request(1)).await, submit(&store, request(2)).await);
    let world = World::new();
    let workflow = |cx: LocalCx, _| async move { result(cx.activity::<A>("x".into(), options()).await?) };
    let journal = Arc::new(Breaks { store: store.clone(), next: AtomicBool::new(true) });
    let engine = engine(journal, &world, Workflows::new().with("test", workflow), Arc::new(SystemClock::default()));
    engine.launch(bad);
    let failure = failure(&store, bad).await;
    assert_eq!(failure.code, FailureCode::InternalError);
    assert!(failure.message.contains("the engine broke"), "{}", failure.message);
    engine.launch(good);
    assert_eq!(said(&store, good).await, "test.a(x)");
}
