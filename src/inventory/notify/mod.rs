//! Tells others what changed in the projection: messages to NATS, off by default (O10).
//!
//! What is told is a hint, told at most once. Nothing here holds up the observer: a full queue drops and counts.

mod change;
mod send;
pub mod subject;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

pub use change::{CableChange, CableEnd, Change, DeviceChange, between, cables_between};

use crate::clients::vault::Vault;
use crate::config::settings::NatsSettings;
use crate::domain::device::Device;
use crate::domain::wiring::Cable;
use crate::store::{Store, StoreError};

/// The name under which the store keeps NATS's health.
pub const SYSTEM: &str = "nats";

/// Compares what the store has with what it had, and tells the difference.
pub struct Notifier {
    settings: NatsSettings,
    vault: Vault,
    store: Store,
    known: Mutex<Arc<Known>>,
    look: Notify,
    queue: mpsc::Sender<Message>,
    waiting: Mutex<Option<mpsc::Receiver<Message>>>,
    dropped: Arc<AtomicU64>,
}

/// What everybody knows already. Only what is told is kept.
#[derive(Default)]
struct Known {
    devices: BTreeMap<u64, Device>,
    cables: BTreeMap<u64, Cable>,
    /// Slugs, by the device's id: where cables end.
    sites: BTreeMap<u64, String>,
}

/// One message as it goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    subject: String,
    payload: Vec<u8>,
}

impl Notifier {
    /// Takes what the store has now as known to everybody: make it before the observer runs. `None` where every flag is
    /// off, so that nothing is connected to.
    pub fn new(settings: &NatsSettings, vault: Vault, store: Store) -> Result<Option<Self>, StoreError> {
        if !settings.tells_anything() {
            return Ok(None);
        }
        let known = Known::read(settings, &store)?;
        let (queue, waiting) = mpsc::channel(settings.queue);
        Ok(Some(Notifier {
            settings: settings.clone(),
            vault,
            store,
            known: Mutex::new(Arc::new(known)),
            look: Notify::new(),
            queue,
            waiting: Mutex::new(Some(waiting)),
            dropped: Arc::default(),
        }))
    }

    /// An observer changed something. Returns at once.
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// Tells of cables: those of the sites in the filter, and only under their own flag. Returns at once.
    pub fn cables(&self, changes: &[CableChange]) {
        if !self.settings.tells_cables() {
            return;
        }
        let now = Timestamp::now();
        for change in changes {
            for site in change.sites().iter().filter(|site| self.settings.cable_sites.contains(site)) {
                self.put(change.message(&self.settings.prefix, site, now));
            }
        }
    }

    /// How many messages were dropped so far, since the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Goes on until cancelled. May be called once.
    pub async fn run(&self, cancel: CancellationToken) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(waiting) = waiting else { return };
        let compare = async {
            loop {
                self.look.notified().await;
                self.compare().await;
            }
        };
        let send = send::run(&self.settings, &self.vault, &self.store, waiting, &self.dropped);
        tokio::select! {
            () = cancel.cancelled() => {}
            () = compare => {}
            () = send => {}
        }
    }

    /// Tells what differs from the last look.
    async fn compare(&self) {
        let (settings, store) = (self.settings.clone(), self.store.clone());
        let read = tokio::task::spawn_blocking(move || Known::read(&settings, &store));
        let latter = match read.await {
            Ok(Ok(latter)) => Arc::new(latter),
            Ok(Err(error)) => {
                return tracing::warn!(%error, "what changed could not be read, it is told at the next change");
            }
            Err(_) => return,
        };
        let former = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *known, Arc::clone(&latter))
        };
        let now = Timestamp::now();
        for change in between(&former.devices, &latter.devices) {
            self.put(change.message(&self.settings.prefix, now));
        }
        let site_of = |device: u64| latter.sites.get(&device).or_else(|| former.sites.get(&device)).cloned();
        self.cables(&cables_between(&former.cables, &latter.cables, &site_of));
    }

    fn put(&self, message: Message) {
        if self.queue.try_send(message).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Known {
    fn read(settings: &NatsSettings, store: &Store) -> Result<Known, StoreError> {
        let mut known = Known::default();
        let devices = store.devices()?;
        if settings.tells_cables() {
            known.cables = store.objects::<Cable>()?.into_iter().map(|cable| (cable.netbox_id, cable)).collect();
            known.sites = devices.iter().map(|device| (device.netbox_id, device.site.clone())).collect();
        }
        if settings.publish_devices {
            known.devices = devices.into_iter().map(|device| (device.netbox_id, device)).collect();
        }
        Ok(known)
    }
}
