//! Writes an item of a vault that is a file: the rest of the file stays as its owner wrote it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use toml_edit::{DocumentMut, Item, Table, value};

use super::{Vault, VaultError, read_private};
use crate::config::settings::VaultKind;

/// Fields of an item with what they are to be; `None` takes a field away.
pub type Fields = Vec<(&'static str, Option<SecretString>)>;

/// Somebody else's write takes no longer.
const TURN: Duration = Duration::from_secs(10);

impl Vault {
    /// Writes fields of an item, all or none, and answers when they are on the disk (B3: before a BMC forgets anything). Other
    /// items, other fields and comments stay. A vault of the environment can't be written.
    pub async fn put(&self, item: &str, fields: Fields) -> Result<(), VaultError> {
        if let Some(imagined) = &self.imagined {
            let mut imagined = imagined.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for (field, secret) in fields {
                imagined.insert((item.to_owned(), field.to_owned()), secret);
            }
            return Ok(());
        }
        let VaultKind::File(path) = &self.settings.kind else {
            return Err(VaultError::ReadOnly { item: item.to_owned() });
        };
        let (file, item) = (path.clone(), item.to_owned());
        let written = tokio::task::spawn_blocking(move || write(&file, &item, &fields));
        match tokio::time::timeout(self.patience + TURN, written).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(VaultError::NoAnswer { path: path.clone(), patience: self.patience + TURN }),
        }
    }

    /// The same vault for a plan: what is written shows to those who read through it, and nowhere else (G14).
    pub fn rehearsed(&self) -> Vault {
        Vault { imagined: Some(Arc::default()), ..self.clone() }
    }
}

fn write(path: &Path, item: &str, fields: &Fields) -> Result<(), VaultError> {
    let failed = |e: std::io::Error| VaultError::Unwritable { path: path.to_owned(), cause: e.to_string() };
    // A link stays a link: what it leads to is replaced.
    let path = &path.canonicalize().map_err(failed)?;
    let _turn = turn(path)?;
    let text = read_private(path)?;
    let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| VaultError::Malformed {
        path: path.clone(),
        line: e.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1)),
    })?;
    let table = document.entry(item).or_insert_with(|| Item::Table(Table::new()));
    let Some(table) = table.as_table_like_mut() else {
        return Err(VaultError::Malformed { path: path.clone(), line: 1 });
    };
    for (field, secret) in fields {
        match secret {
            Some(secret) => drop(table.insert(field, value(secret.expose_secret()))),
            None => drop(table.remove(field)),
        }
    }
    replace(path, &Zeroizing::new(document.to_string())).map_err(failed)
}

/// Keeps other writers of this file away, of this process and of others, until it is dropped.
fn turn(path: &Path) -> Result<File, VaultError> {
    let failed = |e: std::io::Error| VaultError::Unwritable { path: path.to_owned(), cause: e.to_string() };
    let lock = beside(path, "lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(lock).map_err(failed)?;
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
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = beside(path, "new");
    std::fs::remove_file(&temporary).or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(e),
    })?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes())?;
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
    use std::os::unix::fs::PermissionsExt;

    use super::super::tests::vault;
    use super::*;

    fn fields(pairs: &[(&'static str, Option<&str>)]) -> Fields {
        pairs.iter().map(|(name, text)| (*name, text.map(SecretString::from))).collect()
    }

    /// Proves: K2
    #[tokio::test]
    async fn a_written_item_is_read_back_and_the_rest_stays_as_it_was() {
        let text = "# kept\n[bmc-a]\nusername = \"root\" # by hand\npassword = \"old\"\n\n[other]\nx = \"y\"\n";
        let (folder, vault) = vault(text, 0o600);
        vault.put("bmc-a", fields(&[("password", Some("n\"ew")), ("password_next", None)])).await.unwrap();
        vault.put("bmc-b", fields(&[("username", Some("ADMIN")), ("password", Some("two"))])).await.unwrap();
        assert_eq!(vault.get("bmc-a", "password").unwrap().expose_secret(), "n\"ew");
        assert_eq!(vault.get("bmc-b", "username").unwrap().expose_secret(), "ADMIN");
        let path = folder.path().join("vault.toml");
        let now = std::fs::read_to_string(&path).unwrap();
        assert!(now.contains("# kept") && now.contains("# by hand") && now.contains("x = \"y\""), "{now}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        vault.put("bmc-b", fields(&[("password", None)])).await.unwrap();
        assert!(vault.get("bmc-b", "password").is_err());
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
            assert_eq!(vault.get(name, "password").unwrap().expose_secret(), name);
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
        assert_eq!(vault.get("bmc-a", "password").unwrap().expose_secret(), "old");
        assert_eq!(std::fs::read_to_string(folder.path().join("vault.toml")).unwrap(), text);
    }

    #[tokio::test]
    async fn what_cannot_be_written_says_so_and_shows_no_secret() {
        let (_folder, vault) = vault("[bmc-a]\npassword = s3cret\n", 0o600);
        let error = vault.put("bmc-a", fields(&[("password", Some("x"))])).await.unwrap_err();
        assert!(matches!(error, VaultError::Malformed { line: 2, .. }), "{error:?}");
        assert!(!error.to_string().contains("s3cret"));
        let mut env = vault.clone();
        env.settings.kind = VaultKind::Env;
        let error = env.put("bmc-a", fields(&[("password", Some("x"))])).await.unwrap_err();
        assert!(error.to_string().contains("bmc-a"), "{error}");
    }
}
