//! Who leads the state folder: this process with engine and observers, or another one, which is waited for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::beside::spawn_beside;
use super::feed::FeedEvent;
use super::handle::{AppError, OpenError};
use super::learn::learn;
use super::webhooks::{Told, Webhooks};
use crate::activities::env::Env;
use crate::domain::ids::RunId;
use crate::engine::{Engine, SystemClock};
use crate::inventory::wiring::WiringObserver;
use crate::inventory::{ironic as nodes, netbox as devices};
use crate::store::{Candidate, Lead, LeadError, Leader, Store, StoreError};

/// What this process is to its state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Role {
    /// It runs the engine and reads NetBox and Ironic.
    Leading,
    /// Another process does: what is asked here goes to it through the store, and what it does is seen here. `None`: it
    /// has not written down who it is.
    Following { leader: Option<Leader> },
    /// It never leads, whether anybody does or not: it looks, submits and leaves.
    Aside,
}

/// The place of the leader, as one process sees it.
pub(super) struct Office {
    pub(super) folder: PathBuf,
    /// In whose name this process leads.
    pub(super) user: Option<String>,
    /// This process, as long as it wants to lead and was not refused for another reason than that somebody does.
    pub(super) candidate: Mutex<Option<Candidate>>,
    pub(super) env: Arc<Env>,
    pub(super) devices: Arc<devices::Observer>,
    pub(super) wiring: Arc<WiringObserver>,
    pub(super) feed: broadcast::Sender<FeedEvent>,
    pub(super) role: Mutex<Role>,
    pub(super) helm: Mutex<Option<Helm>>,
    /// What was told of ended runs, however often the lead changed.
    pub(super) told: Told,
}

/// Engine, observers and the lock: there only while this process leads. Dropped in this order: the lock is given back
/// when nothing works any more.
pub(super) struct Helm {
    engine: Engine,
    since: Timestamp,
    observers: JoinSet<()>,
    webhooks: Webhooks,
    stop: CancellationToken,
    _lead: Lead,
}

impl Office {
    pub(super) fn role(&self) -> Role {
        locked(&self.role).clone()
    }

    pub(super) fn store(&self) -> &Store {
        &self.env.store
    }

    /// The engine, while this process leads.
    pub(super) fn engine(&self) -> Option<Engine> {
        locked(&self.helm).as_ref().map(|helm| helm.engine.clone())
    }

    pub(super) fn leads_since(&self) -> Option<Timestamp> {
        locked(&self.helm).as_ref().map(|helm| helm.since)
    }

    /// Takes the lead if nobody has it, and lets every active run go on. Only a lock that can't be used and an engine
    /// that doesn't start are errors: that another process leads is a role.
    pub(super) async fn try_lead(&self) -> Result<Role, OpenError> {
        match self.stand() {
            Ok(lead) => self.take_helm(lead).await?,
            Err(LeadError::Held { leader, .. }) => self.become_(Role::Following { leader: Some(leader) }),
            // It writes itself down a moment after it took the lock: who led before is not replaced by nobody.
            Err(LeadError::HeldByUnknown(_)) if matches!(self.role(), Role::Following { leader: Some(_) }) => {}
            Err(LeadError::HeldByUnknown(_)) => self.become_(Role::Following { leader: None }),
            Err(error) => return Err(error.into()),
        }
        Ok(self.role())
    }

    /// Tries to take the lock.
    fn stand(&self) -> Result<Lead, LeadError> {
        let mut candidate = locked(&self.candidate);
        let mut standing = match candidate.take() {
            Some(standing) => standing,
            None => Candidate::new(&self.folder)?,
        };
        let taken = standing.take(self.user.as_deref());
        *candidate = Some(standing);
        taken
    }

    async fn take_helm(&self, lead: Lead) -> Result<(), OpenError> {
        let engine = Engine::start(&self.env, Arc::new(SystemClock::default())).map_err(OpenError::Threads)?;
        let stop = CancellationToken::new();
        let (since, mut observers) = (Timestamp::now(), self.observe(&stop));
        observers.spawn(tell_trouble(engine.trouble(), self.feed.clone()));
        let webhooks = Webhooks::start(&self.env.settings.webhooks, &self.env.vault, &self.env.store, &self.told);
        let helm = Helm { engine: engine.clone(), since, observers, webhooks, stop, _lead: lead };
        // From here on what is submitted reaches the engine; what was submitted before is resumed below.
        *locked(&self.helm) = Some(helm);
        match engine.resume_all().await {
            Ok(resumed) => {
                tracing::info!(runs = resumed, "this process leads: active runs go on");
                self.become_(Role::Leading);
                Ok(())
            }
            Err(error) => {
                self.step_down().await;
                Err(error.into())
            }
        }
    }

    /// Stops to work, then gives the lead back. Runs stay in the journal and go on with the next leader.
    pub(super) async fn step_down(&self) {
        let helm = locked(&self.helm).take();
        let Some(Helm { engine, mut observers, webhooks, stop, _lead, .. }) = helm else { return };
        stop.cancel();
        engine.shutdown().await;
        observers.abort_all();
        while observers.join_next().await.is_some() {}
        // A command that leads only for its own runs tells of them before it leaves.
        webhooks.close().await;
    }

    /// Reads NetBox and every Ironic now, from this process.
    pub(super) async fn read_systems(&self) -> Result<(), AppError> {
        self.devices.sync_full().await?;
        for observer in self.node_observers() {
            observer.sync().await?;
        }
        Ok(())
    }

    fn become_(&self, role: Role) {
        let before = std::mem::replace(&mut *locked(&self.role), role.clone());
        if before != role {
            tracing::info!(?role, "who leads has changed");
            // Nobody may be listening yet: whoever comes asks for the role.
            self.feed.send(FeedEvent::Role(role)).ok();
        }
    }

    fn node_observers(&self) -> Vec<nodes::NodeObserver> {
        let instances = self.env.clients.ironic.iter();
        instances
            .filter_map(|(name, ironic)| {
                let poll = self.env.settings.ironic.get(name)?.poll;
                Some(nodes::NodeObserver::new(ironic.clone(), self.env.store.clone(), poll))
            })
            .collect()
    }

    fn observe(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let notifier = spawn_beside(&self.env, &self.devices, &self.wiring, stop, &mut tasks);
        let told = move || notifier.iter().for_each(|notifier| notifier.look());
        let (observer, cancel, look) = (Arc::clone(&self.devices), stop.clone(), told.clone());
        tasks.spawn(async move { observer.run(cancel, look).await });
        let (observer, cancel) = (Arc::clone(&self.wiring), stop.clone());
        tasks.spawn(async move { observer.run(cancel, told).await });
        tasks.spawn(learn(self.store().clone(), stop.clone()));
        let (observers, env, cancel) = (self.node_observers(), Arc::clone(&self.env), stop.clone());
        tasks.spawn(async move { nodes::run_all(observers, cancel, &env.refresh_nodes, || {}).await });
        tasks
    }
}

/// What the engine can't write down can't be read in the store by anybody: only this process tells of it.
async fn tell_trouble(mut trouble: watch::Receiver<Option<(RunId, StoreError)>>, feed: broadcast::Sender<FeedEvent>) {
    while trouble.changed().await.is_ok() {
        let now = trouble.borrow_and_update().clone();
        drop(feed.send(FeedEvent::StoreTrouble(now)));
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
