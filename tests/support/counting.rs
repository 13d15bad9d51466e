//! A proxy that counts what passes through it: how "no write" is proven on services that keep no ledger.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

/// Passes every request on to one server, and remembers its method and path.
pub struct Counting {
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Passing {
    target: String,
    client: reqwest::Client,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Counting {
    /// In front of the server at this URL, on a free port of loopback.
    pub fn in_front_of(target: &str) -> Counting {
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            // A connection that the server closes in the moment of a request would be a fault of this proxy's own.
            .pool_max_idle_per_host(0)
            .build()
            .unwrap();
        let target = target.trim_end_matches('/').to_owned();
        let passing = Passing { target, client, seen: Arc::clone(&seen) };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass).with_state(passing);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Counting { url, seen, _runtime: runtime }
    }

    /// What passed since the last call, as `METHOD path`.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// The requests that may change something, of those that passed since the last call.
    pub fn take_writes(&self) -> Vec<String> {
        self.take()
            .into_iter()
            .filter(|request| !request.starts_with("GET ") && !request.starts_with("HEAD "))
            .collect()
    }
}

async fn pass(State(passing): State<Passing>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    passing.seen.lock().unwrap().push(format!("{} {}", parts.method, parts.uri.path()));
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let Ok(body) = to_bytes(body, 64 << 20).await else { return StatusCode::BAD_REQUEST.into_response() };
    // The name that the client asked for goes along: NetBox builds its links from it.
    let sent =
        passing.client.request(parts.method, format!("{}{path}", passing.target)).headers(parts.headers).body(body);
    let answer = match sent.send().await {
        Ok(answer) => answer,
        Err(e) => return (StatusCode::BAD_GATEWAY, e.to_string()).into_response(),
    };
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove("transfer-encoding");
    let mut response = Response::new(Body::from(answer.bytes().await.unwrap_or_default()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
