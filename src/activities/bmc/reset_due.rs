//! Remembers that a BMC was given a password and has not been restarted since (B4): some take it into force everywhere only
//! then. An attempt that fails behind the write, or a run that ends there, leaves it to the next one.

use super::access::{keep, kept};
use crate::activities::env::ActivityCx;
use crate::domain::failure::Failure;
use crate::domain::phase::Phase;
use crate::workflows::defs::Target;

fn key(target: &Target) -> String {
    format!("bmc.reset_due.{}", target.netbox_id)
}

/// A password is about to be set.
pub(super) async fn remember(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    keep(cx, &key(target), &cx.run.to_string(), phase).await
}

/// Whether the restart is still to come.
pub(super) fn is_due(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<bool, Failure> {
    Ok(!kept(cx, &key(target), phase)?.is_empty())
}

/// The BMC was restarted.
pub(super) async fn forget(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    if is_due(cx, target, phase)? { keep(cx, &key(target), "", phase).await } else { Ok(()) }
}
