//! Finds what changed between two views of the fleet, and words it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Message;
use super::subject::{Event, Kind, subject};
use crate::domain::device::Device;
use crate::domain::wiring::{self, Cable};

/// The form of the payload; another one gets another number.
const VERSION: u64 = 1;
/// What changes without NetBox having changed anything of the device, and what isn't NetBox's.
const NOT_TOLD: [&str; 3] = ["read_at", "last_updated", "platform_class"];

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
        }
    }

    fn event(self) -> Event {
        match self {
            Change::Added | Change::Changed => Event::Updated,
            Change::Removed => Event::Deleted,
        }
    }
}

/// A device that is new, another or gone.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceChange {
    pub change: Change,
    /// As it is now; of one that is gone, as it was.
    pub device: Device,
    /// Names of the fields that are others now.
    pub fields: Vec<String>,
    /// Name and site before, where either is another now.
    pub former: Option<(String, String)>,
}

/// The differences between two views, by NetBox's id.
pub fn between(before: &BTreeMap<u64, Device>, now: &BTreeMap<u64, Device>) -> Vec<DeviceChange> {
    let ids: BTreeSet<u64> = before.keys().chain(now.keys()).copied().collect();
    let change = |id: u64| match (before.get(&id), now.get(&id)) {
        (None, Some(device)) => Some(whole(Change::Added, device)),
        (Some(device), None) => Some(whole(Change::Removed, device)),
        (Some(before), Some(now)) => changed(before, now),
        (None, None) => None,
    };
    ids.into_iter().filter_map(change).collect()
}

fn whole(change: Change, device: &Device) -> DeviceChange {
    DeviceChange { change, device: device.clone(), fields: Vec::new(), former: None }
}

fn changed(before: &Device, now: &Device) -> Option<DeviceChange> {
    // Most devices are as they were, and comparing them as they are costs nothing.
    if (before.last_updated, before) == (now.last_updated, &Device { read_at: before.read_at, ..now.clone() }) {
        return None;
    }
    let (was, is) = (fields(before), fields(now));
    let names: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let fields: Vec<String> = names.into_iter().filter(|name| was.get(*name) != is.get(*name)).cloned().collect();
    if fields.is_empty() {
        return None;
    }
    let moved = (&before.name, &before.site) != (&now.name, &now.site);
    let former = moved.then(|| (before.name.clone(), before.site.clone()));
    Some(DeviceChange { change: Change::Changed, device: now.clone(), fields, former })
}

fn fields(device: &Device) -> Map<String, Value> {
    // A device is a map of plain values.
    let Ok(Value::Object(mut fields)) = serde_json::to_value(device) else { return Map::new() };
    fields.retain(|name, _| !NOT_TOLD.contains(&name.as_str()));
    fields
}

impl DeviceChange {
    pub(super) fn message(&self, prefix: &str, at: Timestamp) -> Message {
        let Device { netbox_id, name, site, rack, position, status, .. } = &self.device;
        let mut payload = json!({
            "v": VERSION, "at": at, "change": self.change.word(), "kind": "device",
            "netbox_id": netbox_id, "name": name, "site": site, "rack": rack, "position": position, "status": status,
        });
        if self.change == Change::Changed {
            payload["fields"] = json!(self.fields);
        }
        if let Some((name, site)) = &self.former {
            payload["former"] = json!({"name": name, "site": site});
        }
        let subject = subject(prefix, site, Kind::Device, name, self.change.event());
        Message { subject, payload: payload.to_string().into_bytes() }
    }
}

/// The cables that are new, others or gone between two views, by NetBox's id. That NetBox saved one again is no change.
pub fn cables_between(
    before: &BTreeMap<u64, Cable>,
    now: &BTreeMap<u64, Cable>,
    site_of: &impl Fn(u64) -> Option<String>,
) -> Vec<CableChange> {
    let ids: BTreeSet<u64> = before.keys().chain(now.keys()).copied().collect();
    let bare = |cable: &Cable| Cable { last_updated: None, ..cable.clone() };
    let change = |id: u64| match (before.get(&id), now.get(&id)) {
        (None, Some(cable)) => Some(CableChange::of(Change::Added, cable, site_of)),
        (Some(cable), None) => Some(CableChange::of(Change::Removed, cable, site_of)),
        (Some(before), Some(now)) if bare(before) != bare(now) => {
            // Where it was plugged in before is told, too: whoever listens there has to know.
            let mut change = CableChange::of(Change::Changed, now, site_of);
            change.left = CableChange::of(Change::Changed, before, site_of).sites_owned();
            Some(change)
        }
        _ => None,
    };
    ids.into_iter().filter_map(change).collect()
}

/// A cable that is new, another or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CableChange {
    pub change: Change,
    /// NetBox's id.
    pub id: u64,
    pub label: Option<String>,
    pub status: Option<String>,
    /// Both ends as they are now; of one that is gone, as they were.
    pub ends: Vec<CableEnd>,
    /// Slugs of the sites where it had an end before.
    pub left: BTreeSet<String>,
}

/// What a cable is plugged into. What is no part of a device (a circuit) has no device and no site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CableEnd {
    /// Slug of the device's site.
    pub site: Option<String>,
    pub device: Option<String>,
    pub port: Option<String>,
}

impl CableChange {
    fn of(change: Change, cable: &Cable, site_of: &impl Fn(u64) -> Option<String>) -> Self {
        let end = |end: &wiring::CableEnd| CableEnd {
            site: end.device.and_then(site_of),
            device: end.device_name.clone(),
            port: end.name.clone(),
        };
        CableChange {
            change,
            id: cable.netbox_id,
            label: cable.label.clone(),
            status: cable.status.clone(),
            ends: cable.a.iter().chain(&cable.b).map(end).collect(),
            left: BTreeSet::new(),
        }
    }

    fn sites_owned(&self) -> BTreeSet<String> {
        self.ends.iter().filter_map(|end| end.site.clone()).collect()
    }

    /// Each site once: a cable between two sites is told at both, and where it was before.
    pub(super) fn sites(&self) -> BTreeSet<String> {
        self.sites_owned().union(&self.left).cloned().collect()
    }

    pub(super) fn message(&self, prefix: &str, site: &str, at: Timestamp) -> Message {
        let ends: Vec<Value> =
            self.ends.iter().map(|end| json!({"site": end.site, "device": end.device, "port": end.port})).collect();
        let payload = json!({
            "v": VERSION, "at": at, "change": self.change.word(), "kind": "cable",
            "netbox_id": self.id, "label": self.label, "status": self.status, "ends": ends,
        });
        let subject = subject(prefix, site, Kind::Cable, &self.id.to_string(), self.change.event());
        Message { subject, payload: payload.to_string().into_bytes() }
    }
}
