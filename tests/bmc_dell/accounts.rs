//! Accounts: places that are filled, the factory password, sessions.

use muster::clients::http::{Auth, Method, Request};
use muster::clients::redfish::accounts::{self, Accounts};
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::Dialect;
use muster::clients::redfish::{Redfish, RedfishError};
use muster::lab::build::bmc_password;
use muster::lab::machine::Quirk;
use secrecy::SecretString;
use serde_json::json;

use super::{HOST, Rig};

const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
const NEW: &str = "New-password-1234";

async fn read(redfish: &Redfish) -> Accounts {
    let root = redfish.root().await.unwrap();
    accounts::read(redfish, &root).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_new_user_fills_the_first_free_place_by_one_request() {
    let rig = Rig::start().await;
    let found = read(&rig.redfish).await;
    assert_eq!((found.members.len(), found.of("root").unwrap().id()), (16, "2".to_owned()));
    let place = Dell.free_place(&found).unwrap();
    // The first place is nobody's.
    assert_eq!(place.path, format!("{ACCOUNTS}/3"));
    let user = json!({"UserName": "ipmi_exporter", "Password": NEW, "RoleId": "ReadOnly", "Enabled": true});
    rig.redfish.patch(&place.path, &user).await.unwrap();
    let found = read(&rig.redfish).await;
    let wanted = accounts::WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed: true };
    assert!(accounts::differences(found.of("ipmi_exporter").unwrap(), &wanted).is_empty());
    assert_eq!(Dell.free_place(&found).unwrap().path, format!("{ACCOUNTS}/4"));
    let it = rig.as_user("ipmi_exporter", NEW);
    assert!(it.get("/redfish/v1/Managers/iDRAC.Embedded.1").await.is_ok());
    // What Redfish gives it, IPMI does not.
    let attributes = rig.kept("attributes");
    assert_eq!(attributes["Users.3.IpmiLanPrivilege"], "No Access");
}

#[tokio::test]
async fn a_full_table_has_no_free_place_and_only_an_idrac10_takes_a_new_account() {
    let rig = Rig::start().await;
    let user = |n: u32| json!({"UserName": format!("user{n}"), "Password": NEW, "RoleId": "None", "Enabled": false});
    for n in 3..=16 {
        rig.redfish.patch(&format!("{ACCOUNTS}/{n}"), &user(n)).await.unwrap();
    }
    assert_eq!(Dell.free_place(&read(&rig.redfish).await), None);
    assert!(rig.redfish.post(ACCOUNTS, &user(17)).await.unwrap_err().is_absent());
    let ten = Rig::with(&[Quirk::Idrac10]).await;
    assert_eq!(ten.redfish.post(ACCOUNTS, &user(3)).await.unwrap().status, 201);
    assert!(read(&ten.redfish).await.of("user3").is_some());
}

async fn changes_the_factory_password(quirk: Quirk, writes: &[&str]) {
    let rig = Rig::with(&[quirk]).await;
    let factory = rig.as_user("root", "calvin");
    let error = factory.get("/redfish/v1/Managers/iDRAC.Embedded.1").await.unwrap_err();
    assert!(matches!(error, RedfishError::PasswordChangeRequired { account: None, .. }), "{error}");
    let account = Dell.forced_account().unwrap();
    let new: SecretString = NEW.to_owned().into();
    Dell.set_password(&factory, account, &new).await.unwrap();
    assert_eq!(rig.writes(), writes);
    let changed = rig.as_user("root", NEW);
    assert!(changed.get("/redfish/v1/Managers/iDRAC.Embedded.1").await.is_ok());
    let old = rig.as_user("root", "calvin");
    let error = old.get("/redfish/v1/Managers/iDRAC.Embedded.1").await.unwrap_err();
    assert!(matches!(error, RedfishError::Unauthorized { .. }), "{error}");
    let told = format!("{:?}", rig.lab.ledger());
    assert!(!told.contains(NEW), "the ledger has the password");
}

#[tokio::test]
async fn the_factory_password_is_changed_at_the_account_or_where_that_is_locked_as_an_attribute() {
    let account = "PATCH /redfish/v1/AccountService/Accounts/2";
    let attributes = "PATCH /redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";
    changes_the_factory_password(Quirk::ForcedPasswordChange, &[account]).await;
    changes_the_factory_password(Quirk::ForcedChangeByAttribute, &[account, attributes]).await;
}

#[tokio::test]
async fn a_password_that_the_idrac_refuses_is_not_tried_in_another_way() {
    let rig = Rig::start().await;
    let long: SecretString = "x".repeat(41).into();
    let error = Dell.set_password(&rig.redfish, &format!("{ACCOUNTS}/2"), &long).await.unwrap_err();
    assert!(matches!(error, RedfishError::Refused { status: 400, .. }), "{error}");
    assert_eq!(rig.writes(), [format!("PATCH {ACCOUNTS}/2")]);
    assert!(rig.redfish.get("/redfish/v1/Systems").await.is_ok());
}

#[tokio::test]
async fn eight_sessions_are_all_and_a_ninth_is_told_so_and_the_client_opens_none() {
    let rig = Rig::start().await;
    let sessions = "/redfish/v1/SessionService/Sessions";
    let login = json!({"UserName": "root", "Password": bmc_password(HOST)});
    let mut tokens = vec![];
    for n in 0..9 {
        let (status, body, token) = rig.send(Request::new(Method::POST, sessions).json(login.clone())).await;
        assert_eq!(status, if n < 8 { 201 } else { 503 }, "{body}");
        tokens.push((token, body));
    }
    let (_, refused) = tokens.pop().unwrap();
    let id = refused["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().unwrap();
    assert!(id.ends_with(".RAC0218"), "{id}");
    // Full or not, the client asks by Basic and needs none.
    let parts = rig.parts().await;
    assert_eq!(Dell.not_ready(rig.at(&parts)).await.unwrap(), None);
    let error = rig.redfish.post(sessions, &login).await.unwrap_err();
    assert!(matches!(error, RedfishError::SessionsFull { .. }), "{error}");
    let (token, body) = tokens.pop().unwrap();
    let auth = Auth::Header { name: "x-auth-token", value: token.unwrap().into() };
    let path = body["@odata.id"].as_str().unwrap();
    assert_eq!(rig.send(Request::new(Method::DELETE, path).auth(auth)).await.0, 200);
    assert_eq!(rig.redfish.list(sessions).await.unwrap().members.len(), 7);
}
