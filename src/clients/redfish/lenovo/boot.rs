//! The boot order of XCC: classes of devices in the standard resource, and the NICs of the class `Network` in the
//! vendor's own.
//!
//! The two are one list here. A NIC's entry has the reference `Boot0003/UEFI:   SLOT5 (CA/0/0) PXE IPv4  ...`: the class
//! before the slash, the firmware's own text, which is rewritten as it was read, after it.

use serde_json::{Value, json};

use crate::clients::redfish::dialect::{At, BootChange};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::firmware::settings_object;
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::service::Redfish;
use crate::clients::redfish::standard::{found, found_linked};
use crate::domain::boot::{BootOption, BootSetup, Kind};

/// The class that the firmware loses (Q10), as its own resource calls it.
const DISKS: &str = "Hard Disk";

/// The order as it was read.
pub struct Order {
    /// Classes in their order, by reference.
    classes: Vec<Class>,
    /// Classes that exist and are not in the order.
    dropped: Vec<Class>,
    /// References for the next boot.
    next: Vec<String>,
    /// Where `next` is written.
    settings: Option<String>,
    /// The vendor's own resource of classes.
    by_name: Option<Resource>,
    network: Option<Network>,
    incomplete: Option<String>,
}

#[derive(Clone)]
struct Class {
    reference: String,
    name: String,
    path: Option<String>,
}

/// The entries of the class `Network`.
struct Network {
    class: String,
    resource: Resource,
    now: Vec<String>,
    next: Vec<String>,
}

/// Reads it; `None` where the system has no boot order.
pub async fn read(at: At<'_>) -> Result<Option<Order>, RedfishError> {
    let redfish = at.redfish;
    // Read anew: what the caller has may be of before the boot.
    let system = redfish.get(&at.system.path).await?;
    let order = texts(&system, "/Boot/BootOrder");
    let Some(list) = system.link("/Boot/BootOptions").filter(|_| system.at("/Boot/BootOrder").is_some()) else {
        return Ok(None);
    };
    let listing = redfish.list(&list).await?;
    let known: Vec<Class> = listing.members.iter().map(class_of).collect();
    let mut incomplete = None;
    let mut classes = Vec::new();
    for reference in &order {
        match known.iter().find(|class| class.reference == *reference) {
            Some(class) => classes.push(class.clone()),
            None => {
                let skipped = listing.skipped.iter().map(|s| format!(" ({}: {})", s.path, s.why)).collect::<String>();
                incomplete = Some(format!("'{reference}' is in the order and not among the options{skipped}"));
                classes.push(Class { reference: reference.clone(), name: reference.clone(), path: None });
            }
        }
    }
    let own = Own::read(redfish, &system).await?;
    let settings = settings_object(&system);
    let pending = match &settings {
        Some(path) => found(redfish.get(path).await)?.map(|pending| texts(&pending, "/Boot/BootOrder")),
        None => None,
    };
    let mut dropped = Vec::new();
    if let Some(by_name) = &own.classes
        && texts(by_name, "BootOrderSupported").iter().any(|name| same_name(name, DISKS))
        && !classes.iter().any(|class| same_name(&class.name, DISKS))
    {
        let known = known.iter().find(|class| same_name(&class.name, DISKS)).cloned();
        let unnamed = || Class { reference: DISKS.to_owned(), name: DISKS.to_owned(), path: None };
        dropped.push(known.unwrap_or_else(unnamed));
    }
    let reference_of = |name: &String| {
        let all = classes.iter().chain(&dropped).chain(&known);
        let found = all.into_iter().find(|class| same_name(&class.name, name));
        found.map_or_else(|| name.clone(), |class| class.reference.clone())
    };
    let named_next = own.classes.as_ref().and_then(|by_name| {
        let (now, next) = (texts(by_name, "BootOrderCurrent"), texts(by_name, "BootOrderNext"));
        (now != next && !next.is_empty()).then(|| next.iter().map(reference_of).collect::<Vec<_>>())
    });
    // Either of the two resources may be the one that shows a change.
    let next = match (pending.filter(|next| !next.is_empty() && *next != order), named_next) {
        (Some(pending), _) => pending,
        (None, Some(named)) => named,
        (None, None) => order,
    };
    let class = classes.iter().find(|class| same_name(&class.name, "Network")).map(|class| class.reference.clone());
    let network = class.zip(own.network).map(|(class, resource)| Network {
        class,
        now: texts(&resource, "BootOrderCurrent"),
        next: texts(&resource, "BootOrderNext"),
        resource,
    });
    Ok(Some(Order { classes, dropped, next, settings, by_name: own.classes, network, incomplete }))
}

/// The vendor's own resources for the order. Newer machines have none.
#[derive(Default)]
struct Own {
    classes: Option<Resource>,
    network: Option<Resource>,
}

impl Own {
    async fn read(redfish: &Redfish, system: &Resource) -> Result<Own, RedfishError> {
        let Some(parent) = system.link("/Oem/Lenovo/BootSettings") else { return Ok(Own::default()) };
        let Some(listed) = found_linked(redfish, &parent).await? else { return Ok(Own::default()) };
        let path_of = |id: &str| {
            let ends = |link: &String| link.trim_end_matches('/').rsplit('/').next() == Some(id);
            listed.links("Members").into_iter().find(ends)
        };
        Ok(Own {
            classes: child(redfish, &parent, path_of("BootOrder.BootOrder")).await?,
            network: child(redfish, &parent, path_of("BootOrder.NetworkBootOrder")).await?,
        })
    }
}

/// A child of the vendor's collection. It is built by a read of its parent, so one that is missing is asked for once more
/// after such a read (Q9).
async fn child(redfish: &Redfish, parent: &str, path: Option<String>) -> Result<Option<Resource>, RedfishError> {
    let Some(path) = path else { return Ok(None) };
    match found(redfish.get(&path).await)? {
        Some(child) => Ok(Some(child)),
        None => {
            redfish.get(parent).await?;
            found(redfish.get(&path).await)
        }
    }
}

fn class_of(option: &Resource) -> Class {
    let reference = option.text("BootOptionReference").unwrap_or_else(|| option.id());
    let name = option.text("DisplayName").or_else(|| option.text("Name")).unwrap_or_else(|| reference.clone());
    Class { reference, name, path: option.text("UefiDevicePath") }
}

/// The texts of a list, untouched: what is written back has to be what was read.
fn texts(resource: &Resource, pointer: &str) -> Vec<String> {
    let list = resource.at(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
}

/// Whether two resources mean one class: `HardDisk` there, `Hard Disk` here, `CD_DVDRom` and `CD/DVD Rom`.
fn same_name(a: &str, b: &str) -> bool {
    let plain = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    plain(a) == plain(b)
}

impl Order {
    /// As the rules read it.
    pub fn into_setup(self) -> BootSetup {
        let option = |class: &Class| BootOption::new(&class.reference, &class.name, class.path.as_deref(), None, None);
        let mut options = Vec::new();
        for class in &self.classes {
            match self.network.as_ref().filter(|network| network.class == class.reference && !network.now.is_empty()) {
                Some(network) => options.extend(network.now.iter().map(|entry| network.option(entry, None))),
                None => options.push(option(class)),
            }
        }
        let mut aside: Vec<BootOption> = self.dropped.iter().map(option).collect();
        if let Some(network) = &self.network {
            let idle = texts(&network.resource, "BootOrderSupported").into_iter();
            let idle = idle.filter(|entry| !network.now.contains(entry));
            aside.extend(idle.map(|entry| network.option(&entry, Some(false))));
        }
        let now = self.flat(&self.references(), self.network.as_ref().map(|network| &network.now));
        let next = self.flat(&self.next, self.network.as_ref().map(|network| &network.next));
        BootSetup { options, aside, staged: (now != next).then_some(next), incomplete: self.incomplete }
    }

    fn references(&self) -> Vec<String> {
        self.classes.iter().map(|class| class.reference.clone()).collect()
    }

    /// Classes with the entries of the network in the place of theirs.
    fn flat(&self, classes: &[String], entries: Option<&Vec<String>>) -> Vec<String> {
        let mut all = Vec::new();
        for reference in classes {
            match self.network.as_ref().zip(entries).filter(|(n, e)| n.class == *reference && !e.is_empty()) {
                Some((network, entries)) => all.extend(entries.iter().map(|entry| network.reference(entry))),
                None => all.push(reference.clone()),
            }
        }
        all
    }

    /// The vendor's name of a class.
    fn name_of(&self, reference: &str) -> String {
        let class = self.classes.iter().chain(&self.dropped).find(|class| class.reference == reference);
        let name = class.map_or(reference, |class| &class.name);
        let known = self.by_name.as_ref().map(|resource| texts(resource, "BootOrderSupported")).unwrap_or_default();
        known.into_iter().find(|known| same_name(known, name)).unwrap_or_else(|| name.to_owned())
    }
}

impl Network {
    fn reference(&self, entry: &str) -> String {
        format!("{}/{entry}", self.class)
    }

    fn option(&self, entry: &str, enabled: Option<bool>) -> BootOption {
        let mut option = BootOption::new(&self.reference(entry), entry, None, None, enabled);
        // Whatever its text says: it is in this class.
        if !option.kind.is_network() {
            option.kind = Kind::Network;
        }
        option
    }
}

/// Stages an order: the classes, and the entries of the network, each where it differs from what is staged already.
pub async fn stage(at: At<'_>, change: &BootChange) -> Result<(), RedfishError> {
    let unusable = |what: String| RedfishError::Unusable { path: at.system.path.clone(), what };
    let Some(now) = read(at).await? else { return Err(unusable("the system has no boot order".to_owned())) };
    if let Some(reference) = change.disable.first() {
        return Err(unusable(format!("this BMC's boot options cannot be disabled ('{reference}')")));
    }
    let (classes, entries) = split(&now, &change.order);
    let next_entries = now.network.as_ref().map(|network| network.next.clone()).unwrap_or_default();
    if let Some(network) = now.network.as_ref().filter(|_| !entries.is_empty() && entries != next_entries) {
        at.redfish.patch(&network.resource.path, &json!({"BootOrderNext": entries})).await?;
    }
    if classes == now.next {
        return Ok(());
    }
    let named = classes.iter().map(|reference| now.name_of(reference)).collect::<Vec<_>>();
    // A class that was dropped has no reference in the standard resource any more.
    let has_all = !classes.iter().any(|reference| same_name(reference, DISKS));
    let standard = match now.settings.as_deref().filter(|_| has_all) {
        Some(path) => at.redfish.patch(path, &json!({"Boot": {"BootOrder": classes}})).await.map(drop),
        None => Err(unusable("the system takes no boot order for the next boot".to_owned())),
    };
    match (standard, &now.by_name) {
        (
            Err(RedfishError::Refused { .. } | RedfishError::NotFound { .. } | RedfishError::Unusable { .. }),
            Some(own),
        ) => at.redfish.patch(&own.path, &json!({"BootOrderNext": named})).await.map(drop),
        (done, _) => done,
    }
}

/// The classes of a list in the order of their first mention, and the entries of the network in theirs.
fn split(now: &Order, order: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut classes, mut entries) = (Vec::<String>::new(), Vec::new());
    for reference in order {
        let entry = now.network.as_ref().and_then(|network| {
            let entry = reference.strip_prefix(&network.class)?.strip_prefix('/')?;
            Some((network.class.clone(), entry.to_owned()))
        });
        let class = match entry {
            Some((class, entry)) => {
                entries.push(entry);
                class
            }
            None => reference.clone(),
        };
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    (classes, entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_has_two_names() {
        for (a, b) in [("HardDisk", "Hard Disk"), ("CD_DVDRom", "CD/DVD Rom"), ("USBStorage", "USB Storage")] {
            assert!(same_name(a, b), "{a} {b}");
        }
        assert!(!same_name("Network", "Hard Disk"));
    }
}
