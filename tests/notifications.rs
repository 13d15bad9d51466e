//! Notifications to a real nats-server, which the tests start themselves on free ports: subjects, payloads, outages, logins.

#[path = "support/door.rs"]
mod door;

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use door::Door;
use futures::StreamExt;
use jiff::Timestamp;
use muster::app::App;
use muster::clients::nats::{Nats, NatsError};
use muster::clients::vault::Vault;
use muster::config::settings::{
    NatsAuth, NatsSettings, PushSettings, SecretRef, Trust, VaultKind, VaultSettings, WebhookSettings,
};
use muster::domain::device::Device;
use muster::inventory::notify::{CableChange, CableEnd, Change, Notifier, SYSTEM};
use muster::lab::Lab;
use muster::lab::netbox::webhook::{self, Webhook};
use muster::lab::scenario::Scenario;
use muster::store::Store;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const PLACES: [&str; 3] = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with the test.
struct Server {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Server {
    /// `None`, with a printed line, where the machine has none.
    fn start(configuration: &str) -> Option<Server> {
        let Some(program) = PLACES.into_iter().find(|place| Path::new(place).exists()) else {
            let missing = "no nats-server (install the Debian package nats-server)";
            assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: {missing}");
            println!("skipped: {missing}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(folder.path().join("nats.conf"), configuration).unwrap();
        let child = spawn(program, folder.path(), port);
        let server = Server { child, port, folder };
        server.wait();
        Some(server)
    }

    fn again(&mut self) {
        let program = PLACES.into_iter().find(|place| Path::new(place).exists()).unwrap();
        self.child = spawn(program, self.folder.path(), self.port);
        self.wait();
    }

    fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    fn wait(&self) {
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "nats-server does not answer: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn settings(&self) -> NatsSettings {
        NatsSettings {
            servers: vec![format!("nats://127.0.0.1:{}", self.port).parse().unwrap()],
            auth: NatsAuth::None,
            trust: Trust::System,
            prefix: "muster".into(),
            publish_devices: true,
            publish_cables: true,
            cable_sites: vec!["osl1".into()],
            queue: 1000,
        }
    }

    /// Listens to everything.
    async fn listen(&self) -> async_nats::Subscriber {
        let client = async_nats::connect(format!("nats://127.0.0.1:{}", self.port)).await.unwrap();
        let all = client.subscribe("muster.>").await.unwrap();
        client.flush().await.unwrap();
        all
    }
}

fn spawn(program: &str, folder: &Path, port: u16) -> Child {
    let mut command = Command::new(program);
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-l", "log", "-c", "nats.conf"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn vault() -> Vault {
    let text = |text: &str| text.to_owned();
    Vault::new(VaultSettings {
        kind: VaultKind::Env,
        dhcp_item: text("d"),
        bmc_item: text("{host}"),
        ipmi_item: text("i"),
    })
}

fn secret(folder: &Path, name: &str, content: &str) -> SecretRef {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    SecretRef::File(path)
}

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
    let end =
        |site: &str, device: &str, port: &str| CableEnd { site: site.into(), device: device.into(), port: port.into() };
    let cable =
        |id, change, ends| CableChange { change, id, label: Some("L".into()), status: Some("connected".into()), ends };
    let ends = vec![end("osl1", "gpu-b07-39", "eth0"), end("zrh", "leaf-1", "swp14")];
    let elsewhere = cable(8, Change::Added, vec![end("zrh", "a", "1"), end("zrh", "b", "1")]);

    let mut all = server.listen().await;
    let only_cables = NatsSettings { publish_devices: false, ..server.settings() };
    let rig = Rig::start(&only_cables, vec![]).await;
    rig.put(vec![device(1, "gpu-b07-39", "osl1")]).await;
    rig.notifier.cables(&[elsewhere.clone(), cable(7, Change::Changed, ends.clone())]);
    let (subject, payload) = next(&mut all).await;
    assert_eq!(subject, "muster.inventory.osl1.cable.7.updated");
    let at: Timestamp = payload["at"].as_str().unwrap().parse().unwrap();
    let expected = json!({"v": 1, "at": at, "kind": "cable", "change": "changed", "netbox_id": 7, "label": "L", "status": "connected",
        "ends": [{"site": "osl1", "device": "gpu-b07-39", "port": "eth0"}, {"site": "zrh", "device": "leaf-1", "port": "swp14"}]});
    assert_eq!(payload, expected);
    rig.notifier.cables(&[cable(7, Change::Removed, ends.clone())]);
    assert_eq!(next(&mut all).await.0, "muster.inventory.osl1.cable.7.deleted");
    drop(rig);

    let only_devices = NatsSettings { publish_cables: false, ..server.settings() };
    let rig = Rig::start(&only_devices, vec![]).await;
    rig.notifier.cables(&[cable(7, Change::Added, ends)]);
    nothing_more(&rig, &mut all, 9).await;
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
    settings.nats = Some(server.settings());
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

/// Proves: O10, K2
#[tokio::test]
async fn users_tokens_and_credential_files_log_in_and_wrong_ones_are_told_without_their_secret() {
    let keys = Keys::new();
    let user = "authorization { user: muster, password: \"right\" }";
    let token = "authorization { token: \"right\" }";
    for (configuration, login) in
        [(user.to_owned(), "user"), (token.to_owned(), "token"), (keys.configuration(), "creds")]
    {
        let Some(server) = Server::start(&configuration) else { return };
        let auth = |content: &str| {
            let secret = secret(server.folder.path(), "secret", content);
            match login {
                "user" => NatsAuth::User { username: "muster".into(), password: secret },
                "token" => NatsAuth::Token(secret),
                _ => NatsAuth::Creds(secret),
            }
        };
        let right = if login == "creds" { keys.creds(&keys.user) } else { "right".to_owned() };
        let with = |auth| NatsSettings { auth, ..server.settings() };
        let nats = Nats::connect(&with(auth(&right)), &vault()).await;
        let nats = nats.unwrap_or_else(|error| panic!("{login}: {error}"));
        nats.publish("muster.x".into(), b"{}".to_vec()).await.unwrap();
        nats.flush().await.unwrap();
        let wrong = if login == "creds" { keys.creds(&nkeys::KeyPair::new_user()) } else { "canary".to_owned() };
        let error = Nats::connect(&with(auth(&wrong)), &vault()).await.err().expect("a refusal");
        assert!(matches!(error, NatsError::Connect { .. }), "{login}: {error:?}");
        assert!(format!("{error} {error:?}").to_lowercase().contains("authorization"), "{login}: {error}");
        assert!(!format!("{error} {error:?}").contains("canary"));
        let none = Nats::connect(&with(NatsAuth::None), &vault()).await;
        assert!(none.is_err(), "{login}: without any");
    }
    let broken = tempfile::tempdir().unwrap();
    let Some(server) = Server::start("") else { return };
    let auth = NatsAuth::Creds(secret(broken.path(), "creds", "canary"));
    let error = Nats::connect(&NatsSettings { auth, ..server.settings() }, &vault()).await.err().unwrap();
    assert!(matches!(error, NatsError::Malformed(_)) && !format!("{error:?}").contains("canary"), "{error:?}");
}

/// Proves: O10
#[tokio::test]
async fn tls_is_by_the_trust_that_is_configured_and_never_falls_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=nats",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            &at("key.pem"),
            "-out",
            &at("cert.pem"),
        ])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no openssl (install openssl)");
        println!("skipped: no openssl");
        return;
    }
    let tls = format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}", at("cert.pem"), at("key.pem"));
    let Some(server) = Server::start(&tls) else { return };
    let url = vec![format!("tls://127.0.0.1:{}", server.port).parse().unwrap()];
    let with = |trust| NatsSettings { servers: url.clone(), trust, ..server.settings() };
    let pem = std::fs::read(folder.path().join("cert.pem")).unwrap();
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use sha2::Digest;
    let print: [u8; 32] = sha2::Sha256::digest(CertificateDer::from_pem_slice(&pem).unwrap()).into();
    let nats = Nats::connect(&with(Trust::Pinned(print)), &vault()).await.unwrap_or_else(|error| panic!("{error}"));
    nats.publish("muster.x".into(), b"{}".to_vec()).await.unwrap();
    nats.flush().await.unwrap();
    for trust in [Trust::Pinned([7; 32]), Trust::System] {
        assert!(Nats::connect(&with(trust), &vault()).await.is_err());
    }
    let Some(plain) = Server::start("") else { return };
    let url = vec![format!("tls://127.0.0.1:{}", plain.port).parse().unwrap()];
    let settings = NatsSettings { servers: url, trust: Trust::Anything, ..plain.settings() };
    assert!(Nats::connect(&settings, &vault()).await.is_err(), "a server without TLS was talked to");
}

/// An operator, an account and a user, as `nsc` would make them.
struct Keys {
    operator: nkeys::KeyPair,
    account: nkeys::KeyPair,
    user: nkeys::KeyPair,
}

impl Keys {
    fn new() -> Keys {
        Keys {
            operator: nkeys::KeyPair::new_operator(),
            account: nkeys::KeyPair::new_account(),
            user: nkeys::KeyPair::new_user(),
        }
    }

    fn jwt(by: &nkeys::KeyPair, of: &nkeys::KeyPair, claims: Value) -> String {
        use base64::Engine;
        let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let head = encode(json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string().as_bytes());
        let id = uuid::Uuid::now_v7().to_string();
        let body = json!({"jti": id, "iat": Timestamp::now().as_second(), "iss": by.public_key(), "name": "rig",
                          "sub": of.public_key(), "nats": claims});
        let signed = format!("{head}.{}", encode(body.to_string().as_bytes()));
        let signature = encode(&by.sign(signed.as_bytes()).unwrap());
        format!("{signed}.{signature}")
    }

    fn configuration(&self) -> String {
        let operator = Self::jwt(&self.operator, &self.operator, json!({"type": "operator", "version": 2}));
        let limits = json!({"subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1,
                            "wildcards": true});
        let account = json!({"type": "account", "version": 2, "limits": limits});
        let account = Self::jwt(&self.operator, &self.account, account);
        let name = self.account.public_key();
        format!("operator: {operator}\nresolver: MEMORY\nresolver_preload: {{ {name}: {account} }}\n")
    }

    /// The file for this user, signed by the account, whoever holds the key.
    fn creds(&self, key: &nkeys::KeyPair) -> String {
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let jwt = Self::jwt(&self.account, &self.user, claims);
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            key.seed().unwrap()
        )
    }
}
