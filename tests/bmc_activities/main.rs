//! The BMC's part of an enrollment against the lab: what is asked, what is written, and what is left alone.

mod configure;
#[path = "../support/connect.rs"]
mod connect_server;
mod ipmi_login;
mod links;
mod login;
mod monitoring_user;
mod password;
mod refused;
mod reset;
mod vaults;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use muster::activities::env::{ActivityCx, Env};
use muster::clients::Clients;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings as config;
use muster::domain::event::Observation;
use muster::domain::ids::RunId;
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::{Entry, System};
use muster::lab::machine::Machine;
use muster::lab::scenario::Scenario;
use muster::store::Store;
use muster::workflows::defs::{BmcPart, ConfigureBmcIn, PrepareBmcIn, Target};
use tokio_util::sync::CancellationToken;

/// The host of these tests.
pub const HOST: &str = "gpu-b07-29";

/// A lab with one host, and the context of an activity on it.
pub struct Rig {
    pub lab: Lab,
    pub cx: ActivityCx,
    pub observed: Arc<Mutex<Vec<Observation>>>,
    vault: PathBuf,
    _folder: tempfile::TempDir,
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::of(|_| {}).await
    }

    /// A lab whose scenario is changed before it starts.
    pub async fn of(change: impl FnOnce(&mut Scenario)) -> Rig {
        Rig::with(change, |_| {}).await
    }

    /// The same with other settings than the lab writes.
    pub async fn with(change: impl FnOnce(&mut Scenario), settle: impl FnOnce(&mut config::Settings)) -> Rig {
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        scenario.faults.clear();
        change(&mut scenario);
        let lab = Lab::start(scenario, 60.0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let etc = folder.path().join("etc");
        let mut settings = muster::config::load(&lab.write_config(&etc).unwrap()).unwrap();
        settle(&mut settings);
        let settings = Arc::new(settings);
        let vault = Vault::new(settings.vault.clone());
        let token = vault.resolve(&settings.netbox.token).await.unwrap();
        let env = Env {
            settings: settings.clone(),
            vault,
            store: Store::open(&folder.path().join("state")).unwrap(),
            refresh_nodes: tokio::sync::Notify::new(),
            clients: Clients { netbox: NetBox::new(&settings.netbox, token).unwrap(), ironic: Default::default() },
        };
        let observed = Arc::new(Mutex::new(vec![]));
        let sink = {
            let observed = observed.clone();
            Arc::new(move |observation| observed.lock().unwrap().push(observation))
        };
        let (run, stop) = (RunId(uuid::Uuid::now_v7()), CancellationToken::new());
        let cx = ActivityCx { env: Arc::new(env), run, seq: 1, attempt: 1, stop, sink };
        Rig { lab, cx, observed, vault: etc.join("vault.toml"), _folder: folder }
    }

    /// The context of another activity of another run on the same installation.
    pub fn next_run(&self) -> ActivityCx {
        ActivityCx { run: RunId(uuid::Uuid::now_v7()), ..self.cx.clone() }
    }

    pub fn target(&self) -> Target {
        let world = self.lab.world().lock();
        let device = world.records.device_named(HOST).unwrap();
        let site = world.records.sites[&device.site].slug.clone();
        Target { host: HOST.into(), netbox_id: device.id, site, ironic: "lab".into() }
    }

    pub fn prepare_in(&self, force_restart: bool) -> PrepareBmcIn {
        PrepareBmcIn { target: self.target(), force_restart }
    }

    pub fn configure_in(&self) -> ConfigureBmcIn {
        ConfigureBmcIn { target: self.target(), vendor: "Supermicro".into(), restrict_boot: true, part: BmcPart::Whole }
    }

    pub fn machine(&self) -> Machine {
        self.lab.world().machine(HOST).unwrap()
    }

    pub fn settings(&self) -> Settings {
        Settings::at(&self.machine(), self.lab.world().now())
    }

    pub fn change_machine(&self, change: impl FnOnce(&mut Machine)) {
        self.lab.world().with_machine(HOST, |machine, _| change(machine)).unwrap();
    }

    /// Requests to the BMC since the last reset of the ledger.
    pub fn asked(&self) -> Vec<Entry> {
        self.lab.world().ledger().select(|entry| entry.system == System::Bmc)
    }

    /// Writes to the BMC: method and path.
    pub fn writes(&self) -> Vec<String> {
        self.asked().iter().filter(|e| e.write).map(|e| format!("{} {}", e.method, e.path)).collect()
    }

    pub fn forget_requests(&self) {
        self.lab.world().ledger().reset();
    }

    /// The BMC answers requests otherwise.
    pub fn rule(&self, rule: HttpRule) {
        self.lab.world().add_fault(Fault::Http(HttpRule { system: Some(System::Bmc), ..rule }));
    }

    /// What was changed, as the change list of the run has it.
    pub fn changes(&self) -> Vec<String> {
        let observed = self.observed.lock().unwrap();
        let wrote = observed.iter().filter_map(|observation| match observation {
            Observation::Wrote { what, before, after, .. } => Some(format!("{what}: {before} -> {after}")),
            _ => None,
        });
        wrote.collect()
    }

    /// Sets a field of the vault, or takes the whole item out.
    pub fn vault(&self, item: &str, field: Option<(&str, &str)>) {
        let mut table: toml::Table = std::fs::read_to_string(&self.vault).unwrap().parse().unwrap();
        match field {
            Some((name, value)) => {
                table[item].as_table_mut().unwrap().insert(name.into(), value.into());
            }
            None => {
                table.remove(item);
            }
        }
        // Written in place: the file keeps its mode.
        std::fs::write(&self.vault, table.to_string()).unwrap();
    }

    /// A field of the vault.
    pub fn secret(&self, item: &str, field: &str) -> String {
        self.maybe_secret(item, field).unwrap_or_else(|| panic!("the vault has no '{field}' of '{item}'"))
    }

    pub fn maybe_secret(&self, item: &str, field: &str) -> Option<String> {
        let table: toml::Table = std::fs::read_to_string(&self.vault).unwrap().parse().unwrap();
        Some(table.get(item)?.get(field)?.as_str()?.to_owned())
    }

    /// As if the time had passed for which wrong logins count.
    pub async fn forget_wrong_tries(&self) {
        let key = format!("bmc.wrong_tries.{}", self.target().netbox_id);
        self.cx.env.store.put_meta(&key, "").await.unwrap();
        self.change_machine(|machine| {
            let mut settings = Settings::of(machine);
            for logins in settings.logins.values_mut() {
                (logins.wrong, logins.locked_until_s) = (0, None);
            }
            settings.keep(machine);
        });
    }
}
