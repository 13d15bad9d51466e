//! Vendor and credential: read once, tried once.

use muster::activities::bmc::prepare;
use muster::domain::event::Observation;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::faults::{Fault, HttpRule, OfDevice};
use serde_json::{Value, json};

use super::{HOST, Rig};

/// Proves: B1, B4
#[tokio::test]
async fn vendor_and_model_are_read_and_the_credential_works() {
    let rig = Rig::start().await;
    let out = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap();
    assert_eq!(out.vendor, "Supermicro");
    assert_eq!(out.model, rig.machine().model);
    assert!(!out.password_rotated && !out.needs_reset);
    assert!(prepare(&rig.cx, rig.prepare_in(true)).await.unwrap().needs_reset);
    assert!(rig.writes().is_empty());
}

fn root(rig: &Rig, body: Value) {
    rig.rule(HttpRule {
        path: Some("/redfish/v1/".into()),
        status: Some(200),
        body: Some(body),
        ..HttpRule::default()
    });
}

/// Proves: B1
#[tokio::test]
async fn an_unknown_vendor_is_told_with_what_was_read_and_gets_no_login() {
    let rig = Rig::start().await;
    root(&rig, json!({"Id": "Root", "Vendor": "Contoso", "Product": "Shelf", "Oem": {"Contoso": {}}}));
    let failure = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::BmcVendorUnknown, Owner::InfraEng));
    assert!(failure.message.contains("Vendor 'Contoso', Product 'Shelf', Oem 'Contoso'"), "{failure}");
    let paths: Vec<String> = rig.asked().into_iter().map(|entry| entry.path).collect();
    assert_eq!(paths, ["/redfish/v1/"]);
}

#[tokio::test]
async fn a_wrong_password_is_tried_exactly_once() {
    let rig = Rig::start().await;
    rig.lab.world().add_fault(Fault::BmcPasswordUnknown(OfDevice { device: HOST.into(), at_s: None }));
    let failure = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (FailureCode::BmcAuthFailed, false));
    assert!(failure.action.contains(&format!("'bmc-{HOST}'")), "{}", failure.action);
    assert!(!failure.message.contains(&rig.secret(&format!("bmc-{HOST}"), "password")));
    let logins = rig.settings().logins;
    assert_eq!((logins["ADMIN"].wrong_ever, logins["ADMIN"].locked_until_s), (1, None));
    assert!(rig.writes().is_empty());
}

/// Case: C-28
#[tokio::test]
async fn an_operator_who_presses_retry_locks_nobody_out() {
    let rig = Rig::start().await;
    rig.lab.world().add_fault(Fault::BmcPasswordUnknown(OfDevice { device: HOST.into(), at_s: None }));
    for _ in 0..2 {
        prepare(&rig.next_run(), rig.prepare_in(false)).await.unwrap_err();
    }
    rig.forget_requests();
    for _ in 0..3 {
        let failure = prepare(&rig.next_run(), rig.prepare_in(false)).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::BmcAuthFailed);
        assert!(failure.message.contains("refused 2 logins") && failure.action.contains("retry in"), "{failure}");
    }
    assert!(rig.asked().is_empty());
    let logins = rig.settings().logins;
    assert_eq!((logins["ADMIN"].wrong_ever, logins["ADMIN"].locked_until_s), (2, None));
}

/// Case: C-28
#[tokio::test]
async fn a_right_credential_makes_former_wrong_tries_forgotten() {
    let rig = Rig::start().await;
    let item = format!("bmc-{HOST}");
    let right = rig.secret(&item, "password");
    for _ in 0..2 {
        rig.vault(&item, Some(("password", "not-the-password")));
        prepare(&rig.next_run(), rig.prepare_in(false)).await.unwrap_err();
        rig.vault(&item, Some(("password", &right)));
        prepare(&rig.next_run(), rig.prepare_in(false)).await.unwrap();
    }
    assert_eq!(rig.settings().logins["ADMIN"].wrong_ever, 2);
}

#[tokio::test]
async fn a_bmc_without_its_item_in_the_vault_is_asked_for_its_vendor_and_nothing_else() {
    let rig = Rig::start().await;
    rig.vault(&format!("bmc-{HOST}"), None);
    let failure = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (FailureCode::VaultItemMissing, false));
    let asked: Vec<String> = rig.asked().into_iter().map(|entry| entry.path).collect();
    assert_eq!(asked, ["/redfish/v1/"]);
}

#[tokio::test]
async fn a_host_without_an_out_of_band_address_is_named() {
    let rig = Rig::of(|scenario| scenario.hosts[0].oob_ip = false).await;
    let failure = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::NetboxDataMissing);
    assert!(failure.message.contains("oob_ip") && failure.message.contains(HOST), "{failure}");
}

#[tokio::test]
async fn a_dark_bmc_is_for_the_person_at_the_rack() {
    let rig = Rig::start().await;
    rig.rule(HttpRule { drop: true, ..HttpRule::default() });
    let failure = prepare(&rig.cx, rig.prepare_in(false)).await.unwrap_err();
    assert_eq!((failure.code, failure.owner), (FailureCode::BmcUnreachable, Owner::Onsite));
    assert!(failure.retryable);
}

/// Case: C-33
#[tokio::test]
async fn a_broken_system_beside_the_host_is_left_out_and_told() {
    let rig = Rig::start().await;
    let members = json!({"@odata.id": "/redfish/v1/Systems", "Members": [
        {"@odata.id": "/redfish/v1/Systems/HGX_Baseboard_0"}, {"@odata.id": "/redfish/v1/Systems/1"}]});
    rig.rule(HttpRule {
        path: Some("/redfish/v1/Systems".into()),
        status: Some(200),
        body: Some(members),
        ..HttpRule::default()
    });
    prepare(&rig.cx, rig.prepare_in(false)).await.unwrap();
    let told =
        rig.observed.lock().unwrap().iter().any(
            |o| matches!(o, Observation::Note { text, .. } if text.contains("/redfish/v1/Systems/HGX_Baseboard_0")),
        );
    assert!(told, "{:?}", rig.observed.lock().unwrap());
}
