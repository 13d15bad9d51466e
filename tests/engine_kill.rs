//! A real process, killed with SIGKILL after every single append, and started again each time.

#[path = "support/engine.rs"]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use muster::domain::event::{Body, Event, Outcome, RunRecord};
use muster::domain::ids::RunId;
use muster::domain::request::EnrollRequest;
use muster::engine::{Journal, LocalCx, SystemClock, Workflows};
use muster::store::{Lead, LeadError, Store, StoreError};
use muster::workflows::cx::Cx;
use serde_json::json;
use support::*;

/// Set for the process that is killed: the state folder.
const FOLDER: &str = "MUSTER_TEST_KILLED_FOLDER";
/// How many appends it makes before it stands still; negative: it stands still before the next one is made.
const APPENDS: &str = "MUSTER_TEST_KILLED_APPENDS";

/// The store, which stands still for ever at a place, and says so.
struct StandsStill {
    store: Store,
    left: AtomicI64,
    before: bool,
}

impl Journal for StandsStill {
    reads_the_store!(store);

    fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> BoxFuture<'static, Result<Vec<RunRecord>, StoreError>> {
        let last = self.left.fetch_sub(1, Ordering::SeqCst) == 1;
        let (before, write) = (self.before, Journal::append(&self.store, run, expect_n, events));
        Box::pin(async move {
            if last && before {
                stand_still().await;
            }
            let written = write.await;
            if last {
                stand_still().await;
            }
            written
        })
    }
}

async fn stand_still() {
    println!("standing still");
    futures::future::pending().await
}

async fn workflow(
    cx: LocalCx,
    _: EnrollRequest,
) -> Result<muster::domain::event::EnrollResult, muster::workflows::cx::ActivityError> {
    let a = cx.activity::<A>("1".into(), options()).await?;
    cx.sleep_until(cx.now() + Duration::from_millis(150), reason("a moment")).await?;
    let (b, c) = futures::join!(cx.activity::<B>(a, options()), cx.activity::<C>("2".into(), options()));
    let undo = cx.activity::<Undo>(format!("{} {}", b?, c?), options()).await?;
    result(undo)
}

/// Not a test of its own: what the killed process does. Does nothing where it isn't that process.
#[tokio::test]
async fn the_process_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let appends: i64 = std::env::var(APPENDS).unwrap().parse().unwrap();
    let folder = PathBuf::from(folder);
    // The lock of a killed process falls with it, maybe a moment later.
    let _lead = loop {
        match Lead::take(&folder) {
            Ok(lead) => break lead,
            Err(LeadError::Held { .. } | LeadError::HeldByUnknown(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    let store = Store::open(&folder).unwrap();
    let world = World::new();
    for name in ["test.a", "test.b", "test.c", "test.undo"] {
        let effects = folder.join("effects");
        world.on(name, move |input, call| {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&effects).unwrap();
            writeln!(file, "{}", call.seq).unwrap();
            async move { Ok(json!(format!("{}.{}", input.as_str().unwrap(), call.seq))) }
        });
    }
    let journal = StandsStill { store: store.clone(), left: AtomicI64::new(appends.abs()), before: appends < 0 };
    let engine =
        engine(Arc::new(journal), &world, Workflows::new().with("test", workflow), Arc::new(SystemClock::default()));
    engine.resume_all().await.unwrap();
    let run = the_run();
    while !matches!(events(&store, run).last(), Some(Event::Finished { .. })) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("it has finished");
}

fn the_run() -> RunId {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

/// Runs the process until it stands still, then kills it; `true`: it ended by itself.
fn live_and_die(folder: &Path, appends: i64) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .env(APPENDS, appends.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut finished, mut said) = (false, Vec::new());
    for line in lines {
        let line = line.unwrap();
        if line.contains("standing still") {
            break;
        }
        finished |= line.ends_with("it has finished");
        said.push(line);
    }
    assert!(!said.iter().any(|line| line.contains("FAILED")), "it ended by an error of its own: {said:#?}");
    // SIGKILL on Unix: no destructor runs, nothing is flushed.
    child.kill().unwrap();
    child.wait().unwrap();
    finished
}

async fn killed_until_the_end(appends: i64) -> usize {
    let (folder, store) = store();
    store.submit_as(the_run(), "test", request(1)).await.unwrap();
    let mut lives = 1;
    while !live_and_die(folder.path(), appends) {
        // A kill before a commit makes no progress by itself, nor does one behind the commit that says that a step is begun
        // again. Every second life gets as far as the end of a step: behind that, its attempt is a commit of its own.
        if live_and_die(folder.path(), appends.abs() + 2) {
            break;
        }
        lives += 2;
        assert!(lives < 120, "no progress: {:#?}", store.records(the_run()).unwrap());
    }
    let Some(Event::Finished { outcome: Outcome::Succeeded { result: Some(result) } }) =
        events(&store, the_run()).pop()
    else {
        panic!("{:#?}", store.records(the_run()).unwrap())
    };
    assert_eq!(result.platform_class.as_deref(), Some("1.1.3 2.4.5"));
    let effects = std::fs::read_to_string(folder.path().join("effects")).unwrap();
    for seq in [1, 3, 4, 5] {
        let times = effects.lines().filter(|line| line.parse() == Ok(seq)).count();
        let ends = events(&store, the_run())
            .iter()
            .filter(|e| matches!(e, Event::ActivityDone { seq: s, .. } if *s == seq))
            .count();
        assert_eq!(ends, 1, "activity {seq}");
        assert!(times >= 1, "activity {seq}");
    }
    lives
}

/// Proves: G5
#[tokio::test]
async fn killed_behind_every_commit_it_ends_with_the_result_of_the_undisturbed_run() {
    let lives = killed_until_the_end(1).await;
    assert!(lives >= 5, "only {lives} lives");
}

/// Proves: G5
#[tokio::test]
async fn killed_before_a_commit_what_was_not_written_is_done_again_and_nothing_else() {
    killed_until_the_end(-1).await;
}
