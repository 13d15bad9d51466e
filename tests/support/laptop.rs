//! A machine in virtual time that can be suspended and whose clock can be set, and an engine on it: real engine, real
//! store, enrollments against a scripted world. Time passes only while nobody is at work.

#![allow(dead_code, reason = "each test binary uses a part of it")]

#[path = "journal.rs"]
mod journal;

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use journal::reads_the_store;
use muster::config::settings::Limits;
use muster::domain::event::{Body, Event, Outcome, RunRecord};
use muster::domain::failure::Failure;
use muster::domain::ids::RunId;
use muster::domain::request::EnrollRequest;
use muster::engine::{Call, Clock, Clocks, Dispatch, Engine, Journal, Parts, SteadyClock, Workflows};
use muster::store::{Store, StoreError, Submit};
use serde_json::Value;

use super::good_world::World;

/// What happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// The lid is closed for so long.
    Suspend(u64),
    /// Its clock is set by so many seconds.
    Set(i64),
}

#[derive(Debug)]
struct Times {
    /// Seconds that really passed, suspends included.
    passed: Duration,
    running: Duration,
    set_by: SignedDuration,
    /// Happens in the midst of the next pause.
    armed: Option<Jump>,
}

#[derive(Default)]
struct Busy {
    /// Whatever happened: appends, starts and ends of activities.
    happened: AtomicU64,
    at_work: AtomicUsize,
}

/// The machine. It outlives the processes on it.
#[derive(Clone)]
pub struct Laptop {
    times: Arc<Mutex<Times>>,
    busy: Arc<Busy>,
}

impl Laptop {
    pub fn new() -> Laptop {
        let times =
            Times { passed: Duration::ZERO, running: Duration::ZERO, set_by: SignedDuration::ZERO, armed: None };
        Laptop { times: Arc::new(Mutex::new(times)), busy: Arc::default() }
    }

    pub fn jump(&self, jump: Jump) {
        let mut times = self.times.lock().unwrap();
        match jump {
            Jump::Suspend(seconds) => times.passed += Duration::from_secs(seconds),
            Jump::Set(seconds) => times.set_by += SignedDuration::from_secs(seconds),
        }
    }

    /// It happens while somebody waits.
    pub fn jump_in_next_wait(&self, jump: Jump) {
        self.times.lock().unwrap().armed = Some(jump);
    }

    /// Whether what was to happen has.
    pub fn has_jumped(&self) -> bool {
        self.times.lock().unwrap().armed.is_none()
    }

    /// How long it was awake so far.
    pub fn awake(&self) -> Duration {
        self.times.lock().unwrap().running
    }

    /// How much time has really passed.
    pub fn passed(&self) -> Duration {
        self.times.lock().unwrap().passed
    }

    fn run(&self, span: Duration) {
        let armed = {
            let mut times = self.times.lock().unwrap();
            times.passed += span;
            times.running += span;
            times.armed.take()
        };
        if let Some(jump) = armed {
            self.jump(jump);
        }
    }
}

impl Clocks for Laptop {
    fn wall(&self) -> Timestamp {
        let times = self.times.lock().unwrap();
        start() + SignedDuration::try_from(times.passed).unwrap() + times.set_by
    }

    fn running(&self) -> Duration {
        self.awake()
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(self.passed())
    }
}

pub fn start() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

/// The engine's clock on it, whose pauses take no time once all is quiet.
struct Virtual {
    steady: SteadyClock<Laptop>,
    laptop: Laptop,
}

impl Clock for Virtual {
    fn now(&self) -> Timestamp {
        self.steady.now()
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let busy = &self.laptop.busy;
            let mut quiet = 0;
            while quiet < 2 {
                let before = busy.happened.load(Ordering::SeqCst);
                tokio::time::sleep(Duration::from_micros(500)).await;
                let still = before == busy.happened.load(Ordering::SeqCst) && busy.at_work.load(Ordering::SeqCst) == 0;
                quiet = if still { quiet + 1 } else { 0 };
            }
            self.laptop.run(wait);
        })
    }

    fn continue_from(&self, at: Timestamp) {
        self.steady.continue_from(at);
    }

    fn follow(&self) {
        self.steady.follow();
    }
}

/// The store, which says when it is at work.
struct Told {
    store: Store,
    busy: Arc<Busy>,
}

impl Journal for Told {
    reads_the_store!(store);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let work = Journal::append(&self.store, run, expect_n, events);
        at_work(&self.busy, work)
    }
}

fn at_work<T: Send + 'static>(
    busy: &Arc<Busy>,
    work: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, T> {
    let busy = Arc::clone(busy);
    busy.happened.fetch_add(1, Ordering::SeqCst);
    busy.at_work.fetch_add(1, Ordering::SeqCst);
    Box::pin(async move {
        let done = work.await;
        busy.at_work.fetch_sub(1, Ordering::SeqCst);
        busy.happened.fetch_add(1, Ordering::SeqCst);
        done
    })
}

/// Worlds by host: each run has its own.
pub type Worlds = Arc<Mutex<std::collections::BTreeMap<String, World>>>;

struct Scripted {
    worlds: Worlds,
    laptop: Laptop,
}

impl Dispatch for Scripted {
    fn run(&self, name: &str, input: Value, _call: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        let (worlds, laptop, name) = (Arc::clone(&self.worlds), self.laptop.clone(), name.to_owned());
        let work = async move {
            let since = SignedDuration::try_from(laptop.passed()).unwrap();
            let host = input["host"].as_str().unwrap_or_else(|| panic!("{name} has no host: {input}")).to_owned();
            let mut worlds = worlds.lock().unwrap();
            worlds.get_mut(&host).unwrap_or_else(|| panic!("no world for '{host}'"))(&name, &input, since)
        };
        at_work(&self.laptop.busy, work)
    }
}

/// A process of muster on the machine.
pub struct Process {
    pub engine: Engine,
    pub store: Store,
}

impl Process {
    pub fn begin(laptop: &Laptop, folder: &Path, worlds: &Worlds, limits: Limits) -> Process {
        let store = Store::open(folder).unwrap();
        let engine = Engine::with(Parts {
            journal: Arc::new(Told { store: store.clone(), busy: Arc::clone(&laptop.busy) }),
            dispatch: Arc::new(Scripted { worlds: Arc::clone(worlds), laptop: laptop.clone() }),
            workflows: Workflows::all(),
            clock: Arc::new(Virtual { steady: SteadyClock::on(laptop.clone()), laptop: laptop.clone() }),
            limits,
        })
        .unwrap();
        Process { engine, store }
    }

    pub async fn submit(&self, request: EnrollRequest) -> RunId {
        let run = RunId(uuid::Uuid::now_v7());
        assert_eq!(self.store.submit(run, request).await.unwrap(), Submit::Accepted);
        self.engine.launch(run);
        run
    }

    /// How a run ended.
    pub async fn outcome(&self, run: RunId) -> Outcome {
        for _ in 0..60_000 {
            if !self.store.run(run).unwrap().status.is_active() {
                let records = self.store.records(run).unwrap();
                if let Some(Body::Journal(Event::Finished { outcome })) = records.last().map(|r| r.body.clone()) {
                    return outcome;
                }
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!(
            "run did not end: {:#?}",
            self.store.records(run).unwrap().into_iter().rev().take(20).collect::<Vec<_>>()
        );
    }

    pub async fn failure(&self, run: RunId) -> Failure {
        match self.outcome(run).await {
            Outcome::Failed { failure } => *failure,
            other => panic!("{other:?}"),
        }
    }
}

/// In memory where the machine has a folder for that: what is tried here is time, not the disk.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
