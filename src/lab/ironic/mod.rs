//! The lab's Ironic: its REST API with microversions, its state machine, node locks and their refusals.

mod api;
mod drivers;
mod inventory;
mod lists;
mod node;
mod patch;
mod ports;
mod reply;
pub mod seed;
pub(super) mod task;
mod verbs;

use std::collections::BTreeMap;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::clock::seconds;
use super::http::{Served, is_read, serve};
use super::ledger::System;
use super::world::{State, World};
use api::Call;
pub use node::Node;
pub use ports::{Port, Portgroup};
use reply::Refusal;

/// Everything that Ironic's database has.
#[derive(Debug, Clone, Default)]
pub struct Ironic {
    pub nodes: BTreeMap<Uuid, Node>,
    pub ports: BTreeMap<Uuid, Port>,
    pub portgroups: BTreeMap<Uuid, Portgroup>,
    pub settings: Settings,
    last_id: u64,
}

/// What an operator of Ironic configures.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Inspection creates ports for every NIC that the BMC reports.
    pub pre_create_ports: bool,
    /// The `parse-lldp` hook is on.
    pub parse_lldp: bool,
    /// HTTP basic: user and password. `None`: nobody is asked.
    pub basic: Option<(String, String)>,
}

impl Ironic {
    /// An empty database.
    pub fn new(settings: Settings) -> Ironic {
        Ironic { settings, ..Ironic::default() }
    }

    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A node by its name.
    pub fn node_named(&self, name: &str) -> Option<&Node> {
        self.nodes.values().find(|n| n.name() == Some(name))
    }
}

/// Starts Ironic on a bound listener. `base` is how clients reach it, without a slash at the end.
pub fn spawn(world: &World, listener: TcpListener, base: &str) -> JoinHandle<()> {
    let (served, router) = service(world, base);
    serve(listener, served, router)
}

/// Ironic without its listener.
pub(super) fn service(world: &World, base: &str) -> (Served, Router) {
    let api = Api { world: world.clone(), base: base.to_owned() };
    let served = Served {
        world: world.clone(),
        system: System::Ironic,
        device: None,
        device_of: |world, path, body| device_of(&world.lock(), path, body),
        is_write: |method, _| !is_read(method),
    };
    (served, Router::new().fallback(answer).with_state(api))
}

#[derive(Clone)]
struct Api {
    world: World,
    base: String,
}

async fn answer(Shared(api): Shared<Api>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return StatusCode::BAD_REQUEST.into_response() };
    let path = parts.uri.path().trim_end_matches('/').to_owned();
    if !matches!(path.as_str(), "" | "/v1")
        && let Some(refused) = api.unauthenticated(&parts.headers)
    {
        return refused;
    }
    let header = parts.headers.get("x-openstack-ironic-api-version").and_then(|v| v.to_str().ok());
    let version = match reply::version(header) {
        Ok(version) => version,
        Err(refusal) => return refusal.response(None),
    };
    let body = match read_body(&parts.method, &bytes) {
        Ok(body) => body,
        Err(refusal) => return refusal.response(Some(version)),
    };
    let query = parts.uri.query().unwrap_or_default();
    let query = url::form_urlencoded::parse(query.as_bytes()).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
    let segments: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| {
            url::form_urlencoded::parse(format!("x={}", part.replace('+', "%2B")).as_bytes())
                .next()
                .map_or_else(String::new, |(_, v)| v.into_owned())
        })
        .collect();
    let call = Call { method: parts.method, segments, query, body, version, base: api.base };
    // A held lock is tried again for a while, as the conductor does, before it is told.
    let patience = { seconds(api.world.lock().timing.lock_patience_s) };
    let deadline = api.world.now() + patience;
    loop {
        let outcome = api::carry_out(&mut api.world.lock(), &call);
        match outcome {
            Err(Refusal::Locked(_)) if api.world.now() < deadline => {
                api.world.sleep(patience.div_f64(5.0)).await;
            }
            Err(refusal) => return refusal.response(Some(version)),
            Ok(reply) => {
                // An abort is answered late: the conductor cleans up first.
                if call.is_abort() {
                    api.world.sleep(seconds(2.0)).await;
                }
                return reply.response(version);
            }
        }
    }
}

fn read_body(method: &Method, bytes: &[u8]) -> Result<Option<Value>, Refusal> {
    if is_read(method) || bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    serde_json::from_slice(bytes).map(Some).map_err(|e| {
        let text = format!(
            "Expecting property name enclosed in double quotes: line {} column {} (char {})",
            e.line(),
            e.column(),
            e.column().saturating_sub(1)
        );
        Refusal::Fault(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

impl Api {
    /// Why a caller is not let in; `None` for one who is.
    fn unauthenticated(&self, headers: &HeaderMap) -> Option<Response> {
        let (user, password) = self.world.lock().ironic.settings.basic.clone()?;
        let Some(header) = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()) else {
            return Some(reply::unauthorized(StatusCode::UNAUTHORIZED, "Authorization required"));
        };
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if !scheme.eq_ignore_ascii_case("basic") {
            let text = format!("Unsupported authorization type \"{scheme}\"");
            return Some(reply::unauthorized(StatusCode::BAD_REQUEST, &text));
        }
        let sent = base64::engine::general_purpose::STANDARD.decode(rest.trim()).unwrap_or_default();
        let right = sent == format!("{user}:{password}").into_bytes();
        (!right).then(|| reply::unauthorized(StatusCode::UNAUTHORIZED, "Incorrect username or password"))
    }
}

/// The device that a request is about: the name of its node.
fn device_of(state: &State, path: &str, body: Option<&Value>) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let named = |ident: &str| match ident.parse::<Uuid>() {
        Ok(uuid) => state.ironic.nodes.get(&uuid).and_then(Node::name).map(str::to_owned),
        Err(_) => Some(ident.to_owned()),
    };
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["v1", "nodes", ident, ..] if ident != "detail" => named(ident),
        ["v1", "ports", uuid, ..] if uuid != "detail" => {
            let port = state.ironic.ports.get(&uuid.parse().ok()?)?;
            state.ironic.nodes.get(&port.node).and_then(Node::name).map(str::to_owned)
        }
        ["v1", "nodes"] => body?.get("name")?.as_str().map(str::to_owned),
        ["v1", "ports" | "portgroups", ..] => match body.and_then(|b| b.get("node_uuid")).and_then(Value::as_str) {
            Some(ident) => named(ident),
            None => {
                let mut pairs = url::form_urlencoded::parse(query.as_bytes());
                pairs.find(|(k, _)| k == "node" || k == "node_uuid").and_then(|(_, v)| named(&v))
            }
        },
        _ => None,
    }
}
