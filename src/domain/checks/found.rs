//! What an inspection found, read tolerantly from Ironic's inventory. Joined to NetBox by MAC only (C-17).
//!
//! Two forms are met. The agent's: `inventory` with `interfaces`, and `plugin_data` with `parsed_lldp`, `lldp_raw`, `dmi`. The
//! inspector's: the neighbours stand in `plugin_data.all_interfaces` as `lldp_processed`, and what `dmi` tells stands in
//! `extra`. Either may lack what the other has; each value is taken from the first place that has it.

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
#[derive(Clone)]
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
        let named = &plugin_data["all_interfaces"];
        let nics = match inventory["interfaces"].as_array() {
            Some(list) => list.iter().map(|value| Nic::read(&value["name"], value, plugin_data)).collect(),
            // An inspector that was given no inventory knows its interfaces by name only.
            None => named
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| Nic::read(&Value::from(name.as_str()), value, plugin_data))
                .collect(),
        };
        Found { inventory, plugin_data, nics }
    }

    /// Whether interfaces were reported at all.
    pub fn has_interfaces(&self) -> bool {
        self.inventory["interfaces"].is_array() || self.plugin_data["all_interfaces"].is_object()
    }

    /// The NIC of a NetBox interface. Where the inventory has its address more than once (a bond, a VLAN on top, two cards
    /// with one address) it is all of them: what one heard was heard, and one without carrier has none. So the order in
    /// which they stand decides nothing.
    pub fn nic(&self, interface: &HostInterface) -> Option<Nic> {
        let mac = interface.mac?;
        let mut all = self.nics.iter().filter(|nic| nic.mac == Some(mac));
        let mut joined = all.next()?.clone();
        for other in all {
            joined.has_carrier = match (joined.has_carrier, other.has_carrier) {
                (Some(a), Some(b)) => Some(a && b),
                (one, other) => one.or(other),
            };
            joined.speed_mbps = joined.speed_mbps.max(other.speed_mbps);
            joined.vendor = joined.vendor.or_else(|| other.vendor.clone());
            joined.neighbours.extend(other.neighbours.iter().cloned());
        }
        joined.neighbours.sort();
        joined.neighbours.dedup();
        Some(joined)
    }
}

impl Nic {
    fn read(name: &Value, value: &Value, plugin_data: &Value) -> Self {
        let name = name.as_str().unwrap_or_default().to_owned();
        let (named, extra) = (&plugin_data["all_interfaces"][&name], &plugin_data["extra"]["network"][&name]);
        let first = |places: &[&'_ Value]| places.iter().find(|v| !list(v).is_empty()).map(|v| (*v).clone());
        let raw = first(&[&value["lldp"], &plugin_data["lldp_raw"][&name], &named["lldp"]]).unwrap_or_default();
        let parsed = match &plugin_data["parsed_lldp"][&name] {
            Value::Null => &named["lldp_processed"],
            parsed => parsed,
        };
        let mac = [&value["mac_address"], &value["mac"]].into_iter().find_map(|m| m.as_str()?.parse().ok());
        Nic {
            mac,
            has_carrier: value["has_carrier"].as_bool().or_else(|| named["has_carrier"].as_bool()),
            speed_mbps: value["speed_mbps"].as_u64().or_else(|| speed(&extra["size"])),
            vendor: value["vendor"].as_str().and_then(pci_id),
            neighbours: neighbours(parsed, &raw),
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

/// Bits a second as megabits; the hardware collector gives them as a number or as text.
fn speed(bits: &Value) -> Option<u64> {
    number(bits).map(|bits| bits / 1_000_000).filter(|mbps| *mbps > 0)
}

/// A whole number, or a text that is one.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
