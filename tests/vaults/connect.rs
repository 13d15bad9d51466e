//! 1Password Connect over HTTP, against a server that behaves as documented.

use std::time::{Duration, Instant};

use muster::clients::vault::{Vault, VaultError};
use muster::config::settings::{ConnectVault, SecretRef, Trust, VaultKind};
use serde_json::json;
use wiremock::ResponseTemplate;

use super::connect_server::{Connect, VAULT, VAULT_NAME, slow};
use super::{CANARY, asked, fields, private, told, vault};

struct Rig {
    connect: Connect,
    vault: Vault,
    folder: tempfile::TempDir,
}

async fn rig() -> Rig {
    rig_of(VAULT_NAME, Duration::from_secs(5)).await
}

async fn rig_of(name: &str, timeout: Duration) -> Rig {
    let connect = Connect::start("t0ken").await;
    let folder = tempfile::tempdir().unwrap();
    let token = SecretRef::File(private(folder.path(), "token", "t0ken\n"));
    let url = connect.server.uri().parse().unwrap();
    let settings = ConnectVault { url, token, vault: name.into(), trust: Trust::System, timeout };
    connect.add("bmc-a", &[("username", "root"), ("password", CANARY)]);
    Rig { vault: vault(VaultKind::Connect(settings)), connect, folder }
}

impl Rig {
    fn instead(&self, answer: ResponseTemplate) {
        self.connect.state().instead.push(answer);
    }
}

/// Proves: K2
#[tokio::test]
async fn an_item_is_found_by_its_exact_title_in_a_vault_by_name_or_uuid() {
    for name in [VAULT_NAME, VAULT] {
        let rig = rig_of(name, Duration::from_secs(5)).await;
        rig.connect.add("BMC-A", &[("password", "another")]);
        rig.connect.add("a \"quoted\" title", &[("password", "third")]);
        rig.vault.open().await.unwrap();
        assert_eq!(asked(&rig.vault, "bmc-a", "password").await, CANARY);
        assert_eq!(asked(&rig.vault, "a \"quoted\" title", "password").await, "third");
        let error = rig.vault.ask("bmc-a", "token").await.unwrap_err();
        assert!(matches!(error, VaultError::Missing { .. }), "{error:?}");
        let said = told(&error);
        assert!(said.contains("'bmc-a'") && said.contains("'token'") && said.contains(name), "{said}");
        assert!(matches!(rig.vault.ask("bmc-b", "password").await, Err(VaultError::Missing { .. })));
        // A server that does not filter is understood too.
        rig.connect.state().no_filter = true;
        assert_eq!(asked(&rig.vault, "bmc-a", "username").await, "root");
        rig.connect.add("bmc-a", &[("password", "second of the name")]);
        let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
        assert!(told(&error).contains("2 items with the title 'bmc-a'"), "{error}");
        let error = rig.vault.put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
        assert!(told(&error).contains("2 items with the title 'bmc-a'"), "{error}");
        rig.connect.state().items.last_mut().unwrap()["state"] = "ARCHIVED".into();
        assert_eq!(asked(&rig.vault, "bmc-a", "password").await, CANARY);
    }
    let rig = rig_of("no such vault", Duration::from_secs(5)).await;
    let error = rig.vault.open().await.unwrap_err();
    assert!(matches!(&error, VaultError::Refused { remedy, .. } if remedy.contains("vault of [vault]")), "{error:?}");
}

/// Proves: K2
#[tokio::test]
async fn a_write_changes_its_fields_only_and_is_there_when_it_is_told() {
    let rig = rig().await;
    rig.connect.add("other", &[("x", "y")]);
    rig.connect.state().lag = 2;
    rig.connect.state().conflicts = 1;
    let change = fields(&[("password", Some("n\"ew")), ("password_next", Some("later"))]);
    rig.vault.put("bmc-a", change.clone()).await.unwrap();
    let value = |title: &str, label: &str| rig.connect.value(title, label);
    assert_eq!(value("bmc-a", "username").as_deref(), Some("root"));
    assert_eq!(
        (value("bmc-a", "password").unwrap(), value("bmc-a", "password_next").unwrap()),
        ("n\"ew".into(), "later".into())
    );
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, "n\"ew");
    let version = || rig.connect.state().items[0]["version"].clone();
    assert_eq!(version(), 2);
    // What is so already is not written.
    rig.vault.put("bmc-a", change).await.unwrap();
    assert_eq!(version(), 2);
    rig.vault.put("bmc-a", fields(&[("password", Some("later")), ("password_next", None)])).await.unwrap();
    assert_eq!((value("bmc-a", "password").unwrap(), value("bmc-a", "password_next")), ("later".into(), None));
    // A new item, by many at once: one item.
    let new = || fields(&[("username", Some("ADMIN")), ("password", Some("made")), ("password_next", None)]);
    for outcome in futures::future::join_all((0..8).map(|_| rig.vault.put("bmc-b", new()))).await {
        outcome.unwrap();
    }
    let made: Vec<_> = rig.connect.state().items.iter().filter(|item| item["title"] == "bmc-b").cloned().collect();
    assert_eq!((made.len(), &made[0]["category"]), (1, &json!("LOGIN")));
    assert_eq!(made[0]["fields"][1]["purpose"], "PASSWORD");
    assert_eq!(asked(&rig.vault, "bmc-b", "username").await, "ADMIN");
    rig.vault.put("bmc-c", fields(&[("password_next", None)])).await.unwrap();
    assert!(rig.connect.state().items.iter().all(|item| item["title"] != "bmc-c"));
    // A field without a value has nothing to replace.
    rig.connect.state().items[0]["fields"][1]["value"] = json!(null);
    rig.vault.put("bmc-a", fields(&[("password", Some("again"))])).await.unwrap();
    assert_eq!(rig.connect.value("bmc-a", "password").as_deref(), Some("again"));
}

/// Proves: K2. What is rotated while muster runs is seen by the next use: a secret, and the token itself.
#[tokio::test]
async fn the_second_use_sees_what_was_rotated_behind_the_first() {
    let rig = rig().await;
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, CANARY);
    rig.connect.set("bmc-a", "password", "rotated");
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, "rotated");
    rig.connect.state().token = "another".into();
    let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(&error, VaultError::Refused { cause, .. } if cause.contains("401")), "{error:?}");
    private(rig.folder.path(), "token", "another");
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, "rotated");
}

/// Proves: Z1, Z3
#[tokio::test]
async fn what_a_server_answers_otherwise_is_told_apart_and_shows_no_secret() {
    let rig = rig_of(VAULT, Duration::from_millis(600)).await;
    let again = |error: &VaultError| matches!(error, VaultError::Unavailable { .. } | VaultError::NoAnswer { .. });
    for status in [429, 500, 503] {
        rig.instead(ResponseTemplate::new(status).set_body_json(json!({"status": status, "message": "slow down"})));
        let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
        assert!(again(&error) && told(&error).contains(&status.to_string()), "{error:?}");
    }
    rig.instead(slow(Duration::from_secs(5)));
    let began = Instant::now();
    let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(again(&error) && began.elapsed() < Duration::from_secs(4), "{error:?}");
    rig.instead(ResponseTemplate::new(403).set_body_json(json!({"status": 403, "message": "not in scope"})));
    let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(&error, VaultError::Refused { remedy, .. } if remedy.contains(VAULT)), "{error:?}");
    let odd = [
        ResponseTemplate::new(200).set_body_string(format!("[{{\"title\": {CANARY}}}]")),
        ResponseTemplate::new(200).set_body_string(format!("[{{\"title\": [\"{CANARY}\"]}}]")),
        ResponseTemplate::new(200).set_body_json(json!([{"title": "bmc-a", "id": "../../activity"}])),
        ResponseTemplate::new(200).set_body_string("[".repeat(100_000)),
        ResponseTemplate::new(200).set_body_bytes(vec![b' '; 9 * 1024 * 1024]),
        ResponseTemplate::new(418).set_body_string(CANARY),
    ];
    for answer in odd {
        rig.instead(answer);
        let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
        assert!(matches!(error, VaultError::Unusable { .. }), "{error:?}");
        told(&error);
    }
    // A refusal that repeats what it was sent.
    rig.connect.state().items[0]["fields"][1] = json!({"id": "x", "label": "password", "value": ""});
    let list = ResponseTemplate::new(200).set_body_json(json!([{"title": "bmc-a", "id": "item1"}]));
    let item = ResponseTemplate::new(200).set_body_json(json!({"title": "bmc-a", "id": "item1", "fields": []}));
    let refusal = json!({"status": 400, "message": format!("bad value {}", json!(CANARY))});
    for answer in [list, item, ResponseTemplate::new(400).set_body_json(refusal)] {
        rig.instead(answer);
    }
    let error = rig.vault.put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    assert!(told(&error).contains("bad value"), "{error}");
    // A server that takes a write and never shows it has not written.
    rig.connect.state().lag = 1000;
    let error = rig.vault.put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    assert!(again(&error) && told(&error).contains("does not show it"), "{error:?}");
}

/// Proves: Z4
#[tokio::test]
async fn the_token_goes_to_its_server_and_never_along_a_redirect() {
    let rig = rig().await;
    let elsewhere = Connect::start("t0ken").await;
    elsewhere.add("bmc-a", &[("password", "of somebody else")]);
    for status in [301, 302, 307, 308] {
        let to = format!("{}/v1/vaults", elsewhere.server.uri());
        rig.instead(ResponseTemplate::new(status).insert_header("location", to.as_str()));
        let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
        assert!(matches!(error, VaultError::Unusable { .. }) && told(&error).contains(&to), "{error:?}");
    }
    assert_eq!(elsewhere.state().asked, [] as [&str; 0]);
    assert!(rig.connect.state().tokens.iter().all(|token| token == "Bearer t0ken"));
    assert!(!format!("{:?}", rig.vault).contains("t0ken"));
}

/// Proves: G12
#[tokio::test]
async fn a_hundred_that_ask_at_once_are_few_for_the_server() {
    let rig = rig_of(VAULT, Duration::from_secs(20)).await;
    let names: Vec<String> = (0..100).map(|n| format!("bmc-{n}")).collect();
    for name in &names {
        rig.connect.add(name, &[("password", name)]);
    }
    for _ in 0..8 {
        rig.instead(slow(Duration::from_millis(300)));
    }
    let all = futures::future::join_all(names.iter().map(|name| rig.vault.ask(name, "password")));
    let look = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        rig.connect.state().asked.len()
    };
    let (all, asked_by_then) = futures::future::join(all, look).await;
    assert!(asked_by_then <= 4, "{asked_by_then} requests at once");
    // The slow ones said that there is no such item.
    let found = all.iter().filter(|outcome| outcome.is_ok()).count();
    let missing = all.iter().filter(|outcome| matches!(outcome, Err(VaultError::Missing { .. }))).count();
    assert_eq!((found, missing), (92, 8));
}
