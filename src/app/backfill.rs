//! Fills in platform classes over a site or for named devices, with the resolver that runs use (P12).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::handle::AppError;
use super::plan::{Planner, looking};
use super::submit::{SubmitError, device_named};
use crate::activities::env::{ActivityCx, Env};
use crate::activities::netbox::platform_class;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::records::text_field;
use crate::clients::rehearsal::Rehearsal;
use crate::domain::device::Device;
use crate::domain::eligibility;
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::platform_class::GPU_COMPUTE;
use crate::workflows::defs::{PlatformClassOut, Target};

/// Devices that are worked on at once: each costs NetBox three requests, and it has few workers.
const AT_ONCE: usize = 4;

/// What came of one device.
#[derive(Debug, Clone)]
pub struct Backfilled {
    pub host: String,
    pub site: String,
    pub outcome: Result<PlatformClassOut, Failure>,
}

/// How far NetBox knows the GPU types that platform classes are made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Devices of the GPU compute class among those that were looked at.
    pub gpu_devices: usize,
    /// Those of them whose device type has a `gpu_type`.
    pub with_gpu_type: usize,
    /// Device types without one (manufacturer and model), with the number of such devices.
    pub missing: BTreeMap<String, usize>,
}

/// Why nothing was begun.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    #[error(transparent)]
    Device(#[from] SubmitError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error("the device types could not be read: {0}")]
    DeviceTypes(#[from] NetBoxError),
}

impl Planner {
    /// Resolves each device's class and, where `apply` says so, records it in NetBox and in muster's store: exactly what
    /// the phase of a run does. Without `apply` nothing is written, and an outcome's `wrote_…` say what would be. Which
    /// devices: those of these names, else all hosts of the site, else all hosts. `each` hears of every one as it is done.
    pub async fn backfill(
        &self,
        names: &[String],
        site: Option<&str>,
        apply: bool,
        mut each: impl FnMut(&Backfilled),
    ) -> Result<(Vec<Backfilled>, Coverage), BackfillError> {
        let devices = self.chosen(names, site)?;
        let coverage = self.coverage(&devices).await?;
        let env = if apply { Arc::clone(&self.env) } else { Arc::new(looking(&self.env, &Rehearsal::default())) };
        let work = |device: Device| {
            let cx = outside_of_runs(&env);
            async move {
                let Device { name, site, netbox_id, .. } = device;
                // No Ironic is asked for a class.
                let target = Target { host: name.clone(), netbox_id, site: site.clone(), ironic: String::new() };
                Backfilled { host: name, site, outcome: platform_class(&cx, target).await }
            }
        };
        let mut done = Vec::with_capacity(devices.len());
        let mut under_way = futures::stream::iter(devices).map(work).buffered(AT_ONCE);
        while let Some(one) = under_way.next().await {
            each(&one);
            done.push(one);
        }
        Ok((done, coverage))
    }

    /// In the order of the list, each once; a name that means no device refuses them all.
    fn chosen(&self, names: &[String], site: Option<&str>) -> Result<Vec<Device>, BackfillError> {
        let store = &self.env.store;
        let in_site = |device: &Device| site.is_none_or(|site| device.site == site);
        if names.is_empty() {
            let mut devices = store.devices().map_err(AppError::from)?;
            devices.retain(|device| in_site(device) && eligibility::is_host(device, &self.rules));
            devices.sort_by(|a, b| (&a.site, &a.name).cmp(&(&b.site, &b.name)));
            return Ok(devices);
        }
        let mut seen = BTreeSet::new();
        let names = names.iter().filter(|name| seen.insert(name.as_str()));
        let found = names.map(|name| device_named(store, name)).collect::<Result<Vec<Device>, _>>()?;
        match found.iter().find(|device| !in_site(device)) {
            Some(other) => Err(SubmitError::UnknownHost(other.name.clone()).into()),
            None => Ok(found),
        }
    }

    async fn coverage(&self, devices: &[Device]) -> Result<Coverage, BackfillError> {
        let field = self.env.settings.netbox.fields.gpu_type.as_str();
        let types = self.env.clients.netbox.device_types().await?.rows;
        let known: BTreeSet<(String, String)> = types
            .into_iter()
            .filter(|kind| text_field(&kind.custom_fields, field).is_some())
            .map(|kind| (kind.manufacturer.name, kind.model))
            .collect();
        let mut coverage = Coverage::default();
        for device in devices.iter().filter(|device| device.device_class.as_deref() == Some(GPU_COMPUTE)) {
            coverage.gpu_devices += 1;
            if known.contains(&(device.manufacturer.clone(), device.model.clone())) {
                coverage.with_gpu_type += 1;
            } else {
                *coverage.missing.entry(format!("{} {}", device.manufacturer, device.model)).or_insert(0) += 1;
            }
        }
        Ok(coverage)
    }
}

/// An activity's context outside of any run.
fn outside_of_runs(env: &Arc<Env>) -> ActivityCx {
    ActivityCx {
        env: Arc::clone(env),
        run: RunId(Uuid::nil()),
        seq: 0,
        attempt: 1,
        stop: CancellationToken::new(),
        // What an outcome says is all that is told here.
        sink: Arc::new(|_| ()),
    }
}
