//! Cancel, signal, read the systems now: by this process where it leads, else by the one that does.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::handle::{App, AppError};
use super::lead::Role;
use crate::domain::event::{Body, Event};
use crate::domain::ids::RunId;
use crate::engine::{Engine, EngineError};
use crate::store::{Answer, RunStatus, Store, Wish};
use crate::workflows::cx::Signal;

/// A leader that is well begins with a command within a tenth of a second.
const UNTIL_TAKEN: Duration = Duration::from_secs(5);
/// How long carrying it out may take: an append to a journal, or reading every system with all retries.
const STEERED: Duration = Duration::from_secs(30);
const READ: Duration = Duration::from_secs(600);
/// Between two looks for an answer.
const LOOK: Duration = Duration::from_millis(30);

impl App {
    /// Ends a run at its next await (G9). Answered when the request is in the journal.
    pub async fn cancel(&self, run: RunId, by: &str) -> Result<(), AppError> {
        let office = &self.inner.office;
        match office.engine() {
            Some(engine) => cancel(office.store(), &engine, run, by, None).await,
            None => self.ask_of_run(run, Wish::Cancel { run, by: by.to_owned() }).await,
        }
    }

    /// Says something to a run under way.
    pub async fn signal(&self, run: RunId, what: Signal) -> Result<(), AppError> {
        let office = &self.inner.office;
        match office.engine() {
            Some(engine) => signal(office.store(), &engine, run, what, None).await,
            None => self.ask_of_run(run, Wish::Signal { run, signal: what }).await,
        }
    }

    /// Reads NetBox and every Ironic now.
    pub async fn sync_now(&self) -> Result<(), AppError> {
        match self.role() {
            Role::Leading | Role::Aside => self.inner.office.read_systems().await,
            Role::Following { .. } => self.ask(Wish::ReadSystems, READ).await,
        }
    }

    /// Asks something of a run under way.
    async fn ask_of_run(&self, run: RunId, wish: Wish) -> Result<(), AppError> {
        // What needs no leader to be said is said at once.
        if !self.inner.office.store().run(run)?.status.is_active() {
            return Err(AppError::RunEnded(run));
        }
        self.ask(wish, STEERED).await
    }

    /// Asks whoever leads, and waits for the answer. If nobody does, this process leads in a moment and answers itself.
    async fn ask(&self, wish: Wish, patience: Duration) -> Result<(), AppError> {
        let store = self.inner.office.store();
        let id = store.ask(wish, Timestamp::now()).await?;
        let mut role = self.role();
        let mut deadline = Instant::now() + UNTIL_TAKEN;
        let mut taken = None;
        loop {
            let state = store.command(id)?;
            let state = state.ok_or_else(|| AppError::Told("the answer was given too long ago".to_owned()))?;
            if let Some(answer) = state.answer {
                return told(answer);
            }
            if state.taken_at != taken {
                (taken, deadline) = (state.taken_at, Instant::now() + patience);
            }
            // Another leader begins anew.
            let now = self.role();
            if now != role {
                (role, deadline) = (now, Instant::now() + UNTIL_TAKEN.max(LOOK));
            }
            if Instant::now() >= deadline {
                return Err(no_answer(&role));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn no_answer(role: &Role) -> AppError {
    match role {
        Role::Following { leader: Some(leader) } => {
            AppError::NoAnswer { leader: leader.to_string(), pid: leader.pid.to_string() }
        }
        _ => AppError::NoAnswer { leader: "another process".to_owned(), pid: "PID".to_owned() },
    }
}

/// Cancels by the engine. `asked_at`: another process asked for it then; a leader that died in between may have done it.
pub(super) async fn cancel(
    store: &Store,
    engine: &Engine,
    run: RunId,
    by: &str,
    asked_at: Option<Timestamp>,
) -> Result<(), AppError> {
    let row = store.run(run)?;
    let is_cancel = |event: &Event| matches!(event, Event::CancelRequested { .. });
    if row.status.is_active() {
        // One request is enough: a second one in the journal would say nothing new.
        return match since(store, run, Timestamp::MIN, is_cancel)? {
            true => Ok(()),
            false => engine.cancel(run, by).await.map_err(ended),
        };
    }
    let done_for_them = row.status == RunStatus::Cancelled
        && asked_at.is_some_and(|at| since(store, run, at, is_cancel).unwrap_or(false));
    if done_for_them { Ok(()) } else { Err(AppError::RunEnded(run)) }
}

/// Signals by the engine, once for each time that it is asked.
pub(super) async fn signal(
    store: &Store,
    engine: &Engine,
    run: RunId,
    signal: Signal,
    asked_at: Option<Timestamp>,
) -> Result<(), AppError> {
    let written = serde_json::to_value(&signal).map_err(|e| EngineError::Signal(e.to_string()))?;
    let is_it = |event: &Event| matches!(event, Event::Signalled { signal } if *signal == written);
    if let Some(at) = asked_at
        && since(store, run, at, is_it)?
    {
        return Ok(());
    }
    engine.signal(run, signal).await.map_err(ended)
}

/// Whether such an event stands in the journal since a time.
fn since(store: &Store, run: RunId, at: Timestamp, fits: impl Fn(&Event) -> bool) -> Result<bool, AppError> {
    let records = store.records(run)?;
    Ok(records.iter().any(|r| r.at >= at && matches!(&r.body, Body::Journal(event) if fits(event))))
}

fn ended(error: EngineError) -> AppError {
    match error {
        EngineError::NotActive(run) => AppError::RunEnded(run),
        error => AppError::Engine(error),
    }
}

pub(super) fn is_stopping(done: &Result<(), AppError>) -> bool {
    matches!(done, Err(AppError::Engine(EngineError::Stopped)))
}

/// How it ended, for the process that asked.
pub(super) fn answer(done: Result<(), AppError>) -> Answer {
    match done {
        Ok(()) => Answer::Done,
        Err(AppError::RunEnded(run)) => Answer::RunEnded { run },
        Err(AppError::Engine(EngineError::NotBegun(run))) => Answer::NotBegun { run },
        Err(error) => Answer::Failed { message: error.to_string() },
    }
}

fn told(answer: Answer) -> Result<(), AppError> {
    match answer {
        Answer::Done => Ok(()),
        Answer::RunEnded { run } => Err(AppError::RunEnded(run)),
        Answer::NotBegun { run } => Err(EngineError::NotBegun(run).into()),
        Answer::Failed { message } => Err(AppError::Told(message)),
    }
}
