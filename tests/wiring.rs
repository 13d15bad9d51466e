//! The wiring and what it does for devices: changed rows only, paths that change far away, moves and deletions, restarts.

#[path = "support/lists.rs"]
mod lists;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lists::Lists;
use muster::clients::netbox::NetBox;
use muster::config::settings::NetboxSettings;
use muster::domain::wiring::{Cable, FirmwarePolicy, Interface, IpAddress, MacAddress};
use muster::inventory::netbox::{ObserveError, Observer};
use muster::inventory::wiring::{WiringObserver, confirmed_at};
use muster::store::{ObjectKind, Store};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::{MockServer, ResponseTemplate};

struct Rig {
    lists: Lists,
    _server: MockServer,
    settings: NetboxSettings,
    store: Store,
    devices: Arc<Observer>,
    wiring: WiringObserver,
    _folder: tempfile::TempDir,
}

/// A host with two NICs: eth0 straight to a switch, eth1 through a patch panel; and a second host with none of it.
async fn rig() -> Rig {
    let lists = Lists::default();
    let old = |mut row: Value| {
        row["last_updated"] = json!("2026-11-01T08:00:00Z");
        row
    };
    lists.put(
        "device-roles",
        old(json!({"id": 1, "name": "GPU", "slug": "gpu", "custom_fields": {"device_class": "COMPUTE_GPU"}})),
    );
    let maker = json!({"id": 1, "name": "Supermicro"});
    lists.put("device-types", old(json!({"id": 1, "model": "SYS-221H", "manufacturer": maker, "u_height": 2.0})));
    lists.put(
        "sites",
        old(json!({"id": 1, "name": "Oslo 1", "slug": "osl1", "custom_fields": {"ntp_server_1": "192.0.2.1"}})),
    );
    let site = json!({"id": 1, "name": "Oslo 1", "slug": "osl1"});
    lists.put("locations", old(json!({"id": 1, "name": "Hall B", "slug": "hall-b", "site": site, "parent": null})));
    lists.put("racks", old(json!({"id": 1, "name": "B07", "site": site, "location": {"id": 1, "name": "Hall B", "slug": "hall-b"}, "u_height": 48})));
    for (id, name) in [(1, "gpu-b07-37"), (2, "gpu-b07-35"), (8, "panel-b07"), (9, "leaf-b07-1")] {
        lists.put("devices", old(device(id, name)));
    }
    lists.put(
        "interfaces",
        old(json!({"id": 10, "name": "bond0", "device": of(1), "type": {"value": "lag"}, "lag": null})),
    );
    lists.put("interfaces", old(interface(11, "eth0", 1, Some(10), Some(100), interface_end(91, 9, "swp11"))));
    let panel = end("dcim.frontport", 81, 8, "front 3");
    lists.put("interfaces", old(interface(12, "eth1", 1, Some(10), Some(101), panel.clone())));
    lists.change("interfaces", 12, |row| {
        row["connected_endpoints"] = json!([peer(92, 9, "swp12")]);
        row["connected_endpoints_type"] = json!("dcim.interface");
    });
    lists.put("interfaces", old(interface(13, "bmc", 1, None, None, Value::Null)));
    lists.put("interfaces", old(interface(21, "eth0", 2, None, None, Value::Null)));
    lists.put(
        "interfaces",
        old(json!({"id": 90, "name": "bond11", "device": of(9), "type": {"value": "lag"}, "lag": null})),
    );
    lists.put("interfaces", old(interface(91, "swp11", 9, Some(90), Some(100), interface_end(11, 1, "eth0"))));
    lists.put("interfaces", old(interface(92, "swp12", 9, None, Some(102), end("dcim.rearport", 82, 8, "rear 1"))));
    lists.put("cables", old(cable(100, "blue", ("dcim.interface", 11, 1, "eth0"), ("dcim.interface", 91, 9, "swp11"))));
    lists.put("cables", old(cable(101, "a", ("dcim.interface", 12, 1, "eth1"), ("dcim.frontport", 81, 8, "front 3"))));
    lists.put("cables", old(cable(102, "b", ("dcim.rearport", 82, 8, "rear 1"), ("dcim.interface", 92, 9, "swp12"))));
    for (id, port) in [(31, 11), (32, 12), (33, 13)] {
        lists.put("mac-addresses", old(mac(id, port, 1)));
    }
    lists.put("ip-addresses", old(ip(41, "192.0.2.37/24", 13, 1)));
    // The newest of their lists: what is older than the overlap comes with no delta.
    for (list, id) in [("devices", 9), ("interfaces", 90)] {
        lists.change(list, id, |row| row["last_updated"] = json!("2026-11-02T08:00:00Z"));
    }
    let server = lists.serve().await;
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\npoll_s = 0.02\nresync_s = 600\nparts_s = 0.02\n\
         [netbox.wiring]\npoll_s = 0.02\ncables_s = 0.05\nresync_s = 600\nrefresh_s = 3600\n\
         [ironic.main]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_GPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        server.uri()
    );
    let settings = muster::config::parse(&text, "wiring.toml").unwrap_or_else(|e| panic!("{e}")).netbox;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let (devices, wiring) = observers(&settings, &store);
    Rig { lists, _server: server, settings, store, devices, wiring, _folder: folder }
}

fn observers(settings: &NetboxSettings, store: &Store) -> (Arc<Observer>, WiringObserver) {
    let netbox = NetBox::new(settings, "t".to_owned().into()).unwrap();
    let devices = Arc::new(Observer::new(netbox.clone(), store.clone(), settings));
    let wiring = WiringObserver::new(netbox, store.clone(), &settings.cadences, Arc::clone(&devices));
    (devices, wiring)
}

fn of(device: u64) -> Value {
    json!({"id": device, "name": format!("d{device}")})
}

fn peer(id: u64, device: u64, name: &str) -> Value {
    json!({"id": id, "name": name, "device": of(device)})
}

/// Kind and port of a cable's far end.
fn end(kind: &str, id: u64, device: u64, name: &str) -> Value {
    json!({"kind": kind, "port": peer(id, device, name)})
}

fn interface_end(id: u64, device: u64, name: &str) -> Value {
    end("dcim.interface", id, device, name)
}

fn interface(id: u64, name: &str, device: u64, lag: Option<u64>, cable: Option<u64>, near: Value) -> Value {
    let peers = if near.is_null() { json!([]) } else { json!([near["port"]]) };
    json!({
        "id": id, "name": name, "device": of(device), "type": {"value": "100gbase-x-qsfp28"}, "enabled": true,
        "mgmt_only": name == "bmc", "label": "", "description": "", "mac_address": null,
        "lag": lag.map(|id| json!({"id": id, "name": "bond0"})), "cable": cable.map(|id| json!({"id": id})),
        "link_peers": peers, "link_peers_type": near["kind"], "connected_endpoints": null, "connected_endpoints_type": null,
    })
}

fn cable(id: u64, label: &str, a: (&str, u64, u64, &str), b: (&str, u64, u64, &str)) -> Value {
    let ends = |(kind, id, device, name): (&str, u64, u64, &str)| json!([{"object_type": kind, "object_id": id, "object": peer(id, device, name)}]);
    json!({"id": id, "label": label, "color": "2196f3", "status": {"value": "connected"}, "a_terminations": ends(a), "b_terminations": ends(b)})
}

fn mac(id: u64, port: u64, device: u64) -> Value {
    json!({
        "id": id, "mac_address": format!("52:54:00:00:00:{id}"), "assigned_object_type": "dcim.interface",
        "assigned_object_id": port, "assigned_object": peer(port, device, "x"),
    })
}

fn ip(id: u64, address: &str, port: u64, device: u64) -> Value {
    json!({
        "id": id, "address": address, "dns_name": "", "assigned_object_type": "dcim.interface",
        "assigned_object_id": port, "assigned_object": peer(port, device, "x"),
    })
}

fn device(id: u64, name: &str) -> Value {
    json!({
        "id": id, "name": name, "position": 37.0, "serial": "", "asset_tag": null, "tenant": null,
        "device_type": {"id": 1, "manufacturer": {"id": 1, "name": "Supermicro"}, "model": "SYS-221H"},
        "role": {"id": 1, "name": "GPU", "slug": "gpu"}, "site": {"id": 1, "name": "Oslo 1", "slug": "osl1"},
        "location": {"id": 1, "name": "Hall B", "slug": "hall-b"}, "rack": {"id": 1, "name": "B07"},
        "face": {"value": "front"}, "status": {"value": "staged"}, "tags": [], "custom_fields": {},
        "oob_ip": {"id": 41, "address": "192.0.2.37/24"}, "config_context": {},
    })
}

/// NetBox stamps what it writes.
fn touch(row: &mut Value) {
    row["last_updated"] = json!(Timestamp::now().to_string());
}

impl Rig {
    fn interface(&self, id: u64) -> Interface {
        self.store.object::<Interface>(id).unwrap().unwrap_or_else(|| panic!("no interface {id}")).object
    }

    fn names_of(&self, device: u64) -> Vec<String> {
        self.store.objects_of::<Interface>(device).unwrap().into_iter().map(|read| read.object.name).collect()
    }

    fn health(&self) -> muster::store::SyncState {
        self.store.syncs().unwrap().into_iter().find(|s| s.key == "netbox:wiring").unwrap()
    }
}

/// Proves: O3
#[tokio::test]
async fn the_first_read_has_all_of_the_wiring_and_the_next_ones_write_nothing() {
    let rig = rig().await;
    let report = rig.wiring.sync_delta().await.unwrap();
    assert_eq!((report.read, report.changed, report.incomplete), (15, 15, false));
    let eth1 = rig.interface(12);
    assert_eq!((eth1.near[0].name.as_deref(), eth1.near[0].kind.as_str()), (Some("front 3"), "dcim.frontport"));
    assert_eq!((eth1.far[0].netbox_id, eth1.far[0].device), (92, Some(9)));
    assert!(eth1.is_indirect() && !rig.interface(11).is_indirect());
    assert_eq!(rig.interface(11).far[0].netbox_id, 91, "a cable straight to an interface is its own path");
    assert_eq!(rig.store.objects_of::<IpAddress>(13).unwrap()[0].object.address, "192.0.2.37/24");
    assert_eq!(rig.store.objects::<Cable>().unwrap().iter().filter(|cable| cable.is_direct()).count(), 1);
    for _ in 0..2 {
        assert_eq!(rig.wiring.sync_delta().await.unwrap().changed, 0);
        assert_eq!(rig.wiring.sync_cables().await.unwrap().changed, 0);
        assert_eq!(rig.wiring.resync().await.unwrap().changed, 0);
        assert_eq!(rig.wiring.refresh().await.unwrap().changed, 0);
    }
}

/// Proves: O2, O4. Case: C-40
#[tokio::test]
async fn an_interface_that_moved_is_at_its_new_device_at_once_and_a_deleted_one_falls_at_the_resync() {
    let rig = rig().await;
    rig.wiring.sync_delta().await.unwrap();
    let before = confirmed_at(&rig.store).unwrap();
    rig.lists.change("interfaces", 13, |row| {
        row["device"] = of(2);
        touch(row);
    });
    rig.lists.delete("interfaces", 11);
    rig.lists.delete("mac-addresses", 31);
    assert_eq!(rig.wiring.sync_delta().await.unwrap().changed, 1);
    assert_eq!(rig.names_of(2), ["bmc", "eth0"]);
    assert_eq!(rig.names_of(1), ["bond0", "eth0", "eth1"], "what is gone waits for the resync");
    assert_eq!(confirmed_at(&rig.store), Some(before), "and its age says since when nobody confirmed it");
    rig.wiring.resync().await.unwrap();
    assert_eq!(rig.names_of(1), ["bond0", "eth1"]);
    assert!(rig.store.object::<MacAddress>(31).unwrap().is_none() && confirmed_at(&rig.store).unwrap() > before);
}

/// Proves: O3
#[tokio::test]
async fn a_mac_that_moved_without_a_word_of_its_interfaces_has_both_read_again() {
    let rig = rig().await;
    rig.lists.change("interfaces", 11, |row| row["mac_address"] = json!("52:54:00:00:00:31"));
    rig.wiring.sync_delta().await.unwrap();
    // As NetBox does it: the interfaces change, and their times do not.
    rig.lists.change("interfaces", 11, |row| row["mac_address"] = Value::Null);
    rig.lists.change("interfaces", 21, |row| row["mac_address"] = json!("52:54:00:00:00:31"));
    rig.lists.put("mac-addresses", mac(31, 21, 2));
    rig.wiring.sync_delta().await.unwrap();
    assert_eq!((rig.interface(11).mac, rig.interface(21).mac.as_deref()), (None, Some("52:54:00:00:00:31")));
}

/// Proves: O3
#[tokio::test]
async fn a_cable_in_the_middle_of_a_path_changes_what_is_at_its_ends() {
    let rig = rig().await;
    rig.wiring.sync_delta().await.unwrap();
    let path = |ends: Value| {
        rig.lists.change("interfaces", 12, |row| {
            row["connected_endpoints_type"] = if ends.is_null() { Value::Null } else { json!("dcim.interface") };
            row["connected_endpoints"] = ends;
        });
    };
    // Pulled out behind the panel: eth1 was not written.
    rig.lists.delete("cables", 102);
    path(Value::Null);
    rig.wiring.sync_delta().await.unwrap();
    assert_eq!(rig.interface(12).far.len(), 1, "no time moved that a delta sees");
    rig.wiring.sync_cables().await.unwrap();
    assert!(rig.interface(12).far.is_empty() && rig.store.object::<Cable>(102).unwrap().is_none());
    // Plugged elsewhere.
    let (rear, port) = (("dcim.rearport", 82, 8, "rear 1"), ("dcim.interface", 93, 9, "swp13"));
    rig.lists.put("cables", cable(103, "c", rear, port));
    path(json!([peer(93, 9, "swp13")]));
    rig.lists.take_asked();
    rig.wiring.sync_cables().await.unwrap();
    assert_eq!(rig.interface(12).far[0].name.as_deref(), Some("swp13"));
    let asked = rig.lists.take_asked();
    let interfaces: Vec<&String> = asked.iter().filter(|q| q.starts_with("interfaces")).collect();
    assert!(interfaces.len() == 1 && !interfaces[0].contains("id=11&"), "only what hangs on panels: {interfaces:?}");
}

/// Proves: O3
#[tokio::test]
async fn a_store_that_was_filled_before_is_compared_and_not_read_anew() {
    let rig = rig().await;
    rig.wiring.sync_delta().await.unwrap();
    rig.lists.change("interfaces", 21, |row| {
        row["name"] = json!("eth7");
        // Older than any cursor: a transaction that took very long.
        row["last_updated"] = json!("2026-10-01T00:00:00Z");
    });
    rig.lists.take_asked();
    let (_, wiring) = observers(&rig.settings, &rig.store);
    let report = wiring.resync().await.unwrap();
    assert_eq!((report.changed, rig.names_of(2)), (1, vec!["eth7".to_owned()]));
    let asked = rig.lists.take_asked();
    let whole: Vec<&String> = asked.iter().filter(|q| !q.contains("fields=id%2Clast_updated&")).collect();
    assert!(whole.len() == 1 && whole[0].starts_with("interfaces?id=21&"), "{whole:?}");
}

/// Case: C-39
#[tokio::test]
async fn a_server_that_ignores_the_time_is_not_read_as_a_whole_every_few_seconds() {
    let rig = rig().await;
    rig.wiring.sync_delta().await.unwrap();
    rig.lists.with(|state| state.ignores_filters = true);
    // Told only by the comparison from now on.
    rig.wiring.sync_delta().await.unwrap();
    rig.lists.change("interfaces", 21, |row| {
        row["name"] = json!("eth9");
        touch(row);
    });
    rig.lists.take_asked();
    rig.wiring.sync_delta().await.unwrap();
    assert!(rig.lists.take_asked().is_empty());
    rig.wiring.resync().await.unwrap();
    assert_eq!(rig.interface(21).name, "eth9");
}

/// Proves: O4, O6, O7. Case: C-38
#[tokio::test]
async fn a_schema_change_an_outage_an_empty_and_a_wrong_list_leave_the_last_view() {
    let rig = rig().await;
    rig.wiring.sync_delta().await.unwrap();
    let ok_at = rig.health().ok_at.unwrap();
    let other =
        |row: Value| ResponseTemplate::new(200).set_body_json(json!({"count": 1, "next": null, "results": [row]}));
    let mut renamed = interface(11, "eth0", 1, None, None, Value::Null);
    (renamed["device"], renamed["last_updated"]) = (json!("gpu-b07-37"), json!("2026-11-29T08:00:00Z"));
    let mut unended = cable(100, "x", ("dcim.interface", 11, 1, "eth0"), ("dcim.interface", 91, 9, "swp11"));
    unended["a_terminations"] = json!({"interface": 11});
    let ip_of_other_kind = json!({"id": 41, "address": 7, "last_updated": null});
    let broken = [
        ("interfaces", other(renamed), "results[0].device"),
        ("cables", other(unended), "results[0].a_terminations"),
        ("ip-addresses", other(ip_of_other_kind), "results[0].address"),
        ("interfaces", ResponseTemplate::new(503), "503"),
        ("cables", ResponseTemplate::new(403).set_body_json(json!({"detail": "Invalid v2 token"})), "Invalid v2 token"),
    ];
    for (list, answer, says) in broken {
        rig.lists.with(|state| state.broken.insert(list.to_owned(), answer));
        assert!(rig.wiring.refresh().await.is_err(), "{list} {says}");
        let health = rig.health();
        assert!(health.error.as_ref().is_some_and(|e| e.contains(says)), "{says}: {health:?}");
        assert_eq!((health.ok_at, rig.names_of(1).len()), (Some(ok_at), 4), "{list} {says}");
        rig.lists.with(|state| state.broken.clear());
    }
    let empty = ResponseTemplate::new(200).set_body_json(json!({"count": 0, "next": null, "results": []}));
    rig.lists.with(|state| state.broken.insert("interfaces".into(), empty));
    for outcome in [rig.wiring.refresh().await, rig.wiring.resync().await] {
        assert!(matches!(outcome, Err(ObserveError::EmptiedList { what: "interfaces", known: 8, .. })), "{outcome:?}");
    }
    rig.lists.with(|state| {
        state.broken.clear();
        state.lost = Some(("interfaces", 21));
    });
    for outcome in [rig.wiring.refresh().await, rig.wiring.resync().await] {
        assert!(outcome.unwrap().incomplete);
        assert_eq!(rig.names_of(2), ["eth0"], "a list that does not add up removes nothing");
    }
    rig.lists.with(|state| state.lost = None);
    rig.wiring.resync().await.unwrap();
    assert!(rig.health().error.is_none());
}

/// Proves: O3, O6
#[tokio::test]
async fn the_wiring_keeps_up_by_itself_and_through_an_outage() {
    let rig = rig().await;
    let cancel = CancellationToken::new();
    let Rig { lists, store, wiring, .. } = rig;
    let (wiring, token) = (Arc::new(wiring), cancel.clone());
    let task = tokio::spawn(async move { wiring.run(token, || {}).await });
    let name = || store.object::<Interface>(21).unwrap().map(|read| read.object.name);
    until(|| name().as_deref() == Some("eth0") && store.object_count(ObjectKind::Cable).unwrap().0 == 3).await;
    lists.with(|state| state.broken.insert("interfaces".into(), ResponseTemplate::new(503)));
    until(|| store.syncs().unwrap().iter().any(|s| s.key == "netbox:wiring" && s.error.is_some())).await;
    lists.change("interfaces", 21, |row| {
        row["name"] = json!("eth5");
        touch(row);
    });
    lists.delete("cables", 102);
    lists.with(|state| state.broken.clear());
    until(|| name().as_deref() == Some("eth5") && store.object_count(ObjectKind::Cable).unwrap().0 == 2).await;
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(5), task).await.expect("the observer ends").unwrap();
}

/// Proves: O2. Case: C-40
#[tokio::test]
async fn a_part_that_changed_has_its_device_read_again() {
    let rig = rig().await;
    rig.devices.sync_parts().await.unwrap();
    rig.devices.sync_full().await.unwrap();
    let oob = |name: &str| rig.store.device(name).unwrap().unwrap().oob_ip;
    assert_eq!(oob("gpu-b07-37").as_deref(), Some("192.0.2.37"));
    // The address changes, and the device's time does not.
    rig.lists.put("ip-addresses", ip(41, "192.0.2.99/24", 13, 1));
    rig.lists.change("devices", 1, |row| row["oob_ip"]["address"] = json!("192.0.2.99/24"));
    rig.devices.sync_delta().await.unwrap();
    assert_eq!(oob("gpu-b07-37").as_deref(), Some("192.0.2.37"), "no delta of devices tells of it");
    rig.lists.take_asked();
    rig.devices.sync_parts().await.unwrap();
    assert_eq!(rig.devices.sync_queued().await.unwrap().changed, 1);
    assert_eq!(oob("gpu-b07-37").as_deref(), Some("192.0.2.99"));
    let asked = rig.lists.take_asked();
    assert!(asked.iter().any(|q| q.starts_with("devices?id=1&")), "{asked:?}");
    // The overlap tells it again, and nothing is read for that.
    rig.devices.sync_parts().await.unwrap();
    assert_eq!(rig.devices.sync_queued().await.unwrap().read, 0);
    for (list, row) in
        [("interfaces", interface(21, "eth0", 2, None, None, Value::Null)), ("mac-addresses", mac(39, 21, 2))]
    {
        rig.lists.put(list, row);
        rig.devices.sync_parts().await.unwrap();
        assert_eq!(rig.devices.sync_queued().await.unwrap().read, 1, "{list}");
    }
}

/// Proves: O2
#[tokio::test]
async fn a_list_that_the_token_may_not_see_stops_none_of_the_others() {
    let rig = rig().await;
    let refused = json!({"detail": "You do not have permission to perform this action."});
    let refused = ResponseTemplate::new(403).set_body_json(refused);
    rig.lists.with(|state| state.broken.insert("interfaces".into(), refused));
    let page = "<html><title>Page Not Found | NetBox</title></html>";
    rig.lists
        .with(|state| state.broken.insert("mac-addresses".into(), ResponseTemplate::new(404).set_body_string(page)));
    rig.devices.sync_parts().await.unwrap();
    rig.devices.sync_full().await.unwrap();
    rig.lists.put("ip-addresses", ip(41, "192.0.2.99/24", 13, 1));
    rig.devices.sync_parts().await.unwrap();
    assert_eq!(rig.devices.sync_queued().await.unwrap().read, 1);
}

/// Proves: O1, O8
#[tokio::test]
async fn places_and_firmware_policies_are_kept_and_a_changed_role_has_all_devices_read_again() {
    let rig = rig().await;
    let policy = json!({"firmware_policy": {"bmc": {"min": "2.10"}, "bios": {"allow": ["1.4.2"]}}});
    rig.lists.change("devices", 1, |row| row["config_context"] = policy.clone());
    let (observer, cancel, token) = (rig.devices.clone(), CancellationToken::new(), CancellationToken::new());
    rig.devices.sync_places().await.unwrap();
    let rack = &rig.store.places(ObjectKind::Rack).unwrap()[0];
    assert_eq!((rack.name.as_str(), rack.u_height, rack.site.as_deref()), ("B07", Some(48.0), Some("osl1")));
    assert_eq!(rig.store.places(ObjectKind::Site).unwrap()[0].custom_fields["ntp_server_1"], "192.0.2.1");
    let kept = || rig.store.object::<FirmwarePolicy>(1).unwrap().map(|read| read.object);
    assert_eq!(kept().unwrap().rules["bmc"].min.as_deref(), Some("2.10"));
    // A context that changed moves no time of a device: the places' cadence tells it.
    rig.lists.change("devices", 1, |row| row["config_context"] = json!({}));
    rig.devices.sync_places().await.unwrap();
    assert_eq!(kept(), None);
    // A device that was written is read with its context.
    rig.devices.sync_full().await.unwrap();
    rig.lists.change("devices", 1, |row| {
        row["config_context"] = policy;
        touch(row);
    });
    rig.devices.sync_delta().await.unwrap();
    assert_eq!(kept().unwrap().rules["bios"].allow, ["1.4.2"]);
    rig.lists.change("device-roles", 1, |row| row["custom_fields"]["device_class"] = json!("HYPERVISOR"));
    rig.lists.delete("racks", 1);
    rig.lists.put("racks", json!({"id": 2, "name": "B08", "site": {"id": 1, "name": "Oslo 1", "slug": "osl1"}, "location": null, "u_height": 48}));
    rig.devices.sync_places().await.unwrap();
    assert_eq!(rig.store.places(ObjectKind::Rack).unwrap()[0].name, "B08");
    let class = || rig.store.device("gpu-b07-37").unwrap().unwrap().device_class;
    assert_eq!(class().as_deref(), Some("COMPUTE_GPU"));
    let task = tokio::spawn(async move { observer.run(token, || {}).await });
    until(|| class().as_deref() == Some("HYPERVISOR")).await;
    cancel.cancel();
    task.abort();
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
