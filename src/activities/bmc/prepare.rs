//! Finds a BMC's vendor and proves the host's credential, once.

use super::BMC;
use super::access::{Bmc, Trouble};
use super::wrong_tries;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::Resource;
use crate::clients::redfish::dialect::Dialect;
use crate::clients::redfish::vendor::{Detected, Vendor, detect};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{PrepareBmcIn, PrepareBmcOut};

/// Reads the vendor from the service root (B1), then logs in by an authenticated read. A refused credential is final: there
/// is no second try (B3). Writes nothing.
pub async fn prepare(cx: &ActivityCx, input: PrepareBmcIn) -> Result<PrepareBmcOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let outcome = look(&bmc, input.force_restart).await;
    let out = bmc.settle(outcome).await?;
    wrong_tries::forget(cx, &input.target, Phase::Bmc).await?;
    Ok(out)
}

async fn look(bmc: &Bmc<'_>, force_restart: bool) -> Result<PrepareBmcOut, Trouble> {
    let root = bmc.redfish.root().await?;
    let (vendor, _) = vendor(bmc, &root)?;
    let parts = bmc.parts(&root).await?;
    let model = parts.system.text("Model").unwrap_or_else(|| "-".to_owned());
    let firmware = parts.manager.text("FirmwareVersion").unwrap_or_else(|| "-".to_owned());
    let user = bmc.redfish.user();
    bmc.cx.note(
        BMC,
        format!("{} '{model}', firmware '{firmware}', at {}: '{user}' works", vendor.label(), bmc.redfish.host()),
    );
    Ok(PrepareBmcOut {
        vendor: vendor.label().to_owned(),
        model,
        // No flow of this version rotates a password (B16).
        password_rotated: false,
        needs_reset: force_restart,
    })
}

/// The vendor of a service root, with its dialect. Everything else is refused before the first login.
pub(super) fn vendor(bmc: &Bmc<'_>, root: &Resource) -> Result<(Vendor, &'static dyn Dialect), Failure> {
    let host = &bmc.target.host;
    let by_hand = format!("configure the BMC of '{host}' by hand and run with the site's gate configure_bmc off");
    match detect(root) {
        Detected::Known(vendor) => match vendor.dialect() {
            Some(dialect) => Ok((vendor, dialect)),
            None => Err(bmc.fail(
                FailureCode::BmcVendorUnsupported,
                format!(
                    "the BMC of '{host}' is a {}, and this version of muster configures Supermicro BMCs only",
                    vendor.label()
                ),
                by_hand,
            )),
        },
        Detected::Unknown { read } => Err(bmc
            .fail(
                FailureCode::BmcVendorUnknown,
                format!("the service root of the BMC of '{host}' names {read}: no vendor that muster knows"),
                format!("check that {} is the BMC of '{host}'; if it is, {by_hand}", bmc.redfish.host()),
            )
            .with_evidence(format!("redfish {}", root.path), read)),
    }
}
