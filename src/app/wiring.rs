//! A device with its interfaces, addresses, cables and firmware policy, joined from the store.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::handle::{App, AppError};
use crate::domain::wiring::{
    Cable, CableEnd, FarEnd, FirmwarePolicy, INTERFACE, Interface, IpAddress, MacAddress, Place, WiredCable,
    WiredInterface,
};
use crate::inventory::wiring::confirmed_at;
use crate::store::{ObjectKind, Store, StoreError};

/// What NetBox has of a device besides the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Wiring {
    /// In the order in which people count.
    pub interfaces: Vec<WiredInterface>,
    pub firmware: Option<FirmwarePolicy>,
    /// The rack that it is in, where NetBox's racks are known.
    pub rack: Option<Place>,
}

impl App {
    /// The wiring of a device from the store: nothing is asked over the network.
    pub fn wiring(&self, netbox_id: u64) -> Result<Wiring, AppError> {
        let store = &self.inner.store;
        let interfaces = self.interfaces(netbox_id)?;
        let device = store.device_by_id(netbox_id)?;
        let racks = store.places(ObjectKind::Rack)?;
        let rack = device.and_then(|device| {
            let here =
                |place: &Place| Some(&place.name) == device.rack.as_ref() && place.site.as_ref() == Some(&device.site);
            racks.into_iter().find(here)
        });
        let firmware = store.object::<FirmwarePolicy>(netbox_id)?.map(|read| read.object);
        Ok(Wiring { interfaces, firmware, rack })
    }

    /// The interfaces of a device, in the order in which people count.
    pub(super) fn interfaces(&self, netbox_id: u64) -> Result<Vec<WiredInterface>, AppError> {
        let store = &self.inner.store;
        let confirmed = confirmed_at(store).unwrap_or(Timestamp::UNIX_EPOCH);
        let mut join = Join { store, names: BTreeMap::new(), ports: BTreeMap::new() };
        let mut interfaces = Vec::new();
        for read in store.objects_of::<Interface>(netbox_id)? {
            // A row that is still here at a comparison was right then.
            interfaces.push(join.interface(read.object, read.read_at.max(confirmed))?);
        }
        interfaces.sort_by_cached_key(|interface| natural(&interface.name));
        Ok(interfaces)
    }

    /// Reads the wiring of a device now, from this process.
    pub async fn read_wiring(&self, netbox_id: u64) -> Result<(), AppError> {
        self.inner.office.wiring.sync_device(netbox_id).await?;
        Ok(())
    }
}

/// Follows ids through the store, each once.
struct Join<'s> {
    store: &'s Store,
    /// Devices by id.
    names: BTreeMap<u64, Option<String>>,
    /// Interfaces by id.
    ports: BTreeMap<u64, Option<Interface>>,
}

impl Join<'_> {
    fn interface(&mut self, interface: Interface, as_of: Timestamp) -> Result<WiredInterface, StoreError> {
        let macs = self.store.objects_of::<MacAddress>(interface.netbox_id)?;
        let mut others: Vec<String> = macs.into_iter().map(|read| read.object.address).collect();
        others.retain(|mac| Some(mac) != interface.mac.as_ref());
        let addresses = self.store.objects_of::<IpAddress>(interface.netbox_id)?;
        Ok(WiredInterface {
            lag: self.name_of_port(interface.lag)?,
            macs: interface.mac.iter().cloned().chain(others).collect(),
            addresses: addresses.into_iter().map(|read| read.object.address).collect(),
            cable: self.cable(&interface)?,
            name: interface.name,
            kind: interface.kind,
            enabled: interface.enabled,
            mgmt_only: interface.mgmt_only,
            as_of,
        })
    }

    fn cable(&mut self, interface: &Interface) -> Result<Option<WiredCable>, StoreError> {
        let Some(id) = interface.cable else { return Ok(None) };
        let cable = self.store.object::<Cable>(id)?.map(|read| read.object);
        let ends = |join: &mut Self, ends: &[CableEnd]| ends.iter().map(|end| join.end(end)).collect();
        let through = if interface.is_indirect() { ends(self, &interface.near) } else { Ok(Vec::new()) };
        Ok(Some(WiredCable {
            netbox_id: id,
            label: cable.as_ref().and_then(|cable| cable.label.clone()),
            color: cable.as_ref().and_then(|cable| cable.color.clone()),
            status: cable.and_then(|cable| cable.status),
            through: through?,
            far: ends(self, &interface.far)?,
        }))
    }

    /// An end by its names of now; what is not known here has those of its reading.
    fn end(&mut self, end: &CableEnd) -> Result<FarEnd, StoreError> {
        let port = if end.kind == INTERFACE { self.port(end.netbox_id)? } else { None };
        let device = match port.as_ref().map(|port| port.device).or(end.device) {
            Some(id) => self.name(id)?.or_else(|| end.device_name.clone()),
            None => end.device_name.clone(),
        };
        let lag = self.name_of_port(port.as_ref().and_then(|port| port.lag))?;
        Ok(FarEnd { device, interface: port.map(|port| port.name).or_else(|| end.name.clone()), lag })
    }

    fn name_of_port(&mut self, id: Option<u64>) -> Result<Option<String>, StoreError> {
        let Some(id) = id else { return Ok(None) };
        Ok(self.port(id)?.map(|port| port.name))
    }

    fn port(&mut self, id: u64) -> Result<Option<Interface>, StoreError> {
        if !self.ports.contains_key(&id) {
            let port = self.store.object::<Interface>(id)?.map(|read| read.object);
            self.ports.insert(id, port);
        }
        Ok(self.ports.get(&id).cloned().flatten())
    }

    fn name(&mut self, device: u64) -> Result<Option<String>, StoreError> {
        if !self.names.contains_key(&device) {
            let name = self.store.device_by_id(device)?.map(|device| device.name);
            self.names.insert(device, name);
        }
        Ok(self.names.get(&device).cloned().flatten())
    }
}

/// A name with its numbers as numbers, so that `eth2` comes before `eth10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((word.to_lowercase(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    parts
}
