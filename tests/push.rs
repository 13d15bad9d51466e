//! Push from NetBox by webhooks: what a signed event brings, what an unsigned one does not, and when polling goes on.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::{PushSettings, SecretRef, Settings, WebhookSettings};
use muster::inventory::netbox::Observer;
use muster::inventory::push::{self, Push, Reader, signature};
use muster::lab::Lab;
use muster::lab::ledger::System;
use muster::lab::netbox::webhook::{self, Webhook};
use muster::lab::scenario::Scenario;
use muster::store::{Store, SyncState};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "s3cret of the hook";

/// Whom push tells, on record.
#[derive(Default)]
struct Told {
    devices: Mutex<Vec<u64>>,
    deltas: Mutex<usize>,
    syncs: Mutex<usize>,
    stretched: Mutex<Vec<Option<Duration>>>,
}

impl Reader for Told {
    fn requeue(&self, devices: Vec<u64>) {
        self.devices.lock().unwrap().extend(devices);
    }

    fn delta_soon(&self) {
        *self.deltas.lock().unwrap() += 1;
    }

    fn sync_soon(&self) {
        *self.syncs.lock().unwrap() += 1;
    }

    fn stretch(&self, poll: Option<Duration>) {
        self.stretched.lock().unwrap().push(poll);
    }
}

/// Push before a lab, told to somebody.
struct Rig {
    lab: Lab,
    settings: Settings,
    netbox: NetBox,
    store: Store,
    vault: Vault,
    listen: std::net::SocketAddr,
    stop: CancellationToken,
    folder: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn rig() -> Rig {
    let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
    let vault = Vault::new(settings.vault.clone());
    let netbox = NetBox::new(&settings.netbox, vault.resolve(&settings.netbox.token).await.unwrap()).unwrap();
    let store = Store::open(&folder.path().join("state")).unwrap();
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    private(&folder.path().join("hook"), SECRET);
    Rig { lab, settings, netbox, store, vault, listen, stop: CancellationToken::new(), folder }
}

fn private(path: &std::path::Path, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Rig {
    fn start(&self, reader: Arc<dyn Reader>, silence: Duration) {
        let webhook = WebhookSettings {
            listen: self.listen,
            path: "/netbox".into(),
            secret: SecretRef::File(self.folder.path().join("hook")),
            silence,
        };
        let settings = PushSettings { poll: Duration::from_secs(600), webhook: Some(webhook), postgres: None };
        let (vault, netbox, store) = (self.vault.clone(), self.netbox.clone(), self.store.clone());
        let push = Push::new(settings, Duration::from_secs(60), vault, netbox, store, reader);
        let stop = self.stop.clone();
        tokio::spawn(async move { push.run(stop).await });
    }

    /// The observer with cadences of hours, so that nothing but push brings a change.
    fn observe(&self) -> Arc<Observer> {
        let mut settings = self.settings.netbox.clone();
        (settings.poll, settings.resync) = (Duration::from_secs(7200), Duration::from_secs(7200));
        let observer = Arc::new(Observer::new(self.netbox.clone(), self.store.clone(), &settings));
        let (running, stop) = (observer.clone(), self.stop.clone());
        tokio::spawn(async move { running.run(stop, || {}).await });
        observer
    }

    fn url(&self, path: &str) -> url::Url {
        format!("http://{}{path}", self.listen).parse().unwrap()
    }

    fn hook_up(&self) {
        let webhook = Webhook { url: self.url("/netbox"), secret: SECRET.to_owned().into() };
        self.lab.world().set_webhook(Some(webhook));
    }

    /// Posts an event until somebody listens.
    async fn tell(&self, event: &str, object_type: &str, data: Value, prechange: Value) -> u16 {
        for _ in 0..200 {
            match webhook::tell(self.lab.world(), event, object_type, data.clone(), prechange.clone()).await {
                Ok(status) => return status.expect("the lab has a webhook"),
                Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        panic!("nobody listens on {}", self.listen);
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> u16 {
        webhook::post(&self.url(path), headers, body).await.unwrap()
    }

    fn health(&self) -> Option<SyncState> {
        self.store.syncs().unwrap().into_iter().find(|s| s.key == push::WEBHOOK)
    }

    fn asked(&self) -> usize {
        self.lab.ledger().iter().filter(|e| e.system == System::Netbox).count()
    }

    fn id(&self, name: &str) -> u64 {
        self.lab.world().lock().records.devices.values().find(|d| d.name == name).unwrap().id
    }
}

async fn until(what: &str, mut done: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if done() {
            return began.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to pass in 20 s: {what}");
}

/// Proves: O9
#[tokio::test]
async fn a_signed_event_brings_a_change_and_a_deletion_that_no_poll_would_for_hours() {
    let rig = rig().await;
    let observer = rig.observe();
    rig.start(observer, Duration::from_secs(3600));
    rig.hook_up();
    until("the first read", || !rig.store.devices().unwrap().is_empty()).await;
    let names: Vec<String> = rig.store.devices().unwrap().into_iter().map(|d| d.name).collect();
    let (changed, gone) = (rig.id(&names[0]), rig.id(&names[1]));
    rig.lab.world().lock().records.devices.get_mut(&changed).unwrap().serial = "AFTER".into();
    assert_eq!(rig.tell("updated", "dcim.device", json!({"id": changed}), Value::Null).await, 204);
    let serial = |id: u64| rig.store.devices().unwrap().into_iter().find(|d| d.netbox_id == id).and_then(|d| d.serial);
    until("the change", || serial(changed).as_deref() == Some("AFTER")).await;

    // It says that both are gone, and of one of them it is a lie. What else it says is not looked at.
    rig.lab.world().lock().records.devices.remove(&gone);
    for id in [changed, gone] {
        let data = json!({"id": id, "name": "never", "serial": "LIES", "status": {"value": "active"}});
        assert_eq!(rig.tell("deleted", "dcim.device", data, Value::Null).await, 204);
    }
    until("the deletion", || rig.store.devices().unwrap().iter().all(|d| d.netbox_id != gone)).await;
    assert_eq!(serial(changed).as_deref(), Some("AFTER"));
    let now: Vec<String> = rig.store.devices().unwrap().into_iter().map(|d| d.name).collect();
    assert_eq!(now, [&names[..1], &names[2..]].concat());

    // A write by the API is told by the lab itself.
    let status = |id: u64| rig.store.devices().unwrap().into_iter().find(|d| d.netbox_id == id).unwrap().status;
    let other = if status(changed) == "staged" { "failed" } else { "staged" };
    rig.netbox.set_status(changed, other, None).await.unwrap();
    until("the status", || status(changed) == other).await;
}

/// Proves: O9
#[tokio::test]
async fn an_event_of_an_interface_or_an_address_reads_the_devices_on_both_sides() {
    let rig = rig().await;
    let told = Arc::new(Told::default());
    rig.start(told.clone(), Duration::from_secs(3600));
    rig.hook_up();
    let moved = json!({"id": 1, "device": {"id": 8}});
    assert_eq!(rig.tell("updated", "dcim.interface", moved, json!({"device": 7})).await, 204);
    until("both devices", || *told.devices.lock().unwrap() == [7, 8]).await;
    // An address names interfaces only: whose they are is asked of NetBox.
    let interfaces: BTreeMap<u64, u64> = {
        let state = rig.lab.world().lock();
        state.records.interfaces.values().map(|i| (i.id, i.device)).collect()
    };
    let (interface, device) = interfaces.iter().next().map(|(i, d)| (*i, *d)).unwrap();
    told.devices.lock().unwrap().clear();
    let left = json!({"assigned_object_id": interface});
    assert_eq!(rig.tell("updated", "ipam.ipaddress", json!({"id": 1, "assigned_object": null}), left).await, 204);
    until("the device that it left", || *told.devices.lock().unwrap() == [device]).await;
    assert_eq!(*told.syncs.lock().unwrap(), 0);
    rig.tell("created", "dcim.rack", json!({"id": 1}), Value::Null).await;
    until("a full read", || *told.syncs.lock().unwrap() == 1).await;
    rig.tell("created", "dcim.rack", json!({"id": 2}), Value::Null).await;
    rig.tell("updated", "circuits.circuit", json!({"id": 2}), Value::Null).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(*told.syncs.lock().unwrap(), 1, "a second full read waits for its minute");
}

/// Proves: O9
#[tokio::test]
async fn what_is_not_rightly_signed_is_refused_and_asks_nothing_of_netbox() {
    let rig = rig().await;
    let told = Arc::new(Told::default());
    rig.start(told.clone(), Duration::from_secs(3600));
    rig.hook_up();
    // Somebody listens.
    rig.tell("updated", "circuits.circuit", json!({"id": 1}), Value::Null).await;
    let body = json!({"object_type": "dcim.device", "event": "deleted", "data": {"id": 1}}).to_string();
    let right = signature(&SECRET.to_owned().into(), body.as_bytes());
    let of_other = signature(&SECRET.to_owned().into(), b"{}");
    let wrong = signature(&"another".to_owned().into(), body.as_bytes());
    let cut = &right[..127];
    let before = rig.asked();
    let one = |value: &'static str| [("X-Hook-Signature", value)];
    assert_eq!(rig.post("/netbox", &[], body.as_bytes()).await, 401);
    assert_eq!(rig.post("/netbox", &one(""), body.as_bytes()).await, 401);
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", cut)], body.as_bytes()).await, 401);
    let twice = [("X-Hook-Signature", right.as_str()), ("X-Hook-Signature", right.as_str())];
    assert_eq!(rig.post("/netbox", &twice, body.as_bytes()).await, 401);
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", &wrong)], body.as_bytes()).await, 403);
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", &of_other)], body.as_bytes()).await, 403);
    assert_eq!(rig.post("/other", &[("X-Hook-Signature", &right)], body.as_bytes()).await, 404);
    let large = vec![b' '; 1024 * 1024 + 1];
    let signed = signature(&SECRET.to_owned().into(), &large);
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", &signed)], &large).await, 413);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(told.devices.lock().unwrap().is_empty());
    assert_eq!((*told.deltas.lock().unwrap(), *told.syncs.lock().unwrap(), rig.asked()), (0, 0, before));
    // The same body, rightly signed.
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", &right)], body.as_bytes()).await, 204);
    until("the device", || *told.devices.lock().unwrap() == [1]).await;
    // Signed, and of a form of its own: something changed.
    let own = b"changed: yes";
    let signed = signature(&SECRET.to_owned().into(), own);
    assert_eq!(rig.post("/netbox", &[("X-Hook-Signature", &signed)], own).await, 204);
    until("a delta", || *told.deltas.lock().unwrap() == 1).await;
}

/// Proves: O9
#[tokio::test]
async fn polling_is_rare_while_events_come_and_usual_again_when_they_do_not() {
    let rig = rig().await;
    let told = Arc::new(Told::default());
    let silence = Duration::from_millis(1500);
    rig.start(told.clone(), silence);
    rig.hook_up();
    let stretched = || told.stretched.lock().unwrap().clone();
    until("the receiver", || rig.health().is_some_and(|health| health.error.is_none())).await;
    assert_eq!(stretched(), [], "nothing has proven yet that events come");
    let url = format!("http://{}/netbox", rig.listen);
    let silent = |health: Option<SyncState>| {
        let error = health.and_then(|h| h.error).unwrap_or_default();
        error.contains(&url) && error.contains("polled every 60 s") && error.contains("rqworker")
    };
    until("the silence", || silent(rig.health())).await;
    assert_eq!(stretched(), []);
    rig.tell("updated", "dcim.device", json!({"id": 1}), Value::Null).await;
    until("the stretch", || stretched() == [Some(Duration::from_secs(600))]).await;
    until("its health", || rig.health().is_some_and(|health| health.error.is_none())).await;
    until("the usual cadence", || stretched() == [Some(Duration::from_secs(600)), None]).await;
    until("the silence again", || silent(rig.health())).await;
    // Somebody sends, with another secret: that is what is said.
    rig.post("/netbox", &[("X-Hook-Signature", &"0".repeat(128))], b"{}").await;
    until("the wrong secret", || {
        rig.health().and_then(|h| h.error).is_some_and(|e| e.contains("wrong signature") && e.contains("hook"))
    })
    .await;
}

/// Proves: O9
#[tokio::test]
async fn an_address_that_is_taken_and_a_secret_that_is_missing_are_told_and_tried_again() {
    let rig = rig().await;
    let other = TcpListener::bind(rig.listen).unwrap();
    std::fs::remove_file(rig.folder.path().join("hook")).unwrap();
    let told = Arc::new(Told::default());
    rig.start(told.clone(), Duration::from_secs(3600));
    rig.hook_up();
    let says = |what: &str| rig.health().and_then(|h| h.error).is_some_and(|e| e.contains(what));
    until("the missing secret", || says("the webhook's secret") && says("polled every 60 s")).await;
    private(&rig.folder.path().join("hook"), SECRET);
    until("the taken address", || says("can't be listened on") && says("netbox.push.webhook.listen")).await;
    drop(other);
    rig.tell("updated", "dcim.device", json!({"id": 5}), Value::Null).await;
    until("the device", || *told.devices.lock().unwrap() == [5]).await;
}

/// Proves: O9, G12
#[tokio::test]
async fn connections_that_say_nothing_are_ended_and_hold_up_events_for_seconds_only() {
    let rig = rig().await;
    let told = Arc::new(Told::default());
    rig.start(told.clone(), Duration::from_secs(3600));
    rig.hook_up();
    rig.tell("updated", "circuits.circuit", json!({"id": 1}), Value::Null).await;
    let mut idle = Vec::new();
    for n in 0..40 {
        let mut stream = tokio::net::TcpStream::connect(rig.listen).await.unwrap();
        if n % 2 == 0 {
            stream.write_all(b"POST /netbox HTTP/1.1\r\nHost: x\r\n").await.unwrap();
        }
        idle.push(stream);
    }
    let began = Instant::now();
    rig.tell("updated", "dcim.device", json!({"id": 5}), Value::Null).await;
    until("the device", || *told.devices.lock().unwrap() == [5]).await;
    // Three rounds of sixteen, five seconds each.
    assert!(began.elapsed() < Duration::from_secs(18), "{:?}", began.elapsed());
}
