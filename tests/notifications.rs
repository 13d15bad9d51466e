//! Notifications to a real nats-server, which the tests start themselves on free ports: subjects, payloads, outages.

#[path = "support/door.rs"]
mod door;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/nats.rs"]
mod nats;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use door::Door;
use futures::StreamExt;
use jiff::Timestamp;
use muster::app::App;
use muster::config::settings::{NatsSettings, PushSettings, WebhookSettings};
use muster::domain::device::Device;
use muster::domain::wiring::{Cable, CableEnd};
use muster::inventory::notify::{Notifier, SYSTEM};
use muster::lab::Lab;
use muster::lab::netbox::webhook::{self, Webhook};
use muster::lab::scenario::Scenario;
use muster::store::{ObjectKind, Store};
use nats::{PATIENCE, Server, secret, vault};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn device(id: u64, name: &str, site: &str) -> Device {
    let body = json!({
        "netbox_id": id, "name": name, "site": site, "location": null, "rack": "B07", "position": 39.0, "face": null,
        "u_height": 2.0, "status": "staged", "role": "GPU", "device_class": null, "manufacturer": "M", "model": "X",
        "serial": null, "asset_tag": null, "tags": [], "tenant": null, "oob_ip": null, "platform_class": null,
        "custom_fields": {}, "last_updated": null, "read_at": Timestamp::UNIX_EPOCH,
    });
    serde_json::from_value(body).unwrap()
}

/// A notifier at work before a store.
struct Rig {
    store: Store,
    notifier: Arc<Notifier>,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Rig {
    async fn start(settings: &NatsSettings, devices: Vec<Device>) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.put_devices(devices).await.unwrap();
        let notifier = Arc::new(Notifier::new(settings, vault(), store.clone()).unwrap().expect("a flag is on"));
        let (stop, running) = (CancellationToken::new(), notifier.clone());
        let token = stop.clone();
        tokio::spawn(async move { running.run(token).await });
        let rig = Rig { store, notifier, stop, _folder: folder };
        rig.until("NATS's health", |_| true).await;
        rig
    }

    async fn put(&self, devices: Vec<Device>) {
        self.store.put_devices(devices).await.unwrap();
        self.notifier.look();
    }

    async fn plug(&self, cables: Vec<Cable>) {
        self.store.put_objects(cables, Timestamp::now()).await.unwrap();
        self.notifier.look();
    }

    async fn until(&self, what: &str, done: impl Fn(Option<String>) -> bool) {
        let began = Instant::now();
        loop {
            let state = self.store.syncs().unwrap().into_iter().find(|s| s.key == SYSTEM);
            if let Some(state) = &state
                && done(state.error.clone())
            {
                return;
            }
            assert!(began.elapsed() < PATIENCE * 3, "it did not come to pass: {what}: {state:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn next(all: &mut async_nats::Subscriber) -> (String, Value) {
    let message = tokio::time::timeout(PATIENCE, all.next()).await.expect("a message in time").expect("a connection");
    let payload = serde_json::from_slice(&message.payload).unwrap();
    (message.subject.to_string(), payload)
}

/// Nothing more came: what is told from here on is told after this.
async fn nothing_more(rig: &Rig, all: &mut async_nats::Subscriber, id: u64) {
    rig.put(vec![device(id, "the-last-one", "osl1")]).await;
    let (subject, _) = next(all).await;
    assert_eq!(subject, "muster.inventory.osl1.device.the-last-one.updated");
}

/// Proves: O10
#[tokio::test]
async fn devices_that_are_new_others_or_gone_are_told_once_by_their_names() {
    let Some(server) = Server::start("") else { return };
    let mut all = server.listen().await;
    let known = device(1, "gpu-b07-37", "osl1");
    let rig = Rig::start(&server.settings(), vec![known.clone()]).await;
    rig.put(vec![device(2, "gpu-b07-39", "osl1")]).await;
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.device.gpu-b07-39.updated");
    let at: Timestamp = payload["at"].as_str().unwrap().parse().unwrap();
    let expected = json!({"v": 1, "at": at, "kind": "device", "change": "added", "netbox_id": 2, "name": "gpu-b07-39",
                          "site": "osl1", "rack": "B07", "position": 39.0, "status": "staged"});
    assert_eq!(payload, expected);

    // Read again, written again, and nothing else: not a change.
    let touched = Device { last_updated: Some(Timestamp::now()), read_at: Timestamp::now(), ..known.clone() };
    rig.put(vec![touched.clone()]).await;
    let failed = Device { status: "failed".into(), serial: Some("S1".into()), ..touched };
    rig.put(vec![failed.clone()]).await;
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.device.gpu-b07-37.updated");
    assert_eq!((&payload["change"], &payload["status"]), (&json!("changed"), &json!("failed")));
    assert_eq!(payload["fields"], json!(["serial", "status"]));
    assert_eq!(payload["former"], Value::Null);

    rig.put(vec![Device { name: "gpu-b07-41".into(), ..failed }]).await;
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.device.gpu-b07-41.updated");
    assert_eq!(payload["former"], json!({"name": "gpu-b07-37", "site": "osl1"}));
    rig.store.remove_devices(vec![2]).await.unwrap();
    rig.notifier.look();
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.device.gpu-b07-39.deleted");
    assert_eq!((&payload["change"], &payload["netbox_id"]), (&json!("removed"), &json!(2)));
    assert_eq!(payload["fields"], Value::Null);
    nothing_more(&rig, &mut all, 9).await;
}

/// Proves: O10
#[tokio::test]
async fn no_name_reaches_another_subject() {
    let Some(server) = Server::start("") else { return };
    let mut all = server.listen().await;
    let rig = Rig::start(&server.settings(), vec![]).await;
    for (id, name, segment) in [
        (1, "gpu.b07.39", "gpu%2Eb07%2E39"),
        (2, "a >", "a%20%3E"),
        (3, "*.device.other.deleted", "%2A%2Edevice%2Eother%2Edeleted"),
        (4, "x\r\nPUB muster.y 0\r\n", "x%0D%0APUB%20muster%2Ey%200%0D%0A"),
        (5, "größe", "gr%C3%B6%C3%9Fe"),
    ] {
        rig.put(vec![device(id, name, "osl1")]).await;
        let (subject, payload) = next(&mut all).await;
        assert_eq!(subject, format!("muster.inventory.osl1.device.{segment}.updated"));
        assert_eq!(payload["name"], name, "the payload has it as it is");
    }
    nothing_more(&rig, &mut all, 9).await;
}

/// Proves: O10
#[tokio::test]
async fn each_flag_is_of_its_own_and_cables_are_told_at_the_sites_of_the_filter() {
    let Some(server) = Server::start("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let off = NatsSettings { publish_devices: false, publish_cables: false, ..server.settings() };
    let without_sites = NatsSettings { publish_devices: false, cable_sites: vec![], ..server.settings() };
    for settings in [off, without_sites] {
        assert!(Notifier::new(&settings, vault(), store.clone()).unwrap().is_none(), "nothing is connected to");
    }
    let mut all = server.listen().await;
    let hosts = [device(1, "gpu-b07-39", "osl1"), device(2, "leaf-1", "zrh"), device(3, "leaf-2", "zrh")];
    let only_cables = NatsSettings { publish_devices: false, ..server.settings() };
    let rig = Rig::start(&only_cables, hosts.to_vec()).await;
    rig.put(vec![device(4, "gpu-b07-41", "osl1")]).await;
    // One at the site of the filter and one that is nowhere near it.
    rig.plug(vec![cable(7, (1, "gpu-b07-39"), (2, "leaf-1")), cable(8, (2, "leaf-1"), (3, "leaf-2"))]).await;
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.cable.7.updated");
    let at: Timestamp = payload["at"].as_str().unwrap().parse().unwrap();
    let expected = json!({"v": 1, "at": at, "kind": "cable", "change": "added", "netbox_id": 7, "label": "L", "status": "connected",
        "ends": [{"site": "osl1", "device": "gpu-b07-39", "port": "eth0"}, {"site": "zrh", "device": "leaf-1", "port": "eth0"}]});
    assert_eq!(payload, expected);
    // Saved again without a change, then moved away from the site: it is told where it was.
    let mut again = cable(7, (1, "gpu-b07-39"), (2, "leaf-1"));
    again.last_updated = Some(Timestamp::now());
    rig.plug(vec![again]).await;
    rig.plug(vec![cable(7, (3, "leaf-2"), (2, "leaf-1"))]).await;
    let (subject, payload) = next(&mut all).await;
    assert_eq!((subject.as_str(), &payload["change"]), ("muster.inventory.osl1.cable.7.updated", &json!("changed")));
    assert_eq!(payload["ends"][0]["device"], "leaf-2");
    rig.plug(vec![cable(9, (1, "gpu-b07-39"), (3, "leaf-2"))]).await;
    assert_eq!(next(&mut all).await.0, "muster.inventory.osl1.cable.9.updated");
    rig.store.remove_objects(ObjectKind::Cable, vec![8, 9]).await.unwrap();
    rig.notifier.look();
    let (subject, payload) = next(&mut all).await;
    assert_eq!((subject.as_str(), &payload["change"]), ("muster.inventory.osl1.cable.9.deleted", &json!("removed")));
    drop(rig);

    let only_devices = NatsSettings { publish_cables: false, ..server.settings() };
    let rig = Rig::start(&only_devices, hosts.to_vec()).await;
    rig.plug(vec![cable(7, (1, "gpu-b07-39"), (2, "leaf-1"))]).await;
    nothing_more(&rig, &mut all, 9).await;
}

fn cable(id: u64, a: (u64, &str), b: (u64, &str)) -> Cable {
    let end = |(device, name): (u64, &str)| CableEnd {
        netbox_id: device * 10,
        kind: "dcim.interface".into(),
        device: Some(device),
        device_name: Some(name.into()),
        name: Some("eth0".into()),
    };
    Cable {
        netbox_id: id,
        label: Some("L".into()),
        color: None,
        status: Some("connected".into()),
        a: vec![end(a)],
        b: vec![end(b)],
        last_updated: None,
    }
}

/// Proves: O9, O10
#[tokio::test]
async fn the_leader_takes_a_webhook_tells_what_it_changed_and_shows_the_health_of_both() {
    let Some(server) = Server::start("") else { return };
    let mut all = server.listen().await;
    let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
    let bare = settings.clone();
    let never = Duration::from_secs(7200);
    (settings.netbox.poll, settings.netbox.resync) = (never, never);
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hook = secret(folder.path(), "hook", "of the hook");
    let webhook = WebhookSettings { listen, path: "/netbox".into(), secret: hook, silence: never };
    settings.push = Some(PushSettings { poll: never, webhook: Some(webhook), postgres: None });
    settings.nats = Some(NatsSettings { publish_cables: false, ..server.settings() });
    let state = folder.path().join("state");
    let app = App::open(settings, &state).await.unwrap();
    // A new inventory is news.
    let devices = lab.world().lock().records.devices.len();
    for _ in 0..devices {
        let (subject, payload) = next(&mut all).await;
        assert!(subject.ends_with(".updated") && payload["change"] == "added", "{subject} {payload}");
    }
    let (id, name) = {
        let mut world = lab.world().lock();
        let device = world.records.devices.values_mut().next().unwrap();
        device.serial = "AFTER".into();
        (device.id, device.name.clone())
    };
    let url = format!("http://{listen}/netbox").parse().unwrap();
    lab.world().set_webhook(Some(Webhook { url, secret: "of the hook".to_owned().into() }));
    let status = webhook::tell(lab.world(), "updated", "dcim.device", json!({"id": id}), Value::Null).await;
    assert_eq!(status.unwrap(), Some(204));
    let (_, payload) = next(&mut all).await;
    assert_eq!((&payload["name"], &payload["fields"]), (&json!(name), &json!(["serial"])));
    let systems = |app: &App| app.fleet().unwrap().systems.into_iter().map(|s| (s.name, s.error)).collect::<Vec<_>>();
    let shown = systems(&app);
    for system in ["nats", "netbox push webhook"] {
        assert!(shown.contains(&(system.to_owned(), None)), "{shown:?}");
    }
    app.shutdown().await;
    drop(app);
    // What is not configured any more is no system any more.
    let app = App::open(bare, &state).await.unwrap();
    let began = Instant::now();
    while systems(&app).iter().any(|(name, _)| name == "nats" || name.contains("push")) {
        assert!(began.elapsed() < PATIENCE, "{:?}", systems(&app));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    app.shutdown().await;
}

/// Proves: O10, G12
#[tokio::test]
async fn an_outage_keeps_what_fits_in_the_queue_counts_the_rest_and_ends_by_itself() {
    let Some(mut server) = Server::start("") else { return };
    // The way of the notifier, which opens when somebody listens again.
    let door = Door::to(&format!("127.0.0.1:{}", server.port));
    let way = door.url().replace("http:", "nats:").parse().unwrap();
    let settings = NatsSettings { queue: 5, servers: vec![way], ..server.settings() };
    let rig = Rig::start(&settings, vec![]).await;
    rig.until("the connection", |error| error.is_none()).await;
    door.shut();
    server.end();
    rig.until("the outage", |error| error.is_some_and(|e| e.contains("is down"))).await;
    for id in 1..=8u64 {
        let began = Instant::now();
        rig.put(vec![device(id, &format!("gpu-{id}"), "osl1")]).await;
        assert!(began.elapsed() < Duration::from_secs(2), "an outage holds up nobody");
        // One look may see several changes: each is to be seen by itself here.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(rig.notifier.dropped(), 3);
    server.again();
    let mut all = server.listen().await;
    door.reopen();
    for id in 1..=5 {
        assert_eq!(next(&mut all).await.1["netbox_id"], id, "in the order of the changes");
    }
    let lost = "3 notifications were dropped";
    rig.until("the loss", |error| error.is_some_and(|e| e.starts_with(lost) && e.contains("anew"))).await;
    nothing_more(&rig, &mut all, 9).await;
}
