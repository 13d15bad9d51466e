//! What comes from switches, hosts and servers: LLDP, inventories, DHCP entries, host keys, IPMI.

use std::collections::BTreeMap;

use jiff::Timestamp;
use muster::clients::ipmi::read_in_every_way;
use muster::clients::ssh::known_hosts::{KnownHosts, Verdict};
use muster::domain::checks;
use muster::domain::dhcp::others::Others;
use muster::domain::dhcp::{Entry, Server, entries_of, render};
use muster::domain::failure::FailureCode;
use muster::domain::host::{CablePeer, HostFacts, HostInterface, IronicSettings, SiteFacts};
use muster::domain::lldp::{Frame, Neighbour, neighbours};
use muster::domain::phase::Phase;
use russh::keys::PublicKey;
use serde_json::Value;

use super::{is_safe, parts};

/// A frame as a switch sends it.
pub fn lldp_frame(bytes: &[u8]) {
    let frame = Frame::read(bytes);
    let neighbour = Neighbour::from(frame.clone());
    assert!(is_safe(&neighbour.shown()), "{:?}", neighbour.shown());
    if frame.is_empty() {
        assert_eq!(neighbour.system_name, None);
    }
    // Who contradicts itself is nobody's neighbour.
    if frame.contradicts_itself() {
        assert_eq!(neighbour.is("leaf-b07-1", "swp14"), None);
    }
}

/// The inspector's forms of what was heard: parsed, and raw TLVs as JSON.
pub fn lldp_parsed(bytes: &[u8]) {
    let documents = parts(bytes);
    let value = |n: usize| documents.get(n).and_then(|text| serde_json::from_slice(text).ok()).unwrap_or(Value::Null);
    let heard = neighbours(&value(0), &value(1));
    for neighbour in &heard {
        assert!(is_safe(&neighbour.shown()));
    }
    // Each once.
    for (n, one) in heard.iter().enumerate() {
        assert!(!heard[n + 1..].contains(one), "{one:?} twice");
    }
}

fn host(validation: Value) -> HostFacts {
    let interface = |name: &str, mac: &str, switch: &str| HostInterface {
        name: name.into(),
        mac: mac.parse().ok(),
        kind: "100gbase-x-qsfp28".into(),
        description: "frontend".into(),
        peer: Some(CablePeer { switch: switch.into(), port: "swp14".into(), ..CablePeer::default() }),
        ..HostInterface::default()
    };
    HostFacts {
        netbox_id: 1,
        name: "gpu-b07-37".into(),
        status: "staged".into(),
        site: SiteFacts::default(),
        rack: Some("B07".into()),
        position: Some(37.0),
        serial: None,
        device_class: None,
        manufacturer: "M".into(),
        model: "X".into(),
        tags: vec![],
        oob_ip: None,
        management: None,
        interfaces: vec![
            interface("eth0", "52:54:00:10:01:01", "leaf-b07-1"),
            interface("eth1", "52:54:00:10:01:02", "leaf-b07-2"),
        ],
        ironic_settings: Some(IronicSettings {
            interface_type: Some("frontend".into()),
            inspection_validation: validation.as_object().cloned().unwrap_or_default(),
            ..IronicSettings::default()
        }),
    }
}

/// What an agent or an inspector says of a host, against what NetBox wants of it: wanted, inventory, plugin data.
pub fn inventory(bytes: &[u8]) {
    let documents = parts(bytes);
    let value = |n: usize| documents.get(n).and_then(|text| serde_json::from_slice(text).ok()).unwrap_or(Value::Null);
    let (wanted, inventory, plugin_data) = (value(0), value(1), value(2));
    let facts = host(wanted);
    let verification = checks::judge(&facts, &inventory, &plugin_data, None);
    let told = serde_json::to_string(&verification).unwrap();
    let back: muster::domain::verify::Verification = serde_json::from_str(&told).unwrap();
    assert_eq!(back.checks.len(), verification.checks.len(), "a verification is journaled and read again");
    for check in &verification.checks {
        assert!(is_safe(&check.title()), "{check:?}");
    }
    if verification.failed().next().is_some() {
        let failure = checks::failure(&verification, "gpu-b07-37", Phase::Inspection);
        assert!(is_safe(&failure.message) && is_safe(&failure.action) && failure.code != FailureCode::InternalError);
    }
    checks::heard(&facts, &inventory, &plugin_data, Timestamp::UNIX_EPOCH);
}

fn dhcp(server: Server, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (held, is_clear) = entries_of(server, &text);
    let others = Others::read(server, BTreeMap::from([("other".to_owned(), text.into_owned())]));
    assert_eq!(others.unclear().is_empty(), is_clear);
    // What muster would write there itself is understood, and collides with itself in another file.
    let entry = Entry {
        name: "gpu-b07-37".into(),
        mac: "52:54:00:10:01:01".parse().unwrap(),
        address: "10.10.8.37".parse().unwrap(),
    };
    let own = render(server, &entry).unwrap();
    let (mine, clear) = entries_of(server, &own.content);
    assert!(clear && mine.len() == 1);
    let has_own = held.iter().any(|held| held.macs.contains(&entry.mac));
    if has_own {
        assert!(others.collision(&own.name, &entry).is_some());
    }
}

pub fn dhcp_isc(bytes: &[u8]) {
    dhcp(Server::Isc, bytes);
}

pub fn dhcp_kea(bytes: &[u8]) {
    dhcp(Server::Kea, bytes);
}

pub fn dhcp_dnsmasq(bytes: &[u8]) {
    dhcp(Server::Dnsmasq, bytes);
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

/// A file that people edit by hand.
pub fn known_hosts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let known = KnownHosts::parse(&text);
    let key = PublicKey::from_openssh(KEY).unwrap();
    for (host, port) in [("dhcp1.example.net", 22), ("dhcp1.example.net", 2222), ("2001:db8::1", 22)] {
        let verdict = known.judge(host, port, &key);
        assert!(is_safe(&verdict.to_string()), "{verdict}");
        // A key that is in no line is never known.
        if !text.contains("AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti") {
            assert!(!matches!(verdict, Verdict::Match { .. }), "{verdict}");
        }
    }
}

/// Datagrams of a BMC.
pub fn ipmi(bytes: &[u8]) {
    read_in_every_way(bytes);
}
