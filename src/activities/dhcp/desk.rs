//! The one place where entries for a DHCP host are handed in. Whoever has the turn serves all that wait there: they share one
//! restart, and no upload ever falls between another one's upload and restart (D10).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::{Wanted, round};
use crate::activities::env::ActivityCx;
use crate::config::settings::DhcpSettings;
use crate::domain::failure::Failure;
use crate::workflows::defs::DhcpOut;

/// So many entries share a restart at most: the first of them waits for the upload of all the others.
const ROUND: usize = 64;

/// What became of an entry.
pub(super) type Outcome = Result<DhcpOut, Failure>;

/// An entry that waits to be served.
pub(super) struct Job {
    pub cx: ActivityCx,
    /// Two sites may have one host and two folders: only what is served in the same way goes together.
    settings: DhcpSettings,
    pub wanted: Wanted,
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

    fn hand_in(&self, cx: &ActivityCx, settings: &DhcpSettings, wanted: &Wanted) -> oneshot::Receiver<Outcome> {
        let (answer, answered) = oneshot::channel();
        let job = Job { cx: cx.clone(), settings: settings.clone(), wanted: wanted.clone(), answer };
        self.waiting().push_back(job);
        answered
    }

    /// Those that are next with these settings, without those whose run has gone.
    fn next_round(&self, settings: &DhcpSettings) -> Vec<Job> {
        let mut waiting = self.waiting();
        waiting.retain(|job| !job.answer.is_closed());
        let (mut round, mut later) = (Vec::new(), VecDeque::new());
        for job in waiting.drain(..) {
            if round.len() < ROUND && job.settings == *settings { round.push(job) } else { later.push_back(job) }
        }
        *waiting = later;
        round
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
pub(super) async fn deliver(cx: &ActivityCx, settings: &DhcpSettings, wanted: Wanted) -> Outcome {
    let desk = desk_of(cx, settings);
    let mut answered = desk.hand_in(cx, settings, &wanted);
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
                Err(_) => answered = desk.hand_in(cx, settings, &wanted),
            },
            turn = desk.turn.lock() => {
                round::serve(cx, settings, desk.next_round(settings)).await;
                drop(turn);
            }
        }
    }
}
