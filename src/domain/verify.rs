//! A check of what was found against what is recorded, and its verdict.

use serde::{Deserialize, Serialize};

use super::failure::Owner;

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
}
