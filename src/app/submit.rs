//! Submits enrollments: who may, with which gates, and never two at once for one device.

use jiff::Timestamp;
use uuid::Uuid;

use super::handle::App;
use crate::activities::facts::switches;
use crate::config::settings::Settings;
use crate::domain::device::Device;
use crate::domain::eligibility::{self, Refusal, Rules};
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::queue::Placement;
use crate::domain::request::{EnrollParams, EnrollRequest};
use crate::domain::run_view::RunView;
use crate::store::{Store, StoreError, Submit};

/// Why a host is not enrolled now. Nothing was written anywhere.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error("NetBox has no racked device '{0}'")]
    UnknownHost(String),
    #[error("'{host}' is the name of more than one device: in {}", sites.join(", "))]
    AmbiguousHost { host: String, sites: Vec<String> },
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// G8.
    #[error("run {} is enrolling this host already, started by {by}", run.short())]
    Busy { run: RunId, by: String },
    /// B19: BMC convergence runs before the Nova guard.
    #[error("{0}: converging the BMC can restart its host")]
    Deployed(String),
    #[error("the list has an empty name")]
    NoName,
    /// A limit goes by the switches, and they could not be read: nothing is started past a limit.
    #[error("the switches of '{host}' can't be read, and runs_per_switch in [limits] goes by them: {}", failure.message)]
    Switches { host: String, failure: Box<Failure> },
    #[error("run {} has not ended", .0.short())]
    NotEnded(RunId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SubmitError {
    /// The code for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            SubmitError::UnknownHost(_) => "host_unknown",
            SubmitError::AmbiguousHost { .. } => "host_ambiguous",
            SubmitError::Refused(refusal) => refusal.code,
            SubmitError::Busy { .. } => "device_busy",
            SubmitError::Deployed(_) => "host_deployed",
            SubmitError::NoName => "host_empty",
            SubmitError::Switches { failure, .. } => failure.code.as_str(),
            SubmitError::NotEnded(_) => "run_not_ended",
            SubmitError::Store(_) => "store_failed",
        }
    }

    /// What to do about it.
    pub fn action(&self) -> String {
        match self {
            SubmitError::UnknownHost(_) => {
                "check the spelling (`muster inventory list`), and that the device stands in a rack in NetBox"
                    .to_owned()
            }
            SubmitError::AmbiguousHost { .. } => "give the devices names of their own in NetBox".to_owned(),
            SubmitError::Refused(refusal) => refusal.action.clone(),
            SubmitError::Busy { run, .. } => {
                format!(
                    "watch it with `muster runs watch {0}`, or cancel it with `muster runs cancel {0}`",
                    run.short()
                )
            }
            SubmitError::Deployed(_) => {
                "leave it out, or give its name on the command line with --yes if that is meant".to_owned()
            }
            SubmitError::NoName => "take the empty entry out of the list".to_owned(),
            SubmitError::Switches { failure, .. } => failure.action.clone(),
            SubmitError::NotEnded(run) => {
                format!("wait for it, or cancel it with `muster runs cancel {}`", run.short())
            }
            SubmitError::Store(_) => "mend what the sentence names, then try again".to_owned(),
        }
    }
}

impl App {
    /// Submits one host: judged by the inventory's view (S1), with gates, options and routing as they stand now (G3).
    pub async fn submit(&self, host: &str, params: EnrollParams, by: &str) -> Result<RunId, SubmitError> {
        let device = device_named(&self.inner.store, host)?;
        self.launch(&device, params, by, None).await
    }

    /// Runs an ended run's host again; `change` may alter its switches. The new run names the old one (G10).
    pub async fn retry(
        &self,
        run: RunId,
        change: impl FnOnce(&mut EnrollParams),
        by: &str,
    ) -> Result<RunId, SubmitError> {
        let row = self.inner.store.run(run)?;
        if row.status.is_active() {
            return Err(SubmitError::NotEnded(run));
        }
        let request = RunView::of(&self.inner.store.records(run)?).request;
        let mut params = request.map(|request| request.params).unwrap_or_default();
        change(&mut params);
        let device = device_named(&self.inner.store, &row.host)?;
        self.launch(&device, params, by, Some(run)).await
    }

    /// What a submission of this host would be refused for now, if for anything.
    pub fn refusal(&self, host: &str) -> Result<(), SubmitError> {
        let device = device_named(&self.inner.store, host)?;
        eligibility::check(&device, &self.inner.rules).map_err(SubmitError::Refused)
    }

    async fn launch(
        &self,
        device: &Device,
        params: EnrollParams,
        by: &str,
        retry_of: Option<RunId>,
    ) -> Result<RunId, SubmitError> {
        let judged = request(&self.inner.settings, &self.inner.rules, device, params, by, self.now())?;
        let request = EnrollRequest { retry_of, ..self.hung(device, judged).await? };
        let run = RunId(Uuid::now_v7());
        match self.inner.store.submit(run, request).await? {
            Submit::Accepted => {
                self.begin(run);
                Ok(run)
            }
            Submit::Busy { run, by } => Err(SubmitError::Busy { run, by }),
        }
    }

    /// The request with the switches that the host hangs on, where a limit goes by them.
    pub(super) async fn hung(&self, device: &Device, mut request: EnrollRequest) -> Result<EnrollRequest, SubmitError> {
        if self.inner.settings.limits.runs_per_switch.is_some() {
            let netbox = &self.inner.env.clients.netbox;
            request.placement.switches = switches(netbox, device.netbox_id).await.map_err(|error| {
                let failure = netbox.failure(&error, Phase::ResolveIronicInstance);
                SubmitError::Switches { host: device.name.clone(), failure: Box::new(failure) }
            })?;
        }
        Ok(request)
    }

    /// Lets a submitted run begin, when there is room for it. Where another process leads, that sees the run in the store.
    pub(super) fn begin(&self, run: RunId) {
        if let Some(engine) = self.inner.office.engine() {
            engine.launch(run);
        }
    }
}

/// The device that a name means.
pub(super) fn device_named(store: &Store, host: &str) -> Result<Device, SubmitError> {
    let mut named = store.devices_named(host)?;
    match named.len() {
        0 => Err(SubmitError::UnknownHost(host.to_owned())),
        1 => Ok(named.remove(0)),
        _ => Err(SubmitError::AmbiguousHost {
            host: host.to_owned(),
            sites: named.into_iter().map(|device| device.site).collect(),
        }),
    }
}

/// What a run of this device would be asked: judged, with gates, options and routing as they stand now.
pub(super) fn request(
    settings: &Settings,
    rules: &Rules,
    device: &Device,
    params: EnrollParams,
    by: &str,
    at: Timestamp,
) -> Result<EnrollRequest, SubmitError> {
    eligibility::check(device, rules).map_err(SubmitError::Refused)?;
    let Some(site) = settings.sites.get(&device.site) else {
        // The check above has refused such a site; a race with a reload must still not panic.
        return Err(SubmitError::UnknownHost(device.name.clone()));
    };
    Ok(EnrollRequest {
        host: device.name.clone(),
        netbox_id: device.netbox_id,
        site: device.site.clone(),
        device_class: device.device_class.clone(),
        params,
        options: site.options.clone(),
        routing: settings.routing(&device.site),
        submitted_by: by.to_owned(),
        submitted_at: at,
        retry_of: None,
        placement: Placement { location: device.location.clone(), rack: device.rack.clone(), switches: Vec::new() },
        canary: None,
    })
}
