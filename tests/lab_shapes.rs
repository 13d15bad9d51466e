//! The lab's answers against recorded answers of the real services: where they differ, the lab is wrong.

#[path = "support/http.rs"]
mod http;
#[path = "support/shapes.rs"]
mod shapes;

use std::time::Duration;

use http::{Answer, Http};
use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};
use shapes::differences;

fn recorded(system: &str, name: &str) -> Value {
    let path = format!("{}/tests/fixtures/{system}/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap()
}

/// Fails with every difference of status and shape.
fn same_shape(name: &str, recorded: &Value, answer: &Answer) {
    let wanted = &recorded["response"];
    assert_eq!(answer.status, wanted["status"], "{name}: {}", answer.body);
    let found = differences(&wanted["body"], &answer.body);
    assert!(found.is_empty(), "{name}:\n  {}", found.join("\n  "));
}

async fn rack() -> Lab {
    Lab::start(Scenario::rack().unwrap(), 200.0).await.unwrap()
}

fn netbox(lab: &Lab) -> Http {
    Http::new(&lab.netbox_url()).with("authorization", &format!("Bearer {}", lab.netbox_token()))
}

async fn id_of(netbox: &Http, path: &str) -> u64 {
    netbox.get(path).await.body["results"][0]["id"].as_u64().unwrap()
}

#[tokio::test]
async fn netbox_reads_have_the_recorded_shapes() {
    let lab = rack().await;
    let netbox = netbox(&lab);
    let host = id_of(&netbox, "/api/dcim/devices/?name=gpu-b07-37").await;
    let unplaced = id_of(&netbox, "/api/dcim/devices/?name=gpu-b07-35").await;
    let leaf = id_of(&netbox, "/api/dcim/devices/?name=leaf-b07-1").await;
    let port = id_of(&netbox, &format!("/api/dcim/interfaces/?device_id={leaf}&name=swp14")).await;
    let cases = [
        ("001-status", "/api/status/".to_owned()),
        ("003-api-root", "/api/".to_owned()),
        ("004-devices-page-1", "/api/dcim/devices/?limit=2".to_owned()),
        ("006-devices-offset-past-end", "/api/dcim/devices/?limit=2&offset=5000".to_owned()),
        ("007-devices-cursor-page-1", "/api/dcim/devices/?start=0&limit=2&brief=true".to_owned()),
        ("013-devices-brief", "/api/dcim/devices/?brief=true&limit=2".to_owned()),
        ("014-devices-fields", "/api/dcim/devices/?fields=id,name,status,last_updated&limit=2".to_owned()),
        ("015-devices-fields-unknown", "/api/dcim/devices/?fields=id,nosuch&limit=1".to_owned()),
        ("016-devices-omit", "/api/dcim/devices/?omit=config_context&limit=1".to_owned()),
        ("030-device-detail", format!("/api/dcim/devices/{host}/")),
        ("032-device-detail-no-position", format!("/api/dcim/devices/{unplaced}/?omit=config_context")),
        ("034-sites", "/api/dcim/sites/".to_owned()),
        ("035-locations", "/api/dcim/locations/".to_owned()),
        ("036-racks", "/api/dcim/racks/?limit=1".to_owned()),
        ("038-device-types", "/api/dcim/device-types/?limit=2".to_owned()),
        ("039-device-roles", "/api/dcim/device-roles/".to_owned()),
        ("040-interfaces-of-device", format!("/api/dcim/interfaces/?device_id={host}")),
        ("042-interface-switch-port", format!("/api/dcim/interfaces/{port}/")),
        ("047-mac-addresses", format!("/api/dcim/mac-addresses/?device_id={host}&limit=2")),
        ("049-ip-addresses", format!("/api/ipam/ip-addresses/?device_id={host}")),
        ("051-cables-of-device", format!("/api/dcim/cables/?device_id={host}&limit=2")),
        ("054-tags", "/api/extras/tags/".to_owned()),
    ];
    for (name, path) in cases {
        let answer = netbox.get(&path).await;
        same_shape(name, &recorded("netbox", name), &answer);
        let etag = |headers: &Value| headers["etag"].as_str().map(|text| text.starts_with("W/\""));
        let lab_etag = answer.header("etag").map(|text| text.starts_with("W/\""));
        assert_eq!(lab_etag, etag(&recorded("netbox", name)["response"]["headers"]), "{name}: ETag");
    }
}

#[tokio::test]
async fn netbox_refuses_in_the_recorded_words() {
    let lab = rack().await;
    let reader = netbox(&lab);
    let host = id_of(&reader, "/api/dcim/devices/?name=gpu-b07-37").await;
    let bare = Http::new(&lab.netbox_url());
    for name in [
        "002-status-anonymous",
        "056-auth-missing",
        "057-auth-v2-invalid",
        "058-auth-v1-invalid",
        "061-auth-v2-malformed",
        "062-auth-extra-word",
    ] {
        let record = recorded("netbox", name);
        let header = match record["request"]["headers"]["Authorization"].as_str() {
            None => None,
            Some(text) if text.contains("<token") => match name {
                "061-auth-v2-malformed" => Some("Bearer nbt_abcdef".to_owned()),
                _ => Some("Bearer nbt_a.b c".to_owned()),
            },
            Some(text) => Some(text.to_owned()),
        };
        let headers: Vec<(&str, &str)> = header.iter().map(|text| ("authorization", text.as_str())).collect();
        let path = record["request"]["path"].as_str().unwrap();
        let answer = bare.send("GET", path, None, &headers).await.unwrap();
        assert_eq!((answer.status, &answer.body), (403, &record["response"]["body"]), "{name}");
        assert!(answer.header("www-authenticate").is_none(), "{name}");
    }
    // Whichever keyword: the prefix tells the version.
    for version in [1, 2] {
        let token = muster::lab::build::netbox_token(version, "muster");
        for keyword in ["Token", "Bearer"] {
            let header = format!("{keyword} {token}");
            let answer =
                bare.send("GET", "/api/dcim/devices/?limit=1", None, &[("authorization", &header)]).await.unwrap();
            assert_eq!(answer.status, 200, "v{version} as {keyword}");
        }
    }
    for (name, path) in [
        ("008-devices-cursor-and-offset", "/api/dcim/devices/?start=0&offset=2"),
        ("009-devices-cursor-and-ordering", "/api/dcim/devices/?start=0&ordering=name"),
        ("022-devices-last-updated-bad", "/api/dcim/devices/?last_updated__gte=yesterday"),
        ("023-devices-last-updated-epoch", "/api/dcim/devices/?last_updated__gte=1700000000"),
        ("026-devices-bad-choice", "/api/dcim/devices/?status=enrolled"),
        ("027-devices-unknown-site-slug", "/api/dcim/devices/?site=nowhere"),
        ("033-device-detail-404", "/api/dcim/devices/999999/"),
        ("125-changelog-forbidden", "/api/core/object-changes/?limit=1"),
    ] {
        let (record, answer) = (recorded("netbox", name), reader.get(path).await);
        assert_eq!(answer.status, record["response"]["status"], "{name}");
        assert_eq!(answer.body, record["response"]["body"], "{name}");
    }
    let path = format!("/api/dcim/devices/{host}/");
    let refused = reader.delete(&path).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.body, recorded("netbox", "116-device-delete-refused")["response"]["body"]);
    for name in [
        "075-patch-status-invalid",
        "076-patch-status-label",
        "077-patch-status-object",
        "086-patch-tags-string",
        "087-patch-tags-unknown",
        "095-patch-cf-unknown",
        "096-patch-cf-bad-type",
    ] {
        let record = recorded("netbox", name);
        let answer = reader.patch(&path, record["request"]["body"].clone()).await;
        assert_eq!((answer.status, &answer.body), (400, &record["response"]["body"]), "{name}");
    }
    let unknown = reader.get("/api/dcim/devices/?nosuch=1&fields=id").await;
    assert_eq!(
        unknown.body["count"],
        reader.get("/api/dcim/devices/?limit=1").await.body["count"],
        "unknown filters are ignored"
    );
    assert_eq!(reader.get("/api/nosuch/").await.status, 404);
    let slashless = reader.get("/api/dcim/devices").await;
    assert_eq!((slashless.status, slashless.header("location")), (301, Some("/api/dcim/devices/")));
    assert_eq!(reader.patch(&format!("/api/dcim/devices/{host}"), json!({})).await.status, 404);
    let readonly = format!("Bearer {}", muster::lab::build::netbox_token(2, "readonly"));
    let readonly =
        bare.send("PATCH", &path, Some("{\"comments\":\"x\"}".into()), &[("authorization", &readonly)]).await.unwrap();
    assert_eq!(readonly.body, recorded("netbox", "070-perm-readonly-token-patch")["response"]["body"]);
}

#[tokio::test]
async fn netbox_writes_behave_as_recorded() {
    let lab = rack().await;
    let netbox = netbox(&lab);
    let host = id_of(&netbox, "/api/dcim/devices/?name=gpu-b07-35").await;
    let path = format!("/api/dcim/devices/{host}/");
    let before = netbox.get(&path).await;
    let etag = before.header("etag").unwrap().to_owned();

    let record = recorded("netbox", "073-patch-status-active");
    let answer = netbox.patch(&path, record["request"]["body"].clone()).await;
    same_shape("073", &record, &answer);
    assert_eq!(answer.body["status"]["value"], "active");
    assert!(answer.body["last_updated"].as_str() > before.body["last_updated"].as_str());
    assert_ne!(answer.header("etag"), Some(etag.as_str()));

    // The same again moves the time all the same, and so does an empty change.
    for body in [json!({"status": "active"}), json!({}), json!({"nosuch": 1})] {
        let (was, now) = (netbox.get(&path).await, netbox.patch(&path, body).await);
        assert!(now.body["last_updated"].as_str() > was.body["last_updated"].as_str());
    }

    // Tags are replaced by `tags`, and kept by `add_tags`.
    assert_eq!(before.body["tags"][0]["slug"], "burn-in");
    let tags = |answer: &Answer| -> Vec<String> {
        let list = answer.body["tags"].as_array().unwrap();
        list.iter().map(|t| t["slug"].as_str().unwrap().to_owned()).collect()
    };
    let added = netbox.patch(&path, json!({"add_tags": [{"slug": "ironic"}, {"slug": "ironic"}]})).await;
    same_shape(
        "089",
        &recorded("netbox", "089-patch-add-tags"),
        &netbox
            .patch(&format!("{path}?fields=id,name,tags,last_updated"), json!({"add_tags": [{"slug": "ironic"}]}))
            .await,
    );
    assert_eq!(tags(&added), ["burn-in", "ironic"]);
    assert_eq!(tags(&netbox.patch(&path, json!({"remove_tags": [{"slug": "burn-in"}]})).await), ["ironic"]);
    assert_eq!(tags(&netbox.patch(&path, json!({"tags": [{"name": "ipmi_exporter"}]})).await), ["ipmi_exporter"]);

    // Custom fields are merged; null clears one.
    let fields = netbox.patch(&path, json!({"custom_fields": {"platform_class": "X_Y_IB_01"}})).await;
    assert_eq!(fields.body["custom_fields"], json!({"platform_class": "X_Y_IB_01", "rack_unit_note": null}));
    let cleared = netbox.patch(&path, json!({"custom_fields": {"platform_class": null}})).await;
    assert_eq!(cleared.body["custom_fields"]["platform_class"], Value::Null);

    // If-Match has to be the tag of now.
    let record = recorded("netbox", "102-etag-if-match-stale");
    let body = || Some(json!({"comments": "x"}).to_string());
    let stale = netbox.send("PATCH", &path, body(), &[("if-match", &etag)]).await.unwrap();
    assert_eq!((stale.status, &stale.body), (412, &record["response"]["body"]));
    let current = stale.header("etag").unwrap().to_owned();
    assert_eq!(netbox.get(&path).await.body["comments"], "");
    let right = netbox.send("PATCH", &path, body(), &[("if-match", &current)]).await.unwrap();
    assert_eq!((right.status, &right.body["comments"]), (200, &json!("x")));
    let garbage = netbox.send("PATCH", &path, body(), &[("if-match", "x")]).await.unwrap();
    assert_eq!(garbage.status, 412);
    let star = netbox.send("PATCH", &path, body(), &[("if-match", "*")]).await.unwrap();
    assert_eq!(star.status, 200);

    // A change is seen by whoever asks for what is new since then.
    let since = right.body["last_updated"].as_str().unwrap();
    let delta = netbox.get(&format!("/api/dcim/devices/?last_updated__gte={since}&fields=id")).await;
    assert_eq!(delta.body["results"], json!([{"id": host}]));
}

/// Asks the lab's Ironic exactly what a recording asked.
async fn replay(ironic: &Http, name: &str) -> Answer {
    let record = recorded("ironic", name);
    let request = &record["request"];
    let version = request["headers"]["X-OpenStack-Ironic-API-Version"].as_str();
    let headers: Vec<(&str, &str)> = version.iter().map(|v| ("x-openstack-ironic-api-version", *v)).collect();
    let body = match &request["body"] {
        Value::Null => None,
        // What was no JSON was recorded as its text.
        Value::String(text) => Some(text.clone()),
        body => Some(body.to_string()),
    };
    let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    ironic.send(method, path, body, &headers).await.unwrap()
}

/// Replays a recording, and holds status, shape, errors word by word, and headers against it.
async fn as_recorded(ironic: &Http, name: &str) -> Answer {
    let (record, answer) = (recorded("ironic", name), replay(ironic, name).await);
    let wanted = &record["response"];
    if let Some(text) = wanted["body"]["error_message"].as_str() {
        let inner: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            (answer.status, without_objects(answer.error())),
            (wanted["status"].as_u64().unwrap() as u16, without_objects(inner)),
            "{name}"
        );
    } else {
        same_shape(name, &record, &answer);
    }
    let headers = wanted["headers"].as_object().unwrap();
    for (key, value) in headers.iter().filter(|(key, _)| key.starts_with("X-OpenStack")) {
        assert_eq!(answer.header(key), value.as_str(), "{name}: {key}");
    }
    let location = headers.get("Location").and_then(Value::as_str).map(form_of_location);
    assert_eq!(answer.header("location").map(form_of_location), location, "{name}: Location");
    answer
}

/// A fault with the addresses of Python objects, which no two processes share, and the tails that name them taken out.
fn without_objects(mut fault: Value) -> Value {
    if let Some(text) = fault["faultstring"].as_str() {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("implementation '") {
            let (_, tail) = after.split_once('\'').unwrap_or(("", after));
            out.push_str(before);
            out.push_str("implementation");
            rest = tail;
        }
        fault["faultstring"] = json!(out + rest);
    }
    fault
}

/// Path of a URL, with the ids of ports and portgroups, which are random, taken out.
fn form_of_location(url: &str) -> String {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    match path.split_once("ports/").or(path.split_once("portgroups/")) {
        Some((before, _)) => before.to_owned(),
        None => path.to_owned(),
    }
}

const V: &str = "x-openstack-ironic-api-version";
const NODE: &str = "aaaaaaaa-0000-4000-8000-000000000020";

fn ironic(lab: &Lab) -> Http {
    Http::new(&lab.ironic_url())
}

async fn fake_node(ironic: &Http, uuid: &str, name: &str) {
    let body = json!({
        "uuid": uuid, "name": name, "driver": "fake-hardware", "inspect_interface": "fake", "network_interface": "noop",
    });
    let answer = ironic.send("POST", "/v1/nodes", Some(body.to_string()), &[(V, "1.95")]).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.body);
}

async fn until_state(ironic: &Http, node: &str, wanted: &str) -> Value {
    for _ in 0..400 {
        let answer = ironic.send("GET", &format!("/v1/nodes/{node}"), None, &[(V, "1.95")]).await.unwrap();
        if answer.body["provision_state"] == wanted && answer.body["reservation"].is_null() {
            return answer.body;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("node {node} did not come to '{wanted}'");
}

#[tokio::test]
async fn ironic_versions_and_drivers_are_as_recorded() {
    let lab = rack().await;
    let ironic = ironic(&lab);
    for name in [
        "001-root",
        "002-v1-root",
        "003-v1-root-no-version",
        "004-version-too-new",
        "005-version-too-old",
        "006-version-malformed",
        "007-version-latest",
        "008-drivers",
        "009-driver-redfish",
        "011-conductors",
    ] {
        if name == "006-version-malformed" {
            // The real one leaves out its version headers here.
            let (record, answer) = (recorded("ironic", name), replay(&ironic, name).await);
            assert_eq!(answer.status, 406);
            assert_eq!(answer.body, record["response"]["body"]);
            continue;
        }
        as_recorded(&ironic, name).await;
    }
}

#[tokio::test]
async fn ironic_refusals_are_as_recorded_to_the_word() {
    let lab = rack().await;
    let ironic = ironic(&lab);
    fake_node(&ironic, NODE, "fake-20").await;
    for name in [
        "201-node-unknown-uuid",
        "202-node-unknown-name",
        "203-node-bad-ident",
        "204-node-uuid-in-use",
        "205-node-name-in-use",
        "206-node-driver-unknown",
        "207-node-interface-incompatible",
        "208-node-create-with-owner",
        "209-patch-owner",
        "210-node-name-invalid",
        "211-node-unknown-field",
        "212-node-bad-json",
        "213-port-create-plain",
        "214-port-mac-in-use",
        "215-port-mac-invalid",
        "216-port-node-unknown",
        "217-port-switch-id-invalid",
        "218-port-switch-id-missing",
        "219-port-portgroup-unknown",
    ] {
        as_recorded(&ironic, name).await;
    }
    let group = json!({"node_uuid": NODE, "name": "pg-a", "address": "52:54:00:99:00:01"});
    let answer = ironic.send("POST", "/v1/portgroups", Some(group.to_string()), &[(V, "1.95")]).await.unwrap();
    let found = differences(&recorded("ironic", "220-portgroup-create-2")["response"]["body"], &answer.body);
    assert!(found.is_empty(), "{found:?}");
    for name in [
        "221-portgroup-name-in-use",
        "222-portgroup-mac-in-use",
        "223-patch-replace-missing",
        "224-patch-remove-missing",
        "225-patch-bad-op",
        "226-patch-read-only",
        "227-patch-not-a-list",
        "228-patch-test-op",
        "229-patch-masked-secret",
        "230-patch-secret",
        "231-verb-invalid-in-enroll",
        "232-verb-inspect-in-enroll",
        "233-verb-abort-in-enroll",
        "234-verb-unknown",
    ] {
        as_recorded(&ironic, name).await;
    }
    let newer = Http::new(&lab.ironic_url()).with(V, "1.95");
    newer.put(&format!("/v1/nodes/{NODE}/states/provision"), json!({"target": "manage"})).await;
    until_state(&ironic, NODE, "manageable").await;
    as_recorded(&ironic, "235-verb-manage-in-manageable").await;
    for name in [
        "236-power-bad-target",
        "237-trait-unknown",
        "238-trait-custom",
        "239-trait-custom-lower-case",
        "240-traits-set",
        "241-node-traits-field",
        "242-trait-remove-missing",
        "243-raid-target-set",
        "244-states-with-raid",
        "245-raid-target-invalid",
        "246-raid-target-clear",
        "247-patch-raid-interface",
        "248-raid-target-no-raid",
        "249-fields-unknown",
        "250-filter-bad-state",
        "251-port-delete-unknown",
    ] {
        as_recorded(&ironic, name).await;
    }
}

#[tokio::test]
async fn ironic_lists_and_microversions_are_as_recorded() {
    let mut scenario = Scenario::rack().unwrap();
    scenario.hosts.iter_mut().for_each(|host| host.node = None);
    let lab = Lab::start(scenario, 200.0).await.unwrap();
    let ironic = ironic(&lab);
    for n in 30..36 {
        fake_node(&ironic, &format!("aaaaaaaa-0000-4000-8000-0000000000{n}"), &format!("fake-{n}")).await;
    }
    for name in [
        "301-nodes-page-1",
        "302-nodes-page-2",
        "303-nodes-fields",
        "304-nodes-detail",
        "305-nodes-filter",
        "306-nodes-filter-in",
        "307-nodes-marker-unknown",
        "308-nodes-limit-negative",
        "309-ports-by-address-none",
    ] {
        let answer = as_recorded(&ironic, name).await;
        let next =
            |body: &Value| body["next"].as_str().map(|url| url.splitn(4, '/').nth(3).unwrap_or_default().to_owned());
        assert_eq!(next(&answer.body), next(&recorded("ironic", name)["response"]["body"]), "{name}: next");
    }
    for name in [
        "310-node-at-1.1",
        "311-node-at-1.5",
        "312-node-at-1.31",
        "313-node-at-1.46",
        "314-node-at-1.61",
        "315-node-at-1.81",
        "316-node-at-1.95",
        "317-node-at-1.115",
        "318-node-at-none",
        "319-node-by-name-at-1.1",
        "320-traits-at-1.36",
        "321-inventory-at-1.80",
        "322-history-at-1.77",
        "323-node-create-field-too-new",
        "325-verb-manage-at-1.1",
        "326-fields-too-new",
    ] {
        as_recorded(&ironic, name).await;
    }
}

#[tokio::test]
async fn ironic_locks_and_other_conflicts_are_told_apart_as_recorded() {
    let lab = Lab::start(Scenario::rack().unwrap(), 50.0).await.unwrap();
    let ironic = ironic(&lab);
    let node = "aaaaaaaa-0000-4000-8000-000000000040";
    fake_node(&ironic, node, "gpu-b07-37").await;
    let provision = format!("/v1/nodes/{node}/states/provision");
    ironic.send("PUT", &provision, Some(json!({"target": "manage"}).to_string()), &[(V, "1.95")]).await.unwrap();
    until_state(&ironic, node, "manageable").await;
    let fault = json!({"kind": "node_locked", "device": "gpu-b07-37", "for_s": 1000.0});
    assert_eq!(Http::new(&lab.control_url()).post("/faults", fault).await.status, 200);
    for name in [
        "401-locked-patch-root-device",
        "402-locked-inspect",
        "403-locked-power-on",
        "407-locked-port-create",
        "409-locked-maintenance",
        "410-locked-trait",
        "412-locked-delete",
    ] {
        as_recorded(&ironic, name).await;
    }
    let shown = replay(&ironic, "404-node-reserved").await;
    assert_eq!(shown.body["reservation"], "conductor-1");
}

#[tokio::test]
async fn http_basic_is_as_recorded() {
    let text = muster::lab::scenario::RACK.to_owned() + "\n[ironic]\nauth = \"http_basic\"\n";
    let mut scenario = Scenario::parse(&text).unwrap();
    scenario.hosts.iter_mut().for_each(|host| host.node = None);
    let lab = Lab::start(scenario, 1.0).await.unwrap();
    let bare = ironic(&lab);
    for (name, header) in [
        ("701-auth-missing", None),
        ("702-auth-wrong-password", Some("Basic bXVzdGVyOndyb25n")),
        ("703-auth-unknown-user", Some("Basic bm9ib2R5Ong=")),
        ("704-auth-bearer", Some("Bearer abc")),
    ] {
        let record = recorded("ironic", name);
        let headers: Vec<(&str, &str)> = header.iter().map(|text| ("authorization", *text)).collect();
        let answer = bare.send("GET", "/v1/nodes", None, &headers).await.unwrap();
        assert_eq!(answer.status, record["response"]["status"], "{name}");
        assert_eq!(answer.body, record["response"]["body"], "{name}");
        let challenge = record["response"]["headers"]["WWW-Authenticate"].as_str();
        assert_eq!(answer.header("www-authenticate"), challenge, "{name}");
    }
    assert_eq!((bare.get("/").await.status, bare.get("/v1").await.status), (200, 200));
    let secret = format!("{}:{}", muster::lab::IRONIC_USER, muster::lab::ironic_password());
    let header = format!("Basic {}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret));
    let answer = bare.send("GET", "/v1/nodes", None, &[("authorization", &header)]).await.unwrap();
    assert_eq!((answer.status, answer.body), (200, json!({"nodes": []})));
}
