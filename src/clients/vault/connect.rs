//! 1Password Connect: items over its REST API (<https://developer.1password.com/docs/connect/api-reference>).
//!
//! An item is found by its exact title. It is changed by a patch of single fields, so that what somebody else changes in it
//! at the same time stays, and it counts as written when it reads back so: the server tells 1Password first.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::onepassword::{Item, is_uuid, new_field, new_item, only, secrets};
use super::threads::Threads;
use super::turns::Turns;
use super::{Backend, Fields, VaultError, missing, opener, wiped};
use crate::clients::http::{Answer, Auth, HttpClient, HttpError, HttpOptions, Method, Request};
use crate::config::settings::ConnectVault;
use crate::domain::text::neutralize_to;

/// The list of a vault's items, where a server leaves the filter out.
const BODY_MAX: usize = 8 * 1024 * 1024;
/// Others may change the item between the look and the patch, so often.
const ROUNDS: usize = 3;
/// Between two looks whether a write is there.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Connect {
    settings: ConnectVault,
    /// Made at the first use: its CA is a file.
    http: OnceLock<HttpClient>,
    /// Where the configuration names the vault.
    vault_id: Mutex<Option<String>>,
    files: Threads,
    turns: Turns,
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connect({})", self.place())
    }
}

impl Backend for Connect {
    fn place(&self) -> String {
        let url = &self.settings.url;
        let port = url.port().map_or(String::new(), |port| format!(":{port}"));
        format!("the vault '{}' of 1Password Connect at '{}{port}'", self.settings.vault, url.host_str().unwrap_or(""))
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        async move {
            let place = self.place();
            let read = async {
                let Some(found) = self.item(item).await.map_err(|t| self.error(t))? else {
                    return Err(missing(item, field, &place));
                };
                found.value(item, field, &place)
            };
            self.turns.read(&place, self.settings.timeout * 4, read).await
        }
        .boxed()
    }

    fn put<'a>(&'a self, item: &'a str, fields: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        async move {
            let write = async { self.write(item, &fields).await.map_err(|t| self.error(t)) };
            self.turns.write(&self.place(), self.settings.timeout * 8, write).await
        }
        .boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        async move {
            let look = async {
                let look = async {
                    let path = format!("/v1/vaults/{}", self.vault().await?);
                    self.ask(Request::get(path), &[]).await
                };
                look.await.map(drop).map_err(|t| self.error(t))
            };
            self.turns.read(&self.place(), self.settings.timeout * 2, look).await
        }
        .boxed()
    }
}

/// Why a request did not come to what it should.
enum Trouble {
    /// 404: the vault or the item, whatever was asked for.
    NotFound(String),
    /// 409, 412: somebody else changed it.
    Conflict(String),
    Vault(VaultError),
}

impl From<VaultError> for Trouble {
    fn from(error: VaultError) -> Self {
        Trouble::Vault(error)
    }
}

/// A row of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Row {
    id: String,
    name: String,
    title: String,
    state: Option<String>,
}

impl Connect {
    pub fn new(settings: &ConnectVault) -> Self {
        let (http, vault_id) = (OnceLock::new(), Mutex::default());
        Connect { settings: settings.clone(), http, vault_id, files: Threads::default(), turns: Turns::default() }
    }

    /// The item with this title, as it is now.
    async fn item(&self, title: &str) -> Result<Option<Item>, Trouble> {
        let Some(id) = self.id_of(title).await? else { return Ok(None) };
        match self.by_id(&id).await {
            Ok(item) => Ok(Some(item)),
            // It was deleted in between.
            Err(Trouble::NotFound(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    async fn by_id(&self, id: &str) -> Result<Item, Trouble> {
        let body = self.ask(Request::get(format!("/v1/vaults/{}/items/{id}", self.vault().await?)), &[]).await?;
        self.read(&body)
    }

    async fn id_of(&self, title: &str) -> Result<Option<String>, Trouble> {
        let vault = self.vault().await?;
        let list = Request::get(format!("/v1/vaults/{vault}/items")).query("filter", filter("title", title));
        let body = match self.ask(list, &[]).await {
            Err(trouble @ Trouble::NotFound(_)) => {
                // The name may belong to another vault by now.
                *self.vault_id.lock().unwrap_or_else(PoisonError::into_inner) = None;
                return Err(trouble);
            }
            body => body?,
        };
        let rows: Vec<Row> = self.read(&body)?;
        let fits = |row: &Row| row.title == title && !matches!(row.state.as_deref(), Some("ARCHIVED" | "DELETED"));
        let found = only(rows.into_iter().filter(fits).collect(), title, &self.place())?;
        found.map(|row| self.checked(row.id)).transpose()
    }

    /// The UUID of the vault.
    async fn vault(&self) -> Result<String, Trouble> {
        let name = &self.settings.vault;
        if is_uuid(name) {
            return Ok(name.clone());
        }
        if let Some(id) = self.vault_id.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(id);
        }
        let body = self.ask(Request::get("/v1/vaults").query("filter", filter("name", name)), &[]).await?;
        let rows: Vec<Row> = self.read(&body)?;
        let mut named: Vec<Row> = rows.into_iter().filter(|row| row.name == *name).collect();
        let (Some(row), true) = (named.pop(), named.is_empty()) else {
            let (place, count) = (self.place(), named.len() + 1);
            return Err(Trouble::Vault(match named.is_empty() {
                true => VaultError::Refused {
                    place,
                    cause: format!("its token sees no vault with the name '{name}'"),
                    remedy: "correct vault of [vault], or give the token access to it".to_owned(),
                },
                false => VaultError::Ambiguous { place, what: format!("vaults with the name '{name}'"), count },
            }));
        };
        let id = self.checked(row.id)?;
        *self.vault_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        Ok(id)
    }

    /// An id that may stand in a path.
    fn checked(&self, id: String) -> Result<String, Trouble> {
        if !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Ok(id);
        }
        Err(self.unusable(format!("it tells an id of '{}'", neutralize_to(&id, 40))).into())
    }

    async fn write(&self, title: &str, fields: &Fields) -> Result<(), Trouble> {
        let mut last = None;
        for _ in 0..ROUNDS {
            let id = match self.item(title).await? {
                Some(item) => {
                    let patch = wiped::Wiped(Value::Array(self.patch(title, &item, fields)?));
                    if patch.0.as_array().is_some_and(Vec::is_empty) {
                        return Ok(());
                    }
                    let id = self.checked(item.id.clone())?;
                    let path = format!("/v1/vaults/{}/items/{id}", self.vault().await?);
                    match self.ask(Request::new(Method::PATCH, path).json(patch.0.clone()), &secrets(fields)).await {
                        Ok(_) => id,
                        Err(Trouble::Conflict(cause) | Trouble::NotFound(cause)) => {
                            last = Some(cause);
                            continue;
                        }
                        Err(trouble) => return Err(trouble),
                    }
                }
                None if fields.iter().all(|(_, secret)| secret.is_none()) => return Ok(()),
                None => {
                    let vault = self.vault().await?;
                    let mut item = wiped::Wiped(new_item(title, fields));
                    item.0["vault"] = json!({"id": vault});
                    let post = Request::new(Method::POST, format!("/v1/vaults/{vault}/items")).json(item.0.clone());
                    let body = self.ask(post, &secrets(fields)).await?;
                    self.checked(self.read::<Item>(&body)?.id)?
                }
            };
            return self.shown(title, &id, fields).await;
        }
        let cause = format!("'{title}' was changed by somebody else each time: {}", last.unwrap_or_default());
        Err(VaultError::Unavailable { place: self.place(), cause }.into())
    }

    /// Waits until a read finds what was written.
    async fn shown(&self, title: &str, id: &str, fields: &Fields) -> Result<(), Trouble> {
        let until = tokio::time::Instant::now() + self.settings.timeout;
        loop {
            match self.by_id(id).await {
                Ok(item) if item.shows(title, fields, &self.place())? => return Ok(()),
                Ok(_) | Err(Trouble::NotFound(_)) if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(LOOK).await;
                }
                Ok(_) | Err(Trouble::NotFound(_)) => {
                    let cause = format!("it took what was written to '{title}', and does not show it");
                    return Err(VaultError::Unavailable { place: self.place(), cause }.into());
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// What makes the item's fields as they are to be: nothing where they are.
    fn patch(&self, title: &str, item: &Item, fields: &Fields) -> Result<Vec<Value>, VaultError> {
        let (mut sets, mut removes) = (Vec::new(), Vec::new());
        for (name, secret) in fields {
            let found = item.field(title, name, &self.place())?;
            let path = |field: &str| format!("/fields/{}", field.replace('~', "~0").replace('/', "~1"));
            match (found, secret) {
                (None, None) => {}
                (None, Some(secret)) => {
                    sets.push(json!({"op": "add", "path": "/fields", "value": new_field(name, secret)}))
                }
                (Some(field), None) => removes.push(json!({"op": "remove", "path": path(&field.id)})),
                (Some(field), Some(secret)) => {
                    let is = field.value.as_ref().map(ExposeSecret::expose_secret);
                    if is != Some(secret.expose_secret()) {
                        let op = if is.is_some() { "replace" } else { "add" };
                        let path = format!("{}/value", path(&field.id));
                        sets.push(json!({"op": op, "path": path, "value": secret.expose_secret()}));
                    }
                }
            }
        }
        sets.append(&mut removes);
        Ok(sets)
    }

    /// Sends a request with the token, and judges the answer. `secrets` were sent, and are in no message.
    async fn ask(&self, request: Request, secrets: &[&str]) -> Result<Zeroizing<Vec<u8>>, Trouble> {
        let token = opener(&self.files, &self.settings.token).await?;
        let token = token.expose_secret().trim();
        let mut bearer = String::with_capacity("Bearer ".len() + token.len());
        bearer.push_str("Bearer ");
        bearer.push_str(token);
        let request = request.auth(Auth::Authorization(bearer.into()));
        let answer = self.http()?.send(request).await.map_err(|error| self.unanswered(&error))?;
        if answer.status.is_success() {
            return Ok(Zeroizing::new(answer.body));
        }
        let said = wiped::without(&said(&answer), secrets);
        let cause = format!("{} answers {}: {said}", answer.asked, answer.status.as_u16());
        let (place, vault) = (self.place(), &self.settings.vault);
        Err(match answer.status.as_u16() {
            404 => Trouble::NotFound(cause),
            409 | 412 => Trouble::Conflict(cause),
            408 | 425 | 429 | 500.. => VaultError::Unavailable { place, cause }.into(),
            401 => {
                let remedy = "put a valid token of the Connect server where token of [vault] points".to_owned();
                VaultError::Refused { place, cause, remedy }.into()
            }
            403 => {
                let remedy =
                    format!("give the token of [vault] read and write access to the vault '{vault}' in 1Password");
                VaultError::Refused { place, cause, remedy }.into()
            }
            _ => self.unusable(cause).into(),
        })
    }

    fn http(&self) -> Result<&HttpClient, VaultError> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let ConnectVault { url, trust, timeout, .. } = &self.settings;
        let connect_timeout = (*timeout).min(Duration::from_secs(10));
        let options =
            HttpOptions { trust: trust.clone(), timeout: *timeout, connect_timeout, ..HttpOptions::default() };
        let http = HttpClient::new("1password", &unversioned(url), &options).map_err(|e| self.unanswered(&e))?;
        Ok(self.http.get_or_init(|| http.body_max(BODY_MAX)))
    }

    fn read<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, Trouble> {
        wiped::read(body).map_err(|cause| self.unusable(cause).into())
    }

    fn error(&self, trouble: Trouble) -> VaultError {
        match trouble {
            Trouble::Vault(error) => error,
            Trouble::NotFound(cause) => VaultError::Refused {
                place: self.place(),
                cause,
                remedy: "correct vault of [vault], or give its token access to that vault".to_owned(),
            },
            Trouble::Conflict(cause) => VaultError::Unavailable { place: self.place(), cause },
        }
    }

    fn unanswered(&self, error: &HttpError) -> VaultError {
        let place = self.place();
        match error {
            HttpError::Timeout { .. } => VaultError::NoAnswer { place, patience: self.settings.timeout },
            error if error.is_transient() => VaultError::Unavailable { place, cause: error.to_string() },
            error => self.unusable(error.to_string()),
        }
    }

    fn unusable(&self, cause: String) -> VaultError {
        let remedy = "correct url and trust of [vault]: 1Password Connect is expected there".to_owned();
        VaultError::Unusable { place: self.place(), cause, remedy }
    }
}

/// SCIM's comparison; its texts are written as JSON's are.
fn filter(attribute: &str, text: &str) -> String {
    format!("{attribute} eq {}", Value::String(text.to_owned()))
}

/// The base without a version: people write `…:8080/v1` as well.
fn unversioned(url: &Url) -> Url {
    let mut url = url.clone();
    let path = url.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
    url.set_path(&path);
    url
}

/// The server's own words; a redirect's are where it leads to.
fn said(answer: &Answer) -> String {
    if answer.status.is_redirection() {
        return format!(
            "it leads to '{}', which is not followed",
            neutralize_to(answer.header("location").unwrap_or(""), 100)
        );
    }
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    neutralize_to(body["message"].as_str().unwrap_or("no reason is told"), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_with_quotes_stays_one_text_of_the_filter() {
        assert_eq!(filter("title", "bmc-a"), "title eq \"bmc-a\"");
        assert_eq!(filter("title", "a\" or title eq \"b"), "title eq \"a\\\" or title eq \\\"b\"");
    }

    #[test]
    fn a_version_in_the_configured_url_is_left_out() {
        for given in ["http://c.example:8080", "http://c.example:8080/v1/", "http://c.example:8080/v1"] {
            assert_eq!(unversioned(&given.parse().unwrap()).as_str(), "http://c.example:8080/");
        }
    }
}
