//! Reads all devices and interfaces of a real NetBox into a new store, as the observers do: `tests/real/netbox/bench` runs
//! it beside other readers of the same pages. MUSTER_REAL_NETBOX names the rig. Prints rows and times, asserts no speed.

use std::time::Instant;

use jiff::Timestamp;
use muster::clients::netbox::NetBox;
use muster::config::settings::Settings;
use muster::inventory::netbox::Observer;
use muster::inventory::wiring::WiringObserver;
use muster::store::Store;
use serde_json::Value;

fn main() {
    let Some(path) = std::env::var_os("MUSTER_REAL_NETBOX") else {
        println!("nothing measured: MUSTER_REAL_NETBOX names no rig (tests/real/netbox/up DIR)");
        return;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let settings = settings(env["url"].as_str().unwrap());
    let netbox = NetBox::new(&settings.netbox, env["token"].as_str().unwrap().to_owned().into()).unwrap();
    let folder = std::env::temp_dir().join(format!("muster-bench-inventory-{}", std::process::id()));
    let store = Store::open(&folder).unwrap();
    let everything = std::env::args().any(|argument| argument == "everything");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(read(&netbox, &store, &settings, everything));
    drop(store);
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn read(netbox: &NetBox, store: &Store, settings: &Settings, everything: bool) {
    let devices = std::sync::Arc::new(Observer::new(netbox.clone(), store.clone(), &settings.netbox));
    let cadences = &settings.netbox.cadences;
    let wiring = WiringObserver::new(netbox.clone(), store.clone(), cadences, devices.clone());
    let began = Instant::now();
    let report = devices.sync_full().await.unwrap();
    println!("devices: {} rows, {:.1} s", report.read, began.elapsed().as_secs_f64());
    let began = Instant::now();
    if !everything {
        let rows = wiring.refresh_interfaces().await.unwrap().read;
        println!("interfaces: {rows} rows, {:.1} s", began.elapsed().as_secs_f64());
        return;
    }
    let report = wiring.refresh().await.unwrap();
    println!("interfaces, MAC and IP addresses, cables: {} rows, {:.1} s", report.read, began.elapsed().as_secs_f64());
    for (what, at) in [("delta", 0), ("cables", 1), ("resync", 2)] {
        let began = Instant::now();
        let report = match at {
            0 => wiring.sync_delta().await,
            1 => wiring.sync_cables().await,
            _ => wiring.resync().await,
        };
        let report = report.unwrap();
        println!("{what} with nothing new: {} rows, {:.1} s", report.read, began.elapsed().as_secs_f64());
    }
    assert!(store.syncs().unwrap().iter().all(|system| system.error.is_none()), "at {}", Timestamp::now());
}

fn settings(url: &str) -> Settings {
    let text = format!(
        "[netbox]\nurl = \"{url}\"\ntoken = \"env:UNUSED\"\ntimeout_s = 120\n\
         [ironic.main]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_CPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n"
    );
    muster::config::parse(&text, "bench.toml").unwrap_or_else(|e| panic!("{e}"))
}
