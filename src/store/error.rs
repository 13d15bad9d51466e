//! What can go wrong with the store, in words that say who mends it and how.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::domain::ids::RunId;

/// Why the store could not do what it was asked. Cloned to every writer whose commit was lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the disk that holds the store '{0}' is full: free some space there")]
    DiskFull(PathBuf),
    #[error("the store '{0}' can only be read: give the user that runs muster the right to write it")]
    ReadOnly(PathBuf),
    #[error("the store '{0}' is held by another program for too long: close whatever has it open")]
    Locked(PathBuf),
    #[error(
        "the store '{path}' is of version {found} and this muster knows versions up to {known}: \
         use the newer muster, or another --state-dir"
    )]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error(
        "the file '{path}' is damaged or is no store of muster ({cause}): put it aside, or use another --state-dir"
    )]
    Damaged { path: PathBuf, cause: String },
    #[error("the state folder '{path}' can't be used ({cause}): make it writable for the user that runs muster")]
    Folder { path: PathBuf, cause: String },
    #[error("'{path}' has mode {mode:04o} and belongs to another user, who could read it: use another --state-dir")]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("the disk that holds the store '{path}' reports an error ({cause}): look at the disk")]
    Disk { path: PathBuf, cause: String },
    /// A run's journal is written by one engine at a time, which knows where it ends.
    #[error("the journal of run {run} goes on at record {found} and not at {expected}: another muster has written it")]
    JournalMoved { run: RunId, expected: u64, found: u64 },
    #[error("run {0} is finished: its journal takes no more records")]
    RunFinished(RunId),
    #[error("the store has no run {0}")]
    NoRun(RunId),
    #[error("the store has no device with the NetBox id {0}: wait for the inventory to read it")]
    NoDevice(u64),
    #[error("record {n} of run {run} can't be read by this version of muster: {cause}")]
    Record { run: RunId, n: u64, cause: String },
    #[error("the store has a value in '{place}' that this version of muster can't read: {cause}")]
    Value { place: String, cause: String },
    /// Something that the code above didn't foresee; the cause is SQLite's own.
    #[error("the store '{path}' refused a request: {cause}")]
    Refused { path: PathBuf, cause: String },
    #[error("the store is closed")]
    Closed,
    /// A handle that only reads was asked to write (G14).
    #[error("a plan changes nothing in the store")]
    Planning,
}

impl StoreError {
    /// Whether the same request may well succeed later, with nothing changed in it.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::DiskFull(_) | StoreError::ReadOnly(_) | StoreError::Locked(_) | StoreError::Disk { .. } => true,
            StoreError::Newer { .. }
            | StoreError::Damaged { .. }
            | StoreError::Folder { .. }
            | StoreError::TooOpen { .. }
            | StoreError::JournalMoved { .. }
            | StoreError::RunFinished(_)
            | StoreError::NoRun(_)
            | StoreError::NoDevice(_)
            | StoreError::Record { .. }
            | StoreError::Value { .. }
            | StoreError::Refused { .. }
            | StoreError::Planning
            | StoreError::Closed => false,
        }
    }

    /// SQLite's word for it, in ours.
    pub(super) fn from_sqlite(path: &Path, error: &rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let cause = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull(path),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(path),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, cause },
            Some(ErrorCode::CannotOpen) => StoreError::Folder { path, cause },
            Some(ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed) => StoreError::Disk { path, cause },
            _ => StoreError::Refused { path, cause },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn told(code: i32) -> String {
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        StoreError::from_sqlite(Path::new("/state/muster.db"), &error).to_string()
    }

    #[test]
    fn each_kind_of_trouble_says_what_to_do_and_where() {
        for (code, word) in [
            (ffi::SQLITE_FULL, "free some space"),
            (ffi::SQLITE_READONLY, "the right to write"),
            (ffi::SQLITE_BUSY, "held by another program"),
            (ffi::SQLITE_CORRUPT, "damaged"),
            (ffi::SQLITE_NOTADB, "no store of muster"),
            (ffi::SQLITE_IOERR, "look at the disk"),
            (ffi::SQLITE_CANTOPEN, "make it writable"),
        ] {
            let text = told(code);
            assert!(text.contains(word) && text.contains("'/state/muster.db'"), "{text}");
        }
    }
}
