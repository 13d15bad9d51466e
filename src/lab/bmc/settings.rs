//! The settings of a lab BMC, kept in the world so that everybody who looks at it sees them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lab::clock::LabTime;
use crate::lab::machine::Machine;

/// All settings. Passwords are not among them: those are in `Bmc::accounts`, which is never shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub hostname: Option<String>,
    /// DHCP on the BMC's NIC.
    pub dhcp: bool,
    pub ntp: Ntp,
    /// A change of NTP under way: shows at this lab time, in seconds.
    pub ntp_next: Option<(f64, Ntp)>,
    pub syslog: Syslog,
    pub ipmi_over_lan: bool,
    pub locator: bool,
    pub boot: BootOverride,
    /// By account number.
    pub users: BTreeMap<u32, User>,
    /// Wrong logins by user name.
    pub logins: BTreeMap<String, Logins>,
    /// How many tasks there were.
    pub tasks: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ntp {
    pub enabled: bool,
    pub primary: Option<String>,
    pub secondary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Syslog {
    pub enabled: bool,
    pub server: Option<String>,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootOverride {
    pub enabled: String,
    pub mode: String,
    pub target: String,
}

impl Default for BootOverride {
    fn default() -> Self {
        BootOverride { enabled: "Disabled".to_owned(), mode: "UEFI".to_owned(), target: "None".to_owned() }
    }
}

/// An account without its password.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub name: String,
    pub role: String,
    pub enabled: bool,
    pub types: Vec<String>,
}

/// What is remembered of wrong logins of one user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Logins {
    /// Wrong ones in a row within the window.
    pub wrong: u32,
    /// All wrong ones since the lab began.
    pub wrong_ever: u32,
    pub last_wrong_s: f64,
    pub locked_until_s: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        let ntp =
            Ntp { enabled: false, primary: Some("localhost".to_owned()), secondary: Some("127.0.0.1".to_owned()) };
        Settings {
            hostname: None,
            dhcp: true,
            ntp,
            ntp_next: None,
            syslog: Syslog::default(),
            ipmi_over_lan: false,
            locator: false,
            boot: BootOverride::default(),
            users: BTreeMap::new(),
            logins: BTreeMap::new(),
            tasks: 0,
        }
    }
}

impl Settings {
    /// The settings of a machine's BMC. What is missing or cannot be read is as it left the factory.
    pub fn of(machine: &Machine) -> Settings {
        let map = machine.bmc.settings.clone().into_iter().collect();
        serde_json::from_value(Value::Object(map)).unwrap_or_default()
    }

    /// As they show at a time: a change under way that has come due is in force.
    pub fn at(machine: &Machine, now: LabTime) -> Settings {
        let mut settings = Settings::of(machine);
        if let Some((due, ntp)) = settings.ntp_next.take() {
            if now.0.as_secs_f64() >= due {
                settings.ntp = ntp;
            } else {
                settings.ntp_next = Some((due, ntp));
            }
        }
        settings
    }

    /// Writes them back into the world.
    pub fn keep(&self, machine: &mut Machine) {
        if let Ok(Value::Object(map)) = serde_json::to_value(self) {
            machine.bmc.settings.extend(map);
        }
    }

    /// Gives every user that the machine's BMC has a password for an account.
    pub fn adopt_users(&mut self, machine: &Machine) {
        for name in machine.bmc.accounts.keys() {
            if !self.users.values().any(|user| user.name == *name) {
                let (name, role) = (name.clone(), "Administrator".to_owned());
                self.add_user(User { name, role, enabled: true, types: vec!["Redfish".to_owned()] });
            }
        }
    }

    /// Makes them what an enrollment leaves.
    pub fn converge(&mut self, name: &str, ntp: Option<String>, syslog: Option<String>) {
        self.hostname = Some(name.to_owned());
        self.ipmi_over_lan = true;
        if ntp.is_some() {
            self.ntp.enabled = true;
            self.ntp.primary = ntp;
        }
        if syslog.is_some() {
            self.syslog = Syslog { enabled: true, server: syslog, port: 514 };
        }
    }

    /// Adds a user under the next free number; its number. An account of the same name is replaced.
    pub fn add_user(&mut self, user: User) -> u32 {
        let same = self.users.iter().find(|(_, u)| u.name == user.name).map(|(id, _)| *id);
        let id = same.unwrap_or_else(|| (2..).find(|id| !self.users.contains_key(id)).unwrap_or(2));
        self.users.insert(id, user);
        id
    }

    /// The account of a user name.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.values().find(|user| user.name == name)
    }
}
