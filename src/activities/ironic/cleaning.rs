//! Steps of the cleaning half: maintenance off, `provide`, power on (C1, C7, I14).

use super::common::{Desk, Did, changed, step, unchanged};
use crate::activities::env::ActivityCx;
use crate::clients::ironic::Verb;
use crate::domain::failure::Failure;
use crate::domain::provision::{Power, ProvisionState};
use crate::workflows::defs::{NodeTarget, Step};

/// Clears maintenance and asks for `provide`. A node in maintenance would take the verb and then wait for ever, since the
/// heartbeats of its ramdisk are ignored (C1).
pub async fn provide(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    step(try_provide(&desk, &input).await)
}

async fn try_provide(desk: &Desk, input: &NodeTarget) -> Did {
    use ProvisionState::*;
    let node = desk.unowned(input.node).await?;
    match node.state {
        Cleaning | CleanWait => match desk.clear_maintenance(&node).await? {
            true => changed("cleaning goes on: maintenance is off"),
            false => unchanged("cleaning is under way"),
        },
        Available => unchanged("available already"),
        _ if desk.has_asked(&node, Verb::Provide)? => {
            unchanged("the clean that an earlier attempt asked for has ended")
        }
        Manageable => {
            desk.clear_maintenance(&node).await?;
            desk.ask_once(&node, Verb::Provide).await
        }
        _ => Err(desk.unexpected(&node, "provide goes from 'manageable'").into()),
    }
}

/// Asks for power on where the node is not on; the workflow watches it come. A node that Nova may own is left alone, and
/// so is one that Ironic itself switches for an inspection or a clean.
pub async fn power_on(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    step(try_power_on(&desk, &input).await)
}

async fn try_power_on(desk: &Desk, input: &NodeTarget) -> Did {
    let node = desk.node(input.node).await?;
    if node.power == Power::On {
        return unchanged("on already");
    }
    if node.instance_uuid.is_some() || node.state == ProvisionState::Active {
        return unchanged("deployed: its power is Nova's");
    }
    if node.target_power.as_deref() == Some("power on") {
        return unchanged("power on is under way");
    }
    if !node.state.is_stable() {
        return unchanged(format!("Ironic switches it itself in '{}'", node.state));
    }
    // Each half ends in one of these; in any other somebody has moved the node since.
    if !matches!(node.state, ProvisionState::Manageable | ProvisionState::Available) {
        return Err(desk.unexpected(&node, "power on goes from 'manageable' or 'available'").into());
    }
    let doing = format!("powering on '{}'", desk.host);
    desk.ironic.power_on(node.uuid).await.map_err(|e| desk.stop(e, &node, &doing))?;
    let before = if node.power == Power::Off { "off" } else { "unknown" };
    desk.wrote("power", before, "power on asked for");
    changed("power on asked for")
}
