//! Looking back at a run: its records, how many of them are played, and what they come to (U11).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::event::{Body, Observation, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::run_view::RunView;

/// A run that is played from its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tape {
    pub run: RunId,
    pub records: Vec<RunRecord>,
    /// So many of them are played: at least one.
    pub at: usize,
    /// What these come to.
    pub view: RunView,
}

/// A move on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    Back,
    On,
    /// To the beginning of the phase, or of the one before.
    BackPhase,
    OnPhase,
}

impl Tape {
    /// The tape at its end.
    pub fn new(run: RunId, records: Vec<RunRecord>) -> Tape {
        Tape { run, at: records.len(), view: RunView::of(&records), records }
    }

    /// When the last record that is played was made.
    pub fn moment(&self) -> Timestamp {
        self.records[..self.at].last().map_or(Timestamp::UNIX_EPOCH, |record| record.at)
    }

    /// Moves, and plays up to there. `false` where the move leads past the end.
    pub fn turn(&mut self, step: Move) -> bool {
        let begins = |at: &usize| is_beginning(&self.records[at - 1]);
        let to = match step {
            Move::Back => self.at - 1,
            Move::On => self.at + 1,
            Move::BackPhase => (1..self.at).rev().find(begins).unwrap_or(1),
            Move::OnPhase => (self.at + 1..=self.records.len()).find(begins).unwrap_or(self.records.len() + 1),
        };
        if to > self.records.len() {
            return false;
        }
        self.at = to.max(1);
        self.view = RunView::of(&self.records[..self.at]);
        true
    }
}

/// Whether a phase begins with this record.
fn is_beginning(record: &RunRecord) -> bool {
    matches!(record.body, Body::Observation(Observation::PhaseStarted { .. }))
}
