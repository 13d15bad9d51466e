//! The part of a journal that a replay has still to walk through, and what it says when the code goes another way.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::Value;

use crate::domain::event::Event;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize_to;

/// An event with its place and time.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub n: u64,
    pub at: Timestamp,
    pub event: Event,
}

/// What is left of the past. Empty: the run is live.
#[derive(Debug, Default)]
pub(super) struct History {
    events: VecDeque<Past>,
}

/// What the code does at a place where the journal has something else (G7).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {n} of the journal is {journal}, and the code {code}")]
pub(super) struct Divergence {
    pub n: u64,
    pub journal: String,
    pub code: String,
}

impl Divergence {
    /// The failure that ends the run.
    pub(super) fn failure(&self, phase: Phase) -> Failure {
        Failure::new(
            FailureCode::JournalDiverged,
            phase,
            self.to_string(),
            "look at what the run has left half done, then enroll the host anew: that begins with a new journal",
        )
    }
}

impl History {
    pub(super) fn new(events: impl IntoIterator<Item = Past>) -> Self {
        History { events: events.into_iter().collect() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.events.is_empty()
    }

    pub(super) fn peek(&self) -> Option<&Past> {
        self.events.front()
    }

    pub(super) fn take(&mut self) -> Option<Past> {
        self.events.pop_front()
    }
}

/// Whether the input that was journaled is the one that the code has now. Fields that are new in the code are none of the
/// journal's business; a journaled field that has another value, or is gone, is another request.
pub(super) fn covers(journal: &Value, code: &Value) -> bool {
    match (journal, code) {
        (Value::Object(old), Value::Object(new)) => old.iter().all(|(key, value)| match new.get(key) {
            Some(now) => covers(value, now),
            None => value.is_null(),
        }),
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| covers(old, new))
        }
        (old, new) => old == new,
    }
}

/// An event in the words of a divergence.
pub(super) fn words(event: &Event) -> String {
    match event {
        Event::Submitted { workflow, .. } => format!("the submission of '{workflow}'"),
        Event::ActivityScheduled { seq, name, input, .. } => format!("activity {seq} '{name}' with {}", short(input)),
        Event::ActivityDone { seq, .. } => format!("the result of activity {seq}"),
        Event::ActivityFailed { seq, failure } => format!("the failure '{}' of activity {seq}", failure.code),
        Event::ActivityCancelled { seq } => format!("the cancellation of activity {seq}"),
        Event::TimerSet { seq, .. } => format!("timer {seq}"),
        Event::TimerFired { seq } => format!("the end of timer {seq}"),
        Event::Signalled { signal } => format!("the signal {}", short(signal)),
        Event::CancelRequested { .. } => "the request to cancel".to_owned(),
        Event::Version { change, taken } => format!("the version of '{change}' ({taken})"),
        Event::Finished { outcome } => format!("the end of the run ('{}')", outcome.status()),
    }
}

/// A value as a message shows it.
pub(super) fn short(value: &Value) -> String {
    neutralize_to(&value.to_string(), 300)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Proves: G7
    #[test]
    fn a_new_field_is_no_other_request_and_a_changed_or_lost_one_is() {
        let old = json!({"host": "a", "tags": ["x", {"k": 1}], "since": null});
        for (same, new) in [
            (true, json!({"host": "a", "tags": ["x", {"k": 1}], "since": null})),
            (true, json!({"host": "a", "tags": ["x", {"k": 1, "more": true}], "new": 2})),
            (false, json!({"host": "b", "tags": ["x", {"k": 1}]})),
            (false, json!({"host": "a", "tags": ["x"]})),
            (false, json!({"tags": ["x", {"k": 1}]})),
            (false, json!({"host": "a", "tags": ["x", {"k": 1}], "since": 5})),
        ] {
            assert_eq!(covers(&old, &new), same, "{new}");
        }
    }
}
