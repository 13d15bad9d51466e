//! Push from a real NetBox: its event rules with rqworker, and the trigger script in its PostgreSQL.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use muster::app::App;
use muster::clients::http::{HttpClient, HttpOptions, Method};
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::{NatsSettings, PostgresSettings, PushSettings, SecretRef, Trust, WebhookSettings};
use muster::inventory::netbox::Observer;
use muster::inventory::push::{self, Push};
use muster::store::Store;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::nats::Server;

const SECRET: &str = "secret of the real hook";
const PASSWORD: &str = "password of the listener";
/// The cadences of polling here: what a test sees sooner came by push.
const NEVER: Duration = Duration::from_secs(7200);
const PATIENCE: Duration = Duration::from_secs(90);

struct Rig {
    env: Value,
    http: HttpClient,
    netbox: NetBox,
    store: Store,
    vault: Vault,
    observer: Arc<Observer>,
    stop: CancellationToken,
    folder: tempfile::TempDir,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The rig's NetBox with an observer that polls every other hour; `None` where this run has none and may do without.
async fn rig() -> Option<Rig> {
    let Some(path) = std::env::var_os("MUSTER_REAL_NETBOX") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_NETBOX names no rig");
        return None;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\npoll_s = 7200\nresync_s = 7200\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        super::text(&env, "url")
    );
    let settings = muster::config::parse(&text, "real.toml").unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().unwrap();
    super::private(&folder.path().join("hook"), SECRET);
    super::private(&folder.path().join("password"), PASSWORD);
    let store = Store::open(&folder.path().join("state")).unwrap();
    let netbox = NetBox::new(&settings.netbox, super::text(&env, "token").to_owned().into()).unwrap();
    let observer = Arc::new(Observer::new(netbox.clone(), store.clone(), &settings.netbox));
    let http = HttpClient::new("netbox", &settings.netbox.url, &HttpOptions::default()).unwrap();
    let (vault, stop) = (Vault::new(settings.vault.clone()), CancellationToken::new());
    let (running, token) = (observer.clone(), stop.clone());
    tokio::spawn(async move { running.run(token, || {}).await });
    let rig = Rig { env, http, netbox, store, vault, observer, stop, folder };
    rig.until("the first read", || !rig.store.devices().unwrap().is_empty()).await;
    Some(rig)
}

impl Rig {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        super::ask_netbox(&self.http, &self.env, method, path, body).await
    }

    async fn patch(&self, device: u64, body: Value) {
        self.ask(Method::PATCH, &format!("/api/dcim/devices/{device}/"), Some(body)).await;
    }

    /// A spare device, of which nothing else is told.
    async fn make(&self, name: &str) -> u64 {
        let like = self.ask(Method::GET, &format!("/api/dcim/devices/{}/", self.id("osl1-b07-u17")), None).await;
        let body = json!({"name": name, "status": "planned", "site": like["site"]["id"],
                          "role": like["role"]["id"], "device_type": like["device_type"]["id"]});
        self.ask(Method::POST, "/api/dcim/devices/", Some(body)).await["id"].as_u64().unwrap()
    }

    async fn delete(&self, path: &str) {
        self.ask(Method::DELETE, path, None).await;
    }

    fn id(&self, name: &str) -> u64 {
        let devices = self.env["devices"].as_array().unwrap();
        devices.iter().find(|d| d["name"] == name).unwrap()["id"].as_u64().unwrap()
    }

    fn asset_tag(&self, id: u64) -> Option<String> {
        self.store.devices().unwrap().into_iter().find(|d| d.netbox_id == id)?.asset_tag
    }

    fn has(&self, id: u64) -> bool {
        self.store.devices().unwrap().iter().any(|d| d.netbox_id == id)
    }

    fn health(&self, key: &str) -> Option<Result<(), String>> {
        let state = self.store.syncs().unwrap().into_iter().find(|s| s.key == key)?;
        Some(state.error.map_or(Ok(()), Err))
    }

    fn says(&self, key: &str, what: &str) -> bool {
        matches!(self.health(key), Some(Err(error)) if error.contains(what))
    }

    async fn until(&self, what: &str, mut done: impl FnMut() -> bool) -> Duration {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if done() {
                println!("{what}: {} ms", began.elapsed().as_millis());
                return began.elapsed();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it did not come to pass in {PATIENCE:?}: {what}; health {:?}", self.store.syncs());
    }

    fn start(&self, webhook: Option<WebhookSettings>, postgres: Option<PostgresSettings>) -> CancellationToken {
        let settings = PushSettings { poll: NEVER, webhook, postgres };
        let (vault, netbox, store) = (self.vault.clone(), self.netbox.clone(), self.store.clone());
        let push = Push::new(settings, NEVER, vault, netbox, store, self.observer.clone());
        let stop = self.stop.child_token();
        let token = stop.clone();
        tokio::spawn(async move { push.run(token).await });
        stop
    }

    fn secret(&self, name: &str) -> SecretRef {
        SecretRef::File(self.folder.path().join(name))
    }

    fn postgres(&self, tls: bool, trust: Trust) -> PostgresSettings {
        let server = &self.env["postgres"];
        PostgresSettings {
            host: "127.0.0.1".into(),
            port: server["port"].as_u64().unwrap().try_into().unwrap(),
            database: super::text(server, "database").into(),
            user: "muster_push".into(),
            password: self.secret("password"),
            tls,
            trust,
            channel: "muster_netbox".into(),
        }
    }

    fn fingerprint(&self) -> [u8; 32] {
        let certificate = CertificateDer::from_pem_file(super::text(&self.env["postgres"], "ca")).unwrap();
        Sha256::digest(&certificate).into()
    }

    fn psql(&self, arguments: &[&str]) -> String {
        let server = &self.env["postgres"];
        let mut command = Command::new(super::text(server, "psql"));
        command.args(["-h", "127.0.0.1", "-p", &server["port"].to_string(), "-U", super::text(server, "owner")]);
        command.args(["-d", super::text(server, "database"), "-v", "ON_ERROR_STOP=1", "-qAt"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn triggers(&self) -> u32 {
        let count = "SELECT count(*) FROM pg_trigger WHERE tgname = 'muster_notify'";
        self.psql(&["-c", count]).parse().unwrap()
    }
}

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(name)
}

/// Proves: O9, O4
#[tokio::test]
async fn an_event_rule_of_a_real_netbox_brings_its_changes_and_a_wrong_secret_brings_none() {
    let Some(rig) = rig().await else { return };
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hook = WebhookSettings { listen, path: "/netbox".into(), secret: rig.secret("hook"), silence: NEVER };
    rig.start(Some(hook), None);
    rig.until("the receiver", || rig.health(push::WEBHOOK) == Some(Ok(()))).await;
    let name = format!("muster {}", uuid::Uuid::now_v7());
    let webhook = json!({"name": name, "payload_url": format!("http://{listen}/netbox"), "http_method": "POST",
                         "http_content_type": "application/json", "secret": SECRET});
    let webhook = rig.ask(Method::POST, "/api/extras/webhooks/", Some(webhook)).await["id"].as_u64().unwrap();
    // As docs/push.md has it.
    let types = ["dcim.device", "dcim.interface", "dcim.macaddress", "dcim.cable", "ipam.ipaddress", "dcim.rack"];
    let rule = json!({"name": name, "object_types": types, "enabled": true, "action_type": "webhook",
                      "event_types": ["object_created", "object_updated", "object_deleted"],
                      "action_object_type": "extras.webhook", "action_object_id": webhook});
    let rule = rig.ask(Method::POST, "/api/extras/event-rules/", Some(rule)).await["id"].as_u64().unwrap();

    let device = rig.id("osl1-b07-u17");
    rig.patch(device, json!({"asset_tag": "by-webhook"})).await;
    let took = rig.until("a change by webhook", || rig.asset_tag(device).as_deref() == Some("by-webhook")).await;
    assert!(took < Duration::from_secs(45), "{took:?}, and the poll is every {NEVER:?}");
    let spare = rig.make("spare by webhook").await;
    rig.until("a creation by webhook", || rig.has(spare)).await;
    rig.delete(&format!("/api/dcim/devices/{spare}/")).await;
    rig.until("a deletion by webhook", || !rig.has(spare)).await;

    rig.ask(Method::PATCH, &format!("/api/extras/webhooks/{webhook}/"), Some(json!({"secret": "another"}))).await;
    rig.patch(device, json!({"asset_tag": "unsigned"})).await;
    // Until a wrong one has come the source was well, and it stays in use: a stranger must not be able to end it.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(rig.asset_tag(device).as_deref(), Some("by-webhook"), "a wrongly signed event brought a change");
    rig.ask(Method::PATCH, &format!("/api/extras/webhooks/{webhook}/"), Some(json!({"secret": SECRET}))).await;
    rig.patch(device, json!({"asset_tag": null})).await;
    rig.until("the next signed one", || rig.asset_tag(device).is_none()).await;
    rig.delete(&format!("/api/extras/event-rules/{rule}/")).await;
    rig.delete(&format!("/api/extras/webhooks/{webhook}/")).await;
}

/// Proves: O9, O4
#[tokio::test]
async fn triggers_in_a_real_netbox_database_bring_its_changes_and_a_lost_connection_loses_nothing() {
    let Some(rig) = rig().await else { return };
    let role = format!(
        "DO $$ BEGIN CREATE ROLE muster_push LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 5; \
         EXCEPTION WHEN duplicate_object THEN ALTER ROLE muster_push LOGIN PASSWORD '{PASSWORD}'; END $$"
    );
    rig.psql(&["-c", &role]);
    let (make, undo) = (contrib("netbox-notify.sql"), contrib("netbox-notify-undo.sql"));
    let (make, undo) = (make.to_str().unwrap(), undo.to_str().unwrap());
    rig.psql(&["-f", undo]);

    // Without the script the source is no source, and says so.
    let push = rig.start(None, Some(rig.postgres(true, Trust::Pinned(rig.fingerprint()))));
    rig.until("no triggers", || rig.says(push::POSTGRES, "contrib/netbox-notify.sql")).await;
    assert!(rig.says(push::POSTGRES, "'dcim_cable', 'dcim_cabletermination', 'dcim_device'"));
    rig.psql(&["-f", make]);
    let triggers = rig.triggers();
    rig.psql(&["-f", make]);
    assert_eq!((triggers, rig.triggers()), (15, 15), "the second time changes nothing");
    rig.until("the source", || rig.health(push::POSTGRES) == Some(Ok(()))).await;
    let by_tls = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'muster'";
    assert_eq!(rig.psql(&["-c", by_tls]), "t");

    let device = rig.id("osl1-b07-u17");
    rig.patch(device, json!({"asset_tag": "by-notify"})).await;
    let took = rig.until("a change by NOTIFY", || rig.asset_tag(device).as_deref() == Some("by-notify")).await;
    assert!(took < Duration::from_secs(20), "{took:?}, and the poll is every {NEVER:?}");
    let spares = [rig.make("spare 1 by notify").await, rig.make("spare 2 by notify").await];
    rig.until("creations by NOTIFY", || spares.iter().all(|id| rig.has(*id))).await;
    rig.delete(&format!("/api/dcim/devices/{}/", spares[0])).await;
    rig.until("a deletion by NOTIFY", || !rig.has(spares[0])).await;

    // What is notified while nobody listens is made up for: changes and deletions.
    rig.psql(&["-c", "ALTER ROLE muster_push NOLOGIN"]);
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'muster'";
    assert_eq!(rig.psql(&["-c", kill]), "1");
    rig.until("the loss", || matches!(rig.health(push::POSTGRES), Some(Err(_)))).await;
    rig.patch(device, json!({"asset_tag": "unheard"})).await;
    rig.delete(&format!("/api/dcim/devices/{}/", spares[1])).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(rig.asset_tag(device).as_deref() == Some("by-notify") && rig.has(spares[1]), "it was heard of");
    assert!(rig.says(push::POSTGRES, "can't be connected to") && rig.says(push::POSTGRES, "polled every"));
    rig.psql(&["-c", "ALTER ROLE muster_push LOGIN"]);
    rig.until("the change that nobody heard", || rig.asset_tag(device).as_deref() == Some("unheard")).await;
    rig.until("the deletion that nobody heard", || !rig.has(spares[1])).await;
    rig.until("the source again", || rig.health(push::POSTGRES) == Some(Ok(()))).await;

    // The role can do nothing else.
    push.cancel();
    let reads = "SET ROLE muster_push; SELECT count(*) FROM dcim_device";
    let server = &rig.env["postgres"];
    let mut psql = Command::new(super::text(server, "psql"));
    psql.args(["-h", "127.0.0.1", "-p", &server["port"].to_string(), "-U", "netbox", "-d", "netbox", "-c", reads]);
    let output = psql.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("permission denied"), "{output:?}");
    rig.psql(&["-f", undo]);
    rig.psql(&["-f", undo]);
    assert_eq!(rig.triggers(), 0);
    rig.patch(device, json!({"asset_tag": null})).await;
}

/// Proves: O9
#[tokio::test]
async fn a_listener_that_may_not_log_in_or_meets_another_certificate_says_so() {
    let Some(rig) = rig().await else { return };
    rig.psql(&["-c", "DROP ROLE IF EXISTS muster_push"]);
    let role = format!("CREATE ROLE muster_push LOGIN PASSWORD '{PASSWORD}'");
    rig.psql(&["-c", &role]);
    let push = rig.start(None, Some(rig.postgres(true, Trust::Pinned([7; 32]))));
    rig.until("the other certificate", || rig.says(push::POSTGRES, "not the pinned one")).await;
    push.cancel();
    let push = rig.start(None, Some(rig.postgres(true, Trust::System)));
    rig.until("a certificate that nobody signed", || rig.says(push::POSTGRES, "invalid peer certificate")).await;
    push.cancel();
    super::private(&rig.folder.path().join("password"), "another");
    let push = rig.start(None, Some(rig.postgres(false, Trust::System)));
    rig.until("the password", || rig.says(push::POSTGRES, "password authentication failed")).await;
    push.cancel();
    super::private(&rig.folder.path().join("password"), PASSWORD);
    rig.start(None, Some(PostgresSettings { database: "postgres".into(), ..rig.postgres(false, Trust::System) }));
    rig.until("the wrong database", || rig.says(push::POSTGRES, "none of NetBox's tables")).await;
}

/// Proves: O9, O10, O3
#[tokio::test]
async fn a_cable_that_changes_in_a_real_netbox_is_told_over_nats_within_seconds() {
    let Some(rig) = rig().await else { return };
    let Some(server) = Server::start("") else { return };
    rig.psql(&["-c", "DROP ROLE IF EXISTS muster_push"]);
    let role = format!("CREATE ROLE muster_push LOGIN PASSWORD '{PASSWORD}'");
    rig.psql(&["-c", &role, "-f", contrib("netbox-notify.sql").to_str().unwrap()]);
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"file:{}\"\npoll_s = 7200\nparts_s = 7200\nresync_s = 7200\n\
         [netbox.wiring]\npoll_s = 7200\ncables_s = 7200\nresync_s = 7200\nrefresh_s = 7200\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        super::text(&rig.env, "url"),
        rig.folder.path().join("token").display()
    );
    super::private(&rig.folder.path().join("token"), super::text(&rig.env, "token"));
    let mut settings = muster::config::parse(&text, "real.toml").unwrap_or_else(|e| panic!("{e}"));
    let postgres = rig.postgres(true, Trust::Pinned(rig.fingerprint()));
    settings.push = Some(PushSettings { poll: NEVER, webhook: None, postgres: Some(postgres) });
    settings.nats = Some(NatsSettings { publish_devices: false, ..server.settings() });
    let mut all = server.listen().await;
    let app = App::open(settings, &rig.folder.path().join("app")).await.unwrap();
    // This server gives few rows at a time.
    let mut cables = Vec::new();
    loop {
        let page = rig.ask(Method::GET, &format!("/api/dcim/cables/?offset={}", cables.len()), None).await;
        cables.extend(page["results"].as_array().unwrap().iter().cloned());
        if page["next"].is_null() {
            break;
        }
    }
    // One that has lost its ends is nobody's.
    cables.retain(|cable| cable["a_terminations"] != json!([]));
    // All of them are new to this inventory.
    for _ in &cables {
        assert_eq!(told(&mut all).await.1["change"], "added");
    }
    let well = || app.fleet().unwrap().systems.iter().any(|s| s.name == push::POSTGRES && s.error.is_none());
    rig.until("the source", well).await;

    let cable = cables.iter().find(|cable| cable["label"] == "osl1-b07-u17-eth0").unwrap();
    let (id, path) = (cable["id"].as_u64().unwrap(), format!("/api/dcim/cables/{}/", cable["id"]));
    let began = Instant::now();
    rig.ask(Method::PATCH, &path, Some(json!({"label": "another"}))).await;
    let (subject, payload) = told(&mut all).await;
    println!("a changed cable by NOTIFY, read and told: {} ms", began.elapsed().as_millis());
    assert_eq!(subject, format!("muster.inventory.osl1.cable.{id}.updated"));
    assert_eq!((&payload["change"], &payload["label"]), (&json!("changed"), &json!("another")));
    rig.delete(&path).await;
    let (subject, payload) = told(&mut all).await;
    assert_eq!((subject, &payload["change"]), (format!("muster.inventory.osl1.cable.{id}.deleted"), &json!("removed")));
    // As it was, under another id.
    let ends = |side: &str| {
        let ends = cable[side].as_array().unwrap().iter();
        ends.map(|end| json!({"object_type": end["object_type"], "object_id": end["object_id"]})).collect::<Vec<_>>()
    };
    let again = json!({"a_terminations": ends("a_terminations"), "b_terminations": ends("b_terminations"), "status": "connected",
                       "type": cable["type"], "label": cable["label"], "color": cable["color"]});
    let again = rig.ask(Method::POST, "/api/dcim/cables/", Some(again)).await["id"].as_u64().unwrap();
    let (subject, payload) = told(&mut all).await;
    assert_eq!(
        (subject, &payload["change"]),
        (format!("muster.inventory.osl1.cable.{again}.updated"), &json!("added"))
    );
    let device = rig.id("osl1-b07-u17");
    let wired = app.wiring(device).unwrap().interfaces;
    let eth0 = wired.iter().find(|wired| wired.name == "eth0").unwrap();
    assert_eq!(eth0.cable.as_ref().map(|cable| cable.netbox_id), Some(again), "the interface knows its cable, too");
    app.shutdown().await;
    rig.psql(&["-f", contrib("netbox-notify-undo.sql").to_str().unwrap()]);
}

async fn told(all: &mut async_nats::Subscriber) -> (String, Value) {
    let message = tokio::time::timeout(PATIENCE, all.next()).await.expect("a message in time").expect("a connection");
    (message.subject.to_string(), serde_json::from_slice(&message.payload).unwrap())
}
