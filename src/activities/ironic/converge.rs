//! Converges what drifts on a node: credential, owner, RAID interface, root-device hint, architecture trait (E13, E14).

use serde_json::{Map, Value, json};

use super::common::{Desk, Stop, shown};
use super::driver_info::{Credential, access, address, given};
use crate::clients::ironic::{Node, NodeChange, Protocol, RootDevice, RootDeviceHint, SoftwareRaid};
use crate::config::settings::BmcSettings;
use crate::domain::checks::arch_trait;
use crate::domain::event::Observation;
use crate::domain::failure::Failure;
use crate::domain::host::{HostFacts, IronicSettings};
use crate::domain::provision::ProvisionState;
use crate::domain::root_device;

/// One difference: the change that mends it, and what the change list says.
struct Difference {
    change: NodeChange,
    what: &'static str,
    before: String,
    after: String,
}

impl Desk {
    /// Brings a node in `enroll` or `manageable` to what NetBox and vault say. One PATCH at most, one trait at most.
    pub async fn converge(
        &self,
        node: Node,
        facts: &HostFacts,
        credential: &Credential,
        bmc: &BmcSettings,
    ) -> Result<Node, Stop> {
        let settings = self.settings(facts)?;
        let wanted_trait = self.wanted_trait(settings)?;
        let mut node = self.finish_owner(node).await?;
        let mut differences = Vec::new();
        if let Some(protocol) = Protocol::of(&node.driver) {
            let address = address(protocol, settings, self.oob_ip(facts)?, bmc);
            differences.extend(self.access(&node, protocol, &address, credential));
        }
        differences.extend(raid_interface(&node, settings));
        let (hint, warnings) = self.root_device(&node, settings);
        differences.extend(hint);
        if !differences.is_empty() {
            let changes: Vec<NodeChange> = differences.iter().map(|d| d.change.clone()).collect();
            let doing = format!("updating node '{}' of '{}'", node.uuid, self.host);
            let before = node;
            let changed = self.ironic.change_node(before.uuid, &changes).await;
            node = changed.map_err(|e| self.stop(e, &before, &doing))?;
            if differences.iter().any(|d| d.what == ACCESS) {
                given().remember(&self.ironic, node.uuid, credential);
            }
            for d in differences {
                self.wrote(d.what, d.before, d.after);
            }
        }
        if let Some(name) = wanted_trait.filter(|name| !node.traits.contains(name)) {
            let doing = format!("adding trait '{name}' to node '{}'", node.uuid);
            self.ironic.add_trait(node.uuid, &name).await.map_err(|e| self.stop(e, &node, &doing))?;
            self.wrote("trait", "not set", &name);
            node = self.node(node.uuid).await?;
        }
        // Last, so that an attempt that meets a lock and comes again does not warn again.
        for warning in warnings {
            self.warn(warning);
        }
        Ok(node)
    }

    /// The scheduler trait: as set in NetBox, else that of the architecture (C-23).
    fn wanted_trait(&self, settings: &IronicSettings) -> Result<Option<String>, Failure> {
        match (&settings.hw_arch_trait, &settings.cpu_arch) {
            (Some(name), _) => Ok(Some(name.clone())),
            (None, Some(arch)) => match arch_trait(arch) {
                Some(name) => Ok(Some(name.to_owned())),
                None => Err(self.invalid("cpu_arch", arch, "x86_64 or aarch64")),
            },
            (None, None) => Ok(None),
        }
    }

    /// Address and credential by the node's actual driver, whatever NetBox's driver is.
    fn access(&self, node: &Node, protocol: Protocol, address: &str, credential: &Credential) -> Option<Difference> {
        let has = |key: &str| node.driver_info.get(key).and_then(Value::as_str).unwrap_or_default();
        let (old_address, old_user) = (has(protocol.address_key()), has(protocol.username_key()));
        let seen_alike =
            old_address.trim_end_matches('/') == address.trim_end_matches('/') && old_user == credential.username;
        let has_password = !has(protocol.password_key()).is_empty();
        // A node that is back in `enroll` with an error failed to `manage`: what is stored may be wrong.
        let doubted = node.state == ProvisionState::Enroll && node.last_error.is_some();
        if seen_alike && has_password && !doubted && given().has(&self.ironic, node.uuid, credential) {
            return None;
        }
        let show = |address: &str, user: &str| match (address, user) {
            ("", "") => "not set".to_owned(),
            _ => format!("{} as '{}', password masked by Ironic", shown(&json!(address)), shown(&json!(user))),
        };
        Some(Difference {
            change: NodeChange::Access(access(protocol, address.to_owned(), credential)),
            what: ACCESS,
            before: show(old_address, old_user),
            after: format!("{address} as '{}', password of the vault", shown(&json!(credential.username))),
        })
    }

    /// NetBox's hint decides where it has one. A hint that NetBox no longer has is removed from software-RAID nodes only:
    /// elsewhere it is the only pin of the OS disk, so it stays, with a warning (E14).
    fn root_device(&self, node: &Node, settings: &IronicSettings) -> (Option<Difference>, Vec<String>) {
        let nothing = Map::new();
        let wanted = settings.root_device.as_ref().unwrap_or(&nothing);
        let has = node.properties.get("root_device").and_then(Value::as_object).unwrap_or(&nothing);
        let (before, after) = (shown(&json!(has)), shown(&json!(wanted)));
        let mut warnings = Vec::new();
        let unstable = root_device::unstable(wanted);
        if !unstable.is_empty() {
            warnings.push(format!(
                "the root device of '{}' is hinted by {}, which may be another disk's after a boot",
                self.host,
                unstable.join(", ")
            ));
        }
        if root_device::same(wanted, has) {
            return (None, warnings);
        }
        let becomes = match RootDeviceHint::of(wanted) {
            Some(hint) => RootDevice::Set(hint),
            None => match software_raid(node, settings) {
                Some(proof) => RootDevice::Remove(proof),
                None => {
                    warnings.push(format!(
                        "node '{}' keeps its root-device hint {before}, which NetBox does not have",
                        node.uuid
                    ));
                    return (None, warnings);
                }
            },
        };
        let change = NodeChange::RootDevice(becomes);
        (Some(Difference { change, what: "root_device", before, after }), warnings)
    }

    pub fn warn(&self, message: String) {
        self.cx.observe(Observation::Warned { phase: self.phase, message });
    }
}

const ACCESS: &str = "BMC access in driver_info";

/// Only for nodes that get a RAID built, and only here, where the state permits it.
fn raid_interface(node: &Node, settings: &IronicSettings) -> Option<Difference> {
    settings.target_raid_config.as_ref().filter(|config| !config.is_empty())?;
    let wanted = settings.raid_interface.as_ref()?;
    let has = node.interfaces.get("raid_interface");
    if has == Some(wanted) {
        return None;
    }
    Some(Difference {
        change: NodeChange::RaidInterface(wanted.clone()),
        what: "raid_interface",
        before: has.cloned().unwrap_or_else(|| "not set".to_owned()),
        after: wanted.clone(),
    })
}

/// By NetBox's target, or by the one that the node has.
fn software_raid(node: &Node, settings: &IronicSettings) -> Option<SoftwareRaid> {
    settings
        .target_raid_config
        .as_ref()
        .and_then(SoftwareRaid::of)
        .or_else(|| SoftwareRaid::of(&node.target_raid_config))
}
