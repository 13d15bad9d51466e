//! A Supermicro-shaped tree: which resource is where, and what a request changes.

mod bmc;
mod changes;
mod host;
mod nics;

use axum::http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) use self::changes::{check_bmc_reset, create, delete, patch, power_action};

use super::login::{self, Sessions};
use super::settings::Settings;
use crate::lab::clock::LabTime;
use crate::lab::machine::Machine;

/// A machine at a moment, as its resources show it.
pub(super) struct View<'a> {
    pub machine: &'a Machine,
    pub settings: Settings,
    pub now: LabTime,
    pub wall: Timestamp,
    /// When the BMC started last.
    pub booted: Timestamp,
}

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    ResetHost,
    ResetBmc,
}

/// The action behind a path.
pub(super) fn action(method: &Method, path: &str) -> Option<Action> {
    match path {
        _ if method != Method::POST => None,
        "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset" => Some(Action::ResetHost),
        "/redfish/v1/Managers/1/Actions/Manager.Reset" => Some(Action::ResetBmc),
        _ => None,
    }
}

/// A resource by its path without the last slash.
pub(super) fn resource(view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
    if path == "/redfish" {
        return Some(json!({"v1": "/redfish/v1/"}));
    }
    let rest = path.strip_prefix("/redfish/v1")?;
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    match &parts[..] {
        [] => Some(bmc::root(view)),
        ["Systems"] => {
            let name = "Computer System Collection";
            Some(described(list(path, "ComputerSystem", name, ["1".to_owned()]), name))
        }
        ["Systems", "1"] => Some(host::system(view)),
        ["Systems", "1", "ResetActionInfo"] => Some(host::reset_info()),
        ["Systems", "1", "EthernetInterfaces", rest @ ..] => nics::interfaces(view, path, rest),
        ["Chassis"] => Some(list(path, "Chassis", "Chassis Collection", ["1".to_owned()])),
        ["Chassis", "1"] => Some(host::chassis(view)),
        ["Chassis", "1", "NetworkAdapters", rest @ ..] => nics::adapters(view, path, rest),
        ["Managers"] => {
            let name = "Manager Collection";
            Some(described(list(path, "Manager", name, ["1".to_owned()]), name))
        }
        ["Managers", "1", rest @ ..] => bmc::manager(view, path, rest),
        ["AccountService", rest @ ..] => bmc::account_service(view, path, rest),
        ["SessionService"] => Some(bmc::session_service()),
        ["SessionService", "Sessions"] => {
            Some(list(path, "Session", "Session Collection", sessions.keys().map(u64::to_string)))
        }
        ["SessionService", "Sessions", id] => {
            let id = id.parse().ok()?;
            Some(login::resource(id, &sessions.get(&id)?.user))
        }
        ["TaskService", rest @ ..] => bmc::task_service(view, path, rest),
        _ => None,
    }
}

/// A collection of the members with these ids.
fn list(path: &str, kind: &str, name: &str, ids: impl IntoIterator<Item = String>) -> Value {
    let members: Vec<Value> = ids.into_iter().map(|id| json!({"@odata.id": format!("{path}/{id}")})).collect();
    json!({
        "@odata.type": format!("#{kind}Collection.{kind}Collection"),
        "@odata.id": path,
        "Name": name,
        "Members@odata.count": members.len(),
        "Members": members,
    })
}

/// A collection with a description, as some have it.
fn described(mut list: Value, description: &str) -> Value {
    list["Description"] = json!(description);
    list
}

fn link(path: impl Into<String>) -> Value {
    json!({"@odata.id": path.into()})
}

fn healthy() -> Value {
    json!({"State": "Enabled", "Health": "OK"})
}

/// A UUID that depends on the serial number alone.
fn uuid_of(serial: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(serial);
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
