//! The BMCs of the lab: one Redfish server per machine, on the machine's own loopback address.

mod ami;
mod dell;
mod fields;
pub mod ipmi;
mod lenovo;
mod login;
mod said;
mod settings;
mod supermicro;
mod tree;
mod users;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Held;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use self::settings::{Settings, User};

use self::login::{Caller, Sessions};
use self::said::Refusal;
use self::tree::{Effect, Tree, View, tree};
use super::LabError;
use super::build::secret;
use super::clock::LabTime;
use super::http::{Served, json_answer};
use super::machine::{Machine, Preset, Quirk};
use super::world::{State, World};

/// The monitoring user of converged BMCs, as the lab's vault has it.
const IPMI_USER: &str = "ipmi_exporter";

/// Serves the BMC of a machine until the handle is aborted. What it starts with is `bmc.preset`; settings that were put
/// into `bmc.settings` before stay.
pub fn serve(world: &World, device: &str, listener: TcpListener) -> Result<JoinHandle<()>, LabError> {
    let tree = settle(&mut world.lock(), device)?;
    let bmc = Bmc { tree, world: world.clone(), device: device.to_owned(), sessions: Mutex::default() };
    let router = Router::new().fallback(answer).with_state(Arc::new(bmc));
    Ok(super::http::serve(listener, Served::bmc(world, device), router))
}

/// Gives a machine's BMC its first settings.
fn settle(state: &mut State, device: &str) -> Result<&'static dyn Tree, LabError> {
    let unknown = || LabError::Scenario(format!("the lab has no machine '{device}'"));
    let machine = state.machines.get_mut(device).ok_or_else(unknown)?;
    let tree = tree(machine.bmc.vendor);
    let mut settings = Settings::of(machine);
    settings.adopt_users(machine);
    if machine.bmc.preset == Preset::Converged && settings.hostname.is_none() {
        let site = state.records.sites.values().find(|site| site.slug == machine.site);
        let field = |name: &str| Some(site?.custom_fields.get(name)?.as_str()?.to_owned());
        settings.converge(&machine.name, field("ntp_server_1"), field("syslog_server"));
        let types = vec!["IPMI".to_owned()];
        let user = User { name: IPMI_USER.to_owned(), role: "ReadOnly".to_owned(), enabled: true, types };
        settings.add_user(user);
        machine.bmc.accounts.insert(IPMI_USER.to_owned(), secret(&["ipmi"], 8));
    }
    settings.keep(machine);
    tree.settle(machine);
    Ok(tree)
}

struct Bmc {
    tree: &'static dyn Tree,
    world: World,
    device: String,
    sessions: Mutex<Sessions>,
}

/// A request, as the resources see it.
struct Asked<'a> {
    method: &'a Method,
    /// Without the last slash.
    path: &'a str,
    query: &'a str,
    headers: &'a HeaderMap,
    body: Value,
}

/// An answer before it becomes HTTP.
struct Reply {
    status: StatusCode,
    body: Value,
    location: Option<String>,
    token: Option<String>,
    allow: Option<&'static str>,
    /// The header `ETag` has its quotes twice.
    quoted_twice: bool,
}

impl Reply {
    fn ok(body: Value) -> Reply {
        Reply { status: StatusCode::OK, body, location: None, token: None, allow: None, quoted_twice: false }
    }

    /// What this vendor answers to a change that is done.
    fn success() -> Reply {
        Reply::ok(json!({"Success": {"code": "Base.v1_10_3.Success", "message": "Successfully Completed Request."}}))
    }

    fn with_status(mut self, status: StatusCode) -> Reply {
        self.status = status;
        self
    }

    fn at(mut self, location: String) -> Reply {
        self.location = Some(location);
        self
    }

    fn token(mut self, token: String) -> Reply {
        self.token = Some(token);
        self
    }
}

async fn answer(Held(bmc): Held<Arc<Bmc>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let path = uri.path().trim_end_matches('/');
    let parsed = if body.is_empty() { Ok(Value::Null) } else { serde_json::from_slice::<Value>(&body) };
    let refuse = |refusal: Refusal| match bmc.tree.body_of(&refusal) {
        Value::String(page) => {
            let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("text/html"))];
            (refusal.status, kind, page).into_response()
        }
        body => json_answer(refusal.status, &body),
    };
    let Ok(body) = parsed else { return refuse(Refusal::malformed()) };
    let query = uri.query().unwrap_or_default();
    let asked = Asked { method: &method, path, query, headers: &headers, body };
    match bmc.handle(&asked) {
        Ok(reply) => respond(reply),
        Err(refusal) => refuse(refusal),
    }
}

impl Bmc {
    fn handle(&self, asked: &Asked<'_>) -> Result<Reply, Refusal> {
        self.with(|machine, now, _| self.tree.catch_up(machine, now))?;
        let is_root = matches!(asked.path, "/redfish" | "/redfish/v1");
        if is_root && asked.method == Method::GET {
            return self.get(asked);
        }
        if self.world.bmc_busy(&self.device) {
            return Err(Refusal::busy());
        }
        let logs_in = asked.path == login::SESSIONS && asked.method == Method::POST;
        if logs_in {
            return self.with(|machine, now, sessions| {
                login::open(machine, now, sessions, self.tree.most_sessions(), &asked.body)
            })?;
        }
        let caller = self.with(|machine, now, sessions| login::check(machine, now, sessions, asked.headers))??;
        self.with(|machine, _, _| self.tree.admit(machine, &caller.user, asked.method, asked.path))??;
        match asked.method.as_str() {
            "GET" => self.get(asked),
            "PATCH" | "POST" | "DELETE" => self.change(asked, &caller),
            _ => Err(Refusal::method()),
        }
    }

    fn get(&self, asked: &Asked<'_>) -> Result<Reply, Refusal> {
        let expands = asked.query.contains("$expand") || asked.query.contains("%24expand");
        let body = self.with(|machine, now, sessions| {
            let view = self.view(machine, now);
            let mut body = self.tree.resource(&view, sessions, asked.path)?;
            if expands && let Some(members) = body.get_mut("Members").and_then(Value::as_array_mut) {
                for member in members {
                    let path = member["@odata.id"].as_str().unwrap_or_default().to_owned();
                    if let Some(whole) = self.tree.resource(&view, sessions, &path) {
                        *member = self.tree.expanded(view.machine, self.tagged(view.machine, whole));
                    }
                }
            }
            Some((self.tagged(view.machine, body), self.tree.allow(view.machine, asked.path)))
        })?;
        let (body, allow) = body.ok_or_else(|| Refusal::missing(asked.path))?;
        let quoted_twice = self.with(|machine, _, _| machine.has(Quirk::EtagQuotedTwice))?;
        Ok(Reply { allow, quoted_twice, ..Reply::ok(body) })
    }

    fn change(&self, asked: &Asked<'_>, caller: &Caller) -> Result<Reply, Refusal> {
        let ends_session = asked.method == Method::DELETE && asked.path.starts_with(login::SESSIONS);
        if !caller.is_admin && !ends_session {
            return Err(Refusal::privilege());
        }
        let given = asked.headers.get(header::IF_MATCH).and_then(|tag| tag.to_str().ok());
        if asked.method == Method::PATCH {
            let current = self.get(&Asked {
                method: &Method::GET,
                query: "",
                headers: asked.headers,
                body: Value::Null,
                ..*asked
            })?;
            let tag = header_tag(&current.body).unwrap_or_default();
            self.with(|machine, _, _| {
                let refused = machine.has(Quirk::IfMatchRefused) && given.is_some()
                    || machine.has(Quirk::EtagQuotedTwice) && given.is_none_or(|given| given.starts_with("\"\""));
                if refused { Err(Refusal::precondition()) } else { self.tree.precondition(machine, given, &tag) }
            })??;
        }
        if asked.method == Method::POST {
            self.with(|machine, _, _| self.tree.precondition_of_post(machine, asked.path, given))??;
        }
        if asked.method == Method::POST
            && let Some(acted) = self.with(|machine, now, _| self.tree.act(machine, now, asked.path, &asked.body))?
        {
            let (reply, effect) = acted?;
            self.carry_out(effect);
            return Ok(reply);
        }
        self.with(|machine, now, sessions| {
            let exists = self.tree.resource(&self.view(machine, now), sessions, asked.path).is_some();
            if !exists {
                return Err(Refusal::missing(asked.path));
            }
            match asked.method.as_str() {
                "PATCH" => self.tree.patch(machine, now, asked.path, &asked.body),
                "POST" => self.tree.create(machine, now, asked.path, &asked.body),
                _ => self.tree.delete(machine, now, sessions, asked.path),
            }
        })?
    }

    fn carry_out(&self, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Power(power) => self.world.press(&self.device, power),
            Effect::ResetBmc => {
                self.sessions().clear();
                self.world.reset_bmc(&self.device);
            }
        }
    }

    /// A resource with its tag: the digest of what it holds, so that it changes with every change.
    fn tagged(&self, machine: &Machine, mut body: Value) -> Value {
        let digest = Sha256::digest(body.to_string());
        let digest: String = digest.iter().take(16).map(|b| format!("{b:02x}")).collect();
        if let Some(body) = body.as_object_mut().filter(|body| body.contains_key("@odata.id")) {
            body.insert("@odata.etag".to_owned(), self.tree.tag(machine, &digest));
        }
        body
    }

    /// The machine as resources show it.
    fn view<'a>(&'a self, machine: &'a Machine, now: LabTime) -> View<'a> {
        let booted = match machine.bmc.away {
            Some((_, until)) => self.world.clock().stamp(until),
            // It was running for twelve days when the lab began.
            None => self.world.clock().stamp(LabTime::ZERO) - jiff::SignedDuration::from_hours(12 * 24),
        };
        View { machine, settings: Settings::at(machine, now), now, wall: self.world.wall(), booted }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Machine, LabTime, &mut Sessions) -> T) -> Result<T, Refusal> {
        let mut sessions = self.sessions();
        self.world
            .with_machine(&self.device, |machine, now| f(machine, now, &mut sessions))
            .ok_or_else(|| Refusal::missing("/redfish/v1"))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tag of a resource as the header has it: in quotes, also where the body has a number.
fn header_tag(body: &Value) -> Option<String> {
    match &body["@odata.etag"] {
        Value::String(tag) => Some(tag.clone()),
        Value::Number(tag) => Some(format!("\"{tag}\"")),
        _ => None,
    }
}

fn respond(reply: Reply) -> Response {
    let mut response = json_answer(reply.status, &reply.body);
    let headers = response.headers_mut();
    headers.insert("odata-version", HeaderValue::from_static("4.0"));
    let mut put = |name: header::HeaderName, value: Option<&str>| {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    };
    let tag = header_tag(&reply.body);
    put(header::ETAG, tag.map(|tag| if reply.quoted_twice { format!("\"{tag}\"") } else { tag }).as_deref());
    put(header::ALLOW, reply.allow);
    put(header::LOCATION, reply.location.as_deref());
    put(header::HeaderName::from_static("x-auth-token"), reply.token.as_deref());
    response
}
