//! Enrollment: from a racked host in NetBox to a schedulable Ironic node in `available`.
//!
//! Reads like the runbook: the phases in their order (G1), what gates them (G2), and where they wait. Everything that
//! touches a system is an activity; everything that waits is a timer of the journal.

mod bmc;
mod cleaning;
mod guard;
mod inspection;
mod node;
mod patience;
mod seen;

use std::cell::RefCell;
use std::time::Duration;

use super::cx::{Activity, ActivityError, ActivityOptions, Cx, RetryPolicy};
use super::defs::*;
use crate::domain::event::{EnrollResult, Observation};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::phase::Phase;
use crate::domain::provision::ProvisionState;
use crate::domain::request::EnrollRequest;
use patience::Patience;
use seen::Seen;

/// The name under which the journal knows this workflow.
pub const NAME: &str = "enroll";

/// Enrolls one host.
pub async fn enroll<C: Cx>(cx: C, request: EnrollRequest) -> Result<EnrollResult, ActivityError> {
    let ironic = preflight(&cx, &request)?;
    let target =
        Target { host: request.host.clone(), netbox_id: request.netbox_id, site: request.site.clone(), ironic };
    let run = Enrollment { seen: RefCell::default(), cx, request, target };
    run.status_gate().await?;
    let platform_class = run.platform_class().await?;
    run.dhcp().await?;
    run.bmc().await?;
    run.activation().await?;
    if !run.request.options.ironic_enrol {
        for phase in [Phase::Inspection, Phase::DriverSwitch, Phase::Cleaning, Phase::Finalize] {
            run.skipped(phase, "the site's gate ironic_enrol is off");
        }
        return Ok(EnrollResult {
            node: None,
            ironic: None,
            platform_class,
            already_enrolled: false,
            qualifying: false,
        });
    }
    let found = run.inspection().await?;
    let end = match found {
        Inspected::Manageable { node } => {
            run.driver_switch(node).await?;
            run.cleaning(node).await?
        }
        Inspected::Satisfied { node, deployed } => {
            run.skipped(Phase::DriverSwitch, "the node is enrolled already");
            run.skipped(Phase::Cleaning, "the node is enrolled already");
            Cleaned { node, deployed }
        }
    };
    run.finalize(&end).await?;
    Ok(EnrollResult {
        node: Some(end.node),
        ironic: Some(run.target.ironic.clone()),
        platform_class,
        already_enrolled: matches!(found, Inspected::Satisfied { .. }),
        qualifying: run.request.params.run_inspection,
    })
}

/// Which Ironic instance owns the device: from the snapshot alone, before anything is asked (R1–R3).
fn preflight<C: Cx>(cx: &C, request: &EnrollRequest) -> Result<String, ActivityError> {
    const PHASE: Phase = Phase::ResolveIronicInstance;
    cx.report(Observation::PhaseStarted { phase: PHASE, attempt: 1 });
    let class = request.device_class.as_deref();
    let Some(instance) = request.routing.resolve(class) else {
        let managed: Vec<&str> = request.routing.by_class.keys().map(String::as_str).collect();
        let managed = if managed.is_empty() { "none".to_owned() } else { managed.join(", ") };
        let message = match class {
            Some(class) => format!(
                "no Ironic instance manages device class '{class}' at site '{}' (managed there: {managed})",
                request.site
            ),
            None => format!("the role of '{}' has no device class in NetBox", request.host),
        };
        let action = format!(
            "give the role of '{}' in NetBox a device class that an Ironic instance manages ({managed}), then enroll again",
            request.host
        );
        return Err(Failure::new(FailureCode::IronicRoutingUnresolved, PHASE, message, action).into());
    };
    cx.report(Observation::PhaseDone { phase: PHASE, note: format!("Ironic '{instance}'") });
    Ok(instance.to_owned())
}

/// How the inspection half ended.
#[derive(Debug, Clone, Copy)]
enum Inspected {
    /// In `manageable`, powered on, verified or bypassed.
    Manageable { node: NodeUuid },
    /// Enrolled already: Ironic's side of it is not to be changed (E6).
    Satisfied { node: NodeUuid, deployed: bool },
}

/// How the cleaning half ended.
#[derive(Debug, Clone, Copy)]
struct Cleaned {
    node: NodeUuid,
    /// Nova's: no power churn (C7, C8).
    deployed: bool,
}

/// One enrollment under way.
struct Enrollment<C> {
    seen: RefCell<Seen>,
    cx: C,
    request: EnrollRequest,
    target: Target,
}

impl<C: Cx> Enrollment<C> {
    async fn status_gate(&self) -> Result<(), ActivityError> {
        self.started(Phase::StatusGate, 1);
        let out = self.ask::<StatusGate>(Phase::StatusGate, 120, self.target.clone()).await?;
        self.done(Phase::StatusGate, format!("'{}' in NetBox", out.status));
        Ok(())
    }

    /// Runs only where the run's snapshot says that the site is ready for it (P1).
    async fn platform_class(&self) -> Result<Option<String>, ActivityError> {
        const PHASE: Phase = Phase::PlatformClass;
        if !self.request.options.platform_class_activity_ready {
            self.skipped(PHASE, "the site's gate platform_class_activity_ready is off");
            return Ok(None);
        }
        self.started(PHASE, 1);
        let out = self.ask::<PlatformClass>(PHASE, 120, self.target.clone()).await?;
        if let Some(message) = out.warning {
            self.warned(PHASE, message);
        }
        self.done(PHASE, out.effective.clone());
        Ok(Some(out.effective))
    }

    async fn dhcp(&self) -> Result<(), ActivityError> {
        const PHASE: Phase = Phase::Dhcp;
        if !self.request.options.configure_dhcp {
            self.skipped(PHASE, "the site's gate configure_dhcp is off");
            return Ok(());
        }
        self.started(PHASE, 1);
        let out = self.ask::<ConfigureDhcp>(PHASE, 900, self.target.clone()).await?;
        let what = if out.changed { "uploaded, service restarted" } else { "was right already" };
        self.done(PHASE, format!("{} {what}", out.file));
        Ok(())
    }

    async fn bmc(&self) -> Result<(), ActivityError> {
        const PHASE: Phase = Phase::Bmc;
        let options = &self.request.options;
        if !options.configure_bmc {
            self.skipped(PHASE, "the site's gate configure_bmc is off");
            return Ok(());
        }
        self.started(PHASE, 1);
        let force_restart = self.request.params.force_bmc_restart;
        let prepared =
            self.ask::<PrepareBmc>(PHASE, 600, PrepareBmcIn { target: self.target.clone(), force_restart }).await?;
        if prepared.needs_reset {
            self.reset_bmc().await?;
        }
        let changed = self.configure_bmc(&prepared).await?;
        self.add_tag(PHASE, &options.bmc_tag).await?;
        let what =
            if changed.is_empty() { "was right already".to_owned() } else { format!("{} changed", changed.join(", ")) };
        self.done(PHASE, format!("{}: {what}", prepared.vendor));
        Ok(())
    }

    /// The only way from `staged` back to `active`, so no gate switches it off (A2).
    async fn activation(&self) -> Result<(), ActivityError> {
        self.started(Phase::Activation, 1);
        let out = self.ask::<Activate>(Phase::Activation, 120, self.target.clone()).await?;
        self.done(Phase::Activation, out.note);
        Ok(())
    }

    async fn driver_switch(&self, node: NodeUuid) -> Result<(), ActivityError> {
        const PHASE: Phase = Phase::DriverSwitch;
        if !self.request.options.switch_to_ipmi_after_inspection {
            self.skipped(PHASE, "the site keeps the driver (switch_to_ipmi_after_inspection is off)");
            return Ok(());
        }
        self.started(PHASE, 1);
        let note = self.step::<SwitchDriver>(node, PHASE, None).await?;
        self.done(PHASE, note);
        Ok(())
    }

    /// Powered on, tagged, proven (C7, C8, T1). A deployed node is only tagged.
    async fn finalize(&self, end: &Cleaned) -> Result<(), ActivityError> {
        const PHASE: Phase = Phase::Finalize;
        self.started(PHASE, 1);
        if !end.deployed {
            self.power_on(end.node, PHASE).await?;
        }
        self.add_tag(PHASE, &self.request.options.ironic_tag).await?;
        if self.request.params.run_inspection {
            self.prove(end.node).await?;
        } else {
            self.warned(PHASE, "not inspected: this run proves no enrollment".to_owned());
        }
        self.done(PHASE, format!("node {} is enrolled", end.node));
        Ok(())
    }

    /// Establishes the proof, and gives the projection of Ironic a bounded time to catch up (T1, T2).
    async fn prove(&self, node: NodeUuid) -> Result<(), ActivityError> {
        const PHASE: Phase = Phase::Finalize;
        let budgets = &self.request.options.budgets;
        let mut patience = Patience::until(self.cx.now(), budgets.proof, self.poll_first(), self.poll_max());
        loop {
            let out = self.ask::<Prove>(PHASE, 60, ProveIn { target: self.target.clone(), node }).await?;
            if out.accepted {
                return Ok(());
            }
            let seen = out.projected.map_or("none yet".to_owned(), |other| format!("'{other}'"));
            let text = format!("the fleet view of Ironic has node {seen}, this run enrolled '{node}'");
            if !patience.wait(&self.cx, PHASE, crate::domain::event::WaitKind::Proof, &text).await? {
                return Err(Failure::new(
                    FailureCode::EnrollmentCompletionProofRejected,
                    PHASE,
                    text,
                    "check whether the host's node was replaced meanwhile, then enroll the host again",
                )
                .into());
            }
        }
    }

    async fn add_tag(&self, phase: Phase, tag: &str) -> Result<(), ActivityError> {
        let input = AddTagIn { target: self.target.clone(), phase, tag: tag.to_owned() };
        self.ask::<AddTag>(phase, 120, input).await.map(drop)
    }

    /// An activity with the house's options for a phase.
    fn ask<A: Activity>(
        &self,
        phase: Phase,
        timeout_s: u64,
        input: A::In,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<C, A> {
        let retry = RetryPolicy::attempts(self.max_attempts());
        let options = ActivityOptions { phase, timeout: Duration::from_secs(timeout_s), retry, survives_cancel: false };
        self.cx.activity::<A>(input, options)
    }

    /// The total attempts that activities and whole reruns may take (G11, I13).
    fn max_attempts(&self) -> u32 {
        self.request.params.max_attempts.unwrap_or(self.request.options.budgets.max_attempts).max(1)
    }

    fn poll_first(&self) -> Duration {
        self.request.options.budgets.poll_first
    }

    fn poll_max(&self) -> Duration {
        self.request.options.budgets.poll_max
    }

    fn node_target(&self, node: NodeUuid, phase: Phase) -> NodeTarget {
        NodeTarget { target: self.target.clone(), node, phase }
    }

    fn started(&self, phase: Phase, attempt: u32) {
        self.cx.report(Observation::PhaseStarted { phase, attempt });
    }

    fn done(&self, phase: Phase, note: String) {
        self.cx.report(Observation::PhaseDone { phase, note });
    }

    fn skipped(&self, phase: Phase, why: &str) {
        self.cx.report(Observation::PhaseSkipped { phase, why: why.to_owned() });
    }

    fn warned(&self, phase: Phase, message: String) {
        self.cx.report(Observation::Warned { phase, message });
    }
}

/// Whether a node in this state belongs to a deployment.
fn is_deployed(state: &ProvisionState, instance: Option<&str>) -> bool {
    *state == ProvisionState::Active || instance.is_some()
}
