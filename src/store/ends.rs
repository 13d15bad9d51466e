//! Which runs ended, in the order of their ends over all runs, behind a place that whoever tells of them keeps.

use std::path::Path;

use rusqlite::params;

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::health::{SyncState, syncs};
use super::readers;
use super::rows::{get, run_id};
use super::watcher::newest;
use crate::domain::ids::RunId;

/// Appends that are looked through at once.
const AT_ONCE: i64 = 10_000;

/// Ends of runs behind a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ends {
    /// Each with its own place.
    pub runs: Vec<(i64, RunId)>,
    /// So far was looked: nothing up to here ended beside those.
    pub upto: i64,
    /// There is more behind that.
    pub more: bool,
}

impl Store {
    /// The place of the newest append of all.
    pub fn newest_append(&self) -> Result<i64, StoreError> {
        self.read(newest)
    }

    /// The runs whose last record stands behind a place.
    pub fn ends_after(&self, place: i64) -> Result<Ends, StoreError> {
        self.read(|sql| {
            let newest = newest(sql)?;
            let upto = newest.min(place.saturating_add(AT_ONCE));
            // Nothing is appended to a run that has ended: its last append has its end.
            let runs = sql.all(
                "SELECT a.place AS place, a.run AS run FROM appended a JOIN run r ON r.id = a.run
                 WHERE a.place > ?1 AND a.place <= ?2 AND r.finished_at IS NOT NULL
                   AND a.n + a.records = 1 + coalesce((SELECT max(n) FROM recent WHERE run = a.run),
                                                      (SELECT max(n) FROM record WHERE run = a.run), -1)
                 ORDER BY a.place",
                params![place, upto],
                |row| Ok((get(row, "place", "appended")?, run_id(row, "run", "appended")?)),
            )?;
            Ok(Ends { runs, upto, more: upto < newest })
        })
    }

    /// Takes out the values and the health under these beginnings that belong to none of the names.
    pub async fn forget_others(&self, value: &str, health: &str, names: Vec<String>) -> Result<(), StoreError> {
        let (value, health) = (value.to_owned(), health.to_owned());
        let stale = move |sql: &Sql<'_>| {
            let mut stale = Vec::new();
            for (table, beginning) in [("meta", &value), ("sync", &health)] {
                let keys = sql.all(&format!("SELECT key FROM {table}"), [], |row| get::<String>(row, "key", table))?;
                let other = |key: &String| {
                    key.strip_prefix(beginning.as_str()).is_some_and(|name| !names.iter().any(|n| n == name))
                };
                stale.extend(keys.into_iter().filter(other).map(|key| (table, key)));
            }
            Ok(stale)
        };
        if self.read(&stale)?.is_empty() {
            return Ok(());
        }
        self.write(move |sql| {
            for (table, key) in stale(sql)? {
                sql.execute(&format!("DELETE FROM {table} WHERE key = ?1"), params![key])?;
            }
            Ok(())
        })
        .await
    }
}

/// The health of all systems as the store of a folder has it, which is neither made nor brought to this version for that.
/// `None`: there is none.
pub fn health_in(folder: &Path) -> Result<Option<Vec<SyncState>>, StoreError> {
    let path = folder.join("muster.db");
    if !path.exists() {
        return Ok(None);
    }
    let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(&path, &e);
    let conn = readers::open(&path).map_err(sqlite)?;
    syncs(&Sql::new(&conn, &path)).map(Some)
}
