//! Observes NetBox: everything now and then, what changed in between more often (O1, O4, O6).

mod devices;
mod queue;
mod schedule;

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::queue::Queue;
use self::schedule::{Schedule, Task};
use super::project::Catalogue;
use crate::clients::netbox::NetBox;
use crate::clients::netbox::error::NetBoxError;
use crate::config::settings::NetboxSettings;
use crate::domain::phase::Phase;
use crate::store::{Store, StoreError};

/// The name under which the store keeps NetBox's health.
pub const SYSTEM: &str = "netbox";
/// Keeps the fleet as NetBox has it.
pub struct Observer {
    netbox: NetBox,
    store: Store,
    settings: NetboxSettings,
    /// One sync at a time.
    seen: Mutex<Seen>,
    /// Devices that somebody has heard of.
    queue: Queue,
    /// Somebody wants a full sync now.
    wants_all: AtomicBool,
    /// Somebody wants a delta now.
    wants_delta: AtomicBool,
    /// Between two deltas, where push lets them be rarer (O9).
    stretched: std::sync::Mutex<Option<Duration>>,
    /// There is something to do before the next cadence.
    woken: Notify,
}

/// What is remembered between two reads.
#[derive(Default)]
struct Seen {
    catalogue: Catalogue,
    /// The newest `last_updated` of NetBox's own clock (C-39); `None` before the first full read.
    newest: Option<Timestamp>,
}

/// What a sync did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SyncReport {
    /// Devices that NetBox told.
    pub read: usize,
    /// Devices that were new or different here.
    pub changed: usize,
    /// Devices that NetBox has no more.
    pub removed: usize,
    /// Devices without a name, which are left out.
    pub unnamed: usize,
    /// The list did not add up, so that nothing was removed on its word (C-38).
    pub incomplete: bool,
}

/// Why a sync did not come to its end. What was here before still stands.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error(transparent)]
    NetBox(#[from] NetBoxError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("NetBox at {url} tells of no device at all, {known} are known here: the token may see too little")]
    Emptied { url: String, known: usize },
}

impl Observer {
    pub fn new(netbox: NetBox, store: Store, settings: &NetboxSettings) -> Self {
        Observer {
            netbox,
            store,
            settings: settings.clone(),
            seen: Mutex::new(Seen::default()),
            queue: Queue::default(),
            wants_all: AtomicBool::new(false),
            wants_delta: AtomicBool::new(false),
            stretched: std::sync::Mutex::new(None),
            woken: Notify::new(),
        }
    }

    /// Reads every device, and removes those that NetBox has no more. Records NetBox's health either way.
    pub async fn sync_full(&self) -> Result<SyncReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = self.read_all(&mut seen).await;
        self.heard(&outcome).await;
        outcome
    }

    /// Reads what changed since the last read; everything where nothing was read yet.
    pub async fn sync_delta(&self) -> Result<SyncReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = match seen.newest {
            Some(newest) => self.read_changes(&mut seen, newest).await,
            None => self.read_all(&mut seen).await,
        };
        self.heard(&outcome).await;
        outcome
    }

    /// Reads the devices that were put into the queue, or a first part of them. Records NetBox's health either way; what
    /// could not be read stays in the queue.
    pub async fn sync_queued(&self) -> Result<SyncReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = self.read_queued(&mut seen).await;
        self.heard(&outcome).await;
        outcome
    }

    /// Asks the running observer for a full sync, without waiting for it.
    pub fn sync_soon(&self) {
        self.wants_all.store(true, Ordering::Relaxed);
        self.woken.notify_one();
    }

    /// Asks the running observer for a delta, without waiting for it.
    pub fn delta_soon(&self) {
        self.wants_delta.store(true, Ordering::Relaxed);
        self.woken.notify_one();
    }

    /// Takes another cadence for deltas from now on, since changes are told by push; `None`: the configured one (O9). The
    /// resync stays as it is.
    pub fn stretch(&self, poll: Option<Duration>) {
        *self.stretched.lock().unwrap_or_else(PoisonError::into_inner) = poll;
        self.woken.notify_one();
    }

    /// Asks the running observer to read these devices (NetBox's ids) at once, without waiting for it: somebody heard that
    /// they, or parts of them, were changed, made or deleted. An id is remembered until it was read, however often it is
    /// named. That NetBox has no such device any more is believed only where it says so for this one (see `queue`).
    pub fn requeue(&self, ids: impl IntoIterator<Item = u64>) {
        if self.queue.put(ids) {
            self.woken.notify_one();
        }
    }

    /// Goes on until cancelled: a full read first, then deltas on their cadence, full reads on theirs, and what is put
    /// into the queue at once. `on_change` is called when the fleet or NetBox's health changed. An outage changes nothing
    /// but the health, and ends by itself (O6).
    pub async fn run(&self, cancel: CancellationToken, on_change: impl Fn() + Send + Sync) {
        let mut schedule = Schedule::start(&self.settings, Instant::now());
        let mut was_well = None;
        loop {
            if self.wants_all.swap(false, Ordering::Relaxed) {
                schedule.want(Task::Resync, Instant::now());
            }
            schedule.stretch(*self.stretched.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
            if self.wants_delta.swap(false, Ordering::Relaxed) {
                schedule.want(Task::Delta, Instant::now());
            }
            let Some(task) = schedule.due(Instant::now(), !self.queue.is_empty()) else {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.woken.notified() => {}
                    () = tokio::time::sleep_until(schedule.next(!self.queue.is_empty())) => {}
                }
                continue;
            };
            let outcome = tokio::select! {
                () = cancel.cancelled() => return,
                outcome = self.carry_out(task) => outcome,
            };
            let well = outcome.is_ok();
            schedule.ended(task, well, Instant::now());
            let changed = outcome.is_ok_and(|report| report.changed + report.removed > 0);
            if changed || was_well != Some(well) {
                on_change();
            }
            was_well = Some(well);
        }
    }

    async fn carry_out(&self, task: Task) -> Result<SyncReport, ObserveError> {
        match task {
            Task::Resync => self.sync_full().await,
            Task::Queue => self.sync_queued().await,
            Task::Delta => self.sync_delta().await,
        }
    }

    /// Records how NetBox was met.
    async fn heard(&self, outcome: &Result<SyncReport, ObserveError>) {
        let error = match outcome {
            Ok(report) => {
                tracing::debug!(?report, "inventory read from NetBox");
                None
            }
            Err(ObserveError::NetBox(error)) => {
                let failure = self.netbox.failure(error, Phase::StatusGate);
                tracing::warn!(code = %failure.code, error = %error, "NetBox could not be read, the last view stays");
                Some(failure.message)
            }
            Err(error) => {
                tracing::warn!(%error, "the inventory could not be synced, the last view stays");
                Some(error.to_string())
            }
        };
        if let Err(error) = self.store.put_sync(SYSTEM, Timestamp::now(), error).await {
            tracing::error!(%error, "NetBox's health could not be recorded");
        }
    }
}
