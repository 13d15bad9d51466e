//! What the conductor does with a node: the state machine, step by step, each at its time on the agenda.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::clock::{LabTime, seconds};
use super::super::machine::{Machine, PowerAction};
use super::super::world::{Event, State};
use super::node::{Node, time};
use super::{inventory, ports};
use crate::domain::provision::ProvisionState;

/// What the ramdisk is booted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Inspect,
    Clean,
}

/// A step of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The checks of `verifying` are through.
    Verified,
    /// Ports for the NICs that the BMC reports, then the reboot.
    InspectBegins,
    /// The node is switched off for a boot of the ramdisk.
    Off(Work),
    On(Work),
    /// Power is on: the conductor lets go and waits for the ramdisk.
    Waits(Work),
    /// The ramdisk's next word: a finished inspection, or a heartbeat.
    Calls(Work),
    TimesOut(Work),
    /// An inspection ends: power off, then what it brought.
    InspectEnds(Result<(), String>),
    CleanStepRuns,
    CleanStepDone,
    CleanEnds,
    Aborted(Work, String),
    /// A change of power is under way at the BMC.
    PowerAsked(PowerAction),
    PowerSettled,
}

/// How long a reservation can still be seen after the task is over.
const LINGER: Duration = Duration::from_millis(400);
/// Between two tries of a ramdisk that is not heard.
const HEARTBEAT: Duration = Duration::from_secs(3);
const FOREVER: LabTime = LabTime(Duration::MAX);

/// An event of the agenda. Void where the node has begun something else since.
pub(in super::super) fn happen(state: &mut State, uuid: Uuid, task: u64, step: Step) {
    with_node(state, uuid, |state, node| {
        if node.task == task {
            carry_out(state, node, step);
        }
    });
}

/// Takes a node out, lets a function work on it beside the rest of the state, and puts it back.
pub(super) fn with_node<T>(state: &mut State, uuid: Uuid, f: impl FnOnce(&mut State, &mut Node) -> T) -> Option<T> {
    let mut node = state.ironic.nodes.remove(&uuid)?;
    let out = f(state, &mut node);
    state.ironic.nodes.insert(uuid, node);
    Some(out)
}

/// Begins a task that holds the node's lock.
fn begin(node: &mut Node) {
    node.task += 1;
    node.held = Some(FOREVER);
}

fn later(state: &mut State, node: &Node, span: Duration, step: Step) {
    let at = state.now + span;
    state.at(at, Event::Node { uuid: node.uuid, task: node.task, step });
}

fn release(state: &State, node: &mut Node) {
    node.held = Some(state.now + LINGER);
    node.updated_at = Some(state.stamp());
}

fn enter(state: &State, node: &mut Node, to: ProvisionState, target: Option<ProvisionState>) {
    let now = state.stamp();
    (node.state, node.target) = (to, target);
    node.provision_updated_at = Some(now);
    node.updated_at = Some(now);
}

fn note(state: &State, node: &mut Node, severity: &'static str, text: &str) {
    node.history.push((Uuid::new_v4(), state.stamp(), severity, text.to_owned()));
}

/// `manage`.
pub(super) fn manage(state: &mut State, node: &mut Node) {
    begin(node);
    if node.state == ProvisionState::Enroll {
        node.set("last_error", Value::Null);
        enter(state, node, ProvisionState::Verifying, Some(ProvisionState::Manageable));
        let verify = seconds(state.timing.verify_s);
        later(state, node, verify, Step::Verified);
    } else {
        enter(state, node, ProvisionState::Manageable, None);
        release(state, node);
    }
}

/// `inspect`.
pub(super) fn inspect(state: &mut State, node: &mut Node) {
    begin(node);
    node.set("last_error", Value::Null);
    node.set("inspection_started_at", time(state.stamp()));
    node.set("inspection_finished_at", Value::Null);
    enter(state, node, ProvisionState::Inspecting, Some(ProvisionState::Manageable));
    later(state, node, Duration::from_secs(2), Step::InspectBegins);
}

/// `provide` (to `available`) and `clean` (back to `manageable`).
pub(super) fn clean(state: &mut State, node: &mut Node, steps: Vec<Value>, target: ProvisionState) {
    begin(node);
    node.set("last_error", Value::Null);
    enter(state, node, ProvisionState::Cleaning, Some(target));
    let none = node.fields.get("automated_clean") == Some(&json!(false));
    if none || node.text("driver") == Some("fake-hardware") {
        node.steps_left = vec![];
        return later(state, node, Duration::from_secs(2), Step::CleanEnds);
    }
    node.steps_left = steps;
    later(state, node, Duration::from_secs(1), Step::Off(Work::Clean));
}

/// The steps of an automated clean, highest priority first.
pub(super) fn automated_steps() -> Vec<Value> {
    [("erase_devices_metadata", 99), ("erase_devices", 10)]
        .iter()
        .map(|(step, priority)| {
            json!({
                "step": step, "priority": priority, "interface": "deploy", "reboot_requested": false,
                "abortable": true, "requires_ramdisk": true,
            })
        })
        .collect()
}

/// `abort` of a wait for the ramdisk.
pub(super) fn abort(state: &mut State, node: &mut Node) {
    begin(node);
    let (work, text) = match node.state {
        ProvisionState::InspectWait => (Work::Inspect, "Inspection was aborted by request.".to_owned()),
        _ => (Work::Clean, clean_abort_text(node)),
    };
    power(state, node, PowerAction::ForceOff);
    let off = seconds(state.timing.power_off_s);
    later(state, node, off, Step::Aborted(work, text));
}

fn clean_abort_text(node: &Node) -> String {
    match node.fields["clean_step"]["step"].as_str() {
        Some(step) => format!(
            "By request, the clean operation was aborted during or after the completion of step \"deploy.{step}\""
        ),
        None => "By request, the clean operation was aborted".to_owned(),
    }
}

/// A change of power that a client asked for.
pub(super) fn change_power(state: &mut State, node: &mut Node, action: PowerAction) {
    begin(node);
    node.set("last_error", Value::Null);
    node.target_power = Some(match action {
        PowerAction::On | PowerAction::Restart => "power on",
        PowerAction::ForceOff | PowerAction::SoftOff => "power off",
    });
    node.updated_at = Some(state.stamp());
    later(state, node, Duration::from_secs(1), Step::PowerAsked(action));
}

/// Presses the button of the machine behind the node, or of the imagined one.
fn power(state: &mut State, node: &mut Node, action: PowerAction) {
    let now = state.stamp();
    if let Some(map) = node.fields.get_mut("driver_internal_info").and_then(Value::as_object_mut) {
        let at = now.strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string();
        map.insert("last_power_state_change".to_owned(), json!(at));
    }
    node.knows_power = true;
    match node.machine(state).map(|m| m.name.clone()) {
        Some(name) => state.press(&name, action),
        None => node.fake_power = matches!(action, PowerAction::On | PowerAction::Restart),
    }
}

/// Whether Ironic can speak with the node's BMC, and if not, in whose words.
fn bmc_answers(state: &State, node: &Node) -> Result<(), String> {
    let driver = node.text("driver").unwrap_or_default();
    if driver == "fake-hardware" {
        return Ok(());
    }
    let (prefix, vendor) = if driver == "ipmi" { ("ipmi", "IPMI") } else { ("redfish", "Redfish") };
    let Some(address) = node.driver_info(&format!("{prefix}_address")) else {
        let key = format!("{prefix}_address");
        return Err(format!("Missing the following {vendor} properties in node {} driver_info: ['{key}']", node.uuid));
    };
    let Some(machine) = node.machine(state).filter(|m| !m.bmc_is_away(state.now)) else {
        return Err(format!("{vendor} exception occurred. Error: Unable to connect to {address}."));
    };
    let user = node.driver_info(&format!("{prefix}_username")).unwrap_or_default();
    let password = node.driver_info(&format!("{prefix}_password")).unwrap_or_default();
    if machine.bmc.accounts.get(user).is_some_and(|known| known == password) {
        return Ok(());
    }
    if driver == "ipmi" {
        return Err("IPMI call failed: power status.".to_owned());
    }
    let system = node.driver_info("redfish_system_id").unwrap_or("/redfish/v1/Systems/1");
    Err(format!(
        "Redfish exception occurred. Error: HTTP GET {address}{system} returned code 401. Base.1.0.GeneralError: Incorrect \
         username or password Extended information: [{{'@odata.type': '/redfish/v1/$metadata#Message.1.0.0.Message', \
         'MessageId': 'Base.1.0.GeneralError'}}]"
    ))
}

fn machine_mut<'a>(state: &'a mut State, node: &Node) -> Option<&'a mut Machine> {
    let name = node.machine(state)?.name.clone();
    state.machines.get_mut(&name)
}

/// When the ramdisk is up: power, light on one frontend link, and time for the boot. `None`: not as things stand.
fn ramdisk_up_at(state: &State, node: &Node) -> Option<LabTime> {
    let machine = node.machine(state)?;
    if !machine.power.on {
        return None;
    }
    let after_light = seconds(state.timing.boot_s - state.timing.link_up_s);
    machine.nics.iter().filter(|n| n.frontend).filter_map(|n| machine.light_at(n)).map(|at| at + after_light).min()
}

fn inspect_failed(state: &mut State, node: &mut Node, text: String) {
    power(state, node, PowerAction::ForceOff);
    let off = seconds(state.timing.power_off_s);
    node.held = Some(FOREVER);
    later(state, node, off, Step::InspectEnds(Err(text)));
}

fn clean_failed(state: &mut State, node: &mut Node, text: &str, in_step: bool) {
    node.set("last_error", text);
    node.set("clean_step", json!({}));
    if in_step {
        node.set("maintenance", true);
        node.set("maintenance_reason", text);
        node.set("fault", "clean failure");
    }
    let target = node.target.clone();
    enter(state, node, ProvisionState::CleanFailed, target);
    note(state, node, "ERROR", text);
    release(state, node);
}

fn carry_out(state: &mut State, node: &mut Node, step: Step) {
    let timing = state.timing;
    let (off, on) = (seconds(timing.power_off_s), seconds(timing.power_on_s));
    match step {
        Step::Verified => verified(state, node),
        Step::InspectBegins => {
            if state.ironic.settings.pre_create_ports {
                ports::pre_create(state, node);
            }
            if node.text("driver") == Some("fake-hardware") {
                return later(state, node, on, Step::InspectEnds(Ok(())));
            }
            later(state, node, Duration::from_secs(1), Step::Off(Work::Inspect));
        }
        Step::Off(work) => {
            if let Err(text) = bmc_answers(state, node) {
                let text = format!("Failed to prepare node {} for it: {text}", node.uuid);
                return match work {
                    Work::Inspect => inspect_failed(state, node, text),
                    Work::Clean => clean_failed(state, node, &text, false),
                };
            }
            if node.power(state) == Some(true) {
                node.target_power = Some("power off");
                power(state, node, PowerAction::ForceOff);
                later(state, node, off, Step::On(work));
            } else {
                later(state, node, Duration::from_secs(1), Step::On(work));
            }
        }
        Step::On(work) => {
            node.target_power = Some("power on");
            power(state, node, PowerAction::On);
            later(state, node, on, Step::Waits(work));
        }
        Step::Waits(work) => waits(state, node, work),
        Step::Calls(work) => calls(state, node, work),
        Step::TimesOut(Work::Inspect) if node.state == ProvisionState::InspectWait => {
            let text = "Timeout reached while inspecting the node. Please check if the ramdisk responsible for the \
                        inspection is running on the node.";
            inspect_failed(state, node, text.to_owned());
        }
        Step::TimesOut(Work::Clean) if node.state == ProvisionState::CleanWait => {
            let step = node.fields["clean_step"].clone();
            if step.as_object().is_none_or(serde_json::Map::is_empty) {
                let text = "Timeout reached while cleaning the node. Please check if the ramdisk responsible for the \
                            cleaning is running on the node. Failed on step {}.";
                power(state, node, PowerAction::ForceOff);
                clean_failed(state, node, text, false);
            }
        }
        Step::TimesOut(_) => {}
        Step::InspectEnds(result) => {
            node.target_power = None;
            match result {
                Ok(()) => inspected(state, node),
                Err(text) => {
                    node.set("last_error", text.as_str());
                    node.set("inspection_started_at", Value::Null);
                    enter(state, node, ProvisionState::InspectFailed, Some(ProvisionState::Manageable));
                    note(state, node, "ERROR", &text);
                }
            }
            release(state, node);
        }
        Step::CleanStepRuns => {
            enter(state, node, ProvisionState::CleanWait, node.target.clone());
            node.held = None;
            later(state, node, seconds(timing.clean_step_s), Step::CleanStepDone);
        }
        Step::CleanStepDone => clean_step_done(state, node),
        Step::CleanEnds => {
            node.target_power = None;
            node.set("clean_step", json!({}));
            let target = node.target.take().unwrap_or(ProvisionState::Available);
            enter(state, node, target, None);
            note(state, node, "INFO", "Automated Cleaning completed successfully with steps=[]");
            release(state, node);
        }
        Step::Aborted(Work::Inspect, text) => {
            node.set("last_error", text.as_str());
            node.set("inspection_started_at", Value::Null);
            enter(state, node, ProvisionState::InspectFailed, Some(ProvisionState::Manageable));
            note(state, node, "ERROR", &text);
            release(state, node);
        }
        Step::Aborted(Work::Clean, text) => clean_failed(state, node, &text, false),
        Step::PowerAsked(action) => {
            if let Err(text) = bmc_answers(state, node) {
                let target = node.target_power.take().unwrap_or("power on");
                node.set("last_error", format!("Failed to change power state to '{target}': {text}"));
                return release(state, node);
            }
            let was_on = node.power(state);
            power(state, node, action);
            let due = node.machine(state).and_then(|m| m.power.target).map(|(_, due)| due - state.now);
            // A restart shows `off` first: the target is its second half.
            let restart = if action == PowerAction::Restart && was_on == Some(true) { on } else { Duration::ZERO };
            later(state, node, due.unwrap_or_default() + restart, Step::PowerSettled);
        }
        Step::PowerSettled => {
            node.target_power = None;
            release(state, node);
        }
    }
}

fn verified(state: &mut State, node: &mut Node) {
    match bmc_answers(state, node) {
        Ok(()) => {
            // The imagined BMC of `fake-hardware` tells nothing before it is asked for a change.
            node.knows_power = node.text("driver") != Some("fake-hardware");
            if let Some(maker) = node.machine(state).map(|m| m.manufacturer.clone()) {
                node.set("boot_mode", "uefi");
                node.set("secure_boot", false);
                if let Some(map) = node.fields.get_mut("properties").and_then(Value::as_object_mut) {
                    map.insert("vendor".to_owned(), json!(maker));
                }
            }
            enter(state, node, ProvisionState::Manageable, None);
        }
        Err(text) => {
            let uuid = node.uuid;
            let error = if text.starts_with("Missing") {
                format!("Failed to validate power driver interface for node {uuid}. Error: {text}")
            } else {
                format!("Failed to get power state for node {uuid}. Error: {text}")
            };
            node.set("last_error", error);
            enter(state, node, ProvisionState::Enroll, None);
        }
    }
    release(state, node);
}

/// The conductor lets go and waits for the ramdisk.
fn waits(state: &mut State, node: &mut Node, work: Work) {
    node.target_power = None;
    let target = node.target.clone();
    let to = if work == Work::Inspect { ProvisionState::InspectWait } else { ProvisionState::CleanWait };
    enter(state, node, to, target);
    node.held = None;
    let timeout = seconds(state.timing.callback_timeout_s);
    later(state, node, timeout, Step::TimesOut(work));
    if work == Work::Inspect
        && let Some(machine) = machine_mut(state, node).filter(|m| m.troubles.inspection_silent > 0)
    {
        machine.troubles.inspection_silent -= 1;
        return;
    }
    let ready = ramdisk_up_at(state, node).map_or(HEARTBEAT, |at| at - state.now);
    let span = if work == Work::Inspect { ready + seconds(state.timing.inspect_s) } else { ready };
    later(state, node, span, Step::Calls(work));
}

/// The ramdisk's word, if it can be heard.
fn calls(state: &mut State, node: &mut Node, work: Work) {
    let needed = if work == Work::Inspect { seconds(state.timing.inspect_s) } else { Duration::ZERO };
    let heard = ramdisk_up_at(state, node).is_some_and(|at| state.now >= at + needed);
    // Heartbeats of a node in maintenance are ignored; the data of an inspection is not.
    if !heard || (work == Work::Clean && node.in_maintenance()) {
        return later(state, node, HEARTBEAT, Step::Calls(work));
    }
    node.held = Some(FOREVER);
    if work == Work::Clean {
        return clean_next(state, node);
    }
    let target = node.target.clone();
    enter(state, node, ProvisionState::Inspecting, target);
    if let Some(machine) = machine_mut(state, node).filter(|m| m.troubles.inspection_fails > 0) {
        machine.troubles.inspection_fails -= 1;
        let text = format!(
            "Async execution of continue_inspection failed with error: Failed to inspect hardware. Reason: failed to run \
             inspection hooks: Failed to inspect hardware. Reason: The following failures happened while running \
             preprocess hooks for node {}:\nError in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: \
             Ramdisk reported error: The following errors were encountered:\n* collector default failed: no disks found",
            node.uuid
        );
        return inspect_failed(state, node, text);
    }
    node.pending = node.machine(state).map(|machine| inventory::of(state, machine));
    node.target_power = Some("power off");
    power(state, node, PowerAction::ForceOff);
    let off = seconds(state.timing.power_off_s);
    later(state, node, off, Step::InspectEnds(Ok(())));
}

fn inspected(state: &State, node: &mut Node) {
    if let Some(found) = node.pending.take() {
        if let (Some(map), Some(gb)) =
            (node.fields.get_mut("properties").and_then(Value::as_object_mut), found["plugin_data"].get("local_gb"))
        {
            map.insert("local_gb".to_owned(), gb.clone());
        }
        node.inventory = Some(found);
    }
    node.set("inspection_started_at", Value::Null);
    node.set("inspection_finished_at", time(state.stamp()));
    enter(state, node, ProvisionState::Manageable, None);
}

/// Starts the next clean step, or ends the clean: the node is powered off then.
fn clean_next(state: &mut State, node: &mut Node) {
    let target = node.target.clone();
    enter(state, node, ProvisionState::Cleaning, target);
    if node.steps_left.is_empty() {
        node.set("clean_step", json!({}));
        node.target_power = Some("power off");
        power(state, node, PowerAction::ForceOff);
        let off = seconds(state.timing.power_off_s);
        return later(state, node, off, Step::CleanEnds);
    }
    let step = node.steps_left.remove(0);
    node.set("clean_step", step);
    later(state, node, Duration::from_secs(1), Step::CleanStepRuns);
}

fn clean_step_done(state: &mut State, node: &mut Node) {
    if node.in_maintenance() || ramdisk_up_at(state, node).is_none_or(|at| state.now < at) {
        return later(state, node, HEARTBEAT, Step::CleanStepDone);
    }
    if let Some(machine) = machine_mut(state, node).filter(|m| m.troubles.clean_fails > 0) {
        machine.troubles.clean_fails -= 1;
        let disk = machine.hardware.disks.last().map_or("/dev/sda", |d| d.name.as_str()).to_owned();
        let name = node.fields["clean_step"]["step"].as_str().unwrap_or_default().to_owned();
        let text = format!(
            "Clean step deploy.{name} failed on node {}. Unexpected exception performing clean step {name}. \
             BlockDeviceEraseError: Error erasing block device: {disk} is busy",
            node.uuid
        );
        return clean_failed(state, node, &text, true);
    }
    node.held = Some(FOREVER);
    clean_next(state, node);
}
