//! The changes of nodes that enrollment may make at all. What is not here can't be asked for: no name, no UUID, no instance,
//! no provision state, no other driver than `ipmi`.

use serde_json::{Map, Value, json};

use super::access::BmcAccess;
use crate::domain::ids::NodeUuid;

/// A change of a node that is there.
#[derive(Debug, Clone)]
pub enum NodeChange {
    Owner(String),
    Lessee(String),
    Access(BmcAccess),
    RaidInterface(String),
    RootDevice(RootDevice),
}

impl NodeChange {
    pub(super) fn patch(&self) -> Vec<Value> {
        let add = |path: &str, value: Value| vec![json!({"op": "add", "path": path, "value": value})];
        match self {
            NodeChange::Owner(project) => add("/owner", json!(project)),
            NodeChange::Lessee(project) => add("/lessee", json!(project)),
            NodeChange::Access(access) => access.patch(),
            NodeChange::RaidInterface(name) => {
                vec![json!({"op": "replace", "path": "/raid_interface", "value": name})]
            }
            NodeChange::RootDevice(RootDevice::Set(hint)) => add("/properties/root_device", json!(hint.0)),
            NodeChange::RootDevice(RootDevice::Remove(_)) => {
                vec![json!({"op": "remove", "path": "/properties/root_device"})]
            }
        }
    }
}

/// What becomes of the only pin of the OS disk (E14).
#[derive(Debug, Clone, PartialEq)]
pub enum RootDevice {
    Set(RootDeviceHint),
    /// Only with the proof that software RAID decides where the system goes.
    Remove(SoftwareRaid),
}

/// A hint that says something: an empty one would be a removal.
#[derive(Debug, Clone, PartialEq)]
pub struct RootDeviceHint(Map<String, Value>);

impl RootDeviceHint {
    /// `None` for an empty one.
    pub fn of(hint: &Map<String, Value>) -> Option<Self> {
        (!hint.is_empty()).then(|| RootDeviceHint(hint.clone()))
    }

    pub(super) fn value(&self) -> Value {
        json!(self.0)
    }
}

/// The proof that a node gets its disks by software RAID. Made from a RAID target that has such a disk, and from nothing
/// else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftwareRaid(());

impl SoftwareRaid {
    /// `None` where no disk of the target is a software one.
    pub fn of(target: &Map<String, Value>) -> Option<Self> {
        let disks = target.get("logical_disks").and_then(Value::as_array)?;
        disks.iter().any(|disk| disk["controller"] == "software").then_some(SoftwareRaid(()))
    }
}

macro_rules! interfaces {
    ($($variant:ident = $key:literal,)*) => {
        /// A kind of interface of a node's hardware type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Interface { $($variant,)* }

        impl Interface {
            /// The field's name.
            pub fn key(self) -> &'static str {
                match self { $(Interface::$variant => $key,)* }
            }
        }
    };
}

interfaces! {
    Bios = "bios_interface",
    Boot = "boot_interface",
    Deploy = "deploy_interface",
    Firmware = "firmware_interface",
    Inspect = "inspect_interface",
    Management = "management_interface",
    Network = "network_interface",
    Power = "power_interface",
    Raid = "raid_interface",
    Storage = "storage_interface",
    Vendor = "vendor_interface",
}

/// A node to be.
#[derive(Debug, Clone)]
pub struct NewNode {
    pub name: String,
    /// Pinned (E5); otherwise Ironic picks one.
    pub uuid: Option<NodeUuid>,
    pub driver: String,
    pub access: BmcAccess,
    /// What stands in `driver_info` beside the access.
    pub extras: Map<String, Value>,
    pub interfaces: Vec<(Interface, String)>,
    pub resource_class: Option<String>,
    pub cpu_arch: Option<String>,
    pub capabilities: Option<String>,
    pub root_device: Option<RootDeviceHint>,
    /// Owner and lessee.
    pub project: Option<String>,
}

impl NewNode {
    pub(super) fn wants_firmware(&self) -> bool {
        self.interfaces.iter().any(|(interface, _)| *interface == Interface::Firmware)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut info = self.extras.clone();
        self.access.fill(&mut info);
        let mut body = json!({"name": self.name, "driver": self.driver, "driver_info": info});
        for (interface, value) in &self.interfaces {
            body[interface.key()] = json!(value);
        }
        let mut properties = Map::new();
        if let Some(arch) = &self.cpu_arch {
            properties.insert("cpu_arch".to_owned(), json!(arch));
        }
        if let Some(capabilities) = &self.capabilities {
            properties.insert("capabilities".to_owned(), json!(capabilities));
        }
        if let Some(hint) = &self.root_device {
            properties.insert("root_device".to_owned(), hint.value());
        }
        if !properties.is_empty() {
            body["properties"] = Value::Object(properties);
        }
        for (key, value) in [
            ("resource_class", self.resource_class.as_ref()),
            ("owner", self.project.as_ref()),
            ("lessee", self.project.as_ref()),
        ] {
            if let Some(value) = value {
                body[key] = json!(value);
            }
        }
        if let Some(uuid) = self.uuid {
            body["uuid"] = json!(uuid);
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// Proves: E14
    #[test]
    fn a_removal_of_the_hint_wants_a_software_disk_and_an_empty_hint_is_none() {
        let raid = |controller: &str| object(json!({"logical_disks": [{"size_gb": "MAX", "controller": controller}]}));
        assert!(SoftwareRaid::of(&raid("software")).is_some());
        for none in [raid("PERC H755"), object(json!({})), object(json!({"logical_disks": "software"}))] {
            assert_eq!(SoftwareRaid::of(&none), None, "{none:?}");
        }
        assert_eq!(RootDeviceHint::of(&Map::new()), None);
    }

    /// Everything that a change can come to, path by path: what is not here cannot leave.
    ///
    /// Proves: E5, E14
    #[test]
    fn no_change_touches_anything_else_than_owner_access_raid_interface_and_hint() {
        let access = BmcAccess {
            protocol: super::super::access::Protocol::Redfish,
            address: "https://192.0.2.1".into(),
            username: "root".into(),
            password: "s3cret".to_owned().into(),
        };
        let hint = RootDeviceHint::of(&object(json!({"wwn": "0x5000"}))).unwrap();
        let raid = SoftwareRaid::of(&object(json!({"logical_disks": [{"controller": "software"}]}))).unwrap();
        let changes = [
            NodeChange::Owner("p".into()),
            NodeChange::Lessee("p".into()),
            NodeChange::Access(access),
            NodeChange::RaidInterface("agent".into()),
            NodeChange::RootDevice(RootDevice::Set(hint)),
            NodeChange::RootDevice(RootDevice::Remove(raid)),
        ];
        let paths: Vec<String> = changes
            .iter()
            .flat_map(NodeChange::patch)
            .map(|op| format!("{} {}", op["op"].as_str().unwrap(), op["path"].as_str().unwrap()))
            .collect();
        let expected = [
            "add /owner",
            "add /lessee",
            "add /driver_info/redfish_address",
            "add /driver_info/redfish_username",
            "add /driver_info/redfish_password",
            "replace /raid_interface",
            "add /properties/root_device",
            "remove /properties/root_device",
        ];
        assert_eq!(paths, expected);
    }
}
