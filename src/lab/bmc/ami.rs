//! A MegaRAC-shaped tree: which resource is where, and what a request changes.

mod bmc;
mod changes;
mod host;
mod said;
mod state;

use axum::http::Method;
use serde_json::{Value, json};

use self::said::list;
use self::state::State;
use super::Reply;
use super::ipmi;
use super::login::{self, SESSIONS, Sessions};
use super::said::Refusal;
use super::settings::User;
use super::tree::{Effect, Tree, View};
use super::users::{self, ACCOUNTS};
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Quirk};

/// The tree of a MegaRAC.
pub(super) struct Ami;

/// How a build calls host and BMC.
struct Ids {
    system: &'static str,
    manager: &'static str,
}

impl Ids {
    fn of(machine: &Machine) -> Ids {
        match machine.has(Quirk::Dgx) {
            true => Ids { system: "DGX", manager: "BMC" },
            false => Ids { system: "Self", manager: "Self" },
        }
    }

    fn system(&self) -> String {
        format!("/redfish/v1/Systems/{}", self.system)
    }

    fn manager(&self) -> String {
        format!("/redfish/v1/Managers/{}", self.manager)
    }

    fn chassis(&self) -> String {
        format!("/redfish/v1/Chassis/{}", self.system)
    }
}

impl Tree for Ami {
    fn settle(&self, machine: &mut Machine) {
        state::settle(machine);
    }

    fn catch_up(&self, machine: &mut Machine, now: LabTime) {
        state::catch_up(machine, now);
    }

    /// While the host is in its POST, nothing is taken but what ends it.
    fn admit(&self, machine: &mut Machine, _: &str, method: &Method, path: &str) -> Result<(), Refusal> {
        let state = State::of(machine);
        let account = format!("{ACCOUNTS}/1");
        if state.must_change && !(method == Method::PATCH && path == account) && !path.starts_with(SESSIONS) {
            return Err(users::password_change(&account));
        }
        let free = method == Method::GET || path.starts_with(SESSIONS) || path.ends_with("/ComputerSystem.Reset");
        if !free && state.booting {
            return Err(said::booting(machine.has(Quirk::BootingPage)));
        }
        Ok(())
    }

    fn body_of(&self, refusal: &Refusal) -> Value {
        said::body(refusal)
    }

    /// Seconds of a clock, as it seems.
    fn tag(&self, _: &Machine, digest: &str) -> Value {
        let number = digest.get(..8).and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or_default();
        json!(format!("\"{number}\""))
    }

    fn precondition(&self, _: &Machine, given: Option<&str>, _: &str) -> Result<(), Refusal> {
        match given {
            Some("*") => Ok(()),
            Some(_) => Err(said::header_failed()),
            None => Err(said::header_missing()),
        }
    }

    fn precondition_of_post(&self, machine: &Machine, path: &str, given: Option<&str>) -> Result<(), Refusal> {
        let wants = machine.has(Quirk::ResetWantsIfMatch) && path.ends_with("/Manager.Reset");
        if wants && given != Some("*") { Err(said::header_missing()) } else { Ok(()) }
    }

    /// Expanded members lack what tells them apart (Q36).
    fn expanded(&self, machine: &Machine, mut member: Value) -> Value {
        if machine.has(Quirk::ExpandDropsMembers)
            && let Some(members) = member.as_object_mut()
        {
            members.retain(|key, _| !["Id", "Name", "@odata.etag", "UefiDevicePath"].contains(&key.as_str()));
        }
        member
    }

    /// One table for all, whatever the types say.
    fn ipmi_level(&self, _machine: &Machine, _number: u32, user: &User) -> Option<u8> {
        ipmi::level_of_role(&user.role)
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
        let ids = Ids::of(machine);
        let effect = if path == format!("{}/Actions/ComputerSystem.Reset", ids.system()) {
            changes::power_action(body).map(Effect::Power)
        } else if path == format!("{}/Actions/Manager.Reset", ids.manager()) {
            changes::check_bmc_reset(body).map(|()| Effect::ResetBmc)
        } else if path == format!("{}/Actions/Oem/AMIVirtualMedia.EnableRMedia", ids.manager()) {
            changes::media(machine, now, body).map(|()| Effect::None)
        } else {
            return None;
        };
        Some(effect.map(|effect| (changes::acted(), effect)))
    }

    fn patch(&self, machine: &mut Machine, _: LabTime, path: &str, body: &Value) -> Result<Reply, Refusal> {
        changes::patch(machine, path, body)
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
    let (state, ids) = (State::of(view.machine), Ids::of(view.machine));
    let dgx = view.machine.has(Quirk::Dgx);
    let with = |own: &str, other: &str| [own.to_owned()].into_iter().chain(dgx.then(|| other.to_owned()));
    match &parts[..] {
        [] => Some(bmc::root(view)),
        ["Systems"] => Some(list(path, "ComputerSystem", with(ids.system, "HGX_Baseboard_0"))),
        ["Systems", "HGX_Baseboard_0"] if dgx => Some(host::baseboard(path)),
        ["Systems", id, rest @ ..] if *id == ids.system => match rest {
            [] => Some(host::system(view, &state, &ids)),
            ["SD"] => Some(host::system_settings(&state, &ids, path)),
            ["ResetActionInfo"] => Some(host::reset_info(path)),
            ["BootOptions", rest @ ..] => host::boot_options(view, &state, path, rest),
            ["EthernetInterfaces", rest @ ..] => host::interfaces(view, &ids, path, rest),
            _ => None,
        },
        ["Chassis"] => Some(list(path, "Chassis", [ids.system.to_owned()])),
        ["Chassis", id] if *id == ids.system => Some(host::chassis(view, &ids)),
        ["Chassis", id, "NetworkAdapters", rest @ ..] if *id == ids.system => host::adapters(view, path, rest),
        // The second one is listed and not there.
        ["Managers"] => Some(list(path, "Manager", with(ids.manager, "HGX_BMC_0"))),
        ["Managers", id, rest @ ..] if *id == ids.manager => bmc::manager(view, &state, &ids, path, rest),
        ["AccountService", rest @ ..] => bmc::account_service(view, path, rest),
        ["SessionService"] => Some(bmc::session_service(path)),
        ["SessionService", "Sessions"] => Some(list(path, "Session", sessions.keys().map(u64::to_string))),
        ["SessionService", "Sessions", id] => {
            let id = id.parse().ok()?;
            Some(login::resource(id, &sessions.get(&id)?.user))
        }
        ["TaskService", rest @ ..] => bmc::task_service(path, rest),
        _ => None,
    }
}
