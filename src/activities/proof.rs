//! The terminal proof: a device counts as enrolled for exactly the node that the fleet view has of it (T1).

use jiff::Timestamp;

use super::env::ActivityCx;
use crate::domain::device::Proof;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::store::ProveOutcome;
use crate::workflows::defs::{ProveIn, ProveOut};

/// Sets the proof if the projected reference is the node that this run enrolled. Where it is not, the projection may only
/// be late: the observers are asked for a look, and the workflow for patience (T2). So that is an output, no failure.
pub async fn prove(cx: &ActivityCx, input: ProveIn) -> Result<ProveOut, Failure> {
    let ProveIn { target, node } = input;
    let proof = Proof { node, instance: target.ironic.clone(), run: cx.run, at: Timestamp::now() };
    let outcome = cx.env.store.prove(&target.host, proof).await.map_err(|error| {
        Failure::new(
            FailureCode::StoreFailed,
            Phase::Finalize,
            format!("the proof of '{}' could not be kept: {error}", target.host),
            "do what the message says about muster's own store, then retry",
        )
    })?;
    match outcome {
        ProveOutcome::Accepted => {
            cx.note("muster", format!("enrollment of '{}' proven for node {node}", target.host));
            Ok(ProveOut { accepted: true, projected: Some(node) })
        }
        ProveOutcome::Mismatch(projected) => {
            // Kept until an observer takes it, so that a look under way does not swallow it.
            cx.env.refresh_nodes.notify_one();
            Ok(ProveOut { accepted: false, projected })
        }
    }
}
