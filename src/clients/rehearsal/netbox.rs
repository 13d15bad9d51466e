//! NetBox in a rehearsal: devices with the fields that would have been changed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Ask, Met, merge};

const DEVICES: &str = "/api/dcim/devices/";

#[derive(Default)]
pub(super) struct World {
    /// The changes of each device, in their order.
    changes: BTreeMap<u64, Vec<Value>>,
}

impl World {
    pub fn meet(&mut self, ask: &Ask<'_>) -> Met {
        if ask.is_read() {
            return Met::Send;
        }
        match (ask.method, device_of(ask.path), ask.body) {
            ("PATCH", Some(id), Some(body)) => {
                self.changes.entry(id).or_default().push(body.clone());
                Met::ok(json!({ "id": id }))
            }
            _ => Met::Refuse,
        }
    }

    pub fn amend(&mut self, ask: &Ask<'_>, body: &mut Value) -> bool {
        if self.changes.is_empty() || !ask.path.contains(DEVICES) {
            return false;
        }
        match body.get_mut("results").and_then(Value::as_array_mut) {
            // Every row, and not only until one is changed.
            Some(rows) => rows.iter_mut().filter_map(|row| self.apply(row).then_some(())).count() > 0,
            None => self.apply(body),
        }
    }

    fn apply(&self, device: &mut Value) -> bool {
        let Some(changes) = device["id"].as_u64().and_then(|id| self.changes.get(&id)) else { return false };
        for change in changes {
            let Some(members) = change.as_object() else { continue };
            for (key, value) in members {
                match key.as_str() {
                    "add_tags" => add_tags(device, value),
                    // A partial answer has only the members that were asked for.
                    _ if device.get(key).is_none() => {}
                    "status" => device["status"] = json!({ "value": value, "label": value }),
                    "tags" => device["tags"] = value.as_array().into_iter().flatten().map(tag).collect(),
                    _ => merge(&mut device[key], value),
                }
            }
        }
        true
    }
}

/// The id in the path of one device.
fn device_of(path: &str) -> Option<u64> {
    path.split_once(DEVICES)?.1.trim_end_matches('/').parse().ok()
}

fn add_tags(device: &mut Value, more: &Value) {
    let Some(tags) = device.get_mut("tags").and_then(Value::as_array_mut) else { return };
    for new in more.as_array().into_iter().flatten() {
        if !tags.iter().any(|tag| tag["slug"] == new["slug"]) {
            tags.push(tag(new));
        }
    }
}

fn tag(value: &Value) -> Value {
    let slug = &value["slug"];
    json!({ "id": 0, "url": "", "display": slug, "name": slug, "slug": slug })
}
