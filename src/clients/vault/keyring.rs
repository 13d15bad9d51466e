//! The keyring of a desktop (Secret Service) by `secret-tool`: each field is a secret of its own, found by its attributes.
//!
//! Secrets go through its input and output. It has no write of several fields at once: what is new is written before
//! anything is taken away, so that whatever breaks off leaves one credential more and not one less.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};

use super::process::{Call, CallError, Ended};
use super::turns::Turns;
use super::wiped::without;
use super::{Backend, Fields, VaultError, missing};
use crate::config::settings::KeyringVault;
use crate::domain::text::neutralize_to;

/// How the session's keyring is reached, and where it may ask its user to unlock it.
const ENVIRONMENT: [&str; 7] =
    ["DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_DATA_HOME", "LANG", "LC_ALL"];
/// Its words are read.
const SET: [(&str, &str); 1] = [("LC_MESSAGES", "C")];

#[derive(Debug)]
pub(super) struct Keyring {
    settings: KeyringVault,
    turns: Turns,
}

impl Backend for Keyring {
    fn place(&self) -> String {
        "the keyring of the desktop".to_owned()
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        async move {
            let (place, limit) = (self.place(), self.limit());
            let read = async { self.look_up(item, field).await?.ok_or_else(|| missing(item, field, &place)) };
            self.turns.read(&place, limit, read).await
        }
        .boxed()
    }

    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        async move {
            let limit = self.limit() * (2 * fields.len() as u32).max(1);
            let write = async {
                for (field, secret) in &fields {
                    if let Some(secret) = secret {
                        self.store(item, field, secret).await?;
                    }
                }
                for (field, _) in fields.iter().filter(|(_, secret)| secret.is_none()) {
                    self.clear(item, field).await?;
                }
                Ok(())
            };
            self.turns.write(&self.place(), limit, write).await
        }
        .boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        async move {
            let look = async { self.look_up("muster", "doctor").await.map(drop) };
            self.turns.read(&self.place(), self.limit(), look).await
        }
        .boxed()
    }
}

impl Keyring {
    pub fn new(settings: &KeyringVault) -> Self {
        Keyring { settings: settings.clone(), turns: Turns::default() }
    }

    /// A little more than a call: its own deadline says more.
    fn limit(&self) -> Duration {
        self.settings.timeout + Duration::from_secs(1)
    }

    async fn look_up(&self, item: &str, field: &str) -> Result<Option<SecretString>, VaultError> {
        let ended = self.call("lookup", None, item, field, b"").await?;
        match (ended.good, ended.out.is_empty()) {
            (true, true) => Ok(None),
            (true, false) => {
                let text = std::str::from_utf8(&ended.out);
                let text = text.map_err(|_| self.unusable(format!("'{field}' of '{item}' is no text")))?;
                Ok(Some(text.into()))
            }
            // It says nothing where there is no such secret.
            (false, _) if ended.complaint.is_empty() => Ok(None),
            (false, _) => Err(self.refusal(&ended.complaint)),
        }
    }

    async fn store(&self, item: &str, field: &str, secret: &SecretString) -> Result<(), VaultError> {
        let label = format!("--label=muster {item} {field}");
        let plain = secret.expose_secret();
        let ended = self.call("store", Some(&label), item, field, plain.as_bytes()).await?;
        if !ended.good {
            return Err(self.refusal(&without(&ended.complaint, &[plain])));
        }
        let now = self.look_up(item, field).await?;
        if now.as_ref().map(ExposeSecret::expose_secret) == Some(plain) {
            return Ok(());
        }
        let cause = format!("it took '{field}' of '{item}', and does not show it");
        Err(VaultError::Unavailable { place: self.place(), cause })
    }

    async fn clear(&self, item: &str, field: &str) -> Result<(), VaultError> {
        if self.look_up(item, field).await?.is_none() {
            return Ok(());
        }
        let ended = self.call("clear", None, item, field, b"").await?;
        if ended.good { Ok(()) } else { Err(self.refusal(&ended.complaint)) }
    }

    async fn call(
        &self,
        verb: &str,
        label: Option<&str>,
        item: &str,
        field: &str,
        stdin: &[u8],
    ) -> Result<Ended, VaultError> {
        if item.starts_with('-') || field.starts_with('-') {
            return Err(self.unusable("an item or field begins with '-'".to_owned()));
        }
        let mut args = vec![verb];
        args.extend(label);
        args.extend(["application", "muster", "item", item, "field", field]);
        let KeyringVault { program, timeout } = &self.settings;
        let call = Call { program, args: &args, environment: &ENVIRONMENT, set: &SET, stdin, deadline: *timeout };
        call.run().await.map_err(|error| match error {
            CallError::Late(_) => VaultError::NoAnswer { place: self.place(), patience: *timeout },
            CallError::NotThere(_) => VaultError::Unusable {
                place: self.place(),
                cause: error.to_string(),
                remedy: "install secret-tool (Debian: libsecret-tools), or let program of [vault] name it".to_owned(),
            },
            CallError::Broken { .. } | CallError::TooMuch(_) => self.unusable(error.to_string()),
        })
    }

    fn refusal(&self, complaint: &str) -> VaultError {
        let (place, low, cause) = (self.place(), complaint.to_ascii_lowercase(), neutralize_to(complaint, 200));
        if ["org.freedesktop.secrets", "autolaunch", "could not connect", "cannot connect"]
            .iter()
            .any(|w| low.contains(w))
        {
            return VaultError::Unusable {
                place,
                cause: format!("there is none in this session: {cause}"),
                remedy: "start muster in a desktop session with a keyring, or set another kind of [vault]".to_owned(),
            };
        }
        if low.contains("locked") || low.contains("dismissed") {
            let remedy = "unlock the keyring in muster's session".to_owned();
            return VaultError::Refused { place, cause, remedy };
        }
        VaultError::Unavailable { place, cause }
    }

    fn unusable(&self, cause: String) -> VaultError {
        let remedy = "check by hand what the program in program of [vault] does: secret-tool is expected".to_owned();
        VaultError::Unusable { place: self.place(), cause, remedy }
    }
}
