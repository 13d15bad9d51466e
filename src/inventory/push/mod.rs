//! Push: NetBox tells what changed, and muster reads that again (O9).
//!
//! Nothing that arrives is believed. An event only names ids; the observer reads those in NetBox, and a deletion counts
//! when NetBox says so itself. Polling goes on all the time, less often while a source is well, and the resync stays.

mod again;
mod health;
mod postgres;
mod tls;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use again::{Again, Sink};
pub use webhook::signature;

use self::health::Pace;
use super::netbox::Observer;
use crate::clients::netbox::NetBox;
use crate::clients::vault::Vault;
use crate::config::settings::PushSettings;
use crate::store::{Store, StoreError};

/// The names under which the store keeps the sources' health.
pub const WEBHOOK: &str = "netbox push webhook";
pub const POSTGRES: &str = "netbox push postgres";

/// Whoever reads what push names. None of these waits.
pub trait Reader: Send + Sync {
    /// Reads these devices at once, or finds that they are gone.
    fn requeue(&self, devices: Vec<u64>);
    /// Reads at once what changed since the last read.
    fn delta_soon(&self);
    /// Reads everything soon: only this sees what was deleted while nobody listened.
    fn sync_soon(&self);
    /// Takes another cadence for deltas; `None`: its own again.
    fn stretch(&self, poll: Option<Duration>);
}

impl Reader for Observer {
    fn requeue(&self, devices: Vec<u64>) {
        Observer::requeue(self, devices);
    }

    fn delta_soon(&self) {
        Observer::delta_soon(self);
    }

    fn sync_soon(&self) {
        Observer::sync_soon(self);
    }

    fn stretch(&self, poll: Option<Duration>) {
        Observer::stretch(self, poll);
    }
}

/// All sources of one installation.
pub struct Push {
    settings: PushSettings,
    /// What polling is without push: for sentences.
    poll: Duration,
    vault: Vault,
    netbox: NetBox,
    store: Store,
    reader: Arc<dyn Reader>,
}

impl Push {
    pub fn new(
        settings: PushSettings,
        poll: Duration,
        vault: Vault,
        netbox: NetBox,
        store: Store,
        reader: Arc<dyn Reader>,
    ) -> Self {
        Push { settings, poll, vault, netbox, store, reader }
    }

    /// Goes on until cancelled. A source that is not well is tried again by itself, and changes nothing but the cadence.
    pub async fn run(&self, cancel: CancellationToken) {
        if let Err(error) = forget_others(&self.store, Some(&self.settings)).await {
            tracing::warn!(%error, "the health of former push sources could not be taken out");
        }
        let sink = Sink::default();
        let pace = Pace::new(Arc::clone(&self.reader), self.settings.poll, self.poll);
        let webhook = async {
            match &self.settings.webhook {
                Some(settings) => {
                    let health = pace.source(WEBHOOK, self.store.clone());
                    webhook::run(settings, &self.vault, &sink, &health, &cancel).await;
                }
                None => cancel.cancelled().await,
            }
        };
        let postgres = async {
            match &self.settings.postgres {
                Some(settings) => {
                    let health = pace.source(POSTGRES, self.store.clone());
                    postgres::run(settings, &self.vault, &sink, &health, &cancel).await;
                }
                None => cancel.cancelled().await,
            }
        };
        let pass_on = sink.pass_on(&self.netbox, &*self.reader, &cancel);
        futures::join!(webhook, postgres, pass_on);
        self.reader.stretch(None);
    }
}

/// Takes out the health of sources that are not configured (any more): nobody would ever mend it.
pub async fn forget_others(store: &Store, settings: Option<&PushSettings>) -> Result<(), StoreError> {
    if settings.is_none_or(|push| push.webhook.is_none()) {
        store.forget_sync(WEBHOOK).await?;
    }
    if settings.is_none_or(|push| push.postgres.is_none()) {
        store.forget_sync(POSTGRES).await?;
    }
    Ok(())
}

/// Waits, or says `true` where it was cancelled meanwhile.
async fn cancelled_within(cancel: &CancellationToken, wait: Duration) -> bool {
    tokio::time::timeout(wait, cancel.cancelled()).await.is_ok()
}

/// The next wait after one that came to nothing.
fn longer(wait: Duration, most: Duration) -> Duration {
    (wait * 2).min(most)
}
