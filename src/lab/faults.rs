//! The fault language: what goes wrong in the lab, in a scenario's `[[faults]]` and in `POST /faults` alike.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::{LabTime, seconds};
use super::ledger::System;
use super::machine::Plug;

/// A fault. `at_s` counts lab seconds from the start of the lab, or from the moment of `POST /faults`; a fault without it
/// is there at once, and where it lasts `for_s`, that span begins when somebody first meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// Answers requests otherwise than the service would.
    Http(HttpRule),
    /// The host's frontend links stay down for a while after its next power on (or from `at_s`).
    DarkLink(DarkLink),
    /// Two cables of the host are plugged into each other's switch port; NetBox does not know.
    SwappedCables(SwappedCables),
    /// A cable is plugged into another switch port, or into none; NetBox does not know.
    CableMoved(CableMoved),
    /// Every cable is where NetBox has it, and every link has light.
    CablesMended(OfDevice),
    /// The next cleans fail in a step.
    CleanFails(Times),
    /// The ramdisk of the next inspections reports an error.
    InspectionFails(Times),
    /// The ramdisk of the next inspections never calls back.
    InspectionSilent(Times),
    /// Another operation holds the node's lock.
    NodeLocked(Lasting),
    /// The BMC has another password than the vault.
    BmcPasswordUnknown(OfDevice),
    /// The BMC answers 503.
    BmcBusy(Lasting),
}

/// Answers that differ from the service's own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpRule {
    /// Any system where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// HTTP method, or what the DHCP host's ledger has as its method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Path without query; `*` stands for any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// So many matching requests pass first.
    pub skip: u32,
    /// So many are answered by the rule; all of them where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Lab seconds before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// The status to answer with. Without `status`, `drop` and `hang` the service answers after the delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body beside `status`: JSON, or a text that is sent as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Headers beside `status`, such as `Retry-After`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Send only the first half of the answer's body, as if that were all.
    pub cut_body: bool,
    /// Fill the answer's body up with blanks to so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// Send the answer's body byte by byte, so many lab seconds apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drip_s: Option<f64>,
    /// Carry the request out before the answer is spoilt: the change happens, its answer is lost.
    pub after_effect: bool,
    /// Cut the connection instead of answering.
    pub drop: bool,
    /// Never answer.
    pub hang: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
    /// The rule ends so long after it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DarkLink {
    pub device: String,
    /// All frontend interfaces where it is left out.
    #[serde(default)]
    pub interfaces: Vec<String>,
    pub for_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwappedCables {
    pub device: String,
    pub interfaces: [String; 2],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CableMoved {
    pub device: String,
    pub interface: String,
    /// The port that it is plugged into; into none where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Plug>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    pub device: String,
    /// How often; once where it is left out.
    #[serde(default = "once")]
    pub times: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lasting {
    pub device: String,
    pub for_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfDevice {
    pub device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_s: Option<f64>,
}

fn once() -> u32 {
    1
}

impl Fault {
    /// When it begins, where that is not at once.
    pub fn at(&self) -> Option<Duration> {
        let at_s = match self {
            Fault::Http(f) => f.at_s,
            Fault::DarkLink(f) => f.at_s,
            Fault::SwappedCables(f) => f.at_s,
            Fault::CableMoved(f) => f.at_s,
            Fault::CleanFails(f) | Fault::InspectionFails(f) | Fault::InspectionSilent(f) => f.at_s,
            Fault::NodeLocked(f) | Fault::BmcBusy(f) => f.at_s,
            Fault::BmcPasswordUnknown(f) | Fault::CablesMended(f) => f.at_s,
        };
        at_s.map(seconds)
    }

    /// The device that it is about.
    pub fn device(&self) -> Option<&str> {
        match self {
            Fault::Http(f) => f.device.as_deref(),
            Fault::DarkLink(f) => Some(&f.device),
            Fault::SwappedCables(f) => Some(&f.device),
            Fault::CableMoved(f) => Some(&f.device),
            Fault::CleanFails(f) | Fault::InspectionFails(f) | Fault::InspectionSilent(f) => Some(&f.device),
            Fault::NodeLocked(f) | Fault::BmcBusy(f) => Some(&f.device),
            Fault::BmcPasswordUnknown(f) | Fault::CablesMended(f) => Some(&f.device),
        }
    }
}

/// What a rule makes of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Injected {
    /// Lab time before anything else.
    pub delay: Duration,
    pub instead: Option<Instead>,
    /// The service acts before the answer is spoilt.
    pub after_effect: bool,
    pub shape: Shape,
}

/// What happens to the body of an answer on its way, the service's own or another.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shape {
    pub cut: bool,
    /// Blanks are added up to so many bytes.
    pub bytes: Option<u64>,
    /// Lab time between two bytes.
    pub drip: Option<Duration>,
}

/// What a client gets instead of the service's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Instead {
    Answer { status: u16, headers: BTreeMap<String, String>, body: Option<Value> },
    Drop,
    Hang,
}

/// A request, as rules see it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub system: System,
    pub method: &'a str,
    /// Without the query.
    pub path: &'a str,
    pub device: Option<&'a str>,
}

#[derive(Debug)]
struct Active {
    rule: HttpRule,
    begins: LabTime,
    skipped: u32,
    used: u32,
}

/// The rules in force. Which one answers is decided in the order in which they came.
#[derive(Debug, Default)]
pub struct Rules {
    active: Mutex<Vec<Active>>,
}

impl Rules {
    /// Adds a rule that begins at `begins`.
    pub fn add(&self, rule: HttpRule, begins: LabTime) {
        self.with(|active| active.push(Active { rule, begins, skipped: 0, used: 0 }));
    }

    /// Forgets all rules.
    pub fn clear(&self) {
        self.with(Vec::clear);
    }

    /// How often each rule has answered, in the order in which they came.
    pub fn uses(&self) -> Vec<u32> {
        self.with(|active| active.iter().map(|a| a.used).collect())
    }

    /// What to do with a request; `None` lets the service answer. Counts the request where it matches.
    pub fn meet(&self, now: LabTime, asked: Asked<'_>) -> Option<Injected> {
        self.with(|active| active.iter_mut().find_map(|a| a.meet(now, asked)))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Active>) -> T) -> T {
        f(&mut self.active.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Active {
    fn meet(&mut self, now: LabTime, asked: Asked<'_>) -> Option<Injected> {
        let rule = &self.rule;
        let over = rule.for_s.is_some_and(|s| now >= self.begins + seconds(s));
        if now < self.begins || over || rule.count.is_some_and(|n| self.used >= n) {
            return None;
        }
        let matches = rule.system.is_none_or(|s| s == asked.system)
            && rule.method.as_deref().is_none_or(|m| m.eq_ignore_ascii_case(asked.method))
            && rule.path.as_deref().is_none_or(|p| glob(p, asked.path))
            && rule.device.as_deref().is_none_or(|d| asked.device == Some(d));
        if !matches {
            return None;
        }
        if self.skipped < rule.skip {
            self.skipped += 1;
            return None;
        }
        self.used += 1;
        let instead = match (rule.drop, rule.hang, rule.status) {
            (true, ..) => Some(Instead::Drop),
            (_, true, _) => Some(Instead::Hang),
            (_, _, Some(status)) => {
                Some(Instead::Answer { status, headers: rule.headers.clone(), body: rule.body.clone() })
            }
            _ => None,
        };
        let shape = Shape { cut: rule.cut_body, bytes: rule.body_bytes, drip: rule.drip_s.map(seconds) };
        let delay = seconds(rule.delay_s.unwrap_or(0.0));
        Some(Injected { delay, instead, after_effect: rule.after_effect, shape })
    }
}

/// Whether a text is what a pattern with `*` describes.
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(glob("/v1/nodes/*/states/provision", "/v1/nodes/abc/states/provision"));
        assert!(!glob("/v1/nodes/*/states/provision", "/v1/nodes/abc/states/power"));
        assert!(glob("*", "") && glob("/a*", "/a") && glob("/a", "/a") && !glob("/a", "/ab") && !glob("ab*ba", "aba"));
    }

    #[test]
    fn a_rule_skips_then_counts() {
        let rules = Rules::default();
        rules.add(HttpRule { skip: 1, count: Some(2), status: Some(503), ..HttpRule::default() }, LabTime::ZERO);
        let asked = Asked { system: System::Bmc, method: "GET", path: "/redfish/v1", device: None };
        let hits: Vec<bool> = (0..5).map(|_| rules.meet(LabTime::ZERO, asked).is_some()).collect();
        assert_eq!(hits, [false, true, true, false, false]);
    }
}
