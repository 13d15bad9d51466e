//! The runs of a host as a list: which one is selected, and which are marked to stand side by side.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::run_view::{RunState, RunView};
use crate::tui::event::Refused;
use crate::tui::text;

/// The list of a host's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    pub netbox_id: u64,
    pub host: String,
    /// The newest first; `None` until they were read.
    pub runs: Option<Vec<Past>>,
    /// Why they could not be read the last time that it was tried. Those that were read before stay.
    #[serde(default)]
    pub refused: Option<Refused>,
    pub selected: Option<RunId>,
    /// At most two: the one that was marked first goes when a third is marked.
    pub marks: Vec<RunId>,
    /// First visible line.
    pub top: usize,
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Past {
    pub run: RunId,
    pub state: RunState,
    pub by: String,
    pub submitted_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// The phase that it was last seen in.
    pub phase: Option<Phase>,
    /// The most that any of its phases took.
    pub attempts: u32,
    pub failure: Option<Failure>,
    pub retry_of: Option<RunId>,
}

impl History {
    pub fn new(netbox_id: u64, host: &str, selected: Option<RunId>) -> History {
        History { netbox_id, host: host.to_owned(), runs: None, refused: None, selected, marks: Vec::new(), top: 0 }
    }

    /// The runs that are known.
    pub fn known(&self) -> &[Past] {
        self.runs.as_deref().unwrap_or_default()
    }

    /// The selected run's place.
    pub fn cursor(&self) -> usize {
        self.known().iter().position(|past| Some(past.run) == self.selected).unwrap_or(0)
    }

    /// The selected run.
    pub fn past(&self) -> Option<&Past> {
        self.known().get(self.cursor())
    }

    /// The two runs that are meant: the marked ones; else the one that is marked and the selected one, or the selected one
    /// and the one before it.
    pub fn pair(&self) -> Option<(&Past, &Past)> {
        let find = |run: &RunId| self.known().iter().find(|past| past.run == *run);
        let selected = self.past()?;
        match self.marks.as_slice() {
            [one, other] => Some((find(one)?, find(other)?)),
            [one] if *one != selected.run => Some((find(one)?, selected)),
            _ => {
                let at = self.cursor();
                let other = self.known().get(at + 1).or_else(|| self.known().get(at.checked_sub(1)?))?;
                Some((selected, other))
            }
        }
    }

    /// Marks the selected run, or takes its mark off.
    pub fn mark(&mut self) {
        let Some(run) = self.past().map(|past| past.run) else { return };
        if self.marks.contains(&run) {
            self.marks.retain(|marked| *marked != run);
            return;
        }
        self.marks.push(run);
        let extra = self.marks.len().saturating_sub(2);
        self.marks.drain(..extra);
    }
}

impl Past {
    /// As it stands by now, where its records are here.
    pub fn as_of(&self, view: Option<&RunView>) -> Past {
        let mut past = self.clone();
        let Some(view) = view.filter(|view| view.request.is_some()) else { return past };
        past.state = view.state();
        past.finished_at = view.finished_at;
        past.phase = view.phase().map(|phase| phase.phase).or(past.phase);
        past.attempts = view.phases.iter().map(|phase| phase.attempt).max().unwrap_or(1).max(past.attempts);
        past.failure = view.failure().cloned();
        past
    }

    /// How long it took, or has been under way.
    pub fn took(&self, now: Timestamp) -> String {
        text::clock(text::seconds(self.submitted_at, self.finished_at.unwrap_or(now)))
    }
}
