//! The DHCP activity over the lab's DHCP host: real SSH and SFTP on loopback, every step in the ledger.

mod bench;
mod collisions;
mod rounds;
#[path = "../support/dhcp.rs"]
mod support;

use std::time::Duration;

use bench::{Bench, entry, failing};
use muster::activities::dhcp::{configure, serve_entry};
use muster::config::settings::DhcpServerKind;
use muster::domain::dhcp::render;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::Lab;
use muster::lab::dhcp_host::{DIRECTORY, RESTART, TEST, USER, VALIDATE};
use muster::lab::faults::HttpRule;
use muster::lab::scenario::Scenario;
use muster::workflows::defs::{DhcpOut, Target};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use support::context;

const OLD: &str = "host gpu-b07-37 {\n  hardware ethernet 02:aa:00:00:00:09;\n  fixed-address 10.10.8.9;\n}\n";

/// Proves: D2, D6, D7, G4
#[tokio::test]
async fn a_fresh_entry_is_served_after_one_restart_and_a_rerun_writes_nothing() {
    for server in DhcpServerKind::ALL {
        let bench = Bench::start(server).await;
        let out = bench.run().await.unwrap();
        assert!(out.changed && out.file == format!("{DIRECTORY}/{}", bench.file()), "{out:?}");
        assert_eq!(bench.host.serves(entry().mac), Some(entry().address), "{server}");
        assert_eq!(bench.host.restarts(), 1);
        assert_eq!(bench.wrote(), 1);
        let file = render(server, &entry()).unwrap();
        bench.assert_folder(&[(&file.name, &file.content)]);

        bench.world.ledger().reset();
        let again = bench.run().await.unwrap();
        assert_eq!(again, DhcpOut { changed: false, ..out });
        assert_eq!(bench.writes(), [] as [String; 0]);
        assert_eq!((bench.host.restarts(), bench.wrote()), (1, 1));
    }
}

/// Proves: D7
#[tokio::test]
async fn an_entry_that_differs_is_replaced_whole_with_and_without_the_servers_rename() {
    for posix_rename in [true, false] {
        let bench = Bench::start(DhcpServerKind::Isc).await;
        bench.host.offer_posix_rename(posix_rename);
        bench.host.put_file(&bench.file(), OLD);
        assert!(bench.run().await.unwrap().changed);
        assert_eq!(bench.host.serves(entry().mac), Some(entry().address));
        bench.assert_folder(&[(&bench.file(), &render(DhcpServerKind::Isc, &entry()).unwrap().content)]);
        let moved = bench.writes().iter().any(|write| write.starts_with("exec mv -f -- "));
        assert_eq!(moved, !posix_rename);
    }
}

/// Proves: D4, D8
#[tokio::test]
async fn an_unknown_a_changed_and_a_revoked_host_key_are_three_failures_and_nothing_is_sent() {
    let bench = Bench::start(DhcpServerKind::Kea).await;
    let known = bench.host.known_hosts();
    let (key, place) = (bench.host.private_key().to_owned(), known.split_once(' ').unwrap().0.to_owned());
    let other = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap().public_key().to_openssh().unwrap();

    bench.vault(&key, "# nothing here\n");
    let unknown = bench.fails().await;
    bench.vault(&key, &format!("{place} {other}\n"));
    let changed = bench.fails().await;
    bench.vault(&key, &format!("@revoked {known}{known}"));
    let revoked = bench.fails().await;
    bench.vault(&key, &format!("@cert-authority {known}"));
    let authority = bench.fails().await;

    assert_eq!(unknown.code, FailureCode::DhcpHostKeyUnknown);
    assert_eq!(changed.code, FailureCode::DhcpHostKeyChanged);
    assert_eq!(revoked.code, FailureCode::DhcpHostKeyRevoked);
    assert_eq!(authority.code, FailureCode::DhcpHostKeyUnknown);
    assert!(authority.message.contains("certificate authority"), "{}", authority.message);
    assert_eq!(changed.message.matches("SHA256:").count(), 2, "both fingerprints: {}", changed.message);
    for failure in [&unknown, &changed, &revoked] {
        assert_eq!((failure.owner, failure.retryable), (Owner::Netops, false), "{failure}");
    }
    assert!(bench.world.ledger().entries().iter().all(|entry| entry.method == "connect"));

    // A host that was installed anew while the vault has its old key.
    bench.vault(&key, &known);
    bench.host.change_host_key().unwrap();
    assert_eq!(bench.fails().await.code, FailureCode::DhcpHostKeyChanged);
}

/// Proves: D3, D8
#[tokio::test]
async fn a_key_that_is_refused_or_of_no_use_is_said_without_being_shown() {
    let bench = Bench::start(DhcpServerKind::Kea).await;
    let stranger = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
    bench.vault(&stranger.to_openssh(LineEnding::LF).unwrap(), &bench.host.known_hosts());
    let failure = bench.fails().await;
    assert_eq!((failure.code, failure.owner), (FailureCode::DhcpAuthFailed, Owner::Netops));
    assert!(failure.message.contains(USER) && failure.action.contains("SHA256:"), "{failure:?}");

    bench.vault("-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----\n", &bench.host.known_hosts());
    let failure = bench.fails().await;
    assert_eq!((failure.code, failure.owner), (FailureCode::DhcpAuthFailed, Owner::InfraEng));
    assert!(
        failure.message.contains("OpenSSH's own form") && !format!("{failure:?}").contains("canary"),
        "{failure:?}"
    );

    std::fs::write(bench.folder.path().join("vault.toml"), "[other]\na = \"b\"\n").unwrap();
    let failure = bench.fails().await;
    assert_eq!(failure.code, FailureCode::VaultItemMissing);
    assert!(failure.message.contains("'private_key'"), "{failure}");
}

/// Proves: D5
#[tokio::test]
async fn each_step_that_hangs_ends_in_its_own_deadline_and_names_itself() {
    for (method, path, step) in [
        ("connect", None, "the key exchange with"),
        ("login", None, "login"),
        ("exec", Some("sha256sum*"), "the command 'sha256sum"),
        ("exec", Some(RESTART), "the command 'dhcp-restart'"),
        ("sftp_write", None, "writing '"),
        ("sftp_read", None, "reading '"),
    ] {
        let mut bench = Bench::start(DhcpServerKind::Isc).await;
        bench.host.put_file(&bench.file(), OLD);
        let short = Duration::from_millis(1200);
        match method {
            "connect" => bench.settings.connect = short,
            "login" => bench.settings.login = short,
            "exec" => bench.settings.command = short,
            _ => bench.settings.transfer = short,
        }
        let rule =
            HttpRule { method: Some(method.into()), path: path.map(str::to_owned), hang: true, ..HttpRule::default() };
        bench.fault(rule);
        let failure = bench.fails().await;
        assert_eq!((failure.code, failure.retryable), (FailureCode::DhcpTimeout, true), "{method} {path:?}: {failure}");
        assert!(failure.message.starts_with(step) && failure.message.contains("1.2 s"), "{method}: {failure}");
    }
}

/// Proves: D5, D8
#[tokio::test]
async fn what_is_carried_out_long_after_its_deadline_takes_nothing_away_from_the_next_attempt() {
    let late = [
        ("sftp_write", "*muster-former.muster-tmp"),
        ("sftp_write", "*.conf.muster-tmp"),
        ("sftp_rename", "*muster-former"),
        ("sftp_rename", "*.conf"),
        ("sftp_remove", "*muster-former"),
        ("exec", RESTART),
    ];
    futures::future::join_all(late.map(|(method, path)| late_and_served(method, path))).await;
}

/// One request is carried out four seconds after it was asked for, and an attempt has half a second.
async fn late_and_served(method: &str, path: &str) {
    let mut bench = Bench::start(DhcpServerKind::Isc).await;
    let usual = bench.settings.clone();
    (bench.settings.transfer, bench.settings.command) = (Duration::from_millis(500), Duration::from_millis(500));
    bench.fault(HttpRule {
        method: Some(method.into()),
        path: Some(path.into()),
        delay_s: Some(4000.0),
        count: Some(1),
        ..HttpRule::default()
    });
    let first = bench.run().await;
    bench.settings = usual;
    // An entry that is served is not given up for a marker that cannot be removed.
    if method != "sftp_remove" {
        let failure = first.unwrap_err();
        assert_eq!((failure.code, failure.retryable), (FailureCode::DhcpTimeout, true), "{method} {path}: {failure}");
        bench.run().await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.host.serves(entry().mac), Some(entry().address), "{method} {path}");
    let file = render(DhcpServerKind::Isc, &entry()).unwrap();
    let files = bench.host.files();
    let seen: Vec<_> = files.iter().filter(|(name, _)| !name.starts_with('.')).collect();
    assert_eq!(seen, [(&file.name, &file.content)], "{method} {path}");
    assert!(!bench.run().await.unwrap().changed, "{method} {path}: another run has nothing to do");
}

/// Proves: D8
#[tokio::test]
async fn a_connection_that_breaks_off_is_classified_by_what_it_carried() {
    for (method, path, code) in [
        ("connect", None, FailureCode::DhcpConnectFailed),
        ("login", None, FailureCode::DhcpConnectFailed),
        ("exec", Some("sha256sum*"), FailureCode::DhcpCommandFailed),
        ("exec", Some(VALIDATE), FailureCode::DhcpCommandFailed),
        ("sftp_write", None, FailureCode::DhcpTransferFailed),
        ("sftp_rename", None, FailureCode::DhcpTransferFailed),
    ] {
        let bench = Bench::start(DhcpServerKind::Isc).await;
        let rule = HttpRule {
            method: Some(method.into()),
            path: path.map(str::to_owned),
            drop: true,
            count: Some(1),
            ..HttpRule::default()
        };
        bench.fault(rule);
        let failure = bench.fails().await;
        assert_eq!((failure.code, failure.retryable), (code, true), "{method} {path:?}: {failure}");
        // The next attempt goes on from wherever this one ended.
        assert!(bench.run().await.unwrap().changed, "{method} {path:?}");
        assert_eq!(bench.host.serves(entry().mac), Some(entry().address));
        let file = render(DhcpServerKind::Isc, &entry()).unwrap();
        bench.assert_folder(&[(&file.name, &file.content)]);
        assert!(!bench.run().await.unwrap().changed, "and a third run has nothing to do");
    }
    let bench = Bench::start(DhcpServerKind::Isc).await;
    let mut settings = bench.settings.clone();
    settings.port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let failure = serve_entry(&bench.cx, &settings, &entry()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::DhcpConnectFailed);
    assert!(failure.message.contains("refused the connection"), "{failure}");
    settings.host = "no-such-host.invalid".into();
    let failure = serve_entry(&bench.cx, &settings, &entry()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::DhcpConnectFailed);
    assert!(failure.message.contains("could not be resolved"), "{failure}");
}

/// Proves: D8
#[tokio::test]
async fn a_digest_or_a_folder_that_cannot_be_had_is_no_obstacle() {
    let bench = Bench::start(DhcpServerKind::Kea).await;
    for command in ["sha256sum*", "mkdir*"] {
        bench.fault(HttpRule {
            method: Some("exec".into()),
            path: Some(command.into()),
            status: Some(1),
            body: Some("not allowed".into()),
            ..HttpRule::default()
        });
    }
    assert!(bench.run().await.unwrap().changed);
    assert_eq!(bench.host.serves(entry().mac), Some(entry().address));
}

/// Proves: D9
/// Case: C-42
#[tokio::test]
async fn a_restart_or_a_validation_that_fails_puts_the_former_file_back_and_restarts() {
    for command in [RESTART, VALIDATE] {
        for former in [Some(OLD), None] {
            let bench = Bench::start(DhcpServerKind::Isc).await;
            if let Some(former) = former {
                bench.host.put_file(&bench.file(), former);
            }
            bench.fault(failing(command, 1));
            let failure = bench.fails().await;
            assert_eq!((failure.code, failure.retryable), (FailureCode::DhcpValidationFailed, false), "{failure}");
            assert!(failure.message.contains("no subnet"), "{failure}");
            assert!(failure.message.contains("the service runs again"), "{failure}");
            assert!(!failure.message.contains('\u{1b}'), "{failure}");
            assert_eq!(bench.host.restarts(), 2);
            assert!(bench.host.is_running());
            match former {
                Some(former) => bench.assert_folder(&[(&bench.file(), former)]),
                None => bench.assert_folder(&[]),
            }
        }
    }
}

/// Proves: D9
/// Case: C-42
#[tokio::test]
async fn an_entry_that_the_servers_own_test_refuses_never_sees_a_restart() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.host.put_file("other.conf", "host other {\n");
    let failure = bench.fails().await;
    assert_eq!(failure.code, FailureCode::DhcpValidationFailed);
    assert!(failure.message.contains("parse error"), "{failure}");
    assert!(failure.message.contains("the service was not restarted"), "{failure}");
    assert_eq!(bench.host.restarts(), 0);
    bench.assert_folder(&[("other.conf", "host other {\n")]);
}

/// Proves: D9
#[tokio::test]
async fn a_service_that_cannot_be_brought_back_is_said_so() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.fault(failing(RESTART, 2));
    let failure = bench.fails().await;
    assert!(failure.message.contains("could not be brought back"), "{failure}");
    assert!(failure.action.contains("at once"), "{failure}");
    assert!(!bench.host.is_running());
    // What is left makes the next run go through with it, not find an equal digest and be content.
    assert!(bench.run().await.unwrap().changed);
    assert!(bench.host.is_running());
}

/// A process that dies after the upload leaves a file with the right digest and a service that never saw it.
///
/// Proves: G5, D6
#[tokio::test]
async fn a_rerun_after_a_death_between_upload_and_restart_restarts_and_uploads_nothing() {
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.host.put_file(&bench.file(), OLD);
    bench.fault(HttpRule {
        method: Some("exec".into()),
        path: Some(TEST.into()),
        hang: true,
        count: Some(1),
        ..HttpRule::default()
    });
    let first = tokio::time::timeout(Duration::from_secs(2), serve_entry(&bench.cx, &bench.settings, &entry())).await;
    assert!(first.is_err(), "it hangs, and its future is dropped: as by kill -9");
    assert_eq!(bench.host.restarts(), 0);
    bench.world.ledger().reset();
    assert!(bench.run().await.unwrap().changed);
    assert_eq!(bench.host.serves(entry().mac), Some(entry().address));
    let writes = bench.writes();
    assert!(
        !writes.iter().any(|write| write.starts_with("sftp_write") || write.starts_with("sftp_rename")),
        "{writes:?}"
    );
    assert_eq!(bench.host.restarts(), 1);
    assert!(!bench.run().await.unwrap().changed);

    // The former file survives the death too: a failure afterwards still finds its way back.
    let bench = Bench::start(DhcpServerKind::Isc).await;
    bench.host.put_file(&bench.file(), OLD);
    bench.fault(HttpRule {
        method: Some("exec".into()),
        path: Some(RESTART.into()),
        drop: true,
        count: Some(1),
        ..HttpRule::default()
    });
    assert_eq!(bench.fails().await.code, FailureCode::DhcpCommandFailed);
    bench.fault(failing(VALIDATE, 1));
    assert_eq!(bench.fails().await.code, FailureCode::DhcpValidationFailed);
    bench.assert_folder(&[(&bench.file(), OLD)]);
}

/// The whole activity, from the configuration that the lab writes and the records of its NetBox.
///
/// Proves: D1, D2, D3, D6, D7, G4, K1
#[tokio::test]
async fn a_device_of_the_labs_netbox_gets_its_entry_and_a_rerun_writes_nothing_anywhere() {
    let lab = Lab::start(Scenario::demo().unwrap(), 1000.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = lab.write_config(folder.path()).unwrap();
    let settings = muster::config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    let (cx, _) = context(settings, folder.path());
    let (netbox_id, device) = {
        let state = lab.world().lock();
        let machine = state.machines.values().find(|m| m.nics.iter().any(|nic| nic.frontend)).unwrap();
        let found = state.records.devices.values().find(|d| d.name == machine.name).unwrap();
        (found.id, machine.clone())
    };
    let target = Target { host: device.name.clone(), netbox_id, site: device.site.clone(), ironic: "main".into() };
    let out = configure(&cx, target.clone()).await.unwrap();
    assert!(out.changed);
    let content = lab.dhcp_host().files().into_values().next().unwrap();
    assert!(content.contains(&device.name) && content.contains(&device.bmc.address.to_string()), "{content}");
    assert_eq!(lab.dhcp_host().restarts(), 1);

    lab.world().ledger().reset();
    assert!(!configure(&cx, target).await.unwrap().changed);
    assert_eq!(lab.world().ledger().writes(), []);
}

/// A site whose DHCP host was taken out of the configuration while the run's gate was on.
#[tokio::test]
async fn a_site_without_a_dhcp_host_is_told_by_the_key_that_is_missing() {
    let bench = Bench::start(DhcpServerKind::Kea).await;
    let mut settings = (*bench.cx.env.settings).clone();
    settings.sites["osl1"].dhcp = None;
    let folder = tempfile::tempdir().unwrap();
    let (cx, _) = context(settings, folder.path());
    let target = Target { host: "gpu-b07-37".into(), netbox_id: 1, site: "osl1".into(), ironic: "lab".into() };
    let failure = configure(&cx, target).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::ConfigurationIncomplete, Owner::InfraEng));
    assert!(failure.message.contains("[sites.osl1.dhcp]"), "{failure}");
}
