//! The NetBox client against recorded answers of a real NetBox, and against servers that are none.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster::clients::http::HttpError;
use muster::clients::netbox::NetBox;
use muster::clients::netbox::error::NetBoxError;
use muster::config::settings::{NetboxFields, NetboxSettings, SecretRef, Trust};
use muster::domain::failure::FailureCode;
use muster::domain::phase::Phase;
use serde_json::{Value, json};
use wiremock::matchers::{body_json, header, method, path, query_param};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

fn settings(url: &str) -> NetboxSettings {
    NetboxSettings {
        url: url.parse().unwrap(),
        token: SecretRef::Env("NETBOX_TOKEN".into()),
        trust: Trust::System,
        timeout: Duration::from_millis(500),
        poll: Duration::from_secs(60),
        cadences: Default::default(),
        resync: Duration::from_secs(900),
        fields: NetboxFields {
            device_class: "device_class".into(),
            gpu_type: "gpu_type".into(),
            platform_class: "platform_class".into(),
            ntp_server: "ntp_server_1".into(),
            syslog_server: "syslog_server".into(),
        },
    }
}

fn client(url: &str) -> NetBox {
    NetBox::new(&settings(url), "nbt_key.secret".to_owned().into()).unwrap()
}

/// A recorded exchange as an answer.
fn recorded(name: &str) -> ResponseTemplate {
    let file = format!("{}/tests/fixtures/netbox/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let exchange: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let answer = &exchange["response"];
    let mut template = ResponseTemplate::new(answer["status"].as_u64().unwrap() as u16);
    for (name, value) in answer["headers"].as_object().unwrap() {
        if matches!(name.as_str(), "etag" | "location") {
            template = template.insert_header(name.as_str(), value.as_str().unwrap());
        }
    }
    match &answer["body"] {
        Value::String(page) => template.set_body_raw(page.clone(), "text/html; charset=utf-8"),
        Value::Null => template,
        body => template.set_body_json(body),
    }
}

async fn serving(name: &str) -> (MockServer, NetBox) {
    let server = MockServer::start().await;
    Mock::given(wiremock::matchers::any()).respond_with(recorded(name)).mount(&server).await;
    let netbox = client(&server.uri());
    (server, netbox)
}

#[tokio::test]
async fn a_recorded_device_is_read_with_its_etag_and_the_right_header() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/api/dcim/devices/7/"))
        .and(header("authorization", "Bearer nbt_key.secret"))
        .and(header("accept", "application/json"))
        .respond_with(recorded("030-device-detail"))
        .expect(1)
        .mount(&server)
        .await;
    let found = client(&format!("{}/api/", server.uri())).device(7).await.unwrap();
    assert_eq!(found.etag.as_deref(), Some("W/\"2026-11-29T23:31:54.191580+00:00\""));
    let device = found.record;
    assert_eq!((device.name.as_deref(), device.status.value.as_str()), (Some("n-gpu-01"), "staged"));
    assert_eq!((device.position, device.oob_ip.unwrap().address.as_str()), (Some(1.0), "10.10.8.11/24"));
    assert!(device.config_context.unwrap().contains_key("ztp"));
}

#[tokio::test]
async fn refusals_are_told_apart() {
    type Is = fn(&NetBoxError) -> bool;
    let cases: [(&str, FailureCode, Is); 8] = [
        ("057-auth-v2-invalid", FailureCode::NetboxRefused, |e| matches!(e, NetBoxError::Token { .. })),
        ("058-auth-v1-invalid", FailureCode::NetboxRefused, |e| matches!(e, NetBoxError::Token { .. })),
        ("061-auth-v2-malformed", FailureCode::NetboxRefused, |e| matches!(e, NetBoxError::Token { .. })),
        ("065-perm-none-list", FailureCode::NetboxRefused, |e| matches!(e, NetBoxError::Permission { .. })),
        ("033-device-detail-404", FailureCode::NetboxDataMissing, |e| matches!(e, NetBoxError::NotFound { .. })),
        ("102-etag-if-match-stale", FailureCode::NetboxWriteConflict, |e| matches!(e, NetBoxError::Conflict { .. })),
        ("141-not-found-page", FailureCode::NetboxAnswerUnexpected, |e| matches!(e, NetBoxError::NotJson { .. })),
        ("142-no-trailing-slash", FailureCode::NetboxAnswerUnexpected, |e| matches!(e, NetBoxError::Redirect { .. })),
    ];
    for (name, code, is) in cases {
        let (server, netbox) = serving(name).await;
        let error = netbox.device(7).await.unwrap_err();
        assert!(is(&error), "{name}: {error:?}");
        let failure = netbox.failure(&error, Phase::StatusGate);
        assert_eq!(failure.code, code, "{name}");
        let host = server.uri().replace("http://", "");
        assert!(name.starts_with("102") || failure.message.contains(&host), "{name}: {}", failure.message);
        assert!(!failure.action.is_empty() && !failure.message.contains("secret"), "{name}: {failure:?}");
    }
}

#[tokio::test]
async fn an_overloaded_an_absent_and_a_silent_server_can_be_tried_again() {
    for status in [429, 500, 502, 503] {
        let server = MockServer::start().await;
        Mock::given(method("GET")).respond_with(ResponseTemplate::new(status)).mount(&server).await;
        let netbox = client(&server.uri());
        let failure = netbox.failure(&netbox.device(7).await.unwrap_err(), Phase::StatusGate);
        assert_eq!((failure.code, failure.retryable), (FailureCode::NetboxUnreachable, true), "{status}");
    }
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(200).set_delay(Duration::from_secs(5));
    Mock::given(method("GET")).respond_with(slow).mount(&server).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [server.uri(), format!("http://{free}")] {
        let netbox = client(&url);
        let failure = netbox.failure(&netbox.device(7).await.unwrap_err(), Phase::StatusGate);
        assert_eq!((failure.code, failure.retryable), (FailureCode::NetboxUnreachable, true), "{url}");
        assert!(failure.action.contains(&url), "{}", failure.action);
    }
}

/// Proves: O7, Z3
#[tokio::test]
async fn an_answer_of_another_shape_names_path_and_field() {
    let cases = [
        (
            json!({"count": 1, "next": null, "results": [{"id": 1, "name": "a", "slug": 7}]}),
            "results[0].slug",
            "integer",
        ),
        (
            json!({"count": 1, "next": null, "results": [{"id": "x", "name": "a", "slug": "a"}]}),
            "results[0].id",
            "string",
        ),
        (json!({"count": 1, "next": null, "results": [{"id": 1, "slug": "a"}]}), "results[0]", "missing field `name`"),
        (json!({"detail": "fine"}), ".", "missing field `results`"),
        (json!("hello"), ".", "invalid type"),
    ];
    for (body, field, problem) in cases {
        let server = MockServer::start().await;
        Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(&body)).mount(&server).await;
        let netbox = client(&server.uri());
        let error = netbox.sites().await.unwrap_err();
        let NetBoxError::Schema { asked, field: at, problem: why, .. } = &error else { panic!("{body}: {error:?}") };
        assert_eq!((asked.as_str(), at.as_str()), ("GET /api/dcim/sites/", field), "{error}");
        assert!(why.contains(problem), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_or_endlessly_deep_is_final_and_one_that_is_cut_off_is_tried_again() {
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    for body in ["{\"count\": 1, \"resu", "<html>welcome</html>", deep.as_str()] {
        let server = MockServer::start().await;
        Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_string(body)).mount(&server).await;
        let error = client(&server.uri()).sites().await.unwrap_err();
        match error {
            NetBoxError::Http(cut @ HttpError::CutShort { .. }) => {
                assert!(cut.is_transient() && body.ends_with("resu"))
            }
            NetBoxError::NotJson { .. } | NetBoxError::Schema { .. } => assert!(!body.ends_with("resu")),
            other => panic!("{other:?}"),
        }
    }
}

/// A fleet of `count` sites with odd ids, served as NetBox does, `max` rows at most; the site `lost` is counted and not listed.
async fn paged(server: &MockServer, count: u64, max: usize, lost: Option<u64>) {
    let sites: Arc<Mutex<BTreeSet<u64>>> = Arc::new(Mutex::new((0..count).map(|n| 2 * n + 1).collect()));
    shifting(server, sites, max, lost, |_, _| {}).await;
}

/// The same over sites that `meanwhile` changes after each answer; it is told how many there were.
async fn shifting(
    server: &MockServer,
    sites: Arc<Mutex<BTreeSet<u64>>>,
    max: usize,
    lost: Option<u64>,
    meanwhile: impl Fn(&mut BTreeSet<u64>, u64) + Send + Sync + 'static,
) {
    let answers = AtomicU64::new(0);
    Mock::given(method("GET"))
        .and(path("/api/dcim/sites/"))
        .and(query_param("ordering", "id"))
        .respond_with(move |request: &Request| {
            let number = |key: &str, default: u64| {
                let found = request.url.query_pairs().find(|(k, _)| k == key);
                found.map_or(default, |(_, v)| v.parse().unwrap())
            };
            let (limit, offset) = ((number("limit", 50) as usize).min(max), number("offset", 0) as usize);
            let mut sites = sites.lock().unwrap();
            let ids: Vec<u64> = sites.range(number("id__gte", 0)..number("id__lt", u64::MAX)).copied().collect();
            let page = ids.iter().skip(offset).take(limit).filter(|id| lost != Some(**id));
            let rows: Vec<Value> =
                page.map(|id| json!({"id": id, "name": format!("s{id}"), "slug": format!("s{id}")})).collect();
            let next = (offset + limit < ids.len()).then_some("http://elsewhere.example.com/api/dcim/sites/?offset=1");
            meanwhile(&mut sites, answers.fetch_add(1, Ordering::Relaxed) + 1);
            ResponseTemplate::new(200).set_body_json(json!({"count": ids.len(), "next": next, "results": rows}))
        })
        .mount(server)
        .await;
}

/// The server's own limit decides the stride, and its idea of its own address is not followed. A long list is read in lanes
/// of about two pages, whose beginnings cost a small request each but the first.
#[tokio::test]
async fn all_pages_are_read_each_row_once() {
    for (count, max) in [(0, 100), (1, 100), (100, 100), (101, 100), (345, 100), (2345, 100), (2345, 1000)] {
        let server = MockServer::start().await;
        paged(&server, count, max, None).await;
        let listing = client(&server.uri()).sites().await.unwrap();
        assert!(listing.complete, "{count} {max}");
        let ids: Vec<u64> = listing.rows.iter().map(|site| site.id).collect();
        assert_eq!(ids, (0..count).map(|n| 2 * n + 1).collect::<Vec<_>>());
        let pages = (count as usize).div_ceil(max).max(1);
        let beyond = pages.saturating_sub(1);
        let cuts = beyond.div_ceil(2).clamp(4, 32).min(beyond).saturating_sub(1);
        assert_eq!(server.received_requests().await.unwrap().len(), pages + cuts, "{count} {max}");
    }
}

/// Proves: O4. Case: C-38
#[tokio::test]
async fn a_list_that_does_not_add_up_is_known_as_such() {
    let server = MockServer::start().await;
    paged(&server, 10, 5, Some(15)).await;
    let listing = client(&server.uri()).sites().await.unwrap();
    assert_eq!(listing.rows.len(), 9);
    assert!(!listing.complete);
}

/// Proves: O1, O4. Case: C-38
#[tokio::test]
async fn rows_that_are_made_and_deleted_while_a_list_is_read_shift_nothing() {
    let all: BTreeSet<u64> = (1..=4000).collect();
    let sites = Arc::new(Mutex::new(all.clone()));
    let server = MockServer::start().await;
    // Each answer takes a row away from the beginning, which would move every later page by one.
    shifting(&server, Arc::clone(&sites), 100, None, |sites, n| {
        sites.remove(&n);
    })
    .await;
    let listing = client(&server.uri()).sites().await.unwrap();
    let told: BTreeSet<u64> = listing.rows.iter().map(|site| site.id).collect();
    let there = sites.lock().unwrap().clone();
    let missing: Vec<&u64> = there.difference(&told).collect();
    assert!(missing.is_empty(), "there all the time and not told: {missing:?}");
    assert_eq!(told.len(), listing.rows.len());

    let server = MockServer::start().await;
    let sites = Arc::new(Mutex::new(all));
    shifting(&server, Arc::clone(&sites), 100, None, |sites, n| {
        sites.insert(5000 - n);
    })
    .await;
    let listing = client(&server.uri()).sites().await.unwrap();
    let told: BTreeSet<u64> = listing.rows.iter().map(|site| site.id).collect();
    assert!((1..=4000).all(|id| told.contains(&id)));
    assert!(!listing.complete, "rows came that the first page did not count");
}

/// Case: C-39
#[tokio::test]
async fn a_server_that_ignores_ids_or_order_is_refused_and_not_read_for_ever() {
    for shuffled in [false, true] {
        let server = MockServer::start().await;
        let mut rows: Vec<Value> = (1..=100).map(|id| json!({"id": id, "name": "s", "slug": "s"})).collect();
        if shuffled {
            rows.swap(3, 70);
        }
        let page = json!({"count": 1000, "next": "x", "results": rows});
        Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(page)).mount(&server).await;
        let error = client(&server.uri()).sites().await.unwrap_err();
        let NetBoxError::Ignored { filter, .. } = &error else { panic!("{error:?}") };
        assert!(filter.starts_with(if shuffled { "ordering" } else { "id__gte=101" }), "{filter}");
    }
}

#[tokio::test]
async fn a_list_without_an_end_is_refused() {
    let server = MockServer::start().await;
    let page = json!({"count": 90_000_000, "next": "x", "results": [{"id": 1, "name": "a", "slug": "a"}]});
    Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(page)).mount(&server).await;
    let error = client(&server.uri()).sites().await.unwrap_err();
    assert!(matches!(error, NetBoxError::TooLong { .. }), "{error}");
}

/// Case: C-05
#[tokio::test]
async fn an_empty_filter_is_never_sent() {
    let server = MockServer::start().await;
    let error = client(&server.uri()).devices_named(" ").await.unwrap_err();
    assert!(matches!(&error, NetBoxError::EmptyFilter { filter, .. } if filter == "name"), "{error}");
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// NetBox answers a filter that it does not know with everything.
#[tokio::test]
async fn what_an_ignored_filter_lets_through_is_taken_out_here() {
    let (_server, netbox) = serving("040-interfaces-of-device").await;
    assert_eq!(netbox.interfaces_of(7).await.unwrap().len(), 5);
    assert_eq!(netbox.interfaces_of(8).await.unwrap().len(), 0);
    let ids: Vec<u64> = netbox.interfaces(&[115, 117]).await.unwrap().iter().map(|i| i.id).collect();
    assert_eq!(ids, [115, 117]);
}

#[tokio::test]
async fn writes_carry_the_etag_and_say_what_netbox_complains_about() {
    let server = MockServer::start().await;
    let etag = "W/\"2026-11-29T23:31:54.191580+00:00\"";
    Mock::given(method("PATCH"))
        .and(path("/api/dcim/devices/7/"))
        .and(header("if-match", etag))
        .and(body_json(json!({"status": "active"})))
        .respond_with(recorded("073-patch-status-active"))
        .expect(1)
        .mount(&server)
        .await;
    Mock::given(method("PATCH"))
        .and(body_json(json!({"custom_fields": {"platform_class": "X"}})))
        .respond_with(recorded("095-patch-cf-unknown"))
        .mount(&server)
        .await;
    let netbox = client(&server.uri());
    netbox.set_status(7, "active", Some(etag)).await.unwrap();
    let error = netbox.set_custom_field(7, "platform_class", "X", None).await.unwrap_err();
    assert!(error.to_string().contains("does not exist for this object type"), "{error}");
}
