//! Plans enrollments: what a run of a host would read, write and wait for, as things stand now (G14).

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::batch::meant;
use super::handle::{App, AppError, OpenError, clients};
use super::submit::{SubmitError, request};
use crate::activities::env::Env;
use crate::clients::rehearsal::Rehearsal;
use crate::clients::vault::Vault;
use crate::config::settings::Settings;
use crate::domain::eligibility::Rules;
use crate::domain::plan::Plan;
use crate::domain::provision::ProvisionState;
use crate::domain::request::{EnrollParams, EnrollRequest};
use crate::engine::{Rehearsed, plan};
use crate::inventory::{ironic as nodes, netbox as devices};
use crate::store::{Store, StoreError};

/// Plans without an engine: it leads nothing and resumes no run, so it works beside the process that does.
pub struct Planner {
    pub(super) env: Arc<Env>,
    pub(super) rules: Rules,
}

impl Planner {
    /// Opens the store of a state folder and makes the clients. Nothing is asked yet but the vault, for the NetBox token.
    pub async fn open(settings: Settings, state_dir: &Path) -> Result<Planner, OpenError> {
        let settings = Arc::new(settings);
        let store = Store::open(state_dir)?;
        let vault = Vault::new(settings.vault.clone());
        let clients = clients(&settings, &vault).await?;
        let rules = settings.eligibility.clone();
        let env = Arc::new(Env { settings, vault, store, refresh_nodes: Notify::new(), clients });
        Ok(Planner { env, rules })
    }

    /// Reads NetBox and every Ironic now, as a submission does before it judges.
    pub async fn sync(&self) -> Result<(), AppError> {
        self.sync_devices().await?;
        let Env { settings, store, clients, .. } = &*self.env;
        for (name, ironic) in &clients.ironic {
            let Some(instance) = settings.ironic.get(name) else { continue };
            nodes::NodeObserver::new(ironic.clone(), store.clone(), instance.poll).sync().await?;
        }
        Ok(())
    }

    /// Reads NetBox's devices now.
    pub async fn sync_devices(&self) -> Result<(), AppError> {
        let Env { settings, store, clients, .. } = &*self.env;
        devices::Observer::new(clients.netbox.clone(), store.clone(), &settings.netbox).sync_full().await?;
        Ok(())
    }

    /// The plan of one host. Nothing is written anywhere.
    pub async fn plan(&self, host: &str, params: EnrollParams) -> Result<Plan, SubmitError> {
        Ok(self.rehearse(host, params).await?.plan)
    }

    /// The plan with the requests that it is made of.
    pub async fn rehearse(&self, host: &str, params: EnrollParams) -> Result<Rehearsed, SubmitError> {
        rehearse(&self.env, &self.rules, host, params).await
    }
}

impl App {
    /// The plan of one host, judged as a submission is. Nothing is written anywhere.
    pub async fn plan(&self, host: &str, params: EnrollParams) -> Result<Plan, SubmitError> {
        Ok(rehearse(&self.inner.env, &self.inner.rules, host, params).await?.plan)
    }
}

async fn rehearse(env: &Env, rules: &Rules, host: &str, params: EnrollParams) -> Result<Rehearsed, SubmitError> {
    let device = meant(&env.store, host)?;
    let request = request(&env.settings, rules, &device, params, "plan", Timestamp::now())?;
    let deployed = deployed(&env.store, &request)?;
    let rehearsal = Rehearsal::default();
    Ok(plan(Arc::new(looking(env, &rehearsal)), rehearsal, request, deployed).await)
}

/// The same world for whoever only looks: nothing is written, neither out there nor in the store.
pub(super) fn looking(env: &Env, rehearsal: &Rehearsal) -> Env {
    Env {
        settings: Arc::clone(&env.settings),
        vault: env.vault.rehearsed(),
        store: env.store.rehearsing(),
        // Nobody listens: a plan waits for no projection.
        refresh_nodes: Notify::new(),
        clients: env.clients.rehearsed(rehearsal),
    }
}

/// What lives on the host by the fleet's view of Ironic, in words (B19).
pub(super) fn deployed(store: &Store, request: &EnrollRequest) -> Result<Option<String>, StoreError> {
    let Some(instance) = request.routing.resolve(request.device_class.as_deref()) else { return Ok(None) };
    let Some(node) = store.ironic_ref(instance, &request.host)? else { return Ok(None) };
    Ok(lives_on(&request.host, node.instance_uuid.as_deref(), &node.state))
}

/// What lives on a node, in words.
pub(super) fn lives_on(host: &str, instance: Option<&str>, state: &ProvisionState) -> Option<String> {
    match instance {
        Some(id) => Some(format!("instance '{id}' lives on '{host}'")),
        None => (*state == ProvisionState::Active).then(|| format!("'{host}' is deployed ('active')")),
    }
}
