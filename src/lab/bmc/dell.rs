//! An iDRAC-shaped tree: which resource is where, and what a request changes.

mod accounts;
mod attributes;
mod changes;
mod firmware;
mod host;
mod jobs;
mod manager;
mod nics;
mod said;
mod state;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Reply;
use super::ipmi;
use super::login::{self, Sessions};
use super::said::Refusal;
use super::settings::User;
use super::tree::{Effect, Tree, View, described, list};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Quirk};

const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";
const CHASSIS: &str = "/redfish/v1/Chassis/System.Embedded.1";
const MANAGER: &str = "/redfish/v1/Managers/iDRAC.Embedded.1";
const BIOS: &str = "/redfish/v1/Systems/System.Embedded.1/Bios";
const BOOT_OPTIONS: &str = "/redfish/v1/Systems/System.Embedded.1/BootOptions";
const BOOT_SOURCES: &str = "/redfish/v1/Systems/System.Embedded.1/Oem/Dell/DellBootSources";
const ATTRIBUTES: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";
const JOBS: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs";

/// As `WebServer.1.MaxNumberOfSessions` says.
const SESSIONS_MAX: usize = 8;

/// The tree of an iDRAC.
pub(super) struct Dell;

impl Tree for Dell {
    fn settle(&self, machine: &mut Machine) {
        state::settle(machine);
    }

    fn catch_up(&self, machine: &mut Machine, now: LabTime) {
        jobs::catch_up(machine, now);
    }

    fn most_sessions(&self) -> usize {
        SESSIONS_MAX
    }

    fn admit(&self, machine: &mut Machine, _: &str, method: &Method, path: &str) -> Result<(), Refusal> {
        if !accounts::is_locked(machine) {
            return Ok(());
        }
        let by_account = path.starts_with(accounts::ACCOUNTS) && !machine.has(Quirk::ForcedChangeByAttribute);
        let changes_password = *method == Method::PATCH && (by_account || attributes::is_at(path));
        if changes_password { Ok(()) } else { Err(said::default_password()) }
    }

    fn body_of(&self, refusal: &Refusal) -> Value {
        said::body(refusal)
    }

    fn tag(&self, machine: &Machine, digest: &str) -> Value {
        let number = u64::from_str_radix(&digest[..10], 16).unwrap_or_default();
        if machine.has(Quirk::NumericEtag) { json!(number) } else { json!(format!("\"{number}\"")) }
    }

    fn precondition_of_post(&self, machine: &Machine, _: &str, given: Option<&str>) -> Result<(), Refusal> {
        if machine.has(Quirk::Idrac10) && given.is_some() { Err(Refusal::precondition()) } else { Ok(()) }
    }

    /// A right of its own, whatever the role (Q47).
    fn ipmi_level(&self, machine: &Machine, number: u32, _user: &User) -> Option<u8> {
        let dell = state::Dell::of(machine);
        match dell.attributes.get(&format!("Users.{number}.IpmiLanPrivilege"))?.as_str()? {
            "Administrator" => Some(ipmi::ADMINISTRATOR),
            "Operator" => Some(ipmi::OPERATOR),
            "User" => Some(ipmi::USER),
            _ => None,
        }
    }

    fn resource(&self, view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
        resource(view, sessions, path)
    }

    fn act(
        &self,
        machine: &mut Machine,
        now: LabTime,
        path: &str,
        body: &Value,
    ) -> Option<Result<(Reply, Effect), Refusal>> {
        let done = |effect| (Reply::ok(Value::Null).with_status(StatusCode::NO_CONTENT), effect);
        let nothing = |reply| (reply, Effect::None);
        let (from, action) = path.split_once("/Actions/")?;
        // Power, the iDRAC's own restart and what only tells something go on to work in a lockdown.
        let changes = action.ends_with("DeleteJobQueue") || action.ends_with("ClearPending");
        if changes && attributes::is_locked_down(machine) {
            return Some(Err(said::locked_down()));
        }
        Some(match (from, action) {
            (SYSTEM, "ComputerSystem.Reset") => {
                changes::power_action(machine, body).map(|power| done(power.map_or(Effect::None, Effect::Power)))
            }
            (MANAGER, "Manager.Reset") => changes::check_reset(body).map(|()| done(Effect::ResetBmc)),
            (_, "DellLCService.GetRemoteServicesAPIStatus") => Ok(nothing(Reply::ok(jobs::status(machine, now)))),
            (_, "DellJobService.DeleteJobQueue") => jobs::delete_queue(machine, now, body).map(nothing),
            (_, "Oem/DellManager.ClearPending" | "DellManager.ClearPending") => {
                changes::clear_pending(machine, from).map(nothing)
            }
            _ => return None,
        })
    }

    fn patch(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::patch(machine, now, path, body)
    }

    fn create(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        match (path, body.as_object()) {
            (_, None) => Err(Refusal::malformed()),
            _ if attributes::is_locked_down(machine) => Err(said::locked_down()),
            (accounts::ACCOUNTS, Some(body)) => accounts::create(machine, body),
            (JOBS, Some(_)) => jobs::create(machine, now, body),
            _ => Err(Refusal::method()),
        }
    }

    fn delete(
        &self,
        machine: &mut Machine,
        now: LabTime,
        sessions: &mut Sessions,
        path: &str,
    ) -> Result<Reply, Refusal> {
        changes::delete(machine, now, sessions, path)
    }
}

/// A resource by its path without the last slash.
fn resource(view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
    if path == "/redfish" {
        return Some(json!({"v1": "/redfish/v1/"}));
    }
    let rest = path.strip_prefix("/redfish/v1")?;
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    let one = |kind: &str, name: &str, id: &str| described(list(path, kind, name, [id.to_owned()]), name);
    match &parts[..] {
        [] => Some(manager::root(view)),
        ["Systems"] => Some(one("ComputerSystem", "Computer System Collection", "System.Embedded.1")),
        ["Systems", "System.Embedded.1", rest @ ..] => match rest {
            [] => Some(host::system(view)),
            ["Settings"] => Some(host::system_settings(view, path)),
            ["Bios", rest @ ..] => host::bios(view, path, rest),
            ["BootOptions", rest @ ..] => host::boot_options(view, path, rest),
            ["EthernetInterfaces", rest @ ..] => nics::interfaces(view, path, rest),
            ["Oem", "Dell", "DellBootSources", rest @ ..] => host::boot_sources(view, path, rest),
            _ => None,
        },
        ["Chassis"] => Some(one("Chassis", "Chassis Collection", "System.Embedded.1")),
        ["Chassis", "System.Embedded.1"] => Some(host::chassis(view)),
        ["Chassis", "System.Embedded.1", "NetworkAdapters", rest @ ..] => nics::adapters(view, path, rest),
        ["Managers"] => Some(one("Manager", "Manager Collection", "iDRAC.Embedded.1")),
        ["Managers", "iDRAC.Embedded.1", rest @ ..] => manager::manager(view, path, rest),
        ["AccountService", rest @ ..] => manager::account_service(view, path, rest),
        ["SessionService"] => Some(manager::session_service()),
        ["SessionService", "Sessions"] => {
            Some(list(path, "Session", "Session Collection", sessions.keys().map(u64::to_string)))
        }
        ["SessionService", "Sessions", id] => {
            let id = id.parse().ok()?;
            Some(login::resource(id, &sessions.get(&id)?.user))
        }
        ["JobService", rest @ ..] => manager::job_service(view, path, rest),
        ["TaskService", rest @ ..] => manager::task_service(path, rest),
        _ => None,
    }
}
