//! The file of the log: bounded in size and number, and shared by all processes of one state folder. Writing to it never
//! fails whoever logs: a disk without room costs lines of the log, and no run.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use tracing::Level;

use super::line::own;
use crate::config::settings::LogSettings;

/// The most files that any configuration can have asked for: those of before are taken away up to here.
const FILES_MAX: u32 = 100;

/// `muster.log`, and what was put aside of it as `muster.log.1` (the newest) and so on.
pub(super) struct LogFile(Mutex<Open>);

struct Open {
    path: PathBuf,
    file: File,
    /// Device and inode: another process may have put the file aside.
    id: (u64, u64),
    settings: LogSettings,
    /// Lines that could not be written since the last one that could.
    lost: u64,
    /// The last write stopped within a line.
    torn: bool,
}

impl LogFile {
    /// Opens the file, and makes it and its folder where they are missing. One that others can read is mended, and one that
    /// an older version wrote as plain text is put aside.
    pub fn open(path: PathBuf, settings: &LogSettings) -> io::Result<LogFile> {
        if let Some(folder) = path.parent() {
            // Z2: folders are 0700.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let (file, meta) = private_file(&path)?;
        let (regular, loose) = (meta.is_file(), meta.permissions().mode() & 0o077 != 0);
        let id = id_of(&meta);
        let mut open = Open { path, file, id, settings: settings.clone(), lost: 0, torn: false };
        if regular && loose {
            // Z2
            open.file.set_permissions(fs::Permissions::from_mode(0o600))?;
            let mode = format!("{:04o}", meta.permissions().mode() & 0o7777);
            open.write(&own(
                Level::WARN,
                "the log could be read by others, its mode is 0600 now",
                &[("mode", json!(mode))],
            ));
        }
        if regular && !is_json(&open.path) {
            open.rotate();
        }
        Ok(LogFile(Mutex::new(open)))
    }

    /// Writes one line, its newline included.
    pub fn write(&self, line: &str) {
        // A panic elsewhere while logging must not silence the log.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(line);
    }
}

impl Open {
    fn write(&mut self, line: &str) {
        let size = self.follow();
        // Another process's lines count too, and a file that can't be put aside is written on.
        if size.is_some_and(|size| size > 0 && size + line.len() as u64 > self.settings.file_bytes) {
            self.rotate();
        }
        let mut text = String::new();
        if self.torn {
            text.push('\n');
        }
        if self.lost > 0 {
            text.push_str(&own(Level::WARN, "lines of the log could not be written", &[("lines", json!(self.lost))]));
        }
        text.push_str(line);
        // In one write: lines of several processes do not mix.
        match self.file.write(text.as_bytes()) {
            Ok(all) if all == text.len() => (self.lost, self.torn) = (0, false),
            Ok(_) => (self.lost, self.torn) = (self.lost + 1, true),
            Err(e) if e.kind() == ErrorKind::Interrupted => self.lost += 1,
            Err(_) => self.lost += 1,
        }
    }

    /// Goes over to the file that has the name now, and says how large it is; `None`: that could not be found out.
    fn follow(&mut self) -> Option<u64> {
        match fs::metadata(&self.path) {
            Ok(meta) if id_of(&meta) == self.id => return Some(meta.len()),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(_) => return None,
        }
        self.begin();
        self.file.metadata().ok().map(|meta| meta.len())
    }

    /// Opens the file of the name. Where that fails, the one of before is written on.
    fn begin(&mut self) {
        if let Ok((file, meta)) = private_file(&self.path) {
            (self.file, self.id, self.torn) = (file, id_of(&meta), false);
        }
    }

    /// Puts the file aside. Of several processes that want to, one does; a lock that is held is not waited for.
    fn rotate(&mut self) {
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
        }
        // Another one may have been here between the look and the lock.
        let still = fs::metadata(&self.path).is_ok_and(|meta| id_of(&meta) == self.id);
        if !still || self.put_aside().is_ok() {
            // The lock goes with the old file.
            self.begin();
        } else {
            self.file.unlock().ok(); // else it goes with the process, and this file is put aside by nobody before
        }
    }

    fn put_aside(&self) -> io::Result<()> {
        let aside = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{n}"));
            PathBuf::from(name)
        };
        let kept = self.settings.files - 1;
        for n in kept.max(1)..=FILES_MAX {
            match fs::remove_file(aside(n)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        if kept == 0 {
            return fs::remove_file(&self.path);
        }
        for n in (1..kept).rev() {
            match fs::rename(aside(n), aside(n + 1)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        fs::rename(&self.path, aside(1))
    }
}

/// Z2: files are 0600.
fn private_file(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

fn id_of(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Whether the file is empty or begins as this version writes it.
fn is_json(path: &Path) -> bool {
    let mut first = [0];
    match File::open(path).and_then(|mut file| file.read(&mut first)) {
        Ok(0) | Err(_) => true,
        Ok(_) => first == *b"{",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file_bytes: u64, files: u32) -> LogSettings {
        LogSettings { file_bytes, files }
    }

    fn line(n: usize) -> String {
        format!("{{\"n\":{n:06}}}\n")
    }

    /// All lines of the folder, the oldest first.
    fn lines(path: &Path) -> Vec<String> {
        let mut files: Vec<PathBuf> = (1..=9).rev().map(|n| path.with_extension(format!("log.{n}"))).collect();
        files.push(path.to_owned());
        let texts = files.iter().filter(|file| file.exists()).map(|file| fs::read_to_string(file).unwrap());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Proves: Z2
    #[test]
    fn the_log_is_bounded_in_size_and_number_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/muster.log");
        let log = LogFile::open(path.clone(), &settings(100, 3)).unwrap();
        // A line is 13 bytes: seven to a file.
        (0..40).for_each(|n| log.write(&line(n)));
        let kept: Vec<String> = (21..40).map(|n| line(n).trim_end().to_owned()).collect();
        assert_eq!(lines(&path), kept);
        for file in ["muster.log", "muster.log.1", "muster.log.2"] {
            let file = path.with_file_name(file);
            assert!(fs::metadata(&file).unwrap().len() <= 100 && mode(&file) == 0o600, "{}", file.display());
        }
        assert!(!path.with_extension("log.3").exists());
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        // Fewer files from now on, and then a single one.
        LogFile::open(path.clone(), &settings(100, 2)).map(|log| (40..50).for_each(|n| log.write(&line(n)))).unwrap();
        assert!(path.with_extension("log.1").exists() && !path.with_extension("log.2").exists());
        LogFile::open(path.clone(), &settings(100, 1)).map(|log| (50..60).for_each(|n| log.write(&line(n)))).unwrap();
        assert!(!path.with_extension("log.1").exists());
        assert_eq!(lines(&path).last().unwrap(), line(59).trim_end());
    }

    /// Proves: Z2
    #[test]
    fn a_log_that_others_can_read_is_mended_and_one_of_plain_text_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("muster.log");
        fs::write(&path, "2026-11-30 plain text\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let log = LogFile::open(path.clone(), &LogSettings::default()).unwrap();
        log.write(&line(1));
        let aside = path.with_extension("log.1");
        assert_eq!((mode(&path), mode(&aside)), (0o600, 0o600));
        let before = fs::read_to_string(aside).unwrap();
        assert!(before.starts_with("2026") && before.contains("\"mode\":\"0644\""), "{before}");
        assert_eq!(lines(&path).last().unwrap(), line(1).trim_end());
        assert_eq!(fs::read_to_string(&path).unwrap(), line(1));
    }

    #[test]
    fn writers_that_know_nothing_of_each_other_lose_and_mix_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("muster.log");
        // Each has the file open by itself, as processes do; locks of files are theirs, too.
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let log = LogFile::open(path.clone(), &settings(4_000, 9)).unwrap();
                std::thread::spawn(move || (0..250).for_each(|n| log.write(&line(writer * 1000 + n))))
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let mut found = lines(&path);
        found.sort();
        let mut expected: Vec<String> =
            (0..4).flat_map(|w| (0..250).map(move |n| line(w * 1000 + n).trim_end().to_owned())).collect();
        expected.sort();
        assert_eq!(found, expected);
        assert!(path.with_extension("log.1").exists() && !path.with_extension("log.9").exists());
    }

    #[test]
    fn a_disk_without_room_costs_lines_and_says_so_when_there_is_room_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("muster.log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let log = LogFile::open(path.clone(), &LogSettings::default()).unwrap();
        (0..3).for_each(|n| log.write(&line(n)));
        fs::remove_file(&path).unwrap();
        log.write(&line(3));
        let lines = lines(&path);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let said: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&said["lines"], &said["level"]), (&json!(3), &json!("warn")));
        assert_eq!(lines[1], line(3).trim_end());
    }
}
