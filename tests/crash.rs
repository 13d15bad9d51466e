//! Kills the real binary with SIGKILL in each phase of an enrollment, starts it again, and holds end and ledger against an
//! undisturbed run.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;
#[path = "support/pool.rs"]
mod pool;

use std::collections::BTreeMap;

use binary::{LabProcess, Running};
use muster::domain::phase::Phase;

const HOST: &str = "gpu-b07-29";
const SPEED: u32 = 60;

/// Proves: G5, G6
#[test]
fn a_run_killed_in_any_phase_ends_as_the_undisturbed_one() {
    let undisturbed = {
        let lab = LabProcess::start(SPEED, None);
        let ended = lab.run(&["enroll", HOST, "--json"]);
        assert_eq!(ended.code(), Some(0), "{ended}");
        lab.once_only()
    };
    assert!(!undisturbed.is_empty());
    let phases: Vec<Phase> = Phase::ALL.into_iter().filter(|phase| *phase != Phase::DriverSwitch).collect();
    pool::each(&phases, |phase| killed_in(*phase, &undisturbed));
}

fn killed_in(phase: Phase, undisturbed: &BTreeMap<String, usize>) {
    let phase = phase.as_str();
    let lab = LabProcess::start(SPEED, None);
    let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
    let needle = format!("\"phase\":\"{phase}\"");
    let seen = running.wait_for(phase, |line| line.contains("phase_started") && line.contains(&needle));
    assert!(seen.is_some(), "{phase}: the phase was never entered: {}", running.end());
    running.kill();
    let runs = || lab.run(&["runs", "list", "--json"]).events();
    // The last phase is short: where the kill came too late, there is nothing to resume.
    let ended = phase == Phase::Finalize.as_str() && runs()[0]["status"] == "succeeded";
    if !ended {
        let ended = lab.run(&["enroll", HOST, "--json"]);
        assert_eq!(ended.code(), Some(0), "{phase}: {ended}");
        assert_eq!(ended.finished(HOST)["status"], "succeeded");
    }
    assert_eq!(runs().len(), 1, "{phase}: the run was resumed, not begun anew: {:#?}", runs());
    assert_eq!(lab.once_only(), *undisturbed, "{phase}: writes that happen once");
}

/// Proves: G3
#[test]
fn a_gate_that_is_switched_off_meanwhile_changes_no_run_under_way() {
    let lab = LabProcess::start(SPEED, None);
    let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
    assert!(running.wait_for("the status gate", |line| line.contains("\"phase\":\"status_gate\"")).is_some());
    running.kill();
    let text = std::fs::read_to_string(&lab.config).unwrap();
    let changed =
        text.replace("[sites.osl1.gates]", "[sites.osl1.gates]\nconfigure_dhcp = false\nconfigure_bmc = false");
    assert_ne!(text, changed);
    std::fs::write(&lab.config, changed).unwrap();
    let ended = lab.run(&["enroll", HOST, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    let writes = lab.writes();
    for system in ["dhcp ", "bmc "] {
        assert!(writes.iter().any(|write| write.starts_with(system)), "{system}: {writes:#?}");
    }
    let skipped = ended.events().into_iter().filter(|event| event["observed"] == "phase_skipped");
    let skipped: Vec<String> = skipped.map(|event| event["phase"].to_string()).collect();
    assert_eq!(skipped, ["\"driver_switch\""]);
}
