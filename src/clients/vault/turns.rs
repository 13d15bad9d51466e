//! The queue before a vault that is a server or a program: a thousand runs that ask at once are few requests at a time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};

use super::VaultError;

/// Requests or processes at once.
const AT_ONCE: usize = 4;
/// The longest place in the queue.
const QUEUE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// One write at a time: what looks whether an item is there and makes it if not must not meet itself. It is held
    /// across requests, which have deadlines; reads do not wait for it.
    writes: Arc<Mutex<()>>,
    queue: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { free: Arc::new(Semaphore::new(AT_ONCE)), writes: Arc::default(), queue: QUEUE }
    }
}

impl Turns {
    /// Does the work when it is its turn, for at most `limit`. First come, first served.
    pub async fn read<T>(
        &self,
        place: &str,
        limit: Duration,
        work: impl Future<Output = Result<T, VaultError>>,
    ) -> Result<T, VaultError> {
        let late = |patience| VaultError::NoAnswer { place: place.to_owned(), patience };
        let turn = tokio::time::timeout(self.queue, self.free.acquire()).await;
        let Ok(Ok(_turn)) = turn else { return Err(late(self.queue)) };
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(late(limit)))
    }

    /// The same for a write.
    pub async fn write<T>(
        &self,
        place: &str,
        limit: Duration,
        work: impl Future<Output = Result<T, VaultError>>,
    ) -> Result<T, VaultError> {
        let turn = tokio::time::timeout(self.queue, self.writes.lock()).await;
        let Ok(_turn) = turn else {
            return Err(VaultError::NoAnswer { place: place.to_owned(), patience: self.queue });
        };
        self.read(place, limit, work).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Proves: G12
    #[tokio::test]
    async fn a_thousand_that_ask_at_once_are_few_at_a_time_and_each_has_a_deadline() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (now, most) = (&now, &most);
        let one = |turns: Turns, limit: Duration, takes: Duration| async move {
            let work = async {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(takes).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            turns.read("the vault", limit, work).await
        };
        let turns = Turns::default();
        let (minute, tick) = (Duration::from_secs(60), Duration::from_millis(1));
        let all = futures::future::join_all((0..1000).map(|_| one(turns.clone(), minute, tick))).await;
        assert!(all.iter().all(Result::is_ok), "{:?}", all.iter().find(|outcome| outcome.is_err()));
        assert_eq!(most.load(Ordering::SeqCst), AT_ONCE);
        // Where it hangs nobody waits for longer than queue and limit.
        let turns = Turns { queue: Duration::from_millis(100), ..Turns::default() };
        let began = std::time::Instant::now();
        let all = (0..1000).map(|_| one(turns.clone(), Duration::from_millis(50), minute));
        let all = futures::future::join_all(all).await;
        assert!(all.iter().all(|outcome| matches!(outcome, Err(VaultError::NoAnswer { .. }))));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        // Those that were given up have left their turns.
        assert_eq!(turns.free.available_permits(), AT_ONCE);
    }
}
