//! A Supermicro-shaped tree: which resource is where, and what a request changes.

mod bmc;
mod changes;
mod host;
mod nics;

use serde_json::{Value, json};

use super::Reply;
use super::login::{self, Sessions};
use super::said::Refusal;
use super::tree::{Effect, Tree, View, described, list};
use crate::lab::clock::LabTime;
use crate::lab::machine::Machine;

/// The tree of a Supermicro BMC.
pub(super) struct Supermicro;

impl Tree for Supermicro {
    fn resource(&self, view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
        resource(view, sessions, path)
    }

    fn act(&self, _: &mut Machine, _: LabTime, path: &str, body: &Value) -> Option<Result<(Reply, Effect), Refusal>> {
        let effect = match path {
            "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset" => {
                changes::power_action(body).map(|power| power.map_or(Effect::None, Effect::Power))
            }
            "/redfish/v1/Managers/1/Actions/Manager.Reset" => changes::check_bmc_reset(body).map(|()| Effect::ResetBmc),
            _ => return None,
        };
        Some(effect.map(|effect| (Reply::success(), effect)))
    }

    fn patch(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::patch(machine, now, path, body)
    }

    fn create(&self, machine: &mut Machine, _: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::create(machine, path, body)
    }

    fn delete(&self, machine: &mut Machine, _: LabTime, sessions: &mut Sessions, path: &str) -> Result<Reply, Refusal> {
        changes::delete(machine, sessions, path)
    }
}

/// A resource by its path without the last slash.
fn resource(view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
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
