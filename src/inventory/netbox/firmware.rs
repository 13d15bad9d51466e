//! Keeps which firmware each device may have, as its config context says (O8).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{ObserveError, Observer};
use crate::clients::netbox::records::DeviceRecord;
use crate::domain::text::neutralize_to;
use crate::domain::wiring::{FirmwarePolicy, FirmwareRule};
use crate::store::ObjectKind;

/// The key in the config context.
const KEY: &str = "firmware_policy";

impl Observer {
    /// Takes the policies of devices that were read with their config contexts; of others nothing is known.
    pub(super) async fn take_policies(&self, rows: &[DeviceRecord]) -> Result<(), ObserveError> {
        let contexts = rows.iter().filter_map(|row| Some((row.id, row.config_context.as_ref()?)));
        let read: Vec<(u64, Option<FirmwarePolicy>)> =
            contexts.map(|(id, context)| (id, policy(id, context))).collect();
        let without = read.iter().filter(|(_, policy)| policy.is_none()).map(|(id, _)| *id).collect();
        let policies = read.into_iter().filter_map(|(_, policy)| policy).collect();
        self.store.put_objects::<FirmwarePolicy>(policies, Timestamp::now()).await?;
        self.drop_policies(without).await
    }

    /// Reads the policies of all devices. A context that changed moves no time of a device, so that no delta tells it.
    pub(super) async fn read_policies(&self) -> Result<usize, ObserveError> {
        let (mut with, mut changed) = (BTreeSet::new(), 0);
        let mut sweep = self.netbox.contexts().await?;
        while let Some(rows) = sweep.next().await? {
            let policies: Vec<FirmwarePolicy> =
                rows.iter().filter_map(|row| policy(row.id, row.config_context.as_ref()?)).collect();
            with.extend(policies.iter().map(|policy| policy.device));
            changed += self.store.put_objects(policies, Timestamp::now()).await?.len();
        }
        if sweep.is_complete() {
            let known = self.store.object_stamps(ObjectKind::FirmwarePolicy)?;
            self.drop_policies(known.into_keys().filter(|id| !with.contains(id)).collect()).await?;
        }
        Ok(changed)
    }

    async fn drop_policies(&self, devices: Vec<u64>) -> Result<(), ObserveError> {
        if !devices.is_empty() {
            self.store.remove_objects(ObjectKind::FirmwarePolicy, devices).await?;
        }
        Ok(())
    }
}

/// Everything in the policy of a context that can't be read, each with its path at the beginning.
pub fn misfits(context: &Map<String, Value>) -> Vec<String> {
    policy(0, context).map(|policy| policy.problems).unwrap_or_default()
}

/// The policy of a context. What can't be read of it is named, and the rest holds: one device's context is no reason to
/// take none of the fleet.
fn policy(device: u64, context: &Map<String, Value>) -> Option<FirmwarePolicy> {
    let value = context.get(KEY).filter(|value| !value.is_null())?;
    let mut policy = FirmwarePolicy { device, rules: BTreeMap::new(), problems: Vec::new() };
    let Value::Object(rules) = value else {
        policy.problems.push(format!("config_context.{KEY} is {}, not an object by component", shown(value)));
        return Some(policy);
    };
    for (component, value) in rules.iter().filter(|(_, value)| !value.is_null()) {
        match rule(component, value) {
            Ok(rule) => drop(policy.rules.insert(neutralize_to(component, 60), rule)),
            Err(problem) => policy.problems.push(problem),
        }
    }
    Some(policy)
}

fn rule(component: &str, value: &Value) -> Result<FirmwareRule, String> {
    let place = |key: &str| format!("config_context.{KEY}.{}{key}", neutralize_to(component, 60));
    let text = |key: &str, value: &Value| match value {
        Value::String(text) => Ok(neutralize_to(text, 60)),
        other => Err(format!("{} is {}, not a text", place(key), shown(other))),
    };
    let Value::Object(keys) = value else { return Err(format!("{} is {}, not an object", place(""), shown(value))) };
    let mut rule = FirmwareRule::default();
    for (key, value) in keys.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("min", value) => rule.min = Some(text(".min", value)?),
            ("allow", Value::Array(list)) => {
                let versions: Result<_, String> =
                    list.iter().enumerate().map(|(n, value)| text(&format!(".allow[{n}]"), value)).collect();
                rule.allow = versions?;
            }
            ("allow", other) => return Err(format!("{} is {}, not a list", place(".allow"), shown(other))),
            // A key of a later time.
            _ => {}
        }
    }
    Ok(rule)
}

fn shown(value: &Value) -> String {
    format!("'{}'", neutralize_to(&value.to_string(), 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Option<FirmwarePolicy> {
        policy(7, json!({ "firmware_policy": value }).as_object().unwrap())
    }

    /// Proves: O8
    #[test]
    fn a_policy_has_a_rule_for_each_component() {
        let found =
            read(json!({"bmc": {"min": "2.10", "note": 1}, "bios": {"allow": ["1.4.2", "1.5.0"]}, "nic": null}));
        let found = found.unwrap();
        assert_eq!(found.rules.keys().collect::<Vec<_>>(), ["bios", "bmc"]);
        assert_eq!(found.rules["bmc"].min.as_deref(), Some("2.10"));
        assert_eq!(found.rules["bios"].allow, ["1.4.2", "1.5.0"]);
        assert!(found.problems.is_empty());
        assert_eq!(read(Value::Null), None);
        assert_eq!(policy(7, &Map::new()), None);
    }

    /// Proves: O7, O8
    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_holds() {
        let found =
            read(json!({"bmc": {"min": 2.10}, "bios": {"allow": ["1.4.2", 5]}, "nic": "22.1", "cpld": {"min": "3"}}));
        let found = found.unwrap();
        assert_eq!(found.rules.keys().collect::<Vec<_>>(), ["cpld"]);
        let named = [
            "firmware_policy.bios.allow[1] is '5'",
            "firmware_policy.bmc.min is '2.1'",
            "firmware_policy.nic is '\"22.1\"'",
        ];
        for (problem, named) in found.problems.iter().zip(named) {
            assert!(problem.contains(named), "{problem}");
        }
        assert_eq!(read(json!("latest")).unwrap().problems.len(), 1);
    }
}
