//! A lab and muster's engine on it in one process, at high speed: for sweeps that begin and end an engine many times.
//!
//! Lab and engine go by clocks of the same speed, so the workflow's budgets are the house's own, in lab time. What an
//! activity waits for by itself (an answer, a busy BMC) is real time, and short.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::activities::env::Env;
use muster::clients::Clients;
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::{Limits, Settings, default_budgets};
use muster::domain::event::{Body, Event, Outcome, RunRecord};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest};
use muster::engine::{Call, Clock, Dispatch, Engine, Journal, Parts, Registry, Workflows};
use muster::inventory::ironic::{NodeObserver, run_all};
use muster::inventory::netbox::Observer;
use muster::lab::Lab;
use muster::lab::bmc::Settings as BmcSettings;
use muster::lab::faults::Fault;
use muster::lab::ledger::Entry;
use muster::lab::machine::{Machine, Quirk, Vendor};
use muster::lab::scenario::Scenario;
use muster::store::{Store, Submit};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The host of the sweeps: nothing is wrong with it.
pub const HOST: &str = "gpu-b07-37";

/// Lab seconds in a real one.
pub const SPEED: f64 = 1000.0;

/// Wall-clock time that passes [`SPEED`] times as fast.
pub struct FastClock {
    began: Instant,
    base: Timestamp,
}

impl FastClock {
    fn start() -> FastClock {
        FastClock { began: Instant::now(), base: Timestamp::now() }
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.base.checked_add(self.began.elapsed().mul_f64(SPEED)).unwrap()
    }

    fn pause(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(wait.div_f64(SPEED)))
    }
}

/// A lab with the settings for it, and a state folder that outlives every engine on it.
pub struct Site {
    pub lab: Lab,
    pub settings: Settings,
    clock: Arc<FastClock>,
    folder: tempfile::TempDir,
    /// The lab's own: it lives on while engines come and go.
    runtime: Runtime,
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// In memory where the machine has a folder for that: what dies here is the process, not the machine, and a few hundred
/// stores sync for nothing.
fn folder() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}

impl Site {
    /// The rack of the tests with only its [`HOST`], changed by `change` before it starts.
    pub fn start(change: impl FnOnce(&mut Scenario)) -> Site {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::parse(include_str!("../../scenarios/rack.toml")).unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        change(&mut scenario);
        let runtime = runtime();
        let folder = folder();
        let lab = runtime.block_on(Lab::start(scenario, SPEED)).unwrap();
        let mut settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
        let brief = Duration::from_millis(700);
        settings.netbox.timeout = brief;
        for instance in settings.ironic.values_mut() {
            // Asked at the start and when a run wants it.
            (instance.timeout, instance.poll) = (brief, Duration::from_secs(3600));
        }
        for site in settings.sites.values_mut() {
            (site.bmc.connect_timeout, site.bmc.timeout) = (brief, brief);
            (site.bmc.busy_budget, site.bmc.reset_budget) = (brief, Duration::from_secs(6000));
            let dhcp = site.dhcp.as_mut().unwrap();
            (dhcp.connect, dhcp.login, dhcp.command, dhcp.transfer) = (brief, brief, brief, brief);
            // Ten times the house's: a busy machine takes a while for what the lab does in no time.
            let budgets = &mut site.options.budgets;
            *budgets = default_budgets();
            for budget in [&mut budgets.node_lock, &mut budgets.stable, &mut budgets.inspection, &mut budgets.power_on]
            {
                *budget *= 10;
            }
            for budget in [&mut budgets.link_guard, &mut budgets.cleaning, &mut budgets.proof] {
                *budget *= 10;
            }
            (budgets.poll_first, budgets.poll_max) = (Duration::from_secs(10), Duration::from_secs(30));
        }
        let site = Site { lab, settings, clock: Arc::new(FastClock::start()), folder, runtime };
        site.observe();
        site
    }

    /// What the inventory has done before anybody enrolls: the store has the devices.
    fn observe(&self) {
        let _inside = self.runtime.enter();
        let token = muster::clients::vault::plain(&self.settings.netbox.token).unwrap();
        let netbox = NetBox::new(&self.settings.netbox, token).unwrap();
        let store = Store::open(&self.folder.path().join("state")).unwrap();
        let observer = Observer::new(netbox, store, &self.settings.netbox);
        self.runtime.block_on(observer.sync_full()).unwrap();
        self.lab.world().ledger().reset();
    }

    /// A fault in the words of the scenarios, from now on.
    pub fn fault(&self, fault: Value) {
        let fault: Fault = serde_json::from_value(fault.clone()).unwrap_or_else(|e| panic!("{e}: {fault}"));
        self.lab.world().add_fault(fault);
    }

    /// An enrollment of [`HOST`] as it would be submitted now.
    pub fn request(&self) -> EnrollRequest {
        let netbox_id = self.lab.world().lock().records.device_named(HOST).unwrap().id;
        EnrollRequest {
            host: HOST.into(),
            netbox_id,
            site: "osl1".into(),
            device_class: Some("COMPUTE_GPU".into()),
            params: EnrollParams::default(),
            options: self.settings.sites["osl1"].options.clone(),
            routing: self.settings.routing("osl1"),
            submitted_by: "ada".into(),
            submitted_at: self.clock.now(),
            retry_of: None,
            placement: Default::default(),
            canary: None,
        }
    }

    /// Begins a process on the state folder: what a start of the program does, with a journal that may be spoilt.
    pub fn begin(&self, journal: impl FnOnce(Store, CancellationToken) -> Arc<dyn Journal>) -> Life {
        let runtime = runtime();
        let inside = runtime.enter();
        let store = Store::open(&self.folder.path().join("state")).unwrap();
        let vault = Vault::new(self.settings.vault.clone());
        let token = muster::clients::vault::plain(&self.settings.netbox.token).unwrap();
        let netbox = NetBox::new(&self.settings.netbox, token).unwrap();
        let instances = self.settings.ironic.iter();
        let ironic = instances.map(|(name, i)| (name.clone(), Ironic::new(name, i, &vault).unwrap())).collect();
        let clients = Clients { netbox, ironic };
        let observers: Vec<NodeObserver> = self
            .settings
            .ironic
            .iter()
            .map(|(name, i)| NodeObserver::new(clients.ironic[name].clone(), store.clone(), i.poll))
            .collect();
        let env = Arc::new(Env {
            settings: Arc::new(self.settings.clone()),
            vault,
            store: store.clone(),
            refresh_nodes: tokio::sync::Notify::new(),
            clients,
        });
        let killed = CancellationToken::new();
        let engine = Engine::with(Parts {
            journal: journal(store.clone(), killed.clone()),
            dispatch: Arc::new(Mortal { hands: Registry(Arc::clone(&env)), killed: killed.clone() }),
            workflows: Workflows::all(),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            limits: Limits { runs: 10, activities: 10, ..Limits::default() },
        })
        .unwrap();
        drop(inside);
        let cancel = killed.clone();
        runtime.spawn(async move { run_all(observers, cancel, &env.refresh_nodes, || {}).await });
        Life { runtime, engine, store, killed }
    }

    /// A process whose journal takes everything.
    pub fn begin_sound(&self) -> Life {
        self.begin(|store, _| Arc::new(store))
    }

    /// What is true at the site in the end, less times and the names that servers gave.
    pub fn end_state(&self, life: &Life) -> Value {
        let world = self.lab.world();
        let state = world.lock();
        let device = state.records.device_named(HOST).unwrap();
        let tags: Vec<&str> = device.tags.iter().map(|tag| state.records.tags[tag].slug.as_str()).collect();
        let machine = &state.machines[HOST];
        let mut settings = serde_json::to_value(BmcSettings::at(machine, state.now)).unwrap();
        for passing in ["ntp_next", "tasks", "logins"] {
            settings.as_object_mut().unwrap().remove(passing);
        }
        let node = state.ironic.node_named(HOST);
        let fields = |fields: &Map<String, Value>| {
            let mut fields = fields.clone();
            fields.retain(|key, _| !key.ends_with("_at"));
            Value::Object(fields)
        };
        let node = node.map(|node| {
            let mut node_fields = fields(&node.fields);
            // The port of the lab's BMCs is another each time.
            node_fields["driver_info"]["redfish_address"] = machine.bmc.address.to_string().into();
            node_fields["driver_internal_info"] = Value::Null;
            let mut ports: Vec<Value> = (state.ironic.ports.values())
                .map(|port| json!({"address": port.address, "grouped": port.portgroup.is_some(), "fields": fields(&port.fields)}))
                .collect();
            ports.sort_by_key(Value::to_string);
            let groups: Vec<Value> = state.ironic.portgroups.values().map(|group| fields(&group.fields)).collect();
            json!({
                "nodes": state.ironic.nodes.len(), "state": node.state.as_str(), "maintenance": node.in_maintenance(),
                "fields": node_fields, "ports": ports, "portgroups": groups,
            })
        });
        let proven = life
            .store
            .proof(HOST)
            .unwrap()
            .map(|proof| state.ironic.node_named(HOST).is_some_and(|node| node.uuid == proof.node.0));
        json!({
            "device": {"status": device.status, "tags": tags, "fields": device.custom_fields},
            "power": machine.power.on, "boots": machine.boots, "resets": machine.bmc.resets, "bmc": settings,
            "accounts": machine.bmc.accounts.keys().collect::<Vec<_>>(),
            "dhcp": self.lab.dhcp_host().files(), "dhcp_runs": self.lab.dhcp_host().is_running(),
            "node": node, "proven": proven,
        })
    }

    pub fn ledger(&self) -> Vec<Entry> {
        self.lab.ledger()
    }
}

/// A site whose [`HOST`] has a BMC of a vendor, with odd habits.
pub fn of_vendor(vendor: Vendor, quirks: &[Quirk]) -> Site {
    Site::start(|scenario| {
        scenario.types.values_mut().for_each(|model| model.bmc = vendor);
        // Long enough to be seen by a poll of a busy machine.
        scenario.timing.bmc_away_s = 300.0;
        scenario.hosts[0].bmc_quirks = quirks.iter().copied().collect();
    })
}

/// What a vendor's tree keeps under a name, where that is a list.
pub fn kept(machine: &Machine, name: &str) -> Vec<Value> {
    let word = format!("{:?}", machine.bmc.vendor).to_lowercase();
    machine.bmc.settings.get(&word).and_then(|kept| kept[name].as_array().cloned()).unwrap_or_default()
}

/// The boot options that are on, or will be from the next boot on: those of NICs, and all others. An XCC has classes instead;
/// `None`: this vendor's are not touched.
pub fn bootable_now_and_next(machine: &Machine) -> Option<[(usize, usize); 2]> {
    match machine.bmc.vendor {
        Vendor::Supermicro => None,
        Vendor::Dell | Vendor::Ami => Some([bootable(machine); 2]),
        Vendor::Lenovo => {
            let kept = &machine.bmc.settings["lenovo"];
            let of = |name: &str| {
                let named = |word: &str| kept[name].as_array().is_none_or(|all| all.iter().any(|class| class == word));
                (usize::from(named("Network")), usize::from(named("Hard Disk")))
            };
            // Without a next order the one in force stays.
            Some([of("classes"), of("classes_next")])
        }
    }
}

/// The boot options that are on, or will be from the next boot on: those of NICs, and all others.
pub fn bootable(machine: &Machine) -> (usize, usize) {
    let on = |option: &&Value| option["next"].as_bool().or(option["enabled"].as_bool()) == Some(true);
    let is_nic =
        |option: &Value| option["nic"].is_string() || option["path"].as_str().is_some_and(|path| path.contains("MAC("));
    let options = kept(machine, "options");
    let on: Vec<&Value> = options.iter().filter(on).collect();
    let nics = on.iter().filter(|option| is_nic(option)).count();
    (nics, on.len() - nics)
}

/// One process on a site: an engine with all that it needs.
pub struct Life {
    runtime: Runtime,
    pub engine: Engine,
    pub store: Store,
    killed: CancellationToken,
}

impl Life {
    pub fn submit(&self, request: EnrollRequest) -> RunId {
        let run = RunId(uuid::Uuid::now_v7());
        assert_eq!(self.runtime.block_on(self.store.submit(run, request)).unwrap(), Submit::Accepted);
        self.engine.launch(run);
        run
    }

    pub fn resume(&self) -> usize {
        self.runtime.block_on(self.engine.resume_all()).unwrap()
    }

    pub fn cancel(&self, run: RunId) -> bool {
        self.runtime.block_on(self.engine.cancel(run, "eve")).is_ok()
    }

    /// Waits until a run has ended or the process was killed; `None`: neither within the time.
    pub fn wait(&self, run: RunId, limit: Duration) -> Option<Ended> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            if self.killed.is_cancelled() {
                return Some(Ended::Killed);
            }
            // The row first: to read the whole journal again and again would cost more than the run.
            if !self.store.run(run).unwrap().status.is_active()
                && let Some(outcome) = outcome(&self.store.records(run).unwrap())
            {
                return Some(Ended::Run(outcome));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    pub fn is_killed(&self) -> bool {
        self.killed.is_cancelled()
    }

    /// Nothing of it is left when this returns.
    pub fn end(self) {
        self.killed.cancel();
        self.runtime.block_on(self.engine.shutdown());
        self.runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// What became of a run.
#[derive(Debug)]
pub enum Ended {
    Run(Outcome),
    Killed,
}

/// How a run ended, where it did.
pub fn outcome(records: &[RunRecord]) -> Option<Outcome> {
    records.iter().rev().find_map(|record| match &record.body {
        Body::Journal(Event::Finished { outcome }) => Some(outcome.clone()),
        _ => None,
    })
}

/// Hands that stop where they are when the process is killed: what they were about is dropped at its next await, with its
/// connections.
struct Mortal {
    hands: Registry,
    killed: CancellationToken,
}

impl Dispatch for Mortal {
    fn run(&self, name: &str, input: Value, call: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        let (work, killed) = (self.hands.run(name, input, call), self.killed.clone());
        Box::pin(async move {
            tokio::select! {
                biased;
                () = killed.cancelled() => Err(Failure::new(FailureCode::StoreFailed, Phase::Bmc, "killed", "-").final_now()),
                outcome = work => outcome,
            }
        })
    }
}

/// Writes that must not happen twice, less the names that servers gave, with their number. The DHCP service is none of
/// them: where it is not known whether it was restarted after the upload, it is restarted again.
pub fn once_only(ledger: &[Entry]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in ledger.iter().filter(|entry| entry.write) {
        let creates = entry.method == "POST" && !entry.path.contains("/traits");
        let sets_off = ["/states/provision", "/states/power"].iter().any(|part| entry.path.contains(part));
        if creates || sets_off {
            let target = entry.body.as_ref().and_then(|body| body["target"].as_str()).unwrap_or_default();
            let key = format!("{} {} {target}", entry.method, plain(&entry.path));
            *counts.entry(key).or_insert(0) += 1;
        }
    }
    counts
}

/// A path without what differs from one lab to the next.
pub fn plain(path: &str) -> String {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let part = |part: &str| if part.parse::<uuid::Uuid>().is_ok() { "UUID".to_owned() } else { part.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}
