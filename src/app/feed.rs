//! One feed of everything that changes, for whoever shows it.

use jiff::Timestamp;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::engine::Engine;
use crate::store::{Store, StoreError, SyncState};

/// Something changed.
#[derive(Debug, Clone)]
pub enum FeedEvent {
    /// A run went on.
    Record(Box<RunRecord>),
    /// Devices, Ironic references or proofs are others now: ask for the fleet.
    FleetChanged,
    /// A system was heard, or did not answer.
    SystemHealth(SystemHealth),
    /// A run was put aside because the store did not take or give its journal; `None`: the store is well again.
    StoreTrouble(Option<(RunId, StoreError)>),
}

/// When a system was last heard, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemHealth {
    /// `netbox`, `ironic:NAME`.
    pub name: String,
    /// When it last answered as it should.
    pub ok_at: Option<Timestamp>,
    /// What is wrong since then; `None`: nothing.
    pub error: Option<String>,
}

impl From<SyncState> for SystemHealth {
    fn from(state: SyncState) -> Self {
        SystemHealth { name: state.key, ok_at: state.ok_at, error: state.error }
    }
}

/// Feeds until `stop`.
pub(super) fn spawn(
    tasks: &mut JoinSet<()>,
    store: &Store,
    engine: &Engine,
    feed: &broadcast::Sender<FeedEvent>,
    stop: &CancellationToken,
) {
    tasks.spawn(forward_records(engine.subscribe(), feed.clone()));
    tasks.spawn(tell_trouble(engine.trouble(), feed.clone()));
    tasks.spawn(tell_fleet(store.fleet_changes(), feed.clone()));
    tasks.spawn(tell_health(store.clone(), feed.clone(), stop.clone()));
}

async fn forward_records(mut records: broadcast::Receiver<RunRecord>, feed: broadcast::Sender<FeedEvent>) {
    loop {
        match records.recv().await {
            // Nobody may be listening yet.
            Ok(record) => drop(feed.send(FeedEvent::Record(Box::new(record)))),
            // A gap shows in the places of the records: whoever follows reads the journal.
            Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "the feed fell behind the engine"),
            Err(RecvError::Closed) => return,
        }
    }
}

async fn tell_trouble(mut trouble: watch::Receiver<Option<(RunId, StoreError)>>, feed: broadcast::Sender<FeedEvent>) {
    while trouble.changed().await.is_ok() {
        let now = trouble.borrow_and_update().clone();
        drop(feed.send(FeedEvent::StoreTrouble(now)));
    }
}

async fn tell_fleet(mut changes: watch::Receiver<u64>, feed: broadcast::Sender<FeedEvent>) {
    while changes.changed().await.is_ok() {
        drop(feed.send(FeedEvent::FleetChanged));
    }
}

async fn tell_health(store: Store, feed: broadcast::Sender<FeedEvent>, stop: CancellationToken) {
    let mut changes = store.health_changes();
    while !stop.is_cancelled() && changes.changed().await.is_ok() {
        match store.syncs() {
            Ok(systems) => systems.into_iter().for_each(|s| drop(feed.send(FeedEvent::SystemHealth(s.into())))),
            Err(error) => tracing::warn!(%error, "the systems' health could not be read"),
        }
    }
}
