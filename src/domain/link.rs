//! Decides whether a host's links, as the BMC reports them, let an inspection or a clean go on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::mac::Mac;

/// A link as the BMC reports it. What it cannot report is `Unknown`, a value of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkState {
    Up,
    Down,
    Unknown,
}

impl LinkState {
    /// The word that stands on a screen.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkState::Up => "UP",
            LinkState::Down => "DOWN",
            LinkState::Unknown => "UNKNOWN",
        }
    }
}

/// Where a cable of an interface goes, as NetBox has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct CableEnd {
    pub switch: String,
    pub port: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The cable's colour as six hex digits or as NetBox has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
}

/// One frontend interface at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReading {
    /// NetBox's interface name.
    pub interface: String,
    pub mac: Option<Mac>,
    pub state: LinkState,
    /// NIC slot or port as the BMC names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable: Option<CableEnd>,
    /// The word that the BMC used, where it is not one of the usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// What the guard makes of the readings so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum GuardVerdict {
    /// A link is up.
    Pass { interface: String },
    /// Nothing is up, and at least one link can't be read: go on, Ironic is the truth (L2).
    PassUnknown { interfaces: Vec<String> },
    /// All links are down; so much of the budget is observed so far.
    AllDown { observed: Duration },
    /// All links were down for the whole budget.
    Expired { observed: Duration },
}

/// Folds readings over time. Only observed time counts (G6): what lies between two readings adds nothing where nobody looked
/// for longer than `longest_pause`, as behind a suspend or a full disk, or where a reading took longer than
/// `longest_reading`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkGuard {
    budget: Duration,
    longest_pause: Duration,
    longest_reading: Duration,
    observed: Duration,
    last_all_down_at: Option<jiff::Timestamp>,
    gaps: u32,
}

impl LinkGuard {
    /// A guard whose clock starts with the first reading; call it once the node is powered on (L1).
    pub fn new(budget: Duration, longest_pause: Duration, longest_reading: Duration) -> Self {
        LinkGuard { budget, longest_pause, longest_reading, observed: Duration::ZERO, last_all_down_at: None, gaps: 0 }
    }

    /// Takes the readings of one poll, that was begun at `asked`. An empty list is a reading that doesn't exist, so it is
    /// unknown, never "all down".
    pub fn observe(&mut self, asked: jiff::Timestamp, at: jiff::Timestamp, links: &[LinkReading]) -> GuardVerdict {
        if let Some(up) = links.iter().find(|l| l.state == LinkState::Up) {
            return GuardVerdict::Pass { interface: up.interface.clone() };
        }
        let unknown: Vec<String> =
            links.iter().filter(|l| l.state == LinkState::Unknown).map(|l| l.interface.clone()).collect();
        if !unknown.is_empty() || links.is_empty() {
            return GuardVerdict::PassUnknown { interfaces: unknown };
        }
        if let Some(last) = self.last_all_down_at {
            // A clock that was set back tells nothing.
            let span =
                |from, to: jiff::Timestamp| Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO);
            if span(last, asked) <= self.longest_pause && span(asked, at) <= self.longest_reading {
                self.observed += span(last, at);
            } else {
                self.gaps += 1;
            }
        }
        self.last_all_down_at = Some(at);
        if self.observed >= self.budget {
            GuardVerdict::Expired { observed: self.observed }
        } else {
            GuardVerdict::AllDown { observed: self.observed }
        }
    }

    /// How often nothing was read for longer than a gap may be.
    pub fn gaps(&self) -> u32 {
        self.gaps
    }

    /// How much of the budget is left.
    pub fn left(&self) -> Duration {
        self.budget.saturating_sub(self.observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, state: LinkState) -> LinkReading {
        LinkReading { interface: name.into(), mac: None, state, slot: None, cable: None, raw: None }
    }

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn guard() -> LinkGuard {
        LinkGuard::new(Duration::from_secs(300), Duration::from_secs(20), Duration::from_secs(30))
    }

    /// Proves: L2
    #[test]
    fn any_link_up_passes() {
        let links = [link("eth0", LinkState::Down), link("eth1", LinkState::Up)];
        assert_eq!(guard().observe(at(0), at(0), &links), GuardVerdict::Pass { interface: "eth1".into() });
    }

    /// Proves: L2
    #[test]
    fn an_unknown_link_fails_open_and_an_empty_list_is_not_all_down() {
        let links = [link("eth0", LinkState::Down), link("eth1", LinkState::Unknown)];
        assert_eq!(
            guard().observe(at(0), at(0), &links),
            GuardVerdict::PassUnknown { interfaces: vec!["eth1".into()] }
        );
        assert_eq!(guard().observe(at(0), at(0), &[]), GuardVerdict::PassUnknown { interfaces: vec![] });
    }

    /// Proves: L1, L2
    #[test]
    fn all_down_expires_after_the_whole_observed_budget() {
        let (mut guard, links) = (guard(), [link("eth0", LinkState::Down)]);
        for second in (0..300).step_by(5) {
            assert!(matches!(guard.observe(at(second), at(second), &links), GuardVerdict::AllDown { .. }), "{second}");
        }
        assert!(matches!(guard.observe(at(300), at(300), &links), GuardVerdict::Expired { .. }));
    }

    /// Proves: G6
    #[test]
    fn time_in_which_nobody_looked_and_a_clock_set_back_add_nothing() {
        let (mut guard, links) = (guard(), [link("eth0", LinkState::Down)]);
        let mut left = |asked: i64, done: i64| {
            guard.observe(at(asked), at(done), &links);
            guard.left().as_secs()
        };
        assert_eq!(left(0, 0), 300);
        assert_eq!(left(7200, 7200), 300, "a suspend");
        assert_eq!(left(3600, 3600), 300, "a clock set back");
        assert_eq!(left(3605, 3605), 295);
        assert_eq!(left(3635, 3635), 295, "a full disk held the run up for half a minute");
        assert_eq!(left(3640, 3665), 265, "a slow BMC was looked at all the while");
        assert_eq!(left(3670, 3701), 265, "nobody knows what was between the question and so late an answer");
        assert_eq!(guard.gaps(), 3);
    }
}
