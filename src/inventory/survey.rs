//! Joins what inspections heard with what NetBox has now into a survey of a site, for the cable doctor. Reads the store only.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::domain::cable_doctor::{HeardCable, HeardHost, Port, Spot, Survey};
use crate::domain::device::Device;
use crate::domain::host::place_in;
use crate::domain::link;
use crate::domain::wiring::{Cable, CableEnd, INTERFACE, Interface};
use crate::store::{Store, StoreError};

/// Inspections count for so long: what was heard before may have been mended since.
pub const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Interfaces that no cable is plugged into.
const NO_PLUG: [&str; 3] = ["lag", "virtual", "bridge"];

/// The survey of a site: its hosts that were inspected lately, and the ports of all switches that they should be or were heard
/// at. `live`: a host as it was read from NetBox just now, which replaces what the store has of it.
pub fn survey(store: &Store, site: &str, now: Timestamp, live: Option<HeardHost>) -> Result<Survey, StoreError> {
    let since = now.checked_sub(RECENT).unwrap_or(Timestamp::MIN);
    let mut join = Join { store, devices: BTreeMap::new() };
    let mut hosts: Vec<HeardHost> = Vec::new();
    for heard in store.heard_at(site, since)? {
        if live.as_ref().is_none_or(|live| live.netbox_id != heard.netbox_id) {
            hosts.extend(join.as_of_now(heard)?);
        }
    }
    hosts.extend(live);
    hosts.sort_by_key(|host| (host.rack.clone(), host.host.clone()));
    let ports = join.ports(&hosts)?;
    Ok(Survey { hosts, ports })
}

/// Follows ids through the store, each once.
struct Join<'s> {
    store: &'s Store,
    devices: BTreeMap<u64, Option<Device>>,
}

impl Join<'_> {
    /// A host with the name, place and cables that NetBox has now; `None`: NetBox has it no more, or elsewhere. What the store
    /// does not have is as it was at the inspection.
    fn as_of_now(&mut self, mut heard: HeardHost) -> Result<Option<HeardHost>, StoreError> {
        match self.device(heard.netbox_id)? {
            Some(device) if device.site != heard.site => return Ok(None),
            Some(device) => {
                heard.host = device.name;
                heard.place = device.rack.as_ref().map(|rack| place_in(rack, device.position));
                heard.rack = device.rack;
            }
            // The fleet was not read yet.
            None => {}
        }
        let cables = heard.cables.into_iter().map(|cable| self.recorded_now(cable));
        heard.cables = cables.collect::<Result<_, StoreError>>()?;
        Ok(Some(heard))
    }

    fn recorded_now(&mut self, mut cable: HeardCable) -> Result<HeardCable, StoreError> {
        let Some(read) = self.store.object::<Interface>(cable.netbox_id)? else { return Ok(cable) };
        let interface = read.object;
        cable.recorded = match far_end(&interface) {
            None => None,
            Some(end) => {
                let drawn = match interface.cable {
                    Some(id) => self.store.object::<Cable>(id)?.map(|read| read.object),
                    None => None,
                };
                Some(link::CableEnd {
                    switch: self.name(end)?.unwrap_or_default(),
                    port: end.name.clone().unwrap_or_default(),
                    label: drawn.as_ref().and_then(|c| c.label.clone()).filter(|label| !label.is_empty()),
                    color: drawn.and_then(|c| c.color).filter(|color| !color.is_empty()),
                })
            }
        };
        cable.interface = interface.name;
        Ok(cable)
    }

    /// All ports of the switches that somebody belongs to or was heard at.
    fn ports(&mut self, hosts: &[HeardHost]) -> Result<BTreeMap<Port, Option<Spot>>, StoreError> {
        let cables = || hosts.iter().flat_map(|host| &host.cables);
        let recorded = cables().filter_map(|cable| Some(cable.recorded.as_ref()?.switch.clone()));
        let heard = cables().flat_map(|cable| &cable.neighbours).filter_map(|n| n.system_name.clone());
        let switches: BTreeSet<String> = recorded.chain(heard).collect();
        let mut ports = BTreeMap::new();
        for switch in switches {
            for device in self.store.devices_named(&switch)? {
                // A cable from host to host, or back into its own: its interfaces are no ports.
                if hosts.iter().any(|host| host.netbox_id == device.netbox_id) {
                    continue;
                }
                for read in self.store.objects_of::<Interface>(device.netbox_id)? {
                    let interface = read.object;
                    if interface.mgmt_only || NO_PLUG.contains(&interface.kind.as_str()) {
                        continue;
                    }
                    let owner = match far_end(&interface) {
                        Some(end) => self.name(end)?.zip(end.name.clone()),
                        None => None,
                    };
                    let owner = owner.map(|(host, interface)| Spot { host, interface });
                    ports.insert(Port::new(&switch, &interface.name), owner);
                }
            }
        }
        Ok(ports)
    }

    /// The name of an end's device as it is now.
    fn name(&mut self, end: &CableEnd) -> Result<Option<String>, StoreError> {
        let now = match end.device {
            Some(id) => self.device(id)?.map(|device| device.name),
            None => None,
        };
        Ok(now.or_else(|| end.device_name.clone()))
    }

    fn device(&mut self, id: u64) -> Result<Option<Device>, StoreError> {
        if !self.devices.contains_key(&id) {
            let device = self.store.device_by_id(id)?;
            self.devices.insert(id, device);
        }
        Ok(self.devices.get(&id).cloned().flatten())
    }
}

/// The interface at the end of the path, through patch panels; of several the one with the lowest id, as the verification
/// takes it.
fn far_end(interface: &Interface) -> Option<&CableEnd> {
    interface.far.iter().filter(|end| end.kind == INTERFACE && end.name.is_some()).min_by_key(|end| end.netbox_id)
}
