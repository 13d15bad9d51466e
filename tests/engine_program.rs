//! The engine as the program starts it: its own workflow, its own activities by name, one world for all.

#[path = "support/engine.rs"]
mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use muster::activities::env::{ActivityCx, Env};
use muster::activities::registry;
use muster::clients::Clients;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::domain::device::IronicRef;
use muster::domain::event::Observation;
use muster::domain::failure::{FailureCode, Owner};
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::engine::{Engine, SystemClock};
use muster::store::{Store, Submit};
use muster::workflows::defs::{ProveIn, ProveOut, Target};
use serde_json::{Value, json};
use support::{failure, request};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wiremock::MockServer;

async fn env(folder: &tempfile::TempDir, netbox: &str) -> Arc<Env> {
    let text = format!(
        "[netbox]\nurl = \"{netbox}\"\ntoken = \"env:T\"\n\
         [ironic.main]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_GPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n"
    );
    let settings = muster::config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    Arc::new(Env {
        store: Store::open(folder.path()).unwrap(),
        clients: Clients {
            netbox: NetBox::new(&settings.netbox, "nbt_key.secret".to_owned().into()).unwrap(),
            ironic: Default::default(),
        },
        vault: Vault::new(settings.vault.clone()),
        settings: Arc::new(settings),
        refresh_nodes: tokio::sync::Notify::new(),
    })
}

type Said = Arc<Mutex<Vec<Observation>>>;

fn context(env: &Arc<Env>) -> (ActivityCx, Said) {
    let said = Said::default();
    let sink = Arc::clone(&said);
    let cx = ActivityCx {
        env: Arc::clone(env),
        run: RunId(Uuid::now_v7()),
        seq: 1,
        attempt: 1,
        stop: CancellationToken::new(),
        sink: Arc::new(move |observation| sink.lock().unwrap().push(observation)),
    };
    (cx, said)
}

/// Proves: T1
#[tokio::test]
async fn a_proof_waits_for_the_fleet_view_and_asks_for_a_look() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(&folder, "http://127.0.0.1:9").await;
    let (cx, said) = context(&env);
    let node = NodeUuid(Uuid::from_bytes([7; 16]));
    let target = Target { host: "gpu-1".into(), netbox_id: 1, site: "osl1".into(), ironic: "main".into() };
    let input = serde_json::to_value(ProveIn { target, node }).unwrap();
    let prove = || async {
        let out = registry::run("fleet.prove", input.clone(), cx.clone()).await.unwrap();
        serde_json::from_value::<ProveOut>(out).unwrap()
    };
    assert_eq!(prove().await, ProveOut { accepted: false, projected: None });
    // Nobody listened yet: the wish is kept for whoever does next.
    tokio::time::timeout(Duration::from_secs(5), env.refresh_nodes.notified()).await.expect("a look was asked for");

    let other = NodeUuid(Uuid::from_bytes([8; 16]));
    for (projected, accepted) in [(other, false), (node, true)] {
        let reference = IronicRef {
            instance: "main".into(),
            node: projected,
            state: ProvisionState::Available,
            maintenance: false,
            instance_uuid: None,
            read_at: Timestamp::now(),
        };
        env.store.put_ironic_refs(vec![("gpu-1".into(), reference)], "main").await.unwrap();
        assert_eq!(prove().await, ProveOut { accepted, projected: Some(projected) });
        assert_eq!(env.store.proof("gpu-1").unwrap().map(|proof| proof.node), accepted.then_some(node));
    }
    assert_eq!(env.store.proof("gpu-1").unwrap().unwrap().run, cx.run);
    let told = said.lock().unwrap();
    assert!(matches!(&told[..], [Observation::Note { text, .. }] if text.contains("proven")), "{told:?}");
}

/// Proves: G12
#[tokio::test]
async fn a_name_or_an_input_of_another_version_is_a_classified_failure() {
    let folder = tempfile::tempdir().unwrap();
    let env = env(&folder, "http://127.0.0.1:9").await;
    let cases: [(&str, Value, Phase, &str); 2] = [
        ("bmc.levitate", json!({}), Phase::ResolveIronicInstance, "no activity 'bmc.levitate'"),
        ("bmc.configure", json!({"host": 5}), Phase::Bmc, "the input of 'bmc.configure' can't be read"),
    ];
    for (name, input, phase, words) in cases {
        let failure = registry::run(name, input, context(&env).0).await.unwrap_err();
        assert_eq!((failure.code, failure.phase, failure.retryable), (FailureCode::InternalError, phase, false));
        assert!(failure.message.contains(words), "{}", failure.message);
    }
}

/// Proves: R2, R3
#[tokio::test]
async fn a_host_that_no_ironic_manages_ends_its_run_before_any_request() {
    let netbox = MockServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let env = env(&folder, &netbox.uri()).await;
    let engine = Engine::start(&env, Arc::new(SystemClock::default())).unwrap();
    for (id, class) in [(1, None), (2, Some("SWITCH"))] {
        let run = RunId(Uuid::now_v7());
        let mut request = request(id);
        request.device_class = class.map(str::to_owned);
        request.routing = env.settings.routing("osl1");
        assert_eq!(env.store.submit(run, request).await.unwrap(), Submit::Accepted);
        engine.launch(run);
        let failure = failure(&env.store, run).await;
        assert_eq!(failure.code, FailureCode::IronicRoutingUnresolved);
        assert_eq!((failure.phase, failure.owner), (Phase::ResolveIronicInstance, Owner::InfraEng));
        assert!(!failure.retryable);
    }
    engine.shutdown().await;
    assert_eq!(netbox.received_requests().await.unwrap().len(), 0);
}
