//! Node locks come back as answers at once, and other refusals as failures.

use muster::activities::ironic;
use muster::domain::provision::ProvisionState;
use muster::workflows::defs::{Half, PreludeOut, Step};
use serde_json::json;

use crate::bench::{Bench, changed};

/// Proves: E15
#[tokio::test]
async fn a_locked_node_is_an_answer_with_its_holder_and_state_and_the_step_goes_on_later() {
    let bench = Bench::fresh().await;
    let node = bench.ready().await;
    bench.fault(json!({"kind": "node_locked", "device": "gpu-1", "for_s": 60}));
    match ironic::manage(&bench.cx(), bench.at("gpu-1", node)).await.unwrap() {
        Step::Locked { holder, state } => {
            assert!(holder.is_some_and(|h| !h.is_empty()));
            assert_eq!(state, Some(ProvisionState::Enroll));
        }
        other => panic!("{other:?}"),
    }
    // A port takes a shared lock only.
    changed(ironic::networking(&bench.cx(), bench.at("gpu-1", node)).await);
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    changed(ironic::manage(&bench.cx(), bench.at("gpu-1", node)).await);
}

/// Proves: E15
#[tokio::test]
async fn a_prelude_that_meets_a_lock_says_so_and_picks_up_where_it_was() {
    let bench = Bench::fresh().await;
    bench.spoil("PUT", "*/traits/*", json!({"count": 1, "status": 409, "body": {"error_message":
        "{\"faultstring\": \"Node x is locked by host conductor-7, please retry after the current operation is completed.\"}"}}));
    let locked = bench.prelude(Half::Inspection).await.unwrap();
    let node = Some(bench.node("gpu-1"));
    assert_eq!(
        locked,
        PreludeOut::Locked { holder: Some("conductor-7".into()), state: Some(ProvisionState::Enroll), node }
    );
    bench.ready().await;
    assert_eq!(bench.good_writes(), ["POST /v1/nodes", "PUT /v1/nodes/ID/traits/HW_ARCH_X86_64"]);
}

/// Case: C-02. Proves: E15, G12
#[tokio::test]
async fn what_is_no_lock_is_a_classified_failure() {
    let (bench, node) = Bench::node_in("enroll").await;
    let lost = "<html><title>409 Conflict</title></html>";
    for (status, body, code, retryable) in [
        (409, json!(lost), "IRONIC_CONFLICT", false),
        (409, json!({"error_message": "Node x is associated with instance y."}), "NODE_OWNED_BY_NOVA", false),
        (503, json!({"error_message": "lack of free conductor workers"}), "IRONIC_NO_CONDUCTOR", true),
        (503, json!("busy"), "IRONIC_UNREACHABLE", true),
        (500, json!({"error_message": "boom"}), "IRONIC_UNREACHABLE", true),
        (403, json!({"error_message": "Access was denied"}), "IRONIC_REFUSED", false),
        (
            400,
            json!({"error_message": "The requested action can not be performed on node"}),
            "NODE_STATE_UNEXPECTED",
            true,
        ),
        (302, json!("elsewhere"), "IRONIC_ANSWER_UNEXPECTED", true),
    ] {
        bench.spoil("PUT", "*/states/provision", json!({"count": 1, "status": status, "body": body}));
        let failure = ironic::manage(&bench.cx(), bench.at("gpu-1", node)).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), (code, retryable), "{status}: {failure}");
        assert!(!failure.action.is_empty());
    }
}

/// Proves: G4, G12
#[tokio::test]
async fn a_creation_whose_answer_is_lost_is_found_by_the_next_attempt() {
    let bench = Bench::fresh().await;
    bench.spoil("POST", "/v1/nodes", json!({"count": 1, "after_effect": true, "drop": true}));
    let failure = bench.prelude(Half::Inspection).await.unwrap_err();
    assert!(failure.retryable, "{failure}");
    bench.ready().await;
    bench.reset_ledger();
    bench.ready().await;
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: X3
#[tokio::test]
async fn a_driver_switch_that_meets_a_lock_is_an_answer_too_and_is_made_later() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    bench.reset_ledger();
    bench.fault(json!({"kind": "node_locked", "device": "gpu-1", "for_s": 60}));
    match ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await.unwrap() {
        Step::Locked { holder, state } => {
            assert!(holder.is_some_and(|h| !h.is_empty()));
            assert_eq!(state, Some(ProvisionState::Manageable));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((bench.field("gpu-1", "driver"), bench.good_writes().len()), (json!("redfish"), 0));
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    changed(ironic::switch_driver(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.field("gpu-1", "driver"), "ipmi");
}
