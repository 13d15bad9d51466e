//! Reads the wiring of one device, for whoever wants to see it now.

use std::collections::BTreeSet;

use super::{ObserveError, Seen, WiringObserver, WiringReport};
use crate::clients::netbox::records::{CableDetail, IpAddressRecord, MacAddressRecord};
use crate::domain::wiring::{INTERFACE, Interface, IpAddress, MacAddress};
use crate::store::Object;

impl WiringObserver {
    /// Its interfaces, what is assigned to them, and where their cables go. What left the device is looked for where it is
    /// now; what is nowhere waits for the next comparison.
    pub(super) async fn read_device(&self, seen: &Seen, device: u64) -> Result<WiringReport, ObserveError> {
        let interfaces = self.netbox.observe_interfaces_of(&[device]).await?;
        let told: BTreeSet<u64> = interfaces.iter().map(|row| row.id).collect();
        let cables: BTreeSet<u64> = interfaces.iter().filter_map(|row| row.cable.as_ref()).map(|c| c.id).collect();
        let mut report = WiringReport { read: told.len(), ..Default::default() };
        report.changed += self.put(interfaces).await?.len();

        let known = self.store.objects_of::<Interface>(device)?;
        let left = known.iter().map(|row| row.object.netbox_id).filter(|id| !told.contains(id)).collect();
        report.add(self.read_interfaces(left).await?);
        // The ports at the far ends, whose LAGs stand nowhere else.
        let ends = known.iter().flat_map(|row| row.object.far.iter()).filter(|end| end.kind == INTERFACE);
        report.add(self.read_interfaces(ends.map(|end| end.netbox_id).collect()).await?);

        let addresses = self.netbox.observe_of::<IpAddressRecord>(device).await?;
        let mut wanted = self.missing::<IpAddress>(&told, &addresses.iter().map(|row| row.id).collect())?;
        report.changed += self.put(addresses).await?.len();
        report.changed += self.put(self.netbox.observe_by_id::<IpAddressRecord>(&wanted).await?).await?.len();
        if !seen.without_macs {
            let macs = self.netbox.observe_of::<MacAddressRecord>(device).await?;
            wanted = self.missing::<MacAddress>(&told, &macs.iter().map(|row| row.id).collect())?;
            report.changed += self.put(macs).await?.len();
            report.changed += self.put(self.netbox.observe_by_id::<MacAddressRecord>(&wanted).await?).await?.len();
        }
        let cables: Vec<u64> = cables.into_iter().collect();
        report.changed += self.put(self.netbox.observe_by_id::<CableDetail>(&cables).await?).await?.len();
        Ok(report)
    }

    /// What the store has on these interfaces and NetBox did not tell.
    fn missing<T: Object>(&self, interfaces: &BTreeSet<u64>, told: &BTreeSet<u64>) -> Result<Vec<u64>, ObserveError> {
        let mut missing = Vec::new();
        for interface in interfaces {
            let known = self.store.objects_of::<T>(*interface)?;
            missing.extend(known.iter().map(|row| row.object.id()).filter(|id| !told.contains(id)));
        }
        Ok(missing)
    }
}
