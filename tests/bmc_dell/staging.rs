//! Staging: one job wherever that is possible, none left behind, and nothing done before its time.

use muster::clients::http::Method;
use muster::clients::redfish::RedfishError;
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{BootChange, Change, JobState, Staging};
use muster::domain::bios::difference;
use muster::domain::boot::{BootSetup, restrict};
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::System;
use serde_json::{Value, json};

use super::{JOBS, Rig, attributes};

const BIOS: &str = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings";
const SOURCES: &str = "/redfish/v1/Systems/System.Embedded.1/Oem/Dell/DellBootSources/Settings";

/// The change that restricts the host's boot to a NIC.
pub fn restriction(setup: &BootSetup, rig: &Rig, nic: &str) -> Change {
    let done = restrict(setup, rig.mac(nic)).unwrap();
    let boot = BootChange { order: done.order, enable: done.enable, disable: done.disable };
    Change { attributes: vec![], boot: Some(boot) }
}

/// The options as the lab has them: source and whether it is enabled, in their order.
pub fn options(rig: &Rig) -> Vec<(String, bool)> {
    let kept = rig.kept("options");
    let of = |option: &Value| (option["source"].as_str().unwrap().to_owned(), option["enabled"].as_bool().unwrap());
    kept.as_array().unwrap().iter().map(of).collect()
}

pub async fn nothing_is_left(rig: &Rig) {
    assert_eq!(rig.jobs().await, vec![]);
    assert_eq!((rig.kept("staged_bios"), rig.kept("staged_boot")), (json!({}), json!(null)));
    assert_eq!(rig.lab.world().ledger().count(|e| e.path.contains("/SessionService/")), 0, "a session was asked for");
}

#[tokio::test]
async fn attributes_are_one_write_and_one_job_and_are_in_force_when_a_boot_has_carried_that_out() {
    let rig = Rig::start().await;
    let wanted = [("ProcVirtualization".to_owned(), "Enabled".to_owned())].into();
    let parts = rig.parts().await;
    let names = ["ProcVirtualization".to_owned(), "SystemServiceTag".to_owned()];
    let before = Dell.bios(rig.at(&parts), &names).await.unwrap().unwrap();
    assert_eq!(before.rules["ProcVirtualization"].values, ["Enabled", "Disabled"]);
    assert!(before.rules["SystemServiceTag"].read_only && before.rules.len() == 2);
    assert_eq!(difference(&before, &wanted).write.len(), 1);
    let staged = rig.stage(&attributes(&[("ProcVirtualization", "Enabled")])).await;
    let [id] = &staged.jobs[..] else { panic!("{staged:?}") };
    assert_eq!((rig.writes(), &staged.rest), (vec![format!("PATCH {BIOS}")], &None));
    rig.until(id, JobState::Scheduled).await;
    // A host that does not boot carries nothing out.
    rig.pass(600).await;
    assert_eq!(rig.job(id).await.state, JobState::Scheduled);
    let then = Dell.bios(rig.at(&parts), &[]).await.unwrap().unwrap();
    assert_eq!(
        (&then.now["ProcVirtualization"], &then.staged["ProcVirtualization"]),
        (&json!("Disabled"), &json!("Enabled"))
    );
    assert_eq!(difference(&then, &wanted).awaits_boot, ["ProcVirtualization"]);
    rig.restart().await;
    let done = rig.until(id, JobState::Done).await;
    assert_eq!(done.said, "Completed PR19 Job completed successfully.");
    let after = Dell.bios(rig.at(&parts), &[]).await.unwrap().unwrap();
    assert_eq!(difference(&after, &wanted).satisfied, ["ProcVirtualization"]);
    assert!(after.staged.is_empty());
    nothing_is_left(&rig).await;
}

#[tokio::test]
async fn flags_and_order_are_one_write_and_one_job() {
    let rig = Rig::start().await;
    let setup = rig.boot().await;
    let change = restriction(&setup, &rig, "eth0");
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 1);
    assert_eq!(rig.writes(), [format!("PATCH {SOURCES}")]);
    let on = |name: &str, on| (name.to_owned(), on);
    assert_eq!(
        options(&rig),
        [
            on("NIC.PxeDevice.1-1", true),
            on("Disk.Bay.2:Enclosure.Internal.0-1", true),
            on("Optical.iDRACVirtual.1-1", true),
            on("NIC.PxeDevice.2-1", false),
        ]
    );
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    // Back to the other NIC: it is enabled again by the same write.
    let change = restriction(&setup, &rig, "eth1");
    assert_eq!(change.boot.as_ref().unwrap().enable.len(), 1);
    assert_eq!(rig.carry_through(&change).await, 1);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth1")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
}

#[tokio::test]
async fn what_is_staged_for_the_order_is_read_before_it_is_in_force() {
    let rig = Rig::start().await;
    let setup = rig.boot().await;
    let change = restriction(&setup, &rig, "eth0");
    rig.stage(&change).await;
    let now = rig.boot().await;
    assert_eq!(now.order(), setup.order());
    assert_eq!(now.staged, change.boot.map(|boot| boot.order));
}

#[tokio::test]
async fn attributes_and_boot_go_together_where_each_option_has_a_name_that_the_firmware_takes() {
    let rig = Rig::start().await;
    let mut change = restriction(&rig.boot().await, &rig, "eth0");
    change.attributes = attributes(&[("SriovGlobalEnable", "Enabled")]).attributes;
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 1);
    assert_eq!(rig.writes(), [format!("PATCH {BIOS}")]);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth0")).unwrap().is_satisfied_by(&setup));
    assert_eq!(rig.kept("bios")["SriovGlobalEnable"], "Enabled");
    nothing_is_left(&rig).await;
}

/// An operating system's option has no such name: what would be lost is handed back and staged when the job is done.
#[tokio::test]
async fn else_the_boot_change_is_the_rest_and_a_second_job() {
    let rig = Rig::converged().await;
    let mut change = restriction(&rig.boot().await, &rig, "eth1");
    change.attributes = attributes(&[("LogicalProc", "Enabled")]).attributes;
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 2);
    assert_eq!(rig.writes(), [format!("PATCH {BIOS}"), format!("PATCH {SOURCES}")]);
    let setup = rig.boot().await;
    assert!(restrict(&setup, rig.mac("eth1")).unwrap().is_satisfied_by(&setup));
    nothing_is_left(&rig).await;
}

/// The firmware refuses the order as attributes: the attributes alone are staged, and the rest is handed back.
#[tokio::test]
async fn a_firmware_that_does_not_take_the_order_as_attributes_gets_it_as_boot_sources() {
    let rig = Rig::start().await;
    let mut change = restriction(&rig.boot().await, &rig, "eth0");
    change.attributes = attributes(&[("SriovGlobalEnable", "Enabled")]).attributes;
    let text = "The property SetBootOrderFqdd1 is a read only property and cannot be assigned a value.";
    let body = json!({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.12.PropertyNotWritable",
        "Message": text, "MessageArgs": ["SetBootOrderFqdd1"]}]}});
    rule(&rig, HttpRule { status: Some(400), body: Some(body), count: Some(1), ..on(BIOS) });
    rig.forget_requests();
    assert_eq!(rig.carry_through(&change).await, 2);
    assert_eq!(rig.writes(), [format!("PATCH {BIOS}"), format!("PATCH {BIOS}"), format!("PATCH {SOURCES}")]);
    nothing_is_left(&rig).await;
}

fn on(path: &str) -> HttpRule {
    HttpRule { method: Some("PATCH".into()), path: Some(path.into()), ..HttpRule::default() }
}

fn rule(rig: &Rig, rule: HttpRule) {
    rig.lab.world().add_fault(Fault::Http(HttpRule { system: Some(System::Bmc), ..rule }));
}

/// Case: C-29
#[tokio::test]
async fn a_second_change_meets_the_committed_one_and_says_so_without_a_second_job() {
    let rig = Rig::start().await;
    let first = rig.stage(&attributes(&[("SubNumaCluster", "2-Way")])).await;
    let parts = rig.parts().await;
    for change in [attributes(&[("LogicalProc", "Enabled")]), restriction(&rig.boot().await, &rig, "eth0")] {
        let error = Dell.stage(rig.at(&parts), &change).await.unwrap_err();
        assert!(error.is_already_committed(), "{error}");
    }
    let jobs: Vec<String> = rig.jobs().await.into_iter().map(|job| job.id).collect();
    assert_eq!(jobs, first.jobs);
    assert_eq!(rig.kept("staged_bios"), json!({"SubNumaCluster": "2-Way"}));
}

#[tokio::test]
async fn a_job_that_is_taken_back_leaves_nothing_staged_and_a_rerun_can_stage_again() {
    let rig = Rig::start().await;
    let parts = rig.parts().await;
    for change in [attributes(&[("SubNumaCluster", "2-Way")]), restriction(&rig.boot().await, &rig, "eth0")] {
        let staged = rig.stage(&change).await;
        rig.until(&staged.jobs[0], JobState::Scheduled).await;
        Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
        nothing_is_left(&rig).await;
        // Gone already: no error, and nothing is asked for.
        rig.forget_requests();
        Dell.withdraw(rig.at(&parts), &staged.jobs[0]).await.unwrap();
        assert_eq!(rig.writes(), Vec::<String>::new());
    }
    assert_eq!(rig.carry_through(&attributes(&[("SubNumaCluster", "4-Way")])).await, 1);
    assert_eq!(rig.kept("bios")["SubNumaCluster"], "4-Way");
}

/// Somebody staged something and never committed it. It must not ride along.
#[tokio::test]
async fn what_others_staged_without_a_job_is_cleared_and_not_carried_in() {
    let rig = Rig::start().await;
    let stray = json!({"Attributes": {"WorkloadProfile": "HpcProfile"}});
    assert_eq!(rig.ask(Method::PATCH, BIOS, Some(stray)).await.0, 200);
    assert_eq!(rig.jobs().await, vec![]);
    rig.forget_requests();
    assert_eq!(rig.carry_through(&attributes(&[("LogicalProc", "Enabled")])).await, 1);
    assert_eq!(rig.writes().len(), 2, "{:?}", rig.writes());
    let bios = rig.kept("bios");
    assert_eq!((&bios["WorkloadProfile"], &bios["LogicalProc"]), (&json!("NotConfigured"), &json!("Enabled")));
    nothing_is_left(&rig).await;
}

/// The host was restarted too soon: that boot walks past the job, which waits for the next one.
#[tokio::test]
async fn a_boot_that_began_before_the_job_was_scheduled_does_not_carry_it_in() {
    let rig = Rig::start().await;
    rig.lab.world().clock().set_speed(6.0);
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    rig.restart().await;
    assert_eq!(rig.job(&staged.jobs[0]).await.state, JobState::New);
    rig.lab.world().clock().set_speed(600.0);
    rig.pass(600).await;
    assert_eq!(rig.job(&staged.jobs[0]).await.state, JobState::Scheduled);
    rig.restart().await;
    rig.until(&staged.jobs[0], JobState::Done).await;
    assert_eq!(rig.kept("bios")["LogicalProc"], "Enabled");
}

/// The answer is lost, the job is not: it is found in the queue instead of being made twice.
#[tokio::test]
async fn a_job_whose_answer_is_lost_is_found_in_the_queue() {
    for lost in [
        HttpRule { drop: true, after_effect: true, count: Some(1), ..on(BIOS) },
        HttpRule { status: Some(200), body: Some(json!({})), after_effect: true, count: Some(1), ..on(BIOS) },
        // Asked again, it meets its own job.
        HttpRule { status: Some(500), after_effect: true, count: Some(1), ..on(BIOS) },
    ] {
        let rig = Rig::start().await;
        let tries = if lost.status == Some(500) { 2 } else { 1 };
        rule(&rig, lost);
        let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
        let jobs: Vec<String> = rig.jobs().await.into_iter().map(|job| job.id).collect();
        assert_eq!(staged.jobs, jobs);
        assert_eq!(rig.writes(), vec![format!("PATCH {BIOS}"); tries]);
    }
    let rig = Rig::start().await;
    rule(&rig, HttpRule { drop: true, count: Some(1), ..on(BIOS) });
    let parts = rig.parts().await;
    let error = Dell.stage(rig.at(&parts), &attributes(&[("LogicalProc", "Enabled")])).await.unwrap_err();
    assert!(matches!(error, RedfishError::Http(_)), "{error}");
    nothing_is_left(&rig).await;
}

/// A firmware that stages and schedules nothing by itself is asked for the job, once.
#[tokio::test]
async fn a_write_that_makes_no_job_is_followed_by_the_request_for_one() {
    let rig = Rig::start().await;
    let own = json!({"Attributes": {"LogicalProc": "Enabled"}});
    assert_eq!(rig.ask(Method::PATCH, BIOS, Some(own)).await.0, 200);
    rule(&rig, HttpRule { status: Some(200), body: Some(json!({})), count: Some(1), ..on(BIOS) });
    rig.forget_requests();
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    assert_eq!(rig.writes(), [format!("PATCH {BIOS}"), format!("POST {JOBS}")]);
    rig.until(&staged.jobs[0], JobState::Scheduled).await;
}

#[tokio::test]
async fn a_job_counts_as_carried_in_from_the_power_on_not_only_when_it_says_running() {
    let rig = Rig::start().await;
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let id = &staged.jobs[0];
    rig.until(id, JobState::Scheduled).await;
    rig.lab.world().clock().set_speed(5.0);
    rig.restart().await;
    let job = rig.job(id).await;
    // The queue says `Scheduled` still.
    assert_eq!(job.state, JobState::Running, "{job:?}");
    assert!(job.said.starts_with("Scheduled JCP001"), "{job:?}");
    assert_eq!(rig.jobs().await[0].state, JobState::Running);
}

#[tokio::test]
async fn nothing_to_change_is_no_write() {
    let rig = Rig::start().await;
    let staged = rig.stage(&Change::default()).await;
    assert_eq!((staged.jobs.len(), staged.rest, rig.writes().len()), (0, None, 0));
}
