//! Looks whether what muster needs of other systems is there, one line for each thing, and changes nothing.

mod ironic;
mod netbox;
mod permissions;
mod vault;
mod webhooks;

use std::path::Path;

use serde::Serialize;

use super::handle::OpenError;
use crate::clients::ironic::Ironic;
use crate::clients::netbox::NetBox;
use crate::clients::vault::Vault;
use crate::config::settings::Settings;
use crate::domain::failure::Owner;

/// What became of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// It works, and should be looked at.
    Warn,
    /// It could not be looked at: neither good nor bad is known.
    Unknown,
    /// It will not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `netbox.view.dcim.device`: stays the same from version to version.
    pub check: String,
    pub level: Level,
    pub message: String,
    /// Who mends it; `None` where nothing is to be mended.
    pub owner: Option<Owner>,
    pub action: Option<String>,
}

impl Check {
    fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        Check { check: check.into(), level: Level::Ok, message: message.into(), owner: None, action: None }
    }

    fn to_mend(level: Level, check: impl Into<String>, message: impl Into<String>, action: impl Into<String>) -> Self {
        Check {
            check: check.into(),
            level,
            message: message.into(),
            owner: Some(Owner::InfraEng),
            action: Some(action.into()),
        }
    }
}

/// Looks at the vault, at NetBox (whether it answers, whose token it is, and every permission that is needed or too much, O12),
/// at every Ironic (its API versions, its login) and at the receivers of webhooks. `told` gets each line when it is known.
/// `state`: a folder whose store says what became of deliveries; it may be missing, and is left as it is.
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
    let open = vault::open(&vault, &mut tell).await;
    let netbox = match vault.resolve(&settings.netbox.token).await {
        Ok(token) => Some(
            NetBox::new(&settings.netbox, token)
                .map_err(|source| OpenError::Client { what: format!("NetBox at {}", settings.netbox.url), source })?,
        ),
        Err(error) => {
            netbox::without_token(vault::unasked("netbox.token", &error), &mut tell);
            None
        }
    };
    vault::items(&vault, settings, netbox.as_ref(), open, &mut tell).await;
    if let Some(netbox) = &netbox {
        netbox::look(netbox, &mut tell).await;
    }
    for (name, instance) in &settings.ironic {
        let ironic = Ironic::new(name, instance, &vault)
            .map_err(|source| OpenError::Client { what: format!("Ironic '{name}' at {}", instance.url), source })?;
        ironic::look(&ironic, &mut tell).await;
    }
    webhooks::look(settings, &vault, state, &mut tell).await;
    Ok(checks)
}
