//! Accounts of an XCC: the forced change, the places that are always there, and what is refused.

use muster::clients::redfish::accounts::{self, WantedAccount, creation, mending, types_of};
use muster::clients::redfish::dialect::Dialect;
use muster::clients::redfish::lenovo::Lenovo;
use muster::clients::redfish::{Redfish, RedfishError};
use muster::lab::machine::Quirk;
use secrecy::SecretString;
use serde_json::json;

use super::bmc::Rig;
use super::fresh;

const FACTORY: &str = "PASSW0RD";
const NEW: &str = "Much-better-17";

fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

async fn read(redfish: &Redfish) -> Result<(), RedfishError> {
    redfish.get("/redfish/v1/Managers/1").await.map(drop)
}

async fn change(rig: &Rig, from: &str, to: &str) -> Result<(), RedfishError> {
    let account = Lenovo.forced_account().unwrap();
    Lenovo.set_password(&rig.as_user("USERID", from), account, &secret(to)).await
}

/// Nothing answers but the account itself: it is written unseen.
#[tokio::test]
async fn a_forced_change_is_made_without_reading_anything() {
    for more in [&[][..], &[Quirk::IfMatchRequired, Quirk::EtagNowAndThen]] {
        let quirks: Vec<Quirk> = more.iter().copied().chain([Quirk::ForcedPasswordChange]).collect();
        let rig = fresh(&quirks).await;
        let factory = rig.as_user("USERID", FACTORY);
        let error = read(&factory).await.unwrap_err();
        let RedfishError::PasswordChangeRequired { account, .. } = &error else { panic!("{error}") };
        assert_eq!(account.as_deref(), Lenovo.forced_account());
        assert!(matches!(
            accounts::read(&factory, &rig.redfish.root().await.unwrap()).await,
            Err(RedfishError::PasswordChangeRequired { .. })
        ));
        rig.forget_requests();
        change(&rig, FACTORY, NEW).await.unwrap();
        assert_eq!(rig.writes(), ["PATCH /redfish/v1/AccountService/Accounts/1"]);
        read(&rig.as_user("USERID", NEW)).await.unwrap();
        assert!(matches!(read(&factory).await, Err(RedfishError::Unauthorized { .. })));
    }
}

/// A BMC that refuses even `*` is asked without a precondition at last, though its tag cannot be read.
#[tokio::test]
async fn the_ladder_ends_also_while_nothing_can_be_read() {
    let tree = super::tree::Tree::start(None, |seen| {
        use super::tree::Reply;
        Some(match (seen.method.as_str(), seen.headers.contains_key("if-match")) {
            ("PATCH", false) => Reply { status: 204, headers: vec![], body: vec![] },
            ("PATCH", true) => Reply::envelope("lenovo-etag-412"),
            _ => Reply::envelope("password-change-required-403"),
        })
    })
    .await;
    let client = tree.client();
    client.prefer(Lenovo.first_form());
    Lenovo.set_password(&client, "/redfish/v1/AccountService/Accounts/1", &secret(NEW)).await.unwrap();
    let methods: Vec<String> = tree.requests().into_iter().map(|seen| seen.method).collect();
    assert_eq!(methods, ["PATCH", "GET", "PATCH"]);
}

#[tokio::test]
async fn a_password_that_the_policy_refuses_changes_nothing() {
    let rig = fresh(&[Quirk::ForcedPasswordChange, Quirk::PasswordChangeInterval]).await;
    for bad in ["short1", "no-digit-in-here", FACTORY, &"a1".repeat(17)] {
        assert!(matches!(change(&rig, FACTORY, bad).await, Err(RedfishError::Refused { status: 400, .. })), "{bad}");
    }
    change(&rig, FACTORY, NEW).await.unwrap();
    // Once is all that a day has room for.
    let error = change(&rig, NEW, "Even-better-18").await.unwrap_err();
    assert!(error.to_string().contains("minimum password change interval"), "{error}");
    read(&rig.as_user("USERID", NEW)).await.unwrap();
}

#[tokio::test]
async fn where_accounts_are_created_no_place_is_free_and_where_they_are_places_the_first_unused_is() {
    let wanted = WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed: true };
    let types = ["IPMI".to_owned()];
    let body = creation(&wanted, "sensors-2026-ok", Some(&types));
    let listed = |rig: &Rig| {
        let redfish = rig.redfish.impatient();
        async move { accounts::read(&redfish, &redfish.root().await.unwrap()).await.unwrap().unwrap() }
    };

    let rig = fresh(&[]).await;
    let before = listed(&rig).await;
    assert_eq!((before.members.len(), Lenovo.free_place(&before).is_none()), (1, true));
    assert_eq!(
        {
            let r = before.password_rules();
            (r.min, r.max)
        },
        (Some(10), Some(32))
    );
    rig.redfish.post(&before.path, &body).await.unwrap();
    assert!(listed(&rig).await.of("ipmi_exporter").is_some());

    let rig = fresh(&[Quirk::AccountsFixed, Quirk::IfMatchRequired]).await;
    let before = listed(&rig).await;
    assert_eq!(before.members.len(), 12);
    assert!(rig.redfish.post(&before.path, &body).await.unwrap_err().is_absent());
    let place = Lenovo.free_place(&before).unwrap();
    assert_eq!(place.path, "/redfish/v1/AccountService/Accounts/2");
    rig.redfish.patch(&place.path, &body).await.unwrap();
    let after = listed(&rig).await;
    let account = after.of("ipmi_exporter").unwrap();
    assert!(accounts::differences(account, &wanted).is_empty(), "{account:?}");
    assert_eq!(Lenovo.free_place(&after).unwrap().path, "/redfish/v1/AccountService/Accounts/3");
}

/// A type is added together with the password only (Q46).
#[tokio::test]
async fn a_user_without_ipmi_is_mended_with_the_password_along() {
    let rig = fresh(&[]).await;
    let wanted = WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed: true };
    let accounts_path = "/redfish/v1/AccountService/Accounts";
    rig.redfish.post(accounts_path, &creation(&wanted, "sensors-2026-ok", None)).await.unwrap();
    let account = rig.redfish.get(&format!("{accounts_path}/2")).await.unwrap();
    assert_eq!(types_of(&account).unwrap(), ["Redfish", "WebUI", "ManagerConsole"]);
    let alone = json!({"AccountTypes": ["Redfish", "IPMI"]});
    assert!(rig.redfish.patch(&account.path, &alone).await.is_err());
    rig.redfish.patch(&account.path, &mending(&account, &wanted, "sensors-2026-ok")).await.unwrap();
    let now = rig.redfish.get(&account.path).await.unwrap();
    assert!(accounts::differences(&now, &wanted).is_empty(), "{now:?}");
}
