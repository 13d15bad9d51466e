//! A machine of the lab as it really is: power, links, cables, hardware and BMC, whatever NetBox has recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::LabTime;
use crate::domain::mac::Mac;

/// A host with a BMC.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// The NetBox device name.
    pub name: String,
    pub site: String,
    pub manufacturer: String,
    pub model: String,
    pub serial: String,
    /// Frontend interfaces first, in NetBox's order.
    pub nics: Vec<Nic>,
    pub hardware: Hardware,
    pub bmc: Bmc,
    pub power: Power,
    /// How often it was powered on.
    pub boots: u64,
    pub troubles: Troubles,
}

/// A network interface of a host.
#[derive(Debug, Clone, Serialize)]
pub struct Nic {
    /// NetBox's and the operating system's name.
    pub name: String,
    pub mac: Mac,
    /// As a BMC names the place: `PCIe 1`.
    pub slot: String,
    /// Port on its card, from 1.
    pub port: u32,
    /// One of the links that enrollment watches and verifies.
    pub frontend: bool,
    pub speed_mbps: u64,
    /// PCI vendor and product id of the card, four hex digits each.
    pub vendor_id: String,
    pub product_id: String,
    pub pci_address: String,
    /// The switch port that the cable really is in; `None`: no cable.
    pub plugged: Option<Plug>,
    /// The switch port that NetBox had when the lab started.
    pub recorded: Option<Plug>,
    /// When the link has light after the last power on.
    pub up_at: LabTime,
    /// The BMC does not tell the link's state: `Unknown`, whatever it is.
    pub unreported: bool,
}

/// A switch port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plug {
    pub switch: String,
    pub port: String,
}

/// A link as the machine itself knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    Up,
    Down,
    /// The BMC has no reading for it.
    Unknown,
}

/// Power now, and what it changes to.
#[derive(Debug, Clone, Serialize)]
pub struct Power {
    pub on: bool,
    pub since: LabTime,
    /// A change under way: to what, and when it shows.
    pub target: Option<(bool, LabTime)>,
    /// Number of the last request: a newer one makes older ones void.
    #[serde(skip)]
    pub(super) request: u64,
}

/// What a BMC or Ironic asks of the power supply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerAction {
    On,
    /// At once.
    ForceOff,
    /// The operating system is asked; takes longer.
    SoftOff,
    /// Off and on again; on, where it was off.
    Restart,
}

/// A BMC.
#[derive(Debug, Clone, Serialize)]
pub struct Bmc {
    /// Own loopback address; NetBox's `oob_ip` where NetBox has one.
    pub address: Ipv4Addr,
    pub mac: Mac,
    pub vendor: Vendor,
    pub firmware: String,
    /// User names with their passwords, as the BMC has them now. The BMC server may add and change accounts.
    #[serde(skip)]
    pub accounts: BTreeMap<String, String>,
    pub preset: Preset,
    /// What its firmware does otherwise than it should.
    pub quirks: BTreeSet<Quirk>,
    /// Whatever the BMC server keeps of its settings, under names of its own choice. Shown by `GET /world`, so no
    /// secret goes in here.
    pub settings: BTreeMap<String, Value>,
    /// While it restarts itself it is not there: from, until.
    pub away: Option<(LabTime, LabTime)>,
    /// While its web server starts anew nobody listens at its port, though the BMC itself is there: from, until.
    pub web_away: Option<(LabTime, LabTime)>,
    /// How often it was reset.
    pub resets: u64,
    /// Sessions over IPMI, half open ones among them.
    pub ipmi_sessions: u32,
}

/// Whose firmware a BMC runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vendor {
    Supermicro,
    Lenovo,
    Dell,
    Ami,
}

impl Vendor {
    /// User name and password that it leaves the factory with.
    pub fn factory_login(self) -> (&'static str, &'static str) {
        match self {
            Vendor::Supermicro => ("ADMIN", "ADMIN"),
            Vendor::Lenovo => ("USERID", "PASSW0RD"),
            Vendor::Dell => ("root", "calvin"),
            Vendor::Ami => ("admin", "password"),
        }
    }
}

/// An odd habit of a BMC or its firmware, switched on by a scenario's `bmc_quirks`. A habit that a vendor's tree does not
/// know has no effect there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quirk {
    /// The administrator has the vendor's factory password.
    FactoryPassword,
    /// The same, and everything but the change of that password is refused.
    ForcedPasswordChange,
    /// Dell: the forced change is taken as an iDRAC attribute only, and not by the account itself.
    ForcedChangeByAttribute,
    /// `@odata.etag` is a number.
    NumericEtag,
    /// The header `ETag` has its quotes twice, and is refused so: only the tag in the body is right (Q5).
    EtagQuotedTwice,
    /// A change with any `If-Match` is refused, `*` as well (Q8).
    IfMatchRefused,
    /// Dell: an iDRAC10.
    Idrac10,
    /// Dell: a job stays `New`.
    JobNeverSchedules,
    /// Dell: a job is `Scheduled` with PR30, and never runs.
    JobInitFails,
    /// Dell: a BIOS job of somebody else is scheduled from the start.
    ForeignJob,
    /// Dell: somebody else restarts the host as soon as a job is scheduled.
    ForeignRestart,
    /// Dell: a job is completed, and the boot order is as before.
    OrderUnchanged,
    /// Dell: the Lifecycle Controller is in use, whenever it is asked.
    LcNotReady,
    /// Dell: boot options name no NIC that they are of.
    RelatedItemNull,
    /// Dell: the BIOS shows staged values as if they were in force.
    PendingShownAsCurrent,
    /// Dell: a job that is deleted is gone a while later only (Q26).
    DeletionLags,
    /// Dell: a job that is deleted stays (Q26).
    DeletionForgotten,
    /// Dell: a change of the web server's own settings makes it start anew: it takes no connections for a while (Q53).
    WebServerRestarts,
    /// Dell: System Lockdown Mode is on from the start. It takes no change but the one that ends it.
    Lockdown,
    /// Dell: passwords need an upper case letter, a digit and a mark, and its attributes say so.
    StrictPasswords,
    /// Lenovo: a change without `If-Match` is refused (Q2).
    IfMatchRequired,
    /// Lenovo: a right tag is refused now and then (Q4).
    EtagNowAndThen,
    /// Lenovo: a flag is the word `Enabled` or `Disabled` (Q35).
    FlagsAsWords,
    /// Lenovo: the first boot drops the disks from the order (Q10).
    DropsHardDisk,
    /// Lenovo: changes are answered with annotations and nothing else (Q34).
    AnnotationOnlyReplies,
    /// Lenovo: a change of the host name is a task.
    HostnameTask,
    /// Lenovo: twelve accounts are there from the start, and none is created.
    AccountsFixed,
    /// Lenovo: what is pending lists only what changes.
    PendingListsChangesOnly,
    /// Lenovo: audit events are called `AllOtherAuditEvents`.
    OtherAuditEvents,
    /// Lenovo: a password that was just changed stays for a day.
    PasswordChangeInterval,
    /// Lenovo: an XCC3. It has no resources of its own for the boot order: NICs are ordered by firmware attributes.
    Xcc3,
    /// AMI: the ids of a DGX, and a board of accelerators beside the host.
    Dgx,
    /// AMI: the firmware calls itself Lenovo.
    VendorLenovo,
    /// AMI: one account is listed and cannot be read (Q67).
    UnreadableAccount,
    /// AMI: entries of the boot order have names (Q19).
    CompositeBootOrder,
    /// AMI: disabled options are not in the order after a boot.
    DisabledOptionsVanish,
    /// AMI: the 503 of a host in its POST is a page.
    BootingPage,
    /// AMI: members that come along with their collection lack `Id` and more (Q36).
    ExpandDropsMembers,
    /// AMI: the root has lost its links, until the BMC is reset (Q36).
    RootWithoutLinks,
    /// AMI: the host name is changed in `NetworkProtocol` only.
    HostnameInProtocol,
    /// AMI: the reset of the BMC wants `If-Match`.
    ResetWantsIfMatch,
    /// AMI: resources do not say where their settings object is (Q65).
    NoSettingsAnnotation,
    /// AMI: settings objects take nothing, the resources themselves do (Q22).
    SettingsRefused,
    /// IPMI over LAN has the cipher suite 3 only.
    IpmiOnlySuite3,
    /// IPMI over LAN is on, and answers nothing.
    IpmiSilent,
    /// Every session over IPMI is taken.
    IpmiSessionsFull,
    /// The first datagram of whoever asks over IPMI is lost.
    IpmiDropsFirst,
    /// Nobody gets more than the level USER over IPMI.
    IpmiUserLevelOnly,
    /// IPMI over LAN is of before IPMI 2.0.
    IpmiOldOnly,
    /// IPMI over LAN wants the BMC's own key (K_g) beside a password, and says so.
    IpmiBmcKey,
    /// The same, and it does not say so.
    IpmiBmcKeyUntold,
}

/// The settings that a BMC starts the lab with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// As it left the factory: nothing of what enrollment sets.
    Factory,
    /// As an enrollment leaves it.
    Converged,
}

/// The pieces that an inspection finds.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    pub cpu: Cpu,
    pub memory: Memory,
    pub disks: Vec<Disk>,
    #[serde(default)]
    pub gpus: Vec<Gpu>,
    pub bios: Bios,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    pub model: String,
    pub sockets: u64,
    /// Logical CPUs of all sockets.
    pub count: u64,
    #[serde(default = "x86_64")]
    pub arch: String,
    pub frequency_mhz: f64,
}

fn x86_64() -> String {
    "x86_64".to_owned()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    pub dimms: u64,
    pub dimm_gib: u64,
    pub speed_mhz: u64,
    pub manufacturer: String,
    pub part_number: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    pub name: String,
    pub model: String,
    pub size_gb: u64,
    #[serde(default)]
    pub rotational: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub vendor_id: String,
    pub product_id: String,
    pub count: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bios {
    pub vendor: String,
    pub version: String,
    pub date: String,
}

/// What is wrong with a machine, or will be.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Troubles {
    /// Taken at the next power on: interfaces (all frontend ones where empty) and for how long.
    pub dark_at_power_on: Vec<(Vec<String>, Duration)>,
    /// Interfaces without light until then.
    pub dark: Vec<(Vec<String>, LabTime)>,
    pub clean_fails: u32,
    pub inspection_fails: u32,
    pub inspection_silent: u32,
    /// Spans whose beginning is the first time that somebody meets them.
    pub locks: Vec<Spell>,
    pub busy: Vec<Spell>,
}

/// A span that begins when somebody first meets it.
#[derive(Debug, Clone, Serialize)]
pub struct Spell {
    pub lasts: Duration,
    pub until: Option<LabTime>,
}

impl Spell {
    /// Whether it holds now; begins it where it has not begun.
    pub fn meet(&mut self, now: LabTime) -> bool {
        let until = *self.until.get_or_insert(now + self.lasts);
        now < until
    }

    /// Whether it has begun and holds now. Begins nothing.
    pub fn holds(&self, now: LabTime) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl Machine {
    /// A NIC by its name.
    pub fn nic(&self, name: &str) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.name == name)
    }

    /// Whether there is light on a NIC: power, cable, no darkness, and time enough since the power on.
    pub fn has_light(&self, nic: &Nic, now: LabTime) -> bool {
        let dark = self.troubles.dark.iter().any(|(names, until)| now < *until && covers(names, nic));
        self.power.on && nic.plugged.is_some() && now >= nic.up_at && !dark
    }

    /// When a NIC has light as things stand; `None` where it never will.
    pub fn light_at(&self, nic: &Nic) -> Option<LabTime> {
        if !self.power.on || nic.plugged.is_none() {
            return None;
        }
        let dark = self.troubles.dark.iter().filter(|(names, _)| covers(names, nic)).map(|(_, until)| *until);
        Some(dark.fold(nic.up_at, LabTime::max))
    }

    /// A link as the BMC reports it.
    pub fn link(&self, nic: &Nic, now: LabTime) -> Link {
        match (nic.unreported, self.has_light(nic, now)) {
            (true, _) => Link::Unknown,
            (false, true) => Link::Up,
            (false, false) => Link::Down,
        }
    }

    /// Whether its BMC has an odd habit.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.bmc.quirks.contains(&quirk)
    }

    /// Whether the BMC restarts itself now.
    pub fn bmc_is_away(&self, now: LabTime) -> bool {
        self.bmc.away.is_some_and(|(from, until)| (from..until).contains(&now))
    }

    /// How long its web server takes no connections from now on; `None`: it does.
    pub fn web_is_away_for(&self, now: LabTime) -> Option<Duration> {
        let (from, until) = self.bmc.web_away?;
        (from..until).contains(&now).then(|| until.0.saturating_sub(now.0))
    }

    /// Applies a change of power. Links need `link_up` from a power on to light.
    pub(super) fn set_power(&mut self, on: bool, at: LabTime, link_up: Duration) {
        self.power = Power { on, since: at, target: None, request: self.power.request };
        if !on {
            return;
        }
        self.boots += 1;
        for nic in &mut self.nics {
            nic.up_at = at + link_up;
        }
        for (names, lasts) in std::mem::take(&mut self.troubles.dark_at_power_on) {
            self.troubles.dark.push((names, at + lasts));
        }
    }
}

/// Whether a list of names means this NIC; an empty list means all frontend ones.
fn covers(names: &[String], nic: &Nic) -> bool {
    if names.is_empty() { nic.frontend } else { names.contains(&nic.name) }
}
