//! Joins store, clients, engine and observers into the one thing that console and commands talk to.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use jiff::Timestamp;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::feed::FeedEvent;
use super::keep::keep;
use super::lead::{Office, Role};
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
use crate::engine::EngineError;
use crate::inventory::wiring::WiringObserver;
use crate::inventory::{ironic as nodes, netbox as devices};
use crate::store::{Lead, LeadError, Store, StoreError};

/// The application on one state folder. Cheap to clone. Any number of processes may have one: the one that holds the
/// folder's lock leads, and the others follow it and take over when it is gone.
#[derive(Clone)]
pub struct App {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) settings: Arc<Settings>,
    pub(super) rules: Rules,
    pub(super) store: Store,
    pub(super) runs: Runs,
    pub(super) env: Arc<Env>,
    pub(super) office: Arc<Office>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

/// How a process takes part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opening {
    /// In whose name it leads: others are told.
    pub user: Option<String>,
    /// It never leads, but only looks and submits.
    pub aside: bool,
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
    #[error("run {} has ended already", .0.short())]
    RunEnded(RunId),
    /// What the process that leads answered.
    #[error("{0}")]
    Told(String),
    #[error(
        "{leader} leads and does not answer; what was asked is in the store and is carried out when it goes on. It may be \
         stopped: `kill -CONT {pid}` lets it go on, and when it is ended another process takes over"
    )]
    NoAnswer { leader: String, pid: String },
}

impl App {
    /// Opens the state folder: leads it, with every active run resumed, or follows the process that does.
    pub async fn open(settings: Settings, state_dir: &Path) -> Result<App, OpenError> {
        App::open_as(settings, state_dir, Opening::default()).await
    }

    /// Opens the state folder to take part in it in this way.
    pub async fn open_as(settings: Settings, state_dir: &Path, opening: Opening) -> Result<App, OpenError> {
        let settings = Arc::new(settings);
        let store = Store::open(state_dir)?;
        let vault = Vault::new(settings.vault.clone());
        let clients = clients(&settings, &vault).await?;
        let observed = Arc::new(devices::Observer::new(clients.netbox.clone(), store.clone(), &settings.netbox));
        let cadences = &settings.netbox.cadences;
        let wiring = WiringObserver::new(clients.netbox.clone(), store.clone(), cadences, Arc::clone(&observed));
        let env = Arc::new(Env {
            settings: Arc::clone(&settings),
            vault,
            store: store.clone(),
            refresh_nodes: Notify::new(),
            clients,
        });
        // Before anything is resumed: nothing of it is missed.
        let watcher = store.watcher()?;
        let office = Arc::new(Office {
            folder: state_dir.to_owned(),
            user: opening.user,
            candidate: Mutex::new(None),
            env: Arc::clone(&env),
            devices: observed,
            wiring: Arc::new(wiring),
            feed: broadcast::Sender::new(4096),
            role: Mutex::new(if opening.aside { Role::Aside } else { Role::Following { leader: None } }),
            helm: Mutex::new(None),
            told: Arc::default(),
        });
        if !opening.aside {
            office.try_lead().await?;
        }
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        // The task holds the office and not the application, which could then never be dropped.
        tasks.spawn(keep(Arc::clone(&office), watcher, !opening.aside, stop.clone()));
        Ok(App {
            inner: Arc::new(Inner {
                rules: settings.eligibility.clone(),
                settings,
                runs: Runs::of(store.clone()),
                store,
                env,
                office,
                stop,
                tasks: Mutex::new(tasks),
            }),
        })
    }

    /// Everything that changes, as it changes, whichever process changes it: records of runs, the fleet, what systems
    /// were heard to say, who leads. Listen first, then read: nothing is lost between the two.
    pub fn feed(&self) -> broadcast::Receiver<FeedEvent> {
        self.inner.office.feed.subscribe()
    }

    /// What this process is to its state folder now. [`FeedEvent::Role`] tells when it changes.
    pub fn role(&self) -> Role {
        self.inner.office.role()
    }

    /// Whether any process leads the state folder now. An unusable lock is led by nobody.
    pub fn is_led(&self) -> bool {
        Lead::is_held(&self.inner.office.folder).unwrap_or(false)
    }

    /// Since when this process leads; `None`: it doesn't.
    pub fn leads_since(&self) -> Option<Timestamp> {
        self.inner.office.leads_since()
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Stops observing and working, then gives the lead back. Runs stay in the journal and go on with the next leader.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        // First of all the task that would take the lead again.
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        self.inner.office.step_down().await;
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The clients that live as long as the program. A secret that is missing is said at once, and not by the first run.
pub(super) async fn clients(settings: &Settings, vault: &Vault) -> Result<Clients, OpenError> {
    let token = vault.resolve(&settings.netbox.token).await.map_err(|source| OpenError::Secret {
        what: format!("the NetBox token ({})", settings.netbox.token),
        source,
    })?;
    let netbox = NetBox::new(&settings.netbox, token)
        .map_err(|source| OpenError::Client { what: format!("NetBox at {}", settings.netbox.url), source })?
        .renewing(vault, &settings.netbox.token);
    let mut ironic = IndexMap::new();
    for (name, instance) in &settings.ironic {
        let client = Ironic::new(name, instance, vault)
            .map_err(|source| OpenError::Client { what: format!("Ironic '{name}' at {}", instance.place()), source })?;
        ironic.insert(name.clone(), client);
    }
    Ok(Clients { netbox, ironic })
}
