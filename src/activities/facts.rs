//! Reads a host whole from NetBox, live: what DHCP, BMC and Ironic steps need to know of it.

mod cables;
mod settings;

use std::cmp::Ordering;
use std::net::IpAddr;

use serde_json::{Map, Value};

use self::cables::Cabling;
pub use self::cables::switches;
use super::env::ActivityCx;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::records::{
    AddressOfDevice, DeviceRecord, InterfaceRecord, IpAddressRecord, SiteRecord, text_field,
};
use crate::clients::netbox::{NetBox, Versioned};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::{HostFacts, HostInterface, SiteFacts};
use crate::domain::mac::Mac;
use crate::domain::phase::Phase;
use crate::domain::text::neutralize;
use crate::workflows::defs::Target;

/// Reads the target live: the device, its site and role, its interfaces, the far ends of their cables. Seven requests
/// where everything is there.
pub async fn read(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<HostFacts, Failure> {
    let netbox = &cx.env.clients.netbox;
    let failed = |error: NetBoxError| netbox.failure(&error, phase);
    let device = find(cx, target, phase, Depth::WithContext).await?.record;
    let (site, role, interfaces, oob) = futures::try_join!(
        netbox.site(device.site.id),
        netbox.role(device.role.id),
        netbox.interfaces_of(device.id),
        address(netbox, device.oob_ip.as_ref()),
    )
    .map_err(failed)?;
    let cabling = Cabling::read(cx, &interfaces).await.map_err(failed)?;
    let device_class = text_field(&role.custom_fields, &cx.env.settings.netbox.fields.device_class);
    let parts = Parts { device, site, device_class: device_class.map(str::to_owned), interfaces, oob, cabling };
    assemble(parts, phase)
}

/// How much of the device is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Without its config context.
    Plain,
    WithContext,
}

/// Finds the target's device: by its id where it still has the expected name, else by the name within the site.
pub async fn find(
    cx: &ActivityCx,
    target: &Target,
    phase: Phase,
    depth: Depth,
) -> Result<Versioned<DeviceRecord>, Failure> {
    let netbox = &cx.env.clients.netbox;
    let failed = |error: NetBoxError| netbox.failure(&error, phase);
    let by_id = match fetch(netbox, target.netbox_id, depth).await {
        Ok(found) => Some(found),
        Err(NetBoxError::NotFound { .. }) => None,
        Err(error) => return Err(failed(error)),
    };
    let found = match by_id {
        Some(found) if found.record.name.as_deref() == Some(target.host.as_str()) => found,
        other => {
            let named = netbox.devices_named(&target.host).await.map_err(failed)?;
            let here: Vec<u64> = named.iter().filter(|d| d.site.slug == target.site).map(|d| d.id).collect();
            match here[..] {
                [id] => {
                    cx.note("netbox", format!("'{}' is device {id} now, was {}", target.host, target.netbox_id));
                    fetch(netbox, id, depth).await.map_err(failed)?
                }
                _ => return Err(not_found(netbox, target, other.map(|found| found.record), &named, phase)),
            }
        }
    };
    let site = &found.record.site.slug;
    if *site != target.site {
        // The gates, the DHCP host and the credentials of the run are those of the other site.
        return Err(Failure::new(
            FailureCode::NetboxDataInvalid,
            phase,
            format!(
                "NetBox has '{}' in site '{}', this run is for site '{}'",
                target.host,
                neutralize(site),
                target.site
            ),
            format!("correct the site of '{}' in NetBox, or sync the inventory and submit it again", target.host),
        ));
    }
    Ok(found)
}

async fn fetch(netbox: &NetBox, id: u64, depth: Depth) -> Result<Versioned<DeviceRecord>, NetBoxError> {
    match depth {
        Depth::Plain => netbox.device_plain(id).await,
        Depth::WithContext => netbox.device(id).await,
    }
}

fn not_found(
    netbox: &NetBox,
    target: &Target,
    by_id: Option<DeviceRecord>,
    named: &[DeviceRecord],
    phase: Phase,
) -> Failure {
    let (host, url) = (&target.host, netbox.url().as_str().trim_end_matches('/'));
    let here = named.iter().filter(|device| device.site.slug == target.site).count();
    if here > 1 {
        let message = format!(
            "NetBox at {url} has {here} devices '{host}' in site '{}', none with id {}",
            target.site, target.netbox_id
        );
        let action = format!("give each '{host}' its own name in NetBox, or sync the inventory and submit it again");
        return Failure::new(FailureCode::DeviceNotFound, phase, message, action);
    }
    let elsewhere: Vec<String> = named.iter().map(|d| format!("'{}'", neutralize(&d.site.slug))).collect();
    let (message, action) = if elsewhere.is_empty() {
        let now = by_id.map_or_else(String::new, |device| {
            let name = device.name.unwrap_or_else(|| "(no name)".to_owned());
            format!("; its id {} is '{}' there", target.netbox_id, neutralize(&name))
        });
        (
            format!("NetBox at {url} has no device '{host}'{now}"),
            format!(
                "create or rename the device in NetBox, or sync the inventory and submit it under its new name; \
                     if '{host}' exists, let the token see it"
            ),
        )
    } else {
        (
            format!("NetBox at {url} has '{host}' in {}, not in site '{}'", elsewhere.join(", "), target.site),
            format!("correct the site of '{host}' in NetBox, or sync the inventory and submit it again"),
        )
    };
    Failure::new(FailureCode::DeviceNotFound, phase, message, action)
}

async fn address(netbox: &NetBox, oob: Option<&AddressOfDevice>) -> Result<Option<IpAddressRecord>, NetBoxError> {
    match oob {
        Some(oob) => match netbox.ip_address(oob.id).await {
            // Removed between two reads: the device's own copy of the address decides, the interface is guessed below.
            Err(NetBoxError::NotFound { .. }) => Ok(None),
            found => found.map(Some),
        },
        None => Ok(None),
    }
}

/// Everything read of one host.
struct Parts {
    device: DeviceRecord,
    site: SiteRecord,
    device_class: Option<String>,
    interfaces: Vec<InterfaceRecord>,
    oob: Option<IpAddressRecord>,
    cabling: Cabling,
}

fn assemble(parts: Parts, phase: Phase) -> Result<HostFacts, Failure> {
    let Parts { device, site, device_class, interfaces, oob, cabling } = parts;
    let name = device.name.unwrap_or_default();
    let oob_ip = device.oob_ip.as_ref().map(|oob| oob_address(&name, &oob.address, phase)).transpose()?;
    let ironic_settings = settings::read(&name, device.config_context.as_ref(), phase)?;
    let management_id = management(&interfaces, oob.as_ref());
    let mut interfaces: Vec<HostInterface> = interfaces.into_iter().map(|record| interface(record, &cabling)).collect();
    interfaces.sort_by(|a, b| natural(&a.name, &b.name));
    let at = management_id.and_then(|id| interfaces.iter().position(|i| i.netbox_id == id));
    let management = at.map(|at| interfaces.remove(at));
    Ok(HostFacts {
        netbox_id: device.id,
        name,
        status: device.status.value,
        site: SiteFacts { netbox_id: site.id, slug: site.slug, name: site.name, fields: texts(&site.custom_fields) },
        rack: device.rack.map(|rack| rack.name),
        position: device.position,
        serial: device.serial.filter(|serial| !serial.trim().is_empty()),
        device_class,
        manufacturer: device.device_type.manufacturer.name,
        model: device.device_type.model,
        tags: device.tags.into_iter().map(|tag| tag.slug).collect(),
        oob_ip,
        management,
        interfaces,
        ironic_settings,
    })
}

/// NetBox keeps addresses with their prefix length (C-25). A link-local one means nothing beyond one cable.
fn oob_address(host: &str, text: &str, phase: Phase) -> Result<IpAddr, Failure> {
    let shown = neutralize(text);
    let action = format!("give '{host}' a routable out-of-band IP in NetBox");
    let invalid = |why: &str| {
        Failure::new(
            FailureCode::NetboxDataInvalid,
            phase,
            format!("oob_ip of '{host}' is '{shown}', {why}"),
            action.clone(),
        )
    };
    let address: IpAddr =
        text.split('/').next().unwrap_or_default().trim().parse().map_err(|_| invalid("which is no IP address"))?;
    let useless = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.is_unspecified() || v6.is_multicast(),
    };
    if useless {
        return Err(invalid("which reaches no BMC (link-local, multicast or no host's address)"));
    }
    Ok(address)
}

/// The interface that carries the out-of-band address, else the only one for management.
fn management(interfaces: &[InterfaceRecord], oob: Option<&IpAddressRecord>) -> Option<u64> {
    let carries = oob
        .filter(|ip| ip.assigned_object_type.as_deref() == Some("dcim.interface"))
        .and_then(|ip| ip.assigned_object_id)
        .filter(|id| interfaces.iter().any(|i| i.id == *id));
    if carries.is_some() {
        return carries;
    }
    let mut for_management = interfaces.iter().filter(|i| i.mgmt_only);
    match (for_management.next(), for_management.next()) {
        (Some(only), None) => Some(only.id),
        _ => None,
    }
}

fn interface(record: InterfaceRecord, cabling: &Cabling) -> HostInterface {
    let peer = cabling.peer(&record);
    HostInterface {
        netbox_id: record.id,
        mac: mac(&record),
        kind: record.kind.value,
        mgmt_only: record.mgmt_only,
        lag: record.lag.map(|lag| lag.name),
        label: record.label.unwrap_or_default(),
        description: record.description.unwrap_or_default(),
        name: record.name,
        peer,
    }
}

/// The primary address; where none is marked as such, the only one there is.
fn mac(record: &InterfaceRecord) -> Option<Mac> {
    if let Some(text) = record.mac_address.as_deref().filter(|text| !text.trim().is_empty()) {
        return text.parse().ok();
    }
    match &record.mac_addresses[..] {
        [only] => only.mac_address.parse().ok(),
        _ => None,
    }
}

/// Custom fields that hold text.
fn texts(fields: &Map<String, Value>) -> std::collections::BTreeMap<String, String> {
    fields.keys().filter_map(|name| Some((name.clone(), text_field(fields, name)?.to_owned()))).collect()
}

/// `eth2` before `eth10`, case aside, as NetBox lists interfaces.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (pieces(a).into_iter(), pieces(b).into_iter());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return a.cmp(b),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) => match x.cmp(&y) {
                Ordering::Equal => {}
                order => return order,
            },
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// Without leading zeros: length first, then digits, so that no number is too long.
    Number(usize, String),
    Text(String),
}

fn pieces(name: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(if digits {
            let number = piece.trim_start_matches('0');
            Piece::Number(number.len(), number.to_owned())
        } else {
            Piece::Text(piece.to_lowercase())
        });
        rest = after;
    }
    pieces
}

#[cfg(test)]
#[path = "facts/tests.rs"]
mod tests;
