//! How an XCC speaks: the frame of its resources, and its refusals.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::lab::bmc::said::Refusal;
pub(super) use crate::lab::bmc::tree::said;

/// A collection.
pub(super) fn list(path: &str, kind: &str, ids: impl IntoIterator<Item = String>) -> Value {
    let members: Vec<Value> = ids.into_iter().map(|id| json!({"@odata.id": format!("{path}/{id}")})).collect();
    let name = format!("{kind}Collection");
    said(
        path,
        &format!("{name}.{name}"),
        json!({
            "Name": name,
            "Description": format!("A collection of {kind} resource instances."),
            "Members@odata.count": members.len(),
            "Members": members,
        }),
    )
}

/// The body of a refusal.
pub(super) fn body(refusal: &Refusal) -> Value {
    json!({"error": {
        "code": "Base.1.15.GeneralError",
        "message": "A general error has occurred. See ExtendedInfo for more information",
        "@Message.ExtendedInfo": [{
            "MessageId": format!("Base.1.15.{}", refusal.id),
            "Message": refusal.message,
            "MessageArgs": refusal.args,
            "RelatedProperties": [],
            "Severity": refusal.severity,
            "Resolution": refusal.resolution,
        }],
    }})
}

pub(super) fn precondition_missing() -> Refusal {
    Refusal::new(
        StatusCode::PRECONDITION_REQUIRED,
        "PreconditionRequired",
        "A precondition header or annotation is required to change this resource.",
        &[],
        "Critical",
        "Try the operation again using an If-Match or If-None-Match header and appropriate ETag.",
    )
}

/// The last change of this password is too young for another.
pub(super) fn too_soon() -> Refusal {
    Refusal::new(
        StatusCode::BAD_REQUEST,
        "PropertyValueConflict",
        "The password cannot be changed before the minimum password change interval has passed.",
        &["Password", "MinimumPasswordChangeIntervalHours"],
        "Warning",
        "Wait until the interval has passed, or shorten it, and resubmit the request.",
    )
}
