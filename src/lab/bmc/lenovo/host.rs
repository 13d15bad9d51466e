//! The host behind the BMC: system, boot order, chassis, NICs.

use serde_json::{Value, json};

use super::said::{list, said};
use super::state::{CLASSES, State};
use crate::lab::bmc::tree::{View, healthy, link, uuid_of};
use crate::lab::machine::{Link, Nic, Quirk};

/// What the system takes as `ResetType`.
pub(super) const RESET_TYPES: [&str; 7] =
    ["On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"];

fn power_state(view: &View<'_>) -> &'static str {
    if view.machine.power.on { "On" } else { "Off" }
}

pub(super) fn system(view: &View<'_>, state: &State) -> Value {
    let path = "/redfish/v1/Systems/1";
    let machine = view.machine;
    let (cpu, memory, boot) = (&machine.hardware.cpu, &machine.hardware.memory, &view.settings.boot);
    let mut system = said(
        path,
        "ComputerSystem.v1_17_0.ComputerSystem",
        json!({
            "Id": "1",
            "Name": "ComputerSystem",
            "Description": "This resource is used to represent a computing system for a Redfish implementation.",
            "SystemType": "Physical",
            "Manufacturer": machine.manufacturer,
            "Model": machine.model,
            "SubModel": "7Z23",
            "SKU": "7Z23CTO1WW",
            "SerialNumber": machine.serial,
            "PartNumber": null,
            "AssetTag": "",
            "UUID": uuid_of(&machine.serial),
            "HostName": view.settings.hostname,
            "BiosVersion": machine.hardware.bios.version,
            "PowerState": power_state(view),
            "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
            "ProcessorSummary": {
                "Count": cpu.sockets,
                "LogicalProcessorCount": cpu.count,
                "Model": cpu.model,
                "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
            },
            "MemorySummary": {
                "TotalSystemMemoryGiB": memory.dimms * memory.dimm_gib,
                "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
            },
            "Boot": {
                "BootOptions": link(format!("{path}/BootOptions")),
                "BootOrder": references(&state.classes),
                "BootOrderPropertySelection": "BootOrder",
                "AutomaticRetryConfig": "RetryAlways",
                "BootSourceOverrideEnabled": boot.enabled,
                "BootSourceOverrideEnabled@Redfish.AllowableValues": ["Once", "Disabled"],
                "BootSourceOverrideMode": boot.mode,
                "BootSourceOverrideTarget": boot.target,
                "BootSourceOverrideTarget@Redfish.AllowableValues":
                    ["None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"],
                "UefiTargetBootSourceOverride": null,
            },
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_0.Settings",
                "SettingsObject": link(format!("{path}/Pending")),
                "SupportedApplyTimes": ["OnReset"],
                "Messages": [],
                "Time": null,
            },
            "Bios": link(format!("{path}/Bios")),
            "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
            "Links": {
                "Chassis": [link("/redfish/v1/Chassis/1")],
                "ManagedBy": [link("/redfish/v1/Managers/1")],
            },
            "Actions": {"#ComputerSystem.Reset": {
                "title": "Reset",
                "target": format!("{path}/Actions/ComputerSystem.Reset"),
                "ResetType@Redfish.AllowableValues": RESET_TYPES,
                "@Redfish.ActionInfo": format!("{path}/ResetActionInfo"),
            }},
            "Oem": {"Lenovo": {
                "@odata.type": "#LenovoComputerSystem.v1_0_0.LenovoSystemProperties",
                "SystemStatus": if machine.power.on { "BootingOSOrInUndetectedOS" } else { "SystemPowerOff_StateUnknown" },
                "NumberOfReboots": machine.boots,
                "BootSettings": link(format!("{path}/Oem/Lenovo/BootSettings")),
                "BootSettings@Redfish.Deprecated": "The property is deprecated. Please use BootOrder instead.",
            }},
        }),
    );
    if machine.has(Quirk::Xcc3)
        && let Some(own) = system["Oem"]["Lenovo"].as_object_mut()
    {
        own.retain(|name, _| !name.starts_with("BootSettings"));
    }
    system
}

/// The boot options of classes.
fn references(classes: &[String]) -> Vec<&'static str> {
    let of = |name: &String| CLASSES.iter().find(|class| class.0 == name).map(|class| class.1);
    classes.iter().filter_map(of).collect()
}

/// The classes of boot options; `None` where a reference is of no class.
pub(super) fn names(references: &[String]) -> Option<Vec<String>> {
    let of = |reference: &String| CLASSES.iter().find(|class| class.1 == reference).map(|class| class.0.to_owned());
    references.iter().map(of).collect()
}

pub(super) fn reset_info(path: &str) -> Value {
    said(
        path,
        "ActionInfo.v1_1_2.ActionInfo",
        json!({
            "Id": "Reset",
            "Name": "Reset",
            "Description": "Information of the action 'Reset' of Computer System",
            "Parameters": [
                {"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": RESET_TYPES},
            ],
        }),
    )
}

/// What the next boot takes.
pub(super) fn pending(state: &State, path: &str) -> Value {
    said(
        path,
        "ComputerSystem.v1_17_0.ComputerSystem",
        json!({
            "Id": "Pending",
            "Name": "Pending",
            "Description": "ComputerSystem 1 Pending Setting",
            "Boot": {"BootOrder": references(state.next_classes())},
        }),
    )
}

/// Only classes that are in the order have a boot option.
pub(super) fn boot_options(state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    let listed = CLASSES.iter().filter(|class| state.classes.iter().chain(state.next_classes()).any(|n| n == class.0));
    match rest {
        [] => Some(list(path, "BootOption", listed.map(|class| class.1.to_owned()))),
        [id] => {
            let (n, (_, reference, name)) = listed.enumerate().find(|(_, class)| class.1 == *id)?;
            Some(said(
                path,
                "BootOption.v1_0_4.BootOption",
                json!({
                    "Id": reference,
                    "BootOptionReference": reference,
                    "Name": name,
                    "DisplayName": name,
                    "Description": "This resource shall be used to represent a single boot option contained within a system.",
                    "UefiDevicePath": format!("VenHw_B2AD3248_4F72_4950_A966_CFE5062DB83A_0{n}000000"),
                }),
            ))
        }
        _ => None,
    }
}

/// The vendor's own order. Its members are not there before the collection was read (Q9).
pub(super) fn boot_settings(state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    let ids = ["BootOrder", "CDDVDROMBootOrder", "HardDiskBootOrder", "NetworkBootOrder", "USBBootOrder"];
    match rest {
        [] => Some(list(path, "LenovoBootManager", ids.map(|id| format!("BootOrder.{id}")))),
        [id] if state.built => {
            let kind = id.strip_prefix("BootOrder.").filter(|kind| ids.contains(kind))?;
            let all: Vec<String> = CLASSES.map(|class| class.0.to_owned()).to_vec();
            let none = vec![];
            let (supported, now, next) = match kind {
                "BootOrder" => (&all, &state.classes, state.next_classes()),
                "NetworkBootOrder" => (&state.network, &state.network, state.next_network()),
                _ => (&none, &none, &none),
            };
            Some(said(
                path,
                "LenovoBootManager.v1_0_0.LenovoBootManager",
                json!({
                    "Id": id,
                    "Name": id,
                    "Description": "This resource is used to represent settings for user to select the boot source when the manager is powered on.",
                    "BootOrderSupported": supported,
                    "BootOrderSupported@odata.count": supported.len(),
                    "BootOrderCurrent": now,
                    "BootOrderCurrent@odata.count": now.len(),
                    "BootOrderNext": next,
                    "BootOrderNext@odata.count": next.len(),
                }),
            ))
        }
        _ => None,
    }
}

pub(super) fn chassis(view: &View<'_>, path: &str) -> Value {
    said(
        path,
        "Chassis.v1_19_0.Chassis",
        json!({
            "Id": "1",
            "Name": "Chassis",
            "ChassisType": "RackMount",
            "Manufacturer": view.machine.manufacturer,
            "Model": view.machine.model,
            "SerialNumber": view.machine.serial,
            "PowerState": power_state(view),
            "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
            "Status": healthy(),
            "NetworkAdapters": link(format!("{path}/NetworkAdapters")),
            "Links": {
                "ComputerSystems": [link("/redfish/v1/Systems/1")],
                "ManagedBy": [link("/redfish/v1/Managers/1")],
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

/// A NIC without a reading of its link is no interface of the system, as in the capture.
pub(super) fn interfaces(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let told = view.machine.nics.iter().filter(|nic| !nic.unreported).collect::<Vec<&Nic>>();
    match rest {
        [] => {
            let ids = (1..=told.len()).map(|n| format!("NIC{n}")).chain(["ToManager".to_owned()]);
            Some(list(path, "EthernetInterface", ids))
        }
        ["ToManager"] => Some(said(
            path,
            "EthernetInterface.v1_8_0.EthernetInterface",
            json!({
                "Id": "ToManager",
                "Name": "Host Ethernet Interface",
                "Description": "Host Network Interface",
                "EthernetInterfaceType": "Physical",
                "LinkStatus": "LinkDown",
                "InterfaceEnabled": false,
                "SpeedMbps": null,
                "Status": {"Health": "OK", "State": "Disabled"},
                "IPv4Addresses": [],
                "Links": {"Chassis": link("/redfish/v1/Chassis/1")},
            }),
        )),
        [id] => {
            let nic = told.get(id.strip_prefix("NIC")?.parse::<usize>().ok()?.checked_sub(1)?)?;
            let mac = nic.mac.to_string().to_uppercase();
            Some(said(
                path,
                "EthernetInterface.v1_8_0.EthernetInterface",
                json!({
                    "Id": id,
                    "Name": "External Ethernet Interface",
                    "Description": "External Ethernet Interface",
                    "LinkStatus": link_status(view, nic),
                    "InterfaceEnabled": true,
                    "MACAddress": mac,
                    "PermanentMACAddress": mac,
                    "SpeedMbps": null,
                    "HostName": "",
                    "FQDN": "",
                    "Status": healthy(),
                    "IPv4Addresses": [],
                    "NameServers": [],
                    "Links": {"Chassis": link("/redfish/v1/Chassis/1")},
                }),
            ))
        }
        _ => None,
    }
}

/// One adapter a slot. One without a side-band has no ports.
pub(super) fn adapters(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let slot_of = |nic: &Nic| format!("slot-{}", nic.slot.rsplit(' ').next().unwrap_or("1"));
    let Some((id, rest)) = rest.split_first() else {
        let mut slots: Vec<String> = view.machine.nics.iter().map(slot_of).collect();
        slots.dedup();
        return Some(list(path, "NetworkAdapter", slots));
    };
    let here: Vec<&Nic> = view.machine.nics.iter().filter(|nic| slot_of(nic) == *id).collect();
    let first = here.first()?;
    let told: Vec<&&Nic> = here.iter().filter(|nic| !nic.unreported).collect();
    let adapter = format!("/redfish/v1/Chassis/1/NetworkAdapters/{id}");
    let nth = |text: &str| told.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    match rest {
        [] => Some(said(
            path,
            "NetworkAdapter.v1_9_0.NetworkAdapter",
            json!({
                "Id": id,
                "Name": "Nvidia Network Adapter",
                "Model": format!("{}:{}", first.vendor_id, first.product_id),
                "SerialNumber": format!("{}-{}", view.machine.serial, first.name),
                "Ports": link(format!("{adapter}/Ports")),
                "NetworkDeviceFunctions": link(format!("{adapter}/NetworkDeviceFunctions")),
                "Controllers": [{
                    "FirmwarePackageVersion": "28.37.10.14",
                    "ControllerCapabilities": {
                        "NetworkPortCount": told.len(), "NetworkDeviceFunctionCount": told.len(),
                    },
                    "Location": {"PartLocation": {
                        "ServiceLabel": first.slot, "LocationType": "Slot", "LocationOrdinalValue": 1,
                    }},
                }],
            }),
        )),
        ["Ports"] => Some(list(path, "Port", (1..=told.len()).map(|n| n.to_string()))),
        ["Ports", n] => {
            let nic = nth(n)?;
            Some(said(
                path,
                "Port.v1_6_0.Port",
                json!({
                    "Id": n,
                    "Name": format!("Phyical Port {n}"),
                    "LinkNetworkTechnology": "Ethernet",
                    "LinkStatus": link_status(view, nic),
                    "Ethernet": {"AssociatedMACAddresses": [nic.mac.to_string()]},
                    "CurrentSpeedGbps": null,
                    "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
                }),
            ))
        }
        ["NetworkDeviceFunctions"] => {
            Some(list(path, "NetworkDeviceFunction", (1..=told.len()).map(|n| format!("{n}.1"))))
        }
        ["NetworkDeviceFunctions", id] => {
            let n = id.strip_suffix(".1")?;
            let mac = nth(n)?.mac.to_string();
            Some(said(
                path,
                "NetworkDeviceFunction.v1_8_0.NetworkDeviceFunction",
                json!({
                    "Id": id,
                    "Name": format!("Logical Port {n}"),
                    "NetDevFuncType": "Ethernet",
                    "DeviceEnabled": true,
                    "Ethernet": {"MACAddress": mac, "PermanentMACAddress": mac},
                    "Links": {"PhysicalNetworkPortAssignment": link(format!("{adapter}/Ports/{n}"))},
                    "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
                }),
            ))
        }
        _ => None,
    }
}
