//! What the end of a run means for the enrollment proof of its device (T4, T5).

use serde_json::Value;

use super::event::{Event, Outcome};
use super::ids::NodeUuid;

/// The node that a run worked on, at the Ironic that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub instance: String,
    pub node: NodeUuid,
}

/// The identity that a failure write has to be guarded by; `None` where the proof is left as it is without a write.
///
/// A run that failed or was cancelled did not prove what it worked on, and neither did one that claims a qualifying
/// completion and names no node (T4). A diagnostic completion says nothing about the proof, and an end that can't be
/// read says nothing at all (T5). A good completion was written when it was proven (T1).
pub fn failed<'a>(journal: impl IntoIterator<Item = &'a Event>, outcome: &Outcome) -> Option<Identity> {
    let proves_nothing = match outcome {
        Outcome::Failed { .. } | Outcome::Cancelled { .. } => true,
        Outcome::Succeeded { result: Some(result) } => {
            result.qualifying && (result.node.is_none() || result.ironic.is_none())
        }
        Outcome::Succeeded { result: None } => false,
    };
    if proves_nothing { operated(journal) } else { None }
}

/// The node that the last step worked on, or that the prelude found or made. By field names: the journal keeps them for
/// ever, whatever activity has them.
fn operated<'a>(journal: impl IntoIterator<Item = &'a Event>) -> Option<Identity> {
    let (mut asked, mut found) = (None, None);
    for event in journal {
        match event {
            Event::ActivityScheduled { seq, input, .. } => {
                let instance = input.get("ironic").and_then(Value::as_str);
                found = identity(instance, input).or(found);
                asked = instance.map(|instance| (*seq, instance));
            }
            Event::ActivityDone { seq, output } => {
                let instance = asked.filter(|(of, _)| of == seq).map(|(_, instance)| instance);
                found = identity(instance, output).or(found);
            }
            _ => {}
        }
    }
    found
}

fn identity(instance: Option<&str>, value: &Value) -> Option<Identity> {
    let node = value.get("node")?.as_str()?.parse().ok()?;
    Some(Identity { instance: instance?.to_owned(), node: NodeUuid(node) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::event::EnrollResult;
    use crate::domain::failure::{Failure, FailureCode};
    use crate::domain::phase::Phase;

    const NODE: &str = "6a0e4d1b-0000-4000-8000-000000000001";

    fn scheduled(seq: u32, input: Value) -> Event {
        Event::ActivityScheduled { seq, name: "ironic.prelude".into(), phase: Phase::Inspection, input }
    }

    fn prelude() -> [Event; 2] {
        [
            scheduled(4, json!({ "host": "a", "netbox_id": 1, "site": "s", "ironic": "main", "phase": "inspection" })),
            Event::ActivityDone { seq: 4, output: json!({ "prelude": "ready", "node": NODE, "state": "enroll" }) },
        ]
    }

    fn worked_on(instance: &str) -> Option<Identity> {
        Some(Identity { instance: instance.into(), node: NodeUuid(NODE.parse().unwrap()) })
    }

    fn result(qualifying: bool, node: Option<&str>) -> Outcome {
        let result = EnrollResult {
            node: node.map(|node| NodeUuid(node.parse().unwrap())),
            ironic: Some("main".into()),
            platform_class: None,
            already_enrolled: false,
            qualifying,
        };
        Outcome::Succeeded { result: Some(result) }
    }

    /// Proves: T4, T5
    #[test]
    fn each_kind_of_end_writes_for_the_node_that_was_worked_on_or_nothing() {
        let failure = Failure::new(FailureCode::InternalError, Phase::Cleaning, "it broke", "look");
        let failed_ = Outcome::Failed { failure: Box::new(failure) };
        let cancelled = Outcome::Cancelled { by: "kim".into(), left: vec![], why: None };
        let journal = prelude();
        for (outcome, expected) in [
            (failed_.clone(), worked_on("main")),
            (cancelled.clone(), worked_on("main")),
            // It claims to prove something and does not say what.
            (result(true, None), worked_on("main")),
            (result(true, Some(NODE)), None),
            (result(false, Some(NODE)), None),
            (result(false, None), None),
            (Outcome::Succeeded { result: None }, None),
        ] {
            assert_eq!(failed(&journal, &outcome), expected, "{outcome:?}");
        }
        // Before the prelude has answered no node is known, and nothing is written.
        assert_eq!(failed(&journal[..1], &failed_), None);
        assert_eq!(failed(&[], &cancelled), None);
    }

    #[test]
    fn the_last_step_names_the_node_and_what_is_no_node_names_none() {
        let outcome = Outcome::Cancelled { by: "kim".into(), left: vec![], why: None };
        let mut journal = prelude().to_vec();
        let other = "6a0e4d1b-0000-4000-8000-000000000002";
        journal.push(scheduled(5, json!({ "ironic": "cpu", "node": other, "phase": "cleaning" })));
        let last = failed(&journal, &outcome).unwrap();
        assert_eq!((last.instance.as_str(), last.node.to_string().as_str()), ("cpu", other));
        journal.push(scheduled(6, json!({ "ironic": "cpu", "node": "no uuid" })));
        journal.push(Event::ActivityDone { seq: 6, output: json!({ "node": 7 }) });
        journal.push(Event::ActivityDone { seq: 99, output: json!({ "node": NODE }) });
        assert_eq!(failed(&journal, &outcome), Some(last));
    }
}
