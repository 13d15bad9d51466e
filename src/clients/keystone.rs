//! Keystone v3 tokens: asked for with a password or an application credential, kept in memory only, renewed in time; and what
//! comes with them, the catalogue of services and the roles (K3).

mod account;
mod catalogue;
mod clouds;

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::Url;

use super::http::{Answer, HttpClient, HttpError, HttpOptions, Method, Request};
use super::vault::{Vault, VaultError};
use crate::config::settings::{KeystoneAccount, KeystoneAuth};
use crate::domain::text::neutralize_to;
use account::Account;
use catalogue::Facts;

/// A token with its catalogue.
const BODY_MAX: usize = 4 * 1024 * 1024;

/// A source of tokens for one service account. Clones share the token.
#[derive(Clone)]
pub struct Keystone {
    auth: KeystoneAuth,
    options: HttpOptions,
    vault: Vault,
    /// The catalogue is asked for too.
    looks_up: bool,
    /// Of the Keystone that was asked last: which one it is may stand in a file.
    http: Arc<RwLock<Option<(Url, HttpClient)>>>,
    current: Arc<RwLock<Option<Token>>>,
    /// One login at a time: a hundred runs that find the token ended ask Keystone once. It is held across the request,
    /// which has a deadline; whoever finds a valid token never waits for it.
    login: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct Token {
    value: SecretString,
    renew_at: Instant,
    facts: Arc<Facts>,
    /// Where the account itself says its services are to be looked for.
    region: Option<String>,
    interface: Option<String>,
    host: String,
}

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub roles: Vec<String>,
    /// `the project 'enrol'`, `the system`; `None`: it has no scope, and opens nothing.
    pub scope: Option<String>,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeystoneError {
    /// Keystone has one text for a wrong password, an unknown user and a scope without a role.
    #[error("Keystone at {host} refused '{who}': {message}")]
    Refused { host: String, who: String, message: String },
    #[error("Keystone at {host} answered {status}: {message}")]
    Unexpected { host: String, status: u16, message: String },
    /// The account itself can't be used: a clouds.yaml, or the variables of the environment.
    #[error("the account for Keystone: {place} {what}")]
    Account { place: String, what: String },
    /// The catalogue does not say where Ironic is.
    #[error("the catalogue of Keystone at {host} names no Ironic: {what}")]
    Catalogue { host: String, what: String },
    #[error("Keystone: {0}")]
    Http(#[from] HttpError),
    #[error("the credential for Keystone: {0}")]
    Vault(#[from] VaultError),
}

impl KeystoneError {
    /// Whether the same login can succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            KeystoneError::Refused { .. }
            | KeystoneError::Vault(_)
            | KeystoneError::Account { .. }
            | KeystoneError::Catalogue { .. } => false,
            KeystoneError::Unexpected { status, .. } => *status >= 500,
            KeystoneError::Http(e) => e.is_transient(),
        }
    }
}

/// Which Keystone an account is for. Asks it nothing.
pub async fn auth_url(auth: &KeystoneAuth, vault: &Vault) -> Result<Url, KeystoneError> {
    match &auth.account {
        KeystoneAccount::Given { auth_url, .. } => Ok(auth_url.clone()),
        other => account::read(other, vault).await.map(|account| account.auth_url),
    }
}

impl Keystone {
    /// A source of tokens; nothing is asked before the first token is needed. Where `looks_up`, with the catalogue.
    pub fn new(auth: &KeystoneAuth, looks_up: bool, options: &HttpOptions, vault: &Vault) -> Result<Self, HttpError> {
        let keystone = Keystone {
            auth: auth.clone(),
            options: options.clone(),
            vault: vault.clone(),
            looks_up,
            http: Arc::default(),
            current: Arc::default(),
            login: Arc::default(),
        };
        if let KeystoneAccount::Given { auth_url, .. } = &auth.account {
            keystone.client(auth_url)?;
        }
        Ok(keystone)
    }

    /// A token that is good for a while.
    pub async fn token(&self) -> Result<SecretString, KeystoneError> {
        self.held().await.map(|token| token.value)
    }

    /// A token other than the one that a service has just refused.
    pub async fn renewed(&self, refused: &SecretString) -> Result<SecretString, KeystoneError> {
        let _one_login = self.login.lock().await;
        match self.valid() {
            Some(token) if token.value.expose_secret() != refused.expose_secret() => Ok(token.value),
            _ => self.fetch().await.map(|token| token.value),
        }
    }

    /// Where the catalogue has Ironic, by the configured region and interface, else by the account's own.
    pub async fn endpoint(&self) -> Result<Url, KeystoneError> {
        let token = self.held().await?;
        let region = self.auth.region.as_deref().or(token.region.as_deref());
        let interface = self.auth.interface.as_deref().or(token.interface.as_deref()).unwrap_or("public");
        catalogue::ironic(&token.facts.catalog, region, interface)
            .map_err(|what| KeystoneError::Catalogue { host: token.host, what })
    }

    /// Whom the token stands for, by what Keystone says of it.
    pub async fn holder(&self) -> Result<Holder, KeystoneError> {
        let facts = self.held().await?.facts;
        let scope = match (&facts.project, &facts.system) {
            (Some(project), _) => Some(format!("the project '{}'", neutralize_to(&project.name, 100))),
            (None, Some(_)) => Some("the system".to_owned()),
            (None, None) => None,
        };
        let roles = facts.roles.iter().map(|role| neutralize_to(&role.name, 60)).collect();
        Ok(Holder { roles, scope })
    }

    async fn held(&self) -> Result<Token, KeystoneError> {
        if let Some(token) = self.valid() {
            return Ok(token);
        }
        let _one_login = self.login.lock().await;
        match self.valid() {
            Some(token) => Ok(token),
            None => self.fetch().await,
        }
    }

    fn valid(&self) -> Option<Token> {
        let current = self.current.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        current.as_ref().filter(|t| Instant::now() < t.renew_at).cloned()
    }

    /// A client for that Keystone; the one that is there where it is the same.
    fn client(&self, auth_url: &Url) -> Result<HttpClient, HttpError> {
        let poisoned = std::sync::PoisonError::into_inner;
        if let Some((url, http)) = self.http.read().unwrap_or_else(poisoned).as_ref()
            && url == auth_url
        {
            return Ok(http.clone());
        }
        let http = HttpClient::new("keystone", &versioned(auth_url), &self.options)?.body_max(BODY_MAX);
        *self.http.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((auth_url.clone(), http.clone()));
        Ok(http)
    }

    async fn fetch(&self) -> Result<Token, KeystoneError> {
        let Account { auth_url, who, body, region, interface } = account::read(&self.auth.account, &self.vault).await?;
        let http = self.client(&auth_url)?;
        let began = Instant::now();
        let path = if self.looks_up { "/auth/tokens" } else { "/auth/tokens?nocatalog" };
        let answer = http.send(Request::new(Method::POST, path).json(body)).await?;
        let status = answer.status.as_u16();
        let host = http.host();
        if status != 201 {
            let message = said(&answer);
            // An application credential that does not exist is a 404; every other wrong credential a 401.
            return Err(match status {
                401 | 403 | 404 => KeystoneError::Refused { host, who, message },
                _ => KeystoneError::Unexpected { host, status, message },
            });
        }
        let Some(value) = answer.header("x-subject-token").filter(|t| !t.is_empty()) else {
            let message = "there is no X-Subject-Token in the answer".to_owned();
            return Err(KeystoneError::Unexpected { host, status, message });
        };
        let body = answer.json()?;
        // A token without these opens what it opens: whoever needs them says that they are missing.
        let facts = serde_json::from_value(body["token"].clone()).unwrap_or_default();
        let value: SecretString = value.to_owned().into();
        let renew_at = began + usable(&body);
        tracing::debug!(host, "logged in at Keystone");
        let token = Token { value, renew_at, facts: Arc::new(facts), region, interface, host };
        *self.current.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(token.clone());
        Ok(token)
    }
}

/// The URL with its version: `/v3` at its end whether the configuration has it or not.
fn versioned(url: &Url) -> Url {
    let mut url = url.clone();
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&if path.ends_with("/v3") { path } else { format!("{path}/v3") });
    url
}

/// How long a token is used: its life by Keystone's own clock (ours may differ), less a margin. The margin shrinks with
/// very short lives, so that each token is used at all.
fn usable(body: &Value) -> Duration {
    let at = |name: &str| body["token"][name].as_str()?.parse::<Timestamp>().ok();
    let life = match (at("issued_at"), at("expires_at")) {
        (Some(from), Some(to)) => Duration::try_from(to.duration_since(from)).unwrap_or_default(),
        // Unknown: ask again soon.
        _ => Duration::from_secs(60),
    };
    life.saturating_sub((life / 4).min(Duration::from_secs(60)))
}

/// Keystone's own words.
fn said(answer: &Answer) -> String {
    let message = answer.json().ok().and_then(|body| body["error"]["message"].as_str().map(str::to_owned));
    message.map_or_else(|| answer.excerpt(), |m| neutralize_to(&m, 300))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_version_is_added_once() {
        for (given, used) in [
            ("http://k.example:5000", "http://k.example:5000/v3"),
            ("http://k.example:5000/v3/", "http://k.example:5000/v3"),
            ("http://k.example/identity/", "http://k.example/identity/v3"),
        ] {
            assert_eq!(versioned(&given.parse().unwrap()).as_str(), used);
        }
    }

    /// Proves: K3
    #[test]
    fn a_token_is_used_for_its_life_less_a_margin_by_keystones_clock() {
        let token = |from: &str, to: &str| usable(&json!({"token": {"issued_at": from, "expires_at": to}}));
        let hour = token("2001-01-01T00:00:00.000000Z", "2001-01-01T01:00:00.000000Z");
        assert_eq!(hour, Duration::from_secs(3540));
        assert_eq!(token("2026-11-30T00:00:00Z", "2026-11-30T00:00:08Z"), Duration::from_secs(6));
        assert_eq!(token("2026-11-30T00:00:08Z", "2026-11-30T00:00:00Z"), Duration::ZERO);
        assert_eq!(usable(&json!({})), Duration::from_secs(45));
    }
}
