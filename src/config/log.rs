//! Reads `[log]`: how large the log may become.

use super::settings::LogSettings;
use super::table::Section;

const MB: u64 = 1_000_000;

pub(super) fn log(t: Section<'_>) -> LogSettings {
    let default = LogSettings::default();
    let log = LogSettings {
        file_bytes: t.whole_or("file_mb", default.file_bytes / MB, 1, 10_000) * MB,
        // Whole numbers of this size fit.
        files: t.whole_or("files", u64::from(default.files), 1, 100) as u32,
    };
    t.finish();
    log
}
