//! The rows of the prelude's decision table that a real Ironic can be brought to, and what they come to there: the same as
//! on the lab.
//!
//! The nodes are of the hardware type `fake-hardware`, whose interfaces do nothing: so states come in seconds, and a
//! ramdisk that nobody boots never calls back.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use muster::activities::env::{ActivityCx, Env};
use muster::activities::registry;
use muster::clients::ironic::Ironic;
use muster::config::settings::{IronicAuth, IronicInstance, Trust};
use muster::domain::event::{Observation, WaitKind, WaitReason};
use muster::domain::ids::RunId;
use muster::workflows::cx::{Activity, ActivityError, ActivityOptions, Cancelled, Cx, Signal};
use muster::workflows::defs::{Half, PreludeIn, PreludeOut, Target};
use muster::workflows::enroll::enroll;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::counting::Counting;
use super::inside::{Ground, Next, Scene, Watch};
use super::prelude::{End, Follow, HOST, Outcome, Row, expected, scenario};
use super::second::Second;

/// A run whose waits are real, and whose steps beside Ironic's are not made.
#[derive(Clone)]
struct RealCx(Rc<Inner>);

struct Inner {
    env: Arc<Env>,
    watch: RefCell<Watch>,
    stopped: Cell<bool>,
    waits: RefCell<Vec<WaitKind>>,
}

impl Cx for RealCx {
    fn activity<A: Activity>(
        &self,
        input: A::In,
        _options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<A> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move {
            let input = serde_json::to_value(input).unwrap();
            if inner.stopped.get() || (inner.watch.borrow_mut())(A::NAME, &input) == Next::Stop {
                inner.stopped.set(true);
                return Err(ActivityError::Cancelled);
            }
            let output = match A::NAME {
                "netbox.status_gate" => json!({"status": "active"}),
                "netbox.activate" => json!({"changed": false, "note": "not here"}),
                name => Box::pin(registry::run(name, input, cx(&inner.env))).await.map_err(ActivityError::Failed)?,
            };
            Ok(serde_json::from_value(output).unwrap())
        })
    }

    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<> {
        self.0.waits.borrow_mut().push(reason.kind);
        let span = Duration::try_from(deadline.duration_since(self.now())).unwrap_or_default();
        async move {
            tokio::time::sleep(span).await;
            Ok(())
        }
    }

    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<> {
        std::future::pending()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn report(&self, _observation: Observation) {}

    fn version(&self, _change: &'static str) -> bool {
        true
    }

    fn jitter(&self, _place: &str) -> f64 {
        0.5
    }
}

/// A client of the rig's Ironic at this address.
pub fn ironic_at(url: &str, ground: &Ground) -> Ironic {
    let settings = IronicInstance {
        url: Some(url.parse().unwrap()),
        auth: IronicAuth::None,
        trust: Trust::System,
        timeout: Duration::from_secs(30),
        device_classes: vec![],
        project: None,
        poll: Duration::from_secs(60),
    };
    Ironic::new("lab", &settings, ground.vault()).unwrap()
}

/// What a half comes to that a row's node is met by.
async fn outcome(ground: &Arc<Ground>, counting: &Counting, row: &Row) -> Outcome {
    let scene = ground.scene_with(|_| ironic_at(&counting.url, ground));
    let mut request = scene.request();
    request.params.run_inspection = row.run_inspection;
    request.params.max_attempts = Some(1);
    let budgets = &mut request.options.budgets;
    let patience = Duration::from_secs(if expected(row).end == End::WaitedFor { 1 } else { 30 });
    budgets.stable = patience;
    (budgets.poll_first, budgets.poll_max) = (Duration::from_millis(200), Duration::from_millis(400));
    counting.take();
    let end = match row.half {
        Half::Inspection => {
            let (watch, follow) = Follow::from(row.half, || {});
            let cx = RealCx(Rc::new(Inner {
                env: Arc::clone(&scene.env),
                watch: RefCell::new(watch),
                stopped: Cell::new(false),
                waits: RefCell::default(),
            }));
            let code = match Box::pin(enroll(cx.clone(), request)).await {
                Err(ActivityError::Failed(failure)) => failure.code.as_str(),
                Err(ActivityError::Cancelled) | Ok(_) => "-",
            };
            let waits = cx.0.waits.borrow().clone();
            let follow = follow.borrow();
            follow.end(code, &waits)
        }
        // The half before is not made: no node in most of these states comes through it.
        Half::Cleaning => settled(&scene, patience).await,
    };
    let uuid = |part: &str| if part.parse::<uuid::Uuid>().is_ok() { "ID".to_owned() } else { part.to_owned() };
    let writes = counting.take_writes().into_iter();
    let writes = writes.map(|write| write.split('/').map(uuid).collect::<Vec<_>>().join("/")).collect();
    Outcome { end, writes }
}

/// The prelude of the cleaning half, asked again as the workflow asks it again.
async fn settled(scene: &Scene, patience: Duration) -> End {
    let request = scene.request();
    let target = Target { host: request.host, netbox_id: request.netbox_id, site: request.site, ironic: "lab".into() };
    let began = Instant::now();
    loop {
        let input = PreludeIn { target: target.clone(), half: Half::Cleaning, node_uuid: None };
        match muster::activities::ironic::prelude(&cx(&scene.env), input).await {
            Err(failure) => return End::Failed(failure.code.as_str()),
            Ok(PreludeOut::Ready { .. }) => return End::GoesOn,
            Ok(PreludeOut::Satisfied { .. }) => return End::Satisfied { verified: false },
            Ok(PreludeOut::Cleaning { .. }) => return End::Polled,
            Ok(PreludeOut::Wait { .. }) if began.elapsed() > patience => return End::WaitedFor,
            Ok(PreludeOut::Wait { .. } | PreludeOut::Locked { .. }) => {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

fn cx(env: &Arc<Env>) -> ActivityCx {
    ActivityCx {
        env: Arc::clone(env),
        run: RunId(uuid::Uuid::now_v7()),
        seq: 1,
        attempt: 1,
        stop: CancellationToken::new(),
        sink: Arc::new(|_| {}),
    }
}

/// Brings a fresh node into a state, as far as hardware that does nothing can be brought.
async fn bring(second: &Second, state: &str) {
    let verb = |target: &str| json!({"target": target});
    // A ramdisk that nobody boots is what an inspection or a clean waits for.
    let waiting = json!({"inspect_interface": "agent", "deploy_interface": "direct", "boot_interface": "ipxe"});
    let waits = ["inspect", "clean w", "clean f"].iter().any(|s| state.starts_with(s));
    let uuid = second.fake(HOST, if waits { waiting } else { json!({}) }).await;
    if waits {
        let port = json!({"node_uuid": uuid, "address": "02:99:00:00:00:77"});
        second.must(reqwest::Method::POST, "/v1/ports", Some(port)).await;
    }
    second.must(reqwest::Method::PUT, &format!("/v1/nodes/{HOST}/traits/HW_ARCH_X86_64"), None).await;
    if state == "enroll" {
        return;
    }
    second.verb(HOST, verb("manage"), "manageable").await;
    match state {
        "manageable" => {}
        "available" => second.verb(HOST, verb("provide"), "available").await,
        "active" => second.verb(HOST, verb("adopt"), "active").await,
        "inspect wait" | "inspect failed" => second.verb(HOST, verb("inspect"), "inspect wait").await,
        "clean wait" | "clean failed" => second.verb(HOST, verb("provide"), "clean wait").await,
        other => panic!("nobody knows how to bring a node to '{other}'"),
    }
    if state.ends_with("failed") {
        second.verb(HOST, verb("abort"), state).await;
    }
}

const STATES: [&str; 8] =
    ["enroll", "manageable", "available", "active", "inspect wait", "inspect failed", "clean wait", "clean failed"];

/// Proves: E6, E7, E8, E9, E10, E11, E12
#[test]
fn the_prelude_comes_to_the_same_on_a_real_ironic_as_on_the_lab() {
    let Some(path) = std::env::var_os("MUSTER_REAL_IRONIC") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_IRONIC names no rig");
        return;
    };
    let rig: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(rig["auth"], "noauth", "could not run: this asks Ironic without a login");
    let counting = Counting::in_front_of(rig["ironic_url"].as_str().unwrap());
    let second = Second::of(rig["ironic_url"].as_str().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(all_rows(&second, &counting));
}

async fn all_rows(second: &Second, counting: &Counting) {
    let ground = Arc::new(Ground::of(scenario(), HOST));
    let began = Instant::now();
    let (mut wrong, mut rows, mut left_out) = (Vec::new(), 0, Vec::new());
    for state in STATES {
        second.remove(HOST).await;
        bring(second, state).await;
        for (instance, maintenance) in [(false, false), (false, true), (true, false), (true, true)] {
            for (half, run_inspection) in [(Half::Inspection, true), (Half::Inspection, false), (Half::Cleaning, true)]
            {
                let row = Row { state: state.into(), instance, maintenance, run_inspection, half };
                // Whether it is inspected makes a difference for enrolled nodes only, which the lab shows for all.
                if !run_inspection && !matches!(expected(&row).end, End::Satisfied { .. }) {
                    continue;
                }
                // A row that changed the node leaves it to be brought there again.
                if second.node(HOST).await.unwrap()["provision_state"] != state {
                    second.remove(HOST).await;
                    bring(second, state).await;
                }
                if !set(second, instance, maintenance).await {
                    left_out.push(format!("'{state}' with an instance"));
                    continue;
                }
                let came = outcome(&ground, counting, &row).await;
                let mut wanted = expected(&row);
                // The access to a BMC is none of what such a node has.
                wanted.writes.retain(|write| write != "PATCH /v1/nodes/ID");
                let mut on_lab = super::prelude::outcome(&ground, &row, Some("fake-hardware")).await;
                on_lab.writes.retain(|write| write != "PATCH /v1/nodes/ID");
                let real: Vec<String> = came.writes.iter().map(|write| without_target(write)).collect();
                let lab: Vec<String> = on_lab.writes.iter().map(|write| without_target(write)).collect();
                let should: Vec<String> = wanted.writes.iter().map(|write| without_target(write)).collect();
                if came.end != wanted.end || real != should {
                    wrong.push(format!("{row:?}\n  wanted {wanted:?}\n  real   {came:?}"));
                }
                if on_lab.end != came.end || lab != real {
                    wrong.push(format!("{row:?}\n  lab    {on_lab:?}\n  real   {came:?}"));
                }
                rows += 1;
            }
        }
    }
    second.remove(HOST).await;
    left_out.dedup();
    println!("{rows} rows on the real Ironic in {:.1?}; it takes no {}", began.elapsed(), left_out.join(", no "));
    assert!(rows > 50, "{rows}");
    assert!(wrong.is_empty(), "{} of {rows}:\n{}", wrong.len(), wrong.join("\n"));
}

/// The proxy sees no bodies.
fn without_target(write: &str) -> String {
    write.strip_suffix(" manage").unwrap_or(write).to_owned()
}

/// `false`: Ironic lets nobody set an instance in this state.
async fn set(second: &Second, instance: bool, maintenance: bool) -> bool {
    let node = second.node(HOST).await.unwrap();
    if node["maintenance"] != maintenance {
        second.maintenance(HOST, maintenance).await;
    }
    if node["instance_uuid"].is_null() != instance {
        return true;
    }
    let value = json!("22222222-0000-4000-8000-000000000001");
    let patch = match instance {
        true => json!([{"op": "add", "path": "/instance_uuid", "value": value}]),
        false => json!([{"op": "remove", "path": "/instance_uuid"}]),
    };
    loop {
        let (status, body) =
            second.ask(reqwest::Method::PATCH, &format!("/v1/nodes/{HOST}"), Some(patch.clone())).await;
        let said = body.to_string();
        match status {
            200 => return true,
            409 if said.contains("state transition is in progress") => return false,
            409 if said.contains("is locked by host") => tokio::time::sleep(Duration::from_millis(300)).await,
            _ => panic!("{status} {said}"),
        }
    }
}
