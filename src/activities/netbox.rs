//! What a run asks and changes in NetBox: the status gate, the platform class, the activation, the tags.

mod platform_class;
mod tag;

pub use platform_class::platform_class;
pub use tag::add_tag;

use super::env::ActivityCx;
use super::facts::{Depth, find};
use crate::clients::netbox::Versioned;
use crate::clients::netbox::error::NetBoxError;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize;
use crate::workflows::defs::{Changed, GateOut, Target};

/// The word of the event list for this system.
const NETBOX: &str = "netbox";

/// Does NetBox have the device in a status that may be enrolled? Read live: the inventory may lag (S2).
pub async fn status_gate(cx: &ActivityCx, target: Target) -> Result<GateOut, Failure> {
    let device = find(cx, &target, Phase::StatusGate, Depth::Plain).await?.record;
    let status = device.status.value;
    let host = &target.host;
    cx.note(NETBOX, format!("'{host}' is '{}'", neutralize(&status)));
    if !matches!(status.as_str(), "staged" | "active") {
        return Err(Failure::new(
            FailureCode::DeviceStatusRefused,
            Phase::StatusGate,
            format!("NetBox has '{host}' as '{}', enrollment needs 'staged' or 'active'", neutralize(&status)),
            format!("set the status of '{host}' to staged in NetBox once it is racked and cabled, then run again"),
        )
        .with_evidence(
            format!("netbox /api/dcim/devices/{}/", device.id),
            format!("status '{}'", neutralize(&status)),
        ));
    }
    Ok(GateOut { status })
}

/// `staged` → `active`; any other status is left alone (A1). Written under the ETag of the read, so that nobody's change in
/// between is overwritten; after a conflict once more from what stands there then.
pub async fn activate(cx: &ActivityCx, target: Target) -> Result<Changed, Failure> {
    const PHASE: Phase = Phase::Activation;
    let netbox = &cx.env.clients.netbox;
    let host = &target.host;
    let mut conflict = None;
    for _ in 0..2 {
        let Versioned { record: device, etag } = find(cx, &target, PHASE, Depth::Plain).await?;
        let status = neutralize(&device.status.value).into_owned();
        if status != "staged" {
            let note = format!("'{host}' is '{status}', left as it is");
            cx.note(NETBOX, note.clone());
            return Ok(Changed { changed: false, note });
        }
        match netbox.set_status(device.id, "active", etag.as_deref()).await {
            Ok(()) => {}
            Err(error @ NetBoxError::Conflict { .. }) => {
                conflict = Some(error);
                continue;
            }
            Err(error) => return Err(netbox.failure(&error, PHASE)),
        }
        cx.wrote(NETBOX, host, "status", "staged", "active");
        let after = netbox.device_plain(device.id).await.map_err(|error| netbox.failure(&error, PHASE))?.record.status;
        if after.value == "staged" {
            return Err(not_kept(host, "status", "active", &after.value, PHASE));
        }
        return Ok(Changed { changed: true, note: format!("'{host}' is '{}' now", neutralize(&after.value)) });
    }
    let error = conflict.unwrap_or(NetBoxError::Conflict { asked: "PATCH".to_owned() });
    Err(netbox.failure(&error, PHASE))
}

/// A write that NetBox accepted and that does not stand there afterwards.
fn not_kept(host: &str, what: &str, wrote: &str, reads: &str, phase: Phase) -> Failure {
    Failure::new(
        FailureCode::NetboxWriteConflict,
        phase,
        format!("{what} of '{host}' was written as '{wrote}' and reads back as '{}'", neutralize(reads)),
        format!("find in the change log of '{host}' in NetBox who else writes its {what}, then run again"),
    )
}
