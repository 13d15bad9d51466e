//! A cold reset: asked for once, gone, and really back.

use std::time::Duration;

use jiff::Timestamp;
use muster::activities::bmc::{back, reset};
use muster::domain::failure::FailureCode;
use muster::lab::faults::HttpRule;
use muster::workflows::defs::{BmcBackIn, BmcBackOut};

use super::Rig;

const RESET: &str = "POST /redfish/v1/Managers/1/Actions/Manager.Reset";

async fn look(rig: &Rig, since: Timestamp, seen_away: bool) -> BmcBackOut {
    back(&rig.cx, BmcBackIn { target: rig.target(), since, seen_away, asked_at: None }).await.unwrap()
}

/// Proves: B4
#[tokio::test]
async fn the_bmc_goes_away_and_is_back_only_after_that() {
    let rig = Rig::start().await;
    let out = reset(&rig.cx, rig.target()).await.unwrap();
    assert!(out.changed);
    assert_eq!(rig.writes(), [RESET]);
    assert_eq!(rig.changes(), ["cold reset:  -> GracefulRestart"]);
    let since = Timestamp::now();
    let mut looks = vec![look(&rig, since, false).await];
    while !looks.last().unwrap().back {
        assert!(looks.len() < 100, "{looks:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let seen_away = looks.iter().any(|look| look.away);
        looks.push(look(&rig, since, seen_away).await);
    }
    assert!(looks[0].away && !looks[0].back, "{looks:?}");
    assert_eq!(rig.machine().bmc.resets, 1);
}

/// Proves: B4
#[tokio::test]
async fn a_bmc_that_answers_and_never_went_away_is_not_back() {
    let rig = Rig::start().await;
    let now = look(&rig, Timestamp::now(), false).await;
    assert!(!now.back && !now.away, "{now:?}");
    assert!(now.note.contains("has not gone away"), "{now:?}");
}

/// Proves: B4
/// The polls missed the time in which it was away: its own start time tells.
#[tokio::test]
async fn a_bmc_that_restarted_between_two_looks_is_back() {
    let rig = Rig::start().await;
    reset(&rig.cx, rig.target()).await.unwrap();
    let since = Timestamp::now();
    rig.lab.world().sleep(Duration::from_secs(100)).await;
    let now = look(&rig, since, false).await;
    assert!(now.back, "{now:?}");
}

/// Proves: B4
#[tokio::test]
async fn a_bmc_that_does_not_come_back_in_its_budget_is_for_the_rack() {
    let rig = Rig::start().await;
    let long_ago = Timestamp::now() - jiff::SignedDuration::from_hours(1);
    rig.rule(HttpRule { drop: true, ..HttpRule::default() });
    let input = BmcBackIn { target: rig.target(), since: long_ago, seen_away: true, asked_at: None };
    let failure = back(&rig.cx, input).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcResetTimeout);
    assert!(failure.message.contains("it does not answer"), "{failure}");
}

/// Proves: G4
/// The program dies between the request and its record: the next attempt of the step does not restart the BMC again.
#[tokio::test]
async fn a_repeated_step_does_not_reset_twice() {
    let rig = Rig::start().await;
    reset(&rig.cx, rig.target()).await.unwrap();
    let again = reset(&rig.cx, rig.target()).await.unwrap();
    assert!(again.changed && again.note.contains("before"), "{again:?}");
    rig.lab.world().sleep(Duration::from_secs(100)).await;
    reset(&rig.cx, rig.target()).await.unwrap();
    assert_eq!(rig.machine().bmc.resets, 1);
    // Another run may.
    reset(&rig.next_run(), rig.target()).await.unwrap();
    assert_eq!(rig.machine().bmc.resets, 2);
}

#[tokio::test]
async fn a_lost_answer_to_the_reset_counts_as_accepted_and_a_refusal_does_not() {
    let rig = Rig::start().await;
    let path = Some("*/Manager.Reset".to_owned());
    rig.rule(HttpRule { path: path.clone(), status: Some(403), count: Some(1), ..HttpRule::default() });
    let failure = reset(&rig.cx, rig.target()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcRefused);
    assert_eq!(rig.machine().bmc.resets, 0);
    rig.rule(HttpRule { path, drop: true, after_effect: true, count: Some(1), ..HttpRule::default() });
    assert!(reset(&rig.cx, rig.target()).await.unwrap().changed);
    assert_eq!(rig.machine().bmc.resets, 1);
}

#[tokio::test]
async fn a_busy_bmc_is_asked_for_its_reset_again_when_it_did_not_take_it() {
    let rig = Rig::start().await;
    let path = Some("*/Manager.Reset".to_owned());
    rig.rule(HttpRule { path, status: Some(503), count: Some(2), ..HttpRule::default() });
    reset(&rig.cx, rig.target()).await.unwrap();
    assert_eq!(rig.writes(), [RESET; 3]);
    assert_eq!(rig.machine().bmc.resets, 1);
}
