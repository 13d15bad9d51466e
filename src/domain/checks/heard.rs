//! What an inspection heard on a host's cables, as it is kept for the cable doctor; and what the doctor says, beside the checks.

use jiff::Timestamp;
use serde_json::Value;

use super::found::Found;
use crate::domain::cable_doctor::{Findings, HeardCable, HeardHost};
use crate::domain::failure::Owner;
use crate::domain::host::HostFacts;
use crate::domain::verify::{Verdict, Verification};

/// What was heard on each frontend interface. `None`: the host's cables are not verified (V9), so that what is heard there
/// says nothing of them.
pub fn heard(host: &HostFacts, inventory: &Value, plugin_data: &Value, inspected_at: Timestamp) -> Option<HeardHost> {
    if host.ironic_settings.as_ref().is_some_and(|settings| settings.skip_cable_verification) {
        return None;
    }
    Some(of(host, &Found::read(inventory, plugin_data), inspected_at))
}

pub(super) fn of(host: &HostFacts, found: &Found, inspected_at: Timestamp) -> HeardHost {
    let cables = host
        .frontend()
        .into_iter()
        .map(|interface| {
            let nic = found.nic(interface);
            HeardCable {
                netbox_id: interface.netbox_id,
                interface: interface.name.clone(),
                mac: interface.mac,
                recorded: interface.peer.as_ref().map(|peer| peer.end()),
                seen: nic.is_some(),
                carrier: nic.as_ref().and_then(|nic| nic.has_carrier),
                neighbours: nic.map(|nic| nic.neighbours).unwrap_or_default(),
            }
        })
        .collect();
    HeardHost {
        netbox_id: host.netbox_id,
        host: host.name.clone(),
        site: host.site.slug.clone(),
        rack: host.rack.clone(),
        place: Some(host.place()),
        inspected_at,
        cables,
    }
}

impl Verification {
    /// Puts what the doctor found beside the cables that fail the check, and in front of all as their one cause. No verdict
    /// changes (V8), and who is to mend a spelling or a switch stays who it is.
    pub fn explain(&mut self, host: &str, findings: &Findings) {
        let mut causes: Vec<String> = Vec::new();
        for diagnosis in findings.of(host).filter(|diagnosis| diagnosis.explains()) {
            let (sentence, action) = (diagnosis.sentence(Some(host)), diagnosis.action(Some(host)));
            let members = diagnosis.members.iter().filter(|member| member.spot.host == host);
            let interfaces: Vec<&str> = members.map(|member| member.spot.interface.as_str()).collect();
            let mut explained = false;
            for check in &mut self.checks {
                let is_wrong_cable = check.kind == "lldp"
                    && check.verdict == Verdict::Fail
                    && check.owner == Some(Owner::Onsite)
                    && interfaces.contains(&check.subject.as_str());
                if is_wrong_cable {
                    check.hint = Some(sentence.clone());
                    check.action = Some(action.clone());
                    explained = true;
                }
            }
            if explained {
                causes.push(sentence);
            }
        }
        if !causes.is_empty() {
            self.diagnosis = Some(causes.join("; "));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{judge, testing};
    use super::*;
    use crate::domain::cable_doctor::{Survey, diagnose};

    const MACS: [&str; 2] = ["52:54:00:10:01:01", "52:54:00:10:01:02"];

    fn two(eth0: (&str, &str), eth1: (&str, &str)) -> (HostFacts, Value, Value) {
        let host = testing::host(
            &[("eth0", MACS[0], "leaf-b07-1", "swp14"), ("eth1", MACS[1], "leaf-b07-2", "swp14")],
            json!({}),
        );
        let nic = |n: usize| json!({"name": format!("n{n}"), "mac_address": MACS[n], "has_carrier": true});
        let parsed = |(s, p): (&str, &str)| json!({"switch_system_name": s, "switch_port_id": p});
        let plugin = json!({"parsed_lldp": {"n0": parsed(eth0), "n1": parsed(eth1)}});
        (host, json!({"interfaces": [nic(0), nic(1)]}), plugin)
    }

    fn other(name: &str, recorded: (&str, &str), hears: (&str, &str)) -> HeardHost {
        let (mut host, inventory, plugin) = two(hears, ("leaf-b07-2", "swp14"));
        host.name = name.into();
        host.ironic_settings.as_mut().unwrap().interfaces = vec!["eth0".into()];
        host.interfaces[0].mac = "52:54:00:10:02:01".parse().ok();
        let peer = host.interfaces[0].peer.as_mut().unwrap();
        (peer.switch, peer.port) = (recorded.0.into(), recorded.1.into());
        let mut inventory = inventory;
        inventory["interfaces"][0]["mac_address"] = json!("52:54:00:10:02:01");
        heard(&host, &inventory, &plugin, Timestamp::UNIX_EPOCH).unwrap()
    }

    /// Proves: V8, V10, V12
    #[test]
    fn what_others_heard_explains_a_wrong_cable_and_changes_no_verdict() {
        let (host, inventory, plugin) = two(("leaf-b07-1", "swp15"), ("LEAF-B07-2", "swp14"));
        let alone = judge(&host, &inventory, &plugin, None);
        assert_eq!(alone.diagnosis, None);
        let mut told = alone.clone();
        let own = heard(&host, &inventory, &plugin, Timestamp::UNIX_EPOCH).unwrap();
        let b = other("gpu-b07-38", ("leaf-b07-1", "swp15"), ("leaf-b07-1", "swp14"));
        let survey = Survey { hosts: vec![own, b], ..Default::default() };
        told.explain(&host.name, &diagnose(&survey));
        let verdicts = |v: &Verification| v.checks.iter().map(|c| (c.verdict, c.owner)).collect::<Vec<_>>();
        assert_eq!(verdicts(&alone), verdicts(&told));
        assert_eq!(
            told.diagnosis.as_deref(),
            Some("eth0 and eth0 of gpu-b07-38 are swapped: the cable in eth0 is gpu-b07-38's")
        );
        let eth1 = testing::one(&told.checks, "lldp", "eth1");
        assert_eq!(eth1, testing::one(&alone.checks, "lldp", "eth1"), "a spelling stays what it is");
        let failure = told.failure(&host.name, crate::domain::phase::Phase::Inspection);
        assert!(failure.message.starts_with(told.diagnosis.as_deref().unwrap()), "{}", failure.message);
        assert!(failure.message.contains("eth1 sees 'LEAF-B07-2 swp14'"), "{}", failure.message);
        assert!(failure.action.contains("exchange the two cables at leaf-b07-1"), "{}", failure.action);
    }

    /// Proves: V12
    #[test]
    fn a_host_that_passes_is_told_nothing_whatever_others_heard() {
        let (host, inventory, plugin) = two(("leaf-b07-1", "swp14"), ("leaf-b07-2", "swp14"));
        let mut passed = judge(&host, &inventory, &plugin, None);
        let own = heard(&host, &inventory, &plugin, Timestamp::UNIX_EPOCH).unwrap();
        let later = HeardHost {
            inspected_at: Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1),
            ..other("gpu-b07-38", ("leaf-b07-1", "swp15"), ("leaf-b07-1", "swp14"))
        };
        passed.explain(&host.name, &diagnose(&Survey { hosts: vec![own, later], ..Default::default() }));
        assert!(passed.passed() && passed.diagnosis.is_none());
    }

    proptest::proptest! {
        /// Proves: V8, V12
        #[test]
        fn what_the_doctor_calls_right_is_what_passes_and_nothing_else(
            heard_on in proptest::collection::vec(proptest::collection::vec((0usize..6, 0usize..6), 0..3), 3),
        ) {
            let switches = ["leaf-1", "leaf-2", "LEAF-1", "leaf-1.example.com", "cumulus", ""];
            let ports = ["swp1", "swp2", "Swp1", "510", "swp1.665", ""];
            let macs = ["52:54:00:10:01:01", "52:54:00:10:01:02", "52:54:00:10:01:03"];
            let host = testing::host(
                &[
                    ("eth0", macs[0], "leaf-1", "swp1"),
                    ("eth1", macs[1], "leaf-2", "swp1"),
                    ("eth2", macs[2], "leaf-1", "swp2"),
                ],
                json!({}),
            );
            let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
            let frame = |(n, (switch, port)): (usize, &(usize, usize))| {
                let (switch, port) = (switches[*switch], ports[*port]);
                let names = [json!([2, format!("05{}", hex(port))]), json!([3, "0078"]), json!([5, hex(switch)])];
                [vec![json!([1, format!("04aabbccddee{n:02x}")])], names.to_vec()].concat()
            };
            let nics: Vec<Value> = macs
                .iter()
                .zip(&heard_on)
                .map(|(mac, heard)| {
                    let lldp: Vec<Value> = heard.iter().enumerate().flat_map(frame).collect();
                    json!({"name": mac, "mac_address": mac, "has_carrier": true, "lldp": lldp})
                })
                .collect();
            let inventory = json!({"interfaces": nics});
            let judged = judge(&host, &inventory, &json!({}), None);
            let own = heard(&host, &inventory, &json!({}), Timestamp::UNIX_EPOCH).unwrap();
            let findings = diagnose(&Survey::of_host(own));
            let right: Vec<&str> = findings.right.iter().map(|spot| spot.interface.as_str()).collect();
            let passed: Vec<&str> = judged
                .checks
                .iter()
                .filter(|check| check.kind == "lldp" && check.verdict == Verdict::Pass)
                .map(|check| check.subject.as_str())
                .collect();
            // Two interfaces at one port can't both be right, and then the doctor believes neither.
            proptest::prop_assert!(right.iter().all(|interface| passed.contains(interface)), "{right:?} {passed:?}");
            let contested = findings.unknown.iter().any(|unknown| unknown.why.contains("the same port"));
            proptest::prop_assert!(right == passed || contested, "{right:?} {passed:?}");
        }
    }

    /// Proves: V9
    #[test]
    fn a_host_whose_cables_are_not_verified_has_no_part_in_it() {
        let (mut host, inventory, plugin) = two(("leaf-b07-1", "swp14"), ("leaf-b07-2", "swp14"));
        host.ironic_settings.as_mut().unwrap().skip_cable_verification = true;
        assert_eq!(heard(&host, &inventory, &plugin, Timestamp::UNIX_EPOCH), None);
    }
}
