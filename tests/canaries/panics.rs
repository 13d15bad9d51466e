//! A step of a run that breaks while it holds secrets, and says all that it has in its hands.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use muster::clients::http::{Auth, Method, Request};
use muster::clients::redfish::Credential;
use muster::clients::vault::Vault;
use muster::config::settings::{Limits, SecretRef, VaultKind, VaultSettings, default_options};
use muster::domain::failure::Failure;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::engine::{Call, Dispatch, Engine, Parts, SystemClock, Workflows};
use muster::store::Store;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::search::Search;
use super::site::canary;

/// Hands that break at once.
struct Breaking(String);

impl Dispatch for Breaking {
    fn run(&self, _: &str, _: Value, _: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        panic!("{}", self.0)
    }
}

/// Proves: Z1, G12
#[tokio::test]
async fn a_panic_with_everything_in_hand_tells_no_secret() {
    let mut search = Search::default();
    let secrets: Vec<String> = (0..6).map(|_| canary()).collect();
    for (n, secret) in secrets.iter().enumerate() {
        search.plant(format!("secret {n}"), secret);
    }
    let secret = |n: usize| SecretString::from(secrets[n].clone());
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("vault.toml");
    std::fs::write(&path, format!("[a]\nb = {}\n", toml::Value::from(secrets[4].as_str()))).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let vault = Vault::new(VaultSettings {
        kind: VaultKind::File(path.clone()),
        dhcp_item: "d".into(),
        bmc_item: "b".into(),
        ipmi_item: "i".into(),
        factory_item: "f".into(),
    });
    let read = vault.resolve(&SecretRef::Vault { item: "a".into(), field: "b".into() }).await.unwrap();
    let requests = [
        Auth::Basic { username: "root".into(), password: secret(0) },
        Auth::Authorization(secret(1)),
        Auth::Header { name: "x-auth-token", value: secret(2) },
    ]
    .map(|auth| Request::new(Method::PATCH, "/x").auth(auth).json(json!({"Password": secrets[3]})));
    let credential = Credential { username: "root".into(), password: secret(5) };
    let told = format!("in hand: {requests:?} {credential:?} {vault:?} {read:?} {:?}", Some(&requests[0]));
    search.output("what is in hand", told.as_bytes());

    // The step breaks with it; what the engine makes of that is in the journal.
    let store = Store::open(&folder.path().join("state")).unwrap();
    let run = muster::domain::ids::RunId(uuid::Uuid::now_v7());
    let routing = Routing { by_class: [("COMPUTE_GPU".to_owned(), "lab".to_owned())].into() };
    let request = EnrollRequest {
        host: "gpu-1".into(),
        netbox_id: 1,
        site: "osl1".into(),
        device_class: Some("COMPUTE_GPU".into()),
        params: EnrollParams::default(),
        options: default_options(),
        routing,
        submitted_by: "ada".into(),
        submitted_at: jiff::Timestamp::now(),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    };
    store.submit(run, request).await.unwrap();
    let engine = Engine::with(Parts {
        journal: Arc::new(store.clone()),
        dispatch: Arc::new(Breaking(told)),
        workflows: Workflows::all(),
        clock: Arc::new(SystemClock::default()),
        limits: Limits::default(),
    })
    .unwrap();
    engine.launch(run);
    for _ in 0..1000 {
        if !store.run(run).unwrap().status.is_active() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let journal = format!("{:?}", store.records(run).unwrap());
    assert!(journal.contains("broke") && journal.contains("in hand"), "{journal}");
    search.output("the journal", journal.as_bytes());
    assert!(search.found.is_empty(), "{:#?}", search.found);
}
