//! Journals of each version of the workflow, replayed against the code as it is.
//!
//! `MUSTER_UPDATE_HISTORIES=1 cargo test --test histories` records those of this version anew, on the lab. Those of older
//! versions stay as they are.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;
#[path = "support/histories.rs"]
mod histories;

use std::sync::Once;

use binary::{LabProcess, Running};
use muster::domain::event::{Body, Event, Observation, Outcome, RunRecord, WaitKind};
use muster::domain::failure::FailureCode;
use muster::domain::story::Story;
use muster::engine::{Stand, Workflows, review};
use muster::store::Store;

/// The journals that every version has.
const NAMES: [&str; 7] =
    ["fresh", "miscabled", "clean_fails_once", "lock_waited_out", "already_enrolled", "driver_switch", "cancelled"];

/// Records this version's journals, once and only where it was asked for.
fn recorded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("MUSTER_UPDATE_HISTORIES").is_some() {
            record();
        }
    });
}

fn record() {
    let lab = LabProcess::start(60, None);
    let config = std::fs::read_to_string(&lab.config).unwrap();
    // Fewer looks: what is told by them is told by a few.
    let slower = |key: &str, seconds: &str, text: String| {
        let change = |line: &str| match line.starts_with(&format!("{key} = ")) {
            true => format!("{key} = {seconds}\n"),
            false => format!("{line}\n"),
        };
        text.lines().map(change).collect::<String>()
    };
    let config = slower("poll_first_s", "0.2", slower("poll_max_s", "0.6", config));
    std::fs::write(&lab.config, &config).unwrap();

    lab.run(&["enroll", "gpu-b07-29", "gpu-b07-37", "gpu-b07-33", "gpu-b07-31", "--json"]);
    save(&lab, "gpu-b07-29", "fresh");
    save(&lab, "gpu-b07-37", "miscabled");
    save(&lab, "gpu-b07-33", "clean_fails_once");
    save(&lab, "gpu-b07-31", "lock_waited_out");
    lab.run(&["enroll", "gpu-b07-29", "--json"]);
    save(&lab, "gpu-b07-29", "already_enrolled");

    // Killed while it inspects, then cancelled by the process that resumes it.
    let mut running = Running::start(lab.command(&["enroll", "cpu-c01-37", "--json"]));
    running.wait_for("the inspection", |line| line.contains("ironic.inspect") && line.contains("activity_scheduled"));
    running.kill();
    let run = lab.run(&["runs", "list", "--json"]).events()[0]["run"].as_str().unwrap().to_owned();
    lab.run(&["runs", "cancel", &run]);
    save(&lab, "cpu-c01-37", "cancelled");

    let switching = format!("{config}\n[sites.osl1.options]\nswitch_to_ipmi_after_inspection = true\n");
    std::fs::write(&lab.config, switching).unwrap();
    lab.run(&["enroll", "cpu-c01-35", "--json"]);
    save(&lab, "cpu-c01-35", "driver_switch");
}

/// Writes the newest run of a host into a file.
fn save(lab: &LabProcess, host: &str, name: &str) {
    let store = Store::open(&lab.state()).unwrap();
    let run = store.runs().unwrap().into_iter().find(|row| row.host == host).unwrap().run;
    let text = histories::normalized(&store.records(run).unwrap());
    let folder = histories::current();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{name}.jsonl")), text).unwrap();
}

fn named(name: &str) -> Vec<RunRecord> {
    recorded();
    histories::read(&histories::current().join(format!("{name}.jsonl")))
}

fn end(records: &[RunRecord]) -> Option<&Outcome> {
    records.iter().find_map(|record| match &record.body {
        Body::Journal(Event::Finished { outcome }) => Some(outcome),
        _ => None,
    })
}

fn waits(records: &[RunRecord], kind: WaitKind) -> usize {
    let is = |record: &&RunRecord| matches!(&record.body, Body::Journal(Event::TimerSet { reason, .. }) if reason.kind == kind);
    records.iter().filter(is).count()
}

fn asked(records: &[RunRecord], name: &str) -> usize {
    let is = |record: &&RunRecord| matches!(&record.body, Body::Journal(Event::ActivityScheduled { name: n, .. }) if n == name);
    records.iter().filter(is).count()
}

/// Proves: G7
#[test]
fn the_journals_of_every_version_replay_to_the_same_end() {
    recorded();
    let files = histories::all();
    for name in NAMES {
        let path = histories::current().join(format!("{name}.jsonl"));
        assert!(
            files.contains(&path),
            "this version has no '{name}': run MUSTER_UPDATE_HISTORIES=1 cargo test --test histories"
        );
    }
    for path in files {
        let records = histories::read(&path);
        let outcome = end(&records).unwrap_or_else(|| panic!("{}: it has no end", path.display())).clone();
        let review = review(&Workflows::all(), &records);
        assert_eq!(review.stand, Stand::Ended(outcome), "{}", path.display());
        assert!(review.events > 10, "{}: {} events", path.display(), review.events);
        // A story that can be told of every journal that there ever was.
        let story = Story::of(&records).unwrap();
        assert!(story.markdown().contains("## Timeline"), "{}", path.display());
    }
}

/// Proves: G5, G7
#[test]
fn a_journal_that_is_cut_anywhere_replays_to_where_it_was_cut() {
    recorded();
    for path in histories::all() {
        let records = histories::read(&path);
        for length in 1..records.len() {
            if matches!(records[length - 1].body, Body::Observation(_)) {
                continue;
            }
            let review = review(&Workflows::all(), &records[..length]);
            assert!(
                matches!(review.stand, Stand::UnderWay(_)),
                "{} cut behind record {}: {:?}",
                path.display(),
                length - 1,
                review.stand
            );
        }
    }
}

/// Each file is of what its name says: a replay of the wrong thing proves nothing.
#[test]
fn the_journals_are_of_what_their_names_say() {
    let failed = |name: &str| match end(&named(name)) {
        Some(Outcome::Failed { failure }) => failure.code,
        other => panic!("{name}: {other:?}"),
    };
    let succeeded = |name: &str| match end(&named(name)) {
        Some(Outcome::Succeeded { result: Some(result) }) => result.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert!(!succeeded("fresh").already_enrolled);
    assert_eq!(failed("miscabled"), FailureCode::CablesWrong);
    succeeded("clean_fails_once");
    assert_eq!(asked(&named("clean_fails_once"), "ironic.provide"), 2);
    succeeded("lock_waited_out");
    assert!(waits(&named("lock_waited_out"), WaitKind::NodeLock) > 0);
    assert!(succeeded("already_enrolled").already_enrolled);
    succeeded("driver_switch");
    assert_eq!(asked(&named("driver_switch"), "ironic.switch_driver"), 1);
    let cancelled = named("cancelled");
    assert!(matches!(end(&cancelled), Some(Outcome::Cancelled { .. })), "{:?}", end(&cancelled));
    let resumed = |r: &RunRecord| matches!(r.body, Body::Observation(Observation::Resumed { .. }));
    assert!(cancelled.iter().any(resumed), "it was killed before it was cancelled");
}

/// Proves: Z1
#[test]
fn the_journals_hold_nothing_of_the_machine_that_made_them_and_no_secret() {
    recorded();
    let home = std::env::var("HOME").unwrap_or_default();
    for path in histories::all() {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in ["/tmp/", "/root/", "/home/", env!("CARGO_MANIFEST_DIR"), "nbt_", "Lab-", "PRIVATE KEY"] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        assert!(home.len() < 4 || !text.contains(&home), "{}", path.display());
    }
}

/// Proves: G7
#[test]
fn an_altered_journal_is_said_to_be_one_with_both_sides() {
    let altered = |change: &dyn Fn(&mut Event) -> bool| {
        let mut records = named("fresh");
        let changed = records.iter_mut().any(|record| match &mut record.body {
            Body::Journal(event) => change(event),
            Body::Observation(_) => false,
        });
        assert!(changed);
        match review(&Workflows::all(), &records).stand {
            Stand::Diverged(failure) => *failure,
            other => panic!("{other:?}"),
        }
    };
    // An activity that this code asks for under another name.
    let failure = altered(&|event| match event {
        Event::ActivityScheduled { name, .. } if name == "dhcp.configure" => {
            "dhcp.configure_v0".clone_into(name);
            true
        }
        _ => false,
    });
    assert_eq!(failure.code, FailureCode::JournalDiverged);
    for side in ["'dhcp.configure_v0'", "asks for", "'dhcp.configure'"] {
        assert!(failure.message.contains(side), "{side}: {}", failure.message);
    }
    // The same activity for another host.
    let failure = altered(&|event| match event {
        Event::ActivityScheduled { name, input, .. } if name == "ironic.prelude" => {
            *input = serde_json::from_str(&input.to_string().replace("gpu-b07-29", "gpu-b07-28")).unwrap();
            true
        }
        _ => false,
    });
    for side in ["gpu-b07-28", "gpu-b07-29"] {
        assert!(failure.message.contains(side), "{side}: {}", failure.message);
    }
    // Another end.
    let other_end = end(&named("miscabled")).unwrap().clone();
    let failure = altered(&|event| match event {
        Event::Finished { outcome } => {
            *outcome = other_end.clone();
            true
        }
        _ => false,
    });
    for side in ["CABLES_WRONG", "'succeeded'"] {
        assert!(failure.message.contains(side), "{side}: {}", failure.message);
    }
}
