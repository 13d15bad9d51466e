//! How Ironic reaches a BMC: protocol, address, and the per-host credential.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

/// How a driver talks to the BMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Redfish,
    Ipmi,
}

impl Protocol {
    /// Of a hardware type; `None` for one that enrollment does not know.
    pub fn of(driver: &str) -> Option<Self> {
        match driver {
            "redfish" | "idrac" => Some(Protocol::Redfish),
            "ipmi" => Some(Protocol::Ipmi),
            _ => None,
        }
    }

    pub fn address_key(self) -> &'static str {
        match self {
            Protocol::Redfish => "redfish_address",
            Protocol::Ipmi => "ipmi_address",
        }
    }

    pub fn username_key(self) -> &'static str {
        match self {
            Protocol::Redfish => "redfish_username",
            Protocol::Ipmi => "ipmi_username",
        }
    }

    pub fn password_key(self) -> &'static str {
        match self {
            Protocol::Redfish => "redfish_password",
            Protocol::Ipmi => "ipmi_password",
        }
    }
}

/// Keys of `driver_info` that enrollment manages: no extra of NetBox's sets them (E4).
pub const MANAGED: [&str; 6] =
    ["redfish_address", "redfish_username", "redfish_password", "ipmi_address", "ipmi_username", "ipmi_password"];

/// The part of `driver_info` that enrollment manages. The password is printed nowhere.
#[derive(Debug, Clone)]
pub struct BmcAccess {
    pub protocol: Protocol,
    /// A URL for Redfish, a bare address for IPMI.
    pub address: String,
    pub username: String,
    pub password: SecretString,
}

impl BmcAccess {
    /// Into the `driver_info` of a node to be, over whatever stands there under the same keys.
    pub(super) fn fill(&self, info: &mut Map<String, Value>) {
        for (key, value) in self.pairs() {
            info.insert(key.to_owned(), value);
        }
    }

    /// As operations of a patch.
    pub(super) fn patch(&self) -> Vec<Value> {
        let set =
            |(key, value): (&str, Value)| json!({"op": "add", "path": format!("/driver_info/{key}"), "value": value});
        self.pairs().into_iter().map(set).collect()
    }

    fn pairs(&self) -> [(&'static str, Value); 3] {
        [
            (self.protocol.address_key(), json!(self.address)),
            (self.protocol.username_key(), json!(self.username)),
            (self.protocol.password_key(), json!(self.password.expose_secret())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_have_their_protocols() {
        assert_eq!(Protocol::of("idrac"), Some(Protocol::Redfish));
        assert_eq!(Protocol::of("fake-hardware"), None);
    }

    /// Proves: Z1
    #[test]
    fn a_password_is_not_printed() {
        let access = BmcAccess {
            protocol: Protocol::Ipmi,
            address: "192.0.2.1".into(),
            username: "root".into(),
            password: "s3cret".to_owned().into(),
        };
        assert!(!format!("{access:?}").contains("s3cret"));
        assert!(access.patch().iter().any(|op| op["value"] == "s3cret"));
    }
}
