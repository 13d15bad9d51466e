//! The boot options of MegaRAC: full device paths, a flag for each, and settings objects for the next boot.

use serde_json::{Value, json};

use crate::clients::redfish::dialect::{At, BootChange};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::firmware::settings_object;
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::service::Redfish;
use crate::clients::redfish::standard::found;
use crate::domain::boot::{BootOption, BootSetup};

/// What was read: the setup for the rules, and the resources to write to.
pub struct Read {
    pub setup: BootSetup,
    system: Resource,
    /// The options, with the reference of each.
    options: Vec<(String, Resource)>,
    /// The system's settings object, where it has one.
    settings: Option<Resource>,
}

/// Reads options and order; `None` where the system has none.
pub async fn read(at: At<'_>) -> Result<Option<Read>, RedfishError> {
    let redfish = at.redfish;
    // Read anew: what the caller has may be of before the boot.
    let system = redfish.get(&at.system.path).await?;
    let Some(list) = system.link("/Boot/BootOptions").filter(|_| system.at("/Boot/BootOrder").is_some()) else {
        return Ok(None);
    };
    // Expanded members lack what tells them apart here (Q36).
    let listing = redfish.list(&list).await?;
    let order = entries(&system);
    let find = |key: &str| order.iter().find(|entry| key_of(entry) == key);
    let options: Vec<(String, Resource)> = listing
        .members
        .into_iter()
        .map(|option| {
            let key = option.text("BootOptionReference").unwrap_or_else(|| format!("Boot{}", option.id()));
            (find(&key).cloned().unwrap_or(key), option)
        })
        .collect();
    let mut setup = BootSetup::default();
    let skipped: String = listing.skipped.iter().map(|s| format!(" ({}: {})", s.path, s.why)).collect();
    for reference in &order {
        match options.iter().find(|(known, _)| known == reference) {
            Some((reference, option)) => setup.options.push(option_of(reference, option)),
            None => {
                setup.incomplete = Some(format!("'{reference}' is in the order and not among the options{skipped}"));
                setup.options.push(BootOption::new(reference, reference, None, None, None));
            }
        }
    }
    // A member that could not be read may be the NIC's: it is in no order that could tell.
    if setup.incomplete.is_none() && !skipped.is_empty() {
        setup.incomplete = Some(format!("not every option could be read{skipped}"));
    }
    let idle = options.iter().filter(|(reference, _)| !order.contains(reference));
    setup.aside = idle.map(|(reference, option)| option_of(reference, option)).collect();
    let settings = settings_of(redfish, &system).await?;
    let next = settings.as_ref().map(|settings| {
        let next = entries(settings).into_iter();
        next.map(|entry| find(key_of(&entry)).cloned().unwrap_or(entry)).collect::<Vec<String>>()
    });
    setup.staged = next.filter(|next| !next.is_empty() && *next != order);
    Ok(Some(Read { setup, system, options, settings }))
}

fn option_of(reference: &str, option: &Resource) -> BootOption {
    let name = option.text("DisplayName").or_else(|| option.text("Name")).unwrap_or_else(|| reference.to_owned());
    // Untouched: a path is longer than a text to show.
    let path = option.at("UefiDevicePath").and_then(Value::as_str);
    BootOption::new(reference, &name, path, option.text("Alias").as_deref(), option.flag("BootOptionEnabled"))
}

/// The order as it reads, entry by entry.
fn entries(resource: &Resource) -> Vec<String> {
    let list = resource.at("/Boot/BootOrder").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

/// What an entry is compared by: some firmware writes `Boot0019: Ubuntu` (Q19).
fn key_of(entry: &str) -> &str {
    entry.split(':').next().unwrap_or(entry).trim()
}

/// The settings object of a resource: where it says, else where it is on firmware that does not say (Q65).
async fn settings_of(redfish: &Redfish, resource: &Resource) -> Result<Option<Resource>, RedfishError> {
    let path = settings_object(resource).unwrap_or_else(|| format!("{}/SD", resource.path.trim_end_matches('/')));
    found(redfish.get(&path).await)
}

/// Stages an order and flags. What is staged already is not written again. First comes what makes the host boot, then
/// what takes options away: it can be broken off in between.
pub async fn stage(at: At<'_>, change: &BootChange) -> Result<(), RedfishError> {
    let unusable = |what: String| RedfishError::Unusable { path: at.system.path.clone(), what };
    let Some(read) = read(at).await? else { return Err(unusable("the system has no boot order".to_owned())) };
    for reference in &change.enable {
        flag(at.redfish, &read, reference, true).await?;
    }
    let next = read.setup.staged.clone().unwrap_or_else(|| read.setup.order());
    if !change.order.is_empty() && change.order != next {
        let body = json!({"Boot": {"BootOrder": change.order}});
        write(at.redfish, read.settings.as_ref(), &read.system, &body).await?;
    }
    for reference in &change.disable {
        flag(at.redfish, &read, reference, false).await?;
    }
    Ok(())
}

async fn flag(redfish: &Redfish, read: &Read, reference: &str, enabled: bool) -> Result<(), RedfishError> {
    let Some((_, option)) = read.options.iter().find(|(known, _)| known == reference) else {
        let what = format!("there is no boot option '{reference}'");
        return Err(RedfishError::Unusable { path: read.system.path.clone(), what });
    };
    let settings = settings_of(redfish, option).await?;
    let next = settings.as_ref().unwrap_or(option).flag("BootOptionEnabled");
    if next == Some(enabled) {
        return Ok(());
    }
    write(redfish, settings.as_ref(), option, &json!({"BootOptionEnabled": enabled})).await
}

/// Writes to the settings object; to the resource itself where there is none, or where that refuses (Q22).
async fn write(
    redfish: &Redfish,
    settings: Option<&Resource>,
    resource: &Resource,
    body: &Value,
) -> Result<(), RedfishError> {
    let refusal = match settings {
        Some(settings) => match redfish.patch(&settings.path, body).await {
            Err(e @ (RedfishError::Refused { .. } | RedfishError::NotFound { .. })) => Some(e),
            other => return other.map(drop),
        },
        None => None,
    };
    let direct = redfish.patch(&resource.path, body).await.map(drop);
    // Where neither takes it, the settings object's own words say more.
    match (direct, refusal) {
        (Err(RedfishError::Refused { .. } | RedfishError::NotFound { .. }), Some(refusal)) => Err(refusal),
        (done, _) => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_compared_by_what_stands_before_its_name() {
        for (entry, key) in
            [("Boot0019: Ubuntu", "Boot0019"), ("Boot0005: UEFI: PXE IPv4", "Boot0005"), ("Boot0000", "Boot0000")]
        {
            assert_eq!(key_of(entry), key);
        }
    }
}
