//! Against the lab's BMCs: every outcome of a login, each told apart.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use muster::clients::ipmi::{IpmiError, Patience, Privilege, Suite, prove};
use muster::lab::build::bmc_key;
use muster::lab::ledger::System;
use muster::lab::machine::{Quirk, Vendor};
use tokio::net::UdpSocket;

use super::hostile::relay;
use super::{HOST, MONITOR, PATIENCE, Rig, keyed, login};

const VENDORS: [Vendor; 4] = [Vendor::Supermicro, Vendor::Lenovo, Vendor::Dell, Vendor::Ami];

/// Proves: X1
#[tokio::test]
async fn both_users_log_in_on_the_bmcs_of_all_vendors_and_leave_no_session() {
    for vendor in VENDORS {
        let rig = Rig::start(vendor, &[]).await;
        let proof = rig.prove(&rig.monitor(), Privilege::User).await.unwrap();
        assert_eq!((proof.suite, proof.level), (Suite::Seventeen, Privilege::User), "{vendor:?}");
        let proof = rig.prove(&rig.admin(), Privilege::Administrator).await.unwrap();
        assert_eq!((proof.suite, proof.level), (Suite::Seventeen, Privilege::Administrator), "{vendor:?}");
        rig.has_no_session().await;
        let asked = rig.lab.world().ledger().select(|entry| entry.system == System::Bmc && entry.method == "IPMI");
        let words: Vec<&str> = asked.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(words, ["open session", "close session", "open session", "close session"], "{vendor:?}");
        assert!(asked.iter().all(|entry| !entry.write));
    }
}

#[tokio::test]
async fn a_bmc_with_suite_3_only_is_logged_in_to_with_that() {
    let rig = Rig::start(Vendor::Lenovo, &[Quirk::IpmiOnlySuite3]).await;
    let proof = rig.prove(&rig.admin(), Privilege::Administrator).await.unwrap();
    assert_eq!(proof.suite, Suite::Three);
    rig.has_no_session().await;
}

#[tokio::test]
async fn a_lost_first_packet_costs_one_wait() {
    let rig = Rig::start(Vendor::Supermicro, &[Quirk::IpmiDropsFirst]).await;
    rig.prove(&rig.monitor(), Privilege::User).await.unwrap();
    rig.has_no_session().await;
}

/// Every answer is lost once, and every question is answered twice.
#[tokio::test]
async fn lost_and_repeated_datagrams_spoil_no_login() {
    for vendor in [Vendor::Supermicro, Vendor::Ami] {
        let rig = Rig::start(vendor, &[]).await;
        for keep in [1, 2] {
            let mut heard = 0;
            let (front, relay) = relay(rig.to, "127.0.0.1:0", move |answer| {
                heard += 1;
                if heard % 2 == keep % 2 { vec![answer.clone(), answer] } else { vec![] }
            })
            .await;
            let patience = Patience { first: Duration::from_millis(60), ..PATIENCE };
            prove(front, &rig.admin(), Privilege::Administrator, &patience).await.unwrap();
            relay.abort();
            rig.has_no_session().await;
        }
    }
}

#[tokio::test]
async fn refusals_are_told_apart_and_leave_no_session() {
    let rig = Rig::start(Vendor::Supermicro, &[]).await;
    let unknown = rig.prove(&login("nobody", "x"), Privilege::User).await.unwrap_err();
    assert_eq!(unknown, IpmiError::UnknownUser { user: "nobody".into() });
    let wrong = rig.prove(&login(MONITOR, "another-password"), Privilege::User).await.unwrap_err();
    assert_eq!(wrong, IpmiError::WrongPassword { user: MONITOR.into() });
    let low = rig.prove(&rig.monitor(), Privilege::Administrator).await.unwrap_err();
    assert!(matches!(low, IpmiError::TooHigh { level: Privilege::Administrator, .. }), "{low}");
    rig.has_no_session().await;
    // The console sees that the password is another one before it shows anything: the BMC counts nothing.
    assert!(rig.machine().bmc.settings["logins"].as_object().is_none_or(|logins| !logins.contains_key(MONITOR)));
    let asked = rig.lab.world().ledger().select(|entry| entry.method == "IPMI");
    assert!(asked.is_empty(), "{asked:#?}");
}

#[tokio::test]
async fn a_bmc_that_does_not_answer_one_that_is_not_there_and_an_old_one_are_told_apart() {
    let patience = Patience { first: Duration::from_millis(30), ..PATIENCE };
    let rig = Rig::start(Vendor::Supermicro, &[Quirk::IpmiSilent]).await;
    let silent = prove(rig.to, &rig.admin(), Privilege::User, &patience).await.unwrap_err();
    assert!(matches!(silent, IpmiError::Silent { tries: 4, .. }), "{silent}");
    // Off, the BMC has nobody at that port.
    let free = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = prove(free, &rig.admin(), Privilege::User, &patience).await.unwrap_err();
    assert_eq!(refused, IpmiError::Refused { to: free });
    rig.change_machine(|machine| machine.bmc.quirks = [Quirk::IpmiOldOnly].into());
    let old = prove(rig.to, &rig.admin(), Privilege::User, &patience).await.unwrap_err();
    assert!(matches!(old, IpmiError::NotV2 { .. }), "{old}");
    rig.change_machine(|machine| machine.bmc.quirks.clear());
    rig.change_settings(|settings| settings.ipmi_over_lan = false);
    let off = prove(rig.to, &rig.admin(), Privilege::User, &patience).await.unwrap_err();
    assert!(matches!(off, IpmiError::Silent { .. }), "{off}");
}

#[tokio::test]
async fn a_full_table_of_sessions_is_waited_for_within_the_budget() {
    let rig = Arc::new(Rig::start(Vendor::Dell, &[Quirk::IpmiSessionsFull]).await);
    let full = rig.prove(&rig.monitor(), Privilege::User).await.unwrap_err();
    assert!(matches!(full, IpmiError::SessionsFull { tries: 2.., .. }), "{full}");
    let freed = {
        let rig = Arc::clone(&rig);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            rig.change_machine(|machine| machine.bmc.quirks.clear());
        })
    };
    let patience = Patience { sessions: Duration::from_secs(10), ..PATIENCE };
    prove(rig.to, &rig.monitor(), Privilege::User, &patience).await.unwrap();
    freed.await.unwrap();
    rig.has_no_session().await;
}

/// A run that is cancelled drops its login wherever that is.
#[tokio::test]
async fn a_login_that_is_dropped_ends_its_session() {
    let rig = Rig::start(Vendor::Ami, &[]).await;
    for after in 4..8 {
        let mut heard = 0;
        // Silence from the answer to a question in the open session on.
        let (front, relay) = relay(rig.to, "127.0.0.1:0", move |answer| {
            heard += 1;
            if heard < after { vec![answer] } else { vec![] }
        })
        .await;
        let patience = Patience { first: Duration::from_secs(5), ..PATIENCE };
        let login = rig.admin();
        let proving = prove(front, &login, Privilege::Administrator, &patience);
        assert!(tokio::time::timeout(Duration::from_millis(200), proving).await.is_err(), "{after}");
        rig.has_no_session().await;
        relay.abort();
    }
}

#[tokio::test]
async fn a_bmc_at_an_ipv6_address_is_logged_in_to() {
    let rig = Rig::start(Vendor::Supermicro, &[]).await;
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).await.is_err() {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: this machine has no IPv6 loopback");
        return println!("skipped: this machine has no IPv6 loopback");
    }
    let (front, relay) = relay(rig.to, "[::1]:0", |answer| vec![answer]).await;
    assert!(matches!(front, SocketAddr::V6(_)));
    prove(front, &rig.monitor(), Privilege::User, &PATIENCE).await.unwrap();
    relay.abort();
}

/// Proves: X1. The key of the BMC (K_g) is what the session's keys are made of; the password still is what proves who asks.
#[tokio::test]
async fn a_bmc_with_a_key_of_its_own_is_logged_in_to_with_that() {
    let key = bmc_key(HOST);
    let in_hexadecimal = format!("0x{}", key.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
    for quirks in [&[Quirk::IpmiBmcKey][..], &[Quirk::IpmiBmcKey, Quirk::IpmiOnlySuite3]] {
        let rig = Rig::start(Vendor::Dell, quirks).await;
        for key in [&key, &in_hexadecimal] {
            let proof = rig.prove(&keyed(rig.admin(), key), Privilege::Administrator).await.unwrap();
            assert!(proof.by_bmc_key, "{quirks:?}");
        }
        let wrong = keyed(login(&rig.admin().username, "another-password"), &key);
        let wrong = rig.prove(&wrong, Privilege::User).await.unwrap_err();
        assert!(matches!(wrong, IpmiError::WrongPassword { .. }), "{wrong}");
        rig.has_no_session().await;
        // Whoever has another key can't end what is open then: the BMC does so by its own time.
        let other = rig.prove(&keyed(rig.admin(), "another key"), Privilege::User).await.unwrap_err();
        assert_eq!(other, IpmiError::OtherBmcKey { to: rig.to }, "{quirks:?}");
        let none = rig.prove(&rig.admin(), Privilege::User).await.unwrap_err();
        assert_eq!(none, IpmiError::BmcKey { to: rig.to });
    }
    // One that does not say that it has one.
    let rig = Rig::start(Vendor::Lenovo, &[Quirk::IpmiBmcKeyUntold]).await;
    let proof = rig.prove(&keyed(rig.admin(), &key), Privilege::Administrator).await.unwrap();
    assert!(proof.by_bmc_key);
    let none = rig.prove(&rig.admin(), Privilege::User).await.unwrap_err();
    assert!(matches!(none, IpmiError::Denied { .. }), "{none}");
    // A BMC that has none is not given it.
    let rig = Rig::start(Vendor::Ami, &[]).await;
    let proof = rig.prove(&keyed(rig.admin(), &key), Privilege::Administrator).await.unwrap();
    assert!(!proof.by_bmc_key);
    rig.has_no_session().await;
}
