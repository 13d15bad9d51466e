//! The failure that a verification with mismatches becomes: one sentence that names them all.

use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize_to;
use crate::domain::verify::{Check, Verification};

/// Mismatches that the message names one by one. All of them stand in the evidence (V10).
const NAMED: usize = 8;

/// The failure of a verification that did not pass. A wrong cable decides the code, whatever else differs: it is mended at
/// the rack, and first.
pub fn failure(verification: &Verification, host: &str, phase: Phase) -> Failure {
    let failed: Vec<&Check> = verification.failed().collect();
    let of_cables = |c: &&Check| matches!(c.kind.as_str(), "lldp" | "carrier");
    let wrong_cable = failed.iter().any(|c| of_cables(c) && c.owner == Some(Owner::Onsite));
    let code = match wrong_cable || failed.iter().all(of_cables) {
        true => FailureCode::CablesWrong,
        false => FailureCode::VerificationFailed,
    };
    let mut facts: Vec<String> =
        failed.iter().take(NAMED).map(|c| fact(c, verification.diagnosis.as_deref())).collect();
    if failed.len() > NAMED {
        facts.push(format!("and {} more", failed.len() - NAMED));
    }
    let facts = facts.join("; ");
    let message = match &verification.diagnosis {
        Some(diagnosis) => format!("{diagnosis}: {facts}"),
        None => facts,
    };
    let owner = owner(&failed);
    let mut actions: Vec<&str> = Vec::new();
    for action in failed.iter().filter(|c| c.owner == Some(owner)).filter_map(|c| c.action.as_deref()) {
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    let rest = actions.len().saturating_sub(NAMED);
    actions.truncate(NAMED);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    let place = verification.place.as_ref().map_or(String::new(), |place| format!(" ({place})"));
    let action = format!("at {host}{place}: {}{more}; then retry with a forced inspection", actions.join("; "));
    let mut failure = Failure::new(code, phase, neutralize_to(&message, 1500), neutralize_to(&action, 1500));
    failure = failure.owned_by(owner);
    for check in &failed {
        let read = format!("expected '{}', observed '{}'", check.expected, check.observed);
        failure = failure.with_evidence(format!("inspection: {}", check.title()), read);
    }
    failure
}

/// `eth0 sees 'leaf-b07-2 swp14', NetBox has 'leaf-b07-1 swp14'`.
fn fact(check: &Check, diagnosis: Option<&str>) -> String {
    let mut fact = match check.kind.as_str() {
        "lldp" => format!("{} sees '{}', NetBox has '{}'", check.subject, check.observed, check.expected),
        "carrier" => format!("{} has no carrier", check.subject),
        _ => format!("{}: '{}' found, '{}' recorded", check.title(), check.observed, check.expected),
    };
    // What several have as their one cause stands in front of all already.
    if let Some(hint) = check.hint.as_ref().filter(|hint| !diagnosis.is_some_and(|text| text.contains(hint.as_str()))) {
        fact.push_str(&format!(" ({hint})"));
    }
    fact
}

/// Whose turn it is first: hands at the rack before the network before the records, since the others cannot be judged while
/// a cable is wrong.
fn owner(failed: &[&Check]) -> Owner {
    let has = |owner| failed.iter().any(|c| c.owner == Some(owner));
    [Owner::Onsite, Owner::Netops].into_iter().find(|o| has(*o)).unwrap_or(Owner::InfraEng)
}

#[cfg(test)]
mod tests {
    use super::super::{judge, testing::*};
    use super::*;
    use serde_json::{Value, json};

    fn parsed(s: &str, p: &str) -> Value {
        json!({"switch_system_name": s, "switch_port_id": p})
    }

    fn two(validation: Value, lldp: Value) -> Failure {
        let host = host(
            &[
                ("eth0", "52:54:00:10:01:01", "leaf-b07-1", "swp14"),
                ("eth1", "52:54:00:10:01:02", "leaf-b07-2", "swp14"),
            ],
            validation,
        );
        let inventory = json!({"interfaces": [
            {"name": "a", "mac_address": "52:54:00:10:01:01", "has_carrier": true},
            {"name": "b", "mac_address": "52:54:00:10:01:02", "has_carrier": true},
        ]});
        let verification = judge(&host, &inventory, &json!({"parsed_lldp": lldp}), None);
        failure(&verification, &host.name, Phase::Inspection)
    }

    /// Proves: V10, V12
    #[test]
    fn swapped_cables_are_one_sentence_with_place_and_action() {
        let failure = two(json!({}), json!({"a": parsed("leaf-b07-2", "swp14"), "b": parsed("leaf-b07-1", "swp14")}));
        assert_eq!((failure.code, failure.owner), (FailureCode::CablesWrong, Owner::Onsite));
        assert_eq!(
            failure.message,
            "eth0 and eth1 are swapped: eth0 sees 'leaf-b07-2 swp14', NetBox has 'leaf-b07-1 swp14'; eth1 sees \
             'leaf-b07-1 swp14', NetBox has 'leaf-b07-2 swp14'"
        );
        assert_eq!(
            failure.action,
            "at gpu-b07-41 (B07 U41): swap the two cables at the host: eth0 and eth1; then retry with a forced inspection"
        );
        assert_eq!(failure.evidence.len(), 2);
        assert!(!failure.retryable);
    }

    #[test]
    fn a_spelling_alone_goes_to_infra_eng_and_hardware_makes_it_a_failed_verification() {
        let spelling = json!({"a": parsed("leaf-b07-1", "SWP14"), "b": parsed("leaf-b07-2", "swp14")});
        let failure = two(json!({}), spelling.clone());
        assert_eq!((failure.code, failure.owner), (FailureCode::CablesWrong, Owner::InfraEng));
        assert!(failure.message.contains("not a wrong cable"), "{}", failure.message);
        let failure = two(json!({"bios": {"allow": ["1.0"]}}), spelling);
        assert_eq!((failure.code, failure.owner), (FailureCode::VerificationFailed, Owner::InfraEng));
    }

    #[test]
    fn a_hundred_mismatches_make_a_bounded_sentence_and_whole_evidence() {
        let gpus: serde_json::Map<String, Value> = (0..100).map(|n| (format!("10de:{n:04x}"), json!(1))).collect();
        let lldp = json!({"a": parsed("leaf-b07-1", "swp14"), "b": parsed("leaf-b07-2", "swp14")});
        let failure = two(json!({"gpus": gpus}), lldp);
        assert!(failure.message.ends_with("and 92 more"), "{}", failure.message);
        assert_eq!(failure.evidence.len(), 100);
    }
}
