//! What a plan assumes where only the world can tell: a BMC's restart, links of a host that has not booted, the outcome of
//! an inspection, the proof. Each assumption stands in the plan as one.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::plan::PlanCx;
use crate::clients::rehearsal::Rehearsal;
use crate::domain::checks;
use crate::domain::link::LinkState;
use crate::domain::phase::Phase;
use crate::domain::plan::what;
use crate::domain::verify::Verdict;
use crate::workflows::cx::Activity;
use crate::workflows::defs::{
    BmcBack, BmcBackOut, BmcStage, LinksOut, NodeTarget, Prove, ProveIn, ProveOut, ReadLinks, RestartHost, StageBmc,
    StageBmcOut, StagedBmc, StagedBmcIn, StagedBmcOut, Verify, VerifyOut,
};

/// The outcome of an activity that a plan does not carry out.
pub(super) fn instead_of(cx: &PlanCx, name: &str, phase: Phase, input: &Value) -> Option<Value> {
    match name {
        // The BMC was not reset: it would look as if it had not gone away yet.
        BmcBack::NAME => {
            let back = cx.asked_before(phase, name) > 0;
            to_value(&BmcBackOut { back, away: true, note: "it does not answer".to_owned() })
        }
        // Nothing was staged: the BMC has no job that would move on.
        StagedBmc::NAME => {
            let input: StagedBmcIn = read(input)?;
            let stage = if input.booted { BmcStage::Applied } else { BmcStage::Scheduled };
            to_value(&StagedBmcOut { stage, note: "as planned".to_owned() })
        }
        // What the host's boot makes of what is staged is taken to be all of it.
        StageBmc::NAME if cx.asked_before(phase, RestartHost::NAME) > 0 => {
            let (changed, satisfied, skipped) = Default::default();
            to_value(&StageBmcOut { changed, satisfied, skipped, jobs: vec![], needs_boot: false, rest: false })
        }
        Prove::NAME => {
            let ProveIn { node, .. } = read(input)?;
            let now = cx.env().store.proof(cx.host()).ok().flatten();
            if now.as_ref().is_none_or(|proof| proof.node != node) {
                let before = now.map_or("none".to_owned(), |proof| format!("for node {}", proof.node));
                cx.step(phase, "muster", "enrollment proof", &before, &format!("for node {node}"));
            }
            to_value(&ProveOut { accepted: true, projected: Some(node) })
        }
        _ => None,
    }
}

/// Whether an activity would work on data that nobody has yet.
pub(super) fn is_imagined(rehearsal: &Rehearsal, name: &str, input: &Value) -> bool {
    name == Verify::NAME && read::<NodeTarget>(input).is_some_and(|input| rehearsal.is_inspected(input.node))
}

/// The outcome that the workflow is told, where the one of the activity is not the one of a run.
pub(super) fn after(cx: &PlanCx, name: &str, phase: Phase, input: &Value, output: Value) -> Value {
    let told = match name {
        ReadLinks::NAME => read(&output).and_then(|links| to_value(&links_come_up(cx, phase, links))),
        Verify::NAME if is_imagined(cx.rehearsal(), name, input) => {
            read(&output).and_then(|found| to_value(&every_check_passes(cx, phase, found)))
        }
        _ => None,
    };
    told.unwrap_or(output)
}

/// The links of a host that has not been booted say nothing: one of them is taken to come up.
fn links_come_up(cx: &PlanCx, phase: Phase, mut links: LinksOut) -> LinksOut {
    let now: Vec<String> =
        links.readings.iter().map(|link| format!("{} {}", link.interface, link.state.as_str())).collect();
    let now = format!("{} (now, before the boot)", now.join(", "));
    cx.step(phase, "bmc", "link guard", &now, "one of them UP, or not told by the BMC; else the run aborts and fails");
    if links.readings.iter().all(|link| link.state == LinkState::Down)
        && let Some(first) = links.readings.first_mut()
    {
        first.state = LinkState::Up;
    }
    links
}

/// Nobody knows an inspection's outcome: all that can be said is how much will be checked.
fn every_check_passes(cx: &PlanCx, phase: Phase, mut found: VerifyOut) -> VerifyOut {
    if let Some(verification) = &mut found.verification {
        let words = format!(
            "inspection: {} checks will be made on what it brings; the plan goes on as if all of them passed",
            checks::count_of_whole(verification)
        );
        cx.step(phase, "ironic", what::NOT_FORESEEN, "", &words);
        for check in &mut verification.checks {
            check.verdict = Verdict::Pass;
        }
    }
    found
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn to_value(value: &impl serde::Serialize) -> Option<Value> {
    serde_json::to_value(value).ok()
}
