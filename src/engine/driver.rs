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
use std::time::Duration;

use futures::future::LocalBoxFuture;
use futures::task::noop_waker;
use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::attempts::{self, Ended, Hands, Job};
use super::handle::EngineError;
use super::history::{Divergence, Past, words};
use super::ports::{Journal, Workflows};
use super::replay::{Open, State};
use super::resume::Changes;
use super::timers::Timer;
use super::trial::Trial;
use crate::domain::event::{Body, EnrollResult, Event, Observation, Outcome, RunRecord};
use crate::domain::ids::RunId;
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
    /// The run that was put aside last, and why; nothing once the store takes records again.
    pub trouble: watch::Sender<Option<(RunId, StoreError)>>,
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

/// What callers are told once the batch that came of their request is on the disk.
pub(super) type Answers = Vec<(oneshot::Sender<Result<(), EngineError>>, Result<(), EngineError>)>;

/// One run under way.
pub(super) struct Driver {
    pub shared: Rc<Shared>,
    pub run: RunId,
    pub site: Arc<str>,
    /// The run's own number of attempts, which goes before that of every policy (G11).
    pub max_attempts: Option<u32>,
    /// How long its steps wait for a service that does not answer. Not at all where it brings its own attempts: who says 1
    /// wants to fail fast.
    pub outage: Duration,
    pub state: Rc<RefCell<State>>,
    /// `None` once it has given its result.
    pub workflow: Option<LocalBoxFuture<'static, Result<EnrollResult, ActivityError>>>,
    pub result: Option<Outcome>,
    /// Effects under way, by the place of their command.
    pub effects: BTreeMap<u32, Effect>,
    /// Attempts from before a restart.
    pub past: BTreeMap<u32, attempts::Past>,
    /// Who cancelled the run.
    pub cancelled_by: Option<String>,
    pub changes: Changes,
    /// That the run was interrupted and goes on: part of its story, never read by a replay. It is written with the first
    /// thing that comes of going on, so that resuming costs no commit of its own.
    pub resumed: Option<(Timestamp, Body)>,
    /// Starts of what is at work that were lost with the program.
    pub lost_starts: u32,
    pub trial: Trial,
    /// What is to be appended next.
    pub batch: Vec<(Timestamp, Body)>,
    pub next_n: u64,
    pub say: mpsc::UnboundedSender<Message>,
}

/// Something under way in the world. Dropped, it is not wanted any more: the timer never fires, the activity is stopped.
pub(super) enum Effect {
    Activity { cancel: CancellationToken, _stop_when_dropped: DropGuard },
    Timer(#[expect(dead_code, reason = "only held")] Timer),
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
    let interrupted = !after.as_ref().is_some_and(StoreError::is_transient);
    if let Some(error) = after {
        // Nothing is started before the store has taken a record again.
        let text = format!("goes on after: {error}");
        driver.record(driver.now(), Body::Observation(Observation::Note { system: "muster".to_owned(), text }));
    }
    match driver.go(&mut inbox, interrupted).await {
        Ok(end) => end,
        Err(end) => {
            driver.let_go(&mut inbox).await;
            end
        }
    }
}

/// The program by its name and version.
pub(super) fn program() -> String {
    format!("muster {}", env!("CARGO_PKG_VERSION"))
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
    /// `interrupted`: the program ended, or the engine broke. A run that only waited for its store was not.
    async fn go(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>, interrupted: bool) -> Result<End, End> {
        if interrupted && self.next_n > 1 && self.result.is_none() {
            self.resumed = Some((self.now(), Body::Observation(Observation::Resumed { by: program() })));
        }
        self.replay();
        self.take_issued();
        self.state.borrow_mut().go_live();
        self.stop_where_stuck();
        self.drop_unwanted();
        self.stop_where_poisoned();
        self.drop_unwanted();
        match self.is_suspect() {
            true => self.trial = Trial::Waits,
            false => self.mark_start(),
        }
        let halt = self.shared.hands.halt.clone();
        let mut turn = std::pin::pin!(self.shared.hands.dock.clone().enter());
        let mut answers = Vec::new();
        loop {
            if let Some(outcome) = self.result.take() {
                return self.close(outcome, answers, inbox).await;
            }
            self.flush(std::mem::take(&mut answers)).await?;
            if !matches!(self.trial, Trial::Waits) {
                self.start_effects();
            }
            self.leave_the_dock();
            let mut next = tokio::select! {
                biased;
                () = halt.cancelled() => return self.halt(inbox).await,
                message = inbox.recv() => message,
                place = &mut turn, if matches!(self.trial, Trial::Waits) => {
                    self.trial = place.map_or(Trial::None, |place| Trial::On { place, since: self.now() });
                    self.mark_start();
                    continue;
                }
                () = self.long_enough(), if matches!(self.trial, Trial::On { .. }) => {
                    self.outlive();
                    continue;
                }
            };
            while let Some(message) = next {
                self.handle(message, &mut answers);
                // What comes behind the result is dealt with while the run is closed.
                next = if self.result.is_none() { inbox.try_recv().ok() } else { None };
            }
            self.drop_unwanted();
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

    /// That an activity is begun again is on the disk before it is: it may take the program with it.
    fn mark_start(&mut self) {
        if self.begins_again()
            && let Some(resumed) = self.resumed.take()
        {
            self.batch.insert(0, resumed);
        }
    }

    pub(super) fn is_over(&self) -> bool {
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
        issued.into_iter().for_each(|body| self.record(at, body));
    }

    /// A future that was dropped wants its timer no more, nor its activity.
    pub(super) fn give_up_abandoned(&mut self) {
        let abandoned = std::mem::take(&mut self.state.borrow_mut().abandoned);
        for seq in abandoned {
            match self.effects.get(&seq) {
                Some(Effect::Timer(_)) => {
                    self.effects.remove(&seq);
                }
                Some(Effect::Activity { cancel, .. }) => cancel.cancel(),
                None => {}
            }
        }
    }

    /// Takes one message. Events are journaled in this order, each with what it made the workflow ask for.
    pub(super) fn handle(&mut self, message: Message, answers: &mut Answers) {
        match message {
            Message::Observed { at, observation } => self.record(at, Body::Observation(observation)),
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
            if let Effect::Activity { cancel, .. } = effect
                && !survives
            {
                cancel.cancel();
            }
        }
        Ok(())
    }

    /// An event enters the journal, and the workflow goes on from it.
    fn become_known(&mut self, at: Timestamp, event: Event) {
        self.state.borrow_mut().apply(at, &event);
        self.record(at, Body::Journal(event));
        self.poll();
        self.take_issued();
        self.stop_where_stuck();
    }

    pub(super) fn record(&mut self, at: Timestamp, body: Body) {
        self.changes.note(&body);
        self.batch.push((at, body));
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
                        site: Arc::clone(&self.site),
                        seq,
                        name,
                        input: input.clone(),
                        max_attempts: self.max_attempts.unwrap_or(options.retry.max_attempts).max(1),
                        options: options.clone(),
                        outage: self.outage,
                        past: self.past.remove(&seq).unwrap_or_default(),
                        cancel: cancel.clone(),
                    };
                    self.shared.hands.spawn(&self.shared.runtime, job, self.say.clone());
                    Effect::Activity { _stop_when_dropped: cancel.clone().drop_guard(), cancel }
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
    pub(super) async fn flush(&mut self, answers: Answers) -> Result<(), End> {
        let mut batch = std::mem::take(&mut self.batch);
        if !batch.is_empty()
            && let Some(resumed) = self.resumed.take()
        {
            batch.insert(0, resumed);
        }
        let written = if batch.is_empty() {
            Ok(Vec::new())
        } else {
            self.shared.journal.append(self.run, self.next_n, batch).await
        };
        for (answer, outcome) in answers {
            let lost = written.as_ref().err().map(|error| EngineError::Store(error.clone()));
            // Whoever asked may have gone.
            answer.send(lost.map_or(outcome, Err)).ok();
        }
        let records = written?;
        self.next_n += records.len() as u64;
        self.shared.trouble.send_if_modified(|trouble| !records.is_empty() && trouble.take().is_some());
        for record in records {
            // Nobody may be listening.
            self.shared.feed.send(record).ok();
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.shared.hands.clock.now()
    }
}
