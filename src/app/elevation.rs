//! A rack with all that stands in it, and the frontend links of its hosts as last known, joined from the store (U1).

use std::collections::BTreeMap;

use super::handle::{App, AppError};
use crate::domain::cable_doctor::{Findings, HeardCable, HeardHost, Kind, diagnose};
use crate::domain::device::Device;
use crate::domain::elevation::{Elevation, Face, Heard, Link, Loose, Racked, Units, arrange, as_high_as_needed};
use crate::domain::eligibility::is_host;
use crate::domain::link::{CableEnd, LinkReading, LinkState};
use crate::domain::run_view::{GuardView, RunView};
use crate::domain::wiring::{Place, WiredCable, WiredInterface};
use crate::inventory::survey::survey;
use crate::store::{ObjectKind, StoreError};

/// Interfaces that no cable is plugged into.
const NO_PLUG: [&str; 3] = ["lag", "virtual", "bridge"];

impl App {
    /// A rack from the store: nothing is asked over the network. A rack without a device has none of this.
    pub fn elevation(&self, site: &str, location: Option<&str>, rack: &str) -> Result<Elevation, AppError> {
        let store = &self.inner.store;
        let devices = store.devices_of_rack(site, location, rack)?;
        let place = store.places(ObjectKind::Rack)?.into_iter().find(|place| {
            let named = place.name == rack && place.site.as_deref() == Some(site);
            named && (location.is_none() || place.within.as_deref() == location)
        });
        let depths: BTreeMap<(Option<String>, String), bool> = store
            .places(ObjectKind::DeviceType)?
            .into_iter()
            .filter_map(|kind| Some(((kind.within, kind.name), kind.is_full_depth?)))
            .collect();
        let survey = survey(store, site, self.now(), None)?;
        let findings = diagnose(&survey);
        let mut racked = Vec::new();
        for device in devices {
            let is_host = is_host(&device, &self.inner.rules);
            let links = if is_host {
                let heard = survey.hosts.iter().find(|heard| heard.netbox_id == device.netbox_id);
                links(&self.interfaces(device.netbox_id)?, heard, &findings, self.last_guard(&device)?.as_ref())
            } else {
                Vec::new()
            };
            let kind = (Some(device.manufacturer.clone()), device.model.clone());
            racked.push(Racked {
                face: if device.face.as_deref() == Some("rear") { Face::Rear } else { Face::Front },
                // What NetBox says of a type that it was told nothing of.
                is_full_depth: depths.get(&kind).copied().unwrap_or(true),
                stand: Err(Loose::NoUnit),
                is_host,
                links,
                device,
            });
        }
        let known = place.as_ref().and_then(units);
        let is_numbered = place.is_some_and(|place| place.desc_units.is_some());
        let sizes = racked.iter().map(|racked: &Racked| (racked.device.position, racked.device.u_height));
        let units = known.unwrap_or_else(|| as_high_as_needed(sizes));
        Ok(Elevation { units, is_measured: known.is_some(), is_numbered, devices: arrange(units, racked) })
    }

    /// The link guard that looked last, of the last run of a device.
    fn last_guard(&self, device: &Device) -> Result<Option<GuardView>, StoreError> {
        let store = &self.inner.store;
        let Some(run) = store.last_run_of(&device.name)? else { return Ok(None) };
        Ok(RunView::of(&store.records(run)?).guards.pop())
    }
}

fn units(rack: &Place) -> Option<Units> {
    let height = rack.u_height.filter(|height| *height >= 1.0)? as u32;
    let (first, top_down) = (rack.starting_unit.unwrap_or(1), rack.desc_units.unwrap_or(false));
    Some(Units { height, first, top_down })
}

/// The frontend links of a host. Which interfaces these are, an inspection or a link guard says; before the first of either,
/// every interface with a cable that is not for management counts.
fn links(
    wired: &[WiredInterface],
    heard: Option<&HeardHost>,
    findings: &Findings,
    guard: Option<&GuardView>,
) -> Vec<Link> {
    let readings: Vec<&LinkReading> = guard.iter().flat_map(|guard| &guard.links).map(|line| &line.reading).collect();
    let names: Vec<&str> = match heard {
        Some(heard) => heard.cables.iter().map(|cable| cable.interface.as_str()).collect(),
        None if !readings.is_empty() => readings.iter().map(|reading| reading.interface.as_str()).collect(),
        None => {
            let plugged = |interface: &&WiredInterface| {
                interface.cable.is_some() && !interface.mgmt_only && !NO_PLUG.contains(&interface.kind.as_str())
            };
            wired.iter().filter(plugged).map(|interface| interface.name.as_str()).collect()
        }
    };
    let link = |name: &str| {
        let interface = wired.iter().find(|interface| interface.name == name);
        let cable = heard.and_then(|heard| heard.cables.iter().find(|cable| cable.interface == name));
        let reading = readings.iter().find(|reading| reading.interface == name);
        let told_then = || {
            let of_inspection = cable.and_then(|cable| cable.recorded.clone());
            of_inspection.or_else(|| reading.and_then(|reading| reading.cable.clone()))
        };
        let recorded = match interface {
            Some(interface) => interface.cable.as_ref().and_then(far_end),
            // The wiring was not read yet.
            None => told_then(),
        };
        let looks = [
            cable.zip(heard).and_then(|(cable, heard)| Some((carrier(cable)?, heard.inspected_at))),
            reading.zip(guard).map(|(reading, guard)| (reading.state, guard.read_at)),
        ];
        // A look that told nothing leaves the one before standing.
        let last =
            looks.into_iter().flatten().filter(|(state, _)| *state != LinkState::Unknown).max_by_key(|(_, at)| *at);
        let (state, state_at) = last.map_or((LinkState::Unknown, None), |(state, at)| (state, Some(at)));
        let heard = heard.map_or(Heard::Unknown { why: None }, |host| place(host, name, findings));
        Link { interface: name.to_owned(), recorded, state, state_at, heard }
    };
    names.into_iter().map(link).collect()
}

fn carrier(cable: &HeardCable) -> Option<LinkState> {
    cable.carrier.map(|up| if up { LinkState::Up } else { LinkState::Down })
}

/// Where the last inspection has a cable, as the cable doctor judges it.
fn place(host: &HeardHost, interface: &str, findings: &Findings) -> Heard {
    let at = host.inspected_at;
    let is_it = |spot: &crate::domain::cable_doctor::Spot| spot.host == host.host && spot.interface == interface;
    if findings.right.iter().any(is_it) {
        return Heard::Right { at };
    }
    let moved = findings.diagnoses.iter().find_map(|diagnosis| {
        let member = diagnosis.members.iter().find(|member| is_it(&member.spot))?;
        Some((diagnosis.kind, member))
    });
    match moved {
        // It is where it belongs; only the names differ.
        Some((Kind::Spelling, _)) => Heard::Right { at },
        Some((_, member)) => {
            let port = member.at.as_ref().map(|port| (port.switch.clone(), port.port.clone()));
            Heard::Elsewhere { port, at }
        }
        None => {
            let unknown = findings.unknown.iter().find(|unknown| is_it(&unknown.spot));
            Heard::Unknown { why: unknown.map(|unknown| unknown.why.clone()) }
        }
    }
}

/// The port at the end of a cable, as NetBox has it now.
fn far_end(cable: &WiredCable) -> Option<CableEnd> {
    let far = cable.far.first()?;
    Some(CableEnd {
        switch: far.device.clone()?,
        port: far.interface.clone()?,
        label: cable.label.clone(),
        color: cable.color.clone(),
    })
}
