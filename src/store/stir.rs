//! Hears that somebody writes into the state folder, so that whoever follows it sleeps until then (inotify on Linux, what
//! stands for it elsewhere). It is a reason to look, and never what was seen: a look that finds nothing costs microseconds.

use std::path::Path;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::watch;

use super::lead::LOCK;

/// Listens as long as it is kept.
pub struct Stir {
    stirred: watch::Receiver<Stirred>,
    _watcher: RecommendedWatcher,
}

/// How often something was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stirred {
    /// Into the store.
    pub store: u64,
    /// Into the lock, or its holder closed it: whoever leads may be another one now.
    pub lock: u64,
}

impl Stir {
    /// Listens to a state folder. An error where the system has no such thing, or no more of it: then the folder has to be
    /// looked at now and then.
    pub(super) fn listen(folder: &Path) -> Result<Stir, notify::Error> {
        let (sender, stirred) = watch::channel(Stirred::default());
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let (mut store, mut lock) = (false, false);
            match event {
                // Reads of others are told too where the system can't tell them apart; opening is none of our business.
                Ok(event) if matches!(event.kind, notify::EventKind::Access(notify::event::AccessKind::Open(_))) => {}
                Ok(event) => {
                    for name in event.paths.iter().filter_map(|path| path.file_name()?.to_str()) {
                        store |= name.ends_with("-wal");
                        lock |= name == LOCK;
                    }
                }
                // Events were lost, or the folder is another one: look at both.
                Err(_) => (store, lock) = (true, true),
            }
            if store || lock {
                sender.send_modify(|stirred| {
                    stirred.store += u64::from(store);
                    stirred.lock += u64::from(lock);
                });
            }
        })?;
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(Stir { stirred, _watcher: watcher })
    }

    /// Waits until something was written since the last look here.
    pub async fn heard(&mut self) {
        if self.stirred.changed().await.is_err() {
            // Nobody listens any more: whoever waits has a time of its own.
            std::future::pending::<()>().await;
        }
    }

    /// How often so far.
    pub fn so_far(&mut self) -> Stirred {
        *self.stirred.borrow_and_update()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::super::{Candidate, Lead};
    use super::*;

    #[tokio::test]
    async fn a_lock_that_is_given_back_is_heard_and_one_that_is_tried_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let lead = Lead::take(folder.path()).unwrap();
        let mut candidate = Candidate::new(folder.path()).unwrap();
        candidate.take(None).unwrap_err();
        let mut stir = Stir::listen(folder.path()).unwrap();
        let before = stir.so_far();
        for _ in 0..3 {
            candidate.take(None).unwrap_err();
        }
        timeout(Duration::from_millis(50), stir.heard()).await.unwrap_err();
        drop(lead);
        timeout(Duration::from_secs(5), stir.heard()).await.unwrap();
        assert!(stir.so_far().lock > before.lock);
        candidate.take(None).unwrap();
    }
}
