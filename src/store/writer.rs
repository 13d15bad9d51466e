//! The only thread that writes: takes what is queued, commits it in one transaction, then answers everybody.
//!
//! It waits for a first request and takes with it whatever else is queued by then, up to a bound. Each request has a
//! savepoint of its own, so that one that fails spoils no other. Nothing is answered before the commit is on the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::error::StoreError;
use crate::domain::text::panic_message;

/// The most requests that one commit carries: bounds how long the first of them waits for the others.
const BATCH: usize = 256;

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

/// One queued request, with its answer's way back.
trait Job: Send {
    /// Does the work in the open savepoint and keeps the answer.
    fn run(&mut self, conn: &Connection) -> Result<(), StoreError>;
    /// Sends the kept answer, or the commit's error in its place.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Request<F, T> {
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
    pub(super) async fn write<T, F>(&self, path: &Path, work: F) -> Result<T, StoreError>
    where
        F: FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = Request { work: Some(work), outcome: None, answer, path: path.to_owned() };
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
    while let Ok(first) = requests.recv() {
        let mut jobs = vec![first];
        while jobs.len() < BATCH
            && let Ok(next) = requests.try_recv()
        {
            jobs.push(next);
        }
        // Counted before the answers, so that whoever was answered sees its own commit counted.
        counters.requests.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        counters.commits.fetch_add(1, Ordering::Relaxed);
        let committed = commit(conn, path, &mut jobs);
        if let Err(e) = &committed {
            tracing::error!(error = %e, requests = jobs.len(), "a commit was lost");
        }
        for job in jobs {
            job.answer(committed.clone());
        }
    }
}

/// One transaction over all jobs, each in its savepoint.
fn commit(conn: &Connection, path: &Path, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
    exec(conn, path, "BEGIN IMMEDIATE")?;
    for job in jobs {
        exec(conn, path, "SAVEPOINT request").inspect_err(|_| roll_back(conn))?;
        let failed = job.run(conn).err();
        // Some errors (a full disk, mostly) make SQLite roll the whole transaction back: then all requests are lost.
        if conn.is_autocommit() {
            return Err(failed.unwrap_or(StoreError::Closed));
        }
        if failed.is_some() {
            exec(conn, path, "ROLLBACK TO request").inspect_err(|_| roll_back(conn))?;
        }
        exec(conn, path, "RELEASE request").inspect_err(|_| roll_back(conn))?;
    }
    exec(conn, path, "COMMIT").inspect_err(|_| roll_back(conn))
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
        writer.write(path, work).await
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

    #[tokio::test]
    async fn a_write_that_panics_is_an_error_of_its_own_and_the_thread_lives() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE t (a BLOB)").unwrap();
        let writer = writer(conn);
        let path = Path::new("/state/muster.db");
        let (bad, good) = futures::join!(writer.write::<(), _>(path, |_| panic!("oh no")), put(&writer, 1));
        assert!(matches!(&bad, Err(StoreError::Refused { cause, .. }) if cause.contains("oh no")), "{bad:?}");
        good.unwrap();
    }
}
