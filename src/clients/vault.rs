//! Secrets by item and field (K2): from the environment or from a 0600 file.

mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Semaphore, oneshot};

pub use self::write::Fields;
use crate::config::settings::{SecretRef, VaultKind, VaultSettings};

/// A file that is not read by then stands on something that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Reads at once.
const READS: usize = 4;
/// A read that hangs for so long is given up: its thread hangs on, and another read may find that the file answers again.
const GIVEN_UP: Duration = Duration::from_secs(60);
/// So many threads may hang, and no more are begun.
const HANGING: usize = 128;

/// A place that holds secrets. Reads anew at each request, so that a rotated secret is seen by the next step.
#[derive(Debug, Clone)]
pub struct Vault {
    settings: VaultSettings,
    turns: Arc<Semaphore>,
    /// Threads that may read, hanging ones among them.
    threads: Arc<Semaphore>,
    patience: Duration,
    given_up: Duration,
    /// Of a plan: what it would have written, by item and field.
    imagined: Option<Arc<Mutex<Imagined>>>,
}

/// Fields that would have been written; `None`: taken away.
type Imagined = BTreeMap<(String, String), Option<SecretString>>;

/// Why a secret could not be had. None of them holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the vault has no item '{item}' with a field '{field}' ({place})")]
    Missing { item: String, field: String, place: String },
    #[error("the environment variable '{0}' is not set")]
    EnvMissing(String),
    #[error("the file '{path}' could not be read: {cause}")]
    Unreadable { path: PathBuf, cause: String },
    #[error("the vault file '{path}' did not answer within {} s", .patience.as_secs())]
    NoAnswer { path: PathBuf, patience: Duration },
    #[error("the file '{path}' has mode {mode:04o}: others than its owner can read it (chmod 600 '{path}')")]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("the vault file '{path}' is not valid: line {line}: a table an item with text fields is expected")]
    Malformed { path: PathBuf, line: usize },
    #[error("the file '{path}' could not be written: {cause}")]
    Unwritable { path: PathBuf, cause: String },
    #[error("the item '{item}' can't be written: the vault is the environment")]
    ReadOnly { item: String },
}

impl Vault {
    pub fn new(settings: VaultSettings) -> Self {
        let (turns, threads) = (Arc::new(Semaphore::new(READS)), Arc::new(Semaphore::new(HANGING)));
        Vault { settings, turns, threads, patience: PATIENCE, given_up: GIVEN_UP, imagined: None }
    }

    pub fn settings(&self) -> &VaultSettings {
        &self.settings
    }

    /// A field of an item.
    pub fn get(&self, item: &str, field: &str) -> Result<SecretString, VaultError> {
        let missing = |place: String| VaultError::Missing { item: item.to_owned(), field: field.to_owned(), place };
        if let Some(imagined) = self.imagined(item, field) {
            return imagined.ok_or_else(|| missing("as it would be".to_owned()));
        }
        match &self.settings.kind {
            VaultKind::Env => {
                let name = env_name(item, field);
                match std::env::var(&name) {
                    Ok(value) if !value.is_empty() => Ok(value.into()),
                    _ => Err(missing(format!("environment variable '{name}'"))),
                }
            }
            VaultKind::File(path) => {
                let text = read_private(path)?;
                // The parser's own message quotes the line, which may hold a secret: only its place is told.
                let items: BTreeMap<String, BTreeMap<String, SecretString>> =
                    toml::from_str(&text).map_err(|e: toml::de::Error| VaultError::Malformed {
                        path: path.clone(),
                        line: e.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1)),
                    })?;
                let value = items
                    .get(item)
                    .and_then(|fields| fields.get(field))
                    .filter(|value| !value.expose_secret().is_empty());
                value.cloned().ok_or_else(|| missing(format!("file '{}'", path.display())))
            }
        }
    }

    /// As [`Vault::get`], for whoever must not be held up: a file system that hangs is an error after a while, and takes
    /// neither the thread of the caller nor more than a few others (C-49).
    pub async fn ask(&self, item: &str, field: &str) -> Result<SecretString, VaultError> {
        let VaultKind::File(path) = &self.settings.kind else { return self.get(item, field) };
        let (tell, told) = oneshot::channel();
        tokio::spawn(self.clone().read_for(item.to_owned(), field.to_owned(), tell));
        match tokio::time::timeout(self.patience, told).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(VaultError::NoAnswer { path: path.clone(), patience: self.patience }),
        }
    }

    /// Reads in a thread of its own when it is its turn, and keeps that turn until the read has ended or is given up.
    async fn read_for(self, item: String, field: String, mut tell: oneshot::Sender<Result<SecretString, VaultError>>) {
        let turn = tokio::select! {
            turn = Arc::clone(&self.turns).acquire_owned() => turn,
            // Whoever asked has lost patience.
            () = tell.closed() => return,
        };
        let Ok(thread) = Arc::clone(&self.threads).try_acquire_owned() else { return };
        let given_up = self.given_up;
        let read = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            self.get(&item, &field)
        });
        if let Ok(Ok(outcome)) = tokio::time::timeout(given_up, read).await {
            tell.send(outcome).ok(); // it may be too late
        }
        drop(turn);
    }

    /// What a reference of the configuration points at.
    pub fn resolve(&self, reference: &SecretRef) -> Result<SecretString, VaultError> {
        match reference {
            SecretRef::Env(name) => match std::env::var(name) {
                Ok(value) if !value.is_empty() => Ok(value.into()),
                _ => Err(VaultError::EnvMissing(name.clone())),
            },
            SecretRef::File(path) => Ok(read_private(path)?.trim_end_matches(['\n', '\r']).into()),
            SecretRef::Vault { item, field } => self.get(item, field),
        }
    }

    /// As [`Vault::resolve`], for whoever must not be held up by a file system that hangs.
    pub async fn resolve_soon(&self, reference: &SecretRef) -> Result<SecretString, VaultError> {
        let path = match reference {
            SecretRef::Env(_) => return self.resolve(reference),
            SecretRef::Vault { item, field } => return self.ask(item, field).await,
            SecretRef::File(path) => path.clone(),
        };
        let (vault, reference) = (self.clone(), reference.clone());
        let read = tokio::task::spawn_blocking(move || vault.resolve(&reference));
        match tokio::time::timeout(self.patience, read).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(VaultError::NoAnswer { path, patience: self.patience }),
        }
    }

    /// What a plan would have written there; `None` where it would have left it alone.
    fn imagined(&self, item: &str, field: &str) -> Option<Option<SecretString>> {
        let imagined = self.imagined.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        imagined.get(&(item.to_owned(), field.to_owned())).cloned()
    }

    /// Name of the item with the credential that BMCs of a vendor leave the factory with.
    pub fn factory_item(&self, site: &str, vendor: &str) -> String {
        self.settings.factory_item.replace("{site}", site).replace("{vendor}", vendor)
    }

    /// Name of the item with a host's BMC credential.
    pub fn bmc_item(&self, host: &str) -> String {
        self.settings.bmc_item.replace("{host}", host)
    }
}

/// The environment variable of an item's field: `MUSTER_SECRET_BMC_GPU_B07_37_PASSWORD`.
fn env_name(item: &str, field: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
    };
    format!("MUSTER_SECRET_{}_{}", plain(item), plain(field))
}

/// Reads a file that only its owner may read. The text is zeroed where it was when it is dropped (D3).
fn read_private(path: &Path) -> Result<Zeroizing<String>, VaultError> {
    let unreadable = |e: std::io::Error| VaultError::Unreadable { path: path.to_owned(), cause: e.to_string() };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(VaultError::TooOpen { path: path.to_owned(), mode });
        }
    }
    std::fs::read_to_string(path).map(Zeroizing::new).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    pub(super) fn vault(text: &str, mode: u32) -> (tempfile::TempDir, Vault) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let settings = VaultSettings {
            kind: VaultKind::File(path),
            dhcp_item: "ssh-config-dhcp".into(),
            bmc_item: "bmc-{host}".into(),
            ipmi_item: "ipmi_exporter".into(),
            factory_item: "bmc-factory-{vendor}".into(),
        };
        (folder, Vault::new(settings))
    }

    /// Proves: K2
    #[test]
    fn a_private_file_gives_its_fields_and_names_what_it_lacks() {
        let (_folder, vault) = vault("[bmc-a]\nusername = \"root\"\npassword = \"s3cret\"\n", 0o600);
        assert_eq!(vault.get("bmc-a", "password").unwrap().expose_secret(), "s3cret");
        let error = vault.get("bmc-b", "password").unwrap_err().to_string();
        assert!(error.contains("'bmc-b'") && error.contains("'password'"), "{error}");
        assert!(!format!("{:?}", vault.get("bmc-a", "password")).contains("s3cret"));
    }

    /// Proves: G12
    #[tokio::test]
    async fn a_vault_that_hangs_holds_up_nobody_for_longer_than_its_patience() {
        let (folder, vault) = vault("", 0o600);
        let vault = Vault { patience: Duration::from_millis(100), given_up: Duration::from_millis(400), ..vault };
        let path = folder.path().join("vault.toml");
        std::fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap();
        assert!(made.success());
        // More than may be at it at once: those that find no turn are told the same.
        let asked = (0..READS + 2).map(|_| vault.ask("a", "b"));
        for outcome in futures::future::join_all(asked).await {
            assert!(matches!(&outcome, Err(VaultError::NoAnswer { path: p, .. }) if *p == path), "{outcome:?}");
        }
        // Another file stands there, and what hangs never ends: it is given up.
        let hanging = folder.path().join("pipe");
        std::fs::rename(&path, &hanging).unwrap();
        std::fs::write(&path, "[a]\nb = \"c\"\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(vault.ask("a", "b").await.unwrap().expose_secret(), "c");
        assert_eq!(HANGING - vault.threads.available_permits(), READS, "their threads hang on");
        drop(std::fs::OpenOptions::new().write(true).open(&hanging).unwrap());
        while vault.threads.available_permits() < HANGING {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let (_folder, vault) = vault("[a]\nb = \"c\"\n", 0o644);
        assert!(matches!(vault.get("a", "b"), Err(VaultError::TooOpen { mode: 0o644, .. })));
    }

    #[test]
    fn a_broken_file_names_its_line_and_shows_nothing_of_it() {
        let (_folder, vault) = vault("[a]\nb = \"fine\"\nc = s3cret\n", 0o600);
        let error = vault.get("a", "b").unwrap_err();
        assert!(matches!(error, VaultError::Malformed { line: 3, .. }), "{error:?}");
        assert!(!error.to_string().contains("s3cret"));
    }

    #[test]
    fn variables_are_named_by_item_and_field() {
        assert_eq!(env_name("bmc-gpu-b07-37", "password"), "MUSTER_SECRET_BMC_GPU_B07_37_PASSWORD");
    }
}
