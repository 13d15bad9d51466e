//! Sends what waits, in its order, while there is a server; says so where there is none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::{Message, SYSTEM};
use crate::clients::nats::{Link, Nats, servers};
use crate::clients::vault::Vault;
use crate::config::settings::NatsSettings;
use crate::store::Store;

/// Between two tries to connect at first.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Between two looks at a connection that is down, and how long it may be.
const LOOK: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_secs(60);
/// So often it is said that all is well, and that messages were dropped.
const BEAT: Duration = Duration::from_secs(30);

/// Goes on until dropped.
pub(super) async fn run(
    settings: &NatsSettings,
    vault: &Vault,
    store: &Store,
    mut waiting: mpsc::Receiver<Message>,
    dropped: &AtomicU64,
) {
    let mut health = Health { store, servers: servers(settings), dropped, dropped_told: 0, told: None };
    let mut wait = RETRY.0;
    // The one that was taken from the queue and not handed over.
    let mut held = None;
    loop {
        match Nats::connect(settings, vault).await {
            Ok(nats) => {
                wait = RETRY.0;
                with(&nats, &mut waiting, &mut held, &mut health).await;
                sleep(wait).await;
            }
            Err(error) => {
                health.tell(Some(error.to_string())).await;
                sleep(wait).await;
                wait = (wait * 2).min(RETRY.1);
            }
        }
    }
}

/// Sends by one connection, until that comes back no more or is away for long.
async fn with(nats: &Nats, waiting: &mut mpsc::Receiver<Message>, held: &mut Option<Message>, health: &mut Health<'_>) {
    let mut link = nats.link();
    let mut up_at = Instant::now();
    loop {
        let now = link.borrow_and_update().clone();
        let trouble = match now {
            Link::Up if nats.is_up() => None,
            Link::Up | Link::Down(None) => Some("is down".to_owned()),
            Link::Down(Some(cause)) => Some(format!("is down: {cause}")),
            Link::Closed => Some("was closed".to_owned()),
        };
        if let Some(trouble) = trouble {
            health.tell(Some(format!("the connection to '{}' {trouble}", health.servers))).await;
            // A new connection reads its credentials anew.
            let given_up = link.borrow().clone() == Link::Closed || up_at.elapsed() > AWAY;
            if given_up || matches!(timeout(LOOK, link.changed()).await, Ok(Err(_))) {
                return;
            }
            continue;
        }
        up_at = Instant::now();
        health.tell(None).await;
        if held.is_none() {
            tokio::select! {
                moved = link.changed() => match moved {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                () = sleep(BEAT) => continue,
                message = waiting.recv() => match message {
                    Some(message) => *held = Some(message),
                    // The notifier is gone.
                    None => return std::future::pending().await,
                },
            }
        }
        let Some(message) = held.as_ref() else { continue };
        match nats.publish(message.subject.clone(), message.payload.clone()).await {
            Ok(()) => *held = None,
            Err(error) => {
                tracing::warn!(%error, "a notification waits");
                sleep(LOOK).await;
                continue;
            }
        }
        if waiting.is_empty()
            && let Err(error) = nats.flush().await
        {
            tracing::warn!(%error, "notifications may be lost");
        }
    }
}

/// What the store is told of NATS.
struct Health<'a> {
    store: &'a Store,
    servers: String,
    dropped: &'a AtomicU64,
    /// So many of the dropped ones were told of, by a connection that is well again.
    dropped_told: u64,
    told: Option<(Instant, Option<String>)>,
}

impl Health<'_> {
    async fn tell(&mut self, trouble: Option<String>) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let lost = dropped - self.dropped_told;
        let (up, action) = (trouble.is_none(), "look at that server and at [nats]");
        let error = match trouble {
            None if lost > 0 => Some(format!(
                "{lost} notifications were dropped while '{}' did not take them; let whoever listens read the inventory anew",
                self.servers
            )),
            None => None,
            Some(trouble) if lost > 0 => Some(format!("{trouble}; {lost} notifications were dropped; {action}")),
            Some(trouble) => Some(format!("{trouble}; notifications wait; {action}")),
        };
        if self.told.as_ref().is_some_and(|(at, told)| *told == error && at.elapsed() < BEAT) {
            return;
        }
        if let Some(error) = &error {
            tracing::warn!(error, "notifications to NATS");
        }
        match self.store.put_sync(SYSTEM, Timestamp::now(), error.clone()).await {
            Ok(()) => {
                // It stands until the next beat, and longer in the log.
                if up && lost > 0 && self.told.as_ref().is_some_and(|(_, told)| *told == error) {
                    self.dropped_told = dropped;
                }
                self.told = Some((Instant::now(), error));
            }
            Err(error) => tracing::error!(%error, "the health of NATS could not be recorded"),
        }
    }
}
