//! Frames of every kind, and what is torn, twisted or hostile, one by one.

mod properties;

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn neighbour(system: &str, port: &str, description: &str) -> (Option<String>, Option<String>, Option<String>) {
    let some = |t: &str| (!t.is_empty()).then(|| t.to_owned());
    (some(system), some(port), some(description))
}

fn read(parsed: Value, raw: Value) -> Vec<(Option<String>, Option<String>, Option<String>)> {
    neighbours(&parsed, &raw).into_iter().map(|n| (n.system_name, n.port_id, n.port_description)).collect()
}

/// Proves: V11
#[test]
fn raw_tlvs_of_a_real_inventory_read_like_the_parsed_form() {
    let body: Value = serde_json::from_str(include_str!("../../../tests/fixtures/ironic/114-inventory.json")).unwrap();
    let body = &body["response"]["body"];
    for interface in ["eth0", "eth1"] {
        let parsed = read(body["plugin_data"]["parsed_lldp"][interface].clone(), Value::Null);
        let raw = read(Value::Null, body["plugin_data"]["lldp_raw"][interface].clone());
        assert_eq!(parsed, raw, "{interface}");
    }
    let raw = read(Value::Null, body["inventory"]["interfaces"][0]["lldp"].clone());
    assert_eq!(raw, [neighbour("leaf-1a", "swp1", "rack1-u01 eth0")]);
}

/// Case: C-10. Proves: V11
#[test]
fn a_mac_as_port_id_is_written_as_a_mac() {
    let raw = json!([
        [1, "04fcbd67000f90"],
        [2, "03fcbd67000f90"],
        [3, "0078"],
        [4, "45746865726e65743332"],
        [5, "6c6561662d6230372d31"]
    ]);
    assert_eq!(read(Value::Null, raw), [neighbour("leaf-b07-1", "fc:bd:67:00:0f:90", "Ethernet32")]);
}

/// Case: C-15. Proves: V8, V11
#[test]
fn two_neighbours_are_both_read_in_any_order_even_beside_the_parsed_form_of_one() {
    let one = [json!([1, "04443839000001"]), json!([2, "057377703134"]), json!([5, "6c6561662d6230372d31"])];
    let two = [json!([1, "04443839000002"]), json!([2, "0573777039"]), json!([5, "6d676d742d73772d33"])];
    let end = [json!([0, ""])];
    let both = [neighbour("leaf-b07-1", "swp14", ""), neighbour("mgmt-sw-3", "swp9", "")];
    let parsed = json!({"switch_system_name": "mgmt-sw-3", "switch_port_id": "swp9"});
    for raw in [
        [&one[..], &two[..]].concat(),
        [&two[..], &one[..]].concat(),
        [&one[..], &end[..], &two[..], &end[..]].concat(),
        [&two[..], &one[..], &two[..]].concat(),
    ] {
        assert_eq!(read(Value::Null, json!(raw)), both);
        assert_eq!(read(parsed.clone(), json!(raw)), both);
    }
}

/// Case: C-09. Proves: V11
#[test]
fn nothing_heard_and_nonsense_are_no_neighbours_and_no_panic() {
    for raw in [
        Value::Null,
        json!([]),
        json!({}),
        json!("x"),
        json!([[1], [2, 5], ["a", "b"], 7, [2, "0"], [2, "zz"], [2, ""], [5, "00"]]),
        json!([[0, ""], [0, ""]]),
    ] {
        assert!(read(Value::Null, raw.clone()).is_empty(), "{raw}");
        assert!(read(json!({"switch_port_id": "", "switch_system_name": null}), raw).is_empty());
    }
}

/// Proves: V11
#[test]
fn every_subtype_has_a_readable_form() {
    for (hex, shown) in [
        ("0573777031", "swp1"),
        ("0173777031", "swp1"),
        ("0273777031", "swp1"),
        ("0673777031", "swp1"),
        ("0773777031", "swp1"),
        ("0073777031", "swp1"),
        ("01737770310000", "swp1"),
        ("03fcbd67000f90", "fc:bd:67:00:0f:90"),
        ("03fcbd6700", "0xfcbd6700"),
        ("0401c0000201", "192.0.2.1"),
        ("040220010db8000000000000000000000001", "2001:db8::1"),
        ("0406443839000001", "44:38:39:00:00:01"),
        ("0401c00002", "0xc00002"),
        ("05ff00fe", "0xff00fe"),
        ("07353130", "510"),
    ] {
        let read = neighbours(&Value::Null, &json!([[2, hex]]));
        assert_eq!(read[0].port_id.as_deref(), Some(shown), "{hex}");
    }
    for (hex, shown) in [
        ("0178", "x"),
        ("0278", "x"),
        ("0378", "x"),
        ("04443839000001", "44:38:39:00:00:01"),
        ("0501c0000201", "192.0.2.1"),
        ("0678", "x"),
        ("0778", "x"),
        ("0978", "x"),
    ] {
        let read = neighbours(&Value::Null, &json!([[1, hex], [5, "78"]]));
        assert_eq!(read[0].chassis_id.as_deref(), Some(shown), "{hex}");
    }
}

/// Proves: V8
#[test]
fn only_the_whole_name_in_one_of_the_two_fields_matches() {
    let n = |system: &str, port: &str, description: &str| {
        parse(&json!({"switch_system_name": system, "switch_port_id": port, "switch_port_description": description}))
            .unwrap()
    };
    assert_eq!(n("leaf", "swp14", "x").is("leaf", "swp14"), Some(MatchedBy::PortId));
    assert_eq!(n("leaf", "510", "swp14").is("leaf", "swp14"), Some(MatchedBy::PortDescription));
    for other in [n("leaf", "swp140", "to swp14"), n("Leaf", "swp14", ""), n("", "swp14", ""), n("leaf", "swp14 ", "")]
    {
        assert_eq!(other.is("leaf", "swp14"), None, "{other:?}");
    }
}

#[test]
fn what_is_shown_is_safe_and_names_both_fields() {
    let n = Neighbour {
        system_name: Some("le\u{1b}[1maf".into()),
        port_id: Some("510".into()),
        port_description: Some("xe-0/0/19".into()),
        ..Default::default()
    };
    assert_eq!(n.shown(), "le\u{fffd}[1maf 510 (xe-0/0/19)");
    assert_eq!(Neighbour { port_id: Some("a".into()), ..Default::default() }.shown(), "? a");
}

/// Types with their values.
type Tlvs = Vec<(u8, Vec<u8>)>;

/// A frame of a switch that sends everything.
fn everything() -> Tlvs {
    let org = |oui: [u8; 3], subtype: u8, rest: &[u8]| (127, [&oui[..], &[subtype], rest].concat());
    let (dot1, dot3) = ([0x00, 0x80, 0xc2], [0x00, 0x12, 0x0f]);
    vec![
        (1, vec![4, 0x44, 0x38, 0x39, 0, 0, 1]),
        (2, b"\x05swp14".to_vec()),
        (3, vec![0, 120]),
        (4, b"gpu-b07-37 eth0".to_vec()),
        (5, b"leaf-b07-1".to_vec()),
        (6, b"Example NOS 5.9".to_vec()),
        (7, vec![0, 0x14, 0, 0x10]),
        (8, vec![5, 1, 192, 0, 2, 7, 2, 0, 0, 0, 3, 0]),
        (
            8,
            [&[17, 2][..], &[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7], &[1, 0, 0, 0, 0, 2, 43, 6]]
                .concat(),
        ),
        org(dot1, 1, &[0x02, 0x99]),
        org(dot1, 2, &[6, 0, 10]),
        org(dot1, 3, b"\x02\x99\x05front"),
        org(dot1, 4, &[2, 0x88, 0xcc]),
        org(dot1, 5, &[1, 2, 3, 4]),
        org(dot1, 6, &[0, 99]),
        org(dot1, 7, &[3, 0, 0, 0, 201]),
        org(dot3, 1, &[3, 0x80, 0, 0, 30]),
        org(dot3, 2, &[1, 1, 3, 0x50, 0, 200, 0, 190]),
        org(dot3, 3, &[1, 0, 0, 0, 201]),
        org(dot3, 4, &[0x24, 0]),
        org([0x00, 0x12, 0xbb], 1, &[0, 1, 2]),
        (0, vec![]),
    ]
}

fn wire(tlvs: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in tlvs {
        bytes.extend([kind << 1 | (value.len() >> 8) as u8, value.len() as u8]);
        bytes.extend(value);
    }
    bytes
}

fn list(tlvs: &[(u8, Vec<u8>)]) -> Value {
    let hex = |value: &[u8]| value.iter().map(|b| format!("{b:02x}")).collect::<String>();
    Value::Array(tlvs.iter().map(|(kind, value)| json!([kind, hex(value)])).collect())
}

/// Proves: V11
#[test]
fn every_tlv_of_the_three_standards_is_read() {
    let frame = Frame::read(&wire(&everything()));
    assert_eq!(frame.faults, BTreeSet::new());
    assert_eq!(frame.chassis, Some((ChassisKind::Mac, Id::Mac([0x44, 0x38, 0x39, 0, 0, 1]))));
    assert_eq!(frame.port, Some((PortKind::InterfaceName, Id::Text("swp14".into()))));
    assert_eq!(frame.ttl_s, Some(120));
    assert_eq!(frame.system_description, Some(Id::Text("Example NOS 5.9".into())));
    assert_eq!(frame.capabilities, Some(Capabilities { system: 0x14, enabled: 0x10 }));
    let management: Vec<_> =
        frame.management.iter().map(|m| (m.address.to_string(), m.interface, m.oid.len())).collect();
    assert_eq!(management, [("192.0.2.7".into(), 3, 0), ("2001:db8::7".into(), 0, 2)]);
    let Organizations { dot1, dot3, others } = &frame.organizations;
    assert_eq!((dot1.port_vlan, dot1.management_vlan, dot1.vid_digest), (Some(665), Some(99), Some(0x0102_0304)));
    assert_eq!(dot1.protocol_vlans, BTreeSet::from([ProtocolVlan { supported: true, enabled: true, vlan: 10 }]));
    assert_eq!(dot1.vlan_names, BTreeSet::from([(665, Some(Id::Text("front".into())))]));
    assert_eq!(dot1.protocols, BTreeSet::from([vec![0x88, 0xcc]]));
    assert_eq!(dot1.aggregation, Some(Aggregation { capable: true, enabled: true, port: 201 }));
    assert_eq!(dot3.aggregation, Some(Aggregation { capable: true, enabled: false, port: 201 }));
    assert_eq!(dot3.max_frame, Some(9216));
    assert_eq!(dot3.mac_phy, Some(MacPhy { negotiates: true, negotiation_enabled: true, advertised: 0x8000, mau: 30 }));
    assert_eq!(dot3.power, Some(Power { support: 1, pair: 1, class: 3, wanted: Some((0x50, 200, 190)) }));
    assert_eq!(*others, BTreeSet::from([([0x00, 0x12, 0xbb], 1)]));

    let read = neighbours(&Value::Null, &list(&everything()));
    assert_eq!(read, [Neighbour::from(frame)]);
    assert_eq!((read[0].vlan, read[0].management.len()), (Some(665), 2));
    assert!(read[0].is("leaf-b07-1", "swp14").is_some());
}

/// Proves: V11
#[test]
fn frames_of_a_real_daemon_are_read_without_a_fault_and_its_farewells_are_no_neighbours() {
    let text = include_str!("../../../tests/fixtures/lldp/lldpd-1.0.16.hex");
    let mut seen = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Ok(ethernet) = bytes(line) else { panic!("{line}") };
        let frame = Frame::read(&ethernet[14..]);
        assert_eq!(frame.faults, BTreeSet::new(), "{line}");
        let port = frame.port.clone().unwrap();
        if frame.is_withdrawn() {
            assert!(frame.system_name.is_none());
            continue;
        }
        assert_eq!(frame.system_name, Some(Id::Text("leaf-b07-1".into())));
        assert_eq!(frame.system_description, Some(Id::Text("Example NOS 5.9".into())));
        let addresses: Vec<String> = frame.management.iter().map(|m| m.address.to_string()).collect();
        assert_eq!(addresses, ["192.0.2.7", "2001:db8::7"]);
        let Organizations { dot1, dot3, others } = &frame.organizations;
        assert_eq!((dot1.port_vlan, others.len()), (Some(665), 1));
        assert_eq!(dot3.aggregation, Some(Aggregation { capable: true, enabled: false, port: 0 }));
        assert_eq!(dot3.mac_phy.map(|phy| (phy.negotiates, phy.advertised, phy.mau)), Some((false, 0x8000, 0x36)));
        assert_eq!(dot3.power.map(|power| (power.class, power.wanted)), Some((4, Some((0x12, 200, 190)))));
        let description = frame.port_description.as_ref().map(|text| text.to_string()).unwrap_or_default();
        seen.push((port.0, port.1.to_string(), description));
    }
    let mac = seen[1].1.clone();
    assert_eq!(
        seen,
        [
            (PortKind::InterfaceName, "swp14".to_owned(), "gpu-b07-37 eth0".to_owned()),
            (PortKind::Mac, mac, "gpu-b07-37 eth0".to_owned()),
            (PortKind::Local, "Ethernet 14".to_owned(), "swp14".to_owned()),
        ]
    );
}

/// Proves: V11
#[test]
fn each_kind_of_damage_is_named_and_nothing_torn_is_believed() {
    let whole = everything();
    let with = |change: &dyn Fn(&mut Tlvs)| {
        let mut tlvs = whole.clone();
        change(&mut tlvs);
        Frame::read(&wire(&tlvs))
    };
    let faults = |frame: &Frame| frame.faults.iter().copied().collect::<Vec<_>>();

    let bytes = wire(&whole);
    let torn = Frame::read(&bytes[..9 + 4]);
    assert_eq!(faults(&torn), [Fault::Truncated(2), Fault::Missing(2), Fault::Missing(3)]);
    assert_eq!(torn.port, None);
    assert_eq!(faults(&Frame::read(&bytes[..bytes.len() - 2])), [Fault::Missing(0)]);
    assert_eq!(faults(&Frame::read(&bytes[..bytes.len() - 1])), [Fault::Truncated(0)]);
    assert_eq!(faults(&Frame::read(&[])), [Fault::Missing(0), Fault::Missing(1), Fault::Missing(2), Fault::Missing(3)]);

    let padded = Frame::read(&[&bytes[..], &[0; 40]].concat());
    assert_eq!(padded.faults, BTreeSet::new(), "padding is no fault");
    let after = Frame::read(&[&bytes[..], &wire(&[(5, b"evil".to_vec())])].concat());
    assert_eq!((faults(&after), after.system_name), (vec![Fault::AfterEnd], Some(Id::Text("leaf-b07-1".into()))));

    let twice = with(&|t| t.insert(5, (5, b"leaf-b07-1".to_vec())));
    assert_eq!(faults(&twice), [Fault::Twice(Key::Kind(5))]);
    assert!(twice.system_name.is_some());
    for at in [4, 5, 20] {
        let two = with(&|t| t.insert(at, (5, b"leaf-b07-2".to_vec())));
        assert_eq!((faults(&two), &two.system_name), (vec![Fault::Contradicts(Key::Kind(5))], &None));
        let read = neighbours(&Value::Null, &{
            let mut tlvs = whole.clone();
            tlvs.insert(at, (5, b"leaf-b07-2".to_vec()));
            list(&tlvs)
        });
        assert!(read.len() == 1 && read[0].contradicts && read[0].is("leaf-b07-1", "swp14").is_none(), "{read:?}");
        // The inspector took one of the two and calls it the name.
        let parsed = json!({"switch_system_name": "leaf-b07-1", "switch_port_id": "swp14"});
        let beside = neighbours(&parsed, &{
            let mut tlvs = whole.clone();
            tlvs.insert(at, (5, b"leaf-b07-2".to_vec()));
            list(&tlvs)
        });
        assert_eq!(beside, read);
    }
    // Two port IDs beside a description that would match.
    let mut two_ports = whole.clone();
    two_ports[3].1 = b"swp14".to_vec();
    two_ports.insert(2, (2, b"\x05swp15".to_vec()));
    assert_eq!(neighbours(&Value::Null, &list(&two_ports))[0].is("leaf-b07-1", "swp14"), None);
    let ports = with(&|t| t.insert(2, (2, b"\x05swp15".to_vec())));
    assert_eq!((ports.port.is_none(), ports.contradicts_itself()), (true, true));

    let empty = with(&|t| t[4].1.clear());
    assert_eq!((faults(&empty), empty.system_name), (vec![], None));
    let name_twice_once_empty = with(&|t| t.insert(4, (5, vec![])));
    assert_eq!(name_twice_once_empty.system_name, None, "once nameless and once named is no name");
    for (at, kind) in [(0, 1), (1, 2), (2, 3)] {
        let empty = with(&|t| t[at].1.clear());
        assert_eq!(faults(&empty), [Fault::Length(Key::Kind(kind))], "{kind}");
    }
    let long = with(&|t| t[1].1 = [&[5][..], &[b'x'; 256]].concat());
    assert_eq!((faults(&long), long.port), (vec![Fault::Length(Key::Kind(2))], None));
    let binary = with(&|t| t[4].1 = vec![0xff, 0xfe]);
    assert_eq!((faults(&binary), binary.system_name), (vec![Fault::NotText(5)], Some(Id::Bytes(vec![0xff, 0xfe]))));
    assert_eq!(faults(&with(&|t| t.swap(1, 2))), [Fault::Order]);
    assert_eq!(faults(&with(&|t| t.insert(3, (42, vec![1])))), [Fault::Reserved(42)]);
    for value in [&[][..], &[0, 0x80], &[0, 0x80, 0xc2, 1, 9]] {
        let frame = with(&|t| t.insert(3, (127, value.to_vec())));
        assert!(matches!(faults(&frame)[..], [Fault::Length(_)]), "{value:?}");
    }
    for value in [&[][..], &[0], &[33, 1], &[5, 1, 192, 0, 2], &[5, 1, 192, 0, 2, 7, 2, 0, 0, 0, 3, 9, 1]] {
        assert_eq!(faults(&with(&|t| t[7].1 = value.to_vec())), [Fault::Length(Key::Kind(8))], "{value:?}");
    }
    for fault in [Fault::Truncated(2), Fault::Contradicts(Key::Organization([0, 0x80, 0xc2], 1)), Fault::AfterEnd] {
        assert!(!fault.to_string().is_empty());
    }
}

/// Proves: V11
#[test]
fn a_list_stands_the_same_damage_as_the_wire() {
    let name = "6c6561662d6230372d31";
    let base = [json!([1, "04443839000001"]), json!([2, "057377703134"]), json!([3, "0078"])];
    let read = |more: &[Value]| neighbours(&Value::Null, &json!([&base[..], more].concat()));
    assert_eq!(read(&[json!([5, name])])[0].system_name.as_deref(), Some("leaf-b07-1"));
    // 512 bytes are more than a TLV holds; an odd digit and no digits are none.
    for bad in ["61".repeat(512), format!("{name}0"), "zz".to_owned()] {
        assert_eq!(read(&[json!([5, bad])])[0].system_name, None);
        // What could not be read was sent: the name beside it is not the only one.
        assert_eq!(read(&[json!([5, bad]), json!([5, name])])[0].system_name, None);
    }
    assert_eq!(read(&[json!([0, ""]), json!([5, name])]).len(), 2, "a name behind the end is somebody else's");
    assert_eq!(read(&[json!([300, name]), json!([5, name])])[0].system_name.as_deref(), Some("leaf-b07-1"));
    let many: Vec<Value> = (0..200_000).map(|_| json!([5, name])).collect();
    assert_eq!(read(&many).len(), 1);
}

/// Proves: V11
#[test]
fn who_takes_back_its_word_is_no_neighbour() {
    let withdrawn = json!([[1, "04443839000001"], [2, "057377703134"], [3, "0000"], [0, ""]]);
    assert_eq!(neighbours(&Value::Null, &withdrawn), []);
}

/// Case: C-16. Proves: V11
#[test]
fn the_first_frames_of_a_switch_are_filled_up_by_its_later_ones_and_never_by_another_port() {
    let early = [json!([1, "04443839000001"]), json!([2, "057377703134"]), json!([3, "0078"])];
    let late = [&early[..], &[json!([5, "6c656166"]), json!([4, "78"])]].concat();
    let other = [json!([1, "04443839000001"]), json!([2, "057377703135"]), json!([3, "0078"])];
    for both in [[&early[..], &late[..]].concat(), [&late[..], &early[..]].concat()] {
        assert_eq!(read(Value::Null, json!(both)), [neighbour("leaf", "swp14", "x")]);
    }
    assert_eq!(neighbours(&Value::Null, &json!([&other[..], &late[..]].concat())).len(), 2);
}

/// Proves: V8, V11
#[test]
fn a_parsed_form_that_differs_from_the_raw_one_is_another_neighbour_and_no_mixture() {
    let raw = json!([[1, "04443839000001"], [2, "057377703134"], [3, "0078"], [5, "6c6561662d32"]]);
    // Together they would be 'leaf-1 swp14', which nobody has sent.
    let parsed = json!({"switch_system_name": "leaf-1"});
    let read = neighbours(&parsed, &raw);
    assert_eq!(read.len(), 2, "{read:?}");
    assert!(read.iter().all(|n| n.is("leaf-1", "swp14").is_none()));
    let agrees = json!({"switch_system_name": "leaf-2", "switch_port_description": "uplink"});
    let read = neighbours(&agrees, &raw);
    assert_eq!((read.len(), read[0].port_description.as_deref()), (1, Some("uplink")));
    assert!(read[0].is("leaf-2", "swp14").is_some());
}
