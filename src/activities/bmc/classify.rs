//! What an error of the Redfish client means for a run: code, owner, action.

use crate::clients::http::HttpError;
use crate::clients::redfish::error::{RedfishError, TlsTrouble, tls_trouble};
use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::phase::Phase;

/// What to do where a plan comes to a request that it may not send and whose outcome it does not know (G14).
const NOT_FORESEEN: &str = "enroll the host to see what comes after this step: a plan cannot foresee it";

/// Which BMC it is, for messages and actions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub host: &'a str,
    pub site: &'a str,
    /// Item of the vault with the credential.
    pub item: &'a str,
}

/// The failure that an error is.
pub(super) fn failure(error: &RedfishError, place: &Place<'_>, phase: Phase) -> Failure {
    let Place { host, site, item } = *place;
    let of = |code: FailureCode, action: String| Failure::new(code, phase, format!("BMC of '{host}': {error}"), action);
    match error {
        RedfishError::Http(error) => of_connection(error, place, phase),
        RedfishError::Unauthorized { locked: true, user, .. } => of(
            FailureCode::BmcAccountLocked,
            format!(
                "wait until the BMC unlocks '{user}', check the item '{item}' of the vault against the BMC, then retry"
            ),
        ),
        RedfishError::Unauthorized { user, .. } => of(
            FailureCode::BmcAuthFailed,
            format!(
                "put the BMC's right credential into the item '{item}' of the vault, or give the BMC's user '{user}' \
                 the password that is there, then retry; the wrong one was tried once"
            ),
        ),
        RedfishError::PasswordChangeRequired { user, account, .. } => of(
            FailureCode::BmcPasswordChangeRequired,
            format!(
                "give {} of '{host}' the password of the item '{item}' in the BMC's own web page, then retry",
                account
                    .as_ref()
                    .map_or_else(|| format!("the user '{user}'"), |account| format!("the account '{account}'"))
            ),
        ),
        RedfishError::Forbidden { user, .. } => {
            of(FailureCode::BmcRefused, format!("give the BMC's user '{user}' the role Administrator, then retry"))
        }
        RedfishError::LockedDown { .. } => of(
            FailureCode::BmcLockdown,
            format!(
                "switch the lockdown mode of the BMC of '{host}' off (iDRAC: System Lockdown Mode, attribute \
                 Lockdown.1.SystemLockdown), retry, and switch it on again when '{host}' is enrolled"
            ),
        ),
        RedfishError::NotLicensed { .. } => {
            of(FailureCode::BmcRefused, format!("put the licence that it names on the BMC of '{host}', then retry"))
        }
        RedfishError::Busy { .. } => of(
            FailureCode::BmcHttpServiceUnavailable,
            format!("wait until '{host}' has booted and its BMC answers again, then retry"),
        ),
        RedfishError::SessionsFull { .. } => of(
            FailureCode::BmcHttpServiceUnavailable,
            format!("close sessions of the BMC of '{host}' that nobody uses, then retry"),
        )
        .owned_by(Owner::InfraEng),
        RedfishError::NotFound { .. } => of(
            FailureCode::BmcAnswerUnexpected,
            format!("retry; if it stays so, update the firmware of the BMC of '{host}'"),
        ),
        RedfishError::Precondition { .. } => of(
            FailureCode::BmcAnswerUnexpected,
            format!("retry when nobody else changes the BMC of '{host}'; if it stays so, update its firmware"),
        ),
        RedfishError::Refused { status, .. } => {
            let action = format!("correct what the BMC of '{host}' objects to, then retry");
            let refused = of(FailureCode::BmcRefused, action);
            // A 4xx is the BMC's last word; anything else may not be.
            if (400..500).contains(status) { refused } else { Failure { retryable: true, ..refused } }
        }
        RedfishError::Redirect { to, .. } => of(
            FailureCode::BmcAnswerUnexpected,
            format!("set scheme and port of [sites.{site}.bmc] to what the BMC serves ('{to}'), then retry"),
        )
        .final_now(),
        RedfishError::Unusable { .. } => of(
            FailureCode::BmcAnswerUnexpected,
            format!("retry; if it stays so, reset the BMC of '{host}' or update its firmware"),
        ),
    }
}

fn of_connection(error: &HttpError, place: &Place<'_>, phase: Phase) -> Failure {
    let Place { host, site, .. } = *place;
    let with = |code: FailureCode, message: String, action: String| Failure::new(code, phase, message, action);
    if let Some(trouble) = tls_trouble(error) {
        let trust = format!("[sites.{site}.bmc] trust");
        let (what, action) = match trouble {
            TlsTrouble::Untrusted => (
                "shows a certificate that the site does not trust",
                format!("put the BMC's CA or the certificate's fingerprint into {trust}, then retry"),
            ),
            TlsTrouble::Expired => (
                "shows a certificate outside its time",
                format!("renew the certificate of the BMC of '{host}' and check both clocks, or pin it in {trust}"),
            ),
            TlsTrouble::WrongName => (
                "shows a certificate for another name",
                format!("give the BMC of '{host}' a certificate for its address, or pin the one it has in {trust}"),
            ),
            TlsTrouble::NotTls => (
                "does not speak TLS at this port",
                format!("check scheme and port of [sites.{site}.bmc], and which TLS versions the BMC offers"),
            ),
        };
        let failure = with(FailureCode::BmcTlsUntrusted, format!("BMC of '{host}' {what}: {error}"), action);
        // A BMC that is just starting cuts handshakes too.
        return Failure { retryable: trouble == TlsTrouble::NotTls, ..failure };
    }
    let message = format!("BMC of '{host}': {error}");
    match error {
        HttpError::Dns { .. } => with(
            FailureCode::BmcUnreachable,
            message,
            format!("correct the BMC's address of '{host}' in NetBox, or the name in DNS, then retry"),
        )
        .owned_by(Owner::InfraEng),
        HttpError::Refused { .. }
        | HttpError::Connect { .. }
        | HttpError::Timeout { .. }
        | HttpError::Broken { .. }
        | HttpError::Tls { .. } => with(
            FailureCode::BmcUnreachable,
            message,
            format!(
                "check power and management cable of '{host}', and that its BMC has the address that NetBox says, then retry"
            ),
        ),
        HttpError::ReadOnly { .. } => with(FailureCode::InternalError, message, NOT_FORESEEN.to_owned()),
        HttpError::CutShort { .. }
        | HttpError::TooLarge { .. }
        | HttpError::TooHeavy { .. }
        | HttpError::NotJson { .. }
        | HttpError::ForeignUrl { .. } => with(
            FailureCode::BmcAnswerUnexpected,
            message,
            format!(
                "check that the address is that of a BMC; if it is, reset the BMC of '{host}' or update its firmware"
            ),
        ),
        HttpError::Setup { .. } => with(
            FailureCode::BmcTlsUntrusted,
            message,
            format!("correct [sites.{site}.bmc] trust in the configuration"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classified(error: RedfishError) -> Failure {
        failure(&error, &Place { host: "gpu-b07-37", site: "osl1", item: "bmc-gpu-b07-37" }, Phase::Bmc)
    }

    fn connection(make: impl Fn(String, String, String) -> HttpError, cause: &str) -> Failure {
        let http = make("GET /redfish/v1/".into(), "192.0.2.7:443".into(), cause.into());
        classified(RedfishError::Http(http))
    }

    /// Case: C-35
    #[test]
    fn four_troubles_with_tls_have_four_messages_and_none_says_unreachable() {
        let tls = |asked, host, cause| HttpError::Tls { asked, host, cause };
        let connect = |asked, host, cause| HttpError::Connect { asked, host, cause };
        let all = [
            connection(tls, "invalid peer certificate: UnknownIssuer"),
            connection(tls, "invalid peer certificate: certificate expired: verification time 1 (UNIX)"),
            connection(tls, "invalid peer certificate: certificate not valid for name \"192.0.2.7\""),
            connection(connect, "client error (Connect): received corrupt message of type InvalidContentType"),
        ];
        let messages: std::collections::BTreeSet<&str> =
            all.iter().map(|failure| failure.message.split(':').next().unwrap()).collect();
        assert_eq!(messages.len(), 4, "{messages:#?}");
        for failure in &all {
            assert_eq!(failure.code, FailureCode::BmcTlsUntrusted, "{failure}");
            assert!(!failure.message.contains("unreachable"), "{failure}");
        }
        let down = connection(connect, "client error (Connect): network unreachable");
        assert_eq!(down.code, FailureCode::BmcUnreachable);
    }

    #[test]
    fn refusals_are_told_apart() {
        let asked = || "GET /redfish/v1/Systems".to_owned();
        let (user, reason) = ("ADMIN".to_owned(), String::new());
        let wrong =
            RedfishError::Unauthorized { asked: asked(), user: user.clone(), reason: reason.clone(), locked: false };
        let locked =
            RedfishError::Unauthorized { asked: asked(), user: user.clone(), reason: "locked".into(), locked: true };
        let change =
            RedfishError::PasswordChangeRequired { asked: asked(), user: user.clone(), account: Some("/a/1".into()) };
        let role = RedfishError::Forbidden { asked: asked(), user, reason };
        let codes: Vec<FailureCode> = [wrong, locked, change, role].map(|e| classified(e).code).to_vec();
        assert_eq!(
            codes,
            [
                FailureCode::BmcAuthFailed,
                FailureCode::BmcAccountLocked,
                FailureCode::BmcPasswordChangeRequired,
                FailureCode::BmcRefused,
            ]
        );
        assert!(codes.iter().all(|code| !code.retryable()));
    }
}
