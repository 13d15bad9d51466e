//! Ports and portgroups of nodes.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::world::State;
use super::node::{Node, time};
use super::patch;
use super::reply::{Refusal, Reply};
use crate::domain::mac::Mac;

/// A port.
#[derive(Debug, Clone)]
pub struct Port {
    pub uuid: Uuid,
    pub node: Uuid,
    /// Lower case with colons.
    pub address: String,
    pub portgroup: Option<Uuid>,
    pub fields: Map<String, Value>,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    pub id: u64,
}

/// A portgroup.
#[derive(Debug, Clone)]
pub struct Portgroup {
    pub uuid: Uuid,
    pub node: Uuid,
    pub fields: Map<String, Value>,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    pub id: u64,
}

fn links(base: &str, tail: &str) -> Value {
    json!([
        {"href": format!("{base}/v1/{tail}"), "rel": "self"},
        {"href": format!("{base}/{tail}"), "rel": "bookmark"},
    ])
}

impl Port {
    pub(super) fn whole(&self, base: &str, version: u32) -> Map<String, Value> {
        let mut map = self.fields.clone();
        map.insert("uuid".into(), json!(self.uuid));
        map.insert("created_at".into(), json!(time(self.created_at)));
        map.insert("updated_at".into(), json!(self.updated_at.map(time)));
        map.insert("address".into(), json!(self.address));
        map.insert("node_uuid".into(), json!(self.node));
        map.insert("portgroup_uuid".into(), json!(self.portgroup));
        map.insert("internal_info".into(), json!({}));
        map.insert("links".into(), links(base, &format!("ports/{}", self.uuid)));
        map.retain(|key, _| since(key) <= version);
        map
    }
}

fn since(field: &str) -> u32 {
    match field {
        "internal_info" => 18,
        "local_link_connection" | "pxe_enabled" => 19,
        "portgroup_uuid" => 24,
        "physical_network" => 34,
        "is_smartnic" => 53,
        "name" => 88,
        "description" => 97,
        "vendor" => 100,
        "category" => 101,
        _ => 1,
    }
}

impl Portgroup {
    pub(super) fn whole(&self, base: &str, version: u32) -> Map<String, Value> {
        let mut map = self.fields.clone();
        map.insert("uuid".into(), json!(self.uuid));
        map.insert("created_at".into(), json!(time(self.created_at)));
        map.insert("updated_at".into(), json!(self.updated_at.map(time)));
        map.insert("node_uuid".into(), json!(self.node));
        map.insert("internal_info".into(), json!({}));
        map.insert("links".into(), links(base, &format!("portgroups/{}", self.uuid)));
        map.insert("ports".into(), links(base, &format!("portgroups/{}/ports", self.uuid)));
        map.retain(|key, _| !(version < 26 && ["mode", "properties"].contains(&key.as_str())));
        map
    }
}

fn object(body: &Value) -> Result<&Map<String, Value>, Refusal> {
    body.as_object().ok_or_else(|| Refusal::bad("Schema error for port: the body is not of type 'object'"))
}

fn mac_of(map: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    let Some(text) = map.get("address").filter(|v| !v.is_null()) else { return Ok(None) };
    let text = text.as_str().unwrap_or_default();
    let mac =
        text.parse::<Mac>().map_err(|_| Refusal::bad(format!("Expected valid MAC address for address: {text}")))?;
    Ok(Some(mac.to_string()))
}

fn node_of(state: &State, map: &Map<String, Value>) -> Result<Uuid, Refusal> {
    let text = map.get("node_uuid").and_then(Value::as_str).unwrap_or_default();
    let found = text.parse::<Uuid>().ok().filter(|uuid| state.ironic.nodes.contains_key(uuid));
    found.ok_or_else(|| Refusal::bad(format!("Node {text} could not be found.")))
}

fn refuse_unknown(what: &str, map: &Map<String, Value>, known: &[&str]) -> Result<(), Refusal> {
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Refusal::bad(format!(
            "Schema error for {what}: Additional properties are not allowed ('{key}' was unexpected)"
        ))),
        None => Ok(()),
    }
}

/// A link needs a switch id that is a MAC address or a datapath id.
fn check_link(link: &Value) -> Result<(), Refusal> {
    let Some(map) = link.as_object().filter(|map| !map.is_empty()) else { return Ok(()) };
    let Some(id) = map.get("switch_id") else {
        let text: Vec<String> =
            map.iter().map(|(k, v)| format!("'{k}': '{}'", v.as_str().unwrap_or_default())).collect();
        return Err(Refusal::bad(format!(
            "Schema error for local_link_connection: {{{}}} is not valid under any of the given schemas. Possible root \
             cause: 'switch_id' is a required property",
            text.join(", ")
        )));
    };
    let id = id.as_str().unwrap_or_default();
    let digits: String = id.chars().filter(|c| !matches!(c, ':' | '-')).collect();
    let hex = digits.chars().all(|c| c.is_ascii_hexdigit());
    if hex && (digits.len() == 12 || digits.len() == 16) {
        return Ok(());
    }
    Err(Refusal::bad(format!("Expected a MAC address or OpenFlow datapath ID but received {id}.")))
}

const PORT: &[&str] = &[
    "uuid",
    "node_uuid",
    "address",
    "portgroup_uuid",
    "pxe_enabled",
    "physical_network",
    "local_link_connection",
    "extra",
    "is_smartnic",
    "name",
    "description",
    "vendor",
    "category",
];

/// Creates a port. Only a shared lock is taken: a locked node is no hindrance.
pub(super) fn create_port(state: &mut State, base: &str, version: u32, body: &Value) -> Result<Reply, Refusal> {
    let map = object(body)?;
    refuse_unknown("port", map, PORT)?;
    if map.keys().any(|key| since(key) > version) {
        return Err(Refusal::unacceptable());
    }
    let address = mac_of(map)?;
    let address = address.ok_or_else(|| Refusal::bad("Schema error for port: 'address' is a required property"))?;
    let node = node_of(state, map)?;
    check_link(map.get("local_link_connection").unwrap_or(&Value::Null))?;
    let portgroup = match map.get("portgroup_uuid").and_then(Value::as_str) {
        None => None,
        Some(text) => {
            let found = text.parse::<Uuid>().ok().filter(|uuid| state.ironic.portgroups.contains_key(uuid));
            Some(found.ok_or_else(|| Refusal::bad(format!("Portgroup {text} could not be found.")))?)
        }
    };
    if state.ironic.ports.values().any(|p| p.address == address) {
        return Err(Refusal::conflict(format!("A port with MAC address {address} already exists.")));
    }
    let uuid = map.get("uuid").and_then(Value::as_str).and_then(|t| t.parse().ok()).unwrap_or_else(Uuid::new_v4);
    let mut port = bare_port(state, uuid, node, address);
    port.portgroup = portgroup;
    for (key, value) in map {
        if !["uuid", "node_uuid", "address", "portgroup_uuid"].contains(&key.as_str()) {
            port.fields.insert(key.clone(), value.clone());
        }
    }
    let body = Value::Object(port.whole(base, version));
    state.ironic.ports.insert(uuid, port);
    Ok(Reply::created(body, format!("{base}/v1/ports/{uuid}")))
}

pub(super) fn bare_port(state: &mut State, uuid: Uuid, node: Uuid, address: String) -> Port {
    let fields = json!({
        "extra": {}, "is_smartnic": false, "local_link_connection": {}, "physical_network": null, "pxe_enabled": true,
        "name": null,
    });
    let fields = fields.as_object().cloned().unwrap_or_default();
    let id = state.ironic.next_id();
    Port { uuid, node, address, portgroup: None, fields, created_at: state.stamp(), updated_at: None, id }
}

/// Creates a portgroup.
pub(super) fn create_portgroup(state: &mut State, base: &str, version: u32, body: &Value) -> Result<Reply, Refusal> {
    let map = object(body)?;
    let known = ["uuid", "node_uuid", "address", "name", "mode", "properties", "standalone_ports_supported", "extra"];
    refuse_unknown("portgroup", map, &known)?;
    if version < 26 && (map.contains_key("mode") || map.contains_key("properties")) {
        return Err(Refusal::unacceptable());
    }
    let address = mac_of(map)?;
    let node = node_of(state, map)?;
    let name = map.get("name").and_then(Value::as_str);
    let groups = || state.ironic.portgroups.values();
    if let Some(name) = name.filter(|name| groups().any(|g| g.fields["name"] == **name)) {
        return Err(Refusal::conflict(format!("A portgroup with name {name} already exists.")));
    }
    let taken = |a: &String| groups().any(|g| g.fields["address"] == **a);
    if let Some(address) = address.as_ref().filter(|a| taken(a)) {
        return Err(Refusal::conflict(format!("A portgroup with MAC address {address} already exists.")));
    }
    let uuid = map.get("uuid").and_then(Value::as_str).and_then(|t| t.parse().ok()).unwrap_or_else(Uuid::new_v4);
    let fields = json!({
        "address": address, "name": name, "mode": map.get("mode").cloned().unwrap_or(json!("active-backup")),
        "properties": map.get("properties").cloned().unwrap_or(json!({})),
        "standalone_ports_supported": map.get("standalone_ports_supported").cloned().unwrap_or(json!(true)),
        "extra": map.get("extra").cloned().unwrap_or(json!({})),
    });
    let id = state.ironic.next_id();
    let fields = fields.as_object().cloned().unwrap_or_default();
    let group = Portgroup { uuid, node, fields, created_at: state.stamp(), updated_at: None, id };
    let body = Value::Object(group.whole(base, version));
    state.ironic.portgroups.insert(uuid, group);
    Ok(Reply::created(body, format!("{base}/v1/portgroups/{uuid}")))
}

/// Changes a port by a JSON patch.
pub(super) fn patch_port(
    state: &mut State,
    base: &str,
    version: u32,
    uuid: Uuid,
    body: &Value,
) -> Result<Reply, Refusal> {
    let ops = patch::read(body)?;
    let Some(port) = state.ironic.ports.get(&uuid) else { return Err(no_port(&uuid.to_string())) };
    let mut port = port.clone();
    let mut fields = port.fields.clone();
    fields.insert("address".into(), json!(port.address));
    fields.insert("portgroup_uuid".into(), json!(port.portgroup));
    fields.insert("node_uuid".into(), json!(port.node));
    for op in &ops {
        patch::apply(&mut fields, op, &json!({"local_link_connection": {}, "extra": {}}))?;
    }
    check_link(fields.get("local_link_connection").unwrap_or(&Value::Null))?;
    let address = mac_of(&fields)?.unwrap_or_else(|| port.address.clone());
    if state.ironic.ports.values().any(|p| p.uuid != uuid && p.address == address) {
        return Err(Refusal::conflict(format!("A port with MAC address {address} already exists.")));
    }
    port.address = address;
    port.portgroup = fields.get("portgroup_uuid").and_then(Value::as_str).and_then(|t| t.parse().ok());
    for key in ["address", "portgroup_uuid", "node_uuid"] {
        fields.remove(key);
    }
    port.fields = fields;
    port.updated_at = Some(state.stamp());
    let shown = Value::Object(port.whole(base, version));
    state.ironic.ports.insert(uuid, port);
    Ok(Reply::ok(shown))
}

pub(super) fn no_port(ident: &str) -> Refusal {
    Refusal::missing(format!("Port {ident} could not be found."))
}

/// Ports for the NICs that the BMC reports and nobody has registered: without a link, not for PXE.
pub(super) fn pre_create(state: &mut State, node: &Node) {
    let Some(machine) = node.machine(state) else { return };
    let macs: Vec<String> = machine.nics.iter().map(|nic| nic.mac.to_string()).collect();
    for mac in macs {
        if state.ironic.ports.values().any(|p| p.address == mac) {
            continue;
        }
        let mut port = bare_port(state, Uuid::new_v4(), node.uuid, mac);
        port.fields.insert("pxe_enabled".into(), json!(false));
        state.ironic.ports.insert(port.uuid, port);
    }
}
