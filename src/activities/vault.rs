//! What a secret that cannot be had or kept means for a step: code, owner, action.

use crate::clients::vault::VaultError;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;

/// The failure that an error of the vault is. Its sentence names place, item and field, and never a secret.
pub fn failure(error: &VaultError, phase: Phase) -> Failure {
    let unreachable = |action: String| (FailureCode::VaultUnreachable, action);
    let missing = |action: String| (FailureCode::VaultItemMissing, action);
    let (code, action) = match error {
        VaultError::Missing { item, field, .. } => {
            missing(format!("add the field '{field}' to the item '{item}' of the vault, then retry"))
        }
        VaultError::EnvMissing(name) => missing(format!("start muster with the environment variable '{name}' set")),
        VaultError::ReadOnly { item } => {
            missing(format!("put what the item '{item}' is to have into muster's environment, then retry"))
        }
        VaultError::Unreadable { path, .. } => {
            unreachable(format!("make '{}' readable for muster's user, then retry", path.display()))
        }
        VaultError::NoAnswer { place, .. } | VaultError::Unavailable { place, .. } => {
            unreachable(format!("find out why {place} does not answer, then retry"))
        }
        VaultError::TooOpen { path, .. } => {
            unreachable(format!("close the file to others: chmod 600 '{}', then retry", path.display()))
        }
        VaultError::Malformed { path, .. } => unreachable(format!("correct '{}', then retry", path.display())),
        VaultError::Unwritable { path, .. } => {
            unreachable(format!("make '{}' and its folder writable for muster's user, then retry", path.display()))
        }
        VaultError::Ambiguous { place, what, .. } => {
            missing(format!("leave one of the {what} in {place} and rename the others, then retry"))
        }
        VaultError::Refused { remedy, .. } => (FailureCode::VaultRefused, format!("{remedy}, then retry")),
        VaultError::Unusable { remedy, .. } => unreachable(format!("{remedy}, then retry")),
    };
    let failure = Failure::new(code, phase, error.to_string(), action);
    match error {
        VaultError::Unreadable { .. } | VaultError::NoAnswer { .. } | VaultError::Unavailable { .. } => failure,
        // Nobody mends a mode, a line or an item in the seconds between two attempts.
        VaultError::Missing { .. }
        | VaultError::EnvMissing(_)
        | VaultError::ReadOnly { .. }
        | VaultError::TooOpen { .. }
        | VaultError::Malformed { .. }
        | VaultError::Unwritable { .. }
        | VaultError::Ambiguous { .. }
        | VaultError::Refused { .. }
        | VaultError::Unusable { .. } => failure.final_now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn only_a_vault_that_may_answer_by_itself_is_asked_again() {
        let (path, cause) = (PathBuf::from("/etc/muster/vault.toml"), String::new());
        let item = || "bmc-gpu-b07-37".to_owned();
        let place = || "the vault 'lab' of 1Password Connect at 'connect.example.com'".to_owned();
        let all = [
            (VaultError::Missing { item: item(), field: "password".into(), place: "vault.toml".into() }, false),
            (VaultError::EnvMissing("TOKEN".into()), false),
            (VaultError::ReadOnly { item: item() }, false),
            (VaultError::Unreadable { path: path.clone(), cause: cause.clone() }, true),
            (VaultError::NoAnswer { place: place(), patience: Duration::from_secs(1) }, true),
            (VaultError::Unavailable { place: place(), cause: "429".into() }, true),
            (VaultError::Refused { place: place(), cause: "401".into(), remedy: "put a token".into() }, false),
            (VaultError::Ambiguous { place: place(), what: "items with the title 'a'".into(), count: 2 }, false),
            (VaultError::Unusable { place: place(), cause: "TLS".into(), remedy: "correct trust".into() }, false),
            (VaultError::TooOpen { path: path.clone(), mode: 0o644 }, false),
            (VaultError::Malformed { path: path.clone(), line: 3 }, false),
            (VaultError::Unwritable { path, cause }, false),
        ];
        for (error, again) in all {
            let failure = failure(&error, Phase::Bmc);
            assert_eq!(failure.retryable, again, "{error}");
            assert!(!failure.action.is_empty() && failure.message == error.to_string());
        }
    }
}
