//! Observes NetBox: everything now and then, what changed in between more often (O1, O2, O4, O6).

mod devices;
mod firmware;
mod parts;
mod places;
mod queue;

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::firmware::misfits as firmware_misfits;
use self::parts::Parts;
pub(super) use self::parts::is_closed;
use self::queue::Queue;
use super::cursor::Cursor;
use super::project::Catalogue;
use super::schedule::Schedule;
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
    /// How far devices were read; `None` before the first full read.
    cursor: Option<Cursor>,
    /// How far their parts were.
    parts: Parts,
}

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Everything, as if nothing were known.
    Refresh,
    /// All devices.
    Resync,
    /// Sites, locations, racks, device types, roles, firmware policies.
    Places,
    /// Devices that changed.
    Delta,
    /// Interfaces and addresses that changed.
    Parts,
    /// What is in the queue.
    Queue,
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
    #[error("NetBox at {url} tells of no {what} at all, {known} are known here: the token may see too little")]
    EmptiedList { url: String, what: &'static str, known: usize },
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
        let outcome = match seen.cursor {
            Some(cursor) => self.read_changes(&mut seen, cursor).await,
            None => self.read_all(&mut seen).await,
        };
        self.heard(&outcome).await;
        outcome
    }

    /// Reads sites, locations, racks, device types, roles and firmware policies. Where devices look another way by that,
    /// the running observer reads them all again.
    pub async fn sync_places(&self) -> Result<SyncReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = self.read_places(&mut seen).await;
        self.heard(&outcome).await;
        outcome
    }

    /// Looks which interfaces, IP and MAC addresses changed since the last look, and puts their devices into the queue (O2).
    /// The first look only remembers where the next one begins.
    pub async fn sync_parts(&self) -> Result<SyncReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = self.read_parts(&mut seen.parts).await;
        self.heard(&outcome).await;
        outcome
    }

    /// Reads everything, as if nothing were known of NetBox; what is in the store stays until it is told otherwise.
    pub async fn refresh(&self) -> Result<SyncReport, ObserveError> {
        {
            let mut seen = self.seen.lock().await;
            (seen.cursor, seen.catalogue) = (None, Catalogue::default());
            seen.parts.reopen();
        }
        self.sync_places().await?;
        self.sync_full().await
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

    /// Goes on until cancelled: a full read first, then each cadence, and what is put into the queue at once. `on_change` is
    /// called when the fleet or NetBox's health changed. An outage changes nothing but the health, and ends by itself (O6).
    pub async fn run(&self, cancel: CancellationToken, on_change: impl Fn() + Send + Sync) {
        let mut schedule = self.schedule(Instant::now());
        let (mut was_well, mut last) = (None, None);
        loop {
            let now = Instant::now();
            if self.wants_all.swap(false, Ordering::Relaxed) {
                schedule.want(Task::Resync, now);
            }
            let stretched = *self.stretched.lock().unwrap_or_else(PoisonError::into_inner);
            for task in [Task::Delta, Task::Parts] {
                schedule.stretch(task, stretched, now);
            }
            if self.wants_delta.swap(false, Ordering::Relaxed) {
                schedule.want(Task::Delta, now);
            }
            let queued = !self.queue.is_empty();
            // Heard-of devices first, and whatever else is due between two rounds of them.
            let due = schedule.due(now).filter(|_| !queued || last == Some(Task::Queue));
            let Some(task) = due.or((queued && schedule.may_ask(now)).then_some(Task::Queue)) else {
                last = None;
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.woken.notified() => {}
                    () = tokio::time::sleep_until(schedule.next(queued)) => {}
                }
                continue;
            };
            let outcome = tokio::select! {
                () = cancel.cancelled() => return,
                outcome = self.carry_out(task) => outcome,
            };
            let well = outcome.is_ok();
            let covers: &[Task] = match task {
                Task::Refresh => &[Task::Resync, Task::Places, Task::Delta],
                Task::Resync => &[Task::Delta],
                Task::Places | Task::Delta | Task::Parts | Task::Queue => &[],
            };
            schedule.ended(task, covers, well, Instant::now());
            last = Some(task);
            let changed = outcome.is_ok_and(|report| report.changed + report.removed > 0);
            if changed || was_well != Some(well) {
                on_change();
            }
            was_well = Some(well);
        }
    }

    fn schedule(&self, now: Instant) -> Schedule<Task> {
        let (poll, resync, c) = (self.settings.poll, self.settings.resync, &self.settings.cadences);
        Schedule::new(now, poll)
            // The first look of all: what changes while devices are read for the first time is not lost.
            .add(Task::Parts, c.parts, now)
            // The first resync and the first places are one.
            .add(Task::Refresh, c.refresh, now + c.refresh)
            .add(Task::Resync, resync, now)
            .add(Task::Places, c.places, now)
            .add(Task::Delta, poll, now + poll)
    }

    async fn carry_out(&self, task: Task) -> Result<SyncReport, ObserveError> {
        match task {
            Task::Refresh => self.refresh().await,
            Task::Resync => self.sync_full().await,
            Task::Places => self.sync_places().await,
            Task::Delta => self.sync_delta().await,
            Task::Parts => self.sync_parts().await,
            Task::Queue => self.sync_queued().await,
        }
    }

    async fn heard(&self, outcome: &Result<SyncReport, ObserveError>) {
        heard(&self.netbox, &self.store, SYSTEM, "inventory", outcome).await;
    }
}

/// Records how NetBox was met, by whoever reads a part of it. `what` is the part, for the log.
pub(super) async fn heard<T: std::fmt::Debug>(
    netbox: &NetBox,
    store: &Store,
    system: &str,
    what: &str,
    outcome: &Result<T, ObserveError>,
) {
    let error = match outcome {
        Ok(report) => {
            tracing::debug!(what, ?report, "read from NetBox");
            None
        }
        Err(ObserveError::NetBox(error)) => {
            let failure = netbox.failure(error, Phase::StatusGate);
            tracing::warn!(what, code = %failure.code, error = %error, "NetBox could not be read, the last view stays");
            Some(failure.message)
        }
        Err(error) => {
            tracing::warn!(what, %error, "the last view stays");
            Some(error.to_string())
        }
    };
    if let Err(error) = store.put_sync(system, Timestamp::now(), error).await {
        tracing::error!(what, %error, "NetBox's health could not be recorded");
    }
}
