//! Follows interfaces, IP and MAC addresses: whatever changes there is read again with its device (O2).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::cursor::Cursor;
use super::{ObserveError, Observer, SyncReport};
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::observe::List;

/// What is followed, each on its own cursor.
const LISTS: [List; 3] = [List::Interfaces, List::IpAddresses, List::MacAddresses];

/// What is remembered of the parts.
#[derive(Default)]
pub(super) struct Parts {
    cursors: BTreeMap<List, Option<Cursor>>,
    /// What the last delta told, with its times: a delta overlaps the one before.
    told: BTreeMap<(List, u64), Option<Timestamp>>,
    /// Lists that this NetBox does not have, or not for this token.
    closed: BTreeSet<List>,
}

impl Parts {
    /// Lets lists that were closed be tried again. Cursors stay: nothing falls between two of them.
    pub fn reopen(&mut self) {
        self.closed.clear();
    }
}

impl Observer {
    pub(super) async fn read_parts(&self, parts: &mut Parts) -> Result<SyncReport, ObserveError> {
        let mut told = BTreeMap::new();
        let mut devices = BTreeSet::new();
        for list in LISTS {
            if parts.closed.contains(&list) {
                continue;
            }
            match self.read_list(list, parts, &mut told, &mut devices).await {
                Ok(()) => {}
                Err(error) if is_closed(&error) => {
                    tracing::warn!(%error, "changes of this list are not followed: its devices wait for the resync");
                    parts.closed.insert(list);
                }
                Err(error) => return Err(error.into()),
            }
        }
        parts.told = told;
        if !devices.is_empty() {
            tracing::debug!(devices = devices.len(), "parts of devices changed");
            self.requeue(devices);
        }
        Ok(SyncReport::default())
    }

    async fn read_list(
        &self,
        list: List,
        parts: &mut Parts,
        told: &mut BTreeMap<(List, u64), Option<Timestamp>>,
        devices: &mut BTreeSet<u64>,
    ) -> Result<(), NetBoxError> {
        let now = Instant::now();
        let cursor = match parts.cursors.get(&list) {
            None => {
                let newest = self.netbox.newest(list).await?;
                parts.cursors.insert(list, newest.map(|newest| Cursor::at(newest, now)));
                return Ok(());
            }
            // It was empty at the last look.
            Some(None) => Cursor::at(Timestamp::UNIX_EPOCH, now),
            Some(Some(cursor)) => *cursor,
        };
        let rows = self.netbox.parts(list, cursor.since(now)).await?;
        let slot = parts.cursors.entry(list).or_default();
        for row in rows {
            Cursor::saw(slot, row.last_updated, now);
            if parts.told.get(&(list, row.id)) != Some(&row.last_updated) {
                devices.extend(row.device());
            }
            told.insert((list, row.id), row.last_updated);
        }
        Ok(())
    }
}

/// Whether a list is not there for this token: MAC addresses are objects since NetBox 4.2, and a permission may be missing.
pub(in crate::inventory) fn is_closed(error: &NetBoxError) -> bool {
    matches!(error, NetBoxError::Permission { .. } | NetBoxError::NotJson { status: 404, .. })
}
