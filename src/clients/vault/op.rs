//! The command-line program of 1Password: items as JSON, read from its output and written to its input.
//!
//! No secret is ever in its arguments. Of the environment it gets its own variables (`OP_…`), which it is signed in by.

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde_json::Value;

use super::onepassword::{Item, new_field, new_item, secrets};
use super::process::{Call, CallError, Ended};
use super::turns::Turns;
use super::wiped::{Wiped, read, without};
use super::{Backend, Fields, VaultError, missing};
use crate::config::settings::OpVault;
use crate::domain::text::neutralize_to;

/// Its own, and what a desktop needs to be asked for leave.
const ENVIRONMENT: [&str; 5] = ["OP_*", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS", "LANG", "LC_ALL"];
/// No colours, no debugging that would show items, and its own cache as it is.
const SET: [(&str, &str); 2] = [("NO_COLOR", "1"), ("OP_DEBUG", "false")];

#[derive(Debug)]
pub(super) struct Op {
    settings: OpVault,
    turns: Turns,
}

impl Backend for Op {
    fn place(&self) -> String {
        format!("the 1Password vault '{}' (op)", self.settings.vault)
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        async move {
            let place = self.place();
            let read = async {
                match self.item(item).await? {
                    Some(out) => parsed(&out).map_err(|cause| self.unusable(cause))?.value(item, field, &place),
                    None => Err(missing(item, field, &place)),
                }
            };
            self.turns.read(&place, self.settings.timeout * 2, read).await
        }
        .boxed()
    }

    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        async move { self.turns.write(&self.place(), self.settings.timeout * 4, self.write(item, &fields)).await }
            .boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        async move {
            let look = async {
                let ended = self.call(&["vault", "get", &self.settings.vault, "--format", "json"], b"").await?;
                if ended.good { Ok(()) } else { Err(self.refusal(&ended.complaint, "")) }
            };
            self.turns.read(&self.place(), self.settings.timeout * 2, look).await
        }
        .boxed()
    }
}

impl Op {
    pub fn new(settings: &OpVault) -> Self {
        Op { settings: settings.clone(), turns: Turns::default() }
    }

    /// The item with exactly this title, as the program prints it.
    async fn item(&self, title: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        // It would be taken for an option.
        if title.starts_with('-') {
            return Err(self.unusable(format!("the title '{}' begins with '-'", neutralize_to(title, 80))));
        }
        let vault = &self.settings.vault;
        let ended = self.call(&["item", "get", title, "--vault", vault, "--format", "json"], b"").await?;
        if !ended.good {
            return match self.refusal(&ended.complaint, title) {
                VaultError::Missing { .. } => Ok(None),
                error => Err(error),
            };
        }
        let found = parsed(&ended.out).map_err(|cause| self.unusable(cause))?;
        // It also takes ids, and titles in another case.
        Ok((found.title == title).then_some(ended.out))
    }

    async fn write(&self, title: &str, fields: &Fields) -> Result<(), VaultError> {
        let place = self.place();
        let vault = &self.settings.vault;
        let ended = match self.item(title).await? {
            Some(out) => {
                let item = parsed(&out).map_err(|cause| self.unusable(cause))?;
                if item.shows(title, fields, &place)? {
                    return Ok(());
                }
                if !item.id.bytes().all(|b| b.is_ascii_alphanumeric()) || item.id.is_empty() {
                    return Err(self.unusable(format!("it tells an id of '{}'", neutralize_to(&item.id, 40))));
                }
                let whole = self.edited(title, &out, fields)?.bytes();
                self.call(&["item", "edit", &item.id, "--vault", vault, "--format", "json"], &whole).await?
            }
            None if fields.iter().all(|(_, secret)| secret.is_none()) => return Ok(()),
            None => {
                let whole = Wiped(new_item(title, fields)).bytes();
                self.call(&["item", "create", "-", "--vault", vault, "--format", "json"], &whole).await?
            }
        };
        if !ended.good {
            return Err(self.refusal(&without(&ended.complaint, &secrets(fields)), title));
        }
        let now = self.item(title).await?;
        let now = now.map(|out| parsed(&out)).transpose().map_err(|cause| self.unusable(cause))?.unwrap_or_default();
        if now.shows(title, fields, &place)? {
            return Ok(());
        }
        let cause = format!("it took what was written to '{title}', and does not show it");
        Err(VaultError::Unavailable { place, cause })
    }

    /// The whole item with other fields: the program takes an item as a whole.
    fn edited(&self, title: &str, out: &[u8], fields: &Fields) -> Result<Wiped, VaultError> {
        let place = self.place();
        let item = parsed(out).map_err(|cause| self.unusable(cause))?;
        let mut whole = Wiped(read(json_of(out)).map_err(|cause| self.unusable(cause))?);
        let Some(document) = whole.0.as_object_mut() else {
            return Err(self.unusable("an item is an object".to_owned()));
        };
        let list = document.entry("fields").or_insert_with(|| Value::Array(vec![]));
        let Some(list) = list.as_array_mut() else { return Err(self.unusable("fields are a list".to_owned())) };
        for (name, secret) in fields {
            let id = item.field(title, name, &place)?.map(|field| field.id.clone());
            let at = id.and_then(|id| list.iter().position(|field| field["id"] == *id));
            match (at, secret) {
                (Some(at), Some(secret)) => list[at]["value"] = new_field(name, secret)["value"].take(),
                (Some(at), None) => drop(Wiped(list.remove(at))),
                (None, Some(secret)) => list.push(new_field(name, secret)),
                (None, None) => {}
            }
        }
        Ok(whole)
    }

    async fn call(&self, args: &[&str], stdin: &[u8]) -> Result<Ended, VaultError> {
        let mut args = args.to_vec();
        if let Some(account) = &self.settings.account {
            args.extend(["--account", account]);
        }
        let OpVault { program, timeout, .. } = &self.settings;
        let call = Call { program, args: &args, environment: &ENVIRONMENT, set: &SET, stdin, deadline: *timeout };
        call.run().await.map_err(|error| match error {
            CallError::Late(_) => VaultError::NoAnswer { place: self.place(), patience: *timeout },
            CallError::NotThere(_) => VaultError::Unusable {
                place: self.place(),
                cause: error.to_string(),
                remedy: "install 1Password's program op, or let program of [vault] name it".to_owned(),
            },
            CallError::Broken { .. } | CallError::TooMuch(_) => self.unusable(error.to_string()),
        })
    }

    /// What the program's words mean. What nobody knows may be the network, and is tried again.
    fn refusal(&self, complaint: &str, title: &str) -> VaultError {
        let (place, low) = (self.place(), complaint.to_ascii_lowercase());
        let says = |words: &[&str]| words.iter().any(|word| low.contains(word));
        let cause =
            if complaint.is_empty() { "it fails and says nothing".to_owned() } else { neutralize_to(complaint, 200) };
        let refused = |remedy: &str| VaultError::Refused {
            place: place.clone(),
            cause: cause.clone(),
            remedy: remedy.to_owned(),
        };
        if says(&["more than one item matches"]) {
            return VaultError::Ambiguous { place, what: format!("items with the title '{title}'"), count: 2 };
        }
        if says(&["isn't a vault", "is not a vault", "vault not found"]) {
            return refused("correct vault of [vault], or give the account access to it");
        }
        if says(&["isn't an item", "is not an item", "item not found"]) {
            return missing(title, "", &place);
        }
        let out = ["not currently signed in", "no accounts configured", "session expired", "sign in", "signed out"];
        let denied =
            ["unauthorized", "forbidden", "(401)", "(403)", "permission", "authorization", "not authenticated"];
        if says(&out) || says(&denied) {
            return refused("sign op in for muster's user, or give its account access to the vault");
        }
        VaultError::Unavailable { place, cause }
    }

    fn unusable(&self, cause: String) -> VaultError {
        let remedy =
            "check by hand what the program in program of [vault] prints: 1Password's op 2 is expected".to_owned();
        VaultError::Unusable { place: self.place(), cause, remedy }
    }
}

fn parsed(out: &[u8]) -> Result<Item, String> {
    read(json_of(out))
}

/// Behind what stands before it: news of the program are lines of their own.
fn json_of(out: &[u8]) -> &[u8] {
    let mut at = 0;
    for line in out.split_inclusive(|b| *b == b'\n') {
        if line.first() == Some(&b'{') {
            return &out[at..];
        }
        at += line.len();
    }
    out
}
