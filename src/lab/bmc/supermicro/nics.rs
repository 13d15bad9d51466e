//! The host's NICs, as interfaces of the system and as adapters of the chassis.

use serde_json::{Value, json};

use crate::lab::bmc::tree::{View, described, healthy, link, list};
use crate::lab::machine::{Link, Nic};

/// The NICs with their numbers: one adapter each.
fn numbered<'a>(view: &'a View<'_>) -> impl Iterator<Item = (usize, &'a Nic)> {
    view.machine.nics.iter().enumerate().map(|(n, nic)| (n + 1, nic))
}

fn nic<'a>(view: &'a View<'_>, id: &str) -> Option<(usize, &'a Nic)> {
    numbered(view).find(|(n, _)| n.to_string() == id)
}

pub(super) fn interfaces(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => {
            let ids = numbered(view).map(|(n, _)| n.to_string()).chain(["ToManager".to_owned()]);
            let list = list(path, "EthernetInterface", "Ethernet Network Interface Collection", ids);
            Some(described(list, "Collection of EthernetInterfaces for this Computer System"))
        }
        ["ToManager"] => Some(json!({
            "@odata.type": "#EthernetInterface.v1_6_3.EthernetInterface",
            "@odata.id": path,
            "Id": "ToManager",
            "Name": "Manager Ethernet Interface",
            "Description": "Host Network Interface",
            "Status": healthy(),
            "InterfaceEnabled": true,
            "SpeedMbps": 100,
            "AutoNeg": true,
            "FullDuplex": true,
            "MTUSize": 1500,
            "IPv4Addresses": [{
                "Address": "169.254.3.1",
                "SubnetMask": "255.255.255.0",
                "AddressOrigin": "Static",
                "Gateway": "169.254.3.254",
            }],
        "Links": {},
        "Oem": {"Supermicro": {
            "@odata.type": "#SmcEthernetInterfaceExtensions.v1_0_2.EthernetInterface",
            "USBConnection": "RNDIS",
        }},
        })),
        [id] => {
            let (n, nic) = nic(view, id)?;
            let mut body = json!({
                "@odata.type": "#EthernetInterface.v1_6_3.EthernetInterface",
                "@odata.id": path,
                "Id": id,
                "Name": format!("AOC_NIC{n}"),
                "Description": format!("{} port {}", nic.slot, nic.port),
                "Status": healthy(),
                "LinkStatus": null,
                // This tree writes host MACs in lower case here and in upper case under the chassis.
                "MACAddress": nic.mac.to_string(),
                "SpeedMbps": 0,
                "FQDN": null,
                "Links": {"NetworkDeviceFunction":
                    link(format!("/redfish/v1/Chassis/1/NetworkAdapters/{n}/NetworkDeviceFunctions/1"))},
            });
            match view.machine.link(nic, view.now) {
                Link::Up => {
                    body["LinkStatus"] = json!("LinkUp");
                    body["SpeedMbps"] = json!(nic.speed_mbps);
                }
                Link::Down => body["LinkStatus"] = json!("LinkDown"),
                Link::Unknown => {}
            }
            Some(body)
        }
        _ => None,
    }
}

pub(super) fn adapters(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let Some((id, rest)) = rest.split_first() else {
        let ids = numbered(view).map(|(n, _)| n.to_string());
        let list = list(path, "NetworkAdapter", "Network Adapter Collection", ids);
        return Some(described(list, "Network Adapter Collection"));
    };
    let (n, nic) = nic(view, id)?;
    let adapter = format!("/redfish/v1/Chassis/1/NetworkAdapters/{n}");
    match rest {
        [] => Some(the_adapter(view, nic, &adapter)),
        ["Ports"] => {
            Some(described(list(path, "Port", "Network Port Collection", ["1".to_owned()]), "Network Port Collection"))
        }
        ["Ports", "1"] => Some(port(view, nic, path)),
        ["NetworkDeviceFunctions"] => Some(described(
            list(path, "NetworkDeviceFunction", "Network Device Function Collection", ["1".to_owned()]),
            "Network Device Function Collection",
        )),
        ["NetworkDeviceFunctions", "1"] => Some(json!({
            "@odata.type": "#NetworkDeviceFunction.v1_5_0.NetworkDeviceFunction",
            "@odata.id": path,
            "Id": "1",
            "Name": "Network Device Function View",
            "NetDevFuncType": "Ethernet",
            "DeviceEnabled": true,
            "Ethernet": {"MACAddress": nic.mac.to_string().to_uppercase()},
            "Links": {"PhysicalNetworkPortAssignment": link(format!("{adapter}/Ports/1"))},
        })),
        _ => None,
    }
}

fn the_adapter(view: &View<'_>, nic: &Nic, path: &str) -> Value {
    json!({
        "@odata.type": "#NetworkAdapter.v1_5_0.NetworkAdapter",
        "@odata.id": path,
        "Id": path.rsplit('/').next(),
        "Name": "Network Adapter View",
        "Manufacturer": view.machine.manufacturer,
        "Model": format!("{}:{}", nic.vendor_id, nic.product_id),
        "SerialNumber": format!("{}-{}", view.machine.serial, nic.name),
        "PartNumber": format!("{}:{}", nic.vendor_id, nic.product_id),
        "Ports": link(format!("{path}/Ports")),
        "NetworkDeviceFunctions": link(format!("{path}/NetworkDeviceFunctions")),
        "Controllers": [{
            "FirmwarePackageVersion": "28.37.10.14",
            "Links": {
                "Ports": [link(format!("{path}/Ports/1"))],
                "NetworkDeviceFunctions": [link(format!("{path}/NetworkDeviceFunctions/1"))],
            },
            "ControllerCapabilities": {"NetworkPortCount": 1, "NetworkDeviceFunctionCount": 1},
            "Location": {"PartLocation": {
                "ServiceLabel": nic.slot,
                "LocationType": "Slot",
                "LocationOrdinalValue": 1,
            }},
        }],
    })
}

/// A port whose link is not reported lacks the member, as in the capture.
fn port(view: &View<'_>, nic: &Nic, path: &str) -> Value {
    let mut body = json!({
        "@odata.type": "#Port.v1_4_0.Port",
        "@odata.id": path,
        "Id": "1",
        "Ethernet": {"AssociatedMACAddresses": [nic.mac.to_string().to_uppercase()]},
        "Name": "Network Port View",
        "PortId": nic.port.to_string(),
        "PortProtocol": "Ethernet",
        "LinkNetworkTechnology": "Ethernet",
        "PortType": "BidirectionalPort",
    });
    match view.machine.link(nic, view.now) {
        Link::Up => body["LinkStatus"] = json!("LinkUp"),
        Link::Down => body["LinkStatus"] = json!("LinkDown"),
        Link::Unknown => {}
    }
    body
}
