//! One Ironic as it is asked: which API version, with whose credentials, and what its answers mean.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::error::IronicError;
use crate::clients::http::{Answer, Auth, HttpClient, HttpError, HttpOptions, Method, Request};
use crate::clients::keystone::Keystone;
use crate::clients::rehearsal::Rehearsal;
use crate::clients::vault::Vault;
use crate::config::settings::{IronicAuth, IronicInstance};

/// The header that asks for an API version, and that answers name the used one in.
const VERSION: &str = "x-openstack-ironic-api-version";

/// An Ironic API version, `1.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion(pub u32);

impl Microversion {
    /// The oldest that has all that is needed: an inspection's inventory.
    pub const NEEDED: Microversion = Microversion(81);
    /// The newest whose answers are known here.
    pub const KNOWN: Microversion = Microversion(95);

    fn parse(text: &str) -> Option<Self> {
        text.trim().strip_prefix("1.")?.parse().ok().map(Microversion)
    }
}

impl std::fmt::Display for Microversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// One Ironic, asked with the credentials of its configuration. Clones share version, token and connections.
#[derive(Clone)]
pub struct Ironic {
    name: String,
    http: HttpClient,
    login: Login,
    /// What was agreed on; asked for once, and again after a 406.
    version: Arc<Mutex<Option<Microversion>>>,
}

#[derive(Clone)]
enum Login {
    None,
    Basic { username: String, password: crate::config::settings::SecretRef, vault: Box<Vault> },
    Keystone(Box<Keystone>),
}

impl Ironic {
    /// A client for an instance; secrets are fetched from the vault when they are first needed.
    pub fn new(name: &str, settings: &IronicInstance, vault: &Vault) -> Result<Self, HttpError> {
        let options =
            HttpOptions { trust: settings.trust.clone(), timeout: settings.timeout, ..HttpOptions::default() };
        let http = HttpClient::new("ironic", &unversioned(&settings.url), &options)?;
        let login = match &settings.auth {
            IronicAuth::None => Login::None,
            IronicAuth::HttpBasic { username, password } => {
                Login::Basic { username: username.clone(), password: password.clone(), vault: Box::new(vault.clone()) }
            }
            IronicAuth::Keystone(auth) => Login::Keystone(Box::new(Keystone::new(auth, &options, vault)?)),
        };
        Ok(Ironic { name: name.to_owned(), http, login, version: Arc::default() })
    }

    /// The same Ironic as a plan asks it: nothing is changed there (G14). Logging in at Keystone changes nothing either.
    pub fn rehearsed(&self, rehearsal: &Rehearsal) -> Ironic {
        Ironic { http: self.http.clone().rehearsed(rehearsal), ..self.clone() }
    }

    /// The rehearsal that this client belongs to; `None` for one that acts.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.http.rehearsal()
    }

    /// The instance's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        self.http.host()
    }

    /// The API version that requests are made with: the newest that both sides know.
    pub async fn version(&self) -> Result<Microversion, IronicError> {
        if let Some(agreed) = *self.version.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(agreed);
        }
        // The root needs neither a version nor credentials.
        let answer = self.http.send(Request::get("/")).await?;
        let agreed = agree(&answer)?;
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(agreed);
        tracing::debug!(instance = self.name, version = %agreed, "agreed on an API version with Ironic");
        Ok(agreed)
    }

    /// Asks, and judges the status: an answer that comes back is a good one.
    pub(super) async fn ask(&self, request: Request) -> Result<Answer, IronicError> {
        let version = self.version().await?;
        let request = request.header(VERSION, &version.to_string());
        let (auth, token) = self.auth().await?;
        let mut answer = self.http.send(request.clone().auth(auth)).await?;
        // An ended token and a wrong one look alike: one new login, one repetition. The refused request did nothing.
        if answer.status.as_u16() == 401
            && let (Login::Keystone(keystone), Some(refused)) = (&self.login, token)
        {
            let auth = Auth::Header { name: "x-auth-token", value: keystone.renewed(&refused).await? };
            answer = self.http.send(request.auth(auth)).await?;
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = IronicError::of(&answer, &self.host());
        if matches!(error, IronicError::Version { .. }) {
            *self.version.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Err(error)
    }

    /// Asks for a JSON document.
    pub(super) async fn read(&self, request: Request) -> Result<Value, IronicError> {
        let answer = self.ask(request).await?;
        self.document(&answer)
    }

    /// The body of a good answer. An empty one is `null`.
    fn document(&self, answer: &Answer) -> Result<Value, IronicError> {
        if answer.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_slice(&answer.body).map_err(|e| answer.not_json(&e, &self.host()))?)
    }

    /// Asks for something to be done, where the answer's body says nothing. A body that is no JSON says that somebody else
    /// has answered: whatever stands between has taken the request for itself, and Ironic never saw it.
    pub(super) async fn order(&self, method: Method, path: String, body: Option<Value>) -> Result<(), IronicError> {
        let mut request = Request::new(method, path);
        request.body = body;
        let answer = self.ask(request).await?;
        self.document(&answer).map(drop)
    }

    async fn auth(&self) -> Result<(Auth, Option<SecretString>), IronicError> {
        Ok(match &self.login {
            Login::None => (Auth::None, None),
            Login::Basic { username, password, vault } => {
                (Auth::Basic { username: username.clone(), password: vault.resolve(password)? }, None)
            }
            Login::Keystone(keystone) => {
                let token = keystone.token().await?;
                (Auth::Header { name: "x-auth-token", value: token.clone() }, Some(token))
            }
        })
    }
}

/// The base without a version: people write `…:6385/v1` as well.
fn unversioned(url: &Url) -> Url {
    let mut url = url.clone();
    let path = url.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
    url.set_path(&path);
    url
}

/// The version to use with a server that answers so at its root.
fn agree(answer: &Answer) -> Result<Microversion, IronicError> {
    let body = answer.json().unwrap_or(Value::Null);
    let named = |header: &str, key: &str| {
        let text = answer.header(header).map(str::to_owned);
        text.or_else(|| body["default_version"][key].as_str().map(str::to_owned))
            .as_deref()
            .and_then(Microversion::parse)
    };
    let max = named("x-openstack-ironic-api-maximum-version", "version");
    let min = named("x-openstack-ironic-api-minimum-version", "min_version").unwrap_or(Microversion(1));
    let Some(max) = max else {
        return Err(IronicError::NotIronic { asked: answer.asked.clone(), read: answer.excerpt() });
    };
    if max < Microversion::NEEDED || min > Microversion::KNOWN {
        return Err(IronicError::VersionRange { min, max });
    }
    Ok(max.min(Microversion::KNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::http::StatusCode;

    fn root(min: &str, max: &str) -> Answer {
        let body = serde_json::json!({"default_version": {"id": "v1", "min_version": min, "version": max}});
        Answer {
            status: StatusCode::OK,
            headers: Default::default(),
            body: body.to_string().into(),
            asked: "GET /".into(),
        }
    }

    #[test]
    fn the_newest_version_that_both_know_is_used_and_too_old_or_too_new_ones_are_said_so() {
        assert_eq!(agree(&root("1.1", "1.115")).unwrap(), Microversion(95));
        assert_eq!(agree(&root("1.1", "1.87")).unwrap(), Microversion(87));
        assert!(matches!(agree(&root("1.1", "1.80")), Err(IronicError::VersionRange { .. })));
        assert!(matches!(agree(&root("1.96", "1.200")), Err(IronicError::VersionRange { .. })));
        assert!(matches!(agree(&root("2.1", "2.3")), Err(IronicError::NotIronic { .. })));
    }

    #[test]
    fn a_version_in_the_configured_url_is_left_out() {
        for given in ["http://i.example:6385", "http://i.example:6385/v1", "http://i.example:6385/v1/"] {
            assert_eq!(unversioned(&given.parse().unwrap()).as_str(), "http://i.example:6385/");
        }
        assert_eq!(unversioned(&"http://i.example/baremetal/".parse().unwrap()).as_str(), "http://i.example/baremetal");
    }
}
