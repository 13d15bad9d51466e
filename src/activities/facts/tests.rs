//! Recorded answers become facts.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::clients::netbox::records::CableRecord;

/// The body of a recorded answer.
fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/netbox/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str::<Value>(&text).unwrap()["response"]["body"].take()
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn parts() -> Parts {
    let cables: Vec<CableRecord> = typed(recorded("051-cables-of-device")["results"].take());
    Parts {
        device: typed(recorded("030-device-detail")),
        site: typed(recorded("034-sites")["results"][0].take()),
        device_class: Some("COMPUTE_GPU".into()),
        interfaces: typed(recorded("040-interfaces-of-device")["results"].take()),
        oob: Some(typed(recorded("049-ip-addresses")["results"][0].take())),
        cabling: Cabling::of(vec![typed(recorded("042-interface-switch-port"))], cables),
    }
}

#[test]
fn a_recorded_host_becomes_facts_with_its_cables() {
    let host = assemble(parts(), Phase::Dhcp).unwrap();
    assert_eq!((host.name.as_str(), host.status.as_str()), ("n-gpu-01", "staged"));
    assert_eq!(host.place(), "N-A01 U1");
    assert_eq!(host.oob_ip.unwrap().to_string(), "10.10.8.11");
    let management = host.management.as_ref().unwrap();
    assert_eq!((management.name.as_str(), management.mac.unwrap().to_string()), ("BMC", "7c:8a:e1:01:00:00".into()));
    assert_eq!(host.site.fields["ntp_server_1"], "10.10.0.21");
    let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["bond0", "eth0", "eth1", "eth2"]);
    let eth0 = host.provisioning().unwrap();
    let peer = eth0.peer.as_ref().unwrap();
    assert_eq!((peer.switch.as_str(), peer.port.as_str()), ("n-leaf-1", "Ethernet1"));
    assert_eq!(peer.port_lag.as_deref(), Some("Port-Channel1"));
    assert_eq!((peer.cable_label.as_deref(), peer.cable_color.as_deref()), (Some("n-gpu-01-eth0"), Some("2196f3")));
    assert_eq!(eth0.lag.as_deref(), Some("bond0"));
    assert_eq!(host.interfaces[3].peer, None);
    let settings = host.ironic_settings.unwrap();
    assert_eq!(settings.resource_class.as_deref(), Some("gpu-h200"));
    assert!(settings.bond.unwrap().is_lag());
}

/// Proves: V8
#[test]
fn the_far_end_counts_through_a_patch_panel_and_an_open_path_is_no_peer() {
    let mut with = parts();
    let panel = json!([{"id": 900, "name": "front 3", "device": {"id": 80, "name": "panel-b07"}}]);
    for interface in &mut with.interfaces {
        interface.link_peers = typed(panel.clone());
        interface.link_peers_type = Some("dcim.frontport".into());
    }
    let eth1 = with.interfaces.iter_mut().find(|i| i.name == "eth1").unwrap();
    (eth1.connected_endpoints, eth1.connected_endpoints_type) = (None, None);
    let host = assemble(with, Phase::Inspection).unwrap();
    assert_eq!(host.interfaces[1].peer.as_ref().unwrap().switch, "n-leaf-1");
    assert_eq!(host.interfaces[2].peer, None);
}

/// Case: C-25
#[test]
fn the_out_of_band_address_loses_its_prefix_and_useless_ones_are_refused() {
    for (given, expected) in [
        ("2001:db8:7::29/64", "2001:db8:7::29"),
        ("192.0.2.29/24", "192.0.2.29"),
        ("127.0.4.2/8", "127.0.4.2"),
        ("192.0.2.29", "192.0.2.29"),
    ] {
        assert_eq!(oob_address("gpu", given, Phase::Dhcp).unwrap().to_string(), expected);
    }
    for given in ["fe80::29/64", "169.254.3.7/16", "0.0.0.0/0", "ff02::1/128", "bmc-7", ""] {
        let failure = oob_address("gpu-b07-37", given, Phase::Dhcp).unwrap_err();
        assert_eq!(failure.code, FailureCode::NetboxDataInvalid, "{given}");
        assert!(failure.message.contains(&format!("oob_ip of 'gpu-b07-37' is '{given}'")), "{}", failure.message);
    }
    let mut without = parts();
    (without.device.oob_ip, without.oob) = (None, None);
    let host = assemble(without, Phase::Dhcp).unwrap();
    assert_eq!(host.oob_ip, None);
    assert_eq!(host.management.unwrap().name, "BMC", "the only management interface stands in");
}

/// Case: C-05, C-08
#[test]
fn an_interface_without_a_usable_mac_has_none() {
    let with = |mac: Value, more: Value| -> Option<String> {
        let record: InterfaceRecord = typed(json!({
            "id": 1, "name": "eth0", "device": {"id": 7, "name": "x"}, "type": {"value": "other", "label": "Other"},
            "mac_address": mac, "mac_addresses": more,
        }));
        super::mac(&record).map(|mac| mac.to_string())
    };
    for mac in [json!(null), json!(""), json!("N/A"), json!("00:00:00:00:00:00"), json!("01:00:5e:00:00:01")] {
        assert_eq!(with(mac, json!([])), None);
    }
    for mac in ["52:54:00:AB:CD:EF", "52-54-00-ab-cd-ef", "5254.00ab.cdef"] {
        assert_eq!(with(json!(mac), json!([])).as_deref(), Some("52:54:00:ab:cd:ef"));
    }
    let one = json!([{"mac_address": "52:54:00:AB:CD:EF"}]);
    assert_eq!(with(json!(null), one).as_deref(), Some("52:54:00:ab:cd:ef"), "none is primary, and there is only one");
    let two = json!([{"mac_address": "52:54:00:AB:CD:EF"}, {"mac_address": "52:54:00:AB:CD:EE"}]);
    assert_eq!(with(json!(null), two), None, "none is primary, and nothing says which");
}

#[test]
fn interfaces_are_listed_as_people_count() {
    let mut names = ["eth10", "eth2", "BMC", "bond0", "Ethernet1/10", "Ethernet1/9", "eth2.100", "eth02"];
    names.sort_by(|a, b| natural(a, b));
    assert_eq!(names, ["BMC", "bond0", "eth02", "eth2", "eth2.100", "eth10", "Ethernet1/9", "Ethernet1/10"]);
}
