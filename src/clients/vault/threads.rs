//! Reads files in threads of their own: a file system that hangs holds up whoever waits for a while, and nobody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};

use super::VaultError;

/// A file that is not read by then stands on something that hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Reads at once.
pub(super) const READS: usize = 4;
/// A read that hangs for so long is given up: its thread hangs on, and another read may find that the file answers again.
const GIVEN_UP: Duration = Duration::from_secs(60);
/// So many threads may hang, and no more are begun.
pub(super) const HANGING: usize = 128;

#[derive(Debug, Clone)]
pub(super) struct Threads {
    pub turns: Arc<Semaphore>,
    /// Threads that may read, hanging ones among them.
    pub threads: Arc<Semaphore>,
    pub patience: Duration,
    pub given_up: Duration,
}

impl Default for Threads {
    fn default() -> Self {
        let (turns, threads) = (Arc::new(Semaphore::new(READS)), Arc::new(Semaphore::new(HANGING)));
        Threads { turns, threads, patience: PATIENCE, given_up: GIVEN_UP }
    }
}

impl Threads {
    /// What `read` comes to, or that `place` did not answer in time.
    pub async fn run<T, F>(&self, place: String, read: F) -> Result<T, VaultError>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, VaultError> + Send + 'static,
    {
        let (tell, told) = oneshot::channel();
        tokio::spawn(self.clone().turn(read, tell));
        match tokio::time::timeout(self.patience, told).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(VaultError::NoAnswer { place, patience: self.patience }),
        }
    }

    /// Reads when it is its turn, and keeps that turn until the read has ended or is given up.
    async fn turn<T, F>(self, read: F, mut tell: oneshot::Sender<Result<T, VaultError>>)
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, VaultError> + Send + 'static,
    {
        let turn = tokio::select! {
            turn = Arc::clone(&self.turns).acquire_owned() => turn,
            // Whoever asked has lost patience.
            () = tell.closed() => return,
        };
        let Ok(thread) = Arc::clone(&self.threads).try_acquire_owned() else { return };
        let read = tokio::task::spawn_blocking(move || {
            let _thread = thread;
            read()
        });
        if let Ok(Ok(outcome)) = tokio::time::timeout(self.given_up, read).await {
            tell.send(outcome).ok(); // it may be too late
        }
        drop(turn);
    }
}
