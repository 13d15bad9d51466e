//! The clients of Ironic and Keystone against recorded answers of real ones, and against servers that are none.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use muster::clients::ironic::{
    CALLS, ConflictKind, Ironic, IronicError, LinkConnection, Microversion, NewPort, NewPortgroup, NodeChange, Refusal,
    RootDevice, RootDeviceHint, Verb,
};
use muster::clients::keystone::KeystoneError;
use muster::clients::vault::Vault;
use muster::config::settings::{
    IronicAuth, IronicInstance, KeystoneAccount, KeystoneAuth, KeystoneMethod, KeystoneScope, SecretRef, Trust,
    VaultKind, VaultSettings,
};
use muster::domain::ids::NodeUuid;
use muster::domain::provision::{Power, ProvisionState};
use serde_json::{Value, json};
use wiremock::matchers::{any, body_json, header, method, path, query_param, query_param_is_missing};
use wiremock::{Mock, MockServer, ResponseTemplate};

const NODE: &str = "aaaaaaaa-0000-4000-8000-000000000001";

fn exchange(folder: &str, name: &str) -> Value {
    let file = format!("{}/tests/fixtures/{folder}/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap()
}

/// A recorded answer.
fn answer(exchange: &Value) -> ResponseTemplate {
    let answer = &exchange["response"];
    let mut template = ResponseTemplate::new(answer["status"].as_u64().unwrap() as u16);
    for (name, value) in answer["headers"].as_object().unwrap() {
        if name.to_ascii_lowercase().starts_with("x-") {
            template = template.insert_header(name.as_str(), value.as_str().unwrap());
        }
    }
    match &answer["body"] {
        Value::Null => template,
        body => template.set_body_json(body),
    }
}

fn recorded(name: &str) -> ResponseTemplate {
    answer(&exchange("ironic", name))
}

/// A server with the recorded root, which is asked once at most.
async fn ironic_server() -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("GET")).and(path("/")).respond_with(recorded("001-root")).expect(..=1).mount(&server).await;
    server
}

/// A vault file with one secret.
fn vault(folder: &Path) -> Vault {
    let file = folder.join("vault.toml");
    std::fs::write(&file, "[ironic]\npassword = \"user-password\"\nsecret = \"application-credential-secret\"\n")
        .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    Vault::new(VaultSettings {
        kind: VaultKind::File(file),
        dhcp_item: "d".into(),
        bmc_item: "bmc-{host}".into(),
        ipmi_item: "i".into(),
        factory_item: "f".into(),
    })
}

fn secret(field: &str) -> SecretRef {
    SecretRef::Vault { item: "ironic".into(), field: field.into() }
}

fn client_with(url: &str, auth: IronicAuth) -> (Ironic, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let settings = IronicInstance {
        url: Some(url.parse().unwrap()),
        auth,
        trust: Trust::System,
        timeout: Duration::from_secs(5),
        device_classes: vec![],
        project: None,
        poll: Duration::from_secs(60),
    };
    muster_provider();
    (Ironic::new("osl1", &settings, &vault(folder.path())).unwrap(), folder)
}

fn client(url: &str) -> Ironic {
    client_with(url, IronicAuth::None).0
}

/// The binary chooses the TLS provider at its start.
fn muster_provider() {
    rustls::crypto::ring::default_provider().install_default().ok();
}

fn keystone(url: &str, method: KeystoneMethod) -> IronicAuth {
    let account = KeystoneAccount::Given { auth_url: url.parse().unwrap(), method };
    IronicAuth::Keystone(Box::new(KeystoneAuth { account, region: None, interface: None }))
}

fn password(scope: KeystoneScope) -> KeystoneMethod {
    KeystoneMethod::Password {
        username: "muster".into(),
        user_domain: "Default".into(),
        password: secret("password"),
        scope,
    }
}

fn project() -> KeystoneMethod {
    password(KeystoneScope::Project { name: "enrol".into(), domain: "Default".into() })
}

async fn serving(name: &str) -> (MockServer, Ironic) {
    let server = ironic_server().await;
    Mock::given(any()).respond_with(recorded(name)).mount(&server).await;
    let ironic = client(&server.uri());
    (server, ironic)
}

fn node_uuid() -> NodeUuid {
    NODE.parse().unwrap()
}

#[tokio::test]
async fn the_version_is_agreed_on_once_and_sent_with_every_request() {
    let server = ironic_server().await;
    Mock::given(path(format!("/v1/nodes/{NODE}")))
        .and(header("X-OpenStack-Ironic-API-Version", "1.65"))
        .respond_with(recorded("115-node-after-inspection"))
        .expect(2)
        .mount(&server)
        .await;
    let ironic = client(&format!("{}/v1", server.uri()));
    for _ in 0..2 {
        let node = ironic.node(NODE).await.unwrap().unwrap();
        assert_eq!((node.state, node.power), (ProvisionState::Manageable, Power::Off));
        assert_eq!(node.driver_info["redfish_password"], "******");
        assert_eq!(node.interfaces["raid_interface"], "no-raid");
        assert!(node.inspected_at.is_some());
    }
    let spoken = ironic.speaks().await.unwrap();
    assert_eq!((spoken.min, spoken.max), (Microversion(1), Microversion(115)));
}

/// A node as it was recorded, in another state or with another owner.
fn node(state: &str, instance: Option<&str>) -> ResponseTemplate {
    let mut node = exchange("ironic", "115-node-after-inspection");
    node["response"]["body"]["provision_state"] = json!(state);
    node["response"]["body"]["instance_uuid"] = json!(instance);
    answer(&node)
}

/// A server that has the node and answers everything else so.
async fn with_node(state: &str, other: ResponseTemplate) -> (MockServer, Ironic) {
    let server = ironic_server().await;
    Mock::given(method("GET"))
        .and(path(format!("/v1/nodes/{NODE}")))
        .respond_with(node(state, None))
        .mount(&server)
        .await;
    Mock::given(any()).respond_with(other).mount(&server).await;
    let ironic = client(&server.uri());
    (server, ironic)
}

/// Writes that came to a server.
async fn writes(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().iter().filter(|r| r.method.as_str() != "GET").count()
}

#[tokio::test]
async fn each_call_is_made_in_the_lowest_version_that_it_needs() {
    let (server, ironic) = with_node("manageable", ResponseTemplate::new(202)).await;
    let attempt = ironic.attempt();
    attempt.node(NODE).await.unwrap();
    attempt.provision(node_uuid(), Verb::Inspect).await.unwrap();
    attempt.clear_maintenance(node_uuid()).await.unwrap();
    attempt.add_trait(node_uuid(), "HW_ARCH_X86_64").await.unwrap();
    attempt.power_on(node_uuid()).await.unwrap();
    let sent = server.received_requests().await.unwrap();
    let versions: Vec<String> = sent
        .iter()
        .filter(|r| r.url.path() != "/")
        .map(|r| {
            let version = r.headers["x-openstack-ironic-api-version"].to_str().unwrap();
            format!("{} {version}", r.url.path().rsplit('/').next().unwrap())
        })
        .collect();
    let expected = [
        format!("{NODE} 1.65"),
        "provision 1.11".into(),
        "maintenance 1.1".into(),
        "HW_ARCH_X86_64 1.37".into(),
        "power 1.1".into(),
    ];
    assert_eq!(versions, expected);
}

/// A root that speaks these versions.
async fn speaking(min: &str, max: &str) -> (MockServer, Ironic) {
    let server = MockServer::start().await;
    let root = json!({"default_version": {"id": "v1", "min_version": min, "version": max}});
    Mock::given(path("/")).respond_with(ResponseTemplate::new(200).set_body_json(root)).mount(&server).await;
    let ironic = client(&server.uri());
    (server, ironic)
}

#[tokio::test]
async fn an_ironic_that_is_too_old_or_too_new_is_told_by_feature_version_and_release_and_asked_nothing() {
    for (min, max, words) in [
        ("1.1", "1.72", vec!["up to 1.72 (Wallaby)", "1.81 (2023.1 Antelope)", "the inventory of an inspection"]),
        ("1.1", "1.38", vec!["up to 1.38 (Queens)", "1.81"]),
        ("1.120", "1.140", vec!["no longer speaks API versions below 1.120", "up to 1.95"]),
    ] {
        let (server, ironic) = speaking(min, max).await;
        let error = ironic.node("x").await.unwrap_err();
        assert!(matches!(error, IronicError::TooOld { .. } | IronicError::TooNew { .. }), "{error:?}");
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        assert_eq!(server.received_requests().await.unwrap().len(), 1, "the root alone is asked");
    }
    // A raised minimum that is known here is what every call is made in.
    let (server, ironic) = speaking("1.90", "1.140").await;
    Mock::given(path("/v1/nodes/x"))
        .and(header("X-OpenStack-Ironic-API-Version", "1.90"))
        .respond_with(recorded("115-node-after-inspection"))
        .expect(1)
        .mount(&server)
        .await;
    ironic.node("x").await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_takes_the_version_away_is_found_by_what_the_answer_is_missing() {
    // It says so itself.
    let answered = |version: &str| {
        let mut old = exchange("ironic", "115-node-after-inspection");
        old["response"]["headers"]["X-OpenStack-Ironic-API-Version"] = json!(version);
        old
    };
    let (_server, ironic) = with_node("manageable", answer(&answered("1.1"))).await;
    let error = ironic.node("another").await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("asked in API version 1.65 and answered in 1.1"), "{text}");
    assert!(text.contains("X-OpenStack-Ironic-API-Version"), "{text}");
    // Its answers lose the header as well: the node lacks what the version has.
    let mut bare = answered("1.1");
    bare["response"]["headers"] = json!({});
    for field in ["owner", "lessee", "fault", "traits"] {
        bare["response"]["body"].as_object_mut().unwrap().remove(field);
    }
    let (_server, ironic) = with_node("manageable", answer(&bare)).await;
    let error = ironic.node("another").await.unwrap_err();
    assert!(matches!(error, IronicError::Stripped { used: None, .. }), "{error}");
    // A refusal in an old version is no "there is none".
    let mut missing = exchange("ironic", "111-inventory-none");
    missing["response"]["headers"]["X-OpenStack-Ironic-API-Version"] = json!("1.1");
    let (_server, ironic) = with_node("manageable", answer(&missing)).await;
    let error = ironic.inventory(node_uuid()).await.unwrap_err();
    assert!(matches!(error, IronicError::Stripped { .. }), "{error}");
}

#[test]
fn every_call_has_a_feature_and_a_release() {
    for need in &CALLS {
        assert!(!need.feature.is_empty() && !need.request.is_empty() && !need.since.release().contains("after"));
    }
}

/// Proves: E7, I3, E5
#[tokio::test]
async fn what_the_guard_keeps_back_never_reaches_the_server() {
    for state in [("manageable", Some("i-1")), ("active", None), ("deploy failed", None)] {
        let server = ironic_server().await;
        Mock::given(method("GET")).respond_with(node(state.0, state.1)).mount(&server).await;
        let attempt = client(&server.uri()).attempt();
        let unread = attempt.provision(node_uuid(), Verb::Manage).await.unwrap_err();
        assert!(matches!(unread, IronicError::Guarded(Refusal::NotRead { .. })), "{unread:?}");
        attempt.node(NODE).await.unwrap();
        let hint = RootDeviceHint::of(json!({"wwn": "0x5000"}).as_object().unwrap()).unwrap();
        let port = NewPort {
            node: node_uuid(),
            mac: "52:54:00:10:01:01".parse().unwrap(),
            pxe_enabled: true,
            portgroup: None,
            link: None,
        };
        let raid = json!({"logical_disks": []}).as_object().cloned().unwrap();
        for outcome in [
            attempt.provision(node_uuid(), Verb::Manage).await,
            attempt.provision(node_uuid(), Verb::Inspect).await,
            attempt.provision(node_uuid(), Verb::Provide).await,
            attempt.provision(node_uuid(), Verb::Abort).await,
            attempt.power_on(node_uuid()).await,
            attempt.clear_maintenance(node_uuid()).await,
            attempt.restore_maintenance(node_uuid(), Some("x")).await,
            attempt.add_trait(node_uuid(), "HW_ARCH_X86_64").await,
            attempt.set_raid_target(node_uuid(), &raid).await,
            attempt.change_node(node_uuid(), &[NodeChange::RootDevice(RootDevice::Set(hint))]).await.map(drop),
            attempt.create_port(&port).await.map(drop),
        ] {
            assert!(matches!(outcome, Err(IronicError::Guarded(Refusal::Owned { .. }))), "{state:?}: {outcome:?}");
        }
        assert_eq!(writes(&server).await, 0, "{state:?}");
    }
}

#[tokio::test]
async fn a_refused_version_is_agreed_on_anew() {
    let server = MockServer::start().await;
    Mock::given(path("/")).respond_with(recorded("001-root")).expect(2).mount(&server).await;
    Mock::given(path("/v1/nodes/x")).respond_with(recorded("004-version-too-new")).mount(&server).await;
    let ironic = client(&server.uri());
    let error = ironic.node("x").await.unwrap_err();
    assert!(matches!(error, IronicError::Version { .. }), "{error}");
    ironic.node("x").await.unwrap_err();
}

#[tokio::test]
async fn nodes_are_read_page_by_page_with_a_marker_and_the_wanted_fields() {
    let server = ironic_server().await;
    let list = || Mock::given(path("/v1/nodes")).and(query_param("fields", "uuid,provision_state,name,maintenance"));
    list()
        .and(query_param_is_missing("marker"))
        .respond_with(recorded("301-nodes-page-1"))
        .expect(1)
        .mount(&server)
        .await;
    let mut last = exchange("ironic", "302-nodes-page-2");
    last["response"]["body"].as_object_mut().unwrap().remove("next");
    list()
        .and(query_param("marker", "aaaaaaaa-0000-4000-8000-000000000031"))
        .respond_with(answer(&last))
        .expect(1)
        .mount(&server)
        .await;
    let nodes = client(&server.uri()).nodes(&["name", "maintenance", "uuid"]).await.unwrap();
    let names: Vec<_> = nodes.iter().map(|n| n.name.as_deref().unwrap()).collect();
    assert_eq!(names[..2], ["fake-30", "fake-31"]);
    assert_eq!(names.len(), 4);
}

/// Proves: Z3
#[tokio::test]
async fn a_list_that_never_ends_is_left() {
    let server = ironic_server().await;
    Mock::given(path("/v1/nodes")).respond_with(recorded("301-nodes-page-1")).expect(..=200).mount(&server).await;
    let error = client(&server.uri()).nodes(&[]).await.unwrap_err();
    assert!(matches!(error, IronicError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn what_is_not_there_is_none_and_a_bad_name_is_invalid() {
    let (_server, ironic) = serving("201-node-unknown-uuid").await;
    assert!(ironic.node("no-such-name").await.unwrap().is_none());
    let (_server, ironic) = serving("111-inventory-none").await;
    assert!(ironic.inventory(node_uuid()).await.unwrap().is_none());
    let (_server, ironic) = serving("203-node-bad-ident").await;
    assert!(matches!(ironic.node("not valid!").await, Err(IronicError::Invalid { .. })));
}

/// Proves: E15
#[tokio::test]
async fn recorded_refusals_are_told_apart() {
    let patch = async |name: &str| {
        let (_server, ironic) = with_node("manageable", recorded(name)).await;
        let attempt = ironic.attempt();
        attempt.node(NODE).await.unwrap();
        attempt.change_node(node_uuid(), &[NodeChange::RaidInterface("agent".into())]).await.unwrap_err()
    };
    for name in ["401-locked-patch-root-device", "402-locked-inspect"] {
        match patch(name).await {
            IronicError::Locked { holder, .. } => assert_eq!(holder.as_deref(), Some("conductor-1"), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let conflict = async |name: &str| match patch(name).await {
        IronicError::Conflict { kind, .. } => kind,
        other => panic!("{name}: {other:?}"),
    };
    let uuid = "aaaaaaaa-0000-4000-8000-000000000020".to_owned();
    assert_eq!(conflict("204-node-uuid-in-use").await, ConflictKind::Uuid(uuid));
    assert_eq!(conflict("205-node-name-in-use").await, ConflictKind::Name("fake-20".into()));
    assert_eq!(conflict("214-port-mac-in-use").await, ConflictKind::Mac("52:54:00:99:00:01".into()));
    assert_eq!(conflict("406-transition-patch-root-device").await, ConflictKind::Transition);
    assert_eq!(conflict("502-patch-driver-wrong-state").await, ConflictKind::Transition);
    match patch("231-verb-invalid-in-enroll").await {
        IronicError::Invalid { said, .. } => assert!(said.contains("can not be performed on node"), "{said}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(patch("212-node-bad-json").await, IronicError::Server { status: 500, .. }));
}

#[tokio::test]
async fn a_server_that_is_no_ironic_and_an_answer_that_is_no_json_are_said_so() {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string("<html>nginx</html>"))
        .mount(&server)
        .await;
    let error = client(&server.uri()).node("x").await.unwrap_err();
    assert!(matches!(error, IronicError::NotIronic { .. }), "{error}");
    let server = ironic_server().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_string("<html>proxy</html>"))
        .mount(&server)
        .await;
    let error = client(&server.uri()).node("x").await.unwrap_err().to_string();
    assert!(error.contains("is not JSON") && error.contains("proxy"), "{error}");
    let server = ironic_server().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"name": "x"})))
        .mount(&server)
        .await;
    let error = client(&server.uri()).node("x").await.unwrap_err();
    assert!(matches!(error, IronicError::Malformed { .. }), "{error}");
}

#[tokio::test]
async fn a_node_shows_its_maintenance_its_fault_and_its_clean_step() {
    let (_server, ironic) = serving("610-node-clean-failed").await;
    let node = ironic.node("x").await.unwrap().unwrap();
    assert_eq!(
        (node.state, node.maintenance, node.fault.as_deref()),
        (ProvisionState::CleanFailed, true, Some("clean failure"))
    );
    assert!(node.maintenance_reason.is_some() && node.last_error.is_some());
    let (_server, ironic) = serving("616-node-clean-step-running").await;
    let node = ironic.node("x").await.unwrap().unwrap();
    assert_eq!(node.clean_step.as_deref(), Some("deploy.erase_devices_metadata"));
}

/// Proves: I1
#[tokio::test]
async fn ports_and_portgroups_are_written_as_recorded_and_looked_up_by_a_whole_address_only() {
    let server = ironic_server().await;
    let (mut port, group) = (exchange("ironic", "103-port-create-1"), exchange("ironic", "102-portgroup-create"));
    // Left out here: Ironic's own default.
    port["request"]["body"].as_object_mut().unwrap().remove("physical_network");
    let mut group_body = group["request"]["body"].clone();
    group_body.as_object_mut().unwrap().remove("standalone_ports_supported");
    Mock::given(path("/v1/ports"))
        .and(body_json(&port["request"]["body"]))
        .respond_with(answer(&port))
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(path("/v1/portgroups"))
        .and(body_json(&group_body))
        .respond_with(answer(&group))
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(path(format!("/v1/nodes/{NODE}"))).respond_with(node("enroll", None)).mount(&server).await;
    Mock::given(path("/v1/ports/detail"))
        .and(query_param("node", NODE))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"ports": []})))
        .mount(&server)
        .await;
    // A server that knows no filter answers with every port.
    Mock::given(path("/v1/ports/detail")).respond_with(recorded("117-ports-detail")).mount(&server).await;
    let ironic = client(&server.uri()).attempt();
    ironic.node(NODE).await.unwrap();
    ironic.ports_of(node_uuid()).await.unwrap();
    let mac = "52:54:00:10:01:01".parse().unwrap();
    let properties = json!({"miimon": "100", "xmit_hash_policy": "layer3+4"}).as_object().cloned().unwrap();
    let group = ironic
        .create_portgroup(&NewPortgroup {
            node: node_uuid(),
            name: "rack1-u01-bond0".into(),
            mac,
            mode: Some("802.3ad".into()),
            properties,
        })
        .await
        .unwrap();
    let link =
        LinkConnection { switch_id: "00:00:00:00:00:00".into(), port_id: "swp1".into(), switch_info: "leaf-1a".into() };
    let new =
        NewPort { node: node_uuid(), mac, pxe_enabled: true, portgroup: Some(group.uuid), link: Some(link.clone()) };
    let made = ironic.create_port(&new).await.unwrap();
    assert_eq!((made.mac, made.pxe_enabled, made.link), (Some(mac), true, Some(link)));
    let found = ironic.ports_by_address(mac).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(ironic.ports_by_address("02:00:00:00:00:01".parse().unwrap()).await.unwrap().is_empty());
    let asked = server.received_requests().await.unwrap();
    let filters: Vec<_> = asked.iter().filter_map(|r| r.url.query()).collect();
    assert!(filters.iter().all(|q| !q.ends_with("address=")), "{filters:?}");
}

/// Proves: K3
#[tokio::test]
async fn http_basic_is_sent_with_every_request_but_the_root() {
    let server = ironic_server().await;
    Mock::given(path("/v1/nodes/x"))
        .and(header("authorization", "Basic bXVzdGVyOnVzZXItcGFzc3dvcmQ="))
        .respond_with(recorded("115-node-after-inspection"))
        .expect(1)
        .mount(&server)
        .await;
    let auth = IronicAuth::HttpBasic { username: "muster".into(), password: secret("password") };
    let (ironic, _folder) = client_with(&server.uri(), auth);
    ironic.node("x").await.unwrap();
    let asked = server.received_requests().await.unwrap();
    assert!(asked.iter().find(|r| r.url.path() == "/").unwrap().headers.get("authorization").is_none());
}

/// Keystone with a recorded login that is answered by this token.
async fn login(server: &MockServer, recording: &str, token: &str, life_s: i64) {
    let recording = exchange("keystone", recording);
    let mut answered = recording.clone();
    answered["response"]["headers"]["X-Subject-Token"] = json!(token);
    let now = jiff::Timestamp::now();
    answered["response"]["body"]["token"]["issued_at"] = json!(now.to_string());
    answered["response"]["body"]["token"]["expires_at"] =
        json!((now + jiff::SignedDuration::from_secs(life_s)).to_string());
    Mock::given(method("POST"))
        .and(path("/v3/auth/tokens"))
        .and(body_json(&recording["request"]["body"]))
        .respond_with(answer(&answered))
        .up_to_n_times(1)
        .mount(server)
        .await;
}

async fn needs_token(server: &MockServer, token: &str) {
    Mock::given(path("/v1/nodes/x"))
        .and(header("x-auth-token", token))
        .respond_with(recorded("115-node-after-inspection"))
        .mount(server)
        .await;
}

async fn logins(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().iter().filter(|r| r.url.path() == "/v3/auth/tokens").count()
}

/// Proves: K3
#[tokio::test]
async fn each_way_to_log_in_sends_what_a_real_keystone_took() {
    for (recording, how) in [
        ("003-password-project", project()),
        ("006-password-system", password(KeystoneScope::System)),
        (
            "009-appcred",
            KeystoneMethod::ApplicationCredential {
                id: "3ef1b27c3a644528941c2c98d0faa024".into(),
                secret: secret("secret"),
            },
        ),
    ] {
        let server = ironic_server().await;
        login(&server, recording, "token-1", 3600).await;
        needs_token(&server, "token-1").await;
        let (ironic, _folder) = client_with(&server.uri(), keystone(&server.uri(), how));
        for _ in 0..3 {
            ironic.node("x").await.unwrap();
        }
        assert_eq!(logins(&server).await, 1, "{recording}");
    }
}

/// Proves: K3
#[tokio::test]
async fn a_refused_token_is_renewed_once_and_the_request_repeated() {
    let server = ironic_server().await;
    login(&server, "003-password-project", "token-1", 3600).await;
    login(&server, "003-password-project", "token-2", 3600).await;
    needs_token(&server, "token-2").await;
    Mock::given(path("/v1/nodes/x"))
        .and(header("x-auth-token", "token-1"))
        .respond_with(answer(&exchange("keystone", "028-ironic-no-token")))
        .expect(1)
        .mount(&server)
        .await;
    let (ironic, _folder) = client_with(&server.uri(), keystone(&format!("{}/v3", server.uri()), project()));
    ironic.node("x").await.unwrap();
    ironic.node("x").await.unwrap();
    assert_eq!(logins(&server).await, 2);
}

/// Proves: K3
#[tokio::test]
async fn a_second_401_is_the_answer_and_a_403_is_not_met_with_a_login() {
    for (refusal, expected_logins) in [("028-ironic-no-token", 2), ("032-ironic-token-without-roles", 1)] {
        let server = ironic_server().await;
        login(&server, "003-password-project", "token-1", 3600).await;
        login(&server, "003-password-project", "token-2", 3600).await;
        Mock::given(path("/v1/nodes/x")).respond_with(answer(&exchange("keystone", refusal))).mount(&server).await;
        let (ironic, _folder) = client_with(&server.uri(), keystone(&server.uri(), project()));
        let error = ironic.node("x").await.unwrap_err();
        let as_expected = match refusal {
            "028-ironic-no-token" => matches!(error, IronicError::Unauthorized { .. }),
            _ => matches!(error, IronicError::Forbidden { .. }),
        };
        assert!(as_expected, "{refusal}: {error:?}");
        assert_eq!(logins(&server).await, expected_logins, "{refusal}");
    }
}

/// Proves: K3
#[tokio::test]
async fn a_token_is_renewed_before_its_end() {
    let server = ironic_server().await;
    login(&server, "003-password-project", "token-1", 1).await;
    login(&server, "003-password-project", "token-2", 3600).await;
    needs_token(&server, "token-1").await;
    needs_token(&server, "token-2").await;
    let (ironic, _folder) = client_with(&server.uri(), keystone(&server.uri(), project()));
    ironic.node("x").await.unwrap();
    tokio::time::sleep(Duration::from_millis(900)).await;
    ironic.node("x").await.unwrap();
    let asked = server.received_requests().await.unwrap();
    let tokens: Vec<_> = asked
        .iter()
        .filter(|r| r.url.path() == "/v1/nodes/x")
        .map(|r| r.headers["x-auth-token"].to_str().unwrap())
        .collect();
    assert_eq!(tokens, ["token-1", "token-2"]);
}

#[tokio::test]
async fn many_requests_at_once_log_in_once() {
    let server = ironic_server().await;
    login(&server, "003-password-project", "token-1", 3600).await;
    needs_token(&server, "token-1").await;
    let (ironic, _folder) = client_with(&server.uri(), keystone(&server.uri(), project()));
    ironic.speaks().await.unwrap();
    futures::future::try_join_all((0..20).map(|_| ironic.node("x"))).await.unwrap();
    assert_eq!(logins(&server).await, 1);
}

/// Proves: Z1
#[tokio::test]
async fn a_login_that_keystone_refuses_says_who_and_shows_no_secret() {
    for (refusal, how) in [
        ("012-appcred-wrong-secret", project()),
        (
            "014-appcred-unknown-id",
            KeystoneMethod::ApplicationCredential { id: "0000".into(), secret: secret("secret") },
        ),
    ] {
        let server = ironic_server().await;
        Mock::given(path("/v3/auth/tokens")).respond_with(answer(&exchange("keystone", refusal))).mount(&server).await;
        let (ironic, _folder) = client_with(&server.uri(), keystone(&server.uri(), how));
        let error = ironic.node("x").await.unwrap_err();
        assert!(matches!(error, IronicError::Keystone(KeystoneError::Refused { .. })), "{error:?}");
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("user-password") && !text.contains("application-credential-secret"), "{text}");
        }
    }
}

#[tokio::test]
async fn ironic_without_its_keystone_is_a_busy_server_and_no_missing_worker() {
    let server = ironic_server().await;
    Mock::given(path("/v1/nodes/x"))
        .respond_with(answer(&exchange("keystone", "111-ironic-keystone-down-new-token")))
        .mount(&server)
        .await;
    match client(&server.uri()).node("x").await.unwrap_err() {
        IronicError::Server { status: 503, said, .. } => assert!(said.contains("Keystone service"), "{said}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_missing_secret_is_the_vaults_error() {
    let server = ironic_server().await;
    let auth = IronicAuth::HttpBasic { username: "muster".into(), password: secret("no-such-field") };
    let (ironic, _folder) = client_with(&server.uri(), auth);
    let error = ironic.node("x").await.unwrap_err();
    assert!(matches!(error, IronicError::Vault(_)), "{error:?}");
}

/// Proves: K3
#[tokio::test]
async fn the_account_of_a_clouds_yaml_is_used_and_its_catalogue_says_where_ironic_is() {
    let server = ironic_server().await;
    let nodes = ResponseTemplate::new(200).set_body_json(json!({"nodes": []}));
    Mock::given(path("/v1/nodes")).and(header("X-Auth-Token", "token-01")).respond_with(nodes).mount(&server).await;
    let identity = MockServer::start().await;
    let mut token = exchange("keystone", "003-password-project");
    let endpoint = |interface: &str, url: &str| json!({"interface": interface, "region_id": "north", "url": url});
    let endpoints = json!([endpoint("public", "http://127.0.0.1:9"), endpoint("internal", &server.uri())]);
    token["response"]["body"]["token"]["catalog"] = json!([{"type": "baremetal", "endpoints": endpoints}]);
    let body = token["request"]["body"].clone();
    let login = Mock::given(method("POST")).and(path("/v3/auth/tokens")).and(body_json(body));
    login.respond_with(answer(&token)).expect(1).mount(&identity).await;

    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::set_permissions(folder.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let cloud = format!(
        "clouds:\n  osl1:\n    auth: &auth\n      auth_url: {}/v3\n      username: muster\n      project_name: enrol\n    \
         region_name: north\n    interface: internal\n  other:\n    auth:\n      <<: *auth\n      password: canary\n",
        identity.uri()
    );
    file("secure.yaml", "clouds: {osl1: {auth: {password: user-password}}}\n", 0o600);
    let asked = |name: &str| {
        let file = Some(folder.path().join("clouds.yaml"));
        let account = KeystoneAccount::Cloud { name: name.into(), file };
        let auth = IronicAuth::Keystone(Box::new(KeystoneAuth { account, region: None, interface: None }));
        let settings = IronicInstance {
            url: None,
            auth,
            trust: Trust::System,
            timeout: Duration::from_secs(5),
            device_classes: vec![],
            project: None,
            poll: Duration::from_secs(60),
        };
        muster_provider();
        Ironic::new("osl1", &settings, &vault(folder.path())).unwrap()
    };
    // No secret stands in the cloud itself, so that others may read it.
    file("clouds.yaml", &cloud, 0o644);
    let ironic = asked("osl1");
    ironic.sees_nodes().await.unwrap();
    ironic.sees_nodes().await.unwrap();
    assert!(server.uri().ends_with(&ironic.host()), "{}", ironic.host());

    // One that holds a secret is its owner's alone.
    let error = asked("other").sees_nodes().await.unwrap_err().to_string();
    assert!(error.contains("mode 0644") && error.contains("chmod 600") && !error.contains("canary"), "{error}");
    file("clouds.yaml", "clouds:\n  osl1: [canary\n", 0o600);
    let error = asked("osl1").sees_nodes().await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("is no YAML") && !text.contains("canary"), "{text}");
}
