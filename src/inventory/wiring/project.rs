//! Projects NetBox's interfaces, addresses and cables onto the store's.

use crate::clients::netbox::observe::Observed;
use crate::clients::netbox::records::{
    CableDetail, Endpoint, InterfaceRecord, IpAddressRecord, MacAddressRecord, Termination,
};
use crate::domain::wiring::{Cable, CableEnd, INTERFACE, Interface, IpAddress, MacAddress};
use crate::store::Object;

/// A record that has a projection.
pub(super) trait Projected: Observed {
    type Object: Object;
    fn project(self) -> Self::Object;
}

impl Projected for InterfaceRecord {
    type Object = Interface;

    fn project(self) -> Interface {
        let near = ends(self.link_peers, self.link_peers_type.as_deref());
        let mut far = ends(self.connected_endpoints, self.connected_endpoints_type.as_deref());
        // A cable that goes straight to an interface is its own path.
        if far.is_empty() && near.iter().all(|end| end.kind == INTERFACE) {
            far.clone_from(&near);
        }
        Interface {
            netbox_id: self.id,
            device: self.device.id,
            name: self.name,
            kind: self.kind.value,
            enabled: self.enabled.unwrap_or(true),
            mgmt_only: self.mgmt_only,
            label: text(self.label),
            lag: self.lag.map(|lag| lag.id),
            mac: text(self.mac_address),
            cable: self.cable.map(|cable| cable.id),
            near,
            far,
            last_updated: self.last_updated,
        }
    }
}

impl Projected for MacAddressRecord {
    type Object = MacAddress;

    fn project(self) -> MacAddress {
        MacAddress {
            netbox_id: self.id,
            address: self.mac_address,
            interface: owner(self.assigned_object_type.as_deref(), self.assigned_object_id),
            last_updated: self.last_updated,
        }
    }
}

impl Projected for IpAddressRecord {
    type Object = IpAddress;

    fn project(self) -> IpAddress {
        IpAddress {
            netbox_id: self.id,
            address: self.address,
            dns_name: text(self.dns_name),
            interface: owner(self.assigned_object_type.as_deref(), self.assigned_object_id),
            last_updated: self.last_updated,
        }
    }
}

impl Projected for CableDetail {
    type Object = Cable;

    fn project(self) -> Cable {
        Cable {
            netbox_id: self.id,
            label: text(self.label),
            color: text(self.color),
            status: self.status.map(|status| status.value),
            a: terminations(self.a_terminations),
            b: terminations(self.b_terminations),
            last_updated: self.last_updated,
        }
    }
}

fn text(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// The interface that an address is assigned to. A virtual machine's interface has ids of its own.
fn owner(kind: Option<&str>, id: Option<u64>) -> Option<u64> {
    id.filter(|_| kind == Some(INTERFACE))
}

/// In the order of their ids, so that two reads agree.
fn ends(list: Option<Vec<Endpoint>>, kind: Option<&str>) -> Vec<CableEnd> {
    let Some(kind) = kind else { return Vec::new() };
    let mut ends: Vec<CableEnd> = list.into_iter().flatten().map(|end| cable_end(end, kind)).collect();
    ends.sort_unstable();
    ends
}

fn terminations(list: Vec<Termination>) -> Vec<CableEnd> {
    let mut ends: Vec<CableEnd> = list
        .into_iter()
        .map(|end| match end.object {
            Some(object) => cable_end(object, &end.object_type),
            None => CableEnd {
                netbox_id: end.object_id,
                kind: end.object_type,
                device: None,
                device_name: None,
                name: None,
            },
        })
        .collect();
    ends.sort_unstable();
    ends
}

fn cable_end(end: Endpoint, kind: &str) -> CableEnd {
    let (device, device_name) = end.device.map_or((None, None), |device| (Some(device.id), device.name));
    CableEnd { netbox_id: end.id, kind: kind.to_owned(), device, device_name, name: end.name }
}
