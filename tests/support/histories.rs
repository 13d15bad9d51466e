//! Journals as files: one record a line, with fixed times and names, so that they tell nothing of the machine that made
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use muster::domain::event::RunRecord;
use serde_json::Value;

/// The folder of all versions.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

/// The folder of the version that is being built.
pub fn current() -> PathBuf {
    root().join(env!("CARGO_PKG_VERSION"))
}

/// Every journal of every version.
pub fn all() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for version in std::fs::read_dir(root()).unwrap() {
        let version = version.unwrap().path();
        if version.is_dir() {
            files.extend(std::fs::read_dir(version).unwrap().map(|file| file.unwrap().path()));
        }
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    files
}

pub fn read(path: &Path) -> Vec<RunRecord> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parsed = text
        .lines()
        .enumerate()
        .map(|(n, line)| serde_json::from_str(line).unwrap_or_else(|e| panic!("{}:{}: {e}", path.display(), n + 1)));
    parsed.collect()
}

/// The same journal as if it had begun at a fixed time, on services at fixed ports, with ids counted from one.
pub fn normalized(records: &[RunRecord]) -> String {
    let began: Timestamp = "2026-03-02T08:00:00Z".parse().unwrap();
    let shift = began.duration_since(records[0].at);
    let mut text = String::new();
    for record in records {
        let mut value = serde_json::to_value(record).unwrap();
        shift_times(&mut value, shift);
        text.push_str(&value.to_string());
        text.push('\n');
    }
    count_names(&count_ports(&text))
}

fn shift_times(value: &mut Value, shift: SignedDuration) {
    match value {
        Value::String(said) if said.len() >= 20 && said.as_bytes()[10] == b'T' => {
            if let Ok(at) = said.parse::<Timestamp>() {
                *said = (at + shift).to_string();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shift_times(item, shift)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shift_times(field, shift)),
        _ => {}
    }
}

/// Every UUID becomes one that is counted, in the order of their appearance.
fn count_names(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_uuid = |at: usize| {
        bytes.len() >= at + 36
            && bytes[at..at + 36].iter().enumerate().all(|(n, b)| match n {
                8 | 13 | 18 | 23 => *b == b'-',
                _ => b.is_ascii_hexdigit(),
            })
    };
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut kept = 0;
    let mut at = 0;
    while at < bytes.len() {
        if is_uuid(at) {
            let count = names.len() + 1;
            let n = *names.entry(&text[at..at + 36]).or_insert(count);
            out.push_str(&text[kept..at]);
            out.push_str(&format!("0195{:04x}-0000-7000-8000-{n:012x}", 0xb000 + n));
            at += 36;
            kept = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&text[kept..]);
    out
}

/// Every port of a loopback address becomes one that is counted.
fn count_ports(text: &str) -> String {
    let mut ports: BTreeMap<String, usize> = BTreeMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find("127.") {
        let (before, from) = rest.split_at(found);
        out.push_str(before);
        let host = from.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(from.len());
        out.push_str(&from[..host]);
        rest = &from[host..];
        let digits = rest
            .strip_prefix(':')
            .map_or("", |port| &port[..port.find(|c: char| !c.is_ascii_digit()).unwrap_or(port.len())]);
        if !digits.is_empty() {
            let count = ports.len() + 1;
            let n = *ports.entry(digits.to_owned()).or_insert(count);
            out.push_str(&format!(":{}", 8000 + n));
            rest = &rest[1 + digits.len()..];
        }
    }
    out.push_str(rest);
    out
}
