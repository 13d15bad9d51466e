//! Failed inspections and cleans go back to `manageable`, and maintenance is where it was if that fails.

use muster::activities::ironic;
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::workflows::defs::{Half, PhaseTarget, PreludeOut, Step};
use serde_json::json;

use crate::bench::{Bench, changed, unchanged};

const REASON: &str = "Timeout reached while cleaning the node";

async fn clean_failed() -> (Bench, muster::domain::ids::NodeUuid) {
    let (bench, node) = Bench::node_in("clean failed").await;
    bench.edit("gpu-1", |node| {
        node.fields["maintenance"] = json!(true);
        node.fields["maintenance_reason"] = json!(REASON);
        node.fields["fault"] = json!("clean failure");
    });
    (bench, node)
}

/// A prelude that is dropped as soon as it has taken the flag away: its manage is under way then.
async fn dropped_behind_the_clear(bench: &Bench) {
    let cleared = async {
        while bench.field("gpu-1", "maintenance") == true {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = bench.prelude(Half::Cleaning) => panic!("{ended:?}"),
        () = cleared => {}
    }
}

fn waits(out: PreludeOut, in_state: &str) {
    match out {
        PreludeOut::Wait { state, .. } => assert_eq!(state.as_str(), in_state),
        other => panic!("{other:?}"),
    }
}

/// Proves: E9
#[tokio::test]
async fn inspect_failed_is_recovered_through_manage() {
    let (bench, node) = Bench::node_in("inspect failed").await;
    waits(bench.prelude(Half::Inspection).await.unwrap(), "inspect failed");
    bench.until(node, ProvisionState::Manageable).await;
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/states/provision manage"]);
    assert!(matches!(bench.prelude(Half::Inspection).await.unwrap(), PreludeOut::Ready { .. }));
}

/// Case: C-04. Proves: E10
#[tokio::test]
async fn clean_failed_leaves_maintenance_first_and_then_goes_through_manage() {
    let (bench, node) = clean_failed().await;
    waits(bench.prelude(Half::Cleaning).await.unwrap(), "clean failed");
    bench.until(node, ProvisionState::Manageable).await;
    assert_eq!(bench.writes(), ["DELETE /v1/nodes/ID/maintenance", "PUT /v1/nodes/ID/states/provision manage"]);
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
    assert!(bench.changes()[0].contains(REASON), "{:?}", bench.changes());
}

/// Case: C-04. Proves: E10, C1
#[tokio::test]
async fn maintenance_is_put_back_with_its_reason_only_where_the_manage_itself_fails() {
    let (bench, _) = clean_failed().await;
    bench.spoil("PUT", "*/states/provision", json!({"count": 1, "status": 500, "body": "boom"}));
    let failure = bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "IRONIC_UNREACHABLE");
    assert_eq!(bench.field("gpu-1", "maintenance"), true);
    assert_eq!(bench.field("gpu-1", "maintenance_reason"), REASON);
    // The next attempt starts anew, and a failure after the recovery leaves the flag off.
    waits(bench.prelude(Half::Cleaning).await.unwrap(), "clean failed");
    bench.until(bench.node("gpu-1"), ProvisionState::Manageable).await;
    bench.spoil("PATCH", "/v1/nodes/*", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
}

/// Case: C-04. Proves: E10, G5
#[tokio::test]
async fn a_kill_between_clear_and_manage_still_puts_the_flag_back_when_manage_fails() {
    let (bench, _) = clean_failed().await;
    // Neither the manage nor the putting back gets through, as if the process had died between.
    bench.spoil("PUT", "*/states/provision", json!({"count": 2, "status": 500, "body": "boom"}));
    bench.spoil("PUT", "*/maintenance", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
    assert!(bench.warnings().iter().any(|w| w.contains("could not be put back")), "{:?}", bench.warnings());
    // The resumed attempt reads a node without the flag, and knows from its own store that it was set.
    bench.reset_ledger();
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/states/provision manage", "PUT /v1/nodes/ID/maintenance"]);
    assert_eq!(bench.field("gpu-1", "maintenance_reason"), REASON);
    waits(bench.prelude(Half::Cleaning).await.unwrap(), "clean failed");
    bench.until(bench.node("gpu-1"), ProvisionState::Manageable).await;
    assert!(matches!(bench.prelude(Half::Cleaning).await.unwrap(), PreludeOut::Ready { .. }));
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
}

/// Proves: E10
#[tokio::test]
async fn a_flag_that_is_gone_although_the_answer_was_lost_is_still_owed_to_a_manage_that_fails() {
    let (bench, _) = clean_failed().await;
    bench.spoil(
        "DELETE",
        "*/maintenance",
        json!({"count": 1, "after_effect": true, "status": 502, "body": "bad gateway"}),
    );
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
    bench.spoil("PUT", "*/states/provision", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(
        (bench.field("gpu-1", "maintenance"), bench.field("gpu-1", "maintenance_reason")),
        (json!(true), json!(REASON))
    );
}

/// Proves: E10
#[tokio::test]
async fn a_flag_that_somebody_sets_while_the_manage_fails_is_theirs() {
    let (bench, _) = clean_failed().await;
    // Neither gets through; then a person sets the flag, and the next manage fails too.
    bench.spoil("PUT", "*/states/provision", json!({"count": 2, "status": 500, "body": "boom"}));
    bench.spoil("PUT", "*/maintenance", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.prelude(Half::Cleaning).await.unwrap_err();
    let mine = |node: &mut muster::lab::ironic::Node| {
        node.fields["maintenance"] = json!(true);
        node.fields["maintenance_reason"] = json!("mine");
    };
    bench.edit("gpu-1", mine);
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.field("gpu-1", "maintenance_reason"), "mine", "cleared and put back with its own reason");
}

/// Proves: E10
#[tokio::test]
async fn a_manage_whose_answer_is_lost_is_no_failed_manage() {
    let (bench, _) = clean_failed().await;
    bench.spoil(
        "PUT",
        "*/states/provision",
        json!({"count": 1, "after_effect": true, "status": 502, "body": "bad gateway"}),
    );
    waits(bench.prelude(Half::Cleaning).await.unwrap(), "clean failed");
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
}

/// Proves: E10, G9
#[tokio::test]
async fn a_cancel_in_the_middle_of_a_recovery_leaves_no_half_applied_flag() {
    let (bench, _) = clean_failed().await;
    bench.spoil("PUT", "*/states/provision", json!({"count": 1, "status": 500, "body": "boom", "delay_s": 20}));
    dropped_behind_the_clear(&bench).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while bench.field("gpu-1", "maintenance") != true || bench.writes().len() < 3 {
        assert!(std::time::Instant::now() < deadline, "{:?}", bench.writes());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(bench.field("gpu-1", "maintenance_reason"), REASON);
}

/// Case: C-04. Proves: G9, E10
#[tokio::test]
async fn a_cancel_behind_a_kill_between_clear_and_manage_puts_the_flag_back() {
    let (bench, _) = clean_failed().await;
    let put_back = || async {
        let input = PhaseTarget { target: bench.target("gpu-1"), phase: Phase::Cleaning };
        ironic::put_back(&bench.cx(), input).await.unwrap().changed
    };
    // Nothing was taken away: nothing is written.
    assert!(!put_back().await);
    assert_eq!(bench.writes(), Vec::<String>::new());
    // Neither the manage nor the putting back gets through, as if the process had died between.
    bench.spoil("PUT", "*/states/provision", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.spoil("PUT", "*/maintenance", json!({"count": 1, "status": 500, "body": "boom"}));
    bench.prelude(Half::Cleaning).await.unwrap_err();
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
    bench.reset_ledger();
    assert!(put_back().await);
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/maintenance"]);
    assert_eq!(bench.field("gpu-1", "maintenance_reason"), REASON);
    assert!(!put_back().await);
    assert_eq!(bench.writes().len(), 1);
}

/// Proves: G9, E10
#[tokio::test]
async fn putting_back_waits_for_a_recovery_that_a_cancel_has_dropped() {
    let (bench, _) = clean_failed().await;
    bench.spoil("PUT", "*/states/provision", json!({"count": 1, "delay_s": 50}));
    dropped_behind_the_clear(&bench).await;
    let input = PhaseTarget { target: bench.target("gpu-1"), phase: Phase::Cleaning };
    assert!(!ironic::put_back(&bench.cx(), input).await.unwrap().changed);
    assert_eq!(bench.field("gpu-1", "maintenance"), false);
    assert!(bench.writes().contains(&"PUT /v1/nodes/ID/states/provision manage".to_owned()), "{:?}", bench.writes());
}

/// Proves: C1
#[tokio::test]
async fn provide_leaves_maintenance_first_also_where_a_clean_already_hangs_in_it() {
    let (bench, node) = Bench::node_in("manageable").await;
    bench.edit("gpu-1", |node| node.fields["maintenance"] = json!(true));
    changed(ironic::provide(&bench.cx(), bench.at("gpu-1", node)).await);
    assert_eq!(bench.writes(), ["DELETE /v1/nodes/ID/maintenance", "PUT /v1/nodes/ID/states/provision provide"]);
    bench.edit("gpu-1", |node| node.fields["maintenance"] = json!(true));
    // While the conductor is at work on the clean it holds the node: the workflow would ask again, as this does.
    let mut step = ironic::provide(&bench.cx(), bench.at("gpu-1", node)).await;
    while let Ok(Step::Locked { .. }) = step {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        step = ironic::provide(&bench.cx(), bench.at("gpu-1", node)).await;
    }
    changed(step);
    bench.until(node, ProvisionState::Available).await;
}

/// Proves: L2, C6
#[tokio::test]
async fn abort_ends_an_inspection_and_a_clean_in_their_waiting_states() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    changed(ironic::inspect(&bench.cx(), bench.at("gpu-1", node)).await);
    bench.until(node, ProvisionState::InspectWait).await;
    changed(ironic::abort(&bench.cx(), bench.at("gpu-1", node)).await);
    bench.until(node, ProvisionState::InspectFailed).await;

    let (bench, node) = Bench::node_in("manageable").await;
    changed(ironic::provide(&bench.cx(), bench.at("gpu-1", node)).await);
    bench.until(node, ProvisionState::CleanWait).await;
    changed(ironic::abort(&bench.cx(), bench.at("gpu-1", node)).await);
    bench.until(node, ProvisionState::CleanFailed).await;
    // Aborted, not failed in a step: no maintenance to leave.
    bench.reset_ledger();
    waits(bench.prelude(Half::Cleaning).await.unwrap(), "clean failed");
    assert_eq!(bench.writes(), ["PUT /v1/nodes/ID/states/provision manage"]);
}

/// A process that dies right behind the request is begun again after the inspection has ended.
///
/// Proves: G5
#[tokio::test]
async fn an_inspection_that_ended_meanwhile_is_not_asked_for_again_by_the_same_step() {
    let bench = Bench::fresh().await;
    let node = bench.managed().await;
    let cx = bench.cx();
    changed(ironic::inspect(&cx, bench.at("gpu-1", node)).await);
    bench.until(node, ProvisionState::Manageable).await;
    bench.reset_ledger();
    unchanged(ironic::inspect(&cx, bench.at("gpu-1", node)).await);
    assert!(bench.writes().is_empty(), "{:?}", bench.writes());
    // Another step that wants one gets one.
    changed(ironic::inspect(&bench.cx(), bench.at("gpu-1", node)).await);
}
