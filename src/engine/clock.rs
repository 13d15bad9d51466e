//! The clock that the engine goes by, so that tests can turn it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::Notify;

/// Wall-clock time, and a way to let some of it pass.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Comes back after `wait` at the latest as this clock counts, or sooner when the clock was turned.
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()>;
}

/// The clock of the machine. It may jump, and a suspend stops what `pause` counts: whoever waits for a time looks again.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// A clock that a test turns by hand, or that turns itself whenever somebody waits.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Timestamp>,
    turned: Notify,
    turns_itself: bool,
}

impl ManualClock {
    /// Stands still until it is turned.
    pub fn new(now: Timestamp) -> Self {
        ManualClock { now: Mutex::new(now), turned: Notify::new(), turns_itself: false }
    }

    /// Every pause passes at once: hours of waiting in no time.
    pub fn leaping(now: Timestamp) -> Self {
        ManualClock { turns_itself: true, ..Self::new(now) }
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.turned.notify_waiters();
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let now = self.now().checked_add(by).unwrap_or(Timestamp::MAX);
        self.set(now);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.turns_itself {
                // Real work gets a turn first, or a deadline hours away would pass before it is done.
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.advance(wait);
            } else {
                let turned = self.turned.notified();
                // A turn between two pauses of one waiter is seen at the latest now.
                tokio::time::timeout(Duration::from_millis(20), turned).await.ok();
            }
        })
    }
}
