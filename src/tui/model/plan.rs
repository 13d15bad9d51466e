//! The plan of a host's enrollment, on top of the launch dialog that it was asked from.

use serde::{Deserialize, Serialize};

use super::launch::{Candidate, Launch};
use crate::domain::plan::{Plan, PlanLine};
use crate::tui::event::Refused;

/// What would happen to one host of a launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanPopup {
    /// The dialog below, as it was left.
    pub launch: Launch,
    /// Which of its hosts that may go.
    pub at: usize,
    /// `None`: it is being made.
    pub page: Option<Result<Page, Refused>>,
    /// First line that shows.
    pub top: usize,
}

impl PlanPopup {
    pub fn new(launch: Launch) -> PlanPopup {
        PlanPopup { launch, at: 0, page: None, top: 0 }
    }

    /// The host that it is of.
    pub fn host(&self) -> Option<&Candidate> {
        self.launch.starting().nth(self.at)
    }

    /// The host before or behind; `false` at the ends.
    pub fn step(&mut self, on: bool) -> bool {
        let last = self.launch.starting().count().saturating_sub(1);
        let to = if on { (self.at + 1).min(last) } else { self.at.saturating_sub(1) };
        if to == self.at {
            return false;
        }
        (self.at, self.page, self.top) = (to, None, 0);
        true
    }

    /// How many lines it has; while it is made, one that says so.
    pub fn rows(&self) -> usize {
        match &self.page {
            Some(Ok(page)) => page.lines.len(),
            Some(Err(_)) => 2,
            None => 1,
        }
    }
}

/// A plan in lines. Made once: each of many frames would compare the texts of its changes anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub summary: String,
    pub lines: Vec<PlanLine>,
}

impl Page {
    pub fn of(plan: &Plan) -> Page {
        Page { summary: plan.summary(), lines: plan.lines() }
    }
}
