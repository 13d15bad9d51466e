//! What an inspection found, read tolerantly from Ironic's inventory. Joined to NetBox by MAC only (C-17).

use serde_json::Value;

use crate::domain::host::HostInterface;
use crate::domain::lldp::{Neighbour, neighbours};
use crate::domain::mac::Mac;

/// An inventory with what its plugins added.
pub(super) struct Found<'a> {
    pub inventory: &'a Value,
    pub plugin_data: &'a Value,
    pub nics: Vec<Nic>,
}

/// A NIC as the inspection saw it.
pub(super) struct Nic {
    /// The kernel's name: it may change with firmware or slot and joins nothing.
    pub name: String,
    pub mac: Option<Mac>,
    /// `None`: not reported.
    pub has_carrier: Option<bool>,
    pub speed_mbps: Option<u64>,
    /// PCI vendor id, four lower-case hex digits.
    pub vendor: Option<String>,
    pub neighbours: Vec<Neighbour>,
}

impl<'a> Found<'a> {
    pub fn read(inventory: &'a Value, plugin_data: &'a Value) -> Self {
        let nics = list(&inventory["interfaces"]).iter().map(|value| Nic::read(value, plugin_data)).collect();
        Found { inventory, plugin_data, nics }
    }

    /// The NIC of a NetBox interface. Where a bond shows one address twice, the one that heard something.
    pub fn nic(&self, interface: &HostInterface) -> Option<&Nic> {
        let mac = interface.mac?;
        let all = || self.nics.iter().filter(|nic| nic.mac == Some(mac));
        all().find(|nic| !nic.neighbours.is_empty()).or_else(|| all().next())
    }
}

impl Nic {
    fn read(value: &Value, plugin_data: &Value) -> Self {
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        let own = &value["lldp"];
        let raw = if list(own).is_empty() { &plugin_data["lldp_raw"][&name] } else { own };
        Nic {
            mac: value["mac_address"].as_str().and_then(|m| m.parse().ok()),
            has_carrier: value["has_carrier"].as_bool(),
            speed_mbps: value["speed_mbps"].as_u64(),
            vendor: value["vendor"].as_str().and_then(pci_id),
            neighbours: neighbours(&plugin_data["parsed_lldp"][&name], raw),
            name,
        }
    }

    /// Name and address, for lists.
    pub fn shown(&self) -> String {
        match self.mac {
            Some(mac) => format!("{} {mac}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A PCI vendor or product id in one form: four lower-case hex digits (`0x10DE` is `10de`).
pub(super) fn pci_id(text: &str) -> Option<String> {
    let low = text.trim().to_ascii_lowercase();
    let digits = low.strip_prefix("0x").unwrap_or(&low);
    let fits = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| format!("{digits:0>4}"))
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
