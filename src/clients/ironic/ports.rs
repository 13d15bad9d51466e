//! Ports and portgroups. Addresses are typed, so that no look-up goes out with an empty filter (I1, C-05).

use serde_json::{Value, json};

use super::error::IronicError;
use super::model::{LinkConnection, NewPort, NewPortgroup, Port, Portgroup, list};
use super::session::Ironic;
use super::versions::Call;
use crate::clients::http::{Method, Request};
use crate::domain::ids::NodeUuid;
use crate::domain::mac::Mac;

impl Ironic {
    /// The ports of a node.
    pub async fn ports_of(&self, node: NodeUuid) -> Result<Vec<Port>, IronicError> {
        self.ports(Request::get("/v1/ports/detail").query("node", node)).await
    }

    /// The ports with this address, on whichever node they are.
    pub async fn ports_by_address(&self, mac: Mac) -> Result<Vec<Port>, IronicError> {
        let ports = self.ports(Request::get("/v1/ports/detail").query("address", mac)).await?;
        // A server that ignores the filter answers with every port there is.
        Ok(ports.into_iter().filter(|port| port.mac == Some(mac)).collect())
    }

    async fn ports(&self, request: Request) -> Result<Vec<Port>, IronicError> {
        let body = self.read(Call::ReadPorts, request).await?;
        list(&body["ports"]).iter().map(|port| Port::read(port, "GET /v1/ports/detail")).collect()
    }

    pub(super) async fn create_port(&self, port: &NewPort) -> Result<Port, IronicError> {
        let request = Request::new(Method::POST, "/v1/ports").json(port.to_json());
        let body = self.read(Call::CreatePort, request).await?;
        Port::read(&body, "POST /v1/ports")
    }

    /// Records where a port's cable goes.
    pub(super) async fn set_port_link(&self, port: &str, link: &LinkConnection) -> Result<Port, IronicError> {
        let patch = json!([{"op": "add", "path": "/local_link_connection", "value": link.to_json()}]);
        let path = format!("/v1/ports/{port}");
        let body = self.read(Call::RecordLink, Request::new(Method::PATCH, &path).json(patch)).await?;
        Port::read(&body, &format!("PATCH {path}"))
    }

    /// The portgroups of a node.
    pub async fn portgroups_of(&self, node: NodeUuid) -> Result<Vec<Portgroup>, IronicError> {
        self.portgroups(Request::get("/v1/portgroups/detail").query("node", node)).await
    }

    /// The portgroups with this address, on whichever node they are.
    pub async fn portgroups_by_address(&self, mac: Mac) -> Result<Vec<Portgroup>, IronicError> {
        let groups = self.portgroups(Request::get("/v1/portgroups/detail").query("address", mac)).await?;
        Ok(groups.into_iter().filter(|group| group.mac == Some(mac)).collect())
    }

    async fn portgroups(&self, request: Request) -> Result<Vec<Portgroup>, IronicError> {
        let body: Value = self.read(Call::ReadPortgroups, request).await?;
        list(&body["portgroups"]).iter().map(|g| Portgroup::read(g, "GET /v1/portgroups/detail")).collect()
    }

    pub(super) async fn create_portgroup(&self, group: &NewPortgroup) -> Result<Portgroup, IronicError> {
        let request = Request::new(Method::POST, "/v1/portgroups").json(group.to_json());
        let body = self.read(Call::CreatePortgroup, request).await?;
        Portgroup::read(&body, "POST /v1/portgroups")
    }
}
