//! What happens in a run: the journal's records, the observations beside them, and how both go over the wire.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure::Failure;
use super::ids::{NodeUuid, RunId};
use super::link::LinkReading;
use super::phase::Phase;
use super::provision::{Power, ProvisionState};
use super::request::EnrollRequest;
use super::verify::Verification;

/// A record of the journal: what became known, in the order in which it became known. Replay reads these and nothing
/// else; their wire names are kept forever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run exists. Always the first record.
    Submitted {
        workflow: String,
        request: Box<EnrollRequest>,
    },
    /// The intent of an activity: without a `done` it may have happened.
    ActivityScheduled {
        seq: u32,
        name: String,
        phase: Phase,
        input: Value,
    },
    ActivityDone {
        seq: u32,
        output: Value,
    },
    ActivityFailed {
        seq: u32,
        failure: Box<Failure>,
    },
    ActivityCancelled {
        seq: u32,
    },
    TimerSet {
        seq: u32,
        until: Timestamp,
        reason: WaitReason,
    },
    TimerFired {
        seq: u32,
    },
    Signalled {
        signal: Value,
    },
    CancelRequested {
        by: String,
    },
    /// A branch that a changed workflow takes for new runs.
    Version {
        change: String,
        taken: bool,
    },
    Finished {
        outcome: Outcome,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    Succeeded {
        #[serde(default)]
        result: Option<EnrollResult>,
    },
    Failed {
        failure: Box<Failure>,
    },
    Cancelled {
        by: String,
        /// What was left in place, in words.
        left: Vec<String>,
        /// Why, where no person asked for it: what became of the canary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

impl Outcome {
    /// The word of the contract: `succeeded`, `failed`, `cancelled`.
    pub fn status(&self) -> &'static str {
        match self {
            Outcome::Succeeded { .. } => "succeeded",
            Outcome::Failed { .. } => "failed",
            Outcome::Cancelled { .. } => "cancelled",
        }
    }
}

/// What a completed enrollment established.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrollResult {
    /// `None` where the site's Ironic gate is off.
    #[serde(default)]
    pub node: Option<NodeUuid>,
    #[serde(default)]
    pub ironic: Option<String>,
    #[serde(default)]
    pub platform_class: Option<String>,
    /// Found enrolled already: nothing of Ironic was changed (E6).
    #[serde(default)]
    pub already_enrolled: bool,
    /// Whether the completion proves the enrollment: a diagnostic bypass does not (T5).
    #[serde(default)]
    pub qualifying: bool,
}

/// Why a run waits: what stands beside the countdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReason {
    pub phase: Phase,
    pub kind: WaitKind,
    /// In words, for the screen: `node is locked by conductor-2`.
    pub text: String,
    /// When patience ends, where it does; the timer itself may fire earlier, for the next look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gives_up_at: Option<Timestamp>,
}

/// The kinds of waits that a view tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    NodeLock,
    StableState,
    PowerOn,
    LinkGuard,
    Inspection,
    Cleaning,
    Rerun,
    Proof,
    /// Until a BMC has bound staged settings to the next boot.
    Staged,
    /// Until a boot has applied them.
    Applied,
}

/// Something seen on the way, journaled beside the steps for panes and replay views, never read by replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// A phase begins (`attempt` counts whole-phase reruns), or is skipped.
    PhaseStarted {
        phase: Phase,
        attempt: u32,
    },
    PhaseSkipped {
        phase: Phase,
        why: String,
    },
    /// A phase ended well; `note` says what it found or did.
    PhaseDone {
        phase: Phase,
        note: String,
    },
    /// A phase ended well and something is to be looked at.
    Warned {
        phase: Phase,
        message: String,
    },
    /// An attempt of an activity starts.
    Attempt {
        seq: u32,
        name: String,
        attempt: u32,
        max_attempts: u32,
    },
    /// An attempt failed and is tried again.
    AttemptFailed {
        seq: u32,
        attempt: u32,
        failure: Box<Failure>,
        retry_at: Timestamp,
    },
    /// A sentence for the event list: which system, what was seen or done there.
    Note {
        system: String,
        text: String,
    },
    /// A setting or an object was changed (`before` may be empty): the change list of a run.
    Wrote {
        system: String,
        target: String,
        what: String,
        before: String,
        after: String,
    },
    /// One look of the link guard.
    Links {
        phase: Phase,
        readings: Vec<LinkReading>,
        budget_left_s: u64,
    },
    /// An inventory was judged.
    Verified {
        verification: Verification,
        fresh: bool,
    },
    /// One look at the node.
    Node {
        state: ProvisionState,
        power: Power,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clean_step: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reservation: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_error: Option<String>,
    },
    /// The cleaning half counts: attempt n of m, the next look, the deadline.
    Cleaning {
        attempt: u32,
        max_attempts: u32,
        next_look_at: Timestamp,
        deadline: Timestamp,
    },
    /// The run was interrupted after the record before this one, and goes on where it was. `by`: the program and its
    /// version.
    Resumed {
        by: String,
    },
    /// The program stopped in order while an activity was at work, which begins again at the next start.
    Stopped {
        by: String,
    },
    /// An activity that was begun again has been at work for a while, and the program with it: should that end now, others
    /// that were begun meanwhile are to blame.
    Outlived,
    /// What an attempt of an activity asked of other systems. It stands behind what was seen by that.
    Requests {
        seq: u32,
        attempt: u32,
        asked: Vec<Asked>,
        /// Requests beyond those, where there were too many to keep.
        #[serde(default, skip_serializing_if = "is_zero")]
        more: u32,
    },
}

/// One request to a system, or several in a row that were alike. No body, no query, no header: nothing secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// `netbox`, `ironic`, `redfish`, `ssh`, …
    pub system: String,
    /// `GET /v1/nodes/…`, `run 'systemctl restart …'`.
    pub request: String,
    /// The status, or why there was no answer.
    pub answer: String,
    pub times: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What a feed carries: a record of the journal or an observation, with run, place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    pub run: RunId,
    /// Place in the run, shared by journal and observations, from 0 without gaps per run.
    pub n: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub body: Body,
}

/// One of the two kinds of a [`RunRecord`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Body {
    Journal(Event),
    Observation(Observation),
}
