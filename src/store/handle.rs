//! Opens the store and hands out its two ways in: queued writes and pooled reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, MAIN_DB};
use tokio::sync::watch;

use super::error::StoreError;
use super::latency::Latency;
use super::readers::Readers;
use super::stir::Stir;
use super::watcher::Watcher;
use super::writer::{Commits, Undo, Writer};
use super::{folder, schema};
use crate::domain::exposition::Times;

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
    /// Counts the commits of this process.
    committed: watch::Sender<u64>,
    latency: Latency,
    /// Counts the runs that ended in this process.
    ended: watch::Sender<u64>,
}

impl Store {
    /// Opens the store of a state folder and makes both where they are missing: 0700 and 0600, WAL, every commit synced.
    /// A store of an older version is brought to this one; a newer one is refused.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        folder::prepare(folder)?;
        let path = folder.join("muster.db");
        folder::prepare_file(&path)?;
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(&path, &e);
        let had_log = folder::has_log(&path);
        let conn = connect(&path).map_err(sqlite)?;
        // Where it may not write SQLite opens a file for reading, and says so only at the first write.
        if conn.is_readonly(MAIN_DB).map_err(sqlite)? {
            return Err(StoreError::ReadOnly(path));
        }
        if !had_log {
            let page: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(sqlite)?;
            folder::is_whole(&path, page.unsigned_abs())?;
        }
        schema::migrate(&conn, &path)?;
        let inner = Inner {
            folder: folder.to_owned(),
            writer: Writer::spawn(conn, path.clone())?,
            readers: Readers::new(&path),
            path,
            fleet: watch::Sender::new(0),
            committed: watch::Sender::new(0),
            latency: Latency::default(),
            ended: watch::Sender::new(0),
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

    /// How long writes waited for their commit since the store was opened.
    pub fn write_times(&self) -> Times {
        self.inner.latency.times()
    }

    /// Told when devices, references or proofs were changed through this handle or a clone of it.
    pub fn fleet_changes(&self) -> watch::Receiver<u64> {
        self.inner.fleet.subscribe()
    }

    /// Told when something was committed through this handle or a clone of it, so that nobody here waits for a look of
    /// [`Store::watcher`] that is due later.
    pub fn commits_here(&self) -> watch::Receiver<u64> {
        self.inner.committed.subscribe()
    }

    /// Told when a run ended through this handle or a clone of it.
    pub fn run_ends(&self) -> watch::Receiver<u64> {
        self.inner.ended.subscribe()
    }

    /// Hears when any process writes into the state folder; `None` where this system can't tell, which is logged.
    pub fn stir(&self) -> Option<Stir> {
        let folder = &self.inner.folder;
        match Stir::listen(folder) {
            Ok(stir) => Some(stir),
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "writes can't be heard here: the folder is looked at often");
                None
            }
        }
    }

    /// Follows what any process commits, from now on.
    pub fn watcher(&self) -> Result<Watcher, StoreError> {
        Watcher::open(&self.inner.path)
    }

    pub(super) fn run_ended(&self) {
        self.inner.ended.send_modify(|n| *n += 1);
    }

    pub(super) fn fleet_changed(&self) {
        self.inner.fleet.send_modify(|n| *n += 1);
    }

    /// Queues a write; the answer comes after its commit. SQLite's errors are put into words here.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Sql<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        self.write_with(Undo::Alone, work).await
    }

    /// As [`Store::write`], for work that changes nothing before all its reasons to refuse are checked. It costs less.
    pub(super) async fn write_checked<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Sql<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        self.write_with(Undo::Together, work).await
    }

    async fn write_with<T, F>(&self, undo: Undo, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Sql<'_>) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        if self.is_rehearsing() {
            return Err(StoreError::Planning);
        }
        let path = self.inner.path.clone();
        let began = Instant::now();
        let written = self.inner.writer.write(&self.inner.path, undo, move |conn| work(&Sql::new(conn, &path))).await;
        self.inner.latency.add(began.elapsed());
        if written.is_ok() {
            self.inner.committed.send_modify(|n| *n += 1);
        }
        written
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&Sql<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.inner.readers.read(|conn| work(&Sql::new(conn, &self.inner.path)))
    }
}

/// The log goes over into the file when it has so many pages (16 MB). A page that many commits change is then carried over
/// once, and the two syncs of it come seldom; a log of this size is read in some 20 ms after a crash.
const CHECKPOINT: i64 = 4096;

/// The writer's own cache: the ends of some hundred journals and the way to each, so that an append reads nothing.
const CACHE_KB: i64 = 8192;

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open(path)?;
    conn.busy_handler(Some(wait_for_turn))?;
    turn_on_wal(&conn)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    conn.pragma_update(None, "cache_size", -CACHE_KB)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Between two tries for the lock that another process has, and how many there are: ten seconds.
const TURN: Duration = Duration::from_millis(2);
const TURNS: i32 = 5000;

/// SQLite's own handler sleeps ever longer, and would hardly ever find the gap between two commits of a busy leader.
fn wait_for_turn(tries: i32) -> bool {
    std::thread::sleep(TURN);
    tries < TURNS
}

/// Of processes that make a new store in the same moment SQLite refuses all but one this change, without asking the busy
/// handler (C-48).
fn turn_on_wal(conn: &Connection) -> rusqlite::Result<()> {
    let mut tries = 0;
    loop {
        match conn.pragma_update(None, "journal_mode", "WAL") {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait_for_turn(tries) => tries += 1,
            done => return done,
        }
    }
}

/// A connection whose errors are already in words.
pub(super) struct Sql<'c> {
    conn: &'c Connection,
    path: &'c Path,
}

impl<'c> Sql<'c> {
    pub(super) fn new(conn: &'c Connection, path: &'c Path) -> Sql<'c> {
        Sql { conn, path }
    }

    /// Carries out a statement and says how many rows it changed.
    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, StoreError> {
        let changed = self.conn.prepare_cached(sql).and_then(|mut statement| statement.execute(params));
        changed.map_err(|e| StoreError::from_sqlite(self.path, &e))
    }

    /// The place of the row that was inserted last.
    pub(super) fn last_place(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// Does work that may fail without harm to the transaction: then only its own changes are undone, and the inner error
    /// says why. The outer one: nothing of the transaction is left, as after some errors (a full disk, mostly).
    pub(super) fn attempt<T>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Result<T, StoreError>, StoreError> {
        self.execute("SAVEPOINT part", [])?;
        let done = work();
        if self.conn.is_autocommit() {
            return Err(done.err().unwrap_or(StoreError::Closed));
        }
        if done.is_err() {
            self.execute("ROLLBACK TO part", [])?;
        }
        self.execute("RELEASE part", [])?;
        Ok(done)
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

    /// Hands over every row, one at a time.
    pub(super) fn each(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut row: impl FnMut(&rusqlite::Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(self.path, &e);
        let mut statement = self.conn.prepare_cached(sql).map_err(sqlite)?;
        let mut rows = statement.query(params).map_err(sqlite)?;
        while let Some(next) = rows.next().map_err(sqlite)? {
            row(next)?;
        }
        Ok(())
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
