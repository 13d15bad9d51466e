//! Learns how long things take from runs that have ended, beside all other work of the process that leads.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::Store;

/// Runs of a batch end together: their lessons are learned together.
const TOGETHER: Duration = Duration::from_millis(500);
/// Between two goes, so that a store of before with a thousand runs is learned from without anybody feeling it.
const BREATH: Duration = Duration::from_millis(20);
/// A store that doesn't take it is asked again then.
const AFTER_ERROR: Duration = Duration::from_secs(30);

/// Goes on until `stop`. What was not learned when a process ended is learned by the next one that leads.
pub(super) async fn learn(store: Store, stop: CancellationToken) {
    let mut ends = store.run_ends();
    loop {
        let pause = match store.learn().await {
            Ok(0) => {
                tokio::select! {
                    () = stop.cancelled() => return,
                    ended = ends.changed() => if ended.is_err() { return },
                }
                TOGETHER
            }
            Ok(_) => BREATH,
            Err(error) => {
                tracing::warn!(%error, "what runs took could not be learned");
                AFTER_ERROR
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
