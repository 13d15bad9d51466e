//! Ironic's answers: its two shapes of errors, and versions in headers.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::http::json_answer;

/// Lowest and highest microversion, minor numbers.
pub(super) const MIN: u32 = 1;
pub(super) const MAX: u32 = 115;

/// Why a request is refused.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    /// Inner error with `faultcode`, `faultstring`, `debuginfo`.
    Fault(StatusCode, String),
    /// Inner error with `code`, `title`, `description`.
    Titled(StatusCode, String),
    /// The node's lock is held: tried again for a while before it is said.
    Locked(String),
}

impl Refusal {
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::Fault(StatusCode::BAD_REQUEST, text.into())
    }

    pub fn conflict(text: impl Into<String>) -> Refusal {
        Refusal::Fault(StatusCode::CONFLICT, text.into())
    }

    pub fn missing(text: impl Into<String>) -> Refusal {
        Refusal::Fault(StatusCode::NOT_FOUND, text.into())
    }

    /// Something above the version that was asked for.
    pub fn unacceptable() -> Refusal {
        Refusal::Fault(StatusCode::NOT_ACCEPTABLE, "Request not acceptable.".to_owned())
    }

    /// A path that this version does not have.
    pub fn no_path() -> Refusal {
        Refusal::Titled(StatusCode::NOT_FOUND, String::new())
    }

    pub fn response(&self, version: Option<u32>) -> Response {
        let quoted = |text: &str| Value::from(text).to_string();
        let fault = |code: &str, text: &str| {
            format!("{{\"faultcode\": \"{code}\", \"faultstring\": {}, \"debuginfo\": null}}", quoted(text))
        };
        let (status, inner) = match self {
            Refusal::Fault(status, text) => {
                (*status, fault(if status.is_server_error() { "Server" } else { "Client" }, text))
            }
            Refusal::Titled(status, text) => {
                let (code, title) = (status.as_u16(), quoted(status.canonical_reason().unwrap_or_default()));
                (*status, format!("{{\"code\": {code}, \"title\": {title}, \"description\": {}}}", quoted(text)))
            }
            Refusal::Locked(node) => {
                let text = format!(
                    "Node {node} is locked by host {CONDUCTOR}, please retry after the current operation is completed."
                );
                (StatusCode::CONFLICT, fault("Client", &text))
            }
        };
        // JSON in a JSON string, as the real one has it, blanks and order included.
        stamped(json_answer(status, &json!({"error_message": inner})), version)
    }
}

/// The name of the only conductor.
pub(super) const CONDUCTOR: &str = "conductor-1";

/// An answer to be.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub status: StatusCode,
    pub body: Option<Value>,
    pub location: Option<String>,
}

impl Reply {
    pub fn ok(body: Value) -> Reply {
        Reply { status: StatusCode::OK, body: Some(body), location: None }
    }

    pub fn created(body: Value, location: String) -> Reply {
        Reply { status: StatusCode::CREATED, body: Some(body), location: Some(location) }
    }

    pub fn accepted(location: Option<String>) -> Reply {
        Reply { status: StatusCode::ACCEPTED, body: None, location }
    }

    pub fn no_content(location: Option<String>) -> Reply {
        Reply { status: StatusCode::NO_CONTENT, body: None, location }
    }

    pub fn response(self, version: u32) -> Response {
        let mut response = match &self.body {
            Some(body) => json_answer(self.status, body),
            None => self.status.into_response(),
        };
        if let Some(location) = self.location.and_then(|text| HeaderValue::from_str(&text).ok()) {
            response.headers_mut().insert("location", location);
        }
        stamped(response, Some(version))
    }
}

/// Adds the version headers; the used version only where there is one.
fn stamped(mut response: Response, version: Option<u32>) -> Response {
    let mut set = |name: &'static str, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    };
    set("x-openstack-ironic-api-minimum-version", format!("1.{MIN}"));
    set("x-openstack-ironic-api-maximum-version", format!("1.{MAX}"));
    if let Some(version) = version {
        set("x-openstack-ironic-api-version", format!("1.{version}"));
    }
    set("openstack-request-id", format!("req-{}", uuid::Uuid::new_v4()));
    response
}

/// The version that a request asks for: none is the lowest.
pub(super) fn version(header: Option<&str>) -> Result<u32, Refusal> {
    let refuse = |text: String| Err(Refusal::Titled(StatusCode::NOT_ACCEPTABLE, text));
    let Some(text) = header else { return Ok(MIN) };
    if text.eq_ignore_ascii_case("latest") {
        return Ok(MAX);
    }
    let Some((major, minor)) =
        text.split_once('.').and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)))
    else {
        return refuse("Invalid value for X-OpenStack-Ironic-API-Version header".to_owned());
    };
    if major != 1 || !(MIN..=MAX).contains(&minor) {
        return refuse(format!(
            "Version {text} was requested but the minor version is not supported by this service. The supported version \
             range is: [1.{MIN}, 1.{MAX}]."
        ));
    }
    Ok(minor)
}

/// HTTP basic's own shape of a refusal.
pub(super) fn unauthorized(status: StatusCode, text: &str) -> Response {
    let mut response = json_answer(status, &json!({"error": {"message": text, "code": status.as_u16()}}));
    if status == StatusCode::UNAUTHORIZED {
        let realm = HeaderValue::from_static("Basic realm=\"Baremetal API\"");
        response.headers_mut().insert("www-authenticate", realm);
    }
    response
}
