//! Ironic in a rehearsal: nodes, ports and portgroups as they would be, and the states that Ironic would bring them to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Ask, Met};

/// What Ironic shows in the place of a password.
const MASKED: &str = "******";

#[derive(Default)]
pub(super) struct World {
    nodes: BTreeMap<String, Node>,
    ports: Objects,
    portgroups: Objects,
    made_up: BTreeSet<String>,
}

/// A node as it was last read, or as it would be.
struct Node {
    body: Value,
    /// Differs from what Ironic would say.
    changed: bool,
    created: bool,
    inspected: bool,
}

/// Ports or portgroups: those that were read, and those that would be there.
#[derive(Default)]
struct Objects {
    read: BTreeMap<String, Value>,
    new: BTreeMap<String, Value>,
    changed: BTreeSet<String>,
}

impl World {
    pub fn meet(&mut self, ask: &Ask<'_>) -> Met {
        let Some((_, path)) = ask.path.split_once("/v1/") else {
            return if ask.is_read() { Met::Send } else { Met::Refuse };
        };
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        if ask.is_read() {
            return self.read(&parts, ask);
        }
        let nothing = json!({});
        let body = ask.body.unwrap_or(&nothing);
        match (ask.method, &parts[..]) {
            ("POST", ["nodes"]) => self.create_node(body),
            ("POST", ["ports"]) => Self::create(&mut self.ports, &mut self.made_up, body),
            ("POST", ["portgroups"]) => Self::create(&mut self.portgroups, &mut self.made_up, body),
            ("PATCH", ["ports", uuid]) => self.ports.patch(uuid, body),
            ("PATCH", ["portgroups", uuid]) => self.portgroups.patch(uuid, body),
            (_, ["nodes", uuid, rest @ ..]) => self.change_node(ask.method, uuid, rest, body),
            _ => Met::Refuse,
        }
    }

    pub fn amend(&mut self, ask: &Ask<'_>, body: &mut Value) -> bool {
        let Some((_, path)) = ask.path.split_once("/v1/") else { return false };
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        match parts[..] {
            ["nodes", _] => {
                if let Some(uuid) = body["uuid"].as_str() {
                    let node = Node { body: body.clone(), changed: false, created: false, inspected: false };
                    self.nodes.insert(uuid.to_owned(), node);
                }
                false
            }
            ["ports", "detail"] => self.ports.amend(ask, body, "ports"),
            ["portgroups", "detail"] => self.portgroups.amend(ask, body, "portgroups"),
            _ => false,
        }
    }

    /// Every node goes on by one of the steps that Ironic takes by itself, and nobody holds it any more.
    pub fn time_passes(&mut self) {
        for node in self.nodes.values_mut() {
            let body = &mut node.body;
            let before = body.clone();
            body["reservation"] = Value::Null;
            if let Some(power) = body["target_power_state"].as_str().map(str::to_owned) {
                body["power_state"] = json!(power);
                body["target_power_state"] = Value::Null;
            }
            // Ironic powers the ramdisk of an inspection or a clean on before, and off after it.
            let (state, power) = match body["provision_state"].as_str().unwrap_or_default() {
                "verifying" => ("manageable", None),
                "inspecting" => ("inspect wait", Some("power on")),
                "inspect wait" => ("manageable", Some("power off")),
                "cleaning" => ("clean wait", Some("power on")),
                "clean wait" => ("available", Some("power off")),
                _ => {
                    node.changed |= node.body != before;
                    continue;
                }
            };
            node.inspected |= body["provision_state"] == "inspect wait";
            body["provision_state"] = json!(state);
            if matches!(state, "manageable" | "available") {
                body["target_provision_state"] = Value::Null;
            }
            if let Some(power) = power {
                body["power_state"] = json!(power);
            }
            node.changed = true;
        }
    }

    pub fn is_inspected(&self, uuid: &str) -> bool {
        self.nodes.get(uuid).is_some_and(|node| node.inspected)
    }

    pub fn made_up(&self) -> impl Iterator<Item = String> {
        self.made_up.iter().cloned()
    }

    fn read(&self, parts: &[&str], ask: &Ask<'_>) -> Met {
        match parts {
            ["nodes", ident] => {
                let known = self.nodes.values().find(|n| n.body["uuid"] == *ident || n.body["name"] == *ident);
                known.filter(|node| node.changed).map_or(Met::Send, |node| Met::ok(node.body.clone()))
            }
            ["nodes", uuid, "inventory"] => match self.nodes.get(*uuid) {
                Some(node) if node.inspected => Met::ok(json!({ "inventory": {}, "plugin_data": {} })),
                Some(node) if node.created => {
                    Met::Answer { status: 404, body: json!({ "error_message": "the node has no inventory yet" }) }
                }
                _ => Met::Send,
            },
            ["ports", "detail"] => self.of_new_node(ask, "ports", &self.ports),
            ["portgroups", "detail"] => self.of_new_node(ask, "portgroups", &self.portgroups),
            _ => Met::Send,
        }
    }

    /// The objects of a node that Ironic does not know yet.
    fn of_new_node(&self, ask: &Ask<'_>, key: &str, objects: &Objects) -> Met {
        match ask.query("node") {
            Some(uuid) if self.nodes.get(uuid).is_some_and(|node| node.created) => {
                let mut body = json!({ key: [] });
                objects.amend_list(ask, &mut body, key);
                Met::ok(body)
            }
            _ => Met::Send,
        }
    }

    fn create_node(&mut self, wanted: &Value) -> Met {
        let mut body = json!({
            "provision_state": "enroll", "target_provision_state": null, "power_state": null,
            "target_power_state": null, "maintenance": false, "reservation": null, "last_error": null,
            "instance_uuid": null, "properties": {}, "target_raid_config": {}, "traits": [], "clean_step": {},
            "owner": null, "lessee": null,
        });
        super::merge(&mut body, wanted);
        mask(&mut body["driver_info"]);
        if body["uuid"].as_str().is_none() {
            body["uuid"] = json!(new_uuid(&mut self.made_up));
        }
        let uuid = body["uuid"].as_str().unwrap_or_default().to_owned();
        let node = Node { body: body.clone(), changed: true, created: true, inspected: false };
        self.nodes.insert(uuid, node);
        Met::Answer { status: 201, body }
    }

    fn create(objects: &mut Objects, made_up: &mut BTreeSet<String>, wanted: &Value) -> Met {
        let mut body = wanted.clone();
        let uuid = new_uuid(made_up);
        body["uuid"] = json!(uuid);
        objects.new.insert(uuid, body.clone());
        Met::Answer { status: 201, body }
    }

    fn change_node(&mut self, method: &str, uuid: &str, rest: &[&str], wanted: &Value) -> Met {
        // Whoever changes a node has read it before.
        let Some(node) = self.nodes.get_mut(uuid) else { return Met::Refuse };
        if let Some(holder) = node.body["reservation"].as_str() {
            let words = format!(
                "Node {uuid} is locked by host {holder}, please retry after the current operation is completed."
            );
            return Met::Answer { status: 409, body: json!({ "error_message": words }) };
        }
        let body = &mut node.body;
        let answer = match (method, rest) {
            ("PATCH", []) => {
                apply(body, wanted);
                mask(&mut body["driver_info"]);
                Met::ok(body.clone())
            }
            ("PUT", ["states", "provision"]) => {
                if !ask_for(body, wanted["target"].as_str().unwrap_or_default()) {
                    return Met::Refuse;
                }
                accepted()
            }
            ("PUT", ["states", "power"]) => {
                body["target_power_state"] = wanted["target"].clone();
                accepted()
            }
            ("PUT", ["states", "raid"]) => {
                body["target_raid_config"] = wanted.clone();
                accepted()
            }
            ("PUT", ["maintenance"]) => {
                body["maintenance"] = json!(true);
                body["maintenance_reason"] = wanted["reason"].clone();
                accepted()
            }
            ("DELETE", ["maintenance"]) => {
                body["maintenance"] = json!(false);
                body["maintenance_reason"] = Value::Null;
                accepted()
            }
            ("PUT", ["traits", name]) => {
                if let Some(traits) = body["traits"].as_array_mut() {
                    traits.push(json!(name));
                }
                accepted()
            }
            _ => return Met::Refuse,
        };
        node.changed = true;
        answer
    }
}

impl Objects {
    fn amend(&mut self, ask: &Ask<'_>, body: &mut Value, key: &str) -> bool {
        for object in body[key].as_array().into_iter().flatten() {
            let Some(uuid) = object["uuid"].as_str() else { continue };
            if !self.changed.contains(uuid) {
                self.read.insert(uuid.to_owned(), object.clone());
            }
        }
        self.amend_list(ask, body, key)
    }

    fn amend_list(&self, ask: &Ask<'_>, body: &mut Value, key: &str) -> bool {
        let Some(list) = body.get_mut(key).and_then(Value::as_array_mut) else { return false };
        for object in list.iter_mut() {
            let changed = object["uuid"].as_str().filter(|uuid| self.changed.contains(*uuid));
            if let Some(now) = changed.and_then(|uuid| self.read.get(uuid)).cloned() {
                *object = now;
            }
        }
        let fits = |object: &&Value| {
            ask.query("node").is_none_or(|node| object["node_uuid"] == node)
                && ask.query("address").is_none_or(|address| object["address"] == address)
        };
        list.extend(self.new.values().filter(fits).cloned());
        !self.new.is_empty() || !self.changed.is_empty()
    }

    fn patch(&mut self, uuid: &str, patch: &Value) -> Met {
        let object = match self.new.get_mut(uuid) {
            Some(object) => object,
            None => match self.read.get_mut(uuid) {
                Some(object) => {
                    self.changed.insert(uuid.to_owned());
                    object
                }
                None => return Met::Refuse,
            },
        };
        apply(object, patch);
        Met::ok(object.clone())
    }
}

fn accepted() -> Met {
    Met::Answer { status: 202, body: Value::Null }
}

/// An identifier that no real object has.
fn new_uuid(made_up: &mut BTreeSet<String>) -> String {
    let uuid = format!("00000000-0000-4000-8000-{:012}", made_up.len() + 1);
    made_up.insert(uuid.clone());
    uuid
}

/// Begins a transition. `false` for a verb that is not known here.
fn ask_for(body: &mut Value, verb: &str) -> bool {
    let state = body["provision_state"].as_str().unwrap_or_default();
    let (to, target) = match (verb, state) {
        ("manage", "enroll") => ("verifying", json!("manageable")),
        ("manage", _) => ("manageable", Value::Null),
        ("inspect", _) => ("inspecting", json!("manageable")),
        ("provide", _) => ("cleaning", json!("available")),
        ("abort", "inspect wait") => ("inspect failed", json!("manageable")),
        ("abort", _) => ("clean failed", json!("available")),
        _ => return false,
    };
    body["provision_state"] = json!(to);
    body["target_provision_state"] = target;
    body["last_error"] = Value::Null;
    true
}

/// Shows secrets as Ironic does.
fn mask(driver_info: &mut Value) {
    for (key, value) in driver_info.as_object_mut().into_iter().flatten() {
        if key.contains("password") {
            *value = json!(MASKED);
        }
    }
}

/// Applies a JSON patch of `add`, `replace` and `remove`.
fn apply(document: &mut Value, patch: &Value) {
    for step in patch.as_array().into_iter().flatten() {
        let path = step["path"].as_str().unwrap_or_default();
        let Some((parent, key)) = path.rsplit_once('/') else { continue };
        let mut place = &mut *document;
        for part in parent.split('/').filter(|part| !part.is_empty()) {
            place = &mut place[part];
        }
        if step["op"] == "remove" {
            if let Some(members) = place.as_object_mut() {
                members.remove(key);
            }
        } else if place.is_object() || place.is_null() {
            place[key] = step["value"].clone();
        }
    }
}
