//! The host's boot options as an iDRAC tells of them. Its device paths name no NIC, so that the NIC behind an option is
//! looked for on every way that there is, and each one that leads somewhere is evidence.

use serde_json::{Value, json};

use super::staging::Sources;
use crate::clients::redfish::collection::Listing;
use crate::clients::redfish::dialect::At;
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::firmware::settings_object;
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::standard::{believed, found, linked};
use crate::domain::boot::{BootOption, BootSetup, Evidence};
use crate::domain::mac::Mac;

/// Network devices that a firmware has at most.
const DEVICES_MAX: u32 = 16;

/// The boot options in the order of `Boot.BootOrder`: the one of the collection means nothing (Q11).
pub(super) async fn read(at: At<'_>) -> Result<Option<BootSetup>, RedfishError> {
    let system = at.redfish.get(&at.system.path).await?;
    let order = order_of(&system);
    let Some(options) = options(at, &system).await? else { return Ok(None) };
    let nics = Nics::read(at).await?;
    let bios = linked(at.redfish, &system, "Bios").await?;
    let mut setup = BootSetup::default();
    let mut members = options.members;
    for reference in &order {
        match members.iter().position(|member| reference_of(member) == *reference) {
            Some(n) => setup.options.push(option(at, &members.remove(n), bios.as_ref(), &nics).await?),
            None => {
                let skipped = options.skipped.iter().find(|s| s.path.ends_with(reference.as_str()));
                let why = skipped.map_or_else(|| "it is not listed".to_owned(), |s| s.why.clone());
                setup.incomplete.get_or_insert_with(|| format!("'{reference}' of the boot order: {why}"));
            }
        }
    }
    // Some firmware takes what is switched off out of the order.
    for member in &members {
        setup.options.push(option(at, member, bios.as_ref(), &nics).await?);
    }
    setup.staged = staged(at, &system, &order).await?;
    Ok(Some(setup))
}

/// The references of the boot order in force.
pub(super) fn order_of(system: &Resource) -> Vec<String> {
    let list = system.at("/Boot/BootOrder").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|entry| Some(entry.as_str()?.to_owned())).collect()
}

/// The boot options as they are listed; `None` where the iDRAC lists none.
pub(super) async fn options(at: At<'_>, system: &Resource) -> Result<Option<Listing>, RedfishError> {
    let Some(path) = system.link("/Boot/BootOptions") else { return Ok(None) };
    listed(at, &path).await
}

pub(super) fn reference_of(option: &Resource) -> String {
    option.text("BootOptionReference").unwrap_or_else(|| option.id())
}

async fn option(
    at: At<'_>,
    member: &Resource,
    bios: Option<&Resource>,
    nics: &Nics,
) -> Result<BootOption, RedfishError> {
    let name = member.text("DisplayName").unwrap_or_default();
    let (path, alias) = (member.text("UefiDevicePath"), member.text("Alias"));
    let enabled = member.flag("BootOptionEnabled");
    let mut option = BootOption::new(&reference_of(member), &name, path.as_deref(), alias.as_deref(), enabled);
    if !option.kind.is_network() {
        return Ok(option);
    }
    for path in member.links("RelatedItem") {
        let item = match at.redfish.get(&path).await {
            Ok(item) => item,
            // It is one way among several (Q12).
            Err(e) if e.is_of_one_resource() => continue,
            Err(e) => return Err(e),
        };
        add(&mut option, "RelatedItem", mac_of(&item));
    }
    if let Some(fqdd) = bios.and_then(|bios| device(bios, &name)) {
        for nic in nics.all.iter().filter(|nic| nic.id.eq_ignore_ascii_case(&fqdd.1)) {
            add(&mut option, &fqdd.0, Some(nic.mac));
        }
    }
    if let Some(place) = place_of(&name) {
        for nic in nics.all.iter().filter(|nic| nic.description.eq_ignore_ascii_case(place)) {
            add(&mut option, "DeviceDescription", Some(nic.mac));
        }
    }
    Ok(option)
}

fn add(option: &mut BootOption, source: &str, mac: Option<Mac>) {
    let Some(mac) = mac else { return };
    let evidence = Evidence { source: source.to_owned(), mac };
    if !option.evidence.contains(&evidence) {
        option.evidence.push(evidence);
    }
}

/// `PXE Device 1: …` is the device of the firmware with that number: the attribute that names its NIC, and the FQDD there.
/// A device that is switched off proves nothing.
fn device(bios: &Resource, name: &str) -> Option<(String, String)> {
    let (kind, number) = device_of(name)?;
    let word = |end: &str| bios.text(&format!("/Attributes/{kind}Dev{number}{end}"));
    if word("EnDis").as_deref() != Some("Enabled") {
        return None;
    }
    Some((format!("{kind}Dev{number}Interface"), word("Interface")?))
}

/// The kind and the number of the network device that an option's name begins with.
pub(super) fn device_of(name: &str) -> Option<(&'static str, u32)> {
    let head = name.split(':').next()?.to_ascii_uppercase();
    let (kind, rest) = match head.strip_prefix("PXE DEVICE ") {
        Some(rest) => ("Pxe", rest),
        None => ("Http", head.strip_prefix("HTTP DEVICE ")?),
    };
    Some((kind, rest.trim().parse().ok()?))
}

/// The firmware has an option for a NIC only where one of its few network devices is that NIC. The first device that is off is
/// made so; one that is on is another NIC's, and stays.
pub(super) async fn make_bootable(at: At<'_>, nic: Mac) -> Result<Vec<(String, Value)>, RedfishError> {
    let Some(bios) = linked(at.redfish, at.system, "Bios").await? else { return Ok(vec![]) };
    let nics = Nics::read(at).await?;
    let fqdds: Vec<&str> = nics.all.iter().filter(|known| known.mac == nic).map(|known| known.id.as_str()).collect();
    Ok(device_for(&bios, &fqdds))
}

/// The attributes that make a PXE device of a NIC.
fn device_for(bios: &Resource, fqdds: &[&str]) -> Vec<(String, Value)> {
    let word = |device: &str, end: &str| bios.text(&format!("/Attributes/{device}{end}"));
    let devices = |kind: &str| (1..=DEVICES_MAX).map(|n| format!("{kind}Dev{n}")).collect::<Vec<_>>();
    let is_on = |device: &String| word(device, "EnDis").as_deref() == Some("Enabled");
    let is_its = |device: &String| {
        word(device, "Interface").is_some_and(|its| fqdds.iter().any(|fqdd| its.eq_ignore_ascii_case(fqdd)))
    };
    let mut all = [devices("Pxe"), devices("Http")].concat().into_iter();
    let Some(fqdd) = fqdds.first().filter(|_| !all.any(|device| is_on(&device) && is_its(&device))) else {
        return vec![];
    };
    let spare = devices("Pxe").into_iter().find(|device| word(device, "EnDis").as_deref() == Some("Disabled"));
    let Some(device) = spare else { return vec![] };
    let mut attributes =
        vec![(format!("{device}EnDis"), json!("Enabled")), (format!("{device}Interface"), json!(fqdd))];
    if word(&device, "Protocol").is_some_and(|protocol| protocol != "IPv4") {
        attributes.push((format!("{device}Protocol"), json!("IPv4")));
    }
    attributes
}

/// What an option's name says of the NIC's place: after the colon, up to what newer firmware adds by hyphens.
fn place_of(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once(':')?;
    let place = rest.split(" - ").next()?.trim();
    (!place.is_empty()).then_some(place)
}

/// The host's NICs by FQDD.
struct Nics {
    all: Vec<Known>,
}

struct Known {
    id: String,
    mac: Mac,
    description: String,
}

impl Nics {
    /// Every interface and function that the iDRAC lists.
    async fn read(at: At<'_>) -> Result<Nics, RedfishError> {
        let mut all = Vec::new();
        if let Some(path) = at.system.link("EthernetInterfaces") {
            all.extend(members(at, &path).await?.iter().filter_map(known));
        }
        for chassis in at.system.links("/Links/Chassis") {
            let Some(chassis) = found(at.redfish.get(&chassis).await)? else { continue };
            let Some(path) = chassis.link("NetworkAdapters") else { continue };
            for adapter in members(at, &path).await? {
                let Some(path) = adapter.link("NetworkDeviceFunctions") else { continue };
                all.extend(members(at, &path).await?.iter().filter_map(known));
            }
        }
        Ok(Nics { all })
    }
}

/// Whether members come along with their collection.
pub(super) fn expands(at: At<'_>) -> bool {
    at.root.flag("/ProtocolFeaturesSupported/ExpandQuery/Levels") == Some(true)
}

async fn members(at: At<'_>, path: &str) -> Result<Vec<Resource>, RedfishError> {
    Ok(listed(at, path).await?.map(|listing| listing.members).unwrap_or_default())
}

/// The members of a collection, by one request where the iDRAC can; `None` where there is none.
pub(super) async fn listed(at: At<'_>, path: &str) -> Result<Option<Listing>, RedfishError> {
    let redfish = at.redfish;
    if expands(at) {
        return believed(redfish.list_expanded(path).await, redfish.list_expanded(path)).await;
    }
    believed(redfish.list(path).await, redfish.list(path)).await
}

fn known(nic: &Resource) -> Option<Known> {
    let description = nic.text("/Oem/Dell/DellNIC/DeviceDescription").or_else(|| nic.text("Description"));
    Some(Known { id: nic.id(), mac: mac_of(nic)?, description: description.unwrap_or_default() })
}

/// The address that a NIC goes by. Of a function it is one level deeper.
fn mac_of(nic: &Resource) -> Option<Mac> {
    ["MACAddress", "/Ethernet/MACAddress", "PermanentMACAddress", "/Ethernet/PermanentMACAddress"]
        .iter()
        .find_map(|pointer| nic.text(pointer)?.parse().ok())
}

/// The order that is staged, where one is: as boot sources, or as the system's own.
async fn staged(at: At<'_>, system: &Resource, order: &[String]) -> Result<Option<Vec<String>>, RedfishError> {
    if let Some(sources) = Sources::read(at, system).await? {
        let settings = found(at.redfish.get(&sources.settings).await)?;
        let staged = settings.as_ref().map(Sources::sequence).unwrap_or_default();
        if !staged.is_empty() {
            let place = |id: &str| sources.entries.iter().position(|entry| entry.id == id);
            let staged = staged.iter().filter_map(|entry| order.get(place(&entry.id)?).cloned()).collect();
            return Ok(Some(staged));
        }
    }
    let Some(path) = settings_object(system) else { return Ok(None) };
    let staged = found(at.redfish.get(&path).await)?.map(|settings| order_of(&settings)).unwrap_or_default();
    Ok((!staged.is_empty() && staged != order).then_some(staged))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bios(attributes: Value) -> Resource {
        let body = json!({"Attributes": attributes}).as_object().unwrap().clone();
        Resource { path: "/b".into(), body, etag: None }
    }

    #[test]
    fn a_network_device_names_its_nic_by_the_number_in_its_options_name() {
        assert_eq!(device_of("PXE Device 1: Embedded NIC 1 Port 1 Partition 1"), Some(("Pxe", 1)));
        assert_eq!(device_of("HTTP Device 12: NIC in Slot 5 Port 1 - x - IPv4"), Some(("Http", 12)));
        assert_eq!(device_of("Unavailable: ubuntu"), None);
        let on = bios(json!({"PxeDev1EnDis": "Enabled", "PxeDev1Interface": "NIC.Slot.5-1"}));
        let name = "PXE Device 1: NIC in Slot 5 Port 1";
        assert_eq!(device(&on, name), Some(("PxeDev1Interface".into(), "NIC.Slot.5-1".into())));
        let off = bios(json!({"PxeDev1EnDis": "Disabled", "PxeDev1Interface": "NIC.Slot.5-1"}));
        assert_eq!(device(&off, name), None);
        // Devices beyond the fourth have no switch on some machines.
        assert_eq!(device(&bios(json!({"PxeDev1Interface": "NIC.Slot.5-1"})), name), None);
    }

    #[test]
    fn a_nic_gets_the_first_device_that_is_off_and_none_where_it_has_one_or_none_is_left() {
        let of = |attributes: Value| device_for(&bios(attributes), &["NIC.Slot.5-1"]);
        let two = json!({"PxeDev1EnDis": "Enabled", "PxeDev1Interface": "NIC.Embedded.1-1-1", "PxeDev2EnDis": "Disabled",
            "PxeDev2Interface": "NIC.Embedded.1-1-1", "PxeDev2Protocol": "IPv6"});
        let pair = |name: &str, value: &str| (name.to_owned(), json!(value));
        let on = [
            pair("PxeDev2EnDis", "Enabled"),
            pair("PxeDev2Interface", "NIC.Slot.5-1"),
            pair("PxeDev2Protocol", "IPv4"),
        ];
        assert_eq!(of(two), on);
        let by_http =
            json!({"HttpDev1EnDis": "Enabled", "HttpDev1Interface": "NIC.Slot.5-1", "PxeDev1EnDis": "Disabled"});
        assert_eq!(of(by_http), []);
        assert_eq!(of(json!({"PxeDev1EnDis": "Enabled", "PxeDev1Interface": "NIC.Embedded.1-1-1"})), []);
        assert_eq!(device_for(&bios(json!({"PxeDev1EnDis": "Disabled"})), &[]), []);
    }

    #[test]
    fn the_place_of_a_nic_is_what_stands_between_the_colon_and_the_first_hyphen() {
        assert_eq!(place_of("HTTP Device 1: NIC in Slot 5 Port 1"), Some("NIC in Slot 5 Port 1"));
        assert_eq!(place_of("HTTP Device 1: NIC in Slot 2 Port 1 - Card - AA - IPv4"), Some("NIC in Slot 2 Port 1"));
        assert_eq!(place_of("Network"), None);
        assert_eq!(place_of("Network:"), None);
    }
}
