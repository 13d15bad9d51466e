//! The Redfish client against the field's bugs: busy answers, preconditions, redirects, broken members, hostile bodies.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster::clients::http::HttpError;
use muster::clients::redfish::RedfishError;
use muster::clients::redfish::condition::FirstForm;
use muster::clients::redfish::host::find_system;
use serde_json::json;

use super::tree::{Reply, Seen, Tree, fixture};

const NTP: &str = "/redfish/v1/Managers/1/Oem/Supermicro/NTP";

fn case(name: &str) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(format!("tests/fixtures/cases/{name}")).unwrap()).unwrap()
}

/// Answers the first `times` writes otherwise, and the rest well.
fn first(times: usize, reply: Reply) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync {
    let count = AtomicUsize::new(0);
    move |seen| {
        if seen.method == "GET" {
            return None;
        }
        let n = count.fetch_add(1, Ordering::Relaxed);
        Some(if n < times { reply.clone() } else { Reply { status: 204, headers: vec![], body: vec![] } })
    }
}

/// Proves: B18
/// Case: C-34
#[tokio::test]
async fn a_busy_bmc_is_asked_again_until_it_is_not() {
    for reply in [
        Reply::envelope("ami-host-booting-503-no-body"),
        Reply::envelope("dell-lc-not-ready-sys518"),
        Reply { status: 502, headers: vec![], body: b"<html>".to_vec() },
        Reply::json(500, json!({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.2.InternalError"}]}})),
        Reply { status: 504, headers: vec![], body: vec![] },
    ] {
        let tree = Tree::start(Some("supermicro"), first(2, reply.clone())).await;
        tree.client_with(Duration::from_secs(6)).patch(NTP, &json!({"NTPEnable": true})).await.unwrap();
        assert_eq!(tree.lines().len(), 3, "{reply:?}");
    }
}

/// Proves: B18
/// Case: C-34
#[tokio::test]
async fn a_bmc_that_stays_busy_ends_with_its_own_words_within_the_budget() {
    let busy = case("c34-busy-bmc.json");
    let reply = Reply::json(503, busy["reply"]["body"].clone());
    let tree = Tree::start(Some("supermicro"), first(usize::MAX, reply)).await;
    let began = Instant::now();
    let error = tree.client().patch(NTP, &json!({"NTPEnable": true})).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(3));
    let RedfishError::Busy { status: 503, reason, tries, .. } = &error else { panic!("{error}") };
    assert_eq!(reason, "The service is temporarily unavailable.  Retry in 20 seconds.");
    assert!(*tries > 2, "{tries}");
    assert!(error.to_string().contains("Retry in 20 seconds"), "{error}");
}

/// Case: C-34
#[tokio::test]
async fn retry_after_is_honoured_and_cut_to_the_budget() {
    let reply = Reply::envelope("ami-host-booting-503");
    let tree = Tree::start(Some("supermicro"), first(1, reply)).await;
    let began = Instant::now();
    // It asks for 30 s; there is a budget of one.
    tree.client_with(Duration::from_secs(1)).patch(NTP, &json!({"NTPEnable": true})).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1) && tree.lines().len() == 2);
}

/// Case: C-34
#[tokio::test]
async fn a_4xx_is_the_last_word_and_a_full_session_table_is_not_busy() {
    let refused = case("c34-busy-bmc.json")["also"][3]["body"].clone();
    let tree = Tree::start(Some("supermicro"), first(usize::MAX, Reply::json(400, refused))).await;
    let error = tree.client().patch(NTP, &json!({"NTPEnable": true})).await.unwrap_err();
    assert!(matches!(error, RedfishError::Refused { status: 400, .. }), "{error}");
    assert_eq!(tree.lines().len(), 1);
    let tree = Tree::start(Some("supermicro"), first(usize::MAX, Reply::envelope("dell-session-limit-503"))).await;
    let error = tree.client().patch(NTP, &json!({"NTPEnable": true})).await.unwrap_err();
    assert!(matches!(error, RedfishError::SessionsFull { .. }), "{error}");
    assert_eq!(tree.lines().len(), 1);
}

#[tokio::test]
async fn a_post_is_never_repeated_blindly() {
    let tree = Tree::start(Some("supermicro"), first(usize::MAX, Reply::envelope("ami-host-booting-503"))).await;
    let error = tree.client().post("/redfish/v1/AccountService/Accounts", &json!({})).await.unwrap_err();
    assert!(matches!(error, RedfishError::Busy { .. }), "{error}");
    assert_eq!(tree.lines().len(), 1);
}

/// A BMC that takes a write only with this form of `If-Match`; `None` for none at all.
fn wants(form: Option<&'static str>, refusal: &'static str) -> impl Fn(&Seen) -> Option<Reply> + Send + Sync {
    move |seen| match seen.method.as_str() {
        "GET" => Some(
            Reply::json(200, json!({"@odata.id": seen.path, "Id": "NTP", "@odata.etag": "\"body\""}))
                .header("ETag", "W/\"head\""),
        ),
        _ if seen.headers.get("if-match").map(String::as_str) == form => {
            Some(Reply { status: 204, headers: vec![], body: vec![] })
        }
        _ => Some(Reply::envelope(refusal)),
    }
}

/// Proves: B20
#[tokio::test]
async fn the_ladder_of_preconditions_ends_at_whichever_form_the_bmc_takes() {
    let forms = [Some("W/\"head\""), Some("\"head\""), Some("\"body\""), Some("*")];
    for form in forms {
        let tree = Tree::start(None, wants(form, "ami-precondition-header-missing-428")).await;
        tree.client().patch(NTP, &json!({})).await.unwrap_or_else(|e| panic!("{form:?}: {e}"));
    }
    // A BMC that is asked with `*` first and wants nothing at all.
    let tree = Tree::start(None, wants(None, "ami-if-match-failed-412")).await;
    let client = tree.client();
    client.prefer(FirstForm::Any);
    client.patch(NTP, &json!({})).await.unwrap();
    let tree = Tree::start(None, wants(Some("no form at all"), "lenovo-etag-412")).await;
    let error = tree.client().patch(NTP, &json!({})).await.unwrap_err();
    assert!(matches!(error, RedfishError::Precondition { status: 412, .. }), "{error}");
}

/// Proves: B20
#[tokio::test]
async fn the_form_that_worked_is_tried_first_the_next_time() {
    let tree = Tree::start(None, wants(Some("*"), "ami-if-match-failed-412")).await;
    let client = tree.client();
    client.patch(NTP, &json!({})).await.unwrap();
    let first = tree.lines().len();
    client.patch("/redfish/v1/Other", &json!({})).await.unwrap();
    assert_eq!(tree.lines().len(), first + 1);
}

/// Proves: B20
#[tokio::test]
async fn an_action_never_carries_a_precondition() {
    let tree = Tree::start(None, |seen| {
        let carries = seen.headers.contains_key("if-match");
        Some(if carries { Reply::envelope("dell-action-if-match-412") } else { Reply::json(204, json!(null)) })
    })
    .await;
    let client = tree.client();
    client.prefer(FirstForm::Any);
    client.post("/redfish/v1/Managers/1/Actions/Manager.Reset", &json!({})).await.unwrap();
}

/// Proves: B20, Z4
#[tokio::test]
async fn redirects_are_followed_on_the_same_host_with_method_body_and_login() {
    let tree = Tree::start(None, |seen| {
        Some(if seen.path.ends_with('/') {
            Reply::json(200, json!({"Id": "NTP"}))
        } else {
            Reply::json(308, json!({})).header("Location", &format!("{}/", seen.path))
        })
    })
    .await;
    let client = tree.client();
    client.get(NTP).await.unwrap();
    client.patch(NTP, &json!({"NTPEnable": true})).await.unwrap();
    let last = tree.requests().pop().unwrap();
    assert_eq!((last.method.as_str(), last.path.as_str()), ("PATCH", format!("{NTP}/").as_str()));
    assert_eq!(last.body, json!({"NTPEnable": true}));
    assert!(last.headers.contains_key("authorization"));
}

/// Proves: B20, Z4
#[tokio::test]
async fn a_redirect_elsewhere_is_not_followed_and_gets_no_credential() {
    let other = Tree::captured("supermicro").await;
    let uri = other.server.uri();
    for to in [format!("{uri}/redfish/v1/"), "//evil.example.com/redfish/v1".to_owned(), String::new()] {
        let tree = Tree::start(None, move |_| Some(Reply::json(307, json!({})).header("Location", &to))).await;
        let error = tree.client().get("/redfish/v1/Systems").await.unwrap_err();
        assert!(matches!(error, RedfishError::Redirect { .. }), "{error}");
    }
    assert!(other.lines().is_empty());
    let around = Tree::start(None, |seen| {
        let to = if seen.path == "/a" { "/b" } else { "/a" };
        Some(Reply::json(301, json!({})).header("Location", to))
    })
    .await;
    assert!(matches!(around.client().get("/a").await, Err(RedfishError::Redirect { .. })));
    assert!(around.lines().len() < 6);
}

#[tokio::test]
async fn after_one_refused_login_nothing_more_is_sent() {
    let tree = Tree::start(Some("supermicro"), |seen| {
        let asks = seen.headers.contains_key("authorization");
        asks.then(|| Reply::envelope("supermicro-unauthorized-401"))
    })
    .await;
    let client = tree.client();
    let root = client.root().await.unwrap();
    for _ in 0..3 {
        let error = find_system(&client, &root, None).await.unwrap_err();
        assert!(matches!(error, RedfishError::Unauthorized { locked: false, .. }), "{error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    let with_login = tree.requests().iter().filter(|seen| seen.headers.contains_key("authorization")).count();
    assert_eq!(with_login, 1);
}

#[tokio::test]
async fn refusals_are_told_apart_by_status_and_message() {
    let locked = Reply::json(401, json!({"error": {"message": "The account is locked."}}));
    type Right = fn(&RedfishError) -> bool;
    let table: Vec<(Reply, Right)> = vec![
        (Reply::envelope("dell-unauthorized-401"), |e| matches!(e, RedfishError::Unauthorized { locked: false, .. })),
        (locked, |e| matches!(e, RedfishError::Unauthorized { locked: true, .. })),
        (
            Reply::envelope("dell-forbidden-html-403"),
            |e| matches!(e, RedfishError::Forbidden { reason, .. } if reason == "403 - Forbidden"),
        ),
        (
            Reply::envelope("supermicro-not-licensed-403"),
            |e| matches!(e, RedfishError::NotLicensed { reason, .. } if reason.contains("DCMS")),
        ),
        (Reply::envelope("password-change-required-403"), |e| {
            matches!(e, RedfishError::PasswordChangeRequired { account: Some(account), .. }
                if account == "/redfish/v1/AccountService/Accounts/1")
        }),
        (Reply::envelope("dell-default-password-must-change"), |e| {
            matches!(e, RedfishError::PasswordChangeRequired { account: None, .. })
        }),
        (
            Reply::envelope("dell-pending-already-committed-400"),
            |e| matches!(e, RedfishError::Refused { status: 400, said, .. } if said.has("SYS011")),
        ),
        (Reply::envelope("dell-idrac10-boot-readonly-400"), |e| {
            matches!(e, RedfishError::Refused { reason, said, .. }
                if reason.contains("read-only") && said.mentions("Boot"))
        }),
        (
            Reply::envelope("extended-info-multiple-400"),
            |e| matches!(e, RedfishError::Refused { reason, .. } if reason.starts_with("The value Red")),
        ),
        (
            Reply::envelope("extended-info-object-not-array-400"),
            |e| matches!(e, RedfishError::Refused { reason, .. } if reason.contains("unsupported media type")),
        ),
    ];
    for (reply, right) in table {
        let shown = format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body));
        let tree = Tree::start(None, move |_| Some(reply.clone())).await;
        let error = tree.client().get("/redfish/v1/Systems").await.unwrap_err();
        assert!(right(&error), "{error:?}\n{shown}");
    }
}

/// Case: C-27
#[tokio::test]
async fn a_password_that_must_be_changed_is_not_a_wrong_password() {
    let case = case("c27-password-change-required.json");
    for form in ["any_other_get", "vendor_form"] {
        let reply = Reply::json(403, case[form]["body"].clone());
        let tree = Tree::start(None, move |_| Some(reply.clone())).await;
        let error = tree.client().get("/redfish/v1/Systems").await.unwrap_err();
        assert!(matches!(error, RedfishError::PasswordChangeRequired { .. }), "{form}: {error}");
    }
}

#[tokio::test]
async fn every_known_form_of_a_good_write_is_taken_as_accepted() {
    for name in [
        "supermicro-success-envelope-200",
        "supermicro-accepted-no-task-202",
        "lenovo-annotation-only-200",
        "dell-job-queue-delete-ok-200",
    ] {
        let tree = Tree::start(None, move |_| Some(Reply::envelope(name))).await;
        tree.client().patch(NTP, &json!({})).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let refused = json!({"SyslogServer@Message.ExtendedInfo": [{"MessageId": "x.y.PropertyValueFormatError",
        "Message": "no such address", "Severity": "Warning"}]});
    let tree = Tree::start(None, move |_| Some(Reply::json(200, refused.clone()))).await;
    let error = tree.client().patch(NTP, &json!({})).await.unwrap_err();
    assert!(error.to_string().contains("SyslogServer: no such address"), "{error}");
}

#[tokio::test]
async fn collections_are_read_through_pages_and_null_is_empty() {
    let tree = Tree::start(None, |seen| {
        Some(Reply::json(
            200,
            match seen.path.as_str() {
                "/redfish/v1/Systems/1/EthernetInterfaces" => fixture("states/collections/paged-1.json"),
                "/redfish/v1/Systems/1/EthernetInterfaces?$skip=2" => fixture("states/collections/paged-2.json"),
                "/null" => fixture("states/collections/members-null.json"),
                "/loop" => json!({"Members": ["/m/1"], "Members@odata.nextLink": "/loop?x"}),
                "/loop?x" => json!({"Members": ["/m/1", "/M/1/"], "Members@odata.nextLink": "/loop"}),
                path => json!({"@odata.id": path, "Id": path}),
            },
        ))
    })
    .await;
    let client = tree.client();
    let listing = client.list("/redfish/v1/Systems/1/EthernetInterfaces").await.unwrap();
    assert_eq!(listing.members.len(), 3);
    assert!(client.list("/null").await.unwrap().members.is_empty());
    assert_eq!(client.list("/loop").await.unwrap().members.len(), 1);
}

/// Case: C-33
#[tokio::test]
async fn one_broken_member_is_left_out_and_named() {
    let case = case("c33-one-broken-member.json");
    let tree = Tree::start(None, move |seen| {
        let told = case[format!("GET {}", seen.path)].clone();
        let body = told.get("body").cloned().unwrap_or(told);
        Some(match seen.path.as_str() {
            "/redfish/v1/Systems" => Reply::json(
                200,
                json!({"Members": [{"@odata.id": "/s/html"}, {"@odata.id": "/s/gone"}, {}, null, 7,
                    {"@odata.id": "/s/array"}, {"@odata.id": "/s/1"}]}),
            ),
            "/s/html" => Reply { status: 200, headers: vec![], body: b"<html>".to_vec() },
            "/s/array" => Reply::json(200, json!([1])),
            "/s/1" => Reply::json(200, json!({"Id": "1", "Boot": {}})),
            "/s/gone" => Reply::json(404, json!({})),
            _ => Reply::json(200, body),
        })
    })
    .await;
    let client = tree.client();
    let listing = client.list("/redfish/v1/Chassis").await.unwrap();
    let ids: Vec<String> = listing.members.iter().map(|m| m.id()).collect();
    assert_eq!(ids, ["1"]);
    assert_eq!(listing.skipped.len(), 1);
    assert_eq!(listing.skipped[0].path, "/redfish/v1/Chassis/SmartNIC");
    assert!(listing.skipped[0].why.contains("'Id'"), "{:?}", listing.skipped);
    let root = client.get("/nothing").await;
    let root = root.unwrap_or(muster::clients::redfish::Resource {
        path: "/redfish/v1/".into(),
        body: json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}}).as_object().unwrap().clone(),
        etag: None,
    });
    let found = find_system(&client, &root, None).await.unwrap();
    assert_eq!((found.system.id().as_str(), found.skipped.len()), ("1", 6));
}

/// Case: C-33
#[tokio::test]
async fn where_the_needed_member_is_the_broken_one_the_error_names_path_and_field() {
    let tree = Tree::start(None, |seen| {
        Some(Reply::json(
            200,
            match seen.path.as_str() {
                "/redfish/v1/" => json!({"Id": "Root", "Systems": {"@odata.id": "/redfish/v1/Systems"}}),
                "/redfish/v1/Systems" => json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}),
                _ => json!({}),
            },
        ))
    })
    .await;
    let client = tree.client();
    let error = find_system(&client, &client.root().await.unwrap(), None).await.unwrap_err().to_string();
    assert!(error.contains("/redfish/v1/Systems/1") && error.contains("'Id'"), "{error}");
}

#[tokio::test]
async fn a_406_to_identity_is_asked_again_without_it() {
    let tree = Tree::start(None, |seen| {
        let identity = seen.headers.get("accept-encoding").is_some_and(|v| v == "identity");
        Some(Reply::json(if identity { 406 } else { 200 }, json!({"Id": "1"})))
    })
    .await;
    let client = tree.client();
    client.get("/a").await.unwrap();
    client.get("/b").await.unwrap();
    assert_eq!(tree.lines(), ["GET /a", "GET /a", "GET /b"]);
}

/// A server that closes the first connection in the middle of its answer.
#[tokio::test]
async fn a_read_whose_connection_breaks_is_repeated_once_and_a_write_is_not() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut lines = vec![];
        for n in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0u8; 4096];
            let length = stream.read(&mut head).unwrap();
            lines.push(String::from_utf8_lossy(&head[..length]).lines().next().unwrap().to_owned());
            let answer: &[u8] = match n {
                1 => b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"Id\": \"1\"}",
                _ => b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"Id\":",
            };
            stream.write_all(answer).unwrap();
        }
        lines
    });
    rustls::crypto::ring::default_provider().install_default().ok();
    let options = muster::clients::redfish::RedfishOptions {
        trust: muster::config::settings::Trust::System,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
        busy_budget: Duration::from_secs(1),
    };
    let base = url::Url::parse(&format!("http://{address}")).unwrap();
    let client = muster::clients::redfish::Redfish::new(&base, None, options).unwrap();
    assert_eq!(client.get("/a").await.unwrap().id(), "1");
    let error = client.patch("/b", &json!({})).await.unwrap_err();
    assert!(matches!(error, RedfishError::Http(HttpError::Broken { .. })), "{error}");
    let lines = server.join().unwrap();
    assert_eq!(lines, ["GET /a HTTP/1.1", "GET /a HTTP/1.1", "PATCH /b HTTP/1.1"]);
}

/// Proves: Z3
#[tokio::test]
async fn hostile_bodies_are_errors_of_one_resource_and_nothing_more() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)).into_bytes();
    let huge = vec![b' '; 9 * 1024 * 1024];
    let bodies: [&[u8]; 6] = [&deep, &huge, b"", b"\xff\xfe", b"{\"Id\": \"1\"", b"null"];
    for body in bodies {
        let reply = Reply { status: 200, headers: vec![], body: body.to_vec() };
        let tree = Tree::start(None, move |_| Some(reply.clone())).await;
        let error = tree.client().get("/redfish/v1/Systems").await.unwrap_err();
        assert!(error.is_of_one_resource(), "{error}");
    }
}

#[tokio::test]
async fn a_root_that_is_no_json_is_told_with_the_place_where_it_is_none() {
    let body = b"{\"Id\": \"RootService\", \"@odata.etag\": \"W/\"17\"\"}".to_vec();
    let tree = Tree::start(None, move |_| Some(Reply { status: 200, headers: vec![], body: body.clone() })).await;
    let error = tree.client().root().await.unwrap_err();
    assert!(matches!(error, RedfishError::Http(HttpError::NotJson { .. })), "{error}");
    assert!(error.to_string().contains("line 1 column 42"), "{error}");
}
