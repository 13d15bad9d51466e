//! How a MegaRAC speaks: the frame of its resources, and its refusals.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::lab::bmc::said::Refusal;
pub(super) use crate::lab::bmc::tree::said;

/// The id of a refusal that comes as a page.
const PAGE: &str = "Page";

/// A collection.
pub(super) fn list(path: &str, kind: &str, ids: impl IntoIterator<Item = String>) -> Value {
    let members: Vec<Value> = ids.into_iter().map(|id| json!({"@odata.id": format!("{path}/{id}")})).collect();
    let collection = format!("{kind}Collection");
    said(
        path,
        &format!("{collection}.{collection}"),
        json!({
            "Name": format!("{kind} Collection"),
            "Description": format!("The collection for {kind}"),
            "Members@odata.count": members.len(),
            "Members": members,
        }),
    )
}

/// The body of a refusal; a text is a page.
pub(super) fn body(refusal: &Refusal) -> Value {
    if refusal.id == PAGE {
        let text = &refusal.message;
        return json!(format!("<html><head><title>{text}</title></head><body>{text}</body></html>"));
    }
    let own = ["PreconditionHeaderMissing", "PreconditionFailed"].contains(&refusal.id);
    let registry = if own { "Ami.1.0" } else { "Base.1.8" };
    json!({"error": {
        "code": format!("{registry}.{}", refusal.id),
        "message": refusal.message,
        "@Message.ExtendedInfo": [{
            "@odata.type": "#Message.v1_0_8.Message",
            "MessageId": format!("{registry}.{}", refusal.id),
            "Message": refusal.message,
            "MessageArgs": refusal.args,
            "Severity": refusal.severity,
            "Resolution": refusal.resolution,
        }],
    }})
}

pub(super) fn header_missing() -> Refusal {
    Refusal::new(
        StatusCode::PRECONDITION_REQUIRED,
        "PreconditionHeaderMissing",
        "The request did not provide the required precondition, such as an If-Match or If-None-Match header.",
        &[],
        "Critical",
        "Include the required precondition header in the request",
    )
}

/// Its own tag is refused as well as any other.
pub(super) fn header_failed() -> Refusal {
    Refusal::new(
        StatusCode::PRECONDITION_FAILED,
        "PreconditionFailed",
        "The request cannot be completed because the If-Match precondition failed",
        &[],
        "Critical",
        "None",
    )
}

/// The host is in its POST.
pub(super) fn booting(as_page: bool) -> Refusal {
    if as_page {
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, PAGE, "503 Service Unavailable", &[], "", "");
    }
    Refusal::busy()
}

/// The settings object takes nothing.
pub(super) fn settings_refused(property: &str) -> Refusal {
    let message = format!("The property {property} cannot be set at this resource.");
    Refusal::new(StatusCode::BAD_REQUEST, "PropertyNotWritable", &message, &[property], "Warning", "None")
}
