//! What is never touched, what a pinned UUID may not do, and what converges.

use muster::activities::ironic;
use muster::domain::ids::NodeUuid;
use muster::domain::provision::ProvisionState;
use muster::workflows::defs::{Half, PreludeOut};
use serde_json::json;

use crate::bench::{Bench, Setup, unchanged};

async fn owned_in(state: &str) -> (Bench, NodeUuid) {
    let keys = format!("node = \"{state}\", instance = true");
    let bench = Bench::with(Setup { hosts: &[("gpu-1", &keys)], ..Default::default() }).await;
    let node = bench.node("gpu-1");
    (bench, node)
}

/// Proves: E6, C8
#[tokio::test]
async fn an_enrolled_node_is_satisfied_verified_and_never_written_to() {
    for (state, instance) in [("active", true), ("available", false), ("manageable", true)] {
        let (bench, node) = if instance { owned_in(state).await } else { Bench::node_in(state).await };
        for half in [Half::Inspection, Half::Cleaning] {
            match bench.prelude(half).await.unwrap() {
                PreludeOut::Satisfied { node: found, instance_uuid, .. } => {
                    assert_eq!((found, instance_uuid.is_some()), (node, instance), "{state}");
                }
                other => panic!("{state}: {other:?}"),
            }
        }
        let verification = ironic::verify(&bench.cx(), bench.at("gpu-1", node)).await.unwrap().verification;
        assert!(verification.unwrap().passed(), "{state}");
        assert_eq!(bench.writes(), Vec::<String>::new(), "{state}");
    }
}

/// Proves: E7
#[tokio::test]
async fn novas_node_in_any_other_state_refuses_every_step() {
    for state in ["inspect failed", "clean failed", "error", "enroll"] {
        let (bench, node) = owned_in(state).await;
        let (cx, at) = (bench.cx(), || bench.at("gpu-1", node));
        let mut codes = vec![bench.prelude(Half::Inspection).await.unwrap_err().code.as_str()];
        for step in [
            ironic::networking(&cx, at()).await,
            ironic::manage(&cx, at()).await,
            ironic::inspect(&cx, at()).await,
            ironic::provide(&cx, at()).await,
            ironic::abort(&cx, at()).await,
        ] {
            codes.push(step.unwrap_err().code.as_str());
        }
        assert!(codes.iter().all(|c| *c == "NODE_OWNED_BY_NOVA"), "{state}: {codes:?}");
        unchanged(ironic::switch_driver(&cx, at()).await);
        assert_eq!(bench.writes(), Vec::<String>::new(), "{state}");
    }
}

/// Proves: C7
#[tokio::test]
async fn the_power_of_a_deployed_node_is_left_alone() {
    let (bench, node) = owned_in("active").await;
    bench.lab.world().press("gpu-1", muster::lab::machine::PowerAction::ForceOff);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    unchanged(ironic::power_on(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: E11
#[tokio::test]
async fn a_failed_deployment_waits_for_a_person() {
    for state in ["deploy failed", "error"] {
        let (bench, _) = Bench::node_in(state).await;
        let failure = bench.prelude(Half::Cleaning).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("NODE_NEEDS_REVIEW", false));
        assert!(failure.message.contains(state), "{}", failure.message);
        assert_eq!(bench.writes(), Vec::<String>::new());
    }
}

/// Proves: E5
#[tokio::test]
async fn a_pinned_uuid_is_given_at_creation_and_never_re_points_a_node() {
    let bench = Bench::with(Setup { hosts: &[("gpu-1", ""), ("gpu-2", "")], ..Default::default() }).await;
    let pinned: NodeUuid = "0f0f0f0f-0000-4000-8000-000000000001".parse().unwrap();
    let made = bench.prelude_for("gpu-1", Half::Inspection, Some(pinned)).await.unwrap();
    assert!(matches!(made, PreludeOut::Ready { node, created: true, .. } if node == pinned), "{made:?}");
    let again = bench.prelude_for("gpu-1", Half::Inspection, Some(pinned)).await.unwrap();
    assert!(matches!(again, PreludeOut::Ready { created: false, .. }), "{again:?}");
    bench.reset_ledger();
    let other: NodeUuid = "0f0f0f0f-0000-4000-8000-000000000002".parse().unwrap();
    let moved = bench.prelude_for("gpu-1", Half::Inspection, Some(other)).await.unwrap_err();
    let taken = bench.prelude_for("gpu-2", Half::Inspection, Some(pinned)).await.unwrap_err();
    for failure in [&moved, &taken] {
        assert_eq!((failure.code.as_str(), failure.retryable), ("NODE_UUID_MISMATCH", false));
    }
    assert!(moved.message.contains(&pinned.to_string()) && moved.message.contains(&other.to_string()));
    assert!(taken.message.contains("'gpu-1'"), "{}", taken.message);
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: E1
#[tokio::test]
async fn what_netbox_or_vault_lack_is_named_before_ironic_is_asked() {
    let bench = Bench::with(Setup { hosts: &[("gpu-1", "oob_ip = false")], ..Default::default() }).await;
    let failure = bench.prelude(Half::Inspection).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "NETBOX_DATA_MISSING");
    assert!(failure.message.contains("oob_ip") && failure.message.contains("'gpu-1'"), "{}", failure.message);

    let bench = Bench::fresh().await;
    let context = |f: &dyn Fn(&mut serde_json::Value)| {
        let mut state = bench.lab.world().lock();
        let id = state.records.device_named("gpu-1").unwrap().id;
        f(&mut state.records.devices.get_mut(&id).unwrap().config_context);
    };
    context(&|c| c["ironic_settings"]["raid_interface"] = json!(null));
    let failure = bench.prelude(Half::Inspection).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "IRONIC_SETTINGS_INVALID");
    assert!(failure.message.contains("raid_interface"), "{}", failure.message);
    context(&|c| c["ironic_settings"]["cpu_arch"] = json!("ppc64le"));
    context(&|c| c["ironic_settings"]["raid_interface"] = json!("no-raid"));
    assert!(bench.prelude(Half::Inspection).await.unwrap_err().message.contains("'ppc64le'"));
    context(&|c| *c = json!({}));
    assert!(bench.prelude(Half::Inspection).await.unwrap_err().message.contains("ironic_settings"));
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: E13, E14
#[tokio::test]
async fn what_drifted_converges_in_one_patch_and_then_stays() {
    let settings = "root_device = { serial = \"s== S6XNNX0W\" }";
    let bench =
        Bench::with(Setup { hosts: &[("gpu-1", "node = \"manageable\"")], settings, ..Default::default() }).await;
    bench.edit("gpu-1", |node| {
        node.fields["driver_info"]["redfish_username"] = json!("somebody");
        node.fields["properties"]["root_device"] = json!({"serial": "OTHER"});
    });
    let ready = bench.ready().await;
    assert_eq!(bench.writes(), ["PATCH /v1/nodes/ID"]);
    assert_eq!(bench.field("gpu-1", "properties")["root_device"], json!({"serial": "s== S6XNNX0W"}));
    assert_ne!(bench.field("gpu-1", "driver_info")["redfish_username"], "somebody");
    let changes = bench.changes().join("\n");
    assert!(changes.contains("'somebody'") && changes.contains("OTHER"), "{changes}");
    // A hint that means the same is no difference.
    bench.edit("gpu-1", |node| node.fields["properties"]["root_device"] = json!({"serial": "s6xnnx0w"}));
    bench.reset_ledger();
    assert_eq!(bench.ready().await, ready);
    assert_eq!(bench.writes(), Vec::<String>::new());
    assert_eq!(bench.warnings(), Vec::<String>::new());
}

/// Proves: E13
#[tokio::test]
async fn a_vault_whose_password_changed_is_noticed_and_a_failed_manage_doubts_what_is_stored() {
    let (bench, node) = Bench::node_in("enroll").await;
    bench.ready().await;
    bench.reset_ledger();
    bench.ready().await;
    assert_eq!(bench.writes(), Vec::<String>::new(), "given once");
    bench.edit("gpu-1", |node| node.fields["last_error"] = json!("Failed to get power state"));
    bench.ready().await;
    assert_eq!(bench.writes(), ["PATCH /v1/nodes/ID"], "given again after a failed manage");
    assert_eq!(bench.node("gpu-1"), node);
}

/// Proves: E14
#[tokio::test]
async fn a_hint_that_netbox_lost_stays_with_a_warning_but_on_software_raid() {
    for (raid, settings) in [
        (false, ""),
        (
            true,
            "target_raid_config = { logical_disks = [{ size_gb = \"MAX\", raid_level = \"1\", controller = \"software\" }] }",
        ),
    ] {
        let setup = Setup { hosts: &[("gpu-1", "node = \"manageable\"")], settings, ..Default::default() };
        let bench = Bench::with(setup).await;
        bench.edit("gpu-1", |node| node.fields["properties"]["root_device"] = json!({"wwn": "0x5000"}));
        bench.ready().await;
        let kept = bench.field("gpu-1", "properties").get("root_device").is_some();
        assert_eq!((kept, bench.warnings().is_empty()), (!raid, raid), "{:?}", bench.warnings());
    }
}

/// Case: C-18. Proves: E14
#[tokio::test]
async fn a_hint_by_scsi_address_is_taken_with_a_warning() {
    let settings = "root_device = { hctl = \"s== 0:2:0:0\" }";
    let bench = Bench::with(Setup { hosts: &[("gpu-1", "")], settings, ..Default::default() }).await;
    bench.ready().await;
    assert_eq!(bench.field("gpu-1", "properties")["root_device"], json!({"hctl": "s== 0:2:0:0"}));
    assert!(bench.warnings().iter().any(|w| w.contains("hctl")), "{:?}", bench.warnings());
}

/// Proves: E12
#[tokio::test]
async fn a_node_on_its_way_is_waited_for() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    ironic::inspect(&bench.cx(), bench.at("gpu-1", node)).await.unwrap();
    bench.reset_ledger();
    match bench.prelude(Half::Inspection).await.unwrap() {
        PreludeOut::Wait { state, .. } => {
            assert!(matches!(state, ProvisionState::Inspecting | ProvisionState::InspectWait), "{state}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: B10, E13
#[tokio::test]
async fn ironic_is_never_given_the_monitoring_user_whatever_the_vault_says() {
    for fresh in [true, false] {
        let bench = if fresh { Bench::fresh().await } else { Bench::node_in("manageable").await.0 };
        bench.vault_says("bmc-gpu-1", "username", "ipmi_exporter");
        let failure = bench.prelude(Half::Inspection).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("WRITE_FORBIDDEN", false));
        assert!(failure.message.contains("'ipmi_exporter'"), "{}", failure.message);
        assert!(failure.action.contains("vault"), "{}", failure.action);
        assert_eq!(bench.writes(), Vec::<String>::new());
    }
}

/// Proves: C7, C8, I14
#[tokio::test]
async fn power_is_switched_on_in_manageable_and_available_and_nowhere_else() {
    for (state, on) in [("manageable", true), ("available", true), ("enroll", false), ("clean failed", false)] {
        let (bench, node) = Bench::node_in(state).await;
        bench.lab.world().with_machine("gpu-1", |machine, _| machine.power.on = false);
        let step = ironic::power_on(&bench.cx(), bench.at("gpu-1", node)).await;
        assert_eq!(step.is_ok(), on, "{state}: {step:?}");
        let expected: &[&str] = if on { &["PUT /v1/nodes/ID/states/power power on"] } else { &[] };
        assert_eq!(bench.writes(), expected, "{state}");
    }
}
