//! What Ironic's objects are here: read tolerantly, since fields come and go with API versions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::error::IronicError;
use crate::domain::ids::NodeUuid;
use crate::domain::mac::Mac;
use crate::domain::provision::{Power, ProvisionState};

/// A node. Fields that were not asked for, or that the API version does not have, are `None` or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub uuid: NodeUuid,
    pub name: Option<String>,
    pub state: ProvisionState,
    pub target_state: Option<ProvisionState>,
    pub power: Power,
    pub target_power: Option<String>,
    /// The conductor that holds the node's lock.
    pub reservation: Option<String>,
    pub last_error: Option<String>,
    /// `interface.step` of the clean step at work.
    pub clean_step: Option<String>,
    pub maintenance: bool,
    pub maintenance_reason: Option<String>,
    pub fault: Option<String>,
    pub instance_uuid: Option<String>,
    pub driver: String,
    /// Secrets in it are masked by Ironic.
    pub driver_info: Map<String, Value>,
    pub properties: Map<String, Value>,
    pub owner: Option<String>,
    pub lessee: Option<String>,
    pub resource_class: Option<String>,
    /// `boot_interface`, `raid_interface`, … with their values.
    pub interfaces: BTreeMap<String, String>,
    pub target_raid_config: Map<String, Value>,
    pub traits: Vec<String>,
    pub inspected_at: Option<Timestamp>,
    /// When the provision state last changed, as Ironic spells it: for telling that it has.
    pub state_since: Option<String>,
    /// When the ramdisk last spoke to Ironic, in Ironic's words.
    pub last_heartbeat: Option<String>,
}

impl Node {
    pub(super) fn read(value: &Value, asked: &str) -> Result<Self, IronicError> {
        let malformed = |what: String| IronicError::Malformed { asked: asked.to_owned(), what };
        let uuid = text(value, "uuid").ok_or_else(|| malformed("a node without 'uuid'".to_owned()))?;
        let uuid = uuid.parse().map_err(|_| malformed(format!("'{uuid}' is no UUID of a node")))?;
        let state = text(value, "provision_state")
            .ok_or_else(|| malformed(format!("node {uuid} without 'provision_state'")))?
            .as_str()
            .into();
        Ok(Node {
            uuid,
            name: text(value, "name"),
            state,
            target_state: text(value, "target_provision_state").map(|s| s.as_str().into()),
            power: Power::from_ironic(value["power_state"].as_str()),
            target_power: text(value, "target_power_state"),
            reservation: text(value, "reservation"),
            last_error: text(value, "last_error"),
            clean_step: step(&value["clean_step"]),
            maintenance: value["maintenance"].as_bool().unwrap_or(false),
            maintenance_reason: text(value, "maintenance_reason"),
            fault: text(value, "fault"),
            instance_uuid: text(value, "instance_uuid"),
            driver: text(value, "driver").unwrap_or_default(),
            driver_info: object(value, "driver_info"),
            properties: object(value, "properties"),
            owner: text(value, "owner"),
            lessee: text(value, "lessee"),
            resource_class: text(value, "resource_class"),
            interfaces: interfaces(value),
            target_raid_config: object(value, "target_raid_config"),
            traits: list(&value["traits"]).iter().filter_map(|t| t.as_str().map(str::to_owned)).collect(),
            inspected_at: text(value, "inspection_finished_at").and_then(|t| t.parse().ok()),
            state_since: text(value, "provision_updated_at"),
            last_heartbeat: text(&value["driver_internal_info"], "agent_last_heartbeat"),
        })
    }
}

/// A port with what enrollment compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    pub uuid: String,
    pub node: NodeUuid,
    /// `None` for an address that is no NIC's.
    pub mac: Option<Mac>,
    pub pxe_enabled: bool,
    pub portgroup: Option<String>,
    /// `None` where Ironic has an empty object.
    pub link: Option<LinkConnection>,
}

impl Port {
    pub(super) fn read(value: &Value, asked: &str) -> Result<Self, IronicError> {
        let malformed = |what: &str| IronicError::Malformed { asked: asked.to_owned(), what: what.to_owned() };
        let node = text(value, "node_uuid").and_then(|u| u.parse().ok());
        Ok(Port {
            uuid: text(value, "uuid").ok_or_else(|| malformed("a port without 'uuid'"))?,
            node: node.ok_or_else(|| malformed("a port without 'node_uuid'"))?,
            mac: text(value, "address").and_then(|m| m.parse().ok()),
            pxe_enabled: value["pxe_enabled"].as_bool().unwrap_or(true),
            portgroup: text(value, "portgroup_uuid"),
            link: LinkConnection::read(&value["local_link_connection"]),
        })
    }
}

/// Where a port's cable goes (`local_link_connection`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkConnection {
    /// Ironic wants a MAC or a datapath id here and has no use for it.
    pub switch_id: String,
    pub port_id: String,
    /// The switch's name.
    pub switch_info: String,
}

impl LinkConnection {
    fn read(value: &Value) -> Option<Self> {
        value.as_object().filter(|map| !map.is_empty())?;
        let get = |key: &str| text(value, key).unwrap_or_default();
        Some(LinkConnection { switch_id: get("switch_id"), port_id: get("port_id"), switch_info: get("switch_info") })
    }

    /// As Ironic takes it.
    pub fn to_json(&self) -> Value {
        json!({"switch_id": self.switch_id, "port_id": self.port_id, "switch_info": self.switch_info})
    }
}

/// A portgroup.
#[derive(Debug, Clone, PartialEq)]
pub struct Portgroup {
    pub uuid: String,
    pub node: NodeUuid,
    pub name: Option<String>,
    pub mac: Option<Mac>,
    pub mode: Option<String>,
}

impl Portgroup {
    pub(super) fn read(value: &Value, asked: &str) -> Result<Self, IronicError> {
        let malformed = |what: &str| IronicError::Malformed { asked: asked.to_owned(), what: what.to_owned() };
        let node = text(value, "node_uuid").and_then(|u| u.parse().ok());
        Ok(Portgroup {
            uuid: text(value, "uuid").ok_or_else(|| malformed("a portgroup without 'uuid'"))?,
            node: node.ok_or_else(|| malformed("a portgroup without 'node_uuid'"))?,
            name: text(value, "name"),
            mac: text(value, "address").and_then(|m| m.parse().ok()),
            mode: text(value, "mode"),
        })
    }
}

/// A port to be.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPort {
    pub node: NodeUuid,
    pub mac: Mac,
    pub pxe_enabled: bool,
    pub portgroup: Option<String>,
    pub link: Option<LinkConnection>,
}

impl NewPort {
    pub(super) fn to_json(&self) -> Value {
        let mut body = json!({"node_uuid": self.node, "address": self.mac, "pxe_enabled": self.pxe_enabled});
        if let Some(portgroup) = &self.portgroup {
            body["portgroup_uuid"] = json!(portgroup);
        }
        if let Some(link) = &self.link {
            body["local_link_connection"] = link.to_json();
        }
        body
    }
}

/// A portgroup to be.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPortgroup {
    pub node: NodeUuid,
    pub name: String,
    pub mac: Mac,
    pub mode: Option<String>,
    /// `miimon`, `xmit_hash_policy`: text values, as the bonding driver takes them.
    pub properties: Map<String, Value>,
}

impl NewPortgroup {
    pub(super) fn to_json(&self) -> Value {
        let mut body = json!({"node_uuid": self.node, "address": self.mac, "name": self.name});
        if let Some(mode) = &self.mode {
            body["mode"] = json!(mode);
        }
        if !self.properties.is_empty() {
            body["properties"] = json!(self.properties);
        }
        body
    }
}

/// What an inspection brought: Ironic's own shape, judged by `domain/checks`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    pub inventory: Value,
    pub plugin_data: Value,
}

fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().filter(|t| !t.is_empty()).map(str::to_owned)
}

fn object(value: &Value, key: &str) -> Map<String, Value> {
    value[key].as_object().cloned().unwrap_or_default()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn interfaces(value: &Value) -> BTreeMap<String, String> {
    let all = value.as_object().into_iter().flatten().filter(|(key, _)| key.ends_with("_interface"));
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn step(value: &Value) -> Option<String> {
    let name = text(value, "step")?;
    Some(match text(value, "interface") {
        Some(interface) => format!("{interface}.{name}"),
        None => name,
    })
}
