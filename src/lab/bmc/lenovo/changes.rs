//! What a request changes on an XCC.

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::bmc::PLACES;
use super::said::too_soon;
use super::state::{CLASSES, Recipient, State};
use super::{firmware, host};
use crate::lab::bmc::Reply;
use crate::lab::bmc::fields::{flag, flag_word, hostname, object, text, texts};
use crate::lab::bmc::login::{SESSIONS, Sessions};
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::Settings;
use crate::lab::bmc::users::{self, ACCOUNTS, Rules};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, PowerAction, Quirk};

const RECIPIENTS: &str = "/redfish/v1/Managers/1/Oem/Lenovo/Recipients";

const RULES: Rules = Rules {
    password: (10, 32),
    roles: &["Administrator", "Operator", "ReadOnly"],
    types: &["Redfish", "SNMP", "HostConsole", "ManagerConsole", "IPMI", "KVMIP", "VirtualMedia", "WebUI"],
    usual: &["Redfish", "WebUI", "ManagerConsole"],
    types_want_password: true,
};

/// What this firmware answers to a change that is done: some says nothing but annotations (Q34).
fn done(machine: &Machine) -> Reply {
    if machine.has(Quirk::AnnotationOnlyReplies) {
        let context = "/redfish/v1/$metadata#ManagerNetworkProtocol.ManagerNetworkProtocol";
        return Reply::ok(json!({"@odata.context": context, "@odata.type": "#Bios.v1_2_0.Bios"}));
    }
    Reply::ok(json!({"@Message.ExtendedInfo": [{
        "MessageId": "Base.1.15.Success",
        "Message": "The request completed successfully.",
        "MessageArgs": [],
        "Severity": "OK",
        "Resolution": "None.",
    }]}))
}

/// Changes members of a resource that exists. All or nothing.
pub(super) fn patch(machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    if let Some(number) = users::number(path) {
        return patch_account(machine, now, number, body);
    }
    let (mut settings, mut state) = (Settings::of(machine), State::of(machine));
    let mut reply = done(machine);
    match path {
        "/redfish/v1/Managers/1" => manager(&mut state, machine.has(Quirk::FlagsAsWords), body)?,
        "/redfish/v1/Managers/1/EthernetInterfaces/NIC" => {
            for (key, value) in body {
                match key.as_str() {
                    "HostName" => {
                        settings.hostname = Some(hostname(value)?);
                        if machine.has(Quirk::HostnameTask) {
                            state.tasks += 1;
                            let task = format!("/redfish/v1/TaskService/Tasks/{}", state.tasks);
                            reply = Reply::ok(json!({"@odata.id": task})).with_status(StatusCode::ACCEPTED).at(task);
                        }
                    }
                    "DHCPv4" => each(value, key, |key, value| match key {
                        "DHCPEnabled" => set(&mut settings.dhcp, flag(value, key)?),
                        other => Err(Refusal::read_only(other)),
                    })?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        "/redfish/v1/Managers/1/EthernetInterfaces/ToHost" => {
            for (key, value) in body {
                match key.as_str() {
                    "InterfaceEnabled" => state.to_host = flag(value, key)?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        "/redfish/v1/Managers/1/NetworkProtocol" => network_protocol(&mut settings, &mut state, body)?,
        "/redfish/v1/Managers/1/NetworkProtocol/Oem/Lenovo/SNMP" => {
            for (key, value) in body {
                match key.as_str() {
                    "SNMPTraps" => each(value, key, |key, value| match key {
                        "SNMPv1TrapEnabled" => set(&mut state.snmp_v1_traps, flag(value, key)?),
                        other => Err(Refusal::unknown(other)),
                    })?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        "/redfish/v1/Managers/1/Oem/Lenovo/Security" => {
            for (key, value) in body {
                match key.as_str() {
                    "CryptographyManagement" => each(value, key, |key, value| match (key, value.as_str()) {
                        ("MinTLSLevel", Some(level)) if TLS.contains(&level) => set(&mut state.tls, level.to_owned()),
                        ("MinTLSLevel", _) => Err(Refusal::value(key)),
                        (other, _) => Err(Refusal::unknown(other)),
                    })?,
                    other => return Err(Refusal::read_only(other)),
                }
            }
        }
        "/redfish/v1/Systems/1" | "/redfish/v1/Chassis/1" => system(&mut settings, path, body)?,
        "/redfish/v1/Systems/1/Pending" => order(&mut state, body)?,
        "/redfish/v1/Systems/1/Bios/Pending" => attributes(machine, &mut state, body)?,
        _ => match path.strip_prefix(RECIPIENTS).and_then(|rest| rest.strip_prefix('/')) {
            Some(id) => change_recipient(&mut state, id, body)?,
            None => match path.strip_prefix("/redfish/v1/Systems/1/Oem/Lenovo/BootSettings/BootOrder.") {
                Some(kind) => next_order(&mut state, kind, body)?,
                None => return Err(Refusal::method()),
            },
        },
    }
    settings.keep(machine);
    state.keep(machine);
    Ok(reply)
}

const TLS: [&str; 4] = ["TLSLevel1_0", "TLSLevel1_1", "TLSLevel1_2", "TLSLevel1_3"];

fn set<T>(place: &mut T, value: T) -> Result<(), Refusal> {
    *place = value;
    Ok(())
}

/// Each member of an object in a request.
fn each(
    value: &Value,
    object_key: &str,
    mut take: impl FnMut(&str, &Value) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    object(value, object_key)?.iter().try_for_each(|(key, value)| take(key, value))
}

fn manager(state: &mut State, words: bool, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        if key != "Oem" {
            return Err(Refusal::read_only(key));
        }
        each(value, key, |vendor, value| {
            if vendor != "Lenovo" {
                return Err(Refusal::unknown(vendor));
            }
            each(value, vendor, |key, value| match key {
                "KCSEnabled" => set(&mut state.kcs, flag_word(value, key, words)?),
                other => Err(Refusal::read_only(other)),
            })
        })?;
    }
    Ok(())
}

fn network_protocol(settings: &mut Settings, state: &mut State, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        match key.as_str() {
            "HostName" => settings.hostname = Some(hostname(value)?),
            "IPMI" => each(value, key, |key, value| match key {
                "ProtocolEnabled" => set(&mut settings.ipmi_over_lan, flag(value, key)?),
                other => Err(Refusal::read_only(other)),
            })?,
            "SSDP" => each(value, key, |key, value| match key {
                "ProtocolEnabled" => set(&mut state.ssdp, flag(value, key)?),
                other => Err(Refusal::read_only(other)),
            })?,
            "NTP" => each(value, key, |key, value| match key {
                "ProtocolEnabled" => set(&mut settings.ntp.enabled, flag(value, key)?),
                "NTPServers" => {
                    let servers = texts(value, key)?;
                    if servers.len() > 4 {
                        return Err(Refusal::value(key));
                    }
                    let mut named = servers.into_iter().filter(|server| !server.is_empty());
                    (settings.ntp.primary, settings.ntp.secondary) = (named.next(), named.next());
                    Ok(())
                }
                other => Err(Refusal::read_only(other)),
            })?,
            "Oem" => each(value, key, |vendor, value| {
                each(value, vendor, |service, value| match service {
                    "SLP" => each(value, service, |key, value| match key {
                        "ProtocolEnabled" => set(&mut state.slp, flag(value, key)?),
                        other => Err(Refusal::read_only(other)),
                    }),
                    other => Err(Refusal::read_only(other)),
                })
            })?,
            other => return Err(Refusal::read_only(other)),
        }
    }
    Ok(())
}

/// The order itself is read only here: it is changed through what is pending.
fn system(settings: &mut Settings, path: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        match key.as_str() {
            "IndicatorLED" => settings.locator = text(value, key)? != "Off",
            "Boot" if path.ends_with("Systems/1") => each(value, key, |key, value| match key {
                "BootSourceOverrideEnabled" => set(&mut settings.boot.enabled, text(value, key)?),
                "BootSourceOverrideMode" => set(&mut settings.boot.mode, text(value, key)?),
                "BootSourceOverrideTarget" => set(&mut settings.boot.target, text(value, key)?),
                other => Err(Refusal::read_only(other)),
            })?,
            other => return Err(Refusal::read_only(other)),
        }
    }
    Ok(())
}

/// The order of classes for the next boot, by their boot options.
fn order(state: &mut State, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        if key != "Boot" {
            return Err(Refusal::read_only(key));
        }
        each(value, key, |key, value| match key {
            "BootOrder" => {
                let references = texts(value, key)?;
                let names = host::names(&references).filter(|names| distinct(names));
                let names = names.ok_or_else(|| Refusal::value(key))?;
                // A class without a boot option of its own is not known here.
                let known =
                    names.iter().all(|name| state.classes.contains(name) || state.next_classes().contains(name));
                if !known {
                    return Err(Refusal::value(key));
                }
                set(&mut state.classes_next, (names != state.classes).then_some(names))
            }
            other => Err(Refusal::read_only(other)),
        })?;
    }
    Ok(())
}

/// The vendor's own order for the next boot.
fn next_order(state: &mut State, kind: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        if key != "BootOrderNext" {
            return Err(Refusal::read_only(key));
        }
        let wanted = texts(value, key)?;
        let is_known = |entry: &String| match kind {
            "BootOrder" => CLASSES.iter().any(|class| class.0 == entry),
            _ => state.network.contains(entry),
        };
        if !distinct(&wanted) || !wanted.iter().all(is_known) {
            return Err(Refusal::value(key));
        }
        match kind {
            "BootOrder" => state.classes_next = (wanted != state.classes).then_some(wanted),
            "NetworkBootOrder" => state.network_next = (wanted != state.network).then_some(wanted),
            _ => return Err(Refusal::value(key)),
        }
    }
    Ok(())
}

fn distinct(list: &[String]) -> bool {
    list.iter().enumerate().all(|(n, entry)| !list[..n].contains(entry))
}

fn attributes(machine: &Machine, state: &mut State, body: &Map<String, Value>) -> Result<(), Refusal> {
    for (key, value) in body {
        if key != "Attributes" {
            return Err(Refusal::read_only(key));
        }
        let attributes = object(value, key)?;
        let network = machine.has(Quirk::Xcc3).then_some((&state.network[..], &state.pending));
        firmware::check(attributes, network)?;
        let now = state.all_attributes(machine);
        state.pending.extend(attributes.clone());
        state.pending.retain(|name, value| now.get(name) != Some(value));
    }
    Ok(())
}

/// The password ends a forced change; while one is forced, nothing else is taken.
fn patch_account(
    machine: &mut Machine,
    now: LabTime,
    number: u32,
    body: &Map<String, Value>,
) -> Result<Reply, Refusal> {
    let (mut settings, mut state) = (Settings::of(machine), State::of(machine));
    let now_s = now.0.as_secs_f64();
    if let Some(value) = body.get("Password") {
        let password = RULES.password(value)?;
        let since = state.changed_s.get(&number).map(|then| now_s - then);
        if since.is_some_and(|since| since < f64::from(state.change_interval_h) * 3600.0) {
            return Err(too_soon());
        }
        let known = settings.users.get(&number).and_then(|user| machine.bmc.accounts.get(&user.name));
        if state.must_change && known == Some(&password) {
            return Err(Refusal::value("Password"));
        }
    }
    users::change(machine, &mut settings, number, body, &RULES)?;
    if body.contains_key("Password") {
        state.changed_s.insert(number, now_s);
        state.must_change &= number != 1;
    }
    settings.keep(machine);
    state.keep(machine);
    Ok(done(machine))
}

/// Creates a member of a collection that exists.
pub(super) fn create(machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
    let Some(body) = body.as_object() else { return Err(Refusal::malformed()) };
    match path {
        ACCOUNTS if !machine.has(Quirk::AccountsFixed) => {
            let mut settings = Settings::of(machine);
            let free = (1..=PLACES).find(|id| !settings.users.contains_key(id));
            let id = free.ok_or_else(|| Refusal::value("Id"))?;
            users::change(machine, &mut settings, id, body, &RULES)?;
            settings.keep(machine);
            let mut state = State::of(machine);
            state.changed_s.insert(id, now.0.as_secs_f64());
            state.keep(machine);
            Ok(done(machine).with_status(StatusCode::CREATED).at(format!("{ACCOUNTS}/{id}")))
        }
        RECIPIENTS => {
            let mut state = State::of(machine);
            let id = body.get("Id").and_then(Value::as_str).and_then(|id| id.parse::<u32>().ok());
            let id = id.filter(|id| (1..=12).contains(id) && !state.recipients.contains_key(id));
            let id = id.ok_or_else(|| Refusal::value("Id"))?;
            let given = body.get("RecipientSettings").ok_or_else(|| Refusal::value("RecipientSettings"))?;
            let recipient = recipient(given, machine.has(Quirk::OtherAuditEvents))?;
            state.recipients.insert(id, recipient);
            state.keep(machine);
            Ok(done(machine).with_status(StatusCode::CREATED).at(format!("{RECIPIENTS}/{id}")))
        }
        _ => Err(Refusal::method()),
    }
}

fn recipient(given: &Value, other_audit_events: bool) -> Result<Recipient, Refusal> {
    let mut recipient = Recipient {
        name: String::new(),
        address: String::new(),
        kind: String::new(),
        enabled: false,
        alerts: Value::Null,
    };
    let audit = if other_audit_events { "AllOtherAuditEvents" } else { "AllAuditEvents" };
    each(given, "RecipientSettings", |key, value| match key {
        "Enabledstate" => set(&mut recipient.enabled, flag_word(value, key, true)?),
        "RecipientName" => set(&mut recipient.name, text(value, key)?),
        "Address" => set(&mut recipient.address, text(value, key)?),
        "AlertType" => match value.as_str() {
            Some(word @ ("Syslog" | "Email" | "SNMP")) => set(&mut recipient.kind, word.to_owned()),
            _ => Err(Refusal::value(key)),
        },
        "IncludeEventLog" => flag(value, key).map(drop),
        "EnabledAlerts" => {
            for (group, events) in object(value, key)? {
                let known: &[&str] = match group.as_str() {
                    "CriticalEvents" => &["AllCriticalEvents"],
                    "WarningEvents" => &["AllWarningEvents"],
                    "SystemEvents" => &["AllSystemEvents", audit],
                    other => return Err(Refusal::unknown(other)),
                };
                let words = texts(&events["AcceptedEvents"], "AcceptedEvents")?;
                if !words.iter().all(|word| known.contains(&word.as_str())) {
                    return Err(Refusal::value("AcceptedEvents"));
                }
            }
            set(&mut recipient.alerts, value.clone())
        }
        other => Err(Refusal::unknown(other)),
    })?;
    if recipient.kind.is_empty() || recipient.address.is_empty() {
        return Err(Refusal::value("RecipientSettings"));
    }
    Ok(recipient)
}

fn change_recipient(state: &mut State, id: &str, body: &Map<String, Value>) -> Result<(), Refusal> {
    let missing = || Refusal::missing(&format!("{RECIPIENTS}/{id}"));
    let recipient = id.parse().ok().and_then(|id: u32| state.recipients.get_mut(&id)).ok_or_else(missing)?;
    for (key, value) in body {
        if key != "RecipientSettings" {
            return Err(Refusal::read_only(key));
        }
        each(value, key, |key, value| match key {
            "Enabledstate" => set(&mut recipient.enabled, flag_word(value, key, true)?),
            "RecipientName" => set(&mut recipient.name, text(value, key)?),
            "Address" => set(&mut recipient.address, text(value, key)?),
            "AlertType" if value.as_str() == Some(&recipient.kind) => Ok(()),
            other => Err(Refusal::read_only(other)),
        })?;
    }
    Ok(())
}

/// Deletes an account or a recipient, or ends a session.
pub(super) fn delete(machine: &mut Machine, sessions: &mut Sessions, path: &str) -> Result<Reply, Refusal> {
    let id_under = |list: &str| path.strip_prefix(list).and_then(|rest| rest.strip_prefix('/'));
    if let Some(id) = id_under(SESSIONS).and_then(|id| id.parse::<u64>().ok()) {
        sessions.remove(&id);
        return Ok(done(machine));
    }
    if let Some(id) = id_under(RECIPIENTS).and_then(|id| id.parse::<u32>().ok()) {
        let mut state = State::of(machine);
        state.recipients.remove(&id);
        state.keep(machine);
        return Ok(done(machine));
    }
    let number = users::number(path).filter(|number| *number != 1 && !machine.has(Quirk::AccountsFixed));
    let Some(number) = number else { return Err(Refusal::method()) };
    let mut settings = Settings::of(machine);
    users::delete(machine, &mut settings, number);
    settings.keep(machine);
    Ok(done(machine))
}

/// What a `ResetType` of the system means; `None` for an interrupt that changes nothing.
pub(super) fn power_action(body: &Value) -> Result<Option<PowerAction>, Refusal> {
    let word = body["ResetType"].as_str().filter(|word| host::RESET_TYPES.contains(word));
    Ok(match word.ok_or_else(|| Refusal::parameter("ResetType"))? {
        "On" | "ForceOn" => Some(PowerAction::On),
        "ForceOff" => Some(PowerAction::ForceOff),
        "GracefulShutdown" => Some(PowerAction::SoftOff),
        "GracefulRestart" | "ForceRestart" => Some(PowerAction::Restart),
        _ => None,
    })
}

pub(super) fn check_bmc_reset(body: &Value) -> Result<(), Refusal> {
    let known = body["ResetType"].as_str().is_some_and(|word| super::bmc::BMC_RESETS.contains(&word));
    if known { Ok(()) } else { Err(Refusal::parameter("ResetType")) }
}

pub(super) fn acted(machine: &Machine) -> Reply {
    done(machine)
}
