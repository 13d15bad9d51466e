//! Finds out what a call to Ironic wants and carries it out, at one moment of lab time.

use axum::http::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::world::State;
use super::node::{self, Node, since};
use super::reply::{CONDUCTOR, MAX, MIN, Refusal, Reply};
use super::{drivers, lists, patch, ports, task, verbs};
use crate::domain::provision::ProvisionState;

/// A call, taken apart.
pub(super) struct Call {
    pub method: Method,
    /// Of the path, decoded.
    pub segments: Vec<String>,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    pub version: u32,
    pub base: String,
}

impl Call {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.query.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether an argument is there and says yes.
    pub fn says_yes(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| ["true", "1", "yes", "on", "t", "y"].contains(&v.to_lowercase().as_str()))
    }

    /// The text of a key of the body.
    pub fn text(&self, key: &str) -> &str {
        self.body.as_ref().and_then(|b| b.get(key)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Unknown arguments are refused.
    pub fn allow(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.query.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => Err(Refusal::bad(format!("Unexpected arguments: {key}"))),
            None => Ok(()),
        }
    }

    pub fn is_abort(&self) -> bool {
        self.segments.iter().map(String::as_str).collect::<Vec<_>>().ends_with(&["states", "provision"])
            && self.text("target") == "abort"
    }

    fn needs(&self, version: u32) -> Result<(), Refusal> {
        if self.version < version { Err(Refusal::unacceptable()) } else { Ok(()) }
    }
}

/// Carries out a call.
pub(super) fn carry_out(state: &mut State, call: &Call) -> Result<Reply, Refusal> {
    let parts: Vec<&str> = call.segments.iter().map(String::as_str).collect();
    match (call.method.as_str(), &parts[..]) {
        ("GET", []) => Ok(Reply::ok(root(&call.base))),
        ("GET", ["v1"]) => Ok(Reply::ok(v1(&call.base, call.version))),
        ("GET", ["v1", "drivers"]) => {
            let list: Vec<Value> = drivers::DRIVERS.iter().map(|d| d.brief(&call.base)).collect();
            Ok(Reply::ok(json!({"drivers": list})))
        }
        ("GET", ["v1", "drivers", name]) => {
            let text = format!("The driver '{name}' is unknown.");
            drivers::named(name).map(|d| Reply::ok(d.whole(&call.base))).ok_or_else(|| Refusal::missing(text))
        }
        ("GET", ["v1", "conductors"]) if call.version >= 49 => {
            let link = |base: &str| format!("{base}/conductors/{CONDUCTOR}");
            let links = json!([
                {"href": link(&format!("{}/v1", call.base)), "rel": "self"},
                {"href": link(&call.base), "rel": "bookmark"},
            ]);
            let conductor = json!({"hostname": CONDUCTOR, "conductor_group": "", "links": links, "alive": true});
            Ok(Reply::ok(json!({"conductors": [conductor]})))
        }
        ("GET", ["v1", "nodes"]) => lists::nodes(state, call, call.says_yes("detail")),
        ("GET", ["v1", "nodes", "detail"]) => lists::nodes(state, call, true),
        ("POST", ["v1", "nodes"]) => create(state, call),
        (_, ["v1", "nodes", ident, rest @ ..]) => {
            let uuid = find(state, call, ident)?;
            of_node(state, call, uuid, rest)
        }
        ("GET", ["v1", "ports"]) => lists::ports(state, call, None, call.says_yes("detail")),
        ("GET", ["v1", "ports", "detail"]) => lists::ports(state, call, None, true),
        ("POST", ["v1", "ports"]) => {
            ports::create_port(state, &call.base, call.version, call.body.as_ref().unwrap_or(&Value::Null))
        }
        (method, ["v1", "ports", ident]) => of_port(state, call, method, ident),
        ("GET", ["v1", "portgroups"]) => lists::portgroups(state, call, None, call.says_yes("detail")),
        ("GET", ["v1", "portgroups", "detail"]) => lists::portgroups(state, call, None, true),
        ("POST", ["v1", "portgroups"]) => {
            call.needs(23)?;
            ports::create_portgroup(state, &call.base, call.version, call.body.as_ref().unwrap_or(&Value::Null))
        }
        (method, ["v1", "portgroups", ident]) => of_portgroup(state, call, method, ident),
        _ => Err(Refusal::no_path()),
    }
}

fn root(base: &str) -> Value {
    let version = json!({
        "id": "v1", "links": [{"href": format!("{base}/v1/"), "rel": "self"}], "status": "CURRENT",
        "min_version": format!("1.{MIN}"), "version": format!("1.{MAX}"),
    });
    json!({
        "name": "OpenStack Ironic API",
        "description":
            "Ironic is an OpenStack project which enables the provision and management of baremetal machines.",
        "default_version": version,
        "versions": [version],
    })
}

fn v1(base: &str, version: u32) -> Value {
    let link = |part: &str| {
        json!([
            {"href": format!("{base}/v1/{part}/"), "rel": "self"},
            {"href": format!("{base}/{part}/"), "rel": "bookmark"},
        ])
    };
    let mut map = Map::new();
    map.insert("id".into(), json!("v1"));
    let describes = "https://docs.openstack.org//ironic/latest/contributor//webapi.html";
    let links = json!([
        {"href": format!("{base}/v1/"), "rel": "self"},
        {"href": describes, "rel": "describedby", "type": "text/html"},
    ]);
    map.insert("links".into(), links);
    let media = json!({"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"});
    map.insert("media_types".into(), media);
    map.insert("version".into(), root(base)["default_version"].clone());
    let parts = [
        ("chassis", 1),
        ("nodes", 1),
        ("ports", 1),
        ("drivers", 1),
        ("portgroups", 23),
        ("volume", 32),
        ("lookup", 22),
        ("heartbeat", 22),
        ("conductors", 49),
        ("allocations", 52),
        ("events", 54),
        ("deploy_templates", 55),
        ("shards", 82),
        ("runbooks", 92),
        ("continue_inspection", 84),
    ];
    for (part, _) in parts.iter().filter(|(_, since)| *since <= version) {
        map.insert((*part).to_owned(), link(part));
    }
    Value::Object(map)
}

/// A node by UUID or, from 1.5 on, by name.
fn find(state: &State, call: &Call, ident: &str) -> Result<Uuid, Refusal> {
    let missing = || Refusal::missing(format!("Node {ident} could not be found."));
    if let Ok(uuid) = ident.parse::<Uuid>() {
        return state.ironic.nodes.contains_key(&uuid).then_some(uuid).ok_or_else(missing);
    }
    if !is_name(ident) {
        let text = format!("Expected UUID or name for node: {ident}");
        return Err(Refusal::Titled(axum::http::StatusCode::BAD_REQUEST, text));
    }
    if call.version < 5 {
        return Err(missing());
    }
    state.ironic.node_named(ident).map(|n| n.uuid).ok_or_else(missing)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~'))
}

fn create(state: &mut State, call: &Call) -> Result<Reply, Refusal> {
    let body = call.body.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(key) = body.keys().find(|key| !node::CREATE.contains(&key.as_str())) {
        let text = format!("Schema error for node: Additional properties are not allowed ('{key}' was unexpected)");
        return Err(Refusal::bad(text));
    }
    if body.keys().any(|key| since(key) > call.version) {
        return Err(Refusal::unacceptable());
    }
    if body.get("owner").is_some_and(|owner| !owner.is_null()) {
        let text = "Cannot create a node as a project scoped admin with an owner other than your own project.";
        return Err(Refusal::bad(text));
    }
    let name = body.get("name").and_then(Value::as_str);
    if let Some(name) = name.filter(|name| !is_name(name)) {
        return Err(Refusal::bad(format!("Cannot create node with invalid name '{name}'")));
    }
    let Some(wanted) = body.get("driver").and_then(Value::as_str) else {
        return Err(Refusal::bad("Schema error for node: 'driver' is a required property"));
    };
    let Some(driver) = drivers::named(wanted) else {
        return Err(Refusal::bad(format!(
            "No valid host was found. Reason: No conductor service registered which supports driver {wanted} for \
             conductor group \"\". Ensure the driver is valid and enabled."
        )));
    };
    for (key, value) in &body {
        if let (Some(kind), Some(interface)) = (key.strip_suffix("_interface"), value.as_str()) {
            driver.check(kind, interface).map_err(Refusal::bad)?;
        }
    }
    let uuid = match body.get("uuid").and_then(Value::as_str) {
        None => Uuid::new_v4(),
        Some(text) => text.parse().map_err(|_| Refusal::bad(format!("Expected a UUID but received {text}.")))?,
    };
    if state.ironic.nodes.contains_key(&uuid) {
        return Err(Refusal::conflict(format!("A node with UUID {uuid} already exists.")));
    }
    if let Some(name) = name.filter(|name| state.ironic.node_named(name).is_some()) {
        return Err(Refusal::conflict(format!("A node with name {name} already exists.")));
    }
    let instance = body.get("instance_uuid").and_then(Value::as_str).map(str::to_owned);
    if let Some(instance) = instance.filter(|i| state.ironic.nodes.values().any(|n| n.text("instance_uuid") == Some(i)))
    {
        let text = format!(
            "Instance {instance} is already associated with a node, it cannot be associated with this other node {uuid}"
        );
        return Err(Refusal::conflict(text));
    }
    let id = state.ironic.next_id();
    let mut node = Node::new(uuid, id, driver, body, state.stamp());
    if call.version < 11 {
        node.state = ProvisionState::Available;
    }
    let shown = Value::Object(node.whole(state, &call.base, call.version));
    state.ironic.nodes.insert(uuid, node);
    Ok(Reply::created(shown, format!("{}/v1/nodes/{uuid}", call.base)))
}

fn of_node(state: &mut State, call: &Call, uuid: Uuid, rest: &[&str]) -> Result<Reply, Refusal> {
    let no_such = || Refusal::missing(format!("Node {uuid} could not be found."));
    let node = state.ironic.nodes.get(&uuid).ok_or_else(no_such)?;
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            let shown = match call.get("fields") {
                None => Value::Object(node.whole(state, &call.base, call.version)),
                Some(fields) => {
                    let names = node::checked_fields(fields, call.version)?;
                    node.picked(state, &call.base, call.version, &names)
                }
            };
            Ok(Reply::ok(shown))
        }
        ("GET", ["states"]) => Ok(Reply::ok(node.states(state, &call.base, call.version))),
        ("GET", ["traits"]) => {
            call.needs(37)?;
            Ok(Reply::ok(json!({"traits": node.traits})))
        }
        ("GET", ["inventory"]) if call.version >= 81 => match &node.inventory {
            Some(found) => Ok(Reply::ok(found.clone())),
            None => Err(Refusal::missing(format!("Node inventory record for node {} could not be found.", node.id))),
        },
        ("GET", ["history"]) if call.version >= 78 => {
            let entry = |(id, at, severity, event): &(Uuid, jiff::Timestamp, &str, String)| {
                json!({
                    "uuid": id, "created_at": node::time(*at), "severity": severity, "event": event,
                    "links": [{"href": format!("{}/v1/nodes/{uuid}/history/{id}", call.base), "rel": "self"}],
                })
            };
            Ok(Reply::ok(json!({"history": node.history.iter().map(entry).collect::<Vec<_>>()})))
        }
        ("GET", ["validate"]) => Ok(Reply::ok(verbs::validate(state, node))),
        ("GET", ["ports"]) => lists::ports(state, call, Some(uuid), call.says_yes("detail")),
        ("GET", ["portgroups"]) => lists::portgroups(state, call, Some(uuid), call.says_yes("detail")),
        ("PATCH", []) => patch_node(state, call, uuid),
        ("DELETE", []) => verbs::delete(state, uuid),
        ("PUT", ["states", "provision"]) => verbs::provision(state, call, uuid),
        ("PUT", ["states", "power"]) => verbs::power(state, call, uuid),
        ("PUT", ["states", "raid"]) => verbs::raid(state, call, uuid),
        ("PUT" | "DELETE", ["maintenance"]) => verbs::maintenance(state, call, uuid),
        ("PUT" | "DELETE", ["traits"]) => {
            call.needs(37)?;
            verbs::traits(state, call, uuid, None)
        }
        ("PUT" | "DELETE", ["traits", name]) => {
            call.needs(37)?;
            verbs::traits(state, call, uuid, Some(name))
        }
        _ => Err(Refusal::no_path()),
    }
}

/// States in which interfaces may be changed.
const INTERFACE_STATES: [ProvisionState; 5] = [
    ProvisionState::Enroll,
    ProvisionState::Inspecting,
    ProvisionState::InspectWait,
    ProvisionState::Manageable,
    ProvisionState::Available,
];

fn patch_node(state: &mut State, call: &Call, uuid: Uuid) -> Result<Reply, Refusal> {
    let ops = patch::read(call.body.as_ref().unwrap_or(&Value::Null))?;
    let no_such = || Refusal::missing(format!("Node {uuid} could not be found."));
    let node = state.ironic.nodes.get(&uuid).ok_or_else(no_such)?;
    for op in &ops {
        let field = op.path[0].as_str();
        if !node::PATCH.contains(&field) {
            return Err(Refusal::bad(format!(
                "Cannot patch /{}. Only the following can be updated: {}",
                op.path.join("/"),
                node::PATCH.join(", ")
            )));
        }
        if since(field) > call.version {
            return Err(Refusal::unacceptable());
        }
    }
    use ProvisionState::{
        AdoptFailed, CleanFailed, DeployFailed, Error, InspectFailed, InspectWait, Inspecting, Verifying,
    };
    let open = [InspectWait, Inspecting, Verifying, InspectFailed, CleanFailed, DeployFailed, AdoptFailed, Error];
    if (node.target.is_some() && !open.contains(&node.state)) || node.target_power.is_some() {
        let text = format!("Node {uuid} can not be updated while a state transition is in progress.");
        return Err(Refusal::conflict(text));
    }
    let reset = call.says_yes("reset_interfaces");
    let sets_driver = ops.iter().any(|op| op.path == ["driver"]);
    if reset && !sets_driver {
        let text = "The reset_interfaces parameter can only be used when changing the node's driver.";
        return Err(Refusal::bad(text));
    }
    let mut fields = node.fields.clone();
    let fresh = Node::new(uuid, 0, &drivers::DRIVERS[0], Map::new(), state.stamp()).fields;
    for op in &ops {
        patch::apply(&mut fields, op, &Value::Object(fresh.clone()))?;
    }
    let before = node.fields.clone();
    if let Some(name) = fields["name"].as_str() {
        if !is_name(name) {
            return Err(Refusal::bad(format!("Cannot change name to invalid name '{name}'")));
        }
        if state.ironic.node_named(name).is_some_and(|other| other.uuid != uuid) {
            return Err(Refusal::conflict(format!("A node with name {name} already exists.")));
        }
    }
    check_interfaces(node, &ops, &before, &mut fields, reset)?;
    verbs::lock(state, uuid)?;
    let now = state.stamp();
    let shown = task::with_node(state, uuid, |state, node| {
        node.fields = fields;
        node.updated_at = Some(now);
        // The answer still shows the lock that the change itself took.
        let mut shown = node.whole(state, &call.base, call.version);
        shown.insert("reservation".into(), json!(CONDUCTOR));
        Value::Object(shown)
    });
    shown.map(Reply::ok).ok_or_else(no_such)
}

fn check_interfaces(
    node: &Node,
    ops: &[patch::Op],
    before: &Map<String, Value>,
    fields: &mut Map<String, Value>,
    reset: bool,
) -> Result<(), Refusal> {
    let wanted = fields["driver"].as_str().unwrap_or_default().to_owned();
    let Some(driver) = drivers::named(&wanted) else {
        return Err(Refusal::bad(format!(
            "No valid host was found. Reason: No conductor service registered which supports driver {wanted} for \
             conductor group \"\". Ensure the driver is valid and enabled."
        )));
    };
    let named = |key: &str| ops.iter().any(|op| op.path[0] == key && op.op != "remove");
    let removed: Vec<String> = ops
        .iter()
        .filter(|op| op.op == "remove" && op.path[0].ends_with("_interface"))
        .map(|op| op.path[0].clone())
        .collect();
    for kind in drivers::KINDS {
        let key = format!("{kind}_interface");
        if (reset && !named(&key)) || removed.contains(&key) {
            fields.insert(key, json!(driver.default(kind)));
        }
    }
    let mut changed: Vec<String> = fields
        .iter()
        .filter(|(key, value)| (key.ends_with("_interface") || *key == "driver") && before.get(*key) != Some(value))
        .map(|(key, _)| key.clone())
        .collect();
    changed.sort();
    let allowed = INTERFACE_STATES.contains(&node.state) || node.in_maintenance();
    if let Some(field) = changed.iter().find(|key| *key != "driver").or(changed.first()).filter(|_| !allowed) {
        return Err(Refusal::conflict(format!(
            "Node {} can not have {field} updated unless it is in one of allowed (enroll, inspecting, inspect wait, \
             manageable, available) states or in maintenance mode. Current state is '{}'.",
            node.uuid, node.state
        )));
    }
    for kind in drivers::KINDS {
        if let Some(interface) = fields[&format!("{kind}_interface")].as_str() {
            driver.check(kind, interface).map_err(Refusal::bad)?;
        }
    }
    Ok(())
}

fn of_port(state: &mut State, call: &Call, method: &str, ident: &str) -> Result<Reply, Refusal> {
    let uuid = ident.parse::<Uuid>().map_err(|_| Refusal::bad(format!("Expected a UUID but received {ident}.")))?;
    let node = state.ironic.ports.get(&uuid).map(|p| p.node).ok_or_else(|| ports::no_port(ident))?;
    match method {
        "GET" => {
            let port = &state.ironic.ports[&uuid];
            let mut map = port.whole(&call.base, call.version);
            if let Some(fields) = call.get("fields") {
                map.retain(|key, _| key == "links" || fields.split(',').any(|f| f == key));
            }
            Ok(Reply::ok(Value::Object(map)))
        }
        "PATCH" => {
            verbs::lock(state, node)?;
            ports::patch_port(state, &call.base, call.version, uuid, call.body.as_ref().unwrap_or(&Value::Null))
        }
        "DELETE" => {
            verbs::lock(state, node)?;
            state.ironic.ports.remove(&uuid);
            Ok(Reply::no_content(None))
        }
        _ => Err(Refusal::no_path()),
    }
}

fn of_portgroup(state: &mut State, call: &Call, method: &str, ident: &str) -> Result<Reply, Refusal> {
    call.needs(23)?;
    let found = state.ironic.portgroups.values().find(|g| g.uuid.to_string() == ident || g.fields["name"] == ident);
    let (uuid, node) = found
        .map(|g| (g.uuid, g.node))
        .ok_or_else(|| Refusal::missing(format!("Portgroup {ident} could not be found.")))?;
    match method {
        "GET" => Ok(Reply::ok(Value::Object(state.ironic.portgroups[&uuid].whole(&call.base, call.version)))),
        "DELETE" => {
            verbs::lock(state, node)?;
            if state.ironic.ports.values().any(|p| p.portgroup == Some(uuid)) {
                return Err(Refusal::bad(format!("Portgroup {uuid} can not be deleted: Portgroup is not empty")));
            }
            state.ironic.portgroups.remove(&uuid);
            Ok(Reply::no_content(None))
        }
        _ => Err(Refusal::no_path()),
    }
}
