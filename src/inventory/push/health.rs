//! How the sources of push are, told where every system's health is, and what cadence follows from it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Reader;
use crate::store::Store;

/// A source that is well says so this often: a console shows older news as stale.
pub(super) const BEAT: Duration = Duration::from_secs(30);

/// The cadence of polling: stretched while any source is well.
#[derive(Clone)]
pub(super) struct Pace {
    inner: Arc<Inner>,
}

struct Inner {
    reader: Arc<dyn Reader>,
    stretched: Duration,
    usual: Duration,
    well: Mutex<BTreeSet<&'static str>>,
}

impl Pace {
    pub fn new(reader: Arc<dyn Reader>, stretched: Duration, usual: Duration) -> Self {
        Pace { inner: Arc::new(Inner { reader, stretched, usual, well: Mutex::default() }) }
    }

    pub fn source(&self, name: &'static str, store: Store) -> Health {
        Health { pace: self.clone(), name, store, told: Mutex::new(None) }
    }

    fn count_on(&self, name: &'static str, well: bool) {
        let mut sources = self.inner.well.lock().unwrap_or_else(PoisonError::into_inner);
        let before = !sources.is_empty();
        if well {
            sources.insert(name)
        } else {
            sources.remove(name)
        };
        let now = !sources.is_empty();
        if before != now {
            tracing::info!(source = name, well, "the cadence of polling follows push");
            self.inner.reader.stretch(now.then_some(self.inner.stretched));
        }
    }
}

/// What one source says of itself.
pub(super) struct Health {
    pace: Pace,
    name: &'static str,
    store: Store,
    told: Mutex<Option<(Instant, Option<String>)>>,
}

impl Health {
    /// Changes are told by it, so that polling may be rare.
    pub async fn well(&self) {
        self.pace.count_on(self.name, true);
        self.tell(None).await;
    }

    /// Nothing is wrong, and nothing proves yet that changes are told by it.
    pub async fn not_proven(&self) {
        self.pace.count_on(self.name, false);
        self.tell(None).await;
    }

    /// It can't be counted on. `fact` with its values, `action` in the imperative.
    pub async fn trouble(&self, fact: &str, action: &str) {
        self.pace.count_on(self.name, false);
        let usual = self.pace.inner.usual.as_secs_f64();
        self.tell(Some(format!("{fact}; NetBox is polled every {usual} s; {action}"))).await;
    }

    /// Written where it changed, and now and then where it did not.
    async fn tell(&self, error: Option<String>) {
        let fresh = {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.as_ref().is_some_and(|(at, said)| *said == error && at.elapsed() < BEAT)
        };
        if fresh {
            return;
        }
        if let Some(error) = &error {
            tracing::warn!(source = self.name, error, "push can't be counted on");
        }
        match self.store.put_sync(self.name, Timestamp::now(), error.clone()).await {
            Ok(()) => *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), error)),
            Err(error) => tracing::error!(%error, "the health of push could not be recorded"),
        }
    }
}
