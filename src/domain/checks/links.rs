//! Carriers and NICs (V1, V3). NetBox and inventory are joined by MAC only (C-17).

use serde_json::Value;

use super::found::{Found, Nic, pci_id};
use super::{Check, NOT_REPORTED, Owner, Wanted, at_least, exactly, row, unreadable, verdict};
use crate::domain::host::{HostFacts, HostInterface};
use crate::domain::verify::Verdict;

/// What is observed of an interface that the inventory lacks: a check that only such an inventory has.
pub(super) const NIC_MISSING: &str = "not in the inventory";

/// Always runs: no frontend interface may say that it has no carrier, and each has to be there.
pub(super) fn carrier(host: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = unresolved(host);
    let rule = "V1: a carrier that is explicitly missing fails; one that is not reported passes";
    for interface in host.frontend() {
        if interface.mac.is_none() {
            checks.push(row("carrier", &interface.name, "carrier", "no MAC in NetBox", Verdict::Unknown, rule));
            continue;
        }
        checks.extend(presence(interface, found));
        let seen = found.nic(interface).and_then(|nic| nic.has_carrier);
        let (observed, verdict) = match seen {
            Some(true) => ("carrier", Verdict::Pass),
            Some(false) => ("no carrier", Verdict::Fail),
            None => (NOT_REPORTED, Verdict::Unknown),
        };
        let check = row("carrier", &interface.name, "carrier", observed, verdict, rule);
        checks.push(check.mend(Owner::Onsite, format!("check cable, optic and switch port of {}", cable(interface))));
    }
    checks.extend(strangers(host, found));
    checks
}

/// `eth0 (leaf-b07-1 swp14, cable C-117, blue)`: the interface and its cable, as a person finds them.
pub(super) fn cable(interface: &HostInterface) -> String {
    let Some(peer) = &interface.peer else { return interface.name.clone() };
    let label = peer.cable_label.as_ref().map(|l| format!(", cable {l}")).unwrap_or_default();
    let color = peer.cable_color.as_ref().map(|c| format!(", colour {c}")).unwrap_or_default();
    format!("{} ({} {}{label}{color})", interface.name, peer.switch, peer.port)
}

/// Frontend interfaces that NetBox names and does not have. A host without any would pass every check of them unseen.
fn unresolved(host: &HostFacts) -> Vec<Check> {
    let rule = "V3: the frontend interfaces of ironic_settings are interfaces of the host";
    let action = "correct ironic_settings.interfaces or interface_type, or the interfaces, in NetBox";
    let missing = |subject: &str, observed: &str| {
        row("nic", subject, "an interface in NetBox", observed, Verdict::Fail, rule).mend(Owner::InfraEng, action)
    };
    if host.frontend().is_empty() {
        return vec![missing("frontend", "no frontend interface")];
    }
    host.frontend_missing().into_iter().map(|name| missing(name, "no such interface")).collect()
}

/// Only a NIC that is missing has a row: one that is there shows in the rows of its carrier and its neighbour.
fn presence(interface: &HostInterface, found: &Found) -> Option<Check> {
    let mac = interface.mac?;
    if found.nic(interface).is_some() {
        return None;
    }
    let rule = "V3: a frontend NIC of NetBox is found by its MAC, whatever its name";
    let check = row("nic", &interface.name, mac, NIC_MISSING, Verdict::Fail, rule);
    Some(check.mend(
        Owner::InfraEng,
        format!("look for the NIC with {mac}: a card that was moved, replaced or died; correct the MAC in NetBox"),
    ))
}

/// NICs that NetBox does not have: listed, and judged by the count only.
fn strangers(host: &HostFacts, found: &Found) -> Option<Check> {
    let known = |nic: &Nic| {
        let mut all = host.management.iter().chain(&host.interfaces);
        nic.mac.is_some() && all.any(|interface| interface.mac == nic.mac)
    };
    let extra: Vec<String> = found.nics.iter().filter(|nic| !known(nic)).map(Nic::shown).collect();
    let rule = "V3: NICs that NetBox does not have are listed, and judged by their count only";
    (!extra.is_empty()).then(|| row("nic", "not in NetBox", "", extra.join(", "), Verdict::Skipped, rule))
}

pub(super) fn nics(wanted: &Wanted, host: &HostFacts, found: &Found) -> Vec<Check> {
    let mut checks = Vec::new();
    let seen = found.has_interfaces().then_some(found.nics.len() as u64);
    let rule = "V3: the NICs that the inspection saw, those that NetBox does not have included";
    if let Some(count) = wanted.number("count", &mut checks) {
        checks.push(exactly("nic", "count", count, seen, rule, "NIC"));
    }
    if let Some(count) = wanted.number("min_count", &mut checks) {
        checks.push(at_least("nic", "count", count, seen, rule, "NIC"));
    }
    let frontend: Vec<&HostInterface> = host.frontend().into_iter().filter(|i| i.mac.is_some()).collect();
    match wanted.map.get("vendors") {
        None | Some(Value::Null) => {}
        Some(Value::Object(table)) => {
            let table = Wanted { section: "nics.vendors", map: table };
            for (key, value) in table.map {
                let Some(id) = pci_id(key) else {
                    checks.push(unreadable(&format!("nics.vendors.{key}"), value, "a PCI vendor id, such as 15b3"));
                    continue;
                };
                if let Some(count) = table.number(key, &mut checks) {
                    let of = found.nics.iter().filter(|nic| nic.vendor.as_deref() == Some(&id)).count() as u64;
                    let rule = "V3: exactly so many NICs of this PCI vendor";
                    checks.push(exactly("nic", &format!("vendor {id}"), count, Some(of), rule, "NIC"));
                }
            }
        }
        Some(_) => {
            if let Some(vendors) = wanted.texts("vendors", &mut checks) {
                for no_id in vendors.iter().filter(|v| pci_id(v).is_none()) {
                    let value = Value::from(no_id.as_str());
                    checks.push(unreadable("nics.vendors", &value, "PCI vendor ids, such as 15b3"));
                }
                let ids: Vec<String> = vendors.iter().filter_map(|v| pci_id(v)).collect();
                for interface in &frontend {
                    checks.push(vendor(interface, &vendors, &ids, found));
                }
            }
        }
    }
    if wanted.is_true("link", &mut checks) {
        for interface in &frontend {
            let seen = found.nic(interface).and_then(|nic| nic.has_carrier);
            let shown = match seen {
                Some(true) => "up",
                Some(false) => "down",
                None => NOT_REPORTED,
            };
            let rule = "V3: every frontend NIC reports a link";
            let check = row("nic", &format!("{} link", interface.name), "up", shown, verdict(seen == Some(true)), rule);
            checks.push(check.mend(Owner::Onsite, format!("check cable and optic of {}", cable(interface))));
        }
    }
    if let Some(speed) = wanted.number("min_speed_mbps", &mut checks) {
        for interface in &frontend {
            let seen = found.nic(interface).and_then(|nic| nic.speed_mbps);
            let shown = seen.map_or_else(|| NOT_REPORTED.to_owned(), |s| format!("{s} Mbit/s"));
            let rule = "V3: every frontend NIC is at least so fast";
            let subject = format!("{} speed", interface.name);
            let expected = format!("at least {speed} Mbit/s");
            let check = row("nic", &subject, expected, shown, verdict(seen.is_some_and(|s| s >= speed)), rule);
            checks
                .push(check.mend(Owner::Onsite, format!("check optic, cable and switch port of {}", cable(interface))));
        }
    }
    checks.extend(wanted.others(&["count", "min_count", "vendors", "link", "min_speed_mbps"]));
    checks
}

fn vendor(interface: &HostInterface, vendors: &[String], ids: &[String], found: &Found) -> Check {
    let seen = found.nic(interface).and_then(|nic| nic.vendor.clone());
    let passes = seen.as_ref().is_some_and(|seen| ids.contains(seen));
    let shown = seen.unwrap_or_else(|| NOT_REPORTED.to_owned());
    let rule = "V3: the PCI vendor of each frontend NIC is one of the list";
    let subject = format!("{} vendor", interface.name);
    row("nic", &subject, vendors.join(", "), shown, verdict(passes), rule)
        .mend(Owner::InfraEng, format!("record the vendor of {} in NetBox, or have the card replaced", interface.name))
}

#[cfg(test)]
mod tests {
    use super::super::{judge, testing::*};
    use super::*;
    use serde_json::json;

    const ETH: &[(&str, &str, &str, &str)] =
        &[("eth0", "52:54:00:10:01:01", "leaf-b07-1", "swp14"), ("eth1", "52:54:00:10:01:02", "leaf-b07-2", "swp14")];

    /// Proves: V1
    #[test]
    fn only_an_explicitly_missing_carrier_fails() {
        let nic = |n: u8, carrier: Value| json!({"name": format!("e{n}"), "mac_address": format!("52:54:00:10:01:0{n}"), "has_carrier": carrier});
        for (carrier, expected) in [
            (json!(true), Verdict::Pass),
            (json!(false), Verdict::Fail),
            (json!(null), Verdict::Unknown),
            (json!("no"), Verdict::Unknown),
        ] {
            let inventory = json!({"interfaces": [nic(1, carrier.clone()), nic(2, json!(true))]});
            let checks = judge(&host(ETH, json!({})), &inventory, &json!({}), None).checks;
            assert_eq!(one(&checks, "carrier", "eth0").verdict, expected, "{carrier}");
            assert_eq!(one(&checks, "carrier", "eth1").verdict, Verdict::Pass);
        }
    }

    /// Case: C-17. Proves: V3, V8
    #[test]
    fn renamed_nics_are_found_by_mac_and_a_name_in_use_by_another_card_misleads_nobody() {
        let case = case(include_str!("../../../tests/fixtures/cases/c17-nic-renamed.json"));
        let (inventory, plugin) = (&case["seen"]["inventory"], &case["seen"]["plugin_data"]);
        let verification = judge(&host(ETH, json!({})), inventory, plugin, None);
        assert!(verification.passed(), "{:#?}", verification.failed().collect::<Vec<_>>());
        let extra = one(&verification.checks, "nic", "not in NetBox");
        assert_eq!((extra.verdict, extra.observed.as_str()), (Verdict::Skipped, "eth0 52:54:00:10:01:77"));
        let counted = judge(&host(ETH, json!({"nics": {"count": 2}})), inventory, plugin, None);
        assert_eq!(one(&counted.checks, "nic", "count").observed, "3");
        assert!(!counted.passed());
    }

    /// Case: C-17. Proves: V3
    #[test]
    fn a_nic_that_the_inspection_did_not_see_is_named_as_missing() {
        let inventory =
            json!({"interfaces": [{"name": "eth0", "mac_address": "52:54:00:10:01:77", "has_carrier": true}]});
        let checks = judge(&host(&ETH[..1], json!({})), &inventory, &json!({}), None).checks;
        let missing = one(&checks, "nic", "eth0");
        assert_eq!((missing.verdict, missing.expected.as_str()), (Verdict::Fail, "52:54:00:10:01:01"));
        assert_eq!(one(&checks, "carrier", "eth0").verdict, Verdict::Unknown);
    }

    #[test]
    fn a_host_without_the_named_frontend_interfaces_does_not_pass_unseen() {
        let mut host = host(&ETH[..1], json!({}));
        host.ironic_settings.as_mut().unwrap().interfaces = vec!["eth0".into(), "eth7".into()];
        let inventory = json!({"interfaces": [{"name": "a", "mac_address": "52:54:00:10:01:01", "has_carrier": true}]});
        let checks = judge(&host, &inventory, &json!({}), None).checks;
        assert_eq!(one(&checks, "nic", "eth7").verdict, Verdict::Fail);
        host.ironic_settings.as_mut().unwrap().interfaces = vec!["eth7".into()];
        let checks = judge(&host, &inventory, &json!({}), None).checks;
        assert_eq!(one(&checks, "nic", "frontend").verdict, Verdict::Fail);
    }

    /// Proves: V3
    #[test]
    fn vendors_links_and_speeds_are_judged_for_each_frontend_nic() {
        let inventory = json!({"interfaces": [
            {"name": "a", "mac_address": "52:54:00:10:01:01", "has_carrier": true, "vendor": "0x15B3", "speed_mbps": 25000},
            {"name": "b", "mac_address": "52:54:00:10:01:02", "vendor": "0x8086", "speed_mbps": null},
        ]});
        let judge = |wanted: Value| -> Vec<(String, Verdict)> {
            let checks = judge(&host(ETH, json!({"nics": wanted})), &inventory, &json!({}), None).checks;
            checks.into_iter().filter(|c| c.kind == "nic").map(|c| (c.subject, c.verdict)).collect()
        };
        let (pass, fail) = (Verdict::Pass, Verdict::Fail);
        assert_eq!(judge(json!({"vendors": ["15b3"]})), [("eth0 vendor".into(), pass), ("eth1 vendor".into(), fail)]);
        assert_eq!(
            judge(json!({"vendors": {"15b3": 1, "8086": 2}})),
            [("vendor 15b3".into(), pass), ("vendor 8086".into(), fail)]
        );
        assert_eq!(judge(json!({"link": true})), [("eth0 link".into(), pass), ("eth1 link".into(), fail)]);
        assert_eq!(judge(json!({"min_speed_mbps": 25000})), [("eth0 speed".into(), pass), ("eth1 speed".into(), fail)]);
        assert_eq!(judge(json!({"min_count": 2})), [("count".into(), pass)]);
    }
}
