//! The queue of jobs as lab time moves it on, and the Lifecycle Controller that works on it.

use std::time::Duration;

use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::firmware;
use super::said;
use super::state::{Dell, Job, JobState};
use super::{JOBS, MANAGER};
use crate::lab::bmc::Reply;
use crate::lab::bmc::said::Refusal;
use crate::lab::clock::LabTime;
use crate::lab::machine::{Machine, Quirk};

/// Lab seconds from a job's creation to `Scheduled`.
const SCHEDULES_AFTER_S: f64 = 20.0;
/// From a power on until the Lifecycle Controller takes a job in.
const TAKEN_IN_AFTER_S: f64 = 15.0;
/// How long a job runs.
const RUNS_S: f64 = 120.0;
/// From a power on to the end of POST.
const POST_S: f64 = 60.0;
/// From the iDRAC's return until its Lifecycle Controller is ready.
const LC_AFTER_RESET_S: f64 = 45.0;
/// Somebody else's restart after a job was scheduled, where a quirk wants that.
const FOREIGN_RESTART_AFTER_S: f64 = 0.0;
/// From the deletion of a job until it is gone, where a quirk wants that.
const DELETION_S: f64 = 4.0;
/// From that power on to light on the links.
const LINK_UP: Duration = Duration::from_secs(12);

/// Brings the queue up to date.
pub(super) fn catch_up(machine: &mut Machine, now: LabTime) {
    let mut dell = Dell::of(machine);
    let before = dell.clone();
    let now_s = now.0.as_secs_f64();
    dell.jobs.retain(|job| job.gone_s.is_none_or(|gone| now_s < gone));
    for at in 0..dell.jobs.len() {
        while step(machine, &mut dell, at, now_s) {}
    }
    if dell != before {
        dell.keep(machine);
    }
}

/// Moves a job by one state; `false` where it stays.
fn step(machine: &mut Machine, dell: &mut Dell, at: usize, now_s: f64) -> bool {
    let is_ready = lc_status(machine, dell, LabTime(Duration::from_secs_f64(now_s))).is_none();
    let (on, on_since_s) = (machine.power.on, machine.power.since.0.as_secs_f64());
    let job = &mut dell.jobs[at];
    match job.state {
        JobState::New => {
            let held = machine.has(Quirk::JobNeverSchedules) && !job.foreign;
            let due = job.made_s + SCHEDULES_AFTER_S;
            if held || !is_ready || now_s < due {
                return false;
            }
            // A boot that began before it was scheduled walks past it.
            let missed = !(on && on_since_s > due);
            job.boots = if missed { machine.boots } else { machine.boots.saturating_sub(1) };
            (job.state, job.since_s) = (JobState::Scheduled, due);
            job.stuck = machine.has(Quirk::JobInitFails) && !job.foreign;
            true
        }
        JobState::Scheduled if job.stuck => false,
        JobState::Scheduled => {
            let restart = job.since_s + FOREIGN_RESTART_AFTER_S;
            if machine.has(Quirk::ForeignRestart) && machine.boots <= job.boots && now_s >= restart {
                machine.set_power(true, LabTime(Duration::from_secs_f64(restart)), LINK_UP);
                return true;
            }
            let taken_in = on_since_s + TAKEN_IN_AFTER_S;
            if !on || machine.boots <= job.boots || now_s < taken_in {
                return false;
            }
            (job.state, job.since_s) = (JobState::Running, taken_in);
            true
        }
        JobState::Running => {
            let done = job.since_s + RUNS_S;
            if now_s < done {
                return false;
            }
            (job.state, job.since_s) = (JobState::Completed, done);
            firmware::apply(machine, dell);
            true
        }
        JobState::Completed | JobState::Failed => false,
    }
}

/// Why the Lifecycle Controller takes nothing now; `None`: it is ready.
pub(super) fn lc_status(machine: &Machine, dell: &Dell, now: LabTime) -> Option<&'static str> {
    let now_s = now.0.as_secs_f64();
    let fresh = machine.bmc.away.is_some_and(|(_, until)| now_s < until.0.as_secs_f64() + LC_AFTER_RESET_S);
    if machine.has(Quirk::LcNotReady) {
        Some("InUse")
    } else if machine.bmc.resets > 0 && fresh {
        Some("NotInitialized")
    } else if now_s < dell.lc_reloads_until_s {
        Some("ReloadingData")
    } else {
        None
    }
}

/// What `GetRemoteServicesAPIStatus` answers.
pub(super) fn status(machine: &Machine, now: LabTime) -> Value {
    let lc = lc_status(machine, &Dell::of(machine), now);
    let in_post = now.0.as_secs_f64() < machine.power.since.0.as_secs_f64() + POST_S && machine.boots > 0;
    let server = match (machine.power.on, in_post) {
        (false, _) => "PoweredOff",
        (true, true) => "InPOST",
        (true, false) => "OutOfPOST",
    };
    let ready = if lc.is_some() { "NotReady" } else { "Ready" };
    let mut body = said::success();
    body["LCStatus"] = json!(lc.unwrap_or("Ready"));
    body["RTStatus"] = json!(ready);
    body["ServerStatus"] = json!(server);
    body["Status"] = json!(ready);
    body
}

/// Deletes one job or all of them. What a deleted job held stays staged, and is committed no more.
pub(super) fn delete_queue(machine: &mut Machine, now: LabTime, body: &Value) -> Result<Reply, Refusal> {
    let mut dell = Dell::of(machine);
    match body["JobID"].as_str() {
        Some("JID_CLEARALL") => dell.jobs.retain(|job| job.state == JobState::Running),
        Some("JID_CLEARALL_FORCE") => {
            dell.jobs.clear();
            dell.lc_reloads_until_s = now.0.as_secs_f64() + 120.0;
        }
        Some(id) => remove(machine, &mut dell, now, id)?,
        None => return Err(Refusal::parameter("JobID")),
    }
    dell.keep(machine);
    Ok(Reply::ok(said::success()))
}

/// Deletes a job by its own path.
pub(super) fn delete_one(machine: &mut Machine, now: LabTime, id: &str) -> Result<Reply, Refusal> {
    let mut dell = Dell::of(machine);
    remove(machine, &mut dell, now, id)?;
    dell.keep(machine);
    Ok(Reply::ok(said::success()))
}

fn remove(machine: &Machine, dell: &mut Dell, now: LabTime, id: &str) -> Result<(), Refusal> {
    let job = dell.jobs.iter_mut().find(|job| job.id == id).ok_or_else(|| Refusal::missing(id))?;
    if job.state == JobState::Running {
        return Err(said::job_is_running(id));
    }
    if machine.has(Quirk::DeletionLags) {
        job.gone_s.get_or_insert(now.0.as_secs_f64() + DELETION_S);
    } else if !machine.has(Quirk::DeletionForgotten) {
        dell.jobs.retain(|job| job.id != id);
    }
    Ok(())
}

/// Makes a job of what is staged without one.
pub(super) fn create(machine: &mut Machine, now: LabTime, body: &Value) -> Result<Reply, Refusal> {
    let mut dell = Dell::of(machine);
    let target = body["TargetSettingsURI"].as_str().unwrap_or_default().to_owned();
    if !target.ends_with("/Bios/Settings") && !target.ends_with("/DellBootSources/Settings") {
        return Err(Refusal::parameter("TargetSettingsURI"));
    }
    if dell.is_committed() {
        return Err(said::lc_busy());
    }
    if dell.staged_bios.is_empty() && dell.staged_boot.is_none() {
        return Err(said::nothing_staged());
    }
    let id = dell.add_job(now.0.as_secs_f64(), false);
    dell.keep(machine);
    Ok(Reply::ok(said::success()).with_status(StatusCode::OK).at(format!("{JOBS}/{id}")))
}

/// A job as Dell's own resource.
pub(super) fn resource(machine: &Machine, job: &Job, now: LabTime, path: &str) -> Value {
    let lc_in_use = job.state == JobState::New && lc_status(machine, &Dell::of(machine), now).is_some();
    let (state, percent, id, message) = match job.state {
        JobState::New if lc_in_use => (
            "New",
            0,
            "JCP022",
            "Lifecycle Controller in use, this job will start when Lifecycle Controller is available.",
        ),
        JobState::New => ("New", 0, "JCP000", "Job waiting to be scheduled."),
        JobState::Scheduled if job.stuck => ("Scheduled", 1, "PR30", "Job processing initialization failure."),
        JobState::Scheduled => ("Scheduled", 0, "JCP001", "Task successfully scheduled."),
        JobState::Running => ("Running", 1, "PR20", "Job in progress."),
        JobState::Completed => ("Completed", 100, "PR19", "Job completed successfully."),
        JobState::Failed => ("Failed", 100, "PR21", "Job failed."),
    };
    json!({
        "@odata.context": "/redfish/v1/$metadata#DellJob.DellJob",
        "@odata.type": "#DellJob.v1_5_0.DellJob",
        "@odata.id": path,
        "Id": job.id,
        "Name": "Configure: BIOS.Setup.1-1",
        "Description": "Job Instance",
        "JobState": state,
        "JobType": "BIOSConfiguration",
        "Message": message,
        "MessageId": id,
        "MessageArgs": [],
        "MessageArgs@odata.count": 0,
        "PercentComplete": percent,
        "ActualRunningStartTime": 0,
        "ActualRunningStopTime": 0,
        "StartTime": calendar(job.made_s),
        "EndTime": "TIME_NA",
        "CompletionTime": (!job.is_unfinished()).then(|| calendar(job.since_s)),
        "TargetSettingsURI": null,
    })
}

/// Lab time as the iDRAC's clock writes it: its own, without a zone.
fn calendar(lab_s: f64) -> String {
    let start = Timestamp::from_second(1_767_225_600).unwrap_or_default();
    let at = start + SignedDuration::from_secs(lab_s as i64);
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The service that deletes jobs.
pub(super) fn service(machine: &Machine, path: &str) -> Value {
    let action = |name: &str| json!({"target": format!("{path}/Actions/DellJobService.{name}")});
    json!({
        "@odata.context": "/redfish/v1/$metadata#DellJobService.DellJobService",
        "@odata.type": "#DellJobService.v1_2_0.DellJobService",
        "@odata.id": path,
        "Id": "Job Service",
        "Name": "DellJobService",
        "Description": "The DellJobService resource provides some actions to support Job management functionality.",
        "CurrentNumberOfJobs": Dell::of(machine).jobs.len(),
        "MaximumNumberOfJobs": 256,
        "DeleteOnCompletionTimeoutMinutes": 2880,
        "StartAutoDeleteAtThreshold": 128,
        "Actions": {"#DellJobService.DeleteJobQueue": action("DeleteJobQueue")},
    })
}

/// The service that tells whether the Lifecycle Controller is ready.
pub(super) fn lc_service(path: &str) -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#DellLCService.DellLCService",
        "@odata.type": "#DellLCService.v1_3_0.DellLCService",
        "@odata.id": path,
        "Id": "DellLCService",
        "Name": "DellLCService",
        "Description": "The DellLCService resource provides some actions to support Lifecycle Controller functionality.",
        "Actions": {"#DellLCService.GetRemoteServicesAPIStatus": {
            "target": format!("{MANAGER}/Oem/Dell/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus"),
        }},
    })
}
