//! Secrets by item and field (K2), whatever keeps them. A kind of vault is one file below and one row in
//! [`crate::config::vault::KINDS`].

mod age;
mod connect;
mod env;
mod file;
mod held;
mod keyring;
mod onepassword;
mod op;
mod process;
mod threads;
mod turns;
mod wiped;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use secrecy::SecretString;

pub use self::held::Held;
use self::threads::Threads;
pub use self::wiped::without;
use crate::config::settings::{SecretRef, VaultKind, VaultSettings};

/// Fields of an item with what they are to be; `None` takes a field away.
pub type Fields = Vec<(&'static str, Option<SecretString>)>;

/// What a kind of vault can do. Each of its futures ends by itself, and may be dropped at any time.
trait Backend: Debug + Send + Sync {
    /// For messages: `the vault file '/etc/muster/vault.toml'`.
    fn place(&self) -> String;

    /// A field of an item, read anew. An empty one counts as missing.
    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>>;

    /// Writes fields of an item, and answers when a later `get` has them. What is taken away goes last.
    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Whether it is there and lets muster in. Writes nothing.
    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>>;
}

fn backend(kind: &VaultKind) -> Arc<dyn Backend> {
    match kind {
        VaultKind::Env => Arc::new(env::Env),
        VaultKind::File(path) => Arc::new(file::TomlFile::new(path)),
        VaultKind::Age(settings) => Arc::new(age::AgeFile::new(settings)),
        VaultKind::Connect(settings) => Arc::new(connect::Connect::new(settings)),
        VaultKind::Op(settings) => Arc::new(op::Op::new(settings)),
        VaultKind::Keyring(settings) => Arc::new(keyring::Keyring::new(settings)),
    }
}

/// A place that holds secrets. Reads anew at each request, so that a rotated secret is seen by the next step. Clones share
/// places in its queue.
#[derive(Debug, Clone)]
pub struct Vault {
    settings: VaultSettings,
    backend: Arc<dyn Backend>,
    /// Files that references name.
    files: Threads,
    /// Of a plan: what it would have written, by item and field.
    imagined: Option<Arc<Mutex<Imagined>>>,
}

/// Fields that would have been written; `None`: taken away.
type Imagined = BTreeMap<(String, String), Option<SecretString>>;

/// Why a secret could not be had or kept. None of them holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("the vault has no item '{item}' with a field '{field}' ({place})")]
    Missing { item: String, field: String, place: String },
    #[error("the environment variable '{0}' is not set")]
    EnvMissing(String),
    #[error("the file '{path}' could not be read: {cause}")]
    Unreadable { path: PathBuf, cause: String },
    #[error("{place} did not answer within {} s", .patience.as_secs_f32())]
    NoAnswer { place: String, patience: Duration },
    #[error("the file '{path}' has mode {mode:04o}: others than its owner can read it (chmod 600 '{path}')")]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("the vault file '{path}' is not valid: line {line}: a table an item with text fields is expected")]
    Malformed { path: PathBuf, line: usize },
    #[error("the file '{path}' could not be written: {cause}")]
    Unwritable { path: PathBuf, cause: String },
    #[error("the item '{item}' can't be written: the vault is the environment")]
    ReadOnly { item: String },
    /// It may answer by itself later: not reached, overloaded, or at odds with another writer.
    #[error("{place} can't answer now: {cause}")]
    Unavailable { place: String, cause: String },
    #[error("{place} refuses muster: {cause}")]
    Refused { place: String, cause: String, remedy: String },
    /// Titles and labels need not be unique there, and a guess may be the wrong credential.
    #[error("{place} has {count} {what}")]
    Ambiguous { place: String, what: String, count: usize },
    /// What is there or is configured does not do.
    #[error("{place} can't be used: {cause}")]
    Unusable { place: String, cause: String, remedy: String },
}

impl Vault {
    pub fn new(settings: VaultSettings) -> Self {
        let backend = backend(&settings.kind);
        Vault { settings, backend, files: Threads::default(), imagined: None }
    }

    pub fn settings(&self) -> &VaultSettings {
        &self.settings
    }

    /// What keeps the secrets, for messages.
    pub fn place(&self) -> String {
        self.backend.place()
    }

    /// A field of an item. Whoever asks is held up for a bounded time, however many ask at once: a vault that hangs takes
    /// neither the thread of the caller nor more than a few others (C-49).
    pub async fn ask(&self, item: &str, field: &str) -> Result<SecretString, VaultError> {
        match self.imagined(item, field) {
            Some(Some(secret)) => Ok(secret),
            Some(None) => Err(missing(item, field, "as it would be")),
            None => self.backend.get(item, field).await,
        }
    }

    /// What a reference of the configuration points at, under the same bounds.
    pub async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, VaultError> {
        match reference {
            SecretRef::Env(_) => plain(reference),
            SecretRef::Vault { item, field } => self.ask(item, field).await,
            SecretRef::File(_) => opener(&self.files, reference).await,
        }
    }

    /// Writes fields of an item, and answers when they are kept for good (B3: before a BMC forgets anything). Other items,
    /// other fields and comments stay. [`crate::config::vault::KINDS`] says what each kind can write.
    pub async fn put(&self, item: &str, fields: Fields) -> Result<(), VaultError> {
        let Some(imagined) = &self.imagined else { return self.backend.put(item, fields).await };
        let mut imagined = imagined.lock().unwrap_or_else(PoisonError::into_inner);
        for (field, secret) in fields {
            imagined.insert((item.to_owned(), field.to_owned()), secret);
        }
        Ok(())
    }

    /// Whether the vault is there and lets muster in. Writes nothing.
    pub async fn open(&self) -> Result<(), VaultError> {
        self.backend.open().await
    }

    /// The same vault for a plan: what is written shows to those who read through it, and nowhere else (G14).
    pub fn rehearsed(&self) -> Vault {
        Vault { imagined: Some(Arc::default()), ..self.clone() }
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

/// What an `env:` or `file:` reference points at. It blocks on the file: async callers have [`Vault::resolve`].
pub fn plain(reference: &SecretRef) -> Result<SecretString, VaultError> {
    match reference {
        SecretRef::Env(name) => match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(value.into()),
            _ => Err(VaultError::EnvMissing(name.clone())),
        },
        SecretRef::File(path) => Ok(file::read_private(path)?.trim_end_matches(['\n', '\r']).into()),
        SecretRef::Vault { item, field } => Err(missing(item, field, "outside of a vault")),
    }
}

/// What opens a vault, or stands beside one: a reference that needs no vault, read within a bounded time.
async fn opener(files: &Threads, reference: &SecretRef) -> Result<SecretString, VaultError> {
    let SecretRef::File(path) = reference else { return plain(reference) };
    let (place, reference) = (format!("the file '{}'", path.display()), reference.clone());
    files.run(place, move || plain(&reference)).await
}

fn missing(item: &str, field: &str, place: &str) -> VaultError {
    VaultError::Missing { item: item.to_owned(), field: field.to_owned(), place: place.to_owned() }
}
