//! Steps of the inspection half: manage, RAID target, inspect, abort, verify; and the look that every half takes.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::cables;
use super::common::{Desk, Did, changed, shown, step, unchanged};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::ironic::{Node, Verb};
use crate::domain::checks;
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::provision::ProvisionState::*;
use crate::workflows::defs::{NodeLook, NodeTarget, Step, VerifyOut};

/// One look at the node. Never changes anything.
pub async fn look(cx: &ActivityCx, input: NodeTarget) -> Result<NodeLook, Failure> {
    let node = Desk::of(cx, &input)?.node(input.node).await?;
    Ok(NodeLook {
        state: node.state,
        target_state: node.target_state,
        power: node.power,
        reservation: node.reservation,
        last_error: node.last_error.map(|e| crate::domain::text::neutralize_to(&e, 500)),
        clean_step: node.clean_step,
        maintenance: node.maintenance,
        instance_uuid: node.instance_uuid,
        last_heartbeat: node.last_heartbeat.map(|at| crate::domain::text::neutralize_to(&at, 60)),
    })
}

/// Asks for `manage` where the node is in `enroll` (I8).
pub async fn manage(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    let node = desk.unowned(input.node).await?;
    step(match node.state {
        Enroll => match desk.has_asked(&node, Verb::Manage) {
            // It has failed meanwhile: the workflow says why.
            Ok(true) => unchanged("manage was asked for by an earlier attempt"),
            Ok(false) => desk.ask_once(&node, Verb::Manage).await,
            Err(stop) => Err(stop),
        },
        Verifying => unchanged("manage is under way"),
        Manageable => unchanged("manageable already"),
        _ => Err(desk.unexpected(&node, "manage goes from 'enroll'").into()),
    })
}

/// Applies NetBox's RAID target where there is one; Ironic takes it in `manageable` only (I9).
pub async fn raid_target(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    let facts = facts::read(cx, &input.target, input.phase).await?;
    let settings = desk.settings(&facts)?;
    let Some(wanted) = settings.target_raid_config.as_ref().filter(|config| !config.is_empty()) else {
        return step(unchanged("NetBox has no RAID target for it"));
    };
    let node = desk.unowned(input.node).await?;
    if node.target_raid_config == *wanted {
        return step(unchanged("the RAID target is set"));
    }
    // Ironic would answer that there is no such thing, which says nothing of what is to be mended.
    if node.interfaces.get("raid_interface").is_some_and(|has| has == "no-raid") {
        return Err(desk.invalid(
            "raid_interface",
            "no-raid",
            "one that builds the target_raid_config of the host (agent)",
        ));
    }
    if node.state != Manageable {
        return Err(desk.unexpected(&node, "a RAID target is taken in 'manageable' only"));
    }
    step(set_raid(&desk, &node, wanted).await)
}

async fn set_raid(desk: &Desk, node: &Node, wanted: &Map<String, Value>) -> Did {
    let doing = format!("setting the RAID target of '{}'", desk.host);
    desk.ironic.set_raid_target(node.uuid, wanted).await.map_err(|e| desk.stop(e, node, &doing))?;
    let text = |config: &Map<String, Value>| shown(&Value::Object(config.clone()));
    desk.wrote("RAID target", text(&node.target_raid_config), text(wanted));
    let back = desk.node(node.uuid).await?;
    if back.target_raid_config != *wanted {
        let has = text(&back.target_raid_config);
        return Err(desk
            .failure(
                FailureCode::IronicAnswerUnexpected,
                format!("the RAID target of '{}' reads back as '{has}'", desk.host),
                "compare target_raid_config in NetBox with what Ironic keeps of it, then retry",
            )
            .into());
    }
    changed("RAID target set")
}

/// Asks for `inspect` (I12).
pub async fn inspect(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    let node = desk.unowned(input.node).await?;
    step(try_inspect(&desk, &node).await)
}

async fn try_inspect(desk: &Desk, node: &Node) -> Did {
    match node.state {
        Inspecting | InspectWait => unchanged("an inspection is under way"),
        _ if desk.has_asked(node, Verb::Inspect)? => {
            unchanged("the inspection that an earlier attempt asked for has ended")
        }
        Manageable => desk.ask_once(node, Verb::Inspect).await,
        _ => Err(desk.unexpected(node, "inspect goes from 'manageable'").into()),
    }
}

/// Asks for `abort` of an inspection or a clean (L2). While a conductor is at work (`inspecting`, `cleaning`) Ironic takes
/// none: that is retried.
pub async fn abort(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    let node = desk.unowned(input.node).await?;
    step(match node.state {
        InspectWait | CleanWait => match desk.ask(&node, Verb::Abort).await {
            Ok(()) => changed("abort asked for"),
            Err(stop) => Err(stop),
        },
        Inspecting | Cleaning => Err(desk.unexpected(&node, "abort goes from its waiting state").into()),
        _ => unchanged(format!("nothing to abort in '{}'", node.state)),
    })
}

/// Judges the node's inventory against NetBox, both read now (V1–V9). A mismatch is an output, not a failure.
pub async fn verify(cx: &ActivityCx, input: NodeTarget) -> Result<VerifyOut, Failure> {
    let desk = Desk::of(cx, &input)?;
    let facts = facts::read(cx, &input.target, input.phase).await?;
    desk.settings(&facts)?;
    let node = desk.node(input.node).await?;
    let doing = format!("reading the inventory of '{}'", desk.host);
    let inventory = desk.ironic.inventory(input.node).await.map_err(|e| desk.failed(e, &doing))?;
    let Some(found) = inventory else { return Ok(VerifyOut { verification: None }) };
    let mut verification = checks::judge(&facts, &found.inventory, &found.plugin_data, node.inspected_at);
    let at = node.inspected_at.unwrap_or_else(Timestamp::now);
    let heard = checks::heard(&facts, &found.inventory, &found.plugin_data, at);
    cables::consult(cx, &facts, heard, node.inspected_at.is_some(), &mut verification).await;
    let fresh = is_fresh(cx.run, node.inspected_at);
    cx.observe(Observation::Verified { verification: verification.clone(), fresh });
    Ok(VerifyOut { verification: Some(verification) })
}

/// Whether the inspection ended after the run was submitted: the time is in the run's id. For the screen only, since the
/// two clocks are two.
fn is_fresh(run: RunId, inspected_at: Option<Timestamp>) -> bool {
    let submitted = run.0.get_timestamp().map(|t| t.to_unix().0);
    match (submitted, inspected_at) {
        (Some(submitted), Some(inspected)) => inspected.as_second() >= submitted as i64,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inspection_is_fresh_where_it_ended_after_the_submission() {
        let run = RunId(uuid::Uuid::now_v7());
        let now = Timestamp::now();
        assert!(is_fresh(run, Some(now)));
        assert!(!is_fresh(run, Some(now - jiff::SignedDuration::from_secs(60))));
        assert!(!is_fresh(run, None));
        assert!(!is_fresh(RunId(uuid::Uuid::new_v4()), Some(now)));
    }
}
