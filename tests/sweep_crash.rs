//! Ends the engine at every single append of a journal, before its commit and right behind it, begins another one on the
//! same store and the same site, and proves that the run ends where the undisturbed one does, with the same writes.
//!
//! By default it dies on the two sides of an append by turns, and the phases before the inspection are swept by the fresh
//! enrollment alone. With `MUSTER_FULL_SWEEP=1` it dies on both sides of each, and every scenario is a whole enrollment.

#[path = "support/pool.rs"]
mod pool;
#[path = "support/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::domain::event::{Body, Event, Observation, Outcome, RunRecord};
use muster::domain::ids::RunId;
use muster::domain::queue::Entry;
use muster::domain::request::EnrollRequest;
use muster::engine::Journal;
use muster::store::{Store, StoreError};
use serde_json::{Value, json};
use site::{Ended, HOST, Life, Site, once_only, outcome};
use tokio_util::sync::CancellationToken;

/// Much longer than any run takes, however busy the machine is.
const HANG: Duration = Duration::from_secs(60);

/// On which side of a commit the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// What was to be written is lost.
    Before,
    /// It is on the disk, and nobody has heard of it.
    Behind,
}

/// A journal that takes so many appends; at the next one the process dies.
struct Fuse {
    store: Store,
    left: AtomicI64,
    side: Side,
    killed: CancellationToken,
}

impl Journal for Fuse {
    fn active(&self) -> Result<Vec<RunId>, StoreError> {
        self.store.active_runs()
    }

    fn records(&self, run: RunId) -> Result<Vec<RunRecord>, StoreError> {
        self.store.records(run)
    }

    fn end(&self, run: RunId) -> Result<u64, StoreError> {
        self.store.journal_end(run)
    }

    fn entry(&self, run: RunId) -> Result<Option<Entry>, StoreError> {
        self.store.queue_entry(run)
    }

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        let (store, killed, side) = (self.store.clone(), self.killed.clone(), self.side);
        Box::pin(async move {
            if left > 0 {
                return store.append(run, expect_n, events).await;
            }
            if left == 0 && side == Side::Behind {
                store.append(run, expect_n, events).await.unwrap();
            }
            killed.cancel();
            Err(StoreError::Closed)
        })
    }
}

/// What a run meets, and what an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scenario {
    Fresh,
    InspectionFailsOnce,
    CleanFailsOnce,
    NodeLocked,
    Cancelled,
    DriverSwitch,
}

const ALL: [Scenario; 6] = [
    Scenario::Fresh,
    Scenario::InspectionFailsOnce,
    Scenario::CleanFailsOnce,
    Scenario::NodeLocked,
    Scenario::Cancelled,
    Scenario::DriverSwitch,
];

impl Scenario {
    fn site(self) -> Site {
        let site = Site::start(|scenario| {
            let timing = &mut scenario.timing;
            // A few looks at each wait are enough.
            (timing.boot_s, timing.inspect_s, timing.clean_step_s) = (20.0, 10.0, 8.0);
            // Ironic itself never gives up: a run that is to be cancelled still waits when the next process comes.
            timing.callback_timeout_s = 1e6;
        });
        let of_host = |kind: &str, more: Value| {
            let mut fault = json!({"kind": kind, "device": HOST});
            fault.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            site.fault(fault);
        };
        match self {
            Scenario::InspectionFailsOnce => of_host("inspection_fails", json!({"times": 1})),
            Scenario::CleanFailsOnce => of_host("clean_fails", json!({"times": 1})),
            // Begins when somebody first meets it, and outlasts several looks.
            Scenario::NodeLocked => of_host("node_locked", json!({"for_s": 120})),
            Scenario::Cancelled => of_host("inspection_silent", json!({"times": 1})),
            Scenario::Fresh | Scenario::DriverSwitch => {}
        }
        site
    }

    fn request(self, site: &Site, full: bool) -> EnrollRequest {
        let mut request = site.request();
        let options = &mut request.options;
        options.switch_to_ipmi_after_inspection = self == Scenario::DriverSwitch;
        if !full && self != Scenario::Fresh {
            options.platform_class_activity_ready = false;
            options.configure_dhcp = false;
            options.configure_bmc = false;
        }
        request
    }
}

/// Where a run came to.
#[derive(Debug, Clone, PartialEq)]
struct End {
    outcome: String,
    state: Value,
    writes: BTreeMap<String, usize>,
}

fn end(site: &Site, life: &Life, run: RunId) -> End {
    let outcome = match outcome(&life.store.records(run).unwrap()).unwrap() {
        Outcome::Succeeded { .. } => "succeeded".to_owned(),
        Outcome::Failed { failure } => format!("failed: {failure}"),
        Outcome::Cancelled { by, .. } => format!("cancelled by {by}"),
    };
    End { outcome, state: site.end_state(life), writes: once_only(&site.ledger()) }
}

/// Waits until the run has ended or the process is dead; cancels the run where that is the scenario's: while it inspects.
fn watch(scenario: Scenario, life: &Life, run: RunId) -> Ended {
    if scenario == Scenario::Cancelled {
        let began = Instant::now();
        while !life.is_killed() && life.store.run(run).unwrap().status.is_active() {
            assert!(began.elapsed() < HANG, "never inspects");
            if wants_cancel(&life.store.records(run).unwrap()) && life.cancel(run) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    life.wait(run, HANG).unwrap_or_else(|| {
        panic!(
            "{scenario:?} hangs: {:#?}",
            life.store.records(run).unwrap().into_iter().rev().take(10).collect::<Vec<_>>()
        )
    })
}

/// It waits for the inspection, and nobody has cancelled it yet.
fn wants_cancel(records: &[RunRecord]) -> bool {
    let asked = |r: &RunRecord| matches!(&r.body, Body::Journal(Event::CancelRequested { .. }));
    let inspects = |r: &RunRecord| matches!(&r.body, Body::Observation(Observation::Node { state, .. }) if state.as_str() == "inspect wait");
    records.iter().any(inspects) && !records.iter().any(asked)
}

struct Undisturbed {
    end: End,
    appends: i64,
}

fn undisturbed(scenario: Scenario, full: bool) -> Undisturbed {
    let site = scenario.site();
    let mut fuse = None;
    let life = site.begin(|store, killed| {
        let whole = Arc::new(Fuse { store, left: AtomicI64::new(i64::MAX), side: Side::Before, killed });
        fuse = Some(Arc::clone(&whole));
        whole
    });
    let run = life.submit(scenario.request(&site, full));
    let Ended::Run(_) = watch(scenario, &life, run) else { panic!("nobody killed it") };
    let appends = i64::MAX - fuse.unwrap().left.load(Ordering::SeqCst);
    let undisturbed = Undisturbed { end: end(&site, &life, run), appends };
    life.end();
    undisturbed
}

/// A place where the process dies.
#[derive(Debug, Clone, Copy)]
struct Point {
    scenario: Scenario,
    /// So many appends are taken first.
    appends: i64,
    side: Side,
}

/// What was found at a point: `None` where the run had ended before it came to that.
fn tried(point: Point, full: bool, expected: &End) -> Option<Vec<String>> {
    let Point { scenario, appends, side } = point;
    let site = scenario.site();
    let first = site.begin(|store, killed| Arc::new(Fuse { store, left: AtomicI64::new(appends), side, killed }));
    let run = first.submit(scenario.request(&site, full));
    let ended = watch(scenario, &first, run);
    let before = first.store.records(run).unwrap();
    first.end();
    let second = site.begin_sound();
    if let Ended::Run(_) = ended {
        second.end();
        return None;
    }
    second.resume();
    watch(scenario, &second, run);
    let mut wrong = differences(expected, &end(&site, &second, run));
    let after = second.store.records(run).unwrap();
    if after[..before.len()] != before[..] {
        wrong.push("the journal is not only added to".to_owned());
    }
    second.end();
    if !wrong.is_empty() {
        println!("{point:?}: {}", wrong.join("\n"));
    }
    Some(wrong)
}

fn differences(expected: &End, found: &End) -> Vec<String> {
    let mut wrong = Vec::new();
    if found.outcome != expected.outcome {
        wrong.push(format!("{} instead of {}", found.outcome, expected.outcome));
    }
    if found.state != expected.state {
        let (expected, found) = (format!("{:#}", expected.state), format!("{:#}", found.state));
        let diff = similar::TextDiff::from_lines(&expected, &found);
        wrong.push(format!("another end:\n{}", diff.unified_diff().context_radius(1)));
    }
    if found.writes != expected.writes {
        wrong.push(format!("writes:\n  {:?}\ninstead of\n  {:?}", found.writes, expected.writes));
    }
    wrong
}

/// Proves: G4, G5, G6, G9
#[test]
fn an_engine_that_dies_at_any_append_ends_the_run_as_the_undisturbed_one() {
    let full = std::env::var_os("MUSTER_FULL_SWEEP").is_some_and(|value| value == "1");
    let began = Instant::now();
    let whole = pool::each(&ALL, |scenario| undisturbed(*scenario, full));
    let mut points = Vec::new();
    for (scenario, whole) in ALL.into_iter().zip(&whole) {
        println!("{scenario:?}: {} appends, {}", whole.appends, whole.end.outcome);
        for appends in 0..whole.appends {
            let sides = match (full, appends % 2) {
                (true, _) => &[Side::Before, Side::Behind][..],
                (false, 0) => &[Side::Before],
                (false, _) => &[Side::Behind],
            };
            points.extend(sides.iter().map(|side| Point { scenario, appends, side: *side }));
        }
    }
    let found = pool::each(&points, |point| {
        let place = ALL.iter().position(|scenario| *scenario == point.scenario).unwrap();
        tried(*point, full, &whole[place].end)
    });
    let mut wrong = Vec::new();
    for scenario in ALL {
        let of_it: Vec<_> = points.iter().zip(&found).filter(|(point, _)| point.scenario == scenario).collect();
        let tried = of_it.iter().filter(|(_, found)| found.is_some()).count();
        let differing: Vec<_> =
            of_it.iter().filter(|(_, found)| found.as_ref().is_some_and(|f| !f.is_empty())).collect();
        println!("{scenario:?}: {tried} points tried, {} differences", differing.len());
        // How often a run looks depends on the clock: the last few points may lie behind its end.
        assert!(tried * 10 >= of_it.len() * 7, "{scenario:?}: only {tried} of {} points were met", of_it.len());
        wrong.extend(
            differing.iter().map(|(point, found)| format!("{point:?}: {}", found.as_ref().unwrap().join("\n"))),
        );
    }
    println!("{} points in {:.0?}: {} differences", found.iter().flatten().count(), began.elapsed(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
