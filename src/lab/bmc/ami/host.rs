//! The host behind the BMC: system, boot options, chassis, NICs.

use serde_json::{Value, json};

use super::Ids;
use super::said::{list, said};
use super::state::{BootOption, State};
use crate::lab::bmc::tree::{View, healthy, link, uuid_of};
use crate::lab::machine::{Link, Nic, Quirk};

/// What the system takes as `ResetType`.
pub(super) const RESET_TYPES: [&str; 4] = ["ForceOff", "ForceRestart", "GracefulShutdown", "On"];

fn power_state(view: &View<'_>) -> &'static str {
    if view.machine.power.on { "On" } else { "Off" }
}

/// Where a resource takes changes for the next boot, where this firmware says so (Q65).
fn annotate(view: &View<'_>, path: &str, body: &mut Value) {
    if !view.machine.has(Quirk::NoSettingsAnnotation) {
        body["@Redfish.Settings"] =
            json!({"@odata.type": "#Settings.v1_2_2.Settings", "SettingsObject": link(format!("{path}/SD"))});
    }
}

pub(super) fn system(view: &View<'_>, state: &State, ids: &Ids) -> Value {
    let path = ids.system();
    let machine = view.machine;
    let (cpu, memory, boot) = (&machine.hardware.cpu, &machine.hardware.memory, &view.settings.boot);
    let mut body = said(
        &path,
        "ComputerSystem.v1_17_0.ComputerSystem",
        json!({
            "Id": ids.system,
            "Name": "System",
            "Description": "System Self",
            "SystemType": "Physical",
            "Manufacturer": machine.manufacturer,
            "Model": machine.model,
            "SerialNumber": machine.serial,
            "PartNumber": " ",
            "SKU": machine.model,
            "AssetTag": "Free form asset tag",
            "UUID": uuid_of(&machine.serial),
            "HostName": null,
            "BiosVersion": machine.hardware.bios.version,
            "PowerState": power_state(view),
            "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
            "IndicatorLED@Redfish.AllowableValues": ["Lit", "Blinking", "Off"],
            "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
            "ProcessorSummary": {
                "Count": cpu.sockets,
                "Model": null,
                "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
            },
            "MemorySummary": {
                "TotalSystemMemoryGiB": memory.dimms * memory.dimm_gib,
                "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
            },
            "Boot": {
                "BootNext": null,
                "BootOptions": link(format!("{path}/BootOptions")),
                "BootOrder": state.order,
                "BootOrderPropertySelection": "BootOrder",
                "BootSourceOverrideEnabled": boot.enabled,
                "BootSourceOverrideMode": null,
                "BootSourceOverrideTarget": boot.target,
                "HttpBootUri": null,
                "UefiTargetBootSourceOverride": null,
            },
            "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
            "Links": {
                "Chassis": [link(ids.chassis())],
                "Chassis@odata.count": 1,
                "ManagedBy": [link(ids.manager())],
                "ManagedBy@odata.count": 1,
            },
            "Actions": {"#ComputerSystem.Reset": {
                "target": format!("{path}/Actions/ComputerSystem.Reset"),
                "@Redfish.ActionInfo": format!("{path}/ResetActionInfo"),
            }},
        }),
    );
    annotate(view, &path, &mut body);
    body
}

/// What the next boot takes.
pub(super) fn system_settings(state: &State, ids: &Ids, path: &str) -> Value {
    said(
        path,
        "ComputerSystem.v1_17_0.ComputerSystem",
        json!({
            "Id": ids.system,
            "Name": "System",
            "Description": "System Self",
            "SystemType": "Physical",
            "Boot": {
                "AliasBootOrder": [],
                "BootNext": null,
                "BootOrder": state.next_order(),
                "BootOrderPropertySelection": "BootOrder",
            },
        }),
    )
}

/// A board of accelerators that calls itself a system.
pub(super) fn baseboard(path: &str) -> Value {
    let mut body = said(
        path,
        "ComputerSystem.v1_17_0.ComputerSystem",
        json!({
            "Id": "HGX_Baseboard_0",
            "Name": "HGX_Baseboard_0",
            "Description": "Computer System",
            "SystemType": "Physical",
            "Manufacturer": "NVIDIA",
            "PowerState": "On",
            "Links": {"ManagedBy": [link("/redfish/v1/Managers/HGX_BMC_0")]},
            "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        }),
    );
    // Another maker's resource: it has none of this one's context.
    body.as_object_mut().map(|body| body.remove("@odata.context"));
    body
}

pub(super) fn reset_info(path: &str) -> Value {
    said(
        path,
        "ActionInfo.v1_1_2.ActionInfo",
        json!({
            "Id": "ResetAction",
            "Name": "ResetAction",
            "Description": "This action is used to reset the Systems",
            "Parameters": [
                {"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": RESET_TYPES},
            ],
        }),
    )
}

pub(super) fn boot_options(view: &View<'_>, state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    let find = |id: &str| state.options.iter().find(|option| option.id == id);
    match rest {
        // By number, whatever the order is.
        [] => {
            let mut ids: Vec<String> = state.options.iter().map(|option| option.id.clone()).collect();
            ids.sort();
            Some(list(path, "BootOption", ids))
        }
        [id] => {
            let option = find(id)?;
            let mut body = boot_option(path, option, option.enabled);
            annotate(view, path, &mut body);
            Some(body)
        }
        [id, "SD"] => {
            let option = find(id)?;
            Some(boot_option(path, option, option.next.unwrap_or(option.enabled)))
        }
        _ => None,
    }
}

fn boot_option(path: &str, option: &BootOption, enabled: bool) -> Value {
    said(
        path,
        "BootOption.v1_0_3.BootOption",
        json!({
            "Id": option.id,
            "Name": option.reference(),
            "BootOptionReference": option.reference(),
            "DisplayName": option.name,
            "Description": option.name,
            "Alias": option.alias,
            "BootOptionEnabled": enabled,
            "UefiDevicePath": option.path,
            "RelatedItem@odata.count": 0,
        }),
    )
}

pub(super) fn chassis(view: &View<'_>, ids: &Ids) -> Value {
    let path = ids.chassis();
    said(
        &path,
        "Chassis.v1_15_0.Chassis",
        json!({
            "Id": ids.system,
            "Description": "High Level Chassis instance",
            "ChassisType": "Other",
            "AssetTag": "Default string",
            "Manufacturer": view.machine.manufacturer,
            "Model": view.machine.model,
            "SerialNumber": view.machine.serial,
            "Name": "Computer System Chassis",
            "PowerState": power_state(view),
            "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
            "Status": healthy(),
            "NetworkAdapters": link(format!("{path}/NetworkAdapters")),
            "Links": {
                "ComputerSystems": [link(ids.system())],
                "ComputerSystems@odata.count": 1,
                "ManagedBy": [link(ids.manager())],
            },
        }),
    )
}

fn link_status(view: &View<'_>, nic: &Nic) -> Value {
    match view.machine.link(nic, view.now) {
        Link::Up => json!("LinkUp"),
        Link::Down => json!("LinkDown"),
        Link::Unknown => Value::Null,
    }
}

fn numbered<'a>(view: &'a View<'_>, id: &str, prefix: &str) -> Option<(usize, &'a Nic)> {
    let n = id.strip_prefix(prefix)?.parse::<usize>().ok()?;
    Some((n, view.machine.nics.get(n)?))
}

pub(super) fn interfaces(view: &View<'_>, ids: &Ids, path: &str, rest: &[&str]) -> Option<Value> {
    let prefix = "EthernetInterface";
    match rest {
        [] => Some(list(path, prefix, (0..view.machine.nics.len()).map(|n| format!("{prefix}{n}")))),
        [id] => {
            let (n, nic) = numbered(view, id, prefix)?;
            let mac = nic.mac.to_string().to_uppercase();
            let function = format!(
                "{}/NetworkAdapters/DevType7_NIC{n}/NetworkDeviceFunctions/NetworkDeviceFunction{n}",
                ids.chassis()
            );
            Some(said(
                path,
                "EthernetInterface.v1_6_2.EthernetInterface",
                json!({
                    "Id": id,
                    "Name": id,
                    "EthernetInterfaceType": "Physical",
                    "InterfaceEnabled": true,
                    "LinkStatus": link_status(view, nic),
                    "MACAddress": mac,
                    "PermanentMACAddress": mac,
                    "MTUSize": 1500,
                    // Live ports say so too.
                    "Status": {"Health": "OK", "State": "Disabled"},
                    "UefiDevicePath": format!("PciRoot(0x{:X})/Pci(0x1,0x0)/Pci(0x0,0x0)", 0x20 * (n + 1)),
                    "Links": {
                        "Chassis": link(ids.chassis()),
                        "NetworkDeviceFunction": link(function),
                    },
                }),
            ))
        }
        _ => None,
    }
}

pub(super) fn adapters(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let Some((id, rest)) = rest.split_first() else {
        return Some(list(path, "NetworkAdapter", (0..view.machine.nics.len()).map(|n| format!("DevType7_NIC{n}"))));
    };
    let (n, nic) = numbered(view, id, "DevType7_NIC")?;
    let adapter = path.split("/NetworkAdapters/").next().map(|at| format!("{at}/NetworkAdapters/{id}"))?;
    let (port, function) = (format!("DevTypeE_Slot{n}_Instance{n}_PORT0"), format!("NetworkDeviceFunction{n}"));
    match rest {
        [] => Some(said(
            path,
            "NetworkAdapter.v1_5_0.NetworkAdapter",
            json!({
                "Id": id,
                "Name": id,
                "Status": {"Health": "OK", "State": "Disabled"},
                "Ports": link(format!("{adapter}/Ports")),
                "NetworkDeviceFunctions": link(format!("{adapter}/NetworkDeviceFunctions")),
                "Controllers": [{
                    "FirmwarePackageVersion": "28.37.10.14",
                    "ControllerCapabilities": {"NetworkDeviceFunctionCount": 1, "NetworkPortCount": 1},
                }],
            }),
        )),
        ["Ports"] => Some(list(path, "Port", [port])),
        // It names no address: its function does.
        ["Ports", id] if *id == port => Some(said(
            path,
            "Port.v1_3_0.Port",
            json!({
                "Id": id,
                "Name": id,
                "PortId": "0",
                "PortProtocol": "Ethernet",
                "LinkNetworkTechnology": "Ethernet",
                "LinkState": "Enabled",
                "LinkStatus": link_status(view, nic),
                "InterfaceEnabled": true,
                "Status": {"Health": "OK", "State": "Disabled"},
            }),
        )),
        ["NetworkDeviceFunctions"] => Some(list(path, "NetworkDeviceFunction", [function])),
        ["NetworkDeviceFunctions", id] if *id == function => {
            let mac = nic.mac.to_string().to_uppercase();
            Some(said(
                path,
                "NetworkDeviceFunction.v1_5_0.NetworkDeviceFunction",
                json!({
                    "Id": id,
                    "Name": id,
                    "NetDevFuncType": "Ethernet",
                    "Ethernet": {"MACAddress": mac, "PermanentMACAddress": mac, "MTUSize": 1500},
                    "Links": {"PhysicalNetworkPortAssignment": link(format!("{adapter}/Ports/{port}"))},
                    "Status": {"Health": "OK", "State": "Disabled"},
                }),
            ))
        }
        _ => None,
    }
}
