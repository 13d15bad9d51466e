//! The host's firmware: its attributes, what its registry says of them, and what a boot makes of staged ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::nics;
use super::state::Dell;
use crate::lab::machine::{Machine, Quirk};

/// PXE and HTTP devices that can be switched on.
const DEVICES: u32 = 4;

/// How many places of the order the firmware takes as attributes.
const FQDD_PLACES: usize = 16;

/// Attributes as the machine leaves the factory with, or as an enrollment leaves them: PXE by its first two NICs.
pub(super) fn first(machine: &Machine, converged: bool) -> BTreeMap<String, Value> {
    let enrolled = if converged { "Enabled" } else { "Disabled" };
    let mut bios: BTreeMap<String, Value> = [
        ("BootMode", json!("Uefi")),
        ("BootSeqRetry", json!("Disabled")),
        ("GenericUsbBoot", json!("Disabled")),
        ("LogicalProc", json!("Disabled")),
        ("ProcVirtualization", json!(enrolled)),
        ("SriovGlobalEnable", json!(enrolled)),
        ("SysProfile", json!("PerfPerWattOptimizedDapc")),
        ("WorkloadProfile", json!("NotConfigured")),
        ("SubNumaCluster", json!("Disabled")),
        ("AcPwrRcvry", json!("Last")),
        ("AcPwrRcvryUserDelay", json!(120)),
        ("InBandManageabilityInterface", json!("Enabled")),
        ("TpmSecurity", json!("On")),
        ("SecureBoot", json!("Disabled")),
        ("AssetTag", json!("")),
        ("SetBootOrderDis", json!("")),
        ("SystemManufacturer", json!(machine.manufacturer)),
        ("SystemModelName", json!(machine.model)),
        ("SystemServiceTag", json!(machine.serial)),
        ("SystemBiosVersion", json!(machine.hardware.bios.version)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    let fqdds: Vec<String> = machine.nics.iter().map(nics::fqdd).collect();
    for n in 1..=DEVICES {
        let of = |n: usize| fqdds.get(n).or(fqdds.first()).cloned().unwrap_or_default();
        let on = |on: bool| json!(if on { "Enabled" } else { "Disabled" });
        let interface = of(n as usize - 1);
        bios.insert(format!("PxeDev{n}EnDis"), on(n <= 2 && (n as usize) <= fqdds.len()));
        bios.insert(format!("PxeDev{n}Interface"), json!(interface));
        bios.insert(format!("PxeDev{n}Protocol"), json!("IPv4"));
        bios.insert(format!("HttpDev{n}EnDis"), on(false));
        bios.insert(format!("HttpDev{n}Interface"), json!(of(0)));
        bios.insert(format!("HttpDev{n}Protocol"), json!("IPv4"));
    }
    for n in 1..=FQDD_PLACES {
        bios.insert(format!("SetBootOrderFqdd{n}"), json!(""));
    }
    bios
}

/// What the firmware shows: the boot options that are enabled, too, and where a quirk says so what is only staged.
pub(super) fn shown(machine: &Machine, dell: &Dell) -> BTreeMap<String, Value> {
    let mut shown = dell.bios.clone();
    let enabled = dell.options.iter().filter(|o| o.enabled && !o.source.starts_with("Unknown."));
    let enabled: Vec<&str> = enabled.map(|o| o.source.as_str()).collect();
    shown.insert("SetBootOrderEn".to_owned(), json!(enabled.join(",")));
    if machine.has(Quirk::PendingShownAsCurrent) {
        shown.extend(dell.staged_bios.clone());
    }
    shown
}

/// Network devices that are on: boot source, FQDD of the NIC, and how the option is titled.
pub(super) fn network_devices(bios: &BTreeMap<String, Value>) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for (kind, title) in [("Pxe", "PXE"), ("Http", "HTTP")] {
        for n in 1..=DEVICES {
            let text = |name: &str| bios.get(&format!("{kind}Dev{n}{name}")).and_then(Value::as_str);
            if let (Some("Enabled"), Some(fqdd)) = (text("EnDis"), text("Interface")) {
                found.push((format!("NIC.{kind}Device.{n}-1"), fqdd.to_owned(), format!("{title} Device {n}")));
            }
        }
    }
    found
}

/// A device path that tells nothing of the NIC: a GUID of the firmware's own.
pub(super) fn device_path(source: &str) -> String {
    let digest = Sha256::digest(source);
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    format!("VenHw({})", uuid::Builder::from_random_bytes(bytes).into_uuid().to_string().to_uppercase())
}

/// Words of an enumeration; empty where the attribute is none.
pub(super) fn words(machine: &Machine, name: &str) -> Vec<String> {
    let words: &[&str] = match name {
        "BootMode" => &["Bios", "Uefi"],
        "BootSeqRetry" => &["Enabled", "Disabled", "Reset"],
        "SysProfile" => &["PerfPerWattOptimizedDapc", "PerfPerWattOptimizedOs", "PerfOptimized", "Custom"],
        "WorkloadProfile" => &["NotConfigured", "HpcProfile", "VtOptimizedProfile"],
        "SubNumaCluster" => &["Disabled", "2-Way", "4-Way"],
        "AcPwrRcvry" => &["On", "Last", "Off"],
        "TpmSecurity" => &["Off", "On"],
        name if name.ends_with("Interface") && name.contains("Dev") => {
            return machine.nics.iter().map(nics::fqdd).collect();
        }
        name if name.ends_with("Protocol") => &["IPv4", "IPv6"],
        name if name.ends_with("EnDis") => &["Enabled", "Disabled"],
        "GenericUsbBoot"
        | "LogicalProc"
        | "ProcVirtualization"
        | "SriovGlobalEnable"
        | "SecureBoot"
        | "InBandManageabilityInterface" => &["Enabled", "Disabled"],
        _ => &[],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether an attribute cannot be written as things stand: facts of the machine, and settings of a device that is off.
pub(super) fn is_read_only(bios: &BTreeMap<String, Value>, name: &str) -> bool {
    if name.starts_with("System") {
        return true;
    }
    let device = ["Interface", "Protocol"].iter().find_map(|end| name.strip_suffix(end)).filter(|d| d.contains("Dev"));
    device.is_some_and(|device| bios.get(&format!("{device}EnDis")).is_some_and(|on| on == "Disabled"))
}

/// The registry, entry by entry.
pub(super) fn registry(machine: &Machine, dell: &Dell, path: &str) -> Value {
    let entries = shown(machine, dell).into_iter().enumerate().map(|(n, (name, value))| {
        let words = words(machine, &name);
        let kind = match (&value, words.is_empty()) {
            (Value::Number(_), _) => "Integer",
            (_, true) => "String",
            (_, false) => "Enumeration",
        };
        let mut entry = json!({
            "AttributeName": name,
            "CurrentValue": null,
            "DisplayName": name,
            "DisplayOrder": 100 + n,
            "HelpText": "",
            "Hidden": false,
            "Immutable": name.starts_with("System"),
            "MenuPath": "./BootSettingsRef",
            "ReadOnly": is_read_only(&dell.bios, &name),
            "ResetRequired": true,
            "Type": kind,
            "WarningText": null,
            "WriteOnly": false,
        });
        if kind == "Enumeration" {
            let values = words.iter().map(|word| json!({"ValueDisplayName": word, "ValueName": word}));
            entry["Value"] = values.collect();
        }
        entry
    });
    json!({
        "@odata.context": "/redfish/v1/$metadata#AttributeRegistry.AttributeRegistry",
        "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry",
        "@odata.id": path,
        "Id": "BiosAttributeRegistry.v1_0_3",
        "Name": "BIOS Attribute Registry",
        "Description": "This registry defines a representation of BIOS Attribute instances",
        "Language": "en",
        "OwningEntity": "Dell",
        "RegistryVersion": "v1_0_3",
        "RegistryEntries": {"Attributes": entries.collect::<Vec<Value>>(), "Dependencies": []},
    })
}

/// Applies what is staged, as a boot does.
pub(super) fn apply(machine: &Machine, dell: &mut Dell) {
    let moves_boot = !machine.has(Quirk::OrderUnchanged);
    let list = |value: &Value| -> Vec<String> {
        value.as_str().unwrap_or_default().split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect()
    };
    let mut order: BTreeMap<usize, String> = BTreeMap::new();
    for (name, value) in std::mem::take(&mut dell.staged_bios) {
        if let Some(place) = name.strip_prefix("SetBootOrderFqdd").and_then(|n| n.parse().ok()) {
            order.extend(value.as_str().filter(|s| !s.is_empty()).map(|source| (place, source.to_owned())));
        } else if name == "SetBootOrderDis" || name == "SetBootOrderEn" {
            for source in list(&value).iter().filter(|_| moves_boot) {
                for option in dell.options.iter_mut().filter(|o| o.source == *source) {
                    option.enabled = name == "SetBootOrderEn";
                }
            }
        } else {
            dell.bios.insert(name, value);
        }
    }
    if moves_boot && !order.is_empty() {
        let rank = |source: &str| order.values().position(|wanted| wanted == source).unwrap_or(usize::MAX);
        dell.options.sort_by_key(|option| rank(&option.source));
    }
    if let Some(staged) = dell.staged_boot.take().filter(|_| moves_boot) {
        let place = |reference: &str| staged.iter().position(|(r, _)| r == reference).unwrap_or(usize::MAX);
        dell.options.sort_by_key(|option| place(&option.reference));
        for option in &mut dell.options {
            if let Some((_, enabled)) = staged.iter().find(|(r, _)| *r == option.reference) {
                option.enabled = *enabled;
            }
        }
    }
    dell.match_devices(machine);
}
