//! Says what a refusal of NetBox means for a run: code, sentence, and what its owner does next.

use super::NetBox;
use super::error::NetBoxError;
use crate::clients::http::HttpError;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;

impl NetBox {
    /// A failure for an error of this NetBox. The sentence names what was asked of whom.
    pub fn failure(&self, error: &NetBoxError, phase: Phase) -> Failure {
        let url = self.url().as_str().trim_end_matches('/');
        let (code, action) = match error {
            NetBoxError::Http(HttpError::Tls { .. }) => {
                let action = format!(
                    "set trust in [netbox] of the configuration to what {url} shows, or give it another certificate"
                );
                return Failure::new(FailureCode::NetboxUnreachable, phase, error.to_string(), action).final_now();
            }
            NetBoxError::Http(HttpError::CutShort { .. }) => {
                let action = format!("find out what cuts off the answers of {url}, then run again");
                let failure = Failure::new(FailureCode::NetboxAnswerUnexpected, phase, error.to_string(), action);
                return Failure { retryable: true, ..failure };
            }
            NetBoxError::Http(http) if http.is_transient() => (
                FailureCode::NetboxUnreachable,
                format!("check that NetBox runs and answers at {url} from here (url in [netbox] of the configuration)"),
            ),
            NetBoxError::Http(HttpError::Setup { .. }) => {
                (FailureCode::InternalError, "mend [netbox] of the configuration".to_owned())
            }
            NetBoxError::Http(HttpError::ReadOnly { .. }) => (
                FailureCode::InternalError,
                "enroll the host to see what comes after this step: a plan cannot foresee it".to_owned(),
            ),
            NetBoxError::Http(_) => (
                FailureCode::NetboxAnswerUnexpected,
                format!("check that NetBox itself answers at {url} and nothing stands between"),
            ),
            NetBoxError::Token { .. } => (
                FailureCode::NetboxRefused,
                format!("put a valid API token of {url} where token in [netbox] of the configuration points"),
            ),
            NetBoxError::Permission { asked, .. } => (FailureCode::NetboxRefused, grant(asked)),
            NetBoxError::NotFound { asked, .. } => (
                FailureCode::NetboxDataMissing,
                format!("check in NetBox that the object exists; if it does, {}", grant(asked)),
            ),
            NetBoxError::Invalid { .. } => {
                (FailureCode::NetboxAnswerUnexpected, format!("mend in NetBox at {url} what it complains about"))
            }
            NetBoxError::UnknownTag { slug, .. } => (
                FailureCode::NetboxDataMissing,
                format!("create the tag '{slug}' in NetBox at {url}/extras/tags/, then run again"),
            ),
            NetBoxError::Conflict { .. } => (
                FailureCode::NetboxWriteConflict,
                "run again; if it stays, find who else writes this object in NetBox's change log".to_owned(),
            ),
            NetBoxError::Throttled { .. } => (
                FailureCode::NetboxUnreachable,
                format!("run again later, or raise the rate limit for muster in front of {url}"),
            ),
            NetBoxError::Server { .. } => {
                (FailureCode::NetboxUnreachable, format!("look into the log of NetBox at {url}, then run again"))
            }
            NetBoxError::Redirect { .. } => (
                FailureCode::NetboxAnswerUnexpected,
                "set url in [netbox] of the configuration to where NetBox really is".to_owned(),
            ),
            NetBoxError::NotJson { .. } => (
                FailureCode::NetboxAnswerUnexpected,
                format!("check that url in [netbox] of the configuration ('{url}') is NetBox's own"),
            ),
            NetBoxError::Schema { .. } | NetBoxError::TooLong { .. } => (
                FailureCode::NetboxAnswerUnexpected,
                format!("check whether NetBox at {url} was upgraded; this version of muster cannot read its answer"),
            ),
            NetBoxError::Ignored { .. } => (
                FailureCode::NetboxAnswerUnexpected,
                format!("check that NetBox itself answers at {url}, and no cache that knows no filters"),
            ),
            NetBoxError::EmptyFilter { .. } => {
                (FailureCode::InternalError, "report this as a defect of muster".to_owned())
            }
        };
        Failure::new(code, phase, error.to_string(), action)
    }
}

/// What to grant to the token for a request: `GET /api/dcim/devices/` needs `view` on `dcim.device`.
fn grant(asked: &str) -> String {
    let (method, path) = asked.split_once(' ').unwrap_or(("GET", asked));
    let Some(object) = object_type(path) else {
        return "grant the token's user the permission that the request needs in NetBox".to_owned();
    };
    match method {
        "PATCH" => format!("grant the token's user 'change' on {object} in NetBox and let the token write"),
        _ => format!("grant the token's user 'view' on {object} in NetBox"),
    }
}

/// NetBox's name of what a path of its API holds.
fn object_type(path: &str) -> Option<&'static str> {
    let (_, path) = path.split_once("/api/")?;
    let mut parts = path.split('/');
    Some(match (parts.next()?, parts.next()?) {
        ("dcim", "devices") => "dcim.device",
        ("dcim", "device-types") => "dcim.devicetype",
        ("dcim", "device-roles") => "dcim.devicerole",
        ("dcim", "sites") => "dcim.site",
        ("dcim", "locations") => "dcim.location",
        ("dcim", "racks") => "dcim.rack",
        ("dcim", "mac-addresses") => "dcim.macaddress",
        ("dcim", "interfaces") => "dcim.interface",
        ("dcim", "cables") => "dcim.cable",
        ("ipam", "ip-addresses") => "ipam.ipaddress",
        ("extras", "tags") => "extras.tag",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_permission_is_named_as_netbox_names_it() {
        assert_eq!(grant("GET /api/dcim/cables/"), "grant the token's user 'view' on dcim.cable in NetBox");
        assert_eq!(
            grant("PATCH /netbox/api/dcim/devices/7/"),
            "grant the token's user 'change' on dcim.device in NetBox and let the token write"
        );
    }
}
