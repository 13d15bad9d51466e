//! The edge to the application: its feed and its fleet become events, effects become calls, and their answers events.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::event::{Event, Refused};
use super::model::history::Past;
use super::model::host::{Host, LastRun, SystemHealth};
use super::model::place::{NO_LOCATION, Place};
use super::model::power::Looked;
use crate::app::{App, Consent, Fleet, FleetRow, Name, RackError, RunSummary, Sorted, SubmitError};
use crate::domain::event::{Body, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::rack::{LocatorWish, PowerWish, Powered};
use crate::domain::request::EnrollParams;
use crate::domain::run_view::RunState;
use crate::store::{RunStatus, StoreError};

/// Two readings of the queue are at least so far apart.
const QUEUE_PAUSE: Duration = Duration::from_millis(200);
/// Two readings of the whole fleet are at least so far apart, however fast it changes.
const FLEET_PAUSE: Duration = Duration::from_millis(400);
/// And so many times as far as a reading takes: a large fleet that never rests must not take the console's time.
const FLEET_SHARE: u32 = 8;
/// After a run's end, until what it taught is in the store.
const LEARNED: Duration = Duration::from_secs(3);
/// The first frame waits no longer for the fleet.
const FIRST_FRAME: Duration = Duration::from_millis(30);

/// What the console asks of the application, and where the answers go.
pub struct Outside {
    app: App,
    user: String,
    /// Only this site is shown.
    site: Option<String>,
    events: UnboundedSender<Event>,
    tasks: JoinSet<()>,
    /// The rack that was read last, and when it may be read again.
    last_rack: Arc<Mutex<Option<(Place, tokio::time::Instant)>>>,
}

impl Outside {
    pub fn new(app: App, user: String, site: Option<String>, events: UnboundedSender<Event>) -> Self {
        Outside { app, user, site, events, tasks: JoinSet::new(), last_rack: Arc::default() }
    }

    /// Who leads, and the fleet as the store has it: the first frame needs no network. A large fleet comes behind that
    /// frame.
    pub async fn first_look(&mut self) -> Vec<Event> {
        let (app, site, events) = (self.app.clone(), self.site.clone(), self.events.clone());
        let (read, mut at_once) = oneshot::channel();
        self.tasks.spawn_blocking(move || {
            if let Err(late) = read.send(fleet_events(&app, site.as_deref())) {
                // Nobody waits any more: then it goes where everything else goes, unless the console is ending.
                late.into_iter().for_each(|event| drop(events.send(event)));
            }
        });
        let mut look = vec![Event::Role(self.app.role())];
        match timeout(FIRST_FRAME, &mut at_once).await {
            Ok(fleet) => look.extend(fleet.unwrap_or_default()),
            Err(_) => {
                // From here on a sender is refused; what was sent until now is here.
                at_once.close();
                look.extend(at_once.try_recv().unwrap_or_default());
            }
        }
        look
    }

    /// Follows the feed until the console ends.
    pub fn follow(&mut self) {
        let (app, site, events) = (self.app.clone(), self.site.clone(), self.events.clone());
        let mut feed = self.app.feed();
        self.tasks.spawn(async move {
            let mut stale = false;
            let mut next = tokio::time::Instant::now();
            let mut moved = false;
            let mut next_queue = tokio::time::Instant::now();
            let mut learned = Some(tokio::time::Instant::now());
            loop {
                let heard = tokio::select! {
                    heard = feed.recv() => heard,
                    () = tokio::time::sleep_until(next_queue), if moved => {
                        moved = false;
                        next_queue = tokio::time::Instant::now() + QUEUE_PAUSE;
                        let app = app.clone();
                        let read = spawn_blocking(move || queue_event(&app)).await;
                        if read.is_ok_and(|event| events.send(event).is_err()) {
                            return;
                        }
                        continue;
                    }
                    () = tokio::time::sleep_until(learned.unwrap_or(next)), if learned.is_some() => {
                        learned = None;
                        let app = app.clone();
                        let read = spawn_blocking(move || app.usual()).await;
                        match read {
                            Ok(Ok(usual)) => {
                                if events.send(Event::Usual(usual)).is_err() {
                                    return;
                                }
                            }
                            Ok(Err(error)) => tracing::warn!(%error, "what is usual could not be read"),
                            Err(_) => return,
                        }
                        continue;
                    }
                    () = tokio::time::sleep_until(next), if stale => {
                        stale = false;
                        let began = tokio::time::Instant::now();
                        let (app, site) = (app.clone(), site.clone());
                        let read = spawn_blocking(move || fleet_events(&app, site.as_deref())).await;
                        next = tokio::time::Instant::now() + FLEET_PAUSE.max(began.elapsed() * FLEET_SHARE);
                        for event in read.unwrap_or_default() {
                            if events.send(event).is_err() {
                                return;
                            }
                        }
                        continue;
                    }
                };
                let event = match heard {
                    Ok(crate::app::FeedEvent::Record(record)) => {
                        moved |= moves_the_queue(&record);
                        if ends(&record) {
                            learned.get_or_insert_with(|| tokio::time::Instant::now() + LEARNED);
                        }
                        Event::Record(*record)
                    }
                    Ok(crate::app::FeedEvent::SystemHealth(h)) => Event::Health(health(h)),
                    Ok(crate::app::FeedEvent::Role(role)) => Event::Role(role),
                    Ok(crate::app::FeedEvent::StoreTrouble(trouble)) => Event::Health(store_health(trouble)),
                    // What was missed shows as a gap in a run's records, and that run is read anew.
                    Ok(crate::app::FeedEvent::FleetChanged) | Err(RecvError::Lagged(_)) => {
                        stale = true;
                        continue;
                    }
                    Err(RecvError::Closed) => return,
                };
                if events.send(event).is_err() {
                    return;
                }
            }
        });
    }

    /// Reads a run from its first record on.
    pub fn load_run(&mut self, run: RunId) {
        self.read_run(run, |run, records| Event::RunLoaded { run, records });
    }

    pub fn load_tape(&mut self, run: RunId) {
        self.read_run(run, |run, records| Event::Tape { run, records });
    }

    /// Reads a rack. Two readings of the same one are as far apart as those of the fleet.
    pub fn load_rack(&mut self, place: Place) {
        let (app, last) = (self.app.clone(), Arc::clone(&self.last_rack));
        self.spawn(async move {
            let mut last = last.lock().await;
            if let Some((_, next)) = last.as_ref().filter(|(read, _)| *read == place) {
                tokio::time::sleep_until(*next).await;
            }
            let began = tokio::time::Instant::now();
            let of = place.clone();
            let read = spawn_blocking(move || {
                let [site, location, rack] = &of.0[..] else { return None };
                let location = Some(location.as_str()).filter(|name| *name != NO_LOCATION);
                Some(app.elevation(site, location, rack))
            });
            let answer = match read.await {
                Ok(Some(Ok(elevation))) => Ok(Box::new(elevation)),
                Ok(Some(Err(error))) => Err(refused("store_failed", &error)),
                Ok(None) => Err(refused("internal", &"a place that is no rack was asked for")),
                Err(error) => Err(refused("internal", &error)),
            };
            let next = tokio::time::Instant::now() + FLEET_PAUSE.max(began.elapsed() * FLEET_SHARE);
            *last = Some((place.clone(), next));
            Event::Rack { place, answer }
        });
    }

    fn read_run(&mut self, run: RunId, told: fn(RunId, Vec<RunRecord>) -> Event) {
        let app = self.app.clone();
        self.spawn(async move {
            match spawn_blocking(move || app.records(run)).await {
                Ok(Ok(records)) => told(run, records),
                Ok(Err(error)) => Event::RunLost { run, why: refused("run_unreadable", &error) },
                Err(error) => Event::RunLost { run, why: refused("internal", &error) },
            }
        });
    }

    /// Reads the runs of a host.
    pub fn load_history(&mut self, netbox_id: u64) {
        let app = self.app.clone();
        self.spawn(async move {
            let runs = match spawn_blocking(move || app.history(netbox_id)).await {
                Ok(Ok(runs)) => Ok(runs.into_iter().map(past).collect()),
                Ok(Err(error)) => Err(refused("runs_unreadable", &error)),
                Err(error) => Err(refused("internal", &error)),
            };
            Event::History { netbox_id, runs }
        });
    }

    /// Writes a run's story into a file.
    pub fn export(&mut self, run: RunId) {
        let app = self.app.clone();
        self.spawn(async move {
            Event::Answered(match spawn_blocking(move || app.export(run)).await {
                Ok(Ok(path)) => Ok(format!("run {} is written to {}", run.short(), path.display())),
                Ok(Err(error)) => Err(refused("not_exported", &error)),
                Err(error) => Err(refused("internal", &error)),
            })
        });
    }

    pub fn submit(&mut self, host: String, params: EnrollParams, open: bool) {
        let (app, user) = (self.app.clone(), self.user.clone());
        self.spawn(async move {
            let answer = app.submit(&host, params, &user).await.map_err(|e| refused_submission(&e));
            Event::Submitted { host, of: None, open, answer }
        });
    }

    /// Makes a plan. Nothing is written for it (G14).
    pub fn plan(&mut self, host: String, params: EnrollParams) {
        let (app, runtime) = (self.app.clone(), tokio::runtime::Handle::current());
        self.spawn(async move {
            let (of, with) = (host.clone(), params.clone());
            // A workflow stays in one thread.
            let made = spawn_blocking(move || runtime.block_on(app.plan(&of, with))).await;
            let plan = match made {
                Ok(made) => made.map_err(|e| refused_submission(&e)),
                Err(error) => Err(refused("internal", &error)),
            };
            Event::Planned { host, params, plan }
        });
    }

    /// Judges them once more, and starts all of them or none.
    pub fn submit_behind_canary(&mut self, hosts: Vec<String>, params: EnrollParams) {
        let (app, user, events) = (self.app.clone(), self.user.clone(), self.events.clone());
        self.spawn(async move {
            let names: Vec<Name> = hosts.into_iter().map(|text| Name { text, even_deployed: false }).collect();
            let Sorted { requests, go_on, mut refused } = Sorted::of(app.judge(&names, &params, &user).await);
            refused.extend(go_on.into_iter().map(|(host, run, by)| (host, SubmitError::Busy { run, by })));
            let of = |host: String, answer| Event::Submitted { host, of: None, open: false, answer };
            if refused.is_empty() {
                match app.submit_batch(requests, true).await {
                    Ok(runs) => {
                        let count = runs.len();
                        for (run, host) in runs {
                            events.send(of(host, Ok(run))).ok(); // the console is ending
                        }
                        return Event::Answered(Ok(format!("{count} runs are submitted, the first as canary")));
                    }
                    Err(refusal) => refused.push(refusal),
                }
            }
            for (host, refusal) in refused {
                events.send(of(host, Err(refused_submission(&refusal)))).ok(); // the console is ending
            }
            Event::Answered(Err(Refused {
                code: "batch_refused".to_owned(),
                message: "nothing of the batch was started".to_owned(),
                action: "leave out the hosts that were refused".to_owned(),
            }))
        });
    }

    pub fn retry(&mut self, run: RunId, host: String, force_inspection: bool, open: bool) {
        let (app, user) = (self.app.clone(), self.user.clone());
        self.spawn(async move {
            let change = |params: &mut EnrollParams| {
                if force_inspection {
                    // A forced inspection has no meaning where inspections are off (I11).
                    (params.force_inspection, params.run_inspection) = (true, true);
                }
            };
            let answer = app.retry(run, change, &user).await.map_err(|e| refused_submission(&e));
            Event::Submitted { host, of: Some(run), open, answer }
        });
    }

    pub fn cancel(&mut self, run: RunId) {
        let (app, user) = (self.app.clone(), self.user.clone());
        self.spawn(async move {
            let answer = app.cancel(run, &user).await;
            Event::Answered(match answer {
                Ok(()) => Ok(format!("run {} is being cancelled", run.short())),
                Err(error) => Err(refused("not_cancelled", &error)),
            })
        });
    }

    /// Makes a host's locator LED the other of what it is.
    pub fn locate(&mut self, host: String) {
        let app = self.app.clone();
        self.spawn(async move {
            Event::Answered(match app.locator(&host, Some(LocatorWish::Toggle)).await {
                Ok(located) => Ok(format!("the locator of {host} is {}", located.word())),
                Err(error) => {
                    let message = format!("the locator of {host}: {error}");
                    Err(Refused { code: error.code().to_owned(), message, action: error.action() })
                }
            })
        });
    }

    /// Reads how a host's power stands and who lives on it, side by side: both are asked over the network.
    pub fn look_power(&mut self, host: String) {
        let app = self.app.clone();
        self.spawn(async move {
            let nothing = Consent::default();
            let (power, lives) = futures::join!(app.power(&host, None, &nothing), app.deployed(&host));
            let power = power.map(|powered| powered.after).map_err(|error| refused_at_the_rack(&error));
            // Not to know whether somebody lives there counts as if somebody did.
            let lives = lives.unwrap_or_else(|error| Some(error.to_string()));
            Event::PowerLooked { host, looked: Looked { power, lives } }
        });
    }

    /// Changes a host's power. The person has said yes, and typed its name where that is needed.
    pub fn power(&mut self, host: String, wish: PowerWish, typed: Option<String>) {
        let (app, user) = (self.app.clone(), self.user.clone());
        self.spawn(async move {
            let answer = app.power(&host, Some(wish), &Consent { yes: true, typed }).await;
            let refused = answer.as_ref().err().map(RackError::code);
            tracing::info!(%host, %user, wish = wish.words(), refused, "power was asked for in the console");
            Event::Answered(match answer {
                Ok(powered) => Ok(power_words(&host, &powered)),
                Err(error) => {
                    let refused = refused_at_the_rack(&error);
                    Err(Refused { message: format!("{} of {host}: {}", wish.words(), refused.message), ..refused })
                }
            })
        });
    }

    pub fn sync_now(&mut self) {
        let app = self.app.clone();
        self.spawn(async move {
            let answer = app.sync_now().await;
            Event::Answered(match answer {
                Ok(()) => Ok("NetBox and Ironic were read".to_owned()),
                Err(error) => Err(Refused {
                    action: "the fleet shows what was read last; mend what the sentence names".to_owned(),
                    ..refused("not_read", &error)
                }),
            })
        });
    }

    /// Does something and sends what came of it. A task that panics is told too.
    fn spawn(&mut self, work: impl Future<Output = Event> + Send + 'static) {
        // Those that ended are taken out here, so that a long session does not gather them.
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                let answer = Event::Answered(Err(refused("internal", &"a task of the console panicked")));
                self.events.send(answer).ok(); // the console is ending
            }
        }
        let events = self.events.clone();
        self.tasks.spawn(async move {
            events.send(work.await).ok(); // the console is ending
        });
    }
}

fn fleet_events(app: &App, site: Option<&str>) -> Vec<Event> {
    match app.fleet() {
        Ok(Fleet { rows, systems }) => {
            let rows = rows.into_iter().filter(|row| row.is_host && site.is_none_or(|site| row.device.site == site));
            let mut events = vec![Event::Fleet(rows.map(host).collect())];
            events.extend(systems.into_iter().map(|h| Event::Health(health(h))));
            events.push(queue_event(app));
            events
        }
        Err(error) => vec![Event::Answered(Err(refused("store_failed", &error)))],
    }
}

/// A run came, began or ended: the places of the others are others now.
fn moves_the_queue(record: &RunRecord) -> bool {
    record.n <= 1 || ends(record)
}

fn ends(record: &RunRecord) -> bool {
    matches!(record.body, Body::Journal(crate::domain::event::Event::Finished { .. }))
}

fn queue_event(app: &App) -> Event {
    match app.queue() {
        Ok(queue) => Event::Queue(queue),
        Err(error) => Event::Answered(Err(refused("store_failed", &error))),
    }
}

fn host(row: FleetRow) -> Host {
    let refusal = row.eligible.err();
    Host {
        device: row.device,
        ironic: row.ironic,
        refusal: refusal.map(|r| Refused { code: r.code.to_owned(), message: r.message, action: r.action }),
        last_run: row.last_run.map(last_run),
        proof: row.proof,
    }
}

fn state(status: RunStatus) -> RunState {
    match status {
        RunStatus::Queued => RunState::Queued,
        RunStatus::Running => RunState::Running,
        RunStatus::Succeeded => RunState::Succeeded,
        RunStatus::Failed => RunState::Failed,
        RunStatus::Cancelled => RunState::Cancelled,
    }
}

fn past(row: RunSummary) -> Past {
    Past {
        run: row.run,
        state: state(row.status),
        by: row.by,
        submitted_at: row.submitted_at,
        finished_at: row.finished_at,
        phase: row.phase,
        attempts: row.attempts,
        failure: row.failure,
        retry_of: row.retry_of,
    }
}

fn last_run(row: RunSummary) -> LastRun {
    LastRun {
        run: row.run,
        state: state(row.status),
        by: row.by,
        submitted_at: row.submitted_at,
        finished_at: row.finished_at,
        failure: row.failure,
    }
}

/// The store is no system of the site, and is told beside them: runs wait for it.
fn store_health(trouble: Option<(RunId, StoreError)>) -> SystemHealth {
    let error = trouble.map(|(run, error)| format!("run {} waits: {error}", run.short()));
    let ok_at = error.is_none().then(jiff::Timestamp::now);
    SystemHealth { name: "store".to_owned(), ok_at, error }
}

fn health(h: crate::app::SystemHealth) -> SystemHealth {
    SystemHealth { name: h.name, ok_at: h.ok_at, error: h.error }
}

fn refused_submission(error: &SubmitError) -> Refused {
    Refused { code: error.code().to_owned(), message: error.to_string(), action: error.action() }
}

/// A refusal in words for keys: a command's words would be of no use here.
fn refused_at_the_rack(error: &RackError) -> Refused {
    let action = match error {
        RackError::Busy { .. } => "wait for its end, or open it and press x first".to_owned(),
        RackError::Deployed { .. } => "leave the host alone, or press P again and type its name".to_owned(),
        RackError::Unasked { .. } => "press P again".to_owned(),
        RackError::Host(_) | RackError::NoSite { .. } | RackError::Failed(_) => error.action(),
    };
    Refused { code: error.code().to_owned(), message: error.to_string(), action }
}

/// What became of a host's power, in a sentence.
fn power_words(host: &str, powered: &Powered) -> String {
    match powered.asked.as_slice() {
        [] => format!("the power of {host} is {} already", powered.after),
        asked => {
            format!("the power of {host} was {}, is {} ({})", powered.before, powered.after, asked.join(", then "))
        }
    }
}

fn refused(code: &str, error: &dyn std::fmt::Display) -> Refused {
    Refused {
        code: code.to_owned(),
        message: error.to_string(),
        action: "the log pane (v) has what led to it".to_owned(),
    }
}
