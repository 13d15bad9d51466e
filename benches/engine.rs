//! Measures the journal and the engine: `cargo bench --bench engine [FOLDER]`. Prints figures and ratios, asserts none.
//!
//! FOLDER is where the stores are made: a disk that fsync really reaches. What a commit costs depends on it more than on
//! anything else, so a plain loop of commits on the same disk stands beside as the measure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::config::settings::{Limits, default_options};
use muster::domain::event::{Body, EnrollResult, Event, Observation, WaitKind, WaitReason};
use muster::domain::failure::Failure;
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::engine::{Call, Dispatch, Engine, LocalCx, Parts, SystemClock, Workflows};
use muster::store::Store;
use muster::workflows::cx::{Activity, ActivityError, ActivityOptions, Cx, RetryPolicy};
use serde_json::Value;
use uuid::Uuid;

const RUNS: u64 = 1000;
const STEPS: u32 = 10;

fn main() {
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let folder = given.unwrap_or_else(|| PathBuf::from("target/bench-engine"));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let one = plain_commits(&folder.join("plain-1.db"), 1);
    let plain = plain_commits(&folder.join("plain-64.db"), 64);
    println!("plain SQLite, {:.2} times as fast with the rows of one run", one / plain);
    runtime.block_on(async {
        commits(&folder, plain).await;
        engine(&folder, plain).await;
    });
    std::fs::remove_dir_all(&folder).ok();
}

/// The measure: what an append writes and asks, a commit each, one after the other, nothing in between. The appends are
/// those of so many runs in turn.
fn plain_commits(path: &Path, runs: usize) -> f64 {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.pragma_update(None, "synchronous", "FULL").unwrap();
    conn.execute_batch(
        "CREATE TABLE run (id BLOB PRIMARY KEY, status TEXT NOT NULL, finished_at INTEGER) STRICT;
         CREATE TABLE record (run BLOB NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, observed INTEGER NOT NULL,
                              body TEXT NOT NULL, PRIMARY KEY (run, n)) STRICT, WITHOUT ROWID;
         CREATE TABLE appended (place INTEGER PRIMARY KEY, run BLOB NOT NULL, n INTEGER NOT NULL,
                                records INTEGER NOT NULL) STRICT;",
    )
    .unwrap();
    let body = serde_json::to_string(&note().1).unwrap();
    let ids: Vec<[u8; 16]> = (0..runs).map(|_| Uuid::now_v7().into_bytes()).collect();
    for id in &ids {
        conn.execute("INSERT INTO run VALUES (?1, 'running', NULL)", [id]).unwrap();
    }
    let sql = |text: &str, params: &[&dyn rusqlite::ToSql]| {
        conn.prepare_cached(text).unwrap().execute(params).unwrap();
    };
    let (began, mut n) = (Instant::now(), 0usize);
    while began.elapsed() < Duration::from_secs(2) {
        let run = &ids[n % runs];
        sql("BEGIN IMMEDIATE", &[]);
        let one = |text: &str| conn.prepare_cached(text).unwrap().query_row([run], |row| row.get::<_, i64>(0)).unwrap();
        one("SELECT status = 'running' FROM run WHERE id = ?1");
        let next = one("SELECT coalesce(max(n) + 1, 0) FROM record WHERE run = ?1");
        sql("INSERT INTO record VALUES (?1, ?2, ?3, 1, ?4)", &[run, &next, &next, &body]);
        sql("INSERT INTO appended (run, n, records) VALUES (?1, ?2, 1)", &[run, &next]);
        sql("COMMIT", &[]);
        n += 1;
    }
    let rate = n as f64 / began.elapsed().as_secs_f64();
    println!("plain SQLite, the same rows of {runs:2} runs, 1 append a commit {rate:6.0} commits/s");
    rate
}

fn note() -> (Timestamp, Body) {
    let text = "x".repeat(300);
    (Timestamp::now(), Body::Observation(Observation::Note { system: "bench".into(), text }))
}

async fn commits(folder: &Path, plain: f64) {
    for writers in [1usize, 4, 16, 64, 256, 1000] {
        let store = Store::open(&folder.join(format!("commits-{writers}"))).unwrap();
        let mut runs = Vec::new();
        for id in 0..writers as u64 {
            runs.push(submit(&store, id).await);
        }
        let (before, began) = (store.commits(), Instant::now());
        let until = began + Duration::from_secs(2);
        let tasks: Vec<_> = runs
            .into_iter()
            .map(|run| {
                let store = store.clone();
                tokio::spawn(async move {
                    let (mut n, mut waits) = (1, Vec::new());
                    while Instant::now() < until {
                        let asked = Instant::now();
                        store.append(run, n, vec![note()]).await.unwrap();
                        waits.push(asked.elapsed());
                        n += 1;
                    }
                    waits
                })
            })
            .collect();
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(task.await.unwrap());
        }
        let seconds = began.elapsed().as_secs_f64();
        let commits = store.commits().commits - before.commits;
        waits.sort_unstable();
        let rate = waits.len() as f64 / seconds;
        println!(
            "store, {writers:4} waiting writers  {rate:8.0} appends/s in {:6.0} commits/s  p50 {:7.2?}  p99 {:7.2?}  {:5.2} of plain",
            commits as f64 / seconds,
            waits[waits.len() / 2],
            waits[waits.len() * 99 / 100],
            rate / plain,
        );
    }
}

struct Nothing;

impl Activity for Nothing {
    const NAME: &'static str = "bench.nothing";
    type In = u32;
    type Out = u32;
}

struct Hands;

impl Dispatch for Hands {
    fn run(&self, _: &str, input: Value, _: Call) -> BoxFuture<'static, Result<Value, Failure>> {
        Box::pin(async move { Ok(input) })
    }
}

fn options() -> ActivityOptions {
    ActivityOptions {
        phase: Phase::Bmc,
        timeout: Duration::from_secs(60),
        retry: RetryPolicy::attempts(3),
        survives_cancel: false,
    }
}

/// Some steps, then a wait that only a resume with a later clock would end.
async fn workflow(cx: LocalCx, request: EnrollRequest) -> Result<EnrollResult, ActivityError> {
    for step in 0..STEPS {
        cx.activity::<Nothing>(step, options()).await?;
    }
    if request.params.force_inspection {
        let reason =
            WaitReason { phase: Phase::Bmc, kind: WaitKind::Cleaning, text: "waits".into(), gives_up_at: None };
        cx.sleep_until(cx.now() + Duration::from_secs(3600), reason).await?;
    }
    Ok(EnrollResult { node: None, ironic: None, platform_class: None, already_enrolled: false, qualifying: false })
}

fn start(store: &Store) -> Engine {
    Engine::with(Parts {
        journal: Arc::new(store.clone()),
        dispatch: Arc::new(Hands),
        workflows: Workflows::new().with("bench", workflow),
        clock: Arc::new(SystemClock::default()),
        limits: Limits { runs: 10_000, activities: 64, ..Limits::default() },
    })
    .unwrap()
}

async fn engine(folder: &Path, plain: f64) {
    let store = Store::open(&folder.join("engine")).unwrap();
    let mut runs = Vec::new();
    for id in 0..RUNS {
        runs.push(submit(&store, id).await);
    }
    let (memory, cpu, began, before) = (resident(), cpu_time(), Instant::now(), store.commits());
    let one = start(&store);
    one.resume_all().await.unwrap();
    wait_until(&store, |row| row.waiting.is_some()).await;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_time() - cpu);
    let activities = (RUNS * u64::from(STEPS)) as f64;
    let commits = (store.commits().commits - before.commits) as f64;
    println!(
        "{RUNS} runs at once, {STEPS} activities each: {seconds:.2} s, {:.0} activities/s ({:.2} of plain commits), {:.3} ms CPU an \
         activity, {:.1} activities a commit, {:.0} KB resident a run",
        activities / seconds,
        activities / seconds / plain,
        cpu.as_secs_f64() * 1000.0 / activities,
        activities / commits,
        (resident() - memory) as f64 / RUNS as f64,
    );
    let idle = cpu_time();
    tokio::time::sleep(Duration::from_secs(3)).await;
    println!("{RUNS} waiting runs: {:.3} % CPU", (cpu_time() - idle).as_secs_f64() / 3.0 * 100.0);
    let stopping = Instant::now();
    one.shutdown().await;
    println!("{RUNS} waiting runs stopped in {:.0} ms", stopping.elapsed().as_secs_f64() * 1000.0);

    let (began, cpu) = (Instant::now(), cpu_time());
    let two = start(&store);
    two.resume_all().await.unwrap();
    let last = runs.last().unwrap();
    // A run answers a cancel only when it is replayed, and the last one is the last to be.
    while two.signal(*last, muster::workflows::cx::Signal::LookNow).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!(
        "{RUNS} interrupted runs resumed in {:.0} ms, {:.0} ms CPU",
        began.elapsed().as_secs_f64() * 1000.0,
        (cpu_time() - cpu).as_secs_f64() * 1000.0
    );
    let records: usize = runs.iter().map(|run| store.records(*run).unwrap().len()).sum();
    println!("{records} records");
    two.shutdown().await;
}

async fn wait_until(store: &Store, ready: impl Fn(&muster::store::RunRow) -> bool) {
    while !store.runs().unwrap().iter().all(&ready) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn submit(store: &Store, id: u64) -> RunId {
    let run = RunId(Uuid::now_v7());
    let request = EnrollRequest {
        host: format!("gpu-{id}"),
        netbox_id: id,
        site: "osl1".into(),
        device_class: None,
        params: EnrollParams { force_inspection: true, ..EnrollParams::default() },
        options: default_options(),
        routing: Routing::default(),
        submitted_by: "bench".into(),
        submitted_at: Timestamp::now(),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    };
    store.submit_as(run, "bench", request).await.unwrap();
    assert!(matches!(store.records(run).unwrap()[0].body, Body::Journal(Event::Submitted { .. })));
    run
}

/// Kilobytes.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
