//! The iDRAC's queue of jobs, and the Lifecycle Controller that works on it.

use serde_json::json;

use super::boot::listed;
use crate::clients::redfish::dialect::{At, Job, JobState};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::resource::Resource;
use crate::clients::redfish::standard::found;
use crate::domain::text::neutralize_to;

/// The queue: all generations from iDRAC9 4.x link it.
pub(super) fn queue(at: At<'_>) -> String {
    let linked = at.manager.link("/Links/Oem/Dell/Jobs");
    linked.unwrap_or_else(|| format!("{}/Jobs", at.manager.path.trim_end_matches('/')))
}

/// Unfinished jobs that hold settings of the host's firmware, whoever made them.
pub(super) async fn unfinished(at: At<'_>) -> Result<Vec<Job>, RedfishError> {
    let members = listed(at, &queue(at)).await?.map(|listing| listing.members).unwrap_or_default();
    // One that will never run is a failed one, and holds the settings all the same (Q27).
    let mut jobs: Vec<Job> =
        members.iter().filter(|job| is_of_firmware(job) && !has_ended(job)).map(job_from).collect();
    if jobs.iter().any(|job| job.state == JobState::Scheduled) && is_in_post(at).await? {
        for job in jobs.iter_mut().filter(|job| job.state == JobState::Scheduled) {
            job.state = JobState::Running;
        }
    }
    Ok(jobs)
}

/// How a job stands.
pub(super) async fn one(at: At<'_>, id: &str) -> Result<Job, RedfishError> {
    let path = format!("{}/{id}", queue(at).trim_end_matches('/'));
    let mut job = job_from(&at.redfish.get(&path).await?);
    // The host is past its power on and not yet past its firmware: this boot takes the job in.
    if job.state == JobState::Scheduled && is_in_post(at).await? {
        job.state = JobState::Running;
    }
    Ok(job)
}

/// Whether a job is there and has not ended.
pub(super) async fn is_unfinished(at: At<'_>, id: &str) -> Result<bool, RedfishError> {
    let path = format!("{}/{id}", queue(at).trim_end_matches('/'));
    Ok(found(at.redfish.get(&path).await)?.is_some_and(|job| !has_ended(&job)))
}

fn is_of_firmware(job: &Resource) -> bool {
    match job.text("JobType") {
        Some(kind) => kind.to_ascii_uppercase().contains("BIOSCONFIGURATION"),
        None => job.text("Name").is_some_and(|name| name.to_ascii_uppercase().contains("BIOS.SETUP")),
    }
}

fn has_ended(job: &Resource) -> bool {
    let ends = ["Completed", "CompletedWithErrors", "Failed", "RebootCompleted", "RebootFailed"];
    job.text("JobState").is_some_and(|state| ends.contains(&state.as_str()))
}

fn job_from(job: &Resource) -> Job {
    let word = |name| job.text(name).unwrap_or_default();
    let (state, id, message) = (word("JobState"), word("MessageId"), word("Message"));
    let said = [state.as_str(), id.as_str(), message.as_str()].into_iter().filter(|text| !text.is_empty());
    let said = neutralize_to(&said.collect::<Vec<_>>().join(" "), 300);
    Job { id: job.id(), state: state_of(&state, &id, &message), said }
}

/// The iDRAC has more words than there are states. One that is not known is not an end.
fn state_of(state: &str, message_id: &str, message: &str) -> JobState {
    let ends = |id: &str| message_id.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(id));
    let low = message.to_ascii_lowercase();
    match state {
        "Completed" | "RebootCompleted" => JobState::Done,
        "Failed" | "CompletedWithErrors" | "RebootFailed" => JobState::Failed,
        "Running" => JobState::Running,
        // It stays so for ever (Q27).
        "Scheduled" if ends("PR30") || low.contains("initialization failure") => JobState::Failed,
        "Scheduled" if ends("JCP001") || message_id.is_empty() && low.contains("scheduled") => JobState::Scheduled,
        _ => JobState::New,
    }
}

/// Whether the host is in its firmware's part of a boot; `false` where the iDRAC does not say.
async fn is_in_post(at: At<'_>) -> Result<bool, RedfishError> {
    match status(at).await {
        Ok(status) => Ok(status.is_some_and(|status| status.text("ServerStatus").as_deref() == Some("InPOST"))),
        Err(RedfishError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why the Lifecycle Controller takes nothing now.
pub(super) async fn not_ready(at: At<'_>) -> Result<Option<String>, RedfishError> {
    let status = match status(at).await {
        Ok(Some(status)) => status,
        Ok(None) => return Ok(None),
        Err(RedfishError::Busy { reason, .. }) => return Ok(Some(format!("the iDRAC is not ready: '{reason}'"))),
        Err(error) => return Err(error),
    };
    let word = |name: &str| status.text(name);
    let (lc, rt) = (word("LCStatus").or_else(|| word("Status")), word("RTStatus"));
    Ok(match (lc.as_deref(), rt.as_deref()) {
        (Some("Ready"), Some("NotReady")) => Some("the iDRAC's data is not ready (RTStatus 'NotReady')".to_owned()),
        (Some("Ready") | None, _) => None,
        (Some(other), _) => Some(format!("the Lifecycle Controller is '{other}'")),
    })
}

/// What the Lifecycle Controller says of itself and of the host; `None` where it cannot be asked, as in a rehearsal.
async fn status(at: At<'_>) -> Result<Option<Resource>, RedfishError> {
    let Some(path) = at.manager.link("/Links/Oem/Dell/DellLCService") else { return Ok(None) };
    let Some(service) = found(at.redfish.get(&path).await)? else { return Ok(None) };
    let action = "/Actions/#DellLCService.GetRemoteServicesAPIStatus/target";
    let Some(target) = service.text(action).filter(|target| target.starts_with('/')) else { return Ok(None) };
    match at.redfish.inquire(&target, &json!({})).await {
        Ok(body) => Ok(body.map(|body| Resource { path: target, body, etag: None })),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idracs_words_for_a_job_are_told_apart() {
        let table = [
            ("New", "JCP000", "Job waiting to be scheduled.", JobState::New),
            ("New", "JCP022", "Lifecycle Controller in use, this job will start when it is available.", JobState::New),
            ("Scheduling", "", "", JobState::New),
            ("Scheduled", "JCP001", "Task successfully scheduled.", JobState::Scheduled),
            ("Scheduled", "IDRAC.2.7.JCP001", "", JobState::Scheduled),
            ("Scheduled", "", "Task successfully scheduled.", JobState::Scheduled),
            ("Scheduled", "PR30", "Job processing initialization failure.", JobState::Failed),
            ("Scheduled", "", "Job processing initialization failure.", JobState::Failed),
            ("Scheduled", "XYZ1", "Something else.", JobState::New),
            ("Running", "PR20", "Job in progress.", JobState::Running),
            ("Completed", "PR19", "Job completed successfully.", JobState::Done),
            ("CompletedWithErrors", "PR39", "Job completed with errors.", JobState::Failed),
            ("Failed", "PR21", "Job failed.", JobState::Failed),
            ("Pondering", "", "", JobState::New),
        ];
        for (state, id, message, want) in table {
            assert_eq!(state_of(state, id, message), want, "{state} {id} {message}");
        }
    }
}
