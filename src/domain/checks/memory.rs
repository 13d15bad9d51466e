//! Memory: installed size and the sticks it is made of (V5).
//!
//! The rule of rounding: the sum of the installed DIMMs decides, to the byte. Only where the inspection has no DIMM data
//! does the size that the kernel reports decide, and then up to one fiftieth (2 %) less than recorded passes: firmware
//! reserves about 1.6 % on the hosts measured, and the smallest stick of a full server is above 3 %.

use serde_json::Value;

use super::found::{Found, list, number};
use super::{Check, NOT_REPORTED, Owner, Wanted, exactly, row, verdict};
use crate::domain::host::HostFacts;

const TOLERANCE_PARTS: u64 = 50;

/// Installed sticks in MiB; `None` where there is no DIMM data, or one stick does not tell its size.
type Sticks = Option<Vec<u64>>;

pub(super) fn check(wanted: &Wanted, _: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let dmi = &found.plugin_data["dmi"]["memory"]["devices"];
    let sticks = match list(dmi).is_empty() {
        false => sticks(dmi),
        true => banks(&found.plugin_data["extra"]["memory"]),
    };
    let kernel = kernel_mib(found);
    if let Some(gib) = wanted.number("gib", &mut checks) {
        checks.push(size(gib, &sticks, kernel, false));
    }
    if let Some(gib) = wanted.number("min_gib", &mut checks) {
        checks.push(size(gib, &sticks, kernel, true));
    }
    if let Some(count) = wanted.number("dimms", &mut checks) {
        let seen = sticks.as_ref().map(|s| s.len() as u64);
        checks.push(exactly("memory", "dimms", count, seen, "V5: the sticks are as many as recorded", "DIMM"));
    }
    let each = wanted.number("dimm_gib", &mut checks);
    let mixed = wanted.is_true("mixed_dimms", &mut checks);
    if let Some(check) = consistency(each, mixed, &sticks) {
        checks.push(check);
    }
    checks.extend(wanted.others(&["gib", "min_gib", "dimms", "dimm_gib", "mixed_dimms"]));
    checks
}

/// What there is without its sticks being known.
fn kernel_mib(found: &Found) -> Option<u64> {
    let memory = &found.inventory["memory"];
    let told = memory["physical_mb"].as_u64().or_else(|| memory["total"].as_u64().map(|bytes| bytes >> 20));
    told.or_else(|| found.plugin_data["memory_mb"].as_u64())
}

fn size(gib: u64, sticks: &Sticks, kernel: Option<u64>, at_least: bool) -> Check {
    let wanted_mib = gib.saturating_mul(1024);
    let expected = if at_least { format!("at least {gib} GiB") } else { format!("{gib} GiB") };
    let (observed, passes, short) = match (sticks, kernel) {
        (Some(sticks), _) => {
            let sum: u64 = sticks.iter().sum();
            let fits = if at_least { sum >= wanted_mib } else { sum == wanted_mib };
            (format!("{} GiB in {}", gib_text(sum), shown(sticks)), fits, sum < wanted_mib)
        }
        (None, Some(mib)) => {
            let least = wanted_mib - wanted_mib / TOLERANCE_PARTS;
            let fits = mib >= least && (at_least || mib <= wanted_mib + wanted_mib / TOLERANCE_PARTS);
            (format!("{} GiB by the kernel, no DIMM data", gib_text(mib)), fits, mib < least)
        }
        (None, None) => (NOT_REPORTED.to_owned(), false, false),
    };
    let rule = "V5: the sum of the DIMMs decides; without DIMM data the kernel's size, 2 % less passes";
    let check = row("memory", "size", expected, observed, verdict(passes), rule);
    match short {
        true => check.mend(Owner::Onsite, "find the missing DIMM: reseat or replace it, then inspect again"),
        false => check.mend(Owner::InfraEng, "correct inspection_validation.memory in NetBox, or the host's DIMMs"),
    }
}

/// All sticks have one size (the recorded one, where it is).
fn consistency(each_gib: Option<u64>, mixed: bool, sticks: &Sticks) -> Option<Check> {
    let rule = "V5: all DIMMs have the same size";
    let Some(sticks) = sticks else {
        // Without DIMM data there is nothing to be consistent; a recorded size of the sticks is asked for in vain.
        let each = each_gib?;
        let check = row("memory", "dimm size", format!("{each} GiB each"), NOT_REPORTED, verdict(false), rule);
        return Some(check.mend(
            Owner::InfraEng,
            "make the inspection report DIMMs (collector dmi-decode of the ramdisk), then inspect again",
        ));
    };
    let alike = sticks.windows(2).all(|pair| pair[0] == pair[1]);
    let right = each_gib.is_none_or(|gib| sticks.iter().all(|mib| *mib == gib.saturating_mul(1024)));
    let expected = match each_gib {
        Some(gib) => format!("{gib} GiB each"),
        None if mixed => return None,
        None => "all of one size".to_owned(),
    };
    let check = row("memory", "dimm size", expected, shown(sticks), verdict(right && (alike || mixed)), rule);
    Some(check.mend(Owner::Onsite, "replace the DIMMs that differ, then inspect again"))
}

/// Empty slots are left out; a stick that does not tell its size makes the whole unknown, not smaller.
fn sticks(devices: &Value) -> Sticks {
    let mut sizes = Vec::new();
    for device in list(devices) {
        match stick(&device["Size"]) {
            Stick::Mib(mib) => sizes.push(mib),
            Stick::Empty => {}
            Stick::Unknown => return None,
        }
    }
    (!sizes.is_empty()).then_some(sizes)
}

/// The banks of the hardware collector, in bytes. An empty bank has no size; what is told of all banks together must be what
/// they are one by one, else the sticks are unknown.
fn banks(memory: &Value) -> Sticks {
    let banks = memory.as_object()?.iter().filter(|(key, _)| key.starts_with("bank:"));
    let sizes: Vec<u64> =
        banks.filter_map(|(_, bank)| number(&bank["size"])).map(|bytes| bytes >> 20).filter(|mib| *mib > 0).collect();
    let whole = number(&memory["total"]["size"]).is_none_or(|total| total >> 20 == sizes.iter().sum::<u64>());
    (whole && !sizes.is_empty()).then_some(sizes)
}

enum Stick {
    Mib(u64),
    Empty,
    Unknown,
}

/// `32 GB`, `32768 MB`, `No Module Installed`: DMI's GB are GiB. A bare number is MiB.
fn stick(size: &Value) -> Stick {
    if let Some(mib) = size.as_u64() {
        return if mib == 0 { Stick::Empty } else { Stick::Mib(mib) };
    }
    let text = size.as_str().unwrap_or_default().trim().to_ascii_lowercase();
    if text.starts_with("no module") || text == "not installed" || text == "0" {
        return Stick::Empty;
    }
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let Ok(number) = text[..digits].parse::<u64>() else { return Stick::Unknown };
    match text[digits..].trim() {
        "tb" | "tib" => Stick::Mib(number.saturating_mul(1024 * 1024)),
        "gb" | "gib" => Stick::Mib(number.saturating_mul(1024)),
        "mb" | "mib" | "" => Stick::Mib(number),
        _ => Stick::Unknown,
    }
}

/// `4 × 64 GiB, 16 × 16 GiB`, the larger first.
fn shown(sticks: &[u64]) -> String {
    let mut by_size = std::collections::BTreeMap::new();
    for mib in sticks {
        *by_size.entry(*mib).or_insert(0usize) += 1;
    }
    let parts: Vec<String> = by_size.iter().rev().map(|(mib, n)| format!("{n} × {} GiB", gib_text(*mib))).collect();
    parts.join(", ")
}

fn gib_text(mib: u64) -> String {
    if mib.is_multiple_of(1024) { (mib / 1024).to_string() } else { format!("{:.1}", mib as f64 / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::domain::verify::Verdict;
    use serde_json::json;

    fn plugin(dimms: &Value) -> Value {
        let devices: Vec<Value> =
            list(dimms).iter().map(|gib| json!({"Size": format!("{gib} GB"), "Type": "DDR5"})).collect();
        if devices.is_empty() { json!({}) } else { json!({"dmi": {"memory": {"devices": devices}}}) }
    }

    /// Case: C-21. Proves: V5
    #[test]
    fn the_sticks_decide_and_without_them_one_written_tolerance() {
        let case = case(include_str!("../../../tests/fixtures/cases/c21-memory-rounding.json"));
        let seen = case["seen"].as_array().unwrap();
        let wanted = json!({"memory": {"gib": case["expected_gib"]}});
        let judged: Vec<Vec<(String, Verdict, String)>> = seen
            .iter()
            .map(|s| {
                let checks = only("memory", wanted.clone(), json!({"memory": s["memory"]}), plugin(&s["dimms"]));
                checks.into_iter().map(|c| (c.subject, c.verdict, c.observed)).collect()
            })
            .collect();
        let sixteen = [
            ("size".into(), Verdict::Pass, "512 GiB in 16 × 32 GiB".into()),
            ("dimm size".into(), Verdict::Pass, "16 × 32 GiB".into()),
        ];
        assert_eq!(judged[0], sixteen);
        assert_eq!(judged[1], [("size".into(), Verdict::Pass, "504 GiB by the kernel, no DIMM data".into())]);
        assert_eq!(judged[2], sixteen, "no size by the kernel");
        assert_eq!(judged[3][0], ("size".into(), Verdict::Fail, "480 GiB in 15 × 32 GiB".into()));
        assert_eq!(judged[4][0].1, Verdict::Pass);
        assert_eq!(judged[4][1], ("dimm size".into(), Verdict::Fail, "4 × 64 GiB, 16 × 16 GiB".into()));
    }

    /// Case: C-21. Proves: V5
    #[test]
    fn a_stick_of_unknown_size_is_unknown_not_zero_and_an_empty_slot_is_no_stick() {
        let devices = |sizes: Value| {
            let devices: Vec<Value> = list(&sizes).iter().map(|s| json!({"Size": s})).collect();
            json!({"dmi": {"memory": {"devices": devices}}})
        };
        let judge = |sizes: Value, memory: Value| {
            only("memory", json!({"memory": {"min_gib": 64, "dimms": 2}}), json!({"memory": memory}), devices(sizes))
        };
        let empty_slot = judge(json!(["32 GB", "No Module Installed", "32768 MB"]), json!({}));
        assert!(empty_slot.iter().all(|c| c.verdict == Verdict::Pass), "{empty_slot:#?}");
        let unknown = judge(json!(["32 GB", null]), json!({"physical_mb": 65536}));
        assert_eq!(one(&unknown, "memory", "size").verdict, Verdict::Pass);
        assert_eq!(one(&unknown, "memory", "dimms").observed, "not reported");
        let nothing = judge(json!([]), json!({"physical_mb": null}));
        assert_eq!(one(&nothing, "memory", "size").observed, "not reported");
    }

    #[test]
    fn a_stick_short_fails_even_without_dimm_data() {
        let kernel = |mb: u64| {
            let checks =
                only("memory", json!({"memory": {"gib": 512}}), json!({"memory": {"physical_mb": mb}}), json!({}));
            (checks[0].verdict, checks[0].owner)
        };
        assert_eq!(kernel(524288 * 98 / 100).0, Verdict::Fail, "just below");
        assert_eq!(kernel(513_803).0, Verdict::Pass, "just at the tolerance");
        assert_eq!(kernel(491_520), (Verdict::Fail, Some(Owner::Onsite)));
        assert_eq!(kernel(557_056), (Verdict::Fail, Some(Owner::InfraEng)));
    }
}
