//! The engine as the rest of the program holds it: launch, cancel, signal, listen, stop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::attempts::Hands;
use super::clock::Clock;
use super::driver::Shared;
use super::ports::{Dispatch, Journal, Registry, Workflows};
use super::slots::Slots;
use super::supervisor::{self, Command};
use super::timers::Timers;
use super::trial::Dock;
use crate::activities::env::Env;
use crate::config::settings::Limits;
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::store::StoreError;
use crate::workflows::cx::Signal;

/// Records that a slow listener may be behind. Beyond it the listener is told that it missed some, and reads the store.
const FEED: usize = 8192;

/// How often a request is made again that met a driver on its way out, and how soon.
const ASKED_AGAIN: usize = 100;
const MOMENT: Duration = Duration::from_millis(2);

/// A handle to the engine. Cheap to clone. When the last one is dropped without [`Engine::shutdown`], the engine stops as
/// if it had been called, with nobody waiting for it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    commands: mpsc::UnboundedSender<Command>,
    feed: broadcast::Sender<RunRecord>,
    queued: Arc<Mutex<Vec<RunId>>>,
    halt: CancellationToken,
    trouble: watch::Sender<Option<(RunId, StoreError)>>,
}

/// What an engine is made of.
pub struct Parts {
    pub journal: Arc<dyn Journal>,
    pub dispatch: Arc<dyn Dispatch>,
    pub workflows: Workflows,
    pub clock: Arc<dyn Clock>,
    pub limits: Limits,
}

/// Why the engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("run {0} is not active: it has ended")]
    NotActive(RunId),
    #[error("run {0} has not begun: it waits for others to end")]
    NotBegun(RunId),
    #[error("the signal can't be written down: {0}")]
    Signal(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the engine stops")]
    Stopped,
}

impl Engine {
    /// Starts an engine on the world as the program has it. Runs of before are resumed by [`Engine::resume_all`].
    pub fn start(env: &Arc<Env>, clock: Arc<dyn Clock>) -> std::io::Result<Engine> {
        Self::with(Parts {
            journal: Arc::new(env.store.clone()),
            dispatch: Arc::new(Registry(Arc::clone(env))),
            workflows: Workflows::all(),
            clock,
            limits: env.settings.limits.clone(),
        })
    }

    /// Starts an engine of these parts. Activities and timers use the runtime at hand; workflows have a thread of their
    /// own, because they are not `Send`.
    pub fn with(parts: Parts) -> std::io::Result<Engine> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (feed, _) = broadcast::channel(FEED);
        let trouble = watch::Sender::new(None);
        let halt = CancellationToken::new();
        let queued = Arc::<Mutex<Vec<RunId>>>::default();
        let hands = Hands {
            dispatch: parts.dispatch,
            timers: Timers::spawn(Arc::clone(&parts.clock)),
            clock: parts.clock,
            slots: Slots::new(parts.limits.activities),
            dock: Dock::new(),
            halt: halt.clone(),
        };
        let inner = Inner {
            commands: commands.clone(),
            feed: feed.clone(),
            queued: Arc::clone(&queued),
            halt,
            trouble: trouble.clone(),
        };
        let runtime = tokio::runtime::Handle::current();
        let caps = parts.limits.caps();
        let own = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (journal, workflows) = (parts.journal, parts.workflows);
        std::thread::Builder::new().name("muster-engine".to_owned()).spawn(move || {
            let shared = Shared { journal, workflows, hands: Arc::new(hands), runtime, feed, trouble };
            let local = tokio::task::LocalSet::new();
            local.block_on(&own, supervisor::run(shared, caps, inbox, commands.downgrade(), queued));
        })?;
        Ok(Engine { inner: Arc::new(inner) })
    }

    /// Lets a submitted run begin, at once or when there is room for it.
    pub fn launch(&self, run: RunId) {
        // A run that the engine does not take now is resumed by the next one.
        self.inner.commands.send(Command::Launch(run)).ok();
    }

    /// Lets every active run of the journal go on; says how many there are.
    pub async fn resume_all(&self) -> Result<usize, EngineError> {
        self.ask(Command::ResumeAll).await
    }

    /// Cancels a run: answered when the request is in the journal.
    pub async fn cancel(&self, run: RunId, by: &str) -> Result<(), EngineError> {
        self.ask_of(run, |answer| Command::Cancel { run, by: by.to_owned(), answer }).await
    }

    /// Says something to a run under way: answered when it is in the journal.
    pub async fn signal(&self, run: RunId, signal: Signal) -> Result<(), EngineError> {
        self.ask_of(run, |answer| Command::Signal { run, signal: signal.clone(), answer }).await
    }

    /// Records of all runs from now on, each once it is on the disk.
    pub fn subscribe(&self) -> broadcast::Receiver<RunRecord> {
        self.inner.feed.subscribe()
    }

    /// The run that was put aside last because its journal could not be written or read, and why. `None`: the store takes
    /// records.
    pub fn trouble(&self) -> watch::Receiver<Option<(RunId, StoreError)>> {
        self.inner.trouble.subscribe()
    }

    /// The runs that wait for room or for their canary, the next one first.
    pub fn queued(&self) -> Vec<RunId> {
        self.inner.queued.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops all runs where they are; the next engine on the same journal lets them go on. Activities have a few seconds
    /// to come to an end.
    pub async fn shutdown(&self) {
        self.inner.halt.cancel();
        // An engine that is gone has stopped.
        self.ask(|answer| Command::Shutdown { answer }).await.ok();
    }

    /// Asks something of a run. A driver that goes while it is spoken to gives no answer: its run has ended, or was put
    /// aside because of the store. Asked once more, the supervisor knows which.
    async fn ask_of(
        &self,
        run: RunId,
        command: impl Fn(oneshot::Sender<Result<(), EngineError>>) -> Command,
    ) -> Result<(), EngineError> {
        for _ in 0..ASKED_AGAIN {
            match self.ask(&command).await {
                Err(EngineError::Stopped) if !self.inner.halt.is_cancelled() => tokio::time::sleep(MOMENT).await,
                answer => return answer,
            }
        }
        Err(EngineError::NotActive(run))
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, EngineError>>) -> Command,
    ) -> Result<T, EngineError> {
        let (answer, answered) = oneshot::channel();
        self.inner.commands.send(command(answer)).map_err(|_| EngineError::Stopped)?;
        answered.await.unwrap_or(Err(EngineError::Stopped))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.halt.cancel();
    }
}
