//! What an iDRAC says: its form of a refusal, and the refusals that only it has.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::lab::bmc::said::Refusal;

/// The body of a refusal. What the lab's BMCs have in common is said in this vendor's own words where it has some.
pub(super) fn body(refusal: &Refusal) -> Value {
    let own = match refusal.id {
        "ResourceAtUriUnauthorized" => Some((
            "AccessDenied",
            "The authentication credentials included with this request are missing or invalid.",
            "Critical",
            "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.",
        )),
        "ServiceTemporarilyUnavailable" => Some((
            "SYS518",
            "iDRAC is currently unable to display any information because data sources are unavailable.",
            "Warning",
            "Retry the operation. If the issue persists, reset the iDRAC.",
        )),
        "SessionLimitExceeded" => Some((
            "RAC0218",
            "The maximum number of user sessions is reached.",
            "Informational",
            "Close one or more sessions before opening another session.",
        )),
        _ => None,
    };
    let (id, message, severity, resolution) =
        own.unwrap_or((refusal.id, refusal.message.as_str(), refusal.severity, refusal.resolution));
    let args: &[String] = if own.is_some() { &[] } else { &refusal.args };
    json!({"error": {
        "code": "Base.1.12.GeneralError",
        "message": "A general error has occurred. See ExtendedInfo for more information",
        "@Message.ExtendedInfo": [entry(id, message, args, severity, resolution)],
    }})
}

/// The body of a change that is done.
pub(super) fn success() -> Value {
    json!({"@Message.ExtendedInfo": [
        entry("Success", "Successfully Completed Request", &[], "OK", "None"),
        entry(
            "SYS413",
            "The operation successfully completed.",
            &[],
            "Informational",
            "No response action is required.",
        ),
    ]})
}

/// One message. Dell's own are in another registry than the standard's.
fn entry(id: &str, message: &str, args: &[String], severity: &str, resolution: &str) -> Value {
    let own = id.chars().take(3).all(|c| c.is_ascii_uppercase());
    let registry = if own { "IDRAC.2.8" } else { "Base.1.12" };
    json!({
        "Message": message,
        "MessageArgs": args,
        "MessageArgs@odata.count": args.len(),
        "MessageId": format!("{registry}.{id}"),
        "RelatedProperties": [],
        "RelatedProperties@odata.count": 0,
        "Resolution": resolution,
        "Severity": severity,
    })
}

/// The factory password is in use.
pub(super) fn default_password() -> Refusal {
    Refusal::new(
        StatusCode::FORBIDDEN,
        "SWC1908",
        "Unable to complete the operation because the default password is still in use and must be changed.",
        &[],
        "Critical",
        "Change the default password for the default user using one of the iDRAC interfaces.",
    )
}

/// Lockdown mode is on. Dell's manuals say that an error is displayed, and not which: the id is the lab's own, so that
/// nothing can be built on it.
pub(super) fn locked_down() -> Refusal {
    Refusal::new(
        StatusCode::FORBIDDEN,
        "OperationBlocked",
        "Unable to change the configuration because System Lockdown Mode is enabled.",
        &[],
        "Critical",
        "Turn System Lockdown Mode off and retry the operation.",
    )
}

/// A job holds what is staged.
pub(super) fn committed() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "SYS011",
        "Pending configuration values are already committed, unable to perform another set operation.",
        &[],
        "Warning",
        "Wait for the scheduled job to complete or delete the configuration job before attempting more set attribute operations.",
    )
}

/// A second job is asked for while one is there.
pub(super) fn lc_busy() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "LC068",
        "Unable to create a configuration job because an existing configuration job is already in progress.",
        &[],
        "Critical",
        "Wait for the job to complete or delete it.",
    )
}

pub(super) fn nothing_staged() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "SYS010",
        "There are no pending configuration values to apply.",
        &[],
        "Warning",
        "Set configuration values before creating a job.",
    )
}

pub(super) fn job_is_running(id: &str) -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "SUP019",
        "Unable to delete the job because it is running.",
        &[id],
        "Warning",
        "Wait for the job to complete.",
    )
}

/// Power is already as it is asked for.
pub(super) fn power_as_asked(word: &str) -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "PSU501",
        "Unable to perform the requested power operation because the server is already in that power state.",
        &[word],
        "Warning",
        "Check the power state of the server and retry the operation.",
    )
}

pub(super) fn wrong_type(property: &str) -> Refusal {
    let message =
        format!("The value provided for the property {property} is of a different type than the property can accept.");
    let resolution = "Correct the value for the property in the request body and resubmit the request.";
    Refusal::new(StatusCode::BAD_REQUEST, "PropertyValueTypeError", &message, &[property], "Warning", resolution)
}

pub(super) fn not_in_list(property: &str) -> Refusal {
    let message = format!("The value provided for the property {property} is not in the list of acceptable values.");
    let resolution = "Choose a value from the enumeration list that the implementation can support and resubmit it.";
    Refusal::new(StatusCode::BAD_REQUEST, "PropertyValueNotInList", &message, &[property], "Warning", resolution)
}
