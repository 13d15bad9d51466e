//! What Ironic's refusals mean for a run: code, owner, action.

use crate::activities::vault;
use crate::clients::http::HttpError;
use crate::clients::ironic::{Attempt, ConflictKind, IronicError, Refusal};
use crate::clients::keystone::KeystoneError;
use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::phase::Phase;

/// The failure that an error of Ironic's client is. `doing` says what was wanted, as `setting the RAID target of 'host'`.
pub(super) fn of(ironic: &Attempt, error: IronicError, phase: Phase, doing: &str) -> Failure {
    use FailureCode::*;
    let (name, host) = (ironic.name(), ironic.host());
    let section = format!("[ironic.{name}] of the configuration");
    let message = format!("{doing}: {error}");
    let fail = |code, action: String| Failure::new(code, phase, message.clone(), action);
    match &error {
        IronicError::Locked { holder, .. } => {
            let holder = holder.as_deref().unwrap_or("another operation");
            fail(IronicNodeLocked, format!("wait until '{holder}' has let go of the node, then retry"))
        }
        IronicError::Conflict { kind, .. } => match kind {
            ConflictKind::Mac(mac) => fail(
                MacConflict,
                format!("find the other owner of '{mac}' in Ironic '{name}' and remove the stale port"),
            ),
            ConflictKind::Name(n) => fail(
                IronicConflict,
                format!("find '{n}' in Ironic '{name}': it may belong to a project that these credentials do not see"),
            ),
            ConflictKind::Uuid(uuid) => fail(
                NodeUuidMismatch,
                format!("delete the node '{uuid}' first (unenroll it), or enroll without a pinned UUID"),
            ),
            ConflictKind::Instance(_) => fail(
                NodeOwnedByNova,
                "leave the node to Nova: delete the instance first if the host is to be enrolled".into(),
            ),
            ConflictKind::Transition => fail(NodeStateUnexpected, "retry when the node's transition has ended".into()),
            ConflictKind::Other => {
                fail(IronicConflict, format!("look at what Ironic '{name}' says, mend it, then retry"))
            }
        },
        IronicError::NoConductor { .. } => fail(
            IronicNoConductor,
            format!("retry later; give the conductors of Ironic '{name}' more workers if it stays"),
        ),
        // A verb that the state does not allow: somebody moved the node between our read and our request.
        IronicError::Invalid { said, .. } if said.contains("can not be performed on node") => {
            fail(NodeStateUnexpected, "find out who else works on the node, then retry".into())
        }
        IronicError::Invalid { .. } => fail(
            IronicRequestInvalid,
            "correct what Ironic names in the device's ironic_settings in NetBox, then retry".into(),
        ),
        IronicError::Unauthorized { .. } => {
            fail(IronicRefused, format!("put valid credentials where {section} points"))
        }
        IronicError::Forbidden { .. } => fail(
            IronicRefused,
            format!(
                "give the account of {section} the role that this needs: admin on the enrol project, or system admin"
            ),
        ),
        IronicError::NotFound { .. } => fail(
            IronicAnswerUnexpected,
            format!("look whether somebody removes objects from Ironic '{name}', then retry"),
        ),
        IronicError::Version { .. } | IronicError::TooOld { .. } => {
            fail(IronicAnswerUnexpected, format!("bring Ironic '{name}' to a version that has what is missing"))
                .final_now()
        }
        IronicError::TooNew { .. } => {
            fail(IronicAnswerUnexpected, format!("install a muster that knows what Ironic '{name}' speaks")).final_now()
        }
        IronicError::Stripped { .. } => fail(
            IronicAnswerUnexpected,
            format!("let the proxy in front of {host} pass the header on, or set url in {section} to Ironic itself"),
        )
        .final_now(),
        IronicError::Guarded(refusal) => guarded(refusal, &fail),
        IronicError::NotIronic { .. } => {
            fail(IronicAnswerUnexpected, format!("correct url in {section}: {host} is no Ironic API")).final_now()
        }
        IronicError::Server { .. } => {
            fail(IronicUnreachable, format!("look at the log of Ironic '{name}' at {host}, then retry"))
        }
        IronicError::Unexpected { .. } | IronicError::Malformed { .. } => fail(
            IronicAnswerUnexpected,
            format!("check that Ironic itself answers at {host} and nothing stands between"),
        ),
        IronicError::Http(e) => of_http(e, &fail, &host, &section),
        IronicError::Keystone(KeystoneError::Refused { .. }) => fail(
            IronicRefused,
            format!("correct the Keystone account in {section}: name, domain, password, scope and role"),
        ),
        IronicError::Keystone(KeystoneError::Account { .. }) => {
            fail(IronicRefused, format!("correct the account that auth in {section} names"))
        }
        IronicError::Keystone(KeystoneError::Catalogue { .. }) => fail(
            IronicRefused,
            format!("set region and interface of auth in {section} to what the catalogue has, or set url there"),
        ),
        IronicError::Keystone(KeystoneError::Http(e)) => of_http(e, &fail, "Keystone", &section),
        IronicError::Keystone(KeystoneError::Vault(e)) | IronicError::Vault(e) => {
            Failure { message, ..vault::failure(e, phase) }
        }
        IronicError::Keystone(e @ KeystoneError::Unexpected { .. }) if e.is_transient() => {
            fail(IronicUnreachable, "look at Keystone's log, then retry".into())
        }
        IronicError::Keystone(KeystoneError::Unexpected { .. }) => {
            fail(IronicAnswerUnexpected, format!("check auth_url in {section}: Keystone v3 is expected there"))
                .final_now()
        }
    }
}

/// A request that muster's own guard kept back. Nothing was sent, and the same would be kept back again.
fn guarded(refusal: &Refusal, fail: &dyn Fn(FailureCode, String) -> Failure) -> Failure {
    match refusal {
        Refusal::Owned { .. } => fail(
            FailureCode::NodeOwnedByNova,
            "leave the node to Nova: delete the instance first if the host is to be enrolled".into(),
        ),
        Refusal::State { .. } => {
            fail(FailureCode::NodeStateUnexpected, "find out who else works on the node, then retry".into()).final_now()
        }
        Refusal::SecondPxePort { port, .. } => fail(
            FailureCode::PxePortConflict,
            format!("delete port '{port}' in Ironic, or switch its pxe_enabled off, then retry"),
        ),
        Refusal::MonitoringUser { .. } => fail(
            FailureCode::WriteForbidden,
            "put the administrator of this host's own BMC into its item of the vault, then retry".into(),
        ),
        Refusal::NotRead { .. }
        | Refusal::PortNotRead { .. }
        | Refusal::PortsNotRead { .. }
        | Refusal::LinkThere { .. }
        | Refusal::NotLookedFor { .. } => {
            fail(FailureCode::WriteForbidden, "report this: muster wanted to write on what it had not read".into())
                .owned_by(Owner::FleetManager)
        }
    }
}

fn of_http(error: &HttpError, fail: &dyn Fn(FailureCode, String) -> Failure, host: &str, section: &str) -> Failure {
    match error {
        HttpError::Tls { .. } => {
            fail(FailureCode::IronicUnreachable, format!("set tls in {section} to trust the certificate of {host}"))
                .final_now()
        }
        HttpError::Setup { .. } => fail(FailureCode::InternalError, format!("mend {section}")),
        HttpError::CutShort { .. } => fail(
            FailureCode::IronicAnswerUnexpected,
            format!("find out what cuts off the answers of {host}, then retry"),
        ),
        HttpError::ReadOnly { .. } => fail(
            FailureCode::InternalError,
            "enroll the host to see what comes after this step: a plan cannot foresee it".into(),
        ),
        e if e.is_transient() => fail(
            FailureCode::IronicUnreachable,
            format!("check that {host} runs and is reached from here (url in {section}), then retry"),
        ),
        _ => fail(
            FailureCode::IronicAnswerUnexpected,
            format!("check that Ironic itself answers at {host} and nothing stands between"),
        ),
    }
}
