//! Drives one run: replays it from its journal, then lets it go on, event by event.
//!
//! A workflow has no effects of its own, so it may be polled on what is not on the disk yet; what must not happen before
//! the commit is everything that leaves the driver. So the events that came in, and what the workflow asked for because of
//! them, are one append; only then are effects started, records sent to the feed, and callers answered. A run whose append
//! fails is put aside and replayed later: the journal alone says where it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::task::noop_waker;
use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::attempts::{self, Ended, Hands, Job};
use super::handle::EngineError;
use super::history::{Divergence, History, Past, words};
use super::ports::{Journal, Workflows};
use super::replay::{LocalCx, Open, State, internal};
use super::timers::Timer;
use crate::domain::event::{Body, EnrollResult, Event, Observation, Outcome, RunRecord};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::request::EnrollRequest;
use crate::domain::text::panic_message;
use crate::store::StoreError;
use crate::workflows::cx::{ActivityError, Signal};

/// What a driver is told.
pub(super) enum Message {
    Observed { at: Timestamp, observation: Observation },
    Ended { seq: u32, at: Timestamp, ended: Ended },
    Fired { seq: u32, at: Timestamp },
    Signal { signal: Signal, answer: oneshot::Sender<Result<(), EngineError>> },
    Cancel { by: String, answer: oneshot::Sender<Result<(), EngineError>> },
}

/// What all drivers share.
pub(super) struct Shared {
    pub journal: Arc<dyn Journal>,
    pub workflows: Workflows,
    pub hands: Arc<Hands>,
    /// Where activities run: the runtime of the process, not the thread of the workflows.
    pub runtime: tokio::runtime::Handle,
    pub feed: broadcast::Sender<RunRecord>,
}

/// How driving a run ended.
#[derive(Debug)]
pub(super) enum End {
    Finished,
    /// The journal could not be written or read: the run goes on from it later.
    Aside(StoreError),
    /// Somebody else writes this journal: hands off.
    Lost(StoreError),
    /// The program stops.
    Halted,
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::JournalMoved { .. } | StoreError::RunFinished(_) | StoreError::NoRun(_) => End::Lost(error),
            _ => End::Aside(error),
        }
    }
}

type Answer = (oneshot::Sender<Result<(), EngineError>>, Result<(), EngineError>);
type WorkflowFuture = LocalBoxFuture<'static, Result<EnrollResult, ActivityError>>;

struct Driver {
    shared: Rc<Shared>,
    run: RunId,
    request: EnrollRequest,
    state: Rc<RefCell<State>>,
    /// `None` once it has given its result.
    workflow: Option<WorkflowFuture>,
    result: Option<Outcome>,
    /// Effects under way, by the place of their command.
    effects: BTreeMap<u32, Effect>,
    /// Attempts from before a restart.
    past: BTreeMap<u32, attempts::Past>,
    /// Who cancelled the run.
    cancelled_by: Option<String>,
    /// What the run has changed so far, for whoever cancels it (G9).
    changes: Vec<String>,
    batch: Vec<(Timestamp, Body)>,
    next_n: u64,
    say: mpsc::UnboundedSender<Message>,
}

enum Effect {
    Activity(CancellationToken),
    Timer(#[expect(dead_code, reason = "held: dropped, it never fires")] Timer),
}

/// Drives a run until it ends or can't go on. `after`: it was put aside because of this.
pub(super) async fn drive(
    shared: Rc<Shared>,
    run: RunId,
    say: mpsc::UnboundedSender<Message>,
    mut inbox: mpsc::UnboundedReceiver<Message>,
    after: Option<StoreError>,
) -> End {
    let mut driver = match Driver::load(shared, run, say) {
        Ok(driver) => driver,
        Err(end) => return end,
    };
    if let Some(error) = after {
        // Nothing is started before the store has taken a record again.
        let text = format!("goes on after: {error}");
        driver.observed(driver.now(), Observation::Note { system: "muster".to_owned(), text });
    }
    match driver.go(&mut inbox).await {
        Ok(end) | Err(end) => end,
    }
}

/// Ends a run without driving it.
pub(super) async fn finish(shared: &Shared, run: RunId, events: Vec<Event>) -> Result<(), StoreError> {
    let at = shared.hands.clock.now();
    let n = shared.journal.end(run)?;
    let events = events.into_iter().map(|event| (at, Body::Journal(event))).collect();
    for record in shared.journal.append(run, n, events).await? {
        // Nobody may be listening.
        shared.feed.send(record).ok();
    }
    Ok(())
}

impl Driver {
    /// Reads the journal and makes the workflow anew. What can't be read, or has no workflow here, ends the run.
    fn load(shared: Rc<Shared>, run: RunId, say: mpsc::UnboundedSender<Message>) -> Result<Driver, End> {
        let records = shared.journal.records(run)?;
        let next_n = records.len() as u64;
        let mut records = records.into_iter();
        let first = records.next().map(|record| (record.at, record.body));
        let Some((submitted_at, Body::Journal(Event::Submitted { workflow, request }))) = first else {
            let cause = "it does not begin with a submission".to_owned();
            return Err(StoreError::Record { run, n: 0, cause }.into());
        };
        let mut events = Vec::new();
        let mut tail = Vec::new();
        let mut past: BTreeMap<u32, attempts::Past> = BTreeMap::new();
        let mut cancelled_by = None;
        let mut changes = Vec::new();
        for RunRecord { n, at, body, .. } in records {
            match body {
                Body::Journal(Event::Finished { .. }) => return Err(End::Finished),
                Body::Journal(event) => {
                    if let Event::CancelRequested { by } = &event {
                        cancelled_by = Some(by.clone());
                    }
                    tail.clear();
                    events.push(Past { n, at, event });
                }
                Body::Observation(observation) => {
                    if let Observation::AttemptFailed { seq, retry_at, .. } = &observation {
                        let past = past.entry(*seq).or_default();
                        past.failed += 1;
                        past.retry_at = Some(*retry_at);
                    }
                    note_change(&mut changes, &observation);
                    tail.push(observation);
                }
            }
        }
        let history = History::new(events);
        let state = Rc::new(RefCell::new(State::new(run, submitted_at, history, tail)));
        let code = shared.workflows.get(&workflow).cloned();
        let mut driver = Driver {
            shared,
            run,
            request: *request,
            state: Rc::clone(&state),
            workflow: None,
            result: None,
            effects: BTreeMap::new(),
            past,
            cancelled_by,
            changes,
            batch: Vec::new(),
            next_n,
            say,
        };
        match code {
            Some(code) => {
                // The call makes the future; like every poll of it, it may panic.
                let request = driver.request.clone();
                let made = catch_unwind(AssertUnwindSafe(|| code(LocalCx::new(state), request)));
                match made {
                    Ok(workflow) => driver.workflow = Some(workflow),
                    Err(panic) => driver.fail_internal(format!("the workflow broke: {}", panic_message(&*panic))),
                }
            }
            None => {
                let code = format!("has no workflow '{workflow}'");
                driver.diverge(&Divergence { n: 0, journal: format!("a run of '{workflow}'"), code });
            }
        }
        Ok(driver)
    }

    async fn go(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) -> Result<End, End> {
        self.replay();
        self.take_issued();
        self.state.borrow_mut().go_live();
        self.stop_where_stuck();
        self.drop_unwanted();
        self.flush(Vec::new()).await?;
        let halt = self.shared.hands.halt.clone();
        loop {
            if let Some(outcome) = self.result.take() {
                return self.close(outcome, inbox).await;
            }
            self.start_effects();
            let mut next = tokio::select! {
                biased;
                () = halt.cancelled() => return self.halt(inbox).await,
                message = inbox.recv() => message,
            };
            let mut answers = Vec::new();
            while let Some(message) = next {
                self.handle(message, &mut answers);
                // What comes behind the result is dealt with while the run is closed.
                next = if self.result.is_none() { inbox.try_recv().ok() } else { None };
            }
            self.drop_unwanted();
            self.flush(answers).await?;
        }
    }

    /// Polls the workflow through its past. Nothing is started and nothing written meanwhile.
    fn replay(&mut self) {
        self.poll();
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                state.skip_versions();
                state.history.take()
            };
            let Some(Past { n, at, event }) = next else { return };
            let known = self.state.borrow_mut().apply(at, &event);
            if !known {
                // Behind its result a run only waits for the ends of what it gave up.
                let code = if self.is_over() { "ends there" } else { "asks for nothing that this could answer" };
                return self.diverge(&Divergence { n, journal: words(&event), code: code.to_owned() });
            }
            self.poll();
        }
    }

    fn is_over(&self) -> bool {
        self.workflow.is_none()
    }

    /// Lets the workflow go as far as it can on what is known.
    fn poll(&mut self) {
        let Some(workflow) = &mut self.workflow else { return };
        let waker = noop_waker();
        let polled = catch_unwind(AssertUnwindSafe(|| workflow.as_mut().poll(&mut Context::from_waker(&waker))));
        let diverged = self.state.borrow_mut().diverged.take();
        if let Some(divergence) = diverged {
            return self.diverge(&divergence);
        }
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(result)) => {
                let outcome = self.outcome(result);
                self.end_workflow(outcome);
            }
            Err(panic) => self.fail_internal(format!("the workflow broke: {}", panic_message(&*panic))),
        }
        self.give_up_abandoned();
    }

    /// Takes what the workflow asked for and said into the batch.
    fn take_issued(&mut self) {
        let at = self.now();
        let issued = std::mem::take(&mut self.state.borrow_mut().issued);
        for body in issued {
            if let Body::Observation(observation) = &body {
                note_change(&mut self.changes, observation);
            }
            self.batch.push((at, body));
        }
    }

    /// A future that was dropped wants its timer no more, nor its activity.
    fn give_up_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.state.borrow_mut().abandoned);
        for seq in abandoned {
            match self.effects.get(&seq) {
                Some(Effect::Timer(_)) => {
                    self.effects.remove(&seq);
                }
                Some(Effect::Activity(cancel)) => cancel.cancel(),
                None => {}
            }
        }
    }

    /// Takes one message. Events are journaled in this order, each with what it made the workflow ask for.
    fn handle(&mut self, message: Message, answers: &mut Vec<Answer>) {
        match message {
            Message::Observed { at, observation } => self.observed(at, observation),
            Message::Fired { seq, at } => {
                // It may have been given up between its firing and now.
                if self.effects.remove(&seq).is_some() {
                    self.become_known(at, Event::TimerFired { seq });
                }
            }
            Message::Ended { seq, at, ended } => {
                self.effects.remove(&seq);
                match ended {
                    Ended::Done(output) => self.become_known(at, Event::ActivityDone { seq, output }),
                    Ended::Failed(failure) => self.become_known(at, Event::ActivityFailed { seq, failure }),
                    Ended::Cancelled => self.become_known(at, Event::ActivityCancelled { seq }),
                    Ended::Halted => {}
                }
            }
            Message::Signal { signal, answer } => {
                let outcome = match serde_json::to_value(&signal) {
                    Ok(signal) => {
                        self.become_known(self.now(), Event::Signalled { signal });
                        Ok(())
                    }
                    Err(e) => Err(EngineError::Signal(e.to_string())),
                };
                answers.push((answer, outcome));
            }
            Message::Cancel { by, answer } => {
                let outcome = self.cancel(by);
                answers.push((answer, outcome));
            }
        }
    }

    /// Cancels the run, once; what survives that goes on (G9).
    fn cancel(&mut self, by: String) -> Result<(), EngineError> {
        if self.is_over() {
            return Err(EngineError::NotActive(self.run));
        }
        if self.cancelled_by.is_some() {
            return Ok(());
        }
        self.cancelled_by = Some(by.clone());
        self.become_known(self.now(), Event::CancelRequested { by });
        let state = self.state.borrow();
        for (seq, effect) in &self.effects {
            let survives =
                matches!(state.open.get(seq), Some(Open::Activity { options, .. }) if options.survives_cancel);
            if let Effect::Activity(cancel) = effect
                && !survives
            {
                cancel.cancel();
            }
        }
        Ok(())
    }

    fn observed(&mut self, at: Timestamp, observation: Observation) {
        note_change(&mut self.changes, &observation);
        self.batch.push((at, Body::Observation(observation)));
    }

    /// An event enters the journal, and the workflow goes on from it.
    fn become_known(&mut self, at: Timestamp, event: Event) {
        if let Event::ActivityCancelled { seq } = &event
            && let Some(Open::Activity { name, .. }) = self.state.borrow().open.get(seq)
        {
            self.changes.push(format!("'{name}' was under way: it may have happened, whole or in part"));
        }
        self.state.borrow_mut().apply(at, &event);
        self.batch.push((at, Body::Journal(event)));
        self.poll();
        self.take_issued();
        self.stop_where_stuck();
    }

    /// A workflow that waits for something that the engine doesn't know would wait for ever (G12).
    fn stop_where_stuck(&mut self) {
        if !self.is_over() && !self.state.borrow().can_go_on() {
            self.fail_internal("the workflow waits for nothing that could ever happen".to_owned());
        }
    }

    /// Commands that are still to be started and that nobody wants any more are not: the workflow gave them up, or a
    /// cancel reached them. Their intent stands in the journal, so their end does too.
    fn drop_unwanted(&mut self) {
        loop {
            let unwanted = {
                let state = self.state.borrow();
                state.fresh.iter().copied().find(|seq| match state.open.get(seq) {
                    Some(Open::Activity { wanted, options, .. }) => {
                        !wanted || (self.cancelled_by.is_some() && !options.survives_cancel)
                    }
                    Some(Open::Timer { .. }) | None => false,
                })
            };
            let Some(seq) = unwanted else { return };
            self.state.borrow_mut().fresh.retain(|fresh| *fresh != seq);
            self.become_known(self.now(), Event::ActivityCancelled { seq });
        }
    }

    /// Starts what was journaled and not yet started.
    fn start_effects(&mut self) {
        let fresh = std::mem::take(&mut self.state.borrow_mut().fresh);
        for seq in fresh {
            let effect = match self.state.borrow().open.get(&seq) {
                Some(Open::Timer { until }) => self.start_timer(seq, *until),
                Some(Open::Activity { name, input, options, .. }) => {
                    let cancel = CancellationToken::new();
                    let job = Job {
                        run: self.run,
                        seq,
                        name,
                        input: input.clone(),
                        max_attempts: self.request.params.max_attempts.unwrap_or(options.retry.max_attempts).max(1),
                        options: options.clone(),
                        past: self.past.remove(&seq).unwrap_or_default(),
                        cancel: cancel.clone(),
                    };
                    self.shared.hands.spawn(&self.shared.runtime, job, self.say.clone());
                    Effect::Activity(cancel)
                }
                None => continue,
            };
            self.effects.insert(seq, effect);
        }
    }

    fn start_timer(&self, seq: u32, until: Timestamp) -> Effect {
        let (say, clock) = (self.say.clone(), Arc::clone(&self.shared.hands.clock));
        Effect::Timer(self.shared.hands.timers.at(until, move || {
            // The driver may have gone: then the timer is set again with the next one.
            say.send(Message::Fired { seq, at: clock.now() }).ok();
        }))
    }

    /// Writes the batch; then, and only then, the feed and the callers hear of it.
    async fn flush(&mut self, answers: Vec<Answer>) -> Result<(), End> {
        let batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() {
            let records = self.shared.journal.append(self.run, self.next_n, batch).await?;
            self.next_n += records.len() as u64;
            for record in records {
                // Nobody may be listening.
                self.shared.feed.send(record).ok();
            }
        }
        for (answer, outcome) in answers {
            // Whoever asked may have gone.
            answer.send(outcome).ok();
        }
        Ok(())
    }

    /// The workflow has given its result: what it left running comes to an end, then the run does.
    async fn close(&mut self, outcome: Outcome, inbox: &mut mpsc::UnboundedReceiver<Message>) -> Result<End, End> {
        let mut answers = Vec::new();
        self.effects.retain(|_, effect| matches!(effect, Effect::Activity(_)));
        for effect in self.effects.values() {
            if let Effect::Activity(cancel) = effect {
                cancel.cancel();
            }
        }
        while !self.effects.is_empty() {
            let Some(message) = inbox.recv().await else { break };
            self.handle(message, &mut answers);
        }
        if self.shared.hands.halt.is_cancelled() && self.state.borrow().open.values().any(is_activity) {
            // Halted activities brought no end: the next start closes the run.
            self.flush(answers).await?;
            return Ok(End::Halted);
        }
        while let Ok(message) = inbox.try_recv() {
            self.handle(message, &mut answers);
        }
        self.batch.push((self.now(), Body::Journal(Event::Finished { outcome })));
        self.flush(answers).await?;
        Ok(End::Finished)
    }

    /// The program stops: results that come within the grace are kept, nothing new is started.
    async fn halt(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) -> Result<End, End> {
        self.effects.retain(|_, effect| matches!(effect, Effect::Activity(_)));
        let mut answers = Vec::new();
        while !self.effects.is_empty() {
            let Some(message) = inbox.recv().await else { break };
            self.handle(message, &mut answers);
        }
        self.flush(answers).await?;
        Ok(End::Halted)
    }

    fn now(&self) -> Timestamp {
        self.shared.hands.clock.now()
    }

    fn outcome(&self, result: Result<EnrollResult, ActivityError>) -> Outcome {
        match (result, &self.cancelled_by) {
            (Ok(result), _) => Outcome::Succeeded { result: Some(result) },
            (Err(ActivityError::Failed(failure)), _) => Outcome::Failed { failure: Box::new(failure) },
            (Err(ActivityError::Cancelled), Some(by)) => {
                Outcome::Cancelled { by: by.clone(), left: self.changes.clone() }
            }
            (Err(ActivityError::Cancelled), None) => {
                let phase = self.state.borrow().phase;
                let message = "the workflow says that it was cancelled, and nobody cancelled it";
                Outcome::Failed { failure: Box::new(internal(phase, message)) }
            }
        }
    }

    /// The journal and the code don't agree: this run ends, and nothing is touched any more (G7).
    fn diverge(&mut self, divergence: &Divergence) {
        let phase = self.state.borrow().phase;
        let failure = Failure::new(
            FailureCode::JournalDiverged,
            phase,
            divergence.to_string(),
            "look at what the run has left half done, then enroll the host anew: that begins with a new journal",
        );
        {
            // What the code asks for on its own way must neither be journaled nor be started or waited for.
            let mut state = self.state.borrow_mut();
            state.issued.clear();
            state.open.clear();
            state.fresh.clear();
            state.history = History::default();
        }
        self.end_workflow(Outcome::Failed { failure: Box::new(failure) });
    }

    fn fail_internal(&mut self, message: String) {
        let phase = self.state.borrow().phase;
        // Broken in its past, it has no future: what the journal still says is of no use to anybody.
        self.state.borrow_mut().history = History::default();
        self.end_workflow(Outcome::Failed { failure: Box::new(internal(phase, message)) });
    }

    fn end_workflow(&mut self, outcome: Outcome) {
        self.result = Some(outcome);
        // Dropping it gives up what it still waited for. Its parts may break on the way, too.
        let workflow = self.workflow.take();
        if catch_unwind(AssertUnwindSafe(|| drop(workflow))).is_err() {
            tracing::error!(run = %self.run, "a workflow broke while it was dropped");
        }
        self.give_up_abandoned();
    }
}

fn is_activity(open: &Open) -> bool {
    matches!(open, Open::Activity { .. })
}

/// Keeps what a run wrote: the last value of each place.
fn note_change(changes: &mut Vec<String>, observation: &Observation) {
    if let Observation::Wrote { system, target, what, after, .. } = observation {
        let place = format!("{system} {target}: {what} is ");
        changes.retain(|change| !change.starts_with(&place));
        changes.push(format!("{place}'{after}'"));
    }
}
