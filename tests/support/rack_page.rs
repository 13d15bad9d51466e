//! Racks of the invented site: B07 with its troubles on both faces, and one whose units are counted from the top.

use muster::domain::device::Device;
use muster::domain::elevation::{Elevation, Face, Heard, Link, Loose, Racked, Units, arrange};
use muster::domain::link::{CableEnd, LinkState};
use muster::domain::listed::Listed;
use muster::tui::model::host::Host;

use super::before;

fn link(interface: &str, leaf: u32, port: u32, state: LinkState, heard: Heard) -> Link {
    let recorded = Some(CableEnd {
        switch: format!("leaf-b07-{leaf}"),
        port: format!("swp{port}"),
        label: Some(format!("W-{:04}", 380 + 2 * port + leaf)),
        color: Some(if leaf == 1 { "2196f3" } else { "ff9800" }.to_owned()),
    });
    let state_at = (state != LinkState::Unknown).then(|| before(7300));
    Link { interface: interface.to_owned(), recorded, state, state_at, heard }
}

fn right() -> Heard {
    Heard::Right { at: before(7300) }
}

fn elsewhere(port: Option<(&str, &str)>) -> Heard {
    let port = port.map(|(switch, port)| (switch.to_owned(), port.to_owned()));
    Heard::Elsewhere { port, at: before(744) }
}

fn unheard() -> Heard {
    Heard::Unknown { why: None }
}

/// The links of a host of B07, by its unit.
fn links(unit: u32) -> Vec<Link> {
    use LinkState::{Down, Unknown, Up};
    let port = (unit - 9) / 2;
    let both =
        |state, heard: Heard| vec![link("eth0", 1, port, state, heard.clone()), link("eth1", 2, port, state, heard)];
    match unit {
        37 => vec![
            link("eth0", 1, port, Up, elsewhere(Some(("leaf-b07-2", "swp14")))),
            link("eth1", 2, port, Up, elsewhere(Some(("leaf-b07-1", "swp14")))),
        ],
        21 => {
            let mut links = both(Unknown, unheard());
            links[1].recorded = None;
            links
        }
        17 => vec![link("eth0", 1, port, Up, right()), link("eth1", 2, port, Down, elsewhere(None))],
        19 => Vec::new(),
        41 | 31 | 25 | 23 => both(Up, right()),
        _ => both(Unknown, unheard()),
    }
}

/// The device that a row of the list is of.
fn whole(listed: &Listed) -> Device {
    let mut device = serde_json::to_value(listed).unwrap();
    device["face"] = "front".into();
    device["u_height"] = 2.0.into();
    device["read_at"] = "2026-11-30T06:00:00Z".into();
    serde_json::from_value(device).unwrap()
}

fn racked(device: Device, is_host: bool, links: Vec<Link>) -> Racked {
    let face = if device.face.as_deref() == Some("rear") { Face::Rear } else { Face::Front };
    Racked { device, stand: Err(Loose::NoUnit), face, is_full_depth: is_host, is_host, links }
}

/// Rack B07 of these hosts, with what stands there besides.
pub fn rack_of(hosts: &[Host]) -> Elevation {
    let here = hosts.iter().filter(|host| host.device.rack.as_deref() == Some("B07"));
    let mut devices: Vec<Racked> = here
        .map(|host| {
            let is_host = host.device.device_class.as_deref() != Some("SWITCH");
            let unit = host.device.netbox_id as u32 - 7000;
            racked(
                Device { u_height: Some(if is_host { 2.0 } else { 1.0 }), ..whole(&host.device) },
                is_host,
                match is_host {
                    true => links(unit),
                    false => Vec::new(),
                },
            )
        })
        .collect();
    let like = whole(&hosts[0].device);
    let others = [
        (8001, "leaf-b07-2", "Switch", Some(47.0), Some(1.0), "front"),
        (8002, "panel-b07", "Patch panel", Some(45.0), Some(1.0), "front"),
        (8003, "oob-b07", "Switch", Some(45.0), Some(1.0), "rear"),
        (8004, "pdu-b07-a", "PDU", None, Some(0.0), "front"),
        (8005, "pdu-b07-b", "PDU", None, Some(0.0), "front"),
        (8006, "console-b07", "Console server", Some(50.0), Some(1.0), "front"),
        (8007, "shelf-b07", "Shelf", Some(13.0), None, "front"),
    ];
    for (netbox_id, name, role, position, u_height, face) in others {
        let device = Device {
            netbox_id,
            name: name.to_owned(),
            role: role.to_owned(),
            device_class: None,
            manufacturer: "Edgecore".to_owned(),
            model: "AS4610-54T".to_owned(),
            position,
            u_height,
            face: Some(face.to_owned()),
            ..like.clone()
        };
        devices.push(racked(device, false, Vec::new()));
    }
    let units = Units { height: 48, first: 1, top_down: false };
    Elevation { units, is_measured: true, is_numbered: true, devices: arrange(units, devices) }
}

/// A rack of ten units, counted from 5 at its top on, of which some are halves: these hosts, one behind the other.
pub fn small_rack_of(hosts: &[Host]) -> Elevation {
    let units = Units { height: 10, first: 5, top_down: true };
    let stands = [(5.0, 1.0), (6.0, 2.0), (8.0, 0.5), (8.5, 1.5), (11.0, 4.0)];
    let devices = hosts.iter().zip(stands).enumerate().map(|(n, (host, (position, height)))| {
        let device = Device { position: Some(position), u_height: Some(height), ..whole(&host.device) };
        let unit = if n % 2 == 0 { 41 } else { 17 };
        racked(device, true, links(unit))
    });
    Elevation { units, is_measured: true, is_numbered: true, devices: arrange(units, devices.collect()) }
}
