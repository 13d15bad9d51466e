//! Compares the shape of two JSON answers: keys, types, the form of times. Null stands for any type.

use serde_json::Value;

/// Where keys are somebody's own words and differ from site to site.
const FREE: &[&str] = &[
    "custom_fields",
    "config_context",
    "local_context_data",
    "driver_info",
    "driver_internal_info",
    "properties",
    "extra",
    "instance_info",
    "installed_apps",
    "target_raid_config",
    "raid_config",
];
/// Where keys are names, and every value has the shape of the others.
const NAMED: &[&str] = &["all_interfaces", "valid_interfaces", "lldp_raw", "parsed_lldp"];

/// Every difference in words; nothing where the shapes are one.
pub fn differences(recorded: &Value, lab: &Value) -> Vec<String> {
    let mut found = vec![];
    compare("$", recorded, lab, &mut found);
    found
}

fn compare(at: &str, recorded: &Value, lab: &Value, found: &mut Vec<String>) {
    match (recorded, lab) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(a), Value::Object(b)) => {
            let key = at.rsplit('.').next().unwrap_or_default();
            if FREE.contains(&key) {
                return;
            }
            if NAMED.contains(&key) {
                if let Some(first) = a.values().next() {
                    b.iter().for_each(|(name, value)| compare(&format!("{at}.{name}"), first, value, found));
                }
                return;
            }
            for (name, value) in a {
                match b.get(name) {
                    Some(other) => compare(&format!("{at}.{name}"), value, other, found),
                    None => found.push(format!("{at}.{name} is missing")),
                }
            }
            for name in b.keys().filter(|name| !a.contains_key(*name)) {
                found.push(format!("{at}.{name} is only in the lab"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            // Lists of one length are compared place by place (two kinds of links, a TLV), others against the first.
            let paired = a.len() == b.len();
            for (n, value) in b.iter().enumerate() {
                if let Some(model) = a.get(if paired { n } else { 0 }) {
                    compare(&format!("{at}[{n}]"), model, value, found);
                }
            }
        }
        (Value::String(a), Value::String(b)) => {
            if form_of_time(a) != form_of_time(b) {
                found.push(format!("{at} is '{b}', recorded is '{a}'"));
            }
        }
        (a, b) if kind(a) == kind(b) => {}
        (a, b) => found.push(format!("{at} is {} ({b}), recorded is {} ({a})", kind(b), kind(a))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// A time with its digits taken out, so that two times of one form are equal; `None` for other text.
fn form_of_time(text: &str) -> Option<String> {
    let is_time = text.len() > 18 && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T';
    is_time.then(|| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect())
}
