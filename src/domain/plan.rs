//! What a run would read, write and wait for, phase by phase (G14). The fields are a contract of `muster plan --json`.

use serde::{Deserialize, Serialize};

use super::phase::Phase;

/// The plan of one host's enrollment, as things stand now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub host: String,
    /// All phases in their order, those that would not run among them.
    pub phases: Vec<PlannedPhase>,
    /// How many of all steps are writes.
    pub writes: usize,
}

/// One phase of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPhase {
    pub phase: Phase,
    pub gate: Gate,
    /// Requests that only look.
    pub reads: u32,
    pub steps: Vec<PlannedStep>,
}

/// Whether a phase would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    On,
    /// A gate or an option of the site switches it off.
    Off,
    /// There would be nothing to do, or the run would not come so far.
    Skipped,
}

impl Gate {
    /// The wire spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Gate::On => "on",
            Gate::Off => "off",
            Gate::Skipped => "skipped",
        }
    }
}

/// A write, a wait, a warning or something that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    pub system: String,
    pub what: String,
    pub target: String,
    /// How it is now; of a wait: what is waited for.
    pub before: String,
    /// How it would be; of a wait: for how long at most.
    pub after: String,
    pub write: bool,
}

/// The words in [`PlannedStep::what`] of steps that are no change of a value.
pub mod what {
    /// A command on the DHCP host: whether it changes something is not known here, so it counts as a write.
    pub const COMMAND: &str = "command";
    pub const WAIT: &str = "wait";
    pub const WARNING: &str = "warning";
    pub const NOTE: &str = "note";
    pub const SKIPPED: &str = "skipped";
    /// What nobody can know before it is done.
    pub const NOT_FORESEEN: &str = "cannot be foreseen";
    /// A run would end here without success.
    pub const FAILS: &str = "the run would fail";
}

impl Plan {
    /// The writes in their order.
    pub fn writes(&self) -> impl Iterator<Item = &PlannedStep> {
        self.phases.iter().flat_map(|phase| &phase.steps).filter(|step| step.write)
    }

    /// A phase of the plan.
    pub fn phase(&self, phase: Phase) -> Option<&PlannedPhase> {
        self.phases.iter().find(|planned| planned.phase == phase)
    }
}
