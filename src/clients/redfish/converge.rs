//! A setting as values: what is wanted, where a BMC keeps it, how it reads, and what would be written.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::error::RedfishError;
use super::resource::{Resource, text_of};
use super::service::{Accepted, Redfish};

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
    /// In several resources, which only together make the setting.
    Each(Vec<Spot>),
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
    /// Asked for in the same way where the BMC refuses the first: another place, or other words, for the same setting.
    pub instead: Option<Box<Request>>,
    pub read_back: ReadBack,
}

/// A path with the body for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub path: String,
    pub body: Value,
}

/// Where a setting shows after it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadBack {
    /// In the resource itself.
    Here,
    /// In a member of the resource, which is a collection: the first one that has these members.
    Member(Vec<(String, Value)>),
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
        let members = members.into_iter().map(|(pointer, value)| {
            let pointer = pointer.into();
            let value = in_the_type_of(resource.at(&pointer), value);
            (pointer, value)
        });
        let members = members.collect();
        Spot { resource, members, write: Write::Patch, instead: None, read_back: ReadBack::Here }
    }

    /// A setting that is to be a new member of a collection, since none has its `key`. `members` are what the member is
    /// to have in the end.
    pub fn member(
        collection: &str,
        key: Vec<(String, Value)>,
        members: impl IntoIterator<Item = (impl Into<String>, Value)>,
        body: Value,
    ) -> Spot {
        let resource = Resource { path: collection.to_owned(), body: Map::new(), etag: None };
        let members = members.into_iter().map(|(pointer, value)| (pointer.into(), value)).collect();
        let write = Write::Post { path: collection.to_owned(), body };
        Spot { resource, members, write, instead: None, read_back: ReadBack::Member(key) }
    }

    /// With another request where the first is refused.
    pub fn or(mut self, path: impl Into<String>, body: Value) -> Spot {
        self.instead = Some(Box::new(Request { path: path.into(), body }));
        self
    }

    /// The path to write to and to read back.
    pub fn path(&self) -> &str {
        &self.resource.path
    }

    /// Whether a reading has what is wanted.
    pub fn is_satisfied_by(&self, resource: &Resource) -> bool {
        self.members.iter().all(|(pointer, want)| resource.at(pointer).is_some_and(|have| same(have, want)))
    }

    /// Writes it. Nothing but a clear refusal of what was asked leads to the second way.
    pub async fn send(&self, redfish: &Redfish) -> Result<Accepted, RedfishError> {
        let first = match &self.write {
            Write::Patch => redfish.patch(self.path(), &self.body()).await,
            Write::Post { path, body } => redfish.post(path, body).await.inspect(|_| {
                // What an action changes shows nowhere in its request.
                if self.read_back == ReadBack::Here {
                    redfish.imagine(self.path(), &self.body());
                }
            }),
        };
        let (refusal, instead) = match (first, &self.instead) {
            (Err(e @ (RedfishError::Refused { .. } | RedfishError::NotFound { .. })), Some(instead)) => (e, instead),
            (other, _) => return other,
        };
        // Some firmware refuses what it has done (Q23).
        if self.read(redfish).await.is_ok_and(|now| self.is_satisfied_by(&now)) {
            return Ok(Accepted::default());
        }
        let second = match &self.write {
            Write::Patch => redfish.patch(&instead.path, &instead.body).await,
            Write::Post { .. } => redfish.post(&instead.path, &instead.body).await,
        };
        // Where the second way does not exist at all, the first refusal says more.
        second.map_err(|error| if error.is_absent() { refusal } else { error })
    }

    /// Reads how the setting stands now.
    pub async fn read(&self, redfish: &Redfish) -> Result<Resource, RedfishError> {
        let key = match &self.read_back {
            ReadBack::Here => return redfish.get(self.path()).await,
            ReadBack::Member(key) => key,
        };
        let has_key = |member: &Resource| {
            key.iter().all(|(pointer, want)| member.at(pointer).is_some_and(|have| same(have, want)))
        };
        let found = redfish.list(self.path()).await?.members.into_iter().find(has_key);
        Ok(found.unwrap_or_else(|| self.resource.clone()))
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

/// A flag as the BMC itself writes it: some firmware has `Enabled` and `Disabled` where other has true and false (Q35).
fn in_the_type_of(read: Option<&Value>, want: Value) -> Value {
    match (read, &want) {
        (Some(Value::String(word)), Value::Bool(flag)) if is_flag_word(word) => {
            Value::from(if *flag { "Enabled" } else { "Disabled" })
        }
        _ => want,
    }
}

fn is_flag_word(word: &str) -> bool {
    ["enabled", "disabled"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn show(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::Array(list) if list.iter().any(|entry| text_of(entry).is_some()) => {
            list.iter().filter_map(text_of).collect::<Vec<_>>().join(", ")
        }
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
    fn a_flag_is_written_as_the_word_that_was_read() {
        let body = json!({"A": "Disabled", "B": false, "C": null, "D": "maybe"});
        let resource = Resource { path: "/x".into(), body: body.as_object().unwrap().clone(), etag: None };
        let spot = Spot::patch(resource, ["/A", "/B", "/C", "/D"].map(|pointer| (pointer, json!(true))));
        assert_eq!(spot.body(), json!({"A": "Enabled", "B": true, "C": true, "D": true}));
    }

    #[test]
    fn a_member_that_is_missing_reads_as_nothing() {
        let members = [("/Type", json!("Syslog")), ("/Address", json!("192.0.2.9:514"))];
        let spot = Spot::member("/list", vec![("/Type".into(), json!("Syslog"))], members, json!({"Id": "1"}));
        assert!(!spot.is_satisfied_by(&spot.resource));
        assert_eq!((spot.path(), spot.describe(&spot.resource).as_str()), ("/list", "- -"));
        assert_eq!(spot.describe_wanted(), "Syslog 192.0.2.9:514");
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
