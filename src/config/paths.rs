//! Where the configuration and the state are: by flag, by environment, or by the platform's conventions (K1).

use std::ffi::OsString;
use std::path::PathBuf;

use directories::ProjectDirs;

/// The environment variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "MUSTER_CONFIG";
/// The environment variable that names the state folder.
pub const STATE_VARIABLE: &str = "MUSTER_STATE_DIR";

/// The platform has no home folder to put files under, and none was named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no home folder to find the {what} in: name it with {flag} or {variable}")]
pub struct NoHome {
    what: &'static str,
    flag: &'static str,
    variable: &'static str,
}

/// The configuration file: the flag's, else `MUSTER_CONFIG`, else `config.toml` in the platform's configuration folder.
pub fn config_file(flag: Option<PathBuf>) -> Result<PathBuf, NoHome> {
    let standard = || project().map(|dirs| dirs.config_dir().join("config.toml"));
    chosen(flag, std::env::var_os(CONFIG_VARIABLE), standard).ok_or(NoHome {
        what: "configuration",
        flag: "--config",
        variable: CONFIG_VARIABLE,
    })
}

/// The state folder: the flag's, else `MUSTER_STATE_DIR`, else the platform's state folder, or its folder for local data
/// where it has no notion of state.
pub fn state_dir(flag: Option<PathBuf>) -> Result<PathBuf, NoHome> {
    let standard = || project().map(|dirs| dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir()).to_owned());
    chosen(flag, std::env::var_os(STATE_VARIABLE), standard).ok_or(NoHome {
        what: "state folder",
        flag: "--state-dir",
        variable: STATE_VARIABLE,
    })
}

fn project() -> Option<ProjectDirs> {
    ProjectDirs::from("", "", "muster")
}

/// The flag wins over the environment, and that over the convention. An empty variable is one that is not set.
fn chosen(
    flag: Option<PathBuf>,
    variable: Option<OsString>,
    standard: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    flag.or_else(|| variable.filter(|value| !value.is_empty()).map(PathBuf::from)).or_else(standard)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: K1
    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_convention() {
        let standard = || Some(PathBuf::from("/standard"));
        let named = |text: &str| Some(OsString::from(text));
        assert_eq!(chosen(Some("/flag".into()), named("/env"), standard), Some("/flag".into()));
        assert_eq!(chosen(None, named("/env"), standard), Some("/env".into()));
        assert_eq!(chosen(None, named(""), standard), Some("/standard".into()));
        assert_eq!(chosen(None, None, || None), None);
    }
}
