//! The observers: what they make of NetBox's lists, and what an outage changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use muster::clients::netbox::NetBox;
use muster::config::settings::{NetboxFields, NetboxSettings, SecretRef, Trust};
use muster::inventory::netbox::{ObserveError, Observer};
use muster::store::Store;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{any, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// A NetBox with devices that a test changes.
#[derive(Clone, Default)]
struct Fleet(Arc<Mutex<FleetState>>);

#[derive(Default)]
struct FleetState {
    devices: BTreeMap<u64, Value>,
    /// The answer of everything, instead.
    broken: Option<ResponseTemplate>,
    ignores_filters: bool,
    /// A row that is counted and not listed.
    lost: Option<u64>,
    /// The token sees no device any more: lists are empty, details are not found.
    blind: bool,
    asked: Vec<String>,
}

impl Fleet {
    async fn serve(&self) -> MockServer {
        let server = MockServer::start().await;
        let types =
            json!([{"id": 1, "model": "SYS-221H", "manufacturer": {"id": 1, "name": "Supermicro"}, "u_height": 2.0}]);
        let roles =
            json!([{"id": 1, "name": "GPU compute", "slug": "gpu", "custom_fields": {"device_class": "COMPUTE_GPU"}}]);
        let places = [("/api/dcim/device-types/", types), ("/api/dcim/device-roles/", roles)];
        let empty = ["/api/dcim/sites/", "/api/dcim/locations/", "/api/dcim/racks/"].map(|at| (at, json!([])));
        for (at, rows) in places.into_iter().chain(empty) {
            let page = json!({"count": rows.as_array().unwrap().len(), "next": null, "results": rows});
            let whole = ResponseTemplate::new(200).set_body_json(page);
            Mock::given(path(at)).respond_with(self.unless_broken(whole)).mount(&server).await;
        }
        Mock::given(any()).respond_with(self.clone()).with_priority(9).mount(&server).await;
        server
    }

    fn unless_broken(&self, whole: ResponseTemplate) -> impl Respond + use<> {
        let fleet = self.clone();
        move |_: &Request| fleet.0.lock().unwrap().broken.clone().unwrap_or_else(|| whole.clone())
    }

    fn put(&self, id: u64, name: &str, at: &str) {
        self.0.lock().unwrap().devices.insert(id, device(id, name, at));
    }

    fn with<T>(&self, change: impl FnOnce(&mut FleetState) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl Respond for Fleet {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut state = self.0.lock().unwrap();
        state.asked.push(request.url.query().unwrap_or_default().to_owned());
        if let Some(broken) = &state.broken {
            return broken.clone();
        }
        if state.blind {
            let empty = json!({"count": 0, "next": null, "previous": null, "results": []});
            let listed = request.url.path() == "/api/dcim/devices/";
            return if listed { ResponseTemplate::new(200).set_body_json(empty) } else { not_found() };
        }
        if let Some(id) = request.url.path().strip_prefix("/api/dcim/devices/").filter(|id| !id.is_empty()) {
            let device = state.devices.get(&id.trim_matches('/').parse().unwrap());
            return device.map_or_else(not_found, |device| ResponseTemplate::new(200).set_body_json(device));
        }
        let ids: Vec<u64> =
            request.url.query_pairs().filter(|(key, _)| key == "id").map(|(_, id)| id.parse().unwrap()).collect();
        let since =
            request.url.query_pairs().find(|(key, _)| key == "last_updated__gte").map(|(_, at)| at.into_owned());
        let since: Option<Timestamp> = since.filter(|_| !state.ignores_filters).map(|at| at.parse().unwrap());
        let newer = |row: &&Value| {
            let at: Timestamp = row["last_updated"].as_str().unwrap().parse().unwrap();
            since.is_none_or(|since| at >= since) && (ids.is_empty() || ids.contains(&row["id"].as_u64().unwrap()))
        };
        let rows: Vec<&Value> = state.devices.values().filter(newer).collect();
        let listed: Vec<&&Value> = rows.iter().filter(|row| row["id"].as_u64() != state.lost).collect();
        ResponseTemplate::new(200)
            .set_body_json(json!({"count": rows.len(), "next": null, "previous": null, "results": listed}))
    }
}

fn not_found() -> ResponseTemplate {
    ResponseTemplate::new(404).set_body_json(json!({"detail": "No Device matches the given query."}))
}

fn device(id: u64, name: &str, at: &str) -> Value {
    json!({
        "id": id, "name": name, "last_updated": at, "position": 37.0, "serial": "", "asset_tag": null, "tenant": null,
        "device_type": {"id": 1, "manufacturer": {"id": 1, "name": "Supermicro"}, "model": "SYS-221H"},
        "role": {"id": 1, "name": "GPU compute", "slug": "gpu"}, "site": {"id": 1, "name": "Oslo 1", "slug": "osl1"},
        "location": {"id": 1, "name": "Hall B", "slug": "hall-b"}, "rack": {"id": 1, "name": "B07"},
        "face": {"value": "front", "label": "Front"}, "status": {"value": "staged", "label": "Staged"},
        "tags": [{"id": 1, "name": "Burn-in", "slug": "burn-in"}], "oob_ip": {"id": 1, "address": "2001:db8:7::29/64"},
        "custom_fields": {"platform_class": "OLD_KEY_01", "note": null},
    })
}

struct Rig {
    fleet: Fleet,
    _server: MockServer,
    observer: Arc<Observer>,
    store: Store,
    _folder: tempfile::TempDir,
}

async fn rig() -> Rig {
    let fleet = Fleet::default();
    fleet.put(1, "gpu-b07-37", "2026-11-29T08:00:00Z");
    fleet.put(2, "gpu-b07-35", "2026-11-29T08:30:08.055212Z");
    let server = fleet.serve().await;
    let settings = NetboxSettings {
        url: server.uri().parse().unwrap(),
        token: SecretRef::Env("T".into()),
        trust: Trust::System,
        timeout: Duration::from_secs(2),
        poll: Duration::from_millis(20),
        cadences: Default::default(),
        resync: Duration::from_secs(600),
        fields: NetboxFields {
            device_class: "device_class".into(),
            gpu_type: "gpu_type".into(),
            platform_class: "platform_class".into(),
            ntp_server: "ntp_server_1".into(),
            syslog_server: "syslog_server".into(),
        },
    };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let netbox = NetBox::new(&settings, "t".to_owned().into()).unwrap();
    let observer = Arc::new(Observer::new(netbox, store.clone(), &settings));
    Rig { fleet, _server: server, observer, store, _folder: folder }
}

impl Rig {
    fn names(&self) -> Vec<String> {
        self.store.devices().unwrap().into_iter().map(|d| d.name).collect()
    }

    fn health(&self) -> muster::store::SyncState {
        self.store.syncs().unwrap().into_iter().find(|s| s.key == "netbox").unwrap()
    }
}

#[tokio::test]
async fn a_full_read_projects_devices_with_what_they_point_at() {
    let rig = rig().await;
    let report = rig.observer.sync_full().await.unwrap();
    assert_eq!((report.read, report.changed, report.removed, report.incomplete), (2, 2, 0, false));
    let device = rig.store.device("gpu-b07-37").unwrap().unwrap();
    assert_eq!((device.site.as_str(), device.rack.as_deref(), device.position), ("osl1", Some("B07"), Some(37.0)));
    assert_eq!((device.device_class.as_deref(), device.u_height), (Some("COMPUTE_GPU"), Some(2.0)));
    assert_eq!(device.oob_ip.as_deref(), Some("2001:db8:7::29"));
    assert_eq!((device.tags.as_slice(), device.serial), (&["burn-in".to_owned()][..], None));
    assert_eq!(device.platform_class.as_deref(), Some("OLD_KEY_01"), "a new store starts from NetBox's record");
    assert_eq!(rig.observer.sync_full().await.unwrap().changed, 0);
    assert!(rig.fleet.with(|f| f.asked.iter().all(|q| q.contains("fields=") && !q.contains("config_context,"))));
}

/// Proves: O4. Case: C-39
#[tokio::test]
async fn a_delta_asks_by_netboxs_own_times_with_an_overlap() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    // A row that was stamped before the newest one and committed after it was read.
    rig.fleet.put(3, "gpu-b07-33", "2026-11-29T08:30:07Z");
    let report = rig.observer.sync_delta().await.unwrap();
    assert_eq!((report.changed, report.removed), (1, 0));
    assert_eq!(rig.names(), ["gpu-b07-33", "gpu-b07-35", "gpu-b07-37"]);
    let asked = rig.fleet.with(|f| f.asked.last().cloned().unwrap());
    assert!(asked.contains("last_updated__gte=2026-11-29T08%3A28%3A08.055212Z"), "{asked}");
}

/// Case: C-39
#[tokio::test]
async fn an_ignored_filter_makes_a_delta_a_full_read() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    rig.fleet.with(|f| {
        f.ignores_filters = true;
        f.devices.remove(&2);
    });
    let report = rig.observer.sync_delta().await.unwrap();
    assert_eq!((report.removed, rig.names()), (1, vec!["gpu-b07-37".to_owned()]));
}

/// Proves: O4, O5. Case: C-40
#[tokio::test]
async fn a_deletion_is_found_by_the_full_read_and_a_swap_of_names_keeps_each_device() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    rig.fleet.with(|f| f.devices.remove(&2));
    rig.fleet.put(3, "gpu-b07-33", "2026-11-29T09:00:00Z");
    assert_eq!(rig.observer.sync_delta().await.unwrap().removed, 0);
    assert_eq!(rig.names().len(), 3, "a delta cannot see what is gone");
    assert_eq!(rig.observer.sync_full().await.unwrap().removed, 1);
    assert_eq!(rig.names(), ["gpu-b07-33", "gpu-b07-37"]);
    rig.store.set_platform_class(1, "CLASS_OF_ONE").await.unwrap();
    rig.fleet.put(1, "gpu-b07-33", "2026-11-29T09:10:00Z");
    rig.fleet.put(3, "gpu-b07-37", "2026-11-29T09:10:00Z");
    rig.observer.sync_delta().await.unwrap();
    let swapped = rig.store.device("gpu-b07-33").unwrap().unwrap();
    assert_eq!((swapped.netbox_id, swapped.platform_class.as_deref()), (1, Some("CLASS_OF_ONE")));
}

/// Case: C-38
#[tokio::test]
async fn a_list_that_does_not_add_up_removes_nothing() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    rig.fleet.with(|f| f.lost = Some(2));
    let report = rig.observer.sync_full().await.unwrap();
    assert!(report.incomplete);
    assert_eq!((report.removed, rig.names().len()), (0, 2));
}

/// Proves: O6, O7
#[tokio::test]
async fn an_outage_a_schema_change_and_an_emptied_answer_leave_the_last_view() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    let ok_at = rig.health().ok_at.unwrap();
    let other_shape = json!({"count": 1, "next": null, "results": [{"id": 1, "name": 7}]});
    let broken = [
        (ResponseTemplate::new(503), "503"),
        (ResponseTemplate::new(403).set_body_json(json!({"detail": "Invalid v2 token"})), "Invalid v2 token"),
        (ResponseTemplate::new(200).set_body_json(other_shape), "results[0]"),
    ];
    for (answer, says) in broken {
        rig.fleet.with(|f| f.broken = Some(answer));
        assert!(rig.observer.sync_full().await.is_err());
        assert!(rig.observer.sync_delta().await.is_err());
        let health = rig.health();
        assert!(health.error.as_ref().is_some_and(|e| e.contains(says)), "{health:?}");
        assert_eq!((health.ok_at, rig.names().len()), (Some(ok_at), 2));
    }
    rig.fleet.with(|f| {
        f.broken = None;
        f.devices.clear();
    });
    assert!(matches!(rig.observer.sync_full().await, Err(ObserveError::Emptied { known: 2, .. })));
    assert_eq!(rig.names().len(), 2);
    rig.fleet.put(1, "gpu-b07-37", "2026-11-29T08:00:00Z");
    rig.observer.sync_full().await.unwrap();
    let health = rig.health();
    assert!(health.error.is_none() && health.ok_at.unwrap() >= ok_at);
    assert_eq!(rig.names(), ["gpu-b07-37"]);
}

/// Proves: O6
#[tokio::test]
async fn the_observer_recovers_by_itself_and_ends_when_told() {
    let rig = rig().await;
    rig.fleet.with(|f| f.broken = Some(ResponseTemplate::new(503)));
    let (cancel, changes) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let (observer, token, counted) = (rig.observer.clone(), cancel.clone(), changes.clone());
    let task = tokio::spawn(async move {
        observer
            .run(token, move || {
                counted.fetch_add(1, Ordering::Relaxed);
            })
            .await;
    });
    until(|| rig.store.syncs().unwrap().iter().any(|s| s.error.is_some())).await;
    assert!(rig.names().is_empty());
    rig.fleet.with(|f| f.broken = None);
    until(|| rig.names().len() == 2 && rig.health().error.is_none()).await;
    let newer = Timestamp::now() + SignedDuration::from_hours(1);
    rig.fleet.put(4, "gpu-b07-31", &newer.to_string());
    until(|| rig.names().len() == 3).await;
    rig.fleet.with(|f| f.devices.remove(&4));
    rig.observer.sync_soon();
    until(|| rig.names().len() == 2).await;
    assert!(changes.load(Ordering::Relaxed) >= 3);
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(5), task).await.expect("the observer ends").unwrap();
}

/// Proves: O2, O4
#[tokio::test]
async fn a_device_that_somebody_heard_of_is_read_at_once_and_by_its_id() {
    let rig = rig().await;
    rig.fleet.put(3, "gpu-b07-33", "2026-11-29T08:00:00Z");
    let (observer, cancel) = (rig.observer.clone(), CancellationToken::new());
    let token = cancel.clone();
    let task = tokio::spawn(async move { observer.run(token, || {}).await });
    until(|| rig.names().len() == 3).await;
    // Older than what a delta asks for: only the queue brings these before the resync in ten minutes.
    rig.fleet.put(1, "gpu-b07-38", "2026-11-28T00:00:00Z");
    rig.fleet.put(4, "gpu-b07-31", "2026-11-28T00:00:00Z");
    rig.fleet.with(|f| f.devices.remove(&2));
    rig.observer.requeue([1, 4, 4, 2, 99]);
    until(|| rig.names() == ["gpu-b07-31", "gpu-b07-33", "gpu-b07-38"]).await;
    assert!(rig.fleet.with(|f| f.asked.iter().any(|q| q.starts_with("id=1&id=2&id=4&id=99&"))));
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(5), task).await.expect("the observer ends").unwrap();
}

/// Proves: O4, O6. Case: C-40
#[tokio::test]
async fn a_queued_device_falls_only_on_a_proof_of_its_own() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    // A list that leaves it out is none: its own address still answers.
    rig.fleet.with(|f| f.lost = Some(2));
    rig.observer.requeue([2]);
    assert_eq!(rig.observer.sync_queued().await.unwrap().removed, 0);
    // A token that sees nothing at all proves nothing, and neither does a NetBox that is away.
    rig.fleet.with(|f| (f.lost, f.blind) = (None, true));
    rig.observer.requeue([1, 2]);
    assert_eq!(rig.observer.sync_queued().await.unwrap().removed, 0);
    assert_eq!(rig.names().len(), 2);
    rig.fleet.with(|f| {
        f.blind = false;
        f.devices.remove(&2);
        f.broken = Some(ResponseTemplate::new(503));
    });
    rig.observer.requeue([2]);
    assert!(rig.observer.sync_queued().await.is_err());
    assert_eq!(rig.names().len(), 2);
    // It is still in the queue: what could not be read is not forgotten.
    rig.fleet.with(|f| f.broken = None);
    assert_eq!(rig.observer.sync_queued().await.unwrap().removed, 1);
    assert_eq!(rig.names(), ["gpu-b07-37"]);
}

/// Proves: O2
#[tokio::test]
async fn a_thousand_queued_devices_are_read_in_few_requests() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    for id in 3..1003 {
        rig.fleet.put(id, &format!("gpu-{id}"), "2026-11-28T00:00:00Z");
    }
    let before = rig.fleet.with(|f| f.asked.len());
    rig.observer.requeue(3..1003);
    for _ in 0..3 {
        rig.observer.sync_queued().await.unwrap();
    }
    assert_eq!(rig.names().len(), 1002);
    assert_eq!(rig.fleet.with(|f| f.asked.len()) - before, 10);
}

async fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..500 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not come to pass in 5 s");
}
