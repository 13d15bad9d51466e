//! What all steps share: the client of the run's Ironic, the node guard, and locks as answers.

use serde_json::{Value, json};

use super::failure;
use crate::activities::env::ActivityCx;
use crate::clients::ironic::{Attempt, IronicError, Node, Verb};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::phase::Phase;
use crate::domain::provision::ProvisionState;
use crate::workflows::defs::{NodeTarget, Step, Target};

/// Why a step ended before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Another operation holds the node (E15).
    Locked {
        holder: Option<String>,
        state: Option<ProvisionState>,
        node: NodeUuid,
    },
    Failed(Box<Failure>),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(Box::new(failure))
    }
}

/// What a step did: whether it changed something, and in words what.
pub(super) type Did = Result<(bool, String), Stop>;

/// The outcome of a step as the workflow takes it.
pub(super) fn step(did: Did) -> Result<Step, Failure> {
    match did {
        Ok((changed, note)) => Ok(Step::Done { changed, note }),
        Err(Stop::Locked { holder, state, .. }) => Ok(Step::Locked { holder, state }),
        Err(Stop::Failed(failure)) => Err(*failure),
    }
}

pub(super) fn unchanged(note: impl Into<String>) -> Did {
    Ok((false, note.into()))
}

pub(super) fn changed(note: impl Into<String>) -> Did {
    Ok((true, note.into()))
}

/// A step's view of the run's Ironic.
#[derive(Clone)]
pub(super) struct Desk {
    pub cx: ActivityCx,
    pub ironic: Attempt,
    pub host: String,
    pub phase: Phase,
}

impl Desk {
    pub fn new(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<Self, Failure> {
        let name = &target.ironic;
        let Some(ironic) = cx.env.clients.ironic.get(name) else {
            return Err(Failure::new(
                FailureCode::InternalError,
                phase,
                format!("the configuration has no Ironic instance '{name}'"),
                format!("add [ironic.{name}] to the configuration and start muster again"),
            ));
        };
        let ironic = ironic.attempt();
        // The account's own name may be another: that one is added where the vault is read.
        ironic.shun(&cx.env.vault.settings().ipmi_item);
        Ok(Desk { cx: cx.clone(), ironic, host: target.host.clone(), phase })
    }

    pub fn of(cx: &ActivityCx, target: &NodeTarget) -> Result<Self, Failure> {
        Self::new(cx, &target.target, target.phase)
    }

    /// A failure of this step.
    pub fn failure(&self, code: FailureCode, message: impl Into<String>, action: impl Into<String>) -> Failure {
        Failure::new(code, self.phase, message, action)
    }

    /// What an error means, where a lock has no meaning of its own (reads).
    pub fn failed(&self, error: IronicError, doing: &str) -> Failure {
        failure::of(&self.ironic, error, self.phase, doing)
    }

    /// What an error of a request about a node means; `state` is the one that was read before.
    pub fn stop(&self, error: IronicError, node: &Node, doing: &str) -> Stop {
        match error {
            IronicError::Locked { holder, .. } => {
                Stop::Locked { holder, state: Some(node.state.clone()), node: node.uuid }
            }
            other => self.failed(other, doing).into(),
        }
    }

    /// The node as it is now.
    pub async fn node(&self, node: NodeUuid) -> Result<Node, Failure> {
        let doing = format!("reading node '{node}' of '{}'", self.host);
        match self.ironic.node(&node.to_string()).await {
            Ok(Some(node)) => Ok(node),
            Ok(None) => Err(self.failure(
                FailureCode::NodeStateUnexpected,
                format!("Ironic '{}' has no node '{node}' any more", self.ironic.name()),
                format!("find out who deleted the node of '{}', then enroll again", self.host),
            )),
            Err(error) => Err(self.failed(error, &doing)),
        }
    }

    /// The node, unless an instance lives on it: no step ever changes such a node (E7).
    pub async fn unowned(&self, node: NodeUuid) -> Result<Node, Failure> {
        let node = self.node(node).await?;
        match &node.instance_uuid {
            Some(instance) => Err(self.owned_by_nova(&node, instance)),
            None => Ok(node),
        }
    }

    pub fn owned_by_nova(&self, node: &Node, instance: &str) -> Failure {
        self.failure(
            FailureCode::NodeOwnedByNova,
            format!("node '{}' of '{}' is '{}' and holds instance '{instance}'", node.uuid, self.host, node.state),
            "leave the node to Nova; delete the instance first if the host is to be enrolled",
        )
        .with_evidence(format!("ironic /v1/nodes/{}", node.uuid), format!("instance_uuid {instance}"))
    }

    /// A state that this step cannot go on from.
    pub fn unexpected(&self, node: &Node, wanted: &str) -> Failure {
        let why = node.last_error.as_ref().map_or(String::new(), |e| format!("; last error: {}", short(e)));
        self.failure(
            FailureCode::NodeStateUnexpected,
            format!("node '{}' of '{}' is '{}', {wanted}{why}", node.uuid, self.host, node.state),
            "find out who else works on the node, then retry",
        )
        .with_evidence(format!("ironic /v1/nodes/{}", node.uuid), format!("provision_state {}", node.state))
    }

    /// Records a write to the node.
    pub fn wrote(&self, what: &str, before: impl ToString, after: impl ToString) {
        self.cx.wrote("ironic", &self.host, what, before, after);
    }

    /// Asks for a provision change that may be over before anybody looks: an inspection, a clean. What the node was like
    /// before is on disk first. A step that is begun again knows by it that an earlier attempt's request was taken,
    /// however far the node has come since, and asks for nothing twice (G5).
    pub async fn ask_once(&self, node: &Node, verb: Verb) -> Did {
        let mark = json!({"run": self.cx.run, "seq": self.cx.seq, "verb": verb.as_str(), "since": node.state_since});
        let kept = self.cx.env.store.put_meta(&self.asked_key(node), &mark.to_string()).await;
        kept.map_err(|error| self.not_kept(&error))?;
        self.ask(node, verb).await?;
        changed(format!("{} asked for", verb.as_str()))
    }

    /// Whether an earlier attempt of this very step has asked for the verb, and the node has moved since.
    pub fn has_asked(&self, node: &Node, verb: Verb) -> Result<bool, Stop> {
        let kept = self.cx.env.store.get_meta(&self.asked_key(node)).map_err(|error| self.not_kept(&error))?;
        let Some(mark) = kept.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else { return Ok(false) };
        let is_mine =
            mark["run"] == json!(self.cx.run) && mark["seq"] == json!(self.cx.seq) && mark["verb"] == verb.as_str();
        // Without a time nothing tells one state from the same one later.
        Ok(is_mine && node.state_since.is_some() && mark["since"] != json!(node.state_since))
    }

    fn asked_key(&self, node: &Node) -> String {
        format!("asked/{}/{}", self.ironic.name(), node.uuid)
    }

    fn not_kept(&self, error: &dyn std::error::Error) -> Failure {
        self.failure(
            FailureCode::StoreFailed,
            format!("what is asked of the node of '{}' could not be remembered: {error}", self.host),
            "look at the disk that holds muster's state folder, then retry",
        )
    }

    /// Asks for a provision change and records it.
    pub async fn ask(&self, node: &Node, verb: Verb) -> Result<(), Stop> {
        let doing = format!("asking for '{}' of '{}'", verb.as_str(), self.host);
        self.ironic.provision(node.uuid, verb).await.map_err(|e| self.stop(e, node, &doing))?;
        self.wrote("provision state", &node.state, format!("{} asked for", verb.as_str()));
        Ok(())
    }

    /// Takes the node out of maintenance where it is in it.
    pub async fn clear_maintenance(&self, node: &Node) -> Result<bool, Stop> {
        if !node.maintenance {
            return Ok(false);
        }
        let doing = format!("clearing maintenance of '{}'", self.host);
        self.ironic.clear_maintenance(node.uuid).await.map_err(|e| self.stop(e, node, &doing))?;
        self.wrote("maintenance", maintenance(node), "off");
        Ok(true)
    }
}

/// `on: Timeout reached`: the flag with its reason, safe to show.
pub(super) fn maintenance(node: &Node) -> String {
    match &node.maintenance_reason {
        Some(reason) => format!("on: {}", short(reason)),
        None => "on".to_owned(),
    }
}

/// Text of Ironic's, cut for a sentence.
pub(super) fn short(text: &str) -> String {
    crate::domain::text::neutralize_to(text, 200)
}

/// A value as a change list shows it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => short(text),
        other => short(&other.to_string()),
    }
}
