//! Why an SSH step did not end well, told apart where somebody else has to mend it.

use std::time::Duration;

use super::known_hosts::Verdict;

/// An SSH failure. Texts of the server are neutralized and shortened before they get here.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SshError {
    #[error("the name '{host}' could not be resolved: {cause}")]
    Dns { host: String, cause: String },
    #[error("'{server}' refused the connection")]
    Refused { server: String },
    #[error("no SSH connection to '{server}': {cause}")]
    Connect { server: String, cause: String },
    /// A step did not end in its own deadline (D5).
    #[error("{step} did not end in {}", seconds(.limit))]
    Timeout { step: String, limit: Duration },
    #[error("the host key of '{server}' is {}: {verdict}", word(.verdict))]
    HostKey { server: String, verdict: Verdict },
    #[error("'{server}' has only host keys of types that are not checked: '{}'", .types.join("', '"))]
    HostKeyTypes { server: String, types: Vec<String> },
    /// Nothing in common but what is too old to be offered without being asked for.
    #[error("'{server}' offers nothing for {what} that is used here, only '{}'", .theirs.join("', '"))]
    NoCommon { server: String, what: &'static str, theirs: Vec<String> },
    /// The private key cannot be used, whoever is asked.
    #[error("the private key cannot be used: {0}")]
    PrivateKey(String),
    #[error("'{server}' does not let user '{user}' in with the key '{key}'{}", instead(.methods))]
    AuthFailed {
        server: String,
        user: String,
        key: String,
        /// What the server would take instead.
        methods: Vec<String>,
    },
    /// The command was not carried out, or its end is not known: not a command that ended with another status than 0.
    #[error("the command '{command}' was not carried out: {cause}")]
    Command { command: String, cause: String },
    #[error("the files in '{folder}' cannot be read: {cause}")]
    Folder { folder: String, cause: String },
    #[error("'{server}' offers no SFTP: {cause}")]
    SftpMissing { server: String, cause: String },
    #[error("{step}: {cause}")]
    Transfer { step: String, cause: String },
    /// What was written is in no place that is known: its temporary file was gone when it was to be renamed. A request of
    /// an earlier connection was carried out late, or another program was at work.
    #[error("{step}: the file with the new content was moved away meanwhile")]
    Moved { step: String },
    #[error("the connection to '{server}' broke off during {step}: {cause}")]
    Cut { server: String, step: String, cause: String },
}

fn seconds(limit: &Duration) -> String {
    if limit.subsec_millis() == 0 { format!("{} s", limit.as_secs()) } else { format!("{:.1} s", limit.as_secs_f64()) }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Match { .. } => "known",
        Verdict::Unknown { .. } | Verdict::CertificateAuthorityOnly { .. } => "unknown",
        Verdict::BadCertificate { .. } => "certified wrongly",
        Verdict::Changed { .. } => "changed",
        Verdict::Revoked { .. } => "revoked",
    }
}

fn instead(methods: &[String]) -> String {
    if methods.is_empty() { String::new() } else { format!(" (it would take '{}')", methods.join("', '")) }
}
