//! Observes the wiring: interfaces, addresses and cables of all devices, read by what changed and compared with all that
//! NetBox has (O3, O4, O6, O7).

mod cables;
mod device;
mod project;
mod rows;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cursor::Cursor;
use super::netbox::{ObserveError, Observer, heard};
use super::schedule::Schedule;
use crate::clients::netbox::NetBox;
use crate::clients::netbox::observe::List;
use crate::clients::netbox::records::{CableDetail, InterfaceRecord, IpAddressRecord, MacAddressRecord};
use crate::config::settings::Cadences;
use crate::store::Store;

/// The name under which the store keeps how NetBox was met for the wiring.
pub const SYSTEM: &str = "netbox:wiring";
/// Where the store keeps when all of the wiring was read last, and when it was compared last.
const REFRESHED: &str = "wiring.refreshed_at";
const CONFIRMED: &str = "wiring.confirmed_at";

/// Keeps the wiring as NetBox has it.
pub struct WiringObserver {
    netbox: NetBox,
    store: Store,
    cadences: Cadences,
    /// Who reads devices: told of those that changed.
    devices: Arc<Observer>,
    /// One sync at a time.
    seen: Mutex<Seen>,
    /// Between two deltas and two looks at the cables, where push lets them be rarer (O9).
    stretched: std::sync::Mutex<Option<Duration>>,
    woken: Notify,
}

/// What is remembered between two reads.
#[derive(Default)]
struct Seen {
    cursors: BTreeMap<List, Option<Cursor>>,
    /// The server tells everything whatever is asked: then only the comparisons read (C-39).
    ignores_filters: bool,
    /// MAC addresses are no objects on this NetBox, or not for this token.
    without_macs: bool,
    /// Devices that the last delta told, with their times: a delta overlaps the one before.
    told: BTreeMap<u64, Option<Timestamp>>,
}

/// What a sync of the wiring did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WiringReport {
    /// Rows that NetBox told.
    pub read: usize,
    /// Rows that were new or different here, or had gone.
    pub changed: usize,
    /// A list did not add up, so that nothing was removed on its word (C-38).
    pub incomplete: bool,
}

/// What can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// All of it, as if nothing were known.
    Refresh,
    /// What is there at all, compared by id and time.
    Resync,
    /// Cables, and what they change far away.
    Cables,
    /// What changed.
    Delta,
}

impl WiringObserver {
    pub fn new(netbox: NetBox, store: Store, cadences: &Cadences, devices: Arc<Observer>) -> Self {
        let (seen, stretched, woken) = (Mutex::default(), std::sync::Mutex::default(), Notify::new());
        WiringObserver { netbox, store, cadences: cadences.clone(), devices, seen, stretched, woken }
    }

    /// Reads what changed since the last read; everything where nothing was read yet.
    pub async fn sync_delta(&self) -> Result<WiringReport, ObserveError> {
        self.sync(Task::Delta).await
    }

    /// Looks at the cables, and reads again what hangs on those that changed.
    pub async fn sync_cables(&self) -> Result<WiringReport, ObserveError> {
        self.sync(Task::Cables).await
    }

    /// Compares what is here with all that NetBox has, by ids and times: reads what differs, removes what is gone.
    pub async fn resync(&self) -> Result<WiringReport, ObserveError> {
        self.sync(Task::Resync).await
    }

    /// Reads all of it, as if nothing were known, and removes what was not told.
    pub async fn refresh(&self) -> Result<WiringReport, ObserveError> {
        self.sync(Task::Refresh).await
    }

    /// Reads all interfaces, and nothing else.
    pub async fn refresh_interfaces(&self) -> Result<WiringReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        self.refresh_list::<InterfaceRecord>(&mut seen).await
    }

    /// Reads the wiring of one device, whatever the cadences say.
    pub async fn sync_device(&self, device: u64) -> Result<WiringReport, ObserveError> {
        let seen = self.seen.lock().await;
        let outcome = self.read_device(&seen, device).await;
        self.heard(&outcome).await;
        outcome
    }

    /// Takes another cadence for deltas and cables from now on, since changes are told by push; `None`: the configured ones
    /// (O9). The comparisons stay as they are.
    pub fn stretch(&self, poll: Option<Duration>) {
        *self.stretched.lock().unwrap_or_else(PoisonError::into_inner) = poll;
        self.woken.notify_one();
    }

    /// Goes on until cancelled. A store that was filled before is only compared at the start: after a restart nothing is
    /// read that did not change. `on_change` is called when something was read that is another one than here.
    pub async fn run(&self, cancel: CancellationToken, on_change: impl Fn() + Send + Sync) {
        let mut schedule = self.schedule(Instant::now());
        loop {
            let stretched = *self.stretched.lock().unwrap_or_else(PoisonError::into_inner);
            for task in [Task::Delta, Task::Cables] {
                schedule.stretch(task, stretched, Instant::now());
            }
            let Some(task) = schedule.due(Instant::now()) else {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.woken.notified() => {}
                    () = tokio::time::sleep_until(schedule.next(false)) => {}
                }
                continue;
            };
            let outcome = tokio::select! {
                () = cancel.cancelled() => return,
                outcome = self.sync(task) => outcome,
            };
            let covers: &[Task] = match task {
                Task::Refresh => &[Task::Resync, Task::Cables, Task::Delta],
                Task::Resync => &[Task::Delta],
                Task::Cables | Task::Delta => &[],
            };
            schedule.ended(task, covers, outcome.is_ok(), Instant::now());
            if outcome.is_ok_and(|report| report.changed > 0) {
                on_change();
            }
        }
    }

    fn schedule(&self, now: Instant) -> Schedule<Task> {
        let c = &self.cadences;
        let age = self.read_at(REFRESHED).map(|at| Timestamp::now().duration_since(at));
        // A time to come is one of a clock that went wrong.
        let age = age.filter(|age| *age >= SignedDuration::ZERO).map(SignedDuration::unsigned_abs);
        let refresh_in = age.map_or(std::time::Duration::ZERO, |age| c.wiring_refresh.saturating_sub(age));
        Schedule::new(now, c.wiring_poll)
            .add(Task::Refresh, c.wiring_refresh, now + refresh_in)
            .add(Task::Resync, c.wiring_resync, now)
            .add(Task::Cables, c.wiring_cables, now)
            .add(Task::Delta, c.wiring_poll, now)
    }

    async fn sync(&self, task: Task) -> Result<WiringReport, ObserveError> {
        let mut seen = self.seen.lock().await;
        let outcome = match task {
            Task::Refresh => self.read_everything(&mut seen).await,
            // Nothing to compare with, and no cursor to begin at.
            _ if self.read_at(REFRESHED).is_none() => self.read_everything(&mut seen).await,
            Task::Resync => self.compare_everything(&mut seen).await,
            Task::Cables => self.read_cables(&mut seen).await,
            Task::Delta => self.read_changes(&mut seen).await,
        };
        self.heard(&outcome).await;
        outcome
    }

    async fn read_everything(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        let began = Timestamp::now();
        (seen.ignores_filters, seen.without_macs) = (false, false);
        let mut report = WiringReport::default();
        report.add(self.refresh_list::<InterfaceRecord>(seen).await?);
        report.add(self.refresh_macs(seen).await?);
        report.add(self.refresh_list::<IpAddressRecord>(seen).await?);
        report.add(self.refresh_list::<CableDetail>(seen).await?);
        if !report.incomplete {
            self.store.put_meta(CONFIRMED, &began.to_string()).await?;
        }
        self.store.put_meta(REFRESHED, &began.to_string()).await?;
        Ok(report)
    }

    async fn compare_everything(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        let began = Timestamp::now();
        let mut report = WiringReport::default();
        report.add(self.compare_list::<InterfaceRecord>(seen).await?.0);
        if !seen.without_macs {
            let (compared, changes) = self.compare_list::<MacAddressRecord>(seen).await?;
            report.add(compared);
            report.add(self.read_interfaces_of(&changes).await?);
        }
        report.add(self.compare_list::<IpAddressRecord>(seen).await?.0);
        report.add(self.compare_cables(seen).await?);
        if !report.incomplete {
            self.store.put_meta(CONFIRMED, &began.to_string()).await?;
        }
        Ok(report)
    }

    async fn read_changes(&self, seen: &mut Seen) -> Result<WiringReport, ObserveError> {
        if seen.ignores_filters {
            return Ok(WiringReport::default());
        }
        self.look_at_devices(seen).await?;
        let mut report = self.read_list::<InterfaceRecord>(seen).await?.0;
        if !seen.without_macs {
            let (read, changes) = self.read_list::<MacAddressRecord>(seen).await?;
            report.add(read);
            report.add(self.read_interfaces_of(&changes).await?);
        }
        report.add(self.read_list::<IpAddressRecord>(seen).await?.0);
        Ok(report)
    }

    /// Has the devices read that changed: their names stand at the ends of cables.
    async fn look_at_devices(&self, seen: &mut Seen) -> Result<(), ObserveError> {
        let now = Instant::now();
        let cursor = match seen.cursors.get(&List::Devices) {
            None => {
                let newest = self.netbox.newest(List::Devices).await?;
                seen.cursors.insert(List::Devices, newest.map(|newest| Cursor::at(newest, now)));
                return Ok(());
            }
            Some(None) => Cursor::at(Timestamp::UNIX_EPOCH, now),
            Some(Some(cursor)) => *cursor,
        };
        let since = cursor.since(now);
        let rows = self.netbox.stamps(List::Devices, Some(since)).await?.rows;
        if self.is_ignored(seen, since, rows.iter().map(|row| row.last_updated)) {
            return Ok(());
        }
        let slot = seen.cursors.entry(List::Devices).or_default();
        rows.iter().for_each(|row| Cursor::saw(slot, row.last_updated, now));
        let fresh = rows.iter().filter(|row| seen.told.get(&row.id) != Some(&row.last_updated));
        self.devices.requeue(fresh.map(|row| row.id));
        seen.told = rows.into_iter().map(|row| (row.id, row.last_updated)).collect();
        Ok(())
    }

    /// Whether rows came that nobody asked for.
    fn is_ignored(
        &self,
        seen: &mut Seen,
        since: Timestamp,
        mut stamps: impl Iterator<Item = Option<Timestamp>>,
    ) -> bool {
        let ignored = stamps.any(|stamp| stamp.is_some_and(|at| at < since));
        if ignored && !seen.ignores_filters {
            tracing::warn!("NetBox ignores 'last_updated__gte': the wiring is only compared as a whole");
            seen.ignores_filters = true;
        }
        ignored
    }

    fn read_at(&self, key: &str) -> Option<Timestamp> {
        // What can't be read is as good as never.
        self.store.get_meta(key).ok().flatten()?.parse().ok()
    }

    async fn heard(&self, outcome: &Result<WiringReport, ObserveError>) {
        heard(&self.netbox, &self.store, SYSTEM, "wiring", outcome).await;
    }
}

impl WiringReport {
    fn add(&mut self, other: WiringReport) {
        self.read += other.read;
        self.changed += other.changed;
        self.incomplete |= other.incomplete;
    }
}

/// When what is in the store of the wiring was last compared with NetBox as a whole.
pub fn confirmed_at(store: &Store) -> Option<Timestamp> {
    store.get_meta(CONFIRMED).ok().flatten()?.parse().ok()
}
