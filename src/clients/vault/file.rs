//! A vault that is a TOML file of mode 0600. What is written changes the item's fields; the rest of the file stays as its
//! owner wrote it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use toml_edit::{DocumentMut, Item, Table, value};

use super::threads::Threads;
use super::{Backend, Fields, VaultError, missing};

/// Somebody else's write takes no longer.
pub(super) const TURN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct TomlFile {
    path: PathBuf,
    threads: Threads,
}

impl TomlFile {
    pub fn new(path: &Path) -> Self {
        TomlFile { path: path.to_owned(), threads: Threads::default() }
    }
}

impl Backend for TomlFile {
    fn place(&self) -> String {
        place(&self.path)
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        let (path, item, field) = (self.path.clone(), item.to_owned(), field.to_owned());
        let read = move || look_up(&read_private(&path)?, &path, &item, &field);
        self.threads.run(self.place(), read).boxed()
    }

    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        let (path, item) = (self.path.clone(), item.to_owned());
        write_soon(self.place(), self.threads.patience, move || {
            // A link stays a link: what it leads to is replaced.
            let path = &real(&path)?;
            let _turn = turn(path)?;
            let text = edited(&read_private(path)?, path, &item, &fields)?;
            replace(path, text.as_bytes(), 0o600)
        })
        .boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        let path = self.path.clone();
        self.threads.run(self.place(), move || items(&read_private(&path)?, &path).map(drop)).boxed()
    }
}

/// The vault file, for messages.
pub(super) fn place(path: &Path) -> String {
    format!("the vault file '{}'", path.display())
}

/// Writes in a thread of its own, for at most so long.
pub(super) async fn write_soon(
    place: String,
    patience: Duration,
    write: impl FnOnce() -> Result<(), VaultError> + Send + 'static,
) -> Result<(), VaultError> {
    let patience = patience + TURN;
    match tokio::time::timeout(patience, tokio::task::spawn_blocking(write)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) | Err(_) => Err(VaultError::NoAnswer { place, patience }),
    }
}

type Items = BTreeMap<String, BTreeMap<String, SecretString>>;

fn items(text: &str, path: &Path) -> Result<Items, VaultError> {
    // The parser's own message quotes the line, which may hold a secret: only its place is told.
    toml::from_str(text).map_err(|e: toml::de::Error| malformed(text, path, e.span()))
}

/// A field of an item of the file's text.
pub(super) fn look_up(text: &str, path: &Path, item: &str, field: &str) -> Result<SecretString, VaultError> {
    let items = items(text, path)?;
    let value = items.get(item).and_then(|fields| fields.get(field));
    let value = value.filter(|value| !value.expose_secret().is_empty());
    value.cloned().ok_or_else(|| missing(item, field, &format!("file '{}'", path.display())))
}

/// The file's text with other fields in one item.
pub(super) fn edited(text: &str, path: &Path, item: &str, fields: &Fields) -> Result<Zeroizing<String>, VaultError> {
    let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| malformed(text, path, e.span()))?;
    let table = document.entry(item).or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = table.as_table_like_mut() else { return Err(malformed(text, path, None)) };
    for (field, secret) in fields {
        match secret {
            Some(secret) => drop(table.insert(field, value(secret.expose_secret()))),
            None => drop(table.remove(field)),
        }
    }
    Ok(Zeroizing::new(document.to_string()))
}

fn malformed(text: &str, path: &Path, span: Option<std::ops::Range<usize>>) -> VaultError {
    let line = span.map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
    VaultError::Malformed { path: path.to_owned(), line }
}

/// Reads a file that only its owner may read. The text is zeroed where it was when it is dropped (D3).
pub(super) fn read_private(path: &Path) -> Result<Zeroizing<String>, VaultError> {
    let unreadable = |e: std::io::Error| VaultError::Unreadable { path: path.to_owned(), cause: e.to_string() };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(VaultError::TooOpen { path: path.to_owned(), mode });
    }
    std::fs::read_to_string(path).map(Zeroizing::new).map_err(unreadable)
}

fn unwritable(path: &Path) -> impl Fn(std::io::Error) -> VaultError {
    let path = path.to_owned();
    move |e| VaultError::Unwritable { path: path.clone(), cause: e.to_string() }
}

/// What a link leads to.
pub(super) fn real(path: &Path) -> Result<PathBuf, VaultError> {
    path.canonicalize().map_err(unwritable(path))
}

/// Keeps other writers of this file away, of this process and of others, until it is dropped.
pub(super) fn turn(path: &Path) -> Result<File, VaultError> {
    let failed = unwritable(path);
    let lock = beside(path, "lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock).map_err(&failed)?;
    let until = std::time::Instant::now() + TURN;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(e)) => return Err(failed(e)),
            Err(std::fs::TryLockError::WouldBlock) if std::time::Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                let cause = "another process has been writing it for too long".to_owned();
                return Err(VaultError::Unwritable { path: path.to_owned(), cause });
            }
        }
    }
}

/// Whole or not at all, and on the disk before this returns.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), VaultError> {
    swap(path, bytes, mode).map_err(unwritable(path))
}

fn swap(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let temporary = beside(path, "new");
    std::fs::remove_file(&temporary).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(e),
    })?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}

#[cfg(test)]
mod tests {
    use super::super::Vault;
    use super::super::threads::{HANGING, READS};
    use super::*;
    use crate::config::settings::{VaultKind, VaultSettings};

    fn vault(text: &str, mode: u32) -> (tempfile::TempDir, Vault) {
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

    fn fields(pairs: &[(&'static str, Option<&str>)]) -> Fields {
        pairs.iter().map(|(name, text)| (*name, text.map(SecretString::from))).collect()
    }

    /// Proves: K2
    #[tokio::test]
    async fn a_private_file_gives_its_fields_and_names_what_it_lacks() {
        let (_folder, vault) = vault("[bmc-a]\nusername = \"root\"\npassword = \"s3cret\"\n", 0o600);
        vault.open().await.unwrap();
        assert_eq!(vault.ask("bmc-a", "password").await.unwrap().expose_secret(), "s3cret");
        let error = vault.ask("bmc-b", "password").await.unwrap_err().to_string();
        assert!(error.contains("'bmc-b'") && error.contains("'password'"), "{error}");
        assert!(!format!("{:?}", vault.ask("bmc-a", "password").await).contains("s3cret"));
    }

    /// Proves: G12
    #[tokio::test]
    async fn a_vault_that_hangs_holds_up_nobody_for_longer_than_its_patience() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vault.toml");
        let threads = Threads {
            patience: Duration::from_millis(100),
            given_up: Duration::from_millis(400),
            ..Threads::default()
        };
        let vault = TomlFile { path: path.clone(), threads };
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap();
        assert!(made.success());
        // More than may be at it at once: those that find no turn are told the same.
        let asked = (0..READS + 2).map(|_| vault.get("a", "b"));
        for outcome in futures::future::join_all(asked).await {
            assert!(
                matches!(&outcome, Err(VaultError::NoAnswer { place, .. }) if *place == vault.place()),
                "{outcome:?}"
            );
        }
        // Another file stands there, and what hangs never ends: it is given up.
        let hanging = folder.path().join("pipe");
        std::fs::rename(&path, &hanging).unwrap();
        std::fs::write(&path, "[a]\nb = \"c\"\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(vault.get("a", "b").await.unwrap().expose_secret(), "c");
        let threads = &vault.threads.threads;
        assert_eq!(HANGING - threads.available_permits(), READS, "their threads hang on");
        drop(OpenOptions::new().write(true).open(&hanging).unwrap());
        while threads.available_permits() < HANGING {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_file_that_others_can_read_is_refused() {
        let (_folder, vault) = vault("[a]\nb = \"c\"\n", 0o644);
        assert!(matches!(vault.ask("a", "b").await, Err(VaultError::TooOpen { mode: 0o644, .. })));
    }

    #[tokio::test]
    async fn a_broken_file_names_its_line_and_shows_nothing_of_it() {
        let (_folder, vault) = vault("[a]\nb = \"fine\"\nc = s3cret\n", 0o600);
        let error = vault.ask("a", "b").await.unwrap_err();
        assert!(matches!(error, VaultError::Malformed { line: 3, .. }), "{error:?}");
        assert!(!error.to_string().contains("s3cret"));
    }

    /// Proves: K2
    #[tokio::test]
    async fn a_written_item_is_read_back_and_the_rest_stays_as_it_was() {
        let text = "# kept\n[bmc-a]\nusername = \"root\" # by hand\npassword = \"old\"\n\n[other]\nx = \"y\"\n";
        let (folder, vault) = vault(text, 0o600);
        vault.put("bmc-a", fields(&[("password", Some("n\"ew")), ("password_next", None)])).await.unwrap();
        vault.put("bmc-b", fields(&[("username", Some("ADMIN")), ("password", Some("two"))])).await.unwrap();
        assert_eq!(vault.ask("bmc-a", "password").await.unwrap().expose_secret(), "n\"ew");
        assert_eq!(vault.ask("bmc-b", "username").await.unwrap().expose_secret(), "ADMIN");
        let path = folder.path().join("vault.toml");
        let now = std::fs::read_to_string(&path).unwrap();
        assert!(now.contains("# kept") && now.contains("# by hand") && now.contains("x = \"y\""), "{now}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        vault.put("bmc-b", fields(&[("password", None)])).await.unwrap();
        assert!(vault.ask("bmc-b", "password").await.is_err());
    }

    #[tokio::test]
    async fn many_writers_lose_nothing() {
        let (_folder, vault) = vault("", 0o600);
        let names: Vec<String> = (0..16).map(|n| format!("bmc-{n}")).collect();
        let all = names.iter().map(|name| vault.put(name, fields(&[("password", Some(name))])));
        for outcome in futures::future::join_all(all).await {
            outcome.unwrap();
        }
        for name in &names {
            assert_eq!(vault.ask(name, "password").await.unwrap().expose_secret(), name);
        }
    }

    /// Proves: G14
    #[tokio::test]
    async fn a_plans_vault_shows_what_would_be_written_and_leaves_the_file_alone() {
        let text = "[bmc-a]\npassword = \"old\"\n";
        let (folder, vault) = vault(text, 0o600);
        let plan = vault.rehearsed();
        plan.put("bmc-a", fields(&[("password", Some("new"))])).await.unwrap();
        assert_eq!(plan.ask("bmc-a", "password").await.unwrap().expose_secret(), "new");
        assert_eq!(vault.ask("bmc-a", "password").await.unwrap().expose_secret(), "old");
        assert_eq!(std::fs::read_to_string(folder.path().join("vault.toml")).unwrap(), text);
    }

    #[tokio::test]
    async fn what_cannot_be_written_says_so_and_shows_no_secret() {
        let (_folder, vault) = vault("[bmc-a]\npassword = s3cret\n", 0o600);
        let error = vault.put("bmc-a", fields(&[("password", Some("x"))])).await.unwrap_err();
        assert!(matches!(error, VaultError::Malformed { line: 2, .. }), "{error:?}");
        assert!(!error.to_string().contains("s3cret"));
    }
}
