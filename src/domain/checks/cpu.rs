//! CPUs: architecture, sockets, cores (V2).

use serde_json::Value;

use super::found::{Found, list, number};
use super::{Check, Owner, Wanted, at_least, exactly, row, verdict};
use crate::domain::host::HostFacts;

/// The one name of an architecture, whatever spelling a system has for it (C-23); `None` for one that is not served.
pub fn arch_name(text: &str) -> Option<&'static str> {
    match text.trim().to_ascii_lowercase().as_str() {
        "x86_64" | "x86-64" | "amd64" | "x64" => Some("x86_64"),
        "aarch64" | "arm64" | "arm-a64" => Some("aarch64"),
        _ => None,
    }
}

/// The scheduler trait of an architecture's name (E13).
pub fn arch_trait(name: &str) -> Option<&'static str> {
    match arch_name(name)? {
        "x86_64" => Some("HW_ARCH_X86_64"),
        "aarch64" => Some("HW_ARCH_AARCH64"),
        _ => None,
    }
}

pub(super) fn check(wanted: &Wanted, _: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let cpu = &found.inventory["cpu"];
    let (dmi, extra) = (list(&found.plugin_data["dmi"]["cpu"]), &found.plugin_data["extra"]["cpu"]);
    if let Some(archs) = wanted.texts("arch", &mut checks).filter(|list| !list.is_empty()) {
        let seen = [&cpu["architecture"], &found.plugin_data["cpu_arch"]].into_iter().find_map(Value::as_str);
        checks.push(architecture(&archs, seen));
    }
    if let Some(sockets) = wanted.number("sockets", &mut checks) {
        let told = cpu["socket_count"].as_u64().or((!dmi.is_empty()).then_some(dmi.len() as u64));
        let seen = told.or_else(|| number(&extra["physical"]["number"]));
        checks.push(exactly("cpu", "sockets", sockets, seen, "V2: the sockets are those recorded", "CPU"));
    }
    if let Some(cores) = wanted.number("cores", &mut checks) {
        let (logical, physical) = (cpu["count"].as_u64(), physical_cores(dmi, extra));
        let rule = "V2: the physical cores of all sockets are those recorded; without DMI the logical CPUs are taken";
        let check = exactly("cpu", "cores", cores, physical.or(logical), rule, "CPU");
        let doubled = physical.is_none() && logical == Some(cores * 2);
        let hint =
            "the inspection has no DMI data and reports logical CPUs, twice the cores: record cpu.threads instead";
        checks.push(check.hinted(doubled.then_some(hint)));
    }
    if let Some(threads) = wanted.number("threads", &mut checks) {
        checks.push(exactly(
            "cpu",
            "threads",
            threads,
            cpu["count"].as_u64(),
            "V2: the logical CPUs are those recorded",
            "CPU",
        ));
    }
    if let Some(cores) = wanted.number("min_cores", &mut checks) {
        let seen = physical_cores(dmi, extra).or(cpu["count"].as_u64());
        checks.push(at_least("cpu", "min_cores", cores, seen, "V2: there are at least so many cores", "CPU"));
    }
    checks.extend(wanted.others(&["arch", "sockets", "cores", "threads", "min_cores"]));
    checks
}

fn architecture(wanted: &[String], seen: Option<&str>) -> Check {
    let rule = "V2: one architecture under its one name";
    let have = seen.and_then(arch_name);
    let unknown = wanted.iter().find(|want| arch_name(want).is_none());
    let passes = unknown.is_none() && have.is_some() && wanted.iter().any(|want| arch_name(want) == have);
    let shown = seen.filter(|s| !s.trim().is_empty()).unwrap_or(super::NOT_REPORTED);
    let check = row("cpu", "arch", wanted.join(", "), shown, verdict(passes), rule);
    let action = match (unknown, have) {
        (Some(want), _) => format!("correct '{want}' in inspection_validation.cpu.arch in NetBox: x86_64 or aarch64"),
        (None, None) => format!("look at the host: the inspection reports the architecture '{shown}'"),
        (None, Some(_)) => "correct the architecture in NetBox, or the host that is racked here".to_owned(),
    };
    check.mend(Owner::InfraEng, action)
}

/// Cores by DMI, by the hardware collector where there is no DMI; `None` unless every socket tells its own.
fn physical_cores(dmi: &[Value], extra: &Value) -> Option<u64> {
    if !dmi.is_empty() {
        return dmi.iter().map(|cpu| number(&cpu["Core Count"])).sum();
    }
    let sockets: Vec<&Value> =
        extra.as_object()?.iter().filter(|(key, _)| key.starts_with("physical_")).map(|(_, socket)| socket).collect();
    let all = number(&extra["physical"]["number"]).is_none_or(|n| n == sockets.len() as u64);
    if sockets.is_empty() || !all { None } else { sockets.iter().map(|socket| number(&socket["cores"])).sum() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::domain::verify::Verdict;
    use serde_json::json;

    /// Case: C-23. Proves: V2, E13
    #[test]
    fn every_spelling_of_an_architecture_is_one_name_and_an_unknown_one_fails_with_the_value_read() {
        let case = case(include_str!("../../../tests/fixtures/cases/c23-cpu-arch.json"));
        for group in case["same"].as_array().unwrap() {
            let names: Vec<&str> = group.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
            for a in &names {
                for b in &names {
                    let checks =
                        only("cpu", json!({"cpu": {"arch": a}}), json!({"cpu": {"architecture": b}}), json!({}));
                    assert_eq!(checks[0].verdict, Verdict::Pass, "{a} {b}");
                }
                assert_eq!(arch_trait(a), case["trait"][names[0]].as_str());
            }
        }
        for unknown in case["unknown"].as_array().unwrap() {
            let inventory = json!({"cpu": {"architecture": unknown}});
            let checks = only("cpu", json!({"cpu": {"arch": "x86_64"}}), inventory, json!({}));
            assert_eq!(checks[0].verdict, Verdict::Fail, "{unknown}");
            let shown = unknown.as_str().filter(|t| !t.is_empty()).unwrap_or("not reported");
            assert_eq!(checks[0].observed, shown);
            assert_eq!(unknown.as_str().and_then(arch_trait), None);
        }
    }

    /// Proves: V2
    #[test]
    fn cores_are_counted_by_dmi_and_logical_cpus_are_not_taken_for_them() {
        let dmi = json!({"dmi": {"cpu": [{"Core Count": "48"}, {"Core Count": 48}]}});
        let inventory = json!({"cpu": {"count": 192, "socket_count": 2}});
        let verdict = |plugin: &Value| {
            let checks = only("cpu", json!({"cpu": {"cores": 96}}), inventory.clone(), plugin.clone());
            (checks[0].verdict, checks[0].hint.is_some())
        };
        assert_eq!(verdict(&dmi), (Verdict::Pass, false));
        assert_eq!(verdict(&json!({})), (Verdict::Fail, true));
        let sockets = only("cpu", json!({"cpu": {"sockets": 2}}), json!({}), dmi);
        assert_eq!(sockets[0].verdict, Verdict::Pass);
        let unreported = only("cpu", json!({"cpu": {"sockets": 2, "threads": 4}}), json!({}), json!({}));
        assert!(unreported.iter().all(|c| c.verdict == Verdict::Fail && c.observed == "not reported"));
    }
}
