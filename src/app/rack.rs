//! What a person at the rack asks of one host, outside of any run: its locator LED and its power (U10).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::handle::App;
use super::plan::lives_on;
use super::submit::{SubmitError, device_named};
use crate::activities::bmc;
use crate::activities::env::ActivityCx;
use crate::domain::device::Device;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::rack::{Located, LocatorWish, PowerWish, Powered};
use crate::store::StoreError;
use crate::workflows::defs::Target;

/// The whole of one look or change. A soft end and a hard one after it, and a busy BMC in between, take minutes.
const LOCATES_WITHIN: Duration = Duration::from_secs(60);
const POWERS_WITHIN: Duration = Duration::from_secs(10 * 60);

/// What somebody has agreed to before a host's power is changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Consent {
    /// Yes to what interrupts a host.
    pub yes: bool,
    /// The host's name once more, where somebody's workload may run on it. It is a yes as well.
    pub typed: Option<String>,
}

/// Why nothing was asked of the BMC, or what came of it.
#[derive(Debug, thiserror::Error)]
pub enum RackError {
    #[error(transparent)]
    Host(#[from] SubmitError),
    #[error("the configuration has no site '{site}', where NetBox has '{host}'")]
    NoSite { host: String, site: String },
    /// A run restarts its host when it has to, and knows nothing of others who do.
    #[error("run {} is at work on '{host}', started by {by}", run.short())]
    Busy { host: String, run: RunId, by: String },
    #[error("{} of '{host}' ends what runs on it, and nobody has said yes to that", wish.words())]
    Unasked { host: String, wish: PowerWish },
    /// Ironic says that it is somebody's, or could not say that it is nobody's.
    #[error("{what}: {} would end it", wish.words())]
    Deployed { host: String, wish: PowerWish, what: String },
    #[error("{}", .0.message)]
    Failed(Box<Failure>),
}

impl From<StoreError> for RackError {
    fn from(error: StoreError) -> Self {
        RackError::Host(SubmitError::Store(error))
    }
}

impl RackError {
    /// The code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            RackError::Host(error) => error.code(),
            RackError::NoSite { .. } => "site_unknown",
            RackError::Busy { .. } => "device_busy",
            RackError::Unasked { .. } => "not_confirmed",
            RackError::Deployed { .. } => "host_deployed",
            RackError::Failed(failure) => failure.code.as_str(),
        }
    }

    /// What to do about it.
    pub fn action(&self) -> String {
        match self {
            RackError::Host(error) => error.action(),
            RackError::NoSite { site, .. } => format!("add [sites.{site}] to the configuration"),
            RackError::Busy { run, .. } => {
                format!("wait for it, or cancel it with `muster runs cancel {}` first", run.short())
            }
            RackError::Unasked { .. } => "repeat the command with --yes if that is meant".to_owned(),
            RackError::Deployed { host, .. } => {
                format!("leave '{host}' alone, or repeat the command with --deployed {host} if that is meant")
            }
            RackError::Failed(failure) => failure.action.clone(),
        }
    }

    /// Whether the BMC was asked: then it is a failure, and else a refusal.
    pub fn was_tried(&self) -> bool {
        matches!(self, RackError::Failed(_))
    }
}

impl App {
    /// Reads or changes the locator LED of a host, also while a run is at work on it. `None`: only reads.
    pub async fn locator(&self, host: &str, wish: Option<LocatorWish>) -> Result<Located, RackError> {
        let (device, cx) = self.at_the_rack(host)?;
        let target = target(&device);
        within(LOCATES_WITHIN, &device.name, bmc::locator(&cx, &target, wish)).await
    }

    /// Reads or changes the power of a host. What interrupts it wants a yes, and its name where Ironic has somebody's
    /// workload on it or can't be asked; no change is made beside a run.
    pub async fn power(&self, host: &str, wish: Option<PowerWish>, consent: &Consent) -> Result<Powered, RackError> {
        let (device, cx) = self.at_the_rack(host)?;
        if let Some(wish) = wish {
            self.may_power(&device, wish, consent).await?;
        }
        let target = target(&device);
        within(POWERS_WITHIN, &device.name, bmc::power(&cx, &target, wish)).await
    }

    /// What lives on a host, in words, as Ironic says now; `None`: nothing does.
    pub async fn deployed(&self, host: &str) -> Result<Option<String>, RackError> {
        let device = device_named(&self.inner.store, host)?;
        Ok(self.whose(&device).await)
    }

    async fn may_power(&self, device: &Device, wish: PowerWish, consent: &Consent) -> Result<(), RackError> {
        let host = device.name.clone();
        let active = self
            .inner
            .store
            .runs()?
            .into_iter()
            .find(|row| row.netbox_id == device.netbox_id && row.status.is_active());
        if let Some(row) = active {
            return Err(RackError::Busy { host, run: row.run, by: row.by });
        }
        if !wish.interrupts() {
            return Ok(());
        }
        if let Some(what) = self.whose(device).await
            && consent.typed.as_deref() != Some(&*host)
        {
            return Err(RackError::Deployed { host, wish, what });
        }
        let meant = consent.yes || consent.typed.as_deref() == Some(&*host);
        if meant { Ok(()) } else { Err(RackError::Unasked { host, wish }) }
    }

    /// Asked of Ironic itself: what the projection has may be of before somebody moved in.
    async fn whose(&self, device: &Device) -> Option<String> {
        let routing = self.inner.settings.routing(&device.site);
        let instance = routing.resolve(device.device_class.as_deref());
        let Some(ironic) = instance.and_then(|name| self.inner.env.clients.ironic.get(name)) else {
            return Some(format!("no Ironic has '{}', and whether it is in use is not known", device.name));
        };
        match ironic.node(&device.name).await {
            Ok(None) => None,
            Ok(Some(node)) => lives_on(&device.name, node.instance_uuid.as_deref(), &node.state),
            Err(error) => Some(format!("whether somebody lives on '{}' is not known: {error}", device.name)),
        }
    }

    /// The device, and a context that belongs to no run.
    fn at_the_rack(&self, host: &str) -> Result<(Device, ActivityCx), RackError> {
        let device = device_named(&self.inner.store, host)?;
        if !self.inner.settings.sites.contains_key(&device.site) {
            return Err(RackError::NoSite { host: device.name, site: device.site });
        }
        let cx = ActivityCx {
            env: Arc::clone(&self.inner.env),
            run: RunId(Uuid::now_v7()),
            seq: 0,
            attempt: 1,
            stop: CancellationToken::new(),
            sink: Arc::new(|_| {}),
        };
        Ok((device, cx))
    }
}

fn target(device: &Device) -> Target {
    let (host, netbox_id, site) = (device.name.clone(), device.netbox_id, device.site.clone());
    Target { host, netbox_id, site, ironic: String::new() }
}

async fn within<T>(
    limit: Duration,
    host: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, RackError> {
    let outcome = tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        Err(Failure::new(
            FailureCode::ActivityTimeout,
            Phase::Bmc,
            format!("the BMC of '{host}' did not come to an end of it within {} s", limit.as_secs()),
            format!("look how '{host}' stands, then try again"),
        ))
    });
    outcome.map_err(|failure| RackError::Failed(Box::new(failure)))
}
