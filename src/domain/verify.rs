//! A check of what was found against what is recorded, and its verdict.

use serde::{Deserialize, Serialize};

use super::failure::{Failure, Owner};
use super::phase::Phase;

/// The outcome of one check. `Unknown` is neither: what was not reported is said so, and whether it passes is the rule's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Fail,
    /// Not reported, and the rule lets that pass (V1).
    Unknown,
    /// Not asked for on this host (V9).
    Skipped,
}

/// One check of an inspection: a row of the inspection diff (V13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What is checked: `lldp`, `carrier`, `gpu`, `cpu`, `nic`, `disk`, `memory`, `bios`.
    pub kind: String,
    /// Which one of them: `eth0`, `cores`, `10de:2901`; empty where there is only one.
    pub subject: String,
    pub expected: String,
    pub observed: String,
    pub verdict: Verdict,
    /// The rule that decides, in words, with the id of its clause.
    pub rule: String,
    /// What may explain a mismatch. Never turns it into a pass (V8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Who mends it, where the check failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// What that owner does, in the imperative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

/// All checks of one inventory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    pub checks: Vec<Check>,
    /// When the inspection that brought the inventory ended, where Ironic tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspected_at: Option<jiff::Timestamp>,
    /// What all mismatches together mean, where they have one cause: "eth0 and eth1 are swapped" (V12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<String>,
    /// Where the host stands, for whoever goes there: `B07 U37`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Verification {
    /// Whether every check passes: nothing failed.
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The failed checks, in their order.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.verdict == Verdict::Fail)
    }

    /// The failure that the mismatches amount to: every one of them is in it (V10). The code and the owner follow the
    /// mismatches: a wrong cable before all else, since it is mended at the rack.
    pub fn failure(&self, host: &str, phase: Phase) -> Failure {
        super::checks::failure(self, host, phase)
    }
}

impl Check {
    /// `lldp eth0`, `memory`.
    pub fn title(&self) -> String {
        if self.subject.is_empty() { self.kind.clone() } else { format!("{} {}", self.kind, self.subject) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::failure::FailureCode;

    fn check(kind: &str, subject: &str, verdict: Verdict, owner: Option<Owner>, action: Option<&str>) -> Check {
        Check {
            kind: kind.into(),
            subject: subject.into(),
            expected: "leaf-b07-1 swp14".into(),
            observed: "leaf-b07-2 swp14".into(),
            verdict,
            rule: String::new(),
            hint: None,
            owner,
            action: action.map(str::to_owned),
        }
    }

    /// Proves: V10
    #[test]
    fn every_mismatch_is_in_the_failure_and_a_wrong_cable_decides_the_owner() {
        let swap = Some("swap the two cables at the host");
        let verification = Verification {
            checks: vec![
                check("gpu", "10de:2901", Verdict::Fail, Some(Owner::InfraEng), None),
                check("lldp", "eth0", Verdict::Fail, Some(Owner::Onsite), swap),
                check("lldp", "eth1", Verdict::Fail, Some(Owner::Onsite), swap),
                check("carrier", "eth1", Verdict::Unknown, None, None),
            ],
            inspected_at: None,
            diagnosis: Some("eth0 and eth1 are swapped".into()),
            place: Some("B07 U37".into()),
        };
        assert!(!verification.passed());
        let failure = verification.failure("gpu-b07-37", Phase::Inspection);
        assert_eq!((failure.code, failure.owner), (FailureCode::CablesWrong, Owner::Onsite));
        for part in ["eth0 and eth1 are swapped", "gpu 10de:2901", "eth0 sees", "eth1 sees"] {
            assert!(failure.message.contains(part), "{part}: {}", failure.message);
        }
        assert_eq!(
            failure.action,
            "at gpu-b07-37 (B07 U37): swap the two cables at the host; then retry with a forced inspection"
        );
        assert_eq!(failure.evidence.len(), 3);
    }

    #[test]
    fn what_is_not_reported_fails_nothing() {
        let checks = vec![check("carrier", "eth0", Verdict::Unknown, None, None)];
        assert!(Verification { checks, inspected_at: None, diagnosis: None, place: None }.passed());
    }
}
