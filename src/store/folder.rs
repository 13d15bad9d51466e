//! Makes the state folder and its files private: 0700 and 0600 (Z2).

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::error::StoreError;

/// Creates the folder where it is missing; a looser one is mended with a notice.
pub(super) fn prepare(folder: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| unusable(folder, &e))?;
    tighten(folder, 0o700)
}

/// Creates the file where it is missing, so that SQLite never makes one with the mode of the process; SQLite gives its
/// own companions (`-wal`, `-shm`) the mode of this file.
pub(super) fn prepare_file(path: &Path) -> Result<(), StoreError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StoreError::ReadOnly(path.to_owned())
            }
            io::ErrorKind::StorageFull => StoreError::DiskFull(path.to_owned()),
            _ => unusable(path, &e),
        })
        .map(drop)?;
    tighten(path, 0o600)
}

/// Whether the file ends with a whole page. SQLite reads the rest of a torn one as zeros, and what it then finds is
/// anything. Beside a log the last page may be half written: SQLite has it there as well, and mends it.
pub(super) fn is_whole(path: &Path) -> Result<(), StoreError> {
    let mut header = [0; 18];
    let damaged = |cause: &str| StoreError::Damaged { path: path.to_owned(), cause: cause.to_owned() };
    let mut file = File::open(path).map_err(|e| unusable(path, &e))?;
    let length = file.metadata().map_err(|e| unusable(path, &e))?.len();
    if length == 0 || file.read_exact(&mut header).is_err() {
        // A new one, or one that SQLite itself does not take for a database.
        return Ok(());
    }
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        size => size,
    };
    let log = path.with_extension("db-wal").metadata().map_or(0, |log| log.len());
    if header.starts_with(b"SQLite format 3\0") && page > 0 && length % page != 0 && log == 0 {
        return Err(damaged("its last page is torn"));
    }
    Ok(())
}

/// Takes from others what they must not have, or refuses where this user can't.
pub(super) fn tighten(path: &Path, wanted: u32) -> Result<(), StoreError> {
    let mode = path.metadata().map_err(|e| unusable(path, &e))?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(wanted))
        .map_err(|_| StoreError::TooOpen { path: path.to_owned(), mode })?;
    tracing::warn!(path = %path.display(), mode = format!("{mode:04o}"), now = format!("{wanted:04o}"),
        "others could read the state of muster: the mode was mended");
    Ok(())
}

fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Folder { path: path.to_owned(), cause: error.to_string() }
}
