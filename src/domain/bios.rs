//! Firmware attributes: what is wanted against what a machine has, and which of it may be written (B5).

use std::collections::BTreeMap;

use serde_json::Value;

/// A machine's firmware attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bios {
    /// As the last boot left them.
    pub now: BTreeMap<String, Value>,
    /// What is staged for the next boot. `now` may have the same already: some firmware shows it before its time (Q14).
    pub staged: BTreeMap<String, Value>,
    /// What the registry says, by name; empty where it could not be read.
    pub rules: BTreeMap<String, Rule>,
}

/// What a registry says of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    pub read_only: bool,
    /// The words that it takes; empty where it is no enumeration.
    pub values: Vec<String>,
}

/// What became of the wanted attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// To be staged, with what each reads now.
    pub write: Vec<(String, Value, Value)>,
    /// Right already, now or from the next boot on: those are named in `awaits_boot`.
    pub satisfied: Vec<String>,
    pub awaits_boot: Vec<String>,
    /// Left as they are, with the reason: the machine lacks them, or its registry forbids the value.
    pub skipped: Vec<(String, String)>,
}

/// Compares. An attribute that the machine lacks is no fault: models differ.
pub fn difference(bios: &Bios, wanted: &BTreeMap<String, String>) -> Difference {
    let mut out = Difference::default();
    for (name, value) in wanted {
        let Some(now) = bios.now.get(name) else {
            out.skipped.push((name.clone(), "this machine has no such attribute".to_owned()));
            continue;
        };
        let staged = bios.staged.get(name);
        if reads(staged.unwrap_or(now), value) {
            out.satisfied.push(name.clone());
            if staged.is_some() {
                out.awaits_boot.push(name.clone());
            }
            continue;
        }
        if let Some(why) = bios.rules.get(name).and_then(|rule| forbids(rule, value)) {
            out.skipped.push((name.clone(), why));
            continue;
        }
        out.write.push((name.clone(), now.clone(), like(now, value)));
    }
    out
}

/// Whether an attribute reads as wanted: by meaning, since firmware writes one thing as word, number or flag.
pub fn reads(have: &Value, want: &str) -> bool {
    match have {
        Value::String(text) => text.trim().eq_ignore_ascii_case(want.trim()),
        Value::Number(number) => number.to_string() == want.trim(),
        Value::Bool(flag) => is_on(want) == Some(*flag),
        _ => false,
    }
}

fn forbids(rule: &Rule, value: &str) -> Option<String> {
    if rule.read_only {
        return Some("its registry says that it is read only".to_owned());
    }
    let known = rule.values.is_empty() || rule.values.iter().any(|word| word.eq_ignore_ascii_case(value));
    (!known).then(|| format!("its registry knows {}, and not '{value}'", rule.values.join(", ")))
}

/// The wanted value in the type that was read (Q35).
fn like(now: &Value, want: &str) -> Value {
    match now {
        Value::Number(_) => want.trim().parse::<i64>().map_or_else(|_| Value::from(want), Value::from),
        Value::Bool(_) => is_on(want).map_or_else(|| Value::from(want), Value::from),
        _ => Value::from(want),
    }
}

fn is_on(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "true" | "enabled" | "enable" | "on" => Some(true),
        "false" | "disabled" | "disable" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map<V: Clone>(pairs: &[(&str, V)]) -> BTreeMap<String, V> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn only_what_differs_exists_and_may_be_written_is_staged_in_the_type_that_was_read() {
        let rule =
            |read_only, values: &[&str]| Rule { read_only, values: values.iter().map(|v| (*v).into()).collect() };
        let bios = Bios {
            now: map(&[
                ("BootMode", json!("Bios")),
                ("Sriov", json!("enabled ")),
                ("Retries", json!(3)),
                ("Vmd", json!(true)),
                ("Locked", json!("Off")),
                ("Fan", json!("Low")),
                ("Turbo", json!("Disabled")),
            ]),
            staged: map(&[("Turbo", json!("Enabled"))]),
            rules: map(&[("Locked", rule(true, &[])), ("Fan", rule(false, &["Low", "High"]))]),
        };
        let wanted = map(&[
            ("BootMode", "Uefi".to_owned()),
            ("Sriov", "Enabled".to_owned()),
            ("Retries", "5".to_owned()),
            ("Vmd", "Disabled".to_owned()),
            ("Locked", "On".to_owned()),
            ("Fan", "Mad".to_owned()),
            ("Turbo", "Enabled".to_owned()),
            ("Missing", "x".to_owned()),
        ]);
        let found = difference(&bios, &wanted);
        let written: Vec<(&str, &Value)> = found.write.iter().map(|(name, _, to)| (&**name, to)).collect();
        assert_eq!(written, [("BootMode", &json!("Uefi")), ("Retries", &json!(5)), ("Vmd", &json!(false))]);
        assert_eq!(found.satisfied, ["Sriov", "Turbo"]);
        assert_eq!(found.awaits_boot, ["Turbo"]);
        let skipped: Vec<&str> = found.skipped.iter().map(|(name, _)| &**name).collect();
        assert_eq!(skipped, ["Fan", "Locked", "Missing"]);
    }
}
