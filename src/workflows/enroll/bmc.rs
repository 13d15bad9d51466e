//! The BMC's steps between its credential and its tag: restart, settings, what is staged for the host's next boot.

use std::time::Duration;

use super::Enrollment;
use super::node::words;
use super::patience::Patience;
use crate::domain::event::WaitKind;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::cx::{ActivityError, ActivityOptions, Cx, RetryPolicy};
use crate::workflows::defs::*;

const PHASE: Phase = Phase::Bmc;

/// A BMC that restarts is gone by then.
const GONE_WITHIN: Duration = Duration::from_secs(90);

/// And one that was gone for longer is an exception.
const BACK_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Longer than the largest host takes until its firmware has what is staged.
const NO_BOOT_CAME: Duration = Duration::from_secs(20 * 60);

/// More boots than any change takes: one for what was there, one for what was staged, one where the first was not whole.
const ROUNDS: u32 = 3;

/// Firmware that takes no change as a whole wants a boot for each part of it: a flag of each NIC, at worst.
const PARTS: u32 = 16;

impl<C: Cx> Enrollment<C> {
    /// Converges the settings of a BMC in the order of B2; what was changed.
    pub(super) async fn configure_bmc(&self, bmc: &PrepareBmcOut) -> Result<Vec<String>, ActivityError> {
        let mut changed = Vec::new();
        let last = if bmc.stages {
            changed.extend(self.configure_part(bmc, BmcPart::Settings).await?.changed);
            changed.extend(self.stage_bmc().await?);
            self.configure_part(bmc, BmcPart::Monitoring).await?
        } else {
            self.configure_part(bmc, BmcPart::Whole).await?
        };
        changed.extend(last.changed);
        self.prove_ipmi(!last.no_monitoring_user).await?;
        Ok(changed)
    }

    /// Where the site asks for it: whoever is to log in over IPMI does so once (X1).
    async fn prove_ipmi(&self, monitoring: bool) -> Result<(), ActivityError> {
        let options = &self.request.options;
        let administrator = options.ironic_enrol && options.switch_to_ipmi_after_inspection;
        if !options.prove_ipmi || !monitoring && !administrator {
            return Ok(());
        }
        let input = ProveIpmiIn { target: self.target.clone(), monitoring, administrator };
        self.ask::<ProveIpmi>(PHASE, 600, input).await.map(drop)
    }

    async fn configure_part(&self, bmc: &PrepareBmcOut, part: BmcPart) -> Result<ConfigureBmcOut, ActivityError> {
        let input = ConfigureBmcIn {
            target: self.target.clone(),
            vendor: bmc.vendor.clone(),
            restrict_boot: self.request.options.restrict_boot,
            part,
        };
        self.ask::<ConfigureBmc>(PHASE, 1800, input).await
    }

    /// Stages firmware attributes and boot order, and waits until the host has booted with them. Rounds: what was staged by
    /// a run of before, or by a restart that came between, is applied first, and what still differs then is staged after it.
    async fn stage_bmc(&self) -> Result<Vec<String>, ActivityError> {
        let restrict_boot = self.request.options.restrict_boot;
        let mut changed = Vec::new();
        let (mut whole, mut parts) = (0, 0);
        while whole < ROUNDS && parts < PARTS {
            let input = StageBmcIn { target: self.target.clone(), restrict_boot };
            let staged = self.ask::<StageBmc>(PHASE, 900, input).await?;
            for what in staged.changed {
                if !changed.contains(&what) {
                    changed.push(what);
                }
            }
            if !staged.needs_boot {
                return Ok(changed);
            }
            if staged.rest {
                parts += 1;
            } else {
                whole += 1;
            }
            if let Err(error) = self.boot_with(&staged.jobs, staged.rest).await {
                self.take_back(staged.jobs).await;
                return Err(error);
            }
        }
        let host = &self.target.host;
        Err(Failure::new(
            FailureCode::BmcSettingNotApplied,
            PHASE,
            format!(
                "'{host}' has booted {ROUNDS} times with staged settings, and they are still not as they should be"
            ),
            format!(
                "look in the setup of '{host}' for what changes its boot order or firmware settings back, then retry"
            ),
        )
        .into())
    }

    /// Restarts the host once what is staged is bound to its next boot, and not sooner, and waits until it is applied (B8, B9).
    async fn boot_with(&self, jobs: &[String], rest: bool) -> Result<(), ActivityError> {
        let ask = |booted| StagedBmcIn { rest, ..self.staged_in(jobs.to_vec(), booted) };
        let budgets = &self.request.options.budgets;
        let patience =
            |budget| Patience::until(self.cx.now(), budget, self.poll_first(), self.poll_max().max(self.poll_first()));
        let mut waits = patience(budgets.staged);
        let carried = loop {
            let look = self.ask::<StagedBmc>(PHASE, 300, ask(false)).await?;
            match look.stage {
                BmcStage::Scheduled => break false,
                BmcStage::Running | BmcStage::Applied => break true,
                BmcStage::Waiting => {}
            }
            let text = format!("staged settings are not bound to the next boot yet: {}", look.note);
            if !waits.wait(&self.cx, PHASE, WaitKind::Staged, &text).await? {
                return Err(self.not_scheduled(&look.note).into());
            }
        };
        if carried {
            self.note(
                "bmc",
                "another restart has carried the staged settings in: the host is not restarted for them".into(),
            );
        } else {
            self.ask::<RestartHost>(PHASE, 300, self.target.clone()).await?;
        }
        let mut waits = patience(budgets.applied);
        let mut restarted = self.cx.now();
        loop {
            let look = self.ask::<StagedBmc>(PHASE, 300, ask(true)).await?;
            match look.stage {
                BmcStage::Applied => return Ok(()),
                // No boot has begun to carry it in: the restart was lost on its way, or the host ignored it.
                BmcStage::Scheduled if self.cx.now().duration_since(restarted).unsigned_abs() >= NO_BOOT_CAME => {
                    self.ask::<RestartHost>(PHASE, 300, self.target.clone()).await?;
                    restarted = self.cx.now();
                }
                BmcStage::Scheduled | BmcStage::Waiting | BmcStage::Running => {}
            }
            let text = format!("the host boots to apply staged settings: {}", look.note);
            if !waits.wait(&self.cx, PHASE, WaitKind::Applied, &text).await? {
                return Err(self.not_applied(&look.note).into());
            }
        }
    }

    /// Leaves no job behind that a later boot would carry in, when nobody expects it any more (B9); after a cancel too.
    async fn take_back(&self, jobs: Vec<String>) {
        if jobs.is_empty() {
            return;
        }
        let retry = RetryPolicy::attempts(self.max_attempts());
        let options = ActivityOptions { phase: PHASE, timeout: Duration::from_secs(300), retry, survives_cancel: true };
        let input = self.staged_in(jobs, false);
        if let Err(ActivityError::Failed(failure)) = self.cx.activity::<WithdrawBmc>(input, options).await {
            self.warned(PHASE, format!("what was staged could not be taken back: {}", failure.message));
        }
    }

    fn staged_in(&self, jobs: Vec<String>, booted: bool) -> StagedBmcIn {
        let restrict_boot = self.request.options.restrict_boot;
        StagedBmcIn { target: self.target.clone(), restrict_boot, jobs, booted, rest: false }
    }

    fn not_scheduled(&self, note: &str) -> Failure {
        let host = &self.target.host;
        Failure::new(
            FailureCode::BmcJobNotScheduled,
            PHASE,
            format!(
                "the BMC of '{host}' did not bind the staged settings to the next boot within {}: {note}; the host was not \
                 restarted, and they are taken back",
                words(self.request.options.budgets.staged)
            ),
            format!("close what uses the Lifecycle Controller of '{host}' (its F10 screen, an inventory), then retry"),
        )
    }

    fn not_applied(&self, note: &str) -> Failure {
        let host = &self.target.host;
        Failure::new(
            FailureCode::BmcJobFailed,
            PHASE,
            format!(
                "the staged settings of '{host}' were not applied within {}: {note}",
                words(self.request.options.budgets.applied)
            ),
            format!("look at the screen of '{host}': a boot that stands still applies nothing; then retry"),
        )
    }

    /// Asks for a cold reset, and waits until the BMC went away and came back (B4).
    pub(super) async fn reset_bmc(&self) -> Result<(), ActivityError> {
        let asked = self.cx.now();
        self.ask::<ResetBmc>(PHASE, 300, self.target.clone()).await?;
        let since = self.cx.now();
        // Where its answer took longer than a restart, as over a suspend, it may have gone and come back unseen.
        let answered = since.duration_since(asked).unsigned_abs() < BACK_WITHIN;
        let mut patience = Patience::until(since, Duration::from_secs(15 * 60), self.poll_first(), self.poll_max());
        let (mut seen_away, mut asked_again) = (false, false);
        loop {
            let input = BmcBackIn { target: self.target.clone(), since, seen_away, asked_at: Some(self.cx.now()) };
            let look = self.ask::<BmcBack>(PHASE, 120, input).await?;
            if look.back {
                return Ok(());
            }
            seen_away |= look.away;
            // It answers all the while: the request was lost on its way.
            if answered
                && !seen_away
                && !asked_again
                && self.cx.now().duration_since(since).unsigned_abs() >= GONE_WITHIN
            {
                self.ask::<ResetBmc>(PHASE, 300, self.target.clone()).await?;
                asked_again = true;
            }
            let text = format!("the BMC restarts: {}", look.note);
            if !patience.wait(&self.cx, PHASE, WaitKind::StableState, &text).await? {
                return Err(Failure::new(
                    FailureCode::BmcResetTimeout,
                    PHASE,
                    format!("the BMC of '{}' did not come back after its reset: {}", self.target.host, look.note),
                    "look whether the BMC has power and link; take AC power from the tray for a minute if it stays dark, then retry",
                )
                .into());
            }
        }
    }
}
