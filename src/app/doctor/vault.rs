//! Looks at the vault: whether it is there and lets muster in, and whether the items are there that runs will ask for. No
//! secret is shown, and nothing is written.

use super::{Check, Level};
use crate::activities::vault as meaning;
use crate::clients::netbox::NetBox;
use crate::clients::vault::{Vault, VaultError};
use crate::config::settings::{Settings, VaultKind};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize_to;

/// Hosts whose items are looked for.
const HOSTS: usize = 5;

/// Whether the vault answers. Without that no item is looked for.
pub(super) async fn open(vault: &Vault, tell: &mut dyn FnMut(Check)) -> bool {
    match vault.open().await {
        Ok(()) => {
            tell(Check::ok("vault.open", format!("{} is open", vault.place())));
            true
        }
        Err(error) => {
            tell(unasked("vault.open", &error));
            false
        }
    }
}

/// What could not be had of the vault, with who mends it.
pub(super) fn unasked(check: &str, error: &VaultError) -> Check {
    let failure = meaning::failure(error, Phase::StatusGate);
    // What may answer by itself later is not known to be bad.
    let level = match error {
        VaultError::NoAnswer { .. } | VaultError::Unavailable { .. } => Level::Unknown,
        _ => Level::Fail,
    };
    let action = failure.action.trim_end_matches(", then retry");
    Check { owner: Some(failure.owner), ..Check::to_mend(level, check, failure.message.clone(), action) }
}

/// The items that runs ask for.
pub(super) async fn items(
    vault: &Vault,
    settings: &Settings,
    netbox: Option<&NetBox>,
    open: bool,
    tell: &mut dyn FnMut(Check),
) {
    let names = vault.settings();
    let dhcp = settings.sites.values().any(|site| site.dhcp.is_some());
    let bmc = settings.sites.values().any(|site| site.options.configure_bmc);
    let fixed = [
        (dhcp, "vault.item.dhcp", &names.dhcp_item, ["private_key", "known_hosts"]),
        (bmc, "vault.item.ipmi", &names.ipmi_item, ["username", "password"]),
    ];
    for (wanted, check, item, fields) in fixed {
        if wanted {
            tell(if open { fixed_item(vault, check, item, &fields).await } else { not_looked_at(check) });
        }
    }
    if !open {
        tell(not_looked_at("vault.item.bmc"));
        return;
    }
    tell(match netbox {
        Some(netbox) => hosts(vault, netbox).await,
        None => {
            Check::to_mend(Level::Unknown, "vault.item.bmc", "no host is known to look for", "mend the NetBox token")
        }
    });
}

fn not_looked_at(check: &str) -> Check {
    Check::to_mend(Level::Unknown, check, "could not be looked at", "mend what the vault's first line says")
}

async fn fixed_item(vault: &Vault, check: &str, item: &str, fields: &[&str]) -> Check {
    for field in fields {
        if let Err(error) = vault.ask(item, field).await {
            return unasked(check, &error);
        }
    }
    Check::ok(check, format!("the item '{item}' has '{}'", fields.join("' and '")))
}

/// The items of the first hosts that NetBox tells with a BMC.
async fn hosts(vault: &Vault, netbox: &NetBox) -> Check {
    let check = "vault.item.bmc";
    let devices = match netbox.pointing_devices().await {
        Ok(devices) => devices,
        Err(error) => {
            let failure = netbox.failure(&error, Phase::StatusGate);
            return Check::to_mend(Level::Unknown, check, failure.message, failure.action);
        }
    };
    let names = devices.into_iter().filter(|device| device.oob_ip.is_some()).filter_map(|device| device.name);
    let (mut there, mut lacking) = (0, Vec::new());
    for host in names.take(HOSTS) {
        let item = vault.bmc_item(&host);
        for field in ["username", "password"] {
            match vault.ask(&item, field).await {
                Ok(_) => {}
                Err(VaultError::Missing { .. }) => {
                    lacking.push(format!("'{}'", neutralize_to(&item, 80)));
                    break;
                }
                Err(error) => return unasked(check, &error),
            }
        }
        there += 1;
    }
    if there == 0 {
        let action = "set oob_ip of the devices in NetBox";
        return Check::to_mend(Level::Unknown, check, "NetBox tells no host with a BMC to look for", action);
    }
    if lacking.is_empty() {
        return Check::ok(check, format!("the items of {there} hosts have 'username' and 'password'"));
    }
    let message = format!("of {there} hosts these have no whole item: {}", lacking.join(", "));
    match vault.settings().kind {
        VaultKind::Env => {
            Check::to_mend(Level::Fail, check, message, "put their credentials into muster's environment")
        }
        _ => Check::to_mend(
            Level::Warn,
            check,
            message,
            "put their credentials there, or let muster make them: their BMCs have to have the factory's then",
        ),
    }
}
