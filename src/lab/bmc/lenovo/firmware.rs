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

/// Places of the order of NICs that an XCC3 has as attributes.
pub(super) const PLACES: usize = 10;

fn place(n: usize) -> String {
    format!("BootOrder_NetworkPriority_{}", n + 1)
}

pub(super) fn is_place(name: &str) -> bool {
    (0..PLACES).any(|n| place(n) == name)
}

/// The entries of the order, each in its place. Places that are left have a word of their own.
pub(super) fn places(network: &[String]) -> BTreeMap<String, Value> {
    let entry = |n: usize| network.get(n).map_or(json!("None"), |entry| json!(entry));
    (0..PLACES).map(|n| (place(n), entry(n))).collect()
}

/// The entries as staged places have them.
pub(super) fn in_their_places(network: &[String], staged: &BTreeMap<String, Value>) -> Vec<String> {
    let all = network.iter().enumerate();
    all.map(|(n, now)| staged.get(&place(n)).and_then(Value::as_str).unwrap_or(now).to_owned()).collect()
}

/// Checks what a request stages. All or nothing. `network`: the entries that an XCC3 has in its places.
pub(super) fn check(
    attributes: &Map<String, Value>,
    network: Option<(&[String], &BTreeMap<String, Value>)>,
) -> Result<(), Refusal> {
    if let Some((network, staged)) = network {
        let (mut then, mut known) = (staged.clone(), network.to_vec());
        then.extend(attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
        let mut next = in_their_places(network, &then);
        next.sort();
        known.sort();
        // No entry stands in two places, and none is lost.
        if let Some((name, _)) = attributes.iter().find(|(name, _)| is_place(name)).filter(|_| next != known) {
            return Err(Refusal::value(name));
        }
    }
    for (name, value) in attributes.iter().filter(|(name, _)| network.is_none() || !is_place(name)) {
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
pub(super) fn registry(path: &str, file: &str, network: Option<&[String]>) -> Option<Value> {
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
    let places = network.into_iter().flat_map(|network| {
        let choices = network.iter().map(String::as_str).chain(["None"]);
        let values: Vec<Value> = choices.map(|word| json!({"ValueName": word, "ValueDisplayName": word})).collect();
        (0..PLACES).map(move |n| {
            let mut entry = described(&place(n), "Enumeration", json!("None"), true);
            entry["Value"] = json!(values);
            entry
        })
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
        "RegistryEntries": {"Attributes": words.chain(numbers).chain(places).collect::<Vec<Value>>(), "Dependencies": []},
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
