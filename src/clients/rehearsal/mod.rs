//! What a plan has in place of the world's consent: no request that changes anything is sent, and reads answer as if it had
//! been carried out (G14).
//!
//! A client that was given a [`Rehearsal`] asks it before each request. A read goes out, and its answer is amended by what
//! was changed here; a write is noted, imagined and answered here. What cannot be imagined is refused with an error of its
//! own. So the code that reads, compares, writes and reads back is the code of a real run to the last line, and none of it
//! has to know that it is only rehearsed.

mod ironic;
mod netbox;
mod redfish;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;
use serde_json::Value;

use super::http::Answer;
use crate::domain::ids::NodeUuid;
use crate::domain::text::neutralize_to;

/// One rehearsal of one run. Clones are the same one.
#[derive(Clone, Default)]
pub struct Rehearsal {
    inner: Arc<Mutex<Imagined>>,
}

/// A write that a run would send. Without its body: that may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRequest {
    /// `netbox`, `ironic`, `bmc`, `dhcp`.
    pub system: &'static str,
    /// Host and port; of a DHCP host its name in known_hosts.
    pub server: String,
    /// HTTP method; on a DHCP host `exec`, `sftp_write`, `sftp_rename`, `sftp_remove`.
    pub method: String,
    /// Path and query; on a DHCP host the command or the remote path.
    pub path: String,
}

/// The servers as they would be, by host and port.
#[derive(Default)]
struct Imagined {
    reads: u32,
    writes: Vec<PlannedRequest>,
    /// The first write whose outcome could not be imagined.
    refused: Option<String>,
    netbox: HashMap<String, netbox::World>,
    ironic: HashMap<String, ironic::World>,
    bmcs: HashMap<String, redfish::World>,
    /// Server and path; `None`: removed.
    files: BTreeMap<(String, String), Option<Vec<u8>>>,
    notes: HashMap<String, Vec<u8>>,
}

/// A request as it is rehearsed.
pub(super) struct Ask<'a> {
    pub system: &'static str,
    pub host: &'a str,
    pub method: &'a str,
    /// Decoded as far as a URL is: without the query.
    pub path: &'a str,
    pub query: &'a [(String, String)],
    /// The user of HTTP basic authentication.
    pub user: Option<&'a str>,
    pub body: Option<&'a Value>,
}

impl Ask<'_> {
    pub fn is_read(&self) -> bool {
        matches!(self.method, "GET" | "HEAD" | "OPTIONS")
    }

    /// An action of a BMC that only tells something. It is no read by its method, and so it is not sent.
    fn only_inquires(&self) -> bool {
        self.path.ends_with(".GetRemoteServicesAPIStatus")
    }

    fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
}

/// What becomes of a request.
pub(super) enum Met {
    /// A read: the server answers.
    Send,
    /// Answered here.
    Answer { status: u16, body: Value },
    /// A write whose outcome cannot be imagined.
    Refuse,
}

impl Met {
    fn ok(body: Value) -> Met {
        Met::Answer { status: 200, body }
    }
}

impl Rehearsal {
    /// Decides on a request. Writes that are answered here are noted.
    pub(super) fn meet(&self, ask: &Ask<'_>) -> Met {
        self.with(|all| {
            if ask.is_read() {
                all.reads += 1;
            }
            let host = ask.host.to_owned();
            let met = match ask.system {
                "netbox" => all.netbox.entry(host).or_default().meet(ask),
                "ironic" => all.ironic.entry(host).or_default().meet(ask),
                "redfish" => all.bmcs.entry(host).or_default().meet(ask),
                _ if ask.is_read() => Met::Send,
                _ => Met::Refuse,
            };
            if matches!(met, Met::Refuse) && all.refused.is_none() {
                all.refused = Some(format!("{} {}", ask.method, neutralize_to(ask.path, 200)));
            }
            // A refusal that a server would give too changes nothing there.
            if !ask.is_read() && !ask.only_inquires() && matches!(met, Met::Answer { status: 200..300, .. }) {
                let system = if ask.system == "redfish" { "bmc" } else { ask.system };
                let query: Vec<String> = ask.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
                let path = format!("{}{query}", ask.path);
                let (server, method) = (ask.host.to_owned(), ask.method.to_owned());
                all.writes.push(PlannedRequest { system, server, method, path });
            }
            met
        })
    }

    /// Brings into the answer to a read what was changed here.
    pub(super) fn amend(&self, ask: &Ask<'_>, answer: &mut Answer) {
        if !answer.status.is_success() {
            return;
        }
        let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return };
        let changed = self.with(|all| {
            let host = ask.host.to_owned();
            match ask.system {
                "netbox" => all.netbox.entry(host).or_default().amend(ask, &mut body),
                "ironic" => all.ironic.entry(host).or_default().amend(ask, &mut body),
                "redfish" => all.bmcs.entry(host).or_default().amend(ask, &mut body),
                _ => false,
            }
        });
        if changed {
            answer.body = body.to_string().into_bytes();
        }
    }

    /// What a BMC's resource would hold after an action that does not say so.
    pub(super) fn imagine(&self, host: &str, path: &str, members: &Value) {
        self.with(|all| all.bmcs.entry(host.to_owned()).or_default().imagine(path, members));
    }

    /// Remembers with which password a BMC's user changes an account's.
    pub(super) fn changes_password(&self, host: &str, path: &str, user: &str, password: &SecretString) {
        self.with(|all| all.bmcs.entry(host.to_owned()).or_default().asks_with(path, user, password));
    }

    /// The password that a BMC's user really has, where another one is only imagined.
    pub(super) fn real_password(&self, host: &str, user: &str) -> Option<SecretString> {
        self.with(|all| all.bmcs.get(host)?.former(user))
    }

    /// Counts a read that is no HTTP request.
    pub(super) fn read(&self) {
        self.with(|all| all.reads += 1);
    }

    /// Notes a write to a DHCP host.
    pub(super) fn wrote_dhcp(&self, server: &str, method: &str, path: &str) {
        let (server, method, path) = (server.to_owned(), method.to_owned(), path.to_owned());
        let write = PlannedRequest { system: "dhcp", server, method, path };
        self.with(|all| all.writes.push(write));
    }

    /// A file as it would be: `None` where it was not touched here, `Some(None)` where it would be gone.
    pub(super) fn file(&self, server: &str, path: &str) -> Option<Option<Vec<u8>>> {
        self.with(|all| all.files.get(&(server.to_owned(), path.to_owned())).cloned())
    }

    pub(super) fn put_file(&self, server: &str, path: &str, content: Option<Vec<u8>>) {
        self.with(|all| all.files.insert((server.to_owned(), path.to_owned()), content));
    }

    /// How many reads were asked for so far, those that were answered here among them.
    pub fn reads(&self) -> u32 {
        self.with(|all| all.reads)
    }

    /// The writes so far, in their order.
    pub fn writes(&self) -> Vec<PlannedRequest> {
        self.with(|all| all.writes.clone())
    }

    /// The writes from the `n`th on.
    pub fn writes_from(&self, n: usize) -> Vec<PlannedRequest> {
        self.with(|all| all.writes.get(n..).unwrap_or_default().to_vec())
    }

    /// The first write that could not be imagined, and so was refused: a plan ends there.
    pub fn refused(&self) -> Option<String> {
        self.with(|all| all.refused.clone())
    }

    /// Time passes: what Ironic is at work on comes one step further.
    pub fn time_passes(&self) {
        self.with(|all| all.ironic.values_mut().for_each(ironic::World::time_passes));
    }

    /// Whether the node's inventory would be of an inspection that was only imagined.
    pub fn is_inspected(&self, node: NodeUuid) -> bool {
        self.with(|all| all.ironic.values().any(|world| world.is_inspected(&node.to_string())))
    }

    /// The identifiers that were made up here.
    pub fn made_up(&self) -> Vec<String> {
        self.with(|all| all.ironic.values().flat_map(|world| world.made_up()).collect())
    }

    /// Keeps something that the process would remember of a real run, for the length of this rehearsal.
    pub fn keep(&self, key: &str, value: Vec<u8>) {
        self.with(|all| all.notes.insert(key.to_owned(), value));
    }

    /// What was kept under a key.
    pub fn recall(&self, key: &str) -> Option<Vec<u8>> {
        self.with(|all| all.notes.get(key).cloned())
    }

    fn with<T>(&self, f: impl FnOnce(&mut Imagined) -> T) -> T {
        f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Merges a change into a document as PATCH does: objects member by member, everything else replaced.
fn merge(document: &mut Value, change: &Value) {
    match (document, change) {
        (Value::Object(document), Value::Object(change)) => {
            for (key, value) in change {
                merge(document.entry(key).or_insert(Value::Null), value);
            }
        }
        (document, change) => *document = change.clone(),
    }
}
