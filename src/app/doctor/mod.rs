//! Looks whether what muster needs of other systems is there, one line for each thing, and changes nothing.
//!
//! A line that could not be looked at since another one is not well names that one (`because`): mending it comes first, and
//! nothing is known of the rest.

mod bmc;
mod check;
mod context;
mod dhcp;
mod fields;
mod ironic;
mod netbox;
mod permissions;
mod reach;
mod site;
mod vault;
mod webhooks;

use std::path::Path;

pub use check::{Check, Level};

use super::handle::OpenError;
use crate::clients::netbox::NetBox;
use crate::clients::vault::Vault;
use crate::config::settings::{Settings, VaultKind};
use check::Cause;

/// Looks at the vault and its items, at NetBox (how it is reached, whose token it is, every permission that is needed or too
/// much, its custom fields and tags), at every Ironic with its Keystone, at the receivers of webhooks, and at every site: its data
/// in NetBox, its DHCP host, its BMCs. `told` gets each line when it is known (K4, O12). `state`: a folder whose store says what
/// became of deliveries; it may be missing, and is left as it is.
pub async fn doctor(
    settings: &Settings,
    state: Option<&Path>,
    told: &mut dyn FnMut(&Check),
) -> Result<Vec<Check>, OpenError> {
    let vault = Vault::new(settings.vault.clone());
    let mut checks = Vec::new();
    let mut tell = |check: Check| {
        told(&check);
        checks.push(check);
    };
    let open = open_vault(&vault, settings, &mut tell).await;
    let keys = vault::fixed_items(&vault, settings, open.as_ref(), &mut tell).await;

    let reached = reach::http(&reach::Server::netbox(settings), &mut tell).await;
    let token = vault.resolve(&settings.netbox.token).await;
    let netbox = match (reached, token) {
        (Err(cause), _) => {
            netbox::without_token(Check::blocked("netbox.token", &cause), &mut tell);
            Err(cause)
        }
        (Ok(()), Err(error)) => {
            let check = match &open {
                Some(cause) if matches!(settings.netbox.token, crate::config::settings::SecretRef::Vault { .. }) => {
                    Check::blocked("netbox.token", cause)
                }
                _ => vault::unasked("netbox.token", &error),
            };
            let cause = check.cause();
            netbox::without_token(check, &mut tell);
            Err(cause)
        }
        (Ok(()), Ok(token)) => {
            let netbox = NetBox::new(&settings.netbox, token)
                .map_err(|source| OpenError::Client { what: format!("NetBox at {}", settings.netbox.url), source })?;
            netbox::look(&netbox, &mut tell).await.map(|sights| (netbox, sights))
        }
    };
    let known = match &netbox {
        Ok((netbox, sights)) => Ok(fields::look(netbox, sights, settings, &mut tell).await),
        Err(cause) => {
            fields::blocked(settings, cause, &mut tell);
            Err(cause.clone())
        }
    };
    vault::bmc_items(&vault, netbox.as_ref().map_err(Clone::clone), open.as_ref(), &mut tell).await;

    for (name, instance) in &settings.ironic {
        ironic::look(name, instance, &vault, &mut tell).await?;
    }
    webhooks::look(settings, &vault, state, &mut tell).await;

    let netbox = netbox.as_ref().map(|(netbox, _)| netbox).map_err(Clone::clone);
    for slug in settings.sites.keys() {
        let place = site::Place { settings, slug, keys: keys.as_ref() };
        site::look(&place, netbox.clone(), known.as_ref().map_err(Clone::clone), &mut tell).await;
    }
    Ok(checks)
}

/// How the vault is reached, where it is a server, and whether it lets muster in; what stands in the way of its items.
async fn open_vault(vault: &Vault, settings: &Settings, tell: &mut dyn FnMut(Check)) -> Option<Cause> {
    if let VaultKind::Connect(connect) = &settings.vault.kind
        && let Err(cause) = reach::http(&reach::Server::connect(connect), tell).await
    {
        tell(Check::blocked("vault.open", &cause));
        return Some(cause);
    }
    vault::open(vault, tell).await
}
