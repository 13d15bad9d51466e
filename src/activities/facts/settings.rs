//! Reads `config_context.ironic_settings`, naming the key that does not fit.

use serde_json::{Map, Value};

use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::IronicSettings;
use crate::domain::phase::Phase;
use crate::domain::text::{neutralize, neutralize_to};

const KEY: &str = "ironic_settings";

/// The settings, or `None` where the context has none. A key that is null is a key that a heavier context took back.
pub fn read(host: &str, context: Option<&Map<String, Value>>, phase: Phase) -> Result<Option<IronicSettings>, Failure> {
    let Some(value) = context.and_then(|context| context.get(KEY)).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let mut value = value.clone();
    if let Value::Object(settings) = &mut value {
        settings.retain(|_, value| !value.is_null());
        if let Some(Value::Object(bond)) = settings.get_mut("bond") {
            bond.retain(|_, value| !value.is_null());
        }
    }
    serde_path_to_error::deserialize(&value).map(Some).map_err(|error| {
        let path = error.path().to_string();
        let key = if path == "." { KEY.to_owned() } else { format!("{KEY}.{}", neutralize(&path)) };
        let problem = neutralize_to(&error.inner().to_string(), 200);
        Failure::new(
            FailureCode::NetboxDataInvalid,
            phase,
            format!("config_context.{key} of '{host}' cannot be used: {problem}"),
            format!("correct '{key}' in the NetBox config context that applies to '{host}'"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(value: Value) -> Result<Option<IronicSettings>, Failure> {
        let context = json!({ "ironic_settings": value });
        read("gpu-b07-37", context.as_object(), Phase::Inspection)
    }

    #[test]
    fn no_settings_and_settings_taken_back_are_none() {
        assert_eq!(read("x", None, Phase::Dhcp).unwrap(), None);
        assert_eq!(settings(Value::Null).unwrap(), None);
        assert_eq!(settings(json!({"bond": null, "driver": null})).unwrap(), Some(IronicSettings::default()));
    }

    #[test]
    fn a_wrong_type_names_its_key() {
        let cases = [
            (json!({"bond": {"miimon": "100"}}), "config_context.ironic_settings.bond.miimon of 'gpu-b07-37'"),
            (json!({"interfaces": ["eth0", 7]}), "config_context.ironic_settings.interfaces[1] of"),
            (json!({"skip_cable_verification": "no"}), "config_context.ironic_settings.skip_cable_verification of"),
            (json!("redfish"), "config_context.ironic_settings of"),
        ];
        for (value, expected) in cases {
            let failure = settings(value).unwrap_err();
            assert_eq!(failure.code, FailureCode::NetboxDataInvalid);
            assert!(failure.message.contains(expected), "{}", failure.message);
        }
    }

    #[test]
    fn unknown_keys_are_left_alone() {
        let read = settings(json!({"driver": "redfish", "something_new": {"a": 1}})).unwrap().unwrap();
        assert_eq!(read.driver.as_deref(), Some("redfish"));
    }
}
