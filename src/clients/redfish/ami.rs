//! AMI MegaRAC: where its BMCs keep settings, and what they take for the next boot.

mod boot;

use serde_json::json;

use super::condition::FirstForm;
use super::converge::{Located, Spot, Wanted, Write, standard_ntp};
use super::dialect::{Asked, At, Change, Dialect, Job, Staged, Staging};
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;
use super::standard::{in_network_protocol, ipmi_over_lan, network_protocol, on_own_nic};
use super::vendor::Vendor;
use crate::domain::bios::Bios;
use crate::domain::boot::BootSetup;

/// Its dialect.
pub struct Ami;

impl Dialect for Ami {
    fn vendor(&self) -> Vendor {
        Vendor::Ami
    }

    /// It refuses writes without a header (Q1), and its own tags too (Q3).
    fn first_form(&self) -> FirstForm {
        FirstForm::Any
    }

    fn reset_type(&self) -> &'static str {
        "ForceRestart"
    }

    fn locate<'a>(&'a self, at: At<'a>, wanted: &'a Wanted) -> Asked<'a, Located> {
        Box::pin(locate(at.redfish, at.manager, wanted))
    }

    /// All accounts are `Redfish`, those of IPMI too: they are one table, and the word cannot be changed.
    fn has_account_types(&self) -> bool {
        false
    }

    fn staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }
}

impl Staging for Ami {
    /// Its attributes are short codes that differ from board to board: none is set here (B11).
    fn bios<'a>(&'a self, _: At<'a>, _: &'a [String]) -> Asked<'a, Option<Bios>> {
        Box::pin(async { Ok(None) })
    }

    fn boot<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<BootSetup>> {
        Box::pin(async move { Ok(boot::read(at).await?.map(|read| read.setup)) })
    }

    fn stage<'a>(&'a self, at: At<'a>, change: &'a Change) -> Asked<'a, Staged> {
        Box::pin(async move {
            if let Some((name, _)) = change.attributes.first() {
                let what = format!("firmware attributes of this vendor are not set ('{name}')");
                return Err(RedfishError::Unusable { path: at.system.path.clone(), what });
            }
            if let Some(change) = &change.boot {
                boot::stage(at, change).await?;
            }
            Ok(Staged::default())
        })
    }

    /// It has no jobs for settings: they are pending until the next boot.
    fn job<'a>(&'a self, at: At<'a>, id: &'a str) -> Asked<'a, Job> {
        Box::pin(async move {
            let what = format!("this BMC has no job '{id}': it keeps settings for the next boot without one");
            Err(RedfishError::Unusable { path: at.manager.path.clone(), what })
        })
    }

    fn withdraw<'a>(&'a self, _: At<'a>, _: &'a str) -> Asked<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

async fn locate(redfish: &Redfish, bmc: &Resource, wanted: &Wanted) -> Result<Located, RedfishError> {
    match wanted {
        Wanted::Hostname { name, address } => {
            let nic = on_own_nic(redfish, bmc, *address, vec![("/HostName", json!(name))]).await?;
            let protocols = network_protocol(redfish, bmc).await?.filter(|p| p.body.contains_key("HostName"));
            Ok(match (nic, protocols) {
                // Both show the name; which of the two takes it depends on the build.
                (Located::At(spot), Some(protocols)) => Located::At(spot.or(protocols.path, json!({"HostName": name}))),
                (Located::Absent { .. }, Some(protocols)) => {
                    Located::At(Spot::patch(protocols, [("/HostName", json!(name))]))
                }
                (nic, _) => nic,
            })
        }
        Wanted::Ntp { server } => in_network_protocol(redfish, bmc, "NTP", standard_ntp(server)).await,
        Wanted::IpmiOverLan => ipmi_over_lan(redfish, bmc).await,
        Wanted::VirtualMedia => Ok(virtual_media(bmc)),
        Wanted::Syslog { .. }
        | Wanted::DhcpOnNic { .. }
        | Wanted::TlsMinimum
        | Wanted::PlainServicesOff
        | Wanted::HostInterfaceOff
        | Wanted::MonitoringPrivilege { .. } => Ok(Located::not_here(wanted)),
    }
}

/// Enabled by an action of the vendor's. The collection of media fills up to a minute later.
fn virtual_media(bmc: &Resource) -> Located {
    let status = "/Oem/Ami/VirtualMedia/RMediaStatus";
    if bmc.text(status).is_none() {
        return Located::Absent { why: "the BMC has no 'Oem.Ami.VirtualMedia'".to_owned() };
    }
    let mut spot = Spot::patch(bmc.clone(), [(status, json!("Enabled"))]);
    match bmc.text("/Actions/Oem/#AMIVirtualMedia.EnableRMedia/target") {
        Some(path) => {
            spot.write = Write::Post { path, body: json!({"RMediaState": "Enable"}) };
            Located::At(spot)
        }
        None if spot.is_satisfied_by(bmc) => Located::At(spot),
        None => Located::Absent { why: "the BMC has no action 'AMIVirtualMedia.EnableRMedia'".to_owned() },
    }
}
