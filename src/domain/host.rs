//! A host as NetBox records it, read whole for one step of a run: addresses, interfaces, cables and settings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::link::CableEnd;
use super::mac::Mac;

/// What a run's steps need to know of a host. Read live from NetBox by every step that needs it (S2).
#[derive(Debug, Clone, PartialEq)]
pub struct HostFacts {
    pub netbox_id: u64,
    pub name: String,
    pub status: String,
    pub site: SiteFacts,
    pub rack: Option<String>,
    pub position: Option<f64>,
    pub serial: Option<String>,
    pub device_class: Option<String>,
    pub manufacturer: String,
    pub model: String,
    /// Slugs.
    pub tags: Vec<String>,
    /// Out-of-band address, prefix length taken off (C-25).
    pub oob_ip: Option<IpAddr>,
    /// The management interface: the one that carries `oob_ip`, else the only `mgmt_only` one.
    pub management: Option<HostInterface>,
    /// All other interfaces, in NetBox's natural order of names.
    pub interfaces: Vec<HostInterface>,
    /// `config_context.ironic_settings`, where there is one.
    pub ironic_settings: Option<IronicSettings>,
}

/// The NetBox site's fields that enrollment uses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SiteFacts {
    pub netbox_id: u64,
    pub slug: String,
    pub name: String,
    /// Custom fields with a text value that is not empty.
    pub fields: BTreeMap<String, String>,
}

/// An interface of a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostInterface {
    pub netbox_id: u64,
    pub name: String,
    /// `None` where NetBox has none or a value that is no MAC.
    pub mac: Option<Mac>,
    /// NetBox's interface type (`100gbase-x-qsfp28`, `lag`, …).
    pub kind: String,
    pub mgmt_only: bool,
    /// Name of the LAG that it belongs to.
    pub lag: Option<String>,
    pub label: String,
    pub description: String,
    /// The far end of its cable path, where it is cabled.
    pub peer: Option<CablePeer>,
}

/// The far end of a cable path: a switch port, through patch panels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CablePeer {
    pub switch: String,
    pub port: String,
    /// The LAG that the switch port belongs to.
    pub port_lag: Option<String>,
    pub cable_label: Option<String>,
    pub cable_color: Option<String>,
}

impl CablePeer {
    /// The physical end, as views show it.
    pub fn end(&self) -> CableEnd {
        CableEnd {
            switch: self.switch.clone(),
            port: self.port.clone(),
            label: self.cable_label.clone(),
            color: self.cable_color.clone(),
        }
    }
}

/// `config_context.ironic_settings`: what NetBox says of the node to be. Unknown keys are left to whoever reads them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IronicSettings {
    /// `redfish`, `idrac` or `ipmi`.
    pub driver: Option<String>,
    pub bios_interface: Option<String>,
    pub boot_interface: Option<String>,
    pub deploy_interface: Option<String>,
    pub firmware_interface: Option<String>,
    pub inspect_interface: Option<String>,
    pub management_interface: Option<String>,
    pub network_interface: Option<String>,
    pub power_interface: Option<String>,
    pub raid_interface: Option<String>,
    pub vendor_interface: Option<String>,
    pub resource_class: Option<String>,
    pub cpu_arch: Option<String>,
    /// As Ironic takes it: `boot_mode:uefi,…`.
    pub capabilities: Option<String>,
    pub root_device: Option<Map<String, Value>>,
    pub target_raid_config: Option<Map<String, Value>>,
    /// The `HW_ARCH_*` trait; made from `cpu_arch` where it is not set.
    pub hw_arch_trait: Option<String>,
    /// Which interfaces are frontend: those with this word as their description.
    pub interface_type: Option<String>,
    /// Names of the frontend interfaces in order; decides where it is not empty.
    pub interfaces: Vec<String>,
    pub bond: Option<BondSettings>,
    pub skip_cable_verification: bool,
    /// Redfish address for emulated nodes, instead of the one made from `oob_ip`.
    pub redfish_address_override: Option<String>,
    /// Merged into `driver_info`; never overrides a managed key (E4).
    pub ironic_driver_info: Map<String, Value>,
    /// What the inspected hardware has to be; see `domain/checks`.
    pub inspection_validation: Map<String, Value>,
}

/// The bond that the host's frontend interfaces form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BondSettings {
    pub name: Option<String>,
    /// `802.3ad`, `active-backup`, … Only `802.3ad` is a LAG on the switch's side.
    pub mode: Option<String>,
    pub miimon: Option<u32>,
    pub xmit_hash_policy: Option<String>,
}

impl BondSettings {
    /// Whether the switch ends form a LAG, so that its parent is the link's port (I4).
    pub fn is_lag(&self) -> bool {
        self.mode.as_deref() == Some("802.3ad")
    }
}

impl HostFacts {
    /// A host of which nothing is known, for rules that are judged without one.
    pub fn nobody() -> Self {
        HostFacts {
            netbox_id: 0,
            name: String::new(),
            status: String::new(),
            site: SiteFacts::default(),
            rack: None,
            position: None,
            serial: None,
            device_class: None,
            manufacturer: String::new(),
            model: String::new(),
            tags: Vec::new(),
            oob_ip: None,
            management: None,
            interfaces: Vec::new(),
            ironic_settings: None,
        }
    }

    /// The frontend interfaces in their order: those that `ironic_settings.interfaces` names, else those whose description
    /// is the host's `interface_type`. The first one is the provisioning NIC, for the BMC's boot restriction and for
    /// Ironic's PXE port alike (B13, I3).
    pub fn frontend(&self) -> Vec<&HostInterface> {
        let Some(settings) = &self.ironic_settings else { return Vec::new() };
        if !settings.interfaces.is_empty() {
            return settings
                .interfaces
                .iter()
                .filter_map(|name| self.interfaces.iter().find(|i| &i.name == name))
                .collect();
        }
        let Some(kind) = settings.interface_type.as_deref() else { return Vec::new() };
        self.interfaces
            .iter()
            .filter(|i| i.kind != "lag" && i.kind != "virtual" && i.description.trim().eq_ignore_ascii_case(kind))
            .collect()
    }

    /// Names in `ironic_settings.interfaces` that the host has no interface for.
    pub fn frontend_missing(&self) -> Vec<&str> {
        let Some(settings) = &self.ironic_settings else { return Vec::new() };
        settings
            .interfaces
            .iter()
            .map(String::as_str)
            .filter(|name| !self.interfaces.iter().any(|i| i.name == *name))
            .collect()
    }

    /// The provisioning NIC: the first frontend interface (B13).
    pub fn provisioning(&self) -> Option<&HostInterface> {
        self.frontend().into_iter().next()
    }

    /// Two interfaces of this host that claim one MAC, the management one included (I1).
    pub fn duplicate_mac(&self) -> Option<(&HostInterface, &HostInterface)> {
        let all: Vec<&HostInterface> =
            self.management.iter().chain(&self.interfaces).filter(|i| i.kind != "lag" && i.kind != "virtual").collect();
        all.iter().enumerate().find_map(|(n, a)| {
            all[n + 1..]
                .iter()
                .find(|b| a.mac.is_some() && a.mac == b.mac && a.netbox_id != b.netbox_id)
                .map(|b| (*a, *b))
        })
    }

    /// `rack 'B07' U37`, or what of it is known.
    pub fn place(&self) -> String {
        match &self.rack {
            Some(rack) => place_in(rack, self.position),
            None => format!("site {}", self.site.slug),
        }
    }
}

/// `B07 U37`: a place in a rack, for whoever goes there.
pub fn place_in(rack: &str, position: Option<f64>) -> String {
    match position {
        Some(u) => format!("{rack} U{u}"),
        None => format!("{rack}, no U"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(id: u64, name: &str, mac: &str, description: &str) -> HostInterface {
        HostInterface {
            netbox_id: id,
            name: name.into(),
            mac: mac.parse().ok(),
            kind: "100gbase-x-qsfp28".into(),
            description: description.into(),
            ..Default::default()
        }
    }

    fn host(settings: IronicSettings, interfaces: Vec<HostInterface>) -> HostFacts {
        HostFacts {
            netbox_id: 1,
            name: "gpu-b07-37".into(),
            status: "staged".into(),
            site: SiteFacts::default(),
            rack: Some("B07".into()),
            position: Some(37.0),
            serial: None,
            device_class: None,
            manufacturer: "Supermicro".into(),
            model: "SYS".into(),
            tags: vec![],
            oob_ip: None,
            management: None,
            interfaces,
            ironic_settings: Some(settings),
        }
    }

    /// Proves: B13
    #[test]
    fn the_named_interfaces_decide_in_the_order_named() {
        let settings =
            IronicSettings { interfaces: vec!["eth1".into(), "eth0".into(), "eth9".into()], ..Default::default() };
        let host = host(
            settings,
            vec![interface(1, "eth0", "02:00:00:00:00:01", ""), interface(2, "eth1", "02:00:00:00:00:02", "")],
        );
        let names: Vec<_> = host.frontend().iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth1", "eth0"]);
        assert_eq!(host.provisioning().unwrap().name, "eth1");
        assert_eq!(host.frontend_missing(), ["eth9"]);
    }

    #[test]
    fn without_names_the_interface_type_decides() {
        let settings = IronicSettings { interface_type: Some("frontend".into()), ..Default::default() };
        let host = host(settings, vec![interface(1, "eth0", "", "storage"), interface(2, "eth1", "", "Frontend")]);
        assert_eq!(host.provisioning().unwrap().name, "eth1");
    }

    /// Case: C-07
    #[test]
    fn one_mac_on_two_interfaces_is_found_and_two_without_a_mac_are_no_conflict() {
        let twice = vec![interface(1, "eth0", "02:00:00:00:00:01", ""), interface(2, "eth1", "02-00-00-00-00-01", "")];
        let found = host(IronicSettings::default(), twice);
        assert_eq!(found.duplicate_mac().map(|(a, b)| (a.name.as_str(), b.name.as_str())), Some(("eth0", "eth1")));
        let none = vec![interface(1, "eth0", "", ""), interface(2, "eth1", "", "")];
        assert!(host(IronicSettings::default(), none).duplicate_mac().is_none());
    }
}
