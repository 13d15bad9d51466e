//! Limits, the line of those that wait, canaries, and what a site that hangs does to the others.

#[path = "support/engine.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster::config::settings::Limits;
use muster::domain::event::{Event, Outcome};
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::queue::{Placement, Reason};
use muster::domain::request::EnrollRequest;
use muster::engine::{Engine, LocalCx, SystemClock, Workflows};
use muster::store::{RunStatus, Store, Submit};
use muster::workflows::cx::{ActivityError, Cx, RetryPolicy};
use serde_json::json;
use support::*;
use tokio::sync::Notify;
use uuid::Uuid;

/// One activity that is told the host: what it does is the test's.
async fn one_step(cx: LocalCx, request: EnrollRequest) -> Result<muster::domain::event::EnrollResult, ActivityError> {
    let retry = RetryPolicy { max_attempts: 1, ..options().retry };
    result(cx.activity::<A>(request.host, muster::workflows::cx::ActivityOptions { retry, ..options() }).await?)
}

fn workflows() -> Workflows {
    Workflows::new().with("test", one_step)
}

fn engine_with(store: &Store, world: &Arc<World>, limits: Limits) -> Engine {
    limited(Arc::new(store.clone()), world, workflows(), Arc::new(SystemClock::default()), limits)
}

/// A world whose activities stand until they are let go, one by one.
struct Gate {
    inside: Arc<Mutex<Vec<String>>>,
    open: Arc<Mutex<BTreeMap<String, Arc<Notify>>>>,
}

impl Gate {
    fn on(world: &Arc<World>) -> Gate {
        let gate = Gate { inside: Arc::default(), open: Arc::default() };
        let (inside, open) = (Arc::clone(&gate.inside), Arc::clone(&gate.open));
        world.on("test.a", move |input, call| {
            let host = input.as_str().unwrap().to_owned();
            inside.lock().unwrap().push(host.clone());
            let door = Arc::clone(open.lock().unwrap().entry(host.clone()).or_default());
            let inside = Arc::clone(&inside);
            async move {
                let stopped = tokio::select! {
                    () = door.notified() => false,
                    () = call.stop.cancelled() => true,
                };
                inside.lock().unwrap().retain(|other| *other != host);
                if stopped || host.contains("bad") { Err(busy(FailureCode::CablesWrong)) } else { Ok(json!("done")) }
            }
        });
        gate
    }

    fn inside(&self) -> Vec<String> {
        let mut inside = self.inside.lock().unwrap().clone();
        inside.sort();
        inside
    }

    fn let_go(&self, host: &str) {
        self.open.lock().unwrap().entry(host.to_owned()).or_default().notify_one();
    }
}

fn host(netbox_id: u64, host: &str, site: &str) -> EnrollRequest {
    EnrollRequest { host: host.into(), site: site.into(), submitted_at: at(netbox_id as i64), ..request(netbox_id) }
}

fn in_rack(request: EnrollRequest, rack: &str, switches: &[&str]) -> EnrollRequest {
    let switches = switches.iter().map(|s| (*s).to_owned()).collect();
    EnrollRequest { placement: Placement { location: None, rack: Some(rack.into()), switches }, ..request }
}

fn waits(store: &Store) -> Vec<String> {
    let names: BTreeMap<RunId, String> = store.runs().unwrap().into_iter().map(|row| (row.run, row.host)).collect();
    store.queue().unwrap().iter().map(|q| format!("{} {} {}", q.place, names[&q.run], q.reason)).collect()
}

/// A batch of the tests' own workflow, as the store takes it of the program's.
async fn batch(store: &Store, first: EnrollRequest, rest: Vec<EnrollRequest>) -> Vec<RunId> {
    let canary = submit(store, first).await;
    let mut runs = vec![canary];
    for request in rest {
        runs.push(submit(store, EnrollRequest { canary: Some(canary), ..request }).await);
    }
    runs
}

/// Proves: G13
#[tokio::test]
async fn each_limit_holds_and_a_second_process_reads_the_same_line_with_the_same_reasons() {
    let (folder, store) = store();
    let world = World::new();
    let gate = Gate::on(&world);
    let limits = Limits {
        runs: 3,
        runs_per_site: Some(2),
        runs_per_rack: Some(2),
        runs_per_switch: Some(1),
        ..Limits::default()
    };
    let engine = engine_with(&store, &world, limits);
    engine.resume_all().await.unwrap();
    let mut runs = Vec::new();
    for request in [
        in_rack(host(1, "a1", "osl1"), "B07", &["leaf-1"]),
        in_rack(host(2, "a2", "osl1"), "B08", &["leaf-1"]),
        in_rack(host(3, "a3", "osl1"), "B07", &["leaf-3"]),
        in_rack(host(4, "a4", "osl1"), "B07", &["leaf-4"]),
        in_rack(host(5, "a5", "osl1"), "B09", &["leaf-5"]),
        in_rack(host(6, "a6", "osl1"), "B10", &["leaf-6"]),
        in_rack(host(7, "b1", "fra1"), "B07", &["leaf-1"]),
        in_rack(host(8, "b2", "fra1"), "B08", &["leaf-2"]),
    ] {
        runs.push(submit(&store, request).await);
    }
    runs.iter().for_each(|run| engine.launch(*run));
    until("three are under way", || gate.inside().len() == 3).await;
    assert_eq!(gate.inside(), ["a1", "a3", "b1"]);
    // As a process of its own has it: from the store alone, without a configuration.
    let other = Store::open(folder.path()).unwrap();
    assert_eq!(
        waits(&other),
        [
            "1 b2 total limit, 3 of 3 under way",
            "2 a2 limit of switch leaf-1, 1 of 1 under way",
            "3 a4 limit of rack B07, 2 of 2 under way",
            "4 a5 limit of site osl1, 2 of 2 under way",
            "5 a6 limit of site osl1, 2 of 2 under way",
        ]
    );
    assert_eq!(engine.queued(), other.queue().unwrap().iter().map(|queued| queued.run).collect::<Vec<_>>());
    let row = other.run(runs[3]).unwrap();
    assert_eq!((row.status, row.queued.unwrap().place), (RunStatus::Queued, 3));
    assert_eq!(other.run(runs[0]).unwrap().queued, None);

    // Each that ends lets in the one whose room it was; of two sites with as many the older run.
    for (ends, inside) in [("a1", ["a2", "a3", "b1"]), ("a3", ["a2", "a4", "b1"]), ("b1", ["a2", "a4", "b2"])] {
        gate.let_go(ends);
        until("the next one came in", || gate.inside() == inside).await;
    }
    for row in store.runs().unwrap() {
        gate.let_go(&row.host);
    }
    for run in runs {
        assert_eq!(said(&store, run).await, "done");
    }
    assert!(store.queue().unwrap().is_empty());
}

/// Proves: G13, G5
#[tokio::test]
async fn what_was_under_way_goes_on_first_after_a_restart_and_a_lowered_limit_ends_nothing() {
    let (_folder, store) = store();
    let world = World::new();
    let gate = Gate::on(&world);
    let before = engine_with(&store, &world, Limits { runs: 3, ..Limits::default() });
    let mut runs = Vec::new();
    for id in 1..=5 {
        runs.push(submit(&store, host(id, &format!("h{id}"), "osl1")).await);
    }
    before.resume_all().await.unwrap();
    until("three are under way", || gate.inside().len() == 3).await;
    before.shutdown().await;
    gate.inside.lock().unwrap().clear();

    let after = engine_with(&store, &world, Limits { runs: 2, ..Limits::default() });
    after.resume_all().await.unwrap();
    until("those of before go on", || gate.inside().len() == 3).await;
    assert_eq!(gate.inside(), ["h1", "h2", "h3"]);
    assert_eq!(waits(&store), ["1 h4 total limit, 3 of 2 under way", "2 h5 total limit, 3 of 2 under way"]);
    gate.let_go("h2");
    assert_eq!(said(&store, runs[1]).await, "done");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(gate.inside(), ["h1", "h3"], "there is no room yet");
    gate.let_go("h1");
    until("the next one begins", || gate.inside() == ["h3", "h4"]).await;
}

/// Proves: G13
#[tokio::test]
async fn the_others_of_a_batch_wait_for_their_canary_over_a_restart_and_go_on_with_its_success() {
    let (_folder, store) = store();
    let world = World::new();
    let gate = Gate::on(&world);
    let engine = engine_with(&store, &world, Limits::default());
    engine.resume_all().await.unwrap();
    let rest = vec![host(2, "second", "osl1"), host(3, "third", "osl1")];
    let runs = batch(&store, host(1, "first", "osl1"), rest).await;
    runs.iter().for_each(|run| engine.launch(*run));
    until("the canary is under way", || gate.inside() == ["first"]).await;
    assert_eq!(waits(&store), ["1 second waits for canary first", "2 third waits for canary first"]);
    assert!(matches!(&store.queue().unwrap()[0].reason, Reason::Canary { run, .. } if *run == runs[0]));
    engine.shutdown().await;
    gate.inside.lock().unwrap().clear();

    let engine = engine_with(&store, &world, Limits::default());
    engine.resume_all().await.unwrap();
    until("the canary goes on", || gate.inside() == ["first"]).await;
    assert_eq!(waits(&store).len(), 2);
    for run in &runs[1..] {
        assert_eq!(store.records(*run).unwrap().len(), 1, "nothing of it was begun");
    }
    gate.let_go("first");
    until("the others go on", || gate.inside() == ["second", "third"]).await;
    gate.let_go("second");
    gate.let_go("third");
    for run in runs {
        assert_eq!(said(&store, run).await, "done");
    }
}

/// Proves: G13, G10
#[tokio::test]
async fn with_a_canary_that_fails_or_is_cancelled_the_others_end_unbegun_and_say_why() {
    for (ends, word) in [("fails", "failed with CABLES_WRONG"), ("is cancelled", "was cancelled")] {
        let (_folder, store) = store();
        let world = World::new();
        let gate = Gate::on(&world);
        let engine = engine_with(&store, &world, Limits::default());
        let runs = batch(&store, host(1, "bad", "osl1"), vec![host(2, "b", "osl1"), host(3, "c", "osl1")]).await;
        runs.iter().for_each(|run| engine.launch(*run));
        until("the canary is under way", || gate.inside() == ["bad"]).await;
        if ends == "fails" {
            gate.let_go("bad");
        } else {
            engine.cancel(runs[0], "eve").await.unwrap();
        }
        for run in &runs[1..] {
            let Outcome::Cancelled { by, left, why } = outcome(&store, *run).await else { panic!() };
            assert_eq!((by.as_str(), left.len()), ("muster", 0));
            assert_eq!(why.unwrap(), format!("its canary bad {word} (run {})", runs[0].short()));
            let begun = events(&store, *run).iter().any(|e| matches!(e, Event::ActivityScheduled { .. }));
            assert!(!begun, "{ends}");
            assert_eq!(store.run(*run).unwrap().status, RunStatus::Cancelled);
        }
        assert_eq!(world.count("test.a"), 1);
        // Its device is free, and a retry waits for nobody.
        let again = submit(&store, EnrollRequest { retry_of: Some(runs[1]), ..host(2, "b", "osl1") }).await;
        engine.launch(again);
        until("the retry is under way", || gate.inside().contains(&"b".to_owned())).await;
    }
}

/// Proves: G13, G5
#[tokio::test]
async fn a_canary_that_ended_while_nobody_looked_is_judged_at_the_next_start() {
    let (_folder, store) = store();
    let world = World::new();
    let gate = Gate::on(&world);
    let runs = batch(&store, host(1, "bad", "osl1"), vec![host(2, "b", "osl1")]).await;
    let engine = engine_with(&store, &world, Limits::default());
    engine.launch(runs[0]);
    until("the canary is under way", || gate.inside() == ["bad"]).await;
    gate.let_go("bad");
    failure(&store, runs[0]).await;
    engine.shutdown().await;
    assert_eq!(store.run(runs[1]).unwrap().status, RunStatus::Queued);
    assert!(store.queue().unwrap().is_empty(), "it is not to begin any more");

    let engine = engine_with(&store, &world, Limits::default());
    engine.resume_all().await.unwrap();
    assert!(matches!(outcome(&store, runs[1]).await, Outcome::Cancelled { why: Some(_), .. }));
}

/// Proves: G13
#[tokio::test]
async fn a_run_can_be_cancelled_while_it_waits_for_its_canary() {
    let (_folder, store) = store();
    let world = World::new();
    let gate = Gate::on(&world);
    let engine = engine_with(&store, &world, Limits::default());
    let runs = batch(&store, host(1, "first", "osl1"), vec![host(2, "b", "osl1"), host(3, "c", "osl1")]).await;
    runs.iter().for_each(|run| engine.launch(*run));
    until("the canary is under way", || gate.inside() == ["first"]).await;
    engine.cancel(runs[1], "eve").await.unwrap();
    assert_eq!(outcome(&store, runs[1]).await, Outcome::Cancelled { by: "eve".into(), left: vec![], why: None });
    assert_eq!(engine.queued(), [runs[2]]);
    assert_eq!(waits(&store), ["1 c waits for canary first"]);
}

/// Proves: G8, G13
#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let (_folder, store) = store();
    let other = submit(&store, host(2, "second", "osl1")).await;
    let ids: Vec<RunId> = (0..3).map(|_| RunId(Uuid::now_v7())).collect();
    let hosts = |numbers: [u64; 3]| -> Vec<(RunId, EnrollRequest)> {
        ids.iter().zip(numbers).map(|(run, n)| (*run, host(n, &format!("h{n}"), "osl1"))).collect()
    };
    let answers = store.submit_batch(hosts([1, 2, 3])).await.unwrap();
    assert_eq!(answers[0], Submit::Accepted);
    assert_eq!(answers[1], Submit::Busy { run: other, by: "ada".into() });
    assert_eq!(store.active_runs().unwrap(), [other], "nothing of it was written");
    let answers = store.submit_batch(hosts([1, 4, 3])).await.unwrap();
    assert!(answers.iter().all(|answer| *answer == Submit::Accepted));
    assert_eq!(store.active_runs().unwrap().len(), 4);
}

/// Proves: G13
#[tokio::test]
async fn a_site_whose_activities_hang_for_ever_keeps_no_other_site_waiting() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |input, _| async move {
        if input.as_str().unwrap().starts_with("dead") {
            std::future::pending::<()>().await;
        }
        Ok(json!("done"))
    });
    let engine = engine_with(&store, &world, Limits { runs: 500, activities: 8, ..Limits::default() });
    // Many times more than there are places at work, and all of them before the others.
    for id in 1..=60 {
        engine.launch(submit(&store, host(id, &format!("dead{id}"), "dead1")).await);
    }
    until("the dead site has what it can get", || world.count("test.a") >= 6).await;
    let mut others = Vec::new();
    for id in 101..=130 {
        let run = submit(&store, host(id, &format!("live{id}"), if id % 2 == 0 { "live1" } else { "live2" })).await;
        engine.launch(run);
        others.push(run);
    }
    for run in others {
        assert_eq!(said(&store, run).await, "done");
    }
    let hangs = world.count("test.a") - 30;
    assert_eq!(hangs, 6, "three quarters of 8, and no more");
}

/// The tests' one step, with the attempts of the house.
async fn patient(cx: LocalCx, request: EnrollRequest) -> Result<muster::domain::event::EnrollResult, ActivityError> {
    result(cx.activity::<A>(request.host, options()).await?)
}

/// Proves: G11, G12
#[tokio::test]
async fn a_service_that_does_not_answer_costs_no_attempt_while_its_patience_lasts_and_then_it_does() {
    let (_folder, store) = store();
    let world = World::new();
    world.on("test.a", |input, call| async move {
        match input.as_str().unwrap() {
            "back" if call.attempt > 1 => panic!("an attempt was lost"),
            "back" if std::time::Instant::now() < *BACK.get_or_init(|| std::time::Instant::now() + AWAY) => {
                Err(busy(FailureCode::NetboxUnreachable))
            }
            "back" => Ok(json!("done")),
            "bmc" => Err(busy(FailureCode::BmcUnreachable)),
            _ => Err(busy(FailureCode::NetboxUnreachable)),
        }
    });
    let engine = limited(
        Arc::new(store.clone()),
        &world,
        Workflows::new().with("test", patient),
        Arc::new(SystemClock::default()),
        Limits::default(),
    );
    let outage = |mut request: EnrollRequest, patience: Duration, attempts| {
        (request.options.budgets.outage, request.params.max_attempts) = (patience, attempts);
        request
    };
    let long = Duration::from_secs(60);
    let back = submit(&store, outage(host(1, "back", "osl1"), long, None)).await;
    let gone = submit(&store, outage(host(2, "gone", "osl1"), Duration::from_millis(200), None)).await;
    let fast = submit(&store, outage(host(3, "fast", "osl1"), long, Some(1))).await;
    let bmc = submit(&store, outage(host(4, "bmc", "osl1"), long, None)).await;
    [back, gone, fast, bmc].iter().for_each(|run| engine.launch(*run));
    assert_eq!(said(&store, back).await, "done");
    for (run, code) in [
        (gone, FailureCode::NetboxUnreachable),
        (fast, FailureCode::NetboxUnreachable),
        (bmc, FailureCode::BmcUnreachable),
    ] {
        assert_eq!(failure(&store, run).await.code, code);
    }
    let tried = |run| {
        let seen = observations(&store, run).into_iter();
        seen.filter_map(|o| match o {
            muster::domain::event::Observation::Attempt { attempt, .. } => Some(attempt),
            _ => None,
        })
        .collect::<Vec<u32>>()
    };
    assert!(tried(back).len() > 3 && tried(back).iter().all(|attempt| *attempt == 1), "{:?}", tried(back));
    let counted = tried(gone);
    assert!(counted.len() > 3 && counted.ends_with(&[1, 2, 3]), "it waits, then its attempts count: {counted:?}");
    assert_eq!((tried(fast), tried(bmc)), (vec![1], vec![1, 2, 3]));
}

/// How long the service of the test above is away.
const AWAY: Duration = Duration::from_millis(400);
static BACK: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
