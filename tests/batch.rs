//! Batches through the real binary on the lab: lists that are judged whole, canaries, limits, and what a second process sees.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::path::PathBuf;

use binary::{Ended, LabProcess, Running};
use serde_json::{Value, json};

const SPEED: u32 = 60;
const ONE: &str = "gpu-b07-29";
const TWO: &str = "cpu-c01-37";
const SWAPPED: &str = "gpu-b07-37";

fn list(lab: &LabProcess, name: &str, text: &str) -> String {
    let path: PathBuf = lab.folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

fn runs(lab: &LabProcess) -> Vec<Value> {
    lab.run(&["runs", "list", "--json"]).events()
}

fn nothing_began(lab: &LabProcess, ended: &Ended) {
    assert_eq!(ended.code(), Some(2), "{ended}");
    assert!(runs(lab).is_empty(), "{ended}");
    assert!(lab.writes().is_empty(), "{:#?}", lab.writes());
}

/// Proves: G8, S1, G13
#[test]
fn a_list_with_duplicates_and_bad_names_is_judged_whole_before_anything_begins() {
    let lab = LabProcess::start(SPEED, None);
    // The case's own list, with a host that may not be enrolled beside it.
    let file = json!({
        "hosts": [ONE, ONE, ONE.to_uppercase(), TWO, "nosuch-99", "", "gpu-b07-35"],
        "also": "two different names that resolve to one NetBox id after a rename"
    });
    let path = list(&lab, "batch.json", &file.to_string());

    let ended = lab.run(&["enroll", "--file", &path, "--yes", "--json"]);
    nothing_began(&lab, &ended);
    let events = ended.events();
    let refused: Vec<(&str, &str)> = of_kind(&events, "refused")
        .into_iter()
        .map(|event| {
            assert!(!event["message"].as_str().unwrap().is_empty() && !event["action"].as_str().unwrap().is_empty());
            (event["host"].as_str().unwrap(), event["code"].as_str().unwrap())
        })
        .collect();
    assert_eq!(refused, [("nosuch-99", "host_unknown"), ("", "host_empty"), ("gpu-b07-35", "device_not_placed")]);
    let repeated: Vec<(&str, &str)> = of_kind(&events, "repeated")
        .into_iter()
        .map(|event| (event["name"].as_str().unwrap(), event["host"].as_str().unwrap()))
        .collect();
    assert_eq!(repeated, [(ONE, ONE), (ONE.to_uppercase().as_str(), ONE)]);
    assert!(of_kind(&events, "accepted").is_empty());
    assert!(ended.stderr.contains("3 of 7 names were refused") && ended.stderr.contains("--skip-refused"), "{ended}");

    // For people the whole list is shown, also what would have gone.
    let shown = lab.run(&["enroll", "--file", &path]);
    nothing_began(&lab, &shown);
    for part in ["enroll at osl1", &format!("is {ONE}"), "no racked device 'nosuch-99'", "2 to enroll"] {
        assert!(shown.stdout.contains(part), "{part}: {shown}");
    }

    // What is good of it is started once where that is asked for; the exit code still says that some was refused.
    let ended = lab.run(&["enroll", "--file", &path, "--yes", "--skip-refused", "--json"]);
    assert_eq!(ended.code(), Some(2), "{ended}");
    for host in [ONE, TWO] {
        assert_eq!(ended.finished(host)["status"], "succeeded", "{ended}");
    }
    let hosts: Vec<Value> = runs(&lab).into_iter().map(|run| run["host"].clone()).collect();
    assert_eq!(hosts.len(), 2, "{hosts:?}");
}

/// Proves: G8
#[test]
fn a_list_starts_nothing_while_nobody_has_said_yes_and_a_bad_file_is_one_sentence_with_its_line() {
    let lab = LabProcess::start(SPEED, None);
    let good = list(&lab, "good.txt", &format!("# rack B07\n{ONE}\n\n{TWO} # the spare\n"));
    let ended = lab.run(&["enroll", "--file", &good]);
    nothing_began(&lab, &ended);
    assert!(ended.stdout.contains("2 to enroll") && ended.stderr.contains("--yes"), "{ended}");
    let ended = lab.run(&["enroll", "--file", &good, "--json"]);
    nothing_began(&lab, &ended);

    for (text, part) in [
        (format!("{ONE}\n{TWO} {SWAPPED}\n"), "bad.txt:2: 'cpu-c01-37 gpu-b07-37' is more than one name"),
        ("{\"hosts\": [\n\"a\"\n".to_owned(), "bad.txt:3: "),
        ("# nothing\n".to_owned(), "names no host"),
    ] {
        let bad = list(&lab, "bad.txt", &text);
        let ended = lab.run(&["enroll", "--file", &bad, "--yes"]);
        nothing_began(&lab, &ended);
        assert!(ended.stderr.contains(part), "{part}: {ended}");
    }
    let missing = lab.folder.path().join("none.txt");
    let ended = lab.run(&["enroll", "--file", missing.to_str().unwrap(), "--yes"]);
    nothing_began(&lab, &ended);
    assert!(ended.stderr.contains("none.txt"), "{ended}");
    // A deployed host is not touched because its name stands in a list.
    let deployed = list(&lab, "deployed.txt", "gpu-b06-41\n");
    let ended = lab.run(&["enroll", "--file", &deployed, "--yes", "--json"]);
    nothing_began(&lab, &ended);
    assert_eq!(of_kind(&ended.events(), "refused")[0]["code"], "host_deployed");
}

/// Proves: G13, G10
#[test]
fn a_detached_batch_waits_in_the_store_for_its_canary_and_ends_unbegun_with_its_failure() {
    let lab = LabProcess::start(SPEED, None);
    let ended = lab.run(&["enroll", SWAPPED, ONE, TWO, "--canary", "--detach", "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    let accepted: Vec<Value> = of_kind(&ended.events(), "accepted").into_iter().cloned().collect();
    assert_eq!(accepted.len(), 3, "{ended}");
    // Nobody leads now, and still everybody can read what they wait for.
    let listed = runs(&lab);
    for host in [ONE, TWO] {
        let run = listed.iter().find(|run| run["host"] == host).unwrap();
        let reason = format!("waits for canary {SWAPPED}");
        assert_eq!(
            (&run["status"], &run["held_by"], &run["reason"]),
            (&json!("queued"), &json!("canary"), &json!(reason)),
            "{run}"
        );
        let shown = lab.run(&["runs", "show", run["run"].as_str().unwrap()]);
        assert!(shown.stdout.contains(&reason), "{shown}");
    }

    let canary = accepted[0]["run"].as_str().unwrap();
    let waits = accepted[2]["run"].as_str().unwrap();
    let ended = lab.run(&["runs", "watch", waits, "--json"]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let finished = ended.finished(TWO);
    assert_eq!(finished["status"], "cancelled", "{ended}");
    let why = finished["why"].as_str().unwrap();
    assert!(
        why.contains(SWAPPED) && why.contains("CABLES_WRONG") && why.contains(&canary[canary.len() - 6..]),
        "{why}"
    );
    assert!(runs(&lab).iter().all(|run| run["place"].is_null()));
    let touched = |host: &str| lab.ledger().iter().any(|entry| entry["device"] == host);
    assert!(!touched(ONE) && !touched(TWO), "{:#?}", lab.writes());

    // Retried, it begins at once and is nobody's follower.
    let retried = lab.run(&["runs", "retry", waits, "--json"]);
    assert_eq!(retried.finished(TWO)["status"], "succeeded", "{retried}");
}

/// Proves: G13
#[test]
fn the_limit_of_a_switch_goes_by_netbox_and_without_its_answer_nothing_is_submitted() {
    let lab = LabProcess::start(SPEED, None);
    let config = std::fs::read_to_string(&lab.config).unwrap();
    let limits = "[limits]\nruns_per_switch = 1\n";
    let config = match config.contains("[limits]") {
        true => config.replace("[limits]\n", limits),
        false => format!("{config}\n{limits}"),
    };
    std::fs::write(&lab.config, config).unwrap();
    let other = "gpu-b07-31";

    lab.fault(
        json!({"kind": "http", "system": "netbox", "path": "/api/dcim/interfaces/", "device": ONE, "status": 502,
        "count": 1}),
    );
    let ended = lab.run(&["enroll", ONE, "--json"]);
    nothing_began(&lab, &ended);
    let events = ended.events();
    let refused = of_kind(&events, "refused")[0];
    assert_eq!(refused["code"], "NETBOX_UNREACHABLE", "{ended}");
    assert!(refused["message"].as_str().unwrap().contains("runs_per_switch"), "{ended}");

    // Both hang on the leaves of their rack: one after the other.
    let mut running = Running::start(lab.command(&["enroll", ONE, other, "--json"]));
    running.wait_for("the first is under way", |line| line.contains("phase_started") && line.contains(ONE));
    let listed = runs(&lab);
    let waits = listed.iter().find(|run| run["status"] == "queued").unwrap_or_else(|| panic!("{listed:#?}"));
    assert_eq!((&waits["host"], &waits["held_by"], &waits["place"]), (&json!(other), &json!("switch"), &json!(1)));
    assert!(waits["reason"].as_str().unwrap().contains("leaf-b07-1, 1 of 1"), "{waits}");
    let ended = running.end();
    assert_eq!(ended.finished(ONE)["status"], "succeeded", "{ended}");
    let events = ended.events();
    let at = |fits: &dyn Fn(&Value) -> bool| events.iter().position(fits).unwrap();
    let over = at(&|event| event["event"] == "finished" && event["host"] == ONE);
    let begins = at(&|event| event["observed"] == "phase_started" && event["host"] == other);
    assert!(over < begins, "{other} began before {ONE} had ended");
}
