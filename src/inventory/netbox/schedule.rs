//! Decides what an observer reads next: the longest overdue of its cadences, the queue before all of them.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::settings::NetboxSettings;

/// After a read that failed nothing is asked for so long, at most: NetBox may be starting.
const BREATHER: Duration = Duration::from_secs(10);
/// No cadence is faster, whatever the configuration says.
const FASTEST: Duration = Duration::from_millis(10);

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// All devices.
    Resync,
    /// What is in the queue.
    Queue,
    /// Devices that changed.
    Delta,
}

/// When each is due.
#[derive(Debug)]
pub(super) struct Schedule {
    resync: (Instant, Duration),
    delta: (Instant, Duration),
    poll: Duration,
    /// Nothing is asked before.
    hold: Instant,
}

impl Schedule {
    pub fn start(settings: &NetboxSettings, now: Instant) -> Self {
        let (poll, resync) = (settings.poll.max(FASTEST), settings.resync.max(FASTEST));
        Schedule { resync: (now, resync), delta: (now + poll, poll), poll, hold: now }
    }

    /// Makes one due now.
    pub fn want(&mut self, task: Task, now: Instant) {
        match task {
            Task::Resync => self.resync.0 = now,
            Task::Delta => self.delta.0 = now,
            Task::Queue => {}
        }
    }

    /// Takes another cadence for deltas; `None`: the configured one. A shorter one counts at once.
    pub fn stretch(&mut self, poll: Option<Duration>, now: Instant) {
        let poll = poll.map_or(self.poll, |poll| poll.max(FASTEST));
        if poll != self.delta.1 {
            self.delta = (self.delta.0.min(now + poll), poll);
        }
    }

    /// What is to be read now.
    pub fn due(&self, now: Instant, queued: bool) -> Option<Task> {
        if now < self.hold {
            return None;
        }
        if self.resync.0 <= now {
            Some(Task::Resync)
        } else if queued {
            Some(Task::Queue)
        } else {
            (self.delta.0 <= now).then_some(Task::Delta)
        }
    }

    /// When something is due, if nothing wakes the observer before.
    pub fn next(&self, queued: bool) -> Instant {
        let soonest = if queued { self.hold } else { self.resync.0.min(self.delta.0) };
        soonest.max(self.hold)
    }

    /// One was read, or not. What failed stays due.
    pub fn ended(&mut self, task: Task, well: bool, now: Instant) {
        if !well {
            self.hold = now + self.poll.min(BREATHER);
            return;
        }
        match task {
            Task::Resync => {
                self.resync.0 = now + self.resync.1;
                // It has read whatever a delta would.
                self.delta.0 = now + self.delta.1;
            }
            Task::Delta => self.delta.0 = now + self.delta.1,
            Task::Queue => {}
        }
    }
}
