//! NATS, to which muster only publishes. Reconnecting is the library's; what waits meanwhile is the caller's.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::{ConnectOptions, Event, ServerAddr};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::watch;
use tokio::time::timeout;

use super::http;
use super::vault::{Vault, VaultError, without};
use crate::config::settings::{NatsAuth, NatsSettings, SecretRef};
use crate::domain::text::neutralize_to;

/// Of one connection with its login, and of handing one message over.
const CONNECT: Duration = Duration::from_secs(10);
const HAND_OVER: Duration = Duration::from_secs(10);
/// What a server may tell somebody who only publishes: at once, and for each second since. Whatever is more is gathered in memory
/// by the library, which knows no bound (Z3).
const TOLD_MAX: u64 = 4 * 1024 * 1024;
const TOLD_EACH_SECOND: u64 = 1024;
const WATCH: Duration = Duration::from_millis(250);
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
    #[error("'{servers}' did not answer within {} s", .patience.as_secs_f32())]
    NoAnswer { servers: String, patience: Duration },
    #[error("a message was not taken: {0}")]
    NotTaken(String),
}

impl Nats {
    /// Connects, or says why not.
    pub async fn connect(settings: &NatsSettings, vault: &Vault) -> Result<Nats, NatsError> {
        Nats::connect_within(settings, vault, CONNECT).await
    }

    /// The same with another patience for one server.
    pub async fn connect_within(settings: &NatsSettings, vault: &Vault, patience: Duration) -> Result<Nats, NatsError> {
        let servers = servers(settings);
        let (tell, state) = watch::channel(Link::Down(None));
        let tell = Arc::new(tell);
        let tls = settings.servers.iter().any(|url| url.scheme() == "tls");
        let config =
            http::tls(&settings.trust).map_err(|cause| NatsError::Trust { servers: servers.clone(), cause })?;
        let (options, secrets) = login(settings, vault).await?;
        let (told, secrets) = (Arc::clone(&tell), Arc::new(secrets));
        let hidden = Arc::clone(&secrets);
        let options = options
            .name("muster")
            .connection_timeout(patience)
            .require_tls(tls)
            .tls_client_config(config)
            // What a server tells of others is not where the credentials were meant to go.
            .ignore_discovered_servers()
            .reconnect_delay_callback(|tries| {
                let wait = Duration::from_millis(100) * 2u32.saturating_pow(tries.min(20) as u32);
                if tries == 0 { Duration::ZERO } else { wait.min(RETRY_MAX) }
            })
            .event_callback(move |event| {
                let (tell, secrets) = (Arc::clone(&told), Arc::clone(&hidden));
                async move { hear(&tell, event, &secrets) }
            });
        let addresses: Vec<ServerAddr> =
            settings.servers.iter().filter_map(|url| ServerAddr::from_url(url.clone()).ok()).collect();
        let client = match timeout(patience * 2, options.connect(addresses)).await {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(NatsError::Connect { servers, cause: words(&error, &secrets) }),
            Err(_) => return Err(NatsError::NoAnswer { servers, patience }),
        };
        tokio::spawn(watch_flood(client.statistics(), tell));
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

/// Gives a connection up whose server tells more than it has any reason to.
async fn watch_flood(statistics: Arc<async_nats::Statistics>, tell: Arc<watch::Sender<Link>>) {
    let began = tokio::time::Instant::now();
    loop {
        tokio::select! {
            // Nobody has the connection any more.
            () = tell.closed() => return,
            () = tokio::time::sleep(WATCH) => {}
        }
        let told = statistics.in_bytes.load(Ordering::Relaxed);
        if told > TOLD_MAX + TOLD_EACH_SECOND * began.elapsed().as_secs() {
            tracing::warn!(bytes = told, "NATS tells more than it was asked for: the connection is given up");
            tell.send_replace(Link::Closed);
            return;
        }
    }
}

/// What a server or the library says, without what muster has logged in with.
fn words(said: &dyn std::fmt::Display, secrets: &[SecretString]) -> String {
    let secrets: Vec<&str> = secrets.iter().map(ExposeSecret::expose_secret).collect();
    neutralize_to(&without(&said.to_string(), &secrets), 200)
}

fn hear(tell: &watch::Sender<Link>, event: Event, secrets: &[SecretString]) {
    tracing::debug!(event = %words(&event, secrets), "NATS");
    tell.send_if_modified(|link| {
        let now = match event {
            // Given up already.
            _ if *link == Link::Closed => return false,
            Event::Connected => Link::Up,
            Event::Disconnected | Event::Draining | Event::LameDuckMode if *link == Link::Up => Link::Down(None),
            Event::Closed => Link::Closed,
            Event::ClientError(ref error) if *link != Link::Up => Link::Down(Some(words(error, secrets))),
            Event::ServerError(ref error) => {
                tracing::warn!(error = %words(error, secrets), "NATS refuses something");
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

/// How muster logs in, and what of it nobody may read.
async fn login(settings: &NatsSettings, vault: &Vault) -> Result<(ConnectOptions, Vec<SecretString>), NatsError> {
    let secret = async |what: &'static str, reference: &SecretRef| -> Result<SecretString, NatsError> {
        let resolved = vault.resolve(reference).await;
        resolved.map_err(|source| NatsError::Secret { what, reference: reference.clone(), source })
    };
    Ok(match &settings.auth {
        NatsAuth::None => (ConnectOptions::new(), vec![]),
        NatsAuth::User { username, password } => {
            let password = secret("password", password).await?;
            let options = ConnectOptions::with_user_and_password(username.clone(), password.expose_secret().to_owned());
            (options, vec![password])
        }
        NatsAuth::Token(token) => {
            let token = secret("token", token).await?;
            (ConnectOptions::with_token(token.expose_secret().to_owned()), vec![token])
        }
        NatsAuth::Creds(creds) => {
            // The form wants a newline at the end, and references to files lose theirs.
            let creds = SecretString::from(format!("{}\n", secret("credentials", creds).await?.expose_secret()));
            // Its own error may quote the file.
            let options = ConnectOptions::with_credentials(creds.expose_secret());
            let lines = creds.expose_secret().lines().filter(|line| line.len() > 20 && !line.starts_with('-'));
            (options.map_err(|_| NatsError::Malformed("credentials"))?, lines.map(SecretString::from).collect())
        }
    })
}
