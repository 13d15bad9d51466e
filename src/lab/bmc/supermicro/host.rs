//! The host behind the BMC: system and chassis.

use serde_json::{Value, json};

use crate::lab::bmc::tree::{View, healthy, link, uuid_of};

/// What the system takes as `ResetType`.
pub(super) const RESET_TYPES: [&str; 8] =
    ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn", "PowerCycle"];

fn power_state(view: &View<'_>) -> &'static str {
    if view.machine.power.on { "On" } else { "Off" }
}

pub(super) fn system(view: &View<'_>) -> Value {
    let path = "/redfish/v1/Systems/1";
    let machine = view.machine;
    let (cpu, memory) = (&machine.hardware.cpu, &machine.hardware.memory);
    let boot = &view.settings.boot;
    let progress = if machine.power.on { "SystemHardwareInitializationComplete" } else { "None" };
    json!({
        "@odata.type": "#ComputerSystem.v1_14_0.ComputerSystem",
        "@odata.id": path,
        "Id": "1",
        "Name": "System",
        "Description": "Description of server",
        "Status": healthy(),
        "SerialNumber": machine.serial,
        "PartNumber": machine.model,
        "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
        "LocationIndicatorActive": view.settings.locator,
        "SystemType": "Physical",
        "BiosVersion": machine.hardware.bios.version,
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SKU": "0x1D1415D9",
        "UUID": uuid_of(&machine.serial),
        "ProcessorSummary": {
            "Count": cpu.sockets,
            "Model": cpu.model,
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        },
        "MemorySummary": {
            "TotalSystemMemoryGiB": memory.dimms * memory.dimm_gib,
            "MemoryMirroring": "System",
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        },
        "PowerState": power_state(view),
        "Boot": {
            "BootSourceOverrideEnabled": boot.enabled,
            "BootSourceOverrideMode": boot.mode,
            "BootSourceOverrideTarget": boot.target,
            "BootSourceOverrideTarget@Redfish.AllowableValues":
                ["None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"],
            "BootNext": null,
            "BootOrder": [],
        },
        "BootProgress": {"LastState": progress},
        "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
        "Links": {
            "Chassis": [link("/redfish/v1/Chassis/1")],
            "ManagedBy": [link("/redfish/v1/Managers/1")],
        },
        "Actions": {
            "Oem": {},
            "#ComputerSystem.Reset": {
                "target": format!("{path}/Actions/ComputerSystem.Reset"),
                "@Redfish.ActionInfo": format!("{path}/ResetActionInfo"),
            },
        },
        "Oem": {"Supermicro": {"@odata.type": "#SmcSystemExtensions.v1_0_0.System"}},
    })
}

pub(super) fn reset_info() -> Value {
    json!({
        "@odata.type": "#ActionInfo.v1_1_2.ActionInfo",
        "@odata.id": "/redfish/v1/Systems/1/ResetActionInfo",
        "Id": "ResetActionInfo",
        "Name": "Reset Action Info",
        "Parameters": [
            {"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": RESET_TYPES},
        ],
        "Oem": {},
    })
}

pub(super) fn chassis(view: &View<'_>) -> Value {
    let path = "/redfish/v1/Chassis/1";
    json!({
        "@odata.type": "#Chassis.v1_14_0.Chassis",
        "@odata.id": path,
        "Id": "1",
        "Name": "Computer System Chassis",
        "ChassisType": "RackMount",
        "Manufacturer": view.machine.manufacturer,
        "Model": view.machine.model,
        "SerialNumber": view.machine.serial,
        "PartNumber": view.machine.model,
        "AssetTag": null,
        "IndicatorLED": if view.settings.locator { "Blinking" } else { "Off" },
        "LocationIndicatorActive": view.settings.locator,
        "PowerState": power_state(view),
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "NetworkAdapters": link(format!("{path}/NetworkAdapters")),
        "Links": {
            "ComputerSystems": [link("/redfish/v1/Systems/1")],
            "ManagedBy": [link("/redfish/v1/Managers/1")],
            "ManagersInChassis": [link("/redfish/v1/Managers/1")],
        },
        "Oem": {"Supermicro": {"@odata.type": "#SmcChassisExtensions.v1_0_0.Chassis"}},
    })
}
