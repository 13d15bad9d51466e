//! Observes NetBox: everything now and then, what changed in between more often (O1, O4, O6).

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::project::{Catalogue, device};
use crate::clients::netbox::NetBox;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::pages::Listing;
use crate::clients::netbox::records::DeviceRecord;
use crate::config::settings::NetboxSettings;
use crate::domain::phase::Phase;
use crate::store::{Store, StoreError};

/// The name under which the store keeps NetBox's health.
pub const SYSTEM: &str = "netbox";
/// How far a delta reaches back behind the newest change seen. NetBox stamps a row when it is saved, and others see it when
/// the transaction ends: a bulk import takes its time (O4).
const OVERLAP: SignedDuration = SignedDuration::from_secs(120);

/// Keeps the fleet as NetBox has it.
pub struct Observer {
    netbox: NetBox,
    store: Store,
    settings: NetboxSettings,
    /// One sync at a time.
    seen: Mutex<Seen>,
    /// Somebody wants a full sync now.
    wanted: Notify,
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
        Observer { netbox, store, settings: settings.clone(), seen: Mutex::new(Seen::default()), wanted: Notify::new() }
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

    /// Asks the running observer for a full sync, without waiting for it.
    pub fn sync_soon(&self) {
        self.wanted.notify_one();
    }

    /// Goes on until cancelled: a full read first, then deltas on their cadence, full reads on theirs. `on_change` is called
    /// when the fleet or NetBox's health changed. An outage changes nothing but the health, and ends by itself (O6).
    pub async fn run(&self, cancel: CancellationToken, on_change: impl Fn() + Send + Sync) {
        let mut full_at = Instant::now();
        let mut was_well = None;
        loop {
            let full = Instant::now() >= full_at;
            let sync = async { if full { self.sync_full().await } else { self.sync_delta().await } };
            let outcome = tokio::select! {
                () = cancel.cancelled() => return,
                outcome = sync => outcome,
            };
            let well = outcome.is_ok();
            if full && well {
                full_at = Instant::now() + self.settings.resync;
            }
            let changed = outcome.is_ok_and(|report| report.changed + report.removed > 0);
            if changed || was_well != Some(well) {
                on_change();
            }
            was_well = Some(well);
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.wanted.notified() => full_at = Instant::now(),
                () = tokio::time::sleep(self.settings.poll.max(Duration::from_millis(10))) => {}
            }
        }
    }

    async fn read_all(&self, seen: &mut Seen) -> Result<SyncReport, ObserveError> {
        let (catalogue, mut listing) = tokio::try_join!(self.catalogue(), self.netbox.devices(None))?;
        if !listing.complete {
            // Something was created or deleted meanwhile; a second read usually meets a quiet moment.
            listing = self.netbox.devices(None).await?;
        }
        let known = self.known()?;
        if listing.rows.is_empty() && !known.is_empty() {
            return Err(ObserveError::Emptied { url: self.netbox.url().to_string(), known: known.len() });
        }
        seen.catalogue = catalogue;
        seen.newest = newest(&listing.rows).or(seen.newest);
        self.take(seen, listing, Some(known)).await
    }

    async fn read_changes(&self, seen: &mut Seen, newest_seen: Timestamp) -> Result<SyncReport, ObserveError> {
        let since = newest_seen.checked_sub(OVERLAP).unwrap_or(newest_seen);
        let listing = self.netbox.devices(Some(since)).await?;
        // A server that ignores the filter tells everything: then this is a full read (C-39).
        let ignored = listing.rows.iter().any(|row| row.last_updated.is_none_or(|at| at < since));
        let known = if ignored { Some(self.known()?) } else { None };
        seen.newest = seen.newest.max(newest(&listing.rows));
        self.take(seen, listing, known).await
    }

    /// Takes a list into the store. `known`: the ids that the store has, where the list is of all devices.
    async fn take(
        &self,
        seen: &mut Seen,
        listing: Listing<DeviceRecord>,
        known: Option<BTreeSet<u64>>,
    ) -> Result<SyncReport, ObserveError> {
        if !listing.rows.iter().all(|row| seen.catalogue.covers(row)) {
            seen.catalogue = self.catalogue().await?;
        }
        let read_at = Timestamp::now();
        let mut report = SyncReport { read: listing.rows.len(), ..SyncReport::default() };
        let told: BTreeSet<u64> = listing.rows.iter().map(|row| row.id).collect();
        let fields = &self.settings.fields;
        let devices: Vec<_> =
            listing.rows.into_iter().filter_map(|row| device(row, &seen.catalogue, fields, read_at)).collect();
        report.unnamed = report.read - devices.len();
        report.changed = self.store.put_devices(devices).await?;
        if let Some(known) = known {
            report.incomplete = !listing.complete;
            let gone: Vec<u64> = known.difference(&told).copied().collect();
            if listing.complete && !gone.is_empty() {
                report.removed = gone.len();
                self.store.remove_devices(gone).await?;
            }
        }
        Ok(report)
    }

    async fn catalogue(&self) -> Result<Catalogue, NetBoxError> {
        let (types, roles) = tokio::try_join!(self.netbox.device_types(), self.netbox.roles())?;
        Ok(Catalogue::new(&types.rows, &roles.rows, &self.settings.fields))
    }

    fn known(&self) -> Result<BTreeSet<u64>, StoreError> {
        Ok(self.store.devices()?.into_iter().map(|device| device.netbox_id).collect())
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

fn newest(rows: &[DeviceRecord]) -> Option<Timestamp> {
    rows.iter().filter_map(|row| row.last_updated).max()
}
