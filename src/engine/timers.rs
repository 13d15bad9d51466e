//! Durable timers: fire when the wall clock has reached a time, whatever happened to the machine meanwhile (G6).
//!
//! One task serves all of them. It sleeps to the next deadline, but never longer than a second at a time, because the
//! sleep itself stands still while the machine is suspended and knows nothing of a clock that was set.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};

use super::clock::Clock;

/// The longest sleep between two looks at the clock.
const LOOK: Duration = Duration::from_secs(1);

/// What happens when a timer fires. Called on the timers' task: it only hands on.
type Fire = Box<dyn FnOnce() + Send>;

/// All timers of an engine. Ends with its last handle.
#[derive(Clone)]
pub(super) struct Timers {
    inner: Arc<Inner>,
}

struct Inner {
    set: Mutex<Set>,
    /// A deadline was added that is nearer than all others.
    nearer: Arc<Notify>,
}

#[derive(Default)]
struct Set {
    /// By deadline, then by the order in which they were set.
    timers: BTreeMap<(Timestamp, u64), Fire>,
    next: u64,
}

/// A timer that is set. Dropped before it fires, it never does.
pub(super) struct Timer {
    inner: Weak<Inner>,
    key: (Timestamp, u64),
}

impl Timers {
    /// Starts the task on the runtime at hand.
    pub(super) fn spawn(clock: Arc<dyn Clock>) -> Timers {
        let inner = Arc::new(Inner { set: Mutex::default(), nearer: Arc::new(Notify::new()) });
        tokio::spawn(serve(Arc::downgrade(&inner), Arc::clone(&inner.nearer), clock));
        Timers { inner }
    }

    /// Calls `fire` once the clock shows `deadline` or later.
    pub(super) fn at(&self, deadline: Timestamp, fire: impl FnOnce() + Send + 'static) -> Timer {
        let mut set = self.inner.lock();
        let key = (deadline, set.next);
        set.next += 1;
        set.timers.insert(key, Box::new(fire));
        if set.timers.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.inner.nearer.notify_one();
        }
        Timer { inner: Arc::downgrade(&self.inner), key }
    }

    /// Waits until the clock shows `deadline` or later.
    pub(super) async fn until(&self, deadline: Timestamp) {
        let (fire, fired) = oneshot::channel();
        let _timer = self.at(deadline, move || {
            fire.send(()).ok();
        });
        // The other end goes only by firing, or with the whole engine.
        fired.await.ok();
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.lock().timers.remove(&self.key);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.nearer.notify_one();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is due out of the set; gives back how long the next one takes.
    fn due(&self, now: Timestamp) -> (Vec<Fire>, Option<Duration>) {
        let mut set = self.lock();
        let mut due = Vec::new();
        while let Some(first) = set.timers.first_entry() {
            let deadline = first.key().0;
            if deadline > now {
                let wait = Duration::try_from(deadline.duration_since(now)).unwrap_or(Duration::ZERO);
                return (due, Some(wait));
            }
            due.push(first.remove());
        }
        (due, None)
    }
}

async fn serve(inner: Weak<Inner>, nearer: Arc<Notify>, clock: Arc<dyn Clock>) {
    loop {
        let Some(strong) = inner.upgrade() else { return };
        let (due, wait) = strong.due(clock.now());
        drop(strong);
        for fire in due {
            fire();
        }
        match wait {
            None => nearer.notified().await,
            Some(wait) => {
                tokio::select! {
                    () = clock.pause(wait.min(LOOK)) => {}
                    () = nearer.notified() => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::ManualClock;
    use super::*;
    use tokio::sync::mpsc;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn timers() -> (Arc<ManualClock>, Timers, impl Fn(i64) -> Timer, mpsc::UnboundedReceiver<i64>) {
        let clock = Arc::new(ManualClock::new(at(0)));
        let timers = Timers::spawn(Arc::clone(&clock) as Arc<dyn Clock>);
        let (tx, rx) = mpsc::unbounded_channel();
        let set = {
            let timers = timers.clone();
            move |second: i64| {
                let tx = tx.clone();
                timers.at(at(second), move || tx.send(second).unwrap())
            }
        };
        (clock, timers, set, rx)
    }

    /// Proves: G6
    #[tokio::test]
    async fn timers_fire_in_order_when_the_clock_has_reached_them_and_a_dropped_one_never_does() {
        let (clock, _timers, set, mut fired) = timers();
        let kept = [set(30), set(10), set(20)];
        drop(set(15));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(fired.try_recv().is_err(), "nothing is due");
        // As after a suspend: the clock is far ahead at once.
        clock.set(at(25));
        assert_eq!((fired.recv().await, fired.recv().await), (Some(10), Some(20)));
        // Set back by hand: what is left waits for its own time.
        clock.set(at(5));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(fired.try_recv().is_err());
        clock.set(at(30));
        assert_eq!(fired.recv().await, Some(30));
        drop(kept);
    }

    #[tokio::test]
    async fn a_deadline_in_the_past_fires_at_once() {
        let (_clock, timers, _set, _fired) = timers();
        tokio::time::timeout(Duration::from_secs(5), timers.until(at(-60))).await.unwrap();
    }
}
