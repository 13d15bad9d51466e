//! Requests to Ironic that may meet a lock, and waits for a node's state and power.

use std::time::Duration;

use jiff::Timestamp;

use super::patience::Patience;
use super::{Enrollment, is_deployed};
use crate::domain::event::{Observation, WaitKind};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::phase::Phase;
use crate::domain::provision::{Power, ProvisionState};
use crate::workflows::cx::{Activity, ActivityError, ActivityOptions, Cx, RetryPolicy};
use crate::workflows::defs::*;

/// What the prelude came to once neither a lock nor a passing state stood in its way.
pub(super) enum Settled {
    /// In `enroll` or `manageable`, unowned, converged.
    Ready { node: NodeUuid, state: ProvisionState },
    /// Enrolled already (E6).
    Satisfied { node: NodeUuid, state: ProvisionState, instance_uuid: Option<String> },
    /// A clean is under way (E8).
    Cleaning { node: NodeUuid },
}

impl<C: Cx> Enrollment<C> {
    /// The shared prelude, again and again while the node is locked or not in a stable state (E12, E15). The two waits
    /// have their own budgets: neither is billed to the other.
    pub(super) async fn prelude(&self, half: Half, limit: Option<Timestamp>) -> Result<Settled, ActivityError> {
        match self.settle(half, limit).await {
            Err(ActivityError::Cancelled) => {
                self.put_back(half.phase()).await;
                Err(ActivityError::Cancelled)
            }
            ended => ended,
        }
    }

    /// A recovery that the cancel cut off between two requests, maybe by the end of a process, leaves no flag half-way (G9).
    async fn put_back(&self, phase: Phase) {
        let retry = RetryPolicy::attempts(self.max_attempts());
        let options = ActivityOptions { phase, timeout: Duration::from_secs(120), retry, survives_cancel: true };
        let input = PhaseTarget { target: self.target.clone(), phase };
        if let Err(ActivityError::Failed(failure)) = self.cx.activity::<PutBack>(input, options).await {
            self.warned(phase, format!("after the cancel: {}", failure.message));
        }
    }

    async fn settle(&self, half: Half, limit: Option<Timestamp>) -> Result<Settled, ActivityError> {
        let phase = half.phase();
        let budgets = &self.request.options.budgets;
        let mut lock = self.lock_patience(limit);
        let mut stable =
            Patience::until(self.cx.now(), budgets.stable, self.poll_first(), self.poll_max()).clamped(limit);
        loop {
            let input = PreludeIn { target: self.target.clone(), half, node_uuid: self.request.params.node_uuid };
            match self.ask::<Prelude>(phase, 300, input).await? {
                PreludeOut::Locked { holder, state, node } => {
                    self.wait_for_lock(&mut lock, phase, node, holder.as_deref(), state.as_ref()).await?;
                }
                PreludeOut::Wait { node, state, why } => {
                    let text = format!("node is '{state}': {why}");
                    if !stable.wait(&self.cx, phase, WaitKind::StableState, &text).await? {
                        return Err(Failure::new(
                            FailureCode::NodeStateUnexpected,
                            phase,
                            format!("node '{node}' is still '{state}' after {}", words(budgets.stable)),
                            format!("look at what keeps the node in '{state}' (openstack baremetal node show {node}), then retry"),
                        )
                        .into());
                    }
                }
                PreludeOut::Ready { node, state, .. } => return Ok(Settled::Ready { node, state }),
                PreludeOut::Satisfied { node, state, instance_uuid } => {
                    return Ok(Settled::Satisfied { node, state, instance_uuid });
                }
                PreludeOut::Cleaning { node, .. } => return Ok(Settled::Cleaning { node }),
            }
        }
    }

    /// One request about a node, asked again while the node is locked (E15). Gives back what was done.
    pub(super) async fn step<A>(
        &self,
        node: NodeUuid,
        phase: Phase,
        limit: Option<Timestamp>,
    ) -> Result<String, ActivityError>
    where
        A: Activity<In = NodeTarget, Out = Step>,
    {
        let mut lock = self.lock_patience(limit);
        loop {
            match self.ask::<A>(phase, 300, self.node_target(node, phase)).await? {
                Step::Done { note, .. } => return Ok(note),
                Step::Locked { holder, state } => {
                    self.wait_for_lock(&mut lock, phase, Some(node), holder.as_deref(), state.as_ref()).await?;
                }
            }
        }
    }

    /// One look at the node, shown in the panes.
    pub(super) async fn look(&self, node: NodeUuid, phase: Phase) -> Result<NodeLook, ActivityError> {
        let look = self.ask::<LookAtNode>(phase, 120, self.node_target(node, phase)).await?;
        self.seen.borrow_mut().node(self.cx.now(), &look);
        self.cx.report(Observation::Node {
            state: look.state.clone(),
            power: look.power,
            clean_step: look.clean_step.clone(),
            reservation: look.reservation.clone(),
            last_error: look.last_error.clone(),
        });
        Ok(look)
    }

    /// Ensures that the node is on, and waits until Ironic says so.
    pub(super) async fn power_on(&self, node: NodeUuid, phase: Phase) -> Result<(), ActivityError> {
        self.step::<PowerOn>(node, phase, None).await?;
        let budget = self.request.options.budgets.power_on;
        let mut patience = Patience::until(self.cx.now(), budget, self.poll_first(), self.poll_max());
        loop {
            let look = self.look(node, phase).await?;
            if look.power == Power::On {
                return Ok(());
            }
            // Nova has taken it since: its power is none of ours any more (C7).
            if is_deployed(&look.state, look.instance_uuid.as_deref()) && self.cx.version("novas_power_is_not_awaited")
            {
                return Ok(());
            }
            if !patience.wait(&self.cx, phase, WaitKind::PowerOn, "waiting for power on").await? {
                return Err(self.power_timeout(node, phase, &look).into());
            }
        }
    }

    pub(super) fn power_timeout(&self, node: NodeUuid, phase: Phase, look: &NodeLook) -> Failure {
        let budget = words(self.request.options.budgets.power_on);
        let mut failure = Failure::new(
            FailureCode::NodePowerTimeout,
            phase,
            format!(
                "node '{node}' of '{}' was not powered on after {budget}; it is '{}'",
                self.target.host, look.state
            ),
            "check that the tray has power and that its BMC switches it on, then retry",
        );
        if let Some(error) = &look.last_error {
            failure = failure.with_evidence("ironic last_error", error.clone());
        }
        failure
    }

    /// 10 s growing to 60 s at the default budget, in proportion to a smaller one; with jitter between hosts (E15).
    fn lock_patience(&self, limit: Option<Timestamp>) -> Patience {
        let budget = self.request.options.budgets.node_lock;
        let first = Duration::from_secs(10).min(budget / 90);
        let max = Duration::from_secs(60).min(budget / 15);
        Patience::until(self.cx.now(), budget, first, max).clamped(limit).jittered(0.2)
    }

    async fn wait_for_lock(
        &self,
        lock: &mut Patience,
        phase: Phase,
        node: Option<NodeUuid>,
        holder: Option<&str>,
        state: Option<&ProvisionState>,
    ) -> Result<(), ActivityError> {
        let by = holder.map_or(String::new(), |holder| format!(" by '{holder}'"));
        let text = match state {
            Some(state) => format!("node is locked{by} in '{state}'"),
            None => format!("node is locked{by}"),
        };
        if lock.wait(&self.cx, phase, WaitKind::NodeLock, &text).await? {
            return Ok(());
        }
        // E16: what stands in the failure is read now, not remembered.
        let (mut holder, mut state) = (holder.map(str::to_owned), state.cloned());
        if let Some(node) = node
            && let Ok(look) = self.look(node, phase).await
        {
            holder = look.reservation.or(holder);
            state = Some(look.state);
        }
        let waited = lock.spent(&self.cx);
        let holder = holder.unwrap_or_else(|| "an unnamed conductor".to_owned());
        let state = state.map_or("an unread state".to_owned(), |state| format!("state '{state}'"));
        Err(Failure::new(
            FailureCode::IronicNodeLocked,
            phase,
            format!("the node of '{}' stayed locked by '{holder}' for {}, in {state}", self.target.host, words(waited)),
            format!("look at what conductor '{holder}' does with the node; when its reservation is gone, retry"),
        )
        .into())
    }
}

/// A duration in the words of a sentence: `5 min`, `1 h 30 min`, `40 s`.
pub(super) fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}
