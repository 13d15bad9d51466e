//! The edge to the application: its feed and its fleet become events, effects become calls, and their answers events.

use std::future::Future;
use std::sync::{Arc, Mutex as Lock, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::event::{Event, Refused};
use super::model::history::Past;
use super::model::host::{Host, LastRun, SystemHealth};
use super::model::place::{NO_LOCATION, Place, by_place, natural};
use super::model::power::Looked;
use crate::app::{App, AppError, Changes, Consent, Entry, Name, RackError, Roster, RunSummary, Sorted, SubmitError};
use crate::domain::event::{Body, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::rack::{LocatorWish, PowerWish, Powered};
use crate::domain::request::EnrollParams;
use crate::domain::run_view::RunState;
use crate::domain::word::Word;
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
/// A fleet of so many devices is read as a whole before the first frame. Of a larger one the first hosts are.
const AT_ONCE: u64 = 2000;
/// So many: more than any screen has lines.
const FIRST_HOSTS: usize = 200;
/// Runs that are read at the same time. Each reading has a thread and a connection of its own.
const READINGS: usize = 2;

/// What the console asks of the application, and where the answers go.
pub struct Outside {
    app: App,
    user: String,
    /// Reads the hosts of the site that is shown, or of all.
    roster: Arc<Lock<Roster>>,
    readings: Arc<Semaphore>,
    events: UnboundedSender<Event>,
    tasks: JoinSet<()>,
    /// The rack that was read last, and when it may be read again.
    last_rack: Arc<Mutex<Option<(Place, tokio::time::Instant)>>>,
}

impl Outside {
    pub fn new(app: App, user: String, site: Option<String>, events: UnboundedSender<Event>) -> Self {
        Outside {
            roster: Arc::new(Lock::new(app.roster(site))),
            readings: Arc::new(Semaphore::new(READINGS)),
            app,
            user,
            events,
            tasks: JoinSet::new(),
            last_rack: Arc::default(),
        }
    }

    /// Who leads, and the fleet as the store has it: the first frame needs no network. Of a large fleet the first hosts
    /// come, and the others behind that frame.
    pub async fn first_look(&mut self) -> Vec<Event> {
        let (app, roster, events) = (self.app.clone(), Arc::clone(&self.roster), self.events.clone());
        let (read, mut at_once) = oneshot::channel();
        self.tasks.spawn_blocking(move || {
            let mut read = Some(read);
            let mut tell = |news: Vec<Event>| {
                // Where nobody waits any more it goes where everything else goes, unless the console is ending.
                let late = match read.take() {
                    Some(read) => read.send(news).err().unwrap_or_default(),
                    None => news,
                };
                late.into_iter().for_each(|event| drop(events.send(event)));
            };
            let mut roster = lock(&roster);
            match first_hosts(&mut roster) {
                Ok(None) => {}
                Ok(Some(hosts)) => tell([vec![Event::FleetBegins(hosts)], beside(&app)].concat()),
                Err(error) => tell(vec![Event::Answered(Err(refused("store_failed", &error)))]),
            }
            tell(whole(&app, &mut roster));
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
        let (app, roster, events) = (self.app.clone(), Arc::clone(&self.roster), self.events.clone());
        let mut feed = self.app.feed();
        self.tasks.spawn(async move {
            let (mut stale, mut missed) = (false, false);
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
                        let (app, roster, missed) = (app.clone(), Arc::clone(&roster), std::mem::take(&mut missed));
                        let read = spawn_blocking(move || news(&app, &mut lock(&roster), missed)).await;
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
                    Ok(crate::app::FeedEvent::FleetChanged) => {
                        stale = true;
                        continue;
                    }
                    // What was missed of a run shows as a gap in its records, and it is read anew; that it began, or
                    // ended, shows in the list of runs.
                    Err(RecvError::Lagged(_)) => {
                        (stale, missed) = (true, true);
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
        let (app, readings) = (self.app.clone(), Arc::clone(&self.readings));
        self.spawn(async move {
            // Of a thousand runs not all at once: that would take a thread for each. It is never closed.
            let _one = readings.acquire_owned().await;
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

fn lock(roster: &Lock<Roster>) -> MutexGuard<'_, Roster> {
    roster.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a large fleet the hosts that a first frame shows; `None`: it is small.
fn first_hosts(roster: &mut Roster) -> Result<Option<Vec<Host>>, AppError> {
    if roster.size()? <= AT_ONCE {
        return Ok(None);
    }
    let order = |a: Option<&str>, b: Option<&str>| natural(a.unwrap_or(NO_LOCATION), b.unwrap_or(NO_LOCATION));
    Ok(Some(roster.first(FIRST_HOSTS, order)?.into_iter().map(host).collect()))
}

fn whole(app: &App, roster: &mut Roster) -> Vec<Event> {
    let mut hosts = Vec::new();
    if let Err(error) = roster.whole(|entry| hosts.push(host(entry))) {
        return vec![Event::Answered(Err(refused("store_failed", &error)))];
    }
    // Here and not where keys are waited for.
    hosts.sort_by(by_place);
    [vec![Event::Fleet(hosts)], beside(app)].concat()
}

/// What changed since the last reading, with the runs where records of them were missed.
fn news(app: &App, roster: &mut Roster, missed: bool) -> Vec<Event> {
    let mut changed = Vec::new();
    let mut events = match roster.changes(|entry| changed.push(host(entry))) {
        Ok(Changes::Unknown) => return whole(app, roster),
        Ok(Changes::Without(gone)) if changed.is_empty() && gone.is_empty() => Vec::new(),
        Ok(Changes::Without(gone)) => vec![Event::Hosts { changed, gone }],
        Err(error) => return vec![Event::Answered(Err(refused("store_failed", &error)))],
    };
    if missed {
        events.push(match roster.runs() {
            Ok(runs) => Event::LastRuns(runs.into_iter().map(|run| (run.netbox_id, last_run(run))).collect()),
            Err(error) => Event::Answered(Err(refused("store_failed", &error))),
        });
    }
    events.extend(beside(app));
    events
}

/// How the systems stand, and the line of the runs.
fn beside(app: &App) -> Vec<Event> {
    let mut events: Vec<Event> = match app.systems() {
        Ok(systems) => systems.into_iter().map(|system| Event::Health(health(system))).collect(),
        Err(error) => vec![Event::Answered(Err(refused("store_failed", &error)))],
    };
    events.push(queue_event(app));
    events
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

fn host(entry: Entry) -> Host {
    Host {
        device: entry.device,
        ironic: entry.ironic,
        refusal: entry.refusal,
        last_run: entry.last_run.map(|run| Box::new(last_run(*run))),
        is_proven: entry.is_proven,
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
        by: Word::from(row.by),
        submitted_at: row.submitted_at,
        finished_at: row.finished_at,
        failure: row.failure.map(Box::new),
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
