//! When each system was last heard, what it said when it wasn't, and small values that observers keep.

use jiff::Timestamp;
use rusqlite::params;

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::rows::{get, nanos, time_maybe};

/// A system as its observer last met it. Keys: `netbox`, `ironic:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncState {
    pub key: String,
    /// When it last answered as it should.
    pub ok_at: Option<Timestamp>,
    /// What went wrong since then; `None` while all is well.
    pub error: Option<String>,
    pub error_at: Option<Timestamp>,
}

impl Store {
    /// Records that a system was heard (`error` is `None`) or what it answered instead. The last good time stays (O6).
    pub async fn put_sync(&self, key: &str, at: Timestamp, error: Option<String>) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.write(move |sql| {
            let (ok_at, error_at) = if error.is_none() { (Some(nanos(at)), None) } else { (None, Some(nanos(at))) };
            sql.execute(
                "INSERT INTO sync (key, ok_at, error, error_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (key) DO UPDATE SET ok_at = coalesce(excluded.ok_at, ok_at),
                                                 error = excluded.error, error_at = excluded.error_at",
                params![key, ok_at, error, error_at],
            )
            .map(drop)
        })
        .await
    }

    /// Takes a system out that is asked no more.
    pub async fn forget_sync(&self, key: &str) -> Result<(), StoreError> {
        if !self.syncs()?.iter().any(|known| known.key == key) {
            return Ok(());
        }
        let key = key.to_owned();
        self.write(move |sql| sql.execute("DELETE FROM sync WHERE key = ?1", params![key]).map(drop)).await
    }

    /// All systems that were ever asked, by key.
    pub fn syncs(&self) -> Result<Vec<SyncState>, StoreError> {
        self.read(syncs)
    }

    /// A value that was kept under a name.
    pub fn get_meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        if let Some(kept) = self.scratch().and_then(|values| values.get(key).cloned()) {
            return Ok(Some(kept));
        }
        self.read(|sql| {
            sql.first("SELECT value FROM meta WHERE key = ?1", params![key], |row| get(row, "value", "meta"))
        })
    }

    /// Keeps a value under a name.
    pub async fn put_meta(&self, key: &str, value: &str) -> Result<(), StoreError> {
        if let Some(mut values) = self.scratch() {
            values.insert(key.to_owned(), value.to_owned());
            return Ok(());
        }
        let (key, value) = (key.to_owned(), value.to_owned());
        self.write(move |sql| {
            sql.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", params![key, value]).map(drop)
        })
        .await
    }
}

pub(super) fn syncs(sql: &Sql<'_>) -> Result<Vec<SyncState>, StoreError> {
    sql.all("SELECT key, ok_at, error, error_at FROM sync ORDER BY key", [], |row| {
        Ok(SyncState {
            key: get(row, "key", "sync")?,
            ok_at: time_maybe(row, "ok_at", "sync")?,
            error: get(row, "error", "sync")?,
            error_at: time_maybe(row, "error_at", "sync")?,
        })
    })
}
