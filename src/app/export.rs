//! Writes a run's whole story into a file of its own, for whoever sits at the console.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::handle::{App, AppError};
use crate::domain::ids::RunId;

/// Why a story could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    App(#[from] AppError),
    #[error("'{path}' could not be written: {source}")]
    File { path: PathBuf, source: io::Error },
}

impl App {
    /// Writes the story of a run as Markdown into `exports` of the state folder, and says where it is. The same run again
    /// replaces the file. Like all of that folder only this user can read it.
    pub fn export(&self, run: RunId) -> Result<PathBuf, ExportError> {
        let story = self.inner.runs.story(run)?;
        let folder = self.inner.store.folder().join("exports");
        let path = folder.join(format!("{}-{}.md", file_name(&story.host), run.short()));
        let page = story.markdown();
        write(&folder, &path, &page).map_err(|source| ExportError::File { path: path.clone(), source })?;
        Ok(path)
    }
}

/// A host's name as a part of a file's: NetBox lets anything be a name.
fn file_name(host: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    host.chars().take(80).map(safe).collect()
}

fn write(folder: &Path, path: &Path, page: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Beside it and then in its place: nobody ever reads half a page.
    let draft = path.with_extension("md.new");
    fs::remove_file(&draft).or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(page.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_page_is_written_whole_for_this_user_alone_and_replaced_when_it_is_written_again() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("exports");
        let path = folder.join("gpu-4f2.md");
        for page in ["first", "second and longer"] {
            write(&folder, &path, page).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), page);
        }
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn no_name_of_a_host_leads_out_of_the_folder() {
        assert_eq!(file_name("../../etc/passwd"), "______etc_passwd");
        assert_eq!(file_name("gpu-b07-37"), "gpu-b07-37");
        assert_eq!(file_name("a.b\u{1b}[2J"), "a_b__2J");
    }
}
