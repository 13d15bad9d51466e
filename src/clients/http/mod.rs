//! HTTP as every REST client here uses it: bounded in time and size, classified, never redirected by itself, never logging
//! a secret.

mod echo;
mod error;
mod message;
mod probe;
mod trust;
mod weight;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
pub use reqwest::{Method, StatusCode};
use secrecy::ExposeSecret;
use url::Url;

pub use error::HttpError;
pub use message::{Answer, Auth, Request};
pub use probe::{connect, handshake, knock, resolve};

use super::rehearsal::{Ask, Met, Rehearsal};
use super::trail;
use crate::config::settings::Trust;
use crate::domain::text::neutralize_to;
use echo::Sent;
use error::chain;
use message::sensitive;
use trust::{nobody, only_ca, pinned};

/// TLS as `trust` wants it, for the clients of other protocols.
pub fn tls(trust: &Trust) -> Result<rustls::ClientConfig, String> {
    trust::config(trust)
}

/// The largest body that is read. NetBox pages of 1000 devices with context stay below 4 MB.
pub const BODY_MAX: usize = 32 * 1024 * 1024;

/// How long an idle connection is taken for open. The shortest that servers keep theirs by default is 2 s (gunicorn's), and
/// a request that meets the end of one is lost, with nobody knowing whether it was carried out.
const IDLE: Duration = Duration::from_millis(1500);

/// A connection that breaks so soon was most likely at its end when the request came.
const AT_ONCE: Duration = Duration::from_secs(2);

/// What carries a request to its server in the place of the wire: tests have the server in their own process.
pub trait Carrier: Send + Sync {
    /// `url` is the request's, query left out. Deadlines are the carrier's own.
    fn carry<'a>(&'a self, request: Request, url: &'a Url) -> BoxFuture<'a, Result<Answer, HttpError>>;
}

/// One server, reached over one connection pool.
#[derive(Clone)]
pub struct HttpClient {
    inner: reqwest::Client,
    carrier: Option<Arc<dyn Carrier>>,
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
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true);
        if !options.keep_alive {
            builder = builder.pool_max_idle_per_host(0);
        }
        if !options.compression {
            builder = builder.no_gzip();
        }
        builder = match &options.trust {
            // Reading the system's roots costs more than the client itself, and no redirect leads from here to TLS.
            _ if base.scheme() == "http" => {
                builder.tls_backend_preconfigured(nobody().map_err(|e| setup(e.to_string()))?)
            }
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
        Ok(HttpClient { inner, carrier: None, base, system, timeout, body_max: BODY_MAX, rehearsal: None })
    }

    /// The same client as a plan has it: it sends reads only.
    pub fn rehearsed(mut self, rehearsal: &Rehearsal) -> Self {
        self.rehearsal = Some(rehearsal.clone());
        self
    }

    /// The same client, whose requests another carrier takes.
    pub fn over(mut self, carrier: Arc<dyn Carrier>) -> Self {
        self.carrier = Some(carrier);
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

    /// A read whose connection breaks at once is sent a second time, on a new connection (RFC 9110, 9.2.2): the server may
    /// have closed an idle one in that moment. A write never is: it may have been carried out.
    async fn exchange(&self, request: Request, url: Url, asked: &str) -> Result<Answer, HttpError> {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return self.exchange_once(request, url, asked).await;
        }
        let began = Instant::now();
        match self.exchange_once(request.clone(), url.clone(), asked).await {
            Err(HttpError::Broken { cause, .. }) if began.elapsed() < AT_ONCE => {
                tracing::debug!(system = self.system, request = %asked, %cause, "asked again on a new connection");
                self.exchange_once(request, url, asked).await
            }
            outcome => outcome,
        }
    }

    async fn exchange_once(&self, request: Request, url: Url, asked: &str) -> Result<Answer, HttpError> {
        if let Some(carrier) = &self.carrier {
            return carrier.carry(request, &url).await;
        }
        let limit = request.timeout.unwrap_or(self.timeout);
        let sent = Sent::of(&request);
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
        let response = builder.send().await.map_err(|e| HttpError::of(e, asked, self.host(), limit))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|e| HttpError::of(e, asked, self.host(), limit))?;
            if body.len() + chunk.len() > self.body_max {
                return Err(HttpError::TooLarge { asked: asked.to_owned(), host: self.host(), limit: self.body_max });
            }
            body.extend_from_slice(&chunk);
        }
        if weight::is_too_heavy(&body) {
            return Err(HttpError::TooHeavy { asked: asked.to_owned(), host: self.host(), limit: weight::WEIGHT_MAX });
        }
        let body = sent.hidden_in(body, !status.is_success());
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
}

/// Host and port of a URL; IPv6 in brackets.
fn host_of(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => url.to_string(),
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

    /// A server that closes each connection behind its first request, without a word, as one does that an idle connection
    /// has become too old for. Says what it was asked, connection by connection.
    fn closing_server(answers_after: usize) -> (String, std::thread::JoinHandle<Vec<String>>) {
        use std::io::{BufRead, BufReader, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let mut asked = Vec::new();
            while asked.len() <= answers_after {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                asked.push(lines.by_ref().take_while(|line| !line.is_empty()).next().unwrap());
                if asked.len() > answers_after {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                }
            }
            asked
        });
        (base, serving)
    }

    #[tokio::test]
    async fn a_read_whose_connection_breaks_at_once_is_asked_again_and_a_write_never() {
        let (base, asked) = closing_server(1);
        let answer = client(&base).send(Request::get("/a")).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(asked.join().unwrap(), ["GET /a HTTP/1.1", "GET /a HTTP/1.1"]);

        let (base, asked) = closing_server(1);
        let error =
            client(&base).send(Request::new(Method::PATCH, "/a").json(serde_json::Value::Null)).await.unwrap_err();
        assert!(matches!(error, HttpError::Broken { .. }), "{error}");
        client(&base).send(Request::get("/b")).await.unwrap();
        assert_eq!(asked.join().unwrap(), ["PATCH /a HTTP/1.1", "GET /b HTTP/1.1"]);

        let (base, asked) = closing_server(2);
        let error = client(&base).send(Request::get("/a")).await.unwrap_err();
        assert!(matches!(error, HttpError::Broken { .. }) && error.is_transient(), "{error}");
        client(&base).send(Request::get("/b")).await.unwrap();
        assert_eq!(asked.join().unwrap().len(), 3, "once more, and no more");
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
