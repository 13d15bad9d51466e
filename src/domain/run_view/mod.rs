//! What every view and command shows of a run, folded from its records: the same from a live feed and from the journal.

mod fold;
mod links;
mod words;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{EnrollResult, Outcome, RunRecord, WaitReason};
use super::failure::Failure;
use super::ids::RunId;
use super::phase::Phase;
use super::provision::{Power, ProvisionState};
use super::request::EnrollRequest;
use super::verify::Verification;

pub use links::{GuardView, LinkLine, LinkSpan};
pub use words::activity_words;

/// A run as far as its records tell. Apply them in order; one that was applied already changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    pub run: Option<RunId>,
    /// The place of the next record that is not applied yet.
    pub next_n: u64,
    /// Time of the latest record.
    pub last_at: Option<Timestamp>,
    pub request: Option<Box<EnrollRequest>>,
    /// All phases in their order.
    pub phases: Vec<PhaseView>,
    /// Activities with an intent and without an outcome, oldest first.
    pub activities: Vec<ActivityView>,
    pub wait: Option<WaitView>,
    /// Every link guard of the run, oldest first.
    pub guards: Vec<GuardView>,
    pub verification: Option<VerificationView>,
    pub cleaning: Option<CleaningView>,
    pub node: Option<NodeView>,
    /// The node's provision states over time.
    pub states: Vec<StateSpan>,
    pub events: Vec<EventLine>,
    pub writes: Vec<WriteLine>,
    pub cancel: Option<CancelView>,
    pub outcome: Option<Outcome>,
    pub finished_at: Option<Timestamp>,
}

/// Where a run stands as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Submitted, and nothing happened since.
    Queued,
    Running,
    /// A cancel was asked for and is not through yet.
    Cancelling,
    Succeeded,
    Failed,
    Cancelled,
}

impl RunState {
    /// The word of the contract, and of the screen.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Queued => "queued",
            RunState::Running => "running",
            RunState::Cancelling => "cancelling",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        }
    }
}

/// How a phase stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseStatus {
    Pending,
    Running,
    Done,
    Warned,
    Skipped,
    Failed,
    Cancelled,
}

/// One phase of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseView {
    pub phase: Phase,
    pub status: PhaseStatus,
    /// Of the first attempt.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Whole-phase attempts so far (I13, C4).
    pub attempt: u32,
    /// Attempts of its steps that failed and were tried again.
    #[serde(default)]
    pub retries: u32,
    /// What it found or did, why it was skipped, or what is wrong.
    pub note: String,
    /// What is to be looked at although it went on.
    pub warnings: Vec<String>,
}

/// An activity under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActivityView {
    pub seq: u32,
    pub name: String,
    pub phase: Phase,
    pub started_at: Timestamp,
    /// 0 until its first attempt starts.
    pub attempt: u32,
    pub max_attempts: u32,
    /// The last attempt failed, and the next one starts then.
    pub retry: Option<RetryView>,
}

/// The pause between two attempts of an activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryView {
    pub since: Timestamp,
    pub at: Timestamp,
    pub failure: Box<Failure>,
}

/// What the run waits for. It stays while the run takes a look between two timers, so that a screen doesn't flicker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitView {
    pub reason: WaitReason,
    /// Since when this has been waited for, over all its timers.
    pub since: Timestamp,
    /// When the timer fires; `None` while the run looks.
    pub until: Option<Timestamp>,
    seq: u32,
    /// Activities that were begun since the timer fired.
    looks: u32,
}

/// The latest judgement of an inventory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationView {
    pub verification: Verification,
    /// Of a fresh inspection, not of the data that was there.
    pub fresh: bool,
    pub at: Timestamp,
}

/// Where the cleaning half stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleaningView {
    pub started_at: Timestamp,
    pub attempt: u32,
    pub max_attempts: u32,
    pub next_look_at: Timestamp,
    pub deadline: Timestamp,
    /// The latest pauses between two looks, in seconds, each length once, oldest first.
    pub pauses_s: Vec<u64>,
    /// What Ironic said when a clean failed.
    pub last_failure: Option<String>,
}

/// The latest look at the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    pub at: Timestamp,
    pub state: ProvisionState,
    pub power: Power,
    pub clean_step: Option<String>,
    pub reservation: Option<String>,
    pub last_error: Option<String>,
}

/// A time in which the node was seen in one provision state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSpan {
    pub state: ProvisionState,
    pub since: Timestamp,
    /// When it was seen last.
    pub until: Timestamp,
    /// The phase that was under way when it was first seen.
    pub phase: Option<Phase>,
}

/// How an event reads: colour and glyph of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    Info,
    Wrote,
    Done,
    Skipped,
    Warned,
    Failed,
}

/// A line of the event list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLine {
    /// The record that it comes from.
    pub n: u64,
    pub at: Timestamp,
    /// A system (`ironic`) or a phase (`link guard`).
    pub system: String,
    pub text: String,
    pub kind: EventKind,
}

/// Something that the run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteLine {
    pub at: Timestamp,
    pub system: String,
    pub target: String,
    pub what: String,
    pub before: String,
    pub after: String,
}

/// That a cancel was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelView {
    pub at: Timestamp,
    pub by: String,
}

impl Default for RunView {
    fn default() -> Self {
        let phases = Phase::ALL.map(|phase| PhaseView {
            phase,
            status: PhaseStatus::Pending,
            started_at: None,
            ended_at: None,
            attempt: 0,
            retries: 0,
            note: String::new(),
            warnings: Vec::new(),
        });
        RunView {
            run: None,
            next_n: 0,
            last_at: None,
            request: None,
            phases: phases.into(),
            activities: Vec::new(),
            wait: None,
            guards: Vec::new(),
            verification: None,
            cleaning: None,
            node: None,
            states: Vec::new(),
            events: Vec::new(),
            writes: Vec::new(),
            cancel: None,
            outcome: None,
            finished_at: None,
        }
    }
}

impl RunView {
    /// The view of a whole journal.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let mut view = RunView::default();
        for record in records {
            view.apply(record);
        }
        view
    }

    /// Takes one more record. Returns whether it was new.
    pub fn apply(&mut self, record: &RunRecord) -> bool {
        fold::apply(self, record)
    }

    /// Where the run stands as a whole.
    pub fn state(&self) -> RunState {
        match &self.outcome {
            Some(Outcome::Succeeded { .. }) => RunState::Succeeded,
            Some(Outcome::Failed { .. }) => RunState::Failed,
            Some(Outcome::Cancelled { .. }) => RunState::Cancelled,
            None if self.cancel.is_some() => RunState::Cancelling,
            None if self.phases.iter().all(|p| p.status == PhaseStatus::Pending) => RunState::Queued,
            None => RunState::Running,
        }
    }

    /// The phase that is under way, or where the run ended.
    pub fn phase(&self) -> Option<&PhaseView> {
        self.phases.iter().rev().find(|p| !matches!(p.status, PhaseStatus::Pending | PhaseStatus::Skipped))
    }

    /// The phase by its name.
    pub fn phase_of(&self, phase: Phase) -> &PhaseView {
        let place = Phase::ALL.iter().position(|p| *p == phase).unwrap_or(0);
        &self.phases[place]
    }

    /// The activity that was begun last.
    pub fn activity(&self) -> Option<&ActivityView> {
        self.activities.last()
    }

    /// The latest link guard.
    pub fn guard(&self) -> Option<&GuardView> {
        self.guards.last()
    }

    /// Why the run failed, where it did.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.outcome {
            Some(Outcome::Failed { failure }) => Some(failure),
            _ => None,
        }
    }

    /// What the run established, where it succeeded.
    pub fn result(&self) -> Option<&EnrollResult> {
        match &self.outcome {
            Some(Outcome::Succeeded { result }) => result.as_ref(),
            _ => None,
        }
    }

    /// What is to be looked at although the run went on, with its phase.
    pub fn warnings(&self) -> impl Iterator<Item = (Phase, &str)> {
        self.phases.iter().flat_map(|p| p.warnings.iter().map(|w| (p.phase, w.as_str())))
    }

    /// When the run was submitted.
    pub fn submitted_at(&self) -> Option<Timestamp> {
        self.request.as_ref().map(|r| r.submitted_at)
    }
}

#[cfg(test)]
mod tests;
