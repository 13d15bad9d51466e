//! Suspects go on one at a time. When the program has died again and again, every run's step was at work and only one was to
//! blame: alone with the program, each shows whether it was that one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::driver::Driver;
use super::replay::Open;
use crate::domain::event::{Body, Observation};

/// A step whose start was lost so often with the program is a suspect.
const SUSPECT: u32 = 2;
/// A suspect that has been at work for so long lets the next one begin.
const LONG_ENOUGH: Duration = Duration::from_secs(10);

/// The one place for a suspect at work.
#[derive(Clone)]
pub(super) struct Dock {
    place: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Dock {
    pub(super) fn new() -> Dock {
        Dock { place: Arc::new(Semaphore::new(1)), waiting: Arc::default() }
    }

    /// Waits for the place; who comes first has it first. `None`: the engine is gone.
    pub(super) async fn enter(self) -> Option<OwnedSemaphorePermit> {
        let _waits = Waits::among(&self.waiting);
        self.place.acquire_owned().await.ok()
    }
}

/// One of those that wait, until it is dropped.
struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn among(waiting: &Arc<AtomicUsize>) -> Waits {
        waiting.fetch_add(1, Ordering::SeqCst);
        Waits(Arc::clone(waiting))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How far a run is with its trial.
pub(super) enum Trial {
    /// Nothing speaks against it.
    None,
    /// Others are on trial; nothing of it is started.
    Waits,
    /// It is at work and has the place.
    On { place: OwnedSemaphorePermit, since: Timestamp },
    /// It was at work for long enough; the place is given up once that is on the disk.
    Over(#[expect(dead_code, reason = "only held")] OwnedSemaphorePermit),
}

impl Driver {
    /// An activity is about to be begun again whose starts were lost with the program.
    pub(super) fn is_suspect(&self) -> bool {
        self.lost_starts >= SUSPECT && self.begins_again()
    }

    /// An activity that was at work when the program ended is to be begun.
    pub(super) fn begins_again(&self) -> bool {
        let state = self.state.borrow();
        state.fresh.iter().any(|seq| matches!(state.open.get(seq), Some(Open::Activity { .. })))
    }

    /// Comes back when a suspect has been at work for a while and others wait for their trial.
    pub(super) async fn long_enough(&self) {
        let Trial::On { since, .. } = &self.trial else { return };
        loop {
            let served = self.now().duration_since(*since).unsigned_abs();
            let left = LONG_ENOUGH.saturating_sub(served);
            if left.is_zero() && self.shared.hands.dock.waiting.load(Ordering::SeqCst) > 0 {
                return;
            }
            self.shared.hands.clock.pause(if left.is_zero() { LONG_ENOUGH } else { left }).await;
        }
    }

    /// The place goes to the next. That this one was not to blame, should the program end now, is part of its story.
    pub(super) fn outlive(&mut self) {
        if let Trial::On { place, .. } = std::mem::replace(&mut self.trial, Trial::None) {
            self.record(self.now(), Body::Observation(Observation::Outlived));
            self.trial = Trial::Over(place);
        }
    }

    /// Gives up the place when the step has ended, or was excused and that is on the disk.
    pub(super) fn leave_the_dock(&mut self) {
        let ended = matches!(self.trial, Trial::On { .. }) && self.effects.is_empty();
        if ended || matches!(self.trial, Trial::Over(_)) {
            self.trial = Trial::None;
        }
    }
}
