//! HTTP as every REST client here uses it: bounded in time and size, classified, never redirected by itself, never logging
//! a secret.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use super::rehearsal::{Ask, Met, Rehearsal};
use super::trail;
use crate::config::settings::Trust;
use crate::domain::text::neutralize_to;

/// The largest body that is read. NetBox pages of 1000 devices with context stay below 4 MB.
pub const BODY_MAX: usize = 32 * 1024 * 1024;

/// One server, reached over one connection pool.
#[derive(Clone)]
pub struct HttpClient {
    inner: reqwest::Client,
    base: Url,
    /// The word for the log: `netbox`, `ironic`, `redfish`, …
    system: &'static str,
    timeout: Duration,
    body_max: usize,
    /// Nothing that changes anything is sent.
    rehearsal: Option<Rehearsal>,
}

/// How a connection is made.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    pub trust: Trust,
    pub connect_timeout: Duration,
    /// Of a whole request with its answer, unless the request has its own.
    pub timeout: Duration,
    /// Keep idle connections. Some BMCs reset those.
    pub keep_alive: bool,
    /// Offer compression. Some BMCs then spoil their ETags.
    pub compression: bool,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions {
            trust: Trust::System,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(60),
            keep_alive: true,
            compression: true,
        }
    }
}

/// A request. The path is joined to the client's base.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// Path and query, percent-encoded; or a whole URL of the same origin.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub auth: Auth,
    pub body: Option<Value>,
    pub timeout: Option<Duration>,
}

/// Who asks. Printed as nothing.
#[derive(Clone, Default)]
pub enum Auth {
    #[default]
    None,
    Basic {
        username: String,
        password: SecretString,
    },
    /// The whole value of the header `Authorization`.
    Authorization(SecretString),
    /// The value of a header of its own, such as `X-Auth-Token`.
    Header {
        name: &'static str,
        value: SecretString,
    },
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth(***)")
    }
}

impl Request {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Request {
            method,
            path: path.into(),
            query: vec![],
            headers: vec![],
            auth: Auth::None,
            body: None,
            timeout: None,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn query(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.query.push((key.into(), value.to_string()));
        self
    }

    /// Adds a header; a value that no header can carry is left out, since it came from outside.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((HeaderName::from_static(name), value));
        }
        self
    }

    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// What was asked, for messages: `GET /v1/nodes`.
    pub asked: String,
}

/// Why there is no answer, or none that can be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    #[error("{asked}: {host} refused the connection")]
    Refused { asked: String, host: String },
    #[error("{asked}: the name '{host}' could not be resolved")]
    Dns { asked: String, host: String },
    #[error("{asked}: no connection to {host}: {cause}")]
    Connect { asked: String, host: String, cause: String },
    #[error("{asked}: no answer from {host} in {seconds} s")]
    Timeout { asked: String, host: String, seconds: u64 },
    #[error("{asked}: the certificate of {host} is not trusted: {cause}")]
    Tls { asked: String, host: String, cause: String },
    #[error("{asked}: the connection to {host} broke off: {cause}")]
    Broken { asked: String, host: String, cause: String },
    #[error("{asked}: the answer of {host} is larger than {limit} bytes")]
    TooLarge { asked: String, host: String, limit: usize },
    /// Cut on its way: what stands between, or a server that dies while it answers.
    #[error("{asked}: the JSON in the answer of {host} ends in the middle, after {bytes} bytes")]
    CutShort { asked: String, host: String, bytes: usize },
    #[error("{asked}: the answer of {host} is not JSON: {cause}")]
    NotJson { asked: String, host: String, cause: String },
    #[error("'{url}' is not on {host}: credentials go only to the host they are for")]
    ForeignUrl { url: String, host: String },
    #[error("no HTTP client for {host}: {cause}")]
    Setup { host: String, cause: String },
    /// This client only reads, and what the request would come to cannot be imagined (G14).
    #[error("{asked}: a plan sends nothing that changes something, and cannot foresee what {host} would answer")]
    ReadOnly { asked: String, host: String },
}

impl HttpError {
    /// Whether the same request can succeed later: the server was not reached, or did not answer in time, or not to the end.
    pub fn is_transient(&self) -> bool {
        match self {
            HttpError::Refused { .. }
            | HttpError::Dns { .. }
            | HttpError::Connect { .. }
            | HttpError::Timeout { .. }
            | HttpError::CutShort { .. }
            | HttpError::Broken { .. } => true,
            HttpError::Tls { .. }
            | HttpError::TooLarge { .. }
            | HttpError::NotJson { .. }
            | HttpError::ForeignUrl { .. }
            | HttpError::Setup { .. }
            | HttpError::ReadOnly { .. } => false,
        }
    }

    /// Why there is no answer, in a word or two.
    fn word(&self) -> &'static str {
        match self {
            HttpError::Refused { .. } => "refused",
            HttpError::Dns { .. } => "name not resolved",
            HttpError::Connect { .. } => "no connection",
            HttpError::Timeout { .. } => "no answer in time",
            HttpError::Tls { .. } => "certificate not trusted",
            HttpError::Broken { .. } => "broken off",
            HttpError::TooLarge { .. } => "too large",
            HttpError::CutShort { .. } => "ends in the middle",
            HttpError::NotJson { .. } => "not JSON",
            HttpError::ForeignUrl { .. } | HttpError::Setup { .. } | HttpError::ReadOnly { .. } => "not sent",
        }
    }
}

impl Answer {
    /// The body as JSON. An empty body is `null`.
    pub fn json(&self) -> Result<Value, HttpError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|e| self.not_json(&e, "the server"))
    }

    /// What an error of the JSON means. A document that ends in the middle may be whole the next time; everything else
    /// never was JSON.
    pub fn not_json(&self, error: &serde_json::Error, host: &str) -> HttpError {
        let (asked, host) = (self.asked.clone(), host.to_owned());
        if error.is_eof() {
            return HttpError::CutShort { asked, host, bytes: self.body.len() };
        }
        HttpError::NotJson { asked, host, cause: format!("{error}; it begins '{}'", self.excerpt()) }
    }

    /// The first characters of the body, safe to show.
    pub fn excerpt(&self) -> String {
        let head = &self.body[..self.body.len().min(600)];
        neutralize_to(String::from_utf8_lossy(head).trim(), 300)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl HttpClient {
    /// A client for one server. `base` may have a path; requests are joined below it.
    pub fn new(system: &'static str, base: &Url, options: &HttpOptions) -> Result<Self, HttpError> {
        let host = host_of(base);
        let setup = |cause: String| HttpError::Setup { host: host.clone(), cause };
        // reqwest panics where no provider is installed; one that is installed already stays.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            .timeout(options.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .tcp_nodelay(true);
        if !options.keep_alive {
            builder = builder.pool_max_idle_per_host(0);
        }
        if !options.compression {
            builder = builder.no_gzip();
        }
        builder = match &options.trust {
            Trust::System => builder,
            Trust::Anything => builder.tls_danger_accept_invalid_certs(true),
            Trust::Pinned(fingerprint) => {
                builder.tls_backend_preconfigured(pinned(*fingerprint).map_err(|e| setup(e.to_string()))?)
            }
            Trust::Ca(path) => {
                let pem = std::fs::read(path).map_err(|e| setup(format!("{}: {e}", path.display())))?;
                builder.tls_backend_preconfigured(only_ca(&pem).map_err(|e| setup(format!("{}: {e}", path.display())))?)
            }
        };
        let inner = builder.build().map_err(|e| setup(chain(&e)))?;
        let (base, timeout) = (base.clone(), options.timeout);
        Ok(HttpClient { inner, base, system, timeout, body_max: BODY_MAX, rehearsal: None })
    }

    /// The same client as a plan has it: it sends reads only.
    pub fn rehearsed(mut self, rehearsal: &Rehearsal) -> Self {
        self.rehearsal = Some(rehearsal.clone());
        self
    }

    /// The rehearsal that this client belongs to; `None` for one that acts.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// The same client with a smaller limit for bodies.
    pub fn body_max(mut self, limit: usize) -> Self {
        self.body_max = limit;
        self
    }

    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        host_of(&self.base)
    }

    /// Sends a request and reads the whole answer, whatever its status. Redirects are answers (Z4).
    pub async fn send(&self, request: Request) -> Result<Answer, HttpError> {
        let url = self.url(&request.path)?;
        match &self.rehearsal {
            None => self.transmit(request, url).await,
            Some(rehearsal) => self.rehearse(rehearsal, request, url).await,
        }
    }

    /// Asks the rehearsal first: reads go out, everything else is answered by it.
    async fn rehearse(&self, rehearsal: &Rehearsal, request: Request, url: Url) -> Result<Answer, HttpError> {
        let (host, method, path) = (self.host(), request.method.clone(), url.path().to_owned());
        let mut query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        query.extend(request.query.iter().cloned());
        let user = match &request.auth {
            Auth::Basic { username, .. } => Some(username.clone()),
            Auth::None | Auth::Authorization(_) | Auth::Header { .. } => None,
        };
        let body = request.body.clone();
        let ask = Ask {
            system: self.system,
            host: &host,
            method: method.as_str(),
            path: &path,
            query: &query,
            user: user.as_deref(),
            body: body.as_ref(),
        };
        let asked = format!("{method} {}", neutralize_to(&path, 200));
        match rehearsal.meet(&ask) {
            Met::Send => {
                let mut answer = self.transmit(request, url).await?;
                rehearsal.amend(&ask, &mut answer);
                Ok(answer)
            }
            Met::Answer { status, body } => {
                let body = if body.is_null() { vec![] } else { body.to_string().into_bytes() };
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                Ok(Answer { status, headers: HeaderMap::new(), body, asked })
            }
            Met::Refuse => Err(HttpError::ReadOnly { asked, host }),
        }
    }

    async fn transmit(&self, request: Request, url: Url) -> Result<Answer, HttpError> {
        let asked = format!("{} {}", request.method, neutralize_to(url.path(), 200));
        // The last word before the wire, whatever was decided before it (G14).
        if self.rehearsal.is_some() && !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return Err(HttpError::ReadOnly { asked, host: self.host() });
        }
        let began = Instant::now();
        let outcome = self.exchange(request, url, &asked).await;
        let ms = began.elapsed().as_millis() as u64;
        match &outcome {
            Ok(a) => trail::tell(self.system, &asked, a.status.as_u16()),
            Err(e) => trail::tell(self.system, &asked, e.word()),
        }
        match &outcome {
            Ok(a) => {
                tracing::debug!(system = self.system, request = %asked, status = a.status.as_u16(), bytes = a.body.len(), ms, "request")
            }
            Err(e) => {
                tracing::debug!(system = self.system, request = %asked, error = %e, ms, "request without an answer")
            }
        }
        outcome
    }

    async fn exchange(&self, request: Request, url: Url, asked: &str) -> Result<Answer, HttpError> {
        let limit = request.timeout.unwrap_or(self.timeout);
        let mut builder = self.inner.request(request.method, url).timeout(limit);
        if !request.query.is_empty() {
            builder = builder.query(&request.query);
        }
        for (name, value) in request.headers {
            builder = builder.header(name, value);
        }
        builder = match request.auth {
            Auth::None => builder,
            Auth::Basic { username, password } => builder.basic_auth(username, Some(password.expose_secret())),
            Auth::Authorization(value) => builder.header("authorization", sensitive(&value)),
            Auth::Header { name, value } => builder.header(name, sensitive(&value)),
        };
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        let response = builder.send().await.map_err(|e| self.classify(e, asked, limit))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|e| self.classify(e, asked, limit))?;
            if body.len() + chunk.len() > self.body_max {
                return Err(HttpError::TooLarge { asked: asked.to_owned(), host: self.host(), limit: self.body_max });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, headers, body, asked: asked.to_owned() })
    }

    /// Joins a path below the base, or takes a whole URL of the same origin (Z4).
    fn url(&self, path: &str) -> Result<Url, HttpError> {
        let foreign = || HttpError::ForeignUrl { url: neutralize_to(path, 200), host: self.host() };
        let joined = if path.starts_with("http://") || path.starts_with("https://") {
            Url::parse(path).map_err(|_| foreign())?
        } else {
            let base = self.base.as_str().trim_end_matches('/');
            let slash = if path.starts_with('/') { "" } else { "/" };
            Url::parse(&format!("{base}{slash}{path}")).map_err(|_| foreign())?
        };
        if joined.origin() != self.base.origin() {
            return Err(foreign());
        }
        Ok(joined)
    }

    fn classify(&self, error: reqwest::Error, asked: &str, limit: Duration) -> HttpError {
        let (asked, host) = (asked.to_owned(), self.host());
        if error.is_timeout() {
            return HttpError::Timeout { asked, host, seconds: limit.as_secs() };
        }
        let cause = chain(&error.without_url());
        let low = cause.to_ascii_lowercase();
        if low.contains("certificate") || low.contains("unknownissuer") || low.contains("notvalidforname") {
            HttpError::Tls { asked, host, cause }
        } else if low.contains("connection refused") {
            HttpError::Refused { asked, host }
        } else if low.contains("dns error") || low.contains("failed to lookup") {
            HttpError::Dns { asked, host }
        } else if low.contains("error trying to connect") || low.contains("client error (connect)") {
            HttpError::Connect { asked, host, cause }
        } else {
            HttpError::Broken { asked, host, cause }
        }
    }
}

/// Host and port of a URL; IPv6 in brackets.
fn host_of(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => url.to_string(),
    }
}

/// A secret as a header value that debug output does not show. An impossible value becomes an empty one, which the
/// server refuses.
fn sensitive(value: &SecretString) -> HeaderValue {
    let mut header = HeaderValue::from_str(value.expose_secret()).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    neutralize_to(&text, 300)
}

fn only_ca(pem: &[u8]) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(pem) {
        roots.add(der.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    if roots.is_empty() {
        return Err("no certificate in it".to_owned());
    }
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn pinned(fingerprint: [u8; 32]) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let verifier = Arc::new(PinnedCertificate { fingerprint, provider });
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusts exactly one certificate, whatever its name, issuer or date.
#[derive(Debug)]
struct PinnedCertificate {
    fingerprint: [u8; 32],
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Sha256::digest(end_entity)[..] == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::General("the certificate is not the pinned one".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(base: &str) -> HttpClient {
        rustls::crypto::ring::default_provider().install_default().ok();
        HttpClient::new("test", &Url::parse(base).unwrap(), &HttpOptions::default()).unwrap()
    }

    /// Proves: Z4
    #[test]
    fn a_url_of_another_origin_is_never_asked() {
        let client = client("https://netbox.example.com/sub/");
        assert_eq!(client.url("/api/").unwrap().as_str(), "https://netbox.example.com/sub/api/");
        assert_eq!(client.url("https://netbox.example.com/x?a=1").unwrap().query(), Some("a=1"));
        for foreign in ["https://evil.example.com/", "http://netbox.example.com/", "https://netbox.example.com:444/"] {
            assert!(matches!(client.url(foreign), Err(HttpError::ForeignUrl { .. })), "{foreign}");
        }
        assert_eq!(client.url("//evil.example.com/").unwrap().host_str(), Some("netbox.example.com"));
    }

    /// Proves: G14
    #[tokio::test]
    async fn a_client_that_only_looks_sends_no_write_whatever_it_is_asked() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let rehearsal = Rehearsal::default();
        let looking = client(&base).rehearsed(&rehearsal);
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::from_bytes(b"MOVE").unwrap()] {
            let error = looking.send(Request::new(method.clone(), "/anything")).await.unwrap_err();
            assert!(matches!(error, HttpError::ReadOnly { .. }) && !error.is_transient(), "{error}");
            // Past the rehearsal, as a defect in it would come: the last guard holds.
            let url = Url::parse(&base).unwrap();
            let error = looking.transmit(Request::new(method, "/anything"), url).await.unwrap_err();
            assert!(matches!(error, HttpError::ReadOnly { .. }), "{error}");
        }
        assert_eq!(rehearsal.refused().as_deref(), Some("POST /anything"));
        assert!(rehearsal.writes().is_empty());
        assert!(listener.accept().is_err(), "something was connected to");
    }

    #[tokio::test]
    async fn a_closed_port_is_refused_and_a_silent_one_is_a_timeout() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = format!("http://{}", free.local_addr().unwrap());
        let error = client(&silent).send(Request::get("/").timeout(Duration::from_millis(80))).await.unwrap_err();
        assert!(matches!(error, HttpError::Timeout { .. }), "{error}");
        drop(free);
        let error = client(&silent).send(Request::get("/")).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused { .. }), "{error}");
        assert!(error.is_transient());
    }
}
