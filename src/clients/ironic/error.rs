//! What Ironic's refusals mean. Its faults are JSON inside a JSON string, but not always.

use serde_json::Value;

use super::guard::Refusal;
use super::versions::{Apart, Microversion, Spoken};
use crate::clients::http::{Answer, HttpError};
use crate::clients::keystone::KeystoneError;
use crate::clients::vault::VaultError;
use crate::domain::text::neutralize_to;

/// Why Ironic did not do what it was asked. `said` is Ironic's own text, safe to show.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IronicError {
    /// 409 `NodeLocked`: another operation holds the node. The only conflict that waiting mends (E15).
    #[error("{said}")]
    Locked { holder: Option<String>, said: String },
    /// Every other 409.
    #[error("{said}")]
    Conflict { kind: ConflictKind, said: String },
    /// 503 for want of a free worker.
    #[error("{said}")]
    NoConductor { said: String },
    /// 400: Ironic refuses the request as wrong, or as wrong in this state.
    #[error("{asked}: {said}")]
    Invalid { asked: String, said: String },
    #[error("{asked}: Ironic at {host} does not know who asks (401): {said}")]
    Unauthorized { asked: String, host: String, said: String },
    #[error("{asked}: Ironic at {host} does not allow it (403): {said}")]
    Forbidden { asked: String, host: String, said: String },
    #[error("{asked}: {said}")]
    NotFound { asked: String, said: String },
    /// 406: the API version is not one of its own, or has no such thing.
    #[error("{asked}: {said}")]
    Version { asked: String, said: String },
    #[error(
        "Ironic at {host} speaks API versions up to {had} ({}); muster needs {needed} ({}) for {feature}",
        had.release(), needed.release()
    )]
    TooOld { host: String, feature: &'static str, needed: Microversion, had: Microversion },
    #[error(
        "Ironic at {host} no longer speaks API versions below {min}; this muster knows them up to {}",
        Microversion::KNOWN
    )]
    TooNew { host: String, min: Microversion },
    /// The header that asks for a version does not arrive, or the answer is one of another version.
    #[error(
        "{asked}: Ironic at {host} was asked in API version {sent} and answered {}: something on the way takes the header \
         'X-OpenStack-Ironic-API-Version' away",
        used.map_or("as an older one does".to_owned(), |used| format!("in {used}"))
    )]
    Stripped { asked: String, host: String, sent: Microversion, used: Option<Microversion> },
    #[error("{asked}: this is no Ironic API: it answers '{read}'")]
    NotIronic { asked: String, read: String },
    #[error("{asked}: Ironic at {host} answered {status}: {said}")]
    Server { asked: String, host: String, status: u16, said: String },
    /// A status that has no meaning here, such as a redirect.
    #[error("{asked}: Ironic at {host} answered {status}: {said}")]
    Unexpected { asked: String, host: String, status: u16, said: String },
    /// A good status, and a body that lacks what the API promises.
    #[error("{asked}: {what}")]
    Malformed { asked: String, what: String },
    /// The request would break a rule of enrollment, and was not sent.
    #[error(transparent)]
    Guarded(#[from] Refusal),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Keystone(#[from] KeystoneError),
    #[error("the credential for Ironic: {0}")]
    Vault(#[from] VaultError),
}

/// What a conflict is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictKind {
    /// A port or portgroup with this MAC exists.
    Mac(String),
    /// A node or portgroup with this name exists.
    Name(String),
    /// A node with this UUID exists.
    Uuid(String),
    /// The node belongs to this instance.
    Instance(Option<String>),
    /// The node is on its way from one state to another, or in a state that does not allow the change.
    Transition,
    /// Anything else, an unreadable answer included.
    Other,
}

impl IronicError {
    /// What an answer with a bad status means.
    pub(super) fn of(answer: &Answer, host: &str) -> Self {
        let status = answer.status.as_u16();
        let (asked, host, said) = (answer.asked.clone(), host.to_owned(), said(answer));
        match status {
            400 => IronicError::Invalid { asked, said },
            401 => IronicError::Unauthorized { asked, host, said },
            403 => IronicError::Forbidden { asked, host, said },
            // A page that is no fault of Ironic's says nothing about what Ironic has.
            404 if answer.excerpt().starts_with('<') => IronicError::Unexpected { asked, host, status, said },
            404 => IronicError::NotFound { asked, said },
            406 => IronicError::Version { asked, said },
            409 => match lock_holder(&said) {
                Some(holder) => IronicError::Locked { holder, said },
                None => IronicError::Conflict { kind: conflict(&said), said },
            },
            503 if said.contains("free conductor") => IronicError::NoConductor { said },
            500..=599 => IronicError::Server { asked, host, status, said },
            _ => IronicError::Unexpected { asked, host, status, said },
        }
    }

    /// Why a server with these versions is of no use.
    pub(super) fn apart(apart: Apart, spoken: Spoken, host: String) -> Self {
        match apart {
            Apart::TooOld(need) => {
                IronicError::TooOld { host, feature: need.feature, needed: need.since, had: spoken.max }
            }
            Apart::TooNew => IronicError::TooNew { host, min: spoken.min },
        }
    }

    /// Whether Ironic has certainly not done what it was asked: it said no, or was not asked at all. Of everything else nobody
    /// knows.
    pub fn is_refusal(&self) -> bool {
        match self {
            IronicError::Locked { .. }
            | IronicError::Conflict { .. }
            | IronicError::NoConductor { .. }
            | IronicError::Invalid { .. }
            | IronicError::Unauthorized { .. }
            | IronicError::Forbidden { .. }
            | IronicError::NotFound { .. }
            | IronicError::Version { .. }
            | IronicError::TooOld { .. }
            | IronicError::TooNew { .. }
            | IronicError::NotIronic { .. }
            | IronicError::Guarded(_)
            | IronicError::Keystone(_)
            | IronicError::Vault(_) => true,
            IronicError::Http(error) => matches!(
                error,
                HttpError::Refused { .. }
                    | HttpError::Dns { .. }
                    | HttpError::Connect { .. }
                    | HttpError::Tls { .. }
                    | HttpError::ForeignUrl { .. }
                    | HttpError::Setup { .. }
                    | HttpError::ReadOnly { .. }
            ),
            IronicError::Stripped { .. }
            | IronicError::Server { .. }
            | IronicError::Unexpected { .. }
            | IronicError::Malformed { .. } => false,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, IronicError::NotFound { .. })
    }
}

/// Ironic's own words, from whichever shape they come in; else the beginning of the body.
fn said(answer: &Answer) -> String {
    let text = serde_json::from_slice(&answer.body).ok().and_then(|body: Value| fault(&body, 0));
    match text.filter(|t| !t.trim().is_empty()) {
        Some(text) => neutralize_to(text.trim(), 400),
        None => {
            let excerpt = answer.excerpt();
            if excerpt.is_empty() { format!("{} with an empty body", answer.status) } else { excerpt }
        }
    }
}

/// The text in a fault: `faultstring`, `description` or `message`, however deep it is wrapped.
fn fault(body: &Value, depth: u8) -> Option<String> {
    if depth > 3 {
        return None;
    }
    match body {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => fault(&inner, depth + 1),
            _ => Some(text.clone()),
        },
        Value::Object(map) => ["error_message", "faultstring", "description", "message", "error", "title"]
            .iter()
            .filter_map(|key| map.get(*key))
            .find_map(|value| fault(value, depth + 1).filter(|t| !t.is_empty())),
        _ => None,
    }
}

/// `Some` for a node lock, with the conductor that holds it where the text names one.
fn lock_holder(said: &str) -> Option<Option<String>> {
    let (_, rest) = said.split_once(" is locked by host ")?;
    let holder = rest.split([',', ' ', '<']).next().unwrap_or("").trim_end_matches('.');
    Some((!holder.is_empty()).then(|| holder.to_owned()))
}

fn conflict(said: &str) -> ConflictKind {
    let after = |words: &str| {
        let (_, rest) = said.split_once(words)?;
        let value = rest.split([' ', ',']).next()?.trim_end_matches('.');
        (!value.is_empty()).then(|| value.to_owned())
    };
    if let Some(mac) = after("with MAC address ") {
        ConflictKind::Mac(mac)
    } else if let Some(name) = after("with name ") {
        ConflictKind::Name(name)
    } else if let Some(uuid) = after("A node with UUID ") {
        ConflictKind::Uuid(uuid)
    } else if said.contains(" is associated with instance") {
        ConflictKind::Instance(after("associated with instance "))
    } else if said.contains("state transition") || said.contains("Current state is") || said.contains("provision state")
    {
        ConflictKind::Transition
    } else {
        ConflictKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::http::StatusCode;

    fn of(status: u16, body: &str) -> IronicError {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: Default::default(),
            body: body.into(),
            asked: "PUT /v1/nodes/x".into(),
        };
        IronicError::of(&answer, "ironic.example:6385")
    }

    const LOCK: &str = "Node 11111111-0000-4000-8000-000000000001 is locked by host conductor-2, please retry after the \
                        current operation is completed.";

    /// Proves: E15
    #[test]
    fn a_node_lock_is_seen_in_every_wrapping_and_names_its_holder() {
        let inner = serde_json::json!({"faultcode": "Client", "faultstring": LOCK, "debuginfo": null});
        for body in [
            serde_json::json!({"error_message": inner.to_string()}).to_string(),
            serde_json::json!({"error_message": inner}).to_string(),
            serde_json::json!({"error_message": LOCK}).to_string(),
            serde_json::json!({"error": {"code": 409, "message": LOCK}}).to_string(),
            format!("<html><body>{LOCK}</body></html>"),
        ] {
            match of(409, &body) {
                IronicError::Locked { holder, .. } => assert_eq!(holder.as_deref(), Some("conductor-2"), "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
        assert!(!matches!(of(400, LOCK), IronicError::Locked { .. }));
    }

    /// Case: C-02. Proves: E15, G12
    #[test]
    fn the_other_conflicts_are_told_apart_and_an_unreadable_one_is_no_lock() {
        let cases = include_str!("../../../tests/fixtures/cases/c02-409-other-conflicts.json");
        let cases: Value = serde_json::from_str(cases).unwrap();
        let seen: Vec<IronicError> = cases["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| {
                let body = &case["reply"]["body"];
                let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
                of(case["reply"]["status"].as_u64().unwrap() as u16, &text)
            })
            .collect();
        let kind = |n: usize| match &seen[n] {
            IronicError::Conflict { kind, .. } => kind.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(0), ConflictKind::Mac("52:54:00:10:01:01".into()));
        assert_eq!(kind(1), ConflictKind::Name("gpu-b07-41".into()));
        assert_eq!(kind(2), ConflictKind::Instance(Some("22222222-0000-4000-8000-000000000001".into())));
        assert!(matches!(seen[3], IronicError::NoConductor { .. }));
        assert_eq!(kind(4), ConflictKind::Other);
    }

    #[test]
    fn the_words_are_found_in_every_shape_and_hostile_ones_are_made_safe() {
        for (body, words) in [
            (r#"{"error":{"message":"Authorization required","code":401}}"#, "Authorization required"),
            (
                r#"{"error_message": "{\"code\": 406, \"title\": \"Not Acceptable\", \"description\": \"Version 1.999\"}"}"#,
                "Version 1.999",
            ),
            (
                r#"{"message": "The server is busy", "code": "503 Service Unavailable", "title": "Service Unavailable"}"#,
                "The server is busy",
            ),
            (r#"{"error_message": "{\"code\": 404, \"title\": \"Not Found\", \"description\": \"\"}"}"#, "Not Found"),
            ("", "500 Internal Server Error with an empty body"),
            ("[1,2]", "[1,2]"),
            ("a\u{1b}[2Jb", "a\u{fffd}[2Jb"),
        ] {
            match of(500, body) {
                IronicError::Server { said, .. } => assert_eq!(said, words, "{body}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_change_in_mid_transition_is_no_lock() {
        for text in [
            "Node x can not be updated while a state transition is in progress.",
            "Node x can not have management_interface updated unless it is in one of allowed (enroll) states or in \
             maintenance mode. Current state is 'inspect failed'.",
        ] {
            let body = serde_json::json!({"error_message": text}).to_string();
            assert!(matches!(of(409, &body), IronicError::Conflict { kind: ConflictKind::Transition, .. }), "{text}");
        }
    }
}
