//! Makes the state folder and its files private: 0700 and 0600 (Z2).

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
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
///
/// A file that exists is not opened: SQLite's locks are the process's, and closing any other handle on the file would drop
/// them all under a connection that this process has (C-48).
pub(super) fn prepare_file(path: &Path) -> Result<(), StoreError> {
    let made = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path);
    match made {
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => {
            return Err(match e.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    StoreError::ReadOnly(path.to_owned())
                }
                io::ErrorKind::StorageFull => StoreError::DiskFull(path.to_owned()),
                _ => unusable(path, &e),
            });
        }
    }
    tighten(path, 0o600)
}

/// Whether there is a log beside the file that has something in it.
pub(super) fn has_log(path: &Path) -> bool {
    path.with_extension("db-wal").metadata().is_ok_and(|log| log.len() > 0)
}

/// Whether the file ends with a whole page. SQLite reads the rest of a torn one as zeros, and what it then finds is
/// anything. Only for a file without a log: beside one the last page may be half written, since SQLite has it there as
/// well, and mends it. Like [`prepare_file`] it opens nothing.
pub(super) fn is_whole(path: &Path, page: u64) -> Result<(), StoreError> {
    let length = path.metadata().map_err(|e| unusable(path, &e))?.len();
    match page > 0 && length % page != 0 {
        true => Err(StoreError::Damaged { path: path.to_owned(), cause: "its last page is torn".to_owned() }),
        false => Ok(()),
    }
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
