//! Waiting between two looks: growing pauses up to a deadline of the journal.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::event::{WaitKind, WaitReason};
use crate::domain::phase::Phase;
use crate::workflows::cx::{Cancelled, Cx};

/// How long something is looked at again, and how often. Made once for a wait; its deadline is fixed from then on, so a
/// restart neither shortens nor repeats it (G6).
#[derive(Debug, Clone)]
pub struct Patience {
    began: Timestamp,
    deadline: Timestamp,
    /// Since when the look is under way that is judged next.
    looks_since: Timestamp,
    next: Duration,
    max: Duration,
    /// Share of each pause that is left to chance, so that hosts do not knock together.
    jitter: f64,
    waits: u32,
}

impl Patience {
    /// Until `budget` from `now`, with pauses that double from `first` to `max`.
    pub fn until(now: Timestamp, budget: Duration, first: Duration, max: Duration) -> Self {
        let deadline = now.checked_add(budget).unwrap_or(Timestamp::MAX);
        Patience { began: now, deadline, looks_since: now, next: first, max: max.max(first), jitter: 0.0, waits: 0 }
    }

    /// The same, ending no later than `limit` (C1: a lock is waited for no longer than the clean may take).
    pub fn clamped(mut self, limit: Option<Timestamp>) -> Self {
        if let Some(limit) = limit {
            self.deadline = self.deadline.min(limit);
        }
        self
    }

    /// The same, each pause shorter or longer by up to this share.
    pub fn jittered(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// How long it has lasted so far.
    pub fn spent<C: Cx>(&self, cx: &C) -> Duration {
        Duration::try_from(cx.now().duration_since(self.began)).unwrap_or_default()
    }

    /// When patience ends.
    pub fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// Pauses before the next look. `false`: the deadline has passed, and no look is owed any more. The last pause ends
    /// at the deadline itself, so that a late change is still seen; and a look that was begun before the deadline and came
    /// back behind it, with a suspend in between, is made again at once: what it saw may be hours old (C-47).
    pub async fn wait<C: Cx>(&mut self, cx: &C, phase: Phase, kind: WaitKind, text: &str) -> Result<bool, Cancelled> {
        let now = cx.now();
        if now >= self.deadline {
            let owed = self.looks_since < self.deadline;
            self.looks_since = now;
            return Ok(owed);
        }
        let wake = self.next_look(cx, now);
        let reason = WaitReason { phase, kind, text: text.to_owned(), gives_up_at: Some(self.deadline) };
        cx.sleep_until(wake, reason).await?;
        self.looks_since = cx.now();
        Ok(true)
    }

    /// When the next look is due, after which the pause has grown.
    fn next_look<C: Cx>(&mut self, cx: &C, now: Timestamp) -> Timestamp {
        let mut pause = self.next;
        if self.jitter > 0.0 {
            let place = format!("{}#{}", self.began, self.waits);
            pause = pause.mul_f64(1.0 + self.jitter * (2.0 * cx.jitter(&place) - 1.0));
        }
        self.waits += 1;
        self.next = (self.next * 2).min(self.max);
        now.checked_add(pause).unwrap_or(self.deadline).min(self.deadline)
    }
}
