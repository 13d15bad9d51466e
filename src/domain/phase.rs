//! The phases of an enrollment, in their order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A phase of an enrollment (G1: strictly in this order).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Which Ironic instance owns the device, before anything is touched.
    ResolveIronicInstance,
    /// NetBox, read live: does the device exist in a status that may be enrolled?
    StatusGate,
    PlatformClass,
    Dhcp,
    Bmc,
    Activation,
    Inspection,
    DriverSwitch,
    Cleaning,
    /// Power on, the NetBox tag, the terminal proof.
    Finalize,
}

impl Phase {
    /// All phases in the order in which a run walks them.
    pub const ALL: [Phase; 10] = [
        Phase::ResolveIronicInstance,
        Phase::StatusGate,
        Phase::PlatformClass,
        Phase::Dhcp,
        Phase::Bmc,
        Phase::Activation,
        Phase::Inspection,
        Phase::DriverSwitch,
        Phase::Cleaning,
        Phase::Finalize,
    ];

    /// The wire spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::ResolveIronicInstance => "resolve_ironic_instance",
            Phase::StatusGate => "status_gate",
            Phase::PlatformClass => "platform_class",
            Phase::Dhcp => "dhcp",
            Phase::Bmc => "bmc",
            Phase::Activation => "activation",
            Phase::Inspection => "inspection",
            Phase::DriverSwitch => "driver_switch",
            Phase::Cleaning => "cleaning",
            Phase::Finalize => "finalize",
        }
    }

    /// The word that stands on a screen.
    pub fn label(self) -> &'static str {
        match self {
            Phase::ResolveIronicInstance => "preflight",
            Phase::StatusGate => "netbox",
            Phase::PlatformClass => "platform class",
            Phase::Dhcp => "dhcp",
            Phase::Bmc => "bmc",
            Phase::Activation => "activation",
            Phase::Inspection => "inspection",
            Phase::DriverSwitch => "driver switch",
            Phase::Cleaning => "cleaning",
            Phase::Finalize => "finalize",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
