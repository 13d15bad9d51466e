//! Supermicro: where its BMCs keep hostname, NTP, syslog and IPMI over LAN.

use serde_json::{Value, json};

use super::condition::FirstForm;
use super::converge::{Located, Spot, Wanted, standard_ntp};
use super::dialect::{Asked, At, Dialect};
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;
use super::standard::{ipmi_over_lan, linked, network_protocol, on_own_nic};
use super::vendor::Vendor;

/// Its dialect.
pub struct Supermicro;

impl Dialect for Supermicro {
    fn vendor(&self) -> Vendor {
        Vendor::Supermicro
    }

    /// Takes a write without a precondition; asks by 412 or 428 where a firmware wants one.
    fn first_form(&self) -> FirstForm {
        FirstForm::Nothing
    }

    fn reset_type(&self) -> &'static str {
        "GracefulRestart"
    }

    fn locate<'a>(&'a self, at: At<'a>, wanted: &'a Wanted) -> Asked<'a, Located> {
        Box::pin(locate(at.redfish, at.manager, wanted))
    }
}

async fn locate(redfish: &Redfish, bmc: &Resource, wanted: &Wanted) -> Result<Located, RedfishError> {
    match wanted {
        Wanted::Hostname { name, address } => {
            on_own_nic(redfish, bmc, *address, vec![("/HostName", json!(name))]).await
        }
        Wanted::Ntp { server } => ntp(redfish, bmc, server).await,
        Wanted::Syslog { server, port } => syslog(redfish, bmc, server, *port).await,
        Wanted::IpmiOverLan => ipmi_over_lan(redfish, bmc).await,
        other => Ok(Located::not_here(other)),
    }
}

/// The vendor's own resource, else the standard one that newer firmware has.
async fn ntp(redfish: &Redfish, bmc: &Resource, server: &str) -> Result<Located, RedfishError> {
    if let Some(resource) = linked(redfish, bmc, "/Oem/Supermicro/NTP").await? {
        let members = vec![("/NTPEnable", json!(true)), ("/PrimaryNTPServer", json!(server))];
        return Ok(Located::At(Spot::patch(resource, members)));
    }
    match network_protocol(redfish, bmc).await? {
        Some(resource) if resource.at("NTP").is_some_and(Value::is_object) => {
            Ok(Located::At(Spot::patch(resource, standard_ntp(server))))
        }
        _ => {
            Ok(Located::Absent { why: "the BMC has neither 'Oem.Supermicro.NTP' nor 'NetworkProtocol.NTP'".to_owned() })
        }
    }
}

async fn syslog(redfish: &Redfish, bmc: &Resource, server: &str, port: u16) -> Result<Located, RedfishError> {
    let Some(resource) = linked(redfish, bmc, "/Oem/Supermicro/Syslog").await? else {
        return Ok(Located::Absent { why: "the BMC has no 'Oem.Supermicro.Syslog'".to_owned() });
    };
    let members =
        vec![("/EnableSyslog", json!(true)), ("/SyslogServer", json!(server)), ("/SyslogPortNumber", json!(port))];
    Ok(Located::At(Spot::patch(resource, members)))
}
