//! What holds of every frame: the way there and back, and what a decoder must stand.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use super::super::*;
use super::{Tlvs, everything, list, wire};

/// How often the hostile properties are tried: a hundred thousand times where the code is optimised.
fn cases() -> Config {
    let few = if cfg!(debug_assertions) { 2_000 } else { 100_000 };
    let cases = std::env::var("MUSTER_FUZZ_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(few);
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Bytes that a frame holds on the heap, counted high.
fn weight(frame: &Frame) -> usize {
    let id = |id: &Id| match id {
        Id::Text(text) => text.capacity(),
        Id::Bytes(bytes) => bytes.capacity(),
        Id::Network(Address::Other { bytes, .. }) => bytes.capacity(),
        Id::Mac(_) | Id::Network(_) => 0,
    };
    let maybe = |value: &Option<Id>| value.as_ref().map_or(0, id);
    let dot1 = &frame.organizations.dot1;
    let node = 96;
    frame.chassis.as_ref().map_or(0, |(_, v)| id(v))
        + frame.port.as_ref().map_or(0, |(_, v)| id(v))
        + maybe(&frame.port_description)
        + maybe(&frame.system_name)
        + maybe(&frame.system_description)
        + frame.management.iter().map(|m| node + m.oid.capacity() + 31).sum::<usize>()
        + dot1.protocol_vlans.len() * node
        + dot1.vlan_names.iter().map(|(_, name)| node + maybe(name)).sum::<usize>()
        + dot1.protocols.iter().map(|p| node + p.capacity()).sum::<usize>()
        + frame.organizations.others.len() * node
        + frame.faults.len() * node
}

fn text(longest: usize) -> impl Strategy<Value = Id> {
    vec(any::<char>().prop_filter("NULs at the end are not kept", |c| *c != '\0'), 1..longest / 4)
        .prop_map(|chars| Id::Text(chars.into_iter().collect()))
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        any::<[u8; 4]>().prop_map(|a| Address::V4(a.into())),
        any::<[u8; 16]>().prop_map(|a| Address::V6(a.into())),
        (3u8.., vec(any::<u8>(), 1..31)).prop_map(|(family, bytes)| Address::Other { family, bytes }),
    ]
}

fn named() -> impl Strategy<Value = Id> {
    prop_oneof![
        4 => text(255),
        1 => vec(any::<u8>(), 1..200).prop_map(|mut bytes| { bytes[0] = 0xff; Id::Bytes(bytes) }),
    ]
}

fn chassis() -> impl Strategy<Value = (ChassisKind, Id)> {
    prop_oneof![
        any::<[u8; 6]>().prop_map(|mac| (ChassisKind::Mac, Id::Mac(mac))),
        address().prop_map(|a| (ChassisKind::Network, Id::Network(a))),
        (prop_oneof![1u8..4, 6u8..8, 8u8..], named()).prop_map(|(subtype, id)| (ChassisKind::from(subtype), id)),
    ]
}

fn port() -> impl Strategy<Value = (PortKind, Id)> {
    prop_oneof![
        any::<[u8; 6]>().prop_map(|mac| (PortKind::Mac, Id::Mac(mac))),
        address().prop_map(|a| (PortKind::Network, Id::Network(a))),
        (prop_oneof![1u8..3, 5u8..8, 8u8..], named()).prop_map(|(subtype, id)| (PortKind::from(subtype), id)),
    ]
}

fn aggregation() -> impl Strategy<Value = Aggregation> {
    any::<(bool, bool, u32)>().prop_map(|(capable, enabled, port)| Aggregation { capable, enabled, port })
}

fn organizations() -> impl Strategy<Value = Organizations> {
    let option = proptest::option::of::<BoxedStrategy<Aggregation>>;
    let vlan =
        any::<(bool, bool, u16)>().prop_map(|(supported, enabled, vlan)| ProtocolVlan { supported, enabled, vlan });
    let dot1 = (
        any::<(Option<u16>, Option<u32>, Option<u16>)>(),
        btree_set(vlan, 0..4),
        btree_set((any::<u16>(), proptest::option::of(text(32))), 0..4),
        btree_set(vec(any::<u8>(), 0..20), 0..3),
        option(aggregation().boxed()),
    )
        .prop_map(
            |((port_vlan, vid_digest, management_vlan), protocol_vlans, vlan_names, protocols, aggregation)| Dot1 {
                port_vlan,
                protocol_vlans,
                vlan_names,
                protocols,
                vid_digest,
                management_vlan,
                aggregation,
            },
        );
    let phy = any::<(bool, bool, u16, u16)>().prop_map(|(negotiates, negotiation_enabled, advertised, mau)| MacPhy {
        negotiates,
        negotiation_enabled,
        advertised,
        mau,
    });
    let power = any::<(u8, u8, u8, Option<(u8, u16, u16)>)>().prop_map(|(support, pair, class, wanted)| Power {
        support,
        pair,
        class,
        wanted,
    });
    let dot3 =
        (proptest::option::of(phy), proptest::option::of(power), option(aggregation().boxed()), any::<Option<u16>>())
            .prop_map(|(mac_phy, power, aggregation, max_frame)| Dot3 { mac_phy, power, aggregation, max_frame });
    let others = btree_set((Just([0x00, 0x12, 0xbb]), any::<u8>()), 0..4);
    (dot1, dot3, others).prop_map(|(dot1, dot3, others)| Organizations { dot1, dot3, others })
}

fn frame() -> impl Strategy<Value = Frame> {
    let management = (address(), any::<u8>(), any::<u32>(), vec(any::<u8>(), 0..20))
        .prop_map(|(address, numbering, interface, oid)| Management { address, numbering, interface, oid });
    let texts = (proptest::option::of(text(255)), proptest::option::of(text(255)), proptest::option::of(text(255)));
    let capabilities = any::<Option<(u16, u16)>>();
    (chassis(), port(), 1u16.., texts, capabilities, btree_set(management, 0..4), organizations()).prop_map(
        |(
            chassis,
            port,
            ttl,
            (port_description, system_name, system_description),
            capabilities,
            management,
            organizations,
        )| {
            Frame {
                chassis: Some(chassis),
                port: Some(port),
                ttl_s: Some(ttl),
                port_description,
                system_name,
                system_description,
                capabilities: capabilities.map(|(system, enabled)| Capabilities { system, enabled }),
                management,
                organizations,
                faults: BTreeSet::new(),
            }
        },
    )
}

fn id_bytes(id: &Id) -> Vec<u8> {
    match id {
        Id::Text(text) => text.as_bytes().to_vec(),
        Id::Mac(mac) => mac.to_vec(),
        Id::Network(address) => address_bytes(address),
        Id::Bytes(bytes) => bytes.clone(),
    }
}

fn address_bytes(address: &Address) -> Vec<u8> {
    match address {
        Address::V4(v4) => [&[1][..], &v4.octets()].concat(),
        Address::V6(v6) => [&[2][..], &v6.octets()].concat(),
        Address::Other { family, bytes } => [&[*family][..], bytes].concat(),
    }
}

/// The other way round: the TLVs of a frame, written by the tables of the standards and not by the decoder's.
fn encode(frame: &Frame) -> Tlvs {
    let mut tlvs = Vec::new();
    let (kind, id) = frame.chassis.as_ref().unwrap();
    let subtype = match kind {
        ChassisKind::Component => 1,
        ChassisKind::InterfaceAlias => 2,
        ChassisKind::PortComponent => 3,
        ChassisKind::Mac => 4,
        ChassisKind::Network => 5,
        ChassisKind::InterfaceName => 6,
        ChassisKind::Local => 7,
        ChassisKind::Reserved(other) => *other,
    };
    tlvs.push((1, [&[subtype][..], &id_bytes(id)].concat()));
    let (kind, id) = frame.port.as_ref().unwrap();
    let subtype = match kind {
        PortKind::InterfaceAlias => 1,
        PortKind::Component => 2,
        PortKind::Mac => 3,
        PortKind::Network => 4,
        PortKind::InterfaceName => 5,
        PortKind::AgentCircuit => 6,
        PortKind::Local => 7,
        PortKind::Reserved(other) => *other,
    };
    tlvs.push((2, [&[subtype][..], &id_bytes(id)].concat()));
    tlvs.push((3, frame.ttl_s.unwrap().to_be_bytes().to_vec()));
    let texts = [(4, &frame.port_description), (5, &frame.system_name), (6, &frame.system_description)];
    tlvs.extend(texts.into_iter().filter_map(|(kind, text)| Some((kind, id_bytes(text.as_ref()?)))));
    if let Some(Capabilities { system, enabled }) = frame.capabilities {
        tlvs.push((7, [system.to_be_bytes(), enabled.to_be_bytes()].concat()));
    }
    for m in &frame.management {
        let address = address_bytes(&m.address);
        let mut value = vec![address.len() as u8];
        value.extend(address);
        value.push(m.numbering);
        value.extend(m.interface.to_be_bytes());
        value.push(m.oid.len() as u8);
        value.extend(&m.oid);
        tlvs.push((8, value));
    }
    let mut org = |oui: [u8; 3], subtype: u8, rest: Vec<u8>| tlvs.push((127, [&oui[..], &[subtype], &rest].concat()));
    let lag = |a: &Aggregation| {
        [vec![u8::from(a.capable) | u8::from(a.enabled) << 1], a.port.to_be_bytes().to_vec()].concat()
    };
    let Organizations { dot1, dot3, others } = &frame.organizations;
    let oui = [0x00, 0x80, 0xc2];
    dot1.port_vlan.iter().for_each(|v| org(oui, 1, v.to_be_bytes().to_vec()));
    for v in &dot1.protocol_vlans {
        let [a, b] = v.vlan.to_be_bytes();
        org(oui, 2, vec![u8::from(v.supported) << 1 | u8::from(v.enabled) << 2, a, b]);
    }
    for (vlan, name) in &dot1.vlan_names {
        let name = name.as_ref().map(id_bytes).unwrap_or_default();
        org(oui, 3, [&vlan.to_be_bytes()[..], &[name.len() as u8], &name].concat());
    }
    dot1.protocols.iter().for_each(|p| org(oui, 4, [&[p.len() as u8][..], p].concat()));
    dot1.vid_digest.iter().for_each(|d| org(oui, 5, d.to_be_bytes().to_vec()));
    dot1.management_vlan.iter().for_each(|v| org(oui, 6, v.to_be_bytes().to_vec()));
    dot1.aggregation.iter().for_each(|a| org(oui, 7, lag(a)));
    let oui = [0x00, 0x12, 0x0f];
    if let Some(phy) = &dot3.mac_phy {
        let flags = u8::from(phy.negotiates) | u8::from(phy.negotiation_enabled) << 1;
        org(oui, 1, [&[flags][..], &phy.advertised.to_be_bytes(), &phy.mau.to_be_bytes()].concat());
    }
    if let Some(power) = &dot3.power {
        let mut value = vec![power.support, power.pair, power.class];
        if let Some((kind, wanted, given)) = power.wanted {
            value.push(kind);
            value.extend(wanted.to_be_bytes());
            value.extend(given.to_be_bytes());
        }
        org(oui, 2, value);
    }
    dot3.aggregation.iter().for_each(|a| org(oui, 3, lag(a)));
    dot3.max_frame.iter().for_each(|m| org(oui, 4, m.to_be_bytes().to_vec()));
    others.iter().for_each(|(oui, subtype)| org(*oui, *subtype, vec![7]));
    tlvs.push((0, vec![]));
    tlvs
}

/// What somebody may do to a frame.
#[derive(Debug, Clone)]
enum Twist {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    /// A TLV again, somewhere else.
    Again(usize, usize),
    Empty(usize),
    Retype(usize, u8),
    Swap(usize, usize),
    Append(Vec<u8>),
    /// A length that lies.
    Length(usize, u8),
}

fn twist() -> impl Strategy<Value = Twist> {
    let n = 0usize..1000;
    prop_oneof![
        (n.clone(), any::<u8>()).prop_map(|(at, by)| Twist::Flip(at, by)),
        n.clone().prop_map(Twist::Cut),
        (n.clone(), vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Twist::Insert(at, bytes)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Twist::Again(a, b)),
        n.clone().prop_map(Twist::Empty),
        (n.clone(), 0u8..128).prop_map(|(at, kind)| Twist::Retype(at, kind)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Twist::Swap(a, b)),
        vec(any::<u8>(), 1..40).prop_map(Twist::Append),
        (n, any::<u8>()).prop_map(|(at, length)| Twist::Length(at, length)),
    ]
}

/// The frame after all twists: those of TLVs first, then those of bytes.
fn twisted(mut tlvs: Tlvs, twists: &[Twist]) -> (Tlvs, Vec<u8>) {
    for twist in twists {
        let n = tlvs.len();
        match twist {
            Twist::Again(a, b) => tlvs.insert(b % (n + 1), tlvs[a % n].clone()),
            Twist::Empty(a) => tlvs[a % n].1.clear(),
            Twist::Retype(a, kind) => tlvs[a % n].0 = *kind,
            Twist::Swap(a, b) => tlvs.swap(a % n, b % n),
            _ => {}
        }
    }
    let mut bytes = wire(&tlvs);
    for twist in twists {
        let n = bytes.len().max(1);
        match twist {
            Twist::Flip(at, by) if !bytes.is_empty() => bytes[at % n] ^= by,
            Twist::Length(at, length) if !bytes.is_empty() => bytes[at % n] = *length,
            Twist::Cut(at) => bytes.truncate(at % n),
            Twist::Insert(at, more) => {
                let at = at % n.min(bytes.len() + 1);
                bytes.splice(at..at, more.iter().copied());
            }
            Twist::Append(more) => bytes.extend(more),
            _ => {}
        }
    }
    (tlvs, bytes)
}

/// What holds of a frame whatever was read.
fn sound(frame: &Frame, length: usize) -> Result<(), TestCaseError> {
    prop_assert!(weight(frame) <= 24 * length + 2048, "{} bytes kept of {length}", weight(frame));
    if frame.contradicts_itself() {
        prop_assert!(frame.faults.iter().any(|f| matches!(f, Fault::Contradicts(_))));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    /// Proves: V11, Z3
    #[test]
    fn any_bytes_at_all_are_read_without_panic_and_within_bounds(bytes in vec(any::<u8>(), 0..400)) {
        sound(&Frame::read(&bytes), bytes.len())?;
    }

    /// Proves: V11, Z3
    #[test]
    fn a_frame_that_was_twisted_is_read_without_panic_and_within_bounds(
        base in 0usize..3,
        twists in vec(twist(), 0..6),
    ) {
        let all = everything();
        let short = [&all[..5], &all[21..]].concat();
        let tlvs = match base { 0 => all, 1 => short, _ => [short.clone(), short].concat() };
        let (tlvs, bytes) = twisted(tlvs, &twists);
        sound(&Frame::read(&bytes), bytes.len())?;
        let heard = neighbours(&Value::Null, &list(&tlvs));
        prop_assert!(heard.len() <= tlvs.len());
        // Nobody but the switch itself is ever taken for it: another name or port was never in a TLV of that type.
        for neighbour in &heard {
            if let Some(name) = &neighbour.system_name {
                let shown = |value: &Vec<u8>| Id::text(value).map(|id| id.to_string());
                prop_assert!(tlvs.iter().any(|(kind, value)| *kind == 5 && shown(value).as_ref() == Some(name)));
            }
        }
    }
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    /// Proves: V11
    #[test]
    fn what_is_encoded_is_decoded_from_the_wire_and_from_a_list(frame in frame()) {
        let tlvs = encode(&frame);
        prop_assert_eq!(&Frame::read(&wire(&tlvs)), &frame);
        prop_assert_eq!(neighbours(&Value::Null, &list(&tlvs)), [Neighbour::from(frame)]);
    }
}

proptest! {
    /// Proves: V11, Z3
    #[test]
    fn no_sequence_of_tlvs_panics_and_two_neighbours_swap_places_unnoticed(
        a in vec((2u64..130, "[0-9a-f]{0,12}"), 0..6),
        b in vec((2u64..130, "\\PC{0,8}"), 0..6),
    ) {
        let list = |chassis: &str, tlvs: &[(u64, String)]| -> Vec<Value> {
            [json!([1, chassis])].into_iter().chain(tlvs.iter().map(|(k, v)| json!([k, v]))).collect()
        };
        let (a, b) = (list("040200000000aa", &a), list("040200000000bb", &b));
        let one = neighbours(&Value::Null, &json!([&a[..], &b[..]].concat()));
        let other = neighbours(&Value::Null, &json!([&b[..], &a[..]].concat()));
        prop_assert_eq!(one, other);
    }
}
