//! What is told to others when a run has ended: the payload of webhooks (docs/webhooks.md, contrib/webhook.schema.json).
//! Its names are a contract: fields may be added, none is taken out or given another meaning.

use jiff::Timestamp;
use serde::Serialize;

use super::event::Outcome;
use super::failure::{FailureCode, Owner};
use super::ids::{NodeUuid, RunId};
use super::phase::Phase;
use super::text::neutralize;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    Succeeded,
    Failed,
    Cancelled,
}

impl RunEnd {
    pub const ALL: [RunEnd; 3] = [RunEnd::Succeeded, RunEnd::Failed, RunEnd::Cancelled];

    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            RunEnd::Succeeded => "succeeded",
            RunEnd::Failed => "failed",
            RunEnd::Cancelled => "cancelled",
        }
    }

    pub fn of(outcome: &Outcome) -> RunEnd {
        match outcome {
            Outcome::Succeeded { .. } => RunEnd::Succeeded,
            Outcome::Failed { .. } => RunEnd::Failed,
            Outcome::Cancelled { .. } => RunEnd::Cancelled,
        }
    }
}

/// One event as it is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEnded {
    /// `run.succeeded`, `run.failed`, `run.cancelled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When the run ended, not when it is told.
    pub timestamp: Timestamp,
    pub data: Ended,
}

/// The run and how it ended. What does not belong to an outcome is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ended {
    pub run: RunId,
    pub host: String,
    /// NetBox's id of the device.
    pub netbox_id: u64,
    pub site: String,
    pub outcome: RunEnd,
    pub submitted_by: String,
    pub submitted_at: Timestamp,
    pub finished_at: Timestamp,
    /// The run that this one repeats.
    pub retry_of: Option<RunId>,
    /// The most whole attempts that any of its phases took.
    pub attempts: u32,
    pub success: Option<Success>,
    pub failure: Option<Failed>,
    pub cancellation: Option<Cancellation>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Success {
    /// Null where the site's Ironic gate is off.
    pub node: Option<NodeUuid>,
    /// The name of the Ironic instance in the configuration.
    pub ironic: Option<String>,
    pub platform_class: Option<String>,
    pub already_enrolled: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failed {
    pub code: FailureCode,
    pub phase: Phase,
    pub owner: Owner,
    pub retryable: bool,
    pub message: String,
    pub action: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cancellation {
    pub by: String,
    /// What was left in place, in words.
    pub left: Vec<String>,
    /// Why, where no person asked for it.
    pub why: Option<String>,
}

/// A run that has ended, as lists know it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    pub run: RunId,
    pub host: String,
    pub netbox_id: u64,
    pub site: String,
    pub submitted_by: String,
    pub submitted_at: Timestamp,
    pub finished_at: Timestamp,
    pub retry_of: Option<RunId>,
    pub attempts: u32,
}

impl RunEnded {
    /// The event of a run and its outcome. Text from other systems can do nothing to a terminal that shows it.
    pub fn of(run: EndedRun, outcome: &Outcome) -> RunEnded {
        let end = RunEnd::of(outcome);
        let harmless = |text: &String| neutralize(text).into_owned();
        let (mut success, mut failure, mut cancellation) = (None, None, None);
        match outcome {
            Outcome::Succeeded { result } => {
                success = result.as_ref().map(|result| Success {
                    node: result.node,
                    ironic: result.ironic.clone(),
                    platform_class: result.platform_class.clone(),
                    already_enrolled: result.already_enrolled,
                });
            }
            Outcome::Failed { failure: told } => {
                failure = Some(Failed {
                    code: told.code,
                    phase: told.phase,
                    owner: told.owner,
                    retryable: told.retryable,
                    message: harmless(&told.message),
                    action: harmless(&told.action),
                });
            }
            Outcome::Cancelled { by, left, why } => {
                cancellation = Some(Cancellation {
                    by: harmless(by),
                    left: left.iter().map(harmless).collect(),
                    why: why.as_ref().map(harmless),
                });
            }
        }
        let data = Ended {
            run: run.run,
            host: harmless(&run.host),
            netbox_id: run.netbox_id,
            site: run.site,
            outcome: end,
            submitted_by: harmless(&run.submitted_by),
            submitted_at: run.submitted_at,
            finished_at: run.finished_at,
            retry_of: run.retry_of,
            attempts: run.attempts,
            success,
            failure,
            cancellation,
        };
        RunEnded { kind: format!("run.{}", end.as_str()), timestamp: run.finished_at, data }
    }

    /// By this a receiver knows a delivery that it has had: it is the same at each try.
    pub fn delivery(&self) -> String {
        format!("run-ended-{}", self.data.run)
    }
}
