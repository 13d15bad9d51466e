//! Tells the receivers of `[webhooks.NAME]` that runs have ended: whoever leads does, in the order of the ends, each at least
//! once. The place of each receiver is in the store, behind what it has taken: a process that dies in between tells the same
//! delivery again, under the same id. Nothing here holds up a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::clients::vault::Vault;
use crate::clients::webhook::{DeliveryError, Receiver};
use crate::config::settings::WebhookOut;
use crate::domain::event::{Body, Event};
use crate::domain::ids::RunId;
use crate::domain::run_end::{EndedRun, RunEnded};
use crate::store::{Store, StoreError};

/// The names under which the store keeps a receiver's place, and its health.
const PLACE: &str = "webhook:";
pub(super) const SYSTEM: &str = "webhook ";
/// Between two tries.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(300));
/// A delivery whose body a receiver judges to be wrong is tried so often: it must not hold up those behind it for long.
const JUDGED: u32 = 5;
/// So often it is said that all is well.
const BEAT: Duration = Duration::from_secs(30);
/// Places without an end of a run are kept once in so many: what was looked through is not looked through again.
const KEPT: i64 = 5_000;
/// How long the way out of the program waits for what is told at that moment.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was told since this process began, by the receivers' names.
pub type Told = Arc<Mutex<BTreeMap<String, Counts>>>;

/// Of one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// What it took.
    pub delivered: u64,
    /// Tries that were not taken.
    pub refused: u64,
    /// What it never took and is told no more.
    pub given_up: u64,
    /// Deliveries that are due now.
    pub waiting: u64,
}

/// All receivers of one configuration, while this process leads.
pub struct Webhooks {
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Webhooks {
    /// Begins before any run goes on, so that no end is missed by a receiver that is new.
    pub fn start(receivers: &IndexMap<String, WebhookOut>, vault: &Vault, store: &Store, told: &Told) -> Webhooks {
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let names: Vec<String> = receivers.keys().cloned().collect();
        let of = store.clone();
        tasks.spawn(async move {
            if let Err(error) = of.forget_others(PLACE, SYSTEM, names).await {
                tracing::warn!(%error, "what is known of a webhook that is configured no more stays");
            }
        });
        for (name, settings) in receivers {
            let place = match begin(store, name) {
                Ok(place) => place,
                Err(error) => {
                    tracing::error!(webhook = name, %error, "ends of runs are not told: the store can't be read");
                    continue;
                }
            };
            let teller = Teller {
                name: name.clone(),
                settings: settings.clone(),
                vault: vault.clone(),
                store: store.clone(),
                told: Arc::clone(told),
                receiver: None,
                place,
                tries: 0,
                health: None,
            };
            tasks.spawn(teller.run(stop.clone()));
        }
        Webhooks { tasks, stop }
    }

    /// Tells what is due and was not tried yet, for a moment; the rest is told by the next leader.
    pub async fn close(mut self) {
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(PATIENCE, ended).await.is_err() {
            tracing::warn!("what is left to tell of ended runs is told by the next process that leads");
        }
    }
}

/// A place in the order of all appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    now: i64,
    /// What the store has; `None`: nothing yet.
    kept: Option<i64>,
}

fn begin(store: &Store, name: &str) -> Result<Place, StoreError> {
    let kept = store.get_meta(&format!("{PLACE}{name}"))?.and_then(|text| text.parse().ok());
    let now = kept.map_or_else(|| store.newest_append(), Ok)?;
    Ok(Place { now, kept })
}

/// One receiver.
struct Teller {
    name: String,
    settings: WebhookOut,
    vault: Vault,
    store: Store,
    told: Told,
    receiver: Option<Receiver>,
    place: Place,
    /// Of the delivery that is next, in this process.
    tries: u32,
    health: Option<(Instant, Option<String>)>,
}

/// Where a round ended.
enum Round {
    /// Everything that is due was told.
    Through,
    /// The next try is due after so long.
    Wait(Duration),
}

impl Teller {
    async fn run(mut self, stop: CancellationToken) {
        let mut ends = self.store.run_ends();
        loop {
            ends.borrow_and_update();
            let leaving = stop.is_cancelled();
            match self.round().await {
                Round::Through if leaving => return,
                Round::Through => tokio::select! {
                    () = stop.cancelled() => {}
                    _ = ends.changed() => {}
                    () = sleep(BEAT) => {}
                },
                // What fails now is not waited for on the way out.
                Round::Wait(wait) => tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep(wait) => {}
                },
            }
        }
    }

    async fn round(&mut self) -> Round {
        loop {
            let (store, now) = (self.store.clone(), self.place.now);
            let Ok(read) = tokio::task::spawn_blocking(move || store.ends_after(now)).await else {
                return Round::Wait(RETRY.1);
            };
            let ends = match read {
                Ok(ends) => ends,
                Err(error) => return self.store_trouble(&error),
            };
            let mut due = Vec::new();
            for (place, run) in &ends.runs {
                match event(&self.store, *run) {
                    Ok(event) if self.settings.tells(event.data.outcome, &event.data.site) => due.push((*place, event)),
                    Ok(_) => {}
                    // Of a newer version, or damaged: one run that can't be told keeps none of the others.
                    Err(error) => tracing::error!(webhook = self.name, %run, %error, "the end of a run can't be told"),
                }
            }
            let count = due.len() as u64;
            for (told, (place, event)) in due.into_iter().enumerate() {
                self.count(|counts| counts.waiting = count - told as u64);
                if let Some(wait) = self.tell(&event, count - told as u64).await {
                    return Round::Wait(wait);
                }
                self.place.now = place;
                self.tries = 0;
                if let Err(error) = self.keep().await {
                    return self.store_trouble(&error);
                }
            }
            self.count(|counts| counts.waiting = 0);
            let passed = !ends.runs.is_empty();
            self.place.now = ends.upto;
            if (passed || self.place.kept.is_none_or(|kept| ends.upto - kept >= KEPT))
                && let Err(error) = self.keep().await
            {
                return self.store_trouble(&error);
            }
            if !ends.more {
                self.say(None).await;
                return Round::Through;
            }
        }
    }

    /// Tells one event. `None`: it is done with; else how long to wait before it is tried again.
    async fn tell(&mut self, event: &RunEnded, waiting: u64) -> Option<Duration> {
        let id = event.delivery();
        self.tries += 1;
        let error = match self.deliver(&id, event).await {
            Ok(()) => {
                self.count(|counts| counts.delivered += 1);
                tracing::info!(webhook = self.name, run = %event.data.run, tries = self.tries, "the end of a run was told");
                return None;
            }
            Err(error) => error,
        };
        self.count(|counts| counts.refused += 1);
        let age = Timestamp::now().duration_since(event.timestamp);
        let too_old = age.unsigned_abs() > self.settings.give_up && !age.is_negative();
        if too_old || (error.is_of_the_body() && self.tries >= JUDGED) {
            self.count(|counts| counts.given_up += 1);
            let said = error.to_string();
            tracing::error!(webhook = self.name, run = %event.data.run, error = said, "the end of a run is not told");
            return None;
        }
        let doubled = RETRY.0.saturating_mul(2u32.saturating_pow((self.tries - 1).min(20)));
        let asked = match &error {
            DeliveryError::Refused { retry_after_s: Some(seconds), .. } => Duration::from_secs(*seconds),
            _ => Duration::ZERO,
        };
        let name = self.name.clone();
        self.say(Some(format!(
            "{error}; ends of runs that wait to be told: {waiting}; look at that receiver and at [webhooks.{name}]"
        )))
        .await;
        Some(doubled.max(asked).min(RETRY.1))
    }

    async fn deliver(&mut self, id: &str, event: &RunEnded) -> Result<(), DeliveryError> {
        let receiver = match self.receiver.take() {
            Some(receiver) => receiver,
            // Made anew after each failure: the file of a CA may be mended by now.
            None => Receiver::new(&self.settings, &self.vault)?,
        };
        let body = serde_json::to_value(event).unwrap_or_default();
        receiver.deliver(id, Timestamp::now(), body).await?;
        self.receiver = Some(receiver);
        Ok(())
    }

    async fn keep(&mut self) -> Result<(), StoreError> {
        self.store.put_meta(&format!("{PLACE}{}", self.name), &self.place.now.to_string()).await?;
        self.place.kept = Some(self.place.now);
        Ok(())
    }

    fn store_trouble(&self, error: &StoreError) -> Round {
        tracing::warn!(webhook = self.name, %error, "ends of runs are told later");
        Round::Wait(Duration::from_secs(5))
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        change(told.entry(self.name.clone()).or_default());
    }

    /// Tells the store how the receiver is; `None`: nothing is left to tell it.
    async fn say(&mut self, error: Option<String>) {
        if self.health.as_ref().is_some_and(|(at, said)| *said == error && at.elapsed() < BEAT) {
            return;
        }
        if let Some(error) = &error {
            tracing::warn!(webhook = self.name, error, "the end of a run could not be told yet");
        }
        match self.store.put_sync(&format!("{SYSTEM}{}", self.name), Timestamp::now(), error.clone()).await {
            Ok(()) => self.health = Some((Instant::now(), error)),
            Err(error) => tracing::error!(webhook = self.name, %error, "the health of a webhook could not be recorded"),
        }
    }
}

/// The event of a run that has ended.
fn event(store: &Store, run: RunId) -> Result<RunEnded, StoreError> {
    let row = store.run(run)?;
    let last = store.records_from(run, store.journal_end(run)?.saturating_sub(1))?;
    let Some(Body::Journal(Event::Finished { outcome })) = last.last().map(|record| &record.body) else {
        return Err(StoreError::NoRun(run));
    };
    let run = EndedRun {
        run,
        host: row.host,
        netbox_id: row.netbox_id,
        site: row.site,
        submitted_by: row.by,
        submitted_at: row.submitted_at,
        finished_at: row.finished_at.unwrap_or(row.submitted_at),
        retry_of: row.retry_of,
        attempts: row.attempts,
    };
    Ok(RunEnded::of(run, outcome))
}
