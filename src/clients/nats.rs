//! NATS, to which muster only publishes. Reconnecting is the library's; what waits meanwhile is the caller's.

use std::time::Duration;

use async_nats::{ConnectOptions, Event, ServerAddr};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;
use tokio::time::timeout;

use super::http;
use super::vault::{Vault, VaultError};
use crate::config::settings::{NatsAuth, NatsSettings, SecretRef};
use crate::domain::text::neutralize_to;

/// Of one connection with its login, and of handing one message over.
const CONNECT: Duration = Duration::from_secs(10);
const HAND_OVER: Duration = Duration::from_secs(10);
/// The longest wait between two tries to connect again.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A connection. Dropped, it ends.
pub struct Nats {
    client: async_nats::Client,
    state: watch::Receiver<Link>,
}

/// How the connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    Up,
    /// It is being made again; the cause, where it is known.
    Down(Option<String>),
    /// It comes back no more: a new one is needed.
    Closed,
}

/// Why nothing could be told. None of them holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum NatsError {
    #[error("the NATS {what} ({reference}): {source}")]
    Secret { what: &'static str, reference: SecretRef, source: VaultError },
    #[error("the NATS {0} are not of their form")]
    Malformed(&'static str),
    #[error("certificates for '{servers}': {cause}")]
    Trust { servers: String, cause: String },
    #[error("'{servers}' can't be connected to: {cause}")]
    Connect { servers: String, cause: String },
    #[error("'{servers}' did not answer within {} s", CONNECT.as_secs())]
    NoAnswer { servers: String },
    #[error("a message was not taken: {0}")]
    NotTaken(String),
}

impl Nats {
    /// Connects, or says why not.
    pub async fn connect(settings: &NatsSettings, vault: &Vault) -> Result<Nats, NatsError> {
        let servers = servers(settings);
        let (tell, state) = watch::channel(Link::Down(None));
        let tell = std::sync::Arc::new(tell);
        let tls = settings.servers.iter().any(|url| url.scheme() == "tls");
        let config =
            http::tls(&settings.trust).map_err(|cause| NatsError::Trust { servers: servers.clone(), cause })?;
        let options = login(settings, vault)
            .await?
            .name("muster")
            .connection_timeout(CONNECT)
            .require_tls(tls)
            .tls_client_config(config)
            // What a server tells of others is not where the credentials were meant to go.
            .ignore_discovered_servers()
            .reconnect_delay_callback(|tries| {
                let wait = Duration::from_millis(100) * 2u32.saturating_pow(tries.min(20) as u32);
                if tries == 0 { Duration::ZERO } else { wait.min(RETRY_MAX) }
            })
            .event_callback(move |event| {
                let tell = std::sync::Arc::clone(&tell);
                async move { hear(&tell, event) }
            });
        let addresses: Vec<ServerAddr> =
            settings.servers.iter().filter_map(|url| ServerAddr::from_url(url.clone()).ok()).collect();
        let client = match timeout(CONNECT * 2, options.connect(addresses)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => {
                return Err(NatsError::Connect { servers, cause: neutralize_to(&error.to_string(), 200) });
            }
            Err(_) => return Err(NatsError::NoAnswer { servers }),
        };
        Ok(Nats { client, state })
    }

    /// Whether there is a connection at this moment: a change that [`Nats::link`] tells may come a little later.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// How the connection is, and how it goes on to be.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.state.clone()
    }

    /// Hands a message over to the connection.
    pub async fn publish(&self, subject: String, payload: Vec<u8>) -> Result<(), NatsError> {
        match timeout(HAND_OVER, self.client.publish(subject, payload.into())).await {
            Ok(outcome) => outcome.map_err(|error| NatsError::NotTaken(neutralize_to(&error.to_string(), 200))),
            Err(_) => Err(NatsError::NotTaken(format!("no answer within {} s", HAND_OVER.as_secs()))),
        }
    }

    /// Waits until what was handed over is written to the server.
    pub async fn flush(&self) -> Result<(), NatsError> {
        match timeout(HAND_OVER, self.client.flush()).await {
            Ok(outcome) => outcome.map_err(|error| NatsError::NotTaken(neutralize_to(&error.to_string(), 200))),
            Err(_) => Err(NatsError::NotTaken(format!("no answer within {} s", HAND_OVER.as_secs()))),
        }
    }
}

fn hear(tell: &watch::Sender<Link>, event: Event) {
    tracing::debug!(event = %neutralize_to(&event.to_string(), 200), "NATS");
    tell.send_if_modified(|link| {
        let now = match event {
            Event::Connected => Link::Up,
            Event::Disconnected | Event::Draining | Event::LameDuckMode if *link == Link::Up => Link::Down(None),
            Event::Closed => Link::Closed,
            Event::ClientError(ref error) if *link != Link::Up => {
                Link::Down(Some(neutralize_to(&error.to_string(), 200)))
            }
            Event::ServerError(ref error) => {
                tracing::warn!(error = %neutralize_to(&error.to_string(), 200), "NATS refuses something");
                return false;
            }
            _ => return false,
        };
        let differs = *link != now;
        *link = now;
        differs
    });
}

/// The servers, for sentences.
pub fn servers(settings: &NatsSettings) -> String {
    let texts: Vec<&str> = settings.servers.iter().map(|url| url.as_str()).collect();
    texts.join("', '")
}

async fn login(settings: &NatsSettings, vault: &Vault) -> Result<ConnectOptions, NatsError> {
    let secret = async |what: &'static str, reference: &SecretRef| -> Result<SecretString, NatsError> {
        let resolved = vault.resolve(reference).await;
        resolved.map_err(|source| NatsError::Secret { what, reference: reference.clone(), source })
    };
    Ok(match &settings.auth {
        NatsAuth::None => ConnectOptions::new(),
        NatsAuth::User { username, password } => {
            let password = secret("password", password).await?;
            ConnectOptions::with_user_and_password(username.clone(), password.expose_secret().to_owned())
        }
        NatsAuth::Token(token) => ConnectOptions::with_token(secret("token", token).await?.expose_secret().to_owned()),
        NatsAuth::Creds(creds) => {
            // The form wants a newline at the end, and references to files lose theirs.
            let creds = SecretString::from(format!("{}\n", secret("credentials", creds).await?.expose_secret()));
            // Its own error may quote the file.
            ConnectOptions::with_credentials(creds.expose_secret()).map_err(|_| NatsError::Malformed("credentials"))?
        }
    })
}
