//! The themes that there are: the built-in ones, and the files of the user's own folder, read again when they change.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::model::ThemeName;
use super::theme::{Theme, ThemeError};
use crate::domain::text::neutralize_to;

/// A theme file larger than this is none.
const FILE_MAX: u64 = 64 * 1024;

/// Where themes come from.
#[derive(Debug, Default)]
pub struct Shelf {
    /// `themes` beside the configuration.
    folder: Option<PathBuf>,
    /// The file of the theme that shows, and its time when it was read.
    shown: Option<(PathBuf, Option<SystemTime>)>,
}

impl Shelf {
    pub fn new(folder: Option<PathBuf>) -> Shelf {
        Shelf { folder, shown: None }
    }

    /// All of them with what they are for; a file hides a built-in one of its name. One that cannot be used says why.
    pub fn list(&self) -> Vec<ThemeName> {
        let told = |name: &str, theme: Result<Theme, ThemeError>| ThemeName {
            name: neutralize_to(name, 40),
            about: theme.map_or_else(|error| error.to_string(), |theme| neutralize_to(&theme.about, 80)),
        };
        let mut all: Vec<ThemeName> = Theme::names().into_iter().map(|name| told(name, Theme::named(name))).collect();
        for name in self.own() {
            let theme = self.read(&self.file(&name).unwrap_or_default(), &name);
            all.retain(|known| known.name != name);
            all.push(told(&name, theme));
        }
        all
    }

    /// A theme by its name, the user's own first.
    pub fn theme(&mut self, name: &str) -> Result<Theme, ThemeError> {
        match self.file(name).filter(|path| path.exists()) {
            Some(path) => {
                // Its time first: what is written meanwhile is seen at the next look.
                self.shown = Some((path.clone(), written(&path)));
                self.read(&path, name)
            }
            None => {
                self.shown = None;
                Theme::named(name).map_err(|error| self.with_own(error))
            }
        }
    }

    /// Whether the file of the theme that shows is another one than was read.
    pub fn has_changed(&self) -> bool {
        self.shown.as_ref().is_some_and(|(path, at)| written(path) != *at)
    }

    fn read(&self, path: &Path, name: &str) -> Result<Theme, ThemeError> {
        let form = |message: String| ThemeError::Form { name: name.to_owned(), message };
        let size = std::fs::metadata(path).map_err(|error| form(error.to_string()))?.len();
        if size > FILE_MAX {
            return Err(form(format!("'{}' is no theme: it has {size} bytes", path.display())));
        }
        let text = std::fs::read_to_string(path).map_err(|error| form(error.to_string()))?;
        Theme::parse(name, &text)
    }

    /// Only a plain name is a file of the folder.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        Some(self.folder.as_ref().filter(|_| plain)?.join(format!("{name}.toml")))
    }

    /// Names of the folder's files, in order.
    fn own(&self) -> Vec<String> {
        let Some(entries) = self.folder.as_ref().and_then(|folder| std::fs::read_dir(folder).ok()) else {
            return Vec::new();
        };
        let name = |path: PathBuf| {
            let is_theme = path.extension().is_some_and(|end| end == "toml");
            path.file_stem().filter(|_| is_theme)?.to_str().map(str::to_owned)
        };
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.ok()?.path())).collect();
        names.retain(|name| self.file(name).is_some());
        names.sort();
        names
    }

    fn with_own(&self, error: ThemeError) -> ThemeError {
        match error {
            ThemeError::Unknown { name, known } => {
                let known = [vec![known], self.own()].concat().join(", ");
                ThemeError::Unknown { name, known }
            }
            other => other,
        }
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|of| of.modified()).ok()
}

#[cfg(test)]
mod tests {
    use ratatui::style::Color;

    use super::*;
    use crate::tui::theme::Meaning;

    /// Proves: U6
    #[test]
    fn a_theme_of_ones_own_is_listed_read_and_read_again_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hall.toml");
        std::fs::write(&file, "about = 'for the hall'\ninherits = 'dark'\n[palette]\ngreen = '#00ff00'").unwrap();
        std::fs::write(folder.path().join("broken.toml"), "[meaning]\nfial = {}").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "no theme").unwrap();
        let mut shelf = Shelf::new(Some(folder.path().to_owned()));
        let listed = shelf.list();
        let about = |name: &str| listed.iter().find(|theme| theme.name == name).map(|theme| theme.about.clone());
        assert_eq!(about("hall").as_deref(), Some("for the hall"));
        assert!(about("broken").unwrap().contains("the nearest is 'fail'"), "{listed:?}");
        assert!(about("dark").is_some() && about("notes").is_none());

        let theme = shelf.theme("hall").unwrap();
        assert_eq!(theme.style(Meaning::Ok).fg, Some(Color::Rgb(0, 255, 0)));
        assert!(!shelf.has_changed());
        std::fs::write(&file, "inherits = 'dark'\n[palette]\ngreen = '#00ee00'").unwrap();
        std::fs::File::options().append(true).open(&file).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(shelf.has_changed());
        assert_eq!(shelf.theme("hall").unwrap().style(Meaning::Ok).fg, Some(Color::Rgb(0, 238, 0)));

        let error = shelf.theme("haul").unwrap_err().to_string();
        assert!(error.ends_with("broken, hall"), "{error}");
        assert!(shelf.theme("../hall").is_err());
        shelf.theme("light").unwrap();
        assert!(!shelf.has_changed());
    }
}
