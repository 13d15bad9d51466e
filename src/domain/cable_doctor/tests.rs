//! Each kind of wrong wiring by its sentence and its moves, and what must never be claimed.

mod racks;

use super::*;
use crate::domain::host::CablePeer;

const MORNING: i64 = 1_800_000_000;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(MORNING + hours * 3600).unwrap()
}

fn heard(text: &str) -> Vec<Neighbour> {
    let one = |text: &str| {
        let (switch, port) = text.split_once(' ').unwrap();
        Neighbour { system_name: Some(switch.into()), port_id: Some(port.into()), ..Default::default() }
    };
    text.split(" + ").filter(|text| !text.is_empty()).map(one).collect()
}

/// An interface: its name, where it belongs, and what it hears (empty: nothing, with a carrier; `-`: no carrier).
fn cable(interface: &str, belongs: &str, hears: &str) -> HeardCable {
    let recorded = belongs.split_once(' ').map(|(switch, port)| CableEnd {
        switch: switch.into(),
        port: port.into(),
        label: None,
        color: None,
    });
    HeardCable {
        interface: interface.into(),
        recorded,
        seen: true,
        carrier: Some(hears != "-"),
        neighbours: if hears == "-" { vec![] } else { heard(hears) },
        ..Default::default()
    }
}

fn host(name: &str, cables: Vec<HeardCable>) -> HeardHost {
    HeardHost {
        netbox_id: 1,
        host: name.into(),
        site: "osl1".into(),
        rack: Some("B07".into()),
        place: Some("B07 U37".into()),
        inspected_at: at(0),
        cables,
    }
}

/// The places of a leaf: its port numbers, and whose each is.
fn survey(hosts: Vec<HeardHost>, ports: &[(&str, Option<(&str, &str)>)]) -> Survey {
    let spot = |(host, interface): (&str, &str)| Spot { host: host.into(), interface: interface.into() };
    let ports = ports.iter().map(|(text, owner)| {
        let (switch, port) = text.split_once(' ').unwrap();
        (Port::new(switch, port), owner.map(spot))
    });
    Survey { hosts, ports: ports.collect() }
}

fn only(findings: &Findings) -> &Diagnosis {
    let [only] = &findings.diagnoses[..] else { panic!("{findings:#?}") };
    only
}

/// `eth0 of a: leaf-1 swp1 > leaf-1 swp2`; a held one has a star.
fn moves(diagnosis: &Diagnosis) -> Vec<String> {
    let port = |port: &Option<Port>| port.as_ref().map_or("-".to_owned(), |p| format!("{} {}", p.switch, p.port));
    let one = |m: &Move| {
        let star = if m.held { "*" } else { "" };
        format!("{} of {}: {} > {}{star}", m.spot.interface, m.spot.host, port(&m.from), port(&m.to))
    };
    diagnosis.moves().iter().map(one).collect()
}

/// Proves: V12
#[test]
fn two_cables_of_a_host_in_each_others_places_are_swapped() {
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-2 swp1"), cable("eth1", "leaf-2 swp1", "leaf-1 swp1")]);
    let findings = diagnose(&survey(vec![a], &[]));
    let found = only(&findings);
    assert_eq!((found.kind, found.owner()), (Kind::Swapped, Owner::Onsite));
    assert_eq!(found.sentence(Some("a")), "eth0 and eth1 are swapped");
    assert_eq!(found.sentence(None), "eth0 and eth1 of a are swapped");
    assert_eq!(found.action(Some("a")), "swap the two cables at the host: eth0 and eth1");
    assert_eq!(moves(found), ["eth1 of a: leaf-1 swp1 > leaf-2 swp1", "eth0 of a: leaf-2 swp1 > leaf-1 swp1*"]);
    assert!(findings.right.is_empty() && findings.unknown.is_empty());
}

/// Proves: V12
#[test]
fn two_hosts_with_each_others_cable_are_told_whose_it_is_and_what_to_exchange() {
    let mut a = host("gpu-b07-37", vec![cable("eth0", "leaf-1 swp14", "leaf-1 swp15")]);
    a.cables[0].recorded = Some(
        CablePeer {
            switch: "leaf-1".into(),
            port: "swp14".into(),
            cable_label: Some("W-398".into()),
            cable_color: Some("blue".into()),
            ..Default::default()
        }
        .end(),
    );
    let b = host("gpu-b07-38", vec![cable("eth0", "leaf-1 swp15", "leaf-1 swp14")]);
    let findings = diagnose(&survey(vec![a, b], &[]));
    let found = only(&findings);
    assert_eq!(found.kind, Kind::SwappedAcross);
    assert_eq!(
        found.sentence(Some("gpu-b07-37")),
        "eth0 and eth0 of gpu-b07-38 are swapped: the cable in eth0 is gpu-b07-38's"
    );
    assert_eq!(
        found.sentence(Some("gpu-b07-38")),
        "eth0 and eth0 of gpu-b07-37 are swapped: the cable in eth0 is gpu-b07-37's"
    );
    assert_eq!(found.sentence(None), "eth0 of gpu-b07-37 and eth0 of gpu-b07-38 are swapped");
    assert_eq!(
        found.action(Some("gpu-b07-37")),
        "exchange the two cables at leaf-1: swp15 (eth0, label W-398, colour blue) and swp14 (eth0 of gpu-b07-38)"
    );
    assert_eq!(
        moves(found),
        ["eth0 of gpu-b07-38: leaf-1 swp14 > leaf-1 swp15", "eth0 of gpu-b07-37: leaf-1 swp15 > leaf-1 swp14*"]
    );
    assert_eq!(
        found.steps(None)[0],
        "pull the cable of eth0 of gpu-b07-37, label W-398, colour blue out of leaf-1 swp15 and hold it"
    );
    assert_eq!(found.steps(None).len(), 3);
}

/// Proves: V12
#[test]
fn a_cable_in_the_place_of_a_host_that_was_not_heard_is_said_to_be_that_hosts() {
    let a = host("gpu-b07-37", vec![cable("eth0", "leaf-1 swp14", "leaf-1 swp15")]);
    let findings = diagnose(&survey(vec![a], &[("leaf-1 swp15", Some(("gpu-b07-38", "eth0")))]));
    let found = only(&findings);
    assert_eq!(found.kind, Kind::OthersPlace);
    assert_eq!(
        found.sentence(Some("gpu-b07-37")),
        "the cable in eth0 is gpu-b07-38's: leaf-1 swp15 is the place of eth0 of gpu-b07-38"
    );
    assert_eq!(
        found.action(Some("gpu-b07-37")),
        "move the cable of eth0 from leaf-1 swp15 to leaf-1 swp14; a cable that is found in leaf-1 swp14 is most likely \
         eth0 of gpu-b07-38's, and belongs in leaf-1 swp15"
    );
    assert_eq!(moves(found), ["eth0 of gpu-b07-37: leaf-1 swp15 > leaf-1 swp14"]);
}

/// Proves: V12
#[test]
fn a_row_begins_with_the_cable_whose_place_is_free_and_a_shift_is_called_one() {
    let hosts: Vec<HeardHost> = (1..=4)
        .map(|n| {
            host(&format!("h{n}"), vec![cable("eth0", &format!("leaf-1 swp{n}"), &format!("leaf-1 swp{}", n + 1))])
        })
        .collect();
    let findings = diagnose(&survey(hosts, &[("leaf-1 swp5", None)]));
    let found = only(&findings);
    assert_eq!(found.kind, Kind::Shifted);
    assert_eq!(
        moves(found),
        [
            "eth0 of h1: leaf-1 swp2 > leaf-1 swp1",
            "eth0 of h2: leaf-1 swp3 > leaf-1 swp2",
            "eth0 of h3: leaf-1 swp4 > leaf-1 swp3",
            "eth0 of h4: leaf-1 swp5 > leaf-1 swp4"
        ]
    );
    assert_eq!(
        found.sentence(None),
        "the 4 cables in leaf-1 from eth0 of h1 to eth0 of h4 are shifted: each sits one port above its own"
    );
    assert!(
        found
            .action(None)
            .starts_with("in this order: 1. move the cable of eth0 of h1 from leaf-1 swp2 to leaf-1 swp1, 2. ")
    );

    let round: Vec<HeardHost> = (1..=3)
        .map(|n| {
            host(&format!("h{n}"), vec![cable("eth0", &format!("leaf-1 swp{n}"), &format!("leaf-1 swp{}", n % 3 + 1))])
        })
        .collect();
    let findings = diagnose(&survey(round, &[]));
    assert_eq!((only(&findings).kind, only(&findings).moves().len()), (Kind::Shifted, 3));
    assert!(only(&findings).sentence(None).ends_with("one port above its own, and the last one in the first place"));

    let row = vec![
        host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp7")]),
        host("b", vec![cable("eth0", "leaf-1 swp7", "leaf-2 swp9")]),
    ];
    let findings = diagnose(&survey(row, &[("leaf-2 swp9", None)]));
    assert_eq!(only(&findings).kind, Kind::Row);
    assert_eq!(
        moves(only(&findings)),
        ["eth0 of a: leaf-1 swp7 > leaf-1 swp1", "eth0 of b: leaf-2 swp9 > leaf-1 swp7"]
    );
    assert!(only(&findings).sentence(Some("a")).starts_with("eth0 and eth0 of b sit in a row of wrong places"));
}

/// Proves: V12
#[test]
fn three_cables_of_a_host_are_rotated_and_each_is_told_its_place() {
    let a = host(
        "a",
        vec![
            cable("eth0", "l swp1", "l2 swp1"),
            cable("eth1", "l2 swp1", "l3 swp1"),
            cable("eth2", "l3 swp1", "l swp1"),
        ],
    );
    let findings = diagnose(&survey(vec![a], &[]));
    let found = only(&findings);
    assert_eq!((found.kind, found.sentence(Some("a")).as_str()), (Kind::Rotated, "eth0, eth1 and eth2 are rotated"));
    assert_eq!(
        found.action(Some("a")),
        "move the cables at the host: the cable in eth0 belongs in eth1, the cable in eth1 belongs in eth2, the cable in \
         eth2 belongs in eth0"
    );
    assert_eq!(found.moves().len(), 3);
}

/// Proves: V12
#[test]
fn single_wrong_cables_are_told_apart() {
    let one = |hears: &str| {
        let a = host("a", vec![cable("eth0", "leaf-1 swp1", hears), cable("eth1", "leaf-2 swp1", "leaf-2 swp1")]);
        let findings = diagnose(&survey(vec![a], &[("leaf-1 swp30", None), ("leaf-3 swp1", None)]));
        let right = findings.right.iter().filter(|spot| spot.interface == "eth0").count();
        assert_eq!((findings.right.len() - right, right > 0), (1, hears == "leaf-1 swp1"), "{hears}");
        findings.diagnoses.first().map(|d| (d.kind, d.moves().len(), d.owner()))
    };
    assert_eq!(one("leaf-1 swp1"), None);
    assert_eq!(one("leaf-1 swp30"), Some((Kind::WrongPort, 1, Owner::Onsite)));
    assert_eq!(one("leaf-1 swp31"), Some((Kind::WrongPort, 1, Owner::Onsite)), "a port that is not recorded at all");
    assert_eq!(one("leaf-3 swp1"), Some((Kind::WrongLeaf, 1, Owner::Onsite)));
    assert_eq!(one("LEAF-1 swp31"), Some((Kind::WrongPort, 1, Owner::Onsite)), "the same, spelled otherwise");
    assert_eq!(one("mgmt-sw-3 swp9"), Some((Kind::Foreign, 1, Owner::Onsite)));
    assert_eq!(one("-"), Some((Kind::Unplugged, 1, Owner::Onsite)));
    assert_eq!(one("LEAF-1 swp1"), Some((Kind::Spelling, 0, Owner::InfraEng)));
    assert_eq!(one("leaf-1 Swp1"), Some((Kind::Spelling, 0, Owner::InfraEng)));
    assert_eq!(one(""), None, "nothing heard is nothing known");
}

/// Proves: V12
#[test]
fn cables_of_all_hosts_in_the_other_fabric_are_one_finding_and_not_where_one_is_right() {
    let swapped = |n: usize| {
        let (a, b) = (format!("leaf-1 swp{n}"), format!("leaf-2 swp{n}"));
        host(&format!("h{n}"), vec![cable("eth0", &a, &b), cable("eth1", &b, &a)])
    };
    let hosts: Vec<HeardHost> = (1..=4).map(swapped).collect();
    let findings = diagnose(&survey(hosts.clone(), &[]));
    let found = only(&findings);
    assert_eq!((found.kind, found.moves().len()), (Kind::FabricsExchanged, 8));
    assert_eq!(found.sentence(None), "the cables of leaf-1 and leaf-2 are exchanged on all 4 hosts that were heard");
    assert!(found.action(None).contains("look which of leaf-1 and leaf-2 is which"), "{}", found.action(None));
    let right = host("h9", vec![cable("eth0", "leaf-1 swp9", "leaf-1 swp9")]);
    let findings = diagnose(&survey([hosts, vec![right]].concat(), &[]));
    assert_eq!(findings.diagnoses.iter().filter(|d| d.kind == Kind::Swapped).count(), 4);
}

/// Proves: V8, V12
#[test]
fn a_switch_that_spells_itself_otherwise_is_understood_and_never_right() {
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "LEAF-2 swp1"), cable("eth1", "leaf-2 swp1", "leaf-1 swp1")]);
    let findings = diagnose(&survey(vec![a], &[]));
    assert_eq!(only(&findings).kind, Kind::Swapped);
    assert_eq!(findings.right, []);
    // Two switches of one name in two domains: nobody can tell which of them is meant.
    let b = host("b", vec![cable("eth0", "leaf.x swp1", "leaf swp1"), cable("eth1", "leaf.y swp1", "")]);
    let findings = diagnose(&survey(vec![b], &[]));
    assert_eq!((findings.diagnoses.len(), findings.right.len(), findings.unknown.len()), (0, 0, 2), "{findings:#?}");
}

/// Proves: V12
#[test]
fn what_was_not_heard_or_was_heard_in_two_ways_is_unknown() {
    let unknown = |hears: &str| {
        let findings = diagnose(&survey(vec![host("a", vec![cable("eth0", "leaf-1 swp1", hears)])], &[]));
        assert!(findings.right.is_empty() && findings.diagnoses.is_empty(), "{hears}: {findings:#?}");
        findings.unknown[0].why.clone()
    };
    assert_eq!(unknown(""), "no LLDP heard");
    assert!(unknown("leaf-1 swp1 + mgmt swp9").starts_with("several neighbours"));
    assert!(unknown("leaf-1 510").contains("an index (510)") || unknown("leaf-1 510").contains("an index"));
    assert!(unknown("cumulus swp9").contains("factory name"));
    let mut nic_gone = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp1")]);
    nic_gone.cables[0].seen = false;
    assert_eq!(diagnose(&survey(vec![nic_gone], &[])).unknown.len(), 1);
    let nameless = Neighbour { port_id: Some("swp1".into()), ..Default::default() };
    let mut a = host("a", vec![cable("eth0", "leaf-1 swp1", "")]);
    a.cables[0].neighbours = vec![nameless];
    assert!(diagnose(&survey(vec![a], &[])).unknown[0].why.contains("no system name"));
    // VLANs of the same port leave by the same cable.
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp1 + leaf-1 swp1.665")]);
    assert_eq!(diagnose(&survey(vec![a], &[])).right.len(), 1);
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp2 + leaf-1 swp2.665")]);
    assert_eq!(only(&diagnose(&survey(vec![a], &[]))).kind, Kind::WrongPort);
}

/// Proves: V12
#[test]
fn of_two_hosts_at_one_port_the_later_heard_has_it_and_none_of_two_equal_ones() {
    let pair = |hours: i64| {
        let a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp1")]);
        let mut b = host("b", vec![cable("eth0", "leaf-1 swp2", "leaf-1 swp1")]);
        b.inspected_at = at(hours);
        diagnose(&survey(vec![a, b], &[]))
    };
    let later = pair(1);
    assert_eq!(later.right, []);
    assert_eq!(only(&later).kind, Kind::OthersPlace);
    assert_eq!(later.unknown[0].displaced_by.as_ref().map(|spot| spot.host.as_str()), Some("b"));
    assert!(later.unknown[0].sentence().contains("inspect this host again"), "{}", later.unknown[0].sentence());
    let earlier = pair(-1);
    assert_eq!((earlier.right.len(), earlier.unknown.len(), earlier.diagnoses.len()), (1, 1, 0));
    let same = pair(0);
    assert_eq!((same.right.len(), same.unknown.len(), same.diagnoses.len()), (0, 2, 0));
}

/// Proves: V12
#[test]
fn a_card_that_was_moved_is_where_it_was_seen_last() {
    let mac = "52:54:00:10:01:01".parse().ok();
    let mut a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp1")]);
    let mut b = host("b", vec![cable("eth0", "leaf-1 swp2", "leaf-1 swp2")]);
    (a.cables[0].mac, b.cables[0].mac, b.inspected_at) = (mac, mac, at(2));
    let findings = diagnose(&survey(vec![a.clone(), b.clone()], &[]));
    assert_eq!(findings.right, [Spot { host: "b".into(), interface: "eth0".into() }]);
    assert!(findings.unknown[0].why.contains("its MAC was seen later"), "{findings:#?}");
    b.inspected_at = a.inspected_at;
    assert_eq!(diagnose(&survey(vec![a, b], &[])).right, []);
}

/// Proves: V12
#[test]
fn a_place_that_netbox_gives_twice_moves_nobody() {
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp1")]);
    let b = host("b", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp2")]);
    let findings = diagnose(&survey(vec![a, b], &[]));
    assert_eq!((findings.right.len(), findings.diagnoses.len()), (1, 0));
    assert!(findings.unknown[0].why.contains("more than one interface"), "{findings:#?}");
}

/// Proves: V12
#[test]
fn a_cable_that_netbox_does_not_have_is_pulled_out_of_anothers_place_first() {
    let a = host("a", vec![cable("eth0", "", "leaf-1 swp1")]);
    let b = host("b", vec![cable("eth0", "leaf-1 swp1", "leaf-1 swp9")]);
    let findings = diagnose(&survey(vec![a, b], &[]));
    assert_eq!(moves(only(&findings)), ["eth0 of a: leaf-1 swp1 > -", "eth0 of b: leaf-1 swp9 > leaf-1 swp1"]);
    assert!(only(&findings).steps(None)[0].ends_with("NetBox has no place for it"));
    let alone = diagnose(&survey(vec![host("a", vec![cable("eth0", "", "leaf-1 swp1")])], &[]));
    assert_eq!((alone.diagnoses.len(), alone.unknown.len()), (0, 1));
}

/// Proves: U8
#[test]
fn what_a_switch_calls_itself_is_safe_to_show() {
    let a = host("a", vec![cable("eth0", "leaf-1 swp1", "le\u{1b}[2Jaf swp9")]);
    let findings = diagnose(&survey(vec![a], &[]));
    let found = only(&findings);
    for text in [found.sentence(None), found.action(None), found.steps(None).concat()] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
