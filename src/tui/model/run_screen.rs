//! The run view's state: which run, which pane has the focus, how far each is scrolled, and what rows a pane has.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::run_view::{PhaseStatus, RunView};
use crate::domain::verify::{Check, Verdict, Verification};

/// A run on the screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunScreen {
    pub run: RunId,
    pub host: String,
    pub pane: RunPane,
    /// The person chose the pane: it doesn't follow the run any more.
    pub pinned: bool,
    /// First visible row of each pane, in the order of [`RunPane::ALL`].
    pub tops: [usize; 5],
    /// Checks that agree show too.
    pub show_all: bool,
}

/// The panes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunPane {
    Links,
    Diff,
    Cleaning,
    /// How long each phase took, beside what it usually takes.
    Phases,
    Events,
}

/// The panes where phases stand at the side anyway.
pub const BESIDE: [RunPane; 4] = [RunPane::Links, RunPane::Diff, RunPane::Cleaning, RunPane::Events];

impl RunPane {
    pub const ALL: [RunPane; 5] = [RunPane::Links, RunPane::Diff, RunPane::Cleaning, RunPane::Phases, RunPane::Events];

    pub fn title(self) -> &'static str {
        match self {
            RunPane::Links => "link guard",
            RunPane::Diff => "inspection diff",
            RunPane::Cleaning => "cleaning",
            RunPane::Phases => "timeline",
            RunPane::Events => "events",
        }
    }

    /// A word short enough for a row of four.
    pub fn short(self) -> &'static str {
        match self {
            RunPane::Links => "links",
            RunPane::Diff => "diff",
            RunPane::Cleaning => "clean",
            RunPane::Phases => "time",
            RunPane::Events => "events",
        }
    }

    pub fn index(self) -> usize {
        RunPane::ALL.iter().position(|p| *p == self).unwrap_or(0)
    }
}

impl RunScreen {
    pub fn new(run: RunId, host: &str) -> RunScreen {
        RunScreen { run, host: host.to_owned(), pane: RunPane::Events, pinned: false, tops: [0; 5], show_all: false }
    }

    /// The pane with the focus: the one that was chosen, else the one that the run is at.
    pub fn focus(&self, view: &RunView) -> RunPane {
        if self.pinned { self.pane } else { pane_of(view) }
    }

    pub fn top(&self, pane: RunPane) -> usize {
        self.tops[pane.index()]
    }

    /// Gives the pane after this one the focus, or the one before.
    pub fn turn(&mut self, from: RunPane, forward: bool, panes: &[RunPane]) {
        let n = panes.len();
        let at = panes.iter().position(|pane| *pane == from).unwrap_or(0);
        self.pane = panes[(at + if forward { 1 } else { n - 1 }) % n];
        self.pinned = true;
    }
}

/// The pane that tells most of where the run is.
fn pane_of(view: &RunView) -> RunPane {
    let guarding = view.guard().is_some_and(|g| !g.over);
    if guarding {
        return RunPane::Links;
    }
    if let Some(failure) = view.failure() {
        let judged = view.verification.as_ref().is_some_and(|v| !v.verification.passed());
        return match failure.phase {
            Phase::Inspection if judged => RunPane::Diff,
            Phase::Inspection if view.guard().is_some() => RunPane::Links,
            Phase::Cleaning if view.cleaning.is_some() => RunPane::Cleaning,
            _ => RunPane::Events,
        };
    }
    let cleaning = view.phase_of(Phase::Cleaning).status == PhaseStatus::Running;
    if cleaning && view.cleaning.is_some() { RunPane::Cleaning } else { RunPane::Events }
}

/// A row of the inspection diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffRow {
    /// The one cause of all mismatches.
    Diagnosis,
    /// A check, by its place.
    Check(usize),
    /// What may explain its mismatch.
    Hint(usize),
    /// What its owner does.
    Action(usize),
    /// So many that agree do not show.
    More(usize),
}

/// The rows of the diff: mismatches first, then what was not reported, then what agrees.
pub fn diff_rows(verification: &Verification, show_all: bool) -> Vec<DiffRow> {
    let checks = &verification.checks;
    let of = |verdict| checks.iter().enumerate().filter(move |(_, c)| c.verdict == verdict).map(|(n, _)| n);
    let mut rows = Vec::new();
    if verification.diagnosis.is_some() {
        rows.push(DiffRow::Diagnosis);
    }
    let failed: Vec<usize> = of(Verdict::Fail).collect();
    for (place, n) in failed.iter().enumerate() {
        rows.push(DiffRow::Check(*n));
        // What all of them come to stands above already.
        if checks[*n].hint.is_some() && checks[*n].hint != verification.diagnosis {
            rows.push(DiffRow::Hint(*n));
        }
        // Two cables that are swapped have one action: it stands once, below both.
        let next = failed.get(place + 1).and_then(|next| checks[*next].action.as_ref());
        if checks[*n].action.is_some() && checks[*n].action.as_ref() != next {
            rows.push(DiffRow::Action(*n));
        }
    }
    rows.extend(of(Verdict::Unknown).map(DiffRow::Check));
    let agreeing: Vec<usize> = of(Verdict::Pass).chain(of(Verdict::Skipped)).collect();
    if show_all {
        rows.extend(agreeing.into_iter().map(DiffRow::Check));
    } else if !agreeing.is_empty() {
        rows.push(DiffRow::More(agreeing.len()));
    }
    rows
}

/// A line of a pane. What stands in it is the view's business; how many there are is scrolling's too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A link with its history, and in narrow panes its cable on a line of its own.
    Link(usize),
    LinkCable(usize),
    /// MAC address and slot, in narrow panes.
    LinkPort(usize),
    /// When the links were read, and what the guard makes of them.
    LinkRule,
    Diff(DiffRow),
    /// The two sides of a check that differs, in narrow panes.
    Expected(usize),
    Observed(usize),
    /// The rule of a check, where its line has no room for it.
    Rule(usize),
    /// The clean step and the states over time.
    Step,
    States,
    /// The next look and the last failure.
    Looks,
    LastFailure,
    /// A phase, by its place in the view.
    Phase(usize),
    /// An event, by its place in the list.
    Event(usize),
}

/// From so many columns on, a pane has one line per link or check.
pub const ONE_LINE: u16 = 84;

/// From so many columns on, the checks that agree show unasked.
const ALL_CHECKS: u16 = 120;

/// From so many columns on, the rule of a check stands behind what was expected and observed.
pub const RULE_BESIDE: u16 = 125;

/// Whether a check's rule has no room on its line. One that agrees in the same words has it there: its value stands once.
fn needs_rule_line(check: &Check, width: u16) -> bool {
    let is_said_once = says_one(check) && width >= ONE_LINE;
    !check.rule.is_empty() && width < RULE_BESIDE && !is_said_once
}

/// Whether expected and observed are the same words.
pub fn says_one(check: &Check) -> bool {
    check.verdict == Verdict::Pass && check.expected == check.observed
}

/// The lines of a pane, from the top down.
pub fn rows(view: &RunView, pane: RunPane, show_all: bool, width: u16) -> Vec<Row> {
    let narrow = width < ONE_LINE;
    let mut out = Vec::new();
    match pane {
        RunPane::Links => {
            let Some(guard) = view.guard() else { return out };
            for at in 0..guard.links.len() {
                out.push(Row::Link(at));
                if narrow {
                    out.extend([Row::LinkCable(at), Row::LinkPort(at)]);
                }
            }
            out.push(Row::LinkRule);
        }
        RunPane::Diff => {
            let Some(judged) = &view.verification else { return out };
            // Where there is room the whole list is no burden.
            for row in diff_rows(&judged.verification, show_all || width >= ALL_CHECKS) {
                out.push(Row::Diff(row));
                let DiffRow::Check(at) = row else { continue };
                let check = &judged.verification.checks[at];
                if narrow && check.verdict == Verdict::Fail {
                    out.extend([Row::Expected(at), Row::Observed(at)]);
                }
                if needs_rule_line(check, width) {
                    out.push(Row::Rule(at));
                }
            }
        }
        RunPane::Cleaning => {
            let Some(cleaning) = &view.cleaning else { return out };
            out.extend([Row::Step, Row::States, Row::Looks]);
            if cleaning.last_failure.is_some() {
                out.push(Row::LastFailure);
            }
        }
        RunPane::Phases => out.extend((0..view.phases.len()).map(Row::Phase)),
        // The newest first: what just happened stands beside the heading.
        RunPane::Events => out.extend((0..view.events.len()).rev().map(Row::Event)),
    }
    out
}

/// How long the run has been under way, or was.
pub fn elapsed_s(view: &RunView, now: Timestamp) -> u64 {
    let from = view.submitted_at().unwrap_or(now);
    crate::tui::text::seconds(from, view.finished_at.unwrap_or(now))
}
