//! All activities by the name under which they are journaled.

use std::future::Future;

use serde_json::Value;

use super::env::ActivityCx;
use super::{bmc, dhcp, ironic, netbox, proof};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize_to;
use crate::workflows::cx::Activity;
use crate::workflows::defs;

macro_rules! registry {
    ($($phase:ident: $def:ident => $function:path;)*) => {
        /// The names that [`run`] knows.
        pub const NAMES: &[&str] = &[$(defs::$def::NAME,)*];

        /// Carries out an activity. A name or an input that this version does not know is a failure of its own: it comes
        /// from a journal that another version wrote.
        pub async fn run(name: &str, input: Value, cx: ActivityCx) -> Result<Value, Failure> {
            match name {
                $(<defs::$def as Activity>::NAME => {
                    carry_out::<defs::$def, _>(Phase::$phase, input, |input| async { $function(&cx, input).await }).await
                })*
                _ => Err(unforeseen(
                    Phase::ResolveIronicInstance,
                    format!("this version of muster has no activity '{}'", neutralize_to(name, 100)),
                )),
            }
        }
    };
}

registry! {
    StatusGate: StatusGate => netbox::status_gate;
    PlatformClass: PlatformClass => netbox::platform_class;
    Activation: Activate => netbox::activate;
    Finalize: AddTag => netbox::add_tag;
    Dhcp: ConfigureDhcp => dhcp::configure;
    Bmc: PrepareBmc => bmc::prepare;
    Bmc: ResetBmc => bmc::reset;
    Bmc: BmcBack => bmc::back;
    Bmc: ConfigureBmc => bmc::configure;
    Bmc: StageBmc => bmc::stage;
    Bmc: StagedBmc => bmc::staged;
    Bmc: WithdrawBmc => bmc::withdraw;
    Bmc: RestartHost => bmc::restart_host;
    Bmc: ProveIpmi => bmc::prove_ipmi;
    Inspection: ReadLinks => bmc::read_links;
    Inspection: Prelude => ironic::prelude;
    Inspection: Networking => ironic::networking;
    Inspection: Manage => ironic::manage;
    Inspection: LookAtNode => ironic::look;
    Inspection: RaidTarget => ironic::raid_target;
    Inspection: Verify => ironic::verify;
    Inspection: Inspect => ironic::inspect;
    Inspection: Abort => ironic::abort;
    Cleaning: PutBack => ironic::put_back;
    Finalize: PowerOn => ironic::power_on;
    DriverSwitch: SwitchDriver => ironic::switch_driver;
    Cleaning: Provide => ironic::provide;
    Finalize: Prove => proof::prove;
}

/// Reads the input, carries the activity out, writes the output. `phase`: whom an unreadable input is recorded against;
/// every other failure says its own.
async fn carry_out<A, Fut>(phase: Phase, input: Value, work: impl FnOnce(A::In) -> Fut) -> Result<Value, Failure>
where
    A: Activity,
    Fut: Future<Output = Result<A::Out, Failure>>,
{
    let shown = neutralize_to(&input.to_string(), 300);
    let input = serde_json::from_value(input)
        .map_err(|e| unforeseen(phase, format!("the input of '{}' can't be read ({e}): {shown}", A::NAME)))?;
    let output = work(input).await?;
    serde_json::to_value(&output)
        .map_err(|e| unforeseen(phase, format!("the result of '{}' can't be written down: {e}", A::NAME)))
}

fn unforeseen(phase: Phase, message: String) -> Failure {
    Failure::new(
        FailureCode::InternalError,
        phase,
        message,
        "carry on with the version of muster that began this run, or enroll the host anew",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A workflow that asks for a name that nobody carries out would fail in the middle of a run.
    #[test]
    fn every_activity_of_the_workflows_is_carried_out_by_somebody() {
        let names = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
        assert_eq!(names(NAMES), names(defs::NAMES));
        assert_eq!(NAMES.len(), defs::NAMES.len());
    }
}
