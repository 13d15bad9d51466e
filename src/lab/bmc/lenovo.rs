//! An XCC-shaped tree: which resource is where, and what a request changes.

mod bmc;
mod changes;
mod firmware;
mod host;
mod said;
mod state;

use axum::http::Method;
use serde_json::{Value, json};

use self::said::list;
use self::state::State;
use super::Reply;
use super::login::{self, SESSIONS, Sessions};
use super::said::Refusal;
use super::tree::{Effect, Tree, View};
use super::users::{self, ACCOUNTS};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Quirk};

const SYSTEM: &str = "/redfish/v1/Systems/1";

/// The tree of an XCC.
pub(super) struct Lenovo;

impl Tree for Lenovo {
    fn settle(&self, machine: &mut Machine) {
        state::settle(machine);
    }

    fn catch_up(&self, machine: &mut Machine, _: LabTime) {
        state::catch_up(machine);
    }

    /// While the password of account 1 has to be changed, only that is let through. A read of `BootSettings` builds its
    /// members.
    fn admit(&self, machine: &mut Machine, _: &str, method: &Method, path: &str) -> Result<(), Refusal> {
        let mut state = State::of(machine);
        let account = format!("{ACCOUNTS}/1");
        if state.must_change && !(method == Method::PATCH && path == account) && !path.starts_with(SESSIONS) {
            return Err(users::password_change(&account));
        }
        if method == Method::GET && path == format!("{SYSTEM}/Oem/Lenovo/BootSettings") && !state.built {
            state.built = true;
            state.keep(machine);
        }
        Ok(())
    }

    fn body_of(&self, refusal: &Refusal) -> Value {
        said::body(refusal)
    }

    fn allow(&self, machine: &Machine, path: &str) -> Option<&'static str> {
        match path {
            ACCOUNTS if machine.has(Quirk::AccountsFixed) => Some("GET, HEAD"),
            ACCOUNTS => Some("GET, HEAD, POST"),
            _ => None,
        }
    }

    fn precondition(&self, machine: &Machine, given: Option<&str>, tag: &str) -> Result<(), Refusal> {
        match given {
            None if machine.has(Quirk::IfMatchRequired) => Err(said::precondition_missing()),
            None | Some("*") => Ok(()),
            // Two of four requests, so that a second try with the same tag goes through.
            Some(_) if machine.has(Quirk::EtagNowAndThen) && (State::of(machine).requests / 2).is_multiple_of(2) => {
                Err(Refusal::precondition())
            }
            Some(given) if given.trim_start_matches("W/") == tag => Ok(()),
            Some(_) => Err(Refusal::precondition()),
        }
    }

    fn resource(&self, view: &View<'_>, sessions: &Sessions, path: &str) -> Option<Value> {
        resource(view, sessions, path)
    }

    fn act(
        &self,
        machine: &mut Machine,
        _: LabTime,
        path: &str,
        body: &Value,
    ) -> Option<Result<(Reply, Effect), Refusal>> {
        let effect = match path {
            "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset" => {
                changes::power_action(body).map(|power| power.map_or(Effect::None, Effect::Power))
            }
            "/redfish/v1/Managers/1/Actions/Manager.Reset" => changes::check_bmc_reset(body).map(|()| Effect::ResetBmc),
            _ => return None,
        };
        Some(effect.map(|effect| (changes::acted(machine), effect)))
    }

    fn patch(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::patch(machine, now, path, body)
    }

    fn create(&self, machine: &mut Machine, now: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::create(machine, now, path, body)
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
    let state = State::of(view.machine);
    let one = || ["1".to_owned()];
    match &parts[..] {
        [] => Some(bmc::root(view)),
        ["Systems"] => Some(list(path, "ComputerSystem", one())),
        ["Systems", "1"] => Some(host::system(view, &state)),
        ["Systems", "1", "ResetActionInfo"] => Some(host::reset_info(path)),
        ["Systems", "1", "Pending"] => Some(host::pending(&state, path)),
        ["Systems", "1", "Bios"] => Some(firmware::bios(path, &state.all_attributes(view.machine))),
        ["Systems", "1", "Bios", "Pending"] => {
            let changed_only = view.machine.has(Quirk::PendingListsChangesOnly);
            let shown = if changed_only { state.pending } else { state.next_attributes(view.machine) };
            Some(firmware::pending(path, &shown))
        }
        ["Systems", "1", "BootOptions", rest @ ..] => host::boot_options(&state, path, rest),
        ["Systems", "1", "Oem", "Lenovo", "BootSettings", rest @ ..] if !view.machine.has(Quirk::Xcc3) => {
            host::boot_settings(&state, path, rest)
        }
        ["Systems", "1", "EthernetInterfaces", rest @ ..] => host::interfaces(view, path, rest),
        ["Chassis"] => Some(list(path, "Chassis", one())),
        ["Chassis", "1"] => Some(host::chassis(view, path)),
        ["Chassis", "1", "NetworkAdapters", rest @ ..] => host::adapters(view, path, rest),
        ["Managers"] => Some(list(path, "Manager", one())),
        ["Managers", "1", rest @ ..] => bmc::manager(view, &state, path, rest),
        ["Registries", rest @ ..] => firmware::registries(path, rest),
        ["schemas", "registries", file] => {
            firmware::registry(path, file, view.machine.has(Quirk::Xcc3).then_some(&state.network))
        }
        ["AccountService", rest @ ..] => bmc::account_service(view, &state, path, rest),
        ["SessionService"] => Some(bmc::session_service(path)),
        ["SessionService", "Sessions"] => Some(list(path, "Session", sessions.keys().map(u64::to_string))),
        ["SessionService", "Sessions", id] => {
            let id = id.parse().ok()?;
            Some(login::resource(id, &sessions.get(&id)?.user))
        }
        ["TaskService", rest @ ..] => bmc::task_service(&state, path, rest),
        _ => None,
    }
}
