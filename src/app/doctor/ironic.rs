//! Looks at one Ironic: which API versions it speaks and what they lack, and whether it takes the login. Reads only.

use super::check::Cause;
use super::{Check, Level};
use crate::clients::ironic::{Apart, Ironic, IronicError, Microversion, Spoken};
use crate::clients::keystone::KeystoneError;

pub(super) async fn look(ironic: &Ironic, tell: &mut dyn FnMut(Check)) {
    let check = |part: &str| format!("ironic.{}.{part}", ironic.name());
    let api = match ironic.speaks().await {
        Ok(spoken) => versions(check("api"), ironic, spoken),
        Err(error) => unasked(check("api"), ironic, &error),
    };
    let (passes, cause) = (api.lets_pass(), api.cause());
    tell(api);
    if !passes {
        tell(Check::blocked(check("login"), &cause));
        return;
    }
    tell(match ironic.sees_nodes().await {
        Ok(()) => Check::ok(check("login"), "the list of nodes is read"),
        Err(error) => unasked(check("login"), ironic, &error),
    });
}

/// The lines of an Ironic that can't be asked.
pub(super) fn blocked(name: &str, cause: &Cause, tell: &mut dyn FnMut(Check)) {
    for part in ["api", "login"] {
        tell(Check::blocked(format!("ironic.{name}.{part}"), cause));
    }
}

/// By the table of the calls that an enrollment makes.
fn versions(check: String, ironic: &Ironic, spoken: Spoken) -> Check {
    let (min, max, name) = (spoken.min, spoken.max, ironic.name());
    match spoken.judge() {
        Ok(()) => {
            Check::ok(check, format!("speaks {min} to {max} ({}), {} is needed", max.release(), Microversion::needed()))
        }
        Err(Apart::TooNew) => Check::to_mend(
            Level::Fail,
            check,
            format!("no longer speaks API versions below {min}; this muster knows them up to {}", Microversion::KNOWN),
            format!("install a muster that knows what Ironic '{name}' speaks"),
        ),
        Err(Apart::TooOld(most)) => {
            let mut lacking: Vec<String> =
                spoken.lacking().map(|need| format!("{} ({})", need.feature, need.since)).collect();
            lacking.sort();
            lacking.dedup();
            Check::to_mend(
                Level::Fail,
                check,
                format!("speaks API versions up to {max} ({}) and lacks {}", max.release(), lacking.join(", ")),
                format!("bring Ironic '{name}' to OpenStack {} or later", most.since.release()),
            )
        }
    }
}

fn unasked(check: String, ironic: &Ironic, error: &IronicError) -> Check {
    let name = ironic.name();
    if let IronicError::Vault(error) | IronicError::Keystone(KeystoneError::Vault(error)) = error {
        return super::vault::unasked(&check, error);
    }
    let (level, action) = match error {
        IronicError::Http(_) | IronicError::Server { .. } | IronicError::NoConductor { .. } => {
            (Level::Unknown, format!("check that {} runs and is reached from here", ironic.host()))
        }
        IronicError::Unauthorized { .. }
        | IronicError::Forbidden { .. }
        | IronicError::Keystone(_)
        | IronicError::Vault(_) => (Level::Fail, format!("put a valid login where auth of [ironic.{name}] points")),
        IronicError::Stripped { .. } => {
            (Level::Fail, format!("let the proxy in front of {} pass that header on, or go past it", ironic.host()))
        }
        IronicError::Locked { .. }
        | IronicError::Conflict { .. }
        | IronicError::Invalid { .. }
        | IronicError::NotFound { .. }
        | IronicError::Version { .. }
        | IronicError::TooOld { .. }
        | IronicError::TooNew { .. }
        | IronicError::NotIronic { .. }
        | IronicError::Unexpected { .. }
        | IronicError::Malformed { .. }
        | IronicError::Guarded(_) => {
            (Level::Fail, format!("correct url of [ironic.{name}] in the configuration: no Ironic answers so"))
        }
    };
    Check::to_mend(level, check, error.to_string(), action)
}
