//! Remembers that a BMC was given a password and has not been restarted since (B4): some take it into force everywhere only
//! then. An attempt that fails behind the write, or a run that ends there, leaves it to the next one.

use super::access::store_failure;
use crate::activities::env::ActivityCx;
use crate::domain::failure::Failure;
use crate::domain::phase::Phase;
use crate::workflows::defs::Target;

fn key(target: &Target) -> String {
    format!("bmc.reset_due.{}", target.netbox_id)
}

/// A password is about to be set.
pub(super) async fn remember(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    cx.env.store.put_meta(&key(target), &cx.run.to_string()).await.map_err(|error| store_failure(&error, phase))
}

/// Whether the restart is still to come.
pub(super) fn is_due(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<bool, Failure> {
    let kept = cx.env.store.get_meta(&key(target)).map_err(|error| store_failure(&error, phase))?;
    Ok(kept.is_some_and(|run| !run.is_empty()))
}

/// The BMC was restarted.
pub(super) async fn forget(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    if !is_due(cx, target, phase)? {
        return Ok(());
    }
    cx.env.store.put_meta(&key(target), "").await.map_err(|error| store_failure(&error, phase))
}
