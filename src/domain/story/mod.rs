//! A run's whole story, from its records alone: what was asked, what happened when, what was changed, how it ended (G15).
//!
//! The JSON form is a contract: fields are added, never changed; `export` counts up where that cannot be kept.

mod clean;
mod markdown;
mod plain;
mod tell;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::event::{Asked, EnrollResult, RunRecord};
use super::failure::Failure;
use super::ids::RunId;
use super::phase::Phase;
use super::request::{EnrollParams, EnrollRequest};
use super::run_view::{
    CleaningView, EventKind, GuardView, PhaseView, RunState, StateSpan, VerificationView, WriteLine,
};

/// The version of the exported form.
pub const EXPORT: u32 = 1;

/// A run as it is exported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// [`EXPORT`].
    pub export: u32,
    pub run: RunId,
    pub workflow: String,
    pub host: String,
    pub netbox_id: u64,
    pub site: String,
    pub device_class: Option<String>,
    pub status: RunState,
    pub submitted_at: Timestamp,
    pub submitted_by: String,
    pub finished_at: Option<Timestamp>,
    /// Time of the latest record: what is told is as of then.
    pub last_at: Timestamp,
    /// The run that this one repeats.
    pub retry_of: Option<RunId>,
    /// Runs that repeat this one.
    pub retried_by: Vec<RunId>,
    pub params: EnrollParams,
    /// The site's gates, options and budgets as they stood at submission; budgets end in `_s` and are in seconds.
    pub gates: Map<String, Value>,
    pub options: Map<String, Value>,
    pub budgets: Map<String, Value>,
    pub routing: Routed,
    pub phases: Vec<PhaseView>,
    pub timeline: Vec<Moment>,
    pub interruptions: Vec<Interruption>,
    pub steps: Vec<Step>,
    pub changes: Vec<WriteLine>,
    pub guards: Vec<GuardView>,
    pub inspection: Option<VerificationView>,
    /// The node's provision states over time.
    pub states: Vec<StateSpan>,
    pub cleaning: Option<CleaningView>,
    pub result: Option<EnrollResult>,
    pub failure: Option<Failure>,
    /// What a cancelled run left in place.
    pub left: Vec<String>,
}

/// Which Ironic the run went to, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Routed {
    pub ironic: Option<String>,
    pub by_class: std::collections::BTreeMap<String, String>,
}

/// A line of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// The record that it begins with.
    pub n: u64,
    pub at: Timestamp,
    pub kind: MomentKind,
    /// A phase or a system.
    pub place: String,
    pub text: String,
    /// How long it took or was waited for, where it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_s: Option<i64>,
    /// How often the run looked while it waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<u32>,
}

/// What kind of thing a moment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    Info,
    Wrote,
    Done,
    Skipped,
    Warned,
    Failed,
    Begun,
    Waited,
    Interrupted,
}

impl From<EventKind> for MomentKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Info => MomentKind::Info,
            EventKind::Wrote => MomentKind::Wrote,
            EventKind::Done => MomentKind::Done,
            EventKind::Skipped => MomentKind::Skipped,
            EventKind::Warned => MomentKind::Warned,
            EventKind::Failed => MomentKind::Failed,
        }
    }
}

/// A time in which nobody drove the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// The last that is known from before.
    pub last_at: Timestamp,
    pub resumed_at: Timestamp,
    pub away_s: i64,
    /// The program that goes on with it.
    pub by: String,
    /// What the run was at, in words.
    pub during: String,
}

/// An activity: what was carried out, with what it asked of other systems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub seq: u32,
    pub name: String,
    pub phase: Phase,
    pub began_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub outcome: StepOutcome,
    /// Starts, those after an interruption included.
    pub starts: u32,
    /// Why attempts failed, in their order.
    pub failures: Vec<Failure>,
    pub requests: Vec<Asked>,
    /// Requests beyond those that were kept.
    pub requests_more: u32,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// It has not ended.
    Open,
    Done,
    Failed,
    Cancelled,
}

impl Story {
    /// The story of a journal; `None` where it does not begin with a submission.
    pub fn of(records: &[RunRecord]) -> Option<Story> {
        tell::tell(records)
    }

    /// As Markdown that can be pasted into a ticket. Nothing in it can break the page, ping a person or load a picture.
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// As one JSON object, without anything that a terminal could act on.
    pub fn json(&self) -> Value {
        clean::value(serde_json::to_value(self).unwrap_or_default())
    }

    /// The timeline as plain lines.
    pub fn lines(&self) -> Vec<String> {
        plain::lines(self)
    }

    /// How long nobody drove the run, in all.
    pub fn away_s(&self) -> i64 {
        self.interruptions.iter().map(|i| i.away_s).sum()
    }

    /// From the submission to the end, or to what is known last.
    pub fn took_s(&self) -> i64 {
        seconds(self.submitted_at, self.finished_at.unwrap_or(self.last_at))
    }
}

/// Gates, options and budgets of a request, each with all its keys.
fn snapshot(request: &EnrollRequest) -> (Map<String, Value>, Map<String, Value>, Map<String, Value>) {
    let object = |value: serde_json::Result<Value>| match value {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let mut options = object(serde_json::to_value(&request.options));
    options.remove("budgets");
    let gates = ["configure_dhcp", "configure_bmc", "ironic_enrol", "platform_class_activity_ready"];
    let gates = gates.iter().filter_map(|key| options.remove_entry(*key)).collect();
    let budgets = object(serde_json::to_value(&request.options.budgets)).into_iter().map(|(key, value)| {
        match (value.get("secs").and_then(Value::as_u64), value.get("nanos").and_then(Value::as_u64)) {
            (Some(secs), Some(nanos)) => (format!("{key}_s"), (secs as f64 + nanos as f64 / 1e9).into()),
            _ => (key, value),
        }
    });
    let budgets = budgets.collect();
    (gates, options, budgets)
}

/// The time of day; with its date where that is not the day of the submission.
fn clock(story: &Story, at: Timestamp) -> String {
    let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
    let form = if day(at) == day(story.submitted_at) { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(form).to_string()
}

fn seconds(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_secs().max(0)
}

/// `7:12`, `1:02:03`.
fn span(seconds: i64) -> String {
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds % 3600 / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests;
