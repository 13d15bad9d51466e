//! LLDP against cables (V8, V9): strict equality, and an explanation beside each mismatch.

use super::found::{Found, Nic};
use super::links::cable;
use super::{Check, Owner, row, spelling};
use crate::domain::host::{CablePeer, HostFacts, HostInterface};
use crate::domain::lldp::{self, MatchedBy, Neighbour};
use crate::domain::text::neutralize_to;
use crate::domain::verify::Verdict;

const RULE: &str = "V8: the system name equals the switch, and port ID or port description equals the port";

/// A row for every frontend interface.
pub(super) fn lldp(host: &HostFacts, found: &Found) -> Vec<Check> {
    let frontend = host.frontend();
    if host.ironic_settings.as_ref().is_some_and(|s| s.skip_cable_verification) {
        let rule = "V9: skip_cable_verification is set for this host";
        let rows = frontend.iter().map(|interface| {
            let seen = found.nic(interface).map(|nic| all_shown(&nic.neighbours)).unwrap_or_default();
            row("lldp", &interface.name, expected(interface), seen, Verdict::Skipped, rule)
        });
        return rows.collect();
    }
    frontend.iter().map(|i| interface_check(host, i, found.nic(i).as_ref())).collect()
}

fn expected(interface: &HostInterface) -> String {
    interface.peer.as_ref().map_or_else(|| "no cable in NetBox".to_owned(), |p| format!("{} {}", p.switch, p.port))
}

fn all_shown(neighbours: &[Neighbour]) -> String {
    neighbours.iter().map(Neighbour::shown).collect::<Vec<_>>().join(" and ")
}

fn interface_check(host: &HostFacts, interface: &HostInterface, nic: Option<&Nic>) -> Check {
    let name = &interface.name;
    let check = |observed: &str, verdict| row("lldp", name, expected(interface), observed, verdict, RULE);
    let Some(peer) = &interface.peer else {
        if interface.mac.is_none() {
            return check("neither MAC nor cable in NetBox", Verdict::Skipped);
        }
        let seen = nic.map(|nic| all_shown(&nic.neighbours)).filter(|s| !s.is_empty());
        return check(seen.as_deref().unwrap_or("no LLDP heard"), Verdict::Fail)
            .mend(Owner::InfraEng, format!("record the cable of {name} in NetBox"));
    };
    if interface.mac.is_none() {
        return check("no MAC in NetBox", Verdict::Fail)
            .mend(Owner::InfraEng, format!("record the MAC address of {name} in NetBox"));
    }
    // The row of the missing NIC fails; this one has nothing to judge.
    let Some(nic) = nic else { return check("the NIC was not seen", Verdict::Unknown) };
    match &nic.neighbours[..] {
        [] => nothing_heard(interface, peer, nic),
        [neighbour] => match neighbour.is(&peer.switch, &peer.port) {
            Some(by) => {
                let mut check = check(&neighbour.shown(), Verdict::Pass);
                check.rule = match by {
                    MatchedBy::PortId => format!("{RULE}; here the port ID"),
                    MatchedBy::PortDescription => format!("{RULE}; here the port description"),
                };
                check
            }
            None => {
                let why = explain(host, interface, peer, neighbour);
                check(&neighbour.shown(), Verdict::Fail).mend(why.owner, why.action).hinted(why.hint)
            }
        },
        several => several_heard(host, interface, peer, several),
    }
}

/// Three causes are usual; a carrier that is up leaves two (C-09).
fn nothing_heard(interface: &HostInterface, peer: &CablePeer, nic: &Nic) -> Check {
    let causes = "that the switch sends LLDP on this port, and that the NIC's firmware does not keep LLDP for itself";
    let (owner, action) = match nic.has_carrier {
        Some(true) => (Owner::Netops, format!("check {} {}: {causes}", peer.switch, peer.port)),
        _ => (Owner::Onsite, format!("check {}: that the link is up, {causes}", cable(interface))),
    };
    let check = row("lldp", &interface.name, expected(interface), "no LLDP heard", Verdict::Fail, RULE);
    check.mend(owner, action)
}

/// Several neighbours on one port (C-15). Decided so: the right one is a clean match only where every other is a
/// sub-interface of the same port of the same switch (`swp14.665` beside `swp14`), which leaves by the same cable.
/// Beside a stranger it is no match: something on the way passes foreign frames, and nobody can tell which cable is in.
fn several_heard(host: &HostFacts, interface: &HostInterface, peer: &CablePeer, heard: &[Neighbour]) -> Check {
    let right = heard.iter().any(|n| n.is(&peer.switch, &peer.port).is_some());
    let clean = lldp::is_only(heard, &peer.switch, &peer.port);
    let verdict = super::verdict(clean);
    let check = row("lldp", &interface.name, expected(interface), all_shown(heard), verdict, RULE);
    let place = format!("{} {}", peer.switch, peer.port);
    if clean {
        check.hinted(Some("sub-interfaces of the same port are heard too"))
    } else if right {
        check
            .mend(
                Owner::Netops,
                format!("find out what passes foreign LLDP frames between {} and {place}", interface.name),
            )
            .hinted(Some("the recorded neighbour is heard, and a stranger beside it"))
    } else if let Some(why) = heard.iter().map(|n| explain(host, interface, peer, n)).find(|w| w.owner != Owner::Onsite)
    {
        // One of them may be the recorded one under another spelling: nobody is sent to move its cable.
        let hint = why.hint.unwrap_or_else(|| "one of them may be the recorded one".to_owned());
        check
            .mend(
                Owner::Netops,
                format!("find out which of them is at the other end of {}: {}", interface.name, why.action),
            )
            .hinted(Some(format!("several neighbours are heard; {hint}")))
    } else {
        check
            .mend(Owner::Onsite, format!("move the cable of {} to {place}", interface.name))
            .hinted(Some("several neighbours are heard, and none of them is the recorded one"))
    }
}

struct Why {
    owner: Owner,
    action: String,
    hint: Option<String>,
}

/// Why the one neighbour is not the recorded one, and who mends that.
fn explain(host: &HostFacts, interface: &HostInterface, peer: &CablePeer, heard: &Neighbour) -> Why {
    let why = |owner, action: String, hint: Option<String>| Why { owner, action, hint };
    let name = &interface.name;
    let shown = |text: &str| neutralize_to(text, 80);
    if heard.contradicts {
        let action =
            format!("find out what sends LLDP on {name} under two names (expected {} {})", peer.switch, peer.port);
        return why(Owner::Netops, action, Some("what it says of itself it says twice, with two values".to_owned()));
    }
    let Some(system) = heard.system_name.as_deref() else {
        let action = format!("make the switch on {name} send its system name (expected {})", peer.switch);
        return why(Owner::Netops, action, Some("the switch sends no system name".to_owned()));
    };
    // The port, apart from the switch: equal, spelled otherwise, not told, or another one.
    let texts = || heard.port_id.iter().chain(&heard.port_description);
    let same_port = texts().any(|t| *t == peer.port);
    let port_hint = texts().find_map(|t| spelling::port(&peer.port, t).map(|hint| (t, hint)));
    let switch_hint = spelling::switch(&peer.switch, system);
    let same_switch = system == peer.switch;
    // Where NetBox itself names ports by numbers, a number is a name.
    let has_name = peer.port.bytes().all(|b| b.is_ascii_digit()) && heard.port_id.is_some();
    let nameless = spelling::nameless(heard).filter(|_| !same_port && port_hint.is_none() && !has_name);

    if (same_switch || switch_hint.is_some()) && (same_port || port_hint.is_some()) {
        // Nobody is sent to move a cable for a spelling.
        let mut actions = Vec::new();
        let mut hints = Vec::new();
        if let Some(hint) = switch_hint {
            actions.push(format!("rename '{}' in NetBox, or the switch '{}'", peer.switch, shown(system)));
            hints.push(format!("'{}' and '{}': {hint}", peer.switch, shown(system)));
        }
        if let (false, Some((text, hint))) = (same_port, port_hint) {
            actions.push(format!("rename the port '{}' of {} in NetBox to '{}'", peer.port, peer.switch, shown(text)));
            hints.push(format!("'{}' and '{}': {hint}", peer.port, shown(text)));
        }
        return why(Owner::InfraEng, actions.join("; "), Some(format!("not a wrong cable: {}", hints.join("; "))));
    }
    let is_unnamed = spelling::is_factory_name(system);
    if is_unnamed && (same_port || port_hint.is_some() || nameless.is_some()) {
        let action =
            format!("name the switch on {name}: it calls itself '{}', NetBox has {}", shown(system), peer.switch);
        return why(Owner::Netops, action, Some("switch still has its factory name".to_owned()));
    }
    // A spelling of the switch's name doesn't make its port a wrong one, where nobody can tell which port it is.
    if let (true, Some(what)) = (same_switch || switch_hint.is_some(), nameless) {
        let value = heard.port_id.as_deref().map_or_else(String::new, |id| format!(" ({})", shown(id)));
        let action = format!("make {} send the name of the port in its LLDP frames to {name}", peer.switch);
        return why(Owner::Netops, action, Some(format!("this switch sends {what}{value} and no port name")));
    }
    let hint = (system == host.name).then(|| {
        format!("'{}' is this host itself: its NIC answers its own frames, or a cable goes back into it", shown(system))
    });
    why(Owner::Onsite, format!("move the cable of {} to {} {}", cable(interface), peer.switch, peer.port), hint)
}

#[cfg(test)]
mod tests {
    use super::super::{judge, testing::*};
    use super::*;
    use crate::domain::verify::Verification;
    use serde_json::{Value, json};

    const MAC: &str = "52:54:00:10:01:01";

    fn inventory(carrier: Value) -> Value {
        json!({"interfaces": [{"name": "eth0", "mac_address": MAC, "has_carrier": carrier}]})
    }

    /// One interface cabled to this port, and one parsed neighbour heard on it.
    fn seen(switch: &str, port: &str, parsed: &Value) -> Check {
        let host = host(&[("eth0", MAC, switch, port)], json!({}));
        let checks = judge(&host, &inventory(json!(true)), &json!({"parsed_lldp": {"eth0": parsed}}), None).checks;
        one(&checks, "lldp", "eth0").clone()
    }

    fn peer(case: &Value) -> (String, String) {
        let end = &case["cable"]["connected_endpoints"][0];
        (end["device"]["name"].as_str().unwrap().into(), end["name"].as_str().unwrap().into())
    }

    /// Case: C-09. Proves: V8
    #[test]
    fn no_lldp_at_all_is_a_failed_check_with_the_usual_causes() {
        let case = case(include_str!("../../../tests/fixtures/cases/c09-no-lldp-at-all.json"));
        let host = host(
            &[("eth0", MAC, "leaf-b07-1", "swp14"), ("eth1", "52:54:00:10:01:02", "leaf-b07-2", "swp14")],
            json!({}),
        );
        for variant in case["variants"].as_array().unwrap() {
            let checks = judge(&host, &variant["inventory"], &variant["plugin_data"], None).checks;
            let up = one(&checks, "lldp", "eth0");
            assert_eq!(
                (up.verdict, up.observed.as_str(), up.owner),
                (Verdict::Fail, "no LLDP heard", Some(Owner::Netops))
            );
            assert!(!up.action.as_ref().unwrap().contains("link is up"), "{up:#?}");
        }
        let unreported = judge(&host, &case["variants"][2]["inventory"], &json!({}), None).checks;
        let check = one(&unreported, "lldp", "eth1");
        assert_eq!(check.owner, Some(Owner::Onsite));
        for cause in ["link is up", "switch sends LLDP", "firmware"] {
            assert!(check.action.as_ref().unwrap().contains(cause), "{check:#?}");
        }
    }

    /// Case: C-10. Proves: V8, V11
    #[test]
    fn a_mac_as_port_id_passes_by_the_description_raw_and_parsed_alike() {
        let case = case(include_str!("../../../tests/fixtures/cases/c10-port-id-is-a-mac.json"));
        let (switch, port) = peer(&case);
        let host = host(&[("eth0", MAC, &switch, &port)], json!({}));
        for plugin in [case["seen"]["plugin_data"].clone(), json!({})] {
            let checks = judge(&host, &case["seen"]["inventory"], &plugin, None).checks;
            let check = one(&checks, "lldp", "eth0");
            assert_eq!(check.verdict, Verdict::Pass, "{check:#?}");
            assert!(check.rule.ends_with("here the port description"), "{}", check.rule);
        }
    }

    /// Case: C-11. Proves: V8
    #[test]
    fn a_description_with_the_host_in_it_neither_breaks_nor_makes_a_match() {
        let case = case(include_str!("../../../tests/fixtures/cases/c11-description-names-the-host.json"));
        let (switch, port) = peer(&case);
        for parsed in case["pass"].as_array().unwrap() {
            let check = seen(&switch, &port, parsed);
            assert_eq!(check.verdict, Verdict::Pass, "{parsed}");
            assert!(check.rule.ends_with("here the port ID"));
        }
        for parsed in case["fail"].as_array().unwrap() {
            let check = seen(&switch, &port, parsed);
            assert_eq!((check.verdict, check.owner), (Verdict::Fail, Some(Owner::Onsite)), "{parsed}");
        }
    }

    /// Case: C-12. Proves: V8
    #[test]
    fn another_spelling_of_the_port_fails_for_infra_eng_and_a_wrong_port_for_onsite() {
        let case = case(include_str!("../../../tests/fixtures/cases/c12-abbreviated-port-names.json"));
        for pair in case["pairs"].as_array().unwrap() {
            let parsed = json!({"switch_system_name": "leaf-b07-1", "switch_port_id": pair["lldp_port_id"]});
            let check = seen("leaf-b07-1", pair["netbox"].as_str().unwrap(), &parsed);
            let expected = match (pair["verdict"].as_str(), pair["hint"].as_str()) {
                (Some("pass"), _) => (Verdict::Pass, None),
                (_, Some(_)) => (Verdict::Fail, Some(Owner::InfraEng)),
                (_, None) => (Verdict::Fail, Some(Owner::Onsite)),
            };
            assert_eq!((check.verdict, check.owner), expected, "{pair}");
            match pair["hint"].as_str() {
                Some(hint) => assert!(check.hint.as_ref().unwrap().contains(hint), "{check:#?}"),
                None => assert_eq!(check.hint, None, "{pair}"),
            }
        }
    }

    /// Case: C-13. Proves: V8
    #[test]
    fn switch_names_are_compared_whole() {
        let case = case(include_str!("../../../tests/fixtures/cases/c13-fqdn-against-short-name.json"));
        for pair in case["pairs"].as_array().unwrap() {
            let parsed = json!({"switch_system_name": pair["lldp"], "switch_port_id": "swp14"});
            let check = seen(pair["netbox"].as_str().unwrap(), "swp14", &parsed);
            let expected = match (pair["verdict"].as_str(), pair["hint"].as_str()) {
                (Some("pass"), _) => (Verdict::Pass, None),
                (_, Some("switch still has its factory name")) => (Verdict::Fail, Some(Owner::Netops)),
                (_, Some(_)) => (Verdict::Fail, Some(Owner::InfraEng)),
                (_, None) => (Verdict::Fail, Some(Owner::Onsite)),
            };
            assert_eq!((check.verdict, check.owner), expected, "{pair}");
        }
        // The spelling is not the only difference here: the cable is wrong, and no hint says otherwise.
        let parsed = json!({"switch_system_name": "LEAF-B07-1", "switch_port_id": "swp9"});
        let check = seen("leaf-b07-1", "swp14", &parsed);
        assert_eq!((check.owner, check.hint), (Some(Owner::Onsite), None));
    }

    /// Case: C-14. Proves: V8
    #[test]
    fn an_index_as_port_id_passes_by_the_description_or_is_the_switchs_fault() {
        let case = case(include_str!("../../../tests/fixtures/cases/c14-numeric-port-id.json"));
        let (switch, port) = peer(&case);
        for parsed in case["pass"].as_array().unwrap() {
            assert_eq!(seen(&switch, &port, parsed).verdict, Verdict::Pass);
        }
        for parsed in case["fail"].as_array().unwrap() {
            let check = seen(&switch, &port, parsed);
            assert_eq!((check.verdict, check.owner), (Verdict::Fail, Some(Owner::Netops)), "{parsed}");
            assert_eq!(check.hint.as_deref(), Some("this switch sends an index (510) and no port name"));
        }
        let other = json!({"switch_port_id": "510", "switch_system_name": "leaf-b07-1", "switch_port_description": "xe-0/0/20"});
        assert_eq!(seen(&switch, &port, &other).owner, Some(Owner::Onsite));
    }

    /// Case: C-15. Proves: V8
    #[test]
    fn two_neighbours_have_one_verdict_in_any_order_and_both_are_shown() {
        let case = case(include_str!("../../../tests/fixtures/cases/c15-two-neighbours-on-one-port.json"));
        let (switch, port) = peer(&case);
        let host = host(&[("eth0", MAC, &switch, &port)], json!({}));
        let judge =
            |name: &str| one(&judge(&host, &case[name]["inventory"], &json!({}), None).checks, "lldp", "eth0").clone();
        let first = judge("expected_first");
        assert_eq!(first, judge("expected_last"));
        assert_eq!((first.verdict, first.owner), (Verdict::Fail, Some(Owner::Netops)));
        assert!(first.observed.contains("leaf-b07-1 swp14") && first.observed.contains("mgmt-sw-3 swp9"), "{first:#?}");
        assert!(first.hint.unwrap().contains("stranger"));
        assert_eq!(judge("same_switch_sub_port").verdict, Verdict::Pass);
    }

    /// Case: C-16. Proves: V8, I11
    #[test]
    fn a_stale_capture_fails_and_the_fresh_one_decides() {
        let case = case(include_str!("../../../tests/fixtures/cases/c16-stale-then-fresh.json"));
        let (switch, port) = peer(&case);
        let host = host(&[("eth0", MAC, &switch, &port)], json!({}));
        let judge = |name: &str| {
            let at = case[name]["inspection_finished_at"].as_str().unwrap().parse().unwrap();
            super::super::judge(&host, &case[name]["inventory"], &case[name]["plugin_data"], Some(at))
        };
        let (stored, fresh) = (judge("stored"), judge("fresh"));
        assert!(!stored.passed() && fresh.passed());
        assert!(stored.checks.iter().any(|c| c.hint.as_deref().is_some_and(|h| h.contains("its MAC"))));
        assert!(stored.inspected_at.unwrap() < fresh.inspected_at.unwrap());
    }

    fn two(eth0: (&str, &str), eth1: (&str, &str)) -> Verification {
        let host = host(
            &[("eth0", MAC, "leaf-b07-1", "swp14"), ("eth1", "52:54:00:10:01:02", "leaf-b07-2", "swp14")],
            json!({}),
        );
        let inventory = json!({"interfaces": [
            {"name": "a", "mac_address": MAC, "has_carrier": true},
            {"name": "b", "mac_address": "52:54:00:10:01:02", "has_carrier": true},
        ]});
        let parsed = |(s, p): (&str, &str)| json!({"switch_system_name": s, "switch_port_id": p});
        judge(&host, &inventory, &json!({"parsed_lldp": {"a": parsed(eth0), "b": parsed(eth1)}}), None)
    }

    /// Proves: V12
    #[test]
    fn swapped_cables_of_a_host_are_said_to_be_swapped() {
        let swapped = two(("leaf-b07-2", "swp14"), ("leaf-b07-1", "swp14"));
        assert_eq!(swapped.diagnosis.as_deref(), Some("eth0 and eth1 are swapped"));
        for check in swapped.failed() {
            assert_eq!(check.action.as_deref(), Some("swap the two cables at the host: eth0 and eth1"));
        }
        let wrong = two(("leaf-b07-2", "swp14"), ("leaf-b07-2", "swp15"));
        assert_eq!(
            wrong.diagnosis.as_deref(),
            Some("eth0 and eth1 sit in a row of wrong places, each in that of the one after it")
        );
        assert_eq!(wrong.failed().count(), 2);
        let apart = two(("leaf-b07-2", "swp20"), ("leaf-b07-2", "swp15"));
        assert_eq!((apart.diagnosis.as_deref(), apart.failed().count()), (None, 2));
        assert_eq!(two(("leaf-b07-1", "swp14"), ("leaf-b07-2", "swp14")).diagnosis, None);
    }

    /// Proves: V8
    #[test]
    fn whoever_cannot_be_told_apart_sends_nobody_to_the_rack() {
        for (netbox, heard, owner) in [
            // The switch is spelled otherwise, or unnamed, and its port is a number: nobody knows which port it is.
            (("leaf-1", "swp14"), ("LEAF-1", "510"), Owner::Netops),
            (("leaf-1", "swp14"), ("leaf-1.example.com", "510"), Owner::Netops),
            (("leaf-1", "swp14"), ("cumulus", "510"), Owner::Netops),
            (("leaf-1", "Ethernet1/47"), ("sonic", "Eth1/47"), Owner::Netops),
            // Another port is another port, whatever the switch calls itself.
            (("leaf-1", "swp14"), ("LEAF-1", "swp15"), Owner::Onsite),
            (("leaf-1", "swp14"), ("cumulus", "swp15"), Owner::Onsite),
            (("leaf-1", "swp14"), ("leaf-2", "510"), Owner::Onsite),
            // Where NetBox has numbers for names, a number is a name.
            (("leaf-1", "14"), ("leaf-1", "15"), Owner::Onsite),
        ] {
            let parsed = json!({"switch_system_name": heard.0, "switch_port_id": heard.1});
            let check = seen(netbox.0, netbox.1, &parsed);
            assert_eq!((check.verdict, check.owner), (Verdict::Fail, Some(owner)), "{netbox:?} {heard:?}: {check:#?}");
        }
        let twice =
            json!([[1, "0444383900000a"], [2, "057377703134"], [3, "0078"], [5, "6c6561662d31"], [5, "6c6561662d32"]]);
        let host = host(&[("eth0", MAC, "leaf-1", "swp14")], json!({}));
        let checks = judge(&host, &inventory(json!(true)), &json!({"lldp_raw": {"eth0": twice}}), None).checks;
        let check = one(&checks, "lldp", "eth0");
        assert_eq!((check.verdict, check.owner), (Verdict::Fail, Some(Owner::Netops)));
        assert!(check.hint.as_ref().unwrap().contains("twice, with two values"), "{check:#?}");
    }

    /// Case: C-12, C-15. Proves: V8
    #[test]
    fn of_several_neighbours_one_may_be_the_recorded_one_spelled_otherwise() {
        let host = host(&[("eth0", MAC, "leaf-b07-1", "swp14")], json!({}));
        let frame = |system: &str, port: &str| {
            let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
            [
                json!([1, format!("07{}", hex(system))]),
                json!([2, format!("05{}", hex(port))]),
                json!([3, "0078"]),
                json!([5, hex(system)]),
            ]
        };
        let judge = |frames: Value| {
            let plugin = json!({"lldp_raw": {"eth0": frames}});
            one(&judge(&host, &inventory(json!(true)), &plugin, None).checks, "lldp", "eth0").clone()
        };
        let (a, b) = (frame("LEAF-B07-1", "swp14"), frame("mgmt-sw-3", "swp9"));
        let check = judge(json!([&a[..], &b[..]].concat()));
        assert_eq!((check.verdict, check.owner), (Verdict::Fail, Some(Owner::Netops)), "{check:#?}");
        assert_eq!(check, judge(json!([&b[..], &a[..]].concat())));
        let c = frame("leaf-b07-2", "swp1");
        assert_eq!(judge(json!([&c[..], &b[..]].concat())).owner, Some(Owner::Onsite));
    }

    /// Proves: V9
    #[test]
    fn skip_cable_verification_skips_only_the_lldp_check() {
        let mut host = host(&[("eth0", MAC, "leaf-b07-1", "swp14")], json!({}));
        host.ironic_settings.as_mut().unwrap().skip_cable_verification = true;
        let parsed = json!({"parsed_lldp": {"eth0": {"switch_system_name": "x", "switch_port_id": "y"}}});
        let checks = judge(&host, &inventory(json!(false)), &parsed, None).checks;
        let lldp = one(&checks, "lldp", "eth0");
        assert_eq!((lldp.verdict, lldp.observed.as_str()), (Verdict::Skipped, "x y"));
        assert_eq!(one(&checks, "carrier", "eth0").verdict, Verdict::Fail);
    }

    #[test]
    fn an_interface_without_cable_or_mac_is_netboxs_gap() {
        let uncabled = host(&[("eth0", MAC, "", "")], json!({}));
        let checks = judge(&uncabled, &inventory(json!(true)), &json!({}), None).checks;
        assert_eq!((checks[1].verdict, checks[1].owner), (Verdict::Fail, Some(Owner::InfraEng)));
        let no_mac = host(&[("eth0", "", "leaf-b07-1", "swp14")], json!({}));
        let checks = judge(&no_mac, &inventory(json!(true)), &json!({}), None).checks;
        let lldp = one(&checks, "lldp", "eth0");
        assert_eq!((lldp.verdict, lldp.owner), (Verdict::Fail, Some(Owner::InfraEng)));
    }
}
