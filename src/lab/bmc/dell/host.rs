//! The host behind the iDRAC: system, chassis, firmware, boot options.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::state::{BootEntry, Dell};
use super::{BIOS, BOOT_OPTIONS, BOOT_SOURCES, CHASSIS, JOBS, MANAGER, SYSTEM, firmware, nics};
use crate::lab::bmc::tree::{View, described, link, list, uuid_of};
use crate::lab::machine::Quirk;

/// What the system takes as `ResetType`.
pub(super) const RESET_TYPES: [&str; 8] =
    ["On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"];

fn power_state(view: &View<'_>) -> &'static str {
    if view.machine.power.on { "On" } else { "Off" }
}

pub(super) fn system(view: &View<'_>) -> Value {
    let machine = view.machine;
    let dell = Dell::of(machine);
    let boot = &view.settings.boot;
    let (cpu, memory) = (&machine.hardware.cpu, &machine.hardware.memory);
    let mut sources = json!({"@odata.type": "#DellOem.v1_3_0.DellOemLinks"});
    if !machine.has(Quirk::Idrac10) {
        sources["BootOrder"] = link(BOOT_SOURCES);
        sources["DellBootSources"] = link(BOOT_SOURCES);
    }
    json!({
        "@odata.context": "/redfish/v1/$metadata#ComputerSystem.ComputerSystem",
        "@odata.type": "#ComputerSystem.v1_16_0.ComputerSystem",
        "@odata.id": SYSTEM,
        "@Redfish.Settings": {
            "@odata.context": "/redfish/v1/$metadata#Settings.Settings",
            "@odata.type": "#Settings.v1_3_5.Settings",
            "SettingsObject": link(format!("{SYSTEM}/Settings")),
            "SupportedApplyTimes": ["OnReset"],
        },
        "Id": "System.Embedded.1",
        "Name": "System",
        "Description": "Computer System which represents a machine (physical or virtual) and the local resources such as memory, cpu and other devices that can be accessed from that machine.",
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SerialNumber": machine.serial,
        "SKU": machine.serial,
        "UUID": uuid_of(&machine.serial),
        "SystemType": "Physical",
        "BiosVersion": machine.hardware.bios.version,
        "HostName": "",
        "AssetTag": "",
        "IndicatorLED": if view.settings.locator { "Blinking" } else { "Lit" },
        "LocationIndicatorActive": view.settings.locator,
        "PowerState": power_state(view),
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        "ProcessorSummary": {"Count": cpu.sockets, "Model": cpu.model},
        "MemorySummary": {"TotalSystemMemoryGiB": memory.dimms * memory.dimm_gib, "MemoryMirroring": "System"},
        "Boot": {
            "BootOptions": link(BOOT_OPTIONS),
            "BootOrder": order(&dell),
            "BootOrder@odata.count": dell.options.len(),
            "BootSourceOverrideEnabled": boot.enabled,
            "BootSourceOverrideMode": boot.mode,
            "BootSourceOverrideTarget": boot.target,
            "UefiTargetBootSourceOverride": null,
            "BootSourceOverrideTarget@Redfish.AllowableValues":
                ["None", "Pxe", "Floppy", "Cd", "Hdd", "BiosSetup", "Utilities", "UefiTarget", "SDCard", "UefiHttp"],
        },
        "Bios": link(BIOS),
        "EthernetInterfaces": link(nics::interfaces_path()),
        "Links": {
            "Chassis": [link(CHASSIS)],
            "ManagedBy": [link(MANAGER)],
            "Oem": {"Dell": sources},
        },
        "Actions": {"#ComputerSystem.Reset": {
            "target": format!("{SYSTEM}/Actions/ComputerSystem.Reset"),
            "ResetType@Redfish.AllowableValues": RESET_TYPES,
        }},
    })
}

/// What is staged of the system itself: the boot order.
pub(super) fn system_settings(view: &View<'_>, path: &str) -> Value {
    let staged = Dell::of(view.machine).staged_boot;
    let order = staged.map(|staged| staged.into_iter().map(|(reference, _)| reference).collect::<Vec<_>>());
    json!({
        "@odata.context": "/redfish/v1/$metadata#ComputerSystem.ComputerSystem",
        "@odata.type": "#ComputerSystem.v1_20_1.ComputerSystem",
        "@odata.id": path,
        "Id": "Settings",
        "Name": "System Configuration Pending Settings",
        "Boot": {"BootOrder": order.unwrap_or_default()},
    })
}

fn order(dell: &Dell) -> Vec<&str> {
    dell.options.iter().map(|option| option.reference.as_str()).collect()
}

pub(super) fn chassis(view: &View<'_>) -> Value {
    let machine = view.machine;
    json!({
        "@odata.context": "/redfish/v1/$metadata#Chassis.Chassis",
        "@odata.type": "#Chassis.v1_16_0.Chassis",
        "@odata.id": CHASSIS,
        "Id": "System.Embedded.1",
        "Name": "Computer System Chassis",
        "ChassisType": "RackMount",
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SerialNumber": machine.serial,
        "SKU": machine.serial,
        "AssetTag": null,
        "IndicatorLED": if view.settings.locator { "Blinking" } else { "Lit" },
        "PowerState": power_state(view),
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        "NetworkAdapters": link(format!("{CHASSIS}/NetworkAdapters")),
        "Links": {
            "ComputerSystems": [link(SYSTEM)],
            "ManagedBy": [link(MANAGER)],
            "ManagersInChassis": [link(MANAGER)],
        },
    })
}

/// `Bios`, `Bios/Settings` and the registry.
pub(super) fn bios(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let dell = Dell::of(view.machine);
    let resource = |id: &str, name: &str| {
        json!({
            "@odata.context": "/redfish/v1/$metadata#Bios.Bios",
            "@odata.type": "#Bios.v1_2_0.Bios",
            "@odata.id": path,
            "Id": id,
            "Name": name,
            "Description": name,
            "AttributeRegistry": "BiosAttributeRegistry.v1_0_3",
        })
    };
    match rest {
        [] => {
            let mut body = resource("Bios", "BIOS Configuration Current Settings");
            body["Attributes"] = json!(firmware::shown(view.machine, &dell));
            body["@Redfish.Settings"] = settings_of(&format!("{BIOS}/Settings"));
            Some(body)
        }
        ["Settings"] => {
            let mut body = resource("Settings", "BIOS Configuration Pending Settings");
            body["Attributes"] = json!(dell.staged_bios);
            let target = format!("{path}/Actions/Oem/DellManager.ClearPending");
            body["Actions"] = json!({"Oem": {"DellManager.v1_0_0#DellManager.ClearPending": {"target": target}}});
            body["Oem"] = oem_jobs();
            Some(body)
        }
        ["BiosRegistry"] => Some(firmware::registry(view.machine, &dell, path)),
        _ => None,
    }
}

fn settings_of(path: &str) -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#Settings.Settings",
        "@odata.type": "#Settings.v1_3_3.Settings",
        "SettingsObject": link(path),
        "SupportedApplyTimes": ["OnReset", "AtMaintenanceWindowStart", "InMaintenanceWindowOnReset"],
    })
}

fn oem_jobs() -> Value {
    json!({"Dell": {
        "@odata.context": "/redfish/v1/$metadata#DellManager.DellManager",
        "@odata.type": "#DellManager.v1_2_0.DellManager",
        "Jobs": link(JOBS),
    }})
}

/// The options, listed by their numbers: not in the order in which they are tried.
pub(super) fn boot_options(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let dell = Dell::of(view.machine);
    match rest {
        [] => {
            let mut ids: Vec<String> = dell.options.iter().map(|option| option.reference.clone()).collect();
            ids.sort();
            Some(described(list(path, "BootOption", "Boot Options Collection", ids), "Collection of BootOptions"))
        }
        [id] => {
            let option = dell.options.iter().find(|option| option.reference == *id)?;
            let mut body = json!({
                "@odata.context": "/redfish/v1/$metadata#BootOption.BootOption",
                "@odata.type": "#BootOption.v1_0_4.BootOption",
                "@odata.id": path,
                "Id": id,
                "Name": "Uefi Boot Option",
                "Description": "Current settings of the UEFI Boot option",
                "BootOptionReference": id,
                "BootOptionEnabled": option.enabled,
                "DisplayName": option.name,
                "UefiDevicePath": option.path,
            });
            if let Some(fqdd) = &option.nic {
                body["RelatedItem"] = related(view, fqdd);
            }
            Some(body)
        }
        _ => None,
    }
}

fn related(view: &View<'_>, fqdd: &str) -> Value {
    let nic = view.machine.nics.iter().find(|nic| nics::fqdd(nic) == fqdd);
    match nic {
        Some(nic) if !view.machine.has(Quirk::RelatedItemNull) && !view.machine.has(Quirk::Idrac10) => {
            json!([link(nics::function_path(nic))])
        }
        _ => Value::Null,
    }
}

/// The boot sources in force and staged; iDRAC10 has none.
pub(super) fn boot_sources(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    if view.machine.has(Quirk::Idrac10) {
        return None;
    }
    let dell = Dell::of(view.machine);
    let resource = |id: &str, name: &str, attributes: Value| {
        json!({
            "@odata.context": "/redfish/v1/$metadata#DellBootSources.DellBootSources",
            "@odata.type": "#DellBootSources.v1_0_0.DellBootSources",
            "@odata.id": path,
            "Id": id,
            "Name": name,
            "Description": name,
            "AttributeRegistry": "DellBootSourcesRegistry.v1_1_0",
            "Attributes": attributes,
        })
    };
    match rest {
        [] => {
            let sequence = dell.options.iter().enumerate().map(|(n, option)| source(option, n, option.enabled));
            let attributes = json!({"UefiBootSeq": sequence.collect::<Vec<Value>>()});
            let mut body = resource("DellBootSources", "Boot Sources Configuration Current Settings", attributes);
            body["@Redfish.Settings"] = settings_of(&format!("{BOOT_SOURCES}/Settings"));
            Some(body)
        }
        ["Settings"] => {
            let staged = dell.staged_boot.clone().map(|staged| {
                let of = |reference: &str| dell.options.iter().find(|option| option.reference == reference);
                let entries = staged.iter().enumerate();
                let entries = entries.filter_map(|(n, (reference, on))| Some(source(of(reference)?, n, *on)));
                json!({"UefiBootSeq": entries.collect::<Vec<Value>>()})
            });
            let name = "Boot Sources Configuration Pending Settings";
            let mut body = resource("Settings", name, staged.unwrap_or_else(|| json!({})));
            let target = format!("{path}/Actions/DellManager.ClearPending");
            body["Actions"] = json!({"#DellManager.ClearPending": {"target": target}});
            body["Oem"] = oem_jobs();
            Some(body)
        }
        _ => None,
    }
}

fn source(option: &BootEntry, index: usize, enabled: bool) -> Value {
    json!({"Enabled": enabled, "Id": source_id(option), "Index": index, "Name": option.source})
}

/// The name that a boot source has for writes.
pub(super) fn source_id(option: &BootEntry) -> String {
    let digest = Sha256::digest(format!("{} {:?}", option.source, option.path));
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("BIOS.Setup.1-1#UefiBootSeq#{}#{digest}", option.source)
}
