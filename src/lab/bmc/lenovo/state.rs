//! What an XCC keeps beside the settings that all BMCs of the lab have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::firmware;
use crate::lab::bmc::settings::Settings;
use crate::lab::machine::{Machine, Nic, Preset, Quirk};

/// Where it is kept in a machine's settings.
const KEY: &str = "lenovo";

/// The classes of boot devices, each with its number as a boot option, in the factory's order.
pub(super) const CLASSES: [(&str, &str, &str); 4] = [
    ("CD/DVD Rom", "Boot0001", "CD_DVDRom"),
    ("Hard Disk", "Boot0002", "HardDisk"),
    ("USB Storage", "Boot0004", "USBStorage"),
    ("Network", "Boot0003", "Network"),
];

pub(super) const DISKS: &str = "Hard Disk";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// Alert recipients by number.
    pub recipients: BTreeMap<u32, Recipient>,
    pub tls: String,
    pub ssdp: bool,
    pub slp: bool,
    pub snmp_v1_traps: bool,
    /// The BMC's end of the network over USB.
    pub to_host: bool,
    pub kcs: bool,
    /// Firmware attributes in force, and those for the next boot that differ.
    pub attributes: BTreeMap<String, Value>,
    pub pending: BTreeMap<String, Value>,
    /// Classes in their order, by their names.
    pub classes: Vec<String>,
    pub classes_next: Option<Vec<String>>,
    pub network: Vec<String>,
    pub network_next: Option<Vec<String>>,
    /// Boots that have applied what was staged.
    pub boots: u64,
    /// The children of `BootSettings` are there (Q9).
    pub built: bool,
    /// The disks were dropped from the order (Q10): once is enough.
    pub dropped: bool,
    /// The password of account 1 has to be changed first.
    pub must_change: bool,
    /// When an account's password was changed last, in seconds.
    pub changed_s: BTreeMap<u32, f64>,
    /// Hours between two changes of a password.
    pub change_interval_h: u32,
    pub requests: u64,
    pub tasks: u32,
}

/// A recipient of alerts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Recipient {
    pub name: String,
    pub address: String,
    pub kind: String,
    pub enabled: bool,
    /// Its `EnabledAlerts`, as they were given.
    pub alerts: Value,
}

impl Default for State {
    fn default() -> Self {
        State {
            recipients: BTreeMap::new(),
            tls: "TLSLevel1_0".to_owned(),
            ssdp: true,
            slp: true,
            snmp_v1_traps: true,
            to_host: true,
            kcs: true,
            attributes: firmware::factory(),
            pending: BTreeMap::new(),
            classes: CLASSES.map(|(name, ..)| name.to_owned()).to_vec(),
            classes_next: None,
            network: vec![],
            network_next: None,
            boots: 0,
            built: false,
            dropped: false,
            must_change: false,
            changed_s: BTreeMap::new(),
            change_interval_h: 0,
            requests: 0,
            tasks: 0,
        }
    }
}

impl State {
    pub fn of(machine: &Machine) -> State {
        machine.bmc.settings.get(KEY).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
    }

    pub fn keep(&self, machine: &mut Machine) {
        machine.bmc.settings.insert(KEY.to_owned(), json!(self));
    }

    /// What a class reads at the next boot.
    pub fn next_classes(&self) -> &Vec<String> {
        self.classes_next.as_ref().unwrap_or(&self.classes)
    }

    pub fn next_network(&self) -> &Vec<String> {
        self.network_next.as_ref().unwrap_or(&self.network)
    }

    /// The attributes in force, and of an XCC3 its NICs in their places of the order among them.
    pub fn all_attributes(&self, machine: &Machine) -> BTreeMap<String, Value> {
        let places = if machine.has(Quirk::Xcc3) { firmware::places(&self.network) } else { BTreeMap::new() };
        self.attributes.clone().into_iter().chain(places).collect()
    }

    /// The attributes of the next boot.
    pub fn next_attributes(&self, machine: &Machine) -> BTreeMap<String, Value> {
        let mut all = self.all_attributes(machine);
        all.extend(self.pending.clone());
        all
    }

    /// A boot: what was staged is in force.
    fn boot(&mut self, machine: &Machine) {
        self.boots = machine.boots;
        let next = firmware::in_their_places(&self.network, &self.pending);
        self.pending.retain(|name, _| !firmware::is_place(name));
        self.network = next;
        self.attributes.append(&mut self.pending);
        if let Some(next) = self.classes_next.take() {
            self.classes = next;
        }
        if let Some(next) = self.network_next.take() {
            self.network = next;
        }
        if machine.has(Quirk::DropsHardDisk) && !self.dropped {
            self.dropped = true;
            self.classes.retain(|name| name != DISKS);
        }
        self.built = false;
    }
}

/// The first settings.
pub(super) fn settle(machine: &mut Machine) {
    let mut settings = Settings::of(machine);
    // The administrator has the first place.
    if !settings.users.contains_key(&1)
        && let Some(first) = settings.users.keys().next().copied()
        && let Some(user) = settings.users.remove(&first)
    {
        settings.users.insert(1, user);
    }
    let known = machine.bmc.settings.contains_key(KEY);
    let mut state = State::of(machine);
    if !known {
        state.boots = machine.boots;
        state.network = entries(machine);
        state.must_change = machine.has(Quirk::ForcedPasswordChange);
        state.change_interval_h = if machine.has(Quirk::PasswordChangeInterval) { 24 } else { 0 };
        if machine.bmc.preset == Preset::Converged {
            state.converge(&settings, machine);
        } else {
            settings.ntp.primary = None;
            settings.ntp.secondary = None;
            settings.hostname = Some(format!("XCC-7Z23-{}", machine.serial));
        }
    }
    settings.keep(machine);
    state.keep(machine);
}

impl State {
    /// As an enrollment leaves it.
    fn converge(&mut self, settings: &Settings, machine: &Machine) {
        self.tls = "TLSLevel1_2".to_owned();
        (self.ssdp, self.slp, self.snmp_v1_traps, self.to_host) = (false, false, false, false);
        self.classes = vec!["Network".to_owned(), DISKS.to_owned()];
        if let Some(nic) = machine.nics.first() {
            let first = if machine.has(Quirk::Xcc3) { priority(nic, "PXEv4") } else { entry(nic, "PXE IPv4") };
            self.network.retain(|entry| *entry != first);
            self.network.insert(0, first);
        }
        if let Some(server) = settings.syslog.server.as_ref().filter(|_| settings.syslog.enabled) {
            let address = format!("{server}:{}", settings.syslog.port);
            let (name, kind) = ("syslog".to_owned(), "Syslog".to_owned());
            self.recipients.insert(1, Recipient { name, address, kind, enabled: true, alerts: json!({}) });
        }
    }
}

/// Brings staged settings up to date.
pub(super) fn catch_up(machine: &mut Machine) {
    let mut state = State::of(machine);
    let before = state.clone();
    if machine.boots > state.boots {
        state.boot(machine);
    }
    if machine.has(Quirk::EtagNowAndThen) {
        state.requests += 1;
    }
    if state != before {
        state.keep(machine);
    }
}

/// The entries of the class `Network`: IPv6 first, as the factory has it.
fn entries(machine: &Machine) -> Vec<String> {
    if machine.has(Quirk::Xcc3) {
        let all = machine.nics.iter().flat_map(|nic| ["PXEv6", "PXEv4", "HTTPv4"].map(|how| priority(nic, how)));
        return all.take(firmware::PLACES).collect();
    }
    machine.nics.iter().flat_map(|nic| [entry(nic, "PXE IPv6"), entry(nic, "PXE IPv4")]).collect()
}

/// An entry as the value of a firmware attribute: `Slot5Port1PXEv4NvidiaNetworkAdapter_02_00_5E_00_00_15`.
fn priority(nic: &Nic, how: &str) -> String {
    let slot = nic.slot.rsplit(' ').next().unwrap_or("1");
    let mac = nic.mac.to_string().to_uppercase().replace(':', "_");
    format!("Slot{slot}Port{}{how}NvidiaNetworkAdapter_{mac}", nic.port)
}

/// An entry as the firmware writes it, blanks and all.
pub(super) fn entry(nic: &Nic, how: &str) -> String {
    let slot = nic.slot.rsplit(' ').next().unwrap_or("1");
    let (_, place) = nic.pci_address.split_once(':').unwrap_or(("", "0:0.0"));
    let number = |part: &str| u32::from_str_radix(part, 16).map_or_else(|_| part.to_owned(), |n| format!("{n:X}"));
    let place = place.split([':', '.']).map(number).collect::<Vec<_>>().join("/");
    let mac = nic.mac.to_string().to_uppercase();
    format!("UEFI:   SLOT{slot} ({place}) {how}  Nvidia Network Adapter - {mac}")
}
