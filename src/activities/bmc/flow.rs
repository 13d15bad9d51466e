//! What is configured on which vendor's BMCs, and in which order (B2, B7, B11, B15, B16).

use crate::clients::redfish::vendor::Vendor;

/// The steps of one vendor. Its order is the order of the steps.
#[derive(Debug)]
pub(super) struct Flow {
    /// A password that does not work is set with the credential that the BMC left the factory with (B3).
    pub rotates: bool,
    pub settings: &'static [Setting],
    /// Firmware attributes that every host gets, by name. The site's own come over them.
    pub bios: &'static [(&'static str, &'static str)],
    pub boot: BootStep,
    /// The monitoring user needs a right of its own for IPMI (Q47).
    pub ipmi_privilege: bool,
}

/// One setting of a BMC itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Hostname,
    Dhcp,
    TlsMinimum,
    PlainServicesOff,
    HostInterfaceOff,
    Ntp,
    Syslog,
    VirtualMedia,
}

/// What becomes of the host's boot options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BootStep {
    Nothing,
    /// All but the provisioning NIC's option are disabled where the site restricts boots, and nothing is done where it does
    /// not (B11, B15).
    Restrict,
    /// The same; where the site does not restrict, or NetBox knows no provisioning NIC, network comes first by label and
    /// nothing is disabled (B7, B15).
    RestrictOrReorder,
    /// Options are classes: network comes first, and the provisioning NIC first in it where the firmware orders NICs.
    NetworkFirst,
}

const SUPERMICRO: Flow = Flow {
    rotates: false,
    settings: &[Setting::Hostname, Setting::Ntp, Setting::Syslog],
    bios: &[],
    boot: BootStep::Nothing,
    ipmi_privilege: false,
};

/// What the two fullest flows have in common.
const FULL: &[Setting] = &[
    Setting::Hostname,
    Setting::Dhcp,
    Setting::TlsMinimum,
    Setting::PlainServicesOff,
    Setting::HostInterfaceOff,
    Setting::Ntp,
    Setting::Syslog,
];

const LENOVO: Flow = Flow {
    rotates: true,
    settings: FULL,
    bios: &[
        ("BootModes_SystemBootMode", "UEFIMode"),
        ("Processors_IntelVirtualizationTechnology", "Enabled"),
        ("Processors_SVMMode", "Enabled"),
    ],
    boot: BootStep::NetworkFirst,
    ipmi_privilege: false,
};

const DELL: Flow = Flow {
    rotates: true,
    settings: FULL,
    bios: &[("BootMode", "Uefi"), ("ProcVirtualization", "Enabled"), ("SriovGlobalEnable", "Enabled")],
    boot: BootStep::RestrictOrReorder,
    ipmi_privilege: true,
};

const AMI: Flow = Flow {
    rotates: true,
    settings: &[Setting::Hostname, Setting::Ntp, Setting::VirtualMedia],
    bios: &[],
    boot: BootStep::Restrict,
    ipmi_privilege: false,
};

/// The flow of a vendor.
pub(super) fn flow(vendor: Vendor) -> &'static Flow {
    match vendor {
        Vendor::Supermicro => &SUPERMICRO,
        Vendor::Lenovo => &LENOVO,
        Vendor::Dell => &DELL,
        Vendor::Ami => &AMI,
    }
}

/// The vendor's word in the configuration and in names of vault items.
pub(super) fn word(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Supermicro => "supermicro",
        Vendor::Lenovo => "lenovo",
        Vendor::Dell => "dell",
        Vendor::Ami => "ami",
    }
}

impl Flow {
    /// Whether anything is kept for the host's next boot.
    pub fn stages(&self) -> bool {
        !self.bios.is_empty() || self.boot != BootStep::Nothing
    }
}
