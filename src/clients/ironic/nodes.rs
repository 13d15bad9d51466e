//! Nodes: reading, creating, changing, and asking for provision and power changes. What changes something is asked for by
//! an [`super::Attempt`] only.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::access::BmcAccess;
use super::change::{Interface, NewNode, NodeChange};
use super::error::IronicError;
use super::guard::Write;
use super::model::{Inventory, Node, list};
use super::session::Ironic;
use super::versions::Call;
use crate::clients::http::{Method, Request};
use crate::domain::ids::NodeUuid;

/// The provision changes that muster ever asks for: no deployment, no rebuild, no deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Manage,
    Inspect,
    Provide,
    Abort,
}

impl Verb {
    /// Ironic's own word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Manage => "manage",
            Verb::Inspect => "inspect",
            Verb::Provide => "provide",
            Verb::Abort => "abort",
        }
    }

    pub(super) fn write(self) -> Write {
        match self {
            Verb::Manage => Write::Manage,
            Verb::Inspect => Write::Inspect,
            Verb::Provide => Write::Provide,
            Verb::Abort => Write::Abort,
        }
    }

    fn call(self) -> Call {
        match self {
            Verb::Manage => Call::Manage,
            Verb::Inspect => Call::Inspect,
            Verb::Provide => Call::Provide,
            Verb::Abort => Call::Abort,
        }
    }
}

/// Nodes a page, and the most pages that are read: a server that never ends its list is not followed for ever (Z3).
const PAGE: usize = 1000;
const PAGES_MAX: usize = 200;

impl Ironic {
    /// All nodes that may be seen, with these fields; `uuid` and `provision_state` are always among them.
    pub async fn nodes(&self, fields: &[&str]) -> Result<Vec<Node>, IronicError> {
        let mut wanted = vec!["uuid", "provision_state"];
        wanted.extend(fields.iter().filter(|f| !matches!(**f, "uuid" | "provision_state")));
        let wanted = wanted.join(",");
        let mut nodes: Vec<Node> = Vec::new();
        for _ in 0..PAGES_MAX {
            let mut request = Request::get("/v1/nodes").query("fields", &wanted).query("limit", PAGE);
            if let Some(last) = nodes.last() {
                request = request.query("marker", last.uuid);
            }
            let body = self.read(Call::ListNodes, request).await?;
            let page = list(&body["nodes"]);
            if body["nodes"].as_array().is_none() {
                return Err(malformed("GET /v1/nodes", "an answer without a list 'nodes'"));
            }
            let before = nodes.len();
            // A page of more than was asked for, again and again, would fill the memory.
            if before + page.len() > PAGES_MAX * PAGE {
                break;
            }
            for value in page {
                nodes.push(Node::read(value, "GET /v1/nodes")?);
            }
            // `next` holds the server's own address, which need not be the one that is reached: the marker is enough.
            let more = body["next"].as_str().is_some_and(|n| !n.is_empty());
            if !more || nodes.len() == before {
                return Ok(nodes);
            }
        }
        Err(malformed("GET /v1/nodes", &format!("the list of nodes does not end after {PAGES_MAX} pages")))
    }

    /// Asks for a page of one node: whether the login may read them at all.
    pub async fn sees_nodes(&self) -> Result<(), IronicError> {
        let request = Request::get("/v1/nodes").query("fields", "uuid").query("limit", 1);
        let body = self.read(Call::ListNodes, request).await?;
        match body["nodes"].is_array() {
            true => Ok(()),
            false => Err(malformed("GET /v1/nodes", "an answer without a list 'nodes'")),
        }
    }

    /// A node by UUID or name; `None` where there is none, or none that may be seen.
    pub async fn node(&self, ident: &str) -> Result<Option<Node>, IronicError> {
        let path = format!("/v1/nodes/{}", segment(ident));
        match self.read(Call::ReadNode, Request::get(&path)).await {
            Ok(body) => {
                let asked = format!("GET {path}");
                let node = Node::read(&body, &asked)?;
                // The field that this version is asked for: an answer without it is one of an older version.
                if body.get("lessee").is_none() {
                    return Err(self.stripped(asked, Call::ReadNode));
                }
                Ok(Some(node))
            }
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    pub(super) async fn create_node(&self, node: &NewNode) -> Result<Node, IronicError> {
        let call = if node.wants_firmware() { Call::CreateNodeWithFirmware } else { Call::CreateNode };
        let body = self.read(call, Request::new(Method::POST, "/v1/nodes").json(node.to_json())).await?;
        Node::read(&body, "POST /v1/nodes")
    }

    pub(super) async fn change_node(&self, node: NodeUuid, changes: &[NodeChange]) -> Result<Node, IronicError> {
        let patch: Vec<Value> = changes.iter().flat_map(NodeChange::patch).collect();
        let path = format!("/v1/nodes/{node}");
        let request = Request::new(Method::PATCH, &path).json(Value::Array(patch));
        let body = self.read(Call::ChangeNode, request).await?;
        Node::read(&body, &format!("PATCH {path}"))
    }

    /// Every interface that is not kept gets the default of `ipmi`.
    pub(super) async fn switch_to_ipmi(
        &self,
        node: NodeUuid,
        access: &BmcAccess,
        kept: &BTreeMap<Interface, String>,
    ) -> Result<Node, IronicError> {
        let replace = |path: String, value: &str| json!({"op": "replace", "path": path, "value": value});
        let mut patch = vec![replace("/driver".to_owned(), "ipmi")];
        patch.extend(kept.iter().map(|(interface, value)| replace(format!("/{}", interface.key()), value)));
        patch.extend(access.patch());
        let path = format!("/v1/nodes/{node}");
        let request = Request::new(Method::PATCH, &path).query("reset_interfaces", "true").json(Value::Array(patch));
        let body = self.read(Call::SwitchDriver, request).await?;
        Node::read(&body, &format!("PATCH {path}"))
    }

    pub(super) async fn provision(&self, node: NodeUuid, verb: Verb) -> Result<(), IronicError> {
        let body = json!({"target": verb.as_str()});
        self.order(verb.call(), Method::PUT, format!("/v1/nodes/{node}/states/provision"), Some(body)).await
    }

    pub(super) async fn power_on(&self, node: NodeUuid) -> Result<(), IronicError> {
        let body = json!({"target": "power on"});
        self.order(Call::PowerOn, Method::PUT, format!("/v1/nodes/{node}/states/power"), Some(body)).await
    }

    pub(super) async fn set_maintenance(&self, node: NodeUuid, reason: Option<&str>) -> Result<(), IronicError> {
        let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
        self.order(Call::Maintenance, Method::PUT, format!("/v1/nodes/{node}/maintenance"), Some(body)).await
    }

    pub(super) async fn clear_maintenance(&self, node: NodeUuid) -> Result<(), IronicError> {
        self.order(Call::Maintenance, Method::DELETE, format!("/v1/nodes/{node}/maintenance"), None).await
    }

    pub(super) async fn add_trait(&self, node: NodeUuid, name: &str) -> Result<(), IronicError> {
        let path = format!("/v1/nodes/{node}/traits/{}", segment(name));
        self.order(Call::AddTrait, Method::PUT, path, None).await
    }

    pub(super) async fn set_raid_target(&self, node: NodeUuid, config: &Map<String, Value>) -> Result<(), IronicError> {
        let path = format!("/v1/nodes/{node}/states/raid");
        self.order(Call::SetRaidTarget, Method::PUT, path, Some(json!(config))).await
    }

    /// What the last inspection brought; `None` before the first.
    pub async fn inventory(&self, node: NodeUuid) -> Result<Option<Inventory>, IronicError> {
        let path = format!("/v1/nodes/{node}/inventory");
        match self.read(Call::ReadInventory, Request::get(&path)).await {
            Ok(mut body) => Ok(Some(Inventory {
                inventory: body["inventory"].take(),
                plugin_data: body.get_mut("plugin_data").map(Value::take).unwrap_or_default(),
            })),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn malformed(asked: &str, what: &str) -> IronicError {
    IronicError::Malformed { asked: asked.to_owned(), what: what.to_owned() }
}

/// One segment of a path: what has a meaning in a URL is percent-encoded.
fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_segment() {
        assert_eq!(segment("gpu-b07-37.osl1"), "gpu-b07-37.osl1");
        assert_eq!(segment("../x?y=1#z é"), "..%2Fx%3Fy%3D1%23z%20%C3%A9");
    }
}
