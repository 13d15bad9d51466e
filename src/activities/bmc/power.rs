//! Switches a host on, off, or off and on, for whoever stands before the rack (U10). Belongs to no run.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::access::{Bmc, Trouble};
use super::restart::press;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::vendor::Vendor;
use crate::clients::redfish::{Resource, host};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::rack::{PowerWish, Powered};
use crate::workflows::defs::Target;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Reads the power and, where something is wished that it is not, changes it and reads it back.
pub async fn power(cx: &ActivityCx, target: &Target, wish: Option<PowerWish>) -> Result<Powered, Failure> {
    let bmc = Bmc::open(cx, target, Phase::Bmc).await?;
    let outcome = switch(&bmc, wish).await;
    bmc.settle(outcome).await
}

async fn switch(bmc: &Bmc<'_>, wish: Option<PowerWish>) -> Result<Powered, Trouble> {
    let (vendor, system) = bmc.system_of_any().await?;
    let before = state(&system);
    let Some(wish) = wish else {
        return Ok(Powered { after: before.clone(), before, asked: vec![] });
    };
    let kinds = host::reset_types(&bmc.redfish, &system, "ComputerSystem.Reset").await;
    let mut asked = Vec::new();
    for step in steps(wish, &before, &kinds, vendor) {
        match step {
            Step::Press { kind, until, soft } => {
                press(bmc, &system, kind).await?;
                asked.push(kind.to_owned());
                // A minute, also for an operating system to end.
                if !wait(bmc, &system, until).await? && !soft {
                    return Err(does_not_show(bmc, wish, kind, until).into());
                }
            }
            Step::UnlessOff(kind) => {
                if is(&bmc.redfish.get(&system.path).await?, "Off") {
                    continue;
                }
                press(bmc, &system, kind).await?;
                asked.push(kind.to_owned());
                if !wait(bmc, &system, "Off").await? {
                    return Err(does_not_show(bmc, wish, kind, "Off").into());
                }
            }
        }
    }
    let after = state(&bmc.redfish.get(&system.path).await?);
    if !asked.is_empty() {
        bmc.cx.wrote(super::BMC, &bmc.target.host, "power", &before, &after);
        tracing::info!(host = %bmc.target.host, %before, %after, ?asked, "power was changed by hand");
    }
    Ok(Powered { before, after, asked })
}

/// One step of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Asks, and waits for a state. `soft`: where that does not come, the next step sees to it.
    Press { kind: &'static str, until: &'static str, soft: bool },
    /// What did not end by itself.
    UnlessOff(&'static str),
}

/// What has to be asked for, by what is there and what the BMC takes. Nothing where it is so already.
fn steps(wish: PowerWish, now: &str, kinds: &[String], vendor: Option<Vendor>) -> Vec<Step> {
    // A BMC that does not list its kinds is asked for those that all have.
    let takes = |kind: &str| kinds.iter().any(|word| word == kind);
    let all_have = |kind: &str| kinds.is_empty() || takes(kind);
    let first = |words: &[&'static str], otherwise: &'static str| {
        words.iter().copied().find(|word| all_have(word)).unwrap_or(otherwise)
    };
    let (on, off) = (now.eq_ignore_ascii_case("On"), now.eq_ignore_ascii_case("Off"));
    let switch_on = Step::Press { kind: first(&["On", "ForceOn"], "PushPowerButton"), until: "On", soft: false };
    let hard = first(&["ForceOff"], "PushPowerButton");
    match wish {
        PowerWish::On if on => vec![],
        PowerWish::On => vec![switch_on],
        PowerWish::Off { .. } if off => vec![],
        PowerWish::Off { hard: false } if takes("GracefulShutdown") => {
            vec![Step::Press { kind: "GracefulShutdown", until: "Off", soft: true }, Step::UnlessOff(hard)]
        }
        PowerWish::Off { .. } => vec![Step::Press { kind: hard, until: "Off", soft: false }],
        PowerWish::Cycle if off => vec![switch_on],
        // Some Lenovo hosts hang in a restart that is forced; off and on again never does.
        PowerWish::Cycle if vendor != Some(Vendor::Lenovo) && takes("PowerCycle") => {
            vec![Step::Press { kind: "PowerCycle", until: "On", soft: false }]
        }
        PowerWish::Cycle if vendor != Some(Vendor::Lenovo) && takes("ForceRestart") => {
            vec![Step::Press { kind: "ForceRestart", until: "On", soft: false }]
        }
        PowerWish::Cycle => vec![Step::Press { kind: hard, until: "Off", soft: false }, switch_on],
    }
}

fn state(system: &Resource) -> String {
    system.text("PowerState").unwrap_or_else(|| "-".to_owned())
}

fn is(system: &Resource, wanted: &str) -> bool {
    state(system).eq_ignore_ascii_case(wanted)
}

/// Waits for a state. A BMC that is busy while its host changes is asked again.
async fn wait(bmc: &Bmc<'_>, system: &Resource, wanted: &str) -> Result<bool, Trouble> {
    let until = Instant::now() + bmc.read_back_budget();
    loop {
        if is(&bmc.redfish.get(&system.path).await?, wanted) {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
}

fn does_not_show(bmc: &Bmc<'_>, wish: PowerWish, kind: &str, wanted: &str) -> Failure {
    let (host, within) = (&bmc.target.host, bmc.read_back_budget());
    bmc.fail(
        FailureCode::BmcSettingNotApplied,
        format!(
            "{} of '{host}': '{kind}' was asked for, and its power is not '{wanted}' after {} s",
            wish.words(),
            within.as_secs()
        ),
        format!("look at '{host}' itself; where it hangs, hold its power button for five seconds"),
    )
    .owned_by(crate::domain::failure::Owner::Onsite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(wish: PowerWish, now: &str, kinds: &[&str], vendor: Option<Vendor>) -> Vec<String> {
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        let word = |step: &Step| match step {
            Step::Press { kind, .. } => (*kind).to_owned(),
            Step::UnlessOff(kind) => format!("{kind}?"),
        };
        steps(wish, now, &kinds, vendor).iter().map(word).collect()
    }

    const SOFT: PowerWish = PowerWish::Off { hard: false };
    const HARD: PowerWish = PowerWish::Off { hard: true };

    /// Proves: U10
    #[test]
    fn only_what_is_not_so_already_is_asked_for() {
        let kinds = ["On", "ForceOff", "GracefulShutdown"];
        assert!(words(PowerWish::On, "On", &kinds, None).is_empty());
        assert!(words(SOFT, "Off", &kinds, None).is_empty());
        assert!(words(HARD, "Off", &kinds, None).is_empty());
        // What is not known is not taken for what is wished.
        assert_eq!(words(PowerWish::On, "-", &kinds, None), ["On"]);
        assert_eq!(words(HARD, "PoweringOn", &kinds, None), ["ForceOff"]);
    }

    /// Proves: U10
    #[test]
    fn the_kind_is_one_that_the_bmc_takes() {
        let dell =
            ["On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "PowerCycle"];
        let lenovo = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"];
        let ami = ["On", "ForceOff", "ForceRestart", "GracefulShutdown"];
        assert_eq!(words(SOFT, "On", &dell, Some(Vendor::Dell)), ["GracefulShutdown", "ForceOff?"]);
        assert_eq!(words(HARD, "On", &dell, Some(Vendor::Dell)), ["ForceOff"]);
        assert_eq!(words(PowerWish::Cycle, "On", &dell, Some(Vendor::Dell)), ["PowerCycle"]);
        assert_eq!(words(PowerWish::Cycle, "Off", &dell, Some(Vendor::Dell)), ["On"]);
        assert_eq!(words(PowerWish::Cycle, "On", &lenovo, Some(Vendor::Lenovo)), ["ForceOff", "On"]);
        assert_eq!(words(PowerWish::Cycle, "On", &ami, Some(Vendor::Ami)), ["ForceRestart"]);
        assert_eq!(words(SOFT, "On", &["On", "PushPowerButton"], None), ["PushPowerButton"]);
        // A BMC that lists none.
        assert_eq!(words(SOFT, "On", &[], None), ["ForceOff"]);
        assert_eq!(words(PowerWish::Cycle, "On", &[], None), ["ForceOff", "On"]);
        assert_eq!(words(PowerWish::On, "Off", &[], None), ["On"]);
    }
}
