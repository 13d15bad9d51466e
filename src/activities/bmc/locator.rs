//! Lights a host's locator LED for whoever stands before the rack (U10). Belongs to no run.

use super::access::{Bmc, Trouble};
use crate::activities::env::ActivityCx;
use crate::clients::redfish::locator::find;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::rack::{Located, LocatorWish};
use crate::workflows::defs::Target;

/// Reads the locator and, where something is wished that it is not, changes it and reads it back.
pub async fn locator(cx: &ActivityCx, target: &Target, wish: Option<LocatorWish>) -> Result<Located, Failure> {
    let bmc = Bmc::open(cx, target, Phase::Bmc).await?;
    let outcome = locate(&bmc, wish).await;
    bmc.settle(outcome).await
}

async fn locate(bmc: &Bmc<'_>, wish: Option<LocatorWish>) -> Result<Located, Trouble> {
    let (vendor, system) = bmc.system_of_any().await?;
    let resting = vendor.map(|vendor| vendor.dialect().resting_led());
    let Some(locator) = find(&bmc.redfish, &system, resting).await? else {
        let host = &bmc.target.host;
        return Err(bmc
            .fail(
                FailureCode::BmcRefused,
                format!("the BMC of '{host}' has no locator LED that Redfish knows of"),
                format!("find '{host}' by its place in the rack and its serial number"),
            )
            .into());
    };
    let now = locator.is_on();
    let on = match wish {
        None => return Ok(Located { on: now, changed: false, by: locator.source() }),
        Some(LocatorWish::On) => true,
        Some(LocatorWish::Off) => false,
        // What is not known is lit: that is what somebody looks for.
        Some(LocatorWish::Toggle) => now != Some(true),
    };
    let lit = locator.set(&bmc.redfish, on, bmc.read_back_budget()).await?;
    Ok(Located { on: Some(on), changed: lit.changed, by: lit.by })
}
