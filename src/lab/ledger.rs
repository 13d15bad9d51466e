//! The ledger: every request that a service of the lab was asked, so that tests can prove what was and wasn't done.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::LabTime;

/// The services of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    Netbox,
    Ironic,
    Bmc,
    Dhcp,
}

/// One request. Holds no secret: bodies are redacted before they come here, headers are never kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// From 0, without gaps until the next reset.
    pub n: u64,
    /// Wall time at which the answer was ready.
    pub at: Timestamp,
    /// The same in lab time, in seconds.
    pub lab_s: LabTime,
    pub system: System,
    /// HTTP method; for the DHCP host `connect`, `login`, `exec`, `sftp_write`, `sftp_rename`, …
    pub method: String,
    /// Path and query; for the DHCP host the command or the remote path.
    pub path: String,
    /// The device that it is about, where the request names one: its BMC, its node, its record.
    pub host: Option<String>,
    /// Whether it asks for a change. Logging in is not one.
    pub write: bool,
    /// HTTP status; for the DHCP host the exit status. `None`: no answer was given.
    pub status: Option<u16>,
    /// JSON body of a write with every secret replaced by `***`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A fault rule answered instead of the service, or delayed it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub injected: bool,
}

/// What is noted of a request; the ledger adds number and times.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub system: System,
    pub method: String,
    pub path: String,
    pub host: Option<String>,
    pub write: bool,
    pub status: Option<u16>,
    pub body: Option<Value>,
    pub injected: bool,
}

/// The book. Cheap to clone: all clones write the same one.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: Arc<Mutex<Vec<Entry>>>,
}

impl Ledger {
    /// Notes a request. A body is redacted here once more, whoever made it.
    pub fn note(&self, at: Timestamp, lab: LabTime, note: Note) {
        let Note { system, method, path, host, write, status, body, injected } = note;
        let body = body.map(redacted);
        self.with(|entries| {
            let n = entries.len() as u64;
            entries.push(Entry { n, at, lab_s: lab, system, method, path, host, write, status, body, injected });
        });
    }

    /// All entries since the last reset, in their order.
    pub fn entries(&self) -> Vec<Entry> {
        self.with(|entries| entries.clone())
    }

    /// Entries that `keep` wants.
    pub fn select(&self, keep: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.with(|entries| entries.iter().filter(|e| keep(e)).cloned().collect())
    }

    /// How many entries `keep` wants.
    pub fn count(&self, keep: impl Fn(&Entry) -> bool) -> usize {
        self.with(|entries| entries.iter().filter(|e| keep(e)).count())
    }

    /// Every write since the last reset.
    pub fn writes(&self) -> Vec<Entry> {
        self.select(|e| e.write)
    }

    /// Tears the pages out.
    pub fn reset(&self) {
        self.with(Vec::clear);
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
        f(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A JSON value with everything that a secret may stand in replaced by `***`.
pub fn redacted(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| if is_secret_name(&key) { (key, mask(value)) } else { (key, redacted(value)) })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        // A JSON patch names its secret in `path` and carries it in `value`.
        Value::Array(items) => items
            .into_iter()
            .map(|mut item| {
                let secret = item.get("path").and_then(Value::as_str).is_some_and(is_secret_name);
                if secret && let Some(value) = item.get_mut("value") {
                    *value = mask(value.take());
                }
                redacted(item)
            })
            .collect(),
        other => other,
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "secret", "token", "private_key"].iter().any(|word| name.contains(word))
}

fn mask(value: Value) -> Value {
    if value.is_null() { value } else { Value::String("***".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_in_bodies_and_in_patches_are_masked() {
        let body = json!({"name": "x", "driver_info": {"redfish_password": "s3cret", "redfish_username": "admin"}});
        assert_eq!(
            redacted(body),
            json!({"name": "x", "driver_info": {"redfish_password": "***", "redfish_username": "admin"}})
        );
        let patch = json!([{"op": "add", "path": "/driver_info/ipmi_password", "value": "s3cret"}]);
        assert_eq!(redacted(patch), json!([{"op": "add", "path": "/driver_info/ipmi_password", "value": "***"}]));
    }
}
