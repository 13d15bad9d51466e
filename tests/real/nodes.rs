//! The steps of an enrollment on nodes of a real Ironic, with a second client that gets in their way: locks, verbs that the
//! state forbids, ports and UUIDs that are taken, and failures on the way of an inspection and a clean.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster::activities::env::{ActivityCx, Env};
use muster::activities::ironic;
use muster::clients::Clients;
use muster::clients::ironic::{ConflictKind, Ironic, IronicError, Verb};
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::domain::event::Observation;
use muster::domain::failure::Failure;
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::store::Store;
use muster::workflows::defs::{Half, NodeTarget, PreludeIn, PreludeOut, Step, Target};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::second::Second;
use super::{Site, rigs, text};

/// muster's hands on the rig, without an engine.
struct Hands<'s> {
    site: &'s Site,
    env: Arc<Env>,
    second: Second,
    host: &'static str,
    netbox_id: u64,
    observed: Arc<Mutex<Vec<Observation>>>,
}

impl<'s> Hands<'s> {
    fn on(site: &'s Site, host: &'static str) -> Hands<'s> {
        let settings = muster::config::load(&site.config).unwrap();
        let vault = Vault::new(settings.vault.clone());
        let netbox =
            NetBox::new(&settings.netbox, muster::clients::vault::plain(&settings.netbox.token).unwrap()).unwrap();
        let instances = settings.ironic.iter();
        let ironic = instances.map(|(name, i)| (name.clone(), Ironic::new(name, i, &vault).unwrap())).collect();
        let store = Store::open(&site.folder.path().join("hands")).unwrap();
        let env = Arc::new(Env {
            settings: Arc::new(settings),
            vault,
            store,
            refresh_nodes: tokio::sync::Notify::new(),
            clients: Clients { netbox, ironic },
        });
        let netbox_id = site.netbox_device(host)["id"].as_u64().unwrap();
        let second = Second::of(text(&site.rigs.ironic, "ironic_url"));
        Hands { site, env, second, host, netbox_id, observed: Arc::default() }
    }

    fn cx(&self) -> ActivityCx {
        let observed = Arc::clone(&self.observed);
        ActivityCx {
            env: Arc::clone(&self.env),
            run: RunId(uuid::Uuid::now_v7()),
            seq: 1,
            attempt: 1,
            stop: CancellationToken::new(),
            sink: Arc::new(move |seen| observed.lock().unwrap().push(seen)),
        }
    }

    fn target(&self) -> Target {
        Target { host: self.host.into(), netbox_id: self.netbox_id, site: "osl1".into(), ironic: "rig".into() }
    }

    fn at(&self, node: NodeUuid) -> NodeTarget {
        NodeTarget { target: self.target(), node, phase: Phase::Inspection }
    }

    async fn prelude(&self, half: Half, node_uuid: Option<NodeUuid>) -> Result<PreludeOut, Failure> {
        ironic::prelude(&self.cx(), PreludeIn { target: self.target(), half, node_uuid }).await
    }

    /// The prelude, asked again while it waits.
    async fn ready(&self, half: Half) -> NodeUuid {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.prelude(half, None).await.unwrap() {
                PreludeOut::Ready { node, .. } => return node,
                PreludeOut::Wait { .. } | PreludeOut::Locked { .. } => {}
                other => panic!("{other:?}"),
            }
            assert!(Instant::now() < deadline, "the node of {} does not get ready", self.host);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// A step, asked again while the node is locked.
    async fn done(&self, step: impl AsyncFn() -> Result<Step, Failure>) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match step().await.unwrap_or_else(|failure| panic!("{failure:?}")) {
                Step::Done { changed, .. } => return changed,
                Step::Locked { .. } => assert!(Instant::now() < deadline, "locked for ever"),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn until(&self, node: NodeUuid, state: ProvisionState) {
        self.second.until(&node.to_string(), state.as_str()).await;
    }

    /// A fault of the host's ramdisk.
    fn fault(&self, stage: &str, fault: Value) {
        // It blocks, which the runtime of the test does not take.
        std::thread::scope(|scope| drop(scope.spawn(|| self.site.fault(self.host, stage, fault)).join()));
    }

    /// Writes to Ironic since the last call.
    fn writes(&self) -> Vec<String> {
        let uuid = |part: &str| if part.parse::<uuid::Uuid>().is_ok() { "ID".to_owned() } else { part.to_owned() };
        let writes = self.site.ironic.take_writes().into_iter();
        writes.map(|write| write.split('/').map(uuid).collect::<Vec<_>>().join("/")).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let seen = std::mem::take(&mut *self.observed.lock().unwrap());
        let warned = |seen: Observation| match seen {
            Observation::Warned { message, .. } => Some(message),
            _ => None,
        };
        seen.into_iter().filter_map(warned).collect()
    }

    /// What NetBox has under `ironic_settings` for this host alone, beside what the rig gave it.
    async fn settings(&self, more: Value) {
        let env = &self.site.rigs.netbox;
        let url = text(env, "url").parse().unwrap();
        let http =
            muster::clients::http::HttpClient::new("netbox", &url, &muster::clients::http::HttpOptions::default())
                .unwrap();
        let path = format!("/api/dcim/devices/{}/", self.netbox_id);
        let ask = |method, body| super::ask_netbox(&http, env, method, &path, body);
        let mut local = ask(muster::clients::http::Method::GET, None).await["local_context_data"].clone();
        let settings = local["ironic_settings"].as_object_mut().unwrap();
        for (key, value) in more.as_object().unwrap() {
            match value {
                Value::Null => drop(settings.remove(key)),
                value => drop(settings.insert(key.clone(), value.clone())),
            }
        }
        ask(muster::clients::http::Method::PATCH, Some(json!({"local_context_data": local}))).await;
    }
}

/// Proves: E2, E5, E9, E10, E12, E13, E14, E15, I3, I6, I8, I9, L2, C1, X3
#[test]
fn each_step_on_a_real_node_meets_others_failures_and_locks_and_goes_on() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let hands = Hands::on(&site, "osl1-b07-u13");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for node in [hands.host, "stranger"] {
            hands.second.remove(node).await;
        }
        let mut lap = Lap::start();
        a_uuid_that_is_taken(&hands).await;
        lap.done("a UUID that is taken");
        let node = created_with_trait_and_hint(&hands).await;
        lap.done("created, trait, root-device hint");
        ports_of_another_node(&hands, node).await;
        lap.done("a port of another node");
        assert!(hands.done(async || ironic::manage(&hands.cx(), hands.at(node)).await).await);
        hands.until(node, ProvisionState::Manageable).await;
        raid_target(&hands, node).await;
        lap.done("managed, RAID target");
        locks(&hands, node).await;
        lap.done("locks of a second client");
        wrong_verbs(&hands, node).await;
        lap.done("verbs of the wrong state");
        inspections(&hands, node).await;
        lap.done("an inspection that is aborted, and one that fails");
        cleans(&hands, node).await;
        lap.done("a clean that fails in maintenance, and one that ends");
        hands.settings(json!({"root_device": null, "target_raid_config": null, "raid_interface": null})).await;
        for node in [hands.host, "stranger"] {
            hands.second.remove(node).await;
        }
    });
}

struct Lap(Instant);

impl Lap {
    fn start() -> Lap {
        Lap(Instant::now())
    }

    fn done(&mut self, what: &str) {
        println!("{what}: {:.1?}", self.0.elapsed());
        self.0 = Instant::now();
    }
}

/// A UUID that another node has is pinned; then one that is free, with the host's node under another.
async fn a_uuid_that_is_taken(hands: &Hands<'_>) {
    let stranger: NodeUuid = hands.second.fake("stranger", json!({})).await.parse().unwrap();
    hands.writes();
    let failure = hands.prelude(Half::Inspection, Some(stranger)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("NODE_UUID_MISMATCH", false));
    assert!(failure.message.contains("'stranger'") && failure.message.contains(&stranger.to_string()), "{failure}");
    assert_eq!(hands.writes(), Vec::<String>::new());

    let pinned: NodeUuid = "0f0f0f0f-0000-4000-8000-0000000000b7".parse().unwrap();
    let made = hands.prelude(Half::Inspection, Some(pinned)).await.unwrap();
    assert!(matches!(made, PreludeOut::Ready { node, created: true, .. } if node == pinned), "{made:?}");
    let other: NodeUuid = "0f0f0f0f-0000-4000-8000-0000000000b8".parse().unwrap();
    hands.writes();
    let failure = hands.prelude(Half::Inspection, Some(other)).await.unwrap_err();
    assert_eq!(failure.code.as_str(), "NODE_UUID_MISMATCH");
    assert_eq!(hands.writes(), Vec::<String>::new());
    hands.second.remove(hands.host).await;
}

async fn created_with_trait_and_hint(hands: &Hands<'_>) -> NodeUuid {
    let hint = json!({"serial": "s== FJN960-1"});
    hands.settings(json!({"root_device": hint})).await;
    let node = hands.ready(Half::Inspection).await;
    assert_eq!(hands.writes(), ["POST /v1/nodes", "PUT /v1/nodes/ID/traits/HW_ARCH_X86_64"]);
    let made = hands.second.node(hands.host).await.unwrap();
    assert_eq!((&made["properties"]["root_device"], &made["traits"]), (&hint, &json!(["HW_ARCH_X86_64"])));
    // A stale trait stays, and NetBox's hint goes before another (E13).
    hands.second.must(Method::PUT, &format!("/v1/nodes/{node}/traits/CUSTOM_OLD"), None).await;
    hands.second.patch(hands.host, "/properties/root_device", json!({"serial": "OTHER"})).await;
    hands.writes();
    hands.ready(Half::Inspection).await;
    assert_eq!(hands.writes(), ["PATCH /v1/nodes/ID"]);
    let now = hands.second.node(hands.host).await.unwrap();
    assert_eq!(now["properties"]["root_device"], hint);
    assert_eq!(now["traits"], json!(["CUSTOM_OLD", "HW_ARCH_X86_64"]));
    // NetBox loses it: it stays, with a warning (E14).
    hands.settings(json!({"root_device": null})).await;
    hands.warnings();
    hands.ready(Half::Inspection).await;
    assert_eq!(hands.writes(), Vec::<String>::new());
    assert!(hands.warnings().iter().any(|w| w.contains("keeps its root-device hint")));
    assert_eq!(hands.second.node(hands.host).await.unwrap()["properties"]["root_device"], hint);
    // On software RAID it goes.
    let raid = json!({"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]});
    hands.settings(json!({"target_raid_config": raid, "raid_interface": "agent"})).await;
    hands.ready(Half::Inspection).await;
    let now = hands.second.node(hands.host).await.unwrap();
    assert_eq!((now["properties"].get("root_device"), &now["raid_interface"]), (None, &json!("agent")));
    node
}

async fn ports_of_another_node(hands: &Hands<'_>, node: NodeUuid) {
    let systems = hands.site.rigs.ironic["systems"].as_array().unwrap();
    let system = systems.iter().find(|system| system["name"] == hands.host).unwrap();
    let mac = text(&system["nics"][0], "mac");
    let stranger = hands.second.node("stranger").await.unwrap()["uuid"].clone();
    let body = json!({"node_uuid": stranger, "address": mac});
    let port = hands.second.must(Method::POST, "/v1/ports", Some(body)).await;
    hands.writes();
    let failure = ironic::networking(&hands.cx(), hands.at(node)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("MAC_CONFLICT", false));
    for part in [mac, "'stranger'", hands.host, text(&port, "uuid")] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    assert_eq!(hands.writes(), Vec::<String>::new());
    // What Ironic itself says of it: no lock.
    let attempt = hands.env.clients.ironic["rig"].attempt();
    attempt.node(&node.to_string()).await.unwrap();
    let new = muster::clients::ironic::NewPort {
        node,
        mac: mac.parse().unwrap(),
        pxe_enabled: false,
        portgroup: None,
        link: None,
    };
    let error = attempt.create_port(&new).await.unwrap_err();
    assert!(
        matches!(&error, IronicError::Conflict { kind: ConflictKind::Mac(taken), .. } if taken == mac),
        "{error:?}"
    );
    hands.second.must(Method::DELETE, &format!("/v1/ports/{}", text(&port, "uuid")), None).await;
    hands.writes();
    assert!(hands.done(async || ironic::networking(&hands.cx(), hands.at(node)).await).await);
    assert!(!hands.done(async || ironic::networking(&hands.cx(), hands.at(node)).await).await);
    assert_eq!(hands.writes(), ["POST /v1/portgroups", "POST /v1/ports", "POST /v1/ports"]);
    let ports = hands.site.ironic(&format!("/v1/ports?node={node}&detail=true"));
    let boots = ports["ports"].as_array().unwrap().iter().filter(|port| port["pxe_enabled"] == true);
    assert_eq!(boots.map(|port| port["address"].clone()).collect::<Vec<_>>(), [json!(mac)]);
    // Somebody's port with PXE stands in the way of ours, and ours is not made beside it (I3).
    let second_pxe =
        muster::clients::ironic::NewPort { mac: "02:99:00:00:00:01".parse().unwrap(), pxe_enabled: true, ..new };
    attempt.ports_of(node).await.unwrap();
    let error = attempt.create_port(&second_pxe).await.unwrap_err();
    assert!(matches!(error, IronicError::Guarded(_)), "{error:?}");
}

async fn raid_target(hands: &Hands<'_>, node: NodeUuid) {
    hands.writes();
    assert!(hands.done(async || ironic::raid_target(&hands.cx(), hands.at(node)).await).await);
    assert!(!hands.done(async || ironic::raid_target(&hands.cx(), hands.at(node)).await).await);
    assert_eq!(hands.writes(), ["PUT /v1/nodes/ID/states/raid"]);
    let now = hands.second.node(hands.host).await.unwrap();
    assert_eq!(now["target_raid_config"]["logical_disks"][0]["controller"], "software", "{now:#}");
    // The emulated ramdisk builds none: the clean is to go without.
    hands.second.must(Method::PUT, &format!("/v1/nodes/{node}/states/raid"), Some(json!({}))).await;
    hands.settings(json!({"target_raid_config": null, "raid_interface": null})).await;
}

/// A second client that changes the node's power again and again holds its lock nearly all the time. Muster's requests come
/// back as locked at once, name the conductor, and go through when it has let go.
async fn locks(hands: &Hands<'_>, node: NodeUuid) {
    let stop = CancellationToken::new();
    let hammering = async {
        let path = format!("/v1/nodes/{node}/states/power");
        let hammer = async |_| {
            while !stop.is_cancelled() {
                hands.second.ask(Method::PUT, &path, Some(json!({"target": "rebooting"}))).await;
            }
        };
        futures::future::join_all((0..4).map(hammer)).await;
    };
    let ours = async {
        let deadline = Instant::now() + Duration::from_secs(90);
        let mut took = Duration::ZERO;
        loop {
            assert!(Instant::now() < deadline, "never met a lock");
            // The trait is taken away each time, so that the prelude has something to write.
            hands.second.ask(Method::DELETE, &format!("/v1/nodes/{node}/traits/HW_ARCH_X86_64"), None).await;
            let began = Instant::now();
            match hands.prelude(Half::Inspection, None).await.unwrap() {
                PreludeOut::Locked { holder, state, node: held } => {
                    assert_eq!(held, Some(node));
                    assert_eq!((holder.as_deref(), state), (Some("rig-conductor"), Some(ProvisionState::Manageable)));
                    took = took.max(began.elapsed());
                    break;
                }
                PreludeOut::Ready { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        println!("locked by a second client: answered in {took:.1?}");
        stop.cancel();
    };
    tokio::join!(hammering, ours);
    hands.ready(Half::Inspection).await;
    let traits = hands.second.node(hands.host).await.unwrap()["traits"].clone();
    assert!(traits.as_array().unwrap().contains(&json!("HW_ARCH_X86_64")), "{traits}");
}

/// Somebody moves the node between our look and our verb: Ironic's refusal is a state, no lock and no wrong request.
async fn wrong_verbs(hands: &Hands<'_>, node: NodeUuid) {
    let ident = node.to_string();
    hands.fault("inspect", json!({"silent": true}));
    let attempt = hands.env.clients.ironic["rig"].attempt();
    attempt.node(&ident).await.unwrap();
    hands.second.verb(&ident, json!({"target": "inspect"}), "inspect wait").await;
    for verb in [Verb::Provide, Verb::Inspect] {
        let error = attempt.provision(node, verb).await.unwrap_err();
        let told = matches!(&error, IronicError::Invalid { said, .. } if said.contains("can not be performed on node"));
        assert!(told, "{error:?}");
    }
    // Through the guard with what is true now: they do not even leave.
    attempt.node(&ident).await.unwrap();
    hands.writes();
    for verb in [Verb::Provide, Verb::Inspect, Verb::Manage] {
        assert!(matches!(attempt.provision(node, verb).await, Err(IronicError::Guarded(_))));
    }
    assert_eq!(hands.writes(), Vec::<String>::new());
    let failure = ironic::provide(&hands.cx(), hands.at(node)).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("NODE_STATE_UNEXPECTED", true));
}

/// The inspection that waits for its ramdisk is aborted as the link guard aborts it; the next one fails, and both are
/// recovered from.
async fn inspections(hands: &Hands<'_>, node: NodeUuid) {
    assert!(hands.done(async || ironic::abort(&hands.cx(), hands.at(node)).await).await);
    hands.until(node, ProvisionState::InspectFailed).await;
    hands.writes();
    hands.ready(Half::Inspection).await;
    assert_eq!(hands.writes()[0], "PUT /v1/nodes/ID/states/provision");
    hands.fault("inspect", json!({"times": 1, "error": "collector default failed: no disks found"}));
    assert!(hands.done(async || ironic::inspect(&hands.cx(), hands.at(node)).await).await);
    hands.until(node, ProvisionState::InspectFailed).await;
    let look = ironic::look(&hands.cx(), hands.at(node)).await.unwrap();
    assert!(look.last_error.unwrap().contains("no disks found"));
    hands.ready(Half::Inspection).await;
}

/// A clean that fails in its step leaves the node in maintenance; the recovery takes it out first, and the next clean ends.
async fn cleans(hands: &Hands<'_>, node: NodeUuid) {
    let message = "/dev/nvme1n1 is busy";
    hands.fault("clean", json!({"times": 1, "fail": "*", "message": message}));
    assert!(hands.done(async || ironic::provide(&hands.cx(), hands.at(node)).await).await);
    hands.until(node, ProvisionState::CleanFailed).await;
    let failed = hands.second.node(hands.host).await.unwrap();
    assert_eq!((&failed["maintenance"], &failed["fault"]), (&json!(true), &json!("clean failure")), "{failed:#}");
    hands.writes();
    hands.ready(Half::Cleaning).await;
    let writes = hands.writes();
    assert_eq!(writes[..2], ["DELETE /v1/nodes/ID/maintenance", "PUT /v1/nodes/ID/states/provision"], "{writes:?}");
    assert_eq!(hands.second.node(hands.host).await.unwrap()["maintenance"], false);
    assert!(hands.done(async || ironic::provide(&hands.cx(), hands.at(node)).await).await);
    hands.until(node, ProvisionState::Available).await;
    hands.writes();
    assert!(matches!(hands.prelude(Half::Cleaning, None).await.unwrap(), PreludeOut::Satisfied { .. }));
    assert_eq!(hands.writes(), Vec::<String>::new());
    assert!(hands.done(async || ironic::power_on(&hands.cx(), hands.at(node)).await).await);
}
