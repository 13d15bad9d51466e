//! A racked device as the fleet store has it: NetBox's record and Ironic's, each with the time it was read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::NodeUuid;
use super::provision::ProvisionState;

/// A device of the fleet, projected from NetBox. Everything here can be rebuilt from there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub netbox_id: u64,
    pub name: String,
    /// NetBox slugs and names: the place from large to small.
    pub site: String,
    #[serde(default)]
    pub location: Option<String>,
    #[serde(default)]
    pub rack: Option<String>,
    /// The lowest unit; `None` where NetBox has the device in a rack without a position (S3).
    #[serde(default)]
    pub position: Option<f64>,
    #[serde(default)]
    pub face: Option<String>,
    /// Height in units.
    #[serde(default)]
    pub u_height: Option<f64>,
    /// NetBox's status value (`staged`, `active`, …).
    pub status: String,
    pub role: String,
    /// The role's custom field `device_class` (`COMPUTE_GPU`, `COMPUTE_CPU`, `HYPERVISOR`, `SWITCH`).
    #[serde(default)]
    pub device_class: Option<String>,
    pub manufacturer: String,
    pub model: String,
    #[serde(default)]
    pub serial: Option<String>,
    #[serde(default)]
    pub asset_tag: Option<String>,
    /// Slugs.
    #[serde(default)]
    pub tags: Vec<String>,
    /// NetBox slug of the tenant, where there is one.
    #[serde(default)]
    pub tenant: Option<String>,
    #[serde(default)]
    pub oob_ip: Option<String>,
    #[serde(default)]
    pub custom_fields: BTreeMap<String, serde_json::Value>,
    /// This program's own record of the platform class (P10).
    #[serde(default)]
    pub platform_class: Option<String>,
    pub last_updated: Option<Timestamp>,
    /// When this projection was read.
    pub read_at: Timestamp,
}

/// An Ironic node projected onto its device (by name).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IronicRef {
    /// Name of the Ironic instance in the configuration.
    pub instance: String,
    pub node: NodeUuid,
    pub state: ProvisionState,
    pub maintenance: bool,
    #[serde(default)]
    pub instance_uuid: Option<String>,
    pub read_at: Timestamp,
}

/// That a device's enrollment was completed and proven, for exactly one Ironic reference (T1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub node: NodeUuid,
    pub instance: String,
    pub run: super::ids::RunId,
    pub at: Timestamp,
}
