//! The webhook of the lab's NetBox: one event rule for everything, signed as NetBox signs.

use std::io;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use sha2::Sha512;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::world::World;

/// The whole of one request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where events go.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// `http://HOST:PORT/PATH`.
    pub url: url::Url,
    pub secret: SecretString,
}

/// Tells of a change by the world's webhook. `data` is the object as it is now, or as it was where it is gone, `prechange`
/// what it was. Says the status of the answer; `None` where the world has no webhook.
pub async fn tell(
    world: &World,
    event: &str,
    object_type: &str,
    data: Value,
    prechange: Value,
) -> io::Result<Option<u16>> {
    let Some(webhook) = world.webhook() else { return Ok(None) };
    let postchange = if event == "deleted" { Value::Null } else { data.clone() };
    let body = json!({
        "event": event, "timestamp": world.wall(), "object_type": object_type, "data": data,
        "request": {"id": uuid::Uuid::new_v4(), "method": "PATCH", "user": "lab"},
        "snapshots": {"prechange": prechange, "postchange": postchange},
    });
    let body = body.to_string();
    let mac = Hmac::<Sha512>::new_from_slice(webhook.secret.expose_secret().as_bytes()).map_err(io::Error::other)?;
    let bytes = mac.chain_update(&body).finalize().into_bytes();
    let signature: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    post(&webhook.url, &[("X-Hook-Signature", &signature)], body.as_bytes()).await.map(Some)
}

/// Posts a body and gives the status of the answer.
pub async fn post(url: &url::Url, headers: &[(&str, &str)], body: &[u8]) -> io::Result<u16> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let mut head = format!(
        "POST {} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
        url.path(),
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let exchange = async {
        let mut stream = TcpStream::connect((host, url.port_or_known_default().unwrap_or(80))).await?;
        stream.write_all(head.as_bytes()).await?;
        // A server that refuses by the head alone may close before it has read the body.
        stream.write_all(body).await.ok();
        let mut answer = [0u8; 64];
        let mut read = 0;
        while read < 12 {
            match stream.read(&mut answer[read..]).await? {
                0 => break,
                more => read += more,
            }
        }
        let line = String::from_utf8_lossy(&answer[..read]).into_owned();
        line.split(' ').nth(1).and_then(|status| status.get(..3)?.parse().ok()).ok_or_else(|| io::Error::other(line))
    };
    tokio::time::timeout(PATIENCE, exchange).await.map_err(|_| io::ErrorKind::TimedOut)?
}
