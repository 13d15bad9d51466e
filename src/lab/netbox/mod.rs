//! The lab's NetBox: the part of the REST API of 4.7 that enrollment, inventory and their tests ask.

mod auth;
mod filter;
mod kind;
mod page;
mod render;
pub mod webhook;
mod write;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::http::{Served, is_read, json_answer, serve};
use super::ledger::System;
use super::records::Records;
use super::world::World;
use kind::Kind;
use render::Render;

/// Starts NetBox on a bound listener. `base` is how clients reach it, without a slash at the end.
pub fn spawn(world: &World, listener: TcpListener, base: &str, max_page_size: usize) -> JoinHandle<()> {
    let (served, router) = service(world, base, max_page_size);
    serve(listener, served, router)
}

/// NetBox without its listener.
pub(super) fn service(world: &World, base: &str, max_page_size: usize) -> (Served, Router) {
    let netbox = NetBox { world: world.clone(), base: base.to_owned(), max_page_size };
    let served = Served {
        world: world.clone(),
        system: System::Netbox,
        device: None,
        device_of: |world, path, _| device_of(&world.lock().records, path),
        is_write: |method, _| !is_read(method),
    };
    (served, Router::new().fallback(answer).with_state(netbox))
}

#[derive(Clone)]
struct NetBox {
    world: World,
    base: String,
    max_page_size: usize,
}

/// A refusal: status and body. The body of a page that is not there is HTML.
struct Refusal(StatusCode, Value);

impl Refusal {
    fn detail(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal(status, json!({"detail": text.into()}))
    }

    fn bad(body: Value) -> Refusal {
        Refusal(StatusCode::BAD_REQUEST, body)
    }
}

/// What a request asks for, taken apart.
struct Asked {
    method: Method,
    kind: Kind,
    id: Option<u64>,
    query: Vec<(String, String)>,
    if_match: Option<String>,
    may_write: bool,
}

/// The answer before it becomes HTTP.
struct Reply {
    status: StatusCode,
    body: Value,
    etag: Option<String>,
    location: Option<String>,
}

impl Reply {
    fn ok(body: Value) -> Reply {
        Reply { status: StatusCode::OK, body, etag: None, location: None }
    }
}

async fn answer(State(netbox): State<NetBox>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return StatusCode::BAD_REQUEST.into_response() };
    let path = parts.uri.path().to_owned();
    if !path.ends_with('/') {
        return if parts.method == Method::GET { redirect(&path) } else { no_page() };
    }
    let query = pairs(parts.uri.query().unwrap_or_default());
    let mut answer = match netbox.reply(&parts.method, &path, query, &parts.headers, &bytes) {
        Ok(Some(reply)) => {
            if parts.method == Method::PATCH {
                netbox.announce(&reply.body);
            }
            let mut response = json_answer(reply.status, &reply.body);
            let mut set = |name: HeaderName, text: Option<String>| {
                if let Some(value) = text.and_then(|text| HeaderValue::from_str(&text).ok()) {
                    response.headers_mut().insert(name, value);
                }
            };
            set(header::ETAG, reply.etag);
            set(header::LOCATION, reply.location);
            response
        }
        Ok(None) => no_page(),
        Err((Refusal(status, body), etag)) => {
            let mut response = json_answer(status, &body);
            if let Some(value) = etag.and_then(|text| HeaderValue::from_str(&text).ok()) {
                response.headers_mut().insert(header::ETAG, value);
            }
            response
        }
    };
    answer.headers_mut().insert("api-version", HeaderValue::from_static("4.7"));
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        answer.headers_mut().insert("x-request-id", id);
    }
    answer
}

type Outcome = Result<Option<Reply>, (Refusal, Option<String>)>;

impl NetBox {
    /// `None`: there is no such page.
    fn reply(
        &self,
        method: &Method,
        path: &str,
        query: Vec<(String, String)>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Outcome {
        let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("*/*");
        if !["json", "*/*", "application/*"].iter().any(|kind| accept.contains(kind)) {
            let text = "Could not satisfy the request Accept header.";
            return Err((Refusal::detail(StatusCode::NOT_ACCEPTABLE, text), None));
        }
        let mut state = self.world.lock();
        let header = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
        let token = auth::check(&state.records.tokens, header);
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (kind, id) = match segments[..] {
            ["api"] => return token.map(|_| Some(Reply::ok(self.root()))).map_err(|r| (r, None)),
            ["api", "status"] => return token.map(|_| Some(Reply::ok(status()))).map_err(|r| (r, None)),
            ["api", "authentication-check"] => {
                return token.map(|token| Some(Reply::ok(auth::account(&token)))).map_err(|r| (r, None));
            }
            ["api", "users", ..] => return Err((token.map_or_else(|r| r, |_| auth::forbidden()), None)),
            ["api", "core", "object-changes"] => {
                return Err((token.map_or_else(|r| r, |_| auth::forbidden()), None));
            }
            ["api", app, list] => (Kind::of(app, list), None),
            ["api", app, list, id] => (Kind::of(app, list), id.parse().ok()),
            _ => (None, None),
        };
        let Some(kind) = kind.filter(|_| segments.len() == 3 || id.is_some()) else { return Ok(None) };
        let token = token.map_err(|r| (r, None))?;
        if method == Method::OPTIONS {
            return Ok(Some(Reply::ok(auth::options(&token, kind))));
        }
        if !token.view {
            return Err((auth::forbidden(), None));
        }
        let if_match = headers.get(header::IF_MATCH).and_then(|v| v.to_str().ok()).map(str::to_owned);
        let asked = Asked { method: method.clone(), kind, id, query, if_match, may_write: token.write };
        let now = state.stamp();
        match (method.as_str(), id) {
            ("GET" | "HEAD", None) => {
                let lister = page::Lister { records: &state.records, base: &self.base, max: self.max_page_size };
                lister.list(&asked).map(|body| Some(Reply::ok(body))).map_err(|r| (r, None))
            }
            ("GET" | "HEAD", Some(id)) => {
                let render = Render { records: &state.records, base: &self.base };
                let shown = render.shown(kind, id, &asked.query).ok_or_else(|| (not_found(kind), None))?;
                Ok(Some(Reply { etag: render.etag(kind, id), ..Reply::ok(shown) }))
            }
            _ => write::write(&mut state.records, &self.base, &asked, body, now).map(Some),
        }
    }

    /// Tells of devices that were written, without holding up the answer.
    fn announce(&self, body: &Value) {
        let one = std::slice::from_ref(body);
        for device in body.as_array().map_or(one, Vec::as_slice) {
            let (world, device) = (self.world.clone(), device.clone());
            tokio::spawn(async move {
                if let Err(error) = webhook::tell(&world, "updated", "dcim.device", device, Value::Null).await {
                    tracing::debug!(%error, "the lab's webhook was not taken");
                }
            });
        }
    }

    fn root(&self) -> Value {
        let apps = [
            "circuits",
            "core",
            "dcim",
            "extras",
            "ipam",
            "plugins",
            "status",
            "tenancy",
            "users",
            "virtualization",
            "vpn",
            "wireless",
        ];
        apps.iter().map(|app| ((*app).to_owned(), json!(format!("{}/api/{app}/", self.base)))).collect()
    }
}

fn status() -> Value {
    json!({
        "django-version": "6.1.2",
        "hostname": "netbox-lab",
        "installed_apps": {"django_filters": "26.2", "rest_framework": "3.18.0"},
        "netbox-version": "4.7.3",
        "netbox-full-version": "4.7.3",
        "plugins": {},
        "python-version": "3.12.1",
        "rq-workers-running": 1,
    })
}

fn not_found(kind: Kind) -> Refusal {
    Refusal::detail(StatusCode::NOT_FOUND, format!("No {} matches the given query.", kind.noun()))
}

fn redirect(path: &str) -> Response {
    let location = HeaderValue::from_str(&format!("{path}/")).unwrap_or(HeaderValue::from_static("/"));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    (StatusCode::MOVED_PERMANENTLY, [(header::CONTENT_TYPE, kind), (header::LOCATION, location)]).into_response()
}

fn no_page() -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let page = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Page Not Found | NetBox</title></head>\n<body></body></html>\n";
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, kind)], page).into_response()
}

/// A query as pairs, decoded.
fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).map(|(k, v)| (k.into_owned(), v.into_owned())).collect()
}

/// The device that a request is about, for ledger and fault rules.
fn device_of(records: &Records, path: &str) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let name = |id: u64| records.devices.get(&id).map(|d| d.name.clone());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments[..] {
        ["api", "dcim", "devices", id] => name(id.parse().ok()?),
        ["api", "dcim", "interfaces", id] => name(records.interfaces.get(&id.parse().ok()?)?.device),
        ["api", "dcim", "devices"] => pairs(query).into_iter().find(|(k, _)| k == "name").map(|(_, v)| v),
        _ => pairs(query).into_iter().find(|(k, _)| k == "device_id").and_then(|(_, v)| name(v.parse().ok()?)),
    }
}
