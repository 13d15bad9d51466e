//! A vault that is a TOML file encrypted with age (<https://age-encryption.org/v1>), armored or not.
//!
//! It is decrypted for each look, in memory only, and written back to its recipients and to the identity that opened it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ::age::armor::{ArmoredReader, ArmoredWriter, Format};
use ::age::x25519::{Identity, Recipient};
use ::age::{DecryptError, Decryptor, Encryptor};
use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};

use super::file::{edited, look_up, place, real, replace, turn, write_soon};
use super::threads::Threads;
use super::{Backend, Fields, VaultError, plain};
use crate::config::settings::AgeVault;

/// What stands at the beginning of an armored file.
const ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";
/// A vault of this size is something else.
const FILE_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct AgeFile {
    settings: AgeVault,
    threads: Threads,
}

impl AgeFile {
    pub fn new(settings: &AgeVault) -> Self {
        AgeFile { settings: settings.clone(), threads: Threads::default() }
    }
}

impl Backend for AgeFile {
    fn place(&self) -> String {
        place(&self.settings.path)
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        let (settings, item, field) = (self.settings.clone(), item.to_owned(), field.to_owned());
        let read = move || {
            let opened = Opened::of(&settings, &settings.path)?;
            look_up(&opened.text, &settings.path, &item, &field)
        };
        self.threads.run(self.place(), read).boxed()
    }

    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        let (settings, item) = (self.settings.clone(), item.to_owned());
        write_soon(self.place(), self.threads.patience, move || {
            let path = &real(&settings.path)?;
            let _turn = turn(path)?;
            let opened = Opened::of(&settings, path)?;
            let text = edited(&opened.text, path, &item, &fields)?;
            replace(path, &opened.sealed(&text, &settings)?, opened.mode)
        })
        .boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        let settings = self.settings.clone();
        self.threads.run(self.place(), move || Opened::of(&settings, &settings.path).map(drop)).boxed()
    }
}

/// The file as it was found.
struct Opened {
    text: Zeroizing<String>,
    identities: Vec<Identity>,
    armored: bool,
    mode: u32,
}

impl Opened {
    fn of(settings: &AgeVault, path: &Path) -> Result<Opened, VaultError> {
        let identities = identities(settings)?;
        let unreadable = |e: std::io::Error| VaultError::Unreadable { path: path.to_owned(), cause: e.to_string() };
        let found = std::fs::metadata(path).map_err(unreadable)?;
        if found.len() > FILE_MAX {
            return Err(unusable(path, format!("it has {} bytes", found.len()), "put the vault's file there"));
        }
        let sealed = std::fs::read(path).map_err(unreadable)?;
        let text = decrypted(&sealed, &identities).map_err(|error| of(error, path, settings))?;
        let mode = found.permissions().mode() & 0o777;
        Ok(Opened { text, identities, armored: sealed.starts_with(ARMOR), mode })
    }

    /// What is to stand in the file instead.
    fn sealed(&self, text: &str, settings: &AgeVault) -> Result<Vec<u8>, VaultError> {
        let mut all: BTreeSet<String> = self.identities.iter().map(|own| own.to_public().to_string()).collect();
        all.extend(settings.recipients.iter().cloned());
        let recipients =
            all.iter().map(|text| text.parse::<Recipient>()).collect::<Result<Vec<_>, _>>().map_err(|_| {
                // They are public. Which one it is the reader of the configuration has no way to know: its checksum.
                unusable(&settings.path, "a recipient is mistyped".to_owned(), "correct recipients of [vault]")
            })?;
        let failed = |e: std::io::Error| VaultError::Unwritable { path: settings.path.clone(), cause: e.to_string() };
        encrypted(text.as_bytes(), &recipients, self.armored).map_err(failed)
    }
}

/// The identities that the reference leads to: lines that begin with `#` are comments, as `age-keygen` writes them.
fn identities(settings: &AgeVault) -> Result<Vec<Identity>, VaultError> {
    let text = plain(&settings.identity)?;
    let lines = text.expose_secret().lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let found = lines.map(|line| line.parse::<Identity>()).collect::<Result<Vec<_>, _>>().unwrap_or_default();
    if found.is_empty() {
        let cause = format!("'{}' is no X25519 identity of age without a passphrase", settings.identity);
        return Err(unusable(&settings.path, cause, "put what age-keygen writes where identity of [vault] points"));
    }
    Ok(found)
}

fn decrypted(sealed: &[u8], identities: &[Identity]) -> Result<Zeroizing<String>, DecryptError> {
    let decryptor = Decryptor::new(ArmoredReader::new(sealed))?;
    let mut opened = decryptor.decrypt(identities.iter().map(|identity| identity as &dyn ::age::Identity))?;
    // No less than the plain text: a buffer that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(sealed.len() + 1));
    opened.read_to_end(&mut bytes)?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(DecryptError::InvalidHeader),
    }
}

fn encrypted(text: &[u8], recipients: &[Recipient], armored: bool) -> std::io::Result<Vec<u8>> {
    let to = recipients.iter().map(|recipient| recipient as &dyn ::age::Recipient);
    let encryptor = Encryptor::with_recipients(to).map_err(std::io::Error::other)?;
    let format = if armored { Format::AsciiArmor } else { Format::Binary };
    let mut writer = encryptor.wrap_output(ArmoredWriter::wrap_output(Vec::new(), format)?)?;
    writer.write_all(text)?;
    writer.finish()?.finish()
}

fn of(error: DecryptError, path: &Path, settings: &AgeVault) -> VaultError {
    match error {
        DecryptError::NoMatchingKeys => VaultError::Refused {
            place: place(path),
            cause: format!("it is not encrypted to the identity of '{}'", settings.identity),
            remedy: "encrypt it to that identity as well, or let identity of [vault] point to another".to_owned(),
        },
        error => {
            unusable(path, format!("it is no file of age: {error}"), "put the vault's file there, encrypted with age")
        }
    }
}

fn unusable(path: &Path, cause: String, remedy: &str) -> VaultError {
    VaultError::Unusable { place: place(path), cause, remedy: remedy.to_owned() }
}
