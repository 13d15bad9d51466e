//! Keeps all runs of an engine going: takes them in, hands on what is said to them, and puts aside for a while what the
//! store does not take. Which of them begin is decided in `admission`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::driver::{self, End, Message, Shared};
use super::handle::EngineError;
use super::replay::internal;
use crate::domain::event::{Event, Outcome};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::queue::{Caps, Entry};
use crate::domain::text::neutralize_to;
use crate::store::StoreError;
use crate::workflows::cx::Signal;

/// How long a run stays aside whose journal could not be written.
const ASIDE: Duration = Duration::from_secs(30);

/// What the supervisor is told.
pub(super) enum Command {
    Launch(RunId),
    ResumeAll(oneshot::Sender<Result<usize, EngineError>>),
    Cancel {
        run: RunId,
        by: String,
        answer: oneshot::Sender<Result<(), EngineError>>,
    },
    Signal {
        run: RunId,
        signal: Signal,
        answer: oneshot::Sender<Result<(), EngineError>>,
    },
    /// A run has been aside for long enough.
    Again {
        run: RunId,
        after: StoreError,
    },
    Shutdown {
        answer: oneshot::Sender<Result<(), EngineError>>,
    },
}

pub(super) struct Supervisor {
    pub shared: Rc<Shared>,
    pub caps: Caps,
    commands: mpsc::WeakUnboundedSender<Command>,
    /// The line as whoever holds the engine sees it.
    queue: Arc<Mutex<Vec<RunId>>>,
    pub running: BTreeMap<RunId, mpsc::UnboundedSender<Message>>,
    /// Runs that this engine is to carry out and that have no driver now.
    pub waiting: BTreeSet<RunId>,
    /// What admission knows of those, and of those that have one.
    pub entries: BTreeMap<RunId, Entry>,
    /// Waiting runs that are left alone for a while. Begun ones keep their room meanwhile.
    pub resting: BTreeSet<RunId>,
    /// Why each run that was aside was.
    pub aside: BTreeMap<RunId, StoreError>,
    pub drivers: JoinSet<(RunId, End)>,
}

/// Serves until it is shut down, or until nobody holds the engine any more.
pub(super) async fn run(
    shared: Shared,
    caps: Caps,
    mut inbox: mpsc::UnboundedReceiver<Command>,
    commands: mpsc::WeakUnboundedSender<Command>,
    queue: Arc<Mutex<Vec<RunId>>>,
) {
    let mut supervisor = Supervisor {
        shared: Rc::new(shared),
        caps,
        commands,
        queue,
        running: BTreeMap::new(),
        waiting: BTreeSet::new(),
        entries: BTreeMap::new(),
        resting: BTreeSet::new(),
        aside: BTreeMap::new(),
        drivers: JoinSet::new(),
    };
    let answer = 'serve: loop {
        let mut next = tokio::select! {
            command = inbox.recv() => match command {
                None => break None,
                command => command,
            },
            Some(ended) = supervisor.drivers.join_next_with_id() => {
                supervisor.ended(ended).await;
                None
            }
        };
        // What came meanwhile is taken in together: a batch is one look at the limits, not one for each of its runs.
        while let Some(command) = next {
            match command {
                Command::Shutdown { answer } => break 'serve Some(answer),
                command => supervisor.handle(command).await,
            }
            next = inbox.try_recv().ok();
        }
        supervisor.start_what_fits().await;
    };
    supervisor.shared.hands.halt.cancel();
    while let Some(ended) = supervisor.drivers.join_next_with_id().await {
        supervisor.ended(ended).await;
    }
    if let Some(answer) = answer {
        // Whoever asked may have gone.
        answer.send(Ok(())).ok();
    }
}

impl Supervisor {
    async fn handle(&mut self, command: Command) {
        match command {
            Command::Launch(run) => self.enqueue(run),
            Command::ResumeAll(answer) => {
                if let Err(error) = self.shared.journal.keep_caps(self.caps).await {
                    tracing::error!(%error, "other processes are not told the limits of this engine");
                }
                let outcome = self.shared.journal.active().map_err(EngineError::from);
                let outcome = outcome.map(|runs| {
                    runs.iter().for_each(|run| self.enqueue(*run));
                    runs.len()
                });
                answer.send(outcome).ok();
            }
            Command::Cancel { run, by, answer } => {
                // Whoever was launched before was to begin before.
                self.start_what_fits().await;
                match self.running.get(&run) {
                    Some(driver) => self.hand_on(driver, Message::Cancel { by, answer }),
                    None => {
                        let outcome = self.cancel_idle(run, by).await;
                        answer.send(outcome).ok();
                    }
                }
            }
            Command::Signal { run, signal, answer } => {
                self.start_what_fits().await;
                match self.running.get(&run) {
                    Some(driver) => self.hand_on(driver, Message::Signal { signal, answer }),
                    None => {
                        let active = self.shared.journal.active().is_ok_and(|runs| runs.contains(&run));
                        let error = if active { EngineError::NotBegun(run) } else { EngineError::NotActive(run) };
                        answer.send(Err(error)).ok();
                    }
                }
            }
            Command::Again { run, after } => {
                self.resting.remove(&run);
                if !self.running.contains_key(&run) {
                    self.aside.insert(run, after);
                    self.enqueue(run);
                }
            }
            // Ends the loop before it gets here.
            Command::Shutdown { .. } => {}
        }
    }

    /// A driver that has just ended drops the message and with it the answer's other end: the caller hears `Stopped`.
    fn hand_on(&self, driver: &mpsc::UnboundedSender<Message>, message: Message) {
        driver.send(message).ok();
    }

    fn enqueue(&mut self, run: RunId) {
        if !self.running.contains_key(&run) {
            self.waiting.insert(run);
        }
    }

    /// The run is over, or not this engine's any more: its room is free.
    pub(super) fn forget(&mut self, run: RunId) {
        self.waiting.remove(&run);
        self.resting.remove(&run);
        self.aside.remove(&run);
        self.entries.remove(&run);
        self.forget_verdict_of(run);
    }

    async fn ended(&mut self, ended: Result<(tokio::task::Id, (RunId, End)), tokio::task::JoinError>) {
        let (run, end) = match ended {
            Ok((_, ended)) => ended,
            Err(error) => return self.broken(&error).await,
        };
        self.running.remove(&run);
        if self.running.is_empty() {
            self.shared.hands.clock.follow();
        }
        match end {
            End::Finished => self.forget(run),
            End::Halted => {}
            End::Lost(error) => {
                tracing::error!(%run, %error, "a run was taken away from this engine");
                self.forget(run);
            }
            End::Aside(error @ (StoreError::Record { .. } | StoreError::Value { .. })) => {
                let failure = Failure::new(
                    FailureCode::JournalDiverged,
                    Phase::ResolveIronicInstance,
                    error.to_string(),
                    "look at what the run has left half done, then enroll the host anew: that begins with a new journal",
                );
                self.fail(run, failure).await;
            }
            End::Aside(error) => self.put_aside(run, error),
        }
    }

    /// The run keeps its device, its journal and its room; it is driven again after a while.
    pub(super) fn put_aside(&mut self, run: RunId, error: StoreError) {
        self.waiting.insert(run);
        self.resting.insert(run);
        tracing::error!(%run, %error, "a run was put aside: its journal could not be written");
        self.shared.trouble.send_replace(Some((run, error.clone())));
        let (commands, clock) = (self.commands.clone(), Arc::clone(&self.shared.hands.clock));
        tokio::task::spawn_local(async move {
            clock.pause(ASIDE).await;
            if let Some(commands) = commands.upgrade() {
                commands.send(Command::Again { run, after: error }).ok();
            }
        });
    }

    /// A driver panicked: an error of the engine itself, which takes only that run with it (G12).
    async fn broken(&mut self, error: &tokio::task::JoinError) {
        tracing::error!(%error, "a driver broke");
        // The drivers that are still there have their inboxes; the one that broke has dropped its own.
        let lost: Vec<RunId> =
            self.running.iter().filter(|(_, inbox)| inbox.is_closed()).map(|(run, _)| *run).collect();
        for run in lost {
            self.running.remove(&run);
            let message = format!("the engine broke: {}", neutralize_to(&error.to_string(), 500));
            self.fail(run, internal(Phase::ResolveIronicInstance, message)).await;
        }
    }

    async fn fail(&mut self, run: RunId, failure: Failure) {
        let outcome = Outcome::Failed { failure: Box::new(failure) };
        match driver::finish(&self.shared, run, vec![Event::Finished { outcome }]).await {
            Ok(()) => self.forget(run),
            Err(error) => self.put_aside(run, error),
        }
    }

    /// Cancels a run that no driver has. One that never began is over with that; another one goes on to its end.
    async fn cancel_idle(&mut self, run: RunId, by: String) -> Result<(), EngineError> {
        if !self.shared.journal.active()?.contains(&run) {
            return Err(EngineError::NotActive(run));
        }
        let begun = self.shared.journal.end(run)? > 1;
        let mut events = vec![Event::CancelRequested { by: by.clone() }];
        if !begun {
            events.push(Event::Finished { outcome: Outcome::Cancelled { by, left: Vec::new(), why: None } });
        }
        driver::finish(&self.shared, run, events).await?;
        if begun {
            self.resting.remove(&run);
            self.enqueue(run);
        } else {
            self.forget(run);
            self.queued().retain(|queued| *queued != run);
        }
        Ok(())
    }

    pub(super) fn queued(&self) -> MutexGuard<'_, Vec<RunId>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
