//! What a client asks a node to do: verbs, power, maintenance, traits, RAID, deletion.

use serde_json::{Value, json};
use uuid::Uuid;

use super::super::machine::PowerAction;
use super::super::world::State;
use super::api::Call;
use super::node::Node;
use super::reply::{Refusal, Reply};
use super::task;
use crate::domain::provision::ProvisionState;

/// Takes the node's lock for a moment, or says that it is held. Begins a lock fault that waits for somebody to meet it.
pub(super) fn lock(state: &mut State, uuid: Uuid) -> Result<(), Refusal> {
    let now = state.now;
    let Some(node) = state.ironic.nodes.get(&uuid) else { return Ok(()) };
    let held = node.held.is_some_and(|until| now < until);
    let name = node.name().unwrap_or_default().to_owned();
    let foreign = state.machines.get_mut(&name).is_some_and(|machine| {
        machine.troubles.locks.retain(|s| s.until.is_none_or(|until| now < until));
        machine.troubles.locks.first_mut().is_some_and(|spell| spell.meet(now))
    });
    if held || foreign { Err(Refusal::Locked(uuid.to_string())) } else { Ok(()) }
}

fn in_state(node: &Node, action: &str, state: &str) -> Refusal {
    Refusal::bad(format!(
        "The requested action \"{action}\" can not be performed on node \"{}\" while it is in state \"{state}\".",
        node.uuid
    ))
}

/// Since which version a verb is known.
fn verb_since(verb: &str) -> u32 {
    match verb {
        "manage" | "provide" => 4,
        "inspect" => 6,
        "abort" => 13,
        "clean" => 15,
        _ => 1,
    }
}

/// `PUT states/provision`. The state is checked before the lock.
pub(super) fn provision(state: &mut State, call: &Call, uuid: Uuid) -> Result<Reply, Refusal> {
    use ProvisionState::{
        AdoptFailed, Available, CleanFailed, CleanWait, Enroll, InspectFailed, InspectWait, Manageable,
    };
    let verb = call.text("target").to_owned();
    let node = &state.ironic.nodes[&uuid];
    if verb_since(&verb) > call.version || (verb == "abort" && node.state == InspectWait && call.version < 41) {
        return Err(Refusal::unacceptable());
    }
    let may = match verb.as_str() {
        "manage" => {
            matches!(node.state, Enroll | Available | InspectFailed | CleanFailed | AdoptFailed)
        }
        "inspect" => matches!(node.state, Manageable | InspectFailed),
        "provide" | "clean" => node.state == Manageable,
        "abort" => matches!(node.state, InspectWait | CleanWait),
        _ => false,
    };
    if !may {
        return Err(in_state(node, &verb, node.state.as_str()));
    }
    let steps = call.body.as_ref().and_then(|b| b.get("clean_steps")).and_then(Value::as_array).cloned();
    if verb == "clean" && steps.is_none() {
        return Err(Refusal::bad("\"clean_steps\" is required when setting target provision state to clean"));
    }
    lock(state, uuid)?;
    task::with_node(state, uuid, |state, node| match verb.as_str() {
        "manage" => task::manage(state, node),
        "inspect" => task::inspect(state, node),
        "abort" => task::abort(state, node),
        "clean" => task::clean(state, node, steps.unwrap_or_default(), Manageable),
        _ => task::clean(state, node, task::automated_steps(), Available),
    });
    Ok(Reply::accepted(Some(format!("{}/v1/nodes/{uuid}/states", call.base))))
}

/// `PUT states/power`.
pub(super) fn power(state: &mut State, call: &Call, uuid: Uuid) -> Result<Reply, Refusal> {
    let node = &state.ironic.nodes[&uuid];
    let target = call.text("target").to_owned();
    let action = match target.as_str() {
        "power on" => PowerAction::On,
        "power off" => PowerAction::ForceOff,
        "rebooting" => PowerAction::Restart,
        "soft power off" if call.version >= 27 => PowerAction::SoftOff,
        "soft rebooting" if call.version >= 27 => PowerAction::Restart,
        _ => {
            let known = node.power(state).map(|on| if on { "power on" } else { "power off" });
            return Err(in_state(node, &target, known.unwrap_or("None")));
        }
    };
    if matches!(node.state, ProvisionState::Cleaning | ProvisionState::CleanWait) {
        return Err(in_state(node, &target, node.state.as_str()));
    }
    lock(state, uuid)?;
    task::with_node(state, uuid, |state, node| task::change_power(state, node, action));
    Ok(Reply::accepted(Some(format!("{}/v1/nodes/{uuid}/states", call.base))))
}

/// `PUT` and `DELETE maintenance`. Clearing it clears the fault too, not the last error.
pub(super) fn maintenance(state: &mut State, call: &Call, uuid: Uuid) -> Result<Reply, Refusal> {
    lock(state, uuid)?;
    let on = call.method == "PUT";
    let reason = Some(call.text("reason")).filter(|text| on && !text.is_empty()).map(str::to_owned);
    task::with_node(state, uuid, |state, node| {
        node.set("maintenance", on);
        node.set("maintenance_reason", json!(reason));
        node.set("fault", Value::Null);
        node.updated_at = Some(state.stamp());
    });
    Ok(Reply::accepted(None))
}

/// Prefixes of the standard traits that the lab takes as known.
const STANDARD: [&str; 5] = ["HW_ARCH_", "HW_CPU_", "HW_GPU_", "HW_NIC_", "COMPUTE_"];

fn check_trait(name: &str) -> Result<(), Refusal> {
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    let custom = name.strip_prefix("CUSTOM_").is_some_and(word);
    if custom || (word(name) && STANDARD.iter().any(|prefix| name.starts_with(prefix))) {
        return Ok(());
    }
    Err(Refusal::bad(format!(
        "Schema error for trait: '{name}' is not valid under any of the given schemas. Possible root cause: '{name}' does \
         not match '^CUSTOM_[A-Z0-9_]+$'"
    )))
}

/// One trait by its name, or all of them.
pub(super) fn traits(state: &mut State, call: &Call, uuid: Uuid, name: Option<&str>) -> Result<Reply, Refusal> {
    let put = call.method == "PUT";
    let mut all = state.ironic.nodes[&uuid].traits.clone();
    let mut location = None;
    match name {
        Some(name) if put => {
            check_trait(name)?;
            all.insert(name.to_owned());
            location = Some(format!("{}/v1/nodes/{uuid}/traits/{name}", call.base));
        }
        Some(name) => {
            if !all.remove(name) {
                return Err(Refusal::missing(format!("Node {uuid} doesn't have a trait '{name}'")));
            }
        }
        None if put => {
            let list = call.body.as_ref().and_then(|b| b.get("traits")).and_then(Value::as_array);
            let list = list.ok_or_else(|| Refusal::bad("Schema error for traits: 'traits' is a required property"))?;
            all = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            for name in &all {
                check_trait(name)?;
            }
        }
        None => all.clear(),
    }
    lock(state, uuid)?;
    task::with_node(state, uuid, |state, node| {
        node.traits = all;
        node.updated_at = Some(state.stamp());
    });
    Ok(Reply::no_content(location))
}

/// `PUT states/raid`. An empty object clears the target.
pub(super) fn raid(state: &mut State, call: &Call, uuid: Uuid) -> Result<Reply, Refusal> {
    let node = &state.ironic.nodes[&uuid];
    if node.text("raid_interface") == Some("no-raid") {
        let driver = node.text("driver").unwrap_or_default();
        let text = format!("Driver {driver} does not support raid (disabled or not implemented).");
        return Err(Refusal::missing(text));
    }
    let body = call.body.clone().unwrap_or_else(|| json!({}));
    for disk in body.get("logical_disks").and_then(Value::as_array).into_iter().flatten() {
        let size = &disk["size_gb"];
        if !(size.is_u64() || size == "MAX") {
            let text = format!("RAID config validation error: {} is not one of ['MAX']", super::patch::python(size));
            return Err(Refusal::bad(text));
        }
    }
    lock(state, uuid)?;
    task::with_node(state, uuid, |state, node| {
        node.set("target_raid_config", body);
        node.updated_at = Some(state.stamp());
    });
    Ok(Reply::no_content(None))
}

/// Deletes a node with its ports, where its state allows it.
pub(super) fn delete(state: &mut State, uuid: Uuid) -> Result<Reply, Refusal> {
    use ProvisionState::{AdoptFailed, Available, Enroll, Manageable};
    lock(state, uuid)?;
    let node = &state.ironic.nodes[&uuid];
    if !matches!(node.state, Manageable | Enroll | AdoptFailed | Available) && !node.in_maintenance() {
        return Err(Refusal::conflict(format!(
            "Can not delete node \"{uuid}\" while it is in provision state \"{}\". Valid provision states to perform \
             deletion are: \"('manageable', 'enroll', 'adopt failed', 'available')\", or set the node into maintenance mode",
            node.state
        )));
    }
    state.ironic.nodes.remove(&uuid);
    state.ironic.ports.retain(|_, p| p.node != uuid);
    state.ironic.portgroups.retain(|_, g| g.node != uuid);
    Ok(Reply::no_content(None))
}

/// What each interface of a node lacks.
pub(super) fn validate(state: &State, node: &Node) -> Value {
    let good = json!({"result": true});
    let bad = |reason: String| json!({"result": false, "reason": reason});
    let driver = node.text("driver").unwrap_or_default();
    let without = |kind: &str| bad(format!("Driver {driver} does not support {kind} (disabled or not implemented)."));
    let optional = |kind: &str| {
        let interface = node.text(&format!("{kind}_interface")).unwrap_or_default();
        if interface.starts_with("no-") { without(kind) } else { good.clone() }
    };
    let has_ports = state.ironic.ports.values().any(|p| p.node == node.uuid);
    let no_port = format!("Node {} does not have any port associated with it", node.uuid);
    let (prefix, vendor) = if driver == "ipmi" { ("ipmi", "IPMI") } else { ("redfish", "Redfish") };
    let key = format!("{prefix}_address");
    let bmc = if driver == "fake-hardware" || node.driver_info(&key).is_some() {
        good.clone()
    } else {
        bad(format!("Missing the following {vendor} properties in node {} driver_info: ['{key}']", node.uuid))
    };
    let boot = if has_ports { good.clone() } else { bad(no_port.clone()) };
    let deploy = if has_ports {
        bad(format!(
            "Node {} failed to validate deploy image info. Some parameters were missing. Missing are: \
             ['instance_info.image_source']",
            node.uuid
        ))
    } else {
        bad(no_port.clone())
    };
    let inspect = if has_ports {
        good.clone()
    } else {
        bad(format!("Insufficient information provided for managed inspection: {no_port}"))
    };
    json!({
        "boot": boot, "deploy": deploy, "management": bmc, "network": good, "power": bmc, "bios": optional("bios"),
        "console": optional("console"), "firmware": if driver == "redfish" { bmc.clone() } else { optional("firmware") },
        "inspect": inspect, "raid": optional("raid"), "rescue": optional("rescue"), "storage": good,
    })
}
