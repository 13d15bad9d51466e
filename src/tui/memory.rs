//! What the console remembers from one start to the next, in the state folder: the theme that was chosen with a key.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file in the state folder.
const FILE: &str = "console.toml";
/// A file larger than this is none of ours.
const FILE_MAX: u64 = 64 * 1024;

/// What is remembered. A key of a later version is no reason to forget the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub theme: Option<String>,
}

impl Memory {
    /// Reads it; what cannot be read is told to the log and forgotten: no console stays shut for that.
    pub fn read(folder: &Path) -> Memory {
        let path = folder.join(FILE);
        match read(&path) {
            Ok(memory) => memory,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Memory::default(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "what the console remembers cannot be read");
                Memory::default()
            }
        }
    }

    /// Writes it, whole or not at all; nobody else may read it (Z2).
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        let fresh = fresh(folder);
        // What an earlier attempt left behind is of nobody.
        fs::remove_file(&fresh).or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, folder.join(FILE))
    }
}

/// Another console on the same folder writes under a name of its own.
fn fresh(folder: &Path) -> PathBuf {
    folder.join(format!("{FILE}.{}", std::process::id()))
}

fn read(path: &Path) -> io::Result<Memory> {
    if fs::metadata(path)?.len() > FILE_MAX {
        return Err(io::Error::other("it is too large"));
    }
    toml::from_str(&fs::read_to_string(path)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_was_chosen_is_read_again_and_is_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Memory::read(folder.path()), Memory::default());
        let memory = Memory { theme: Some("contrast".to_owned()) };
        memory.write(folder.path()).unwrap();
        memory.write(folder.path()).unwrap();
        assert_eq!(Memory::read(folder.path()), memory);
        let path = folder.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");

        fs::write(&path, "theme = 'safe'\nof_a_later_version = 1").unwrap();
        assert_eq!(Memory::read(folder.path()).theme.as_deref(), Some("safe"));
        fs::write(&path, "theme = [").unwrap();
        assert_eq!(Memory::read(folder.path()), Memory::default());
    }
}
