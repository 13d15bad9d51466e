//! A laptop that sleeps, and a clock that is set (C-47): in each wait of an enrollment, and between two processes. Real
//! engine and store, a scripted world, virtual time.

#[path = "support/good_world.rs"]
mod good_world;
#[path = "support/laptop.rs"]
mod laptop;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use good_world::{World, good_world, links, locked, look, managed};
use laptop::{Jump, Laptop, Process, Worlds, folder, start};
use muster::config::settings::{Limits, default_options};
use muster::domain::event::{Outcome, RunRecord};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use serde_json::{Value, json};

const HOST: &str = "gpu-b07-37";
const LIMITS: Limits =
    Limits { runs: 10, runs_per_site: None, runs_per_rack: None, runs_per_switch: None, activities: 10 };
/// Awake or not, the lid was closed for longer than any budget here.
const SLEPT: u64 = 7200;
const SETS: [i64; 2] = [-3600, 86_400];

fn request() -> EnrollRequest {
    let mut options = default_options();
    options.budgets.cleaning = Duration::from_secs(1800);
    EnrollRequest {
        host: HOST.into(),
        netbox_id: 37,
        site: "osl1".into(),
        device_class: Some("COMPUTE_GPU".into()),
        params: EnrollParams { max_attempts: Some(1), ..EnrollParams::default() },
        options,
        routing: Routing { by_class: BTreeMap::from([("COMPUTE_GPU".into(), "main".into())]) },
        submitted_by: "jo".into(),
        submitted_at: start(),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    }
}

/// The waits that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Lock,
    GuardOfInspection,
    GuardOfCleaning,
    Clean,
}

use Wait::*;
const WAITS: [Wait; 4] = [Lock, GuardOfInspection, GuardOfCleaning, Clean];

impl Wait {
    /// The activity that looks whether the wait is over.
    fn looks(self) -> &'static str {
        match self {
            Lock => "ironic.manage",
            GuardOfInspection | GuardOfCleaning => "bmc.read_links",
            Clean => "ironic.look",
        }
    }

    fn budget(self) -> Duration {
        Duration::from_secs(match self {
            Lock => 900,
            GuardOfInspection | GuardOfCleaning => 300,
            Clean => 1800,
        })
    }

    fn code(self) -> FailureCode {
        match self {
            Lock => FailureCode::IronicNodeLocked,
            GuardOfInspection | GuardOfCleaning => FailureCode::LinkAllDown,
            Clean => FailureCode::CleanTimeout,
        }
    }

    /// Only a state that has to last is a matter of what was seen: the other budgets are spans of time.
    fn counts_observed_time(self) -> bool {
        matches!(self, GuardOfInspection | GuardOfCleaning)
    }

    /// What a look finds as long as nothing has changed.
    fn still(self) -> Value {
        match self {
            Lock => locked(),
            GuardOfInspection | GuardOfCleaning => links(&["DOWN", "DOWN"]),
            Clean => look("clean wait", "on"),
        }
    }

    /// A world in which the wait never ends, unless `ends` says so; `seen` is told each look and its number.
    fn world(self, looks: Looks, mut seen: impl FnMut(usize) + Send + 'static, ends: Arc<Mutex<bool>>) -> World {
        let (mut cleaning, mut n) = (false, 0);
        let world = good_world(move |name, _, _| {
            cleaning |= name == "ironic.provide";
            let in_phase = self != Clean && self != GuardOfCleaning || cleaning;
            if name == self.looks() && in_phase {
                n += 1;
                looks.note();
                seen(n);
                return match (*ends.lock().unwrap(), self) {
                    (false, _) => Some(Ok(self.still())),
                    (true, Clean) => Some(Ok(look("available", "on"))),
                    (true, _) => None,
                };
            }
            match (self, name) {
                (_, _) if *ends.lock().unwrap() => None,
                (Lock, "ironic.look") => {
                    Some(Ok(json!({"state": "verifying", "power": "off", "reservation": "conductor-7"})))
                }
                (GuardOfInspection, "ironic.look") => Some(Ok(look("inspect wait", "on"))),
                (GuardOfCleaning, "ironic.look") if cleaning => Some(Ok(look("clean wait", "on"))),
                _ => None,
            }
        });
        if self == GuardOfInspection { managed(world) } else { world }
    }
}

/// When each look was made: real time passed, and time awake.
#[derive(Clone)]
struct Looks {
    laptop: Laptop,
    at: Arc<Mutex<Vec<(Duration, Duration)>>>,
}

impl Looks {
    fn new(laptop: &Laptop) -> Looks {
        Looks { laptop: laptop.clone(), at: Arc::default() }
    }

    fn note(&self) {
        self.at.lock().unwrap().push((self.laptop.passed(), self.laptop.awake()));
    }

    fn all(&self) -> Vec<(Duration, Duration)> {
        self.at.lock().unwrap().clone()
    }

    /// From the first to the last: real time, and time awake.
    fn span(&self) -> (Duration, Duration) {
        let all = self.all();
        let (first, last) = (all[0], all[all.len() - 1]);
        (last.0 - first.0, last.1 - first.1)
    }
}

fn worlds(world: World) -> Worlds {
    Arc::new(Mutex::new(BTreeMap::from([(HOST.to_owned(), world)])))
}

fn in_order(records: &[RunRecord]) {
    let back = records.windows(2).find(|pair| pair[1].at < pair[0].at);
    assert!(back.is_none(), "a journal's time goes back: {back:?}");
}

/// A run whose wait meets `jump` behind its eighth look; `ends`: what was waited for happens meanwhile.
async fn met(wait: Wait, jump: Jump, ends: bool) -> (Outcome, Looks) {
    let (laptop, folder, over) = (Laptop::new(), folder(), Arc::new(Mutex::new(false)));
    let (looks, machine, freed) = (Looks::new(&laptop), laptop.clone(), Arc::clone(&over));
    let seen = move |n| match n {
        8 => machine.jump_in_next_wait(jump),
        9 => *freed.lock().unwrap() = ends,
        _ => {}
    };
    // What ends while nobody looks has ended by the next look, whichever that is.
    let world = wait.world(looks.clone(), seen, over);
    let process = Process::begin(&laptop, folder.path(), &worlds(world), LIMITS);
    let run = process.submit(request()).await;
    let outcome = process.outcome(run).await;
    in_order(&process.store.records(run).unwrap());
    assert!(laptop.has_jumped(), "{wait:?}");
    process.engine.shutdown().await;
    (outcome, looks)
}

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed { failure } => *failure,
        other => panic!("{other:?}"),
    }
}

/// A budget is about used up, no more and no less. A look takes a moment, and the last one may come a pause later.
fn is_whole(spent: Duration, wait: Wait) -> bool {
    (wait.budget() - Duration::from_secs(5)..wait.budget() + Duration::from_secs(70)).contains(&spent)
}

/// Case: C-47. Proves: G6, L1, L2, C3
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_in_a_wait_changes_no_budget() {
    let cases = WAITS.into_iter().flat_map(|wait| SETS.map(|set| (wait, set)));
    join_all(cases.map(|(wait, set)| async move {
        let (outcome, looks) = met(wait, Jump::Set(set), false).await;
        assert_eq!(failed(outcome).code, wait.code(), "{wait:?} {set}");
        let (passed, _) = looks.span();
        assert!(is_whole(passed, wait), "{wait:?}, set by {set} s: {passed:?}");
    }))
    .await;
}

/// Case: C-47. Proves: G6, L1, L2, C3
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_suspend_the_world_is_looked_at_before_anything_is_judged() {
    join_all(WAITS.map(|wait| async move {
        let (outcome, looks) = met(wait, Jump::Suspend(SLEPT), false).await;
        assert_eq!(failed(outcome).code, wait.code(), "{wait:?}");
        let (_, awake) = looks.span();
        let behind = looks.all()[8..].len();
        if wait.counts_observed_time() {
            assert!(awake >= wait.budget(), "{wait:?}: only {awake:?} were observed");
        } else {
            assert!(behind >= 1, "{wait:?}: {behind} looks behind the suspend");
        }
        let (outcome, _) = met(wait, Jump::Suspend(SLEPT), true).await;
        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{wait:?}: {outcome:?}");
    }))
    .await;
}

/// Case: C-47. Proves: G6, C3
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_a_suspend_came_into_is_made_again_before_anything_is_judged() {
    for wait in WAITS {
        let (laptop, folder, over) = (Laptop::new(), folder(), Arc::new(Mutex::new(false)));
        let (looks, machine, freed) = (Looks::new(&laptop), laptop.clone(), Arc::clone(&over));
        let seen = move |n| match n {
            // What is answered was read before the lid was closed.
            8 => machine.jump(Jump::Suspend(SLEPT)),
            9 => *freed.lock().unwrap() = true,
            _ => {}
        };
        let world = wait.world(looks.clone(), seen, over);
        let process = Process::begin(&laptop, folder.path(), &worlds(world), LIMITS);
        let run = process.submit(request()).await;
        let outcome = process.outcome(run).await;
        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{wait:?}: {outcome:?}");
        process.engine.shutdown().await;
    }
}

/// What lies between two processes.
async fn killed(wait: Wait, jump: Jump, ends: bool) -> (Outcome, Looks) {
    let (laptop, folder, over) = (Laptop::new(), folder(), Arc::new(Mutex::new(false)));
    let looks = Looks::new(&laptop);
    let worlds = worlds(wait.world(looks.clone(), |_| {}, Arc::clone(&over)));
    let first = Process::begin(&laptop, folder.path(), &worlds, LIMITS);
    let run = first.submit(request()).await;
    while looks.all().len() < 8 {
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    first.engine.shutdown().await;
    drop(first);
    let before = looks.all().len();
    laptop.jump(jump);
    *over.lock().unwrap() = ends;
    let second = Process::begin(&laptop, folder.path(), &worlds, LIMITS);
    second.engine.resume_all().await.unwrap();
    let outcome = second.outcome(run).await;
    assert!(looks.all().len() > before, "{wait:?}, {jump:?}: judged without a look");
    in_order(&second.store.records(run).unwrap());
    second.engine.shutdown().await;
    (outcome, looks)
}

/// Case: C-47. Proves: G5, G6, L1, C3
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_away_looks_before_it_judges_and_repeats_no_budget() {
    let jumps = [Jump::Suspend(SLEPT), Jump::Set(-3600), Jump::Set(86_400)];
    let cases = WAITS.into_iter().flat_map(|wait| jumps.map(|jump| (wait, jump)));
    join_all(cases.map(|(wait, jump)| async move {
        let (outcome, looks) = killed(wait, jump, false).await;
        assert_eq!(failed(outcome).code, wait.code(), "{wait:?} {jump:?}");
        let (passed, awake) = looks.span();
        if wait.counts_observed_time() {
            assert!(awake >= wait.budget() - Duration::from_secs(1), "{wait:?} {jump:?}: {awake:?}");
        }
        if jump == Jump::Set(-3600) {
            assert!(is_whole(passed, wait), "{wait:?} {jump:?}: {passed:?}");
        }
        let (outcome, _) = killed(wait, jump, true).await;
        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{wait:?} {jump:?}: {outcome:?}");
    }))
    .await;
}

/// Case: C-01. Proves: E15, E16, G6
///
/// 38 of 49 hosts are locked, each on another call; the rest goes on. One slot for activities is enough for all, since a
/// wait holds none.
#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_locks_is_waited_out_without_slots_and_told_with_holder_and_state_in_the_end() {
    const CALLS: [&str; 4] = ["ironic.prelude", "ironic.networking", "ironic.manage", "ironic.raid_target"];
    let (laptop, folder, worlds) = (Laptop::new(), folder(), Worlds::default());
    let knocks: Arc<Mutex<BTreeMap<usize, Vec<Duration>>>> = Arc::default();
    let limits = Limits { runs: 49, activities: 1, ..LIMITS };
    let process = Process::begin(&laptop, folder.path(), &worlds, limits);
    let mut runs = Vec::new();
    for host in 0..49 {
        let mut request = request();
        (request.host, request.netbox_id) = (format!("gpu-{host:02}"), host as u64);
        let call = (host < 38).then(|| CALLS[host % CALLS.len()]);
        let (machine, knocks) = (laptop.clone(), Arc::clone(&knocks));
        let world = good_world(move |name, _, _| {
            if Some(name) == call {
                knocks.lock().unwrap().entry(host).or_default().push(machine.passed());
                let lock = if name == "ironic.prelude" { "prelude" } else { "step" };
                return Some(Ok(json!({lock: "locked", "holder": "conductor-2", "state": "enroll"})));
            }
            (name == "ironic.look" && call.is_some_and(|call| call != "ironic.raid_target"))
                .then(|| Ok(json!({"state": "enroll", "power": "off", "reservation": "conductor-2"})))
        });
        worlds.lock().unwrap().insert(request.host.clone(), world);
        runs.push(process.submit(request).await);
    }
    for (host, run) in runs.iter().enumerate() {
        let outcome = process.outcome(*run).await;
        if host >= 38 {
            assert!(matches!(outcome, Outcome::Succeeded { .. }), "{host}: {outcome:?}");
            continue;
        }
        let failure = failed(outcome);
        assert_eq!((failure.code, failure.phase), (FailureCode::IronicNodeLocked, Phase::Inspection), "{host}");
        for word in ["conductor-2", "15 min"] {
            assert!(failure.message.contains(word), "{word}: {}", failure.message);
        }
        let row = process.store.run(*run).unwrap();
        let took = row.finished_at.unwrap().duration_since(row.submitted_at).as_secs();
        assert!((895..1100).contains(&took), "{host} was told as failed after {took} s");
    }
    process.engine.shutdown().await;
    let knocks = knocks.lock().unwrap();
    assert_eq!(knocks.len(), 38);
    let mut firsts = Vec::new();
    for (host, at) in knocks.iter() {
        let pauses: Vec<u64> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis() as u64).collect();
        // Each pause 20 % longer or shorter; a look may be a little late. The last one ends with the budget.
        for (pause, wanted) in
            pauses[..pauses.len() - 1].iter().zip([10_000, 20_000, 40_000].iter().chain(&[60_000; 20]))
        {
            assert!((wanted * 8 / 10..=wanted * 12 / 10 + 3000).contains(pause), "{host}: {pauses:?}");
        }
        firsts.push(pauses[3..8].iter().sum::<u64>());
    }
    firsts.sort_unstable();
    let spread = firsts[37] - firsts[0];
    assert!(spread > 30_000, "38 hosts knock within {spread} ms of each other: {firsts:?}");
    let most = firsts.windows(6).map(|few| few[5] - few[0]).min().unwrap();
    assert!(most > 500, "six of them knock within {most} ms: {firsts:?}");
}
