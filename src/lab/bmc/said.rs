//! What a BMC says when it refuses: the message, and the form that Supermicro gives it. Other vendors' trees have their own.

use axum::http::StatusCode;
use serde_json::{Value, json};

/// A refusal: status and message. The vendor's tree makes a body of it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub status: StatusCode,
    /// Last segment of the `MessageId`.
    pub id: &'static str,
    pub message: String,
    pub args: Vec<String>,
    pub severity: &'static str,
    pub resolution: &'static str,
}

impl Refusal {
    pub fn new(
        status: StatusCode,
        id: &'static str,
        message: &str,
        args: &[&str],
        severity: &'static str,
        resolution: &'static str,
    ) -> Refusal {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Refusal { status, id, message: message.to_owned(), args, severity, resolution }
    }

    /// The body as Supermicro has it: one registry for all, an older one with a capital `Message` for a refused login.
    pub fn supermicro(&self) -> Value {
        let text = "A general error has occurred. See ExtendedInfo for more information.";
        let refused = self.status == StatusCode::UNAUTHORIZED;
        let (registry, key) = if refused { ("Base.v1_4_0", "Message") } else { ("Base.v1_10_3", "message") };
        let related = if refused { "unauthorized" } else { "" };
        json!({"error": {
            "code": format!("{registry}.GeneralError"),
            key: text,
            "@Message.ExtendedInfo": [{
                "MessageId": format!("{registry}.{}", self.id),
                "Severity": self.severity,
                "Resolution": self.resolution,
                "Message": self.message,
                "MessageArgs": self.args,
                "RelatedProperties": [related],
            }],
        }})
    }

    pub fn unauthorized(path: &str) -> Refusal {
        let message = format!(
            "While accessing the resource at {path}, the service received an authorization error unauthorized."
        );
        let resolution =
            "Ensure that the appropriate access is provided for the service in order for it to access the URI.";
        let id = "ResourceAtUriUnauthorized";
        Refusal::new(StatusCode::UNAUTHORIZED, id, &message, &[path, "unauthorized"], "Critical", resolution)
    }

    pub fn privilege() -> Refusal {
        Refusal::new(
            StatusCode::FORBIDDEN,
            "InsufficientPrivilege",
            "There are insufficient privileges for the account or credentials associated with the current session to perform the requested operation.",
            &[],
            "Critical",
            "Use an account with the needed privileges.",
        )
    }

    pub fn missing(path: &str) -> Refusal {
        let message = format!("The resource at the URI {path} was not found.");
        let resolution = "Place a valid resource at the URI or correct the URI and resubmit the request.";
        Refusal::new(StatusCode::NOT_FOUND, "ResourceMissingAtURI", &message, &[path], "Critical", resolution)
    }

    pub fn method() -> Refusal {
        let message = "The operation is not allowed on this resource.";
        Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "OperationNotAllowed", message, &[], "Critical", "None")
    }

    pub fn busy() -> Refusal {
        let message = "The service is temporarily unavailable. Retry in 30 seconds.";
        let resolution = "Wait for the indicated retry duration and retry the operation.";
        let id = "ServiceTemporarilyUnavailable";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, id, message, &["30"], "Critical", resolution)
    }

    /// No session is free: not busy, and no wait helps.
    pub fn sessions_full() -> Refusal {
        let message = "The maximum number of user sessions is reached.";
        let resolution = "Close sessions that are not used and retry the operation.";
        let id = "SessionLimitExceeded";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, id, message, &[], "Critical", resolution)
    }

    pub fn precondition() -> Refusal {
        let message = "The ETag supplied did not match the ETag required to change this resource.";
        let resolution = "Try the operation again using the appropriate ETag.";
        Refusal::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message, &[], "Critical", resolution)
    }

    pub fn malformed() -> Refusal {
        let message = "The request body submitted was malformed JSON and could not be parsed by the receiving service.";
        let resolution = "Ensure that the request body is valid JSON and resubmit the request.";
        Refusal::new(StatusCode::BAD_REQUEST, "MalformedJSON", message, &[], "Critical", resolution)
    }

    pub fn unknown(property: &str) -> Refusal {
        let message = format!("The property {property} is not in the list of valid properties for the resource.");
        let resolution = "Remove the unknown property from the request body and resubmit the request.";
        Refusal::new(StatusCode::BAD_REQUEST, "PropertyUnknown", &message, &[property], "Warning", resolution)
    }

    pub fn read_only(property: &str) -> Refusal {
        let message = format!("The property {property} is a read only property and cannot be assigned a value.");
        let resolution = "Remove the property from the request body and resubmit the request.";
        Refusal::new(StatusCode::BAD_REQUEST, "PropertyNotWritable", &message, &[property], "Warning", resolution)
    }

    pub fn value(property: &str) -> Refusal {
        let message =
            format!("The value provided for the property {property} is of a format that the property cannot accept.");
        let resolution = "Correct the value for the property in the request body and resubmit the request.";
        Refusal::new(StatusCode::BAD_REQUEST, "PropertyValueFormatError", &message, &[property], "Warning", resolution)
    }

    pub fn parameter(name: &str) -> Refusal {
        let message = format!("The parameter {name} is missing or is not in the list of acceptable values.");
        let resolution = "Choose a value from the enumeration list and resubmit the request.";
        let id = "ActionParameterValueNotInList";
        Refusal::new(StatusCode::BAD_REQUEST, id, &message, &[name], "Warning", resolution)
    }

    pub fn exists(name: &str) -> Refusal {
        let message = format!(
            "The requested resource of type ManagerAccount with the property UserName with the value {name} already exists."
        );
        let resolution = "Do not repeat the create operation as the resource has already been created.";
        Refusal::new(StatusCode::BAD_REQUEST, "ResourceAlreadyExists", &message, &[name], "Critical", resolution)
    }
}
