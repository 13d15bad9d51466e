//! Judges an inspected inventory against what NetBox records (V1–V10).
//!
//! What the hardware has to be stands in `config_context.ironic_settings.inspection_validation`. Every key may be left out;
//! what is not asked for is not judged. Numbers may be written as text.
//!
//! | key | meaning |
//! | --- | --- |
//! | `cpu.arch` | `x86_64` or `aarch64`, in any of their spellings |
//! | `cpu.sockets` | sockets |
//! | `cpu.cores` | physical cores of all sockets (DMI); logical CPUs where the inventory has no DMI |
//! | `cpu.min_cores` | at least so many cores, counted the same way |
//! | `cpu.threads` | logical CPUs |
//! | `nics.count`, `nics.min_count` | NICs that the inspection saw, those that NetBox does not have included |
//! | `nics.vendors` | list: each frontend NIC's PCI vendor is one of these; table `{vendor: n}`: exactly so many NICs |
//! | `nics.link` | `true`: every frontend NIC reports a carrier |
//! | `nics.min_speed_mbps` | of every frontend NIC |
//! | `disks.count`, `disks.min_count` | disks, each once, however many paths lead to it |
//! | `disks.models` | list: each disk's model is one of these; table `{model: n}`: exactly so many disks, and no others |
//! | `memory.gib`, `memory.min_gib` | installed memory |
//! | `memory.dimms`, `memory.dimm_gib` | number of sticks; size of each |
//! | `memory.mixed_dimms` | `true` lets sticks differ in size |
//! | `bios.allow`, `bios.block` | lists of versions, by whole equality |
//! | `gpus.VENDOR:PRODUCT` | exactly so many PCI devices with these ids (hex) |
//! | `gpus.count` | GPUs, where the ids are not recorded: see `devices.rs` |
//!
//! The inspector's older form of inventories is read as well (`found.rs`): `all_interfaces` and `extra` of the plugin data.
//!
//! What is asked for and not reported fails: unknown is no pass. The one exception is a carrier that is not reported (V1).

mod cabling;
mod cpu;
mod devices;
mod disks;
mod found;
mod heard;
mod links;
mod memory;
mod report;
pub(in crate::domain) mod spelling;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::cable_doctor::{self, Survey};
use super::failure::Owner;
use super::host::{HostFacts, IronicSettings};
use super::text::neutralize_to;
use super::verify::{Check, Verdict, Verification};

pub use cpu::{arch_name, arch_trait};
use found::Found;
pub use heard::heard;
pub use report::failure;

/// Judges everything that is asked of a host. `inventory` and `plugin_data` are as Ironic stores them.
pub fn judge(
    host: &HostFacts,
    inventory: &Value,
    plugin_data: &Value,
    inspected_at: Option<Timestamp>,
) -> Verification {
    let found = Found::read(inventory, plugin_data);
    let nothing = Map::new();
    let wanted = host.ironic_settings.as_ref().map_or(&nothing, |s| &s.inspection_validation);
    let mut checks = links::carrier(host, &found);
    for (name, value) in wanted {
        checks.extend(section(name, value, host, &found));
    }
    checks.extend(cabling::lldp(host, &found));
    let mut verification = Verification { checks, inspected_at, diagnosis: None, place: Some(host.place()) };
    // What this host alone tells. Whoever knows what others heard explains it again (V12).
    let heard = heard::of(host, &found, inspected_at.unwrap_or_default());
    verification.explain(&host.name, &cable_doctor::diagnose(&Survey::of_host(heard)));
    verification
}

/// How many checks an inventory of this host gets that has all its interfaces, told from the verdict on an empty one: what
/// a plan can say of an inspection that nobody has made (G14).
pub fn count_of_whole(verdict_on_nothing: &Verification) -> usize {
    verdict_on_nothing.checks.iter().filter(|check| check.observed != links::NIC_MISSING).count()
}

/// Every key of `inspection_validation` that cannot be read or that nobody reads: its path, and what is wrong with it.
pub fn misfits(validation: &Map<String, Value>) -> Vec<(String, String)> {
    let settings = IronicSettings { inspection_validation: validation.clone(), ..IronicSettings::default() };
    let host = HostFacts { ironic_settings: Some(settings), ..HostFacts::nobody() };
    let rows = judge(&host, &Value::Null, &Value::Null, None).checks;
    let wrong = rows.into_iter().filter(|check| check.kind == SETTINGS);
    wrong
        .map(|check| match check.verdict {
            Verdict::Skipped => (check.subject, "is no key that muster knows".to_owned()),
            _ => (check.subject, format!("is {}, {} is needed", check.observed, check.expected)),
        })
        .collect()
}

/// The checks of one key of `inspection_validation`.
fn section(name: &str, value: &Value, host: &HostFacts, found: &Found) -> Vec<Check> {
    let known: fn(&Wanted, &HostFacts, &Found) -> Vec<Check> = match name {
        "cpu" => cpu::check,
        "nics" => links::nics,
        "disks" => disks::check,
        "memory" => memory::check,
        "bios" => devices::bios,
        "gpus" => devices::gpus,
        _ => return vec![not_known(name)],
    };
    match value {
        Value::Null => vec![],
        Value::Object(map) => known(&Wanted { section: name, map }, host, found),
        other => vec![unreadable(name, other, "a table")],
    }
}

/// A table of what is wanted.
struct Wanted<'a> {
    section: &'a str,
    map: &'a Map<String, Value>,
}

impl Wanted<'_> {
    /// A number; one that cannot be read becomes a failed check.
    fn number(&self, key: &str, checks: &mut Vec<Check>) -> Option<u64> {
        let value = self.map.get(key).filter(|v| !v.is_null())?;
        let read = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
        if read.is_none() {
            checks.push(unreadable(&format!("{}.{key}", self.section), value, "a whole number"));
        }
        read
    }

    /// A list of texts; a single text is a list of one.
    fn texts(&self, key: &str, checks: &mut Vec<Check>) -> Option<Vec<String>> {
        let value = self.map.get(key).filter(|v| !v.is_null())?;
        let read = match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(list) => list.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        if read.is_none() {
            checks.push(unreadable(&format!("{}.{key}", self.section), value, "a list of texts"));
        }
        read
    }

    fn is_true(&self, key: &str, checks: &mut Vec<Check>) -> bool {
        match self.map.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(value)) => *value,
            Some(other) => {
                checks.push(unreadable(&format!("{}.{key}", self.section), other, "true or false"));
                false
            }
        }
    }

    /// Rows for keys that nobody reads, so that a misspelt one does not pass unseen.
    fn others(&self, known: &[&str]) -> Vec<Check> {
        let unknown = self.map.keys().filter(|key| !known.contains(&key.as_str()));
        unknown.map(|key| not_known(&format!("{}.{key}", self.section))).collect()
    }
}

/// One row of the sheet.
fn row(
    kind: &str,
    subject: &str,
    expected: impl ToString,
    observed: impl ToString,
    verdict: Verdict,
    rule: &str,
) -> Check {
    Check {
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        expected: neutralize_to(&expected.to_string(), 200),
        observed: neutralize_to(&observed.to_string(), 300),
        verdict,
        rule: rule.to_owned(),
        hint: None,
        owner: None,
        action: None,
    }
}

impl Check {
    /// Who mends it and how; only on a failed check.
    fn mend(mut self, owner: Owner, action: impl Into<String>) -> Self {
        if self.verdict == Verdict::Fail {
            self.owner = Some(owner);
            self.action = Some(action.into());
        }
        self
    }

    fn hinted(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }
}

fn verdict(passes: bool) -> Verdict {
    if passes { Verdict::Pass } else { Verdict::Fail }
}

/// A number that must be exactly so large. `observed: None` is "not reported".
fn exactly(kind: &str, subject: &str, wanted: u64, seen: Option<u64>, rule: &str, part: &str) -> Check {
    let shown = seen.map_or_else(|| NOT_REPORTED.to_owned(), |n| n.to_string());
    let check = row(kind, subject, wanted, shown, verdict(seen == Some(wanted)), rule);
    mend_count(check, wanted, seen, part)
}

/// A number that must be at least so large.
fn at_least(kind: &str, subject: &str, wanted: u64, seen: Option<u64>, rule: &str, part: &str) -> Check {
    let shown = seen.map_or_else(|| NOT_REPORTED.to_owned(), |n| n.to_string());
    let passes = seen.is_some_and(|n| n >= wanted);
    mend_count(row(kind, subject, format!("at least {wanted}"), shown, verdict(passes), rule), wanted, seen, part)
}

fn mend_count(check: Check, wanted: u64, seen: Option<u64>, part: &str) -> Check {
    match seen {
        Some(n) if n < wanted => {
            check.mend(Owner::Onsite, format!("find the missing {part}: reseat or replace it, then inspect again"))
        }
        Some(_) => check.mend(Owner::InfraEng, format!("correct inspection_validation in NetBox, or the {part}")),
        None => check.mend(
            Owner::InfraEng,
            format!("make the inspection report the {part} (collectors of the ramdisk), then inspect again"),
        ),
    }
}

/// The kind of a row about the rules themselves.
const SETTINGS: &str = "settings";

const NOT_REPORTED: &str = "not reported";

fn unreadable(key: &str, value: &Value, wanted: &str) -> Check {
    let subject = format!("inspection_validation.{key}");
    row(SETTINGS, &subject, wanted, value, Verdict::Fail, "a rule that cannot be read is no rule")
        .mend(Owner::InfraEng, format!("correct '{subject}' in the device's config context in NetBox"))
}

fn not_known(key: &str) -> Check {
    let subject = format!("inspection_validation.{}", neutralize_to(key, 60));
    row(
        SETTINGS,
        &subject,
        "a key that muster knows",
        "not known, not judged",
        Verdict::Skipped,
        "unknown keys are shown",
    )
}

#[cfg(test)]
pub(crate) mod testing {
    //! Hosts and inventories for the tables of this module.

    use super::*;
    use crate::domain::host::{CablePeer, HostInterface, IronicSettings, SiteFacts};

    /// A host with these frontend interfaces: name, MAC, switch, port (empty: uncabled).
    pub fn host(interfaces: &[(&str, &str, &str, &str)], validation: Value) -> HostFacts {
        let interfaces: Vec<HostInterface> = interfaces
            .iter()
            .enumerate()
            .map(|(n, (name, mac, switch, port))| HostInterface {
                netbox_id: n as u64 + 1,
                name: (*name).into(),
                mac: mac.parse().ok(),
                kind: "25gbase-x-sfp28".into(),
                description: "frontend".into(),
                peer: (!switch.is_empty()).then(|| CablePeer {
                    switch: (*switch).into(),
                    port: (*port).into(),
                    ..Default::default()
                }),
                ..Default::default()
            })
            .collect();
        let settings = IronicSettings {
            interfaces: interfaces.iter().map(|i| i.name.clone()).collect(),
            inspection_validation: validation.as_object().cloned().unwrap_or_default(),
            ..Default::default()
        };
        HostFacts {
            netbox_id: 1,
            name: "gpu-b07-41".into(),
            status: "staged".into(),
            site: SiteFacts::default(),
            rack: Some("B07".into()),
            position: Some(41.0),
            serial: None,
            device_class: None,
            manufacturer: "Supermicro".into(),
            model: "SYS".into(),
            tags: vec![],
            oob_ip: None,
            management: None,
            interfaces,
            ironic_settings: Some(settings),
        }
    }

    /// The input of a case.
    pub fn case(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// The checks of a kind, on a host without interfaces.
    pub fn only(kind: &str, validation: Value, inventory: Value, plugin_data: Value) -> Vec<Check> {
        let mut checks = judge(&host(&[], validation), &inventory, &plugin_data, None).checks;
        checks.retain(|c| c.kind == kind);
        checks
    }

    /// The single check of a kind and subject.
    pub fn one<'a>(checks: &'a [Check], kind: &str, subject: &str) -> &'a Check {
        let mut found = checks.iter().filter(|c| c.kind == kind && c.subject == subject);
        let check = found.next().unwrap_or_else(|| panic!("no {kind} {subject} in {checks:#?}"));
        assert!(found.next().is_none(), "{kind} {subject} twice");
        check
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;
    use serde_json::json;

    /// Proves: V10
    #[test]
    fn every_mismatch_is_reported_not_only_the_first() {
        let host = host(
            &[("eth0", "52:54:00:10:01:01", "leaf-1", "swp1"), ("eth1", "52:54:00:10:01:02", "leaf-2", "swp1")],
            json!({"cpu": {"arch": "aarch64", "sockets": 4}, "gpus": {"10de:2335": 9}, "memory": {"gib": 1024}}),
        );
        let body = case(include_str!("../../../tests/fixtures/ironic/114-inventory.json"));
        let body = &body["response"]["body"];
        let verdicts = judge(&host, &body["inventory"], &body["plugin_data"], None);
        let failed: Vec<String> = verdicts.failed().map(|c| format!("{} {}", c.kind, c.subject)).collect();
        assert_eq!(failed, ["cpu arch", "cpu sockets", "gpu 10de:2335", "memory size", "lldp eth0", "lldp eth1"]);
        assert!(verdicts.failed().all(|c| c.owner.is_some() && c.action.is_some()), "{verdicts:#?}");
    }

    /// Proves: V2, V3, V4, V5, V6, V7, V8
    #[test]
    fn a_real_inventory_of_the_right_host_passes_every_check() {
        let host = host(
            &[("eth0", "52:54:00:10:01:01", "leaf-1a", "swp1"), ("eth1", "52:54:00:10:01:02", "leaf-1b", "swp1")],
            json!({
                "cpu": {"arch": "x86_64", "sockets": 2, "cores": 96, "threads": "192"},
                "nics": {"min_count": 2, "vendors": ["15b3"], "link": true, "min_speed_mbps": 25000},
                "disks": {"count": 3, "models": {"EX7450 960GB": 1, "EX7450 7680GB": 2}},
                "memory": {"gib": 768, "dimms": 24, "dimm_gib": 32},
                "bios": {"allow": ["2.17"]},
                "gpus": {"10de:2335": 8},
            }),
        );
        let body = case(include_str!("../../../tests/fixtures/ironic/114-inventory.json"));
        let body = &body["response"]["body"];
        let verdicts = judge(&host, &body["inventory"], &body["plugin_data"], None);
        assert!(verdicts.passed(), "{:#?}", verdicts.failed().collect::<Vec<_>>());
        assert!(verdicts.checks.len() > 18, "{:#?}", verdicts.checks);
    }

    /// A host as the inspector's fixture has it, with everything asked that is there.
    fn inspected_by_the_inspector() -> (crate::domain::host::HostFacts, Value) {
        let host = host(
            &[
                ("eth0", "52:54:00:10:01:01", "leaf-b07-1", "swp14"),
                ("eth1", "52:54:00:10:01:02", "leaf-b07-2", "swp14"),
            ],
            json!({
                "cpu": {"arch": ["aarch64", "x86_64"], "sockets": 2, "cores": 48, "threads": 96},
                "nics": {"count": 2, "vendors": ["15b3"], "link": true, "min_speed_mbps": 25000},
                "disks": {"count": 1, "models": ["EX7450 960GB"]},
                "memory": {"gib": 512, "dimms": 16, "dimm_gib": 32},
                "bios": {"allow": ["2.3.3"]},
                "gpus": {"10de:2335": 8},
            }),
        );
        (host, case(include_str!("../../../tests/fixtures/inspector/introspection.json")))
    }

    /// Proves: V1, V2, V3, V4, V5, V6, V7, V8
    #[test]
    fn the_inspectors_older_form_passes_every_check_too() {
        let (host, body) = inspected_by_the_inspector();
        let verdicts = judge(&host, &body["inventory"], &body["plugin_data"], None);
        assert!(verdicts.passed(), "{:#?}", verdicts.failed().collect::<Vec<_>>());
        for (kind, subject, observed) in [
            ("memory", "size", "512 GiB in 16 × 32 GiB"),
            ("cpu", "cores", "48"),
            ("cpu", "sockets", "2"),
            ("bios", "", "2.3.3"),
            ("nic", "eth1 speed", "25000 Mbit/s"),
            ("lldp", "eth0", "leaf-b07-1 swp14 (gpu-b07-37 p1p1)"),
        ] {
            assert_eq!(one(&verdicts.checks, kind, subject).observed, observed);
        }
    }

    /// Proves: V8, V11
    #[test]
    fn neighbours_are_found_wherever_the_two_forms_have_them() {
        let (host, body) = inspected_by_the_inspector();
        let (inventory, plugin) = (&body["inventory"], &body["plugin_data"]);
        let lldp = |inventory: &Value, plugin: &Value| {
            let checks = judge(&host, inventory, plugin, None).checks;
            (one(&checks, "lldp", "eth0").verdict, one(&checks, "lldp", "eth1").verdict)
        };
        let both = (Verdict::Pass, Verdict::Pass);
        let mut without_raw = inventory.clone();
        for nic in without_raw["interfaces"].as_array_mut().unwrap() {
            nic["lldp"] = Value::Null;
        }
        assert_eq!(lldp(&without_raw, plugin), both, "lldp_processed alone");
        let mut without_processed = plugin.clone();
        let mut raw = json!({});
        for (nic, name) in [(0, "p1p1"), (1, "p1p2")] {
            without_processed["all_interfaces"][name].as_object_mut().unwrap().remove("lldp_processed");
            raw[name] = inventory["interfaces"][nic]["lldp"].clone();
        }
        assert_eq!(lldp(inventory, &without_processed), both, "raw lists of the inventory alone");
        without_processed["lldp_raw"] = raw.clone();
        assert_eq!(lldp(&without_raw, &without_processed), both, "raw lists of the collector alone");
        assert_eq!(lldp(&json!({}), plugin), both, "no inventory at all");
        let agents = json!({"parsed_lldp": {"p1p1": plugin["all_interfaces"]["p1p1"]["lldp_processed"]}});
        assert_eq!(lldp(&without_raw, &agents), (Verdict::Pass, Verdict::Fail), "the agent's parsed form");
        let agent = case(include_str!("../../../tests/fixtures/ironic/114-inventory.json"));
        let agent = &agent["response"]["body"];
        let mut bare = agent["inventory"].clone();
        bare["interfaces"] = Value::Null;
        let host = testing::host(&[("eth0", "52:54:00:10:01:01", "leaf-1a", "swp1")], json!({}));
        let plugin = json!({"all_interfaces": agent["plugin_data"]["all_interfaces"]});
        let checks = judge(&host, &bare, &plugin, None).checks;
        assert_eq!(one(&checks, "lldp", "eth0").verdict, Verdict::Pass, "the agent's interfaces by name");
        assert_eq!(one(&checks, "carrier", "eth0").verdict, Verdict::Pass);
    }

    #[test]
    fn what_an_inspectors_plugins_leave_out_is_not_reported_and_never_smaller() {
        let (host, body) = inspected_by_the_inspector();
        let mut plugin = body["plugin_data"].clone();
        // One bank does not tell its size: together they are less than what is told of all.
        plugin["extra"]["memory"]["bank:3"].as_object_mut().unwrap().remove("size");
        plugin["extra"]["cpu"]["physical_1"].as_object_mut().unwrap().remove("cores");
        plugin["extra"].as_object_mut().unwrap().remove("firmware");
        let checks = judge(&host, &body["inventory"], &plugin, None).checks;
        assert_eq!(one(&checks, "memory", "dimms").observed, NOT_REPORTED);
        assert!(one(&checks, "memory", "size").observed.contains("by the kernel"));
        assert_eq!(one(&checks, "cpu", "cores").observed, "96", "the logical ones");
        assert_eq!(one(&checks, "bios", "").verdict, Verdict::Fail);
    }

    /// Case: C-07. Proves: V1, V8
    #[test]
    fn one_mac_on_two_nics_has_one_verdict_in_any_order() {
        let host = host(&[("eth0", "52:54:00:10:01:01", "leaf-b07-1", "swp14")], json!({}));
        let nic = |name: &str, carrier: bool| json!({"name": name, "mac_address": "52:54:00:10:01:01", "has_carrier": carrier});
        let parsed = |port: &str| json!({"switch_system_name": "leaf-b07-1", "switch_port_id": port});
        let plugin = json!({"parsed_lldp": {"a": parsed("swp14"), "b": parsed("swp9")}});
        let judge = |nics: Value| judge(&host, &json!({"interfaces": nics}), &plugin, None).checks;
        let (one_way, other_way) =
            (judge(json!([nic("a", true), nic("b", false)])), judge(json!([nic("b", false), nic("a", true)])));
        for kind in ["carrier", "lldp"] {
            assert_eq!(one(&one_way, kind, "eth0"), one(&other_way, kind, "eth0"));
            assert_eq!(one(&one_way, kind, "eth0").verdict, Verdict::Fail, "{kind}");
        }
        let quiet = judge(json!([nic("a", true), nic("bond0", true)]));
        assert_eq!(one(&quiet, "lldp", "eth0").verdict, Verdict::Pass, "a bond on top of it");
    }

    #[test]
    fn a_rule_that_cannot_be_read_fails_and_an_unknown_one_is_shown() {
        let checks = judge(
            &host(&[], json!({"cpu": {"sockets": "two", "colour": "red"}, "disks": 3, "fans": {}})),
            &json!({}),
            &json!({}),
            None,
        )
        .checks;
        let settings: Vec<_> =
            checks.iter().filter(|c| c.kind == "settings").map(|c| (c.subject.as_str(), c.verdict)).collect();
        assert_eq!(
            settings,
            [
                ("inspection_validation.cpu.sockets", Verdict::Fail),
                ("inspection_validation.cpu.colour", Verdict::Skipped),
                ("inspection_validation.disks", Verdict::Fail),
                ("inspection_validation.fans", Verdict::Skipped),
            ]
        );
    }
}
