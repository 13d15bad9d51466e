//! Webhooks at a run's end, told to a receiver of the tests' own: each end once, in order, signed, over outages and deaths.

#[path = "support/door.rs"]
mod door;
#[path = "support/schema.rs"]
mod schema;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::IntoResponse;
use door::Door;
use indexmap::IndexMap;
use jiff::Timestamp;
use muster::app::doctor::{Level, doctor};
use muster::app::{App, Opening, Told, Webhooks};
use muster::clients::vault::Vault;
use muster::config::settings::{RunEnd, SecretRef, Trust, VaultKind, VaultSettings, WebhookOut, default_options};
use muster::domain::event::{Body, Event, Outcome};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use muster::store::{RunStatus, Store};
use serde_json::{Value, json};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);
const CANARY: &str = "canary-7f3a9c51";

/// One request as it came.
#[derive(Debug, Clone)]
struct Got {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Got {
    fn id(&self) -> &str {
        self.headers["webhook-id"].to_str().unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// How one delivery is answered: after a while, with this status and these headers.
type Answer = (Duration, StatusCode, Vec<(&'static str, String)>);

/// A receiver that keeps what it gets, and answers as it is told; else with 204.
#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<Got>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    at: String,
}

impl Receiver {
    async fn start() -> Receiver {
        rustls::crypto::ring::default_provider().install_default().ok();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver { at: listener.local_addr().unwrap().to_string(), ..Receiver::default() };
        let (got, answers) = (Arc::clone(&receiver.got), Arc::clone(&receiver.answers));
        let take = move |method: Method, headers: HeaderMap, body: Bytes| {
            let (got, answers) = (Arc::clone(&got), Arc::clone(&answers));
            async move {
                if method != Method::POST {
                    return StatusCode::METHOD_NOT_ALLOWED.into_response();
                }
                got.lock().unwrap().push(Got { headers, body: body.to_vec() });
                let answer = answers.lock().unwrap().pop_front();
                let (after, status, headers) = answer.unwrap_or((Duration::ZERO, StatusCode::NO_CONTENT, vec![]));
                tokio::time::sleep(after).await;
                let headers: HeaderMap =
                    headers.into_iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
                (status, headers).into_response()
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await.unwrap() });
        receiver
    }

    fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    async fn until(&self, count: usize) -> Vec<Got> {
        until(&format!("{count} deliveries"), || self.got().len() >= count).await;
        self.got()
    }
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "it did not come to pass: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn hook(at: &str, folder: &Path) -> WebhookOut {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("hook-secret");
    std::fs::write(&path, CANARY).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    WebhookOut {
        url: format!("http://{at}/hooks/muster").parse().unwrap(),
        secret: SecretRef::File(path),
        trust: Trust::System,
        timeout: Duration::from_secs(1),
        outcomes: RunEnd::ALL.to_vec(),
        sites: vec![],
        give_up: Duration::from_secs(3600),
    }
}

/// A store whose runs end as the test says, and the webhooks of whoever leads it.
struct Rig {
    store: Store,
    webhooks: Option<Webhooks>,
    told: Told,
    ended: u64,
}

impl Rig {
    fn start(folder: &Path, hooks: &[(&str, WebhookOut)]) -> Rig {
        let store = Store::open(&folder.join("state")).unwrap();
        let mut rig = Rig { store, webhooks: None, told: Told::default(), ended: 0 };
        rig.lead(hooks);
        rig
    }

    fn lead(&mut self, hooks: &[(&str, WebhookOut)]) {
        let hooks: IndexMap<String, WebhookOut> =
            hooks.iter().map(|(name, hook)| ((*name).to_owned(), hook.clone())).collect();
        self.webhooks = Some(Webhooks::start(&hooks, &vault(), &self.store, &self.told));
    }

    async fn leave(&mut self) {
        self.webhooks.take().unwrap().close().await;
    }

    /// Lets a run of its own end so, and gives back its id.
    async fn end(&mut self, outcome: Outcome) -> RunId {
        self.end_at(outcome, Timestamp::now()).await
    }

    async fn end_at(&mut self, outcome: Outcome, at: Timestamp) -> RunId {
        self.ended += 1;
        let run = RunId(Uuid::now_v7());
        self.store.submit(run, request(self.ended, at)).await.unwrap();
        let body = Body::Journal(Event::Finished { outcome });
        self.store.append(run, 1, vec![(at, body)]).await.unwrap();
        run
    }

    fn counts(&self, name: &str) -> (u64, u64, u64, u64) {
        let told = self.told.lock().unwrap().get(name).copied().unwrap_or_default();
        (told.delivered, told.refused, told.given_up, told.waiting)
    }

    fn health(&self, name: &str) -> Option<Option<String>> {
        let key = format!("webhook {name}");
        self.store.syncs().unwrap().into_iter().find(|state| state.key == key).map(|state| state.error)
    }
}

fn vault() -> Vault {
    let name = |name: &str| name.to_owned();
    Vault::new(VaultSettings {
        kind: VaultKind::Env,
        dhcp_item: name("dhcp"),
        bmc_item: name("bmc-{host}"),
        ipmi_item: name("ipmi"),
        factory_item: name("factory"),
    })
}

fn request(netbox_id: u64, at: Timestamp) -> EnrollRequest {
    EnrollRequest {
        host: format!("gpu-{netbox_id}"),
        netbox_id,
        site: if netbox_id % 2 == 1 { "osl1" } else { "zrh" }.into(),
        device_class: None,
        params: EnrollParams::default(),
        options: default_options(),
        routing: Routing::default(),
        submitted_by: "ada".into(),
        submitted_at: at,
        retry_of: None,
        placement: Default::default(),
        canary: None,
    }
}

fn succeeded() -> Outcome {
    Outcome::Succeeded { result: None }
}

fn failed() -> Outcome {
    let message = "eth0 sees '\u{1b}[2Jleaf-b07-2' 'swp14', NetBox has 'leaf-b07-1' 'swp14'";
    let action = "move the cable of eth0 to leaf-b07-1 swp14";
    let failure = Failure::new(FailureCode::ALL[0], Phase::Inspection, message, action);
    Outcome::Failed { failure: Box::new(failure) }
}

fn ids(got: &[Got]) -> Vec<String> {
    got.iter().map(|got| got.id().to_owned()).collect()
}

fn id(run: RunId) -> String {
    format!("run-ended-{run}")
}

fn fits_the_schema(body: &Value) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/webhook.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    schema::fits(&schema, body)
}

/// The function of the documentation, called by Python as it stands there.
fn verified_by_the_example(secret: &str, got: &Got) -> bool {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/webhooks.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let headers: std::collections::BTreeMap<&str, &str> =
        got.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let driver = "import json, sys\nhead = json.loads(sys.stdin.buffer.readline())\n\
                  print(is_from_muster(head['secret'], head['headers'], sys.stdin.buffer.read()))\n";
    let mut python = Command::new("python3")
        .args(["-c", &format!("{example}\n{driver}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let mut pipe = python.stdin.take().unwrap();
    writeln!(pipe, "{}", json!({"secret": secret, "headers": headers})).unwrap();
    pipe.write_all(&got.body).unwrap();
    drop(pipe);
    let out = python.wait_with_output().unwrap();
    match String::from_utf8_lossy(&out.stdout).trim() {
        "True" => true,
        "False" => false,
        other => panic!("{other}: {:?}", out.status),
    }
}

/// The real thing: three runs on the lab, of which one succeeds, one fails and one is cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn each_end_of_a_run_is_told_once_by_whoever_leads() {
    const HOSTS: [&str; 3] = ["gpu-b07-29", "gpu-b07-37", "gpu-b07-31"];
    let receiver = Receiver::start().await;
    let mut scenario = Scenario::demo().unwrap();
    scenario.hosts.retain(|host| HOSTS.contains(&host.name.as_str()));
    scenario.faults.retain(|fault| format!("{fault:?}").contains(HOSTS[1]));
    let lab = Lab::start(scenario, 200.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
    settings.webhooks.insert("tickets".to_owned(), hook(&receiver.at, folder.path()));
    let state = folder.path().join("state");
    let opening = Opening { user: Some("jo".into()), aside: false };
    let app = App::open_as(settings.clone(), &state, opening).await.unwrap();
    app.sync_now().await.unwrap();
    let mut runs = Vec::new();
    for host in HOSTS {
        runs.push(app.submit(host, EnrollParams::default(), "jo").await.unwrap());
    }
    app.cancel(runs[2], "eve").await.unwrap();
    let ended = || app.runs().unwrap().iter().all(|row| !row.status.is_active());
    let began = Instant::now();
    while !ended() {
        assert!(began.elapsed() < Duration::from_secs(120), "{:#?}", app.runs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let got = receiver.until(3).await;
    let by_host = |host: &str| got.iter().find(|got| got.json()["data"]["host"] == host).unwrap().json();
    for (host, run, status) in [
        (HOSTS[0], runs[0], RunStatus::Succeeded),
        (HOSTS[1], runs[1], RunStatus::Failed),
        (HOSTS[2], runs[2], RunStatus::Cancelled),
    ] {
        let body = by_host(host);
        let row = app.runs().unwrap().into_iter().find(|row| row.run == run).unwrap();
        assert_eq!(row.status, status, "{row:?}");
        assert!(fits_the_schema(&body), "{body:#}");
        assert_eq!(body["type"], format!("run.{}", status.as_str()));
        let data = &body["data"];
        assert_eq!((&data["run"], &data["outcome"]), (&json!(run), &json!(status.as_str())));
        assert_eq!((&data["site"], &data["submitted_by"]), (&json!(row.site), &json!("jo")));
        assert_eq!(data["finished_at"], json!(row.finished_at));
        let parts = ["success", "failure", "cancellation"].map(|part| data[part].is_object());
        let place = [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Cancelled].map(|of| of == status);
        assert_eq!(parts, place, "{body:#}");
    }
    assert_eq!(by_host(HOSTS[1])["data"]["failure"]["owner"], "ONSITE");
    assert_eq!(by_host(HOSTS[2])["data"]["cancellation"]["by"], "eve");
    assert!(by_host(HOSTS[0])["data"]["success"]["node"].is_string());
    app.shutdown().await;
    // A new leader knows what was told.
    let app = App::open(settings, &state).await.unwrap();
    let systems = || app.fleet().unwrap().systems;
    until("the health of the receiver", || systems().iter().any(|s| s.name == "webhook tickets" && s.error.is_none()))
        .await;
    app.shutdown().await;
    assert_eq!(receiver.got().len(), 3, "{:#?}", ids(&receiver.got()));
}

#[tokio::test]
async fn what_is_told_fits_the_schema_and_its_signature_is_verified_as_documented() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let mut rig = Rig::start(folder.path(), &[("tickets", hook(&receiver.at, folder.path()))]);
    rig.end(failed()).await;
    let got = receiver.until(1).await.remove(0);
    let body = got.json();
    assert!(fits_the_schema(&body), "{body:#}");
    assert!(!got.body.contains(&0x1b) && !String::from_utf8_lossy(&got.body).contains("u001b"), "{body:#}");
    assert!(verified_by_the_example(CANARY, &got));
    assert!(!verified_by_the_example("another", &got));
    let mut changed = got.clone();
    changed.body.push(b' ');
    assert!(!verified_by_the_example(CANARY, &changed));
    let mut old = got.clone();
    old.headers.insert("webhook-timestamp", "1700000000".parse().unwrap());
    assert!(!verified_by_the_example(CANARY, &old));
    // What the schema does not take is no payload.
    for pointer in ["/data/run", "/data/failure/owner", "/type"] {
        let mut wrong = body.clone();
        *wrong.pointer_mut(pointer).unwrap() = json!(7);
        assert!(!fits_the_schema(&wrong), "{pointer}");
    }
    rig.leave().await;
}

#[tokio::test]
async fn a_receiver_that_was_away_gets_everything_in_order_and_only_what_it_wants() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let door = Door::to(&receiver.at);
    let all = hook(door.url().strip_prefix("http://").unwrap(), folder.path());
    let other = Receiver::start().await;
    let some =
        WebhookOut { outcomes: vec![RunEnd::Failed], sites: vec!["osl1".into()], ..hook(&other.at, folder.path()) };
    let mut rig = Rig::start(folder.path(), &[("all", all), ("some", some)]);
    door.shut();
    let mut ends = Vec::new();
    for n in 1..=6 {
        ends.push(rig.end(if n % 3 == 0 { failed() } else { succeeded() }).await);
    }
    // The third is at osl1, the sixth at zrh: one that is away holds up no other.
    assert_eq!(ids(&other.until(1).await), [id(ends[2])]);
    until("the trouble", || rig.health("all").flatten().is_some_and(|e| e.contains("wait to be told: 6"))).await;
    let trouble = rig.health("all").flatten().unwrap();
    assert!(trouble.contains("refused the connection") && trouble.contains("[webhooks.all]"), "{trouble}");
    assert_eq!(rig.counts("all").3, 6);
    door.reopen();
    let got = receiver.until(6).await;
    assert_eq!(ids(&got), ends.iter().copied().map(id).collect::<Vec<_>>());
    until("the end of the trouble", || rig.health("all") == Some(None)).await;
    assert_eq!((rig.counts("all").0, rig.counts("all").3), (6, 0));
    assert_eq!((rig.counts("some"), other.got().len()), ((1, 0, 0, 0), 1));
    rig.leave().await;
}

#[tokio::test]
async fn answers_that_take_nothing_are_tried_again_and_a_body_that_is_judged_wrong_is_given_up() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let elsewhere = Receiver::start().await;
    let mut rig = Rig::start(folder.path(), &[("tickets", hook(&receiver.at, folder.path()))]);
    let now = |status: u16| (Duration::ZERO, StatusCode::from_u16(status).unwrap(), vec![]);
    let redirect = vec![("location", format!("http://{}/", elsewhere.at))];
    receiver.answers([now(500), (Duration::ZERO, StatusCode::TEMPORARY_REDIRECT, redirect)]);
    let first = rig.end(succeeded()).await;
    let got = receiver.until(3).await;
    assert_eq!(ids(&got), [id(first), id(first), id(first)], "the same delivery each time");
    until("the count", || rig.counts("tickets") == (1, 2, 0, 0)).await;
    assert!(elsewhere.got().is_empty(), "nothing goes to where a redirect points (Z4)");

    // An old end is tried once: it does not hold up what is new.
    let (old, new) = ("2020-01-01T00:00:00Z".parse().unwrap(), Timestamp::now());
    receiver.answers([now(503)]);
    let old = rig.end_at(succeeded(), old).await;
    let new = rig.end_at(failed(), new).await;
    let got = receiver.until(5).await;
    assert_eq!(ids(&got)[3..], [id(old), id(new)]);
    until("the count", || rig.counts("tickets") == (2, 3, 1, 0)).await;
    rig.leave().await;
}

/// Takes as long as the first four waits.
#[tokio::test]
async fn a_body_that_is_judged_wrong_five_times_gives_way_to_the_next() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let mut rig = Rig::start(folder.path(), &[("tickets", hook(&receiver.at, folder.path()))]);
    receiver.answers((0..5).map(|_| (Duration::ZERO, StatusCode::UNPROCESSABLE_ENTITY, vec![])));
    let (poison, next) = (rig.end(failed()).await, rig.end(succeeded()).await);
    let got = receiver.until(6).await;
    assert_eq!(ids(&got), [vec![id(poison); 5], vec![id(next)]].concat());
    until("the count", || rig.counts("tickets") == (1, 5, 1, 0)).await;
    rig.leave().await;
}

#[tokio::test]
async fn a_receiver_that_is_slow_holds_up_neither_runs_nor_the_way_out() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let patient = WebhookOut { timeout: Duration::from_secs(60), ..hook(&receiver.at, folder.path()) };
    let mut rig = Rig::start(folder.path(), &[("tickets", patient.clone())]);
    receiver.answers([(Duration::from_secs(60), StatusCode::OK, vec![])]);
    let slow = rig.end(succeeded()).await;
    receiver.until(1).await;
    let began = Instant::now();
    let next = rig.end(failed()).await;
    assert!(began.elapsed() < Duration::from_secs(2), "a run waited for a receiver");
    let began = Instant::now();
    rig.leave().await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // It did not say that it took it: the next leader tells it again, and then the next.
    rig.lead(&[("tickets", patient)]);
    assert_eq!(ids(&receiver.until(3).await), [id(slow), id(slow), id(next)]);
    rig.leave().await;
}

#[tokio::test]
async fn what_ends_on_the_way_out_is_still_told_and_a_receiver_that_is_new_is_told_nothing_old() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let hook = hook(&receiver.at, folder.path());
    let mut rig = Rig::start(folder.path(), &[]);
    rig.end(succeeded()).await;
    rig.leave().await;
    rig.lead(&[("tickets", hook.clone())]);
    let told = rig.end(succeeded()).await;
    rig.leave().await;
    assert_eq!(ids(&receiver.got()), [id(told)], "told before it left, and nothing of before it was configured");
    // With nobody to tell, ends wait for the next leader.
    let waiting = rig.end(failed()).await;
    rig.lead(&[("tickets", hook.clone())]);
    receiver.until(2).await;
    rig.leave().await;
    // One that was taken out is forgotten: it begins anew.
    rig.lead(&[]);
    until("that it is forgotten", || rig.store.get_meta("webhook:tickets").unwrap().is_none()).await;
    assert_eq!(rig.health("tickets"), None);
    rig.leave().await;
    rig.end(succeeded()).await;
    rig.lead(&[("tickets", hook)]);
    let last = rig.end(succeeded()).await;
    assert_eq!(ids(&receiver.until(3).await), [told, waiting, last].map(id));
    rig.leave().await;
}

/// Set for the process that is killed: folder and address of the receiver.
const KILLED: &str = "MUSTER_TEST_KILLED_WEBHOOK";

/// Not a test of its own: what the killed process does. Does nothing where it isn't that process.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Ok(told) = std::env::var(KILLED) else { return };
    rustls::crypto::ring::default_provider().install_default().ok();
    let (folder, at) = told.split_once('|').unwrap();
    let patient = WebhookOut { timeout: Duration::from_secs(60), ..hook(at, Path::new(folder)) };
    let mut rig = Rig::start(Path::new(folder), &[("tickets", patient)]);
    println!("ended {}", rig.end(failed()).await);
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_before_it_has_noted_a_delivery_tells_it_again_under_the_same_id() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    // The receiver has the delivery, and its sender does not know yet.
    receiver.answers([(Duration::from_secs(60), StatusCode::OK, vec![])]);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed", "--nocapture"])
        .env(KILLED, format!("{}|{}", folder.path().display(), receiver.at))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let first = receiver.until(1).await.remove(0);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let run = said.filter_map(|line| line.split_once("ended ").map(|(_, run)| run.to_owned())).next().unwrap();
    assert_eq!(first.id(), format!("run-ended-{run}"));
    let mut rig = Rig::start(folder.path(), &[("tickets", hook(&receiver.at, folder.path()))]);
    let got = receiver.until(2).await;
    assert_eq!((got[1].id(), got[1].json()), (first.id(), first.json()), "the same, told again");
    assert_ne!(got[1].headers["webhook-signature"], "");
    rig.leave().await;
    rig.lead(&[("tickets", hook(&receiver.at, folder.path()))]);
    rig.leave().await;
    assert_eq!(receiver.got().len(), 2);
}

/// Everything that any test of this binary logged, at every level.
fn logged() -> Arc<Mutex<Vec<u8>>> {
    static LOGGED: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    struct Into(Arc<Mutex<Vec<u8>>>);
    impl Write for Into {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let start = || {
        let kept = Arc::<Mutex<Vec<u8>>>::default();
        let into = Arc::clone(&kept);
        let layer = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || Into(Arc::clone(&into)))
            .finish();
        tracing::subscriber::set_global_default(layer).unwrap();
        kept
    };
    Arc::clone(LOGGED.get_or_init(start))
}

/// Proves: Z1
#[tokio::test]
async fn the_secret_is_in_no_log_no_store_and_no_health() {
    use base64::Engine;
    let log = logged();
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let tickets = hook(&receiver.at, folder.path());
    let broken = WebhookOut { secret: SecretRef::File(folder.path().join("broken")), ..tickets.clone() };
    std::fs::write(folder.path().join("broken"), format!("whsec_{CANARY}")).unwrap();
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("broken"), mode).unwrap();
    receiver.answers([(Duration::ZERO, StatusCode::INTERNAL_SERVER_ERROR, vec![])]);
    let mut rig = Rig::start(folder.path(), &[("tickets", tickets), ("broken", broken)]);
    rig.end(succeeded()).await;
    receiver.until(2).await;
    until("the trouble", || rig.health("broken").flatten().is_some_and(|e| e.contains("base64"))).await;
    rig.leave().await;
    let mut searched = vec![("the log".to_owned(), log.lock().unwrap().clone())];
    for entry in std::fs::read_dir(folder.path().join("state")).unwrap() {
        let path = entry.unwrap().path();
        searched.push((path.display().to_string(), std::fs::read(path).unwrap()));
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(CANARY);
    let hex: String = CANARY.bytes().map(|b| format!("{b:02x}")).collect();
    for (place, bytes) in &searched {
        assert!(!bytes.is_empty() || !place.contains("log"), "{place} is empty");
        for form in [CANARY, encoded.trim_end_matches('='), &hex] {
            assert!(!bytes.windows(form.len()).any(|part| part == form.as_bytes()), "'{form}' is in {place}");
        }
    }
    let text = String::from_utf8_lossy(&searched[0].1).into_owned();
    assert!(text.contains("could not be told yet") && text.contains("webhook"), "the log was looked into");
}

/// Toward K4
#[tokio::test]
async fn the_doctor_looks_at_secret_receiver_and_deliveries_and_tells_the_receiver_nothing() {
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
    let mut settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
    let tickets = hook(&receiver.at, folder.path());
    let gone = WebhookOut {
        url: "http://127.0.0.1:9/".parse().unwrap(),
        secret: SecretRef::Env("MUSTER_TEST_NO_SUCH_VARIABLE".into()),
        ..tickets.clone()
    };
    settings.webhooks.insert("tickets".into(), tickets.clone());
    settings.webhooks.insert("gone".into(), gone);
    let state = folder.path().join("state");
    let lines = async |state: Option<&Path>| {
        let checks = doctor(&settings, state, &mut |_| ()).await.unwrap();
        let webhook = checks.into_iter().filter(|check| check.check.starts_with("webhook."));
        webhook.map(|check| (check.check.clone(), check)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = lines(Some(&state)).await;
    assert!(!state.exists(), "the doctor makes no state folder");
    let level = |name: &str| before[name].level;
    assert_eq!([level("webhook.tickets.secret"), level("webhook.tickets.answer")], [Level::Ok, Level::Ok]);
    assert_eq!([level("webhook.gone.secret"), level("webhook.gone.answer")], [Level::Fail, Level::Unknown]);
    assert!(!before.contains_key("webhook.tickets.deliveries"));
    assert!(receiver.got().is_empty());

    receiver.answers((0..9).map(|_| (Duration::ZERO, StatusCode::INTERNAL_SERVER_ERROR, vec![])));
    let mut rig = Rig::start(folder.path(), &[("tickets", tickets)]);
    rig.end(succeeded()).await;
    until("the trouble", || rig.health("tickets").flatten().is_some()).await;
    let after = lines(Some(&state)).await;
    let deliveries = &after["webhook.tickets.deliveries"];
    assert_eq!(deliveries.level, Level::Fail);
    assert!(deliveries.message.contains("500") && deliveries.action.is_some(), "{deliveries:?}");
    rig.leave().await;
}
