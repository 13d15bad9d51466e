//! A host as the fleet shows it, and how it stands in one line: sign, sentence, time and owner.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::device::{Device, IronicRef};
use crate::domain::eligibility::Grounds;
use crate::domain::event::WaitKind;
use crate::domain::failure::{Failure, Owner};
use crate::domain::ids::RunId;
use crate::domain::link::LinkState;
use crate::domain::listed::Listed;
use crate::domain::phase::Phase;
use crate::domain::provision::ProvisionState;
use crate::domain::queue::Queued;
use crate::domain::run_view::{RunState, RunView};
use crate::domain::word::Word;
use crate::tui::event::Refused;
use crate::tui::glyphs::Status;
use crate::tui::text;

/// A device with everything that the console knows about it. There may be a hundred thousand: what most of them lack stands
/// apart, and what many of them share they share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub device: Listed,
    pub ironic: Option<Box<IronicRef>>,
    /// Why it may not be enrolled; `None` where it may.
    #[serde(with = "as_own")]
    pub refusal: Option<Arc<Grounds>>,
    pub last_run: Option<Box<LastRun>>,
    /// That its enrollment is proven.
    #[serde(default)]
    pub is_proven: bool,
}

/// A shared refusal is written as the host's own, and is that when it is read.
mod as_own {
    use serde::{Deserializer, Serializer};

    use super::*;

    pub fn serialize<S: Serializer>(refusal: &Option<Arc<Grounds>>, serializer: S) -> Result<S::Ok, S::Error> {
        refusal.as_deref().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Grounds>>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Arc::new))
    }
}

/// The latest run of a host, as the store lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastRun {
    pub run: RunId,
    pub state: RunState,
    pub by: Word,
    pub submitted_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub failure: Option<Box<Failure>>,
}

/// When a system was last heard, and what is wrong since then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemHealth {
    pub name: String,
    pub ok_at: Option<Timestamp>,
    pub error: Option<String>,
}

impl LastRun {
    /// Under way, or about to be.
    pub fn is_live(&self) -> bool {
        matches!(self.state, RunState::Queued | RunState::Running | RunState::Cancelling)
    }
}

impl Host {
    /// A device of which nothing else is known.
    pub fn of(device: &Device) -> Host {
        Host { device: Listed::from(device), ironic: None, refusal: None, last_run: None, is_proven: false }
    }

    /// The refusal in its own words.
    pub fn refused(&self) -> Option<Refused> {
        self.refusal.as_ref().map(|grounds| Refused {
            code: grounds.code.as_ref().to_owned(),
            message: grounds.message(&self.device.name),
            action: grounds.action(&self.device.name),
        })
    }

    /// Whether an instance lives on it, or Ironic calls it deployed: an enrollment could restart it (B19).
    pub fn is_deployed(&self) -> bool {
        self.ironic.as_ref().is_some_and(|i| i.instance_uuid.is_some() || i.state == ProvisionState::Active)
    }

    /// The failure that its last run ended with.
    pub fn failure(&self) -> Option<&Failure> {
        self.last_run.as_ref().filter(|r| r.state == RunState::Failed)?.failure.as_deref()
    }

    /// Who mends what is wrong with it, or lets it be enrolled; `None` where nobody has to.
    pub fn owner(&self) -> Option<Owner> {
        if let Some(failure) = self.failure() {
            return Some(failure.owner);
        }
        let is_live = self.last_run.as_deref().is_some_and(LastRun::is_live);
        (self.refusal.is_some() && !is_live && !self.is_bystander()).then_some(Owner::InfraEng)
    }

    /// Whether a person has to do something at the rack.
    pub fn needs_hands(&self) -> bool {
        self.failure().is_some_and(|f| f.owner == Owner::Onsite)
    }

    /// Stands in a rack and is nothing to enroll: a switch, a shelf. Nobody has to mend that.
    pub fn is_bystander(&self) -> bool {
        self.refusal.as_ref().is_some_and(|r| r.code == "device_class_refused")
    }

    /// The highest units come first, as a person looks at a rack.
    pub fn unit(&self) -> Option<f64> {
        self.device.position
    }
}

/// A unit as racks are labelled: `37`, `37.5`, nothing where there is none.
pub fn unit_text(position: Option<f64>) -> String {
    match position {
        Some(u) if u.fract() == 0.0 => format!("{u:.0}"),
        Some(u) => format!("{u:.1}"),
        None => String::new(),
    }
}

/// How a host stands, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub status: Status,
    pub text: String,
    /// Fewer and fewer words, for columns that have no room for the sentence.
    pub shorter: Vec<String>,
    /// The time that matters: what is left, how long, or how long ago.
    pub time: String,
    pub owner: Option<Owner>,
}

/// How a host stands. `live` is the view of its run, where the run is under way and loaded; `queued` its place, where it
/// has not begun.
pub fn standing(host: &Host, live: Option<&RunView>, queued: Option<&Queued>, now: Timestamp) -> Standing {
    if let Some(last) = &host.last_run {
        match last.state {
            RunState::Queued | RunState::Running | RunState::Cancelling => {
                return live_standing(last, live, queued, now);
            }
            RunState::Failed => {
                let failure = last.failure.as_deref();
                return Standing {
                    status: Status::Failed,
                    text: failure.map_or("failed".to_owned(), |f| f.message.clone()),
                    shorter: failure.map(shorter_of).unwrap_or_default(),
                    time: ended(last, now),
                    owner: failure.map(|f| f.owner),
                };
            }
            RunState::Succeeded | RunState::Cancelled => {}
        }
    }
    if host.is_bystander() {
        let class = host.device.device_class.as_deref().unwrap_or("device").to_lowercase();
        return standing_of(Status::None, format!("not enrolled: {class}"), String::new());
    }
    if let Some(refusal) = host.refused() {
        return Standing {
            status: Status::Refused,
            shorter: vec![code_words(&refusal.code)],
            text: refusal.message,
            time: String::new(),
            owner: Some(Owner::InfraEng),
        };
    }
    match &host.last_run {
        Some(last) if last.state == RunState::Succeeded => {
            standing_of(Status::Ok, "enrolled".to_owned(), ended(last, now))
        }
        Some(last) => {
            let text = format!("cancelled, was started by {}", last.by);
            standing_of(Status::Skipped, text, ended(last, now))
        }
        None => standing_of(Status::None, "never".to_owned(), String::new()),
    }
}

fn standing_of(status: Status, text: String, time: String) -> Standing {
    Standing { status, text, shorter: Vec::new(), time, owner: None }
}

/// A failure in a few words: what all of it comes to, where its sentence begins with that (`eth0 and eth1 are swapped: …`),
/// then its code.
fn shorter_of(failure: &Failure) -> Vec<String> {
    let code = code_words(failure.code.as_str());
    match failure.message.split_once(": ") {
        // A quoted value may hold a colon of its own.
        Some((first, _)) if first.len() <= 40 && !first.starts_with('\'') && !first.contains(" '") => {
            vec![first.to_owned(), code]
        }
        _ => vec![code],
    }
}

/// A code as words: `CABLES_WRONG` reads `cables wrong`.
fn code_words(code: &str) -> String {
    code.replace('_', " ").to_lowercase()
}

fn ended(last: &LastRun, now: Timestamp) -> String {
    text::ago(now, last.finished_at.unwrap_or(last.submitted_at))
}

fn live_standing(last: &LastRun, live: Option<&RunView>, queued: Option<&Queued>, now: Timestamp) -> Standing {
    let since = |from: Timestamp| text::clock(text::seconds(from, now));
    let standing = standing_of;
    let state = live.map_or(last.state, RunView::state);
    if state == RunState::Queued {
        return queued_standing(queued, since(last.submitted_at));
    }
    let Some(view) = live else {
        let (status, word) = match last.state {
            RunState::Cancelling => (Status::Running, "cancelling"),
            _ => (Status::Running, "running"),
        };
        return standing(status, word.to_owned(), since(last.submitted_at));
    };
    match view.state() {
        RunState::Cancelling => standing(Status::Running, "cancelling".to_owned(), since(last.submitted_at)),
        _ => {
            let (status, text, time) = activity_line(view, now);
            standing(status, text, time)
        }
    }
}

/// What holds a run that has not begun, and at which place it stands.
fn queued_standing(queued: Option<&Queued>, time: String) -> Standing {
    let Some(Queued { place, reason, .. }) = queued else {
        return standing_of(Status::Queued, "queued".to_owned(), time);
    };
    let shorter = [reason.brief(), reason.kind().to_owned()].map(|held| format!("place {place}, {held}"));
    let shorter = [&shorter[..], &[format!("place {place}")]].concat();
    Standing { shorter, ..standing_of(Status::Queued, format!("place {place}: {reason}"), time) }
}

/// What a run under way does or waits for, short enough for a column, and the time that matters.
pub fn activity_line(view: &RunView, now: Timestamp) -> (Status, String, String) {
    if let Some(wait) = &view.wait {
        let text = match wait.reason.kind {
            WaitKind::LinkGuard => format!("link guard · {}", links_line(view)),
            WaitKind::Cleaning => match &view.cleaning {
                Some(c) if c.max_attempts > 1 => format!("cleaning {} of {}", c.attempt, c.max_attempts),
                _ => "cleaning".to_owned(),
            },
            WaitKind::Inspection => "inspection".to_owned(),
            WaitKind::PowerOn => "power on".to_owned(),
            WaitKind::NodeLock
            | WaitKind::StableState
            | WaitKind::Rerun
            | WaitKind::Proof
            | WaitKind::Staged
            | WaitKind::Applied => wait.reason.text.clone(),
        };
        let time = match (wait.reason.gives_up_at, wait.until) {
            (Some(end), _) => format!("{} left", text::left(now, end)),
            (None, Some(until)) => format!("in {}", text::left(now, until)),
            (None, None) => text::clock(text::seconds(wait.since, now)),
        };
        return (Status::Waiting, text, time);
    }
    if let Some(activity) = view.activity() {
        let phase = activity.phase.label();
        if let Some(retry) = &activity.retry {
            let text = format!("{phase}: {}", retry.failure.message);
            let status = if retry.failure.code.is_outage() { Status::Waiting } else { Status::Warned };
            return (status, text, format!("again {}", text::left(now, retry.at)));
        }
        let text = match activity.attempt {
            0 | 1 => phase.to_owned(),
            n => format!("{phase}, attempt {n} of {}", activity.max_attempts),
        };
        return (Status::Running, text, text::clock(text::seconds(activity.started_at, now)));
    }
    let (phase, since) = match view.phase() {
        Some(phase) => (phase.phase, phase.started_at),
        None => (Phase::ResolveIronicInstance, None),
    };
    let time = since.or(view.submitted_at()).map(|at| text::clock(text::seconds(at, now)));
    (Status::Running, phase.label().to_owned(), time.unwrap_or_default())
}

/// `eth0 DOWN eth1 DOWN`, of the latest look.
fn links_line(view: &RunView) -> String {
    let Some(guard) = view.guard() else { return "not read yet".to_owned() };
    let all = guard.links.len();
    match guard.links.iter().filter(|l| l.reading.state == LinkState::Down).count() {
        down if down == all && all > 2 => format!("all {all} DOWN"),
        _ => {
            let words = guard.links.iter().map(|l| format!("{} {}", l.reading.interface, l.reading.state.as_str()));
            words.collect::<Vec<_>>().join(" ")
        }
    }
}
