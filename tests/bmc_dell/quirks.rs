//! Odd habits of real iDRACs around jobs and boot order, one by one.

use std::time::{Duration, Instant};

use muster::clients::http::{Auth, HttpError, Method, Request};
use muster::clients::redfish::RedfishError;
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{Dialect, JobState, Staging};
use muster::domain::bios::difference;
use muster::domain::boot::restrict;
use muster::lab::build::bmc_password;
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::System;
use muster::lab::machine::Quirk;
use serde_json::json;

use super::staging::{nothing_is_left, options, restriction};
use super::{HOST, Rig, attributes};

const SYSTEM: &str = "/redfish/v1/Systems/System.Embedded.1";

#[tokio::test]
async fn a_job_that_never_schedules_stays_new_and_is_taken_back_so_that_a_rerun_can_stage() {
    let rig = Rig::with(&[Quirk::JobNeverSchedules]).await;
    let change = attributes(&[("LogicalProc", "Enabled")]);
    let staged = rig.stage(&change).await;
    rig.pass(1200).await;
    let job = rig.job(&staged.jobs[0]).await;
    assert_eq!((job.state, job.said.as_str()), (JobState::New, "New JCP000 Job waiting to be scheduled."));
    let parts = rig.parts().await;
    Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
    nothing_is_left(&rig).await;
    assert_eq!(rig.machine().boots, 0);
    rig.change_machine(|machine| machine.bmc.quirks.clear());
    assert_eq!(rig.carry_through(&change).await, 1);
    nothing_is_left(&rig).await;
}

#[tokio::test]
async fn a_job_whose_processing_failed_to_begin_is_failed_and_holds_the_settings_until_it_is_deleted() {
    let rig = Rig::with(&[Quirk::JobInitFails]).await;
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let job = rig.until(&staged.jobs[0], JobState::Failed).await;
    assert_eq!(job.said, "Scheduled PR30 Job processing initialization failure.");
    rig.restart().await;
    rig.pass(600).await;
    assert_eq!(rig.jobs().await.len(), 1);
    let parts = rig.parts().await;
    let error = Dell.stage(rig.at(&parts), &attributes(&[("LogicalProc", "Enabled")])).await.unwrap_err();
    assert!(error.is_already_committed(), "{error}");
    Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
    nothing_is_left(&rig).await;
}

/// Case: C-29
#[tokio::test]
async fn a_job_of_somebody_else_is_listed_and_nothing_is_staged_over_it() {
    let rig = Rig::with(&[Quirk::ForeignJob]).await;
    rig.pass(60).await;
    let jobs = rig.jobs().await;
    assert_eq!((jobs.len(), jobs[0].state), (1, JobState::Scheduled));
    let parts = rig.parts().await;
    let change = attributes(&[("LogicalProc", "Enabled")]);
    let error = Dell.stage(rig.at(&parts), &change).await.unwrap_err();
    assert!(error.is_already_committed(), "{error}");
    assert_eq!(rig.kept("staged_bios"), json!({"WorkloadProfile": "HpcProfile"}));
    rig.restart().await;
    rig.until(&jobs[0].id, JobState::Done).await;
    assert_eq!(rig.jobs().await, vec![]);
    assert_eq!(rig.carry_through(&change).await, 1);
    // Theirs was carried out as they wanted it.
    assert_eq!(rig.kept("bios")["WorkloadProfile"], "HpcProfile");
}

/// Proves nothing of who restarted: the job is carried in, and no further restart is needed.
#[tokio::test]
async fn a_job_that_another_restart_carries_in_is_done_without_one_of_ours() {
    let rig = Rig::with(&[Quirk::ForeignRestart]).await;
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    rig.forget_requests();
    rig.until(&staged.jobs[0], JobState::Done).await;
    assert_eq!(rig.kept("bios")["LogicalProc"], "Enabled");
    assert_eq!((rig.machine().boots, rig.writes()), (1, vec![]));
    nothing_is_left(&rig).await;
}

#[tokio::test]
async fn a_completed_job_that_left_the_order_as_it_was_shows_in_the_next_reading() {
    let rig = Rig::with(&[Quirk::OrderUnchanged]).await;
    let (before, change) = (options(&rig), restriction(&rig.boot().await, &rig, "eth0"));
    assert_eq!(rig.carry_through(&change).await, 1);
    assert_eq!(options(&rig), before);
    let setup = rig.boot().await;
    assert!(!restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
    // The ended job is a record, and nothing to take back.
    let id = rig.kept("jobs")[0]["id"].as_str().unwrap().to_owned();
    rig.forget_requests();
    let parts = rig.parts().await;
    Dell.withdraw(rig.at(&parts), &id).await.unwrap();
    assert_eq!((rig.writes(), rig.job(&id).await.state), (vec![], JobState::Done));
}

#[tokio::test]
async fn values_that_show_before_their_time_still_await_the_boot() {
    let rig = Rig::with(&[Quirk::PendingShownAsCurrent]).await;
    let wanted = [("LogicalProc".to_owned(), "Enabled".to_owned())].into();
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let parts = rig.parts().await;
    let bios = Dell.bios(rig.at(&parts), &[]).await.unwrap().unwrap();
    assert_eq!(bios.now["LogicalProc"], "Enabled");
    assert_eq!(difference(&bios, &wanted).awaits_boot, ["LogicalProc"]);
    assert_eq!(rig.jobs().await.len(), 1);
    rig.until(&staged.jobs[0], JobState::Scheduled).await;
    assert_eq!(rig.kept("bios")["LogicalProc"], "Disabled");
}

#[tokio::test]
async fn a_lifecycle_controller_in_use_lets_a_job_wait_and_the_job_says_why() {
    let rig = Rig::with(&[Quirk::LcNotReady]).await;
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    rig.pass(600).await;
    let job = rig.job(&staged.jobs[0]).await;
    assert_eq!(job.state, JobState::New);
    assert!(job.said.contains("Lifecycle Controller in use"), "{job:?}");
    rig.change_machine(|machine| machine.bmc.quirks.clear());
    rig.until(&staged.jobs[0], JobState::Scheduled).await;
}

/// No boot sources: flags go as attributes, and the order after them.
#[tokio::test]
async fn an_idrac10_takes_attributes_and_flags_in_one_job_and_the_order_in_a_second() {
    let rig = Rig::with(&[Quirk::Idrac10]).await;
    let mut change = restriction(&rig.boot().await, &rig, "eth0");
    change.attributes = attributes(&[("LogicalProc", "Enabled")]).attributes;
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 2);
    assert_eq!(rig.writes(), [format!("PATCH {SYSTEM}/Bios/Settings"), format!("PATCH {SYSTEM}/Settings")]);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    let change = restriction(&setup, &rig, "eth1");
    assert_eq!(rig.carry_through(&change).await, 2);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth1")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
}

/// Nor does it take flags as attributes: each flag and the order are a job of their own, one after the other.
#[tokio::test]
async fn an_idrac10_that_takes_no_flags_as_attributes_is_changed_step_by_step() {
    let rig = Rig::with(&[Quirk::Idrac10]).await;
    // Its firmware has no such attributes.
    rig.change_machine(|machine| {
        let bios = machine.bmc.settings.get_mut("dell").unwrap()["bios"].as_object_mut().unwrap();
        bios.remove("SetBootOrderDis");
    });
    let mut change = restriction(&rig.boot().await, &rig, "eth0");
    change.attributes = attributes(&[("LogicalProc", "Enabled")]).attributes;
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 3);
    let writes = rig.writes();
    let option = format!("PATCH {SYSTEM}/BootOptions/Boot0001");
    assert_eq!(writes, [format!("PATCH {SYSTEM}/Bios/Settings"), option, format!("PATCH {SYSTEM}/Settings")]);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    // Back: the NIC that is kept is enabled before the other is switched off.
    let change = restriction(&setup, &rig, "eth1");
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 3);
    let bodies = rig.lab.world().ledger().select(|e| e.write && e.path.contains("/BootOptions/"));
    let flags: Vec<&serde_json::Value> =
        bodies.iter().map(|e| &e.body.as_ref().unwrap()["BootOptionEnabled"]).collect();
    assert_eq!(flags, [true, false]);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth1")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
}

/// A firmware that lists the attributes and refuses them all the same.
#[tokio::test]
async fn flags_that_are_refused_as_attributes_are_written_one_by_one() {
    let rig = Rig::with(&[Quirk::Idrac10]).await;
    let change = restriction(&rig.boot().await, &rig, "eth0");
    let text = "The property SetBootOrderDis is a read only property and cannot be assigned a value.";
    let body = json!({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.18.PropertyNotWritable",
        "Message": text, "MessageArgs": ["SetBootOrderDis"]}]}});
    let path = Some(format!("{SYSTEM}/Bios/Settings"));
    let refuses =
        HttpRule { method: Some("PATCH".into()), path, status: Some(400), body: Some(body), ..HttpRule::default() };
    rig.lab.world().add_fault(Fault::Http(HttpRule { system: Some(System::Bmc), ..refuses }));
    assert_eq!(rig.carry_through(&change).await, 2);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
}

#[tokio::test]
async fn an_idrac10_takes_no_boot_order_at_the_system_and_no_precondition_with_an_action() {
    let rig = Rig::with(&[Quirk::Idrac10]).await;
    let order = rig.boot().await.order();
    let (status, body, _) = rig.ask(Method::PATCH, SYSTEM, Some(json!({"Boot": {"BootOrder": order}}))).await;
    let said = &body["error"]["@Message.ExtendedInfo"][0];
    assert_eq!((status, said["MessageId"].as_str()), (400, Some("Base.1.12.PropertyNotWritable")));
    let reset = format!("{SYSTEM}/Actions/ComputerSystem.Reset");
    let auth = Auth::Basic { username: "root".into(), password: bmc_password(HOST).into() };
    let request = Request::new(Method::POST, &reset).auth(auth).header("if-match", "*");
    assert_eq!(rig.send(request.json(json!({"ResetType": "On"}))).await.0, 412);
    assert!(rig.redfish.post(&reset, &json!({"ResetType": "On"})).await.is_ok());
}

#[tokio::test]
async fn power_that_is_as_asked_for_is_a_conflict_and_a_restart_of_the_idrac_has_one_kind() {
    let rig = Rig::start().await;
    let reset = format!("{SYSTEM}/Actions/ComputerSystem.Reset");
    assert_eq!(rig.ask(Method::POST, &reset, Some(json!({"ResetType": "ForceOff"}))).await.0, 409);
    assert_eq!(rig.ask(Method::POST, &reset, Some(json!({"ResetType": "On"}))).await.0, 204);
    rig.pass(30).await;
    assert_eq!(rig.ask(Method::POST, &reset, Some(json!({"ResetType": "On"}))).await.0, 409);
    let manager = "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Manager.Reset";
    assert_eq!(rig.ask(Method::POST, manager, Some(json!({"ResetType": "ForceRestart"}))).await.0, 400);
    assert_eq!(rig.ask(Method::POST, manager, Some(json!({"ResetType": "GracefulRestart"}))).await.0, 204);
    assert_eq!(rig.machine().bmc.resets, 1);
}

/// Case: C-29
#[tokio::test]
async fn a_deleted_job_is_waited_for_until_it_is_gone_and_one_that_stays_is_told() {
    let change = attributes(&[("LogicalProc", "Enabled")]);
    let rig = Rig::with(&[Quirk::DeletionLags]).await;
    let staged = rig.stage(&change).await;
    let parts = rig.parts().await;
    Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
    nothing_is_left(&rig).await;

    let rig = Rig::with(&[Quirk::DeletionForgotten]).await;
    let staged = rig.stage(&change).await;
    let parts = rig.parts().await;
    rig.forget_requests();
    let error = Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap_err().to_string();
    assert!(error.contains("was deleted and is still there") && error.contains(&staged.jobs[0]), "{error}");
    assert_eq!(rig.writes().len(), 1, "it is asked for once: {:?}", rig.writes());
}

/// Somebody locks it down while a job of ours waits: that job can't be taken back, and is when the lockdown is over.
#[tokio::test]
async fn a_lockdown_keeps_a_job_and_lets_power_and_the_locator_through() {
    let rig = Rig::start().await;
    let change = attributes(&[("LogicalProc", "Enabled")]);
    let staged = rig.stage(&change).await;
    let lockdown = |word: &str| json!({"Attributes": {"Lockdown.1.SystemLockdown": word}});
    let path = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";
    rig.redfish.patch(path, &lockdown("Enabled")).await.unwrap();
    let parts = rig.parts().await;
    let told = Dell.refuses_changes(rig.at(&parts)).await.unwrap();
    assert_eq!(told.as_deref(), Some("Lockdown.1.SystemLockdown is Enabled"));
    let error = Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap_err();
    assert!(matches!(error, RedfishError::LockedDown { .. }), "{error}");
    assert_eq!(rig.jobs().await.len(), 1);
    rig.redfish.patch(SYSTEM, &json!({"LocationIndicatorActive": true})).await.unwrap();
    rig.redfish.post(&format!("{SYSTEM}/Actions/ComputerSystem.Reset"), &json!({"ResetType": "On"})).await.unwrap();
    rig.redfish.patch(path, &lockdown("Disabled")).await.unwrap();
    assert_eq!(Dell.refuses_changes(rig.at(&parts)).await.unwrap(), None);
    Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
    nothing_is_left(&rig).await;
}

/// Nothing was sent to a port at which nobody listens: whatever was asked is asked again, for as long as the budget lasts, and
/// whoever asks for the first time is told at once.
#[tokio::test]
async fn a_web_server_that_stays_away_is_waited_for_within_the_budget_and_no_longer() {
    let rig = Rig::start().await;
    rig.redfish.get(SYSTEM).await.unwrap();
    let away = |rig: &Rig, seconds: u64| {
        let now = rig.lab.world().now();
        rig.change_machine(|machine| machine.bmc.web_away = Some((now, now + Duration::from_secs(seconds))));
    };
    // 60 s of the lab are 100 ms, and there is a budget of 400 ms.
    away(&rig, 60);
    assert!(rig.redfish.get(SYSTEM).await.is_ok());
    away(&rig, 3600);
    let (began, fresh) = (Instant::now(), rig.as_user("root", &bmc_password(HOST)));
    rig.redfish.get(SYSTEM).await.unwrap_err();
    let error = rig.redfish.patch(SYSTEM, &json!({"IndicatorLED": "Blinking"})).await.unwrap_err();
    assert!(matches!(error, RedfishError::Http(HttpError::Refused { .. })), "{error}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let began = Instant::now();
    fresh.get(SYSTEM).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
}
