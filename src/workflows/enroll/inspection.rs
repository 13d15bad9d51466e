//! The inspection half: brings the node to `manageable` and holds what was found against NetBox (I1–I14).

use std::time::Duration;

use super::guard::Watched;
use super::node::{Settled, words};
use super::patience::Patience;
use super::seen::Seen;
use super::{Enrollment, Inspected, is_deployed};
use crate::domain::event::WaitKind;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::phase::Phase;
use crate::domain::provision::ProvisionState;
use crate::domain::verify::Verification;
use crate::workflows::cx::{ActivityError, Cx};
use crate::workflows::defs::*;

const PHASE: Phase = Phase::Inspection;

impl<C: Cx> Enrollment<C> {
    /// The half with its reruns: an unexpected state, an inspection that fails or times out, and a power-on timeout rerun
    /// the whole attempt within the one attempt budget; everything else is final (I13).
    pub(super) async fn inspection(&self) -> Result<Inspected, ActivityError> {
        let attempts = self.max_attempts();
        let mut attempt = 1;
        loop {
            self.started(PHASE, attempt);
            self.seen.replace(Seen::default());
            let began = self.cx.now();
            match self.inspection_attempt().await {
                Err(ActivityError::Failed(failure)) if earns_rerun(&failure) => {
                    let seen = self.seen.borrow().words();
                    let took = Duration::try_from(self.cx.now().duration_since(began)).unwrap_or_default();
                    if attempt >= attempts {
                        let whole = format!("attempt {attempt} of {attempts}, {}: {seen}", words(took));
                        return Err(failure.with_evidence("seen in the last attempt", whole).into());
                    }
                    let text =
                        format!("attempt {attempt} of {attempts} after {}: {}; {seen}", words(took), failure.message);
                    self.warned(PHASE, text);
                    let budgets = &self.request.options.budgets;
                    let mut pause =
                        Patience::until(self.cx.now(), budgets.poll_max, budgets.poll_first, budgets.poll_first);
                    pause.wait(&self.cx, PHASE, WaitKind::Rerun, "the whole inspection is tried again").await?;
                    attempt += 1;
                }
                ended => return ended,
            }
        }
    }

    async fn inspection_attempt(&self) -> Result<Inspected, ActivityError> {
        let (node, state) = match self.prelude(Half::Inspection, None).await? {
            Settled::Ready { node, state } => (node, state),
            Settled::Satisfied { node, state, instance_uuid } => {
                return self.satisfied(node, &state, instance_uuid.as_deref()).await;
            }
            // Only the cleaning half is handed a clean under way.
            Settled::Cleaning { node } => {
                return Err(unexpected(node, &ProvisionState::Cleaning, "the prelude of the inspection half").into());
            }
        };
        // Whether a node in `manageable` needs its links repaired is the activity's to say (I7).
        self.step::<Networking>(node, PHASE, None).await?;
        if state == ProvisionState::Enroll {
            self.manage(node).await?;
        }
        self.step::<RaidTarget>(node, PHASE, None).await?;
        let note = if self.request.params.run_inspection {
            self.inspect(node).await?
        } else {
            self.warned(
                PHASE,
                "run_inspection is off: nothing is inspected or verified (a diagnostic bypass)".to_owned(),
            );
            "not inspected".to_owned()
        };
        self.power_on(node, PHASE).await?;
        self.done(PHASE, note);
        Ok(Inspected::Manageable { node })
    }

    /// Enrolled already: nothing is changed; what Ironic remembers of the hardware is still verified (E6).
    async fn satisfied(
        &self,
        node: NodeUuid,
        state: &ProvisionState,
        instance: Option<&str>,
    ) -> Result<Inspected, ActivityError> {
        if self.request.params.run_inspection {
            match self.verify(node).await? {
                Some(verification) if verification.passed() => {}
                Some(verification) => return Err(self.mismatch(&verification).into()),
                None => {
                    return Err(Failure::new(
                        FailureCode::VerificationFailed,
                        PHASE,
                        format!("node '{node}' is '{state}' and Ironic has no inventory of it: nothing can be verified"),
                        "take the node back to manageable for an inspection, or enroll with --no-inspection if that is meant",
                    )
                    .into());
                }
            }
        }
        self.done(PHASE, format!("'{state}' already: nothing to change"));
        Ok(Inspected::Satisfied { node, deployed: is_deployed(state, instance) })
    }

    /// `manage`, and the way through `verifying`; landing anywhere but in `manageable` is a hard failure (I8).
    async fn manage(&self, node: NodeUuid) -> Result<(), ActivityError> {
        self.step::<Manage>(node, PHASE, None).await?;
        let budgets = &self.request.options.budgets;
        let mut patience = Patience::until(self.cx.now(), budgets.stable, self.poll_first(), self.poll_max());
        loop {
            let look = self.look(node, PHASE).await?;
            match &look.state {
                ProvisionState::Manageable if look.reservation.is_none() => return Ok(()),
                ProvisionState::Manageable | ProvisionState::Verifying => {}
                // Asked, but the conductor has not begun: the lock says so.
                ProvisionState::Enroll if look.reservation.is_some() => {}
                other => {
                    let why = look.last_error.clone().unwrap_or_else(|| "Ironic gives no reason".to_owned());
                    return Err(Failure::new(
                        FailureCode::NodeManageFailed,
                        PHASE,
                        format!("node '{node}' of '{}' is '{other}' after manage: {why}", self.target.host),
                        format!(
                            "check that Ironic reaches the BMC of '{}' with the credential of the vault, then retry",
                            self.target.host
                        ),
                    )
                    .into());
                }
            }
            let text = format!("Ironic verifies the BMC · node is '{}'", look.state);
            if !patience.wait(&self.cx, PHASE, WaitKind::StableState, &text).await? {
                return Err(unexpected(node, &look.state, &format!("{} after manage", words(budgets.stable))).into());
            }
        }
    }

    /// Data at hand that passes every check is reused with no reboot; otherwise a fresh inspection decides (I11, I12).
    async fn inspect(&self, node: NodeUuid) -> Result<String, ActivityError> {
        if !self.request.params.force_inspection
            && let Some(verification) = self.verify(node).await?
        {
            if verification.passed() {
                return Ok(format!("{} checks pass on the inventory at hand", verification.checks.len()));
            }
            let differ = verification.failed().count();
            self.note(
                "ironic",
                format!("the inventory at hand differs in {differ} checks: a fresh inspection decides"),
            );
        }
        self.step::<Inspect>(node, PHASE, None).await?;
        self.wait_for_inspection(node).await?;
        match self.verify(node).await? {
            Some(verification) if verification.passed() => {
                Ok(format!("{} checks pass on a fresh inspection", verification.checks.len()))
            }
            Some(verification) => Err(self.mismatch(&verification).into()),
            None => Err(Failure::new(
                FailureCode::InspectionFailed,
                PHASE,
                format!("the inspection of node '{node}' ended, and Ironic has no inventory of it"),
                "check that the Ironic instance stores inventories ([inventory] data_backend), then retry",
            )
            .into()),
        }
    }

    async fn wait_for_inspection(&self, node: NodeUuid) -> Result<(), ActivityError> {
        let budget = self.request.options.budgets.inspection;
        let mut patience = Patience::until(self.cx.now(), budget, self.poll_first(), self.poll_max());
        let mut look = match self.watch_links(node, PHASE, Some(patience.deadline()), is_inspecting).await? {
            Watched::Moved(look) => look,
            Watched::GoOn => self.look(node, PHASE).await?,
        };
        loop {
            match &look.state {
                ProvisionState::Manageable if look.reservation.is_none() => return Ok(()),
                ProvisionState::Manageable | ProvisionState::Inspecting | ProvisionState::InspectWait => {}
                ProvisionState::InspectFailed => {
                    let why = look.last_error.clone().unwrap_or_else(|| "Ironic gives no reason".to_owned());
                    return Err(Failure::new(
                        FailureCode::InspectionFailed,
                        PHASE,
                        format!(
                            "the inspection of '{}' failed, awaited from its ramdisk for {}: {why}; {}",
                            self.target.host,
                            words(patience.spent(&self.cx)),
                            self.seen.borrow().words()
                        ),
                        "read Ironic's last error; if it is no passing fault, watch the host's console during the next inspection",
                    )
                    .into());
                }
                other => return Err(unexpected(node, other, "an inspection").into()),
            }
            let text = format!("Ironic inspects · node is '{}'", look.state);
            if !patience.wait(&self.cx, PHASE, WaitKind::Inspection, &text).await? {
                return Err(Failure::new(
                    FailureCode::InspectionTimeout,
                    PHASE,
                    format!(
                        "the ramdisk of '{}' did not report to Ironic '{}' within {}; the node is '{}', {}",
                        self.target.host,
                        self.target.ironic,
                        words(budget),
                        look.state,
                        self.seen.borrow().words()
                    ),
                    "watch the host's console: does it boot the ramdisk over the provisioning NIC? then retry",
                )
                .into());
            }
            look = self.look(node, PHASE).await?;
        }
    }

    async fn verify(&self, node: NodeUuid) -> Result<Option<Verification>, ActivityError> {
        Ok(self.ask::<Verify>(PHASE, 180, self.node_target(node, PHASE)).await?.verification)
    }

    fn mismatch(&self, verification: &Verification) -> Failure {
        verification.failure(&self.target.host, PHASE)
    }
}

fn is_inspecting(state: &ProvisionState) -> bool {
    matches!(state, ProvisionState::Inspecting | ProvisionState::InspectWait)
}

fn earns_rerun(failure: &Failure) -> bool {
    failure.retryable
        && matches!(
            failure.code,
            FailureCode::NodeStateUnexpected
                | FailureCode::InspectionFailed
                | FailureCode::InspectionTimeout
                | FailureCode::NodePowerTimeout
        )
}

fn unexpected(node: NodeUuid, state: &ProvisionState, after: &str) -> Failure {
    Failure::new(
        FailureCode::NodeStateUnexpected,
        PHASE,
        format!("node '{node}' is '{state}' after {after}"),
        format!("look at the node's last error and at who else works on it, bring it out of '{state}', then retry"),
    )
}
