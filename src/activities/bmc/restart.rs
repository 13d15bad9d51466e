//! Restarts the host behind a BMC, once a step, for what is staged on it (B8).

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::BMC;
use super::access::{Bmc, Trouble, keep, kept};
use super::prepare::vendor;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::vendor::Vendor;
use crate::clients::redfish::{Redfish, Resource, host};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{Changed, Target};

/// How long a host may take to go off.
const OFF_WITHIN: Duration = Duration::from_secs(60);

/// Powers the host on where it is off, and restarts it where it is on. An attempt that finds that a former one of the same
/// step has asked does not ask again: a second restart could cut short what the first one carries in.
pub async fn restart_host(cx: &ActivityCx, target: Target) -> Result<Changed, Failure> {
    let bmc = Bmc::open(cx, &target, Phase::Bmc).await?;
    let outcome = restart(&bmc).await;
    bmc.settle(outcome).await
}

async fn restart(bmc: &Bmc<'_>) -> Result<Changed, Trouble> {
    let key = format!("bmc.restart.{}.{}", bmc.cx.run, bmc.cx.seq);
    if !kept(bmc.cx, &key, bmc.phase)?.is_empty() {
        return Ok(Changed { changed: true, note: "the restart was asked for before".to_owned() });
    }
    let root = bmc.redfish.root().await?;
    let (vendor, _) = vendor(bmc, &root)?;
    let system = bmc.parts(&root).await?.system;
    let off = system.text("PowerState").is_some_and(|state| state.eq_ignore_ascii_case("Off"));
    let allowed = host::reset_types(&bmc.redfish, &system, "ComputerSystem.Reset").await;
    let has = |kind: &str| allowed.is_empty() || allowed.iter().any(|word| word == kind);
    // Some Lenovo hosts hang in a restart that is forced; off and on again never does.
    let in_one = vendor != Vendor::Lenovo && has("ForceRestart");
    keep(bmc.cx, &key, &Timestamp::now().to_string(), bmc.phase).await?;
    let done = match (off, in_one) {
        (true, _) => press(bmc, &system, "On").await.map(|()| "On"),
        (false, true) => press(bmc, &system, "ForceRestart").await.map(|()| "ForceRestart"),
        (false, false) => off_and_on(bmc, &system).await.map(|()| "ForceOff, On"),
    };
    match done {
        Ok(kind) => {
            bmc.cx.wrote(BMC, &bmc.target.host, "power", if off { "off" } else { "on" }, kind);
            Ok(Changed { changed: true, note: format!("{kind} asked for") })
        }
        // It may have been done, and a second restart could cut short what the first one carries in. Whoever waits for that
        // sees whether it was, and asks again where no boot came.
        Err(Trouble::Redfish(lost)) if matches!(*lost, RedfishError::Http(_)) => {
            Ok(Changed { changed: true, note: format!("asked for, and the answer was lost: {lost}") })
        }
        Err(trouble) => {
            // It said no: nothing was asked, and a further attempt may.
            keep(bmc.cx, &key, "", bmc.phase).await?;
            Err(trouble)
        }
    }
}

/// Presses the power button. A refusal because the host is in that state already is none (409).
pub(super) async fn press(bmc: &Bmc<'_>, system: &Resource, kind: &str) -> Result<(), Trouble> {
    let Some(target) = system.text("/Actions/#ComputerSystem.Reset/target") else {
        return Err(bmc
            .fail(
                FailureCode::BmcAnswerUnexpected,
                format!("the BMC of '{}' offers no way to restart its host", bmc.target.host),
                format!("restart '{}' by hand, then retry", bmc.target.host),
            )
            .into());
    };
    loop {
        match bmc.redfish.post(&target, &json!({"ResetType": kind})).await {
            Ok(_) | Err(RedfishError::Refused { status: 409, .. }) => return Ok(()),
            Err(busy @ RedfishError::Busy { .. }) => bmc.redfish.be_patient(busy).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn off_and_on(bmc: &Bmc<'_>, system: &Resource) -> Result<(), Trouble> {
    press(bmc, system, "ForceOff").await?;
    let until = tokio::time::Instant::now() + OFF_WITHIN;
    while !is_off(&bmc.redfish, system).await? {
        // A plan switches nothing off.
        if tokio::time::Instant::now() >= until || bmc.redfish.is_rehearsed() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    press(bmc, system, "On").await
}

async fn is_off(redfish: &Redfish, system: &Resource) -> Result<bool, RedfishError> {
    let now = redfish.get(&system.path).await?;
    Ok(now.text("PowerState").is_some_and(|state| state.eq_ignore_ascii_case("Off")))
}
