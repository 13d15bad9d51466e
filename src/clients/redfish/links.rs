//! Reads the state of a host's network links from every source that a BMC has for them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::collection::Skipped;
use super::error::RedfishError;
use super::resource::{Resource, same_path, text_of};
use super::service::Redfish;
use super::vendor::Vendor;
use crate::domain::link::LinkState;
use crate::domain::mac::Mac;

/// What a BMC says of one MAC address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOfMac {
    pub state: LinkState,
    /// NIC or slot as the BMC names it.
    pub slot: Option<String>,
    /// The BMC's own word, where it is not one of the usual, or where something else is to be said of it.
    pub raw: Option<String>,
}

/// One look at the links.
#[derive(Debug, Default)]
pub struct Links {
    pub by_mac: BTreeMap<Mac, LinkOfMac>,
    pub skipped: Vec<Skipped>,
}

/// Why links could not be read at all. Not the same as an unknown state of one (L3).
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    #[error("the system '{system}' has neither Ethernet interfaces nor network adapters")]
    Unsupported { system: String },
    #[error(transparent)]
    Redfish(#[from] RedfishError),
}

/// One source's word on one link.
#[derive(Debug, Clone, PartialEq)]
pub struct Word {
    pub status: Option<String>,
    pub speed_mbps: Option<u64>,
    /// Switched off in the BIOS or by the BMC.
    pub disabled: bool,
}

/// Reads the links of a system for the MAC addresses of interest. One look costs few requests: the interfaces come along
/// with their collection where the BMC can do that, and only ports that belong to these addresses are read.
pub async fn read(
    redfish: &Redfish,
    root: &Resource,
    system: &Resource,
    vendor: Option<Vendor>,
    macs: &[Mac],
) -> Result<Links, LinksError> {
    let mut words: BTreeMap<Mac, Vec<Word>> = BTreeMap::new();
    let mut slots: BTreeMap<Mac, String> = BTreeMap::new();
    let mut links = Links::default();
    let mut any_source = false;
    // Expanded members of AMI collections lack fields.
    let expands =
        vendor != Some(Vendor::Ami) && root.flag("/ProtocolFeaturesSupported/ExpandQuery/Levels") == Some(true);
    let mut through_port: Vec<Mac> = Vec::new();

    if let Some(path) = system.link("EthernetInterfaces") {
        let listing = if expands { redfish.list_expanded(&path).await } else { redfish.list(&path).await };
        match listing {
            Ok(listing) => {
                any_source = true;
                links.skipped.extend(listing.skipped);
                for nic in listing.members.iter().filter(|nic| !nic.id().eq_ignore_ascii_case("ToManager")) {
                    let Some(mac) = macs_of_interface(nic).into_iter().find(|mac| macs.contains(mac)) else { continue };
                    words.entry(mac).or_default().push(word_of_interface(nic));
                    slots.entry(mac).or_insert_with(|| name_of(nic));
                    for port in ports_of_interface(redfish, nic, &mut links.skipped).await? {
                        words.entry(mac).or_default().push(word_of_port(&port));
                        through_port.push(mac);
                    }
                }
            }
            Err(e) if e.is_absent() => {}
            Err(e) => return Err(e.into()),
        }
    }
    // What an interface did not lead to is looked for in the adapters themselves.
    let missing: Vec<Mac> = macs.iter().copied().filter(|mac| !through_port.contains(mac)).collect();
    let chassis = system.links("/Links/Chassis");
    let wanted = if missing.is_empty() && any_source { &[][..] } else { &chassis[..] };
    for path in wanted {
        let found = adapters(redfish, path, expands, &mut links.skipped).await?;
        any_source |= found.is_some();
        for adapter in found.unwrap_or_default() {
            let label = slot_of(&adapter);
            for (owners, port) in ports_of_adapter(redfish, &adapter, expands, &mut links.skipped).await? {
                for mac in owners.into_iter().filter(|mac| missing.contains(mac)) {
                    words.entry(mac).or_default().push(word_of_port(&port));
                    if let Some(label) = &label {
                        slots.entry(mac).or_insert_with(|| label.clone());
                    }
                }
            }
        }
    }
    if !any_source {
        return Err(LinksError::Unsupported { system: system.id() });
    }
    for mac in macs {
        let said = words.remove(mac).unwrap_or_default();
        let (state, raw) = fold(&said, vendor.is_some_and(Vendor::doubts_link_up_without_speed));
        links.by_mac.insert(*mac, LinkOfMac { state, slot: slots.remove(mac), raw });
    }
    Ok(links)
}

/// What all sources together say of one link: UP where any says so, DOWN where some say so and none says anything else,
/// else UNKNOWN. A source that says nothing takes no part: AOC ports lack a status that their interface has.
pub fn fold(words: &[Word], doubts_up_without_speed: bool) -> (LinkState, Option<String>) {
    let mut down = 0;
    let mut odd: Option<String> = None;
    for word in words {
        let Some(status) = word.status.as_deref() else { continue };
        match status.to_ascii_lowercase().as_str() {
            "linkup" | "up" if doubts_up_without_speed && word.speed_mbps == Some(0) => {
                odd.get_or_insert_with(|| format!("{status} at 0 Mbit/s"));
            }
            "linkup" | "up" => return (LinkState::Up, None),
            "linkdown" | "down" | "nolink" => down += 1,
            _ => {
                odd.get_or_insert_with(|| status.to_owned());
            }
        }
    }
    match (down, odd) {
        (0, None) => (LinkState::Unknown, words.is_empty().then(|| "not listed by the BMC".to_owned())),
        (0, odd) => (LinkState::Unknown, odd),
        (_, Some(odd)) => (LinkState::Unknown, Some(format!("{odd} beside LinkDown"))),
        (_, None) => (LinkState::Down, words.iter().any(|w| w.disabled).then(|| "disabled".to_owned())),
    }
}

fn word_of_interface(nic: &Resource) -> Word {
    Word {
        status: nic.text("LinkStatus"),
        speed_mbps: nic.number("SpeedMbps"),
        disabled: nic.flag("InterfaceEnabled") == Some(false),
    }
}

fn word_of_port(port: &Resource) -> Word {
    let gbps = port.at("CurrentSpeedGbps").and_then(Value::as_f64).map(|gbps| (gbps * 1000.0) as u64);
    Word {
        status: port.text("LinkStatus"),
        speed_mbps: gbps.or_else(|| port.number("CurrentLinkSpeedMbps")),
        disabled: port.flag("InterfaceEnabled") == Some(false),
    }
}

fn macs_of_interface(nic: &Resource) -> Vec<Mac> {
    ["MACAddress", "PermanentMACAddress"].iter().filter_map(|name| nic.text(name)?.parse().ok()).collect()
}

/// A NIC's name for a person: the `Id` where it is a name (`NIC.Slot.3-1`), else what describes it.
fn name_of(nic: &Resource) -> String {
    let id = nic.id();
    if id.chars().any(|c| c.is_ascii_alphabetic()) {
        return id;
    }
    match (nic.text("Name"), nic.text("Description")) {
        (Some(name), Some(text)) if name != text => format!("{name} {text}"),
        (Some(name), _) => format!("{name} {id}"),
        (None, Some(text)) => text,
        (None, None) => id,
    }
}

/// The ports behind an interface: interface, function, port, each by its link.
async fn ports_of_interface(
    redfish: &Redfish,
    nic: &Resource,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<Resource>, RedfishError> {
    let mut ports = nic.links("/Links/Ports");
    if ports.is_empty()
        && let Some(path) = nic
            .link("/Links/NetworkDeviceFunction")
            .or_else(|| nic.links("/Links/NetworkDeviceFunctions").into_iter().next())
        && let Some(function) = keep(redfish.get(&path).await, &path, skipped)?
    {
        ports.extend(port_of_function(&function));
    }
    let mut read = Vec::new();
    for path in ports {
        read.extend(keep(redfish.get(&path).await, &path, skipped)?);
    }
    Ok(read)
}

/// Port first, deprecated NetworkPort second.
fn port_of_function(function: &Resource) -> Option<String> {
    ["/Links/PhysicalNetworkPortAssignment", "/Links/PhysicalPortAssignment", "PhysicalPortAssignment"]
        .iter()
        .find_map(|pointer| function.link(pointer))
}

/// The adapters of a chassis; `None` where it has no such collection.
async fn adapters(
    redfish: &Redfish,
    chassis: &str,
    expands: bool,
    skipped: &mut Vec<Skipped>,
) -> Result<Option<Vec<Resource>>, RedfishError> {
    let Some(chassis) = keep(redfish.get(chassis).await, chassis, skipped)? else { return Ok(None) };
    let Some(path) = chassis.link("NetworkAdapters") else { return Ok(None) };
    let listing = if expands { redfish.list_expanded(&path).await } else { redfish.list(&path).await };
    match listing {
        Ok(listing) => {
            skipped.extend(listing.skipped);
            Ok(Some(listing.members))
        }
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

/// The ports of an adapter with the addresses that they belong to.
async fn ports_of_adapter(
    redfish: &Redfish,
    adapter: &Resource,
    expands: bool,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<(Vec<Mac>, Resource)>, RedfishError> {
    let mut owned: Vec<(Vec<Mac>, Resource)> = Vec::new();
    for name in ["Ports", "NetworkPorts"] {
        let Some(path) = adapter.link(name) else { continue };
        let listing = if expands { redfish.list_expanded(&path).await } else { redfish.list(&path).await };
        let listing = match listing {
            Ok(listing) => listing,
            Err(e) if e.is_of_one_resource() => {
                skipped.push(Skipped { path, why: e.to_string() });
                continue;
            }
            Err(e) => return Err(e),
        };
        skipped.extend(listing.skipped);
        owned.extend(listing.members.into_iter().map(|port| (macs_of_port(&port), port)));
        if !owned.is_empty() {
            break;
        }
    }
    // AMI ports name no address: their functions do.
    if owned.iter().any(|(macs, _)| macs.is_empty())
        && let Some(path) = adapter.link("NetworkDeviceFunctions")
        && let Some(listing) = keep(redfish.list(&path).await, &path, skipped)?
    {
        for function in listing.members {
            let Some(port) = port_of_function(&function) else { continue };
            let macs = ["/Ethernet/MACAddress", "/Ethernet/PermanentMACAddress"];
            let macs = macs.iter().filter_map(|pointer| function.text(pointer)?.parse::<Mac>().ok());
            if let Some((owners, _)) = owned.iter_mut().find(|(_, p)| same_path(&p.path, &port)) {
                owners.extend(macs);
            }
        }
    }
    Ok(owned)
}

fn macs_of_port(port: &Resource) -> Vec<Mac> {
    let lists = ["/Ethernet/AssociatedMACAddresses", "AssociatedNetworkAddresses"];
    let lists = lists.iter().filter_map(|pointer| port.at(pointer)?.as_array());
    lists.flatten().filter_map(|value| text_of(value)?.parse().ok()).collect()
}

fn slot_of(adapter: &Resource) -> Option<String> {
    let controllers = adapter.at("Controllers")?.as_array()?;
    controllers.iter().find_map(|c| text_of(c.pointer("/Location/PartLocation/ServiceLabel")?))
}

/// A resource that could be read, or a note on why it is left out.
fn keep<T>(read: Result<T, RedfishError>, path: &str, skipped: &mut Vec<Skipped>) -> Result<Option<T>, RedfishError> {
    match read {
        Ok(it) => Ok(Some(it)),
        Err(e) if e.is_of_one_resource() => {
            skipped.push(Skipped { path: path.to_owned(), why: e.to_string() });
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(status: Option<&str>, speed: Option<u64>) -> Word {
        Word { status: status.map(str::to_owned), speed_mbps: speed, disabled: false }
    }

    /// Case: C-32
    #[test]
    fn every_word_for_a_link_is_up_down_or_unknown() {
        let table = [
            (Some("LinkUp"), Some(25_000), LinkState::Up),
            (Some("Up"), None, LinkState::Up),
            (Some("LinkDown"), None, LinkState::Down),
            (Some("Down"), None, LinkState::Down),
            (Some("NoLink"), None, LinkState::Down),
            (None, None, LinkState::Unknown),
            (Some("Starting"), None, LinkState::Unknown),
            (Some("Training"), None, LinkState::Unknown),
            (Some("Disabled"), None, LinkState::Unknown),
            (Some("LinkUp"), Some(0), LinkState::Up),
        ];
        for (status, speed, state) in table {
            assert_eq!(fold(&[word(status, speed)], false).0, state, "{status:?} {speed:?}");
        }
        assert_eq!(fold(&[], false).0, LinkState::Unknown);
        assert_eq!(fold(&[word(Some("Training"), None)], false).1.as_deref(), Some("Training"));
    }

    #[test]
    fn sources_are_folded_up_wins_and_a_silent_one_takes_no_part() {
        let (up, down, silent) = (word(Some("Up"), None), word(Some("LinkDown"), None), word(None, None));
        let training = word(Some("Training"), None);
        assert_eq!(fold(&[down.clone(), up.clone()], false).0, LinkState::Up);
        assert_eq!(fold(&[silent.clone(), down.clone()], false).0, LinkState::Down);
        assert_eq!(fold(&[down.clone(), training], false).0, LinkState::Unknown);
        assert_eq!(fold(&[silent.clone(), silent], false).0, LinkState::Unknown);
        let off = Word { disabled: true, ..down };
        assert_eq!(fold(&[off], false), (LinkState::Down, Some("disabled".to_owned())));
        // iDRAC says LinkUp of dark ports: only a speed or another source makes it true.
        let dell_up = word(Some("LinkUp"), Some(0));
        assert_eq!(fold(std::slice::from_ref(&dell_up), true).0, LinkState::Unknown);
        assert_eq!(fold(&[dell_up, up], true).0, LinkState::Up);
    }
}
