//! What the engine needs of the world: a journal, somebody who carries out activities, and the workflows by name.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::future::{BoxFuture, LocalBoxFuture};
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::replay::LocalCx;
use crate::activities::env::{ActivityCx, Env};
use crate::activities::registry;
use crate::clients::trail::Trail;
use crate::domain::event::{Body, EnrollResult, Observation, RunRecord};
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::queue::{Caps, Entry};
use crate::domain::request::EnrollRequest;
use crate::store::{Store, StoreError};
use crate::workflows::cx::ActivityError;
use crate::workflows::enroll;

/// Where runs are written down. The store; tests put a journal in its place that fails when they want it to.
pub trait Journal: Send + Sync + 'static {
    /// The runs that are to go on, in the order in which they go on.
    fn active(&self) -> Result<Vec<RunId>, StoreError>;
    /// Everything of a run, in its order.
    fn records(&self, run: RunId) -> Result<Vec<RunRecord>, StoreError>;
    /// How many records a run has.
    fn end(&self, run: RunId) -> Result<u64, StoreError>;
    /// An active run as admission sees it; `None`: it is over, or there is none.
    fn entry(&self, run: RunId) -> Result<Option<Entry>, StoreError>;
    /// Keeps the limits that the engine admits by, for whoever shows the line. A journal that nobody else reads keeps none.
    fn keep_caps(&self, _: Caps) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
    /// Adds records at the end, all or none; answers after they are on the disk.
    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>>;
}

impl Journal for Store {
    fn active(&self) -> Result<Vec<RunId>, StoreError> {
        self.active_runs()
    }

    fn records(&self, run: RunId) -> Result<Vec<RunRecord>, StoreError> {
        Store::records(self, run)
    }

    fn end(&self, run: RunId) -> Result<u64, StoreError> {
        self.journal_end(run)
    }

    fn entry(&self, run: RunId) -> Result<Option<Entry>, StoreError> {
        self.queue_entry(run)
    }

    fn keep_caps(&self, caps: Caps) -> BoxFuture<'static, Result<(), StoreError>> {
        let store = self.clone();
        Box::pin(async move { store.put_caps(&caps).await })
    }

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let store = self.clone();
        Box::pin(async move { Store::append(&store, run, expect_n, events).await })
    }
}

/// One attempt of one activity, as the engine asks for it.
pub struct Call {
    pub run: RunId,
    /// Place of the activity in the run.
    pub seq: u32,
    /// From 1.
    pub attempt: u32,
    /// Ends when the attempt is no longer wanted: whoever carries it out has a few seconds to come to an end.
    pub stop: CancellationToken,
    /// Where observations go.
    pub sink: Arc<dyn Fn(Observation) + Send + Sync>,
}

/// Carries out activities by name.
pub trait Dispatch: Send + Sync + 'static {
    fn run(&self, name: &str, input: Value, call: Call) -> BoxFuture<'static, Result<Value, Failure>>;
}

/// The activities of this program, in its one world.
pub struct Registry(pub Arc<Env>);

impl Dispatch for Registry {
    fn run(&self, name: &str, input: Value, call: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        let Call { run, seq, attempt, stop, sink } = call;
        let teller = Teller { seq, attempt, sink: Arc::clone(&sink), trail: Trail::default() };
        let cx = ActivityCx { env: Arc::clone(&self.0), run, seq, attempt, stop, sink };
        let name = name.to_owned();
        Box::pin(async move { teller.trail.follow(registry::run(&name, input, cx)).await })
    }
}

/// Tells at the end of an attempt what it asked of other systems, also where the attempt is dropped half-way (G15).
struct Teller {
    seq: u32,
    attempt: u32,
    sink: Arc<dyn Fn(Observation) + Send + Sync>,
    trail: Trail,
}

impl Drop for Teller {
    fn drop(&mut self) {
        let (asked, more) = self.trail.take();
        if !asked.is_empty() {
            (self.sink)(Observation::Requests { seq: self.seq, attempt: self.attempt, asked, more });
        }
    }
}

/// A workflow on this engine.
pub type Workflow =
    Arc<dyn Fn(LocalCx, EnrollRequest) -> LocalBoxFuture<'static, Result<EnrollResult, ActivityError>> + Send + Sync>;

/// Workflows by the name under which they are journaled.
#[derive(Clone, Default)]
pub struct Workflows {
    by_name: BTreeMap<String, Workflow>,
}

impl Workflows {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// All that this program has.
    pub fn all() -> Self {
        Self::new().with(enroll::NAME, enroll::enroll)
    }

    /// With one more.
    pub fn with<F, Fut>(mut self, name: &str, workflow: F) -> Self
    where
        F: Fn(LocalCx, EnrollRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<EnrollResult, ActivityError>> + 'static,
    {
        self.by_name.insert(name.to_owned(), Arc::new(move |cx, request| Box::pin(workflow(cx, request))));
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Workflow> {
        self.by_name.get(name)
    }
}
