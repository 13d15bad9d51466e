//! The link guard over time: each frontend link's states, when it was read last, and what is left of the budget.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::link::{LinkReading, LinkState};
use crate::domain::phase::Phase;

/// One link guard of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardView {
    pub phase: Phase,
    /// Whole-phase attempt that it belongs to.
    pub attempt: u32,
    pub started_at: Timestamp,
    /// Of the latest reading.
    pub read_at: Timestamp,
    /// The most that was ever left: the whole budget, where the first look came at once.
    pub budget_s: u64,
    pub budget_left_s: u64,
    /// In the order of the readings.
    pub links: Vec<LinkLine>,
    /// The run went on or gave up: the guard counts no more.
    pub over: bool,
}

/// A link's story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkLine {
    pub reading: LinkReading,
    pub spans: Vec<LinkSpan>,
}

/// A time in which a link was seen in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSpan {
    pub state: LinkState,
    pub since: Timestamp,
    /// When it was seen last.
    pub until: Timestamp,
}

impl GuardView {
    /// A guard that begins with a first look.
    pub fn new(phase: Phase, attempt: u32, at: Timestamp, budget_left_s: u64) -> Self {
        GuardView {
            phase,
            attempt,
            started_at: at,
            read_at: at,
            budget_s: budget_left_s,
            budget_left_s,
            links: Vec::new(),
            over: false,
        }
    }

    /// Takes one look. Returns the links whose state is another than before; a first sight counts as one.
    pub fn look(&mut self, at: Timestamp, readings: &[LinkReading], budget_left_s: u64) -> Vec<Change> {
        self.read_at = at;
        self.budget_left_s = budget_left_s;
        self.budget_s = self.budget_s.max(budget_left_s);
        readings.iter().filter_map(|reading| self.take(at, reading)).collect()
    }

    fn take(&mut self, at: Timestamp, reading: &LinkReading) -> Option<Change> {
        let span = LinkSpan { state: reading.state, since: at, until: at };
        let Some(line) = self.links.iter_mut().find(|l| l.reading.interface == reading.interface) else {
            self.links.push(LinkLine { reading: reading.clone(), spans: vec![span] });
            return Some(Change { interface: reading.interface.clone(), state: reading.state, before: None });
        };
        line.reading = reading.clone();
        let last = line.spans.last_mut()?;
        last.until = at;
        if last.state == reading.state {
            return None;
        }
        let before = Some((last.state, at.duration_since(last.since).as_secs()));
        line.spans.push(span);
        Some(Change { interface: reading.interface.clone(), state: reading.state, before })
    }

    /// Whether every link is explicitly down. Nothing read is not "all down".
    pub fn all_down(&self) -> bool {
        !self.links.is_empty() && self.links.iter().all(|l| l.reading.state == LinkState::Down)
    }

    /// Whether any link was seen in this state at the latest look.
    pub fn any(&self, state: LinkState) -> bool {
        self.links.iter().any(|l| l.reading.state == state)
    }
}

impl LinkLine {
    /// The state at a moment; `None` before the first look and after `until` of the last one.
    pub fn state_at(&self, at: Timestamp) -> Option<LinkState> {
        self.spans.iter().rev().find(|s| s.since <= at).filter(|s| at <= s.until).map(|s| s.state)
    }

    /// How long it was up and then down again, in seconds, where that happened: `was up for 4s`.
    pub fn was_up_s(&self) -> Option<i64> {
        let (last, before) = self.spans.split_last()?;
        if last.state == LinkState::Up {
            return None;
        }
        let up = before.iter().rev().find(|s| s.state == LinkState::Up)?;
        Some(up.until.duration_since(up.since).as_secs())
    }
}

/// A link that is in another state than at the look before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub interface: String,
    pub state: LinkState,
    /// The state before and for how many seconds.
    pub before: Option<(LinkState, i64)>,
}
