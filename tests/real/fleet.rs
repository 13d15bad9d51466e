//! The fleet follows a real NetBox: whatever happens there, the lists here become what a fresh reading gives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster::clients::http::{Answer, Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::netbox::NetBox;
use muster::config::settings::Settings;
use muster::domain::device::Device;
use muster::inventory::netbox::{Observer, SYSTEM};
use muster::store::Store;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::door::Door;

/// Much longer than any cadence below.
const SOON: Duration = Duration::from_secs(30);

struct Watched {
    env: Value,
    admin: HttpClient,
    door: Door,
    settings: Settings,
    store: Store,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

/// An observer with short cadences behind a door, and the administrator who changes things beside it.
fn watched() -> Option<Watched> {
    let Some(path) = std::env::var_os("MUSTER_REAL_NETBOX") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_NETBOX names no rig");
        return None;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let url = env["url"].as_str().unwrap();
    let door = Door::to(url.trim_start_matches("http://").trim_end_matches('/'));
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\npoll_s = 0.3\nresync_s = 2\ntimeout_s = 10\n\
         [ironic.main]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_CPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        door.url()
    );
    let settings = muster::config::parse(&text, "real.toml").unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let admin = HttpClient::new("netbox", &url.parse().unwrap(), &HttpOptions::default()).unwrap();
    Some(Watched { env, admin, door, settings, store, stop: CancellationToken::new(), _folder: folder })
}

impl Watched {
    fn observer(&self, store: &Store) -> Observer {
        let token = self.env["token"].as_str().unwrap().to_owned();
        let netbox = NetBox::new(&self.settings.netbox, token.into()).unwrap();
        Observer::new(netbox, store.clone(), &self.settings.netbox)
    }

    fn start(&self) {
        let (observer, stop) = (Arc::new(self.observer(&self.store)), self.stop.clone());
        tokio::spawn(async move { observer.run(stop, || {}).await });
    }

    /// What the administrator does, past the door.
    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let token = format!("Bearer {}", self.env["admin_token"].as_str().unwrap());
        let mut request = Request::new(method, path).auth(Auth::Authorization(token.into()));
        request.body = body;
        let answer = self.admin.send(request).await.unwrap();
        assert!(answer.status.is_success(), "{}: {}", answer.asked, answer.excerpt());
        answer
    }

    async fn patch(&self, id: u64, body: Value) {
        self.admin(Method::PATCH, &format!("/api/dcim/devices/{id}/"), Some(body)).await;
    }

    /// A copy of a host of the rig in the unit that is named.
    async fn add(&self, name: &str, unit: u64) -> u64 {
        let like = self.env["devices"].as_array().unwrap().iter().find(|d| d["name"] == "osl1-b07-u17").unwrap();
        let like = self.admin(Method::GET, &format!("/api/dcim/devices/{}/", like["id"]), None).await.json().unwrap();
        let of = |key: &str| like[key]["id"].clone();
        let device = json!({
            "name": name, "device_type": of("device_type"), "role": of("role"), "site": of("site"),
            "location": of("location"), "rack": of("rack"), "position": unit, "face": "front", "status": "staged",
        });
        let made = self.admin(Method::POST, "/api/dcim/devices/", Some(device)).await.json().unwrap();
        made["id"].as_u64().unwrap()
    }

    async fn delete(&self, id: u64) {
        self.admin(Method::DELETE, &format!("/api/dcim/devices/{id}/"), None).await;
    }

    /// What somebody would see who reads NetBox for the first time.
    async fn fresh(&self) -> Vec<Device> {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        self.observer(&store).sync_full().await.unwrap();
        rows(&store)
    }

    /// Waits until every row here is what a fresh reading gives; says how long that took.
    async fn agrees(&self, after: &str) -> Duration {
        let (began, fresh) = (Instant::now(), self.fresh().await);
        loop {
            let here = rows(&self.store);
            if here == fresh {
                return began.elapsed();
            }
            if began.elapsed() > SOON {
                panic!("after {after}: here\n{here:#?}\na fresh reading gives\n{fresh:#?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn named(&self, id: u64) -> Option<String> {
        self.store.devices().unwrap().into_iter().find(|device| device.netbox_id == id).map(|device| device.name)
    }
}

/// By id, without the time of reading.
fn rows(store: &Store) -> Vec<Device> {
    let mut rows = store.devices().unwrap();
    rows.sort_by_key(|device| device.netbox_id);
    rows.into_iter().map(|device| Device { read_at: jiff::Timestamp::UNIX_EPOCH, ..device }).collect()
}

/// Proves: O4, O5, O6, S3
#[tokio::test]
async fn whatever_happens_in_netbox_the_lists_become_what_a_fresh_reading_gives() {
    let Some(site) = watched() else { return };
    let (a, b) = (site.add("osl1-b07-u31", 31).await, site.add("osl1-b07-u33", 33).await);
    site.start();
    println!("first reading: {:.1?}", site.agrees("the start").await);

    // NetBox wants names to be unique at each moment.
    site.patch(a, json!({"name": "osl1-b07-swap"})).await;
    site.patch(b, json!({"name": "osl1-b07-u31"})).await;
    site.patch(a, json!({"name": "osl1-b07-u33"})).await;
    println!("names swapped: {:.1?}", site.agrees("a swap of names").await);
    assert_eq!((site.named(a).unwrap(), site.named(b).unwrap()), ("osl1-b07-u33".into(), "osl1-b07-u31".into()));

    site.patch(a, json!({"position": null, "face": ""})).await;
    println!("without a unit: {:.1?}", site.agrees("a device without a unit").await);
    site.patch(a, json!({"position": 35, "face": "front", "serial": "X-35"})).await;
    println!("in another unit: {:.1?}", site.agrees("a move").await);

    site.delete(b).await;
    println!("deleted: {:.1?}", site.agrees("a deletion").await);
    assert_eq!(site.named(b), None);

    let before = rows(&site.store);
    site.door.shut();
    site.patch(a, json!({"status": "active", "asset_tag": "A-35"})).await;
    let error = || site.store.syncs().unwrap().into_iter().find(|s| s.key == SYSTEM).and_then(|s| s.error);
    let until = Instant::now() + SOON;
    while error().is_none() {
        assert!(Instant::now() < until, "nobody noticed that NetBox is away");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(rows(&site.store), before, "the last view stays");
    site.door.reopen();
    println!("back after an outage: {:.1?}", site.agrees("an outage").await);
    assert_eq!(error(), None, "and it is said to be well again");

    site.delete(a).await;
    site.agrees("the end").await;
    site.stop.cancel();
}
