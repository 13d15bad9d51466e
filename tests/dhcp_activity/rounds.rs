//! Several runs at one DHCP host: one restart for all that wait, and a bad entry that fails alone.

use std::time::Duration;

use futures::future::join_all;
use muster::activities::dhcp::serve_entry;
use muster::config::settings::DhcpServerKind;
use muster::domain::dhcp::Entry;
use muster::domain::failure::{Failure, FailureCode};
use muster::lab::dhcp_host::{RESTART, TEST, VALIDATE};
use muster::lab::faults::HttpRule;
use muster::workflows::defs::DhcpOut;

use crate::bench::{Bench, failing};

fn entries(count: u8) -> Vec<Entry> {
    let entry = |n| Entry {
        name: format!("gpu-{n}"),
        mac: format!("02:aa:00:00:01:{n:02x}").parse().unwrap(),
        address: format!("10.10.9.{n}").parse().unwrap(),
    };
    (1..=count).map(entry).collect()
}

/// All at once. The first of them finds nobody and goes alone; the others come together behind it.
async fn at_once(bench: &Bench, entries: &[Entry]) -> Vec<Result<DhcpOut, Failure>> {
    let runs = join_all(entries.iter().map(|entry| serve_entry(&bench.cx, &bench.settings, entry)));
    tokio::time::timeout(Duration::from_secs(60), runs).await.unwrap()
}

fn assert_served(bench: &Bench, entries: &[Entry]) {
    for entry in entries {
        assert_eq!(bench.host.serves(entry.mac), Some(entry.address), "{}", entry.name);
    }
}

/// What was written between two restarts, by the names of the entries.
fn by_restart(bench: &Bench) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = vec![Vec::new()];
    for write in bench.writes() {
        if write.contains(RESTART) {
            parts.push(Vec::new());
        } else if let Some((_, name)) = write.split_once("sftp_rename ") {
            let name = name.split(['/', ' ']).find(|part| part.starts_with("gpu-") && part.ends_with(".conf"));
            parts.last_mut().unwrap().extend(name.map(|name| name.trim_end_matches(".conf").to_owned()));
        }
    }
    parts
}

/// Proves: D10
#[tokio::test]
async fn what_waits_together_shares_one_restart_and_no_upload_falls_between_another_ones_upload_and_restart() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    let entries = entries(9);
    for outcome in at_once(&bench, &entries).await {
        assert!(outcome.unwrap().changed);
    }
    assert_eq!(bench.host.restarts(), 2);
    assert_served(&bench, &entries);
    let parts = by_restart(&bench);
    let placed: Vec<usize> = parts.iter().map(Vec::len).collect();
    assert_eq!(placed, [1, 8, 0], "{parts:?}");
    assert!(bench.said("for this entry and 7 others") && bench.said("waits until another run is done"));
    assert_eq!(bench.host.files().len(), 9, "no marker is left: {:?}", bench.host.files());
    // All of it is there now: no write, and no restart.
    bench.world.ledger().reset();
    for outcome in at_once(&bench, &entries).await {
        assert!(!outcome.unwrap().changed);
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}

/// Proves: D9, D10
/// Case: C-42
#[tokio::test]
async fn an_entry_that_the_test_refuses_fails_alone_and_the_others_share_their_restart() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    let entries = entries(6);
    // The first goes alone. The test says no to the five behind it, and then to the third of them alone.
    bench.fault(HttpRule { skip: 1, ..failing(TEST, 1) });
    bench.fault(HttpRule { skip: 3, ..failing(TEST, 1) });
    let outcomes = at_once(&bench, &entries).await;
    for (entry, outcome) in entries.iter().zip(&outcomes) {
        match entry.name.as_str() {
            "gpu-4" => {
                let failure = outcome.as_ref().unwrap_err();
                assert_eq!(failure.code, FailureCode::DhcpValidationFailed);
                assert!(failure.message.contains("no subnet"), "{failure}");
                assert!(failure.message.contains("the service was not restarted"), "{failure}");
            }
            _ => assert!(outcome.as_ref().unwrap().changed),
        }
    }
    assert_eq!(bench.host.restarts(), 2, "one for the first, one for the four good ones behind it");
    assert_served(&bench, &[&entries[..3], &entries[4..]].concat());
    assert!(bench.host.is_running());
    assert_eq!(bench.host.files().len(), 5);
}

/// Proves: D9, D10
#[tokio::test]
async fn a_restart_that_is_refused_together_is_tried_with_each_alone() {
    for command in [RESTART, VALIDATE] {
        let bench = Bench::start(DhcpServerKind::Isc).await;
        let entries = entries(4);
        // The first goes alone. The second time the service says no to all three, and later to one of them.
        bench.fault(HttpRule { skip: 1, ..failing(command, 1) });
        bench.fault(HttpRule { skip: if command == RESTART { 2 } else { 3 }, ..failing(command, 1) });
        let outcomes = at_once(&bench, &entries).await;
        let failed: Vec<&Failure> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert_eq!(failed.len(), 1, "{command}: {outcomes:?}");
        assert_eq!(failed[0].code, FailureCode::DhcpValidationFailed);
        assert!(failed[0].message.contains("the service runs again"), "{}", failed[0]);
        assert!(bench.said("each is tried alone"));
        assert!(bench.host.is_running());
        let (good, bad): (Vec<_>, Vec<_>) = entries.iter().zip(&outcomes).partition(|(_, outcome)| outcome.is_ok());
        assert_served(&bench, &good.into_iter().map(|(entry, _)| entry.clone()).collect::<Vec<_>>());
        assert_eq!(bench.host.serves(bad[0].0.mac), None);
        assert_eq!(bench.host.files().len(), 3);
    }
}

/// Proves: D10
#[tokio::test]
async fn runs_whose_entries_another_run_had_in_hand_when_it_was_ended_go_on_by_themselves() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    let entries = entries(4);
    // The second round hangs in the server's test, with three entries in their places.
    bench.fault(HttpRule {
        method: Some("exec".into()),
        path: Some(TEST.into()),
        skip: 1,
        count: Some(1),
        hang: true,
        ..HttpRule::default()
    });
    let run = |entry: &Entry| {
        let (cx, settings, entry) = (bench.cx.clone(), bench.settings.clone(), entry.clone());
        tokio::spawn(async move { serve_entry(&cx, &settings, &entry).await })
    };
    // They begin in this order, so that the second has the turn when the first is done.
    let runs: Vec<_> = entries.iter().map(run).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.host.restarts(), 1);
    assert!(runs[0].is_finished() && !runs[1].is_finished());
    runs[1].abort();
    for (place, run) in runs.into_iter().enumerate() {
        let ended = tokio::time::timeout(Duration::from_secs(20), run).await.unwrap();
        match place {
            1 => assert!(ended.unwrap_err().is_cancelled()),
            _ => assert!(ended.unwrap().unwrap().changed),
        }
    }
    let left: Vec<Entry> = entries.into_iter().filter(|entry| entry.name != "gpu-2").collect();
    assert_served(&bench, &left);
    assert!(bench.said("an earlier attempt ended before the service was seen to serve the entry"));
}

/// Proves: D10, D8
#[tokio::test]
async fn a_host_that_refuses_the_login_is_told_to_every_run_that_waited_for_it() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.vault(bench.host.private_key(), "# nobody yet\n");
    for outcome in at_once(&bench, &entries(3)).await {
        assert_eq!(outcome.unwrap_err().code, FailureCode::DhcpHostKeyUnknown);
    }
    assert_eq!(bench.writes(), Vec::<String>::new());
}
