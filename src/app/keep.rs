//! Keeps a process up with its state folder: waits for the lead, tells what anybody commits, and while it leads takes up
//! what others submit and ask.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::feed::FeedEvent;
use super::lead::{Office, Role};
use super::steer;
use crate::store::{Answer, Command, News, Stir, Stirred, StoreError, Watcher, Wish};

/// How often the lock and the store's version are looked at where writes are heard: only in case one was not.
const LOOK: Duration = Duration::from_secs(5);
/// And where they are not: a follower is behind by so much at most.
const LOOK_DEAF: Duration = Duration::from_millis(100);
/// A lock is given back a moment after it is heard that its holder closed it.
const LOOK_FOR_LEAD: Duration = Duration::from_millis(2);
const LEAD_IS_NEAR: Duration = Duration::from_millis(200);
/// Commits of this process are told at once, and those that come close together are told together.
const TOGETHER: Duration = Duration::from_millis(5);
/// After an error the next try is so far away.
const AFTER_ERROR: Duration = Duration::from_secs(2);

/// Goes on until `stop`. All that is told of runs, fleet and systems comes from the store, whoever leads: a change of the
/// lead loses nothing and doubles nothing.
pub(super) async fn keep(office: Arc<Office>, mut watcher: Watcher, leads: bool, stop: CancellationToken) {
    let mut commits = office.store().commits_here();
    let mut attending = Attending::default();
    // A process that has just taken the lead may find commands of before.
    let mut asked = office.engine().is_some();
    let mut try_at = Instant::now();
    let mut stir = office.store().stir();
    let mut lock_moved = Instant::now();
    let mut seen = Stirred::default();
    loop {
        if asked && office.engine().is_some() {
            attending.attend(&office);
        }
        let stands = leads && office.engine().is_none();
        let pause = match &stir {
            Some(_) if stands && lock_moved.elapsed() < LEAD_IS_NEAR => LOOK_FOR_LEAD,
            Some(_) => LOOK,
            None => LOOK_DEAF,
        };
        tokio::select! {
            () = stop.cancelled() => return,
            moved = commits.changed() => if moved.is_err() { return },
            Some(_) = attending.next() => {}
            () = heard(&mut stir) => {}
            () = tokio::time::sleep(pause) => {}
        }
        if let Some(now) = stir.as_mut().map(Stir::so_far) {
            if now.lock != seen.lock {
                (lock_moved, try_at) = (Instant::now(), Instant::now());
            }
            seen = now;
        }
        asked = attending.unanswered;
        if leads && office.engine().is_none() && Instant::now() >= try_at {
            match office.try_lead().await {
                Ok(Role::Leading) => asked = true,
                Ok(_) => try_at = Instant::now() + pause.min(LOOK_DEAF),
                Err(error) => {
                    tracing::error!(%error, "the lead could not be taken");
                    try_at = Instant::now() + AFTER_ERROR;
                }
            }
        }
        match watcher.moved() {
            Ok(false) => continue,
            Ok(true) => {}
            Err(error) => tracing::warn!(%error, "the store could not be asked for changes"),
        }
        let wanted = office.feed.receiver_count() > 0;
        let looked = spawn_blocking(move || {
            let news = watcher.look(wanted);
            (watcher, news)
        });
        // Reading the store does not panic; the runtime may be on its way down.
        let Ok((kept, news)) = looked.await else { return };
        watcher = kept;
        match news {
            Ok(news) => {
                asked |= news.asked;
                tell(&office, news);
                tokio::time::sleep(TOGETHER).await;
            }
            Err(error) => {
                tracing::warn!(%error, "what is new in the store could not be read");
                tokio::time::sleep(AFTER_ERROR).await;
            }
        }
    }
}

/// Waits until somebody writes; for ever where that can't be heard.
async fn heard(stir: &mut Option<Stir>) {
    match stir {
        Some(stir) => stir.heard().await,
        None => std::future::pending().await,
    }
}

fn tell(office: &Office, news: News) {
    // Before the records: whoever hears of a run may ask for it.
    if let Some(engine) = office.engine() {
        for run in news.submitted {
            // One of this process was launched at once, and may have ended by now.
            if office.store().run(run).is_ok_and(|row| row.status.is_active()) {
                engine.launch(run);
            }
        }
    }
    // Nobody may be listening.
    news.records.into_iter().for_each(|record| drop(office.feed.send(FeedEvent::Record(Box::new(record)))));
    if news.fleet {
        drop(office.feed.send(FeedEvent::FleetChanged));
    }
    news.systems.into_iter().for_each(|system| drop(office.feed.send(FeedEvent::SystemHealth(system.into()))));
}

/// Commands that this process carries out. One that takes long holds up none of the others.
#[derive(Default)]
struct Attending {
    busy: BTreeSet<i64>,
    tasks: JoinSet<(i64, Result<(), StoreError>)>,
    /// An answer could not be written: the command is still there.
    unanswered: bool,
}

impl Attending {
    fn attend(&mut self, office: &Arc<Office>) {
        self.unanswered = false;
        let asked = match office.store().asked() {
            Ok(asked) => asked,
            Err(error) => {
                tracing::warn!(%error, "what others ask could not be read");
                self.unanswered = true;
                return;
            }
        };
        for command in asked {
            if self.busy.insert(command.id) {
                let office = Arc::clone(office);
                self.tasks.spawn(async move { (command.id, carry_out(&office, command).await) });
            }
        }
    }

    /// The end of one of them; `None`: there is none under way.
    async fn next(&mut self) -> Option<()> {
        match self.tasks.join_next().await? {
            Ok((id, done)) => {
                if let Err(error) = done {
                    tracing::error!(%error, "an answer could not be written");
                    self.unanswered = true;
                }
                self.busy.remove(&id);
            }
            // Its number stays among the busy ones: what broke once is not tried for ever. The next leader tries again.
            Err(error) => tracing::error!(%error, "a command broke"),
        }
        Some(())
    }
}

async fn carry_out(office: &Office, command: Command) -> Result<(), StoreError> {
    let (store, id, asked_at) = (office.store(), command.id, Some(command.asked_at));
    store.take_command(id, Timestamp::now()).await?;
    tracing::info!(command = id, wish = ?command.wish, "another process asks");
    let Some(engine) = office.engine() else { return Ok(()) };
    let done = match command.wish {
        Some(Wish::Cancel { run, by }) => steer::cancel(store, &engine, run, &by, asked_at).await,
        Some(Wish::Signal { run, signal }) => steer::signal(store, &engine, run, signal, asked_at).await,
        Some(Wish::ReadSystems) => office.read_systems().await,
        None => {
            let message = "the process that leads is of another version, which does not know what was asked".to_owned();
            return store.answer_command(id, Timestamp::now(), Answer::Failed { message }).await;
        }
    };
    // The engine stops with the lead: the next leader carries it out.
    if steer::is_stopping(&done) {
        return Ok(());
    }
    let answered = store.answer_command(id, Timestamp::now(), steer::answer(done)).await;
    if answered.is_err() {
        tokio::time::sleep(AFTER_ERROR).await;
    }
    answered
}
