//! Clients: one protocol each. They know timeouts, sizes, redaction and error classes, and no policy.

pub mod http;
pub mod ipmi;
pub mod ironic;
pub mod keystone;
pub mod nats;
pub mod netbox;
pub mod redfish;
pub mod rehearsal;
pub mod ssh;
pub mod trail;
pub mod vault;
pub mod webhook;

use std::net::SocketAddr;

use indexmap::IndexMap;
use secrecy::SecretString;
use url::Url;

use redfish::error::RedfishError;
use redfish::{Credential, Redfish, RedfishOptions};
use rehearsal::Rehearsal;
use ssh::known_hosts::KnownHosts;
use ssh::{Deadlines, SshClient, SshError, SshTarget};

/// A client of a BMC for one look, which sends no write and makes no login (K4).
pub fn look_at_bmc(base: &Url, options: RedfishOptions) -> Result<Redfish, RedfishError> {
    Ok(Redfish::new(base, None, options)?.rehearsed(&Rehearsal::default()))
}

/// A connection to an SSH host for one look: what would change something is not run, and no file is written.
pub async fn look_at_host(
    target: &SshTarget,
    deadlines: Deadlines,
    private_key: &SecretString,
    known_hosts: KnownHosts,
) -> Result<SshClient, SshError> {
    let client = SshClient::connect(target, deadlines, private_key, known_hosts).await?;
    Ok(client.rehearsed(&Rehearsal::default()))
}

/// The clients that live as long as the program. Those of BMCs and DHCP hosts live as long as one activity.
pub struct Clients {
    pub netbox: netbox::NetBox,
    /// By the name of the instance in the configuration.
    pub ironic: IndexMap<String, ironic::Ironic>,
}

impl Clients {
    /// The same clients as a plan has them. None of them, nor any that is made by them, sends a write (G14).
    pub fn rehearsed(&self, rehearsal: &Rehearsal) -> Clients {
        Clients {
            netbox: self.netbox.rehearsed(rehearsal),
            ironic: self.ironic.iter().map(|(name, ironic)| (name.clone(), ironic.rehearsed(rehearsal))).collect(),
        }
    }

    /// The rehearsal that these clients belong to; `None` for those that act. Asked of NetBox's, which every set has.
    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.netbox.http.rehearsal()
    }

    /// A client of a BMC. Activities have no other way to one (`tests/layering.rs`).
    pub fn redfish(
        &self,
        base: &Url,
        credential: Option<Credential>,
        options: RedfishOptions,
    ) -> Result<Redfish, RedfishError> {
        let redfish = Redfish::new(base, credential, options)?;
        Ok(match self.rehearsal() {
            Some(rehearsal) => redfish.rehearsed(rehearsal),
            None => redfish,
        })
    }

    /// One login over IPMI that changes nothing. `None`: a plan, which logs in nowhere.
    pub async fn ipmi_login(
        &self,
        to: SocketAddr,
        login: &ipmi::Login,
        level: ipmi::Privilege,
        patience: &ipmi::Patience,
    ) -> Result<Option<ipmi::Proof>, ipmi::IpmiError> {
        match self.rehearsal() {
            Some(_) => Ok(None),
            None => ipmi::prove(to, login, level, patience).await.map(Some),
        }
    }

    /// A connection to an SSH host. Activities have no other way to one.
    pub async fn ssh(
        &self,
        target: &SshTarget,
        deadlines: Deadlines,
        private_key: &SecretString,
        known_hosts: KnownHosts,
    ) -> Result<SshClient, SshError> {
        let client = SshClient::connect(target, deadlines, private_key, known_hosts).await?;
        Ok(match self.rehearsal() {
            Some(rehearsal) => client.rehearsed(rehearsal),
            None => client,
        })
    }
}
