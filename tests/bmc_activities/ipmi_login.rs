//! The login over IPMI that ends the BMC's part where the site asks for it.

use std::time::Duration;

use muster::activities::bmc::{configure, prove_ipmi};
use muster::domain::event::Observation;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::bmc::Settings;
use muster::lab::machine::Quirk;
use muster::workflows::defs::ProveIpmiIn;

use super::Rig;

const ITEM: &str = "ipmi_exporter";

/// A site that is not patient, and its BMC configured.
async fn rig() -> Rig {
    let rig = Rig::with(
        |_| {},
        |settings| {
            for site in settings.sites.values_mut() {
                site.bmc.timeout = Duration::from_secs(2);
                site.bmc.busy_budget = Duration::from_millis(200);
            }
        },
    )
    .await;
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    rig.forget_requests();
    rig
}

fn both(rig: &Rig) -> ProveIpmiIn {
    ProveIpmiIn { target: rig.target(), monitoring: true, administrator: true }
}

/// Proves: X1
#[tokio::test]
async fn the_monitoring_user_and_the_hosts_own_log_in_and_nothing_is_written() {
    let rig = rig().await;
    let out = prove_ipmi(&rig.cx, both(&rig)).await.unwrap();
    assert_eq!(out.proven.len(), 2, "{out:?}");
    assert!(out.proven[0].contains("'ipmi_exporter'") && out.proven[0].contains("USER"), "{out:?}");
    assert!(out.proven[1].contains("'ADMIN'") && out.proven[1].contains("ADMINISTRATOR"), "{out:?}");
    assert!(out.proven.iter().all(|words| words.contains("cipher suite 17")), "{out:?}");
    assert!(rig.writes().is_empty());
    assert_eq!(rig.machine().bmc.ipmi_sessions, 0);
    let observed = rig.observed.lock().unwrap();
    let notes = observed.iter().filter(|o| matches!(o, Observation::Note { text, .. } if text.contains("over IPMI")));
    assert_eq!(notes.count(), 2);
}

/// Proves: X1
#[tokio::test]
async fn each_refusal_has_its_code_its_owner_and_something_to_do() {
    let rig = rig().await;
    let table = [
        (Some(Quirk::IpmiSilent), FailureCode::BmcIpmiUnreachable, Owner::Netops, true),
        (Some(Quirk::IpmiOldOnly), FailureCode::BmcIpmiUnsupported, Owner::InfraEng, false),
        (Some(Quirk::IpmiSessionsFull), FailureCode::BmcIpmiSessionsFull, Owner::InfraEng, true),
        (Some(Quirk::IpmiUserLevelOnly), FailureCode::BmcIpmiLoginFailed, Owner::InfraEng, false),
    ];
    for (quirk, code, owner, retryable) in table {
        rig.change_machine(|machine| machine.bmc.quirks = quirk.into_iter().collect());
        let failure = prove_ipmi(&rig.cx, both(&rig)).await.unwrap_err();
        assert_eq!((failure.code, failure.owner, failure.retryable), (code, owner, retryable), "{failure}");
        assert!(failure.message.contains("gpu-b07-29") && !failure.action.is_empty(), "{failure:?}");
        assert!(failure.evidence.iter().any(|evidence| evidence.source.starts_with("ipmi ")), "{failure:?}");
    }
    // Somebody took the right from the monitoring user.
    rig.change_machine(|machine| {
        machine.bmc.quirks.clear();
        let mut settings = Settings::of(machine);
        settings
            .users
            .values_mut()
            .filter(|user| user.name == ITEM)
            .for_each(|user| user.types = vec!["Redfish".into()]);
        settings.keep(machine);
    });
    let failure = prove_ipmi(&rig.cx, both(&rig)).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcIpmiLoginFailed);
    assert!(failure.action.contains("'ipmi_exporter'"), "{failure:?}");
    assert!(rig.writes().is_empty());
}

/// Proves: X1, B10
#[tokio::test]
async fn a_monitoring_user_with_another_password_is_found_and_written_anew_by_the_next_run() {
    let rig = rig().await;
    rig.change_machine(|machine| {
        machine.bmc.accounts.insert(ITEM.into(), "somebody-else-17".into());
    });
    // What the store remembers says that all is well: only the login shows it.
    let out = configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert!(out.changed.is_empty(), "{out:?}");
    let failure = prove_ipmi(&rig.cx, both(&rig)).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcIpmiLoginFailed, "{failure}");
    assert!(!format!("{failure:?}").contains(&rig.secret(ITEM, "password")));
    let out = configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert_eq!(out.changed, ["IPMI user"]);
    prove_ipmi(&rig.next_run(), both(&rig)).await.unwrap();
}

/// Case: C-28
#[tokio::test]
async fn wrong_passwords_over_ipmi_count_and_the_third_is_not_tried() {
    let rig = rig().await;
    rig.change_machine(|machine| {
        machine.bmc.accounts.insert("ADMIN".into(), "somebody-else-17".into());
    });
    let admin = || ProveIpmiIn { monitoring: false, ..both(&rig) };
    for _ in 0..2 {
        let failure = prove_ipmi(&rig.cx, admin()).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::BmcIpmiLoginFailed, "{failure}");
        assert!(failure.action.contains("'ADMIN'"), "{failure:?}");
    }
    let failure = prove_ipmi(&rig.cx, admin()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcAuthFailed, "{failure}");
    assert!(failure.message.contains("not tried again"), "{failure}");
}

/// Case: C-26
#[tokio::test]
async fn a_password_that_ipmi_cannot_carry_is_told_before_anything_is_sent() {
    let rig = rig().await;
    rig.vault("bmc-gpu-b07-29", Some(("password", "a-password-of-more-than-twenty")));
    let admin = ProveIpmiIn { monitoring: false, ..both(&rig) };
    let failure = prove_ipmi(&rig.cx, admin).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcPasswordPolicy);
    assert!(!failure.message.contains("a-password-of-more-than-twenty"), "{failure}");
}

/// Proves: X1
#[tokio::test]
async fn the_key_of_a_bmc_comes_from_where_the_site_says_and_each_doubt_about_it_has_something_to_do() {
    let rig = Rig::of(|scenario| scenario.hosts[0].bmc_quirks = [Quirk::IpmiBmcKey].into()).await;
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    let out = prove_ipmi(&rig.cx, both(&rig)).await.unwrap();
    assert!(out.proven.iter().all(|words| words.contains("cipher suite 17 with the BMC's key")), "{out:?}");
    let item = "bmc-gpu-b07-29";
    let key = rig.secret(item, "ipmi_key");
    assert!(!format!("{:?}", rig.observed.lock().unwrap()).contains(&key));
    assert_eq!(rig.machine().bmc.ipmi_sessions, 0);
    let table = [
        ("another key", FailureCode::BmcIpmiLoginFailed, "vault:bmc-gpu-b07-29/ipmi_key"),
        ("", FailureCode::BmcIpmiUnsupported, "vault:bmc-gpu-b07-29/ipmi_key"),
        ("0xno-digits", FailureCode::BmcPasswordPolicy, "vault:bmc-gpu-b07-29/ipmi_key"),
    ];
    for (key, code, names) in table {
        rig.vault(item, Some(("ipmi_key", key)));
        let failure = prove_ipmi(&rig.cx, both(&rig)).await.unwrap_err();
        assert_eq!((failure.code, failure.owner), (code, Owner::InfraEng), "{failure}");
        assert!(failure.action.contains(names), "{failure:?}");
        assert!(key.is_empty() || !format!("{failure:?}").contains(key), "{failure:?}");
    }
}
