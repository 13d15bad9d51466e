//! The part of `driver_info` that enrollment manages: address and credential of the BMC, by driver (E2, E4, E13).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::common::Desk;
use crate::activities::vault;
use crate::clients::ironic::{Attempt, BmcAccess, MANAGED, Protocol};
use crate::clients::vault::VaultError;
use crate::config::settings::BmcSettings;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::{HostFacts, IronicSettings};
use crate::domain::ids::NodeUuid;

/// The per-host credential: the one that Ironic uses, never the monitoring user (B10).
#[derive(Clone)]
pub(super) struct Credential {
    pub username: String,
    pub password: SecretString,
}

impl Desk {
    /// The credential of the host's BMC from the vault (E1). From here on the account for monitoring is known too, and kept
    /// from Ironic.
    pub async fn credential(&self) -> Result<Credential, Failure> {
        let vault = &self.cx.env.vault;
        let item = vault.bmc_item(&self.host);
        let failed = |e: VaultError| {
            let message = format!("the BMC credential of '{}' cannot be read: {e}", self.host);
            Failure { message, ..vault::failure(&e, self.phase) }
        };
        // The name of an account is no secret; it stands in Ironic in the clear.
        let username = vault.ask(&item, "username").await.map_err(failed)?.expose_secret().to_owned();
        let password = vault.ask(&item, "password").await.map_err(failed)?;
        match vault.ask(&vault.settings().ipmi_item, "username").await {
            Ok(monitoring) => self.ironic.shun(monitoring.expose_secret()),
            // A site whose BMCs somebody else configures has none.
            Err(VaultError::Missing { .. } | VaultError::EnvMissing(_)) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(Credential { username, password })
    }

    /// The out-of-band address, which enrollment cannot do without (E1).
    pub fn oob_ip(&self, facts: &HostFacts) -> Result<IpAddr, Failure> {
        facts.oob_ip.ok_or_else(|| {
            self.failure(
                FailureCode::NetboxDataMissing,
                format!("'{}' has no oob_ip in NetBox", self.host),
                format!("set the out-of-band IP of '{}' in NetBox, then retry", self.host),
            )
        })
    }

    /// `config_context.ironic_settings`, which enrollment cannot do without (E1).
    pub fn settings<'a>(&self, facts: &'a HostFacts) -> Result<&'a IronicSettings, Failure> {
        facts.ironic_settings.as_ref().ok_or_else(|| {
            self.failure(
                FailureCode::NetboxDataMissing,
                format!("'{}' has no 'ironic_settings' in its config context", self.host),
                format!("add 'ironic_settings' to a config context of '{}' in NetBox, then retry", self.host),
            )
        })
    }
}

/// The BMC's address as the driver takes it: a URL for Redfish, a bare address for IPMI.
pub(super) fn address(protocol: Protocol, settings: &IronicSettings, ip: IpAddr, bmc: &BmcSettings) -> String {
    match (protocol, &settings.redfish_address_override) {
        (Protocol::Ipmi, _) => ip.to_string(),
        (Protocol::Redfish, Some(address)) => address.clone(),
        (Protocol::Redfish, None) => {
            let host = match ip {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            };
            let port = bmc.port.map_or(String::new(), |port| format!(":{port}"));
            format!("{}://{host}{port}", bmc.scheme)
        }
    }
}

/// What enrollment gives Ironic of the BMC.
pub(super) fn access(protocol: Protocol, address: String, credential: &Credential) -> BmcAccess {
    let Credential { username, password } = credential.clone();
    BmcAccess { protocol, address, username, password }
}

/// What stands in the `driver_info` of a node to be beside the access, and the extras that were left out because their keys
/// are managed (E4).
pub(super) fn extras(protocol: Protocol, settings: &IronicSettings) -> (Map<String, Value>, Vec<String>) {
    let mut info = Map::new();
    if protocol == Protocol::Redfish {
        info.insert("redfish_verify_ca".to_owned(), json!(false));
    }
    let mut left_out = Vec::new();
    for (key, value) in &settings.ironic_driver_info {
        if MANAGED.contains(&key.as_str()) {
            left_out.push(key.clone());
        } else {
            info.insert(key.clone(), value.clone());
        }
    }
    (info, left_out)
}

/// Which credential this process has given to which node last.
///
/// Ironic masks passwords, so a read cannot tell whether the one it has is the vault's. Decided so: address and user name
/// are compared; the password is written where this process has not yet given this very password to this node, and again
/// where Ironic's last `manage` failed. So the reruns of a locked or waiting attempt write it once, a vault whose password
/// changed is noticed, and a converged host, which is `available` and never gets here, is written nothing at all. Kept as
/// a salted digest, in memory only: on disk it could be guessed at.
pub(super) struct Given {
    salt: [u8; 32],
    digests: Mutex<HashMap<(String, NodeUuid), [u8; 32]>>,
}

/// The one record of this process.
pub(super) fn given() -> &'static Given {
    static GIVEN: OnceLock<Given> = OnceLock::new();
    GIVEN.get_or_init(|| Given { salt: rand::random(), digests: Mutex::default() })
}

impl Given {
    pub fn has(&self, ironic: &Attempt, node: NodeUuid, credential: &Credential) -> bool {
        let digest = self.digest(credential);
        // A plan has given nothing: what it would have given by then it keeps for itself.
        if let Some(kept) = ironic.rehearsal().and_then(|rehearsal| rehearsal.recall(&key(ironic, node))) {
            return kept == digest;
        }
        self.lock().get(&(ironic.host(), node)) == Some(&digest)
    }

    pub fn remember(&self, ironic: &Attempt, node: NodeUuid, credential: &Credential) {
        let digest = self.digest(credential);
        match ironic.rehearsal() {
            Some(rehearsal) => rehearsal.keep(&key(ironic, node), digest.to_vec()),
            None => drop(self.lock().insert((ironic.host(), node), digest)),
        }
    }

    pub fn forget(&self, ironic: &Attempt, node: NodeUuid) {
        match ironic.rehearsal() {
            Some(rehearsal) => rehearsal.keep(&key(ironic, node), vec![]),
            None => drop(self.lock().remove(&(ironic.host(), node))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, NodeUuid), [u8; 32]>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn digest(&self, credential: &Credential) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.salt);
        hash.update(credential.username.as_bytes());
        hash.update([0]);
        hash.update(credential.password.expose_secret().as_bytes());
        hash.finalize().into()
    }
}

fn key(ironic: &Attempt, node: NodeUuid) -> String {
    format!("given/{}/{node}", ironic.host())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Trust;
    use std::time::Duration;

    fn bmc(scheme: &str, port: Option<u16>) -> BmcSettings {
        BmcSettings {
            scheme: scheme.into(),
            port,
            trust: Trust::System,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(1),
            busy_budget: Duration::from_secs(1),
            reset_budget: Duration::from_secs(1),
            syslog_port: 514,
            ipmi_port: 623,
            ipmi_key: None,
            bios: Default::default(),
        }
    }

    /// Case: C-25. Proves: E2
    #[test]
    fn addresses_have_brackets_where_they_need_them_and_the_port_of_the_site() {
        let plain = IronicSettings::default();
        let of = |ip: &str, bmc: &BmcSettings| address(Protocol::Redfish, &plain, ip.parse().unwrap(), bmc);
        assert_eq!(of("192.0.2.29", &bmc("https", None)), "https://192.0.2.29");
        assert_eq!(of("2001:db8:7::29", &bmc("https", None)), "https://[2001:db8:7::29]");
        assert_eq!(of("2001:db8:7::29", &bmc("http", Some(8000))), "http://[2001:db8:7::29]:8000");
        let ipmi = address(Protocol::Ipmi, &plain, "2001:db8:7::29".parse().unwrap(), &bmc("https", Some(8000)));
        assert_eq!(ipmi, "2001:db8:7::29");
        let emulated =
            IronicSettings { redfish_address_override: Some("http://127.0.0.1:8001".into()), ..Default::default() };
        let address = address(Protocol::Redfish, &emulated, "192.0.2.1".parse().unwrap(), &bmc("https", None));
        assert_eq!(address, "http://127.0.0.1:8001");
    }

    /// Proves: E4
    #[test]
    fn extras_are_merged_and_never_override_a_managed_key() {
        let given = json!({
            "redfish_verify_ca": "/etc/ca.pem", "redfish_system_id": "/redfish/v1/Systems/1", "redfish_username": "evil",
            "ipmi_password": "evil", "deploy_iso": "http://images.example/deploy.iso",
        });
        let settings = IronicSettings { ironic_driver_info: given.as_object().unwrap().clone(), ..Default::default() };
        let (info, left_out) = extras(Protocol::Redfish, &settings);
        let expected = json!({
            "redfish_verify_ca": "/etc/ca.pem", "redfish_system_id": "/redfish/v1/Systems/1",
            "deploy_iso": "http://images.example/deploy.iso",
        });
        assert_eq!(Value::Object(info), expected);
        assert_eq!(left_out, ["ipmi_password", "redfish_username"]);
        assert_eq!(extras(Protocol::Ipmi, &IronicSettings::default()).0, Map::new());
    }
}
