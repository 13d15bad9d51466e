//! A small pool of connections that can only read. Each read sees what was committed when it began.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::StoreError;

/// Connections kept open between reads.
const KEPT: usize = 4;

pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Readers { path: path.to_owned(), idle: Mutex::new(Vec::new()) }
    }

    /// Reads in one transaction, so that two queries of one answer agree with each other.
    pub(super) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let sqlite = |e: rusqlite::Error| StoreError::from_sqlite(&self.path, &e);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open(&self.path).map_err(sqlite)?,
        };
        conn.execute_batch("BEGIN").map_err(sqlite)?;
        let outcome = work(&conn);
        // A reading transaction has nothing to lose; a connection that can't end it is not used again.
        if conn.execute_batch("COMMIT").is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < KEPT {
                idle.push(conn);
            }
        }
        outcome
    }
}

/// A connection that can only read.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    Ok(conn)
}
