//! Opens the store and hands out its two ways in: queued writes and pooled reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;

use super::error::StoreError;
use super::readers::Readers;
use super::writer::{Commits, Writer};
use super::{folder, schema};

/// A handle to the store. Cheap to clone; all writes go through one thread, which ends with the last handle.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
    /// A plan's own values. With them no write of this handle reaches the store (G14).
    scratch: Option<Arc<Mutex<BTreeMap<String, String>>>>,
}

struct Inner {
    folder: PathBuf,
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    /// Counts the changes of devices, references and proofs that this process made.
    fleet: watch::Sender<u64>,
    /// Counts what systems were heard to say.
    health: watch::Sender<u64>,
}

impl Store {
    /// Opens the store of a state folder and makes both where they are missing: 0700 and 0600, WAL, every commit synced.
    /// A store of an older version is brought to this one; a newer one is refused.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        folder::prepare(folder)?;
        let path = folder.join("muster.db");
        folder::prepare_file(&path)?;
        folder::is_whole(&path)?;
        let conn = connect(&path).map_err(|e| StoreError::from_sqlite(&path, &e))?;
        schema::migrate(&conn, &path)?;
        let inner = Inner {
            folder: folder.to_owned(),
            writer: Writer::spawn(conn, path.clone())?,
            readers: Readers::new(&path),
            path,
            fleet: watch::Sender::new(0),
            health: watch::Sender::new(0),
        };
        Ok(Store { inner: Arc::new(inner), scratch: None })
    }

    /// A handle for a plan: it reads the store, keeps values for itself, and changes nothing.
    pub fn rehearsing(&self) -> Store {
        Store { inner: Arc::clone(&self.inner), scratch: Some(Arc::default()) }
    }

    /// A handle that writes, whoever has it: for what did happen although all else was only planned, as a wrong login did.
    pub fn lasting(&self) -> Store {
        Store { inner: Arc::clone(&self.inner), scratch: None }
    }

    pub(super) fn scratch(&self) -> Option<MutexGuard<'_, BTreeMap<String, String>>> {
        self.scratch.as_ref().map(|values| values.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_rehearsing(&self) -> bool {
        self.scratch.is_some()
    }

    /// The state folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// How many commits carried how many requests since the store was opened.
    pub fn commits(&self) -> Commits {
        self.inner.writer.commits()
    }

    /// Told when devices, references or proofs were changed through this handle or a clone of it.
    pub fn fleet_changes(&self) -> watch::Receiver<u64> {
        self.inner.fleet.subscribe()
    }

    /// Told when a system was heard, or not.
    pub fn health_changes(&self) -> watch::Receiver<u64> {
        self.inner.health.subscribe()
    }

    pub(super) fn fleet_changed(&self) {
        self.inner.fleet.send_modify(|n| *n += 1);
    }

    pub(super) fn health_changed(&self) {
        self.inner.health.send_modify(|n| *n += 1);
    }

    /// Queues a write; the answer comes after its commit. SQLite's errors are put into words here.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Sql<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        if self.is_rehearsing() {
            return Err(StoreError::Planning);
        }
        let path = self.inner.path.clone();
        self.inner.writer.write(&self.inner.path, move |conn| work(&Sql { conn, path: &path })).await
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&Sql<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.inner.readers.read(|conn| work(&Sql { conn, path: &self.inner.path }))
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// A connection whose errors are already in words.
pub(super) struct Sql<'c> {
    conn: &'c Connection,
    path: &'c Path,
}

impl Sql<'_> {
    /// Carries out a statement and says how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, StoreError> {
        let changed = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute(params));
        changed.map_err(|e| StoreError::from_sqlite(self.path, &e))
    }

    /// All rows, made by `row`; its errors are rows that this version can't read.
    pub(super) fn all<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut row: impl FnMut(&rusqlite::Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(self.path, &e);
        let mut statement = self.conn.prepare_cached(sql).map_err(sqlite)?;
        let mut rows = statement.query(params).map_err(sqlite)?;
        let mut found = Vec::new();
        while let Some(next) = rows.next().map_err(sqlite)? {
            found.push(row(next)?);
        }
        Ok(found)
    }

    /// The first row, where there is one.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        row: impl FnOnce(&rusqlite::Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(self.path, &e);
        let mut statement = self.conn.prepare_cached(sql).map_err(sqlite)?;
        let mut rows = statement.query(params).map_err(sqlite)?;
        rows.next().map_err(sqlite)?.map(row).transpose()
    }
}
