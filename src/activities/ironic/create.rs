//! Creates a node (E2–E5).

use super::common::{Desk, Stop};
use super::driver_info::{Credential, access, address, extras, given};
use crate::clients::ironic::{
    BmcAccess, ConflictKind, Interface, IronicError, NewNode, Node, NodeChange, Protocol, RootDeviceHint,
};
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
        let mut wanted = self.wanted_node(settings, access(protocol, address, credential), pinned)?;
        let (extras, left_out) = extras(protocol, settings);
        if !left_out.is_empty() {
            let keys = left_out.join(", ");
            self.cx.note("ironic", format!("ironic_driver_info in NetBox sets {keys}: left out, muster manages them"));
        }
        wanted.extras = extras;
        let project = self.project();
        wanted.project = project.clone();
        let node = self.post(wanted).await?;
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

    fn wanted_node(
        &self,
        settings: &IronicSettings,
        access: BmcAccess,
        pinned: Option<NodeUuid>,
    ) -> Result<NewNode, Failure> {
        // All interfaces are create-only. Ironic picks the default of the driver for those left out (E3).
        if settings.raid_interface.as_deref().is_none_or(str::is_empty) {
            return Err(self.invalid("raid_interface", "", "an interface of the driver (no-raid where there is none)"));
        }
        let interfaces = [
            (Interface::Bios, &settings.bios_interface),
            (Interface::Boot, &settings.boot_interface),
            (Interface::Deploy, &settings.deploy_interface),
            (Interface::Firmware, &settings.firmware_interface),
            (Interface::Inspect, &settings.inspect_interface),
            (Interface::Management, &settings.management_interface),
            (Interface::Network, &settings.network_interface),
            (Interface::Power, &settings.power_interface),
            (Interface::Raid, &settings.raid_interface),
            (Interface::Vendor, &settings.vendor_interface),
        ];
        let interfaces = interfaces.into_iter().filter_map(|(interface, value)| Some((interface, value.clone()?)));
        let named = |arch: &String| {
            let name = arch_name(arch).ok_or_else(|| self.invalid("cpu_arch", arch, "x86_64 or aarch64"));
            name.map(str::to_owned)
        };
        Ok(NewNode {
            name: self.host.clone(),
            uuid: pinned,
            driver: settings.driver.clone().unwrap_or_default(),
            access,
            extras: Default::default(),
            interfaces: interfaces.collect(),
            resource_class: settings.resource_class.clone(),
            cpu_arch: settings.cpu_arch.as_ref().map(named).transpose()?,
            capabilities: settings.capabilities.clone(),
            root_device: settings.root_device.as_ref().and_then(RootDeviceHint::of),
            project: None,
        })
    }

    /// Posts the node with its owner; where creation refuses an owner, without, since a PATCH may set it (E2).
    async fn post(&self, mut wanted: NewNode) -> Result<Node, Failure> {
        let doing = format!("creating the node of '{}'", self.host);
        let outcome = match self.ironic.create_node(&wanted).await {
            Err(IronicError::Invalid { said, .. }) if wanted.project.is_some() && said.contains("owner") => {
                self.cx.note("ironic", "an owner is refused at creation: it is set right after it");
                wanted.project = None;
                self.ironic.create_node(&wanted).await
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
        let mut changes = Vec::new();
        if node.owner.is_none() {
            changes.push(NodeChange::Owner(project.to_owned()));
        }
        if node.lessee.is_none() {
            changes.push(NodeChange::Lessee(project.to_owned()));
        }
        if changes.is_empty() {
            return Ok(node);
        }
        let doing = format!("making '{project}' the owner of node '{}'", node.uuid);
        let owned = self.ironic.change_node(node.uuid, &changes).await.map_err(|e| self.stop(e, &node, &doing))?;
        let kept =
            |now: &Option<String>, before: &Option<String>| now.as_deref() == before.as_deref().or(Some(project));
        if !kept(&owned.owner, &node.owner) || !kept(&owned.lessee, &node.lessee) {
            return Err(self
                .failure(
                    FailureCode::IronicAnswerUnexpected,
                    format!(
                        "node '{}' has owner '{}' and lessee '{}' after '{project}' was set",
                        node.uuid,
                        owned.owner.as_deref().unwrap_or("none"),
                        owned.lessee.as_deref().unwrap_or("none")
                    ),
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
