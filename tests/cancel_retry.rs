//! Cancel and retry at the real binary: what is left is told, and runs that repeat each other say so on both sides.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use binary::{LabProcess, Running};
use serde_json::{Value, json};

const HOST: &str = "gpu-b07-29";
const SPEED: u32 = 60;

fn export(lab: &LabProcess, run: &str) -> Value {
    let ended = lab.run(&["runs", "export", run, "--format", "json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Proves: G9
#[test]
fn a_run_that_is_cancelled_in_any_phase_tells_what_it_leaves_and_no_maintenance_is_on() {
    for (phase, left) in [("bmc", "dhcp"), ("inspection", "netbox"), ("cleaning", "ironic"), ("finalize", "ironic")] {
        let lab = LabProcess::start(SPEED, None);
        let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
        let needle = format!("\"phase\":\"{phase}\"");
        let begun = running.wait_for(phase, |line| line.contains("phase_started") && line.contains(&needle)).unwrap();
        let run = serde_json::from_str::<Value>(&begun).unwrap()["run"].as_str().unwrap().to_owned();
        // The process is gone: the cancel goes through another one, which resumes the run for it.
        running.kill();
        let ended = lab.run(&["runs", "cancel", &run]);
        let story = export(&lab, &run);
        assert_eq!(story["status"], "cancelled", "{phase}: {ended} {story:#}");
        let told: Vec<&str> = story["left"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert!(told.iter().any(|line| line.starts_with(left)), "{phase}: {told:?}");
        let world = lab.world().to_string();
        assert!(!world.contains("\"maintenance\":true"), "{phase}");
        // Nothing goes on behind it.
        let before = lab.writes().len();
        let ended = lab.run(&["runs", "show", &run]);
        assert!(ended.stdout.contains("cancelled"), "{ended}");
        assert_eq!(lab.writes().len(), before);
    }
}

/// Proves: G10, G11
#[test]
fn a_retry_takes_the_switches_of_before_and_those_given_and_both_runs_name_each_other() {
    let lab = LabProcess::start(SPEED, None);
    lab.fault(json!({"kind": "inspection_fails", "device": HOST, "times": 2}));
    let first = lab.run(&["enroll", HOST, "--json", "--max-attempts", "1", "--force-bmc-restart"]);
    assert_eq!(first.code(), Some(1), "{first}");
    let of = |ended: &binary::Ended| ended.finished(HOST)["run"].as_str().unwrap().to_owned();
    let second = lab.run(&["runs", "retry", &of(&first), "--json", "--force-inspection"]);
    assert_eq!(second.code(), Some(1), "{second}");
    assert_eq!(second.finished(HOST)["failure"]["code"], "INSPECTION_FAILED");
    let third = lab.run(&["runs", "retry", &of(&second), "--json", "--max-attempts", "2"]);
    assert_eq!(third.code(), Some(0), "{third}");
    let params = |ended| export(&lab, &of(ended))["params"].clone();
    for (ended, inspects, attempts) in [(&first, false, 1), (&second, true, 1), (&third, true, 2)] {
        let params = params(ended);
        assert_eq!((&params["force_inspection"], &params["max_attempts"]), (&json!(inspects), &json!(attempts)));
        assert_eq!(params["force_bmc_restart"], true);
    }
    let runs = lab.run(&["runs", "list", "--json"]).events();
    let row = |ended| runs.iter().find(|row| row["run"] == *of(ended)).unwrap();
    assert_eq!((&row(&second)["retry_of"], &row(&second)["retried_by"]), (&json!(of(&first)), &json!([of(&third)])));
    assert_eq!((&row(&first)["retry_of"], &row(&third)["retried_by"]), (&Value::Null, &json!([])));
    let shown = lab.run(&["runs", "show", &of(&second)]).stdout;
    assert!(shown.contains(&format!("repeats run {}", of(&first))), "{shown}");
    assert!(shown.contains(&format!("repeated by run {}", of(&third))), "{shown}");
    let refused = lab.run(&["runs", "retry", &of(&third), "--no-inspection", "--force-inspection"]);
    assert_eq!(refused.code(), Some(2), "{refused}");
}
