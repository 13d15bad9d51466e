//! The fleet follows a real NetBox: whatever happens there, the lists here become what a fresh reading gives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster::clients::http::{Answer, Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::netbox::NetBox;
use muster::config::settings::Settings;
use muster::domain::device::Device;
use muster::domain::wiring::{Cable, CableEnd, Interface, IpAddress, MacAddress};
use muster::inventory::netbox::{Observer, SYSTEM};
use muster::inventory::wiring::WiringObserver;
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
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\npoll_s = 0.3\nresync_s = 2\ntimeout_s = 10\nparts_s = 0.3\n\
         [netbox.wiring]\npoll_s = 0.3\ncables_s = 1\nresync_s = 2\n\
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

    fn wiring(&self, store: &Store, devices: &Arc<Observer>) -> WiringObserver {
        let token = self.env["token"].as_str().unwrap().to_owned();
        let netbox = NetBox::new(&self.settings.netbox, token.into()).unwrap();
        WiringObserver::new(netbox, store.clone(), &self.settings.netbox.cadences, Arc::clone(devices))
    }

    fn start(&self) {
        let (observer, stop) = (Arc::new(self.observer(&self.store)), self.stop.clone());
        let (wiring, stop_wiring) = (self.wiring(&self.store, &observer), self.stop.clone());
        tokio::spawn(async move { observer.run(stop, || {}).await });
        tokio::spawn(async move { wiring.run(stop_wiring, || {}).await });
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

    /// Makes an object and says its id.
    async fn make(&self, list: &str, body: Value) -> u64 {
        let made = self.admin(Method::POST, &format!("/api/{list}/"), Some(body)).await.json().unwrap();
        made["id"].as_u64().unwrap()
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
        self.make("dcim/devices", device).await
    }

    async fn delete(&self, id: u64) {
        self.admin(Method::DELETE, &format!("/api/dcim/devices/{id}/"), None).await;
    }

    /// What somebody would see who reads NetBox for the first time.
    async fn fresh(&self) -> View {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let devices = Arc::new(self.observer(&store));
        devices.sync_full().await.unwrap();
        self.wiring(&store, &devices).refresh().await.unwrap();
        view(&store)
    }

    /// Waits until every row here is what a fresh reading gives; says how long that took.
    async fn agrees(&self, after: &str) -> Duration {
        let (began, fresh) = (Instant::now(), self.fresh().await);
        loop {
            let here = view(&self.store);
            if here == fresh {
                return began.elapsed();
            }
            if began.elapsed() > SOON {
                panic!("after {after}: {}", difference(&here, &fresh));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn named(&self, id: u64) -> Option<String> {
        self.store.devices().unwrap().into_iter().find(|device| device.netbox_id == id).map(|device| device.name)
    }
}

/// All rows of all tables, by id.
#[derive(Debug, PartialEq)]
struct View {
    devices: Vec<Device>,
    interfaces: Vec<Interface>,
    macs: Vec<MacAddress>,
    ips: Vec<IpAddress>,
    cables: Vec<Cable>,
}

fn view(store: &Store) -> View {
    View {
        devices: rows(store),
        interfaces: store.objects().unwrap(),
        macs: store.objects().unwrap(),
        ips: store.objects().unwrap(),
        cables: store.objects().unwrap(),
    }
}

fn difference(here: &View, fresh: &View) -> String {
    fn differ<T: std::fmt::Debug + PartialEq>(name: &str, here: &[T], fresh: &[T]) -> String {
        let only = |of: &[T], not: &[T]| {
            of.iter().filter(|row| !not.contains(row)).map(|row| format!("{row:#?}\n")).collect::<String>()
        };
        format!("{name} only here:\n{}{name} only in NetBox:\n{}", only(here, fresh), only(fresh, here))
    }
    [
        differ("devices", &here.devices, &fresh.devices),
        differ("interfaces", &here.interfaces, &fresh.interfaces),
        differ("MAC addresses", &here.macs, &fresh.macs),
        differ("IP addresses", &here.ips, &fresh.ips),
        differ("cables", &here.cables, &fresh.cables),
    ]
    .concat()
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

fn port(device: u64, name: &str) -> Value {
    json!({"device": device, "name": name, "type": "100gbase-x-qsfp28"})
}

fn plug(a: (&str, u64), b: (&str, u64)) -> Value {
    let end = |(kind, id): (&str, u64)| json!([{"object_type": kind, "object_id": id}]);
    json!({"a_terminations": end(a), "b_terminations": end(b), "status": "connected", "label": "test"})
}

/// Proves: O2, O3, O4
#[tokio::test]
async fn the_wiring_becomes_what_a_fresh_reading_gives_through_panels_and_lags_too() {
    let Some(site) = watched() else { return };
    let (a, b) = (site.add("osl1-b07-u31", 31).await, site.add("osl1-b07-u33", 33).await);
    let (panel, leaf) = (site.add("panel-b07-1", 41).await, site.add("leaf-b07-9", 43).await);
    site.start();
    println!("first reading: {:.1?}", site.agrees("the start").await);
    let far = |interface: u64| -> Vec<CableEnd> {
        site.store.object::<Interface>(interface).unwrap().map(|read| read.object.far).unwrap_or_default()
    };

    let (eth0, other) =
        (site.make("dcim/interfaces", port(a, "eth0")).await, site.make("dcim/interfaces", port(b, "eth0")).await);
    let lag = site.make("dcim/interfaces", json!({"device": leaf, "name": "bond31", "type": "lag"})).await;
    let mut swp = port(leaf, "swp31");
    swp["lag"] = json!(lag);
    let swp = site.make("dcim/interfaces", swp).await;
    let on = |interface: u64| json!({"assigned_object_type": "dcim.interface", "assigned_object_id": interface});
    let mut mac = on(eth0);
    mac["mac_address"] = json!("02:B0:07:31:00:00");
    let mac = site.make("dcim/mac-addresses", mac).await;
    let mut ip = on(eth0);
    ip["address"] = json!("198.51.100.131/24");
    let ip = site.make("ipam/ip-addresses", ip).await;
    site.patch(a, json!({"oob_ip": ip})).await;
    println!("interfaces and addresses made: {:.1?}", site.agrees("new parts").await);

    // NetBox lets no interface go to another device; its addresses go, and the device's own time stands still.
    site.admin(Method::PATCH, &format!("/api/ipam/ip-addresses/{ip}/"), Some(json!({"address": "198.51.100.132/24"})))
        .await;
    println!("an address that its device points at: {:.1?}", site.agrees("another address").await);
    site.patch(a, json!({"oob_ip": null})).await;
    site.admin(Method::PATCH, &format!("/api/ipam/ip-addresses/{ip}/"), Some(on(other))).await;
    site.admin(Method::PATCH, &format!("/api/dcim/mac-addresses/{mac}/"), Some(on(other))).await;
    println!("addresses moved: {:.1?}", site.agrees("moved addresses").await);
    site.admin(Method::PATCH, &format!("/api/dcim/interfaces/{eth0}/"), Some(json!({"name": "eth9"}))).await;
    println!("an interface renamed: {:.1?}", site.agrees("a renamed interface").await);

    // eth9 - front 1 | rear 1 - swp31, a member of bond31.
    let rear =
        site.make("dcim/rear-ports", json!({"device": panel, "name": "rear 1", "type": "lc", "positions": 1})).await;
    let through = json!([{"position": 1, "rear_port": rear, "rear_port_position": 1}]);
    let front = json!({"device": panel, "name": "front 1", "type": "lc", "positions": 1, "rear_ports": through});
    let front = site.make("dcim/front-ports", front).await;
    let near = site.make("dcim/cables", plug(("dcim.interface", eth0), ("dcim.frontport", front))).await;
    println!("a cable that ends at a panel: {:.1?}", site.agrees("half a path").await);
    assert!(far(eth0).is_empty());
    let behind = site.make("dcim/cables", plug(("dcim.rearport", rear), ("dcim.interface", swp))).await;
    println!("the path behind the panel: {:.1?}", site.agrees("a whole path").await);
    assert_eq!(far(eth0).iter().map(|end| end.netbox_id).collect::<Vec<_>>(), [swp]);
    assert_eq!(site.store.object::<Interface>(swp).unwrap().unwrap().object.lag, Some(lag));
    site.admin(Method::DELETE, &format!("/api/dcim/cables/{behind}/"), None).await;
    println!("pulled behind the panel: {:.1?}", site.agrees("a path that was cut").await);
    assert!(far(eth0).is_empty());
    site.admin(Method::DELETE, &format!("/api/dcim/cables/{near}/"), None).await;
    let straight = site.make("dcim/cables", plug(("dcim.interface", eth0), ("dcim.interface", swp))).await;
    println!("plugged straight: {:.1?}", site.agrees("a straight cable").await);
    site.admin(Method::PATCH, &format!("/api/dcim/cables/{straight}/"), Some(json!({"color": "ff0000"}))).await;
    println!("another colour: {:.1?}", site.agrees("another colour").await);

    site.admin(Method::DELETE, &format!("/api/ipam/ip-addresses/{ip}/"), None).await;
    site.admin(Method::DELETE, &format!("/api/dcim/mac-addresses/{mac}/"), None).await;
    println!("addresses deleted: {:.1?}", site.agrees("deleted addresses").await);
    for device in [a, b, panel, leaf] {
        site.delete(device).await;
    }
    println!("devices deleted with all they had: {:.1?}", site.agrees("the end").await);
    // NetBox keeps a cable that has lost both of its ends.
    site.admin(Method::DELETE, &format!("/api/dcim/cables/{straight}/"), None).await;
    println!("the cable that was left: {:.1?}", site.agrees("no cable left").await);
    site.stop.cancel();
}

/// Proves: O1, O4. Case: C-38
#[tokio::test]
async fn devices_that_go_while_a_list_is_read_hide_none_of_those_that_stay() {
    let Some(site) = watched() else { return };
    let like = site.env["devices"].as_array().unwrap().iter().find(|d| d["name"] == "osl1-b07-u17").unwrap();
    let like = site.admin(Method::GET, &format!("/api/dcim/devices/{}/", like["id"]), None).await.json().unwrap();
    let row = |name: String| json!({"name": name, "device_type": like["device_type"]["id"], "role": like["role"]["id"], "site": like["site"]["id"], "status": "planned"});
    let make = async |what: &str| -> Vec<u64> {
        let rows: Vec<Value> = (0..40).map(|n| row(format!("{what}-{n:02}"))).collect();
        let made = site.admin(Method::POST, "/api/dcim/devices/", Some(json!(rows))).await.json().unwrap();
        made.as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
    };
    let (go, stay) = (make("goes").await, make("stays").await);
    let token = site.env["token"].as_str().unwrap().to_owned();
    let netbox = NetBox::new(&site.settings.netbox, token.into()).unwrap();
    let deleting = async {
        for id in &go {
            site.delete(*id).await;
        }
    };
    let reading = async {
        let (mut lists, mut torn) = (0, 0);
        loop {
            let listing = netbox.devices(None).await.unwrap();
            let told: Vec<u64> = listing.rows.iter().map(|row| row.id).collect();
            let hidden: Vec<&u64> = stay.iter().filter(|id| !told.contains(id)).collect();
            assert!(hidden.is_empty(), "there all the time and not told: {hidden:?}");
            (lists, torn) = (lists + 1, torn + usize::from(!listing.complete));
            if go.iter().all(|id| !told.contains(id)) {
                return (lists, torn);
            }
        }
    };
    let ((lists, torn), ()) = tokio::join!(reading, deleting);
    println!("{lists} lists while 40 devices went, {torn} of them said that they do not add up");
    for id in stay {
        site.delete(id).await;
    }
}
