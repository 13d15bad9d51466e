//! The host's NICs by their FQDD: as interfaces of the system, and as adapters with ports and functions of the chassis.

use serde_json::{Value, json};

use super::{CHASSIS, SYSTEM};
use crate::lab::bmc::tree::{View, described, link, list};
use crate::lab::machine::{Link, Nic, Quirk};

/// The slot that an adapter is in.
fn slot(nic: &Nic) -> &str {
    nic.slot.rsplit(' ').next().unwrap_or_default()
}

/// What iDRAC calls the only partition of a port.
pub(super) fn fqdd(nic: &Nic) -> String {
    format!("NIC.Slot.{}-{}", slot(nic), nic.port)
}

/// The same in words.
pub(super) fn place(nic: &Nic) -> String {
    format!("NIC in Slot {} Port {}", slot(nic), nic.port)
}

fn adapter(nic: &Nic) -> String {
    format!("NIC.Slot.{}", slot(nic))
}

fn by_fqdd<'a>(view: &'a View<'_>, id: &str) -> Option<&'a Nic> {
    view.machine.nics.iter().find(|nic| fqdd(nic) == id)
}

/// The path of a NIC's function.
pub(super) fn function_path(nic: &Nic) -> String {
    format!("{CHASSIS}/NetworkAdapters/{}/NetworkDeviceFunctions/{}", adapter(nic), fqdd(nic))
}

fn mac(nic: &Nic) -> String {
    nic.mac.to_string().to_uppercase()
}

pub(super) fn interfaces(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let [id] = rest else {
        let ids = view.machine.nics.iter().map(fqdd);
        let list = list(path, "EthernetInterface", "System Ethernet Interface Collection", ids);
        return rest.is_empty().then(|| described(list, "Collection of Ethernet Interfaces for this System"));
    };
    let nic = by_fqdd(view, id)?;
    let (status, speed) = match view.machine.link(nic, view.now) {
        Link::Up => (json!("LinkUp"), nic.speed_mbps),
        Link::Down => (json!("LinkDown"), 0),
        Link::Unknown => (Value::Null, 0),
    };
    let digits: String = mac(nic).split(':').collect();
    Some(json!({
        "@odata.context": "/redfish/v1/$metadata#EthernetInterface.EthernetInterface",
        "@odata.type": "#EthernetInterface.v1_6_4.EthernetInterface",
        "@odata.id": path,
        "Id": id,
        "Name": "System Ethernet Interface",
        "Description": place(nic),
        "EthernetInterfaceType": "Physical",
        "InterfaceEnabled": true,
        "AutoNeg": false,
        "FullDuplex": false,
        "FQDN": null,
        "HostName": null,
        "IPv4Addresses": [],
        "IPv6Addresses": [],
        "LinkStatus": status,
        "Links": {"Chassis": link(CHASSIS)},
        "MACAddress": mac(nic),
        "PermanentMACAddress": mac(nic),
        "MTUSize": null,
        "SpeedMbps": speed,
        "Status": {"Health": "OK", "State": "Enabled"},
        "UefiDevicePath": format!("PciRoot(0x8)/Pci(0x2,0x0)/Pci(0x0,0x0)/MAC({digits},0x1)"),
        "VLAN": {},
    }))
}

pub(super) fn adapters(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let Some((id, rest)) = rest.split_first() else {
        let list = list(path, "NetworkAdapter", "Network Adapter Collection", view.machine.nics.iter().map(adapter));
        return Some(described(list, "Collection Of Network Adapter"));
    };
    let nic = view.machine.nics.iter().find(|nic| adapter(nic) == *id)?;
    let home = format!("{CHASSIS}/NetworkAdapters/{id}");
    // iDRAC10 has dropped what the standard has deprecated.
    let ports = if view.machine.has(Quirk::Idrac10) { "Ports" } else { "NetworkPorts" };
    match rest {
        [] => Some(the_adapter(view, nic, &home, ports)),
        [kind] if *kind == ports => {
            let (kind, name) = if ports == "Ports" {
                ("Port", "Network Port Collection")
            } else {
                ("NetworkPort", "Network Port Collection")
            };
            Some(described(list(path, kind, name, [fqdd(nic)]), "Collection Of Network Port entities"))
        }
        [kind, id] if *kind == ports && *id == fqdd(nic) => Some(port(view, nic, path, ports)),
        ["NetworkDeviceFunctions"] => Some(described(
            list(path, "NetworkDeviceFunction", "Network Device Function Collection", [fqdd(nic)]),
            "Collection Of Network Device Function entities",
        )),
        ["NetworkDeviceFunctions", id] if *id == fqdd(nic) => Some(function(nic, path, &home, ports)),
        _ => None,
    }
}

fn the_adapter(view: &View<'_>, nic: &Nic, path: &str, ports: &str) -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#NetworkAdapter.NetworkAdapter",
        "@odata.type": "#NetworkAdapter.v1_7_0.NetworkAdapter",
        "@odata.id": path,
        "Id": adapter(nic),
        "Name": "Network Adapter View",
        "Description": "Network Adapter View",
        "Manufacturer": "Mellanox Technologies",
        "Model": format!("{}:{}", nic.vendor_id, nic.product_id),
        "PartNumber": format!("{}:{}", nic.vendor_id, nic.product_id),
        "SerialNumber": format!("{}-{}", view.machine.serial, nic.name),
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        ports: link(format!("{path}/{ports}")),
        "NetworkDeviceFunctions": link(format!("{path}/NetworkDeviceFunctions")),
        "Controllers": [{
            "FirmwarePackageVersion": "28.37.10.14",
            "ControllerCapabilities": {"NetworkDeviceFunctionCount": 1, "NetworkPortCount": 1},
            "Links": {
                ports: [link(format!("{path}/{ports}/{}", fqdd(nic)))],
                "NetworkDeviceFunctions": [link(format!("{path}/NetworkDeviceFunctions/{}", fqdd(nic)))],
            },
        }],
    })
}

fn port(view: &View<'_>, nic: &Nic, path: &str, ports: &str) -> Value {
    let state = view.machine.link(nic, view.now);
    let speed = if state == Link::Up { nic.speed_mbps } else { 0 };
    let word = |up: &'static str, down: &'static str| match state {
        Link::Up => json!(up),
        Link::Down => json!(down),
        Link::Unknown => Value::Null,
    };
    if ports == "Ports" {
        return json!({
            "@odata.context": "/redfish/v1/$metadata#Port.Port",
            "@odata.type": "#Port.v1_9_0.Port",
            "@odata.id": path,
            "Id": fqdd(nic),
            "Name": "Network Inteface Card(NIC) Port View",
            "Description": "Instance of Port for NIC",
            "PortId": nic.port.to_string(),
            "CurrentSpeedGbps": speed / 1000,
            "LinkStatus": word("LinkUp", "LinkDown"),
            "LinkNetworkTechnology": "Ethernet",
            "Ethernet": {"AssociatedMACAddresses": [mac(nic)]},
            "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        });
    }
    json!({
        "@odata.context": "/redfish/v1/$metadata#NetworkPort.NetworkPort",
        "@odata.type": "#NetworkPort.v1_4_1.NetworkPort",
        "@odata.id": path,
        "Id": fqdd(nic),
        "Name": "Network Port View",
        "Description": "Network Port View",
        "PhysicalPortNumber": nic.port.to_string(),
        "ActiveLinkTechnology": "Ethernet",
        "AssociatedNetworkAddresses": [mac(nic)],
        "CurrentLinkSpeedMbps": speed,
        "LinkStatus": word("Up", "Down"),
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        "VendorId": nic.vendor_id,
    })
}

fn function(nic: &Nic, path: &str, home: &str, ports: &str) -> Value {
    let port = link(format!("{home}/{ports}/{}", fqdd(nic)));
    let assignment = if ports == "Ports" { "PhysicalNetworkPortAssignment" } else { "PhysicalPortAssignment" };
    json!({
        "@odata.context": "/redfish/v1/$metadata#NetworkDeviceFunction.NetworkDeviceFunction",
        "@odata.type": "#NetworkDeviceFunction.v1_7_0.NetworkDeviceFunction",
        "@odata.id": path,
        "Id": fqdd(nic),
        "Name": "NetworkDeviceFunction",
        "Description": "NetworkDeviceFunction",
        "NetDevFuncType": "Ethernet",
        "NetDevFuncCapabilities": ["Disabled", "Ethernet"],
        "Ethernet": {
            "MACAddress": mac(nic),
            "PermanentMACAddress": mac(nic),
            "MTUSize": null,
            "VLAN": {"VLANEnable": false, "VLANId": 1},
        },
        "Links": {assignment: port},
        "Oem": {"Dell": {
            "@odata.type": "#DellOem.v1_3_0.DellOemResources",
            "DellNIC": {
                "@odata.type": "#DellNIC.v1_5_0.DellNIC",
                "Id": fqdd(nic),
                "FQDD": fqdd(nic),
                "InstanceID": fqdd(nic),
                "Name": "DellNIC",
                "DeviceDescription": place(nic),
                "ProductName": format!("Nvidia Network Adapter - {}", mac(nic)),
                "PCIVendorID": nic.vendor_id,
                "PCIDeviceID": nic.product_id,
            },
        }},
        "Status": {"Health": null, "HealthRollup": null, "State": "Enabled"},
    })
}

/// Where `SYSTEM` lists its interfaces.
pub(super) fn interfaces_path() -> String {
    format!("{SYSTEM}/EthernetInterfaces")
}
