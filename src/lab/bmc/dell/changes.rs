//! What a request changes: staged settings of the host, its power, the iDRAC itself.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::host::{RESET_TYPES, source_id};
use super::state::Dell;
use super::{BIOS, BOOT_OPTIONS, BOOT_SOURCES, CHASSIS, JOBS, MANAGER, SYSTEM, accounts, attributes, firmware, said};
use crate::lab::bmc::Reply;
use crate::lab::bmc::login::{SESSIONS, Sessions};
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::Settings;
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, PowerAction, Quirk};

const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";

/// Changes members of a resource that exists. All or nothing.
pub(super) fn patch(machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    if attributes::is_at(path) {
        return attributes::patch(machine, now, body);
    }
    if attributes::is_locked_down(machine) && !is_locator(body) {
        return Err(said::locked_down());
    }
    if let Some(slot) = path.strip_prefix(accounts::ACCOUNTS).and_then(|rest| rest.strip_prefix('/')) {
        return accounts::patch(machine, slot, body);
    }
    if let Some(reference) = path.strip_prefix(BOOT_OPTIONS).and_then(|rest| rest.strip_prefix('/')) {
        return option(machine, now, reference, body);
    }
    if path == format!("{BIOS}/Settings") {
        return bios(machine, now, body);
    }
    if path == format!("{BOOT_SOURCES}/Settings") {
        return sources(machine, now, body);
    }
    if path == format!("{SYSTEM}/Settings") {
        return order(machine, now, body);
    }
    match path {
        SYSTEM | CHASSIS => of_the_system(machine, now, path, body),
        path if path.starts_with(MANAGER) => of_the_manager(machine, path, body),
        _ => Err(Refusal::method()),
    }
}

/// The locator LED goes on to work in a lockdown.
fn is_locator(body: &Map<String, Value>) -> bool {
    body.keys().all(|key| matches!(key.as_str(), "LocationIndicatorActive" | "IndicatorLED"))
}

fn of_the_system(machine: &mut Machine, now: LabTime, path: &str, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut settings = Settings::of(machine);
    for (key, value) in body {
        match key.as_str() {
            APPLY_TIME => {}
            "LocationIndicatorActive" => settings.locator = value.as_bool().ok_or_else(|| said::wrong_type(key))?,
            "IndicatorLED" => settings.locator = value == "Blinking",
            "Boot" if path == SYSTEM && value.get("BootOrder").is_some() => {
                if machine.has(Quirk::Idrac10) {
                    return Err(Refusal::read_only("Boot"));
                }
                return order(machine, now, body);
            }
            "Boot" if path == SYSTEM => {
                for (key, value) in value.as_object().ok_or_else(|| said::wrong_type("Boot"))? {
                    let word = value.as_str().ok_or_else(|| said::wrong_type(key))?.to_owned();
                    match key.as_str() {
                        "BootSourceOverrideEnabled" => settings.boot.enabled = word,
                        "BootSourceOverrideMode" => settings.boot.mode = word,
                        "BootSourceOverrideTarget" => settings.boot.target = word,
                        other => return Err(Refusal::read_only(other)),
                    }
                }
            }
            other => return Err(Refusal::read_only(other)),
        }
    }
    settings.keep(machine);
    Ok(Reply::ok(said::success()))
}

/// The standard places of what is an attribute too.
fn of_the_manager(machine: &mut Machine, path: &str, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut settings = Settings::of(machine);
    let flag = |value: &Value, key: &str| value[key].as_bool().ok_or_else(|| said::wrong_type(key));
    for (key, value) in body {
        match (path.rsplit('/').next().unwrap_or_default(), key.as_str()) {
            ("NIC.1", "HostName") => settings.hostname = Some(accounts::hostname(value)?),
            ("NIC.1", "DHCPv4") => settings.dhcp = flag(value, "DHCPEnabled")?,
            ("NetworkProtocol", "IPMI") => settings.ipmi_over_lan = flag(value, "ProtocolEnabled")?,
            ("NetworkProtocol", "NTP") => {
                settings.ntp.enabled = flag(value, "ProtocolEnabled")?;
                settings.ntp.primary = value["NTPServers"][0].as_str().map(str::to_owned);
            }
            (_, other) => return Err(Refusal::read_only(other)),
        }
    }
    settings.keep(machine);
    Ok(Reply::ok(said::success()))
}

/// Whether a request wants its settings committed for the next boot.
fn commits(body: &Map<String, Value>) -> Result<bool, Refusal> {
    match body.get(APPLY_TIME) {
        None => Ok(false),
        Some(time) if time["ApplyTime"] == "OnReset" => Ok(true),
        Some(_) => Err(said::not_in_list(APPLY_TIME)),
    }
}

/// Ends a request that stages something: with a job of its own where it wants one.
fn stage(machine: &mut Machine, now: LabTime, mut dell: Dell, commit: bool) -> Reply {
    let reply = Reply::ok(said::success());
    let reply = if commit {
        let id = dell.add_job(now.0.as_secs_f64(), false);
        reply.with_status(StatusCode::ACCEPTED).at(format!("{JOBS}/{id}"))
    } else {
        reply
    };
    dell.keep(machine);
    reply
}

fn uncommitted(machine: &Machine) -> Result<Dell, Refusal> {
    let dell = Dell::of(machine);
    if dell.is_committed() { Err(said::committed()) } else { Ok(dell) }
}

/// Stages firmware attributes.
fn bios(machine: &mut Machine, now: LabTime, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut dell = uncommitted(machine)?;
    let changes = body.get("Attributes").and_then(Value::as_object).ok_or_else(|| Refusal::value("Attributes"))?;
    let shown = firmware::shown(machine, &dell);
    // A device that this request switches on can be set by it, too.
    let mut then = dell.bios.clone();
    then.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
    for (name, value) in changes {
        let current = shown.get(name).ok_or_else(|| Refusal::unknown(name))?;
        if firmware::is_read_only(&then, name) {
            return Err(Refusal::read_only(name));
        }
        if current.is_number() != value.is_number() || !(value.is_number() || value.is_string()) {
            return Err(said::wrong_type(name));
        }
        let words = firmware::words(machine, name);
        if !words.is_empty() && !words.iter().any(|word| value == word.as_str()) {
            return Err(said::not_in_list(name));
        }
    }
    dell.staged_bios.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
    let commit = commits(body)?;
    Ok(stage(machine, now, dell, commit))
}

/// Stages order and flags of all boot sources.
fn sources(machine: &mut Machine, now: LabTime, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut dell = uncommitted(machine)?;
    let list = body.get("Attributes").and_then(|attributes| attributes["UefiBootSeq"].as_array());
    let list = list.ok_or_else(|| Refusal::value("UefiBootSeq"))?;
    let mut staged: Vec<(u64, String, bool)> = Vec::new();
    for entry in list {
        let found = dell.options.iter().find(|option| entry["Id"] == source_id(option).as_str());
        let option = found.filter(|option| entry["Name"] == option.source.as_str());
        let (Some(option), Some(enabled), Some(index)) = (option, entry["Enabled"].as_bool(), entry["Index"].as_u64())
        else {
            return Err(Refusal::value("UefiBootSeq"));
        };
        staged.push((index, option.reference.clone(), enabled));
    }
    staged.sort();
    if !staged.iter().map(|(index, _, _)| *index).eq(0..dell.options.len() as u64) {
        return Err(Refusal::value("UefiBootSeq"));
    }
    dell.staged_boot = Some(staged.into_iter().map(|(_, reference, enabled)| (reference, enabled)).collect());
    let commit = commits(body)?;
    Ok(stage(machine, now, dell, commit))
}

/// Stages the boot order alone.
fn order(machine: &mut Machine, now: LabTime, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut dell = uncommitted(machine)?;
    let wanted = body.get("Boot").and_then(|boot| boot["BootOrder"].as_array());
    let wanted: Vec<&str> =
        wanted.ok_or_else(|| Refusal::value("BootOrder"))?.iter().filter_map(Value::as_str).collect();
    let mut staged = Vec::new();
    for reference in &wanted {
        let option = dell.options.iter().find(|option| option.reference == *reference);
        staged.push(((*reference).to_owned(), option.ok_or_else(|| Refusal::value("BootOrder"))?.enabled));
    }
    let all_once = dell.options.iter().all(|o| wanted.iter().filter(|r| **r == o.reference).count() == 1);
    if !all_once || wanted.len() != dell.options.len() {
        return Err(Refusal::value("BootOrder"));
    }
    dell.staged_boot = Some(staged);
    Ok(stage(machine, now, dell, true))
}

/// Stages one option's flag: a job for each.
fn option(machine: &mut Machine, now: LabTime, reference: &str, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let mut dell = uncommitted(machine)?;
    let mut staged: Vec<(String, bool)> = dell.options.iter().map(|o| (o.reference.clone(), o.enabled)).collect();
    for (key, value) in body {
        match key.as_str() {
            APPLY_TIME => {}
            "BootOptionEnabled" => {
                let enabled = value.as_bool().ok_or_else(|| said::wrong_type(key))?;
                for (_, flag) in staged.iter_mut().filter(|(r, _)| r == reference) {
                    *flag = enabled;
                }
            }
            other => return Err(Refusal::read_only(other)),
        }
    }
    dell.staged_boot = Some(staged);
    Ok(stage(machine, now, dell, true))
}

/// Forgets what is staged, where no job holds it.
pub(super) fn clear_pending(machine: &mut Machine, path: &str) -> Result<Reply, Refusal> {
    let mut dell = uncommitted(machine)?;
    if path.starts_with(BIOS) {
        dell.staged_bios.clear();
    } else {
        dell.staged_boot = None;
    }
    dell.keep(machine);
    Ok(Reply::ok(said::success()))
}

/// Deletes an account or ends a session.
pub(super) fn delete(
    machine: &mut Machine,
    now: LabTime,
    sessions: &mut Sessions,
    path: &str,
) -> Result<Reply, Refusal> {
    let id_under = |list: &str| path.strip_prefix(list).and_then(|rest| rest.strip_prefix('/'));
    if let Some(id) = id_under(SESSIONS).and_then(|id| id.parse::<u64>().ok()) {
        sessions.remove(&id);
        return Ok(Reply::ok(said::success()));
    }
    if attributes::is_locked_down(machine) {
        return Err(said::locked_down());
    }
    if let Some(slot) = id_under(accounts::ACCOUNTS) {
        return accounts::delete(machine, slot);
    }
    match id_under(JOBS) {
        Some(id) => super::jobs::delete_one(machine, now, id),
        None => Err(Refusal::method()),
    }
}

/// What a `ResetType` of the system means; `None` for an interrupt that changes nothing. A host that is already as it is
/// asked to be makes a conflict.
pub(super) fn power_action(machine: &Machine, body: &Value) -> Result<Option<PowerAction>, Refusal> {
    let word = body["ResetType"].as_str().filter(|word| RESET_TYPES.contains(word));
    let word = word.ok_or_else(|| Refusal::parameter("ResetType"))?;
    let on = machine.power.on;
    match (word, on) {
        ("On", true) | ("ForceOff" | "GracefulShutdown" | "ForceRestart" | "GracefulRestart" | "PowerCycle", false) => {
            Err(said::power_as_asked(word))
        }
        ("On", false) | ("PushPowerButton", false) => Ok(Some(PowerAction::On)),
        ("ForceOff", true) => Ok(Some(PowerAction::ForceOff)),
        ("GracefulShutdown" | "PushPowerButton", true) => Ok(Some(PowerAction::SoftOff)),
        ("ForceRestart" | "GracefulRestart" | "PowerCycle", true) => Ok(Some(PowerAction::Restart)),
        _ => Ok(None),
    }
}

/// The iDRAC takes one kind of reset only.
pub(super) fn check_reset(body: &Value) -> Result<(), Refusal> {
    match body["ResetType"].as_str() {
        Some("GracefulRestart") => Ok(()),
        _ => Err(Refusal::parameter("ResetType")),
    }
}
