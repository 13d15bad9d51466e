//! What an SSH error or a refused entry means for a run: code, owner and action.

use super::PHASE;
use crate::clients::ssh::SshError;
use crate::clients::ssh::known_hosts::{Verdict, exact_name};
use crate::config::settings::DhcpSettings;
use crate::domain::dhcp::others::{Collision, Same};
use crate::domain::dhcp::{Entry, EntryError};
use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::text::neutralize_to;

/// An entry that would not be served as meant.
pub(super) fn entry(error: &EntryError) -> Failure {
    let action = match error {
        EntryError::Name { name, .. } => {
            format!("rename the device '{name}' in NetBox to one label of letters, digits and hyphens")
        }
        EntryError::Outside { .. } => {
            "correct 'oob_ip' of the device in NetBox, or 'subnets' in [sites.….dhcp] of the configuration".to_owned()
        }
        EntryError::Address { .. } => "correct 'oob_ip' of the device in NetBox".to_owned(),
    };
    Failure::new(FailureCode::DhcpEntryInvalid, PHASE, error.to_string(), action)
}

/// An entry that would take something away from another one (D9).
pub(super) fn collision(found: &Collision, file: &str, entry: &Entry, settings: &DhcpSettings) -> Failure {
    let (other, server) = (neutralize_to(&found.file, 120), exact_name(&settings.host, settings.port));
    let field = match found.what {
        Same::Mac(_) => "the MAC of the management interface",
        Same::Address(_) => "'oob_ip'",
        Same::Name(_) => "the name",
    };
    Failure::new(
        FailureCode::DhcpEntryInvalid,
        PHASE,
        format!("{} of '{file}' is in '{other}' on '{server}' already; nothing was uploaded", found.what),
        format!(
            "find out whose it is: correct {field} of {} in NetBox, or take the old entry out of '{}/{other}' on {server}",
            entry.name, settings.directory
        ),
    )
    .with_evidence(format!("dhcp {server} {}/{other}", settings.directory), format!("{} is in it", found.what))
}

/// A command that sudo did not carry out.
pub(super) fn sudo(why: &str, command: &str, settings: &DhcpSettings) -> Failure {
    let (server, command) = (exact_name(&settings.host, settings.port), neutralize_to(command, 120));
    let bare = command.strip_prefix("sudo -n -- ").unwrap_or(&command);
    Failure::new(
        FailureCode::DhcpCommandFailed,
        PHASE,
        format!("sudo on '{server}' does not run '{command}' for '{}': {why}", settings.user),
        format!("allow '{}' to run '{bare}' without a password in the sudoers of {server}", settings.user),
    )
    .final_now()
}

/// An SSH error. `cut` is the code for a connection that broke off, which only the step knows.
pub(super) fn ssh(error: &SshError, cut: FailureCode, settings: &DhcpSettings, item: &str) -> Failure {
    let host = &settings.host;
    let server = exact_name(host, settings.port);
    let (code, action) = match error {
        SshError::Dns { .. } => {
            (FailureCode::DhcpConnectFailed, format!("check the name '{host}' in [sites.….dhcp] and in DNS"))
        }
        SshError::Refused { .. } | SshError::Connect { .. } => {
            (FailureCode::DhcpConnectFailed, format!("make the SSH server of {server} reachable from this machine"))
        }
        SshError::Timeout { .. } => (
            FailureCode::DhcpTimeout,
            format!("find out why {server} is slow, or raise the step's time limit in [sites.….dhcp]"),
        ),
        SshError::HostKey { verdict, .. } => host_key(verdict, &server, item),
        SshError::HostKeyTypes { .. } => (
            FailureCode::DhcpHostKeyUnknown,
            format!(
                "give {server} an Ed25519, ECDSA or RSA host key, and add it to 'known_hosts' of the vault item '{item}'"
            ),
        ),
        SshError::NoCommon { .. } => (
            FailureCode::DhcpConnectFailed,
            format!("bring the SSH server of {server} up to date, or set legacy_algorithms = true in [sites.….dhcp]"),
        ),
        SshError::PrivateKey(_) => (
            FailureCode::DhcpAuthFailed,
            format!("put an OpenSSH private key without a passphrase into 'private_key' of the vault item '{item}'"),
        ),
        SshError::AuthFailed { user, key, .. } => (
            FailureCode::DhcpAuthFailed,
            format!("add the public key '{key}' to the authorized keys of '{user}' on {server}"),
        ),
        SshError::Command { .. } => {
            (FailureCode::DhcpCommandFailed, format!("run the command on {server} by hand and mend what it says"))
        }
        SshError::Folder { folder, .. } => (
            FailureCode::DhcpCommandFailed,
            format!("let '{}' read every file in '{folder}' on {server}", settings.user),
        ),
        SshError::SftpMissing { .. } => {
            (FailureCode::DhcpTransferFailed, format!("switch on the SFTP subsystem of the SSH server on {server}"))
        }
        SshError::Transfer { .. } => (
            FailureCode::DhcpTransferFailed,
            format!(
                "see that '{}' on {server} has room, and that '{}' may write into it",
                settings.directory, settings.user
            ),
        ),
        SshError::Moved { .. } => (
            FailureCode::DhcpTransferFailed,
            format!("find out what else writes into '{}' on {server}", settings.directory),
        ),
        SshError::Cut { .. } => (cut, format!("find out why {server} closed the connection")),
    };
    let failure = Failure::new(code, PHASE, error.to_string(), action);
    match error {
        SshError::PrivateKey(_) => failure.owned_by(Owner::InfraEng),
        // No retry brings a subsystem, a permission or an algorithm.
        SshError::SftpMissing { .. } | SshError::Folder { .. } | SshError::NoCommon { .. } => failure.final_now(),
        _ => failure,
    }
}

/// The host of `[host]:port`.
fn server_host(server: &str) -> &str {
    server.strip_prefix('[').and_then(|rest| rest.split_once("]:")).map_or(server, |(host, _)| host)
}

/// Unknown, changed and revoked are three different things for whoever mends them (D4).
fn host_key(verdict: &Verdict, server: &str, item: &str) -> (FailureCode, String) {
    match verdict {
        // A match is no failure; it is named so that a new verdict has to be thought of.
        Verdict::Match { .. } | Verdict::Unknown { .. } | Verdict::CertificateAuthorityOnly { .. } => (
            FailureCode::DhcpHostKeyUnknown,
            format!(
                "compare the fingerprint on the console of {server}, then add the key to 'known_hosts' of the vault item '{item}'"
            ),
        ),
        Verdict::BadCertificate { .. } => (
            FailureCode::DhcpHostKeyUnknown,
            format!("have the authority certify the host key of {server} for '{}' anew", server_host(server)),
        ),
        Verdict::Changed { line, .. } => (
            FailureCode::DhcpHostKeyChanged,
            format!(
                "find out whether {server} was installed anew; only then replace line {line} in 'known_hosts' of the vault item '{item}'"
            ),
        ),
        Verdict::Revoked { .. } => (
            FailureCode::DhcpHostKeyRevoked,
            format!("give {server} a new host key, and add it to 'known_hosts' of the vault item '{item}'"),
        ),
    }
}
