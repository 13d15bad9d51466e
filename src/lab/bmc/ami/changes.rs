//! What a request changes on a MegaRAC.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::said::settings_refused;
use super::state::{State, key_of};
use super::{Ids, host};
use crate::lab::bmc::Reply;
use crate::lab::bmc::fields::{flag, hostname, object, text, texts};
use crate::lab::bmc::login::{SESSIONS, Sessions};
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::Settings;
use crate::lab::bmc::users::{self, ACCOUNTS, Rules};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, PowerAction, Quirk};

const RULES: Rules = Rules {
    password: (13, 20),
    roles: &["Administrator", "Operator", "ReadOnly"],
    types: &[],
    usual: &["Redfish"],
    types_want_password: false,
};

fn done() -> Reply {
    Reply::ok(json!({"@Message.ExtendedInfo": [{
        "@odata.type": "#Message.v1_0_8.Message",
        "MessageId": "Base.1.8.Success",
        "Message": "Successfully Completed Request",
        "Severity": "OK",
        "Resolution": "None",
    }]}))
}

/// Changes members of a resource that exists. All or nothing.
pub(super) fn patch(machine: &mut Machine, path: &str, body: &Value) -> Result<Reply, Refusal> {
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    let (mut settings, mut state, ids) = (Settings::of(machine), State::of(machine), Ids::of(machine));
    if let Some(number) = users::number(path) {
        // The internal account is nobody's to change.
        if settings.users.get(&number).is_some_and(|user| user.role == "HostInterfaceAdministrator") {
            return Err(Refusal::privilege());
        }
        users::change(machine, &mut settings, number, body, &RULES)?;
        state.must_change &= !(number == 1 && body.contains_key("Password"));
        settings.keep(machine);
        state.keep(machine);
        return Ok(done());
    }
    let manager = ids.manager();
    match path.strip_prefix(&manager) {
        Some("/EthernetInterfaces/eth0") => {
            for (key, value) in body {
                match key.as_str() {
                    "HostName" if !machine.has(Quirk::HostnameInProtocol) => settings.hostname = Some(hostname(value)?),
                    "DHCPv4" => settings.dhcp = flag(&object(value, key)?["DHCPEnabled"], "DHCPEnabled")?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        Some("/NetworkProtocol") => network_protocol(&mut settings, body)?,
        Some(_) => return Err(Refusal::method()),
        None if path == ids.chassis() || path == ids.system() && body.contains_key("IndicatorLED") => {
            for (key, value) in body {
                match key.as_str() {
                    "IndicatorLED" => settings.locator = text(value, key)? != "Off",
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        None => staged(machine, &mut state, &ids, path, body)?,
    }
    settings.keep(machine);
    state.keep(machine);
    Ok(done())
}

/// Two servers at most, and always along with whether they are asked at all.
fn network_protocol(settings: &mut Settings, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        match key.as_str() {
            "HostName" => settings.hostname = Some(hostname(value)?),
            "IPMI" => settings.ipmi_over_lan = flag(&object(value, key)?["ProtocolEnabled"], "ProtocolEnabled")?,
            "NTP" => {
                let ntp = object(value, key)?;
                let enabled = ntp.get("ProtocolEnabled").ok_or_else(|| Refusal::value("ProtocolEnabled"))?;
                settings.ntp.enabled = flag(enabled, "ProtocolEnabled")?;
                if let Some(servers) = ntp.get("NTPServers") {
                    let servers = texts(servers, "NTPServers")?;
                    if servers.len() > 2 {
                        return Err(Refusal::value("NTPServers"));
                    }
                    let mut servers = servers.into_iter();
                    (settings.ntp.primary, settings.ntp.secondary) = (servers.next(), servers.next());
                }
            }
            other => return Err(Refusal::read_only(other)),
        }
    }
    Ok(())
}

/// What the next boot takes: through the settings objects, or through the resources themselves on firmware whose
/// settings objects take nothing (Q22).
fn staged(
    machine: &Machine,
    state: &mut State,
    ids: &Ids,
    path: &str,
    body: &Map<String, Value>,
) -> Result<(), Refusal> {
    let (resource, is_settings) = match path.strip_suffix("/SD") {
        Some(resource) => (resource, true),
        None => (path, false),
    };
    let takes = is_settings != machine.has(Quirk::SettingsRefused);
    let options = format!("{}/BootOptions/", ids.system());
    for (key, value) in body {
        match (key.as_str(), resource.strip_prefix(&options)) {
            (_, _) if !takes => return Err(settings_refused(key)),
            ("BootOptionEnabled", Some(id)) => {
                let option = state.options.iter_mut().find(|option| option.id == id);
                let option = option.ok_or_else(|| Refusal::missing(path))?;
                let wanted = flag(value, key)?;
                option.next = (wanted != option.enabled).then_some(wanted);
            }
            ("Boot", None) if resource == ids.system() => {
                for (key, value) in object(value, key)? {
                    if key != "BootOrder" {
                        return Err(Refusal::read_only(key));
                    }
                    let order = texts(value, key)?;
                    let is_option = |entry: &String| {
                        let known = state.options.iter().find(|option| option.reference() == key_of(entry));
                        // One that is disabled and has vanished from the order is not known there.
                        known.is_some_and(|option| {
                            option.next.unwrap_or(option.enabled)
                                || state.order.iter().any(|shown| key_of(shown) == key_of(entry))
                        })
                    };
                    let twice =
                        order.iter().enumerate().any(|(n, e)| order[..n].iter().any(|f| key_of(f) == key_of(e)));
                    if twice || !order.iter().all(is_option) {
                        return Err(Refusal::value(key));
                    }
                    state.order_next = (order != state.order).then_some(order);
                }
            }
            (other, _) => return Err(Refusal::read_only(other)),
        }
    }
    Ok(())
}

/// Creates an account.
pub(super) fn create(machine: &mut Machine, path: &str, body: &Value) -> Result<Reply, Refusal> {
    if path != ACCOUNTS {
        return Err(Refusal::method());
    }
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    let mut settings = Settings::of(machine);
    let id = (3..).find(|id| !settings.users.contains_key(id)).unwrap_or(3);
    users::change(machine, &mut settings, id, body, &RULES)?;
    settings.keep(machine);
    Ok(done().with_status(StatusCode::CREATED).at(format!("{ACCOUNTS}/{id}")))
}

/// Deletes an account or ends a session.
pub(super) fn delete(machine: &mut Machine, sessions: &mut Sessions, path: &str) -> Result<Reply, Refusal> {
    let id = path.strip_prefix(SESSIONS).and_then(|rest| rest.strip_prefix('/')).and_then(|id| id.parse::<u64>().ok());
    if let Some(id) = id {
        sessions.remove(&id);
        return Ok(done());
    }
    let number = users::number(path).filter(|number| *number > 2).ok_or_else(Refusal::method)?;
    let mut settings = Settings::of(machine);
    users::delete(machine, &mut settings, number);
    settings.keep(machine);
    Ok(done())
}

/// Enables or disables remote media.
pub(super) fn media(machine: &mut Machine, now: LabTime, body: &Value) -> Result<(), Refusal> {
    let on = match body["RMediaState"].as_str() {
        Some("Enable") => true,
        Some("Disable") => false,
        _ => return Err(Refusal::parameter("RMediaState")),
    };
    let mut state = State::of(machine);
    state.enable_media(on, now);
    state.keep(machine);
    Ok(())
}

/// What a `ResetType` of the system means.
pub(super) fn power_action(body: &Value) -> Result<PowerAction, Refusal> {
    let word = body["ResetType"].as_str().filter(|word| host::RESET_TYPES.contains(word));
    Ok(match word.ok_or_else(|| Refusal::parameter("ResetType"))? {
        "On" => PowerAction::On,
        "ForceOff" => PowerAction::ForceOff,
        "GracefulShutdown" => PowerAction::SoftOff,
        _ => PowerAction::Restart,
    })
}

pub(super) fn check_bmc_reset(body: &Value) -> Result<(), Refusal> {
    match body["ResetType"].as_str() {
        Some("ForceRestart") => Ok(()),
        _ => Err(Refusal::parameter("ResetType")),
    }
}

pub(super) fn acted() -> Reply {
    done()
}
