//! What NetBox has of a device's interfaces: MAC and IP addresses, cables, and what is at their far ends.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What every end of a direct cable is, in NetBox's words.
pub const INTERFACE: &str = "dcim.interface";

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub netbox_id: u64,
    /// NetBox's id of the device.
    pub device: u64,
    pub name: String,
    /// NetBox's type (`100gbase-x-qsfp28`, `lag`, …).
    pub kind: String,
    pub enabled: bool,
    pub mgmt_only: bool,
    #[serde(default)]
    pub label: Option<String>,
    /// The LAG that it is a member of, by NetBox's id.
    #[serde(default)]
    pub lag: Option<u64>,
    /// The primary MAC address, in NetBox's spelling.
    #[serde(default)]
    pub mac: Option<String>,
    #[serde(default)]
    pub cable: Option<u64>,
    /// What the cable itself goes to; may be a port of a patch panel.
    #[serde(default)]
    pub near: Vec<CableEnd>,
    /// What the whole path goes to, through patch panels; empty where it ends nowhere.
    #[serde(default)]
    pub far: Vec<CableEnd>,
    #[serde(default)]
    pub last_updated: Option<Timestamp>,
}

impl Interface {
    /// Whether its path leads through something else than one cable: what happens there moves no time of this interface.
    pub fn is_indirect(&self) -> bool {
        self.cable.is_some() && !self.near.iter().all(|end| end.kind == INTERFACE)
    }
}

/// An end of a cable or of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CableEnd {
    pub netbox_id: u64,
    /// `dcim.interface`, `dcim.frontport`, `circuits.circuittermination`, …
    pub kind: String,
    /// NetBox's id of the device; `None` where it is no part of one.
    #[serde(default)]
    pub device: Option<u64>,
    /// The device's name when this was read.
    #[serde(default)]
    pub device_name: Option<String>,
    /// Its own name when this was read.
    #[serde(default)]
    pub name: Option<String>,
}

/// A MAC address object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MacAddress {
    pub netbox_id: u64,
    /// In NetBox's spelling.
    pub address: String,
    /// The interface that it is assigned to; `None`: to none of a device.
    #[serde(default)]
    pub interface: Option<u64>,
    #[serde(default)]
    pub last_updated: Option<Timestamp>,
}

/// An IP address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpAddress {
    pub netbox_id: u64,
    /// With prefix length.
    pub address: String,
    #[serde(default)]
    pub dns_name: Option<String>,
    /// The interface that it is assigned to; `None`: to none of a device.
    #[serde(default)]
    pub interface: Option<u64>,
    #[serde(default)]
    pub last_updated: Option<Timestamp>,
}

/// A cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    pub netbox_id: u64,
    #[serde(default)]
    pub label: Option<String>,
    /// Six hex digits.
    #[serde(default)]
    pub color: Option<String>,
    /// NetBox's status (`connected`, `planned`, …).
    #[serde(default)]
    pub status: Option<String>,
    pub a: Vec<CableEnd>,
    pub b: Vec<CableEnd>,
    #[serde(default)]
    pub last_updated: Option<Timestamp>,
}

impl Cable {
    /// Whether it joins interfaces only.
    pub fn is_direct(&self) -> bool {
        self.a.iter().chain(&self.b).all(|end| end.kind == INTERFACE)
    }
}

/// A site, location, rack, device type or role, as far as anything here goes by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    pub netbox_id: u64,
    pub name: String,
    /// Racks and device types have none.
    #[serde(default)]
    pub slug: Option<String>,
    /// Of a location or a rack: the site's slug.
    #[serde(default)]
    pub site: Option<String>,
    /// Of a location: the one that it is in. Of a rack: its location. Of a device type: its manufacturer.
    #[serde(default)]
    pub within: Option<String>,
    /// Height in units, of a rack or a device type.
    #[serde(default)]
    pub u_height: Option<f64>,
    /// Of a rack: the lowest number of its units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_unit: Option<u32>,
    /// Of a rack: its units are numbered from the top down. `None`: not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desc_units: Option<bool>,
    /// Of a device type: it fills a rack from front to rear. `None`: not read yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_full_depth: Option<bool>,
    /// Those that have a value.
    #[serde(default)]
    pub custom_fields: BTreeMap<String, serde_json::Value>,
}

/// Which firmware a device may have: `firmware_policy` of its config context (O8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwarePolicy {
    /// NetBox's id of the device.
    pub device: u64,
    /// By component (`bios`, `bmc`, …).
    pub rules: BTreeMap<String, FirmwareRule>,
    /// What of it can't be read, with the key's name; such rules are left out.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// What one component may have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirmwareRule {
    /// The lowest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<String>,
    /// The only versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// An interface with all that belongs to it, joined from what is known now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WiredInterface {
    pub name: String,
    pub kind: String,
    pub enabled: bool,
    pub mgmt_only: bool,
    /// Name of the LAG that it is a member of.
    pub lag: Option<String>,
    /// The primary one first.
    pub macs: Vec<String>,
    pub addresses: Vec<String>,
    pub cable: Option<WiredCable>,
    /// When it was read, or found unchanged.
    pub as_of: Timestamp,
}

/// A cable as one end of it sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WiredCable {
    pub netbox_id: u64,
    pub label: Option<String>,
    pub color: Option<String>,
    pub status: Option<String>,
    /// The ports that it goes to itself, where the path goes on behind them (`panel-b07 front 3`).
    pub through: Vec<FarEnd>,
    /// What is at the end of the path.
    pub far: Vec<FarEnd>,
}

/// A port of another device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FarEnd {
    pub device: Option<String>,
    pub interface: Option<String>,
    /// The LAG that the port is a member of.
    pub lag: Option<String>,
}
