//! The store as its callers meet it: one active run a device, proofs by compare-and-set, group commit, private files.

#[path = "store/took.rs"]
mod took;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jiff::Timestamp;
use muster::config::settings::default_options;
use muster::domain::device::{Device, IronicRef, Proof};
use muster::domain::event::{Body, EnrollResult, Event, Observation, Outcome, WaitKind, WaitReason};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::store::{ProveOutcome, RunStatus, Store, StoreError, Submit};
use uuid::Uuid;

fn at(second: i64) -> Timestamp {
    // With a fraction that a coarser column would lose.
    Timestamp::new(1_800_000_000 + second, 123_456_789).unwrap()
}

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap();
    (folder, store)
}

fn run() -> RunId {
    RunId(Uuid::now_v7())
}

fn node(n: u8) -> NodeUuid {
    NodeUuid(Uuid::from_bytes([n; 16]))
}

fn request(netbox_id: u64, by: &str) -> EnrollRequest {
    EnrollRequest {
        host: format!("gpu-b07-{netbox_id}"),
        netbox_id,
        site: "osl1".into(),
        device_class: Some("COMPUTE_GPU".into()),
        params: EnrollParams::default(),
        options: default_options(),
        routing: Routing::default(),
        submitted_by: by.into(),
        submitted_at: at(0),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    }
}

fn device(netbox_id: u64, name: &str) -> Device {
    Device {
        netbox_id,
        name: name.into(),
        site: "osl1".into(),
        location: None,
        rack: Some("B07".into()),
        position: Some(37.0),
        face: None,
        u_height: None,
        status: "staged".into(),
        role: "gpu".into(),
        device_class: None,
        manufacturer: "Lenovo".into(),
        model: "HG635N V2".into(),
        serial: None,
        asset_tag: None,
        tags: vec!["ironic".into()],
        tenant: None,
        oob_ip: None,
        custom_fields: BTreeMap::new(),
        platform_class: None,
        last_updated: None,
        read_at: at(0),
    }
}

fn reference(n: u8) -> IronicRef {
    IronicRef {
        instance: "ironic-a".into(),
        node: node(n),
        state: ProvisionState::Available,
        maintenance: false,
        instance_uuid: None,
        read_at: at(1),
    }
}

fn proof(n: u8) -> Proof {
    Proof { node: node(n), instance: "ironic-a".into(), run: run(), at: at(9) }
}

fn note(text: &str) -> Body {
    Body::Observation(Observation::Note { system: "netbox".into(), text: text.into() })
}

fn finished(outcome: Outcome) -> Body {
    Body::Journal(Event::Finished { outcome })
}

fn succeeded() -> Body {
    finished(Outcome::Succeeded {
        result: Some(EnrollResult {
            node: None,
            ironic: None,
            platform_class: None,
            already_enrolled: false,
            qualifying: true,
        }),
    })
}

async fn refs(store: &Store, refs: &[(&str, u8)]) {
    let refs = refs.iter().map(|(device, n)| ((*device).to_owned(), reference(*n))).collect();
    store.put_ironic_refs(refs, "ironic-a").await.unwrap();
}

/// Proves: G8
#[tokio::test(flavor = "multi_thread")]
async fn of_many_submissions_for_one_device_one_is_accepted_and_the_others_name_it() {
    let (_folder, store) = store();
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move {
                let id = run();
                (id, store.submit(id, request(7, &format!("user{n}"))).await.unwrap())
            })
        })
        .collect();
    let mut accepted = Vec::new();
    let mut busy = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            (id, Submit::Accepted) => accepted.push(id),
            (_, Submit::Busy { run, by }) => busy.push((run, by)),
        }
    }
    assert_eq!((accepted.len(), busy.len()), (1, 49));
    let first = store.run(accepted[0]).unwrap();
    assert!(busy.iter().all(|(id, by)| *id == accepted[0] && *by == first.by), "{busy:?}");

    // Another device is free, and the first one is again when its run has ended.
    assert_eq!(store.submit(run(), request(8, "eve")).await.unwrap(), Submit::Accepted);
    store.append(accepted[0], 1, vec![(at(5), succeeded())]).await.unwrap();
    assert_eq!(store.submit(run(), request(7, "eve")).await.unwrap(), Submit::Accepted);
}

/// Proves: G5
#[tokio::test]
async fn a_journal_comes_back_as_it_was_written_by_another_process_too() {
    let (folder, store) = store();
    let id = run();
    store.submit(id, request(7, "ada")).await.unwrap();
    let reason =
        WaitReason { phase: Phase::Cleaning, kind: WaitKind::Cleaning, text: "cleans".into(), gives_up_at: None };
    let events = vec![
        (at(1), Body::Observation(Observation::PhaseStarted { phase: Phase::Cleaning, attempt: 1 })),
        (at(2), Body::Journal(Event::TimerSet { seq: 1, until: at(60), reason: reason.clone() })),
    ];
    let written = store.append(id, 1, events).await.unwrap();
    assert_eq!(written.iter().map(|r| r.n).collect::<Vec<_>>(), [1, 2]);
    let before = store.records(id).unwrap();
    drop(store);

    let store = Store::open(&folder.path().join("state")).unwrap();
    assert_eq!(store.records(id).unwrap(), before);
    assert!(matches!(&before[0].body, Body::Journal(Event::Submitted { workflow, request: r })
        if workflow == "enroll" && **r == request(7, "ada")));
    assert_eq!(before[1..], written[..]);
    assert_eq!(store.records_from(id, 2).unwrap(), written[1..]);

    let row = store.run(id).unwrap();
    assert_eq!((row.status, row.phase), (RunStatus::Running, Some(Phase::Cleaning)));
    assert_eq!(row.waiting.map(|w| (w.until, w.reason)), Some((at(60), reason)));
    store.append(id, 3, vec![(at(60), Body::Journal(Event::TimerFired { seq: 1 }))]).await.unwrap();
    assert_eq!(store.run(id).unwrap().waiting, None);
}

#[tokio::test]
async fn a_journal_has_one_writer_and_ends_with_its_last_record() {
    let (_folder, store) = store();
    let id = run();
    store.submit(id, request(7, "ada")).await.unwrap();
    store.append(id, 1, vec![(at(1), note("one"))]).await.unwrap();
    let moved = store.append(id, 1, vec![(at(1), note("another")), (at(1), note("and one"))]).await.unwrap_err();
    assert_eq!(moved, StoreError::JournalMoved { run: id, expected: 1, found: 2 });
    assert_eq!(store.records(id).unwrap().len(), 2, "nothing of a refused append stays");

    let failure = Failure::new(FailureCode::LinkAllDown, Phase::Cleaning, "eth0 is 'DOWN'", "look at the cable");
    let outcome = Outcome::Failed { failure: Box::new(failure.clone()) };
    store.append(id, 2, vec![(at(2), finished(outcome))]).await.unwrap();
    let late = store.append(id, 3, vec![(at(3), note("late"))]).await.unwrap_err();
    assert_eq!(late, StoreError::RunFinished(id));
    let unknown = run();
    assert_eq!(store.append(unknown, 0, vec![]).await.unwrap_err(), StoreError::NoRun(unknown));

    let row = store.run(id).unwrap();
    assert_eq!((row.status, row.finished_at, row.failure), (RunStatus::Failed, Some(at(2)), Some(failure)));
    assert_eq!(store.active_runs().unwrap(), []);
}

#[tokio::test]
async fn lists_are_newest_first_and_runs_under_way_resume_before_queued_ones() {
    let (_folder, store) = store();
    let ids: Vec<RunId> = (0..4).map(|_| run()).collect();
    for (n, id) in ids.iter().enumerate() {
        let request = EnrollRequest { submitted_at: at(n as i64), ..request(n as u64 % 3 + 1, "ada") };
        if n == 3 {
            store.append(ids[0], 1, vec![(at(3), succeeded())]).await.unwrap();
        }
        assert_eq!(store.submit(*id, request).await.unwrap(), Submit::Accepted);
    }
    store.append(ids[2], 1, vec![(at(4), note("begun"))]).await.unwrap();
    let order = |rows: Vec<muster::store::RunRow>| rows.into_iter().map(|row| row.run).collect::<Vec<_>>();
    assert_eq!(order(store.runs().unwrap()), [ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!(store.active_runs().unwrap(), [ids[2], ids[1], ids[3]]);
    let mut last = order(store.last_runs().unwrap());
    last.sort();
    assert_eq!(last, [ids[1], ids[2], ids[3]], "the first run of device 1 is not its last");
}

/// Proves: T1
#[tokio::test]
async fn a_proof_stands_only_for_the_projected_reference() {
    let (_folder, store) = store();
    assert_eq!(store.prove("a", proof(1)).await.unwrap(), ProveOutcome::Mismatch(None));
    refs(&store, &[("a", 2)]).await;
    assert_eq!(store.prove("a", proof(1)).await.unwrap(), ProveOutcome::Mismatch(Some(node(2))));
    assert_eq!(store.proof("a").unwrap(), None);
    let elsewhere = Proof { instance: "ironic-b".into(), ..proof(2) };
    assert_eq!(store.prove("a", elsewhere).await.unwrap(), ProveOutcome::Mismatch(None));
    let proof = proof(2);
    assert_eq!(store.prove("a", proof.clone()).await.unwrap(), ProveOutcome::Accepted);
    assert_eq!(store.proof("a").unwrap(), Some(proof));
}

/// Proves: T3
#[tokio::test]
async fn a_changed_reference_clears_the_proof_and_coming_back_resurrects_nothing() {
    let (_folder, store) = store();
    refs(&store, &[("a", 1), ("b", 2)]).await;
    store.prove("a", proof(1)).await.unwrap();
    store.prove("b", proof(2)).await.unwrap();
    refs(&store, &[("a", 1), ("b", 2)]).await;
    assert!(store.proof("a").unwrap().is_some(), "the same reference keeps its proof");

    refs(&store, &[("a", 3), ("b", 2)]).await;
    assert_eq!(store.proof("a").unwrap(), None);
    refs(&store, &[("a", 1), ("b", 2)]).await;
    assert_eq!(store.proof("a").unwrap(), None, "A, B, A");

    store.put_ironic_refs(vec![], "ironic-b").await.unwrap();
    assert!(store.proof("b").unwrap().is_some(), "another instance's list says nothing of it");
    refs(&store, &[("a", 1)]).await;
    assert_eq!(store.proof("b").unwrap(), None, "a node that is gone proves nothing");
}

/// Proves: T3
#[tokio::test]
async fn a_device_that_takes_a_name_takes_no_proof_with_it() {
    let (_folder, store) = store();
    store.put_devices(vec![device(1, "a"), device(2, "b")]).await.unwrap();
    refs(&store, &[("a", 1), ("b", 2)]).await;
    store.prove("a", proof(1)).await.unwrap();
    store.prove("b", proof(2)).await.unwrap();
    store.put_devices(vec![device(1, "b"), device(2, "a")]).await.unwrap();
    assert_eq!(store.proofs().unwrap(), []);

    store.prove("b", proof(2)).await.unwrap();
    store.remove_devices(vec![1]).await.unwrap();
    store.put_devices(vec![device(1, "b")]).await.unwrap();
    assert!(store.proof("b").unwrap().is_some(), "the same device, read anew");
    store.remove_devices(vec![1]).await.unwrap();
    store.put_devices(vec![device(9, "b")]).await.unwrap();
    assert_eq!(store.proof("b").unwrap(), None, "another device under that name");
}

/// Proves: P10
#[tokio::test]
async fn a_platform_class_is_written_once_and_survives_every_reading_of_netbox() {
    let (_folder, store) = store();
    assert_eq!(store.put_devices(vec![device(1, "a"), device(2, "b")]).await.unwrap(), 2);
    assert!(store.set_platform_class(1, "NOGPU_X_NORDMA_01").await.unwrap());
    assert!(!store.set_platform_class(1, "NOGPU_X_NORDMA_01").await.unwrap());
    assert_eq!(store.set_platform_class(5, "X").await.unwrap_err(), StoreError::NoDevice(5));

    let mut changes = store.fleet_changes();
    let again = Device { read_at: at(60), ..device(1, "a") };
    assert_eq!(store.put_devices(vec![again]).await.unwrap(), 0);
    assert!(!changes.has_changed().unwrap(), "a reading that brings nothing new draws nothing");
    let moved = Device { rack: Some("B08".into()), read_at: at(70), ..device(1, "a") };
    assert_eq!(store.put_devices(vec![moved.clone()]).await.unwrap(), 1);
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let kept = Device { platform_class: Some("NOGPU_X_NORDMA_01".into()), ..moved };
    assert_eq!(store.device("a").unwrap(), Some(kept));
    assert_eq!(store.devices().unwrap().len(), 2);
    store.remove_devices(vec![2]).await.unwrap();
    assert_eq!(store.device("b").unwrap(), None);
}

#[tokio::test]
async fn references_are_replaced_an_instance_at_a_time() {
    let (_folder, store) = store();
    refs(&store, &[("a", 1), ("b", 2)]).await;
    let other = IronicRef { instance: "ironic-b".into(), ..reference(3) };
    store.put_ironic_refs(vec![("c".into(), other.clone()), ("a".into(), other.clone())], "ironic-b").await.unwrap();
    let found = store.ironic_refs().unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(found["a"], reference(1), "of two, the first instance by name");
    assert_eq!(store.ironic_ref("ironic-b", "a").unwrap(), Some(other));
    refs(&store, &[("b", 2)]).await;
    assert_eq!(store.ironic_refs().unwrap()["a"].instance, "ironic-b");
}

#[tokio::test]
async fn a_system_keeps_its_last_good_time_while_it_does_not_answer() {
    let (_folder, store) = store();
    store.put_sync("netbox", at(0), None).await.unwrap();
    store.put_sync("netbox", at(60), Some("no answer".into())).await.unwrap();
    store.put_sync("ironic:a", at(61), None).await.unwrap();
    let syncs = store.syncs().unwrap();
    assert_eq!((syncs[1].ok_at, syncs[1].error.as_deref()), (Some(at(0)), Some("no answer")));
    store.put_sync("netbox", at(120), None).await.unwrap();
    assert_eq!(store.syncs().unwrap()[1].error_at, None);

    assert_eq!(store.get_meta("cursor").unwrap(), None);
    store.put_meta("cursor", "2026-01-01").await.unwrap();
    assert_eq!(store.get_meta("cursor").unwrap().as_deref(), Some("2026-01-01"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_share_commits_and_a_refused_one_spoils_nobody() {
    let (_folder, store) = store();
    let ids: Vec<RunId> = (0..64).map(|_| run()).collect();
    for (n, id) in ids.iter().enumerate() {
        store.submit(*id, request(n as u64 + 1, "ada")).await.unwrap();
    }
    let before = store.commits();
    let tasks: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| {
            let (store, id) = (store.clone(), *id);
            tokio::spawn(async move {
                for step in 1..=20 {
                    // Every fourth writer is wrong about the end of its journal.
                    let expect = if n % 4 == 3 { step + 7 } else { step };
                    let outcome = store.append(id, expect, vec![(at(1), note("x"))]).await;
                    assert_eq!(outcome.is_ok(), n % 4 != 3, "{outcome:?}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let after = store.commits();
    let (commits, requests) = (after.commits - before.commits, after.requests - before.requests);
    assert_eq!(requests, 64 * 20);
    assert!(commits * 4 < requests, "{requests} requests in {commits} commits");
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(store.records(*id).unwrap().len(), if n % 4 == 3 { 1 } else { 21 });
    }
}

/// Proves: Z2
#[test]
fn the_state_is_private_and_a_looser_one_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a/b");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let store = Store::open(&state).unwrap();
    assert_eq!(mode(&state), 0o700);
    for entry in std::fs::read_dir(&state).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(store);
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(state.join("muster.db"), PermissionsExt::from_mode(0o644)).unwrap();
    Store::open(&state).unwrap();
    assert_eq!((mode(&state), mode(&state.join("muster.db"))), (0o700, 0o600));
}

fn told(outcome: Result<Store, StoreError>) -> String {
    outcome.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_is_no_store_is_refused_in_one_sentence_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("muster.db");
    std::fs::write(&path, "this is a letter, and a rather long one at that, not a database of any kind").unwrap();
    let text = told(Store::open(folder.path()));
    assert!(text.contains("is damaged or is no store of muster"), "{text}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("this is a letter"));

    let text = told(Store::open(&path));
    assert!(text.contains("state folder") && text.contains("muster.db"), "{text}");
}

/// The first bytes of an SQLite file hold its version: a store of a muster that doesn't exist yet.
#[test]
fn a_store_of_a_newer_muster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open(folder.path()).unwrap());
    let path = folder.path().join("muster.db");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let text = told(Store::open(folder.path()));
    assert!(text.contains("version 99") && text.contains("newer muster"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

/// Records of many runs that are moved to their runs' own pages on the way: each run reads as it was written, and whoever
/// follows meets every record once.
#[tokio::test]
async fn records_read_the_same_before_and_after_they_are_moved_to_their_runs() {
    let (_folder, store) = store();
    let runs: Vec<RunId> = (0..3).map(|_| run()).collect();
    for (id, run) in (1..).zip(&runs) {
        assert_eq!(store.submit(*run, request(id, "kim")).await.unwrap(), Submit::Accepted);
    }
    let mut watcher = store.watcher().unwrap();
    let note = |n: u64| {
        let text = format!("note {n}");
        (at(n as i64), Body::Observation(Observation::Note { system: "bmc".into(), text }))
    };
    // 1,500 of each: more than what is kept together at a time, so that each run has records in both places.
    for n in 0..500u64 {
        for run in &runs {
            let three = (0..3).map(|k| note(n * 3 + k)).collect();
            store.append(*run, 1 + n * 3, three).await.unwrap();
        }
    }
    for run in &runs {
        let records = store.records(*run).unwrap();
        assert_eq!(records.iter().map(|r| r.n).collect::<Vec<_>>(), (0..1501).collect::<Vec<_>>());
        assert_eq!((records[700].at, records[700].body.clone()), note(699));
        assert_eq!(store.journal_end(*run).unwrap(), 1501);
        assert_eq!(store.records_from(*run, 1400).unwrap().len(), 101);
    }
    let mut met = BTreeMap::new();
    loop {
        let news = watcher.look(true).unwrap();
        for record in news.records {
            met.entry(record.run).or_insert_with(Vec::new).push(record.n);
        }
        if !news.more {
            break;
        }
    }
    for run in &runs {
        assert_eq!(met[run], (1..1501).collect::<Vec<_>>());
    }
    let path = store.folder().join("muster.db");
    let conn = rusqlite::Connection::open(path).unwrap();
    let count = |table: &str| conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get::<_, i64>(0));
    let (moved, recent) = (count("record").unwrap(), count("recent").unwrap());
    assert_eq!(moved + recent, 3 * 1501);
    assert!(moved > 2000 && recent > 100, "{moved} {recent}");
}

/// Proves: G12
#[tokio::test]
async fn a_record_that_cannot_be_moved_any_more_harms_no_run() {
    let (_folder, store) = store();
    let (first, second) = (run(), run());
    for (id, run) in [(1, first), (2, second)] {
        store.submit(run, request(id, "kim")).await.unwrap();
    }
    // Stands for a page that can't be read: whatever moves the records meets it.
    let conn = rusqlite::Connection::open(store.folder().join("muster.db")).unwrap();
    conn.execute_batch(
        "CREATE TRIGGER torn BEFORE INSERT ON record BEGIN SELECT raise(ABORT, 'database disk image is malformed'); END",
    )
    .unwrap();
    let note = || (at(1), Body::Observation(Observation::Note { system: "bmc".into(), text: "x".into() }));
    for n in 0..50u64 {
        store.append(first, 1 + n * 100, (0..100).map(|_| note()).collect()).await.unwrap();
    }
    store.append(second, 1, vec![note()]).await.unwrap();
    assert_eq!(store.records(first).unwrap().len(), 5001);
    assert_eq!(store.records(second).unwrap().len(), 2);
    // It is mended: the next move takes them all along.
    conn.execute_batch("DROP TRIGGER torn").unwrap();
    for n in 50..75u64 {
        store.append(first, 1 + n * 100, (0..100).map(|_| note()).collect()).await.unwrap();
    }
    let left: i64 = conn.query_row("SELECT count(*) FROM recent", [], |row| row.get(0)).unwrap();
    assert!(left < 2048, "{left}");
    assert_eq!(store.records(first).unwrap().len(), 7501);
}
