//! Settings: converged once, left alone afterwards, and every way in which that can fail.

use muster::activities::bmc::configure;
use muster::domain::event::Observation;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::faults::{Fault, HttpRule, Lasting};
use muster::lab::machine::{Quirk, Vendor};
use muster::workflows::defs::ConfigureBmcIn;
use serde_json::json;

use super::{HOST, Rig};

/// Proves: B10, B16, G4
#[tokio::test]
async fn a_fresh_bmc_is_converged_and_the_second_run_writes_nothing() {
    let rig = Rig::start().await;
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(out.changed, ["hostname", "NTP", "syslog", "IPMI user", "IPMI over LAN"]);
    assert!(out.satisfied.is_empty() && out.skipped.is_empty(), "{out:?}");
    assert_eq!(
        rig.writes(),
        [
            "PATCH /redfish/v1/Managers/1/EthernetInterfaces/1",
            "PATCH /redfish/v1/Managers/1/Oem/Supermicro/NTP",
            "PATCH /redfish/v1/Managers/1/Oem/Supermicro/Syslog",
            "POST /redfish/v1/AccountService/Accounts",
            "PATCH /redfish/v1/Managers/1/NetworkProtocol",
        ]
    );
    let site = rig.lab.scenario().sites[&rig.target().site].clone();
    let settings = rig.settings();
    assert_eq!(settings.hostname.as_deref(), Some(HOST));
    assert_eq!((settings.ntp.enabled, settings.ntp.primary), (true, site.ntp_server));
    assert_eq!((settings.syslog.enabled, settings.syslog.server), (true, site.syslog_server));
    assert!(settings.ipmi_over_lan);
    let user = settings.users.values().find(|user| user.name == "ipmi_exporter").unwrap();
    assert_eq!((user.role.as_str(), user.enabled, &user.types[..]), ("ReadOnly", true, &["IPMI".to_owned()][..]));

    rig.forget_requests();
    let out = configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert_eq!(out.satisfied, ["hostname", "NTP", "syslog", "IPMI user", "IPMI over LAN"]);
    assert_eq!(rig.writes(), Vec::<String>::new());
    assert!(rig.asked().iter().all(|entry| entry.method == "GET"));
}

/// Proves: B16
#[tokio::test]
async fn each_change_is_told_with_before_and_after_and_no_secret() {
    let rig = Rig::start().await;
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    let site = rig.lab.scenario().sites[&rig.target().site].clone();
    let (ntp, syslog) = (site.ntp_server.unwrap(), site.syslog_server.unwrap());
    assert_eq!(
        rig.changes(),
        [
            format!("hostname: - -> {HOST}"),
            format!("NTP: off localhost -> on {ntp}"),
            format!("syslog: off - 0 -> on {syslog} 514"),
            "IPMI user: absent -> ReadOnly, enabled, IPMI".to_owned(),
            "IPMI over LAN: off -> on".to_owned(),
        ]
    );
    let told = format!("{:?} {:?}", rig.observed.lock().unwrap(), rig.lab.ledger());
    for item in [format!("bmc-{HOST}"), "ipmi_exporter".to_owned()] {
        assert!(!told.contains(&rig.secret(&item, "password")), "{item}");
    }
}

/// Proves: G4
#[tokio::test]
async fn only_what_drifted_is_written() {
    let rig = Rig::start().await;
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    rig.change_machine(|machine| {
        let mut settings = muster::lab::bmc::Settings::of(machine);
        settings.syslog.port = 1514;
        settings.keep(machine);
    });
    rig.forget_requests();
    let out = configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert_eq!(out.changed, ["syslog"]);
    assert_eq!(rig.writes(), ["PATCH /redfish/v1/Managers/1/Oem/Supermicro/Syslog"]);
}

/// Proves: B6
#[tokio::test]
async fn a_missing_site_field_is_named_before_the_bmc_is_asked_anything() {
    let rig = Rig::of(|scenario| {
        for site in scenario.sites.values_mut() {
            site.syslog_server = None;
        }
    })
    .await;
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::BmcSiteFieldMissing, Owner::InfraEng));
    let site = rig.target().site;
    assert_eq!(failure.message, format!("the NetBox site '{site}' has no value in 'syslog_server'"));
    assert!(failure.action.contains("'syslog_server'") && failure.action.contains(&site), "{}", failure.action);
    assert!(rig.asked().is_empty());

    let rig = Rig::of(|scenario| {
        for site in scenario.sites.values_mut() {
            (site.ntp_server, site.syslog_server) = (None, None);
        }
    })
    .await;
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert!(failure.message.contains("'ntp_server_1' and 'syslog_server'"), "{failure}");
}

/// Proves: B18
#[tokio::test]
async fn a_bmc_that_is_busy_for_a_while_is_waited_for() {
    let rig = Rig::start().await;
    let rule = HttpRule { method: Some("PATCH".into()), status: Some(503), count: Some(3), ..HttpRule::default() };
    rig.rule(rule);
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(out.changed.len(), 5);
    // Three refused ones, and those of the five settings.
    assert_eq!(rig.writes().len(), 8);
}

/// Proves: B18
#[tokio::test]
async fn a_bmc_that_stays_busy_ends_the_step_with_its_own_words() {
    let rig = Rig::start().await;
    let for_s = 3600.0;
    rig.lab.world().add_fault(Fault::BmcBusy(Lasting { device: HOST.into(), for_s, at_s: None }));
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcHttpServiceUnavailable);
    assert!(failure.retryable);
    assert!(failure.message.contains("'The service is temporarily unavailable. Retry in 30 seconds.'"), "{failure}");
    assert!(rig.writes().is_empty());
}

/// Proves: B16
#[tokio::test]
async fn a_setting_that_does_not_stay_is_told_with_what_reads_back() {
    let rig = Rig::start().await;
    let path = "/redfish/v1/Managers/1/Oem/Supermicro/Syslog";
    rig.rule(HttpRule {
        method: Some("PATCH".into()),
        path: Some(path.into()),
        status: Some(200),
        body: Some(json!({"Success": {}})),
        ..HttpRule::default()
    });
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcSettingNotApplied);
    assert!(failure.message.contains("reads 'off - 0'"), "{failure}");
    // What came before it stays, and what comes after it was not begun.
    assert!(rig.settings().hostname.is_some() && !rig.settings().ipmi_over_lan);
    assert!(!rig.changes().iter().any(|change| change.starts_with("syslog")));
}

/// The connection breaks after the BMC has done the work: what stands there counts, not the answer.
#[tokio::test]
async fn a_lost_answer_is_settled_by_reading_back() {
    let rig = Rig::start().await;
    for method in ["PATCH", "POST"] {
        rig.rule(HttpRule {
            method: Some(method.into()),
            count: Some(1),
            drop: true,
            after_effect: true,
            ..HttpRule::default()
        });
    }
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(out.changed.len(), 5);
    let users = rig.settings().users;
    assert_eq!(users.values().filter(|user| user.name == "ipmi_exporter").count(), 1);
    assert_eq!(rig.writes().iter().filter(|w| w.starts_with("POST")).count(), 1);
    rig.forget_requests();
    configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert!(rig.writes().is_empty());
}

/// Proves: B16
#[tokio::test]
async fn a_feature_without_a_licence_is_skipped_with_a_warning() {
    let rig = Rig::start().await;
    let text = std::fs::read_to_string("tests/fixtures/redfish/errors/supermicro-not-licensed-403.json").unwrap();
    let envelope: serde_json::Value = serde_json::from_str(&text).unwrap();
    rig.rule(HttpRule {
        method: Some("PATCH".into()),
        path: Some("*/Syslog".into()),
        status: Some(403),
        body: Some(envelope["body"].clone()),
        ..HttpRule::default()
    });
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert!(out.skipped[0].starts_with("syslog: not licensed: Not licensed to perform this request"), "{out:?}");
    let warned = rig.observed.lock().unwrap().iter().any(|o| matches!(o, Observation::Warned { .. }));
    assert!(warned && out.changed.len() == 4);
}

#[tokio::test]
async fn a_host_that_was_enrolled_before_needs_nothing_but_the_proof_of_the_monitoring_password() {
    let rig = Rig::of(|scenario| scenario.hosts[0].node = Some("available".into())).await;
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!((out.changed, out.satisfied.len()), (vec!["IPMI user".to_owned()], 4));
    assert_eq!(rig.changes(), ["IPMI user: password unproven -> password of the vault"]);
    rig.forget_requests();
    configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert!(rig.writes().is_empty());
}

/// Proves: B20
///
/// Whatever form of a precondition a firmware takes, or takes none at all: its settings are converged, and left alone then.
#[tokio::test]
async fn firmware_whose_tags_are_quoted_twice_or_that_takes_no_precondition_is_converged() {
    let table = [
        (Vendor::Supermicro, "Supermicro", Quirk::EtagQuotedTwice),
        (Vendor::Lenovo, "Lenovo XCC", Quirk::IfMatchRefused),
        (Vendor::Supermicro, "Supermicro", Quirk::IfMatchRefused),
    ];
    for (vendor, label, quirk) in table {
        let rig = Rig::of(|scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            scenario.hosts[0].bmc_quirks = [quirk].into();
        })
        .await;
        let input = || ConfigureBmcIn { vendor: label.into(), ..rig.configure_in() };
        let out = configure(&rig.cx, input()).await.unwrap_or_else(|e| panic!("{vendor:?} {quirk:?}: {e}"));
        assert!(out.changed.len() >= 4 && out.skipped.is_empty(), "{vendor:?} {quirk:?}: {out:?}");
        rig.forget_requests();
        configure(&rig.next_run(), input()).await.unwrap();
        assert_eq!(rig.writes(), Vec::<String>::new(), "{vendor:?} {quirk:?}");
    }
}

/// A 4xx to what was done all the same (Q23): what stands there counts.
#[tokio::test]
async fn a_change_that_is_refused_and_done_is_done() {
    let rig = Rig::start().await;
    let (method, path) = (Some("PATCH".into()), Some("*/Syslog".into()));
    rig.rule(HttpRule { method, path, status: Some(400), after_effect: true, count: Some(1), ..HttpRule::default() });
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert!(out.changed.contains(&"syslog".to_owned()), "{out:?}");
    assert_eq!(rig.writes().iter().filter(|write| write.ends_with("/Syslog")).count(), 1);
}
