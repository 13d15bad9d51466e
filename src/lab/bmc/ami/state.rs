//! What a MegaRAC keeps beside the settings that all BMCs of the lab have.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::lab::bmc::settings::{Settings, User};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Preset, Quirk};

/// Where it is kept in a machine's settings.
const KEY: &str = "ami";

/// So long the firmware takes to start the host; until then the BMC takes no writes.
const POST_S: f64 = 20.0;

/// The collection of media is filled so long after they were enabled.
const MEDIA_TAKE_S: f64 = 40.0;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub media: bool,
    /// When the collection of media is filled, in seconds.
    pub media_at_s: f64,
    pub options: Vec<BootOption>,
    /// Entries as they are shown.
    pub order: Vec<String>,
    pub order_next: Option<Vec<String>>,
    /// Boots that have applied what was staged.
    pub boots: u64,
    /// The host is in its POST.
    pub booting: bool,
    /// The password of account 1 has to be changed first.
    pub must_change: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BootOption {
    /// Without `Boot`.
    pub id: String,
    pub name: String,
    pub path: String,
    pub alias: Option<String>,
    pub enabled: bool,
    pub next: Option<bool>,
}

impl BootOption {
    pub fn reference(&self) -> String {
        format!("Boot{}", self.id)
    }
}

/// What an entry of the order names.
pub(super) fn key_of(entry: &str) -> &str {
    entry.split(':').next().unwrap_or(entry).trim()
}

impl State {
    pub fn of(machine: &Machine) -> State {
        machine.bmc.settings.get(KEY).and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or_default()
    }

    pub fn keep(&self, machine: &mut Machine) {
        machine.bmc.settings.insert(KEY.to_owned(), json!(self));
    }

    pub fn next_order(&self) -> &Vec<String> {
        self.order_next.as_ref().unwrap_or(&self.order)
    }

    pub fn enable_media(&mut self, on: bool, now: LabTime) {
        if on && !self.media {
            self.media_at_s = now.0.as_secs_f64() + MEDIA_TAKE_S;
        }
        self.media = on;
    }

    pub fn shows_media(&self, now: LabTime) -> bool {
        self.media && now.0.as_secs_f64() >= self.media_at_s
    }

    /// A boot: what was staged is in force.
    fn boot(&mut self, machine: &Machine) {
        self.boots = machine.boots;
        for option in &mut self.options {
            option.enabled = option.next.take().unwrap_or(option.enabled);
        }
        if let Some(next) = self.order_next.take() {
            self.order = next;
        }
        if machine.has(Quirk::DisabledOptionsVanish) {
            let options = &self.options;
            self.order
                .retain(|entry| options.iter().any(|option| option.enabled && option.reference() == key_of(entry)));
        }
    }
}

/// The first settings.
pub(super) fn settle(machine: &mut Machine) {
    let mut settings = Settings::of(machine);
    if !settings.users.contains_key(&1)
        && let Some(first) = settings.users.keys().next().copied()
        && let Some(user) = settings.users.remove(&first)
    {
        settings.users.insert(1, user);
    }
    let internal = || User {
        name: "hostif-internal".to_owned(),
        role: "HostInterfaceAdministrator".to_owned(),
        enabled: true,
        types: vec![],
    };
    settings.users.entry(2).or_insert_with(internal);
    // One table for all interfaces, which calls itself this.
    settings.users.values_mut().for_each(|user| user.types = vec!["Redfish".to_owned()]);
    if !machine.bmc.settings.contains_key(KEY) {
        let mut state = State { boots: machine.boots, options: options(machine), ..State::default() };
        state.must_change = machine.has(Quirk::ForcedPasswordChange);
        if machine.bmc.preset == Preset::Converged {
            state.converge();
        } else {
            settings.hostname = Some(format!("AMI{}", machine.bmc.mac.to_string().to_uppercase().replace(':', "")));
            (settings.ntp.primary, settings.ntp.secondary) = (Some("pool.example.com".to_owned()), None);
        }
        if state.order.is_empty() {
            state.order = state.options.iter().map(BootOption::reference).collect();
        }
        if machine.has(Quirk::CompositeBootOrder) {
            let options = state.options.clone();
            for entry in &mut state.order {
                if let Some(option) = options.iter().find(|option| option.reference() == *entry) {
                    *entry = format!("{entry}: {}", option.name);
                }
            }
        }
        state.keep(machine);
    }
    settings.keep(machine);
}

impl State {
    /// As an enrollment leaves it: one NIC, before everything else.
    fn converge(&mut self) {
        self.media = true;
        let keep = self.options.iter().position(|option| option.alias.as_deref() == Some("Pxe"));
        for (n, option) in self.options.iter_mut().enumerate() {
            option.enabled = Some(n) == keep || !option.path.contains("MAC(");
        }
        let mut order: Vec<String> = self.options.iter().map(BootOption::reference).collect();
        if let Some(keep) = keep {
            let first = order.remove(keep);
            order.insert(0, first);
        }
        self.order = order;
    }
}

/// Brings staged settings, and whether the host is in its POST, up to date.
pub(super) fn catch_up(machine: &mut Machine, now: LabTime) {
    let mut state = State::of(machine);
    let before = state.clone();
    let since = now.0.as_secs_f64() - machine.power.since.0.as_secs_f64();
    state.booting = machine.power.on && machine.boots > 0 && since < POST_S;
    if machine.boots > state.boots {
        state.boot(machine);
    }
    if state != before {
        state.keep(machine);
    }
}

/// Disk, shell and virtual media, then two options a NIC, and two of the BMC's own USB NIC, which are disabled.
fn options(machine: &Machine) -> Vec<BootOption> {
    let option = |id: String, name: &str, path: String, alias: Option<&str>, enabled: bool| BootOption {
        id,
        name: name.to_owned(),
        path,
        alias: alias.map(str::to_owned),
        enabled,
        next: None,
    };
    let mut all = vec![
        option(
            "0000".to_owned(),
            "ubuntu",
            "HD(1,GPT,5B1E6C1A,0x800,0x219800)/\\EFI\\ubuntu\\shimx64.efi".to_owned(),
            None,
            true,
        ),
        option(
            "0001".to_owned(),
            "UEFI: Built-in EFI Shell",
            "VenMedia(5023B95C-DB26-429B-A648-BD47664C8012)".to_owned(),
            None,
            true,
        ),
        option(
            "0002".to_owned(),
            "UEFI: AMI Virtual CDROM0 1.00",
            "PciRoot(0x0)/Pci(0x14,0x0)/USB(0xA,0x0)/USB(0x1,0x0)".to_owned(),
            Some("Cd"),
            true,
        ),
    ];
    let v4 = "IPv4(0.0.0.0,0x0,DHCP,0.0.0.0,0.0.0.0,0.0.0.0)";
    let nics = machine.nics.iter().map(|nic| (nic.mac.to_string(), false));
    let usb = machine.bmc.mac.to_string();
    for (n, (mac, is_usb)) in nics.chain([(usb, true)]).enumerate() {
        let mac = mac.to_uppercase();
        let node = mac.replace(':', "");
        // Some cards have their address in the name, some have not.
        let card = match (is_usb, n % 2) {
            (true, _) => "American Megatrends Inc.".to_owned(),
            (false, 0) => format!("Nvidia Network Adapter - {mac}"),
            (false, _) => "Intel(R) Ethernet Network Adapter E810-C-Q2".to_owned(),
        };
        let (place, kind) = match is_usb {
            true => ("PciRoot(0x0)/Pci(0x14,0x0)/USB(0xA,0x0)/USB(0x2,0x1)".to_owned(), "0x0"),
            false => (format!("PciRoot(0x{:X})/Pci(0x1,0x0)/Pci(0x0,0x0)", 0x20 * (n + 1)), "0x1"),
        };
        let path = format!("{place}/MAC({node},{kind})/{v4}");
        let http = if is_usb { "Usb" } else { "UefiHttp" };
        let pxe =
            option(format!("{:04X}", 3 + n), &format!("UEFI: PXE IPv4 {card}"), path.clone(), Some("Pxe"), !is_usb);
        let http = option(
            format!("{:04X}", 0x15 + n),
            &format!("UEFI: HTTP IPv4 {card}"),
            format!("{path}/Uri()"),
            Some(http),
            !is_usb,
        );
        all.extend([pxe, http]);
    }
    all
}
