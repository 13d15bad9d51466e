//! One Ironic as it is asked: in which API version, with whose credentials, and what its answers mean.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::error::IronicError;
use super::versions::{Call, Microversion, Spoken};
use crate::clients::http::{Answer, Auth, Carrier, HttpClient, HttpError, HttpOptions, Method, Request};
use crate::clients::keystone::Keystone;
use crate::clients::rehearsal::Rehearsal;
use crate::clients::vault::{Held, Vault};
use crate::config::settings::{IronicAuth, IronicInstance};

/// The header that asks for an API version, and that answers name the used one in.
const VERSION: &str = "x-openstack-ironic-api-version";

/// One Ironic, asked with the credentials of its configuration. Clones share version, token and connections.
#[derive(Clone)]
pub struct Ironic {
    name: String,
    endpoint: Endpoint,
    login: Login,
    /// What a plan imagines, and what carries requests in the place of the wire: of every client that is made here.
    rehearsal: Option<Rehearsal>,
    carrier: Option<Arc<dyn Carrier>>,
    /// The versions that the server speaks; asked for once, and again after a 406.
    spoken: Arc<Mutex<Option<Spoken>>>,
}

/// Where it is.
#[derive(Clone)]
enum Endpoint {
    Known(HttpClient),
    /// Keystone's catalogue says it, at the first request.
    Catalogue {
        options: HttpOptions,
        found: Arc<Mutex<Option<HttpClient>>>,
    },
}

#[derive(Clone)]
enum Login {
    None,
    Basic { username: String, password: Box<Held> },
    Keystone(Box<Keystone>),
}

impl Ironic {
    /// A client for an instance; secrets are fetched from the vault when they are first needed.
    pub fn new(name: &str, settings: &IronicInstance, vault: &Vault) -> Result<Self, HttpError> {
        let options =
            HttpOptions { trust: settings.trust.clone(), timeout: settings.timeout, ..HttpOptions::default() };
        let endpoint = match &settings.url {
            Some(url) => Endpoint::Known(HttpClient::new("ironic", &unversioned(url), &options)?),
            None => Endpoint::Catalogue { options: options.clone(), found: Arc::default() },
        };
        let looks_up = settings.url.is_none();
        let login = match &settings.auth {
            IronicAuth::None => Login::None,
            IronicAuth::HttpBasic { username, password } => {
                Login::Basic { username: username.clone(), password: Box::new(Held::new(vault, password)) }
            }
            IronicAuth::Keystone(auth) => Login::Keystone(Box::new(Keystone::new(auth, looks_up, &options, vault)?)),
        };
        let (rehearsal, carrier) = (None, None);
        Ok(Ironic { name: name.to_owned(), endpoint, login, rehearsal, carrier, spoken: Arc::default() })
    }

    /// The same Ironic as a plan asks it: nothing is changed there (G14). Logging in at Keystone changes nothing either.
    pub fn rehearsed(&self, rehearsal: &Rehearsal) -> Ironic {
        Ironic { rehearsal: Some(rehearsal.clone()), ..self.clone() }
    }

    /// The same Ironic, reached by another carrier than the wire. What it speaks is asked anew.
    pub fn over(&self, carrier: Arc<dyn Carrier>) -> Ironic {
        Ironic { carrier: Some(carrier), spoken: Arc::default(), ..self.clone() }
    }

    /// The rehearsal that this client belongs to; `None` for one that acts.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// The instance's name in the configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        match &self.endpoint {
            Endpoint::Known(http) => http.host(),
            Endpoint::Catalogue { found, .. } => {
                let found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.as_ref().map_or("the endpoint of Keystone's catalogue".to_owned(), HttpClient::host)
            }
        }
    }

    /// The account at Keystone; `None` where another login is configured.
    pub fn keystone(&self) -> Option<&Keystone> {
        match &self.login {
            Login::Keystone(keystone) => Some(keystone),
            Login::None | Login::Basic { .. } => None,
        }
    }

    /// The client for this instance, as whoever asks wants it.
    async fn http(&self) -> Result<HttpClient, IronicError> {
        let mut http = match (&self.endpoint, &self.login) {
            (Endpoint::Known(http), _) => http.clone(),
            (Endpoint::Catalogue { options, found }, Login::Keystone(keystone)) => {
                let known = found.lock().unwrap_or_else(PoisonError::into_inner).clone();
                match known {
                    Some(http) => http,
                    None => {
                        let http = HttpClient::new("ironic", &unversioned(&keystone.endpoint().await?), options)?;
                        *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(http.clone());
                        http
                    }
                }
            }
            (Endpoint::Catalogue { .. }, Login::None | Login::Basic { .. }) => {
                let cause = "neither a URL nor a catalogue says where it is".to_owned();
                return Err(HttpError::Setup { host: self.name.clone(), cause }.into());
            }
        };
        if let Some(rehearsal) = &self.rehearsal {
            http = http.rehearsed(rehearsal);
        }
        Ok(match &self.carrier {
            Some(carrier) => http.over(Arc::clone(carrier)),
            None => http,
        })
    }

    /// The API versions that the server speaks, whether muster can do with them or not.
    pub async fn speaks(&self) -> Result<Spoken, IronicError> {
        if let Some(spoken) = *self.spoken.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(spoken);
        }
        // The root needs neither a version nor credentials.
        let answer = self.http().await?.send(Request::get("/")).await?;
        let spoken = spoken(&answer)?;
        *self.spoken.lock().unwrap_or_else(PoisonError::into_inner) = Some(spoken);
        tracing::debug!(instance = self.name, min = %spoken.min, max = %spoken.max, "Ironic told its API versions");
        Ok(spoken)
    }

    /// The version that a call is made with.
    pub(super) async fn version_for(&self, call: Call) -> Result<Microversion, IronicError> {
        let spoken = self.speaks().await?;
        let apart = |apart| IronicError::apart(apart, spoken, self.host());
        // A server that cannot do all of an enrollment is not asked for a part of one.
        spoken.judge().map_err(apart)?;
        spoken.version_for(call).map_err(apart)
    }

    /// Asks, and judges the status: an answer that comes back is a good one.
    pub(super) async fn ask(&self, call: Call, request: Request) -> Result<Answer, IronicError> {
        let version = self.version_for(call).await?;
        let request = request.header(VERSION, &version.to_string());
        let (auth, used) = self.auth().await?;
        let http = self.http().await?;
        let mut answer = http.send(request.clone().auth(auth)).await?;
        // An ended token and a wrong one look alike, as do a rotated password and a wrong one: one new login, one repetition.
        // The refused request did nothing.
        if answer.status.as_u16() == 401
            && let Some(refused) = used
            && let Some(auth) = self.auth_beside(&refused).await?
        {
            answer = http.send(request.auth(auth)).await?;
        }
        // Whatever it says, it says it in another version: a 404 may then mean that it knows no such thing at all.
        let used = answer.header(VERSION).and_then(Microversion::parse);
        if let Some(used) = used.filter(|used| *used < version) {
            return Err(IronicError::Stripped {
                asked: answer.asked,
                host: self.host(),
                sent: version,
                used: Some(used),
            });
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = IronicError::of(&answer, &self.host());
        if matches!(error, IronicError::Version { .. }) {
            *self.spoken.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Err(error)
    }

    /// An answer that lacks what the version that was asked for has, and does not say its own version either.
    pub(super) fn stripped(&self, asked: String, call: Call) -> IronicError {
        IronicError::Stripped { asked, host: self.host(), sent: call.need().since, used: None }
    }

    /// Asks for a JSON document.
    pub(super) async fn read(&self, call: Call, request: Request) -> Result<Value, IronicError> {
        let answer = self.ask(call, request).await?;
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
    pub(super) async fn order(
        &self,
        call: Call,
        method: Method,
        path: String,
        body: Option<Value>,
    ) -> Result<(), IronicError> {
        let mut request = Request::new(method, path);
        request.body = body;
        let answer = self.ask(call, request).await?;
        self.document(&answer).map(drop)
    }

    /// Who asks, and the secret in it.
    async fn auth(&self) -> Result<(Auth, Option<SecretString>), IronicError> {
        let secret = match &self.login {
            Login::None => return Ok((Auth::None, None)),
            Login::Basic { password, .. } => password.get().await?,
            Login::Keystone(keystone) => keystone.token().await?,
        };
        Ok((self.auth_with(secret.clone()), Some(secret)))
    }

    /// The same with another secret than the one that was refused; `None` where there is no other.
    async fn auth_beside(&self, refused: &SecretString) -> Result<Option<Auth>, IronicError> {
        let secret = match &self.login {
            Login::None => None,
            Login::Basic { password, .. } => password.renewed(refused).await?,
            Login::Keystone(keystone) => Some(keystone.renewed(refused).await?),
        };
        Ok(secret.map(|secret| self.auth_with(secret)))
    }

    fn auth_with(&self, secret: SecretString) -> Auth {
        match &self.login {
            Login::None => Auth::None,
            Login::Basic { username, .. } => Auth::Basic { username: username.clone(), password: secret },
            Login::Keystone(_) => Auth::Header { name: "x-auth-token", value: secret },
        }
    }
}

/// The base without a version: people write `…:6385/v1` as well.
fn unversioned(url: &Url) -> Url {
    let mut url = url.clone();
    let path = url.path().trim_end_matches('/').trim_end_matches("/v1").to_owned();
    url.set_path(&path);
    url
}

/// The versions of a server that answers so at its root. Its body says them too, where something on the way takes its
/// headers.
fn spoken(answer: &Answer) -> Result<Spoken, IronicError> {
    let body = answer.json().unwrap_or(Value::Null);
    let named = |header: &str, key: &str| {
        let text = answer.header(header).map(str::to_owned);
        text.or_else(|| body["default_version"][key].as_str().map(str::to_owned))
            .as_deref()
            .and_then(Microversion::parse)
    };
    let max = named("x-openstack-ironic-api-maximum-version", "version");
    let min = named("x-openstack-ironic-api-minimum-version", "min_version").unwrap_or(Microversion(1));
    match max {
        Some(max) => Ok(Spoken { min, max }),
        None => Err(IronicError::NotIronic { asked: answer.asked.clone(), read: answer.excerpt() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::http::StatusCode;

    #[test]
    fn the_versions_of_a_server_stand_in_its_root_and_what_names_none_is_no_ironic() {
        let root = |min: &str, max: &str| {
            let body = serde_json::json!({"default_version": {"id": "v1", "min_version": min, "version": max}});
            let body = body.to_string().into();
            spoken(&Answer { status: StatusCode::OK, headers: Default::default(), body, asked: "GET /".into() })
        };
        let told = root("1.1", "1.115").unwrap();
        assert_eq!((told.min, told.max), (Microversion(1), Microversion(115)));
        assert!(matches!(root("2.1", "2.3"), Err(IronicError::NotIronic { .. })));
    }

    #[test]
    fn a_version_in_the_configured_url_is_left_out() {
        for given in ["http://i.example:6385", "http://i.example:6385/v1", "http://i.example:6385/v1/"] {
            assert_eq!(unversioned(&given.parse().unwrap()).as_str(), "http://i.example:6385/");
        }
        assert_eq!(unversioned(&"http://i.example/baremetal/".parse().unwrap()).as_str(), "http://i.example/baremetal");
    }
}
