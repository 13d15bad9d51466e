//! Ends the engine at every single append of a journal, before its commit and right behind it, begins another one on the
//! same store and the same site, and proves that the run ends where the undisturbed one does, with the same writes.
//!
//! By default it dies on the two sides of an append by turns, and the phases before the inspection are swept by the fresh
//! enrollment alone. With `MUSTER_FULL_SWEEP=1` it dies on both sides of each, and every scenario is a whole enrollment.

#[path = "support/journal.rs"]
mod journal;
#[path = "support/pool.rs"]
mod pool;
#[path = "support/site.rs"]
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use journal::reads_the_store;
use muster::domain::event::{Body, Event, Observation, Outcome, RunRecord};
use muster::domain::ids::RunId;
use muster::domain::request::EnrollRequest;
use muster::engine::Journal;
use muster::lab::machine::{Quirk, Vendor};
use muster::store::{Store, StoreError};
use muster::workflows::cx::Activity;
use muster::workflows::defs;
use serde_json::{Value, json};
use site::{Ended, HOST, Life, Site, of_vendor, once_only, outcome};
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

/// Where the process dies.
#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    Never,
    /// So many appends are taken first.
    Append(usize),
    /// At the first append that has this in it.
    Kind(String),
}

/// A journal at one of whose appends the process dies.
struct Fuse {
    store: Store,
    at: At,
    side: Side,
    killed: CancellationToken,
    taken: AtomicUsize,
    blown: AtomicBool,
    kinds: Mutex<Kinds>,
}

/// What was appended, in the terms of the workflow.
#[derive(Default)]
struct Kinds {
    /// The activities' names by their places.
    names: BTreeMap<u32, String>,
    met: BTreeSet<String>,
    /// In the append at which the process died.
    died_at: BTreeSet<String>,
}

impl Kinds {
    /// What kinds of records these are: `scheduled inspect`, `done inspect`, `timer_set`.
    fn of(&mut self, events: &[(Timestamp, Body)]) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        for (_, body) in events {
            let Body::Journal(event) = body else { continue };
            if let Event::ActivityScheduled { seq, name, .. } = event {
                self.names.insert(*seq, name.clone());
            }
            let name = |seq: &u32| self.names.get(seq).map_or("an activity of the process before", String::as_str);
            kinds.insert(match event {
                Event::ActivityScheduled { seq, .. } => format!("scheduled {}", name(seq)),
                Event::ActivityDone { seq, .. } => format!("done {}", name(seq)),
                Event::ActivityFailed { seq, .. } => format!("failed {}", name(seq)),
                Event::ActivityCancelled { seq } => format!("cancelled {}", name(seq)),
                other => serde_json::to_value(other).unwrap()["event"].as_str().unwrap().to_owned(),
            });
        }
        self.met.extend(kinds.iter().cloned());
        kinds
    }
}

impl Fuse {
    fn new(store: Store, at: At, side: Side, killed: CancellationToken) -> Arc<Fuse> {
        Arc::new(Fuse {
            store,
            at,
            side,
            killed,
            taken: AtomicUsize::new(0),
            blown: AtomicBool::new(false),
            kinds: Mutex::default(),
        })
    }
}

impl Journal for Fuse {
    reads_the_store!(store);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let mut kinds = self.kinds.lock().unwrap();
        let here = kinds.of(&events);
        let place = self.taken.fetch_add(1, Ordering::SeqCst);
        let dead = self.blown.load(Ordering::SeqCst);
        let dies = !dead
            && match &self.at {
                At::Never => false,
                At::Append(n) => place == *n,
                At::Kind(kind) => here.contains(kind),
            };
        if dies {
            self.blown.store(true, Ordering::SeqCst);
            kinds.died_at = here;
        }
        let (store, killed, side) = (self.store.clone(), self.killed.clone(), self.side);
        Box::pin(async move {
            if !dead && !dies {
                return store.append(run, expect_n, events).await;
            }
            if dies && side == Side::Behind {
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
    /// The BMC's phase alone, of a vendor that takes jobs, from the factory's credential.
    Dell,
}

const ALL: [Scenario; 7] = [
    Scenario::Fresh,
    Scenario::InspectionFailsOnce,
    Scenario::CleanFailsOnce,
    Scenario::NodeLocked,
    Scenario::Cancelled,
    Scenario::DriverSwitch,
    Scenario::Dell,
];

impl Scenario {
    fn site(self) -> Site {
        if self == Scenario::Dell {
            return of_vendor(Vendor::Dell, &[Quirk::FactoryPassword]);
        }
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
            Scenario::Fresh | Scenario::DriverSwitch | Scenario::Dell => {}
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
        if self == Scenario::Dell {
            (options.configure_bmc, options.ironic_enrol) = (true, false);
            options.platform_class_activity_ready = false;
            options.configure_dhcp = false;
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
    appends: usize,
    kinds: BTreeSet<String>,
}

fn undisturbed(scenario: Scenario, full: bool) -> Undisturbed {
    let site = scenario.site();
    let mut fuse = None;
    let life = site.begin(|store, killed| {
        let whole = Fuse::new(store, At::Never, Side::Before, killed);
        fuse = Some(Arc::clone(&whole));
        whole
    });
    let run = life.submit(scenario.request(&site, full));
    let Ended::Run(_) = watch(scenario, &life, run) else { panic!("nobody killed it") };
    let fuse = fuse.unwrap();
    let (appends, kinds) = (fuse.taken.load(Ordering::SeqCst), fuse.kinds.lock().unwrap().met.clone());
    let undisturbed = Undisturbed { end: end(&site, &life, run), appends, kinds };
    life.end();
    undisturbed
}

/// A place where the process dies.
#[derive(Debug, Clone)]
struct Point {
    scenario: Scenario,
    at: At,
    side: Side,
}

/// What came of a death.
struct Death {
    at: BTreeSet<String>,
    wrong: Vec<String>,
}

/// `None` where the run had ended before it came to that point.
fn tried(point: &Point, full: bool, expected: &End) -> Option<Death> {
    let Point { scenario, at, side } = point;
    let site = scenario.site();
    let mut fuse = None;
    let first = site.begin(|store, killed| {
        let blows = Fuse::new(store, at.clone(), *side, killed);
        fuse = Some(Arc::clone(&blows));
        blows
    });
    let run = first.submit(scenario.request(&site, full));
    watch(*scenario, &first, run);
    let before = first.store.records(run).unwrap();
    first.end();
    let fuse = fuse.unwrap();
    // A run whose last record is on the disk has ended, although nobody has heard of it.
    if !fuse.blown.load(Ordering::SeqCst) {
        return None;
    }
    let second = site.begin_sound();
    second.resume();
    watch(*scenario, &second, run);
    let mut wrong = differences(expected, &end(&site, &second, run));
    let after = second.store.records(run).unwrap();
    if after[..before.len()] != before[..] {
        wrong.push("the journal is not only added to".to_owned());
    }
    second.end();
    if !wrong.is_empty() {
        println!("{point:?}: {}", wrong.join("\n"));
    }
    let at = fuse.kinds.lock().unwrap().died_at.clone();
    Some(Death { at, wrong })
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
    let of = |scenario: Scenario| &whole[ALL.iter().position(|s| *s == scenario).unwrap()];
    let mut points = Vec::new();
    for scenario in ALL {
        println!("{scenario:?}: {} appends, {}", of(scenario).appends, of(scenario).end.outcome);
        for place in 0..of(scenario).appends {
            let sides = match (full, place % 2) {
                (true, _) => &[Side::Before, Side::Behind][..],
                (false, 0) => &[Side::Before],
                (false, _) => &[Side::Behind],
            };
            points.extend(sides.iter().map(|side| Point { scenario, at: At::Append(place), side: *side }));
        }
    }
    let try_all = |points: &[Point]| pool::each(points, |point| tried(point, full, &of(point.scenario).end));
    let mut found: Vec<_> = points.iter().cloned().zip(try_all(&points)).collect();
    // How often a run looks depends on the clock, so that the last places may lie behind the end of a run that looked
    // less often. What must have been met is each kind of append: those that were not are gone for one by one.
    let missed: Vec<Point> = ALL.into_iter().flat_map(|scenario| missed(scenario, of(scenario), &found)).collect();
    found.extend(missed.iter().cloned().zip(try_all(&missed)));

    let mut wrong = Vec::new();
    for scenario in ALL {
        let of_it = || found.iter().filter(|(point, _)| point.scenario == scenario);
        let tried = of_it().filter(|(_, death)| death.is_some()).count();
        let differing: Vec<String> = of_it()
            .filter_map(|(point, death)| Some((point, death.as_ref()?)))
            .filter(|(_, death)| !death.wrong.is_empty())
            .map(|(point, death)| format!("{point:?}: {}", death.wrong.join("\n")))
            .collect();
        println!("{scenario:?}: {tried} points tried, {} differences", differing.len());
        let still = missed_still(scenario, of(scenario), &found);
        println!("{scenario:?}: not made again: {still:?}");
        let unmet = still.into_iter().filter(|kind| scenario != Scenario::Cancelled && !of_a_poll(kind));
        wrong.extend(unmet.map(|kind| format!("{scenario:?}: no process died at '{kind}'")));
        wrong.extend(differing);
    }
    let tried = found.iter().filter(|(_, death)| death.is_some()).count();
    println!("{tried} points in {:.0?}: {} differences", began.elapsed(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The kinds of appends of the undisturbed run at which no process died.
fn missed_still(scenario: Scenario, whole: &Undisturbed, found: &[(Point, Option<Death>)]) -> Vec<String> {
    let deaths = found.iter().filter(|(point, _)| point.scenario == scenario).filter_map(|(_, death)| death.as_ref());
    let met: BTreeSet<&String> = deaths.flat_map(|death| &death.at).collect();
    whole.kinds.iter().filter(|kind| !met.contains(kind)).cloned().collect()
}

/// Whether a poll is still asked or is given up when the wait ends, is a matter of moments.
fn of_a_poll(kind: &str) -> bool {
    [defs::ReadLinks::NAME, defs::LookAtNode::NAME].iter().any(|name| kind.ends_with(name)) || kind.starts_with("timer")
}

fn missed(scenario: Scenario, whole: &Undisturbed, found: &[(Point, Option<Death>)]) -> Vec<Point> {
    let at_kind = |kind| Point { scenario, at: At::Kind(kind), side: Side::Behind };
    missed_still(scenario, whole, found).into_iter().map(at_kind).collect()
}
