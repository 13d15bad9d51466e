//! The boot order of XCC: classes of devices in the standard resource, and the NICs of the class `Network` in the
//! vendor's own.
//!
//! The two are one list here. A NIC's entry has the reference `Boot0003/UEFI:   SLOT5 (CA/0/0) PXE IPv4  ...`: the class
//! before the slash, the firmware's own text, which is rewritten as it was read, after it.
//!
//! An XCC3 has no such resource: there a firmware attribute for each place of the order holds the entry in it. No such machine
//! was at hand. That it is so, and how an entry reads (`Slot5Port1HTTPv4NvidiaNetworkAdapter_B8_E9_24_18_42_52`), is known of
//! two public clients that were written against real ones. What does not read so is left alone.

use serde_json::{Map, Value, json};

use crate::clients::redfish::dialect::{At, BootChange};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::firmware::{self, settings_object};
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::service::Redfish;
use crate::clients::redfish::standard::{found, found_linked, linked};
use crate::domain::bios::Bios;
use crate::domain::boot::{BootOption, BootSetup, Evidence, Kind};
use crate::domain::mac::Mac;

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
    now: Vec<String>,
    next: Vec<String>,
    /// Entries that exist and are not in the order.
    idle: Vec<String>,
    kept: Kept,
}

/// Where the order of the entries is written.
enum Kept {
    /// In the vendor's own resource.
    Resource(String),
    /// In firmware attributes, one a place: the path for the next boot, and the names of the places that have an entry.
    Attributes { settings: String, places: Vec<String> },
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
    let network = match (class, own.network) {
        (None, _) => None,
        (Some(class), Some(resource)) => {
            let now = texts(&resource, "BootOrderCurrent");
            let mut idle = texts(&resource, "BootOrderSupported");
            idle.retain(|entry| !now.contains(entry));
            let next = texts(&resource, "BootOrderNext");
            Some(Network { class, now, next, idle, kept: Kept::Resource(resource.path) })
        }
        (Some(class), None) => match by_attributes(at, &system, class).await? {
            Ok(network) => network,
            Err(why) => {
                incomplete.get_or_insert(why);
                None
            }
        },
    };
    Ok(Some(Order { classes, dropped, next, settings, by_name: own.classes, network, incomplete }))
}

/// An attribute of an XCC3's firmware that holds what is tried in one place of the order of NICs.
const PLACE: &str = "BootOrder_NetworkPriority_";

/// The most places met.
const PLACES_MAX: u32 = 10;

/// The order of NICs as firmware attributes; `None` where the firmware has none, and the reason where they are not as they are
/// known to be.
async fn by_attributes(
    at: At<'_>,
    system: &Resource,
    class: String,
) -> Result<Result<Option<Network>, String>, RedfishError> {
    let names: Vec<String> = (1..=PLACES_MAX).map(|n| format!("{PLACE}{n}")).collect();
    let Some(bios) = firmware::read(at.redfish, at.root, system, &[]).await? else { return Ok(Ok(None)) };
    if !names.iter().any(|name| bios.now.contains_key(name)) {
        return Ok(Ok(None));
    }
    // The registry is large, and read only where it is needed.
    let Some(bios) = firmware::read(at.redfish, at.root, system, &names).await? else { return Ok(Ok(None)) };
    let resource = linked(at.redfish, system, "Bios").await?;
    let settings = resource.as_ref().and_then(settings_object);
    Ok(places(&bios, &names).map(|found| {
        let (places, now, next) = found?;
        let kept = Kept::Attributes { settings: settings?, places };
        Some(Network { class, now, next, idle: vec![], kept })
    }))
}

/// Places that have an entry, the entries now and at the next boot.
type Places = (Vec<String>, Vec<String>, Vec<String>);

/// Reads the attributes of all places; `None` where no place has an entry, and the reason where they can't be relied on.
fn places(bios: &Bios, names: &[String]) -> Result<Option<Places>, String> {
    let (mut places, mut now, mut next) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let Some(entry) = bios.now.get(name).and_then(Value::as_str).filter(|entry| mac_at_end(entry).is_some()) else {
            continue;
        };
        let then = bios.staged.get(name).map_or(Some(entry), Value::as_str).unwrap_or_default();
        if let Some(rule) = bios.rules.get(name) {
            if rule.read_only {
                return Err(format!("its firmware lets nobody write the attribute '{name}'"));
            }
            if !rule.values.is_empty() && !rule.values.iter().any(|value| value == entry) {
                return Err(format!("its firmware's registry does not know '{entry}', which '{name}' is"));
            }
        }
        places.push(name.clone());
        now.push(entry.to_owned());
        next.push(then.to_owned());
    }
    let twice =
        |list: &[String]| list.iter().enumerate().find(|(n, entry)| list[..*n].contains(entry)).map(|(_, e)| e.clone());
    if let Some(entry) = twice(&now).or_else(|| twice(&next)) {
        return Err(format!("its firmware attributes {PLACE}1 and on have '{entry}' in two places"));
    }
    Ok((!places.is_empty()).then_some((places, now, next)))
}

/// The address at the end of an entry, in six pairs of digits: `..._B8_E9_24_18_42_52`.
fn mac_at_end(entry: &str) -> Option<Mac> {
    let pairs: Vec<&str> = entry.rsplit('_').take(6).collect();
    let all = pairs.len() == 6 && pairs.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
    if all { pairs.into_iter().rev().collect::<String>().parse().ok() } else { None }
}

/// How an entry of an attribute boots: by the word between the port and the adapter.
fn way_of(entry: &str) -> Kind {
    let ways = [("PXEv4", Kind::PxeV4), ("HTTPv4", Kind::HttpV4), ("PXEv6", Kind::PxeV6), ("HTTPv6", Kind::HttpV6)];
    ways.into_iter().find(|(word, _)| entry.contains(word)).map_or(Kind::Network, |(_, kind)| kind)
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
            aside.extend(network.idle.iter().map(|entry| network.option(entry, Some(false))));
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
        if let Kept::Attributes { .. } = self.kept {
            option.kind = way_of(entry);
            option.evidence.extend(mac_at_end(entry).map(|mac| Evidence { source: PLACE.to_owned(), mac }));
        }
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
        match &network.kept {
            Kept::Resource(path) => at.redfish.patch(path, &json!({"BootOrderNext": entries})).await?,
            Kept::Attributes { settings, places } => {
                // All that move, in one write: in none of its moments is an entry in two places.
                let moved = places.iter().zip(&entries).zip(&next_entries).filter(|((_, to), now)| to != now);
                let moved: Map<String, Value> = moved.map(|((place, to), _)| (place.clone(), json!(to))).collect();
                at.redfish.patch(settings, &json!({"Attributes": moved})).await?
            }
        };
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

    const PXE: &str = "Slot5Port1PXEv4NvidiaNetworkAdapter_B8_E9_24_18_42_52";
    const HTTP: &str = "Slot5Port1HTTPv4NvidiaNetworkAdapter_B8_E9_24_18_42_52";

    #[test]
    fn an_entry_of_an_attribute_names_its_nic_and_its_way() {
        assert_eq!(mac_at_end(HTTP), "b8:e9:24:18:42:52".parse().ok());
        assert_eq!([PXE, HTTP, "Slot1Port1_B8_E9_24_18_42_52"].map(way_of), [Kind::PxeV4, Kind::HttpV4, Kind::Network]);
        for other in
            ["None", "", "NvidiaNetworkAdapter_B8_E9_24_18_42", "Adapter_B8_E9_24_18_42_5G", "Adapter-B8E924184252"]
        {
            assert_eq!(mac_at_end(other), None, "{other}");
        }
    }

    /// Fails closed: what is not as it is known to be is not written to.
    #[test]
    fn places_that_cannot_be_relied_on_are_left_alone_with_the_reason() {
        use crate::domain::bios::Rule;
        let names = [format!("{PLACE}1"), format!("{PLACE}2"), format!("{PLACE}3")];
        let bios = |entries: [&str; 3]| Bios {
            now: names.iter().cloned().zip(entries.map(|entry| json!(entry))).collect(),
            ..Bios::default()
        };
        let good = bios([PXE, "None", HTTP]);
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let both = list(&[PXE, HTTP]);
        let found = places(&good, &names).unwrap().unwrap();
        assert_eq!(found, (list(&[&names[0], &names[2]]), both.clone(), both));
        assert_eq!(places(&bios(["None", "", "Disabled"]), &names), Ok(None));
        assert!(places(&bios([PXE, PXE, HTTP]), &names).unwrap_err().contains("two places"));
        let ruled = |rule: Rule| Bios { rules: [(names[0].clone(), rule)].into(), ..good.clone() };
        let read_only = ruled(Rule { read_only: true, values: vec![] });
        assert!(places(&read_only, &names).unwrap_err().contains("lets nobody write"));
        let unknown = ruled(Rule { read_only: false, values: vec![HTTP.to_owned()] });
        assert!(places(&unknown, &names).unwrap_err().contains("does not know"));
    }
}
