//! What a request changes: settings, accounts, power, the BMC itself.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::host::RESET_TYPES;
use crate::lab::bmc::Reply;
use crate::lab::bmc::login::{SESSIONS, Sessions};
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::{Settings, User};
use crate::lab::bmc::tree::link;
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, PowerAction};

/// A change of NTP is accepted at once and shows after so many lab seconds.
const NTP_TAKES_S: f64 = 1.5;

const ROLES: [&str; 3] = ["Administrator", "Operator", "ReadOnly"];
const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";

/// Changes members of a resource that exists. All or nothing.
pub(super) fn patch(machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    let mut settings = Settings::at(machine, now);
    if let Some(id) = path.strip_prefix(ACCOUNTS).and_then(|rest| rest.strip_prefix('/')) {
        return patch_account(machine, settings, id, body);
    }
    let reply = match path {
        "/redfish/v1/Managers/1/EthernetInterfaces/1" => {
            for (key, value) in body {
                match key.as_str() {
                    "HostName" => settings.hostname = Some(hostname(value)?),
                    "DHCPv4" => settings.dhcp = flag_in(value, "DHCPv4", "DHCPEnabled")?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
            Reply::success()
        }
        "/redfish/v1/Managers/1/NetworkProtocol" => {
            for (key, value) in body {
                match key.as_str() {
                    "HostName" => settings.hostname = Some(hostname(value)?),
                    "IPMI" => settings.ipmi_over_lan = flag_in(value, "IPMI", "ProtocolEnabled")?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
            Reply::success()
        }
        "/redfish/v1/Managers/1/Oem/Supermicro/NTP" => {
            let mut ntp = settings.ntp.clone();
            for (key, value) in body {
                match key.as_str() {
                    "NTPEnable" => ntp.enabled = flag(value, key)?,
                    "PrimaryNTPServer" => ntp.primary = Some(text(value, key)?),
                    "SecondaryNTPServer" => ntp.secondary = Some(text(value, key)?),
                    other => return Err(Refusal::unknown(other)),
                }
            }
            settings.ntp_next = Some((now.0.as_secs_f64() + NTP_TAKES_S, ntp));
            settings.tasks += 1;
            let task = format!("/redfish/v1/TaskService/Tasks/{}", settings.tasks);
            Reply::ok(link(task.clone())).with_status(StatusCode::ACCEPTED).at(task)
        }
        "/redfish/v1/Managers/1/Oem/Supermicro/Syslog" => {
            for (key, value) in body {
                match key.as_str() {
                    "EnableSyslog" => settings.syslog.enabled = flag(value, key)?,
                    "SyslogServer" => settings.syslog.server = Some(text(value, key)?),
                    "SyslogPortNumber" => {
                        let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
                        settings.syslog.port = port.filter(|port| *port > 0).ok_or_else(|| Refusal::value(key))?;
                    }
                    other => return Err(Refusal::unknown(other)),
                }
            }
            Reply::success()
        }
        "/redfish/v1/Systems/1" | "/redfish/v1/Chassis/1" => {
            for (key, value) in body {
                match key.as_str() {
                    "LocationIndicatorActive" => settings.locator = flag(value, key)?,
                    "IndicatorLED" => settings.locator = text(value, key)? != "Off",
                    "Boot" if path.ends_with("Systems/1") => boot(&mut settings, value)?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
            Reply::success()
        }
        _ => return Err(Refusal::method()),
    };
    settings.keep(machine);
    Ok(reply)
}

fn boot(settings: &mut Settings, value: &Value) -> Result<(), Refusal> {
    for (key, value) in value.as_object().ok_or_else(|| Refusal::value("Boot"))? {
        match key.as_str() {
            "BootSourceOverrideEnabled" => settings.boot.enabled = text(value, key)?,
            "BootSourceOverrideMode" => settings.boot.mode = text(value, key)?,
            "BootSourceOverrideTarget" => settings.boot.target = text(value, key)?,
            other => return Err(Refusal::read_only(other)),
        }
    }
    Ok(())
}

fn patch_account(
    machine: &mut Machine,
    mut settings: Settings,
    id: &str,
    body: &Map<String, Value>,
) -> Result<Reply, Refusal> {
    let missing = || Refusal::missing(&format!("{ACCOUNTS}/{id}"));
    let number: u32 = id.parse().map_err(|_| missing())?;
    let user = settings.users.get_mut(&number).ok_or_else(missing)?;
    let former = user.name.clone();
    let secret = merge_account(user, body)?;
    let name = user.name.clone();
    if name != former && settings.users.iter().any(|(other, u)| *other != number && u.name == name) {
        return Err(Refusal::exists(&name));
    }
    if let Some(known) = machine.bmc.accounts.remove(&former) {
        machine.bmc.accounts.insert(name, secret.unwrap_or(known));
    }
    settings.keep(machine);
    Ok(Reply::success())
}

/// Takes over the members of a request; the password, where there is one.
fn merge_account(user: &mut User, body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    let mut secret = None;
    for (key, value) in body {
        match key.as_str() {
            "UserName" => {
                user.name = text(value, key)?;
                let plain = user.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
                if !plain || user.name.len() > 16 {
                    return Err(Refusal::value(key));
                }
            }
            "Password" => {
                let password = text(value, key)?;
                if !(8..=20).contains(&password.len()) || !password.is_ascii() {
                    return Err(Refusal::value(key));
                }
                secret = Some(password);
            }
            "RoleId" => {
                user.role = text(value, key)?;
                if !ROLES.contains(&user.role.as_str()) {
                    return Err(Refusal::value(key));
                }
            }
            "Enabled" => user.enabled = flag(value, key)?,
            "AccountTypes" => {
                let list = value.as_array().ok_or_else(|| Refusal::value(key))?;
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                if words.is_empty() || words.iter().any(|word| !["Redfish", "IPMI", "SNMP"].contains(word)) {
                    return Err(Refusal::value(key));
                }
                user.types = words.into_iter().map(str::to_owned).collect();
            }
            other => return Err(Refusal::unknown(other)),
        }
    }
    Ok(secret)
}

/// Creates a member of a collection that exists.
pub(super) fn create(machine: &mut Machine, path: &str, body: &Value) -> Result<Reply, Refusal> {
    if path != ACCOUNTS {
        return Err(Refusal::method());
    }
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    let mut settings = Settings::of(machine);
    let mut user =
        User { name: String::new(), role: "ReadOnly".to_owned(), enabled: true, types: vec!["Redfish".to_owned()] };
    let secret = merge_account(&mut user, body)?.ok_or_else(|| Refusal::value("Password"))?;
    if user.name.is_empty() {
        return Err(Refusal::value("UserName"));
    }
    if settings.user(&user.name).is_some() {
        return Err(Refusal::exists(&user.name));
    }
    machine.bmc.accounts.insert(user.name.clone(), secret);
    let id = settings.add_user(user);
    settings.keep(machine);
    Ok(Reply::success().with_status(StatusCode::CREATED).at(format!("{ACCOUNTS}/{id}")))
}

/// Deletes an account or ends a session.
pub(super) fn delete(machine: &mut Machine, sessions: &mut Sessions, path: &str) -> Result<Reply, Refusal> {
    let id_under = |list: &str| path.strip_prefix(list).and_then(|rest| rest.strip_prefix('/'));
    if let Some(id) = id_under(SESSIONS).and_then(|id| id.parse::<u64>().ok()) {
        sessions.remove(&id);
        return Ok(Reply::success());
    }
    let Some(id) = id_under(ACCOUNTS).and_then(|id| id.parse::<u32>().ok()) else { return Err(Refusal::method()) };
    let mut settings = Settings::of(machine);
    if let Some(user) = settings.users.remove(&id) {
        machine.bmc.accounts.remove(&user.name);
    }
    settings.keep(machine);
    Ok(Reply::success())
}

/// What a `ResetType` of the system means; `None` for an interrupt that changes nothing.
pub(super) fn power_action(body: &Value) -> Result<Option<PowerAction>, Refusal> {
    let word = body["ResetType"].as_str().filter(|word| RESET_TYPES.contains(word));
    Ok(match word.ok_or_else(|| Refusal::parameter("ResetType"))? {
        "On" | "ForceOn" => Some(PowerAction::On),
        "ForceOff" => Some(PowerAction::ForceOff),
        "GracefulShutdown" => Some(PowerAction::SoftOff),
        "GracefulRestart" | "ForceRestart" | "PowerCycle" => Some(PowerAction::Restart),
        _ => None,
    })
}

/// The manager takes one kind of reset only.
pub(super) fn check_bmc_reset(body: &Value) -> Result<(), Refusal> {
    match body["ResetType"].as_str() {
        None | Some("GracefulRestart") => Ok(()),
        Some(_) => Err(Refusal::parameter("ResetType")),
    }
}

fn text(value: &Value, key: &str) -> Result<String, Refusal> {
    let text = value.as_str().ok_or_else(|| Refusal::value(key))?;
    if text.len() > 255 { Err(Refusal::value(key)) } else { Ok(text.to_owned()) }
}

fn flag(value: &Value, key: &str) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| Refusal::value(key))
}

fn flag_in(value: &Value, object: &str, key: &str) -> Result<bool, Refusal> {
    let members = value.as_object().ok_or_else(|| Refusal::value(object))?;
    match members.iter().next() {
        Some((name, value)) if name == key && members.len() == 1 => flag(value, key),
        Some((name, _)) => Err(Refusal::read_only(name)),
        None => Err(Refusal::value(object)),
    }
}

/// A letter first, then letters, digits and hyphens: at most 63.
fn hostname(value: &Value) -> Result<String, Refusal> {
    let name = text(value, "HostName")?;
    let good = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good { Ok(name) } else { Err(Refusal::value("HostName")) }
}
