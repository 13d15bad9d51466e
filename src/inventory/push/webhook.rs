//! Receives NetBox's webhooks: a body counts when it is signed, and then says only what to read again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha512;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::again::{Again, Sink};
use super::health::Health;
use super::{cancelled_within, longer};
use crate::clients::vault::Vault;
use crate::config::settings::WebhookSettings;

/// The largest body. A device with its config context is some tens of kilobytes.
const BODY_MAX: usize = 1024 * 1024;
/// Connections at once; others wait in the system's own queue.
const AT_ONCE: usize = 16;
/// For the head of a request, and for a whole connection.
const HEAD: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(15);
/// Between two tries to listen.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Between two looks at how long it was silent.
const LOOK: Duration = Duration::from_secs(5);
/// Refused requests are told in the log once in so long, together.
const TOLD: Duration = Duration::from_secs(10);

type Sha512Mac = Hmac<Sha512>;

/// The value of `X-Hook-Signature` for a body: HMAC-SHA512 in hex.
pub fn signature(secret: &SecretString, body: &[u8]) -> String {
    let bytes = mac(secret).chain_update(body).finalize().into_bytes();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(secret: &SecretString) -> Sha512Mac {
    Sha512Mac::new_from_slice(secret.expose_secret().as_bytes()).expect("HMAC takes a key of any length")
}

/// Listens until cancelled. Where it can't, it tries again.
pub(super) async fn run(
    settings: &WebhookSettings,
    vault: &Vault,
    sink: &Sink,
    health: &Health,
    cancel: &CancellationToken,
) {
    let mut wait = RETRY.0;
    loop {
        match prepare(settings, vault).await {
            Ok((listener, secret)) => {
                let hook = Hook { path: &settings.path, secret, sink, heard: Mutex::default(), news: Notify::new() };
                tracing::info!(listen = %settings.listen, path = settings.path, "NetBox's webhooks are received");
                tokio::select! {
                    () = serve(&hook, listener, cancel) => {}
                    () = watch(settings, &hook, health, cancel) => {}
                }
                return;
            }
            Err((fact, action)) => health.trouble(&fact, &action).await,
        }
        if cancelled_within(cancel, wait).await {
            return;
        }
        wait = longer(wait, RETRY.1);
    }
}

async fn prepare(settings: &WebhookSettings, vault: &Vault) -> Result<(TcpListener, SecretString), (String, String)> {
    let secret = vault.resolve(&settings.secret).await.map_err(|error| {
        (format!("the webhook's secret ({}): {error}", settings.secret), "provide that secret".to_owned())
    })?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        let action = "free that address, or set another one in netbox.push.webhook.listen and in NetBox's webhook";
        (format!("'{}' can't be listened on: {error}", settings.listen), action.to_owned())
    })?;
    Ok((listener, secret))
}

/// The receiver, as its connections share it.
struct Hook<'a> {
    path: &'a str,
    secret: SecretString,
    sink: &'a Sink,
    heard: Mutex<Heard>,
    /// Something came that says how the source is.
    news: Notify,
}

/// What came so far.
struct Heard {
    since: Instant,
    /// The last event that was signed as it should be.
    event_at: Option<Instant>,
    /// Refused requests since they were told last.
    refused: Refused,
    refused_told: Option<Instant>,
    /// Wrongly signed ones since the last event.
    wrong_since_event: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Refused {
    unsigned: u64,
    wrongly_signed: u64,
    other: u64,
}

impl Default for Heard {
    fn default() -> Self {
        Heard {
            since: Instant::now(),
            event_at: None,
            refused: Refused::default(),
            refused_told: None,
            wrong_since_event: 0,
        }
    }
}

/// Says how the source is until cancelled.
async fn watch(settings: &WebhookSettings, hook: &Hook<'_>, health: &Health, cancel: &CancellationToken) {
    loop {
        let (event_at, since, wrong) = {
            let heard = hook.locked();
            (heard.event_at, heard.since, heard.wrong_since_event)
        };
        let silent = event_at.unwrap_or(since).elapsed();
        match event_at {
            Some(_) if silent < settings.silence => health.well().await,
            _ if wrong > 0 => {
                let fact = format!("webhooks arrive at '{}' with a wrong signature", settings.listen);
                health.trouble(&fact, &same_secret(settings)).await;
            }
            None if silent < settings.silence => health.not_proven().await,
            _ => {
                let fact = format!(
                    "nothing came to 'http://{}{}' for {} s",
                    settings.listen,
                    settings.path,
                    settings.silence.as_secs_f64()
                );
                let action = "look in NetBox whether its event rule is enabled and its worker (rqworker) runs";
                health.trouble(&fact, action).await;
            }
        }
        hook.tell_refused();
        tokio::select! {
            () = cancel.cancelled() => return,
            () = hook.news.notified() => {}
            () = tokio::time::sleep(LOOK.min(settings.silence)) => {}
        }
    }
}

fn same_secret(settings: &WebhookSettings) -> String {
    format!("give the webhook in NetBox the secret that '{}' holds", settings.secret)
}

/// Takes connections until cancelled, each with its own time limit.
async fn serve(hook: &Hook<'_>, listener: TcpListener, cancel: &CancellationToken) {
    // Borrowed futures in place of tasks: none outlives the receiver.
    let mut connections = futures::stream::FuturesUnordered::new();
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            Some(()) = futures::StreamExt::next(&mut connections), if !connections.is_empty() => {}
            taken = listener.accept(), if connections.len() < AT_ONCE => match taken {
                Ok((stream, peer)) => connections.push(converse(hook, stream, peer)),
                Err(error) => {
                    // No more descriptors, most likely: at once it would be the same.
                    tracing::warn!(%error, "a webhook's connection could not be taken");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            },
        }
    }
}

async fn converse(hook: &Hook<'_>, stream: TcpStream, peer: SocketAddr) {
    let answer = service_fn(move |request| async move {
        let status = hook.receive(request).await;
        if !status.is_success() {
            tracing::debug!(%peer, status = status.as_u16(), "a webhook was refused");
        }
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        // One event, one connection: NetBox keeps none either.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    match tokio::time::timeout(CONNECTION, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a webhook's connection broke"),
        Err(_) => {
            hook.refuse(|refused| refused.other += 1);
            tracing::debug!(%peer, "a webhook's connection took too long");
        }
    }
}

impl Hook<'_> {
    /// The answer to one request. Until the signature is proven, nothing of the body is looked at.
    async fn receive(&self, request: Request<Incoming>) -> StatusCode {
        if request.uri().path() != self.path {
            self.refuse(|refused| refused.other += 1);
            return StatusCode::NOT_FOUND;
        }
        if request.method() != Method::POST {
            self.refuse(|refused| refused.other += 1);
            return StatusCode::METHOD_NOT_ALLOWED;
        }
        let mut signatures = request.headers().get_all("x-hook-signature").iter();
        let told = signatures.next().and_then(digest).filter(|_| signatures.next().is_none());
        let Some(told) = told else {
            self.refuse(|refused| refused.unsigned += 1);
            return StatusCode::UNAUTHORIZED;
        };
        let body = match http_body_util::Limited::new(request.into_body(), BODY_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.refuse(|refused| refused.other += 1);
                let too_long = error.downcast_ref::<http_body_util::LengthLimitError>().is_some();
                return if too_long { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
            }
        };
        // In constant time.
        if mac(&self.secret).chain_update(&body).verify_slice(&told).is_err() {
            self.refuse(|refused| refused.wrongly_signed += 1);
            self.locked().wrong_since_event += 1;
            self.news.notify_one();
            return StatusCode::FORBIDDEN;
        }
        {
            let mut heard = self.locked();
            heard.event_at = Some(Instant::now());
            heard.wrong_since_event = 0;
        }
        self.news.notify_one();
        match Again::of_event(&body) {
            Some(again) => self.sink.take(again),
            None => {
                // NetBox can send any text (body_template): something changed, and that is all there is to know.
                tracing::warn!(bytes = body.len(), "a signed webhook is not of NetBox's own form");
                self.sink.take(Again::delta());
            }
        }
        StatusCode::NO_CONTENT
    }

    fn refuse(&self, count: impl FnOnce(&mut Refused)) {
        count(&mut self.locked().refused);
        self.tell_refused();
    }

    /// One line for all that were refused lately, with nothing of what they said.
    fn tell_refused(&self) {
        let mut heard = self.locked();
        let due = heard.refused_told.is_none_or(|at| at.elapsed() >= TOLD);
        if heard.refused == Refused::default() || !due {
            return;
        }
        let Refused { unsigned, wrongly_signed, other } = std::mem::take(&mut heard.refused);
        heard.refused_told = Some(Instant::now());
        drop(heard);
        tracing::warn!(unsigned, wrongly_signed, other, "requests to the webhook receiver were refused");
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 hex digits.
fn digest(value: &HeaderValue) -> Option<[u8; 64]> {
    let text = value.as_bytes();
    let mut bytes = [0u8; 64];
    if text.len() != 128 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: O9
    #[test]
    fn a_signature_is_what_netbox_makes_of_secret_and_body() {
        // RFC 4231, test case 2.
        let told = signature(&"Jefe".to_owned().into(), b"what do ya want for nothing?");
        assert_eq!(
            told,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        );
        let read = digest(&HeaderValue::from_str(&told).unwrap()).unwrap();
        assert_eq!((read[0], read[63]), (0x16, 0x37));
        assert_eq!(digest(&HeaderValue::from_str(&told.to_uppercase()).unwrap()), Some(read));
    }

    #[test]
    fn what_is_no_signature_is_none() {
        let of = |text: &str| digest(&HeaderValue::from_bytes(text.as_bytes()).unwrap());
        assert_eq!((of(""), of("ab"), of(&"0".repeat(127)), of(&"0".repeat(129))), (None, None, None, None));
        assert_eq!((of(&"g".repeat(128)), of(&"+f".repeat(64)), of(&"ü".repeat(64))), (None, None, None));
    }
}
