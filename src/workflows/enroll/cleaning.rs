//! The cleaning half: `provide`, the watch over the clean, `available` (C1–C8).

use jiff::Timestamp;

use super::guard::Watched;
use super::node::{Settled, words};
use super::{Cleaned, Enrollment, is_deployed};
use crate::domain::event::{Observation, WaitKind, WaitReason};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::phase::Phase;
use crate::domain::provision::ProvisionState;
use crate::workflows::cx::{ActivityError, Cx};
use crate::workflows::defs::*;

const PHASE: Phase = Phase::Cleaning;

/// How one start of a clean went on.
enum Started {
    /// Enrolled already (C2).
    Satisfied(Cleaned),
    /// The node cleans, or has ended cleaning: its state is what counts.
    Look(NodeLook),
}

/// How one clean ended.
enum Polled {
    Available,
    Failed { why: String },
}

impl<C: Cx> Enrollment<C> {
    /// The half with its attempts: a clean that failed is started again while attempts are left and the overall deadline
    /// is not hit (C4). The deadline is one for all attempts (C3).
    pub(super) async fn cleaning(&self, node: NodeUuid) -> Result<Cleaned, ActivityError> {
        let attempts = self.max_attempts();
        let began = self.cx.now();
        let deadline = began.checked_add(self.request.options.budgets.cleaning).unwrap_or(Timestamp::MAX);
        let mut attempt = 1;
        loop {
            self.started(PHASE, attempt);
            let look = match self.start_clean(node, deadline).await? {
                Started::Satisfied(end) => {
                    self.done(PHASE, "'available' already".to_owned());
                    return Ok(end);
                }
                Started::Look(look) => look,
            };
            match self.poll_clean(node, look, attempt, deadline).await? {
                Polled::Available => {
                    self.done(PHASE, "'available'".to_owned());
                    return Ok(Cleaned { node, deployed: false });
                }
                Polled::Failed { why } if attempt < attempts && self.cx.now() < deadline => {
                    self.warned(PHASE, format!("clean {attempt} of {attempts} failed: {why}"));
                    attempt += 1;
                }
                Polled::Failed { why } => {
                    return Err(Failure::new(
                        FailureCode::CleanFailed,
                        PHASE,
                        format!("cleaning of '{}' failed {attempt} of {attempts} times: {why}", self.target.host),
                        "read the failed clean step in Ironic's last error; replace the part it names, then retry",
                    )
                    .into());
                }
            }
        }
    }

    /// Prelude, RAID target, maintenance off, `provide`, power on, link guard (C1).
    async fn start_clean(&self, node: NodeUuid, deadline: Timestamp) -> Result<Started, ActivityError> {
        match self.prelude(Half::Cleaning, Some(deadline)).await? {
            Settled::Ready { .. } => {}
            Settled::Cleaning { node } => return Ok(Started::Look(self.look(node, PHASE).await?)),
            Settled::Satisfied { node, state, instance_uuid } => {
                let deployed = is_deployed(&state, instance_uuid.as_deref());
                return Ok(Started::Satisfied(Cleaned { node, deployed }));
            }
        }
        self.step::<RaidTarget>(node, PHASE, Some(deadline)).await?;
        self.step::<Provide>(node, PHASE, Some(deadline)).await?;
        match self.watch_links(node, PHASE, Some(deadline), is_cleaning).await? {
            Watched::Moved(look) => Ok(Started::Look(look)),
            Watched::GoOn => Ok(Started::Look(self.look(node, PHASE).await?)),
        }
    }

    /// Short looks between durable sleeps until the clean has ended (C3, C5).
    async fn poll_clean(
        &self,
        node: NodeUuid,
        mut look: NodeLook,
        attempt: u32,
        deadline: Timestamp,
    ) -> Result<Polled, ActivityError> {
        let mut pause = self.poll_first();
        // Whether the look was begun behind the deadline: one that a suspend came into is no ground for a verdict (C-47).
        let mut is_last = false;
        loop {
            match &look.state {
                ProvisionState::Available => return Ok(Polled::Available),
                ProvisionState::CleanFailed => {
                    let why = look.last_error.clone().unwrap_or_else(|| "Ironic gives no reason".to_owned());
                    return Ok(Polled::Failed { why });
                }
                ProvisionState::Cleaning | ProvisionState::CleanWait | ProvisionState::Manageable => {}
                other => {
                    return Err(Failure::new(
                        FailureCode::NodeStateUnexpected,
                        PHASE,
                        format!("node '{node}' of '{}' went to '{other}' while it was cleaned", self.target.host),
                        format!("find out who moved the node to '{other}' and bring it back to manageable, then retry"),
                    )
                    .final_now()
                    .into());
                }
            }
            let now = self.cx.now();
            if now >= deadline {
                if is_last {
                    return Err(self.too_late(node, &look).into());
                }
                is_last = true;
                look = self.look(node, PHASE).await?;
                continue;
            }
            let next_look_at = now.checked_add(pause).unwrap_or(deadline).min(deadline);
            let max_attempts = self.max_attempts();
            self.cx.report(Observation::Cleaning { attempt, max_attempts, next_look_at, deadline });
            let step = look.clean_step.as_ref().map_or(String::new(), |step| format!(" · step {step}"));
            let text = format!("node is '{}'{step}", look.state);
            let reason = WaitReason { phase: PHASE, kind: WaitKind::Cleaning, text, gives_up_at: Some(deadline) };
            self.cx.sleep_until(next_look_at, reason).await?;
            is_last = self.cx.now() >= deadline;
            pause = (pause * 2).min(self.poll_max());
            look = self.look(node, PHASE).await?;
        }
    }

    fn too_late(&self, node: NodeUuid, look: &NodeLook) -> Failure {
        let step = look.clean_step.as_ref().map_or(String::new(), |step| format!(", step '{step}'"));
        Failure::new(
            FailureCode::CleanTimeout,
            PHASE,
            format!(
                "cleaning of '{}' did not end within {}: node '{node}' is '{}'{step}",
                self.target.host,
                words(self.request.options.budgets.cleaning),
                look.state
            ),
            "watch the host's console: does the ramdisk still work on the step? abort the clean in Ironic, then retry",
        )
    }
}

fn is_cleaning(state: &ProvisionState) -> bool {
    matches!(state, ProvisionState::Cleaning | ProvisionState::CleanWait)
}
