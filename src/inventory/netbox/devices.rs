//! Reads devices, all of them or those that changed, and takes them into the store (O1, O4).

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::cursor::Cursor;
use super::super::project::{Catalogue, device};
use super::{ObserveError, Observer, Seen, SyncReport};
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::pages::Listing;
use crate::clients::netbox::records::DeviceRecord;
use crate::store::StoreError;

impl Observer {
    pub(super) async fn read_all(&self, seen: &mut Seen) -> Result<SyncReport, ObserveError> {
        let mut asked_at = Instant::now();
        let (catalogue, mut listing) = tokio::try_join!(self.catalogue(), self.netbox.devices(None))?;
        if !listing.complete {
            // Something was created or deleted meanwhile; a second read usually meets a quiet moment.
            asked_at = Instant::now();
            listing = self.netbox.devices(None).await?;
        }
        let known = self.known()?;
        if listing.rows.is_empty() && !known.is_empty() {
            return Err(ObserveError::Emptied { url: self.netbox.url().to_string(), known: known.len() });
        }
        seen.catalogue = catalogue;
        Cursor::saw(&mut seen.cursor, newest(&listing.rows), asked_at);
        self.take(seen, listing, Some(known)).await
    }

    pub(super) async fn read_changes(&self, seen: &mut Seen, cursor: Cursor) -> Result<SyncReport, ObserveError> {
        let asked_at = Instant::now();
        let since = cursor.since(asked_at);
        let listing = self.netbox.devices(Some(since)).await?;
        // A server that ignores the filter tells everything: then this is a full read (C-39).
        let ignored = listing.rows.iter().any(|row| row.last_updated.is_none_or(|at| at < since));
        let known = if ignored { Some(self.known()?) } else { None };
        Cursor::saw(&mut seen.cursor, newest(&listing.rows), asked_at);
        self.take(seen, listing, known).await
    }

    /// Takes a list into the store. `known`: the ids that the store has, where the list is of all devices.
    pub(super) async fn take(
        &self,
        seen: &mut Seen,
        listing: Listing<DeviceRecord>,
        known: Option<BTreeSet<u64>>,
    ) -> Result<SyncReport, ObserveError> {
        if !listing.rows.iter().all(|row| seen.catalogue.covers(row)) {
            seen.catalogue = self.catalogue().await?;
        }
        let read_at = Timestamp::now();
        let mut report = SyncReport { read: listing.rows.len(), ..SyncReport::default() };
        let told: BTreeSet<u64> = listing.rows.iter().map(|row| row.id).collect();
        self.take_policies(&listing.rows).await?;
        let fields = &self.settings.fields;
        let devices: Vec<_> =
            listing.rows.into_iter().filter_map(|row| device(row, &seen.catalogue, fields, read_at)).collect();
        report.unnamed = report.read - devices.len();
        report.changed = self.store.put_devices(devices).await?;
        if let Some(known) = known {
            report.incomplete = !listing.complete;
            let gone: Vec<u64> = known.difference(&told).copied().collect();
            if listing.complete && !gone.is_empty() {
                report.removed = gone.len();
                self.store.remove_devices(gone).await?;
            }
        }
        Ok(report)
    }

    async fn catalogue(&self) -> Result<Catalogue, NetBoxError> {
        let (types, roles) = tokio::try_join!(self.netbox.device_types(), self.netbox.roles())?;
        Ok(Catalogue::new(&types.rows, &roles.rows, &self.settings.fields))
    }

    pub(super) fn known(&self) -> Result<BTreeSet<u64>, StoreError> {
        self.store.device_ids()
    }
}

fn newest(rows: &[DeviceRecord]) -> Option<Timestamp> {
    rows.iter().filter_map(|row| row.last_updated).max()
}
