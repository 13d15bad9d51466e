//! The log: a file in the state folder, and for the console its log pane. Never the terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use super::exit::Ending;
use crate::tui;

/// When the file is this large, it is kept as `muster.log.1` and a new one begun.
const ROTATE_AT: u64 = 8 * 1024 * 1024;

/// A headless command logs to the file alone.
pub fn to_file(state: &Path) -> Result<(), Ending> {
    let file = file_layer(state)?;
    tracing_subscriber::registry().with(file).try_init().ok(); // a second call in one process keeps the first
    Ok(())
}

/// The console logs to the file and to its log pane.
pub fn for_console(state: &Path) -> Result<(), Ending> {
    let file = file_layer(state)?;
    tracing_subscriber::registry().with(file).with(tui::log_layer().with_filter(filter())).try_init().ok();
    Ok(())
}

fn filter() -> EnvFilter {
    EnvFilter::try_from_env("MUSTER_LOG").unwrap_or_else(|_| EnvFilter::new("info,muster=debug"))
}

fn file_layer<S>(state: &Path) -> Result<impl Layer<S>, Ending>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let path = state.join("muster.log");
    let file = Rotating::open(path.clone())
        .map_err(|e| Ending::refused(format!("the log '{}' cannot be written: {e}", path.display())))?;
    Ok(fmt::layer().with_ansi(false).with_target(false).with_writer(move || file.clone()).with_filter(filter()))
}

/// A file that is replaced when it has grown large. Cheap to clone.
#[derive(Clone)]
struct Rotating(Arc<Mutex<Open>>);

struct Open {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Rotating {
    fn open(path: PathBuf) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let file = private_file(&path)?;
        let size = file.metadata()?.len();
        Ok(Rotating(Arc::new(Mutex::new(Open { path, file, size }))))
    }
}

impl Write for Rotating {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A panic elsewhere while logging must not silence the log.
        let mut open = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if open.size >= ROTATE_AT {
            fs::rename(&open.path, open.path.with_extension("log.1"))?;
            open.file = private_file(&open.path)?;
            open.size = 0;
        }
        let written = open.file.write(bytes)?;
        open.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut open = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        open.file.flush()
    }
}

/// Z2: folders are 0700.
fn private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Z2: files are 0600.
fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_log_is_kept_once_and_begun_anew() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/muster.log");
        let mut log = Rotating::open(path.clone()).unwrap();
        log.0.lock().unwrap().size = ROTATE_AT;
        log.write_all(b"after\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
        assert!(path.with_extension("log.1").exists());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
