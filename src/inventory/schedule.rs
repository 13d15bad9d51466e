//! Decides what an observer reads next: of what is due the first of its list, with a breather after a read that failed.

use std::time::Duration;

use tokio::time::Instant;

/// After a read that failed nothing is asked for so long, at most: NetBox may be starting.
const BREATHER: Duration = Duration::from_secs(10);
/// No cadence is faster, whatever the configuration says.
const FASTEST: Duration = Duration::from_millis(10);

/// When each task of an observer is due.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    /// What comes before what, when both are due.
    entries: Vec<Entry<T>>,
    /// Nothing is asked before.
    hold: Instant,
    breather: Duration,
}

#[derive(Debug)]
struct Entry<T> {
    task: T,
    every: Duration,
    /// The configured cadence, whatever holds for now.
    set: Duration,
    at: Instant,
}

impl<T: Copy + PartialEq> Schedule<T> {
    /// Nothing is due before `add` says so. `patience`: the cadence that bounds the breather.
    pub fn new(now: Instant, patience: Duration) -> Self {
        Schedule { entries: Vec::new(), hold: now, breather: patience.clamp(FASTEST, BREATHER) }
    }

    /// A task after those that were added before, due for the first time at `at`.
    pub fn add(mut self, task: T, every: Duration, at: Instant) -> Self {
        let every = every.max(FASTEST);
        self.entries.push(Entry { task, every, set: every, at });
        self
    }

    /// Makes one due now.
    pub fn want(&mut self, task: T, now: Instant) {
        self.entries.iter_mut().filter(|entry| entry.task == task).for_each(|entry| entry.at = now);
    }

    /// Takes another cadence for a task; `None`: the configured one. A shorter one counts at once.
    pub fn stretch(&mut self, task: T, every: Option<Duration>, now: Instant) {
        for entry in self.entries.iter_mut().filter(|entry| entry.task == task) {
            let every = every.map_or(entry.set, |every| every.max(FASTEST));
            if every != entry.every {
                (entry.every, entry.at) = (every, entry.at.min(now + every));
            }
        }
    }

    /// Whether anything may be asked now.
    pub fn may_ask(&self, now: Instant) -> bool {
        now >= self.hold
    }

    /// What is to be read now.
    pub fn due(&self, now: Instant) -> Option<T> {
        let mut entries = self.entries.iter().filter(|entry| entry.at <= now && self.may_ask(now));
        entries.next().map(|entry| entry.task)
    }

    /// When something is due, if nothing wakes the observer before. `waiting`: something else waits for its turn.
    pub fn next(&self, waiting: bool) -> Instant {
        let soonest = self.entries.iter().map(|entry| entry.at).min().filter(|_| !waiting);
        soonest.map_or(self.hold, |at| at.max(self.hold))
    }

    /// One was read, and with it whatever these would read. What failed is due again after its next turn, so that a list
    /// that can't be read holds up no other.
    pub fn ended(&mut self, task: T, covers: &[T], well: bool, now: Instant) {
        if !well {
            self.hold = now + self.breather;
            let failed = self.entries.iter_mut().filter(|entry| entry.task == task);
            failed.for_each(|entry| entry.at = now + entry.every.min(2 * self.breather));
            return;
        }
        let read = |entry: &&mut Entry<T>| entry.task == task || covers.contains(&entry.task);
        self.entries.iter_mut().filter(read).for_each(|entry| entry.at = now + entry.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_of_what_is_due_is_read_and_covers_what_it_has_read() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, MINUTE).add("all", 15 * MINUTE, now).add("changes", MINUTE, now);
        assert_eq!(schedule.due(now), Some("all"));
        schedule.ended("all", &["changes"], true, now);
        assert_eq!((schedule.due(now), schedule.next(false)), (None, now + MINUTE));
        assert_eq!(schedule.due(now + MINUTE), Some("changes"));
        schedule.want("all", now);
        assert_eq!(schedule.due(now), Some("all"));
    }

    #[test]
    fn what_failed_is_asked_again_after_a_breather_and_after_the_others() {
        let now = Instant::now();
        for (patience, breather) in [(MINUTE, BREATHER), (Duration::from_secs(2), Duration::from_secs(2))] {
            let mut schedule = Schedule::new(now, patience).add("all", MINUTE, now).add("changes", MINUTE, now);
            schedule.ended("all", &[], false, now);
            assert_eq!((schedule.due(now), schedule.may_ask(now)), (None, false));
            assert_eq!((schedule.next(false), schedule.next(true)), (now + breather, now + breather));
            assert_eq!(schedule.due(now + breather), Some("changes"));
            assert_eq!(schedule.due(now + 2 * breather), Some("all"));
        }
    }
}
