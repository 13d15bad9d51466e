//! The way to a server, step by step: its name, a connection, its certificate. For whoever wants to know which of them fails;
//! nothing is asked of the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use url::Url;

use super::error::{HttpError, chain};
use super::{Answer, HttpClient, HttpOptions, Request, trust};
use crate::config::settings::Trust;

/// The largest first page that is read.
const KNOCK_MAX: usize = 4 * 1024 * 1024;

/// The addresses of a name, in the order of the resolver.
pub async fn resolve(host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, HttpError> {
    let (asked, bare) = ("the name".to_owned(), host.trim_matches(['[', ']']));
    let unknown = || HttpError::Dns { asked: asked.clone(), host: host.to_owned() };
    match tokio::time::timeout(limit, tokio::net::lookup_host((bare, port))).await {
        Ok(Ok(found)) => Some(found.collect::<Vec<_>>()).filter(|found| !found.is_empty()).ok_or_else(unknown),
        Ok(Err(_)) => Err(unknown()),
        Err(_) => Err(HttpError::Timeout { asked: asked.clone(), host: host.to_owned(), seconds: limit.as_secs() }),
    }
}

/// A connection to the first of the addresses that takes one.
pub async fn connect(addresses: &[SocketAddr], limit: Duration) -> Result<TcpStream, HttpError> {
    let asked = "the connection".to_owned();
    let host = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match tokio::time::timeout(limit, TcpStream::connect(addresses)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(e)) if e.kind() == std::io::ErrorKind::ConnectionRefused => Err(HttpError::Refused { asked, host }),
        Ok(Err(e)) => Err(HttpError::Connect { asked, host, cause: chain(&e) }),
        Err(_) => Err(HttpError::Timeout { asked, host, seconds: limit.as_secs() }),
    }
}

/// A TLS handshake under `trust`. Gives whether the certificate is still good after `ahead`; one that is pinned or taken
/// unseen always is.
pub async fn handshake(
    stream: TcpStream,
    host: &str,
    trust: &Trust,
    ahead: Duration,
    limit: Duration,
) -> Result<bool, HttpError> {
    let asked = "the handshake".to_owned();
    let setup = |cause: String| HttpError::Setup { host: host.to_owned(), cause };
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|e| setup(e.to_string()))?;
    let (config, ends) = trust::ahead(trust, ahead).map_err(setup)?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    match tokio::time::timeout(limit, connector.connect(name, stream)).await {
        Ok(Ok(_)) => Ok(!ends.load(Ordering::Relaxed)),
        Ok(Err(e)) => {
            let (host, cause) = (host.to_owned(), chain(&e));
            let low = cause.to_ascii_lowercase();
            Err(match low.contains("certificate") || low.contains("unknownissuer") {
                true => HttpError::Tls { asked, host, cause },
                // It took the connection and then spoke no TLS.
                false => HttpError::Connect { asked, host, cause: format!("handshake: {cause}") },
            })
        }
        Err(_) => Err(HttpError::Timeout { asked, host: host.to_owned(), seconds: limit.as_secs() }),
    }
}

/// One question without credentials, to see that something answers.
pub async fn knock(base: &Url, path: &str, options: &HttpOptions) -> Result<Answer, HttpError> {
    HttpClient::new("doctor", base, options)?.body_max(KNOCK_MAX).send(Request::get(path)).await
}
