//! The only thread that writes: takes what is queued, commits it in one transaction, then answers everybody.
//!
//! It waits for a first request and takes with it whatever else is queued by then, up to a bound. Each request has a
//! savepoint of its own, so that one that fails spoils no other. Nothing is answered before the commit is on the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::StoreError;
use super::handle::Sql;
use crate::domain::text::panic_message;

/// The most requests that one commit carries: bounds how long the first of them waits for the others.
const BATCH: usize = 256;

/// Whoever was answered comes back within moments, and would just miss the next commit: a commit after one that carried
/// several waits for as many, for this part of what the last one took and never longer than this.
const WAIT_SHARE: u32 = 4;
const WAIT_MOST: Duration = Duration::from_micros(500);

/// How many commits carried how many requests, since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Commits {
    pub commits: u64,
    pub requests: u64,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    requests: AtomicU64,
}

/// The queue to the writer thread, and the thread.
pub(super) struct Writer {
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

/// How the changes of a request that fails are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undo {
    /// By a savepoint of its own: it may change something and refuse afterwards.
    Alone,
    /// It refuses before it changes anything. If it fails all the same the store itself does, and the whole commit is
    /// undone.
    Together,
}

/// One queued request, with its answer's way back.
trait Job: Send {
    fn undo(&self) -> Undo;
    /// Does the work in the open transaction and keeps the answer.
    fn run(&mut self, conn: &Connection) -> Result<(), StoreError>;
    /// Sends the kept answer, or the commit's error in its place.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Request<F, T> {
    undo: Undo,
    work: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
    path: PathBuf,
}

impl<F, T> Job for Request<F, T>
where
    F: FnOnce(&Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, conn: &Connection) -> Result<(), StoreError> {
        let Some(work) = self.work.take() else { return Ok(()) };
        // The thread serves everybody: a panic in one request must not end it.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(conn))).unwrap_or_else(|panic| {
            let cause = format!("a write panicked: {}", panic_message(&*panic));
            Err(StoreError::Refused { path: self.path.clone(), cause })
        });
        let failed = outcome.as_ref().err().cloned();
        self.outcome = Some(outcome);
        failed.map_or(Ok(()), Err)
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (self.outcome, committed) {
            (Some(Err(own)), _) => Err(own),
            (_, Err(commit)) => Err(commit),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // Whoever asked may have gone; the work is done all the same.
        self.answer.send(outcome).ok();
    }
}

impl Writer {
    /// Starts the thread on a connection that may write.
    pub(super) fn spawn(conn: Connection, path: PathBuf) -> Result<Writer, StoreError> {
        let (queue, requests) = mpsc::channel::<Box<dyn Job>>();
        let counters = Arc::new(Counters::default());
        let (counted, place) = (Arc::clone(&counters), path.clone());
        let thread = std::thread::Builder::new()
            .name("muster-store".to_owned())
            .spawn(move || run(&conn, &requests, &path, &counted))
            .map_err(|e| StoreError::Refused { path: place, cause: e.to_string() })?;
        Ok(Writer { queue: Some(queue), thread: Some(thread), counters })
    }

    /// Queues work and waits until it is committed. Dropping the future does not take the work back.
    pub(super) async fn write<T, F>(&self, path: &Path, undo: Undo, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = Request { undo, work: Some(work), outcome: None, answer, path: path.to_owned() };
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        queue.send(Box::new(job)).map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    pub(super) fn commits(&self) -> Commits {
        Commits {
            commits: self.counters.commits.load(Ordering::Relaxed),
            requests: self.counters.requests.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Writer {
    /// Lets the thread finish what is queued and waits for it, so that the file is closed when the last handle is gone.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It never panics: every request is caught above.
            thread.join().ok();
        }
    }
}

/// Serves until the last handle is gone.
fn run(conn: &Connection, requests: &mpsc::Receiver<Box<dyn Job>>, path: &Path, counters: &Counters) {
    let (mut carried, mut took) = (1, Duration::ZERO);
    while let Ok(first) = requests.recv() {
        let mut jobs = vec![first];
        gather(&mut jobs, requests, carried, (took / WAIT_SHARE).min(WAIT_MOST));
        // Counted before the answers, so that whoever was answered sees its own commit counted.
        counters.requests.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        counters.commits.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let committed = commit(conn, path, &mut jobs);
        (carried, took) = (jobs.len(), began.elapsed());
        if let Err(e) = &committed {
            tracing::error!(error = %e, requests = jobs.len(), "a commit was lost");
        }
        for job in jobs {
            job.answer(committed.clone());
        }
    }
}

/// Takes what is queued; and waits a little, while there are fewer than are `expected`.
fn gather(jobs: &mut Vec<Box<dyn Job>>, requests: &mpsc::Receiver<Box<dyn Job>>, expected: usize, wait: Duration) {
    let mut until = None;
    while jobs.len() < BATCH {
        if let Ok(next) = requests.try_recv() {
            jobs.push(next);
            continue;
        }
        if jobs.len() >= expected {
            return;
        }
        let until = *until.get_or_insert_with(|| Instant::now() + wait);
        match requests.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(next) => jobs.push(next),
            Err(_) => return,
        }
    }
}

/// One transaction over all jobs.
fn commit(conn: &Connection, path: &Path, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    exec(conn, path, "BEGIN IMMEDIATE")?;
    for job in jobs {
        match job.undo() {
            Undo::Alone => Sql::new(conn, path).attempt(|| job.run(conn)).map(drop),
            Undo::Together => {
                let before = conn.total_changes();
                let done = job.run(conn);
                if conn.total_changes() == before { still_open(conn, done.err()) } else { done }
            }
        }
        .inspect_err(|_| roll_back(conn))?;
    }
    exec(conn, path, "COMMIT").inspect_err(|_| roll_back(conn))
}

/// Some errors (a full disk, mostly) make SQLite roll the whole transaction back: then all requests are lost.
fn still_open(conn: &Connection, failed: Option<StoreError>) -> Result<(), StoreError> {
    if conn.is_autocommit() { Err(failed.unwrap_or(StoreError::Closed)) } else { Ok(()) }
}

fn exec(conn: &Connection, path: &Path, sql: &str) -> Result<(), StoreError> {
    conn.prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map(drop)
        .map_err(|e| StoreError::from_sqlite(path, &e))
}

/// After a failed COMMIT the transaction may still be open; the error that led here is the one that is told.
fn roll_back(conn: &Connection) {
    if !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK").ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(conn: Connection) -> Writer {
        Writer::spawn(conn, PathBuf::from("/state/muster.db")).unwrap()
    }

    async fn put(writer: &Writer, size: usize) -> Result<(), StoreError> {
        let path = Path::new("/state/muster.db");
        let work = move |conn: &Connection| {
            conn.execute("INSERT INTO t VALUES (zeroblob(?1))", [size as i64])
                .map(drop)
                .map_err(|e| StoreError::from_sqlite(Path::new("/state/muster.db"), &e))
        };
        writer.write(path, Undo::Alone, work).await
    }

    /// A database that holds a few pages only stands for a full disk: SQLite answers the same.
    #[tokio::test]
    async fn a_full_disk_is_told_and_the_next_write_that_fits_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let conn = Connection::open(folder.path().join("t.db")).unwrap();
        conn.execute_batch("PRAGMA max_page_count = 16; CREATE TABLE t (a BLOB)").unwrap();
        let writer = writer(conn);
        put(&writer, 10).await.unwrap();
        let full = put(&writer, 1_000_000).await.unwrap_err();
        assert_eq!(full, StoreError::DiskFull("/state/muster.db".into()));
        let both = futures::join!(put(&writer, 1_000_000), put(&writer, 10));
        assert!(both.0.is_err());
        put(&writer, 10).await.unwrap();
    }

    /// What refuses before it changes anything costs the others of its commit nothing; what fails later is undone with them.
    #[tokio::test]
    async fn a_checked_write_that_fails_after_a_change_takes_its_commit_with_it() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY)").unwrap();
        let writer = writer(conn);
        let path = Path::new("/state/muster.db");
        let put = |a: i64, refuses: bool| {
            writer.write(path, Undo::Together, move |conn| {
                let words = |e| StoreError::from_sqlite(Path::new("/state/muster.db"), &e);
                if refuses {
                    return Err(StoreError::Closed);
                }
                conn.execute("INSERT INTO t VALUES (?1)", [a]).map_err(words)?;
                // The second one is there already.
                conn.execute("INSERT INTO t VALUES (?1)", [a.max(7)]).map(drop).map_err(words)
            })
        };
        let all = || {
            writer.write(path, Undo::Alone, |conn| {
                let count = conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
                count.map_err(|e| StoreError::from_sqlite(Path::new("/state/muster.db"), &e))
            })
        };
        let (good, refused) = futures::join!(put(1, false), put(2, true));
        assert_eq!((good, refused), (Ok(()), Err(StoreError::Closed)));
        assert_eq!(all().await, Ok(2));
        // It makes a change and then meets the 7 of before.
        assert!(put(3, false).await.is_err());
        assert_eq!(all().await, Ok(2), "its first change is undone too");
    }

    /// A journal of many runs is as fast as its commits are full.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn those_that_come_back_at_once_share_the_next_commit_and_one_alone_waits_for_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let conn = Connection::open(folder.path().join("t.db")).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (a BLOB)").unwrap();
        let writer = Arc::new(writer(conn));
        let all = (0..16).map(|_| {
            let writer = Arc::clone(&writer);
            tokio::spawn(async move {
                for _ in 0..50 {
                    put(&writer, 100).await.unwrap();
                }
            })
        });
        for task in all.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let many = writer.commits();
        assert_eq!(many.requests, 800);
        assert!(many.commits <= 400, "{many:?}");
        for _ in 0..20 {
            put(&writer, 100).await.unwrap();
        }
        assert_eq!(writer.commits().commits - many.commits, 20);
    }

    #[tokio::test]
    async fn a_write_that_panics_is_an_error_of_its_own_and_the_thread_lives() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a BLOB)").unwrap();
        let writer = writer(conn);
        let path = Path::new("/state/muster.db");
        let (bad, good) =
            futures::join!(writer.write::<(), _>(path, Undo::Alone, |_| panic!("oh no")), put(&writer, 1));
        assert!(matches!(&bad, Err(StoreError::Refused { cause, .. }) if cause.contains("oh no")), "{bad:?}");
        good.unwrap();
    }
}
