//! The one place where entries for a DHCP host are handed in. Whoever has the turn serves all that wait there: they share one
//! restart, and no upload ever falls between another one's upload and restart (D10).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::round;
use crate::activities::env::ActivityCx;
use crate::config::settings::DhcpSettings;
use crate::domain::dhcp::EntryFile;
use crate::domain::failure::Failure;
use crate::workflows::defs::DhcpOut;

/// So many entries share a restart at most: the first of them waits for the upload of all the others.
const ROUND: usize = 64;

/// What became of an entry.
pub(super) type Outcome = Result<DhcpOut, Failure>;

/// An entry that waits to be served.
pub(super) struct Job {
    pub cx: ActivityCx,
    pub file: EntryFile,
    /// Closed when whoever handed it in has gone.
    pub answer: oneshot::Sender<Outcome>,
}

/// The desk of one DHCP host.
#[derive(Default)]
struct Desk {
    waiting: Mutex<VecDeque<Job>>,
    turn: tokio::sync::Mutex<()>,
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_in(&self, cx: &ActivityCx, file: &EntryFile) -> oneshot::Receiver<Outcome> {
        let (answer, answered) = oneshot::channel();
        self.waiting().push_back(Job { cx: cx.clone(), file: file.clone(), answer });
        answered
    }

    /// Those that are next, without those whose run has gone.
    fn next_round(&self) -> Vec<Job> {
        let mut waiting = self.waiting();
        waiting.retain(|job| !job.answer.is_closed());
        let size = waiting.len().min(ROUND);
        waiting.drain(..size).collect()
    }
}

/// By host and port.
type Desks = Mutex<HashMap<(String, u16), Arc<Desk>>>;

/// They belong to the process as the DHCP hosts belong to the world.
static DESKS: LazyLock<Desks> = LazyLock::new(Desks::default);

fn desk_of(cx: &ActivityCx, settings: &DhcpSettings) -> Arc<Desk> {
    // A plan writes nothing that others would have to wait for, and shares nothing with those that do (G14).
    if cx.env.clients.rehearsal().is_some() {
        return Arc::default();
    }
    let key = (settings.host.to_ascii_lowercase(), settings.port);
    Arc::clone(DESKS.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
}

/// Hands an entry in, and waits until it is served: by another run that has the turn, or by this one for all that wait.
pub(super) async fn deliver(cx: &ActivityCx, settings: &DhcpSettings, file: EntryFile) -> Outcome {
    let desk = desk_of(cx, settings);
    let mut answered = desk.hand_in(cx, &file);
    if desk.turn.try_lock().is_err() {
        cx.note("dhcp", format!("waits until another run is done on '{}'", settings.host));
    }
    loop {
        tokio::select! {
            // An answer comes before a turn that nobody needs any more.
            biased;
            told = &mut answered => match told {
                Ok(outcome) => return outcome,
                // The run that had it in hand was ended there. How far it came is seen on the DHCP host.
                Err(_) => answered = desk.hand_in(cx, &file),
            },
            turn = desk.turn.lock() => {
                round::serve(cx, settings, desk.next_round()).await;
                drop(turn);
            }
        }
    }
}
