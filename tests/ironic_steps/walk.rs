//! A fresh node from nothing to `available`, and every step asked for twice.

use muster::activities::ironic;
use muster::domain::event::Observation;
use muster::domain::provision::{Power, ProvisionState};
use muster::domain::verify::Verdict;
use muster::workflows::defs::{Half, PreludeOut};
use serde_json::json;

use crate::bench::{Bench, Setup, changed, unchanged};

/// Proves: E2, E3, I1, I3, I8, I12, I14, C1, V1, V8
#[tokio::test]
async fn a_fresh_host_walks_to_available_and_every_step_repeated_writes_nothing() {
    let bench = Bench::fresh().await;
    let created = bench.prelude(Half::Inspection).await.unwrap();
    let PreludeOut::Ready { node, state: ProvisionState::Enroll, created: true } = created else {
        panic!("{created:?}")
    };
    assert_eq!(bench.writes(), ["POST /v1/nodes", "PUT /v1/nodes/ID/traits/HW_ARCH_X86_64"]);
    assert_eq!(bench.field("gpu-1", "network_interface"), "noop");
    assert_eq!(bench.field("gpu-1", "raid_interface"), "no-raid");
    assert_eq!(bench.field("gpu-1", "resource_class"), "gpu-small");
    let properties = json!({"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"});
    assert_eq!(bench.field("gpu-1", "properties"), properties);
    let info = bench.field("gpu-1", "driver_info");
    assert_eq!((info["redfish_verify_ca"].as_bool(), info.get("redfish_system_id")), (Some(false), None));

    let at = || bench.at("gpu-1", node);
    bench.reset_ledger();
    let again = bench.prelude(Half::Inspection).await.unwrap();
    assert!(matches!(again, PreludeOut::Ready { created: false, .. }), "{again:?}");
    assert_eq!(bench.writes(), Vec::<String>::new());

    changed(ironic::networking(&bench.cx(), at()).await);
    assert_eq!(bench.writes(), ["POST /v1/ports", "POST /v1/ports"]);
    bench.reset_ledger();
    unchanged(ironic::networking(&bench.cx(), at()).await);
    changed(ironic::manage(&bench.cx(), at()).await);
    unchanged(ironic::manage(&bench.cx(), at()).await);
    bench.until(node, ProvisionState::Manageable).await;
    unchanged(ironic::manage(&bench.cx(), at()).await);
    unchanged(ironic::raid_target(&bench.cx(), at()).await);
    assert!(ironic::verify(&bench.cx(), at()).await.unwrap().verification.is_none());
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/states/provision manage"]);

    bench.reset_ledger();
    // Of a run that was submitted before the inspection.
    let run = bench.cx();
    changed(ironic::inspect(&run, at()).await);
    unchanged(ironic::inspect(&bench.cx(), at()).await);
    bench.until(node, ProvisionState::Manageable).await;
    let verification = ironic::verify(&run, at()).await.unwrap().verification.unwrap();
    assert!(verification.passed(), "{:#?}", verification.failed().collect::<Vec<_>>());
    assert!(verification.checks.iter().any(|c| c.kind == "lldp" && c.verdict == Verdict::Pass));
    assert!(bench.observed().iter().any(|o| matches!(o, Observation::Verified { fresh: true, .. })));
    changed(ironic::power_on(&bench.cx(), at()).await);
    unchanged(ironic::power_on(&bench.cx(), at()).await);
    while ironic::look(&bench.cx(), at()).await.unwrap().power != Power::On {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    unchanged(ironic::power_on(&bench.cx(), at()).await);

    // The second half starts with the same prelude, which has nothing left to do.
    bench.reset_ledger();
    assert!(matches!(bench.prelude(Half::Cleaning).await.unwrap(), PreludeOut::Ready { .. }));
    assert_eq!(bench.writes(), Vec::<String>::new());
    changed(ironic::provide(&bench.cx(), at()).await);
    unchanged(ironic::provide(&bench.cx(), at()).await);
    let cleaning = bench.prelude(Half::Cleaning).await.unwrap();
    assert!(matches!(cleaning, PreludeOut::Cleaning { .. }), "{cleaning:?}");
    assert!(matches!(bench.prelude(Half::Inspection).await.unwrap(), PreludeOut::Wait { .. }));
    bench.until(node, ProvisionState::Available).await;
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/states/provision provide"]);

    bench.reset_ledger();
    unchanged(ironic::provide(&bench.cx(), at()).await);
    unchanged(ironic::networking(&bench.cx(), at()).await);
    unchanged(ironic::abort(&bench.cx(), at()).await);
    for half in [Half::Inspection, Half::Cleaning] {
        assert!(matches!(bench.prelude(half).await.unwrap(), PreludeOut::Satisfied { .. }));
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: E2
#[tokio::test]
async fn an_owner_that_creation_refuses_is_set_right_after_it_and_after_a_kill_between_the_two() {
    let setup = Setup { hosts: &[("gpu-1", "")], ironic: "project = \"enrol-project\"", ..Default::default() };
    let bench = Bench::with(setup).await;
    bench.spoil("PATCH", "/v1/nodes/*", json!({"status": 503, "body": "busy", "count": 1}));
    let failure = bench.prelude(Half::Inspection).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("IRONIC_UNREACHABLE", true));
    assert!(bench.field("gpu-1", "owner").is_null());
    bench.ready().await;
    assert_eq!(bench.field("gpu-1", "owner"), "enrol-project");
    assert_eq!(bench.field("gpu-1", "lessee"), "enrol-project");
    let good = bench.good_writes();
    assert_eq!(good, ["POST /v1/nodes", "PATCH /v1/nodes/ID", "PUT /v1/nodes/ID/traits/HW_ARCH_X86_64"]);
}

/// Proves: E2, E4
#[tokio::test]
async fn an_ipmi_node_gets_its_address_and_credential_and_extras_that_are_not_managed() {
    let keys = "context.ironic_settings = { driver = \"ipmi\", boot_interface = \"ipxe\", management_interface = \"ipmitool\", \
                power_interface = \"ipmitool\", vendor_interface = \"ipmitool\", ironic_driver_info = { ipmi_port = 6230, \
                ipmi_username = \"evil\" } }";
    let bench = Bench::with(Setup { hosts: &[("gpu-1", keys)], ..Default::default() }).await;
    bench.ready().await;
    let info = bench.field("gpu-1", "driver_info");
    assert!(info["ipmi_address"].as_str().unwrap().starts_with("127.77."), "{info}");
    assert_eq!(info["ipmi_port"], 6230);
    assert_ne!(info["ipmi_username"], "evil");
    let noted = bench
        .observed()
        .into_iter()
        .any(|o| matches!(o, Observation::Note { text, .. } if text.contains("ipmi_username")));
    assert!(noted);
}

/// Proves: V8, V10, V12
#[tokio::test]
async fn swapped_cables_are_found_and_named() {
    let bench = Bench::fresh().await;
    bench.fault(json!({"kind": "swapped_cables", "device": "gpu-1", "interfaces": ["eth0", "eth1"]}));
    let node = bench.inspected().await;
    let verification = ironic::verify(&bench.cx(), bench.at("gpu-1", node)).await.unwrap().verification.unwrap();
    assert_eq!(verification.diagnosis.as_deref(), Some("eth0 and eth1 are swapped"));
    assert_eq!(verification.failed().count(), 2);
    let failure = verification.failure("gpu-1", muster::domain::phase::Phase::Inspection);
    assert_eq!((failure.code.as_str(), failure.owner.as_str()), ("CABLES_WRONG", "ONSITE"));
    assert!(failure.action.contains("gpu-1 (R1 U40)"), "{}", failure.action);
}

/// Proves: X1, X2
#[tokio::test]
async fn the_driver_is_switched_once_on_a_manageable_node_and_left_alone_elsewhere() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    bench.reset_ledger();
    changed(ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.writes(), ["PATCH /v1/nodes/ID?reset_interfaces=true"]);
    assert_eq!(bench.field("gpu-1", "driver"), "ipmi");
    assert_eq!(bench.field("gpu-1", "network_interface"), "noop", "kept: any driver has it");
    assert_eq!(bench.field("gpu-1", "power_interface"), "ipmitool");
    let info = bench.field("gpu-1", "driver_info");
    assert_eq!(info["ipmi_username"], info["redfish_username"]);
    bench.reset_ledger();
    unchanged(ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await);
    // The credential converges by the driver that the node has now, and is there already.
    bench.ready().await;
    assert_eq!(bench.writes(), Vec::<String>::new());

    let (bench, node) = Bench::node_in("available").await;
    unchanged(ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: I9
#[tokio::test]
async fn a_raid_target_is_set_once_and_brings_its_interface() {
    let settings = "target_raid_config = { logical_disks = [{ size_gb = \"MAX\", raid_level = \"1\", controller = \"software\" }] }";
    let setup = Setup { hosts: &[("gpu-1", "")], settings, ..Default::default() };
    let bench = Bench::with(setup).await;
    let node = bench.managed().await;
    bench.reset_ledger();
    let failure = ironic::raid_target(&bench.cx(), bench.at("gpu-1", node)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), bench.writes()), ("IRONIC_SETTINGS_INVALID", vec![]));
    assert!(failure.message.contains("raid_interface") && failure.message.contains("'no-raid'"), "{}", failure.message);
    // An earlier enrollment made the node without RAID; NetBox wants one now.
    {
        let mut state = bench.lab.world().lock();
        let id = state.records.device_named("gpu-1").unwrap().id;
        state.records.devices.get_mut(&id).unwrap().config_context["ironic_settings"]["raid_interface"] =
            json!("agent");
    }
    bench.reset_ledger();
    bench.ready().await;
    assert_eq!(bench.field("gpu-1", "raid_interface"), "agent");
    changed(ironic::raid_target(&bench.cx(), bench.at("gpu-1", node)).await);
    unchanged(ironic::raid_target(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.writes(), ["PATCH /v1/nodes/ID", "PUT /v1/nodes/ID/states/raid"]);
}

/// Proves: Z1
#[tokio::test]
async fn no_observation_holds_a_secret() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    changed(ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await);
    let secret = bench.env.vault.ask("bmc-gpu-1", "password").await.unwrap();
    let secret = secrecy::ExposeSecret::expose_secret(&secret);
    let seen = serde_json::to_string(&bench.observed()).unwrap();
    assert!(seen.contains("password of the vault") && !seen.contains(secret), "{seen}");
}
