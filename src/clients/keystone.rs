//! Keystone v3 tokens: asked for with a password or an application credential, kept in memory only, renewed in time (K3).

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::http::{Answer, HttpClient, HttpError, HttpOptions, Method, Request};
use super::vault::{Vault, VaultError};
use crate::config::settings::{KeystoneAuth, KeystoneMethod, KeystoneScope};
use crate::domain::text::neutralize_to;

/// A source of tokens for one service account. Clones share the token.
#[derive(Clone)]
pub struct Keystone {
    http: HttpClient,
    method: KeystoneMethod,
    vault: Vault,
    current: Arc<RwLock<Option<Token>>>,
    /// One login at a time: a hundred runs that find the token ended ask Keystone once. It is held across the request,
    /// which has a deadline; whoever finds a valid token never waits for it.
    login: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct Token {
    value: SecretString,
    renew_at: Instant,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeystoneError {
    /// Keystone has one text for a wrong password, an unknown user and a scope without a role.
    #[error("Keystone at {host} refused '{who}': {message}")]
    Refused { host: String, who: String, message: String },
    #[error("Keystone at {host} answered {status}: {message}")]
    Unexpected { host: String, status: u16, message: String },
    #[error("Keystone: {0}")]
    Http(#[from] HttpError),
    #[error("the credential for Keystone: {0}")]
    Vault(#[from] VaultError),
}

impl KeystoneError {
    /// Whether the same login can succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            KeystoneError::Refused { .. } | KeystoneError::Vault(_) => false,
            KeystoneError::Unexpected { status, .. } => *status >= 500,
            KeystoneError::Http(e) => e.is_transient(),
        }
    }
}

impl Keystone {
    /// A source of tokens; nothing is asked before the first token is needed.
    pub fn new(auth: &KeystoneAuth, options: &HttpOptions, vault: &Vault) -> Result<Self, HttpError> {
        let http = HttpClient::new("keystone", &versioned(&auth.auth_url), options)?.body_max(4 * 1024 * 1024);
        Ok(Keystone {
            http,
            method: auth.method.clone(),
            vault: vault.clone(),
            current: Arc::default(),
            login: Arc::default(),
        })
    }

    /// A token that is good for a while.
    pub async fn token(&self) -> Result<SecretString, KeystoneError> {
        if let Some(token) = self.valid() {
            return Ok(token);
        }
        let _one_login = self.login.lock().await;
        match self.valid() {
            Some(token) => Ok(token),
            None => self.fetch().await,
        }
    }

    /// A token other than the one that a service has just refused.
    pub async fn renewed(&self, refused: &SecretString) -> Result<SecretString, KeystoneError> {
        let _one_login = self.login.lock().await;
        match self.valid() {
            Some(token) if token.expose_secret() != refused.expose_secret() => Ok(token),
            _ => self.fetch().await,
        }
    }

    fn valid(&self) -> Option<SecretString> {
        let current = self.current.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        current.as_ref().filter(|t| Instant::now() < t.renew_at).map(|t| t.value.clone())
    }

    async fn fetch(&self) -> Result<SecretString, KeystoneError> {
        let body = login_body(&self.method, &self.vault).await?;
        let began = Instant::now();
        let answer = self.http.send(Request::new(Method::POST, "/auth/tokens?nocatalog").json(body)).await?;
        let status = answer.status.as_u16();
        if status != 201 {
            let (host, message) = (self.http.host(), said(&answer));
            // An application credential that does not exist is a 404; every other wrong credential a 401.
            return Err(match status {
                401 | 403 | 404 => KeystoneError::Refused { host, who: self.who(), message },
                _ => KeystoneError::Unexpected { host, status, message },
            });
        }
        let Some(value) = answer.header("x-subject-token").filter(|t| !t.is_empty()) else {
            let message = "there is no X-Subject-Token in the answer".to_owned();
            return Err(KeystoneError::Unexpected { host: self.http.host(), status, message });
        };
        let value: SecretString = value.to_owned().into();
        let token = Token { value: value.clone(), renew_at: began + usable(&answer.json()?) };
        tracing::debug!(host = self.http.host(), "logged in at Keystone");
        *self.current.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(token);
        Ok(value)
    }

    /// Whom Keystone refuses, for messages.
    fn who(&self) -> String {
        match &self.method {
            KeystoneMethod::Password { username, .. } => username.clone(),
            KeystoneMethod::ApplicationCredential { id, .. } => format!("application credential {id}"),
        }
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

async fn login_body(method: &KeystoneMethod, vault: &Vault) -> Result<Value, VaultError> {
    Ok(match method {
        KeystoneMethod::Password { username, user_domain, password, scope } => {
            let password = vault.resolve(password).await?;
            let scope = match scope {
                KeystoneScope::System => json!({"system": {"all": true}}),
                KeystoneScope::Project { name, domain } => {
                    json!({"project": {"name": name, "domain": {"name": domain}}})
                }
            };
            let user = json!({"name": username, "domain": {"name": user_domain}, "password": password.expose_secret()});
            json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
        }
        // It has its scope in itself: one beside it is a 401.
        KeystoneMethod::ApplicationCredential { id, secret } => {
            let secret = vault.resolve(secret).await?;
            let credential = json!({"id": id, "secret": secret.expose_secret()});
            json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": credential}}})
        }
    })
}

/// Keystone's own words.
fn said(answer: &Answer) -> String {
    let message = answer.json().ok().and_then(|body| body["error"]["message"].as_str().map(str::to_owned));
    message.map_or_else(|| answer.excerpt(), |m| neutralize_to(&m, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

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
