//! Finds the host and its BMC in a Redfish tree, by links and never by guessed names.

use super::collection::Skipped;
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;

/// The host's system, and what was left out on the way to it.
#[derive(Debug)]
pub struct HostSystem {
    pub system: Resource,
    pub skipped: Vec<Skipped>,
}

/// Finds the system that is the host. `wanted` names it (`redfish_system_id` of Ironic: a path or an `Id`) where one
/// service has several hosts; else it is the one that can boot: baseboards of accelerators are systems too.
pub async fn find_system(redfish: &Redfish, root: &Resource, wanted: Option<&str>) -> Result<HostSystem, RedfishError> {
    // One service for many hosts, as emulators are: only the host's own system is read.
    if let Some(path) = wanted.filter(|wanted| wanted.starts_with('/')) {
        return Ok(HostSystem { system: redfish.get(path).await?, skipped: vec![] });
    }
    // Some AMI firmware loses its root's links until the BMC is reset (Q36).
    let path = root.link("Systems").unwrap_or_else(|| "/redfish/v1/Systems".to_owned());
    let listing = redfish.list(&path).await?;
    let skipped = listing.skipped;
    let unusable = |what: String| RedfishError::Unusable { path: path.clone(), what };
    let left_out = || {
        let names: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.path, s.why)).collect();
        if names.is_empty() { String::new() } else { format!(" (left out: {})", names.join("; ")) }
    };
    if let Some(wanted) = wanted {
        let found = listing.members.iter().find(|system| system.id().eq_ignore_ascii_case(wanted)).cloned();
        return match found {
            Some(system) => Ok(HostSystem { system, skipped }),
            None => Err(unusable(format!("no system '{wanted}' among its members{}", left_out()))),
        };
    }
    let mut bootable = listing.members.iter().filter(|s| s.at("Boot").is_some_and(|b| b.is_object()));
    match (bootable.next(), bootable.next()) {
        (Some(one), None) => Ok(HostSystem { system: one.clone(), skipped }),
        (None, _) => match &listing.members[..] {
            [only] => Ok(HostSystem { system: only.clone(), skipped }),
            _ => Err(unusable(format!("no system with 'Boot' among its members{}", left_out()))),
        },
        (Some(_), Some(_)) => {
            let ids: Vec<String> = listing.members.iter().map(Resource::id).collect();
            Err(unusable(format!(
                "several systems can boot ('{}') and nothing says which is the host",
                ids.join("', '")
            )))
        }
    }
}

/// Finds the manager that is the BMC of a system.
pub async fn find_manager(redfish: &Redfish, root: &Resource, system: &Resource) -> Result<Resource, RedfishError> {
    if let Some(path) = system.links("/Links/ManagedBy").first() {
        return redfish.get(path).await;
    }
    let path = root.link("Managers").unwrap_or_else(|| "/redfish/v1/Managers".to_owned());
    let mut members = redfish.list(&path).await?.members;
    if members.len() > 1 {
        members.retain(|m| m.text("ManagerType").is_some_and(|kind| kind == "BMC"));
    }
    match (members.pop(), members.pop()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(RedfishError::Unusable { path, what: "no manager among its members".to_owned() }),
        (Some(_), Some(_)) => Err(RedfishError::Unusable {
            path,
            what: "several managers, and the system's 'Links.ManagedBy' names none".to_owned(),
        }),
    }
}

/// The kinds of reset that a resource takes by its action `#{action}`; none where it does not list them.
pub async fn reset_types(redfish: &Redfish, resource: &Resource, action: &str) -> Vec<String> {
    let words = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let listed = resource.at(&format!("/Actions/#{action}/ResetType@Redfish.AllowableValues")).map(words);
    if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
        return listed;
    }
    let Some(path) = resource.text(&format!("/Actions/#{action}/@Redfish.ActionInfo")) else { return vec![] };
    let Ok(info) = redfish.get(&path).await else { return vec![] };
    let parameters = info.at("Parameters").and_then(|p| p.as_array()).into_iter().flatten();
    parameters.filter(|p| p["Name"] == "ResetType").flat_map(|p| words(&p["AllowableValues"])).collect()
}
