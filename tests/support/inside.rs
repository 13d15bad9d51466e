//! The real workflow with its real Ironic steps and clients in one thread, on a lab without sockets whose time moves by hand:
//! an enrollment that takes an hour is over in milliseconds, and nothing depends on how busy the machine is.
//!
//! The steps of NetBox, DHCP and BMC are answered here; what Ironic is asked goes through the client to the lab, and every
//! request is written down with what the client had last read of the node and what was true of it.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use muster::activities::env::{ActivityCx, Env};
use muster::activities::registry;
use muster::clients::Clients;
use muster::clients::http::{Answer, Auth, Carrier, HttpError, Request};
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::Settings;
use muster::domain::event::{EnrollResult, Observation, WaitKind, WaitReason};
use muster::domain::failure::Failure;
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::provision::ProvisionState;
use muster::domain::request::EnrollRequest;
use muster::lab::clock::LabTime;
use muster::lab::inside::{Answered, Blueprint, Door, IRONIC_URL, Inside, NETBOX_URL, Question};
use muster::lab::machine::Link;
use muster::lab::scenario::Scenario;
use muster::store::Store;
use muster::workflows::cx::{Activity, ActivityError, ActivityOptions, Cancelled, Cx, Signal};
use muster::workflows::enroll::enroll;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What every request takes, in lab time.
const ANSWERED_IN: Duration = Duration::from_millis(40);

/// A scenario with all that stays the same from one history to the next.
pub struct Ground {
    blueprint: Blueprint,
    settings: Arc<Settings>,
    vault: Vault,
    store: Store,
    /// Made once: what a client is made of takes longer than a history.
    netbox: NetBox,
    ironic: Ironic,
    /// What NetBox answers never changes here.
    read: Mutex<HashMap<String, Answered>>,
    host: String,
    _folder: tempfile::TempDir,
}

/// In memory where the machine has a folder for that.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn begins_at() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

impl Ground {
    /// `host` is the one that is enrolled.
    pub fn of(scenario: Scenario, host: &str) -> Ground {
        use std::os::unix::fs::PermissionsExt;
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = folder();
        let private = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let project = scenario.ironic.project.as_ref().map_or(String::new(), |p| format!("project = \"{p}\"\n"));
        let sites: String = scenario
            .sites
            .keys()
            .map(|site| format!("[sites.{site}.gates]\nconfigure_dhcp = false\nconfigure_bmc = false\n"))
            .collect();
        let blueprint = Blueprint::of(scenario).unwrap();
        let token = private("token", &blueprint.netbox_token());
        let mut items = toml::Table::new();
        let mut item = |name: String, user: &str, password: String| {
            let fields = [("username", user.to_owned()), ("password", password)];
            let fields: toml::Table = fields.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
            items.insert(name, fields.into());
        };
        for host in &blueprint.scenario().hosts {
            let (user, password) = blueprint.bmc_login(&host.name).unwrap();
            item(format!("bmc-{}", host.name), user, password);
        }
        item("ipmi_exporter".to_owned(), "ipmi_exporter", "monitoring-secret".to_owned());
        let vault = private("vault.toml", &items.to_string());
        let text = format!(
            "[netbox]\nurl = \"{NETBOX_URL}\"\ntoken = \"file:{}\"\n[vault]\nkind = \"file\"\npath = \"{}\"\n\
             [ironic.lab]\nurl = \"{IRONIC_URL}\"\nauth = {{ kind = \"none\" }}\n\
             device_classes = [\"COMPUTE_GPU\", \"COMPUTE_CPU\"]\n{project}{sites}",
            token.display(),
            vault.display()
        );
        let settings = muster::config::parse(&text, "inside.toml").unwrap_or_else(|e| panic!("{e}"));
        let vault = Vault::new(settings.vault.clone());
        let store = Store::open(&folder.path().join("state")).unwrap();
        let netbox =
            NetBox::new(&settings.netbox, muster::clients::vault::plain(&settings.netbox.token).unwrap()).unwrap();
        let ironic = Ironic::new("lab", &settings.ironic["lab"], &vault).unwrap();
        Ground {
            blueprint,
            netbox,
            ironic,
            settings: Arc::new(settings),
            vault,
            store,
            read: Mutex::default(),
            host: host.to_owned(),
            _folder: folder,
        }
    }

    pub fn vault(&self) -> &Vault {
        &self.vault
    }

    /// A fresh world on it.
    pub fn scene(self: &Arc<Self>) -> Scene {
        self.scene_with(|carrier| self.ironic.over(carrier))
    }

    /// A fresh world, and a client of another Ironic than the one in it.
    pub fn scene_with(self: &Arc<Self>, ironic: impl FnOnce(Arc<dyn Carrier>) -> Ironic) -> Scene {
        let inside = self.blueprint.begin(begins_at());
        let wire = Arc::new(Wire { inside, ground: Arc::clone(self), book: Mutex::default() });
        let carrier = || Arc::clone(&wire) as Arc<dyn Carrier>;
        let (netbox, ironic) = (self.netbox.over(carrier()), ironic(carrier()));
        let env = Arc::new(Env {
            settings: Arc::clone(&self.settings),
            vault: self.vault.clone(),
            // What is kept of one history is of no use to the next.
            store: self.store.rehearsing(),
            refresh_nodes: tokio::sync::Notify::new(),
            clients: Clients { netbox, ironic: IndexMap::from([("lab".to_owned(), ironic)]) },
        });
        Scene { ground: Arc::clone(self), wire, env }
    }
}

/// A world that runs live in.
pub struct Scene {
    ground: Arc<Ground>,
    pub wire: Arc<Wire>,
    pub env: Arc<Env>,
}

impl Scene {
    pub fn host(&self) -> &str {
        &self.ground.host
    }

    /// An enrollment of the host, Ironic's phases only.
    pub fn request(&self) -> EnrollRequest {
        let world = &self.wire.inside.world;
        let netbox_id = world.lock().records.device_named(self.host()).unwrap().id;
        let site = world.machine(self.host()).unwrap().site;
        let mut options = self.ground.settings.sites[&site].options.clone();
        (options.configure_bmc, options.configure_dhcp) = (false, false);
        EnrollRequest {
            host: self.host().to_owned(),
            netbox_id,
            routing: self.ground.settings.routing(&site),
            site,
            device_class: Some("COMPUTE_GPU".into()),
            params: Default::default(),
            options,
            submitted_by: "ada".into(),
            submitted_at: begins_at(),
            retry_of: None,
            placement: Default::default(),
            canary: None,
        }
    }

    /// The world, for a look or a change.
    pub fn world(&self) -> &muster::lab::world::World {
        &self.wire.inside.world
    }

    /// The node of the host, if there is one.
    pub fn node(&self) -> Option<muster::lab::ironic::Node> {
        self.world().lock().ironic.node_named(self.host()).cloned()
    }

    /// Changes the node behind everybody's back.
    pub fn edit(&self, f: impl FnOnce(&mut muster::lab::ironic::Node)) {
        self.wire.edit(f);
    }

    /// Gives the node of the host a UUID that nothing in this process has ever seen.
    pub fn renew_uuid(&self) {
        let mut state = self.world().lock();
        let Some(old) = state.ironic.node_named(self.host()).map(|node| node.uuid) else { return };
        let new = uuid::Uuid::new_v4();
        let mut node = state.ironic.nodes.remove(&old).unwrap();
        node.uuid = new;
        state.ironic.nodes.insert(new, node);
        state.ironic.ports.values_mut().filter(|port| port.node == old).for_each(|port| port.node = new);
        state.ironic.portgroups.values_mut().filter(|group| group.node == old).for_each(|group| group.node = new);
    }

    /// Runs an enrollment to its end.
    pub async fn run(&self, request: EnrollRequest, watch: Watch) -> Ran {
        let cx = InsideCx(Rc::new(Inner {
            env: Arc::clone(&self.env),
            wire: Arc::clone(&self.wire),
            run: RunId(uuid::Uuid::now_v7()),
            seq: Cell::new(0),
            stopped: CancellationToken::new(),
            watch: RefCell::new(watch),
            asked: RefCell::default(),
            waits: RefCell::default(),
            reports: Arc::default(),
        }));
        self.wire.book().cancel = Some(cx.0.stopped.clone());
        // Unoptimised, it is too large for a stack.
        let result = Box::pin(enroll(cx.clone(), request)).await;
        // What a cancel has dropped goes on in a task of its own for a moment.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        let reports = cx.0.reports.lock().unwrap().clone();
        Ran { result, asked: cx.0.asked.take(), waits: cx.0.waits.take(), reports, took: self.world().now() }
    }
}

/// Says of each activity before it is carried out whether the run goes on.
pub type Watch = Box<dyn FnMut(&str, &Value) -> Next>;

/// Lets everything happen.
pub fn unwatched() -> Watch {
    Box::new(|_, _| Next::Do)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Do,
    /// The run is cancelled instead.
    Stop,
}

/// How a run went.
pub struct Ran {
    pub result: Result<EnrollResult, ActivityError>,
    /// Activities by name, in their order.
    pub asked: Vec<String>,
    pub waits: Vec<(WaitKind, Duration)>,
    pub reports: Vec<Observation>,
    pub took: LabTime,
}

/// What was read of the node, or what is true of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Glimpse {
    pub state: ProvisionState,
    pub instance: bool,
    pub maintenance: bool,
    pub software_raid: bool,
    /// Ports that are enabled for PXE.
    pub pxe: usize,
}

/// A request to Ironic.
#[derive(Debug, Clone)]
pub struct Sent {
    pub at: LabTime,
    /// Number of the attempt that sent it, over all activities; and whose it was.
    pub attempt: u32,
    pub activity: String,
    pub method: String,
    /// Without the query.
    pub path: String,
    pub query: String,
    pub body: Value,
    /// `None`: no answer came.
    pub status: Option<u16>,
    pub said: String,
    /// What the client had last been told of the node, and the number of the attempt in which it was told.
    pub read: Option<(u32, Glimpse)>,
    /// What was true when the request arrived.
    pub truth: Option<Glimpse>,
    /// It was carried out, whatever was answered.
    pub done: bool,
    /// Somebody else has changed the node since the client read it.
    pub overtaken: bool,
}

impl Sent {
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// `PUT /v1/nodes/ID/states/provision manage`.
    pub fn words(&self) -> String {
        let path = self.path.split('/').map(|part| if part.parse::<uuid::Uuid>().is_ok() { "ID" } else { part });
        let target = self.body["target"].as_str().map_or(String::new(), |target| format!(" {target}"));
        format!("{} {}{target}", self.method, path.collect::<Vec<_>>().join("/"))
    }
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Fate {
    Served,
    /// Not carried out, no answer.
    Lost,
    /// Carried out, no answer.
    AnswerLost,
    Refused(u16, Value),
}

/// Decides about the nth request to Ironic, and may change the world before it arrives.
pub type Meddler = Box<dyn FnMut(u32, &Wire) -> Fate + Send>;

/// The way to the services, and the book of what went over it.
pub struct Wire {
    pub inside: Inside,
    ground: Arc<Ground>,
    book: Mutex<Book>,
}

#[derive(Default)]
pub struct Book {
    pub sent: Vec<Sent>,
    /// Hosts of URLs that anybody wanted to go to.
    pub origins: std::collections::BTreeSet<String>,
    pub meddler: Option<Meddler>,
    /// The request at which the run is cancelled while it is under way, and whether before or after it has arrived.
    pub cancel_at: Option<(u32, bool)>,
    cancel: Option<CancellationToken>,
    requests: u32,
    attempt: u32,
    activity: String,
    read: Option<(u32, Glimpse)>,
    /// Changes of others, by the number of requests before them.
    meddled: Vec<u32>,
    read_at: u32,
}

impl Wire {
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the node of the host behind everybody's back, and remembers that.
    pub fn edit(&self, f: impl FnOnce(&mut muster::lab::ironic::Node)) {
        let mut state = self.inside.world.lock();
        let uuid = state.ironic.node_named(&self.ground.host).map(|node| node.uuid);
        if let Some(node) = uuid.and_then(|uuid| state.ironic.nodes.get_mut(&uuid)) {
            f(node);
        }
    }

    pub fn host(&self) -> &str {
        &self.ground.host
    }

    /// What is true of the host's node.
    pub fn truth(&self) -> Option<Glimpse> {
        let state = self.inside.world.lock();
        state.ironic.node_named(&self.ground.host).map(|node| Glimpse {
            state: node.state.clone(),
            instance: node.text("instance_uuid").is_some(),
            maintenance: node.in_maintenance(),
            software_raid: is_software(&node.fields["target_raid_config"]),
            pxe: (state.ironic.ports.values())
                .filter(|port| port.node == node.uuid && port.fields["pxe_enabled"] == true)
                .count(),
        })
    }

    fn begin_attempt(&self, activity: &str) {
        let mut book = self.book();
        book.attempt += 1;
        book.activity = activity.to_owned();
    }

    async fn to_netbox(&self, question: Question, asked: String) -> Result<Answer, HttpError> {
        let key = format!("{} {}", question.method, question.path);
        let known = self.ground.read.lock().unwrap().get(&key).cloned();
        let answered = match known {
            Some(answered) => answered,
            None => {
                let answered = self.inside.ask(Door::NetBox, question).await.unwrap();
                self.ground.read.lock().unwrap().insert(key, answered.clone());
                answered
            }
        };
        Ok(answer(answered, asked))
    }

    async fn to_ironic(&self, request: &Request, question: Question, asked: String) -> Result<Answer, HttpError> {
        let (n, before_arrival, token) = {
            let mut book = self.book();
            book.requests += 1;
            let n = book.requests;
            let cancel = book.cancel_at.filter(|(at, _)| *at == n);
            (n, cancel.map(|(_, before)| before), book.cancel.clone())
        };
        let cancel = || {
            if let Some(token) = &token {
                token.cancel();
            }
        };
        if before_arrival == Some(true) {
            cancel();
            tokio::task::yield_now().await;
        }
        let clock = self.inside.world.clock();
        clock.move_to(clock.now() + ANSWERED_IN);
        let meddler = self.book().meddler.take();
        let mut fate = Fate::Served;
        if let Some(mut meddler) = meddler {
            let before = self.truth();
            fate = meddler(n, self);
            if self.truth() != before {
                self.book().meddled.push(n);
            }
            self.book().meddler = Some(meddler);
        }
        let truth = self.truth();
        let (path, query) = question.path.split_once('?').unwrap_or((&question.path, ""));
        let mut sent = {
            let book = self.book();
            Sent {
                at: clock.now(),
                attempt: book.attempt,
                activity: book.activity.clone(),
                method: request.method.to_string(),
                path: path.to_owned(),
                query: query.to_owned(),
                body: request.body.clone().unwrap_or(Value::Null),
                status: None,
                said: String::new(),
                read: book.read.clone(),
                truth,
                done: false,
                overtaken: book.meddled.iter().any(|at| *at > book.read_at),
            }
        };
        let lost = || HttpError::Broken { asked: asked.clone(), host: "ironic.inside".into(), cause: "lost".into() };
        let outcome = match fate {
            Fate::Lost => Err(lost()),
            Fate::Refused(status, body) => Ok(Answered {
                status: status.try_into().unwrap(),
                headers: Default::default(),
                body: body.to_string().into(),
            }),
            Fate::Served | Fate::AnswerLost => {
                let answered = self.inside.ask(Door::Ironic, question).await.unwrap();
                sent.done = answered.status.is_success();
                match fate {
                    Fate::AnswerLost => Err(lost()),
                    _ => Ok(answered),
                }
            }
        };
        let outcome = outcome.map(|answered| answer(answered, asked));
        if let Ok(answer) = &outcome {
            sent.status = Some(answer.status.as_u16());
            if !answer.status.is_success() {
                sent.said = answer.excerpt();
            }
            self.learn(&sent, answer, n);
        }
        self.book().sent.push(sent);
        if before_arrival == Some(false) {
            cancel();
            tokio::task::yield_now().await;
        }
        outcome
    }

    /// What the client is told of the host's node by an answer: what is true of it.
    fn learn(&self, sent: &Sent, answer: &Answer, n: u32) {
        let parts: Vec<&str> = sent.path.trim_matches('/').split('/').collect();
        let is_it = match parts[..] {
            ["v1", "nodes", ident] => {
                let state = self.inside.world.lock();
                let node = state.ironic.node_named(&self.ground.host);
                node.is_some_and(|node| ident == self.ground.host || node.uuid.to_string() == ident)
            }
            ["v1", "nodes"] => sent.body["name"] == self.ground.host,
            _ => false,
        };
        if !is_it || !answer.status.is_success() {
            return;
        }
        let Some(truth) = self.truth() else { return };
        let mut book = self.book();
        book.read = Some((book.attempt, truth));
        book.read_at = n;
    }
}

pub fn is_software(target: &Value) -> bool {
    target["logical_disks"].as_array().is_some_and(|disks| disks.iter().any(|disk| disk["controller"] == "software"))
}

fn answer(answered: Answered, asked: String) -> Answer {
    let Answered { status, headers, body } = answered;
    Answer { status, headers, body: body.to_vec(), asked }
}

impl Carrier for Wire {
    fn carry<'a>(&'a self, request: Request, url: &'a url::Url) -> BoxFuture<'a, Result<Answer, HttpError>> {
        Box::pin(async move {
            let asked = format!("{} {}", request.method, url.path());
            let origin = url.origin().ascii_serialization();
            self.book().origins.insert(origin.clone());
            let mut whole = url.clone();
            if !request.query.is_empty() {
                whole.query_pairs_mut().extend_pairs(&request.query);
            }
            let mut headers: reqwest::header::HeaderMap = request.headers.iter().cloned().collect();
            if let Auth::Authorization(value) = &request.auth {
                headers.insert("authorization", value.expose_secret().parse().unwrap());
            }
            let path = whole.query().map_or(whole.path().to_owned(), |query| format!("{}?{query}", whole.path()));
            let body = request.body.as_ref().map(|body| body.to_string().into_bytes());
            let question = Question { method: request.method.clone(), path, headers, body };
            match origin.as_str() {
                NETBOX_URL => self.to_netbox(question, asked).await,
                IRONIC_URL => self.to_ironic(&request, question, asked).await,
                other => panic!("somebody asked {other}: {asked}"),
            }
        })
    }
}

#[derive(Clone)]
struct InsideCx(Rc<Inner>);

struct Inner {
    env: Arc<Env>,
    wire: Arc<Wire>,
    run: RunId,
    seq: Cell<u32>,
    stopped: CancellationToken,
    watch: RefCell<Watch>,
    asked: RefCell<Vec<String>>,
    waits: RefCell<Vec<(WaitKind, Duration)>>,
    reports: Arc<Mutex<Vec<Observation>>>,
}

impl Inner {
    fn now(&self) -> Timestamp {
        let clock = self.wire.inside.world.clock();
        clock.stamp(clock.now())
    }

    fn pass(&self, span: Duration) {
        let clock = self.wire.inside.world.clock();
        clock.move_to(clock.now() + span);
    }

    /// The steps that are not Ironic's.
    fn beside(&self, name: &str) -> Option<Value> {
        let changed = json!({"changed": false, "note": "inside"});
        match name {
            "netbox.status_gate" => Some(json!({"status": "active"})),
            "netbox.activate" | "netbox.add_tag" => Some(changed),
            "fleet.prove" => Some(json!({"accepted": true})),
            "bmc.read_links" => {
                let world = &self.wire.inside.world;
                let machine = world.machine(self.wire.host()).unwrap();
                let state = |nic| match machine.link(nic, world.now()) {
                    Link::Up => "UP",
                    Link::Down => "DOWN",
                    Link::Unknown => "UNKNOWN",
                };
                let frontend = machine.nics.iter().filter(|nic| nic.frontend);
                let readings = frontend.map(|nic| json!({"interface": nic.name, "mac": nic.mac, "state": state(nic)}));
                Some(json!({"readings": readings.collect::<Vec<_>>()}))
            }
            _ => None,
        }
    }

    async fn carry_out(
        &self,
        name: &'static str,
        input: Value,
        options: ActivityOptions,
    ) -> Result<Value, ActivityError> {
        if self.stopped.is_cancelled() && !options.survives_cancel {
            return Err(ActivityError::Cancelled);
        }
        if !options.survives_cancel && (self.watch.borrow_mut())(name, &input) == Next::Stop {
            self.stopped.cancel();
            return Err(ActivityError::Cancelled);
        }
        self.asked.borrow_mut().push(name.to_owned());
        self.seq.set(self.seq.get() + 1);
        if let Some(answer) = self.beside(name) {
            self.pass(ANSWERED_IN);
            return Ok(answer);
        }
        let mut attempt = 1;
        loop {
            self.wire.begin_attempt(name);
            let reports = Arc::clone(&self.reports);
            let cx = ActivityCx {
                env: Arc::clone(&self.env),
                run: self.run,
                seq: self.seq.get(),
                attempt,
                stop: CancellationToken::new(),
                sink: Arc::new(move |seen| reports.lock().unwrap().push(seen)),
            };
            let work = Box::pin(registry::run(name, input.clone(), cx));
            let outcome = if options.survives_cancel {
                work.await
            } else {
                tokio::select! {
                    biased;
                    () = self.stopped.cancelled() => return Err(ActivityError::Cancelled),
                    outcome = work => outcome,
                }
            };
            match outcome {
                Err(failure) if failure.retryable && attempt < options.retry.max_attempts => {
                    attempt += 1;
                    self.pass(options.retry.wait_before(attempt));
                }
                outcome => return outcome.map_err(ActivityError::Failed),
            }
        }
    }
}

impl Cx for InsideCx {
    fn activity<A: Activity>(
        &self,
        input: A::In,
        options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<A> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move {
            let input = serde_json::to_value(input).unwrap();
            let output = inner.carry_out(A::NAME, input, options).await?;
            Ok(serde_json::from_value(output).unwrap_or_else(|e| panic!("{}: {e}", A::NAME)))
        })
    }

    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<> {
        let span = Duration::try_from(deadline.duration_since(self.now())).unwrap_or_default();
        self.0.waits.borrow_mut().push((reason.kind, span));
        self.0.pass(span);
        std::future::ready(if self.0.stopped.is_cancelled() { Err(Cancelled) } else { Ok(()) })
    }

    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<> {
        std::future::pending()
    }

    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn report(&self, observation: Observation) {
        self.0.reports.lock().unwrap().push(observation);
    }

    fn version(&self, _change: &'static str) -> bool {
        true
    }

    fn jitter(&self, place: &str) -> f64 {
        let sum = place.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        f64::from(sum % 1000) / 1000.0
    }
}

impl Ran {
    pub fn failure(&self) -> Option<&Failure> {
        match &self.result {
            Err(ActivityError::Failed(failure)) => Some(failure),
            Err(ActivityError::Cancelled) | Ok(_) => None,
        }
    }

    pub fn code(&self) -> &'static str {
        self.failure().map_or("-", |failure| failure.code.as_str())
    }
}

/// A runtime for one thread of histories.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// So long after the beginning.
pub fn after(seconds: i64) -> Timestamp {
    begins_at().checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

/// The UUID of the host's node.
pub fn uuid_of(node: &muster::lab::ironic::Node) -> NodeUuid {
    NodeUuid(node.uuid)
}
