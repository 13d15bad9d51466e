//! The fleet as lists show it: devices with their Ironic nodes, last runs, proofs, and whether they may be enrolled.

use std::collections::BTreeMap;

use super::feed::SystemHealth;
use super::handle::{App, AppError};
use super::runs::RunSummary;
use crate::domain::device::{Device, IronicRef, Proof};
use crate::domain::eligibility::{self, Refusal};

/// The fleet at one moment.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// By site, location, rack and from the top unit down.
    pub rows: Vec<FleetRow>,
    pub systems: Vec<SystemHealth>,
}

/// One racked device.
#[derive(Debug, Clone)]
pub struct FleetRow {
    pub device: Device,
    pub ironic: Option<IronicRef>,
    pub last_run: Option<RunSummary>,
    pub eligible: Result<(), Refusal>,
    /// Something that is enrolled: a device of a compute class, or one whose class is missing in NetBox. A switch is
    /// neither.
    pub is_host: bool,
    pub proof: Option<Proof>,
}

impl App {
    /// The fleet from the store: nothing is asked over the network.
    pub fn fleet(&self) -> Result<Fleet, AppError> {
        let store = &self.inner.store;
        let mut nodes = store.ironic_refs()?;
        let mut proofs: BTreeMap<String, Proof> = store.proofs()?.into_iter().collect();
        let mut last: BTreeMap<String, RunSummary> =
            store.last_runs()?.into_iter().map(|row| (row.host.clone(), row)).collect();
        let mut devices = store.devices()?;
        devices.retain(|device| device.rack.is_some());
        devices.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| top_down(a, b)).then_with(|| a.name.cmp(&b.name)));
        let rows = devices
            .into_iter()
            .map(|device| FleetRow {
                ironic: nodes.remove(&device.name),
                last_run: last.remove(&device.name),
                proof: proofs.remove(&device.name),
                eligible: eligibility::check(&device, &self.inner.rules),
                is_host: eligibility::is_host(&device, &self.inner.rules),
                device,
            })
            .collect();
        let systems = store.syncs()?.into_iter().map(SystemHealth::from).collect();
        Ok(Fleet { rows, systems })
    }
}

fn place(device: &Device) -> (&str, Option<&str>, Option<&str>) {
    (&device.site, device.location.as_deref(), device.rack.as_deref())
}

/// The highest unit first; a device without a unit comes last.
fn top_down(a: &Device, b: &Device) -> std::cmp::Ordering {
    b.position.unwrap_or(f64::MIN).total_cmp(&a.position.unwrap_or(f64::MIN))
}
