//! What an entry would take from others on its server, and addresses that no device may have: refused before the upload.

use futures::future::join;
use muster::activities::dhcp::serve_entry;
use muster::config::settings::{DhcpServerKind, DhcpSettings};
use muster::domain::dhcp::{Entry, render};
use muster::domain::event::Observation;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::dhcp_host::{DIRECTORY, TEST};
use muster::lab::faults::HttpRule;

use crate::OLD;
use crate::bench::{Bench, entry};

const CASE: &str = include_str!("../fixtures/cases/c42-dhcp-collisions.json");

fn made(name: &str, mac: &str, address: &str) -> Entry {
    Entry { name: name.into(), mac: mac.parse().unwrap(), address: address.parse().unwrap() }
}

/// Proves: D2, D9
/// Case: C-42
#[tokio::test]
async fn every_entry_of_the_case_is_refused_with_nothing_written() {
    let case: serde_json::Value = serde_json::from_str(CASE).unwrap();
    let read = |value: &serde_json::Value| {
        let text = |key: &str| value[key].as_str().unwrap();
        (made(text("host"), text("mac"), text("ip")), value["why"].as_str().unwrap_or_default().to_owned())
    };
    for server in DhcpServerKind::ALL {
        let mut bench = Bench::start(server).await;
        bench.settings.network.subnets = vec!["192.0.2.0/24".parse().unwrap()];
        let (there, _) = read(&case["existing"][0]);
        let file = render(server, &there).unwrap();
        bench.host.put_file(&file.name, &file.content);
        for new in case["new"].as_array().unwrap() {
            let (entry, why) = read(new);
            let failure = serve_entry(&bench.cx, &bench.settings, &entry).await.unwrap_err();
            assert_eq!(failure.code, FailureCode::DhcpEntryInvalid, "{server} {why}: {failure}");
            assert_eq!((failure.owner, failure.retryable), (Owner::InfraEng, false));
            if why.starts_with("same") {
                let own = render(server, &entry).unwrap().name;
                assert!(failure.message.contains(&format!("'{own}'")), "{why}: {failure}");
                assert!(failure.message.contains(&format!("'{}'", file.name)), "{why}: {failure}");
            }
        }
        assert_eq!(bench.writes(), [] as [String; 0], "{server}");
        assert!(bench.host.is_running() && bench.host.restarts() == 0);
        // The one that takes nothing from anybody is served.
        let good = made("gpu-b07-41", "52:54:00:20:41:01", "192.0.2.41");
        assert!(serve_entry(&bench.cx, &bench.settings, &good).await.unwrap().changed);
        assert_eq!(bench.host.serves(good.mac), Some(good.address));
    }
}

/// Proves: D9
#[tokio::test]
async fn an_address_that_the_server_must_not_give_is_refused_without_a_connection() {
    let mut bench = Bench::start(DhcpServerKind::Isc).await;
    bench.settings.network.subnets = vec!["10.10.8.0/24".parse().unwrap()];
    bench.settings.network.reserved = vec!["10.10.8.2".parse().unwrap()];
    bench.settings.network.pools = vec!["10.10.8.200-10.10.8.219".parse().unwrap()];
    for address in ["10.10.9.1", "10.10.8.0", "10.10.8.255", "10.10.8.2", "10.10.8.210"] {
        let entry = Entry { address: address.parse().unwrap(), ..entry() };
        let failure = serve_entry(&bench.cx, &bench.settings, &entry).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::DhcpEntryInvalid, "{failure}");
        assert!(failure.message.contains(&format!("'{address}'")), "{failure}");
    }
    assert_eq!(bench.world.ledger().entries(), []);
    assert!(bench.run().await.unwrap().changed);
}

/// Proves: D9, D10
#[tokio::test]
async fn two_runs_that_want_one_address_are_not_both_served() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    // The first goes alone, the other two wait for the same round.
    let all = [
        made("gpu-1", "02:aa:00:00:01:01", "10.10.9.1"),
        made("gpu-2", "02:aa:00:00:01:02", "10.10.9.2"),
        made("gpu-3", "02:aa:00:00:01:03", "10.10.9.2"),
    ];
    let runs = futures::future::join_all(all.iter().map(|entry| serve_entry(&bench.cx, &bench.settings, entry)));
    let outcomes = tokio::time::timeout(std::time::Duration::from_secs(60), runs).await.unwrap();
    let failure = outcomes[2].as_ref().unwrap_err();
    assert_eq!(failure.code, FailureCode::DhcpEntryInvalid);
    assert!(failure.message.contains("'gpu-3.conf'") && failure.message.contains("'gpu-2.conf'"), "{failure}");
    assert_eq!(bench.host.restarts(), 2);
    for (entry, served) in all.iter().zip([true, true, false]) {
        assert_eq!(bench.host.serves(entry.mac).is_some(), served, "{}", entry.name);
    }
    assert_eq!(bench.host.files().len(), 2);
}

/// Proves: D9
#[tokio::test]
async fn thousands_of_entries_cost_one_command() {
    let bench = Bench::start(DhcpServerKind::Dnsmasq).await;
    for n in 0..5000u32 {
        let [_, _, high, low] = n.to_be_bytes();
        let other =
            made(&format!("host-{n}"), &format!("02:bb:00:00:{high:02x}:{low:02x}"), &format!("10.20.{high}.{low}"));
        let file = render(DhcpServerKind::Dnsmasq, &other).unwrap();
        bench.host.put_file(&file.name, &file.content);
    }
    let mut last = entry();
    last.address = "10.20.19.135".parse().unwrap();
    let failure = serve_entry(&bench.cx, &bench.settings, &last).await.unwrap_err();
    assert!(failure.message.contains("'host-4999.conf'"), "{failure}");
    let steps = bench.world.ledger().entries().iter().filter(|step| step.method != "connect").count();
    assert_eq!(steps, 3, "login, digest, all others at once");
}

/// Proves: D9
#[tokio::test]
async fn a_file_that_nobody_understands_is_named_and_the_rest_is_compared() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.host.put_file("notes", "ask Kari about rack B09");
    assert!(bench.run().await.unwrap().changed);
    let warned: Vec<String> = bench
        .seen
        .lock()
        .unwrap()
        .iter()
        .filter_map(|o| if let Observation::Warned { message, .. } = o { Some(message.clone()) } else { None })
        .collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].contains(&format!("'{DIRECTORY}/notes'")), "{warned:?}");
}

/// Proves: D9
#[tokio::test]
async fn others_that_cannot_be_read_keep_the_entry_away() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.fault(HttpRule {
        method: Some("exec".into()),
        path: Some("test -d*".into()),
        status: Some(1),
        body: Some("awk: cannot open /srv/dhcp/hosts.d/x".into()),
        ..HttpRule::default()
    });
    let failure = bench.fails().await;
    assert_eq!((failure.code, failure.retryable), (FailureCode::DhcpCommandFailed, false));
    assert!(failure.message.contains("cannot open"), "{failure}");
    assert_eq!(bench.writes(), [] as [String; 0]);
}

/// Two sites on one host take turns there, and each keeps to its own folder and its own commands.
///
/// Proves: D10
#[tokio::test]
async fn sites_that_share_a_host_and_no_folder_are_never_served_by_each_others_settings() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    let other = DhcpSettings {
        directory: "/srv/other".into(),
        server: DhcpServerKind::Kea,
        restart: "mkdir -p /other-restart".into(),
        ..bench.settings.clone()
    };
    let (a, b) = (made("gpu-1", "02:aa:00:00:01:01", "10.10.9.1"), made("gpu-2", "02:aa:00:00:01:02", "10.10.9.2"));
    let (c, d) = (made("gpu-3", "02:aa:00:00:01:03", "10.10.9.3"), made("gpu-4", "02:aa:00:00:01:04", "10.10.9.4"));
    let run = |settings, entry| serve_entry(&bench.cx, settings, entry);
    let own = join(run(&bench.settings, &a), run(&bench.settings, &b));
    let others = join(run(&other, &c), run(&other, &d));
    let ((a, b), (c, d)) = join(own, others).await;
    for (outcome, file) in [
        (a, format!("{DIRECTORY}/gpu-1.conf")),
        (b, format!("{DIRECTORY}/gpu-2.conf")),
        (c, "/srv/other/gpu-3.json".to_owned()),
        (d, "/srv/other/gpu-4.json".to_owned()),
    ] {
        assert_eq!(outcome.unwrap().file, file);
    }
    let files = bench.host.files();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["gpu-1.conf", "gpu-2.conf"]);
}

/// Proves: D8, D9
#[tokio::test]
async fn a_connection_cut_in_the_servers_test_leaves_the_former_file_behind() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.host.put_file(&bench.file(), OLD);
    bench.fault(HttpRule {
        method: Some("exec".into()),
        path: Some(TEST.into()),
        drop: true,
        count: Some(1),
        ..HttpRule::default()
    });
    let failure = bench.fails().await;
    assert_eq!((failure.code, failure.retryable), (FailureCode::DhcpCommandFailed, true));
    assert!(failure.message.contains("what was there before is back"), "{failure}");
    assert!(failure.message.contains("was not restarted"), "{failure}");
    bench.assert_folder(&[(&bench.file(), OLD)]);
    assert_eq!(bench.host.restarts(), 0);
}
