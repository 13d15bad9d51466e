//! Stages what the host's next boot is to change: in one write and one job, wherever the iDRAC has a resource for all of it.
//!
//! A second write meets "already committed" until the job of the first one has ended. So flags and order go together as boot
//! sources, and attributes with them where the firmware takes both as attributes. An iDRAC10 has no boot sources: the flags go
//! as attributes, and the order after them. What does not fit is handed back as the rest, to be staged when the job is done.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::boot::{device_of, options, order_of, reference_of};
use super::jobs;
use crate::clients::redfish::dialect::{At, BootChange, Change, Staged, job_of};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::firmware::{self, settings_object};
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::standard::{found, linked};
use crate::domain::bios::{Bios, Rule};

/// The longest list of sources that the firmware takes as one attribute.
const LIST_MAX: usize = 255;

/// Looks whether a deleted job is gone, and the pause between them.
const GONE_LOOKS: u32 = 10;
const GONE_PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn bios(at: At<'_>, names: &[String]) -> Result<Option<Bios>, RedfishError> {
    let Some(resource) = linked(at.redfish, at.system, "Bios").await? else { return Ok(None) };
    let Some(Value::Object(now)) = resource.at("Attributes") else { return Ok(None) };
    let mut bios = Bios { now: now.clone().into_iter().collect(), ..Bios::default() };
    if let Some(path) = settings_object(&resource)
        && let Some(settings) = found(at.redfish.get(&path).await)?
        && let Some(Value::Object(staged)) = settings.at("Attributes")
    {
        // Also what reads the same already: some firmware shows it before its time (Q14).
        bios.staged = staged.clone().into_iter().collect();
    }
    if !names.is_empty() {
        bios.rules = rules(at, &resource, names).await?;
    }
    Ok(Some(bios))
}

/// What the registry says of some attributes. The iDRAC has it beside its BIOS; the standard's way leads to the same.
async fn rules(at: At<'_>, bios: &Resource, names: &[String]) -> Result<BTreeMap<String, Rule>, RedfishError> {
    let own = format!("{}/BiosRegistry", bios.path.trim_end_matches('/'));
    let mut registry = found(at.redfish.get(&own).await)?;
    if registry.is_none()
        && let (Some(folder), Some(name)) = (at.root.link("Registries"), bios.text("AttributeRegistry"))
        && let Some(file) = found(at.redfish.get(&format!("{}/{name}", folder.trim_end_matches('/'))).await)?
        && let Some(path) = file.at("Location").and_then(|list| list[0]["Uri"].as_str())
    {
        registry = found(at.redfish.get(path).await)?;
    }
    Ok(registry.map_or_else(BTreeMap::new, |registry| firmware::rules_of(&registry, names)))
}

/// Stages a change, or the first part of it where the iDRAC takes no more at once.
pub(super) async fn stage(at: At<'_>, change: &Change) -> Result<Staged, RedfishError> {
    let Some(boot) = &change.boot else {
        if change.attributes.is_empty() {
            return Ok(Staged::default());
        }
        return stage_attributes(at, &change.attributes, None).await;
    };
    let system = at.redfish.get(&at.system.path).await?;
    let sources = Sources::read(at, &system).await?.filter(|sources| sources.knows(boot));
    let rest = Some(Change { attributes: vec![], boot: Some(boot.clone()) });
    match (change.attributes.is_empty(), sources) {
        (true, Some(sources)) => {
            let body = json!({"UefiBootSeq": sources.changed(boot)});
            let names = vec!["UefiBootSeq".to_owned()];
            commit(at, &sources.settings, &names, json!({"Attributes": body})).await
        }
        (_, None) => stage_without_sources(at, &system, &change.attributes, boot).await,
        (false, Some(sources)) => {
            let Some(more) = as_attributes(at, &system, &sources, boot).await? else {
                return stage_attributes(at, &change.attributes, rest).await;
            };
            let all: Vec<(String, Value)> = change.attributes.iter().cloned().chain(more).collect();
            match stage_attributes(at, &all, None).await {
                // A firmware that does not take the order so.
                Err(RedfishError::Refused { said, .. }) if said.mentions("SetBootOrder") => {
                    stage_attributes(at, &change.attributes, rest).await
                }
                other => other,
            }
        }
    }
}

async fn stage_attributes(
    at: At<'_>,
    attributes: &[(String, Value)],
    rest: Option<Change>,
) -> Result<Staged, RedfishError> {
    let lacks = || RedfishError::Unusable { path: at.system.path.clone(), what: "no BIOS settings".to_owned() };
    let bios = linked(at.redfish, at.system, "Bios").await?.ok_or_else(lacks)?;
    let path = settings_object(&bios).ok_or_else(lacks)?;
    let names: Vec<String> = attributes.iter().map(|(name, _)| name.clone()).collect();
    let all: serde_json::Map<String, Value> = attributes.iter().cloned().collect();
    let staged = commit(at, &path, &names, json!({"Attributes": all})).await?;
    Ok(Staged { rest, ..staged })
}

/// Without boot sources: flags as attributes along with the others, the order as the rest; where the firmware does not take
/// flags so, one after the other.
async fn stage_without_sources(
    at: At<'_>,
    system: &Resource,
    attributes: &[(String, Value)],
    boot: &BootChange,
) -> Result<Staged, RedfishError> {
    let flags = flags_as_attributes(at, system, boot).await?.filter(|flags| !flags.is_empty());
    if let Some(flags) = flags {
        let all: Vec<(String, Value)> = attributes.iter().cloned().chain(flags).collect();
        let order = BootChange { order: boot.order.clone(), ..BootChange::default() };
        let rest = (order_of(system) != boot.order).then(|| Change { attributes: vec![], boot: Some(order) });
        match stage_attributes(at, &all, rest).await {
            Err(RedfishError::Refused { said, .. }) if said.mentions("SetBootOrder") => {}
            other => return other,
        }
    }
    if attributes.is_empty() {
        return stage_one_by_one(at, system, boot).await;
    }
    stage_attributes(at, attributes, Some(Change { attributes: vec![], boot: Some(boot.clone()) })).await
}

/// The flags of network devices as attributes, by the names that the firmware has for those; `None` where one of the options
/// is something else, or the firmware has no such attributes.
async fn flags_as_attributes(
    at: At<'_>,
    system: &Resource,
    boot: &BootChange,
) -> Result<Option<Vec<(String, Value)>>, RedfishError> {
    let bios = linked(at.redfish, system, "Bios").await?;
    let all = bios.as_ref().and_then(|bios| bios.at("Attributes"));
    let (Some(all), Some(listing)) = (all, options(at, system).await?) else { return Ok(None) };
    let source = |reference: &String| {
        let option = listing.members.iter().find(|option| reference_of(option) == *reference)?;
        let (kind, number) = device_of(&option.text("DisplayName")?)?;
        Some(format!("NIC.{kind}Device.{number}-1"))
    };
    let mut attributes = Vec::new();
    for (name, list) in [("SetBootOrderEn", &boot.enable), ("SetBootOrderDis", &boot.disable)] {
        if list.is_empty() {
            continue;
        }
        let joined = list.iter().map(source).collect::<Option<Vec<String>>>().map(|names| names.join(","));
        match joined.filter(|text| text.len() <= LIST_MAX && all[name].is_string()) {
            Some(text) => attributes.push((name.to_owned(), json!(text))),
            None => return Ok(None),
        }
    }
    Ok(Some(attributes))
}

/// Each flag and the order as a job of their own: what comes first is staged, the rest handed back.
/// The option that is kept is enabled before any other is switched off.
async fn stage_one_by_one(at: At<'_>, system: &Resource, boot: &BootChange) -> Result<Staged, RedfishError> {
    let mut left = boot.clone();
    let flag = match (left.enable.is_empty(), left.disable.is_empty()) {
        (false, _) => Some((left.enable.remove(0), true)),
        (true, false) => Some((left.disable.remove(0), false)),
        (true, true) => None,
    };
    let orders = order_of(system) != left.order;
    let Some((reference, enabled)) = flag else {
        return if orders { stage_order(at, system, &left.order).await } else { Ok(Staged::default()) };
    };
    let listing = options(at, system).await?.unwrap_or_default();
    let option = listing.members.iter().find(|option| reference_of(option) == reference);
    let Some(option) = option else {
        let path = system.path.clone();
        return Err(RedfishError::Unusable { path, what: format!("no boot option '{reference}' to write to") });
    };
    let staged = with_job(at, &option.path, None, json!({"BootOptionEnabled": enabled})).await?;
    let more = orders || !left.enable.is_empty() || !left.disable.is_empty();
    Ok(Staged { rest: more.then(|| Change { attributes: vec![], boot: Some(left) }), ..staged })
}

/// By the system's settings; where there are none, by the system itself.
async fn stage_order(at: At<'_>, system: &Resource, order: &[String]) -> Result<Staged, RedfishError> {
    let body = json!({"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}, "Boot": {"BootOrder": order}});
    let own = format!("{}/Settings", system.path.trim_end_matches('/'));
    let path = settings_object(system).unwrap_or(own);
    match with_job(at, &path, None, body.clone()).await {
        Err(error) if error.is_absent() => with_job(at, &system.path, None, body).await,
        other => other,
    }
}

/// Writes settings for the next boot. What somebody staged and never committed would be committed along with them: it is
/// cleared first, where it is not the same anyway.
async fn commit(at: At<'_>, path: &str, names: &[String], body: Value) -> Result<Staged, RedfishError> {
    clear_pending(at, |name| path.contains("/Bios/") && names.iter().any(|own| own == name)).await?;
    let mut body = body;
    body["@Redfish.SettingsApplyTime"] = json!({"ApplyTime": "OnReset"});
    with_job(at, path, Some(path), body).await
}

/// Writes what makes a job, and finds it. `target` is what to make one of where the write alone made none.
async fn with_job(at: At<'_>, path: &str, target: Option<&str>, body: Value) -> Result<Staged, RedfishError> {
    let before: Vec<String> = jobs::unfinished(at).await?.into_iter().map(|job| job.id).collect();
    let mut lost = None;
    let named = match at.redfish.patch(path, &body).await {
        Ok(accepted) => job_of(&accepted).filter(|id| id.starts_with("JID_")),
        // The answer is lost, or an error was answered after the work; whether the write was done, the queue tells. What was
        // asked again then meets the job that it made itself.
        Err(error @ (RedfishError::Http(_) | RedfishError::Busy { .. })) => {
            lost = Some(error);
            None
        }
        Err(error) if error.is_already_committed() => {
            lost = Some(error);
            None
        }
        Err(error) => return Err(error),
    };
    let of = |id: String| Staged { jobs: vec![id], rest: None };
    if let Some(id) = named {
        return Ok(of(id));
    }
    if at.redfish.is_rehearsed() {
        return Ok(Staged::default());
    }
    let new: Vec<String> = jobs::unfinished(at).await?.into_iter().map(|job| job.id).collect();
    let mut new = new.into_iter().filter(|id| !before.contains(id));
    match (new.next(), new.next(), lost, target) {
        (Some(id), None, _, _) => Ok(of(id)),
        (_, _, Some(error), _) => Err(error),
        (None, _, None, Some(target)) => {
            let queue = jobs::queue(at);
            let accepted = at.redfish.post(&queue, &json!({"TargetSettingsURI": target})).await?;
            let id = job_of(&accepted).filter(|id| id.starts_with("JID_"));
            id.map(of).ok_or_else(|| no_job(path))
        }
        _ => Err(no_job(path)),
    }
}

fn no_job(path: &str) -> RedfishError {
    RedfishError::Unusable { path: path.to_owned(), what: "the write was accepted, and no job came of it".to_owned() }
}

/// Takes a job back, and what it held with it. One that has ended stays in the queue as what it is: a record.
pub(super) async fn withdraw(at: At<'_>, id: &str) -> Result<(), RedfishError> {
    if jobs::is_unfinished(at, id).await? {
        delete(at, id).await?;
        // Deletion takes a while, and has been seen not to happen (Q26).
        let mut looks = 0;
        while jobs::is_unfinished(at, id).await? {
            looks += 1;
            if looks > GONE_LOOKS {
                let what = format!("the job '{id}' was deleted and is still there");
                return Err(RedfishError::Unusable { path: jobs::queue(at), what });
            }
            tokio::time::sleep(at.redfish.moment(GONE_PAUSE)).await;
        }
    }
    match clear_pending(at, |_| false).await {
        // Another job holds it.
        Err(error) if error.is_already_committed() => Ok(()),
        other => other,
    }
}

async fn delete(at: At<'_>, id: &str) -> Result<(), RedfishError> {
    let service = linked(at.redfish, at.manager, "/Links/Oem/Dell/DellJobService").await?;
    let target = service.and_then(|service| service.text("/Actions/#DellJobService.DeleteJobQueue/target"));
    let deleted = match target {
        Some(target) => at.redfish.post(&target, &json!({"JobID": id})).await.map(drop),
        None => at.redfish.delete(&format!("{}/{id}", jobs::queue(at).trim_end_matches('/'))).await.map(drop),
    };
    match deleted {
        Err(RedfishError::NotFound { .. }) => Ok(()),
        other => other,
    }
}

/// Forgets what is staged without a job, for attributes and boot sources; what `is_own` says is wanted may stay.
async fn clear_pending(at: At<'_>, is_own: impl Fn(&str) -> bool) -> Result<(), RedfishError> {
    let mut places = Vec::new();
    for resource in [
        linked(at.redfish, at.system, "Bios").await?,
        linked(at.redfish, at.system, "/Links/Oem/Dell/DellBootSources").await?,
    ] {
        places.extend(resource.as_ref().and_then(settings_object));
    }
    for path in places {
        let Some(settings) = found(at.redfish.get(&path).await)? else { continue };
        let staged = settings.at("Attributes").and_then(Value::as_object);
        if staged.is_none_or(|staged| staged.keys().all(|name| is_own(name))) {
            continue;
        }
        if let Some(target) = settings.at("Actions").and_then(clear_target) {
            at.redfish.post(&target, &json!({})).await?;
        }
    }
    Ok(())
}

/// The target of `ClearPending`, which has another name and another depth in each resource.
fn clear_target(actions: &Value) -> Option<String> {
    actions.as_object()?.iter().find_map(|(name, action)| {
        if name.ends_with("DellManager.ClearPending") {
            return action["target"].as_str().map(str::to_owned);
        }
        clear_target(action)
    })
}

/// The boot sources in force, entry by entry along the boot order.
pub(super) struct Sources {
    pub entries: Vec<Source>,
    /// The references of the boot order, in the same places.
    order: Vec<String>,
    pub settings: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub id: String,
    pub name: String,
    pub index: u64,
    pub enabled: bool,
}

impl Sources {
    /// Reads them; `None` where the iDRAC has none (iDRAC10), or where it is not certain which entry is which option.
    pub async fn read(at: At<'_>, system: &Resource) -> Result<Option<Sources>, RedfishError> {
        let Some(resource) = linked(at.redfish, system, "/Links/Oem/Dell/DellBootSources").await? else {
            return Ok(None);
        };
        let Some(settings) = settings_object(&resource) else { return Ok(None) };
        let (entries, order) = (Sources::sequence(&resource), order_of(system));
        if entries.is_empty() || entries.len() != order.len() {
            return Ok(None);
        }
        let Some(listing) = options(at, system).await? else { return Ok(None) };
        let name_of = |reference: &String| {
            let option = listing.members.iter().find(|option| reference_of(option) == *reference)?;
            option.text("DisplayName")
        };
        let agree = |(entry, reference): (&Source, &String)| {
            name_of(reference).is_some_and(|name| device_of_source(&entry.name) == device_of(&name))
        };
        let certain = entries.iter().zip(&order).all(agree);
        Ok(certain.then_some(Sources { entries, order, settings }))
    }

    /// `UefiBootSeq` of a resource, by its indices.
    pub fn sequence(resource: &Resource) -> Vec<Source> {
        let list = resource.at("/Attributes/UefiBootSeq").and_then(Value::as_array);
        let mut entries: Vec<Source> = list
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                Some(Source {
                    id: entry["Id"].as_str()?.to_owned(),
                    name: entry["Name"].as_str()?.to_owned(),
                    index: entry["Index"].as_u64()?,
                    enabled: entry["Enabled"].as_bool()?,
                })
            })
            .collect();
        entries.sort_by_key(|entry| entry.index);
        entries
    }

    /// Whether every option of a change is among them, and the other way round.
    fn knows(&self, boot: &BootChange) -> bool {
        let has = |reference: &String| self.order.contains(reference);
        boot.order.len() == self.order.len()
            && self.order.iter().all(|reference| boot.order.contains(reference))
            && boot.enable.iter().chain(&boot.disable).all(has)
    }

    fn of(&self, reference: &String) -> Option<&Source> {
        self.entries.get(self.order.iter().position(|own| own == reference)?)
    }

    /// The whole sequence as a change wants it.
    fn changed(&self, boot: &BootChange) -> Vec<Value> {
        let entries = boot.order.iter().filter_map(|reference| Some((reference, self.of(reference)?)));
        entries
            .enumerate()
            .map(|(index, (reference, source))| {
                let enabled = !boot.disable.contains(reference) && (source.enabled || boot.enable.contains(reference));
                json!({"Enabled": enabled, "Id": source.id, "Index": index, "Name": source.name})
            })
            .collect()
    }
}

/// The network device that a source is: `NIC.PxeDevice.1-1`.
fn device_of_source(name: &str) -> Option<(&'static str, u32)> {
    let rest = name.strip_prefix("NIC.")?;
    let (kind, rest) = match rest.strip_prefix("PxeDevice.") {
        Some(rest) => ("Pxe", rest),
        None => ("Http", rest.strip_prefix("HttpDevice.")?),
    };
    Some((kind, rest.split('-').next()?.parse().ok()?))
}

/// A boot change as attributes of the firmware, to go along with others; `None` where it does not take this one so: too many
/// sources, some without a name of their own, or no such attributes.
async fn as_attributes(
    at: At<'_>,
    system: &Resource,
    sources: &Sources,
    boot: &BootChange,
) -> Result<Option<Vec<(String, Value)>>, RedfishError> {
    let Some(bios) = linked(at.redfish, system, "Bios").await? else { return Ok(None) };
    let has = |name: &str| bios.at("Attributes").is_some_and(|all| all[name].is_string());
    let all = ["SetBootOrderEn".to_owned(), "SetBootOrderDis".to_owned()];
    let places = (1..=boot.order.len()).map(|n| format!("SetBootOrderFqdd{n}"));
    if !all.into_iter().chain(places).all(|name| has(&name)) {
        return Ok(None);
    }
    Ok(boot_attributes(sources, boot))
}

fn boot_attributes(sources: &Sources, boot: &BootChange) -> Option<Vec<(String, Value)>> {
    let names: Vec<&str> = boot.order.iter().map(|r| sources.of(r).map(|s| s.name.as_str())).collect::<Option<_>>()?;
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() != names.len() || names.iter().any(|name| name.starts_with("Unknown.")) {
        return None;
    }
    let joined = |list: &[String]| -> Option<String> {
        let names: Vec<&str> = list.iter().map(|r| sources.of(r).map(|s| s.name.as_str())).collect::<Option<_>>()?;
        Some(names.join(",")).filter(|text| text.len() <= LIST_MAX)
    };
    let mut attributes: Vec<(String, Value)> =
        names.iter().enumerate().map(|(n, name)| (format!("SetBootOrderFqdd{}", n + 1), json!(name))).collect();
    for (name, list) in [("SetBootOrderEn", &boot.enable), ("SetBootOrderDis", &boot.disable)] {
        if !list.is_empty() {
            attributes.push((name.to_owned(), json!(joined(list)?)));
        }
    }
    Some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(names: &[&str]) -> Sources {
        let entry = |(n, name): (usize, &&str)| Source {
            id: format!("id-{n}"),
            name: (*name).to_owned(),
            index: n as u64,
            enabled: n != 1,
        };
        Sources {
            entries: names.iter().enumerate().map(entry).collect(),
            order: (0..names.len()).map(|n| format!("Boot{n:04}")).collect(),
            settings: "/s".into(),
        }
    }

    fn change() -> BootChange {
        BootChange {
            order: vec!["Boot0001".into(), "Boot0000".into(), "Boot0002".into()],
            enable: vec!["Boot0001".into()],
            disable: vec!["Boot0002".into()],
        }
    }

    const NAMES: [&str; 3] = ["Disk.Bay.2:Enclosure.Internal.0-1", "NIC.PxeDevice.1-1", "NIC.PxeDevice.2-1"];

    #[test]
    fn the_whole_sequence_is_written_with_flags_and_new_places() {
        let sources = sources(&NAMES);
        assert!(sources.knows(&change()));
        assert_eq!(
            sources.changed(&change()),
            [
                json!({"Enabled": true, "Id": "id-1", "Index": 0, "Name": NAMES[1]}),
                json!({"Enabled": true, "Id": "id-0", "Index": 1, "Name": NAMES[0]}),
                json!({"Enabled": false, "Id": "id-2", "Index": 2, "Name": NAMES[2]}),
            ]
        );
    }

    #[test]
    fn an_order_that_is_not_the_same_options_is_not_known() {
        let mut short = change();
        short.order.pop();
        assert!(!sources(&NAMES).knows(&short));
        let mut other = change();
        other.order[0] = "Boot0009".into();
        assert!(!sources(&NAMES).knows(&other));
    }

    #[test]
    fn a_boot_change_becomes_attributes_only_where_each_source_has_a_name_of_its_own() {
        let attributes = boot_attributes(&sources(&NAMES), &change()).unwrap();
        let want = [
            ("SetBootOrderFqdd1", NAMES[1]),
            ("SetBootOrderFqdd2", NAMES[0]),
            ("SetBootOrderFqdd3", NAMES[2]),
            ("SetBootOrderEn", NAMES[1]),
            ("SetBootOrderDis", NAMES[2]),
        ];
        assert_eq!(attributes, want.map(|(name, value)| (name.to_owned(), json!(value))));
        assert_eq!(boot_attributes(&sources(&["Unknown.Unknown.2-1", NAMES[1], NAMES[2]]), &change()), None);
        assert_eq!(boot_attributes(&sources(&[NAMES[0], NAMES[0], NAMES[2]]), &change()), None);
    }

    #[test]
    fn a_source_and_an_option_are_the_same_network_device_by_kind_and_number() {
        assert_eq!(device_of_source("NIC.PxeDevice.1-1"), device_of("PXE Device 1: x"));
        assert_ne!(device_of_source("NIC.PxeDevice.1-1"), device_of("PXE Device 2: x"));
        assert_ne!(device_of_source("NIC.HttpDevice.1-1"), device_of("PXE Device 1: x"));
        assert_eq!(device_of_source("Disk.Bay.2:Enclosure.Internal.0-1"), device_of("Unavailable: ubuntu"));
    }

    #[test]
    fn the_target_that_clears_is_found_at_any_depth() {
        let bios = json!({"Oem": {"DellManager.v1_0_0#DellManager.ClearPending": {"target": "/a"}}});
        let boot = json!({"#DellManager.ClearPending": {"target": "/b"}, "#Other": {"target": "/c"}});
        assert_eq!(clear_target(&bios).as_deref(), Some("/a"));
        assert_eq!(clear_target(&boot).as_deref(), Some("/b"));
        assert_eq!(clear_target(&json!({})), None);
    }
}
