//! Looks at one Ironic: which API versions it speaks and what they lack, and whether it takes the login. Reads only.

use super::check::Cause;
use super::reach::{self, Server};
use super::{Check, Level};
use crate::app::handle::OpenError;
use crate::clients::ironic::{Apart, Ironic, IronicError, Microversion, Spoken};
use crate::clients::keystone::{Holder, KeystoneError, auth_url};
use crate::clients::vault::Vault;
use crate::config::settings::{IronicAuth, IronicInstance, KeystoneAccount, KeystoneAuth};

/// Everything of one instance: how it is reached, its Keystone, its versions, its login.
pub(super) async fn look(
    name: &str,
    instance: &IronicInstance,
    vault: &Vault,
    tell: &mut dyn FnMut(Check),
) -> Result<(), OpenError> {
    let line = |part: &str| format!("ironic.{name}.{part}");
    let reached = match &instance.url {
        Some(url) => reach::http(&Server::ironic(name, instance, url), tell).await,
        None => Ok(()),
    };
    let asked = match &instance.auth {
        IronicAuth::Keystone(auth) => keystone(name, instance, auth, vault, tell).await,
        IronicAuth::None | IronicAuth::HttpBasic { .. } => Ok(()),
    };
    let ready = reached.and(asked);
    let ironic = match &ready {
        Ok(()) => Some(Ironic::new(name, instance, vault).map_err(|source| OpenError::Client {
            what: format!("Ironic '{name}' at {}", instance.place()),
            source,
        })?),
        Err(_) => None,
    };
    let ready = match (ready, &ironic, &instance.url) {
        (Ok(()), Some(ironic), None) => by_catalogue(name, instance, ironic, tell).await,
        (Err(cause), _, None) => {
            tell(Check::blocked(line("endpoint"), &cause));
            reach::blocked(&format!("ironic.{name}"), &cause, tell);
            Err(cause)
        }
        (ready, ..) => ready,
    };
    let has_roles = matches!(instance.auth, IronicAuth::Keystone(_));
    match (ready, ironic) {
        (Ok(()), Some(ironic)) => answers(&ironic, has_roles, tell).await,
        (Err(cause), _) => {
            let parts = ["api", "login", "roles"];
            // The login may be what stands in the way, and then it has its line.
            let parts = parts.iter().filter(|part| (has_roles || **part != "roles") && line(part) != cause.check);
            parts.for_each(|part| tell(Check::blocked(line(part), &cause)));
        }
        (Ok(()), None) => {}
    }
    Ok(())
}

/// Where the account's Keystone is, and how it is reached.
async fn keystone(
    name: &str,
    instance: &IronicInstance,
    auth: &KeystoneAuth,
    vault: &Vault,
    tell: &mut dyn FnMut(Check),
) -> Result<(), Cause> {
    let prefix = format!("ironic.{name}.keystone");
    let auth_url = match &auth.account {
        KeystoneAccount::Given { auth_url, .. } => auth_url.clone(),
        KeystoneAccount::Cloud { .. } | KeystoneAccount::Environment => match auth_url(auth, vault).await {
            Ok(url) => {
                tell(Check::ok(format!("{prefix}.account"), format!("the account is for '{url}'")));
                url
            }
            Err(error) => {
                let action = format!("correct the account that auth in [ironic.{name}] names");
                let check = Check::to_mend(Level::Fail, format!("{prefix}.account"), error.to_string(), action);
                let cause = check.cause();
                tell(check);
                reach::blocked(&prefix, &cause, tell);
                return Err(cause);
            }
        },
    };
    reach::http(&Server::keystone(name, instance, &auth_url), tell).await
}

/// The catalogue's endpoint, which takes a login, and how it is reached.
async fn by_catalogue(
    name: &str,
    instance: &IronicInstance,
    ironic: &Ironic,
    tell: &mut dyn FnMut(Check),
) -> Result<(), Cause> {
    let (prefix, endpoint) = (format!("ironic.{name}"), format!("ironic.{name}.endpoint"));
    let Some(keystone) = ironic.keystone() else { return Ok(()) };
    let check = match keystone.endpoint().await {
        Ok(url) => {
            tell(Check::ok(endpoint, format!("the catalogue has it at '{url}'")));
            return reach::http(&Server::ironic(name, instance, &url), tell).await;
        }
        Err(error @ KeystoneError::Catalogue { .. }) => {
            let action = format!("set region and interface of auth in [ironic.{name}] to what the catalogue has");
            Check::to_mend(Level::Fail, endpoint, error.to_string(), action)
        }
        Err(error) => {
            let check = unasked(format!("{prefix}.login"), ironic, &IronicError::Keystone(error));
            tell(Check::blocked(endpoint, &check.cause()));
            check
        }
    };
    let cause = check.cause();
    tell(check);
    reach::blocked(&prefix, &cause, tell);
    Err(cause)
}

async fn answers(ironic: &Ironic, has_roles: bool, tell: &mut dyn FnMut(Check)) {
    let check = |part: &str| format!("ironic.{}.{part}", ironic.name());
    let api = match ironic.speaks().await {
        Ok(spoken) => versions(check("api"), ironic, spoken),
        Err(error) => unasked(check("api"), ironic, &error),
    };
    let (passes, cause) = (api.lets_pass(), api.cause());
    tell(api);
    let login = match ironic.sees_nodes().await {
        _ if !passes => Check::blocked(check("login"), &cause),
        Ok(()) => Check::ok(check("login"), "the list of nodes is read"),
        Err(error) => unasked(check("login"), ironic, &error),
    };
    let (passes, cause) = (login.lets_pass(), login.cause());
    tell(login);
    let Some(keystone) = ironic.keystone().filter(|_| has_roles) else { return };
    tell(match keystone.holder().await {
        _ if !passes => Check::blocked(check("roles"), &cause),
        Ok(holder) => roles(check("roles"), ironic.name(), &holder),
        Err(error) => unasked(check("roles"), ironic, &IronicError::Keystone(error)),
    });
}

/// Which rights a token has can't be asked for; by Ironic's own policy an administrator alone makes nodes.
fn roles(check: String, name: &str, holder: &Holder) -> Check {
    let scope = holder.scope.as_deref().unwrap_or("nothing");
    let roles = holder.roles.join("', '");
    if holder.scope.is_some() && holder.roles.iter().any(|role| role == "admin") {
        return Check::ok(check, format!("the account is admin of {scope}"));
    }
    Check::to_mend(
        Level::Warn,
        check,
        format!("the account has '{roles}' on {scope}: by Ironic's own policy it makes no nodes"),
        format!(
            "give the account of [ironic.{name}] the role admin on the enrol project, unless a policy of yours says else"
        ),
    )
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
