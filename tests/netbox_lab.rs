//! NetBox's part of an enrollment against the lab: facts, writes that happen once, and an inventory that keeps up.

use std::sync::Arc;

use muster::activities::env::{ActivityCx, Env};
use muster::activities::facts;
use muster::activities::netbox::{activate, add_tag, platform_class, status_gate};
use muster::clients::Clients;
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::Settings;
use muster::domain::eligibility::{Rules, check};
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::inventory::ironic::NodeObserver;
use muster::inventory::netbox::Observer;
use muster::lab::Lab;
use muster::lab::ledger::System;
use muster::lab::scenario::Scenario;
use muster::store::Store;
use muster::workflows::defs::{AddTagIn, Target};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

struct Rig {
    lab: Lab,
    settings: Arc<Settings>,
    cx: ActivityCx,
    observer: Observer,
    _folder: tempfile::TempDir,
}

async fn rig() -> Rig {
    rig_with(None).await
}

async fn rig_with(token: Option<&str>) -> Rig {
    let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = Arc::new(muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap());
    let vault = Vault::new(settings.vault.clone());
    let token: SecretString = match token {
        Some(token) => token.to_owned().into(),
        None => vault.resolve(&settings.netbox.token).await.unwrap(),
    };
    let store = Store::open(&folder.path().join("state")).unwrap();
    let netbox = NetBox::new(&settings.netbox, token).unwrap();
    let ironic = settings.ironic.iter();
    let ironic = ironic.map(|(name, i)| (name.clone(), Ironic::new(name, i, &vault).unwrap())).collect();
    let observer = Observer::new(netbox.clone(), store.clone(), &settings.netbox);
    let env = Env {
        settings: settings.clone(),
        vault,
        store,
        refresh_nodes: tokio::sync::Notify::new(),
        clients: Clients { netbox, ironic },
    };
    let cx = ActivityCx {
        env: Arc::new(env),
        run: RunId(uuid::Uuid::now_v7()),
        seq: 1,
        attempt: 1,
        stop: CancellationToken::new(),
        sink: Arc::new(|_| {}),
    };
    Rig { lab, settings, cx, observer, _folder: folder }
}

impl Rig {
    fn target(&self, host: &str) -> Target {
        let device = self.cx.env.store.device(host).unwrap().unwrap_or_else(|| panic!("no device '{host}'"));
        Target { host: device.name, netbox_id: device.netbox_id, site: device.site, ironic: "lab".into() }
    }

    fn netbox_writes(&self) -> usize {
        self.lab.ledger().iter().filter(|e| e.system == System::Netbox && e.write).count()
    }
}

/// Proves: G4, A1, P10, O11
#[tokio::test]
async fn a_host_is_walked_through_and_the_second_walk_writes_nothing() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    let target = rig.target("gpu-b07-29");
    for walk in 1..=2 {
        status_gate(&rig.cx, target.clone()).await.unwrap();
        platform_class(&rig.cx, target.clone()).await.unwrap();
        activate(&rig.cx, target.clone()).await.unwrap();
        for tag in ["ipmi_exporter", "ironic"] {
            let input = AddTagIn { target: target.clone(), phase: Phase::Finalize, tag: tag.into() };
            add_tag(&rig.cx, input).await.unwrap();
        }
        assert_eq!(rig.netbox_writes(), 4, "walk {walk}");
    }
    rig.observer.sync_delta().await.unwrap();
    let device = rig.cx.env.store.device("gpu-b07-29").unwrap().unwrap();
    assert_eq!(device.status, "active");
    assert!(["ipmi_exporter", "ironic"].iter().all(|tag| device.tags.iter().any(|t| t == tag)), "{:?}", device.tags);
    assert_eq!(device.platform_class.as_deref(), Some("B200_SUPERMICROSYS222GENB_IB_01"));
}

#[tokio::test]
async fn the_facts_of_a_lab_host_are_whole() {
    let rig = rig().await;
    rig.observer.sync_full().await.unwrap();
    let host = facts::read(&rig.cx, &rig.target("gpu-b07-37"), Phase::Inspection).await.unwrap();
    assert_eq!(host.place(), "B07 U37");
    assert!(host.oob_ip.is_some_and(|ip| ip.is_loopback()));
    assert!(host.management.as_ref().is_some_and(|m| m.mac.is_some()));
    let frontend = host.frontend();
    assert!(frontend.len() >= 2 && frontend.iter().all(|i| i.mac.is_some() && i.peer.is_some()), "{frontend:#?}");
    let settings = host.ironic_settings.as_ref().unwrap();
    let lag = settings.bond.as_ref().is_some_and(|bond| bond.is_lag());
    assert!(!lag || frontend.iter().all(|i| i.peer.as_ref().unwrap().port_lag.is_some()), "{frontend:#?}");
    let host = facts::read(&rig.cx, &rig.target("cpu-c01-36"), Phase::Dhcp).await.unwrap();
    assert_eq!(host.oob_ip, None);
}

/// Proves: S1, S3
#[tokio::test]
async fn the_fleet_of_the_lab_is_read_and_judged() {
    let rig = rig().await;
    let report = rig.observer.sync_full().await.unwrap();
    let devices = rig.cx.env.store.devices().unwrap();
    assert_eq!((report.read, report.incomplete), (devices.len(), false));
    let rules = Rules::for_sites(rig.settings.sites.keys().cloned());
    let code = |name: &str| {
        let device = devices.iter().find(|d| d.name == name).unwrap();
        check(device, &rules).err().map(|refusal| refusal.code)
    };
    assert_eq!(code("gpu-b07-37"), None);
    assert_eq!(code("gpu-b07-35"), Some("device_not_placed"));
    assert_eq!(code("gpu-b06-33"), Some("device_status_refused"));
    assert_eq!(code("hv-c02-34"), Some("device_status_refused"));
    let switches = devices.iter().filter(|d| d.device_class.as_deref() == Some("SWITCH")).count();
    assert!(switches > 0 && devices.len() - switches == 32, "{switches} of {}", devices.len());
}

#[tokio::test]
async fn nodes_are_projected_onto_devices_by_name() {
    let rig = rig().await;
    let env = &rig.cx.env;
    for (name, ironic) in &env.clients.ironic {
        let observer = NodeObserver::new(ironic.clone(), env.store.clone(), rig.settings.ironic[name].poll);
        assert!(observer.sync().await.unwrap() > 0);
    }
    let refs = env.store.ironic_refs().unwrap();
    assert_eq!(refs["gpu-b06-41"].state.as_str(), "active");
    assert!(refs["gpu-b06-41"].instance_uuid.is_some());
    assert!(!refs.contains_key("gpu-b07-29"));
}

#[tokio::test]
async fn a_wrong_token_and_an_absent_netbox_are_told_apart() {
    let rig = rig_with(Some("nbt_wrong.token")).await;
    let target = Target { host: "gpu-b07-29".into(), netbox_id: 1, site: "osl1".into(), ironic: "lab".into() };
    let failure = status_gate(&rig.cx, target.clone()).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (FailureCode::NetboxRefused, false));
    assert!(failure.message.contains("Invalid v2 token") && !failure.message.contains("nbt_wrong"), "{failure}");
    assert!(rig.observer.sync_full().await.is_err());
    let Rig { lab, cx, .. } = rig;
    drop(lab);
    // The sockets close a moment after the lab.
    for _ in 0..200 {
        let failure = status_gate(&cx, target.clone()).await.unwrap_err();
        if failure.code == FailureCode::NetboxUnreachable {
            assert!(failure.retryable && failure.message.contains("127.0.0.1:"), "{failure}");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("NetBox still answers");
}
