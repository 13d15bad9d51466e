//! A small world for tests of the engine: workflows of their own, activities by closure, a journal that can fail.

#![allow(dead_code, unused_imports, reason = "each test binary uses a part of it")]

#[path = "journal.rs"]
mod journal;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::config::settings::{Limits, default_options};
use muster::domain::event::{Body, EnrollResult, Event, Observation, Outcome, RunRecord, WaitKind, WaitReason};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::engine::{Call, Clock, Dispatch, Engine, Journal, Parts, Workflows};
use muster::store::{Store, StoreError, Submit};
use muster::workflows::cx::{Activity, ActivityError, ActivityOptions, Cx, RetryPolicy};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) use journal::reads_the_store;

pub fn at(second: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + second, 123_456_789).unwrap()
}

pub fn request(netbox_id: u64) -> EnrollRequest {
    EnrollRequest {
        host: format!("gpu-{netbox_id}"),
        netbox_id,
        site: "osl1".into(),
        device_class: None,
        params: EnrollParams::default(),
        options: default_options(),
        routing: Routing::default(),
        submitted_by: "ada".into(),
        submitted_at: at(0),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    }
}

/// An activity of the tests: takes a word, gives a word.
macro_rules! words {
    ($($name:ident = $wire:literal;)*) => {
        $(pub struct $name;
        impl Activity for $name { const NAME: &'static str = $wire; type In = String; type Out = String; })*
    };
}
words! { A = "test.a"; B = "test.b"; C = "test.c"; Undo = "test.undo"; }

pub fn options() -> ActivityOptions {
    ActivityOptions {
        phase: Phase::Bmc,
        timeout: Duration::from_secs(30),
        retry: RetryPolicy {
            max_attempts: 3,
            first: Duration::from_millis(10),
            factor: 2.0,
            max: Duration::from_secs(1),
        },
        survives_cancel: false,
    }
}

pub fn surviving() -> ActivityOptions {
    ActivityOptions { survives_cancel: true, ..options() }
}

pub fn reason(text: &str) -> WaitReason {
    WaitReason { phase: Phase::Bmc, kind: WaitKind::LinkGuard, text: text.into(), gives_up_at: None }
}

/// The words of a run as its result: the field is free text.
pub fn result(words: impl Into<String>) -> Result<EnrollResult, ActivityError> {
    Ok(EnrollResult {
        node: None,
        ironic: None,
        platform_class: Some(words.into()),
        already_enrolled: false,
        qualifying: false,
    })
}

pub fn note<C: Cx>(cx: &C, text: impl Into<String>) {
    cx.report(Observation::Note { system: "test".into(), text: text.into() });
}

pub fn busy(code: FailureCode) -> Failure {
    Failure::new(code, Phase::Bmc, "the BMC is 'busy'", "wait")
}

type Handler = Arc<dyn Fn(Value, Call) -> BoxFuture<'static, Result<Value, Failure>> + Send + Sync>;

/// What activities do, and which were asked for. Dead: nothing is done any more, as after a kill.
#[derive(Default)]
pub struct World {
    handlers: Mutex<BTreeMap<String, Handler>>,
    calls: Mutex<Vec<(String, u32, u32)>>,
    pub dead: AtomicBool,
}

impl World {
    /// Every activity gives its name and input back, unless told otherwise.
    pub fn new() -> Arc<World> {
        Arc::new(World::default())
    }

    pub fn on<F, Fut>(self: &Arc<Self>, name: &str, work: F) -> Arc<Self>
    where
        F: Fn(Value, Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, Failure>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |input, call| Box::pin(work(input, call)));
        self.handlers.lock().unwrap().insert(name.into(), handler);
        Arc::clone(self)
    }

    /// Name, place and attempt of each call so far.
    pub fn calls(&self) -> Vec<(String, u32, u32)> {
        self.calls.lock().unwrap().clone()
    }

    /// How often an activity was called.
    pub fn count(&self, name: &str) -> usize {
        self.calls().iter().filter(|(called, ..)| called == name).count()
    }
}

/// The world as an engine sees it.
pub struct Hands(pub Arc<World>);

impl Dispatch for Hands {
    fn run(&self, name: &str, input: Value, call: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        if self.0.dead.load(Ordering::SeqCst) {
            return Box::pin(futures::future::pending());
        }
        self.0.calls.lock().unwrap().push((name.to_owned(), call.seq, call.attempt));
        match self.0.handlers.lock().unwrap().get(name).cloned() {
            Some(handler) => handler(input, call),
            None => {
                let output = json!(format!("{name}({})", input.as_str().unwrap_or("?")));
                Box::pin(async move { Ok(output) })
            }
        }
    }
}

/// The store, which takes so many appends more; then all is over, for the world too.
pub struct Fuse {
    pub store: Store,
    pub world: Arc<World>,
    pub left: AtomicI64,
}

impl Fuse {
    pub fn after(store: &Store, world: &Arc<World>, appends: i64) -> Arc<Fuse> {
        Arc::new(Fuse { store: store.clone(), world: Arc::clone(world), left: AtomicI64::new(appends) })
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
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            self.world.dead.store(true, Ordering::SeqCst);
            return Box::pin(async { Err(StoreError::Closed) });
        }
        Journal::append(&self.store, run, expect_n, events)
    }
}

/// An engine on a journal and a world.
pub fn engine(journal: Arc<dyn Journal>, world: &Arc<World>, workflows: Workflows, clock: Arc<dyn Clock>) -> Engine {
    limited(journal, world, workflows, clock, Limits { runs: 100, activities: 100, ..Limits::default() })
}

pub fn limited(
    journal: Arc<dyn Journal>,
    world: &Arc<World>,
    workflows: Workflows,
    clock: Arc<dyn Clock>,
    limits: Limits,
) -> Engine {
    let dispatch = Arc::new(Hands(Arc::clone(world)));
    Engine::with(Parts { journal, dispatch, workflows, clock, limits }).unwrap()
}

pub fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

/// A new run of a test's workflow, which is always called "test".
pub async fn submit(store: &Store, request: EnrollRequest) -> RunId {
    let run = RunId(Uuid::now_v7());
    assert_eq!(store.submit_as(run, "test", request).await.unwrap(), Submit::Accepted);
    run
}

/// Waits for something to come true; says what the journal has where it doesn't.
pub async fn until(what: &str, mut true_now: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if true_now() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("waited in vain for: {what}");
}

/// How a run ended.
pub async fn outcome(store: &Store, run: RunId) -> Outcome {
    for _ in 0..6000 {
        if let Some(Event::Finished { outcome }) = events(store, run).pop() {
            return outcome;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("run did not end: {:#?}", store.records(run).unwrap());
}

pub async fn failure(store: &Store, run: RunId) -> Failure {
    match outcome(store, run).await {
        Outcome::Failed { failure } => *failure,
        other => panic!("{other:?}"),
    }
}

/// The words that a run ended with.
pub async fn said(store: &Store, run: RunId) -> String {
    match outcome(store, run).await {
        Outcome::Succeeded { result: Some(result) } => result.platform_class.unwrap(),
        other => panic!("{other:#?} {:#?}", store.records(run).unwrap()),
    }
}

pub fn events(store: &Store, run: RunId) -> Vec<Event> {
    let journal = |record: RunRecord| match record.body {
        Body::Journal(event) => Some(event),
        Body::Observation(_) => None,
    };
    store.records(run).unwrap().into_iter().filter_map(journal).collect()
}

pub fn observations(store: &Store, run: RunId) -> Vec<Observation> {
    let observed = |record: RunRecord| match record.body {
        Body::Journal(_) => None,
        Body::Observation(observation) => Some(observation),
    };
    store.records(run).unwrap().into_iter().filter_map(observed).collect()
}

/// The notes that a workflow reported, in order.
pub fn notes(store: &Store, run: RunId) -> Vec<String> {
    let note = |observation| match observation {
        Observation::Note { system, text } if system == "test" => Some(text),
        _ => None,
    };
    observations(store, run).into_iter().filter_map(note).collect()
}
