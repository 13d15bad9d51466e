//! GPUs by PCI id, and the BIOS version (V6, V7).

use std::collections::BTreeMap;

use serde_json::Value;

use super::found::{Found, pci_id};
use super::{Check, NOT_REPORTED, Owner, Wanted, exactly, row, unreadable, verdict};
use crate::domain::host::HostFacts;
use crate::domain::verify::Verdict;

const GPU_RULE: &str = "V7: exactly so many PCI devices with this vendor and product; no other device counts";

pub(super) fn gpus(wanted: &Wanted, _: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let devices = found.plugin_data["pci_devices"].as_array().map(Vec::as_slice);
    for (key, value) in wanted.map {
        match (key.as_str(), product(key)) {
            ("count", _) => {
                if let Some(count) = wanted.number(key, &mut checks) {
                    checks.push(by_class(count, devices));
                }
            }
            (_, Some(id)) => {
                if let Some(count) = wanted.number(key, &mut checks) {
                    let seen =
                        devices.map(|all| all.iter().filter(|d| id_of(d).as_deref() == Some(&id)).count() as u64);
                    checks.push(exactly("gpu", &id, count, seen, GPU_RULE, "GPU"));
                }
            }
            (_, None) => {
                checks.push(unreadable(&format!("gpus.{key}"), value, "a key VENDOR:PRODUCT, such as 10de:2335"))
            }
        }
    }
    checks
}

/// GPUs where NetBox has their number and not their ids: all 3D controllers and accelerators (classes 0302 and 12), and
/// display controllers (0300) of the two makers whose GPUs report that class. A BMC's own display is neither.
fn by_class(count: u64, devices: Option<&[Value]>) -> Check {
    let is_gpu = |device: &&Value| {
        let class = device["class"].as_str().unwrap_or_default().trim_start_matches("0x").to_ascii_lowercase();
        let vendor = device["vendor_id"].as_str().and_then(pci_id);
        class.starts_with("0302")
            || class.starts_with("12")
            || (class.starts_with("0300") && matches!(vendor.as_deref(), Some("10de" | "1002")))
    };
    let mut kinds = BTreeMap::new();
    for device in devices.unwrap_or_default().iter().filter(is_gpu) {
        *kinds.entry(id_of(device).unwrap_or_else(|| "no id".to_owned())).or_insert(0u64) += 1;
    }
    let seen = devices.map(|_| kinds.values().sum());
    let rule = "V7: so many GPUs; their ids are not recorded, so PCI classes decide";
    let mut check = exactly("gpu", "count", count, seen, rule, "GPU");
    if !kinds.is_empty() {
        let kinds: Vec<String> = kinds.iter().map(|(id, n)| format!("{n} × {id}")).collect();
        check.observed = kinds.join(", ");
    }
    check
}

/// `10de:2335` from any spelling of the two ids.
fn product(key: &str) -> Option<String> {
    let (vendor, product) = key.split_once(':')?;
    Some(format!("{}:{}", pci_id(vendor)?, pci_id(product)?))
}

fn id_of(device: &Value) -> Option<String> {
    let id = |key: &str| device[key].as_str().and_then(pci_id);
    Some(format!("{}:{}", id("vendor_id")?, id("product_id")?))
}

/// Lists are membership: whole equality after trimming, letter case included, no order of versions (C-24).
pub(super) fn bios(wanted: &Wanted, _: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let allow = wanted.texts("allow", &mut checks);
    let block = wanted.texts("block", &mut checks);
    let firmware = found.inventory["system_vendor"]["firmware"]["version"].as_str();
    let plugins = &found.plugin_data;
    let told = [&plugins["dmi"]["bios"]["Version"], &plugins["extra"]["firmware"]["bios"]["version"]];
    let version = firmware.into_iter().chain(told.into_iter().filter_map(Value::as_str));
    let version = version.map(str::trim).find(|v| !v.is_empty());
    let (allow, block) = (allow.unwrap_or_default(), block.unwrap_or_default());
    // Two empty lists ask for nothing.
    if !allow.is_empty() || !block.is_empty() {
        checks.push(version_check(&allow, &block, version));
    }
    checks.extend(wanted.others(&["allow", "block"]));
    checks
}

fn version_check(allow: &[String], block: &[String], version: Option<&str>) -> Check {
    let entry = |list: &[String], version: &str| list.iter().find(|e| e.trim() == version).cloned();
    let expected = match (allow.is_empty(), block.is_empty()) {
        (false, true) => format!("one of {}", allow.join(", ")),
        (true, _) => format!("none of {}", block.join(", ")),
        (false, false) => format!("one of {}; none of {}", allow.join(", "), block.join(", ")),
    };
    let Some(version) = version else {
        let rule = "V6: a version that cannot be read is not allowed";
        let action = "make the inspection report the BIOS version, then inspect again";
        return row("bios", "", expected, NOT_REPORTED, Verdict::Fail, rule).mend(Owner::InfraEng, action);
    };
    let (passes, rule) = match (entry(block, version), entry(allow, version)) {
        (Some(entry), _) => (false, format!("V6: blocked by the entry '{entry}'")),
        (None, Some(entry)) => (true, format!("V6: allowed by the entry '{entry}'")),
        (None, None) if allow.is_empty() => (true, "V6: not blocked".to_owned()),
        (None, None) => (false, "V6: not in the list of allowed versions; entries are whole versions".to_owned()),
    };
    let alike = allow.iter().find(|e| e.trim() != version && e.trim().eq_ignore_ascii_case(version));
    row("bios", "", expected, version, verdict(passes), &rule)
        .mend(Owner::InfraEng, "bring the BIOS to an allowed version, or correct the list in NetBox")
        .hinted(alike.map(|e| format!("'{e}' differs in letter case only")))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use serde_json::json;

    /// Case: C-22. Proves: V7
    #[test]
    fn gpus_are_counted_by_exact_id_and_bridges_do_not_count() {
        let case = case(include_str!("../../../tests/fixtures/cases/c22-gpu-count.json"));
        let judge = |name: &str| {
            let plugin = case[name]["plugin_data"].clone();
            let check = only("gpu", json!({"gpus": case["expect"]}), json!({}), plugin).remove(0);
            (check.verdict, check.observed, check.owner)
        };
        assert_eq!(judge("good"), (Verdict::Pass, "8".into(), None));
        assert_eq!(judge("one_gone"), (Verdict::Fail, "7".into(), Some(Owner::Onsite)));
        assert_eq!(judge("upper_case_ids"), (Verdict::Pass, "8".into(), None));
        assert_eq!(judge("no_pci_data"), (Verdict::Fail, "not reported".into(), Some(Owner::InfraEng)));
    }

    /// Case: C-22. Proves: V7
    #[test]
    fn a_bare_count_takes_gpus_by_class_and_names_what_it_counted() {
        let case = case(include_str!("../../../tests/fixtures/cases/c22-gpu-count.json"));
        let judge = |name: &str| {
            only("gpu", json!({"gpus": {"count": 8}}), json!({}), case[name]["plugin_data"].clone()).remove(0)
        };
        assert_eq!((judge("good").verdict, judge("good").observed), (Verdict::Pass, "8 × 10de:2335".into()));
        assert_eq!(judge("one_gone").observed, "7 × 10de:2335");
        assert_eq!(judge("no_pci_data").verdict, Verdict::Fail);
    }

    #[test]
    fn a_key_that_is_no_pci_id_is_an_unreadable_rule() {
        let checks = judge_settings(json!({"gpus": {"h200": 8, "10DE:0x2335": 1}}));
        assert_eq!(checks, ["inspection_validation.gpus.h200"]);
    }

    fn judge_settings(validation: Value) -> Vec<String> {
        only("settings", validation, json!({}), json!({})).into_iter().map(|c| c.subject).collect()
    }

    /// Case: C-24. Proves: V6
    #[test]
    fn bios_lists_are_membership_without_prefixes_and_without_order() {
        let case = case(include_str!("../../../tests/fixtures/cases/c24-bios-versions.json"));
        for pair in case["seen"].as_array().unwrap() {
            let word = pair[1].as_str().unwrap();
            // The table's words are about one list each.
            let list = if word.contains("blocked") { "block" } else { "allow" };
            let inventory = json!({"system_vendor": {"firmware": {"version": pair[0]}}});
            let check = only("bios", json!({"bios": {list: case[list]}}), inventory, json!({})).remove(0);
            let expected = match word {
                "allowed" | "not blocked" => Verdict::Pass,
                _ => Verdict::Fail,
            };
            assert_eq!(check.verdict, expected, "{pair} {check:#?}");
            assert_eq!(check.hint.is_some(), word.starts_with("decide once"), "{pair}");
        }
        let both = only(
            "bios",
            json!({"bios": {"allow": ["1"], "block": ["1"]}}),
            json!({}),
            json!({"dmi": {"bios": {"Version": "1"}}}),
        );
        assert_eq!((both[0].verdict, both[0].rule.as_str()), (Verdict::Fail, "V6: blocked by the entry '1'"));
    }
}
