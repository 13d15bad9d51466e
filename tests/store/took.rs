//! What the store keeps of how long runs took, and the runs of a device.

use muster::domain::usual::{Kind, LAST, Like, Part};
use muster::domain::verify::Verification;

use super::*;

/// A whole run of a device: its BMC phase takes so many seconds, its inspection ten times that.
async fn whole(store: &Store, netbox_id: u64, begins: i64, bmc_s: i64) -> RunId {
    let run = run();
    let mut asked = request(netbox_id, "kim");
    asked.submitted_at = at(begins);
    assert_eq!(store.submit(run, asked).await.unwrap(), Submit::Accepted);
    let saw = |second: i64, observation| (at(begins + second), Body::Observation(observation));
    let started = |second, phase, attempt| saw(second, Observation::PhaseStarted { phase, attempt });
    let done = |second, phase| saw(second, Observation::PhaseDone { phase, note: String::new() });
    let judged = Verification { checks: vec![], inspected_at: None, diagnosis: None, place: None };
    let records = vec![
        started(60, Phase::Bmc, 1),
        done(60 + bmc_s, Phase::Bmc),
        started(60 + bmc_s, Phase::Inspection, 1),
        started(61 + bmc_s, Phase::Inspection, 2),
        saw(62 + bmc_s, Observation::Verified { verification: judged, fresh: true }),
        done(60 + 11 * bmc_s, Phase::Inspection),
        (at(begins + 61 + 11 * bmc_s), succeeded()),
    ];
    store.append(run, 1, records).await.unwrap();
    run
}

async fn learn(store: &Store) -> usize {
    let mut learned = 0;
    loop {
        match store.learn().await.unwrap() {
            0 => return learned,
            n => learned += n,
        }
    }
}

#[tokio::test]
async fn what_runs_took_is_learned_once_of_each_and_asked_for_by_the_kind_of_a_host() {
    let (_folder, store) = store();
    let classed = |id: u64| Device { platform_class: Some("GB300".into()), ..device(id, &format!("gpu-b07-{id}")) };
    store.put_devices((1..=40).map(classed).collect()).await.unwrap();
    for id in 1..=40 {
        store.set_platform_class(id, "GB300").await.unwrap();
        whole(&store, id, 1000 * id as i64, if id > 10 { 100 } else { 7 }).await;
    }
    let kind = |site: &str| Kind { platform_class: Some("GB300".into()), device_type: None, site: site.into() };
    assert_eq!(store.usual().unwrap().figure(Part::Run, &kind("osl1")), None, "nobody has learned yet");
    assert_eq!(learn(&store).await, 40);
    assert_eq!(learn(&store).await, 0, "each teaches once");
    let usual = store.usual().unwrap();
    // The ten quick ones are older than the latest that count.
    let bmc = usual.figure(Part::Phase(Phase::Bmc), &kind("ams2")).unwrap();
    assert_eq!((bmc.seconds, bmc.runs, bmc.like), (100, LAST, Like::PlatformClass));
    assert_eq!(usual.figure(Part::Phase(Phase::Inspection), &kind("osl1")).unwrap().seconds, 1000);
    assert_eq!(usual.figure(Part::Run, &kind("osl1")).unwrap().seconds, 1101, "without the minute in the queue");
    let elsewhere = Kind { platform_class: None, device_type: Some("Lenovo HG635N V2".into()), site: "x".into() };
    assert_eq!(usual.figure(Part::Run, &elsewhere).unwrap().like, Like::DeviceType);
    // The table has the latest of each kind, however many runs there were.
    let conn = rusqlite::Connection::open(store.folder().join("muster.db")).unwrap();
    let rows: i64 = conn.query_row("SELECT count(*) FROM took", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3 * LAST as i64);
}

#[tokio::test]
async fn a_journal_that_cannot_be_read_teaches_nothing_and_holds_nobody_up() {
    let (_folder, store) = store();
    for id in 1..=4 {
        let run = whole(&store, id, 1000 * id as i64, 100).await;
        if id == 2 {
            let conn = rusqlite::Connection::open(store.folder().join("muster.db")).unwrap();
            let key = *run.0.as_bytes();
            conn.execute("UPDATE recent SET body = '{\"event\":\"unheard\"}' WHERE run = ?1 AND observed = 0", [key])
                .unwrap();
        }
    }
    assert_eq!(learn(&store).await, 4);
    let kind = Kind { site: "osl1".into(), ..Kind::default() };
    assert_eq!(store.usual().unwrap().figure(Part::Run, &kind).unwrap().runs, 3);
}

#[tokio::test]
async fn the_runs_of_a_device_are_its_own_by_whatever_name_and_tell_their_attempts() {
    let (_folder, store) = store();
    let first = whole(&store, 7, 0, 10).await;
    whole(&store, 8, 5, 10).await;
    let second = run();
    let mut asked = request(7, "eve");
    (asked.host, asked.submitted_at) = ("renamed".into(), at(5000));
    store.submit(second, asked).await.unwrap();
    let runs = store.runs_of(7).unwrap();
    let told: Vec<_> = runs.iter().map(|row| (row.run, row.host.as_str(), row.by.as_str(), row.attempts)).collect();
    assert_eq!(told, [(second, "renamed", "eve", 1), (first, "gpu-b07-7", "kim", 2)]);
    assert_eq!((runs[1].status, runs[1].phase), (RunStatus::Succeeded, Some(Phase::Inspection)));
}
