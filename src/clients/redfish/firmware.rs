//! Reads firmware attributes: those in force, those of the settings object, and what the registry says of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::RedfishError;
use super::resource::{Resource, link_of};
use super::service::Redfish;
use super::standard::{found, found_linked, linked};
use crate::domain::bios::{Bios, Rule};

/// The firmware attributes of a system; `None` where it has none. The registry is read only where something is to be
/// known of `names`: it can have a megabyte.
pub async fn read(
    redfish: &Redfish,
    root: &Resource,
    system: &Resource,
    names: &[String],
) -> Result<Option<Bios>, RedfishError> {
    let Some(resource) = linked(redfish, system, "Bios").await? else { return Ok(None) };
    let Some(now) = attributes(&resource) else { return Ok(None) };
    let pending = match settings_object(&resource) {
        Some(path) => found_linked(redfish, &path).await?.and_then(|settings| attributes(&settings)),
        None => None,
    };
    // Some firmware lists all attributes there, some only what changes.
    let staged = pending.unwrap_or_default().into_iter().filter(|(name, value)| now.get(name) != Some(value)).collect();
    let rules = if names.is_empty() { BTreeMap::new() } else { rules(redfish, root, &resource, names).await? };
    Ok(Some(Bios { now, staged, rules }))
}

/// Where a resource takes changes for the next boot.
pub fn settings_object(resource: &Resource) -> Option<String> {
    resource.link("/@Redfish.Settings/SettingsObject")
}

fn attributes(resource: &Resource) -> Option<BTreeMap<String, Value>> {
    let members = resource.at("Attributes")?.as_object()?;
    Some(members.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What the registry says of some attributes; empty where there is no registry.
async fn rules(
    redfish: &Redfish,
    root: &Resource,
    bios: &Resource,
    names: &[String],
) -> Result<BTreeMap<String, Rule>, RedfishError> {
    let Some(name) = bios.text("AttributeRegistry") else { return Ok(BTreeMap::new()) };
    let Some(file) = file_of(redfish, root, &name).await? else { return Ok(BTreeMap::new()) };
    let locations = file.at("Location").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let english = |entry: &&Value| entry["Language"].as_str().is_none_or(|code| code.starts_with("en"));
    let place = locations.iter().find(english).or(locations.first());
    let Some(path) = place.and_then(|entry| link_of(&entry["Uri"])) else { return Ok(BTreeMap::new()) };
    let Some(registry) = found(redfish.get(&path).await)? else { return Ok(BTreeMap::new()) };
    Ok(rules_of(&registry, names))
}

/// What a registry says of some attributes.
pub(super) fn rules_of(registry: &Resource, names: &[String]) -> BTreeMap<String, Rule> {
    let entries = registry.at("/RegistryEntries/Attributes").and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(rule_of).filter(|(name, _)| names.contains(name)).collect()
}

/// The resource that says where a registry is: by its name, else by what the collection lists (names there may have
/// another version or language).
async fn file_of(redfish: &Redfish, root: &Resource, name: &str) -> Result<Option<Resource>, RedfishError> {
    let Some(list) = root.link("Registries") else { return Ok(None) };
    let list = list.trim_end_matches('/');
    if let Some(file) = found(redfish.get(&format!("{list}/{name}")).await)? {
        return Ok(Some(file));
    }
    let Some(listed) = found(redfish.get(list).await)? else { return Ok(None) };
    let stem = name.split('.').next().unwrap_or(name);
    let path = listed.links("Members").into_iter().find(|link| {
        let id = link.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        id.split('.').next().is_some_and(|start| start.eq_ignore_ascii_case(stem))
    });
    match path {
        Some(path) => found(redfish.get(&path).await),
        None => Ok(None),
    }
}

fn rule_of(entry: &Value) -> Option<(String, Rule)> {
    let name = entry["AttributeName"].as_str()?.to_owned();
    let is = |key: &str| entry[key].as_bool() == Some(true);
    let values = entry["Value"].as_array().into_iter().flatten();
    let values = values.filter_map(|value| Some(value["ValueName"].as_str()?.to_owned())).collect();
    Some((name, Rule { read_only: is("ReadOnly") || is("GrayOut") || is("Immutable"), values }))
}
