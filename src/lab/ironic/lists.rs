//! Ironic's lists: filters, `fields`, pages by marker with the `next` link of the real one.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::world::State;
use super::api::Call;
use super::node::{self, Node};
use super::reply::{Refusal, Reply};
use crate::domain::provision::ProvisionState;

/// The largest page.
const MAX_LIMIT: usize = 1000;

const NODE_ARGS: &[&str] = &[
    "provision_state",
    "driver",
    "maintenance",
    "associated",
    "instance_uuid",
    "resource_class",
    "owner",
    "lessee",
    "fault",
    "conductor_group",
    "conductor",
    "chassis_uuid",
    "retired",
    "shard",
    "project",
    "description_contains",
    "parent_node",
    "include_children",
    "sharded",
    "limit",
    "marker",
    "sort_key",
    "sort_dir",
    "fields",
    "detail",
    "instance_name",
    "health",
];

fn limit(call: &Call) -> Result<usize, Refusal> {
    match call.get("limit").map(str::parse::<i64>) {
        None | Some(Ok(0)) => Ok(MAX_LIMIT),
        Some(Ok(n)) if n > 0 => Ok((n as usize).min(MAX_LIMIT)),
        _ => Err(Refusal::bad("Limit must be positive")),
    }
}

/// Cuts a page out of sorted items; says whether there is more.
fn page<T>(
    mut items: Vec<T>,
    uuid: impl Fn(&T) -> Uuid,
    call: &Call,
    limit: usize,
    kind: &str,
) -> Result<(Vec<T>, bool), Refusal> {
    if let Some(marker) = call.get("marker") {
        let at = items.iter().position(|item| uuid(item).to_string() == marker);
        let at = at.ok_or_else(|| Refusal::missing(format!("{kind} {marker} could not be found.")))?;
        items.drain(..=at);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    Ok((items, more))
}

fn next(call: &Call, path: &str, keep: &[(&str, String)], limit: usize, last: Uuid) -> String {
    let mut query = "sort_key=id&sort_dir=asc".to_owned();
    for (key, value) in keep {
        query.push_str(&format!("&{key}={value}"));
    }
    format!("{}/v1/{path}?{query}&limit={limit}&marker={last}", call.base)
}

/// Nodes.
pub(super) fn nodes(state: &State, call: &Call, detail: bool) -> Result<Reply, Refusal> {
    call.allow(NODE_ARGS)?;
    let fields = call.get("fields").map(|text| node::checked_fields(text, call.version)).transpose()?;
    if let Some(wanted) = call.get("provision_state")
        && matches!(ProvisionState::from(wanted), ProvisionState::Other(_))
    {
        return Err(Refusal::bad(format!("Provision state \"{wanted}\" is not valid")));
    }
    let limit = limit(call)?;
    let mut nodes: Vec<&Node> = state.ironic.nodes.values().filter(|n| passes(n, call)).collect();
    nodes.sort_by_key(|n| n.id);
    if call.get("sort_dir") == Some("desc") {
        nodes.reverse();
    }
    // An unknown marker is told even where it is filtered out.
    if let Some(marker) = call.get("marker").filter(|m| !nodes.iter().any(|n| n.uuid.to_string() == **m)) {
        return Err(Refusal::missing(format!("Node {marker} could not be found.")));
    }
    let (nodes, more) = page(nodes, |n| n.uuid, call, limit, "Node")?;
    let show = |n: &&Node| match &fields {
        Some(names) => n.picked(state, &call.base, call.version, names),
        None if detail => Value::Object(n.whole(state, &call.base, call.version)),
        None => n.summary(state, &call.base, call.version),
    };
    let mut body = json!({"nodes": nodes.iter().map(show).collect::<Vec<_>>()});
    if let (true, Some(last)) = (more, nodes.last()) {
        let names = call.get("fields").unwrap_or("instance_uuid,maintenance,power_state,provision_state,uuid,name");
        let keep = if detail { vec![] } else { vec![("fields", names.to_owned())] };
        let path = if detail { "nodes/detail" } else { "nodes" };
        body["next"] = json!(next(call, path, &keep, limit, last.uuid));
    }
    Ok(Reply::ok(body))
}

fn passes(node: &Node, call: &Call) -> bool {
    let text = |key: &str| call.get(key).is_none_or(|wanted| node.text(key) == Some(wanted));
    let flag = |key: &str, is: bool| call.get(key).is_none() || call.says_yes(key) == is;
    call.get("provision_state").is_none_or(|wanted| node.state.as_str() == wanted)
        && ["driver", "instance_uuid", "resource_class", "owner", "lessee", "fault", "conductor_group", "shard"]
            .iter()
            .all(|key| text(key))
        && flag("maintenance", node.in_maintenance())
        && flag("associated", node.text("instance_uuid").is_some())
}

/// Ports, of one node or of all.
pub(super) fn ports(state: &State, call: &Call, of: Option<Uuid>, detail: bool) -> Result<Reply, Refusal> {
    call.allow(&[
        "node",
        "node_uuid",
        "address",
        "portgroup",
        "limit",
        "marker",
        "sort_key",
        "sort_dir",
        "fields",
        "detail",
        "shard",
    ])?;
    let of = match (of, call.get("node").or(call.get("node_uuid"))) {
        (Some(uuid), _) => Some(uuid),
        (None, Some(ident)) => Some(node_named(state, ident)?),
        (None, None) => None,
    };
    let limit = limit(call)?;
    let mut found: Vec<_> = state
        .ironic
        .ports
        .values()
        .filter(|p| of.is_none_or(|node| p.node == node))
        .filter(|p| call.get("address").is_none_or(|a| p.address.eq_ignore_ascii_case(a)))
        .filter(|p| call.get("portgroup").is_none_or(|g| p.portgroup.is_some_and(|uuid| uuid.to_string() == g)))
        .collect();
    found.sort_by_key(|p| p.id);
    let (found, more) = page(found, |p| p.uuid, call, limit, "Port")?;
    let shown =
        found.iter().map(|p| picked(p.whole(&call.base, call.version), call, detail, &["uuid", "address", "links"]));
    let mut body = json!({"ports": shown.collect::<Vec<_>>()});
    if let (true, Some(last)) = (more, found.last()) {
        body["next"] = json!(next(call, if detail { "ports/detail" } else { "ports" }, &kept(call), limit, last.uuid));
    }
    Ok(Reply::ok(body))
}

/// Portgroups, of one node or of all.
pub(super) fn portgroups(state: &State, call: &Call, of: Option<Uuid>, detail: bool) -> Result<Reply, Refusal> {
    if call.version < 23 {
        return Err(Refusal::no_path());
    }
    call.allow(&["node", "node_uuid", "address", "limit", "marker", "sort_key", "sort_dir", "fields", "detail"])?;
    let of = match (of, call.get("node").or(call.get("node_uuid"))) {
        (Some(uuid), _) => Some(uuid),
        (None, Some(ident)) => Some(node_named(state, ident)?),
        (None, None) => None,
    };
    let limit = limit(call)?;
    let mut found: Vec<_> = state
        .ironic
        .portgroups
        .values()
        .filter(|g| of.is_none_or(|node| g.node == node))
        .filter(|g| {
            call.get("address").is_none_or(|a| g.fields["address"].as_str().is_some_and(|b| a.eq_ignore_ascii_case(b)))
        })
        .collect();
    found.sort_by_key(|g| g.id);
    let (found, more) = page(found, |g| g.uuid, call, limit, "Portgroup")?;
    let short = ["uuid", "address", "name", "links"];
    let shown = found.iter().map(|g| picked(g.whole(&call.base, call.version), call, detail, &short));
    let mut body = json!({"portgroups": shown.collect::<Vec<_>>()});
    if let (true, Some(last)) = (more, found.last()) {
        let path = if detail { "portgroups/detail" } else { "portgroups" };
        body["next"] = json!(next(call, path, &kept(call), limit, last.uuid));
    }
    Ok(Reply::ok(body))
}

fn picked(mut map: Map<String, Value>, call: &Call, detail: bool, short: &[&str]) -> Value {
    match call.get("fields") {
        Some(fields) => map.retain(|key, _| key == "links" || fields.split(',').any(|f| f == key)),
        None if detail => {}
        None => map.retain(|key, _| short.contains(&key.as_str())),
    }
    Value::Object(map)
}

fn kept(call: &Call) -> Vec<(&str, String)> {
    let keys = ["node", "address", "portgroup", "fields"];
    keys.iter().filter_map(|key| Some((*key, call.get(key)?.to_owned()))).collect()
}

fn node_named(state: &State, ident: &str) -> Result<Uuid, Refusal> {
    let by_uuid = ident.parse::<Uuid>().ok().filter(|uuid| state.ironic.nodes.contains_key(uuid));
    let found = by_uuid.or_else(|| state.ironic.node_named(ident).map(|n| n.uuid));
    found.ok_or_else(|| Refusal::missing(format!("Node {ident} could not be found.")))
}
