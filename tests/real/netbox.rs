//! NetBox's part of an enrollment against a real NetBox. What a test changes it puts back.

use std::sync::Arc;

use muster::activities::env::{ActivityCx, Env};
use muster::activities::facts;
use muster::activities::netbox::{activate, add_tag, platform_class, status_gate};
use muster::clients::Clients;
use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::netbox::NetBox;
use muster::clients::netbox::error::NetBoxError;
use muster::clients::vault::Vault;
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::inventory::netbox::Observer;
use muster::store::Store;
use muster::workflows::defs::{AddTagIn, Target};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The rig's NetBox, or `None` where this run has none and may do without.
struct Rig {
    env: Value,
    cx: ActivityCx,
    observer: Observer,
    _folder: tempfile::TempDir,
}

fn rig() -> Option<Rig> {
    let Some(path) = std::env::var_os("MUSTER_REAL_NETBOX") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_NETBOX names no rig");
        return None;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let token = env["token"].as_str().unwrap().to_owned();
    Some(rig_with(env, &token))
}

fn rig_with(env: Value, token: &str) -> Rig {
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\n[ironic.main]\nurl = \"http://127.0.0.1:9\"\n\
         device_classes = [\"COMPUTE_GPU\", \"COMPUTE_CPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        env["url"].as_str().unwrap()
    );
    let settings = muster::config::parse(&text, "real.toml").unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let netbox = NetBox::new(&settings.netbox, token.to_owned().into()).unwrap();
    let observer = Observer::new(netbox.clone(), store.clone(), &settings.netbox);
    let env_of_activities = Env {
        vault: Vault::new(settings.vault.clone()),
        settings: Arc::new(settings),
        store,
        refresh_nodes: tokio::sync::Notify::new(),
        clients: Clients { netbox, ironic: Default::default() },
    };
    let cx = ActivityCx {
        env: Arc::new(env_of_activities),
        run: RunId(uuid::Uuid::now_v7()),
        seq: 1,
        attempt: 1,
        stop: CancellationToken::new(),
        sink: Arc::new(|_| {}),
    };
    Rig { env, cx, observer, _folder: folder }
}

impl Rig {
    fn target(&self, host: &str) -> Target {
        let devices = self.env["devices"].as_array().unwrap();
        let found = devices.iter().find(|d| d["name"] == host).unwrap_or_else(|| panic!("the rig has no '{host}'"));
        let netbox_id = found["id"].as_u64().unwrap();
        Target { host: host.into(), netbox_id, site: "osl1".into(), ironic: "main".into() }
    }

    /// Changes a device as its administrator.
    async fn patch(&self, id: u64, body: Value) {
        let url = self.env["url"].as_str().unwrap().parse().unwrap();
        let http = HttpClient::new("netbox", &url, &HttpOptions::default()).unwrap();
        let token = format!("Bearer {}", self.env["admin_token"].as_str().unwrap());
        let request = Request::new(Method::PATCH, format!("/api/dcim/devices/{id}/")).json(body);
        let answer = http.send(request.auth(Auth::Authorization(token.into()))).await.unwrap();
        assert!(answer.status.is_success(), "{}", answer.excerpt());
    }

    async fn untouched(&self, id: u64) {
        let body = json!({"status": "staged", "tags": [], "custom_fields": {"platform_class": null}});
        self.patch(id, body).await;
    }
}

/// Proves: G4, A1, P9, P10, O11
#[tokio::test]
async fn a_host_is_walked_through_and_the_second_walk_writes_nothing() {
    let Some(rig) = rig() else { return };
    let target = rig.target("osl1-b07-u13");
    rig.untouched(target.netbox_id).await;
    rig.observer.sync_full().await.unwrap();
    let mut stamps = vec![];
    for _ in 0..2 {
        status_gate(&rig.cx, target.clone()).await.unwrap();
        let class = platform_class(&rig.cx, target.clone()).await.unwrap();
        assert!(class.effective.starts_with("H200_") && class.effective.ends_with("_IB_01"), "{class:?}");
        activate(&rig.cx, target.clone()).await.unwrap();
        for tag in ["ipmi_exporter", "ironic"] {
            add_tag(&rig.cx, AddTagIn { target: target.clone(), phase: Phase::Finalize, tag: tag.into() })
                .await
                .unwrap();
        }
        // Every write moves this time, even one that changes nothing.
        let device = rig.cx.env.clients.netbox.device(target.netbox_id).await.unwrap().record;
        stamps.push(device.last_updated.unwrap());
        let tags: Vec<&str> = device.tags.iter().map(|t| t.slug.as_str()).collect();
        assert_eq!((device.status.value.as_str(), tags.len()), ("active", 2), "{tags:?}");
    }
    assert_eq!(stamps[0], stamps[1]);
    assert!(rig.observer.sync_delta().await.unwrap().changed >= 1);
    let device = rig.cx.env.store.device(&target.host).unwrap().unwrap();
    assert_eq!((device.status.as_str(), device.tags.len()), ("active", 2));
    rig.untouched(target.netbox_id).await;
}

#[tokio::test]
async fn facts_have_both_ends_of_every_cable() {
    let Some(rig) = rig() else { return };
    let host = facts::read(&rig.cx, &rig.target("osl1-b07-u11"), Phase::Inspection).await.unwrap();
    assert!(host.place().starts_with("B07 U"), "{}", host.place());
    assert!(host.oob_ip.is_some() && host.management.as_ref().is_some_and(|m| m.mac.is_some()));
    assert_eq!(host.site.fields["ntp_server_1"], "192.0.2.21");
    assert_eq!(host.device_class.as_deref(), Some("COMPUTE_GPU"));
    for interface in host.frontend() {
        let peer = interface.peer.as_ref().unwrap_or_else(|| panic!("{} has no peer", interface.name));
        assert!(peer.switch.starts_with("leaf-b07-") && !peer.port.is_empty());
        assert!(peer.port_lag.is_some() && peer.cable_color.is_some(), "{peer:?}");
    }
    assert_eq!(host.frontend().len(), 2);
    assert!(host.duplicate_mac().is_none());
}

/// Proves: O11
#[tokio::test]
async fn an_old_etag_an_unknown_tag_and_a_wrong_token_are_refused_as_expected() {
    let Some(rig) = rig() else { return };
    let target = rig.target("osl1-b07-u17");
    let netbox = &rig.cx.env.clients.netbox;
    let old = netbox.device_plain(target.netbox_id).await.unwrap();
    assert!(old.etag.is_some());
    rig.patch(target.netbox_id, json!({"comments": "seen"})).await;
    let error = netbox.set_status(target.netbox_id, "failed", old.etag.as_deref()).await.unwrap_err();
    assert!(matches!(error, NetBoxError::Conflict { .. }), "{error}");

    let input = AddTagIn { target: target.clone(), phase: Phase::Finalize, tag: "nosuch".into() };
    let failure = add_tag(&rig.cx, input).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::NetboxDataMissing, "{failure:?}");

    let error = netbox.set_custom_field(target.netbox_id, "nosuch", "x", None).await.unwrap_err();
    assert!(error.to_string().contains("does not exist for this object type"), "{error}");

    let missing = Target { host: "nobody".into(), netbox_id: 999_999, ..target.clone() };
    let failure = status_gate(&rig.cx, missing).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::DeviceNotFound, "{failure:?}");

    let stranger = rig_with(rig.env.clone(), "nbt_aaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
    let failure = status_gate(&stranger.cx, target).await.unwrap_err();
    assert_eq!((failure.code, failure.retryable), (FailureCode::NetboxRefused, false));
}

#[tokio::test]
async fn the_whole_fleet_is_read_and_a_change_comes_with_the_delta() {
    let Some(rig) = rig() else { return };
    let report = rig.observer.sync_full().await.unwrap();
    assert_eq!(report.read, rig.env["devices"].as_array().unwrap().len());
    assert!(!report.incomplete);
    assert_eq!(rig.observer.sync_full().await.unwrap().changed, 0);
    let target = rig.target("osl1-b07-u17");
    let before = rig.cx.env.store.device(&target.host).unwrap().unwrap();
    assert_eq!((before.u_height, before.device_class.as_deref()), (Some(2.0), Some("COMPUTE_CPU")));
    rig.patch(target.netbox_id, json!({"asset_tag": "A-17"})).await;
    let report = rig.observer.sync_delta().await.unwrap();
    assert!(report.changed >= 1 && report.removed == 0, "{report:?}");
    let after = rig.cx.env.store.device(&target.host).unwrap().unwrap();
    assert_eq!(after.asset_tag.as_deref(), Some("A-17"));
    rig.patch(target.netbox_id, json!({"asset_tag": before.asset_tag, "comments": ""})).await;
}
