//! A setting as values: what is wanted, where a BMC keeps it, how it reads, and what would be written.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::resource::{Resource, text_of};

/// A setting that enrollment wants, in no vendor's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The BMC's host name. `address` is the one in use: it tells the BMC's NIC among several.
    Hostname {
        name: String,
        address: Option<IpAddr>,
    },
    Ntp {
        server: String,
    },
    Syslog {
        server: String,
        port: u16,
    },
    IpmiOverLan,
    /// The BMC's NIC takes its address by DHCP.
    DhcpOnNic {
        address: Option<IpAddr>,
    },
    /// No TLS below 1.2 on the BMC's own server.
    TlsMinimum,
    /// Services that carry credentials or inventory in the clear are off: Telnet, VNC, SNMP v1, SSDP, SLP.
    PlainServicesOff,
    /// The host's operating system has no network path to the BMC. IPMI by KCS stays: inspection asks it for the BMC's address.
    HostInterfaceOff,
    /// Virtual media can be inserted.
    VirtualMedia,
    /// The monitoring user may log in over IPMI, where that is a right of its own (Q47).
    MonitoringPrivilege {
        username: String,
    },
}

impl Wanted {
    /// The word in messages and in the change list.
    pub fn label(&self) -> &'static str {
        match self {
            Wanted::Hostname { .. } => "hostname",
            Wanted::Ntp { .. } => "NTP",
            Wanted::Syslog { .. } => "syslog",
            Wanted::IpmiOverLan => "IPMI over LAN",
            Wanted::DhcpOnNic { .. } => "DHCP on the BMC's NIC",
            Wanted::TlsMinimum => "TLS minimum",
            Wanted::PlainServicesOff => "plain services",
            Wanted::HostInterfaceOff => "host interface",
            Wanted::VirtualMedia => "virtual media",
            Wanted::MonitoringPrivilege { .. } => "IPMI privilege",
        }
    }
}

/// Where a setting is.
#[derive(Debug, Clone, PartialEq)]
pub enum Located {
    At(Spot),
    /// This model or firmware has no such setting, with the reason.
    Absent {
        why: String,
    },
}

impl Located {
    /// For a setting that a vendor never has.
    pub fn not_here(wanted: &Wanted) -> Located {
        Located::Absent { why: format!("this vendor's BMCs have no setting for {}", wanted.label()) }
    }
}

/// A resource with the members that make a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Spot {
    pub resource: Resource,
    /// JSON pointers with the value that each has to have.
    pub members: Vec<(String, Value)>,
    pub write: Write,
}

/// How a setting is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Its members, to the resource that they were read from.
    Patch,
    /// An action, or a new member of a collection. What comes of it shows in the resource.
    Post { path: String, body: Value },
}

impl Spot {
    /// A setting that is written where it is read.
    pub fn patch(resource: Resource, members: impl IntoIterator<Item = (impl Into<String>, Value)>) -> Spot {
        let members = members.into_iter().map(|(pointer, value)| (pointer.into(), value)).collect();
        Spot { resource, members, write: Write::Patch }
    }

    /// The path to write to and to read back.
    pub fn path(&self) -> &str {
        &self.resource.path
    }

    /// Whether a reading has what is wanted.
    pub fn is_satisfied_by(&self, resource: &Resource) -> bool {
        self.members.iter().all(|(pointer, want)| resource.at(pointer).is_some_and(|have| same(have, want)))
    }

    /// The request body: all members of the setting, and nothing else. Written together, since firmware checks them
    /// against each other (a server without `enabled` is refused by some).
    pub fn body(&self) -> Value {
        let mut body = Value::Object(Map::new());
        for (pointer, want) in &self.members {
            let mut place = &mut body;
            for part in pointer.trim_start_matches('/').split('/') {
                place = &mut place[part];
            }
            *place = want.clone();
        }
        body
    }

    /// How the setting reads there, in words.
    pub fn describe(&self, resource: &Resource) -> String {
        let words = self.members.iter().map(|(pointer, _)| resource.at(pointer).map_or_else(|| "-".to_owned(), show));
        words.collect::<Vec<_>>().join(" ")
    }

    /// What is wanted, in the same words.
    pub fn describe_wanted(&self) -> String {
        self.members.iter().map(|(_, want)| show(want)).collect::<Vec<_>>().join(" ")
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::Array(list) => list.iter().filter_map(text_of).collect::<Vec<_>>().join(", "),
        other => text_of(other).unwrap_or_else(|| "-".to_owned()),
    }
}

/// Whether a reading is what is wanted. Names are compared without regard to case and blanks (AMI gives ` 192.0.2.1` back),
/// numbers also as text, and a list has to begin with what is wanted: slots that nobody asked about stay free.
pub fn same(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Array(have), Value::Array(want)) => {
            have.len() >= want.len() && have.iter().zip(want).all(|(have, want)| same(have, want))
        }
        (Value::Bool(have), Value::Bool(want)) => have == want,
        _ => match (text_of(have), text_of(want)) {
            (Some(have), Some(want)) => have.eq_ignore_ascii_case(&want),
            _ => false,
        },
    }
}

/// The members of the standard NTP setting, for every vendor that keeps it in `NetworkProtocol`.
pub fn standard_ntp(server: &str) -> Vec<(&'static str, Value)> {
    vec![("/NTP/ProtocolEnabled", json!(true)), ("/NTP/NTPServers", json!([server]))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot() -> Spot {
        let body = json!({"NTP": {"ProtocolEnabled": false, "NTPServers": [" 192.0.2.1", "127.0.0.1"]}});
        let resource = Resource { path: "/x".into(), body: body.as_object().unwrap().clone(), etag: None };
        Spot::patch(resource, standard_ntp("192.0.2.1"))
    }

    #[test]
    fn a_setting_is_written_whole_and_described_by_its_members() {
        let spot = spot();
        assert!(!spot.is_satisfied_by(&spot.resource));
        assert_eq!(spot.body(), json!({"NTP": {"ProtocolEnabled": true, "NTPServers": ["192.0.2.1"]}}));
        assert_eq!(spot.describe(&spot.resource), "off 192.0.2.1, 127.0.0.1");
        assert_eq!(spot.describe_wanted(), "on 192.0.2.1");
    }

    #[test]
    fn readings_are_compared_by_meaning() {
        let table = [
            (json!(" GPU-b07-37 "), json!("gpu-b07-37"), true),
            (json!(null), json!("a"), false),
            (json!(""), json!("a"), false),
            (json!("514"), json!(514), true),
            (json!(true), json!(true), true),
            (json!(false), json!(true), false),
            (json!(["a", ""]), json!(["a"]), true),
            (json!(["b", "a"]), json!(["a"]), false),
            (json!([]), json!(["a"]), false),
            (json!({}), json!("a"), false),
        ];
        for (have, want, equal) in table {
            assert_eq!(same(&have, &want), equal, "{have} {want}");
        }
    }
}
