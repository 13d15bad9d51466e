//! The prelude of both Ironic halves: find or create the node, guard it, recover it, converge it (E1–E14).

use super::common::{Desk, Stop, short};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::ironic::Node;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::provision::ProvisionState;
use crate::workflows::defs::{Half, PreludeIn, PreludeOut};

/// Idempotent: it may be asked for again and again, and does what is left to do.
pub async fn prelude(cx: &ActivityCx, input: PreludeIn) -> Result<PreludeOut, Failure> {
    let desk = Desk::new(cx, &input.target, input.half.phase())?;
    match run(&desk, &input).await {
        Ok(out) => Ok(out),
        Err(Stop::Locked { holder, state, node }) => Ok(PreludeOut::Locked { holder, state, node: Some(node) }),
        Err(Stop::Failed(failure)) => Err(*failure),
    }
}

async fn run(desk: &Desk, input: &PreludeIn) -> Result<PreludeOut, Stop> {
    let facts = facts::read(&desk.cx, &input.target, desk.phase).await?;
    desk.settings(&facts)?;
    desk.oob_ip(&facts)?;
    let credential = desk.credential().await?;
    let bmc = &desk.cx.site(&input.target.site, desk.phase)?.bmc;
    let Some(node) = find(desk, input.node_uuid).await? else {
        let node = desk.create(&facts, &credential, bmc, input.node_uuid).await?;
        let node = desk.converge(node, &facts, &credential, bmc).await?;
        return Ok(PreludeOut::Ready { node: node.uuid, state: node.state, created: true });
    };
    let uuid = node.uuid;
    if node.state != ProvisionState::CleanFailed {
        desk.recovered(uuid).await?;
    }
    let wait = |node: &Node, why: String| PreludeOut::Wait { node: uuid, state: node.state.clone(), why };
    match course(&node.state, node.instance_uuid.as_deref(), input.half) {
        Course::Satisfied => {
            Ok(PreludeOut::Satisfied { node: uuid, state: node.state, instance_uuid: node.instance_uuid })
        }
        Course::OwnedByNova(instance) => Err(desk.owned_by_nova(&node, &instance).into()),
        Course::Cleaning => Ok(PreludeOut::Cleaning { node: uuid, state: node.state }),
        Course::Wait => Ok(wait(&node, "Ironic is at work on it".to_owned())),
        Course::RecoverInspection => {
            desk.recover_inspection(&node).await?;
            Ok(wait(&node, "a recovery through manage was asked for".to_owned()))
        }
        Course::RecoverClean => {
            desk.recover_clean(&node).await?;
            Ok(wait(&node, "a recovery through manage was asked for".to_owned()))
        }
        Course::Review => Err(review(desk, &node).into()),
        Course::Converge => {
            let node = desk.converge(node, &facts, &credential, bmc).await?;
            Ok(PreludeOut::Ready { node: node.uuid, state: node.state, created: false })
        }
    }
}

/// The host's node, by name. A pinned UUID never re-points one (E5).
async fn find(desk: &Desk, pinned: Option<NodeUuid>) -> Result<Option<Node>, Failure> {
    let doing = format!("looking for the node of '{}'", desk.host);
    let named = desk.ironic.node(&desk.host).await.map_err(|e| desk.failed(e, &doing))?;
    let Some(pinned) = pinned else { return Ok(named) };
    if let Some(node) = named {
        if node.uuid == pinned {
            return Ok(Some(node));
        }
        return Err(desk
            .failure(
                FailureCode::NodeUuidMismatch,
                format!("'{}' has node '{}' already, '{pinned}' was asked for", desk.host, node.uuid),
                format!(
                    "unenroll '{}' so that node '{}' is deleted first, or enroll without the UUID",
                    desk.host, node.uuid
                ),
            )
            .with_evidence(format!("ironic /v1/nodes/{}", desk.host), format!("uuid {}", node.uuid)));
    }
    match desk.ironic.node(&pinned.to_string()).await.map_err(|e| desk.failed(e, &doing))? {
        None => Ok(None),
        Some(other) => Err(desk.failure(
            FailureCode::NodeUuidMismatch,
            format!("UUID '{pinned}' belongs to node '{}'", other.name.as_deref().unwrap_or("without a name")),
            "delete that node first (unenroll its host), or enroll with another UUID",
        )),
    }
}

/// What is to be done with a node in this state.
#[derive(Debug, PartialEq)]
enum Course {
    /// Enrolled: nothing may be changed (E6).
    Satisfied,
    /// Nova's, in a state that enrollment has no business with (E7).
    OwnedByNova(String),
    /// The workflow watches the clean under way (E8).
    Cleaning,
    /// Not stable yet (E12).
    Wait,
    /// E9
    RecoverInspection,
    /// E10
    RecoverClean,
    /// For a person (E11).
    Review,
    Converge,
}

fn course(state: &ProvisionState, instance: Option<&str>, half: Half) -> Course {
    use ProvisionState::*;
    match (state, instance) {
        (Active | Available, _) | (Manageable, Some(_)) => Course::Satisfied,
        (_, Some(instance)) => Course::OwnedByNova(instance.to_owned()),
        (Cleaning | CleanWait, None) if half == Half::Cleaning => Course::Cleaning,
        (Enroll | Manageable, None) => Course::Converge,
        (InspectFailed, None) => Course::RecoverInspection,
        (CleanFailed, None) => Course::RecoverClean,
        (
            DeployFailed | Error | AdoptFailed | Rescue | RescueFailed | UnrescueFailed | ServiceFailed | CleanHold
            | DeployHold | ServiceHold,
            None,
        ) => Course::Review,
        (
            Verifying | Inspecting | InspectWait | Cleaning | CleanWait | Deploying | WaitCallback | Deleting | Deleted
            | Adopting | Rescuing | RescueWait | Unrescuing | Rebuild | Servicing | ServiceWait | Other(_),
            None,
        ) => Course::Wait,
    }
}

fn review(desk: &Desk, node: &Node) -> Failure {
    let why = node.last_error.as_ref().map_or(String::new(), |e| format!(": {}", short(e)));
    desk.failure(
        FailureCode::NodeNeedsReview,
        format!("node '{}' of '{}' is '{}'{why}", node.uuid, desk.host, node.state),
        format!("find out why the node is '{}' and bring it to manageable by hand, then retry", node.state),
    )
    .with_evidence(format!("ironic /v1/nodes/{}", node.uuid), format!("provision_state {}", node.state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(state: &str, instance: Option<&str>, half: Half) -> Course {
        course(&state.into(), instance, half)
    }

    /// Proves: E6, E7
    #[test]
    fn an_enrolled_node_is_satisfied_and_novas_is_refused_in_any_other_state() {
        for half in [Half::Inspection, Half::Cleaning] {
            for instance in [None, Some("i")] {
                assert_eq!(of("active", instance, half), Course::Satisfied);
                assert_eq!(of("available", instance, half), Course::Satisfied);
            }
            assert_eq!(of("manageable", Some("i"), half), Course::Satisfied);
            for state in ["enroll", "inspect failed", "clean failed", "cleaning", "deploying", "error", "new state"] {
                assert_eq!(of(state, Some("i"), half), Course::OwnedByNova("i".into()), "{state}");
            }
        }
    }

    /// Proves: E8, E12
    #[test]
    fn a_clean_under_way_is_handed_back_by_the_cleaning_half_only() {
        for state in ["cleaning", "clean wait"] {
            assert_eq!(of(state, None, Half::Cleaning), Course::Cleaning);
            assert_eq!(of(state, None, Half::Inspection), Course::Wait);
        }
        for state in ["verifying", "inspecting", "inspect wait", "deploying", "a state of the future"] {
            assert_eq!(of(state, None, Half::Cleaning), Course::Wait, "{state}");
        }
    }

    /// Proves: E9, E10, E11
    #[test]
    fn failed_inspections_and_cleans_are_recovered_and_failed_deployments_never() {
        assert_eq!(of("inspect failed", None, Half::Inspection), Course::RecoverInspection);
        assert_eq!(of("clean failed", None, Half::Cleaning), Course::RecoverClean);
        for state in ["deploy failed", "error", "adopt failed", "clean hold", "service failed"] {
            assert_eq!(of(state, None, Half::Inspection), Course::Review, "{state}");
        }
        for state in ["enroll", "manageable"] {
            assert_eq!(of(state, None, Half::Cleaning), Course::Converge, "{state}");
        }
    }
}
