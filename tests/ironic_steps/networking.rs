//! Portgroup and ports: what is made, what is repaired, and what is found before any write.

use muster::activities::ironic;
use muster::clients::ironic::{IronicError, NewPort, Refusal};
use muster::domain::failure::Failure;
use muster::domain::ids::NodeUuid;
use muster::lab::ironic::{Port, Portgroup};
use muster::workflows::defs::Step;
use serde_json::{Value, json};

use crate::bench::{Bench, Setup, changed, unchanged};

const BOND: &str = "bond = { name = \"bond0\", mode = \"802.3ad\", miimon = 100, xmit_hash_policy = \"layer3+4\" }";

async fn enroll(settings: &str) -> (Bench, NodeUuid) {
    let bench = Bench::with(Setup { hosts: &[("gpu-1", ""), ("gpu-2", "")], settings, ..Default::default() }).await;
    let node = bench.ready().await;
    bench.reset_ledger();
    (bench, node)
}

async fn networking(bench: &Bench, node: NodeUuid) -> Result<Step, Failure> {
    ironic::networking(&bench.cx(), bench.at("gpu-1", node)).await
}

fn ports(bench: &Bench) -> Vec<Port> {
    let state = bench.lab.world().lock();
    let node = state.ironic.node_named("gpu-1").unwrap().uuid;
    let mut ports: Vec<Port> = state.ironic.ports.values().filter(|p| p.node == node).cloned().collect();
    ports.sort_by_key(|p| p.id);
    ports
}

fn group(bench: &Bench) -> Option<Portgroup> {
    bench.lab.world().lock().ironic.portgroups.values().next().cloned()
}

/// The first interface of a host in NetBox, changed.
fn edit_interface(bench: &Bench, host: &str, name: &str, f: impl FnOnce(&mut muster::lab::records::Records, u64)) {
    let mut state = bench.lab.world().lock();
    let device = state.records.device_named(host).unwrap().id;
    let id = state.records.interfaces.values().find(|i| i.device == device && i.name == name).unwrap().id;
    f(&mut state.records, id);
}

fn uncable(bench: &Bench, name: &str) {
    edit_interface(bench, "gpu-1", name, |records, id| {
        let cable = records.interfaces.get_mut(&id).unwrap().cable.take().unwrap();
        records.cables.remove(&cable);
        for interface in records.interfaces.values_mut() {
            if interface.cable == Some(cable) {
                interface.cable = None;
            }
        }
    });
}

fn link(port: &Port) -> Value {
    port.fields.get("local_link_connection").cloned().unwrap_or_default()
}

/// Proves: I1, I3, I4
#[tokio::test]
async fn a_bonded_host_gets_a_portgroup_and_ports_with_the_lag_as_their_link() {
    let (bench, node) = enroll(BOND).await;
    changed(networking(&bench, node).await);
    assert_eq!(bench.writes(), ["POST /v1/portgroups", "POST /v1/ports", "POST /v1/ports"]);
    let group = group(&bench).unwrap();
    assert_eq!(group.fields["name"], "gpu-1-bond0");
    assert_eq!(group.fields["mode"], "802.3ad");
    assert_eq!(group.fields["properties"], json!({"miimon": "100", "xmit_hash_policy": "layer3+4"}));
    let ports = ports(&bench);
    assert_eq!(group.fields["address"], ports[0].address);
    assert!(ports.iter().all(|p| p.portgroup == Some(group.uuid)));
    let pxe: Vec<_> = ports.iter().map(|p| p.fields["pxe_enabled"].as_bool().unwrap()).collect();
    assert_eq!(pxe, [true, false]);
    for port in &ports {
        let link = link(port);
        assert_eq!(link["switch_id"], "00:00:00:00:00:00");
        assert!(link["port_id"].as_str().unwrap().starts_with("bond"), "the LAG of the switch: {link}");
    }
    bench.reset_ledger();
    unchanged(networking(&bench, node).await);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: I2
#[tokio::test]
async fn without_a_bond_ports_stand_alone_and_link_to_the_physical_port() {
    let (bench, node) = enroll("").await;
    changed(networking(&bench, node).await);
    assert!(group(&bench).is_none());
    for port in ports(&bench) {
        assert_eq!(port.portgroup, None);
        assert!(link(&port)["port_id"].as_str().unwrap().starts_with("swp"), "{}", link(&port));
    }
}

/// Proves: I5
#[tokio::test]
async fn an_uncabled_interface_fails_without_the_flag_and_gets_a_port_without_a_link_with_it() {
    let (bench, node) = enroll("").await;
    uncable(&bench, "eth1");
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "INTERFACE_UNCABLED");
    assert!(failure.message.contains("'eth1'") && failure.message.contains("'gpu-1'"), "{}", failure.message);
    assert_eq!(bench.writes(), Vec::<String>::new());

    let (bench, node) = enroll("skip_cable_verification = true").await;
    uncable(&bench, "eth1");
    changed(networking(&bench, node).await);
    let links: Vec<bool> = ports(&bench).iter().map(|p| link(p).get("port_id").is_some()).collect();
    assert_eq!(links, [true, false]);
}

/// Case: C-06. Proves: I6
#[tokio::test]
async fn a_mac_of_another_node_fails_with_both_named_and_nothing_written() {
    let (bench, node) = enroll(BOND).await;
    let mac = bench.lab.world().machine("gpu-1").unwrap().nics[1].mac;
    let other = match bench.prelude_for("gpu-2", muster::workflows::defs::Half::Inspection, None).await.unwrap() {
        muster::workflows::defs::PreludeOut::Ready { node, .. } => node,
        other => panic!("{other:?}"),
    };
    let port = NewPort { node: other, mac, pxe_enabled: false, portgroup: None, link: None };
    let hands = bench.ironic().attempt();
    hands.node(&other.to_string()).await.unwrap();
    let stale = hands.create_port(&port).await.unwrap();
    bench.reset_ledger();
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("MAC_CONFLICT", false));
    for part in [&mac.to_string(), "'eth1'", "'gpu-1' (R1 U40)", "'gpu-2'", &stale.uuid] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Case: C-07. Proves: I1
#[tokio::test]
async fn one_mac_on_two_interfaces_is_found_before_any_write() {
    let (bench, node) = enroll("").await;
    let mac = bench.lab.world().machine("gpu-1").unwrap().nics[0].mac;
    edit_interface(&bench, "gpu-1", "eth1", |records, id| {
        let first = records.interfaces[&id].macs[0];
        records.macs.get_mut(&first).unwrap().address = mac.to_string();
    });
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "MAC_CONFLICT");
    assert!(failure.message.contains("'eth0' and 'eth1'"), "{}", failure.message);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Case: C-05. Proves: I1
#[tokio::test]
async fn an_interface_without_a_mac_gets_no_port_and_no_lookup_and_the_first_one_needs_one() {
    let (bench, node) = enroll("").await;
    edit_interface(&bench, "gpu-1", "eth1", |records, id| records.interfaces.get_mut(&id).unwrap().macs.clear());
    changed(networking(&bench, node).await);
    assert_eq!(ports(&bench).len(), 1);
    let empty = bench.lab.ledger().into_iter().filter(|e| e.path.contains("address=&") || e.path.ends_with("address="));
    assert_eq!(empty.count(), 0);

    let (bench, node) = enroll("").await;
    edit_interface(&bench, "gpu-1", "eth0", |records, id| records.interfaces.get_mut(&id).unwrap().macs.clear());
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "NETBOX_DATA_MISSING");
    for part in ["'gpu-1'", "'eth0'", "mac_address"] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: I3
#[tokio::test]
async fn a_node_that_boots_over_another_nic_gets_no_second_port_for_pxe_and_the_one_is_named() {
    let (bench, node) = enroll("").await;
    let hands = bench.ironic().attempt();
    hands.node(&node.to_string()).await.unwrap();
    hands.ports_of(node).await.unwrap();
    let other = "02:99:00:00:00:01".parse().unwrap();
    let port = NewPort { node, mac: other, pxe_enabled: true, portgroup: None, link: None };
    let made = hands.create_port(&port).await.unwrap();
    let second = NewPort { mac: "02:99:00:00:00:02".parse().unwrap(), ..port };
    assert!(matches!(
        hands.create_port(&second).await,
        Err(IronicError::Guarded(Refusal::SecondPxePort { port, .. })) if port == made.uuid
    ));
    bench.reset_ledger();
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!(
        (failure.code.as_str(), failure.retryable, failure.owner.as_str()),
        ("PXE_PORT_CONFLICT", false, "INFRA_ENG")
    );
    for part in [made.uuid.as_str(), "02:99:00:00:00:01", "'eth0'"] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: E15, I6
#[tokio::test]
async fn a_mac_that_is_taken_between_our_look_and_our_port_fails_with_both_owners() {
    let (bench, node) = enroll("").await;
    let other = match bench.prelude_for("gpu-2", muster::workflows::defs::Half::Inspection, None).await.unwrap() {
        muster::workflows::defs::PreludeOut::Ready { node, .. } => node,
        other => panic!("{other:?}"),
    };
    let mac = bench.lab.world().machine("gpu-1").unwrap().nics[0].mac;
    bench.spoil("POST", "/v1/ports", json!({"count": 1, "delay_s": 100}));
    let take = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let mut state = bench.lab.world().lock();
        let uuid = uuid::Uuid::new_v4();
        let fields = json!({"extra": {}, "local_link_connection": {}, "pxe_enabled": false, "name": null});
        let port = Port {
            uuid,
            node: other.0,
            address: mac.to_string(),
            portgroup: None,
            fields: fields.as_object().unwrap().clone(),
            created_at: state.stamp(),
            updated_at: None,
            id: 1_000_000,
        };
        state.ironic.ports.insert(uuid, port);
        uuid
    };
    let (outcome, port) = tokio::join!(networking(&bench, node), take);
    let failure = outcome.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("MAC_CONFLICT", false));
    for part in [&mac.to_string(), "'eth0'", "'gpu-1'", "'gpu-2'", &port.to_string()] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
}

fn unlink(bench: &Bench) {
    let mut state = bench.lab.world().lock();
    let node = state.ironic.node_named("gpu-1").unwrap().uuid;
    for port in state.ironic.ports.values_mut().filter(|p| p.node == node) {
        port.fields.insert("local_link_connection".into(), json!({}));
    }
}

/// Proves: I6, I7
#[tokio::test]
async fn an_existing_port_is_reused_and_only_a_missing_link_is_recorded() {
    let (bench, node) = enroll("").await;
    changed(networking(&bench, node).await);
    unlink(&bench);
    bench.reset_ledger();
    changed(networking(&bench, node).await);
    assert_eq!(bench.writes(), ["PATCH /v1/ports/ID", "PATCH /v1/ports/ID"]);
    assert!(ports(&bench).iter().all(|p| link(p).get("port_id").is_some()));
    // Another link than NetBox has is left as it is.
    {
        let mut state = bench.lab.world().lock();
        let id = *state.ironic.ports.keys().next().unwrap();
        state.ironic.ports.get_mut(&id).unwrap().fields["local_link_connection"]["port_id"] = json!("other");
    }
    bench.reset_ledger();
    unchanged(networking(&bench, node).await);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: I7
#[tokio::test]
async fn a_manageable_node_is_repaired_only_where_cables_are_not_verified() {
    for (settings, repaired) in [("skip_cable_verification = true", true), ("", false)] {
        let setup = Setup { hosts: &[("gpu-1", "node = \"manageable\"")], settings, ..Default::default() };
        let bench = Bench::with(setup).await;
        unlink(&bench);
        let step = networking(&bench, bench.node("gpu-1")).await;
        if repaired {
            changed(step)
        } else {
            unchanged(step)
        };
        assert_eq!(bench.writes().len(), if repaired { 2 } else { 0 });
    }
}

/// Proves: I6
#[tokio::test]
async fn a_port_in_a_foreign_portgroup_fails() {
    let (bench, node) = enroll(BOND).await;
    changed(networking(&bench, node).await);
    // NetBox no longer declares the bond: the port's portgroup is nobody's now.
    let mut state = bench.lab.world().lock();
    let id = state.records.device_named("gpu-1").unwrap().id;
    let context = &mut state.records.devices.get_mut(&id).unwrap().config_context;
    context["ironic_settings"].as_object_mut().unwrap().remove("bond");
    drop(state);
    let failure = networking(&bench, node).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "MAC_CONFLICT");
    assert!(failure.message.contains("portgroup"), "{}", failure.message);
}
