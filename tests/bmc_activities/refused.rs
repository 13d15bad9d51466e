//! Each write of each vendor's flow, met by a BMC that is busy and by one that refuses it: a table, cell by cell.

use std::time::Duration;

use muster::activities::bmc::{configure, prepare, stage};
use muster::domain::failure::Failure;
use muster::lab::faults::HttpRule;
use muster::lab::machine::{Quirk, Vendor};
use muster::workflows::defs::{ConfigureBmcIn, StageBmcIn};
use serde_json::json;

use super::Rig;

/// More writes than any flow has.
const WRITES_MAX: usize = 30;

/// What a step of the flow is, and what it comes to with the BMC as it is now.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    Password,
    Settings,
    Staging,
}

async fn run(rig: &Rig, step: Step, label: &str) -> Result<(), Failure> {
    let cx = rig.next_run();
    match step {
        Step::Password => prepare(&cx, rig.prepare_in(false)).await.map(drop),
        Step::Settings => configure(&cx, ConfigureBmcIn { vendor: label.into(), ..rig.configure_in() }).await.map(drop),
        Step::Staging => stage(&cx, StageBmcIn { target: rig.target(), restrict_boot: true }).await.map(drop),
    }
}

/// Every write is answered so, but for the first of `lets`: method and path.
fn answer_writes(rig: &Rig, status: u16, lets: Option<(String, String)>) {
    rig.lab.world().rules().clear();
    // It only tells something.
    let asks = HttpRule { path: Some("*.GetRemoteServicesAPIStatus".into()), ..HttpRule::default() };
    rig.rule(asks);
    if let Some((method, path)) = lets {
        rig.rule(HttpRule { method: Some(method), path: Some(path), count: Some(1), ..HttpRule::default() });
    }
    for method in ["PATCH", "POST"] {
        let body = Some(json!({"error": {"message": "the lab says no"}}));
        rig.rule(HttpRule { method: Some(method.into()), status: Some(status), body, ..HttpRule::default() });
    }
}

/// The first write that was answered so since the ledger was forgotten.
fn refused(rig: &Rig, status: u16) -> (String, String) {
    let asked = rig.asked();
    let entry = asked.iter().find(|entry| entry.write && entry.status == Some(status)).unwrap();
    (entry.method.clone(), entry.path.clone())
}

/// The rows of one vendor: what would have been changed, and how the step ends while the BMC is busy with it, or refuses it.
async fn rows(vendor: Vendor, label: &str) -> Vec<String> {
    let rotates = vendor != Vendor::Supermicro;
    let rig = Rig::with(
        |scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            scenario.hosts[0].bmc_quirks = rotates.then_some(Quirk::FactoryPassword).into_iter().collect();
        },
        |settings| settings.sites.values_mut().for_each(|site| site.bmc.busy_budget = Duration::from_millis(15)),
    )
    .await;
    rig.lab.world().clock().set_speed(6000.0);
    let mut rows = Vec::new();
    for step in [Step::Password, Step::Settings, Step::Staging] {
        let mut lets: Option<(String, String)> = None;
        let mut codes: Option<[String; 2]> = None;
        for n in 0.. {
            assert!(n < WRITES_MAX, "{vendor:?}: there is no end of it");
            let mut now = Vec::new();
            for status in [503, 400] {
                let through = lets.take();
                answer_writes(&rig, status, through.clone());
                rig.forget_requests();
                let (before, first) = (rig.changes().len(), status == 503);
                let ended = run(&rig, step, label).await;
                let changed = rig.changes().split_off(before);
                // What was let through is what the round before was about, and nothing else is changed. What is staged is told
                // when all of it is.
                let is_told = step != Step::Staging || ended.is_ok();
                let wanted = usize::from(first && codes.is_some() && is_told);
                assert_eq!(changed.len().min(1), wanted, "{vendor:?}: {changed:?} {ended:?}");
                assert!(changed.len() < 2 || step == Step::Staging, "{vendor:?}: {changed:?}");
                if let (Some((_, path)), Some([busy, refused])) = (through, codes.take()) {
                    let what = match changed.first().filter(|_| step != Step::Staging) {
                        Some(change) => change.split(':').next().unwrap().to_owned(),
                        None => format!("staged: {}", path.trim_start_matches("/redfish/v1/Systems/")),
                    };
                    rows.push(format!("  {what:<70}{busy:<32}{refused}"));
                }
                if step == Step::Password {
                    rig.forget_wrong_tries().await;
                }
                let Err(failure) = ended else { break };
                assert!(!failure.message.is_empty() && !failure.action.is_empty(), "{failure:?}");
                now.push(failure.code.to_string());
            }
            // Nothing was left to be written.
            let Ok(both) = <[String; 2]>::try_from(now) else { break };
            lets = Some(refused(&rig, 400));
            codes = Some(both);
        }
    }
    rows
}

/// Proves: B2, B5, B10, B11, B16, B18
#[tokio::test]
async fn each_write_of_each_vendor_ends_its_step_with_a_code_and_changes_nothing_while_it_is_not_taken() {
    let vendors = [
        (Vendor::Lenovo, "Lenovo XCC"),
        (Vendor::Dell, "Dell iDRAC"),
        (Vendor::Ami, "AMI MegaRAC"),
        (Vendor::Supermicro, "Supermicro"),
    ];
    let mut table = String::new();
    for (vendor, label) in vendors {
        table += &format!("{label:<72}{:<32}refused\n", "busy");
        table += &rows(vendor, label).await.join("\n");
        table += "\n";
    }
    println!("{table}");
    insta::assert_snapshot!(table);
}
