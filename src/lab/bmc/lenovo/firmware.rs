//! The firmware's attributes and their registry.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::said::said;
use crate::lab::bmc::said::Refusal;

const REGISTRY: &str = "BiosAttributeRegistry.1.0.0";
const SWITCH: &[&str] = &["Disabled", "Enabled"];

/// Enumerations with the factory's word, the words that there are, and whether the registry lets them be written.
const WORDS: [(&str, &str, &[&str], bool); 14] = [
    ("BootModes_InfiniteBootRetry", "Disabled", SWITCH, true),
    ("BootModes_PreventOSChangesToBootOrder", "Disabled", SWITCH, true),
    ("BootModes_SystemBootMode", "LegacyMode", &["UEFIMode", "LegacyMode"], true),
    ("DevicesandIOPorts_IntelVTforDirectedIOVTd", "Disabled", SWITCH, true),
    ("DevicesandIOPorts_SRIOV", "Disabled", SWITCH, true),
    ("LegacyBIOS_LegacyBIOS", "Enabled", SWITCH, false),
    ("NetworkStackSettings_IPv4HTTPSupport", "Enabled", SWITCH, true),
    ("NetworkStackSettings_IPv4PXESupport", "Enabled", SWITCH, true),
    ("NetworkStackSettings_IPv6HTTPSupport", "Disabled", SWITCH, true),
    ("NetworkStackSettings_IPv6PXESupport", "Enabled", SWITCH, true),
    ("NetworkStackSettings_NetworkStack", "Enabled", SWITCH, true),
    (
        "OperatingModes_ChooseOperatingMode",
        "Efficiency_FavorPower",
        &["MinimalPower", "Efficiency_FavorPower", "Efficiency_FavorPerformance", "CustomMode", "MaximumPerformance"],
        true,
    ),
    ("Processors_HyperThreading", "Enabled", SWITCH, true),
    ("Processors_IntelVirtualizationTechnology", "Disabled", SWITCH, true),
];

/// Numbers with the factory's value, and their bounds.
const NUMBERS: [(&str, i64, i64, i64); 2] =
    [("NetworkStackSettings_Mediadetectcount", 1, 1, 50), ("NetworkStackSettings_PXEbootwaittime", 0, 0, 5)];

pub(super) fn factory() -> BTreeMap<String, Value> {
    let words = WORDS.iter().map(|(name, word, ..)| ((*name).to_owned(), json!(word)));
    words.chain(NUMBERS.iter().map(|(name, number, ..)| ((*name).to_owned(), json!(number)))).collect()
}

/// Checks what a request stages. All or nothing.
pub(super) fn check(attributes: &Map<String, Value>) -> Result<(), Refusal> {
    for (name, value) in attributes {
        let good = match (WORDS.iter().find(|known| known.0 == name), NUMBERS.iter().find(|known| known.0 == name)) {
            (Some((_, _, _, false)), _) => return Err(Refusal::read_only(name)),
            (Some((_, _, words, true)), _) => value.as_str().is_some_and(|word| words.contains(&word)),
            (None, Some((_, _, min, max))) => value.as_i64().is_some_and(|number| (*min..=*max).contains(&number)),
            (None, None) => return Err(Refusal::unknown(name)),
        };
        if !good {
            return Err(Refusal::value(name));
        }
    }
    Ok(())
}

pub(super) fn bios(path: &str, attributes: &BTreeMap<String, Value>) -> Value {
    said(
        path,
        "Bios.v1_2_0.Bios",
        json!({
            "Id": "Bios",
            "Name": "Bios",
            "Description": "System Bios",
            "AttributeRegistry": REGISTRY,
            "Attributes": attributes,
            "@Redfish.Settings": {
                "@odata.type": "#Settings.v1_3_4.Settings",
                "SettingsObject": {"@odata.id": format!("{path}/Pending")},
                "SupportedApplyTimes": ["OnReset"],
                "Time": "2026-01-01T00:00:00+00:00",
                "Messages": [],
            },
            "Actions": {
                "#Bios.ResetBios": {"title": "ResetBios", "target": format!("{path}/Actions/Bios.ResetBios")},
            },
        }),
    )
}

pub(super) fn pending(path: &str, attributes: &BTreeMap<String, Value>) -> Value {
    let body = json!({
        "Id": "Pending", "Name": "Pending", "Description": "Bios Pending Setting", "Attributes": attributes,
    });
    said(path, "Bios.v1_2_0.Bios", body)
}

/// The collection of registries, of which only this one is kept here.
pub(super) fn registries(path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [id] if *id == REGISTRY => Some(said(
            path,
            "MessageRegistryFile.v1_1_3.MessageRegistryFile",
            json!({
                "Id": REGISTRY,
                "Name": "Bios Attribute Registry Version 1",
                "Description": "Bios Attribute Registry",
                "Languages": ["en"],
                "Registry": "BiosAttributeRegistry.1.0",
                "Location": [{"Language": "en", "Uri": format!("/redfish/v1/schemas/registries/{REGISTRY}.json")}],
            }),
        )),
        _ => None,
    }
}

/// The registry itself.
pub(super) fn registry(path: &str, file: &str) -> Option<Value> {
    if file != format!("{REGISTRY}.json") {
        return None;
    }
    let words = WORDS.iter().map(|(name, word, words, writable)| {
        let values: Vec<Value> =
            words.iter().map(|word| json!({"ValueName": word, "ValueDisplayName": word})).collect();
        let mut entry = described(name, "Enumeration", json!(word), *writable);
        entry["Value"] = json!(values);
        entry
    });
    let numbers = NUMBERS.iter().map(|(name, number, min, max)| {
        let mut entry = described(name, "Integer", json!(number), true);
        entry["LowerBound"] = json!(min);
        entry["UpperBound"] = json!(max);
        entry
    });
    Some(json!({
        "@odata.type": "#AttributeRegistry.v1_3_6.AttributeRegistry",
        "@odata.context": "/redfish/v1/$metadata#AttributeRegistry.AttributeRegistry",
        "@odata.id": path,
        "Id": REGISTRY,
        "Name": "Bios Attribute Registry Version 1",
        "Language": "en",
        "OwningEntity": "Lenovo",
        "RegistryVersion": "1.0.0",
        "RegistryEntries": {"Attributes": words.chain(numbers).collect::<Vec<Value>>(), "Dependencies": []},
    }))
}

fn described(name: &str, kind: &str, default: Value, writable: bool) -> Value {
    let menu = name.split('_').next().unwrap_or(name);
    json!({
        "AttributeName": name,
        "DisplayName": name,
        "Type": kind,
        "ReadOnly": !writable,
        "WriteOnly": false,
        "Hidden": false,
        "GrayOut": false,
        "DefaultValue": default,
        "CurrentValue": null,
        "ResetRequired": true,
        "DisplayOrder": 1,
        "MenuPath": format!("./{menu}"),
        "HelpText": name,
        "WarningText": format!("{name} changes require a system reboot to take effect."),
    })
}
