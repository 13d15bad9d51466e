//! Proves by a real login over IPMI that whoever is to use it can: the monitoring user, and Ironic where the driver becomes
//! `ipmi` (X1). A look: a session is opened, asked who the BMC is, and closed.

use std::net::SocketAddr;
use std::time::Duration;

use super::access::{Bmc, credential};
use super::{BMC, ipmi_user, wrong_tries};
use crate::activities::env::ActivityCx;
use crate::activities::vault;
use crate::clients::ipmi::{BmcKey, IpmiError, Login, Patience, Privilege, Proof};
use crate::clients::vault::VaultError;
use crate::config::settings::SecretRef;
use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::phase::Phase;
use crate::workflows::defs::{ProveIpmiIn, ProveIpmiOut};

/// Whom a login is made as.
struct Who<'a> {
    /// Item of the vault.
    item: &'a str,
    level: Privilege,
    /// What for, in words.
    purpose: &'static str,
}

/// Logs in as those who are to use IPMI, one after the other.
pub async fn prove_ipmi(cx: &ActivityCx, input: ProveIpmiIn) -> Result<ProveIpmiOut, Failure> {
    let bmc = Bmc::open_unproven(cx, &input.target, Phase::Bmc).await?;
    // As Ironic's driver does, whatever address Redfish has.
    let Some(address) = bmc.facts.oob_ip else {
        let host = &bmc.target.host;
        return Err(bmc.fail(
            FailureCode::NetboxDataMissing,
            format!("NetBox has no oob_ip for '{host}', and IPMI is asked there"),
            format!("give '{host}' its out-of-band IP in NetBox (oob_ip of the device)"),
        ));
    };
    let to = SocketAddr::new(address, bmc.site.bmc.ipmi_port);
    let monitoring = &cx.env.vault.settings().ipmi_item;
    let mut everybody = Vec::new();
    if input.monitoring {
        everybody.push(Who { item: monitoring, level: Privilege::User, purpose: "monitoring" });
    }
    if input.administrator {
        everybody.push(Who { item: &bmc.item, level: Privilege::Administrator, purpose: "Ironic's driver ipmi" });
    }
    let mut proven = Vec::new();
    for who in everybody {
        let credential = credential(cx, who.item, bmc.phase).await?;
        let user = credential.username.clone();
        let bmc_key = bmc_key(cx, &bmc).await?;
        let login = Login { username: credential.username, password: credential.password, bmc_key };
        match cx.env.clients.ipmi_login(to, &login, who.level, &patience(&bmc)).await {
            Ok(Some(Proof { suite, level, firmware, by_bmc_key })) => {
                let key = if by_bmc_key { " with the BMC's key" } else { "" };
                let words = format!(
                    "'{user}' logs in over IPMI at {to} as {level}, for {} (cipher suite {suite}{key}, firmware {firmware})",
                    who.purpose
                );
                cx.note(BMC, words.clone());
                proven.push(words);
            }
            Ok(None) => {
                cx.note(
                    BMC,
                    format!(
                        "would prove that '{user}' logs in over IPMI at {to} as {}, for {}",
                        who.level, who.purpose
                    ),
                );
            }
            Err(error) => {
                if matches!(error, IpmiError::WrongPassword { .. }) {
                    wrong_tries::remember(cx, &input.target, bmc.phase).await?;
                    if who.level == Privilege::User {
                        ipmi_user::doubt(cx, &input.target, bmc.phase).await?;
                    }
                }
                return Err(failure(&bmc, &who, to, &error));
            }
        }
    }
    Ok(ProveIpmiOut { proven })
}

/// The key of this BMC, where the site names a place for one and that place has one. A BMC that has a key and is asked without
/// it says so: a host whose item lacks it is not passed over.
async fn bmc_key(cx: &ActivityCx, bmc: &Bmc<'_>) -> Result<Option<BmcKey>, Failure> {
    let Some(reference) = key_of(bmc) else { return Ok(None) };
    let text = match cx.env.vault.resolve(&reference).await {
        Ok(text) => text,
        Err(VaultError::Missing { .. } | VaultError::EnvMissing(_)) => return Ok(None),
        Err(error) => return Err(vault::failure(&error, bmc.phase)),
    };
    BmcKey::parse(&text).map(Some).map_err(|error| {
        bmc.fail(
            FailureCode::BmcPasswordPolicy,
            format!("IPMI of '{}': {error}", bmc.target.host),
            format!("correct {reference}: up to 20 characters, or 0x and up to 40 hexadecimal digits; then retry"),
        )
    })
}

/// The place of the key; `{host}` in the name of an item stands for the device's name.
fn key_of(bmc: &Bmc<'_>) -> Option<SecretRef> {
    Some(match bmc.site.bmc.ipmi_key.clone()? {
        SecretRef::Vault { item, field } => SecretRef::Vault { item: item.replace("{host}", &bmc.target.host), field },
        other => other,
    })
}

fn patience(bmc: &Bmc<'_>) -> Patience {
    let settings = &bmc.site.bmc;
    let first = Duration::from_secs(1).min(settings.timeout / 8);
    Patience { first, deadline: settings.timeout, sessions: settings.busy_budget }
}

/// What an error of the login means: code, owner, action.
fn failure(bmc: &Bmc<'_>, who: &Who<'_>, to: SocketAddr, error: &IpmiError) -> Failure {
    let (host, Who { item, level, purpose }) = (&bmc.target.host, who);
    let of = |code, action: String| {
        bmc.fail(code, format!("IPMI of '{host}' for {purpose}: {error}"), action)
            .with_evidence(format!("ipmi {to}"), error.to_string())
    };
    match error {
        IpmiError::Silent { .. } => of(
            FailureCode::BmcIpmiUnreachable,
            format!(
                "let UDP {} through from muster to the BMCs of the site, check that IPMI over LAN is on at the BMC of \
                 '{host}', then retry",
                to.port()
            ),
        )
        .owned_by(Owner::Netops),
        IpmiError::Refused { .. } => of(
            FailureCode::BmcIpmiUnreachable,
            format!("switch IPMI over LAN on at the BMC of '{host}', check its port, then retry"),
        ),
        IpmiError::NoWay { .. } => of(
            FailureCode::BmcIpmiUnreachable,
            format!("give the machine that runs muster a route to {}, then retry", to.ip()),
        )
        .owned_by(Owner::Netops),
        IpmiError::NotV2 { .. } | IpmiError::NoCommonSuite { .. } => of(
            FailureCode::BmcIpmiUnsupported,
            format!(
                "switch IPMI 2.0 with cipher suite 17 or 3 on at the BMC of '{host}', or update its firmware; else take \
                 prove_ipmi from the site's options"
            ),
        ),
        IpmiError::BmcKey { .. } => of(
            FailureCode::BmcIpmiUnsupported,
            match key_of(bmc) {
                Some(reference) => {
                    format!("put the key of the BMC of '{host}' into {reference}, or clear it at the BMC, then retry")
                }
                None => format!(
                    "say in [sites.{}.bmc] ipmi_key where the key of the BMC of '{host}' is, or clear it at the BMC, then retry",
                    bmc.target.site
                ),
            },
        ),
        IpmiError::OtherBmcKey { .. } => of(
            FailureCode::BmcIpmiLoginFailed,
            format!(
                "put the key (K_g) of the BMC of '{host}' into {}, or give the BMC the one that is there, then retry",
                key_of(bmc).map_or_else(|| "the vault".to_owned(), |reference| reference.to_string())
            ),
        ),
        IpmiError::UnknownUser { user } => of(
            FailureCode::BmcIpmiLoginFailed,
            format!("allow IPMI over LAN to the user '{user}' of the BMC of '{host}', then retry"),
        ),
        IpmiError::WrongPassword { .. } if *level == Privilege::User => of(
            FailureCode::BmcIpmiLoginFailed,
            format!("retry: the account is written anew then; if it stays so, check the item '{item}' of the vault"),
        ),
        IpmiError::WrongPassword { user } => of(
            FailureCode::BmcIpmiLoginFailed,
            format!(
                "set the password of '{user}' anew at the BMC of '{host}' to that of the item '{item}' of the vault, then \
                 retry: it has another one for IPMI"
            ),
        ),
        IpmiError::TooHigh { user, .. } => of(
            FailureCode::BmcIpmiLoginFailed,
            format!("give the user '{user}' of the BMC of '{host}' the IPMI LAN privilege {level}, then retry"),
        ),
        IpmiError::SessionsFull { .. } => of(
            FailureCode::BmcIpmiSessionsFull,
            format!("end IPMI sessions of the BMC of '{host}' that nobody uses, then retry"),
        ),
        IpmiError::Unfit { .. } => of(
            FailureCode::BmcPasswordPolicy,
            format!("change the item '{item}' of the vault, then retry: IPMI cannot carry what it has"),
        ),
        IpmiError::Denied { .. } | IpmiError::Unusable { .. } => of(
            FailureCode::BmcAnswerUnexpected,
            format!("retry; if it stays so, reset the BMC of '{host}' or update its firmware"),
        ),
    }
}
