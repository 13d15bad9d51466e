//! Replays a run's journal against the code as it is now: nothing is carried out, nothing is written.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::task::noop_waker;
use jiff::Timestamp;

use super::history::{Divergence, History, Past, covers, words};
use super::ports::Workflows;
use super::replay::{LocalCx, Open, State, internal};
use crate::domain::event::{Body, EnrollResult, Event, Outcome, RunRecord};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::text::panic_message;
use crate::workflows::cx::ActivityError;

/// What came of a review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// Events of the journal that the code went along with.
    pub events: usize,
    pub stand: Stand,
}

/// Where a run stands when its journal is through.
#[derive(Debug, Clone, PartialEq)]
pub enum Stand {
    /// Code and journal end alike; this is the journal's word for it.
    Ended(Outcome),
    /// Cancelled while it was queued: there is nothing to replay.
    NeverBegun(Outcome),
    /// The engine ended it where the code would have gone on: a divergence or an error of before.
    Stopped(Outcome),
    /// The run goes on from here: what it has asked for and has no answer to yet.
    UnderWay(Vec<String>),
    /// Journal and code part: which record, and what the code does there.
    Diverged(Box<Failure>),
}

impl Review {
    /// Whether the journal fits the code.
    pub fn fits(&self) -> bool {
        !matches!(self.stand, Stand::Diverged(_))
    }
}

/// Replays these records, in their order.
pub fn review(workflows: &Workflows, records: &[RunRecord]) -> Review {
    let (Some(first), total) = (records.first(), journaled(records)) else {
        return part(0, Phase::ResolveIronicInstance, 0, "empty", "begins with a submission");
    };
    let Body::Journal(Event::Submitted { workflow, request }) = &first.body else {
        return part(0, Phase::ResolveIronicInstance, 0, "no submission", "begins with one");
    };
    let Some(code) = workflows.get(workflow) else {
        let (journal, code) = (format!("a run of '{workflow}'"), format!("has no workflow '{workflow}'"));
        return part(0, Phase::ResolveIronicInstance, 0, &journal, &code);
    };
    let (past, end) = split(&records[1..]);
    if let Some((_, outcome)) = &end
        && past.iter().all(|past| matches!(past.event, Event::CancelRequested { .. }))
        && matches!(outcome, Outcome::Cancelled { .. })
    {
        return Review { events: total, stand: Stand::NeverBegun(outcome.clone()) };
    }
    let state = Rc::new(RefCell::new(State::new(first.run, first.at, History::new(past), Vec::new())));
    let mut stage = Stage { state: Rc::clone(&state), workflow: None, result: None };
    let cx = LocalCx::new(state);
    match catch_unwind(AssertUnwindSafe(|| code(cx, (**request).clone()))) {
        Ok(workflow) => stage.workflow = Some(workflow),
        Err(panic) => stage.broke(&*panic),
    }
    match stage.walk() {
        Some(divergence) => {
            let before = records.partition_point(|record| record.n < divergence.n);
            let phase = stage.state.borrow().phase;
            Review {
                events: journaled(&records[..before]),
                stand: Stand::Diverged(Box::new(divergence.failure(phase))),
            }
        }
        None => stage.close(total, end),
    }
}

fn journaled(records: &[RunRecord]) -> usize {
    records.iter().filter(|record| matches!(record.body, Body::Journal(_))).count()
}

fn part(events: usize, phase: Phase, n: u64, journal: &str, code: &str) -> Review {
    let divergence = Divergence { n, journal: journal.to_owned(), code: code.to_owned() };
    Review { events, stand: Stand::Diverged(Box::new(divergence.failure(phase))) }
}

/// The events between submission and end, and the end.
fn split(records: &[RunRecord]) -> (Vec<Past>, Option<(u64, Outcome)>) {
    let mut past = Vec::new();
    for RunRecord { n, at, body, .. } in records {
        match body {
            Body::Journal(Event::Finished { outcome }) => return (past, Some((*n, outcome.clone()))),
            Body::Journal(event) => past.push(Past { n: *n, at: *at, event: event.clone() }),
            Body::Observation(_) => {}
        }
    }
    (past, None)
}

/// One workflow on its replay context.
struct Stage {
    state: Rc<RefCell<State>>,
    workflow: Option<LocalBoxFuture<'static, Result<EnrollResult, ActivityError>>>,
    result: Option<Result<EnrollResult, ActivityError>>,
}

impl Stage {
    /// Polls the workflow once for each event, as the driver does.
    fn walk(&mut self) -> Option<Divergence> {
        if let Some(divergence) = self.poll() {
            return Some(divergence);
        }
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                state.skip_versions();
                state.history.take()
            };
            let Past { n, at, event } = next?;
            if !self.state.borrow_mut().apply(at, &event) {
                let code =
                    if self.workflow.is_none() { "ends there" } else { "asks for nothing that this could answer" };
                return Some(Divergence { n, journal: words(&event), code: code.to_owned() });
            }
            if let Some(divergence) = self.poll() {
                return Some(divergence);
            }
        }
    }

    fn poll(&mut self) -> Option<Divergence> {
        let workflow = self.workflow.as_mut()?;
        let waker = noop_waker();
        let polled = catch_unwind(AssertUnwindSafe(|| workflow.as_mut().poll(&mut Context::from_waker(&waker))));
        let diverged = self.state.borrow_mut().diverged.take();
        if diverged.is_some() {
            return diverged;
        }
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(result)) => {
                self.result = Some(result);
                let workflow = self.workflow.take();
                // Its parts may break on the way out, too; the result stands.
                catch_unwind(AssertUnwindSafe(|| drop(workflow))).ok();
            }
            Err(panic) => self.broke(&*panic),
        }
        None
    }

    fn broke(&mut self, panic: &(dyn std::any::Any + Send)) {
        let phase = self.state.borrow().phase;
        let failure = internal(phase, format!("the workflow broke: {}", panic_message(panic)));
        self.result = Some(Err(ActivityError::Failed(failure)));
        self.workflow = None;
    }

    /// Holds the end of the journal against that of the code.
    fn close(self, total: usize, end: Option<(u64, Outcome)>) -> Review {
        let stand = match (end, &self.result) {
            (None, None) => Stand::UnderWay(self.asked_for()),
            // Only the record of the end is missing: the next start writes it.
            (None, Some(_)) => Stand::UnderWay(vec!["the end of the run, which is not in the journal yet".to_owned()]),
            (Some((_, outcome)), Some(result)) if alike(&outcome, result) => Stand::Ended(outcome),
            (Some((_, outcome)), _) if by_engine(&outcome) => Stand::Stopped(outcome),
            (Some((n, outcome)), result) => {
                let code = match result {
                    Some(result) => format!("ends {}", end_words(result)),
                    None => format!("goes on: it has asked for {}", self.asked_for().join(" and ")),
                };
                let journal = match &outcome {
                    Outcome::Failed { failure } => format!("the end of the run ('failed' with '{}')", failure.code),
                    outcome => words(&Event::Finished { outcome: outcome.clone() }),
                };
                let phase = self.state.borrow().phase;
                return part(total.saturating_sub(1), phase, n, &journal, &code);
            }
        };
        Review { events: total, stand }
    }

    fn asked_for(&self) -> Vec<String> {
        let state = self.state.borrow();
        let words = state.open.iter().filter_map(|(seq, open)| match open {
            Open::Activity { name, wanted: true, .. } => Some(format!("activity {seq} '{name}'")),
            Open::Activity { wanted: false, .. } => None,
            Open::Timer { until } => Some(format!("timer {seq}, which fires at {}", whole_seconds(*until))),
        });
        let words: Vec<String> = words.collect();
        if words.is_empty() { vec!["nothing that could ever happen".to_owned()] } else { words }
    }
}

fn whole_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Whether the code ends as the journal says. A sentence may be worded otherwise; code and phase may not be others.
fn alike(journal: &Outcome, code: &Result<EnrollResult, ActivityError>) -> bool {
    match (journal, code) {
        (Outcome::Succeeded { result: None }, Ok(_)) => true,
        (Outcome::Succeeded { result: Some(old) }, Ok(new)) => {
            match (serde_json::to_value(old), serde_json::to_value(new)) {
                (Ok(old), Ok(new)) => covers(&old, &new),
                _ => false,
            }
        }
        (Outcome::Failed { failure: old }, Err(ActivityError::Failed(new))) => {
            (old.code, old.phase) == (new.code, new.phase)
        }
        (Outcome::Cancelled { .. }, Err(ActivityError::Cancelled)) => true,
        _ => false,
    }
}

/// Whether it was not the workflow that ended the run.
fn by_engine(outcome: &Outcome) -> bool {
    let engines = |code| matches!(code, FailureCode::JournalDiverged | FailureCode::InternalError);
    matches!(outcome, Outcome::Failed { failure } if engines(failure.code))
}

fn end_words(result: &Result<EnrollResult, ActivityError>) -> String {
    match result {
        Ok(_) => "'succeeded'".to_owned(),
        Err(ActivityError::Failed(failure)) => format!("'failed' with '{}'", failure.code),
        Err(ActivityError::Cancelled) => "'cancelled'".to_owned(),
    }
}
