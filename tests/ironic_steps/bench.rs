//! A lab with a few hosts, and what an activity needs to act on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use muster::activities::env::{ActivityCx, Env};
use muster::activities::ironic;
use muster::clients::Clients;
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::domain::event::Observation;
use muster::domain::failure::Failure;
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::lab::Lab;
use muster::lab::faults::Fault;
use muster::lab::ledger::{Entry, System};
use muster::lab::scenario::Scenario;
use muster::store::Store;
use muster::workflows::defs::{Half, NodeTarget, PreludeIn, PreludeOut, Step, Target};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Lab seconds in a real one: a clean takes a second.
const SPEED: f64 = 100.0;

/// A lab and an activity's world on it.
pub struct Bench {
    pub lab: Lab,
    pub env: Arc<Env>,
    observed: Arc<Mutex<Vec<Observation>>>,
    folder: TempDir,
}

/// What differs from one lab to the next.
#[derive(Default)]
pub struct Setup<'a> {
    /// Keys of each host beside name, site, rack, type and role.
    pub hosts: &'a [(&'a str, &'a str)],
    /// Keys of `[ironic]`.
    pub ironic: &'a str,
    /// Keys of the context's `ironic_settings` beside the usual.
    pub settings: &'a str,
}

impl Bench {
    /// One host in `staged`, without a node.
    pub async fn fresh() -> Bench {
        Self::with(Setup { hosts: &[("gpu-1", "")], ..Default::default() }).await
    }

    /// One host whose node is in this state.
    pub async fn node_in(state: &str) -> (Bench, NodeUuid) {
        let keys = format!("node = \"{state}\"");
        let bench = Self::with(Setup { hosts: &[("gpu-1", &keys)], ..Default::default() }).await;
        let node = bench.node("gpu-1");
        (bench, node)
    }

    pub async fn with(setup: Setup<'_>) -> Bench {
        rustls::crypto::ring::default_provider().install_default().ok();
        let hosts: Vec<String> = setup
            .hosts
            .iter()
            .enumerate()
            .map(|(n, (name, keys))| {
                let comma = if keys.is_empty() { "" } else { ", " };
                format!(
                    "{{ name = \"{name}\", site = \"t1\", rack = \"R1\", unit = {}, type = \"small\", role = \"gpu\"{comma}{keys} }}",
                    40 - 2 * n
                )
            })
            .collect();
        let text = format!(
            "{}\n{}",
            format_args!("name = \"steps\"\nhosts = [{}]", hosts.join(", ")),
            include_str!("scenario.toml").replace("#IRONIC#", setup.ironic).replace("#SETTINGS#", setup.settings)
        );
        let lab = Lab::start(Scenario::parse(&text).unwrap(), SPEED).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config: PathBuf = lab.write_config(&folder.path().join("config")).unwrap();
        let settings = muster::config::load(&config).unwrap();
        let vault = Vault::new(settings.vault.clone());
        let token = vault.resolve(&settings.netbox.token).await.unwrap();
        let netbox = NetBox::new(&settings.netbox, token).unwrap();
        let ironic: IndexMap<String, Ironic> = settings
            .ironic
            .iter()
            .map(|(name, instance)| (name.clone(), Ironic::new(name, instance, &vault).unwrap()))
            .collect();
        let env = Arc::new(Env {
            settings: Arc::new(settings),
            vault,
            store: Store::open(&folder.path().join("state")).unwrap(),
            refresh_nodes: tokio::sync::Notify::new(),
            clients: Clients { netbox, ironic },
        });
        Bench { lab, env, observed: Arc::default(), folder }
    }

    pub fn cx(&self) -> ActivityCx {
        let observed = self.observed.clone();
        ActivityCx {
            env: self.env.clone(),
            run: RunId(uuid::Uuid::now_v7()),
            seq: 1,
            attempt: 1,
            stop: tokio_util::sync::CancellationToken::new(),
            sink: Arc::new(move |o| observed.lock().unwrap().push(o)),
        }
    }

    pub fn ironic(&self) -> &Ironic {
        &self.env.clients.ironic["lab"]
    }

    pub fn target(&self, host: &str) -> Target {
        let id = self.lab.world().lock().records.device_named(host).map_or(999, |d| d.id);
        Target { host: host.into(), netbox_id: id, site: "t1".into(), ironic: "lab".into() }
    }

    /// The UUID of a host's node in the lab.
    pub fn node(&self, host: &str) -> NodeUuid {
        NodeUuid(self.lab.world().lock().ironic.node_named(host).unwrap().uuid)
    }

    pub fn at(&self, host: &str, node: NodeUuid) -> NodeTarget {
        NodeTarget { target: self.target(host), node, phase: Phase::Inspection }
    }

    pub async fn prelude(&self, half: Half) -> Result<PreludeOut, Failure> {
        self.prelude_for("gpu-1", half, None).await
    }

    pub async fn prelude_for(
        &self,
        host: &str,
        half: Half,
        node_uuid: Option<NodeUuid>,
    ) -> Result<PreludeOut, Failure> {
        ironic::prelude(&self.cx(), PreludeIn { target: self.target(host), half, node_uuid }).await
    }

    /// The prelude of the inspection half, which ends ready.
    pub async fn ready(&self) -> NodeUuid {
        match self.prelude(Half::Inspection).await.unwrap() {
            PreludeOut::Ready { node, .. } => node,
            other => panic!("{other:?}"),
        }
    }

    /// Looks until the node is in this state and not held, as the workflow does.
    pub async fn until(&self, node: NodeUuid, state: ProvisionState) {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let look = ironic::look(&self.cx(), self.at("gpu-1", node)).await.unwrap();
            if look.state == state && look.reservation.is_none() {
                return;
            }
            assert!(Instant::now() < deadline, "waited for '{state}', is {look:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// From nothing to `manageable`.
    pub async fn managed(&self) -> NodeUuid {
        let node = self.ready().await;
        let at = || self.at("gpu-1", node);
        changed(ironic::networking(&self.cx(), at()).await);
        changed(ironic::manage(&self.cx(), at()).await);
        self.until(node, ProvisionState::Manageable).await;
        node
    }

    /// From nothing to a fresh inventory.
    pub async fn inspected(&self) -> NodeUuid {
        let node = self.managed().await;
        changed(ironic::inspect(&self.cx(), self.at("gpu-1", node)).await);
        self.until(node, ProvisionState::Manageable).await;
        node
    }

    pub fn fault(&self, fault: Value) {
        let fault: Fault = serde_json::from_value(fault).unwrap();
        self.lab.world().add_fault(fault);
    }

    /// A rule that spoils answers of Ironic.
    pub fn spoil(&self, method: &str, path: &str, mut how: Value) {
        how["kind"] = json!("http");
        how["system"] = json!("ironic");
        how["method"] = json!(method);
        how["path"] = json!(path);
        self.fault(how);
    }

    /// Changes a node behind everybody's back.
    pub fn edit(&self, host: &str, f: impl FnOnce(&mut muster::lab::ironic::Node)) {
        let mut state = self.lab.world().lock();
        let uuid = state.ironic.node_named(host).unwrap().uuid;
        f(state.ironic.nodes.get_mut(&uuid).unwrap());
    }

    /// A field of a node, as the lab has it.
    pub fn field(&self, host: &str, key: &str) -> Value {
        let state = self.lab.world().lock();
        state.ironic.node_named(host).unwrap().fields.get(key).cloned().unwrap_or_default()
    }

    /// Changes a field of the vault.
    pub fn vault_says(&self, item: &str, field: &str, value: &str) {
        let path = self.folder.path().join("config/vault.toml");
        let mut vault: toml::Table = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        vault[item][field] = value.into();
        std::fs::write(path, vault.to_string()).unwrap();
    }

    pub fn reset_ledger(&self) {
        self.lab.world().ledger().reset();
        self.observed.lock().unwrap().clear();
    }

    /// Writes to Ironic since the last reset: `PUT /v1/…`, less the node's UUID.
    pub fn writes(&self) -> Vec<String> {
        self.entries().into_iter().filter(|e| e.write).map(|e| said(&e)).collect()
    }

    /// Writes that were carried out.
    pub fn good_writes(&self) -> Vec<String> {
        let good = |e: &Entry| e.write && e.status.is_some_and(|s| s < 300);
        self.entries().into_iter().filter(good).map(|e| said(&e)).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        self.lab.ledger().into_iter().filter(|e| e.system == System::Ironic).collect()
    }

    pub fn observed(&self) -> Vec<Observation> {
        self.observed.lock().unwrap().clone()
    }

    /// What the change list says: `what: before → after`.
    pub fn changes(&self) -> Vec<String> {
        let wrote = |o: Observation| match o {
            Observation::Wrote { what, before, after, .. } => Some(format!("{what}: {before} → {after}")),
            _ => None,
        };
        self.observed().into_iter().filter_map(wrote).collect()
    }

    pub fn warnings(&self) -> Vec<String> {
        let warned = |o: Observation| match o {
            Observation::Warned { message, .. } => Some(message),
            _ => None,
        };
        self.observed().into_iter().filter_map(warned).collect()
    }
}

fn said(entry: &Entry) -> String {
    let (path, query) =
        entry.path.split_once('?').map_or((entry.path.as_str(), String::new()), |(p, q)| (p, format!("?{q}")));
    let path = path.split('/').map(|p| if p.parse::<uuid::Uuid>().is_ok() { "ID" } else { p });
    let path = path.collect::<Vec<_>>().join("/");
    let target = entry.body.as_ref().and_then(|b| b["target"].as_str()).map_or(String::new(), |t| format!(" {t}"));
    format!("{} {path}{query}{target}", entry.method)
}

/// A step that changed something.
pub fn changed(step: Result<Step, Failure>) -> String {
    match step.unwrap() {
        Step::Done { changed: true, note } => note,
        other => panic!("{other:?}"),
    }
}

/// A step that found everything as it should be.
pub fn unchanged(step: Result<Step, Failure>) -> String {
    match step.unwrap() {
        Step::Done { changed: false, note } => note,
        other => panic!("{other:?}"),
    }
}
