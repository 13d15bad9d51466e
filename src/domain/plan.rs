//! What a run would read, write and wait for, phase by phase (G14). The fields are a contract of `muster plan --json`.

use serde::{Deserialize, Serialize};

use super::lines::{Sign, diff, has_lines};
use super::phase::Phase;
use super::text::neutralize;

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

    /// How much it would do, in a few words.
    pub fn summary(&self) -> String {
        let reads: u32 = self.phases.iter().map(|phase| phase.reads).sum();
        match self.writes {
            0 => format!("nothing would be written, {reads} reads"),
            1 => format!("1 write, {reads} reads"),
            n => format!("{n} writes, {reads} reads"),
        }
    }

    /// The plan in lines, each safe to show: phases, and under each what it would do. A text of several lines that would be
    /// replaced is told line by line.
    pub fn lines(&self) -> Vec<PlanLine> {
        let mut lines = Vec::new();
        let mut say = |kind, text: String| lines.push(PlanLine { kind, text: neutralize(&text).into_owned() });
        for PlannedPhase { phase, gate, reads, steps } in &self.phases {
            let reads = if *reads == 0 { String::new() } else { format!("{reads} reads") };
            let kind = if *gate == Gate::On { LineKind::Phase } else { LineKind::Off };
            say(kind, format!("{:<15} {:<8} {reads}", phase.label(), gate.as_str()).trim_end().to_owned());
            for step in steps {
                let (kind, text) = step.line();
                say(kind, text);
                if step.write && has_lines(&step.before, &step.after) {
                    for (sign, line) in diff(&step.before, &step.after) {
                        say(LineKind::of(sign), line);
                    }
                }
            }
        }
        lines
    }

    /// A phase of the plan.
    pub fn phase(&self, phase: Phase) -> Option<&PlannedPhase> {
        self.phases.iter().find(|planned| planned.phase == phase)
    }
}

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLine {
    pub kind: LineKind,
    pub text: String,
}

/// What a line of a plan tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineKind {
    Phase,
    /// A phase that would not run.
    Off,
    Write,
    /// Lines of a text that would be replaced.
    Same,
    Gone,
    New,
    Wait,
    Warning,
    Note,
    Unforeseen,
    Fails,
}

impl LineKind {
    fn of(sign: Sign) -> LineKind {
        match sign {
            Sign::Same => LineKind::Same,
            Sign::Gone => LineKind::Gone,
            Sign::New => LineKind::New,
        }
    }
}

impl PlannedStep {
    fn line(&self) -> (LineKind, String) {
        let PlannedStep { system, what, target, before, after, write } = self;
        match (write, what.as_str()) {
            (true, what::COMMAND) => (LineKind::Write, format!("{system}: {target}: run '{after}'")),
            (true, _) if has_lines(before, after) => match before.contains('\n') {
                true => (LineKind::Write, format!("{system}: {target}: {what}")),
                false => (LineKind::Write, format!("{system}: {target}: {what} ({before})")),
            },
            (true, _) if before.is_empty() => (LineKind::Write, format!("{system}: {target}: {what} → {after}")),
            (true, _) => (LineKind::Write, format!("{system}: {target}: {what}: {before} → {after}")),
            (false, what::WAIT) => (LineKind::Wait, format!("{system}: {before}, {after}")),
            (false, what::WARNING) => (LineKind::Warning, after.clone()),
            (false, what::NOTE) => (LineKind::Note, format!("{system}: {after}")),
            (false, what::SKIPPED) => (LineKind::Note, after.clone()),
            (false, what::NOT_FORESEEN) => (LineKind::Unforeseen, format!("{what}: {after}")),
            (false, what::FAILS) => (LineKind::Fails, format!("{what}: {before}: {after}")),
            (false, _) if before.is_empty() => (LineKind::Note, format!("{system}: {what}: {after}")),
            (false, _) => (LineKind::Note, format!("{system}: {what}: {before} → {after}")),
        }
    }
}
