//! The iDRAC's attributes: one flat map in which most of its settings are, those of other resources too.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::state::{Dell, SLOTS};
use super::{ATTRIBUTES, accounts, manager, said};
use crate::lab::bmc::Reply;
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::Settings;
use crate::lab::bmc::tree::View;
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Quirk};

/// Groups that only report.
const REPORTS: [&str; 4] = ["Info.", "CurrentNIC.", "CurrentIPv4.", "IPv4.1.Address"];

pub(super) fn resource(view: &View<'_>, path: &str) -> Value {
    let dell = Dell::of(view.machine);
    let mut all = known(&dell, &view.settings);
    let address = view.machine.bmc.address.to_string();
    all.insert("NIC.1.DNSRacName".to_owned(), json!(manager::hostname(view)));
    all.insert("CurrentNIC.1.DNSRacName".to_owned(), json!(manager::hostname(view)));
    all.insert("IPv4.1.Address".to_owned(), json!(address));
    all.insert("CurrentIPv4.1.Address".to_owned(), json!(address));
    all.insert("Info.1.Version".to_owned(), json!(view.machine.bmc.firmware));
    json!({
        "@odata.context": "/redfish/v1/$metadata#DellAttributes.DellAttributes",
        "@odata.type": "#DellAttributes.v1_0_0.DellAttributes",
        "@odata.id": path,
        "Id": "iDRACAttributes",
        "Name": "OEMAttributeRegistry",
        "Description": "This schema provides the oem attributes",
        "AttributeRegistry": "ManagerAttributeRegistry.v1_0_0",
        "Attributes": all,
    })
}

fn on(flag: bool) -> Value {
    json!(if flag { "Enabled" } else { "Disabled" })
}

/// All that can be written, with those that are settings of other resources too.
fn known(dell: &Dell, settings: &Settings) -> BTreeMap<String, Value> {
    let mut all = dell.attributes.clone();
    let text = |text: &Option<String>| json!(text.as_deref().unwrap_or_default());
    for (name, value) in [
        ("NIC.1.DNSRacName", text(&settings.hostname)),
        ("IPv4.1.DHCPEnable", on(settings.dhcp)),
        ("NTPConfigGroup.1.NTPEnable", on(settings.ntp.enabled)),
        ("NTPConfigGroup.1.NTP1", text(&settings.ntp.primary)),
        ("NTPConfigGroup.1.NTP2", text(&settings.ntp.secondary)),
        ("SysLog.1.SysLogEnable", on(settings.syslog.enabled)),
        ("SysLog.1.Server1", text(&settings.syslog.server)),
        ("SysLog.1.Port", json!(settings.syslog.port)),
        ("IPMILan.1.Enable", on(settings.ipmi_over_lan)),
    ] {
        all.insert(name.to_owned(), value);
    }
    for slot in 1..=SLOTS {
        let user = settings.users.get(&slot);
        let privilege = match user.map(|user| user.role.as_str()) {
            Some("Administrator") => 511,
            Some("Operator") => 499,
            Some("ReadOnly") => 1,
            _ => 0,
        };
        all.insert(format!("Users.{slot}.UserName"), json!(user.map_or("", |user| user.name.as_str())));
        all.insert(format!("Users.{slot}.Enable"), on(user.is_some_and(|user| user.enabled)));
        all.insert(format!("Users.{slot}.Privilege"), json!(privilege));
        all.insert(format!("Users.{slot}.Password"), Value::Null);
    }
    all
}

/// The attribute of the mode in which nothing but this attribute itself can be changed.
const LOCKDOWN: &str = "Lockdown.1.SystemLockdown";

pub(super) fn is_locked_down(machine: &Machine) -> bool {
    Dell::of(machine).attributes.get(LOCKDOWN).is_some_and(|word| word == "Enabled")
}

/// Lab seconds for which the web server takes no connections when it starts anew.
const WEB_RESTART_S: u64 = 60;

/// Writes attributes, all of them or none.
pub(super) fn patch(machine: &mut Machine, now: LabTime, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let changes = match body.get("Attributes") {
        Some(Value::Object(changes)) if body.len() == 1 => changes,
        _ => return Err(Refusal::unknown(body.keys().find(|key| *key != "Attributes").map_or("Attributes", |k| k))),
    };
    if is_locked_down(machine) && !changes.keys().eq([LOCKDOWN]) {
        return Err(said::locked_down());
    }
    // While the factory password is in use, only passwords are taken.
    let is_password = |name: &str| name.starts_with("Users.") && name.ends_with(".Password");
    if accounts::is_locked(machine) && !changes.keys().all(|name| is_password(name)) {
        return Err(said::default_password());
    }
    let (mut dell, mut settings) = (Dell::of(machine), Settings::of(machine));
    let known = known(&dell, &settings);
    let restarts_web =
        |(name, value): (&String, &Value)| name.starts_with("WebServer.") && known.get(name) != Some(value);
    let restarts_web = machine.has(Quirk::WebServerRestarts) && changes.iter().any(restarts_web);
    let mut passwords: Vec<(String, String)> = Vec::new();
    for (name, value) in changes {
        if REPORTS.iter().any(|group| name.starts_with(group)) {
            return Err(Refusal::read_only(name));
        }
        let now = known.get(name).ok_or_else(|| Refusal::unknown(name))?;
        check(name, now, value)?;
        if is_password(name) {
            let slot: u32 = name.split('.').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
            let user = settings.users.get(&slot).ok_or_else(|| Refusal::value(name))?;
            passwords.push((user.name.clone(), accounts::password(machine, value)?));
            continue;
        }
        write(&mut dell, &mut settings, name, value)?;
    }
    machine.bmc.accounts.extend(passwords);
    dell.keep(machine);
    settings.keep(machine);
    if restarts_web {
        machine.bmc.web_away = Some((now, now + Duration::from_secs(WEB_RESTART_S)));
    }
    Ok(Reply::ok(said::success()))
}

/// Type and word of a value: those of the value that is there.
fn check(name: &str, now: &Value, value: &Value) -> Result<(), Refusal> {
    if now.is_number() != value.is_number() || !(value.is_number() || value.is_string()) {
        return Err(said::wrong_type(name));
    }
    let words: &[&str] = match (name, now.as_str()) {
        ("WebServer.1.TLSProtocol", _) => {
            &["TLS 1.0 and Higher", "TLS 1.1 and Higher", "TLS 1.2 and Higher", "TLS 1.2 Only", "TLS 1.3 Only"]
        }
        ("SNMP.1.SNMPProtocol", _) => &["All", "SNMPv3"],
        (_, Some("Enabled" | "Disabled")) => &["Enabled", "Disabled"],
        (name, _) if name.ends_with("LanPrivilege") || name.ends_with("SerialPrivilege") => {
            &["No Access", "User", "Operator", "Administrator"]
        }
        _ => return Ok(()),
    };
    if words.iter().any(|word| value == word) { Ok(()) } else { Err(said::not_in_list(name)) }
}

/// Puts an attribute where it belongs.
fn write(dell: &mut Dell, settings: &mut Settings, name: &str, value: &Value) -> Result<(), Refusal> {
    let text = || value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let flag = value == "Enabled";
    match name {
        "NIC.1.DNSRacName" => settings.hostname = Some(accounts::hostname(value)?),
        "IPv4.1.DHCPEnable" => settings.dhcp = flag,
        "NTPConfigGroup.1.NTPEnable" => settings.ntp.enabled = flag,
        "NTPConfigGroup.1.NTP1" => settings.ntp.primary = text(),
        "NTPConfigGroup.1.NTP2" => settings.ntp.secondary = text(),
        "SysLog.1.SysLogEnable" => settings.syslog.enabled = flag,
        "SysLog.1.Server1" => settings.syslog.server = text(),
        "SysLog.1.Port" => {
            let port = value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
            settings.syslog.port = port.ok_or_else(|| Refusal::value(name))?;
        }
        "IPMILan.1.Enable" => settings.ipmi_over_lan = flag,
        // The lab's accounts are changed as accounts.
        name if name.starts_with("Users.") && !dell.attributes.contains_key(name) => {
            return Err(Refusal::read_only(name));
        }
        _ => {
            dell.attributes.insert(name.to_owned(), value.clone());
        }
    }
    Ok(())
}

/// Whether a path is that of the attributes.
pub(super) fn is_at(path: &str) -> bool {
    path == ATTRIBUTES
}
