//! Creates a node (E2–E5).

use serde_json::{Map, Value, json};

use super::common::{Desk, Stop};
use super::driver_info::{Credential, Protocol, address, given, whole};
use crate::clients::ironic::{ConflictKind, IronicError, Node};
use crate::config::settings::BmcSettings;
use crate::domain::checks::arch_name;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::{HostFacts, IronicSettings};
use crate::domain::ids::NodeUuid;

impl Desk {
    /// Creates the host's node, with owner and lessee.
    pub async fn create(
        &self,
        facts: &HostFacts,
        credential: &Credential,
        bmc: &BmcSettings,
        pinned: Option<NodeUuid>,
    ) -> Result<Node, Stop> {
        let settings = self.settings(facts)?;
        let protocol = self.protocol(settings)?;
        let address = address(protocol, settings, self.oob_ip(facts)?, bmc);
        let (info, left_out) = whole(protocol, settings, address, credential);
        if !left_out.is_empty() {
            let keys = left_out.join(", ");
            self.cx.note("ironic", format!("ironic_driver_info in NetBox sets {keys}: left out, muster manages them"));
        }
        let body = self.body(settings, info, pinned)?;
        let project = self.project();
        let node = self.post(body, project.as_deref()).await?;
        given().remember(&self.ironic, node.uuid, credential);
        self.wrote("node", "none", format!("created as {} with driver {}", node.uuid, node.driver));
        match project {
            Some(project) => self.own(node, &project).await,
            None => Ok(node),
        }
    }

    /// The enrol project of the instance.
    fn project(&self) -> Option<String> {
        self.cx.env.settings.ironic.get(self.ironic.name())?.project.clone()
    }

    /// The protocol of the driver that NetBox asks for.
    fn protocol(&self, settings: &IronicSettings) -> Result<Protocol, Failure> {
        let driver = settings.driver.as_deref().unwrap_or_default();
        Protocol::of(driver).ok_or_else(|| self.invalid("driver", driver, "one of redfish, idrac, ipmi"))
    }

    pub fn invalid(&self, key: &str, value: &str, wanted: &str) -> Failure {
        let is =
            if value.is_empty() { "is not set".to_owned() } else { format!("is '{}'", super::common::short(value)) };
        self.failure(
            FailureCode::IronicSettingsInvalid,
            format!("ironic_settings.{key} of '{}' {is}, {wanted} is needed", self.host),
            format!(
                "set 'ironic_settings.{key}' in the NetBox config context that applies to '{}', then retry",
                self.host
            ),
        )
    }

    fn body(
        &self,
        settings: &IronicSettings,
        info: Map<String, Value>,
        pinned: Option<NodeUuid>,
    ) -> Result<Map<String, Value>, Failure> {
        // All interfaces are create-only. Ironic picks the default of the driver for those left out (E3).
        if settings.raid_interface.as_deref().is_none_or(str::is_empty) {
            return Err(self.invalid("raid_interface", "", "an interface of the driver (no-raid where there is none)"));
        }
        let interfaces = [
            ("bios_interface", &settings.bios_interface),
            ("boot_interface", &settings.boot_interface),
            ("deploy_interface", &settings.deploy_interface),
            ("firmware_interface", &settings.firmware_interface),
            ("inspect_interface", &settings.inspect_interface),
            ("management_interface", &settings.management_interface),
            ("network_interface", &settings.network_interface),
            ("power_interface", &settings.power_interface),
            ("raid_interface", &settings.raid_interface),
            ("vendor_interface", &settings.vendor_interface),
        ];
        let mut body = Map::new();
        body.insert("name".to_owned(), json!(self.host));
        body.insert("driver".to_owned(), json!(settings.driver));
        body.insert("driver_info".to_owned(), Value::Object(info));
        for (key, value) in interfaces {
            if let Some(value) = value {
                body.insert(key.to_owned(), json!(value));
            }
        }
        if let Some(class) = &settings.resource_class {
            body.insert("resource_class".to_owned(), json!(class));
        }
        let mut properties = Map::new();
        if let Some(arch) = &settings.cpu_arch {
            let name = arch_name(arch).ok_or_else(|| self.invalid("cpu_arch", arch, "x86_64 or aarch64"))?;
            properties.insert("cpu_arch".to_owned(), json!(name));
        }
        if let Some(capabilities) = &settings.capabilities {
            properties.insert("capabilities".to_owned(), json!(capabilities));
        }
        if let Some(hint) = settings.root_device.as_ref().filter(|hint| !hint.is_empty()) {
            properties.insert("root_device".to_owned(), json!(hint));
        }
        if !properties.is_empty() {
            body.insert("properties".to_owned(), Value::Object(properties));
        }
        if let Some(uuid) = pinned {
            body.insert("uuid".to_owned(), json!(uuid));
        }
        Ok(body)
    }

    /// Posts the node with its owner; where creation refuses an owner, without, since a PATCH may set it (E2).
    async fn post(&self, body: Map<String, Value>, project: Option<&str>) -> Result<Node, Failure> {
        let doing = format!("creating the node of '{}'", self.host);
        let mut owned = body.clone();
        if let Some(project) = project {
            owned.insert("owner".to_owned(), json!(project));
            owned.insert("lessee".to_owned(), json!(project));
        }
        let outcome = match self.ironic.create_node(Value::Object(owned)).await {
            Err(IronicError::Invalid { said, .. }) if project.is_some() && said.contains("owner") => {
                self.cx.note("ironic", "an owner is refused at creation: it is set right after it");
                self.ironic.create_node(Value::Object(body)).await
            }
            outcome => outcome,
        };
        outcome.map_err(|error| match &error {
            // It was not there a moment ago: it belongs to others, or somebody was quicker.
            IronicError::Conflict { kind: ConflictKind::Name(name), .. } => self.failure(
                FailureCode::IronicConflict,
                format!(
                    "Ironic '{}' has a node named '{name}' already, and these credentials do not see it",
                    self.ironic.name()
                ),
                format!("find the project that owns node '{name}' in Ironic and give the node back, then retry"),
            ),
            _ => self.failed(error, &doing),
        })
    }

    /// Makes the project owner and lessee where the node has none, and reads that back.
    pub async fn own(&self, node: Node, project: &str) -> Result<Node, Stop> {
        let mut patch = Vec::new();
        for (path, value) in [("/owner", &node.owner), ("/lessee", &node.lessee)] {
            if value.is_none() {
                patch.push(json!({"op": "add", "path": path, "value": project}));
            }
        }
        if patch.is_empty() {
            return Ok(node);
        }
        let doing = format!("making '{project}' the owner of node '{}'", node.uuid);
        let owned = self.ironic.patch_node(node.uuid, patch, false).await.map_err(|e| self.stop(e, &node, &doing))?;
        if owned.owner.as_deref() != node.owner.as_deref().or(Some(project)) {
            return Err(self
                .failure(
                    FailureCode::IronicAnswerUnexpected,
                    format!("node '{}' has owner '{:?}' after '{project}' was set", node.uuid, owned.owner),
                    format!("look at the policy of Ironic '{}' on owners, then retry", self.ironic.name()),
                )
                .into());
        }
        self.wrote("owner and lessee", "not set", project);
        Ok(owned)
    }

    /// Whether an earlier attempt created the node and did not come to set its owner.
    pub async fn finish_owner(&self, node: Node) -> Result<Node, Stop> {
        match self.project() {
            Some(project) => self.own(node, &project).await,
            None => Ok(node),
        }
    }
}
