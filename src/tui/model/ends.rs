//! Runs that ended while the console is open: who sits elsewhere hears of them, each once, and of many at once in one word.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::ids::RunId;

/// What is to be told, and what was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Ends {
    /// Told already; their ids tell which are the oldest.
    told: BTreeSet<RunId>,
    waiting: BTreeMap<RunId, String>,
    at: Option<Timestamp>,
}

/// Two words are at least so far apart.
pub const PAUSE_S: i64 = 5;
/// So many are remembered, so that a long session doesn't grow.
const KEPT: usize = 256;

impl Ends {
    /// A run has ended, in a sentence. Twice the same run is once.
    pub fn ended(&mut self, run: RunId, sentence: String) {
        if self.told.insert(run) {
            self.waiting.insert(run, sentence);
        }
        while self.told.len() > KEPT {
            self.told.pop_first();
        }
    }

    /// The word that is due; many ends are one.
    pub fn due(&mut self, now: Timestamp) -> Option<String> {
        // A clock that was set back is no reason to be silent for hours.
        let rests = self.at.is_some_and(|at| (0..PAUSE_S).contains(&now.duration_since(at).as_secs()));
        if rests || self.waiting.is_empty() {
            return None;
        }
        self.at = Some(now);
        let waiting = std::mem::take(&mut self.waiting);
        let mut sentences = waiting.into_values();
        let (first, others) = (sentences.next()?, sentences.count());
        Some(if others == 0 { first } else { format!("{} runs ended, {first} among them", others + 1) })
    }

    /// Whether something waits to be told.
    pub fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }
}
