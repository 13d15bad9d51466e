//! What the cable doctor finds at a site or in a rack, from the inspections of the last days (V12).

use jiff::Timestamp;

use super::handle::{App, AppError};
use crate::domain::cable_doctor::{Findings, Spot, diagnose};
use crate::domain::eligibility::is_host;
use crate::inventory::survey::survey;

/// The findings of a place, and what they rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Cables {
    pub findings: Findings,
    /// Hosts with an inspection that counts, with its time, by name.
    pub inspected: Vec<(String, Timestamp)>,
    /// Hosts of the place that have none.
    pub not_inspected: Vec<String>,
}

impl App {
    /// The findings at a site; with a rack, those that a host of it has a part in. Nothing is asked over the network.
    pub fn cables(&self, site: &str, rack: Option<&str>) -> Result<Cables, AppError> {
        let store = &self.inner.store;
        let survey = survey(store, site, self.now(), None)?;
        let is_here = |host: &str| {
            let found = survey.hosts.iter().find(|heard| heard.host == host);
            rack.is_none() || found.is_some_and(|heard| heard.rack.as_deref() == rack)
        };
        let mut findings = diagnose(&survey);
        findings.diagnoses.retain(|diagnosis| diagnosis.members.iter().any(|member| is_here(&member.spot.host)));
        findings.right.retain(|spot: &Spot| is_here(&spot.host));
        findings.unknown.retain(|unknown| is_here(&unknown.spot.host));
        let inspected: Vec<(String, Timestamp)> = survey
            .hosts
            .iter()
            .filter(|heard| is_here(&heard.host))
            .map(|heard| (heard.host.clone(), heard.inspected_at))
            .collect();
        let mut not_inspected = Vec::new();
        for device in store.devices()? {
            let is_of_place = device.site == site && rack.is_none_or(|rack| device.rack.as_deref() == Some(rack));
            let is_racked = device.rack.is_some() && is_host(&device, &self.inner.rules);
            if is_of_place && is_racked && !survey.hosts.iter().any(|heard| heard.netbox_id == device.netbox_id) {
                not_inspected.push(device.name);
            }
        }
        Ok(Cables { findings, inspected, not_inspected })
    }

    /// Reads NetBox's devices and cables now, from this process.
    pub async fn read_cables(&self) -> Result<(), AppError> {
        self.sync_now().await?;
        self.inner.office.wiring.sync_delta().await?;
        self.inner.office.wiring.sync_cables().await?;
        Ok(())
    }
}
