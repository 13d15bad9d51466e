//! The context port on this engine: commands are matched with the journal, or written to it, at the moment of the call.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::history::{Divergence, History, short, words};
use crate::domain::event::{Body, Event, Observation, WaitReason};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::workflows::cx::{Activity, ActivityError, ActivityOptions, Cancelled, Cx, Signal};

/// A workflow's context. All clones share one state; neither leaves the engine's thread.
#[derive(Clone)]
pub struct LocalCx {
    state: Rc<RefCell<State>>,
}

/// What a workflow and its driver share.
pub(super) struct State {
    run: RunId,
    /// Time of the event that is being handled.
    now: Timestamp,
    /// What the journal has still to say. While it isn't over, the run is replayed.
    pub history: History,
    /// Observations behind the last event of the journal: a report that stands there already is not made twice.
    tail: Vec<Observation>,
    seq: u32,
    /// Commands without an outcome.
    pub open: BTreeMap<u32, Open>,
    /// Commands whose effect is still to be started, in their order.
    pub fresh: Vec<u32>,
    /// Commands whose future was dropped before it was ready.
    pub abandoned: Vec<u32>,
    outcomes: BTreeMap<u32, Outcome>,
    signals: VecDeque<Signal>,
    /// Futures that wait for a signal.
    listeners: usize,
    pub cancelled: bool,
    /// What is to be journaled, in the order of the calls.
    pub issued: Vec<Body>,
    /// What was answered for each change so far.
    versions: BTreeMap<String, bool>,
    pub diverged: Option<Divergence>,
    /// The phase that was last spoken of: an error without one of its own is recorded against it.
    pub phase: Phase,
}

/// A command without an outcome.
pub(super) enum Open {
    Activity { name: &'static str, input: Value, options: ActivityOptions, wanted: bool },
    Timer { until: Timestamp },
}

/// How a command ended.
enum Outcome {
    Done(Value),
    Failed(Box<Failure>),
    Cancelled,
    Fired,
}

impl State {
    pub(super) fn new(run: RunId, submitted_at: Timestamp, history: History, tail: Vec<Observation>) -> Self {
        State {
            run,
            now: submitted_at,
            history,
            tail,
            seq: 0,
            open: BTreeMap::new(),
            fresh: Vec::new(),
            abandoned: Vec::new(),
            outcomes: BTreeMap::new(),
            signals: VecDeque::new(),
            listeners: 0,
            cancelled: false,
            issued: Vec::new(),
            versions: BTreeMap::new(),
            diverged: None,
            phase: Phase::ResolveIronicInstance,
        }
    }

    /// Lets an event become known. `false`: the code never asked for it.
    pub(super) fn apply(&mut self, at: Timestamp, event: &Event) -> bool {
        self.now = at;
        let (seq, outcome) = match event {
            Event::ActivityDone { seq, output } => (*seq, Outcome::Done(output.clone())),
            Event::ActivityFailed { seq, failure } => (*seq, Outcome::Failed(failure.clone())),
            Event::ActivityCancelled { seq } => (*seq, Outcome::Cancelled),
            Event::TimerFired { seq } => (*seq, Outcome::Fired),
            Event::Signalled { signal } => {
                let Ok(signal) = serde_json::from_value(signal.clone()) else { return false };
                self.signals.push_back(signal);
                return true;
            }
            Event::CancelRequested { .. } => {
                self.cancelled = true;
                return true;
            }
            Event::Submitted { .. }
            | Event::ActivityScheduled { .. }
            | Event::TimerSet { .. }
            | Event::Version { .. }
            | Event::Finished { .. } => return false,
        };
        let fits = match self.open.get(&seq) {
            Some(Open::Activity { .. }) => !matches!(outcome, Outcome::Fired),
            Some(Open::Timer { .. }) => matches!(outcome, Outcome::Fired),
            None => false,
        };
        if fits && let Some(Open::Activity { wanted: true, .. } | Open::Timer { .. }) = self.open.remove(&seq) {
            self.outcomes.insert(seq, outcome);
        }
        fits
    }

    /// Ends the time in which reports are compared with what the journal has already.
    pub(super) fn go_live(&mut self) {
        self.tail.clear();
    }

    /// Whether anything can still wake the workflow.
    pub(super) fn can_go_on(&self) -> bool {
        !self.open.is_empty() || self.listeners > 0
    }

    /// Matches a command with the journal, or writes it there; `false` where the journal has something else.
    fn command(&mut self, matches: impl FnOnce(&Event) -> bool, event: impl FnOnce() -> Event) -> bool {
        if self.diverged.is_some() {
            return false;
        }
        self.skip_versions();
        match self.history.peek() {
            None => {
                self.issued.push(Body::Journal(event()));
                true
            }
            Some(past) if matches(&past.event) => {
                self.history.take();
                true
            }
            Some(past) => {
                let (n, journal) = (past.n, words(&past.event));
                self.diverged = Some(Divergence { n, journal, code: format!("asks for {}", words(&event())) });
                false
            }
        }
    }

    /// Passes over changes that the code does not ask for here any more; should it ask later, the answer is kept.
    pub(super) fn skip_versions(&mut self) {
        while let Some(Event::Version { change, taken }) = self.history.peek().map(|past| &past.event) {
            self.versions.insert(change.clone(), *taken);
            self.history.take();
        }
    }

    fn next_seq(&mut self) -> u32 {
        self.seq += 1;
        self.seq
    }
}

impl LocalCx {
    pub(super) fn new(state: Rc<RefCell<State>>) -> Self {
        LocalCx { state }
    }

    /// Issues an activity; the future's place in the run, or what it gives at once.
    fn schedule<A: Activity>(&self, input: &A::In, options: ActivityOptions) -> Result<u32, ActivityError> {
        let mut state = self.state.borrow_mut();
        if state.cancelled && !options.survives_cancel {
            return Err(ActivityError::Cancelled);
        }
        let phase = options.phase;
        state.phase = phase;
        let input = serde_json::to_value(input).map_err(|e| {
            let message = format!("the input of '{}' can't be written down: {e}", A::NAME);
            ActivityError::Failed(internal(phase, message))
        })?;
        let seq = state.next_seq();
        let mut journaled = None;
        let accepted = state.command(
            |past| match past {
                Event::ActivityScheduled { seq: s, name, input: old, .. } => {
                    journaled = Some(old.clone());
                    *s == seq && name == A::NAME && super::history::covers(old, &input)
                }
                _ => false,
            },
            || Event::ActivityScheduled { seq, name: A::NAME.to_owned(), phase, input: input.clone() },
        );
        if accepted {
            // What was asked for stands in the journal: a repetition asks for the very same.
            let input = journaled.unwrap_or(input);
            state.open.insert(seq, Open::Activity { name: A::NAME, input, options, wanted: true });
            state.fresh.push(seq);
        }
        Ok(seq)
    }
}

impl Cx for LocalCx {
    fn activity<A: Activity>(
        &self,
        input: A::In,
        options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<A> {
        let phase = options.phase;
        let place = match self.schedule::<A>(&input, options) {
            Ok(seq) => Place::waiting(&self.state, seq),
            Err(error) => Place::Known(error),
        };
        ActivityFuture::<A> { place, phase, output: PhantomData }
    }

    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<> {
        let mut state = self.state.borrow_mut();
        if state.cancelled {
            return SleepFuture { waiting: None };
        }
        state.phase = reason.phase;
        let seq = state.next_seq();
        let mut until = deadline;
        let accepted = state.command(
            |past| match past {
                // The journal's deadline stands, also where a newer version would set another one (G6).
                Event::TimerSet { seq: s, until: old, .. } if *s == seq => {
                    until = *old;
                    true
                }
                _ => false,
            },
            || Event::TimerSet { seq, until: deadline, reason },
        );
        if accepted {
            state.open.insert(seq, Open::Timer { until });
            state.fresh.push(seq);
        }
        drop(state);
        SleepFuture { waiting: Some(Waiting { state: Rc::clone(&self.state), seq }) }
    }

    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<> {
        self.state.borrow_mut().listeners += 1;
        SignalFuture { state: Rc::clone(&self.state) }
    }

    fn now(&self) -> Timestamp {
        self.state.borrow().now
    }

    fn report(&self, observation: Observation) {
        let mut state = self.state.borrow_mut();
        if let Observation::PhaseStarted { phase, .. } = &observation {
            state.phase = *phase;
        }
        if !state.history.is_over() || state.diverged.is_some() {
            return;
        }
        match state.tail.iter().position(|told| *told == observation) {
            Some(place) => {
                state.tail.remove(place);
            }
            None => state.issued.push(Body::Observation(observation)),
        }
    }

    fn version(&self, change: &'static str) -> bool {
        let mut state = self.state.borrow_mut();
        if let Some(taken) = state.versions.get(change) {
            return *taken;
        }
        let taken = match state.history.peek().map(|past| &past.event) {
            None => {
                state.issued.push(Body::Journal(Event::Version { change: change.to_owned(), taken: true }));
                true
            }
            Some(Event::Version { change: named, taken }) if named == change => {
                let taken = *taken;
                state.history.take();
                taken
            }
            // The run passed here before the change existed: it keeps to the old path, here and everywhere.
            Some(_) => false,
        };
        state.versions.insert(change.to_owned(), taken);
        taken
    }

    fn jitter(&self, place: &str) -> f64 {
        let run = self.state.borrow().run;
        let digest = Sha256::new().chain_update(run.0.as_bytes()).chain_update(place.as_bytes()).finalize();
        let bits = digest[..8].iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        // The 53 bits that a double holds exactly.
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// An error that nobody foresaw (G12).
pub(super) fn internal(phase: Phase, message: impl Into<String>) -> Failure {
    Failure::new(
        FailureCode::InternalError,
        phase,
        message,
        "report this to the developers of muster together with the run's records, then retry",
    )
}

/// A command's place in the run. Dropped before its outcome was taken, it gives the command up.
struct Waiting {
    state: Rc<RefCell<State>>,
    seq: u32,
}

impl Waiting {
    fn take(&self) -> Option<Outcome> {
        self.state.borrow_mut().outcomes.remove(&self.seq)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.outcomes.remove(&self.seq);
        match state.open.get_mut(&self.seq) {
            Some(Open::Activity { wanted, .. }) => *wanted = false,
            Some(Open::Timer { .. }) => {
                state.open.remove(&self.seq);
            }
            None => return,
        }
        state.abandoned.push(self.seq);
    }
}

enum Place {
    /// Decided at the call.
    Known(ActivityError),
    Waiting(Waiting),
    Taken,
}

impl Place {
    fn waiting(state: &Rc<RefCell<State>>, seq: u32) -> Self {
        Place::Waiting(Waiting { state: Rc::clone(state), seq })
    }
}

struct ActivityFuture<A: Activity> {
    place: Place,
    phase: Phase,
    output: PhantomData<fn() -> A>,
}

impl<A: Activity> Future for ActivityFuture<A> {
    type Output = Result<A::Out, ActivityError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match std::mem::replace(&mut self.place, Place::Taken) {
            Place::Known(error) => return Poll::Ready(Err(error)),
            Place::Taken => return Poll::Pending,
            Place::Waiting(waiting) => match waiting.take() {
                Some(outcome) => outcome,
                None => {
                    self.place = Place::Waiting(waiting);
                    return Poll::Pending;
                }
            },
        };
        Poll::Ready(match outcome {
            Outcome::Done(output) => A::Out::deserialize_from(output).map_err(|(cause, output)| {
                let message = format!("the result of '{}' can't be read ({cause}): {output}", A::NAME);
                ActivityError::Failed(internal(self.phase, message))
            }),
            Outcome::Failed(failure) => Err(ActivityError::Failed(*failure)),
            Outcome::Cancelled | Outcome::Fired => Err(ActivityError::Cancelled),
        })
    }
}

/// Reads an output, or says what was there.
trait DeserializeFrom: Sized {
    fn deserialize_from(output: Value) -> Result<Self, (serde_json::Error, String)>;
}

impl<T: serde::de::DeserializeOwned> DeserializeFrom for T {
    fn deserialize_from(output: Value) -> Result<Self, (serde_json::Error, String)> {
        T::deserialize(&output).map_err(|cause| (cause, short(&output)))
    }
}

struct SleepFuture {
    /// `None`: cancelled before it began.
    waiting: Option<Waiting>,
}

impl Future for SleepFuture {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(waiting) = &self.waiting else { return Poll::Ready(Err(Cancelled)) };
        if waiting.take().is_some() {
            return Poll::Ready(Ok(()));
        }
        if waiting.state.borrow().cancelled {
            self.waiting = None;
            return Poll::Ready(Err(Cancelled));
        }
        Poll::Pending
    }
}

struct SignalFuture {
    state: Rc<RefCell<State>>,
}

impl Future for SignalFuture {
    type Output = Result<Signal, Cancelled>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.state.borrow_mut();
        match state.signals.pop_front() {
            Some(signal) => Poll::Ready(Ok(signal)),
            None if state.cancelled => Poll::Ready(Err(Cancelled)),
            None => Poll::Pending,
        }
    }
}

impl Drop for SignalFuture {
    fn drop(&mut self) {
        self.state.borrow_mut().listeners -= 1;
    }
}
