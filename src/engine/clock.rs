//! The clock that the engine goes by: time as it really passes, whatever is done to the clock of the machine (C-47).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// The engine's time, and a way to let some of it pass.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Comes back after `wait` at the latest as this clock counts, or sooner when the clock was turned.
    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()>;

    /// A run goes on whose journal ends at this time: from now on it is no earlier. The machine's clock may have been set
    /// back between two processes, and a deadline must not move away by that.
    fn continue_from(&self, _at: Timestamp) {}

    /// No run is under way, so no deadline either: the engine's time may be the machine's again.
    fn follow(&self) {}
}

/// The clocks of a machine.
pub trait Clocks: Send + Sync + 'static {
    /// What the machine shows. It may be set.
    fn wall(&self) -> Timestamp;
    /// Never set, and stands still while the machine is suspended.
    fn running(&self) -> Duration;
    /// Never set, and goes on while the machine is suspended; `None` where a machine has no such clock.
    fn since_boot(&self) -> Option<Duration>;
}

/// The clocks of this machine.
#[derive(Debug)]
pub struct Machine {
    began: Instant,
}

impl Clocks for Machine {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn running(&self) -> Duration {
        self.began.elapsed()
    }

    fn since_boot(&self) -> Option<Duration> {
        // Asked only where the other two disagree, so that it may cost a few microseconds.
        let text = std::fs::read_to_string("/proc/uptime").ok()?;
        Duration::try_from_secs_f64(text.split_whitespace().next()?.parse().ok()?).ok()
    }
}

/// Two clocks that are apart by more than this have not drifted: one of them was set, or stood still.
const JUMP: SignedDuration = SignedDuration::from_secs(1);

/// Time as it passes. It begins as the machine's clock shows it and follows its small corrections; a suspend has
/// passed; a clock that was set by more has not. So no budget is shortened or repeated by that, and the journal's times
/// never go back. Where no run is under way it takes the machine's time again.
#[derive(Debug)]
pub struct SteadyClock<C> {
    clocks: C,
    last: Mutex<Reading>,
}

/// The clock of the program.
pub type SystemClock = SteadyClock<Machine>;

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The engine's time.
    now: Timestamp,
    wall: Timestamp,
    running: Duration,
    /// The engine's time at the last jump, and the machine's time since boot then.
    anchor: (Timestamp, Option<Duration>),
}

impl Default for SystemClock {
    fn default() -> Self {
        SteadyClock::on(Machine { began: Instant::now() })
    }
}

impl<C: Clocks> SteadyClock<C> {
    /// A clock that begins with the machine's time.
    pub fn on(clocks: C) -> Self {
        let (wall, running) = read(&clocks);
        let last = Reading { now: wall, wall, running, anchor: (wall, clocks.since_boot()) };
        SteadyClock { clocks, last: Mutex::new(last) }
    }

    /// Brings the reading up to now.
    fn read(&self) -> MutexGuard<'_, Reading> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, running) = read(&self.clocks);
        let ran = signed(running.saturating_sub(last.running));
        let shown = wall.duration_since(last.wall);
        let now = if (shown - ran).abs() < JUMP {
            later(last.now, shown.max(SignedDuration::ZERO))
        } else {
            let boot = self.clocks.since_boot();
            let passed = match (last.anchor.1, boot) {
                (Some(then), Some(boot)) => {
                    later(last.anchor.0, signed(boot.saturating_sub(then))).duration_since(last.now)
                }
                // It can't be told from a clock that was set forward; a suspend is what happens to laptops.
                _ => shown,
            };
            let passed = passed.max(ran);
            let set_by = shown - passed;
            if set_by.abs() >= JUMP {
                tracing::warn!(
                    seconds = set_by.as_secs(),
                    "the machine's clock was set: runs under way keep their time"
                );
            } else {
                tracing::info!(seconds = (passed - ran).as_secs(), "the machine was suspended");
            }
            let now = later(last.now, passed);
            last.anchor = (now, boot);
            now
        };
        (last.now, last.wall, last.running) = (now, wall, running);
        last
    }

    fn set(&self, mut last: MutexGuard<'_, Reading>, now: Timestamp) {
        last.now = now;
        last.anchor = (now, self.clocks.since_boot());
    }
}

/// Wall and running time of one moment: a process that is stopped between the two reads them again.
fn read(clocks: &impl Clocks) -> (Timestamp, Duration) {
    loop {
        let before = clocks.running();
        let wall = clocks.wall();
        let running = clocks.running();
        if running.saturating_sub(before) < Duration::from_millis(100) {
            return (wall, running);
        }
    }
}

fn signed(span: Duration) -> SignedDuration {
    SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX)
}

fn later(at: Timestamp, span: SignedDuration) -> Timestamp {
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

impl<C: Clocks> Clock for SteadyClock<C> {
    fn now(&self) -> Timestamp {
        self.read().now
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(wait))
    }

    fn continue_from(&self, at: Timestamp) {
        let last = self.read();
        if at > last.now {
            tracing::warn!(%at, now = %last.now, "a journal is ahead of the machine's clock: runs keep the journal's time");
            self.set(last, at);
        }
    }

    fn follow(&self) {
        let last = self.read();
        if (last.wall.duration_since(last.now)).abs() >= JUMP {
            let wall = last.wall;
            self.set(last, wall);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Times {
        wall: i64,
        running: u64,
        boot: Option<u64>,
    }

    struct Turned(Mutex<Times>);

    impl Turned {
        fn turn(&self, change: impl FnOnce(&mut Times)) {
            change(&mut self.0.lock().unwrap());
        }

        fn pass(&self, seconds: u64) {
            self.turn(|t| {
                (t.wall, t.running, t.boot) =
                    (t.wall + seconds as i64, t.running + seconds, t.boot.map(|b| b + seconds))
            });
        }

        fn suspend(&self, seconds: u64) {
            self.turn(|t| (t.wall, t.boot) = (t.wall + seconds as i64, t.boot.map(|b| b + seconds)));
        }
    }

    impl Clocks for Turned {
        fn wall(&self) -> Timestamp {
            at(self.0.lock().unwrap().wall)
        }

        fn running(&self) -> Duration {
            Duration::from_secs(self.0.lock().unwrap().running)
        }

        fn since_boot(&self) -> Option<Duration> {
            self.0.lock().unwrap().boot.map(Duration::from_secs)
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn clock(boot: Option<u64>) -> SteadyClock<Turned> {
        SteadyClock::on(Turned(Mutex::new(Times { wall: 0, running: 0, boot })))
    }

    /// Case: C-47. Proves: G6
    #[test]
    fn a_suspend_has_passed_and_a_clock_that_was_set_has_not() {
        let clock = clock(Some(5000));
        clock.clocks.pass(10);
        assert_eq!(clock.now(), at(10));
        clock.clocks.suspend(7200);
        assert_eq!(clock.now(), at(7210));
        for set in [-3600, 86_400, -3] {
            let before = clock.now();
            clock.clocks.turn(|t| t.wall += set);
            assert_eq!(clock.now(), before, "{set}");
            clock.clocks.pass(5);
            assert_eq!(clock.now(), later(before, SignedDuration::from_secs(5)), "{set}");
        }
        // Both in one: set back while it slept.
        clock.clocks.suspend(100);
        clock.clocks.turn(|t| t.wall -= 3600);
        assert_eq!(clock.now(), at(7325));
    }

    /// Case: C-47. Proves: G6
    #[test]
    fn without_a_clock_since_boot_a_step_forward_counts_as_a_suspend_and_none_goes_back() {
        let clock = clock(None);
        clock.clocks.suspend(7200);
        assert_eq!(clock.now(), at(7200));
        clock.clocks.turn(|t| t.wall -= 3600);
        clock.clocks.turn(|t| t.running += 5);
        assert_eq!(clock.now(), at(7205));
    }

    /// Proves: G6
    #[test]
    fn small_corrections_are_followed_and_the_rest_when_no_run_is_under_way() {
        let clock = clock(Some(0));
        for _ in 0..10 {
            clock.clocks.pass(100);
            clock.now();
        }
        clock.clocks.turn(|t| t.wall += 3600);
        clock.clocks.pass(1);
        assert_eq!(clock.now(), at(1001));
        clock.follow();
        assert_eq!(clock.now(), at(4601));
        clock.clocks.pass(1);
        assert_eq!(clock.now(), at(4602));
    }

    /// Case: C-47. Proves: G6
    #[test]
    fn a_journal_that_is_ahead_of_the_machine_is_gone_on_from() {
        let clock = clock(Some(0));
        clock.continue_from(at(600));
        assert_eq!(clock.now(), at(600));
        clock.continue_from(at(30));
        clock.clocks.pass(5);
        assert_eq!(clock.now(), at(605));
    }

    #[test]
    fn the_machines_own_clocks_agree_with_each_other() {
        let clock = SystemClock::default();
        let (before, now) = (Timestamp::now(), clock.now());
        assert!(now.duration_since(before).abs() < SignedDuration::from_secs(1));
        assert!(clock.clocks.since_boot().is_none_or(|span| span > Duration::ZERO));
    }
}
