//! The lab's clock: scaled time with a speed that can change while it runs.

use std::ops::{Add, Sub};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// A point in lab time, counted from the start of the lab. Every delay of the lab is a span of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabTime(pub Duration);

impl LabTime {
    /// The start of the lab.
    pub const ZERO: LabTime = LabTime(Duration::ZERO);
}

impl Add<Duration> for LabTime {
    type Output = LabTime;

    fn add(self, span: Duration) -> LabTime {
        LabTime(self.0.saturating_add(span))
    }
}

/// The span between two points; nothing where the right one is later.
impl Sub for LabTime {
    type Output = Duration;

    fn sub(self, earlier: LabTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Serialize for LabTime {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0.as_secs_f64())
    }
}

/// A span of seconds from a scenario; what is no span (negative, not a number, too long) is none.
pub fn seconds(text: f64) -> Duration {
    Duration::try_from_secs_f64(text).unwrap_or(Duration::ZERO)
}

/// From here on, lab time runs at `speed`.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    lab: LabTime,
    real: Instant,
    wall: Timestamp,
    speed: f64,
}

/// Lab time against real time. Delays run in lab time; stamps that clients see are wall time, since the services' clocks
/// and the client's agree in reality too.
#[derive(Debug)]
pub struct Clock {
    /// Oldest first, never empty.
    anchors: Mutex<Vec<Anchor>>,
    changed: tokio::sync::Notify,
    /// Time that only moves where it is moved; nobody waits for anything then.
    hand: Option<Mutex<LabTime>>,
}

impl Clock {
    /// A clock that starts now. A speed that is not a positive number is 1.
    pub fn start(speed: f64) -> Self {
        let first = Anchor { lab: LabTime::ZERO, real: Instant::now(), wall: Timestamp::now(), speed: sane(speed) };
        Clock { anchors: Mutex::new(vec![first]), changed: tokio::sync::Notify::new(), hand: None }
    }

    /// A clock that stands still at `wall` until somebody moves it or sleeps by it: a sleep ends at once, and its time has
    /// passed. For one caller at a time.
    pub fn by_hand(wall: Timestamp) -> Self {
        let first = Anchor { lab: LabTime::ZERO, real: Instant::now(), wall, speed: 1.0 };
        let hand = Some(Mutex::new(LabTime::ZERO));
        Clock { anchors: Mutex::new(vec![first]), changed: tokio::sync::Notify::new(), hand }
    }

    /// Moves a clock that goes by hand on to a later time; any other goes by itself.
    pub fn move_to(&self, at: LabTime) {
        if let Some(hand) = &self.hand {
            let mut hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
            *hand = hand.max(at);
        }
    }

    /// Lab time now.
    pub fn now(&self) -> LabTime {
        if let Some(hand) = &self.hand {
            return *hand.lock().unwrap_or_else(PoisonError::into_inner);
        }
        self.with(|anchors| anchors.last().map_or(LabTime::ZERO, |a| a.lab + a.real.elapsed().mul_f64(a.speed)))
    }

    /// How many lab seconds pass in a real one.
    pub fn speed(&self) -> f64 {
        self.with(|anchors| anchors.last().map_or(1.0, |a| a.speed))
    }

    /// Changes the speed from now on; whoever sleeps in lab time reckons anew.
    pub fn set_speed(&self, speed: f64) {
        let lab = self.now();
        self.with(|anchors| {
            anchors.push(Anchor { lab, real: Instant::now(), wall: Timestamp::now(), speed: sane(speed) });
        });
        self.changed.notify_waiters();
    }

    /// The wall time of a point in lab time: what a service writes as the time of a change.
    pub fn stamp(&self, at: LabTime) -> Timestamp {
        self.with(|anchors| {
            let anchor = anchors.iter().rev().find(|a| a.lab <= at).or(anchors.first());
            anchor.map_or_else(Timestamp::now, |a| {
                a.wall.checked_add((at - a.lab).div_f64(a.speed)).unwrap_or(Timestamp::MAX)
            })
        })
    }

    /// Sleeps until lab time reaches `at`, whatever the speed does meanwhile.
    pub async fn sleep_until(&self, at: LabTime) {
        self.move_to(at);
        loop {
            let changed = self.changed.notified();
            let left = at - self.now();
            if left.is_zero() {
                return;
            }
            // A little more than nothing, so that rounding cannot spin.
            let real = left.div_f64(self.speed()).max(Duration::from_millis(1));
            tokio::select! {
                () = tokio::time::sleep(real) => {}
                () = changed => {}
            }
        }
    }

    /// Sleeps for a span of lab time.
    pub async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now() + span).await;
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Anchor>) -> T) -> T {
        f(&mut self.anchors.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sane(speed: f64) -> f64 {
    if speed.is_finite() && speed > 0.0 { speed.clamp(0.001, 100_000.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_faster_clock_wakes_whoever_sleeps() {
        let clock = std::sync::Arc::new(Clock::start(1.0));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(3600)).await }
        });
        tokio::task::yield_now().await;
        clock.set_speed(100_000.0);
        tokio::time::timeout(Duration::from_secs(5), sleeper).await.unwrap().unwrap();
        assert!(clock.now() >= LabTime(Duration::from_secs(3600)));
    }

    #[tokio::test]
    async fn a_clock_that_goes_by_hand_stands_still_until_somebody_sleeps_by_it() {
        let wall = Timestamp::from_second(1_790_000_000).unwrap();
        let clock = Clock::by_hand(wall);
        assert_eq!((clock.now(), clock.stamp(clock.now())), (LabTime::ZERO, wall));
        clock.sleep(Duration::from_secs(7200)).await;
        assert_eq!(clock.stamp(clock.now()).as_second(), wall.as_second() + 7200);
        clock.move_to(LabTime(Duration::from_secs(10)));
        assert_eq!(clock.now(), LabTime(Duration::from_secs(7200)), "never back");
    }

    #[test]
    fn a_stamp_is_wall_time_whatever_the_speed() {
        let clock = Clock::start(60.0);
        let ahead = clock.stamp(clock.now() + Duration::from_secs(60));
        let span = ahead.duration_since(Timestamp::now()).as_secs_f64();
        assert!((0.5..1.5).contains(&span), "{span}");
    }
}
