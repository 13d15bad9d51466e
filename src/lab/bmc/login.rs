//! Who may ask a lab BMC: Basic and sessions, and the lock after wrong tries.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Reply;
use super::said::Refusal;
use super::settings::Settings;
use crate::lab::clock::LabTime;
use crate::lab::machine::Machine;

/// The collection of sessions.
pub(super) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// As the captured account service has it: three tries, half a minute.
pub(super) const LOCKOUT_THRESHOLD: u32 = 3;
pub(super) const LOCKOUT_S: f64 = 30.0;

/// Idle seconds after which a session ends.
pub(super) const SESSION_TIMEOUT_S: f64 = 300.0;

/// Open sessions by their number.
pub(super) type Sessions = BTreeMap<u64, Session>;

/// A session. Its token is never shown again.
#[derive(Debug)]
pub(super) struct Session {
    pub user: String,
    pub token: String,
    pub used_s: f64,
}

/// Whoever asks.
#[derive(Debug)]
pub(super) struct Caller {
    pub user: String,
    pub is_admin: bool,
}

/// Checks a request's credential.
pub(super) fn check(
    machine: &mut Machine,
    now: LabTime,
    sessions: &mut Sessions,
    headers: &HeaderMap,
) -> Result<Caller, Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let now_s = now.0.as_secs_f64();
    sessions.retain(|_, session| now_s - session.used_s < SESSION_TIMEOUT_S);
    if let Some(token) = text("x-auth-token") {
        let session = sessions.values_mut().find(|session| session.token == token);
        let session = session.ok_or_else(|| Refusal::unauthorized("/redfish/v1"))?;
        session.used_s = now_s;
        let user = session.user.clone();
        return caller(&Settings::of(machine), &user);
    }
    let basic = text("authorization").and_then(|value| value.strip_prefix("Basic "));
    let pair = basic.and_then(|value| String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok());
    let (user, password) =
        pair.as_deref().and_then(|pair| pair.split_once(':')).ok_or_else(|| Refusal::unauthorized("/redfish/v1"))?;
    prove(machine, now_s, user, password)?;
    caller(&Settings::of(machine), user)
}

fn caller(settings: &Settings, user: &str) -> Result<Caller, Refusal> {
    let user = settings.user(user).ok_or_else(|| Refusal::unauthorized("/redfish/v1"))?;
    Ok(Caller { user: user.name.clone(), is_admin: user.role == "Administrator" })
}

/// A right password of an account that may use Redfish and is not locked. A wrong one counts; the third locks.
fn prove(machine: &mut Machine, now_s: f64, user: &str, password: &str) -> Result<(), Refusal> {
    let mut settings = Settings::of(machine);
    let may = settings.user(user).is_some_and(|u| u.enabled && u.types.iter().any(|word| word == "Redfish"));
    let right = may && machine.bmc.accounts.get(user).is_some_and(|known| known == password);
    let logins = settings.logins.entry(user.to_owned()).or_default();
    let locked = logins.locked_until_s.is_some_and(|until| now_s < until);
    if right && !locked {
        if logins.wrong > 0 || logins.locked_until_s.is_some() {
            logins.wrong = 0;
            logins.locked_until_s = None;
            settings.keep(machine);
        }
        return Ok(());
    }
    if !locked {
        if now_s - logins.last_wrong_s > LOCKOUT_S {
            logins.wrong = 0;
        }
        logins.wrong += 1;
        logins.wrong_ever += 1;
        logins.last_wrong_s = now_s;
        logins.locked_until_s = (logins.wrong >= LOCKOUT_THRESHOLD).then_some(now_s + LOCKOUT_S);
        settings.keep(machine);
    }
    Err(Refusal::unauthorized("/redfish/v1"))
}

/// Opens a session, where there are not `most` already.
pub(super) fn open(
    machine: &mut Machine,
    now: LabTime,
    sessions: &mut Sessions,
    most: usize,
    body: &Value,
) -> Result<Reply, Refusal> {
    let (Some(user), Some(password)) = (body["UserName"].as_str(), body["Password"].as_str()) else {
        return Err(Refusal::value("UserName"));
    };
    let now_s = now.0.as_secs_f64();
    prove(machine, now_s, user, password)?;
    if sessions.len() >= most {
        return Err(Refusal::sessions_full());
    }
    let id = sessions.last_key_value().map_or(1, |(id, _)| id + 1);
    let token: String = (0..16).map(|_| format!("{:02x}", rand::random::<u8>())).collect();
    sessions.insert(id, Session { user: user.to_owned(), token: token.clone(), used_s: now_s });
    let reply = Reply::ok(resource(id, user)).with_status(StatusCode::CREATED);
    Ok(reply.at(format!("{SESSIONS}/{id}")).token(token))
}

/// A session as a resource.
pub(super) fn resource(id: u64, user: &str) -> Value {
    json!({
        "@odata.type": "#Session.v1_3_0.Session",
        "@odata.id": format!("{SESSIONS}/{id}"),
        "Id": id.to_string(),
        "Name": "User Session",
        "Description": "Manager User Session",
        "UserName": user,
    })
}
