//! Devices that somebody has heard of: read by id, ahead of every cadence (O2, O9).

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ObserveError, Observer, Seen, SyncReport};
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::pages::Listing;

/// Devices of one round. What is queued beyond it waits for the next, so that other reads get their turn in between.
const ROUND: usize = 400;
/// Devices that a list did not tell and that are asked for singly in one round. Of more at once the resync is the judge.
const SINGLY: usize = 20;
/// Other devices that are asked for when one is not there: one of them has to be seen.
const WITNESSES: usize = 100;

/// NetBox's ids, each once.
#[derive(Default)]
pub(super) struct Queue(Mutex<BTreeSet<u64>>);

impl Queue {
    /// `true`: something is in it that was not before.
    pub fn put(&self, ids: impl IntoIterator<Item = u64>) -> bool {
        let mut queued = self.locked();
        let before = queued.len();
        queued.extend(ids);
        queued.len() > before
    }

    pub fn is_empty(&self) -> bool {
        self.locked().is_empty()
    }

    fn take(&self, most: usize) -> Vec<u64> {
        let mut queued = self.locked();
        let rest = queued.iter().nth(most).copied().map(|first| queued.split_off(&first)).unwrap_or_default();
        std::mem::replace(&mut *queued, rest).into_iter().collect()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was taken out of the queue; back into it unless it was read. A read that is broken off is none.
struct Taken<'q> {
    queue: &'q Queue,
    ids: Vec<u64>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.queue.put(self.ids.drain(..));
    }
}

impl Observer {
    /// Reads a round of the queue. An id that NetBox does not tell falls only with a proof of its own.
    pub(super) async fn read_queued(&self, seen: &mut Seen) -> Result<SyncReport, ObserveError> {
        let mut taken = Taken { queue: &self.queue, ids: self.queue.take(ROUND) };
        let ids = taken.ids.clone();
        let rows = self.netbox.devices_by_id(&ids).await?;
        let told: BTreeSet<u64> = rows.iter().map(|row| row.id).collect();
        let mut report = self.take(seen, Listing { rows, complete: false }, None).await?;
        let known = self.known()?;
        let missing: Vec<u64> = ids.into_iter().filter(|id| !told.contains(id) && known.contains(id)).collect();
        let gone = self.proven_gone(&missing, &known).await?;
        if !gone.is_empty() {
            report.removed = gone.len();
            tracing::info!(devices = ?gone, "NetBox says that it has these devices no more");
            self.store.remove_devices(gone).await?;
        }
        taken.ids.clear();
        Ok(report)
    }

    /// Those of the missing ones that are surely gone. A list that leaves a device out may be a permission that shrank, so
    /// each is asked for by its own address, and the same token has to see another device afterwards. Where that is not
    /// so, the next resync decides.
    async fn proven_gone(&self, missing: &[u64], known: &BTreeSet<u64>) -> Result<Vec<u64>, NetBoxError> {
        let mut gone = Vec::new();
        for id in missing.iter().take(SINGLY) {
            match self.netbox.has_device(*id).await? {
                true => tracing::debug!(device = id, "a list left out a device that NetBox has"),
                false => gone.push(*id),
            }
        }
        if gone.is_empty() {
            return Ok(gone);
        }
        let others = known.iter().filter(|id| !missing.contains(id)).copied();
        let witnesses: Vec<u64> = others.take(WITNESSES).collect();
        if self.netbox.sees_any_device(&witnesses).await? {
            return Ok(gone);
        }
        tracing::warn!(devices = ?gone, "the token sees none of the other devices either: nothing is removed on its word");
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_queued_once_and_taken_in_rounds() {
        let queue = Queue::default();
        assert!(queue.put([3, 1, 2, 3]));
        assert!(!queue.put([2, 1]));
        assert_eq!(queue.take(2), [1, 2]);
        assert_eq!(queue.take(2), [3]);
        assert!(queue.is_empty() && queue.take(2).is_empty());
    }

    #[test]
    fn what_was_taken_and_not_read_is_back_in_the_queue() {
        let queue = Queue::default();
        queue.put([1, 2, 3]);
        drop(Taken { queue: &queue, ids: queue.take(2) });
        assert_eq!(queue.take(9), [1, 2, 3]);
    }
}
