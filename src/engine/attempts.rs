//! Carries out one activity: attempts with their time limits, the waits between them, and their end (G11, G12).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use super::driver::Message;
use super::ports::{Call, Dispatch};
use super::replay::internal;
use super::slots::Slots;
use super::timers::Timers;
use super::trial::Dock;
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::text::panic_message;
use crate::workflows::cx::ActivityOptions;

/// How long an attempt that is no longer wanted may take to come to an end by itself; then it is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// What all activities share.
pub(super) struct Hands {
    pub dispatch: Arc<dyn Dispatch>,
    pub clock: Arc<dyn Clock>,
    pub timers: Timers,
    /// One place an attempt at work. Waiting between attempts takes none.
    pub slots: Arc<Slots>,
    /// Where steps go on of which one may have ended the program.
    pub dock: Dock,
    /// The program stops: nothing is cancelled, all goes on at the next start.
    pub halt: CancellationToken,
}

/// One activity of one run.
pub(super) struct Job {
    pub run: RunId,
    /// Whose share of the places at work it takes.
    pub site: Arc<str>,
    pub seq: u32,
    pub name: &'static str,
    pub input: Value,
    pub options: ActivityOptions,
    /// Total attempts; the run's own number goes before the policy's.
    pub max_attempts: u32,
    /// How long it waits for a service that does not answer before that costs attempts.
    pub outage: Duration,
    /// What the observations say of it from before a restart.
    pub past: Past,
    /// The run is cancelled, or gave the activity up.
    pub cancel: CancellationToken,
}

/// Attempts that failed before a restart: they count, and the wait after the last of them goes on (G6, G11).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Past {
    /// Attempts that count.
    pub failed: u32,
    pub retry_at: Option<Timestamp>,
    /// Since when a service that many hosts share does not answer, and how often it was asked since.
    outage: Option<(Timestamp, u32)>,
}

impl Past {
    /// Takes in that an attempt failed so. It costs one of the attempts, but for a service that does not answer (C-49).
    pub fn take(&mut self, at: Timestamp, failure: &Failure, patience: Duration) {
        if !failure.retryable || !failure.code.is_outage() {
            self.outage = None;
            self.failed += 1;
            return;
        }
        let (since, times) = self.outage.unwrap_or((at, 0));
        self.outage = Some((since, times + 1));
        if since.checked_add(patience).is_ok_and(|end| at >= end) {
            self.failed += 1;
        }
    }

    /// Which attempt of a row of failures comes next, for the pause before it.
    fn next_in_row(&self) -> u32 {
        self.outage.map_or(self.failed, |(_, times)| times.max(self.failed)) + 1
    }
}

/// How an activity ended.
#[derive(Debug)]
pub(super) enum Ended {
    Done(Value),
    Failed(Box<Failure>),
    /// Stopped because it was cancelled or given up. It may have happened, whole or in part.
    Cancelled,
    /// Stopped because the program stops: nothing of it is journaled, and it is started again.
    Halted,
}

impl Hands {
    /// Starts it; its end comes as a message, also if the code that carries it out breaks.
    pub(super) fn spawn(
        self: &Arc<Self>,
        runtime: &tokio::runtime::Handle,
        job: Job,
        say: mpsc::UnboundedSender<Message>,
    ) {
        let hands = Arc::clone(self);
        let (seq, phase) = (job.seq, job.options.phase);
        runtime.spawn(async move {
            let work = AssertUnwindSafe(hands.carry_out(job, &say));
            let ended = work.catch_unwind().await.unwrap_or_else(|panic| {
                Ended::Failed(Box::new(internal(phase, format!("the engine broke: {}", panic_message(&*panic)))))
            });
            // The driver goes only after all its activities have ended, or with the whole program.
            say.send(Message::Ended { seq, at: hands.clock.now(), ended }).ok();
        });
    }

    async fn carry_out(&self, job: Job, say: &mpsc::UnboundedSender<Message>) -> Ended {
        let mut past = job.past;
        loop {
            let stopped = self.stopped(&job);
            let ready = async {
                if let Some(at) = past.retry_at {
                    self.timers.until(at).await;
                }
                self.slots.acquire(&job.site).await
            };
            let slot = tokio::select! {
                biased;
                ended = stopped => return ended,
                slot = ready => slot,
            };
            let attempt = past.failed + 1;
            let max_attempts = job.max_attempts;
            self.observe(say, Observation::Attempt { seq: job.seq, name: job.name.to_owned(), attempt, max_attempts });
            let outcome = self.attempt(&job, attempt, say).await;
            drop(slot);
            let failure = match outcome {
                Ok(Ended::Failed(failure)) => failure,
                Ok(ended) => return ended,
                Err(failure) => failure,
            };
            let now = self.clock.now();
            past.take(now, &failure, job.outage);
            if !failure.retryable || past.failed >= max_attempts {
                return Ended::Failed(failure);
            }
            let wait = job.options.retry.wait_before(past.next_in_row());
            let at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
            self.observe(say, Observation::AttemptFailed { seq: job.seq, attempt, failure, retry_at: at });
            past.retry_at = Some(at);
        }
    }

    /// One attempt within its time limit. `Err`: it failed by itself.
    async fn attempt(
        &self,
        job: &Job,
        attempt: u32,
        say: &mpsc::UnboundedSender<Message>,
    ) -> Result<Ended, Box<Failure>> {
        let phase = job.options.phase;
        let stop = CancellationToken::new();
        // Also when this is dropped: whatever the attempt has spawned is told.
        let _stop_at_end = stop.clone().drop_guard();
        let (teller, clock) = (say.clone(), Arc::clone(&self.clock));
        let call = Call {
            run: job.run,
            seq: job.seq,
            attempt,
            stop: stop.clone(),
            sink: Arc::new(move |observation| {
                // A run that has ended listens no more.
                teller.send(Message::Observed { at: clock.now(), observation }).ok();
            }),
        };
        // The call itself may panic before it gives a future.
        let work = async { self.dispatch.run(job.name, job.input.clone(), call).await };
        let mut work = std::pin::pin!(AssertUnwindSafe(work).catch_unwind());
        let told = |outcome: Result<Result<Value, Failure>, Box<dyn std::any::Any + Send>>| match outcome {
            Ok(outcome) => outcome.map_err(Box::new),
            Err(panic) => {
                let message = format!("'{}' broke: {}", job.name, panic_message(&*panic));
                Err(Box::new(internal(phase, message)))
            }
        };
        let ended = tokio::select! {
            outcome = &mut work => return told(outcome).map(Ended::Done),
            () = tokio::time::sleep(job.options.timeout) => None,
            ended = self.stopped(job) => Some(ended),
        };
        stop.cancel();
        // What it brings to an end within the grace has happened and counts; an error on the way out tells nothing.
        let last = tokio::time::timeout(GRACE, &mut work).await.ok();
        match (last, ended) {
            (Some(Ok(Ok(output))), _) => Ok(Ended::Done(output)),
            (_, Some(ended)) => Ok(ended),
            (_, None) => Err(Box::new(timed_out(job, attempt))),
        }
    }

    /// Waits until the activity is not to go on.
    async fn stopped(&self, job: &Job) -> Ended {
        tokio::select! {
            biased;
            () = job.cancel.cancelled() => Ended::Cancelled,
            () = self.halt.cancelled() => Ended::Halted,
        }
    }

    fn observe(&self, say: &mpsc::UnboundedSender<Message>, observation: Observation) {
        // As above: a run that has ended listens no more.
        say.send(Message::Observed { at: self.clock.now(), observation }).ok();
    }
}

fn timed_out(job: &Job, attempt: u32) -> Failure {
    Failure::new(
        FailureCode::ActivityTimeout,
        job.options.phase,
        format!(
            "'{}' did not end within {:?} (attempt {attempt} of {})",
            job.name, job.options.timeout, job.max_attempts
        ),
        format!("look at the system that '{}' talks to: is it slow, or does it hang? then retry", job.name),
    )
}
