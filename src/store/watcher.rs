//! Follows what any process commits to the store: asks SQLite whether anything changed, and reads only what is new.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

use super::error::StoreError;
use super::handle::Sql;
use super::health::{SyncState, syncs};
use super::readers;
use super::rows::{run_id, unsigned};
use super::{fleet, journal};
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;

/// The most appends that one look reads: bounds how long it takes and what it holds.
const AT_ONCE: i64 = 1000;

/// One place in the store's history, with a connection of its own.
pub struct Watcher {
    conn: Connection,
    path: PathBuf,
    /// SQLite's count of what others committed, as of the last look; `None`: look whatever it says.
    version: Option<i64>,
    /// The last append that was told.
    place: i64,
    fleet: Option<String>,
    systems: Vec<SyncState>,
}

/// What was committed between two looks.
#[derive(Debug, Default)]
pub struct News {
    /// In the order of their commits; empty where nobody wanted them.
    pub records: Vec<RunRecord>,
    /// Runs that were submitted.
    pub submitted: Vec<RunId>,
    /// Devices, references or proofs are others now.
    pub fleet: bool,
    /// Systems that were heard, or not.
    pub systems: Vec<SyncState>,
    /// Somebody waits for an answer.
    pub asked: bool,
    /// Not all was read: look again at once.
    pub more: bool,
}

impl Watcher {
    pub(super) fn open(path: &Path) -> Result<Watcher, StoreError> {
        let conn = readers::open(path).map_err(|e| StoreError::from_sqlite(path, &e))?;
        let mut watcher =
            Watcher { conn, path: path.to_owned(), version: None, place: 0, fleet: None, systems: Vec::new() };
        let (place, fleet, systems) = watcher.read(|sql| Ok((newest(sql)?, fleet::changes(sql)?, syncs(sql)?)))?;
        (watcher.place, watcher.fleet, watcher.systems) = (place, fleet, systems);
        Ok(watcher)
    }

    /// Whether anybody committed anything since the last look. Costs microseconds and no read of the disk.
    pub fn moved(&self) -> Result<bool, StoreError> {
        Ok(self.version != Some(self.data_version()?))
    }

    /// Reads what is new. Without `records` only the runs that were submitted are read of the journals.
    pub fn look(&mut self, records: bool) -> Result<News, StoreError> {
        // Before the reading: what is committed meanwhile makes the next look look again.
        let version = self.data_version()?;
        let (from, known) = (self.place, self.systems.clone());
        let (mut news, upto, fleet, systems) = self.read(|sql| {
            let end = newest(sql)?;
            // Whoever wants no records may have been away for long: only what was submitted is of interest.
            let upto = if records { end.min(from + AT_ONCE) } else { end };
            let news = News {
                records: if records { journal::appended(sql, from, upto)? } else { Vec::new() },
                submitted: submitted(sql, from, upto)?,
                asked: asked(sql)?,
                more: upto < end,
                ..News::default()
            };
            Ok((news, upto, fleet::changes(sql)?, syncs(sql)?))
        })?;
        news.fleet = fleet != self.fleet;
        news.systems = systems.iter().filter(|state| !known.contains(state)).cloned().collect();
        self.version = Some(version).filter(|_| !news.more);
        (self.place, self.fleet, self.systems) = (upto, fleet, systems);
        Ok(news)
    }

    fn data_version(&self) -> Result<i64, StoreError> {
        let version = self.conn.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|e| StoreError::from_sqlite(&self.path, &e))
    }

    /// Reads in one transaction, so that place and records agree.
    fn read<T>(&self, work: impl FnOnce(&Sql<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(&self.path, &e);
        let reading = self.conn.unchecked_transaction().map_err(sqlite)?;
        let done = work(&Sql::new(&self.conn, &self.path));
        reading.finish().map_err(sqlite)?;
        done
    }
}

pub(super) fn newest(sql: &Sql<'_>) -> Result<i64, StoreError> {
    let place = sql
        .first("SELECT coalesce(max(place), 0) AS place FROM appended", [], |row| unsigned(row, "place", "appended"))?;
    Ok(place.and_then(|place| i64::try_from(place).ok()).unwrap_or(0))
}

fn submitted(sql: &Sql<'_>, from: i64, upto: i64) -> Result<Vec<RunId>, StoreError> {
    sql.all(
        "SELECT run FROM appended WHERE place > ?1 AND place <= ?2 AND n = 0 ORDER BY place",
        params![from, upto],
        |row| run_id(row, "run", "appended"),
    )
}

fn asked(sql: &Sql<'_>) -> Result<bool, StoreError> {
    Ok(sql.first("SELECT 1 FROM command WHERE answer IS NULL LIMIT 1", [], |_| Ok(()))?.is_some())
}
