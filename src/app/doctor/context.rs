//! Holds a config context against what enrollment reads of it, and names every key that does not fit by its path. Pure.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::nearest::nearest;
use crate::domain::checks::{self, arch_name};
use crate::domain::host::{BondSettings, IronicSettings};
use crate::domain::platform_class::{GPU_COMPUTE, ztp_misfit};
use crate::domain::text::{neutralize, neutralize_to};
use crate::inventory::netbox::firmware_misfits;

const KEY: &str = "ironic_settings";
/// More wrong keys than that are another document.
const MOST: usize = 50;

/// A key that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Misfit {
    /// `ironic_settings.bond.miimon`
    pub path: String,
    pub problem: String,
    /// A run of the host fails on it; otherwise the key does nothing.
    pub fatal: bool,
}

impl Misfit {
    fn fatal(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Misfit { path: path.into(), problem: problem.into(), fatal: true }
    }

    fn idle(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Misfit { path: path.into(), problem: problem.into(), fatal: false }
    }
}

/// What is asked of a context beside `ironic_settings`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asks<'a> {
    pub class: &'a str,
    /// The platform class is computed at the site.
    pub platform_class: bool,
}

/// Every key of a host's context that does not fit, in the order of their paths.
pub(super) fn misfits(context: Option<&Map<String, Value>>, asks: Asks<'_>) -> Vec<Misfit> {
    let nothing = Map::new();
    let context = context.unwrap_or(&nothing);
    let mut found = match context.get(KEY).filter(|value| !value.is_null()) {
        None => vec![Misfit::fatal(KEY, "is missing")],
        Some(Value::Object(settings)) => ironic_settings(settings),
        Some(other) => vec![Misfit::fatal(KEY, format!("is {}, not an object", shown(other)))],
    };
    // P6: only hosts with GPUs have a fabric.
    if asks.platform_class
        && asks.class == GPU_COMPUTE
        && let Some(wrong) = ztp_misfit(context.get("ztp"))
    {
        found.push(Misfit::fatal("ztp.infiniband", wrong.message));
    }
    for problem in firmware_misfits(context) {
        let (path, problem) = problem.split_once(' ').unwrap_or((&problem, "does not fit"));
        found.push(Misfit::idle(path.trim_start_matches("config_context."), problem));
    }
    found.sort();
    found
}

fn ironic_settings(settings: &Map<String, Value>) -> Vec<Misfit> {
    // A null is a key that a heavier context took back.
    let mut left = without_nulls(settings);
    let mut found = strangers(&left);
    let settings = loop {
        let value = Value::Object(left.clone());
        match serde_path_to_error::deserialize::<_, IronicSettings>(&value) {
            Ok(settings) => break settings,
            Err(error) => {
                let path = error.path().to_string();
                found.push(Misfit::fatal(
                    format!("{KEY}.{}", neutralize(&path)),
                    format!("cannot be used: {}", neutralize_to(&error.inner().to_string(), 200)),
                ));
                // What is wrong is taken out, so that what is wrong behind it is found too.
                let key = path.split(['.', '[']).next().unwrap_or_default().to_owned();
                let is_out = match (path.split_once('.'), left.get_mut(&key)) {
                    (Some((_, inner)), Some(Value::Object(table))) => table.remove(inner).is_some(),
                    _ => false,
                };
                if (!is_out && left.remove(&key).is_none()) || found.len() >= MOST {
                    return found;
                }
            }
        }
    };
    let mut need = |key: &str, fits: bool, wanted: &str| {
        let is_told = |misfit: &Misfit| misfit.fatal && misfit.path.starts_with(&format!("{KEY}.{key}"));
        if !fits && !found.iter().any(is_told) {
            let problem = match left.get(key) {
                Some(value) => format!("is {}, {wanted} is needed", shown(value)),
                None => format!("is not set, {wanted} is needed"),
            };
            found.push(Misfit::fatal(format!("{KEY}.{key}"), problem));
        }
    };
    let is_driver = |name: &str| matches!(name, "redfish" | "idrac" | "ipmi");
    need("driver", settings.driver.as_deref().is_some_and(is_driver), "one of redfish, idrac, ipmi");
    let raid = settings.raid_interface.as_deref().is_some_and(|name| !name.is_empty());
    need("raid_interface", raid, "an interface of the driver (no-raid where there is none)");
    let arch = settings.cpu_arch.as_deref().is_none_or(|arch| arch_name(arch).is_some());
    need("cpu_arch", arch, "x86_64 or aarch64");
    let frontend = !settings.interfaces.is_empty() || settings.interface_type.is_some();
    need("interfaces", frontend, "a list of the frontend interfaces, or 'interface_type',");
    for (path, problem) in checks::misfits(&settings.inspection_validation) {
        found.push(match problem.starts_with("is no key") {
            true => Misfit::idle(format!("{KEY}.{path}"), problem),
            false => Misfit::fatal(format!("{KEY}.{path}"), problem),
        });
    }
    found
}

/// Keys that nobody reads and that look like one that is read. All others may be somebody else's.
fn strangers(settings: &Map<String, Value>) -> Vec<Misfit> {
    let mut found = misspelt("", settings, &keys_of(&IronicSettings::default()));
    if let Some(Value::Object(bond)) = settings.get("bond") {
        found.extend(misspelt("bond.", bond, &keys_of(&BondSettings::default())));
    }
    found
}

fn misspelt(prefix: &str, table: &Map<String, Value>, known: &[String]) -> Vec<Misfit> {
    let strange = table.keys().filter(|key| !known.contains(key));
    let meant = strange.filter_map(|key| Some((key, nearest(key, known.iter().map(String::as_str))?)));
    let line = |(key, meant): (&String, &str)| {
        Misfit::idle(format!("{KEY}.{prefix}{}", neutralize_to(key, 60)), format!("is not read; is '{meant}' meant?"))
    };
    meant.map(line).collect()
}

/// The names of a record's fields, as they are written.
fn keys_of(record: &impl Serialize) -> Vec<String> {
    match serde_json::to_value(record) {
        Ok(Value::Object(table)) => table.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn without_nulls(table: &Map<String, Value>) -> Map<String, Value> {
    let mut left: Map<String, Value> =
        table.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(Value::Object(bond)) = left.get_mut("bond") {
        bond.retain(|_, value| !value.is_null());
    }
    left
}

fn shown(value: &Value) -> String {
    format!("'{}'", neutralize_to(value.to_string().trim_matches('"'), 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(context: Value, class: &str) -> Vec<(String, bool)> {
        let found = misfits(context.as_object(), Asks { class, platform_class: true });
        assert!(found.iter().all(|misfit| !misfit.problem.is_empty()), "{found:#?}");
        found.into_iter().map(|misfit| (misfit.path, misfit.fatal)).collect()
    }

    fn good() -> Value {
        json!({"driver": "redfish", "raid_interface": "no-raid", "interfaces": ["eth0"], "cpu_arch": "x86_64",
               "bond": {"mode": "802.3ad", "miimon": 100}, "inspection_validation": {"cpu": {"sockets": 2}}})
    }

    /// Proves: K4
    #[test]
    fn a_context_that_fits_has_no_wrong_key() {
        let context = json!({"ironic_settings": good(), "ztp": {"infiniband": {}}, "anything": {"else": 1}});
        assert_eq!(of(context, "COMPUTE_GPU"), []);
        assert_eq!(of(json!({"ironic_settings": good(), "ztp": {}}), "COMPUTE_CPU"), [], "P6: ztp is not read");
    }

    /// Proves: K4, P5
    #[test]
    fn every_wrong_key_is_named_by_its_path_and_not_only_the_first() {
        let mut settings = good();
        settings["driver"] = json!("ilo");
        settings["raid_interface"] = json!(null);
        settings["bond"] = json!({"mode": 4, "miimon": "100", "xmit_hash_polcy": "layer3+4"});
        settings["interfaces"] = json!(["eth0", 7]);
        settings["skip_cable_verification"] = json!("no");
        settings["redfish_adress_override"] = json!("https://192.0.2.7");
        settings["inspection_validation"] = json!({"cpu": {"sockets": "two"}, "gpu": {}, "memory": {"gb": 512}});
        settings["something_of_another_program"] = json!(1);
        let context = json!({"ironic_settings": settings, "ztp": {"infiniband": "yes"},
                             "firmware_policy": {"bios": {"allow": "1.4.2"}}});
        let wrong = of(context, "COMPUTE_GPU");
        let named = |path: &str, fatal: bool| assert!(wrong.contains(&(path.to_owned(), fatal)), "{path}: {wrong:#?}");
        for path in [
            "ironic_settings.driver",
            "ironic_settings.raid_interface",
            "ironic_settings.bond.mode",
            "ironic_settings.bond.miimon",
            "ironic_settings.interfaces[1]",
            "ironic_settings.skip_cable_verification",
            "ironic_settings.inspection_validation.cpu.sockets",
            "ztp.infiniband",
        ] {
            named(path, true);
        }
        for path in [
            "ironic_settings.bond.xmit_hash_polcy",
            "ironic_settings.redfish_adress_override",
            "ironic_settings.inspection_validation.gpu",
            "ironic_settings.inspection_validation.memory.gb",
            "firmware_policy.bios.allow",
        ] {
            named(path, false);
        }
        assert_eq!(wrong.len(), 13, "{wrong:#?}");
    }

    #[test]
    fn a_context_without_settings_or_with_other_ones_is_wrong_as_a_whole() {
        assert_eq!(of(json!({}), "COMPUTE_CPU"), [("ironic_settings".to_owned(), true)]);
        assert_eq!(of(json!({"ironic_settings": null}), "COMPUTE_CPU"), [("ironic_settings".to_owned(), true)]);
        assert_eq!(of(json!({"ironic_settings": ["redfish"]}), "COMPUTE_CPU"), [("ironic_settings".to_owned(), true)]);
    }
}
