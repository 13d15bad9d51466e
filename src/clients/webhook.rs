//! One receiver of webhooks, as the Standard Webhooks specification has it: signed with HMAC-SHA256 over id, time and body.
//! It is told once; whoever calls decides what becomes of a delivery that was not taken.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::Sha256;

use super::http::{HttpClient, HttpError, HttpOptions, Method, Request, StatusCode};
use super::vault::{Vault, VaultError};
use crate::config::settings::{SecretRef, WebhookOut};

/// What a receiver answers is looked at only to say what is wrong.
const ANSWER_MAX: usize = 1024 * 1024;

/// A receiver. Its secret is read anew for each delivery, so that one that was rotated is used at once.
pub struct Receiver {
    http: HttpClient,
    vault: Vault,
    secret: SecretRef,
}

/// Why a delivery was not taken. None of them holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    #[error("the secret of the webhook ({reference}): {source}")]
    Secret { reference: SecretRef, source: VaultError },
    #[error("the secret of the webhook ({0}) begins with 'whsec_' and does not go on in base64")]
    Malformed(SecretRef),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("'{host}' answers {status}{}{excerpt}", if .excerpt.is_empty() { "" } else { ": " })]
    Refused { host: String, status: StatusCode, excerpt: String, retry_after_s: Option<u64> },
    /// The signature, and whatever authorizes the receiver's answer, were meant for the host that is configured.
    #[error("'{host}' answers {status} and names another place, which is not followed")]
    Redirect { host: String, status: StatusCode },
}

impl DeliveryError {
    /// Whether the receiver judged this very body: another one may be taken.
    pub fn is_of_the_body(&self) -> bool {
        matches!(self, DeliveryError::Refused { status, .. } if matches!(status.as_u16(), 400 | 413 | 415 | 422))
    }
}

impl Receiver {
    pub fn new(settings: &WebhookOut, vault: &Vault) -> Result<Receiver, HttpError> {
        let options = HttpOptions {
            trust: settings.trust.clone(),
            connect_timeout: settings.timeout,
            timeout: settings.timeout,
            keep_alive: false,
            ..HttpOptions::default()
        };
        let http = HttpClient::new("webhook", &settings.url, &options)?.body_max(ANSWER_MAX);
        Ok(Receiver { http, vault: vault.clone(), secret: settings.secret.clone() })
    }

    /// Tells one event; `Ok`: it was taken. `at` is the time of this try: it is signed too, so that a receiver can refuse
    /// what somebody else sends again later.
    pub async fn deliver(&self, id: &str, at: Timestamp, event: Value) -> Result<(), DeliveryError> {
        let reference = || self.secret.clone();
        let secret = self.vault.resolve(&self.secret).await;
        let secret = secret.map_err(|source| DeliveryError::Secret { reference: reference(), source })?;
        let seconds = at.as_second().to_string();
        // What is sent are these bytes: the client writes the same value in the same way.
        let signature = signature(&secret, id, &seconds, event.to_string().as_bytes())
            .ok_or_else(|| DeliveryError::Malformed(reference()))?;
        let request = Request::new(Method::POST, self.http.base().as_str())
            .header("webhook-id", id)
            .header("webhook-timestamp", &seconds)
            .header("webhook-signature", &signature)
            .json(event);
        let answer = self.http.send(request).await?;
        let (host, status) = (self.http.host(), answer.status);
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(DeliveryError::Redirect { host, status }),
            status => {
                let retry_after_s = answer.header("retry-after").and_then(|text| text.trim().parse().ok());
                Err(DeliveryError::Refused { host, status, excerpt: answer.excerpt(), retry_after_s })
            }
        }
    }

    /// Asks whether there is a receiver at all, and tells it nothing. Whatever it answers to `OPTIONS`: it answers.
    pub async fn look(&self) -> Result<StatusCode, HttpError> {
        let answer = self.http.send(Request::new(Method::OPTIONS, self.http.base().as_str())).await?;
        Ok(answer.status)
    }
}

/// The value of `webhook-signature`; `None` where the secret is of no form that has a key in it.
pub fn signature(secret: &SecretString, id: &str, seconds: &str, body: &[u8]) -> Option<String> {
    let key = key(secret)?;
    let mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    let signed = mac.chain_update(id).chain_update(".").chain_update(seconds).chain_update(".").chain_update(body);
    Some(format!("v1,{}", STANDARD.encode(signed.finalize().into_bytes())))
}

/// Behind `whsec_` the key stands in base64, as libraries of the specification make it. Any other secret is its own bytes.
fn key(secret: &SecretString) -> Option<Zeroizing<Vec<u8>>> {
    let text = secret.expose_secret();
    match text.strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).ok().filter(|key| !key.is_empty()).map(Zeroizing::new),
        None => Some(Zeroizing::new(text.as_bytes().to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own reference libraries.
    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        let secret: SecretString = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned().into();
        let signed = signature(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b"{\"test\": 2432232314}");
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        let malformed: SecretString = "whsec_canary!".to_owned().into();
        assert_eq!(signature(&malformed, "a", "1", b""), None);
        let plain: SecretString = "a plain one".to_owned().into();
        assert!(signature(&plain, "a", "1", b"").is_some());
    }
}
