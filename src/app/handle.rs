//! Joins store, clients, engine and observers into the one thing that console and commands talk to.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use jiff::Timestamp;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::feed::{self, FeedEvent};
use super::runs::Runs;
use crate::activities::env::Env;
use crate::clients::Clients;
use crate::clients::http::HttpError;
use crate::clients::ironic::Ironic;
use crate::clients::netbox::NetBox;
use crate::clients::vault::{Vault, VaultError};
use crate::config::settings::Settings;
use crate::domain::eligibility::Rules;
use crate::domain::ids::RunId;
use crate::engine::{Engine, EngineError, SystemClock};
use crate::inventory::{ironic as nodes, netbox as devices};
use crate::store::{Lead, LeadError, Store, StoreError};

/// The application on one state folder. Cheap to clone; the process that has one leads the folder's engine.
#[derive(Clone)]
pub struct App {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) settings: Arc<Settings>,
    pub(super) rules: Rules,
    pub(super) store: Store,
    pub(super) runs: Runs,
    pub(super) engine: Engine,
    pub(super) env: Arc<Env>,
    devices: Arc<devices::Observer>,
    feed: broadcast::Sender<FeedEvent>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
    /// Given back when the last handle goes.
    _lead: Lead,
}

/// Why the application could not be opened. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Lead(#[from] LeadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{what}: {source}")]
    Secret { what: String, source: VaultError },
    #[error("{what}: {source}")]
    Client { what: String, source: HttpError },
    #[error("the engine has no thread to run on: {0}")]
    Threads(std::io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why something that was asked could not be done.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Devices(#[from] devices::ObserveError),
    #[error("{0}")]
    Nodes(#[from] nodes::ObserveError),
    #[error("no run '{0}'")]
    NoRun(String),
    #[error("'{0}' fits more than one run")]
    AmbiguousRun(String),
    #[error("the journal of run {0} does not begin with a submission: there is nothing to tell")]
    Untold(RunId),
    #[error("run {0} has ended already")]
    RunEnded(RunId),
}

impl App {
    /// Takes the lead of the state folder, opens the store, makes the clients, resumes runs, starts to observe.
    pub async fn open(settings: Settings, state_dir: &Path) -> Result<App, OpenError> {
        let settings = Arc::new(settings);
        let lead = Lead::take(state_dir)?;
        let store = Store::open(state_dir)?;
        let vault = Vault::new(settings.vault.clone());
        let clients = clients(&settings, &vault)?;
        let observed = Arc::new(devices::Observer::new(clients.netbox.clone(), store.clone(), &settings.netbox));
        let env = Arc::new(Env {
            settings: Arc::clone(&settings),
            vault,
            store: store.clone(),
            refresh_nodes: Notify::new(),
            clients,
        });
        let engine = Engine::start(&env, Arc::new(SystemClock::default())).map_err(OpenError::Threads)?;
        let app = App {
            inner: Arc::new(Inner {
                rules: Rules::for_sites(settings.sites.keys().cloned()),
                settings,
                runs: Runs::of(store.clone()),
                store,
                engine,
                env,
                devices: observed,
                feed: broadcast::Sender::new(4096),
                stop: CancellationToken::new(),
                tasks: Mutex::new(JoinSet::new()),
                _lead: lead,
            }),
        };
        // Listeners first: what the resumed runs say at once is not lost to the feed.
        app.spawn_observers();
        let resumed = app.inner.engine.resume_all().await?;
        if resumed > 0 {
            tracing::info!(runs = resumed, "runs of before go on");
        }
        Ok(app)
    }

    /// Everything that changes, as it changes: records of runs, the fleet, what systems were heard to say.
    pub fn feed(&self) -> broadcast::Receiver<FeedEvent> {
        self.inner.feed.subscribe()
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Reads NetBox and every Ironic now.
    pub async fn sync_now(&self) -> Result<(), AppError> {
        self.inner.devices.sync_full().await?;
        for observer in self.node_observers() {
            observer.sync().await?;
        }
        Ok(())
    }

    /// Ends a run at its next await (G9).
    pub async fn cancel(&self, run: RunId, by: &str) -> Result<(), AppError> {
        if !self.inner.store.run(run)?.status.is_active() {
            return Err(AppError::RunEnded(run));
        }
        Ok(self.inner.engine.cancel(run, by).await?)
    }

    /// Stops observing and working. Runs stay in the journal and go on at the next start.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.engine.shutdown().await;
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
    }

    fn node_observers(&self) -> Vec<nodes::NodeObserver> {
        let instances = self.inner.env.clients.ironic.iter();
        instances
            .filter_map(|(name, ironic)| {
                let poll = self.inner.settings.ironic.get(name)?.poll;
                Some(nodes::NodeObserver::new(ironic.clone(), self.inner.store.clone(), poll))
            })
            .collect()
    }

    fn spawn_observers(&self) {
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = &self.inner.stop;
        // The tasks hold what they need and not the application itself, which could then never be dropped.
        let (observer, cancel) = (Arc::clone(&self.inner.devices), stop.clone());
        tasks.spawn(async move { observer.run(cancel, || {}).await });
        let (observers, env, cancel) = (self.node_observers(), Arc::clone(&self.inner.env), stop.clone());
        tasks.spawn(async move { nodes::run_all(observers, cancel, &env.refresh_nodes, || {}).await });
        feed::spawn(&mut tasks, &self.inner.store, &self.inner.engine, &self.inner.feed, stop);
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The clients that live as long as the program. A secret that is missing is said at once, and not by the first run.
pub(super) fn clients(settings: &Settings, vault: &Vault) -> Result<Clients, OpenError> {
    let token = vault.resolve(&settings.netbox.token).map_err(|source| OpenError::Secret {
        what: format!("the NetBox token ({})", settings.netbox.token),
        source,
    })?;
    let netbox = NetBox::new(&settings.netbox, token)
        .map_err(|source| OpenError::Client { what: format!("NetBox at {}", settings.netbox.url), source })?;
    let mut ironic = IndexMap::new();
    for (name, instance) in &settings.ironic {
        let client = Ironic::new(name, instance, vault)
            .map_err(|source| OpenError::Client { what: format!("Ironic '{name}' at {}", instance.url), source })?;
        ironic.insert(name.clone(), client);
    }
    Ok(Clients { netbox, ironic })
}
