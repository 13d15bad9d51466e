//! Disks: how many, and which models (V4).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::found::{Found, list};
use super::{Check, NOT_REPORTED, Owner, Wanted, mend_count, row, verdict};
use crate::domain::host::HostFacts;

/// Buses that some inventories write in front of a model.
const BUSES: [&str; 5] = ["ATA", "NVMe", "SCSI", "SAS", "SATA"];

/// A disk, once for all of its paths.
struct Disk {
    model: String,
}

pub(super) fn check(wanted: &Wanted, _: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let reported = found.inventory["disks"].is_array();
    let (disks, paths) = disks(&found.inventory["disks"]);
    let seen = reported.then_some(disks.len() as u64);
    let shown = match seen {
        None => NOT_REPORTED.to_owned(),
        Some(n) if n as usize == paths => n.to_string(),
        Some(n) => format!("{n} devices over {paths} paths"),
    };
    let rule = "V4: a disk counts once by its WWN, by its serial where it has none, however many paths lead to it";
    if let Some(count) = wanted.number("count", &mut checks) {
        let check = row("disk", "count", count, &shown, verdict(seen == Some(count)), rule);
        checks.push(mend_count(check, count, seen, "disk"));
    }
    if let Some(count) = wanted.number("min_count", &mut checks) {
        let passes = seen.is_some_and(|n| n >= count);
        let check = row("disk", "count", format!("at least {count}"), &shown, verdict(passes), rule);
        checks.push(mend_count(check, count, seen, "disk"));
    }
    match wanted.map.get("models") {
        None | Some(Value::Null) => {}
        Some(Value::Object(table)) => {
            let table = Wanted { section: "disks.models", map: table };
            let mut counts = BTreeMap::new();
            for model in table.map.keys() {
                if let Some(count) = table.number(model, &mut checks) {
                    counts.insert(tidy(model), count);
                }
            }
            checks.extend(exact_models(&counts, &disks));
        }
        Some(_) => {
            if let Some(models) = wanted.texts("models", &mut checks) {
                checks.push(among(&models, &disks));
            }
        }
    }
    checks.extend(wanted.others(&["count", "min_count", "models"]));
    checks
}

const MODEL_RULE: &str = "V4: models are equal after trimming; neither a prefix nor another case is equal";

/// So many of each model, and none of another.
fn exact_models(wanted: &BTreeMap<String, u64>, disks: &[Disk]) -> Vec<Check> {
    let of = |model: &str| disks.iter().filter(|d| d.model == model).count() as u64;
    let others: BTreeSet<&str> = disks.iter().map(|d| d.model.as_str()).filter(|m| !wanted.contains_key(*m)).collect();
    let mut checks: Vec<Check> = wanted
        .iter()
        .map(|(model, count)| {
            let check = row("disk", model, count, of(model), verdict(of(model) == *count), MODEL_RULE);
            mend_count(check, *count, Some(of(model)), "disk")
                .hinted(others.iter().find_map(|other| explain(model, other)))
        })
        .collect();
    for model in others {
        let check = row("disk", model, "none", of(model), verdict(false), MODEL_RULE);
        checks.push(check.mend(Owner::InfraEng, "record this disk model in NetBox, or have the disk replaced"));
    }
    checks
}

/// Every disk is one of these models.
fn among(models: &[String], disks: &[Disk]) -> Check {
    let models: Vec<String> = models.iter().map(|m| tidy(m)).collect();
    let others: BTreeSet<&str> =
        disks.iter().map(|d| d.model.as_str()).filter(|m| !models.iter().any(|wanted| wanted == m)).collect();
    let seen: BTreeSet<&str> = disks.iter().map(|d| d.model.as_str()).collect();
    let observed = match seen.is_empty() {
        true => NOT_REPORTED.to_owned(),
        false => seen.into_iter().collect::<Vec<_>>().join(", "),
    };
    let passes = !disks.is_empty() && others.is_empty();
    let hint = others.iter().find_map(|other| models.iter().find_map(|model| explain(model, other)));
    row("disk", "models", models.join(", "), observed, verdict(passes), MODEL_RULE)
        .mend(Owner::InfraEng, "record the disk models in NetBox, or have the disks replaced")
        .hinted(hint)
}

/// What may be the only difference of two models.
fn explain(wanted: &str, seen: &str) -> Option<String> {
    if wanted.eq_ignore_ascii_case(seen) {
        return Some(format!("'{seen}' differs from '{wanted}' in letter case only"));
    }
    let bus = BUSES.iter().find(|bus| seen.strip_prefix(**bus).map(str::trim_start) == Some(wanted))?;
    Some(format!("'{seen}' is '{wanted}' with its bus '{bus}' in front"))
}

/// Trimmed of blanks and NULs, inner blanks collapsed.
fn tidy(model: &str) -> String {
    model.split(|c: char| c.is_whitespace() || c == '\0').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The disks, each once, and how many paths lead to them.
fn disks(value: &Value) -> (Vec<Disk>, usize) {
    let text = |disk: &Value, key: &str| disk[key].as_str().map(tidy).filter(|t| !t.is_empty());
    let mut seen = BTreeSet::new();
    let mut disks = Vec::new();
    for (n, disk) in list(value).iter().enumerate() {
        // Two volumes of one array share a serial: the WWN goes first.
        let identity = text(disk, "wwn_with_extension")
            .or_else(|| text(disk, "wwn"))
            .map(|wwn| format!("wwn {}", wwn.to_ascii_lowercase()))
            .or_else(|| text(disk, "serial").map(|serial| format!("serial {serial}")))
            .unwrap_or_else(|| format!("path {n}"));
        if seen.insert(identity) {
            disks.push(Disk { model: text(disk, "model").unwrap_or_else(|| "no model".to_owned()) });
        }
    }
    (disks, list(value).len())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::domain::verify::Verdict;
    use serde_json::json;

    /// Case: C-19. Proves: V4
    #[test]
    fn a_disk_counts_once_over_many_paths_and_two_volumes_with_one_serial_are_two() {
        let case = case(include_str!("../../../tests/fixtures/cases/c19-multipath-disks.json"));
        let checks = only("disk", json!({"disks": {"count": case["devices"]}}), case["inventory"].clone(), json!({}));
        assert_eq!((checks[0].verdict, checks[0].observed.as_str()), (Verdict::Pass, "4 devices over 10 paths"));
        let models = json!({"disks": {"models": {"IBM 2145": 2, "EX7450 960GB": "2"}}});
        let checks = only("disk", models, case["inventory"].clone(), json!({}));
        assert!(checks.iter().all(|c| c.verdict == Verdict::Pass), "{checks:#?}");
    }

    /// Case: C-20. Proves: V4
    #[test]
    fn models_are_compared_trimmed_and_a_bus_name_is_only_a_hint() {
        let case = case(include_str!("../../../tests/fixtures/cases/c20-disk-model-padding.json"));
        let judge = |model: &Value| {
            let inventory = json!({"disks": [{"model": model, "serial": "a"}]});
            let check = only("disk", json!({"disks": {"models": [case["netbox"]]}}), inventory, json!({})).remove(0);
            (check.verdict, check.hint.is_some())
        };
        let seen: Vec<_> = case["seen"].as_array().unwrap().iter().map(judge).collect();
        let (pass, hinted, fail) = ((Verdict::Pass, false), (Verdict::Fail, true), (Verdict::Fail, false));
        assert_eq!(seen, [pass, hinted, fail, pass, hinted]);
        assert_eq!(judge(&case["disk_split"]["model"]), pass);
        for other in case["must_differ"].as_array().unwrap() {
            assert_eq!(judge(other), fail, "{other}");
        }
    }

    /// Proves: V4
    #[test]
    fn a_missing_a_foreign_and_an_unreported_disk_fail() {
        let wanted = json!({"disks": {"count": 2, "models": {"A": 2}}});
        let inventory = json!({"disks": [{"model": "A", "wwn": "1"}, {"model": "B", "wwn": "2"}]});
        let checks = only("disk", wanted.clone(), inventory, json!({}));
        let failed: Vec<_> = checks.iter().filter(|c| c.verdict == Verdict::Fail).map(|c| c.subject.as_str()).collect();
        assert_eq!(failed, ["A", "B"]);
        let none = only("disk", json!({"disks": {"min_count": 0}}), json!({}), json!({}));
        assert_eq!((none[0].verdict, none[0].observed.as_str()), (Verdict::Fail, "not reported"));
    }
}
