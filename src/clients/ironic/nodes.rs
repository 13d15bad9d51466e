//! Nodes: reading, creating, changing, and asking for provision and power changes.

use serde_json::{Value, json};

use super::error::IronicError;
use super::model::{Inventory, Node, list};
use super::session::Ironic;
use crate::clients::http::{Method, Request};
use crate::domain::ids::NodeUuid;

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
            let body = self.read(request).await?;
            let page = list(&body["nodes"]);
            if body["nodes"].as_array().is_none() {
                return Err(malformed("GET /v1/nodes", "an answer without a list 'nodes'"));
            }
            let before = nodes.len();
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

    /// A node by UUID or name; `None` where there is none, or none that may be seen.
    pub async fn node(&self, ident: &str) -> Result<Option<Node>, IronicError> {
        let path = format!("/v1/nodes/{}", segment(ident));
        match self.read(Request::get(&path)).await {
            Ok(body) => Node::read(&body, &format!("GET {path}")).map(Some),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Creates a node and returns it as Ironic has it.
    pub async fn create_node(&self, body: Value) -> Result<Node, IronicError> {
        let body = self.read(Request::new(Method::POST, "/v1/nodes").json(body)).await?;
        Node::read(&body, "POST /v1/nodes")
    }

    /// Changes a node by a JSON patch. `reset_interfaces` gives every interface that the patch leaves out the new driver's
    /// default (X2).
    pub async fn patch_node(
        &self,
        node: NodeUuid,
        patch: Vec<Value>,
        reset_interfaces: bool,
    ) -> Result<Node, IronicError> {
        let path = format!("/v1/nodes/{node}");
        let mut request = Request::new(Method::PATCH, &path).json(Value::Array(patch));
        if reset_interfaces {
            request = request.query("reset_interfaces", "true");
        }
        let body = self.read(request).await?;
        Node::read(&body, &format!("PATCH {path}"))
    }

    /// Asks for a provision change: `manage`, `inspect`, `provide`, `abort`, …
    pub async fn provision(&self, node: NodeUuid, verb: &str) -> Result<(), IronicError> {
        self.order(Method::PUT, format!("/v1/nodes/{node}/states/provision"), Some(json!({"target": verb}))).await
    }

    /// Asks for a power change: `power on`, `power off`, …
    pub async fn power(&self, node: NodeUuid, target: &str) -> Result<(), IronicError> {
        self.order(Method::PUT, format!("/v1/nodes/{node}/states/power"), Some(json!({"target": target}))).await
    }

    pub async fn set_maintenance(&self, node: NodeUuid, reason: Option<&str>) -> Result<(), IronicError> {
        let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
        self.order(Method::PUT, format!("/v1/nodes/{node}/maintenance"), Some(body)).await
    }

    pub async fn clear_maintenance(&self, node: NodeUuid) -> Result<(), IronicError> {
        self.order(Method::DELETE, format!("/v1/nodes/{node}/maintenance"), None).await
    }

    /// Adds one trait and keeps all others.
    pub async fn add_trait(&self, node: NodeUuid, name: &str) -> Result<(), IronicError> {
        self.order(Method::PUT, format!("/v1/nodes/{node}/traits/{}", segment(name)), None).await
    }

    /// Sets the RAID that the next clean is to build.
    pub async fn set_raid_target(&self, node: NodeUuid, config: &Value) -> Result<(), IronicError> {
        self.order(Method::PUT, format!("/v1/nodes/{node}/states/raid"), Some(config.clone())).await
    }

    /// What the last inspection brought; `None` before the first.
    pub async fn inventory(&self, node: NodeUuid) -> Result<Option<Inventory>, IronicError> {
        let path = format!("/v1/nodes/{node}/inventory");
        match self.read(Request::get(&path)).await {
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
