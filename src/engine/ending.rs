//! How driving a run comes to an end: with the workflow's result, with a divergence, with the program, or put aside.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::mpsc;

use super::driver::{Answers, Driver, Effect, End, Message, program};
use super::history::{Divergence, History};
use super::replay::{Open, internal};
use crate::domain::event::{Body, EnrollResult, Event, Observation, Outcome};
use crate::domain::failure::Failure;
use crate::workflows::cx::ActivityError;

/// So often an activity is begun again whose start took the program with it.
const LOST_STARTS: u32 = 5;

impl Driver {
    /// The workflow has given its result: what it left running comes to an end, then the run does. The device is not
    /// released while anything of the run is still at work on it (G8).
    pub(super) async fn close(
        &mut self,
        outcome: Outcome,
        mut answers: Answers,
        inbox: &mut mpsc::UnboundedReceiver<Message>,
    ) -> Result<End, End> {
        self.stop_effects();
        if !self.effects.is_empty() {
            self.flush(std::mem::take(&mut answers)).await?;
            self.wait_for_effects(&mut answers, inbox).await;
        }
        if self.state.borrow().open.values().any(|open| matches!(open, Open::Activity { .. })) {
            // The program stops, and an activity was broken off by that: the next start closes the run.
            self.flush(answers).await?;
            return Ok(End::Halted);
        }
        while let Ok(message) = inbox.try_recv() {
            self.handle(message, &mut answers);
        }
        let outcome = match outcome {
            Outcome::Cancelled { by, why, .. } => Outcome::Cancelled { by, left: self.changes.words(), why },
            ended => ended,
        };
        self.batch.push((self.now(), Body::Journal(Event::Finished { outcome })));
        self.flush(answers).await?;
        Ok(End::Finished)
    }

    /// The program stops: results that come within the grace are kept, nothing new is started.
    pub(super) async fn halt(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) -> Result<End, End> {
        let mut answers = Vec::new();
        self.effects.retain(|_, effect| matches!(effect, Effect::Activity { .. }));
        let at_work: Vec<u32> = self.effects.keys().copied().collect();
        self.wait_for_effects(&mut answers, inbox).await;
        if at_work.iter().any(|seq| self.state.borrow().open.contains_key(seq)) {
            // Whoever counts how often an activity took the program with it does not count this.
            self.record(self.now(), Body::Observation(Observation::Stopped { by: program() }));
        }
        self.flush(answers).await?;
        Ok(End::Halted)
    }

    /// The journal takes nothing more: what is at work is stopped and waited for, so that the next driver of this run
    /// does not start it beside itself. What it brought is lost, and is asked for again.
    pub(super) async fn let_go(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        self.stop_effects();
        while !self.effects.is_empty() {
            // Whoever asks something of this run meanwhile gets no answer, and is told so by that.
            match inbox.recv().await {
                Some(Message::Ended { seq, .. }) => drop(self.effects.remove(&seq)),
                Some(_) => {}
                None => return,
            }
        }
    }

    fn stop_effects(&mut self) {
        self.effects.retain(|_, effect| match effect {
            Effect::Activity { cancel, .. } => {
                cancel.cancel();
                true
            }
            Effect::Timer(_) => false,
        });
    }

    /// Every activity ends within its grace once it is stopped.
    async fn wait_for_effects(&mut self, answers: &mut Answers, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        while !self.effects.is_empty() {
            let Some(message) = inbox.recv().await else { return };
            self.handle(message, answers);
        }
    }

    pub(super) fn outcome(&self, result: Result<EnrollResult, ActivityError>) -> Outcome {
        match (result, &self.cancelled_by) {
            (Ok(result), _) => Outcome::Succeeded { result: Some(result) },
            (Err(ActivityError::Failed(failure)), _) => Outcome::Failed { failure: Box::new(failure) },
            // What is left is told when all has come to an end.
            (Err(ActivityError::Cancelled), Some(by)) => {
                Outcome::Cancelled { by: by.clone(), left: Vec::new(), why: None }
            }
            (Err(ActivityError::Cancelled), None) => {
                let phase = self.state.borrow().phase;
                let message = "the workflow says that it was cancelled, and nobody cancelled it";
                Outcome::Failed { failure: Box::new(internal(phase, message)) }
            }
        }
    }

    /// The journal and the code don't agree: this run ends, and nothing is touched any more (G7).
    pub(super) fn diverge(&mut self, divergence: &Divergence) {
        let phase = self.state.borrow().phase;
        let failure = divergence.failure(phase);
        // It does not go on.
        self.resumed = None;
        self.forget_past();
        self.end_workflow(Outcome::Failed { failure: Box::new(failure) });
    }

    /// An error that nobody foresaw ends the run (G12).
    pub(super) fn fail_internal(&mut self, message: String) {
        let phase = self.state.borrow().phase;
        // Broken in its past, the run has no future: what the journal still says of it is of no use.
        if !self.state.borrow().history.is_over() {
            self.forget_past();
        }
        self.end_workflow(Outcome::Failed { failure: Box::new(internal(phase, message)) });
    }

    /// The activity that was at work when the program ended was begun so often before, and each time the program ended
    /// before it did: to begin it once more would end this start, too, and with it every other run (G12).
    pub(super) fn stop_where_poisoned(&mut self) {
        if self.is_over() || self.lost_starts < LOST_STARTS {
            return;
        }
        let name = {
            let state = self.state.borrow();
            state.fresh.iter().find_map(|seq| match state.open.get(seq) {
                Some(Open::Activity { name, .. }) => Some(*name),
                Some(Open::Timer { .. }) | None => None,
            })
        };
        let Some(name) = name else { return };
        let phase = self.state.borrow().phase;
        let message = format!(
            "'{name}' was begun {} times, and each time muster itself ended before it did: it is not begun again",
            LOST_STARTS + 1
        );
        let action = "look in muster's log, and in the system's, for what ended it (a crash, memory, a kill); report it to \
                      the developers of muster together with the run's records, then retry";
        let failure = Failure { action: action.to_owned(), ..internal(phase, message) };
        self.end_workflow(Outcome::Failed { failure: Box::new(failure) });
    }

    /// What the code asks for on its own way must be neither journaled nor started nor waited for.
    fn forget_past(&mut self) {
        let mut state = self.state.borrow_mut();
        state.issued.clear();
        state.open.clear();
        state.fresh.clear();
        state.history = History::default();
    }

    pub(super) fn end_workflow(&mut self, outcome: Outcome) {
        self.result = Some(outcome);
        // Dropping it gives up what it still waited for. Its parts may break on the way, too.
        let workflow = self.workflow.take();
        if catch_unwind(AssertUnwindSafe(|| drop(workflow))).is_err() {
            tracing::error!(run = %self.run, "a workflow broke while it was dropped");
        }
        self.give_up_abandoned();
    }
}
