//! What can go wrong between this client and a BMC, told apart where the answer allows it.

use std::time::Duration;

use crate::clients::http::HttpError;

/// Why a request to a BMC brought nothing that can be used. Texts of the BMC in it are safe to show.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedfishError {
    #[error(transparent)]
    Http(#[from] HttpError),
    /// 401: wrong credential, or a right one while the account is locked.
    #[error("{asked}: the BMC refused the credential of '{user}'{}", because(.reason))]
    Unauthorized {
        asked: String,
        user: String,
        reason: String,
        /// The BMC says that the account is locked or its client blocked.
        locked: bool,
    },
    /// The password must be changed before anything else is answered.
    #[error("{asked}: the BMC wants the password of '{}' changed first", .account.as_deref().unwrap_or(.user))]
    PasswordChangeRequired {
        asked: String,
        user: String,
        /// The account resource to change, where the BMC names it.
        account: Option<String>,
    },
    /// 403 for other reasons: the role lacks a privilege, or an access rule.
    #[error("{asked}: the BMC denies this to '{user}'{}", because(.reason))]
    Forbidden { asked: String, user: String, reason: String },
    /// Its lockdown mode is on: it takes no change until somebody switches that off.
    #[error("{asked}: the BMC is in lockdown mode and takes no change{}", because(.reason))]
    LockedDown { asked: String, reason: String },
    /// The board has no licence for this feature.
    #[error("{asked}: the BMC has no licence for this{}", because(.reason))]
    NotLicensed { asked: String, reason: String },
    #[error("{asked}: the BMC has no such resource")]
    NotFound { asked: String },
    /// Busy for the whole budget (B18), or for one look where nobody waits.
    #[error("{asked}: the BMC answers {status}{} ({tries} tries in {} s)", because(.reason), waited.as_secs())]
    Busy { asked: String, status: u16, reason: String, retry_after: Option<Duration>, tries: u32, waited: Duration },
    /// All sessions of the BMC are taken: not busy, and waiting does not help for long.
    #[error("{asked}: all sessions of the BMC are taken{}", because(.reason))]
    SessionsFull { asked: String, reason: String },
    /// 412 or 428 with every form of the precondition.
    #[error("{asked}: the BMC accepts no form of If-Match ({status}){}", because(.reason))]
    Precondition { asked: String, status: u16, reason: String },
    /// Any other refusal.
    #[error("{asked}: the BMC answers {status}{}", because(.reason))]
    Refused { asked: String, status: u16, reason: String, said: super::said::Said },
    /// A redirect that is not followed: to another host, or around in a circle.
    #[error("{asked}: the BMC redirects to '{to}', which is not followed")]
    Redirect { asked: String, to: String },
    /// A good answer without what it has to have.
    #[error("{path}: {what}")]
    Unusable { path: String, what: String },
}

impl RedfishError {
    /// Whether the resource is simply not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, RedfishError::NotFound { .. }) || matches!(self, RedfishError::Refused { status: 405 | 501, .. })
    }

    /// Whether the write meets settings that a job holds already: there is something to be done about that job, and no use in
    /// asking again (Q24).
    pub fn is_already_committed(&self) -> bool {
        match self {
            RedfishError::Refused { said, .. } => {
                said.has("SYS011") || said.text.to_ascii_lowercase().contains("already committed")
            }
            _ => false,
        }
    }

    /// Whether one broken resource says nothing about the BMC as a whole: its collection can be read on without it. A
    /// lost connection, a refused login or a busy BMC is not of this kind (C-33).
    pub fn is_of_one_resource(&self) -> bool {
        match self {
            RedfishError::NotFound { .. }
            | RedfishError::Forbidden { .. }
            | RedfishError::NotLicensed { .. }
            | RedfishError::Refused { .. }
            | RedfishError::Redirect { .. }
            | RedfishError::Unusable { .. }
            | RedfishError::Precondition { .. } => true,
            RedfishError::Http(e) => {
                use HttpError::{CutShort, NotJson, TooHeavy, TooLarge};
                matches!(e, NotJson { .. } | CutShort { .. } | TooLarge { .. } | TooHeavy { .. })
            }
            RedfishError::Unauthorized { .. }
            | RedfishError::PasswordChangeRequired { .. }
            | RedfishError::LockedDown { .. }
            | RedfishError::Busy { .. }
            | RedfishError::SessionsFull { .. } => false,
        }
    }
}

/// What is wrong with a BMC's TLS: four things that different people mend differently (C-35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsTrouble {
    /// No CA that the site trusts has signed it, or it is not the pinned one.
    Untrusted,
    Expired,
    WrongName,
    /// There is no TLS at that port, or none in a form that is spoken here.
    NotTls,
}

/// What an error of the connection says of TLS; `None` where it is about something else.
pub fn tls_trouble(error: &HttpError) -> Option<TlsTrouble> {
    let (cause, is_tls) = match error {
        HttpError::Tls { cause, .. } => (cause, true),
        HttpError::Connect { cause, .. } | HttpError::Broken { cause, .. } => (cause, false),
        _ => return None,
    };
    let low = cause.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if says(&["expired", "notvalidyet", "not valid yet"]) {
        Some(TlsTrouble::Expired)
    } else if says(&["notvalidforname", "not valid for name", "name mismatch"]) {
        Some(TlsTrouble::WrongName)
    } else if says(&["corrupt message", "invalidcontenttype", "handshake", "fatal alert", "peer is incompatible"])
        // A TCP connection that is refused says so; one that is reset while connecting was reset in the handshake.
        || matches!(error, HttpError::Connect { .. }) && says(&["connection reset", "unexpected eof", "unexpectedeof"])
    {
        Some(TlsTrouble::NotTls)
    } else {
        is_tls.then_some(TlsTrouble::Untrusted)
    }
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": '{reason}'") }
}
