//! Looks at the vault: whether it is there and lets muster in, and whether the items are there that runs will ask for. No
//! secret is shown, and nothing is written.

use secrecy::{ExposeSecret, SecretString};

use super::check::Cause;
use super::netbox::Hidden;
use super::{Check, Level};
use crate::activities::bmc::unfit;
use crate::activities::vault as meaning;
use crate::clients::netbox::NetBox;
use crate::clients::vault::{Vault, VaultError};
use crate::config::settings::{Settings, VaultKind};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize_to;

/// Hosts whose items are looked for.
const HOSTS: usize = 5;

/// Whether the vault lets muster in; `Some` stands in the way of its items.
pub(super) async fn open(vault: &Vault, tell: &mut dyn FnMut(Check)) -> Option<Cause> {
    match vault.open().await {
        Ok(()) => {
            tell(Check::ok("vault.open", format!("{} is open", vault.place())));
            None
        }
        Err(error) => {
            let check = unasked("vault.open", &error);
            let cause = check.cause();
            tell(check);
            Some(cause)
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
    Check::of_failure(level, check, &failure)
}

/// What is there of the DHCP hosts' item: `None` where no site needs it, `Some(Err)` where it can't be had.
pub(super) type Keys = Option<Result<SshKeys, Cause>>;

/// The item that DHCP hosts are asked with.
pub(super) struct SshKeys {
    pub private_key: SecretString,
    pub known_hosts: SecretString,
}

/// The items that have one name for all hosts. Gives the key of the DHCP hosts.
pub(super) async fn fixed_items(
    vault: &Vault,
    settings: &Settings,
    stands_in: Option<&Cause>,
    tell: &mut dyn FnMut(Check),
) -> Keys {
    let names = vault.settings();
    let mut keys = None;
    if settings.sites.values().any(|site| site.dhcp.is_some()) {
        let (check, item, fields) = ("vault.item.dhcp", &names.dhcp_item, ["private_key", "known_hosts"]);
        let found = fixed_item(vault, item, fields, stands_in).await.map_err(|why| why.to_check(check));
        keys = Some(match found {
            Ok([private_key, known_hosts]) => {
                tell(has(check, item, fields));
                Ok(SshKeys { private_key, known_hosts })
            }
            Err(line) => {
                let cause = line.cause();
                tell(line);
                Err(cause)
            }
        });
    }
    if settings.sites.values().any(|site| site.options.configure_bmc) {
        let (check, item, fields) = ("vault.item.ipmi", &names.ipmi_item, ["username", "password"]);
        tell(match fixed_item(vault, item, fields, stands_in).await {
            Ok([name, password]) => match unfit(name.expose_secret(), password.expose_secret(), Default::default()) {
                None => has(check, item, fields),
                // Every BMC would refuse it (C-26).
                Some(why) => {
                    let message = format!("the item '{item}' has a login that no BMC takes: {why}");
                    Check::to_mend(Level::Fail, check, message, format!("change the item '{item}' of the vault"))
                }
            },
            Err(why) => why.to_check(check),
        });
    }
    keys
}

/// Why an item is not there.
enum Lacking<'a> {
    StandsIn(&'a Cause),
    Vault(VaultError),
}

impl Lacking<'_> {
    fn to_check(&self, check: &str) -> Check {
        match self {
            Lacking::StandsIn(cause) => Check::blocked(check, cause),
            Lacking::Vault(error) => unasked(check, error),
        }
    }
}

async fn fixed_item<'a>(
    vault: &Vault,
    item: &str,
    [first, second]: [&str; 2],
    stands_in: Option<&'a Cause>,
) -> Result<[SecretString; 2], Lacking<'a>> {
    match stands_in {
        Some(cause) => Err(Lacking::StandsIn(cause)),
        None => {
            let first = vault.ask(item, first).await.map_err(Lacking::Vault)?;
            Ok([first, vault.ask(item, second).await.map_err(Lacking::Vault)?])
        }
    }
}

fn has(check: &str, item: &str, fields: [&str; 2]) -> Check {
    Check::ok(check, format!("the item '{item}' has '{}'", fields.join("' and '")))
}

/// The items of hosts' BMCs.
pub(super) async fn bmc_items(
    vault: &Vault,
    netbox: Result<&(NetBox, Hidden), Cause>,
    stands_in: Option<&Cause>,
    tell: &mut dyn FnMut(Check),
) {
    let check = "vault.item.bmc";
    let netbox = netbox.and_then(|(netbox, hidden)| hidden.get("dcim.device").map_or(Ok(netbox), |c| Err(c.clone())));
    tell(match (stands_in, netbox) {
        (Some(cause), _) => Check::blocked(check, cause),
        (None, Err(cause)) => Check::blocked(check, &cause),
        (None, Ok(netbox)) => hosts(vault, netbox).await,
    });
}

/// The items of the first hosts that NetBox tells with a BMC.
async fn hosts(vault: &Vault, netbox: &NetBox) -> Check {
    let check = "vault.item.bmc";
    let devices = match netbox.pointing_devices().await {
        Ok(devices) => devices,
        Err(error) => {
            let failure = netbox.failure(&error, Phase::StatusGate);
            return Check::of_failure(Level::Unknown, check, &failure);
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
