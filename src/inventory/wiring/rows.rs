//! Reads one list of the wiring: what changed, what differs, or all of it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::cursor::Cursor;
use super::super::netbox::{ObserveError, is_closed};
use super::project::Projected;
use super::{Seen, WiringObserver, WiringReport};
use crate::clients::netbox::records::{InterfaceRecord, MacAddressRecord};
use crate::store::{Object, ObjectChange, ObjectKind};

/// With more differences than this the whole list is read: by id that would be more requests.
const BY_ID: usize = 2000;

impl WiringObserver {
    /// What was written since the last read. The rows of the first cursor are those in the store.
    pub(super) async fn read_list<T: Projected>(
        &self,
        seen: &mut Seen,
    ) -> Result<(WiringReport, Vec<ObjectChange>), ObserveError> {
        let now = Instant::now();
        let cursor = match seen.cursors.get(&T::LIST) {
            Some(Some(cursor)) => *cursor,
            Some(None) | None => {
                let newest = self.store.object_count(T::Object::KIND)?.1;
                Cursor::at(newest.unwrap_or(Timestamp::UNIX_EPOCH), now)
            }
        };
        let since = cursor.since(now);
        let mut newest = Some(cursor);
        let (mut report, mut changes) = (WiringReport::default(), Vec::new());
        let mut sweep = self.netbox.observe::<T>(Some(since)).await?;
        while let Some(rows) = sweep.next().await? {
            self.is_ignored(seen, since, rows.iter().map(T::last_updated));
            rows.iter().for_each(|row| Cursor::saw(&mut newest, row.last_updated(), now));
            report.read += rows.len();
            changes.extend(self.put(rows).await?);
        }
        // Only now: a delta that broke off is asked for again as a whole.
        seen.cursors.insert(T::LIST, newest);
        report.changed = changes.len();
        Ok((report, changes))
    }

    /// Reads the whole list page by page, and removes what was not told.
    pub(super) async fn refresh_list<T: Projected>(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        let now = Instant::now();
        let (mut report, mut told, mut newest) = (WiringReport::default(), BTreeSet::new(), None);
        let mut sweep = self.netbox.observe::<T>(None).await?;
        while let Some(rows) = sweep.next().await? {
            report.read += rows.len();
            told.extend(rows.iter().map(T::id));
            rows.iter().for_each(|row| Cursor::saw(&mut newest, row.last_updated(), now));
            report.changed += self.put(rows).await?.len();
        }
        let known = self.store.object_stamps(T::Object::KIND)?;
        let gone: Vec<u64> = known.into_keys().filter(|id| !told.contains(id)).collect();
        report.incomplete = !sweep.is_complete();
        report.changed += self.remove(T::Object::KIND, gone, &told, report.incomplete).await?.len();
        seen.cursors.insert(T::LIST, newest);
        Ok(report)
    }

    /// MAC addresses are objects since NetBox 4.2; before, an interface has its own and that is all.
    pub(super) async fn refresh_macs(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        match self.refresh_list::<MacAddressRecord>(seen).await {
            Err(ObserveError::NetBox(error)) if is_closed(&error) => {
                tracing::warn!(%error, "MAC addresses are not followed as objects");
                seen.without_macs = true;
                Ok(WiringReport::default())
            }
            read => read,
        }
    }

    /// Compares the list with the store by ids and times: reads what differs, removes what is gone.
    pub(super) async fn compare_list<T: Projected>(
        &self,
        seen: &mut Seen,
    ) -> Result<(WiringReport, Vec<ObjectChange>), ObserveError> {
        let now = Instant::now();
        let mut stamps = self.netbox.stamps(T::LIST, None).await?;
        if !stamps.complete {
            // Something was created or deleted meanwhile; a second look usually meets a quiet moment.
            stamps = self.netbox.stamps(T::LIST, None).await?;
        }
        let known = self.store.object_stamps(T::Object::KIND)?;
        let told: BTreeSet<u64> = stamps.rows.iter().map(|row| row.id).collect();
        let differ: Vec<u64> = stamps
            .rows
            .iter()
            .filter(|row| {
                known.get(&row.id).is_none_or(|known| row.last_updated.is_none() || *known != row.last_updated)
            })
            .map(|row| row.id)
            .collect();
        let mut report = WiringReport { read: stamps.rows.len(), incomplete: !stamps.complete, ..Default::default() };
        let mut changes = Vec::new();
        if differ.len() > BY_ID {
            let mut sweep = self.netbox.observe::<T>(None).await?;
            while let Some(rows) = sweep.next().await? {
                changes.extend(self.put(rows).await?);
            }
        } else {
            changes.extend(self.put(self.netbox.observe_by_id::<T>(&differ).await?).await?);
        }
        let gone: Vec<u64> = known.into_keys().filter(|id| !told.contains(id)).collect();
        changes.extend(self.remove(T::Object::KIND, gone, &told, report.incomplete).await?);
        let mut newest = seen.cursors.get(&T::LIST).copied().flatten();
        stamps.rows.iter().for_each(|row| Cursor::saw(&mut newest, row.last_updated, now));
        seen.cursors.insert(T::LIST, newest);
        report.changed = changes.len();
        Ok((report, changes))
    }

    /// Reads again the interfaces that an address left or came to: their own time is another matter.
    pub(super) async fn read_interfaces_of(&self, changes: &[ObjectChange]) -> Result<WiringReport, ObserveError> {
        let ids: BTreeSet<u64> = changes.iter().flat_map(|change| [change.before, change.now]).flatten().collect();
        self.read_interfaces(ids.into_iter().collect()).await
    }

    /// Reads interfaces by their ids; those that are gone wait for the next comparison.
    pub(super) async fn read_interfaces(&self, ids: Vec<u64>) -> Result<WiringReport, ObserveError> {
        if ids.is_empty() {
            return Ok(WiringReport::default());
        }
        let rows = self.netbox.observe_by_id::<InterfaceRecord>(&ids).await?;
        let read = rows.len();
        Ok(WiringReport { read, changed: self.put(rows).await?.len(), incomplete: false })
    }

    pub(super) async fn put<T: Projected>(&self, rows: Vec<T>) -> Result<Vec<ObjectChange>, ObserveError> {
        let objects = rows.into_iter().map(T::project).collect();
        Ok(self.store.put_objects(objects, Timestamp::now()).await?)
    }

    /// Removes what a list did not tell; nothing on the word of one that does not add up, or is empty all of a sudden.
    pub(super) async fn remove(
        &self,
        kind: ObjectKind,
        gone: Vec<u64>,
        told: &BTreeSet<u64>,
        incomplete: bool,
    ) -> Result<Vec<ObjectChange>, ObserveError> {
        if incomplete || gone.is_empty() {
            return Ok(Vec::new());
        }
        if told.is_empty() && gone.len() > 1 {
            return Err(ObserveError::EmptiedList {
                url: self.netbox.url().to_string(),
                what: kind.plural(),
                known: gone.len(),
            });
        }
        Ok(self.store.remove_objects(kind, gone).await?)
    }
}
