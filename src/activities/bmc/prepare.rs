//! Finds a BMC's vendor and proves the host's credential, once.

use super::BMC;
use super::access::{Bmc, Trouble};
use super::flow::flow;
use super::{password, reset_due, wrong_tries};
use crate::activities::env::ActivityCx;
use crate::clients::redfish::Resource;
use crate::clients::redfish::dialect::Dialect;
use crate::clients::redfish::vendor::{Detected, Vendor, detect};
use crate::config::settings::Trust;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{PrepareBmcIn, PrepareBmcOut};

/// Reads the vendor from the service root (B1), then proves the vault's credential by an authenticated read, or makes it work
/// where the vendor's flow sets passwords (B3).
pub async fn prepare(cx: &ActivityCx, input: PrepareBmcIn) -> Result<PrepareBmcOut, Failure> {
    let bmc = Bmc::open_unproven(cx, &input.target, Phase::Bmc).await?;
    let outcome = look(&bmc, input.force_restart).await;
    let out = bmc.settle(outcome).await?;
    wrong_tries::forget(cx, &input.target, Phase::Bmc).await?;
    Ok(out)
}

async fn look(bmc: &Bmc<'_>, force_restart: bool) -> Result<PrepareBmcOut, Trouble> {
    let root = bmc.redfish.root().await?;
    let (vendor, dialect) = vendor(bmc, &root)?;
    let flow = flow(vendor);
    let proven = password::prove(bmc, &root, dialect, flow).await?;
    let parts = &proven.parts;
    let model = parts.system.text("Model").unwrap_or_else(|| "-".to_owned());
    let firmware = parts.manager.text("FirmwareVersion").unwrap_or_else(|| "-".to_owned());
    let user = proven.redfish.user();
    bmc.cx.note(
        BMC,
        format!(
            "{} '{model}', firmware '{firmware}', at {}: '{user}' works{}",
            vendor.label(),
            bmc.redfish.host(),
            unchecked(bmc)
        ),
    );
    Ok(PrepareBmcOut {
        vendor: vendor.label().to_owned(),
        model,
        password_rotated: proven.rotated,
        needs_reset: proven.rotated || force_restart || reset_due::is_due(bmc.cx, bmc.target, bmc.phase)?,
        stages: flow.stages(),
    })
}

/// A site that checks no certificate says so in every run.
fn unchecked(bmc: &Bmc<'_>) -> &'static str {
    let settings = &bmc.site.bmc;
    if settings.scheme == "https" && settings.trust == Trust::Anything {
        "; its certificate is not checked (the site has trust = \"anything\")"
    } else {
        ""
    }
}

/// The vendor of a service root, with its dialect. Everything else is refused before the first login.
pub(super) fn vendor(bmc: &Bmc<'_>, root: &Resource) -> Result<(Vendor, &'static dyn Dialect), Failure> {
    let host = &bmc.target.host;
    let by_hand = format!("configure the BMC of '{host}' by hand and run with the site's gate configure_bmc off");
    match detect(root) {
        Detected::Known(vendor) => Ok((vendor, vendor.dialect())),
        Detected::Unknown { read } => Err(bmc
            .fail(
                FailureCode::BmcVendorUnknown,
                format!("the service root of the BMC of '{host}' names {read}: no vendor that muster knows"),
                format!("check that {} is the BMC of '{host}'; if it is, {by_hand}", bmc.redfish.host()),
            )
            .with_evidence(format!("redfish {}", root.path), read)),
    }
}
