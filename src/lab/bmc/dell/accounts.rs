//! The iDRAC's accounts: sixteen places that are always there, the first of them nobody's and the second root's.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::said;
use super::state::{Dell, SLOTS};
use crate::lab::bmc::Reply;
use crate::lab::bmc::said::Refusal;
use crate::lab::bmc::settings::{Settings, User};
use crate::lab::machine::{Machine, Quirk};

pub(super) const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";

const ROLES: [&str; 4] = ["Administrator", "Operator", "ReadOnly", "None"];

/// The longest password.
const PASSWORD_MAX: usize = 40;

/// Whether the factory password is in use, and has to be changed before anything else.
pub(super) fn is_locked(machine: &Machine) -> bool {
    let (user, factory) = machine.bmc.vendor.factory_login();
    let forces = machine.has(Quirk::ForcedPasswordChange) || machine.has(Quirk::ForcedChangeByAttribute);
    forces && machine.bmc.accounts.get(user).is_some_and(|password| password == factory)
}

/// Changes a place: its user, or what is known of the one that it has. All or nothing.
pub(super) fn patch(machine: &mut Machine, slot: &str, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    if is_locked(machine) && !body.keys().eq(["Password"]) {
        return Err(said::default_password());
    }
    let path = format!("{ACCOUNTS}/{slot}");
    let slot: u32 = slot.parse().map_err(|_| Refusal::missing(&path))?;
    if slot == 1 {
        return Err(Refusal::read_only("UserName"));
    }
    let settings = Settings::of(machine);
    let former = settings.users.get(&slot).cloned();
    let mut user = former.clone().unwrap_or_else(nobody);
    let secret = merge(machine, &mut user, body)?;
    if former.is_none() && (user.name.is_empty() || secret.is_none()) {
        // A place becomes an account by one request only.
        return Err(Refusal::value("UserName"));
    }
    put(machine, settings, slot, former, user, secret)?;
    Ok(Reply::ok(said::success()))
}

/// Creates an account in the first free place: iDRAC10 does, iDRAC9 has no such thing.
pub(super) fn create(machine: &mut Machine, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    if !machine.has(Quirk::Idrac10) {
        return Err(Refusal::method());
    }
    let settings = Settings::of(machine);
    let free = (3..=SLOTS).find(|slot| !settings.users.contains_key(slot));
    let slot = free.ok_or_else(|| Refusal::value("UserName"))?;
    let mut user = nobody();
    user.enabled = true;
    let secret = merge(machine, &mut user, body)?;
    if user.name.is_empty() || secret.is_none() {
        return Err(Refusal::value("UserName"));
    }
    put(machine, settings, slot, None, user, secret)?;
    Ok(Reply::ok(said::success()).with_status(StatusCode::CREATED).at(format!("{ACCOUNTS}/{slot}")))
}

/// Empties a place.
pub(super) fn delete(machine: &mut Machine, slot: &str) -> Result<Reply, Refusal> {
    let slot: u32 = slot.parse().map_err(|_| Refusal::missing(slot))?;
    if !machine.has(Quirk::Idrac10) || slot < 3 {
        return Err(Refusal::method());
    }
    let mut settings = Settings::of(machine);
    if let Some(user) = settings.users.remove(&slot) {
        machine.bmc.accounts.remove(&user.name);
    }
    settings.keep(machine);
    forget_privileges(machine, slot);
    Ok(Reply::ok(said::success()))
}

fn nobody() -> User {
    // One table of users for all interfaces.
    let types = vec!["Redfish".to_owned(), "IPMI".to_owned()];
    User { name: String::new(), role: "None".to_owned(), enabled: false, types }
}

fn put(
    machine: &mut Machine,
    mut settings: Settings,
    slot: u32,
    former: Option<User>,
    user: User,
    secret: Option<String>,
) -> Result<(), Refusal> {
    if settings.users.iter().any(|(other, u)| *other != slot && u.name == user.name) {
        return Err(Refusal::exists(&user.name));
    }
    let known = former.and_then(|former| machine.bmc.accounts.remove(&former.name));
    if let Some(password) = secret.or(known) {
        machine.bmc.accounts.insert(user.name.clone(), password);
    }
    settings.users.insert(slot, user);
    settings.keep(machine);
    Ok(())
}

fn forget_privileges(machine: &mut Machine, slot: u32) {
    let mut dell = Dell::of(machine);
    dell.attributes.insert(format!("Users.{slot}.IpmiLanPrivilege"), "No Access".into());
    dell.attributes.insert(format!("Users.{slot}.SolEnable"), "Disabled".into());
    dell.keep(machine);
}

/// Takes over the members of a request; the password, where there is one.
fn merge(machine: &Machine, user: &mut User, body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    let mut secret = None;
    for (key, value) in body {
        match key.as_str() {
            "UserName" => {
                let name = value.as_str().ok_or_else(|| said::wrong_type(key))?;
                if name.len() > 16 || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
                    return Err(Refusal::value(key));
                }
                user.name = name.to_owned();
            }
            "Password" => secret = Some(password(machine, value)?),
            "RoleId" => {
                let role = value.as_str().filter(|role| ROLES.contains(role));
                user.role = role.ok_or_else(|| said::not_in_list(key))?.to_owned();
            }
            "Enabled" => user.enabled = value.as_bool().ok_or_else(|| said::wrong_type(key))?,
            // All accounts are for everything.
            "AccountTypes" => return Err(Refusal::read_only(key)),
            other => return Err(Refusal::unknown(other)),
        }
    }
    Ok(secret)
}

/// A password that fits.
pub(super) fn password(machine: &Machine, value: &Value) -> Result<String, Refusal> {
    let password = value.as_str().ok_or_else(|| said::wrong_type("Password"))?;
    let has = |kind: fn(&u8) -> bool| password.as_bytes().iter().any(kind);
    let is_strong = has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit) && has(u8::is_ascii_punctuation);
    let wanted = is_strong || !machine.has(Quirk::StrictPasswords);
    if password.is_empty() || password.len() > PASSWORD_MAX || !password.is_ascii() || !wanted {
        return Err(Refusal::value("Password"));
    }
    Ok(password.to_owned())
}

/// A letter or digit first, then letters, digits and hyphens: at most 63.
pub(super) fn hostname(value: &Value) -> Result<String, Refusal> {
    let name = value.as_str().ok_or_else(|| said::wrong_type("HostName"))?;
    let good = !name.is_empty() && name.len() <= 63 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good { Ok(name.to_owned()) } else { Err(Refusal::value("HostName")) }
}
