//! Leadership: which process runs the engine of a state folder. A lock of the operating system, so that it falls with
//! the process, however that ends.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::folder;

/// Held while this process leads; given back when it is dropped.
#[derive(Debug)]
pub struct Lead {
    /// The lock lives as long as the open file.
    _file: File,
}

/// Who leads, as it wrote itself down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    pub pid: u32,
    pub host: String,
    pub since: Timestamp,
    /// Who started it.
    #[serde(default)]
    pub user: Option<String>,
}

impl fmt::Display for Leader {
    /// `process 4711 (eve, since 06:12 UTC)`, for sentences. The text is another process's: whoever prints it neutralises it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (", self.pid)?;
        if let Some(user) = &self.user {
            write!(f, "{user}, ")?;
        }
        write!(f, "since {} UTC)", self.since.strftime("%H:%M"))
    }
}

/// Why this process can't lead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeadError {
    #[error(
        "another muster (process {} on {}, since {}) runs the engine of '{path}': use that one, or another --state-dir",
        leader.pid, leader.host, leader.since
    )]
    Held { path: PathBuf, leader: Leader },
    /// It holds the lock and has not written itself down, or not readably.
    #[error("another muster runs the engine of '{0}': use that one, or another --state-dir")]
    HeldByUnknown(PathBuf),
    #[error("the lock '{path}' can't be taken ({cause}): the state folder must be on a disk that has file locks")]
    Unusable { path: PathBuf, cause: String },
    #[error(transparent)]
    Folder(#[from] StoreError),
}

impl Lead {
    /// Takes the leadership of a state folder, or says who has it.
    pub fn take(folder: &Path) -> Result<Lead, LeadError> {
        Lead::take_as(folder, None)
    }

    /// Takes the leadership in the name of a person.
    pub fn take_as(folder: &Path, user: Option<&str>) -> Result<Lead, LeadError> {
        Candidate::new(folder)?.take(user)
    }

    /// Whether anybody leads a state folder now. Takes nothing away from whoever wants to.
    pub fn is_held(folder: &Path) -> Result<bool, LeadError> {
        let path = folder.join(LOCK);
        let unusable = |e: std::io::Error| LeadError::Unusable { path: path.clone(), cause: e.to_string() };
        // A shared lock: two processes that ask don't take each other for a leader.
        match open(&path).map_err(unusable)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(unusable(e)),
        }
    }
}

/// Whoever would lead a state folder. Keeps the lock's file open between tries: closing it would be heard as the end of a
/// leader by everybody who listens.
#[derive(Debug)]
pub struct Candidate {
    folder: PathBuf,
    path: PathBuf,
    /// `None` after a try that was won: the file is the leader's.
    file: Option<File>,
}

impl Candidate {
    pub fn new(folder: &Path) -> Result<Candidate, LeadError> {
        let mut candidate = Candidate { folder: folder.to_owned(), path: folder.join(LOCK), file: None };
        candidate.file = Some(candidate.open()?);
        Ok(candidate)
    }

    /// Takes the leadership in the name of a person, or says who has it.
    pub fn take(&mut self, user: Option<&str>) -> Result<Lead, LeadError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(e)) => return Err(self.unusable(&e)),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
                self.file = Some(file);
                read.map_err(|e| self.unusable(&e))?;
                return Err(match serde_json::from_str(&text) {
                    Ok(leader) => LeadError::Held { path: self.folder.clone(), leader },
                    Err(_) => LeadError::HeldByUnknown(self.folder.clone()),
                });
            }
        }
        let leader = Leader {
            pid: std::process::id(),
            host: host_name(),
            since: Timestamp::now(),
            user: user.map(str::to_owned),
        };
        let text = serde_json::to_string(&leader).map_err(|e| self.unusable(&e.into()))?;
        // A full disk must not keep anybody from leading: the words in the file only help a second process to say who.
        let written =
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).and_then(|_| file.write_all(text.as_bytes()));
        if let Err(e) = written {
            tracing::warn!(path = %self.path.display(), error = %e, "the leader could not write itself down");
        }
        Ok(Lead { _file: file })
    }

    fn open(&self) -> Result<File, LeadError> {
        folder::prepare(&self.folder)?;
        let file = open(&self.path).map_err(|e| self.unusable(&e))?;
        folder::tighten(&self.path, 0o600)?;
        Ok(file)
    }

    fn unusable(&self, cause: &std::io::Error) -> LeadError {
        LeadError::Unusable { path: self.path.clone(), cause: cause.to_string() }
    }
}

pub(super) const LOCK: &str = "muster.lock";

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The name of this machine, for the message that a second process shows.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"))
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| "this machine".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_named_with_its_person_and_one_of_an_older_version_without() {
        let old = r#"{"pid": 4711, "host": "h", "since": "2026-03-01T06:12:30Z"}"#;
        let mut leader: Leader = serde_json::from_str(old).unwrap();
        assert_eq!(leader.to_string(), "process 4711 (since 06:12 UTC)");
        leader.user = Some("eve".to_owned());
        assert_eq!(leader.to_string(), "process 4711 (eve, since 06:12 UTC)");
    }

    #[test]
    fn a_second_leader_is_refused_with_the_first_ones_name_and_leads_when_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lead::take(folder.path()).unwrap();
        let error = Lead::take(folder.path()).unwrap_err();
        assert!(matches!(&error, LeadError::Held { leader, .. } if leader.pid == std::process::id()), "{error:?}");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert!(Lead::is_held(folder.path()).unwrap());
        drop(first);
        assert!(!Lead::is_held(folder.path()).unwrap());
        Lead::take(folder.path()).unwrap();
    }
}
