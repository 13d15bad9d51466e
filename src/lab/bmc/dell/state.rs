//! What an iDRAC keeps beside the settings that all BMCs have: attributes, firmware settings, boot options, jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::firmware;
use super::nics;
use crate::lab::bmc::settings::Settings;
use crate::lab::machine::{Machine, Preset, Quirk};

/// Its key in the settings of a BMC.
const KEY: &str = "dell";

/// Accounts are places: so many, always there.
pub(super) const SLOTS: u32 = 16;

/// All of it. No password is here.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Dell {
    /// iDRAC attributes that no other resource of the lab shows.
    pub attributes: BTreeMap<String, Value>,
    pub bios: BTreeMap<String, Value>,
    /// `Bios/Settings`: committed where there is an unfinished job.
    pub staged_bios: BTreeMap<String, Value>,
    /// All boot options, in their order.
    pub options: Vec<BootEntry>,
    /// What is staged for them: references in their new order, each with whether it is enabled.
    pub staged_boot: Option<Vec<(String, bool)>>,
    pub jobs: Vec<Job>,
    /// How many jobs there were.
    pub job_count: u64,
    /// The Lifecycle Controller loads its data anew until then.
    pub lc_reloads_until_s: f64,
}

/// A boot option.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BootEntry {
    /// `Boot0000`.
    pub reference: String,
    /// `PXE Device 1: NIC in Slot 1 Port 1`.
    pub name: String,
    /// As `DellBootSources` names it: `NIC.PxeDevice.1-1`.
    pub source: String,
    pub path: Option<String>,
    /// FQDD of the NIC behind it.
    pub nic: Option<String>,
    pub enabled: bool,
}

/// A job of the queue. All of the lab's are of the BIOS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub id: String,
    pub state: JobState,
    pub made_s: f64,
    /// How often the host had booted when it was scheduled.
    pub boots: u64,
    /// When the state began.
    pub since_s: f64,
    /// `Scheduled`, and never to be run.
    pub stuck: bool,
    /// Made by nobody who asked through Redfish.
    pub foreign: bool,
    /// It was deleted, and is gone from then on.
    #[serde(default)]
    pub gone_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum JobState {
    New,
    Scheduled,
    Running,
    Completed,
    Failed,
}

impl Job {
    pub fn is_unfinished(&self) -> bool {
        match self.state {
            JobState::New | JobState::Scheduled | JobState::Running => true,
            JobState::Completed | JobState::Failed => false,
        }
    }
}

impl Dell {
    /// Of a machine; nothing where it has not been settled.
    pub fn of(machine: &Machine) -> Dell {
        let kept = machine.bmc.settings.get(KEY).cloned().unwrap_or_default();
        serde_json::from_value(kept).unwrap_or_default()
    }

    pub fn keep(&self, machine: &mut Machine) {
        if let Ok(value) = serde_json::to_value(self) {
            machine.bmc.settings.insert(KEY.to_owned(), value);
        }
    }

    /// Whether a job holds the settings of the firmware: then nothing else is taken.
    pub fn is_committed(&self) -> bool {
        self.jobs.iter().any(Job::is_unfinished)
    }

    /// Adds a job that holds what is staged now.
    pub fn add_job(&mut self, now_s: f64, foreign: bool) -> String {
        self.job_count += 1;
        let id = format!("JID_{:012}", 413_079_434_000 + self.job_count * 685);
        let (state, boots) = (JobState::New, 0);
        self.jobs.push(Job {
            id: id.clone(),
            state,
            made_s: now_s,
            boots,
            since_s: now_s,
            stuck: false,
            foreign,
            gone_s: None,
        });
        id
    }

    /// Makes options of network devices that the firmware has now, and drops those that it has no more. New ones come last.
    pub fn match_devices(&mut self, machine: &Machine) {
        let devices = firmware::network_devices(&self.bios);
        self.options.retain(|option| {
            option.nic.is_none()
                || devices.iter().any(|(source, fqdd, _)| *source == option.source && Some(fqdd) == option.nic.as_ref())
        });
        for (source, fqdd, title) in devices {
            if self.options.iter().any(|option| option.source == source) {
                continue;
            }
            let Some(nic) = machine.nics.iter().find(|nic| nics::fqdd(nic) == fqdd) else { continue };
            let (name, path) = if machine.has(Quirk::Idrac10) {
                let place = format!("{} Partition 1", nics::place(nic));
                let mac = nic.mac.to_string().to_uppercase();
                (format!("{title}: {place} - Nvidia Network Adapter - {mac} - IPv4"), None)
            } else {
                (format!("{title}: {}", nics::place(nic)), Some(firmware::device_path(&source)))
            };
            let reference = self.free_reference();
            self.options.push(BootEntry { reference, name, source, path, nic: Some(fqdd), enabled: true });
        }
    }

    fn free_reference(&self) -> String {
        let mut names = (0..=u16::MAX).map(|n| format!("Boot{n:04X}"));
        names.find(|name| !self.options.iter().any(|o| o.reference == *name)).unwrap_or_default()
    }
}

/// Gives a machine what an iDRAC has from the start.
pub(super) fn settle(machine: &mut Machine) {
    if machine.bmc.settings.contains_key(KEY) {
        return;
    }
    let mut settings = Settings::of(machine);
    let converged = machine.bmc.preset == Preset::Converged;
    for user in settings.users.values_mut() {
        // One table of users for all interfaces.
        user.types = vec!["Redfish".to_owned(), "IPMI".to_owned()];
    }
    if settings.ntp.primary.as_deref() == Some("localhost") {
        settings.ntp.primary = None;
    }
    settings.ntp.secondary = None;
    if settings.syslog.port == 0 {
        settings.syslog.port = 514;
    }
    let mut dell = Dell {
        attributes: first_attributes(machine, converged),
        bios: firmware::first(machine, converged),
        ..Dell::default()
    };
    for (slot, user) in &settings.users {
        let is_admin = user.role == "Administrator";
        let privilege = if is_admin {
            "Administrator"
        } else if converged {
            "User"
        } else {
            "No Access"
        };
        dell.attributes.insert(format!("Users.{slot}.IpmiLanPrivilege"), json!(privilege));
        let sol = if is_admin { "Enabled" } else { "Disabled" };
        dell.attributes.insert(format!("Users.{slot}.SolEnable"), json!(sol));
    }
    settings.keep(machine);
    let other = |reference: &str, name: &str, source: &str, path: &str| BootEntry {
        reference: reference.to_owned(),
        name: name.to_owned(),
        source: source.to_owned(),
        path: Some(path.to_owned()),
        nic: None,
        enabled: true,
    };
    dell.options = vec![
        other(
            "Boot0002",
            "PCIe SSD in Slot 2 in Bay 1: EFI Fixed Disk Boot Device 1",
            "Disk.Bay.2:Enclosure.Internal.0-1",
            "PciRoot(0xB)/Pci(0x3,0x0)/Pci(0x0,0x0)/NVMe(0x1,01-CA-02-00-5E-00-00-13)/HD(1,GPT,94E38211-E018-4486-B793-8577C6B7D036,0x800,0x100000)",
        ),
        if converged {
            other(
                "Boot0003",
                "Unavailable: ubuntu",
                "Unknown.Unknown.4-1",
                "HD(1,GPT,6634D938-1211-4F7A-89C6-A35A60BE1E4A,0x800,0x219800)/\\EFI\\ubuntu\\shimx64.efi",
            )
        } else {
            other(
                "Boot0003",
                "Virtual Optical Drive",
                "Optical.iDRACVirtual.1-1",
                "PciRoot(0x0)/Pci(0x14,0x0)/USB(0xD,0x0)/USB(0x0,0x0)/USB(0x2,0x0)/Unit(0x0)",
            )
        },
    ];
    // Disk first, then the last NIC: nothing of it is as an enrollment wants it.
    dell.match_devices(machine);
    let network = dell.options.split_off(2);
    dell.options.extend(network.into_iter().rev());
    if converged {
        let keep = dell.options.iter().rposition(|option| option.source == "NIC.PxeDevice.1-1");
        if let Some(at) = keep {
            let first = dell.options.remove(at);
            dell.options.insert(0, first);
        }
        for option in dell.options.iter_mut().skip(1).filter(|option| option.nic.is_some()) {
            option.enabled = false;
        }
    }
    if machine.has(Quirk::ForeignJob) {
        dell.staged_bios.insert("WorkloadProfile".to_owned(), json!("HpcProfile"));
        dell.add_job(0.0, true);
    }
    dell.keep(machine);
}

fn first_attributes(machine: &Machine, converged: bool) -> BTreeMap<String, Value> {
    let switch = |on: bool| json!(if on { "Enabled" } else { "Disabled" });
    let strict = machine.has(Quirk::StrictPasswords);
    let tls = if converged { "TLS 1.2 and Higher" } else { "TLS 1.1 and Higher" };
    let snmp = if converged { "SNMPv3" } else { "All" };
    let on = if converged { "Disabled" } else { "Enabled" };
    let mut attributes: BTreeMap<String, Value> = [
        ("WebServer.1.TLSProtocol", json!(tls)),
        ("WebServer.1.Enable", json!("Enabled")),
        ("WebServer.1.HostHeaderCheck", json!("Disabled")),
        ("WebServer.1.HttpsRedirection", json!("Enabled")),
        ("WebServer.1.MaxNumberOfSessions", json!(8)),
        ("WebServer.1.Timeout", json!(1800)),
        ("Telnet.1.Enable", json!("Disabled")),
        ("VNCServer.1.Enable", json!(on)),
        ("VNCServer.1.Port", json!(5901)),
        ("SNMP.1.AgentEnable", json!("Enabled")),
        ("SNMP.1.SNMPProtocol", json!(snmp)),
        ("SNMP.1.TrapFormat", json!("SNMPv1")),
        ("OS-BMC.1.AdminState", json!(on)),
        ("OS-BMC.1.PTMode", json!("usb-p2p")),
        ("IPMILan.1.PrivLimit", json!("Administrator")),
        ("Lockdown.1.SystemLockdown", switch(machine.has(Quirk::Lockdown))),
        ("Security.1.PasswordRequireNumbers", switch(strict)),
        ("Security.1.PasswordRequireSymbols", switch(strict)),
        ("Security.1.PasswordRequireUpperCase", switch(strict)),
        ("Time.1.Timezone", json!("UTC")),
        ("SysLog.1.Server2", json!("")),
        ("SysLog.1.Server3", json!("")),
        ("NTPConfigGroup.1.NTP3", json!("")),
        ("NIC.1.Enable", json!("Enabled")),
        ("NIC.1.Selection", json!("Dedicated")),
        ("IPv4.1.Enable", json!("Enabled")),
        ("IPv4.1.DNSFromDHCP", json!("Enabled")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    for slot in 1..=SLOTS {
        attributes.insert(format!("Users.{slot}.IpmiLanPrivilege"), json!("No Access"));
        attributes.insert(format!("Users.{slot}.IpmiSerialPrivilege"), json!("No Access"));
        attributes.insert(format!("Users.{slot}.SolEnable"), json!("Disabled"));
    }
    attributes
}
