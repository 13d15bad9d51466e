//! What NetBox has recorded, as plain tables. It may differ from the machines as they are: that is the point.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// All tables, each by id.
#[derive(Debug, Clone, Default)]
pub struct Records {
    pub sites: BTreeMap<u64, Site>,
    pub locations: BTreeMap<u64, Location>,
    pub racks: BTreeMap<u64, Rack>,
    pub manufacturers: BTreeMap<u64, Manufacturer>,
    pub device_types: BTreeMap<u64, DeviceType>,
    pub roles: BTreeMap<u64, Role>,
    pub tags: BTreeMap<u64, Tag>,
    pub devices: BTreeMap<u64, Device>,
    pub interfaces: BTreeMap<u64, Interface>,
    pub macs: BTreeMap<u64, MacAddress>,
    pub ips: BTreeMap<u64, IpAddress>,
    pub cables: BTreeMap<u64, Cable>,
    pub journal: BTreeMap<u64, JournalEntry>,
    pub tokens: Vec<Token>,
    /// Interfaces by device, in the order in which they came.
    by_device: BTreeMap<u64, Vec<u64>>,
}

/// When an object was made and last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    pub created: Timestamp,
    pub last_updated: Timestamp,
}

#[derive(Debug, Clone)]
pub struct Site {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub custom_fields: Map<String, Value>,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Location {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub site: u64,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Rack {
    pub id: u64,
    pub name: String,
    pub site: u64,
    pub location: Option<u64>,
    pub u_height: u64,
    pub starting_unit: u64,
    pub desc_units: bool,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Manufacturer {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct DeviceType {
    pub id: u64,
    pub manufacturer: u64,
    pub model: String,
    pub slug: String,
    pub u_height: f64,
    pub is_full_depth: bool,
    pub custom_fields: Map<String, Value>,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Role {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub color: String,
    pub custom_fields: Map<String, Value>,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Tag {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub color: String,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Device {
    pub id: u64,
    pub name: String,
    pub device_type: u64,
    pub role: u64,
    pub site: u64,
    pub location: Option<u64>,
    pub rack: Option<u64>,
    pub position: Option<f64>,
    /// `front` or `rear`.
    pub face: Option<String>,
    pub status: String,
    pub serial: String,
    pub asset_tag: Option<String>,
    pub description: String,
    pub comments: String,
    pub oob_ip: Option<u64>,
    pub primary_ip4: Option<u64>,
    pub tags: Vec<u64>,
    pub custom_fields: Map<String, Value>,
    /// As NetBox renders it: all contexts merged.
    pub config_context: Value,
    pub local_context: Option<Value>,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Interface {
    pub id: u64,
    pub device: u64,
    pub name: String,
    pub label: String,
    /// `100gbase-x-qsfp28`, `lag`, …
    pub kind: String,
    pub mgmt_only: bool,
    pub description: String,
    pub lag: Option<u64>,
    /// The first one is the primary.
    pub macs: Vec<u64>,
    pub cable: Option<u64>,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct MacAddress {
    pub id: u64,
    /// Upper case with colons.
    pub address: String,
    pub interface: u64,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct IpAddress {
    pub id: u64,
    /// With prefix length.
    pub address: String,
    pub interface: u64,
    pub dns_name: String,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct Cable {
    pub id: u64,
    /// Interfaces at the two ends.
    pub a: u64,
    pub b: u64,
    pub label: String,
    /// Six hex digits.
    pub color: String,
    pub length_m: f64,
    pub stamps: Stamps,
}

#[derive(Debug, Clone)]
pub struct JournalEntry {
    pub id: u64,
    pub device: u64,
    pub kind: String,
    pub comments: String,
    pub stamps: Stamps,
}

/// A token that the API accepts.
#[derive(Clone)]
pub struct Token {
    /// A v2 token (`nbt_KEY.SECRET`) or a v1 token (40 hex digits).
    pub secret: String,
    /// Without it every write is refused.
    pub write: bool,
    /// Without it nothing may be seen.
    pub view: bool,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("secret", &"***").field("write", &self.write).field("view", &self.view).finish()
    }
}

impl Records {
    /// A device by its name.
    pub fn device_named(&self, name: &str) -> Option<&Device> {
        self.devices.values().find(|d| d.name == name)
    }

    /// Adds an interface. Interfaces stay with their device.
    pub fn add_interface(&mut self, interface: Interface) {
        self.by_device.entry(interface.device).or_default().push(interface.id);
        self.interfaces.insert(interface.id, interface);
    }

    /// The interfaces of a device.
    pub fn interfaces_of(&self, device: u64) -> impl Iterator<Item = &Interface> {
        self.by_device.get(&device).into_iter().flatten().filter_map(|id| self.interfaces.get(id))
    }

    /// The interface at the other end of an interface's cable.
    pub fn peer(&self, interface: &Interface) -> Option<&Interface> {
        let cable = self.cables.get(&interface.cable?)?;
        self.interfaces.get(if cable.a == interface.id { &cable.b } else { &cable.a })
    }

    /// Whether a device has a tag, by its slug.
    pub fn has_tag(&self, device: &Device, slug: &str) -> bool {
        device.tags.iter().any(|id| self.tags.get(id).is_some_and(|t| t.slug == slug))
    }
}

/// The next free id of a table.
pub fn next_id<T>(table: &BTreeMap<u64, T>) -> u64 {
    table.last_key_value().map_or(1, |(id, _)| id + 1)
}
