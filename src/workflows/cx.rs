//! The port between a workflow and whatever engine runs it: all that a workflow may touch.
//!
//! A workflow is an `async fn` over a [`Cx`]. It takes time, results and signals only from there, so that it can be
//! replayed from a journal (G7). A command is issued when the method is **called**, not when its future is first polled,
//! so that the order of commands is the order of the text. Futures are not `Send`: a workflow lives on one thread.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::event::{Observation, WaitReason};
use crate::domain::failure::Failure;
use crate::domain::phase::Phase;

/// A named step with side effects. `NAME` is a contract of the journal and never changes.
pub trait Activity: 'static {
    const NAME: &'static str;
    /// The phase that its failures are recorded against, unless the input says otherwise.
    type In: Serialize + DeserializeOwned + Send + Sync + 'static;
    type Out: Serialize + DeserializeOwned + Send + Sync + 'static;
}

/// How an activity is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityOptions {
    /// The phase that it belongs to: timeouts and unforeseen errors are recorded against it.
    pub phase: Phase,
    /// Time limit of one attempt.
    pub timeout: Duration,
    pub retry: RetryPolicy,
    /// Carried out although the run was cancelled: for compensation and clean-up.
    pub survives_cancel: bool,
}

/// When a failed activity is tried again (G11). Only failures that are `retryable` ever are.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Total attempts, the first included.
    pub max_attempts: u32,
    pub first: Duration,
    pub factor: f64,
    pub max: Duration,
}

impl RetryPolicy {
    /// The policy of the house: exponential from two seconds to one minute.
    pub fn attempts(max_attempts: u32) -> Self {
        RetryPolicy {
            max_attempts: max_attempts.max(1),
            first: Duration::from_secs(2),
            factor: 2.0,
            max: Duration::from_secs(60),
        }
    }

    /// The wait before attempt `next` (2 is the first retry).
    pub fn wait_before(&self, next: u32) -> Duration {
        let factor = self.factor.powi(next.saturating_sub(2).min(64) as i32);
        self.first.mul_f64(factor.min(1e9)).min(self.max)
    }
}

/// Why an activity brought no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ActivityError {
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("cancelled")]
    Cancelled,
}

/// The run was cancelled while this was awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

impl From<Cancelled> for ActivityError {
    fn from(_: Cancelled) -> Self {
        ActivityError::Cancelled
    }
}

/// What an operator says to a run under way. Cancelling is not a signal: it ends every await.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "signal")]
pub enum Signal {
    /// Look again now instead of waiting for the timer.
    LookNow,
}

/// Everything that a workflow may touch.
pub trait Cx: Clone {
    /// Asks for an activity. Its intent is journaled before it starts, its outcome after it ends.
    fn activity<A: Activity>(
        &self,
        input: A::In,
        options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<Self, A>;

    /// Waits until a time of the journal; `reason` is what stands on the screen meanwhile.
    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<Self>;

    /// The next thing an operator says.
    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<Self>;

    /// Time of the event that is being handled. The same at every replay.
    fn now(&self) -> Timestamp;

    /// Says where the run is. For the views; never read by a workflow.
    fn report(&self, observation: Observation);

    /// Whether a run takes the new path of a change: yes for new runs, as recorded for older ones.
    fn version(&self, change: &'static str) -> bool;

    /// A number in `0.0..1.0` for jitter: the same at every replay of the same run and place.
    fn jitter(&self, place: &str) -> f64;
}
