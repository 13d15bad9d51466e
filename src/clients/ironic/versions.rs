//! Ironic's API versions: the lowest that each call of muster's needs, and what is agreed on with a server.

use std::fmt;

/// An Ironic API version, `1.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion(pub u32);

impl Microversion {
    /// The newest whose answers are known here: recorded ones, and those of real Ironics in the tests.
    pub const KNOWN: Microversion = Microversion(95);

    /// The lowest that has all that every enrollment needs.
    pub fn needed() -> Microversion {
        CALLS.iter().filter(|need| need.always).map(|need| need.since).max().unwrap_or(Microversion(1))
    }

    /// The OpenStack release that brought it.
    pub fn release(self) -> &'static str {
        RELEASES.iter().find(|(minor, _)| self.0 <= *minor).map_or("one after 2026.2", |(_, name)| *name)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        text.trim().strip_prefix("1.")?.parse().ok().map(Microversion)
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// The last API version of each OpenStack release.
const RELEASES: [(u32, &str); 18] = [
    (34, "Pike or older"),
    (38, "Queens"),
    (46, "Rocky"),
    (56, "Stein"),
    (58, "Train"),
    (65, "Ussuri"),
    (69, "Victoria"),
    (72, "Wallaby"),
    (78, "Xena"),
    (80, "Zed"),
    (82, "2023.1 Antelope"),
    (87, "2023.2 Bobcat"),
    (90, "2024.1 Caracal"),
    (93, "2024.2 Dalmatian"),
    (96, "2025.1 Epoxy"),
    (104, "2025.2 Flamingo"),
    (111, "2026.1"),
    (115, "2026.2"),
];

/// A kind of request to Ironic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    ListNodes,
    ReadNode,
    CreateNode,
    /// With a `firmware_interface`.
    CreateNodeWithFirmware,
    ChangeNode,
    SwitchDriver,
    Manage,
    Inspect,
    Provide,
    Abort,
    PowerOn,
    Maintenance,
    AddTrait,
    SetRaidTarget,
    ReadInventory,
    ReadPorts,
    CreatePort,
    RecordLink,
    ReadPortgroups,
    CreatePortgroup,
}

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub call: Call,
    /// Method and path.
    pub request: &'static str,
    pub since: Microversion,
    /// What came with that version and cannot be done without.
    pub feature: &'static str,
    /// Every enrollment makes the call; otherwise only hosts whose NetBox data asks for it.
    pub always: bool,
}

const fn need(call: Call, request: &'static str, minor: u32, feature: &'static str) -> Need {
    Need { call, request, since: Microversion(minor), feature, always: true }
}

/// Every call with the lowest version that it needs. Requests go out with exactly that version, so that a newer Ironic gives
/// the same answers as an older one.
pub static CALLS: [Need; 20] = [
    need(Call::ListNodes, "GET /v1/nodes", 39, "the state 'inspect wait'"),
    need(Call::ReadNode, "GET /v1/nodes/{node}", 65, "the lessee of a node"),
    need(Call::CreateNode, "POST /v1/nodes", 65, "the lessee of a node"),
    Need {
        always: false,
        ..need(Call::CreateNodeWithFirmware, "POST /v1/nodes with firmware_interface", 86, "the interface for firmware")
    },
    need(Call::ChangeNode, "PATCH /v1/nodes/{node}", 65, "the lessee of a node"),
    need(Call::SwitchDriver, "PATCH /v1/nodes/{node}?reset_interfaces=true", 65, "the lessee of a node"),
    need(Call::Manage, "PUT /v1/nodes/{node}/states/provision manage", 11, "nodes that begin in 'enroll'"),
    need(Call::Inspect, "PUT /v1/nodes/{node}/states/provision inspect", 11, "nodes that begin in 'enroll'"),
    need(Call::Provide, "PUT /v1/nodes/{node}/states/provision provide", 11, "nodes that begin in 'enroll'"),
    need(Call::Abort, "PUT /v1/nodes/{node}/states/provision abort", 41, "the abort of an inspection"),
    need(Call::PowerOn, "PUT /v1/nodes/{node}/states/power power on", 1, "the power of a node"),
    need(Call::Maintenance, "PUT, DELETE /v1/nodes/{node}/maintenance", 1, "the maintenance flag"),
    need(Call::AddTrait, "PUT /v1/nodes/{node}/traits/{trait}", 37, "traits"),
    need(Call::SetRaidTarget, "PUT /v1/nodes/{node}/states/raid", 12, "the RAID target"),
    need(Call::ReadInventory, "GET /v1/nodes/{node}/inventory", 81, "the inventory of an inspection"),
    need(Call::ReadPorts, "GET /v1/ports/detail", 24, "the portgroup of a port"),
    need(Call::CreatePort, "POST /v1/ports", 24, "the portgroup of a port"),
    need(Call::RecordLink, "PATCH /v1/ports/{port}", 24, "the portgroup of a port"),
    need(Call::ReadPortgroups, "GET /v1/portgroups/detail", 26, "mode and properties of a portgroup"),
    need(Call::CreatePortgroup, "POST /v1/portgroups", 26, "mode and properties of a portgroup"),
];

impl Call {
    /// The row of the table.
    pub fn need(self) -> &'static Need {
        CALLS.iter().find(|need| need.call == self).expect("every call has its row: the test below looks at each")
    }
}

/// The versions that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spoken {
    pub min: Microversion,
    pub max: Microversion,
}

/// Why muster and a server have no version in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// The server lacks what a call needs: the call that needs most.
    TooOld(&'static Need),
    /// The server no longer speaks any version whose answers are known here.
    TooNew,
}

impl Spoken {
    /// Whether a whole enrollment can be made with this server.
    pub fn judge(self) -> Result<(), Apart> {
        if self.min > Microversion::KNOWN {
            return Err(Apart::TooNew);
        }
        match self.lacking().max_by_key(|need| need.since) {
            Some(need) => Err(Apart::TooOld(need)),
            None => Ok(()),
        }
    }

    /// What every enrollment needs and this server does not have.
    pub fn lacking(self) -> impl Iterator<Item = &'static Need> {
        CALLS.iter().filter(move |need| need.always && need.since > self.max)
    }

    /// The version that a call is made with: the lowest that has what it needs, or the server's lowest where that is higher.
    pub fn version_for(self, call: Call) -> Result<Microversion, Apart> {
        let need = call.need();
        if need.since > self.max { Err(Apart::TooOld(need)) } else { Ok(need.since.max(self.min)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(min: u32, max: u32) -> Spoken {
        Spoken { min: Microversion(min), max: Microversion(max) }
    }

    #[test]
    fn every_call_has_its_row_and_none_needs_more_than_is_known() {
        for need in &CALLS {
            assert_eq!(need.call.need(), need);
            assert!(need.since <= Microversion::KNOWN, "{need:?}");
        }
        assert_eq!(Microversion::needed(), Microversion(81));
    }

    #[test]
    fn a_call_is_made_with_the_lowest_version_that_it_needs_or_the_lowest_that_is_spoken() {
        assert_eq!(spoken(1, 115).version_for(Call::Manage), Ok(Microversion(11)));
        assert_eq!(spoken(1, 115).version_for(Call::ReadNode), Ok(Microversion(65)));
        assert_eq!(spoken(50, 115).version_for(Call::Manage), Ok(Microversion(50)));
        assert_eq!(
            spoken(1, 85).version_for(Call::CreateNodeWithFirmware),
            Err(Apart::TooOld(Call::CreateNodeWithFirmware.need()))
        );
    }

    #[test]
    fn a_server_that_is_too_old_lacks_something_by_name_and_one_that_is_too_new_is_told_apart() {
        assert_eq!(spoken(1, 81).judge(), Ok(()));
        assert_eq!(spoken(95, 200).judge(), Ok(()));
        assert_eq!(spoken(1, 80).judge(), Err(Apart::TooOld(Call::ReadInventory.need())));
        let lacking: Vec<&str> = spoken(1, 64).lacking().map(|need| need.feature).collect();
        assert!(lacking.contains(&"the lessee of a node") && lacking.contains(&"the inventory of an inspection"));
        assert_eq!(spoken(96, 200).judge(), Err(Apart::TooNew));
    }

    #[test]
    fn a_version_names_the_release_that_brought_it() {
        assert_eq!(Microversion(81).release(), "2023.1 Antelope");
        assert_eq!(Microversion(65).release(), "Ussuri");
        assert_eq!(Microversion(115).release(), "2026.2");
        assert!(Microversion(200).release().contains("after"));
    }
}
