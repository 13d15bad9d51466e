//! What a phase, or a whole run, usually takes: the median of what it took in the latest runs that succeeded in it.
//!
//! Runs of the same platform class say most, then those of the same device type, then of the same site, then all. With
//! fewer than [`LEAST`] of a kind nothing is said of that kind.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::event::{Body, Event, Observation, Outcome, RunRecord};
use super::listed::Alike;
use super::phase::Phase;
use super::run_view::{PhaseStatus, PhaseView, RunView};

/// Fewer runs than this say nothing.
pub const LEAST: usize = 3;
/// So many of the latest runs of a kind count: what was mended a month ago is no measure any more.
pub const LAST: usize = 30;
/// What takes twice as long as usual, and at least so many seconds longer, takes far longer than usual.
const FAR_S: u64 = 30;

/// What a figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// From the first phase's beginning to the run's end: time in the queue is not the run's.
    Run,
    Phase(Phase),
}

impl Part {
    const COUNT: usize = Phase::ALL.len() + 1;

    fn place(self) -> usize {
        match self {
            Part::Run => 0,
            Part::Phase(phase) => 1 + Phase::ALL.iter().position(|p| *p == phase).unwrap_or(0),
        }
    }

    /// `run`, or the phase as it is journaled.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Run => "run",
            Part::Phase(phase) => phase.as_str(),
        }
    }

    /// The part of a name; `None` where only another version knows it.
    pub fn named(name: &str) -> Option<Part> {
        let phases = Phase::ALL.into_iter().map(Part::Phase);
        std::iter::once(Part::Run).chain(phases).find(|part| part.as_str() == name)
    }
}

/// What hosts have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Kind {
    pub platform_class: Option<String>,
    /// Manufacturer and model.
    pub device_type: Option<String>,
    pub site: String,
}

impl From<&Alike> for Kind {
    fn from(device: &Alike) -> Kind {
        Kind {
            platform_class: device.platform_class.as_deref().filter(|class| !class.is_empty()).map(str::to_owned),
            device_type: Some(format!("{} {}", device.manufacturer, device.model)),
            site: device.site.to_string(),
        }
    }
}

impl From<&Device> for Kind {
    fn from(device: &Device) -> Kind {
        Kind {
            platform_class: device.platform_class.clone().filter(|class| !class.is_empty()),
            device_type: Some(format!("{} {}", device.manufacturer, device.model)),
            site: device.site.clone(),
        }
    }
}

/// What one part of one run took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Took {
    pub part: Part,
    pub kind: Kind,
    /// When it ended.
    pub at: Timestamp,
    pub seconds: u64,
}

/// Which runs a figure rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Like {
    PlatformClass,
    DeviceType,
    Site,
    All,
}

impl Like {
    /// In a sentence: `runs of this site`.
    pub fn words(self) -> &'static str {
        match self {
            Like::PlatformClass => "of this platform class",
            Like::DeviceType => "of this device type",
            Like::Site => "of this site",
            Like::All => "of all hosts",
        }
    }
}

/// A usual duration and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// The median.
    pub seconds: u64,
    /// How many runs it is of.
    pub runs: usize,
    pub like: Like,
}

impl Figure {
    /// Whether so many seconds are far more than usual.
    pub fn is_far_below(&self, seconds: u64) -> bool {
        is_far(self.seconds, seconds)
    }
}

/// Whether one duration is far more than another: twice as long, and longer by more than a moment.
pub fn is_far(less: u64, more: u64) -> bool {
    more >= less.saturating_mul(2) && more >= less.saturating_add(FAR_S)
}

/// What one part took on hosts that have something in common: when it ended, and seconds.
struct Group {
    like: Like,
    took: Vec<(Timestamp, u64)>,
}

/// All figures that are known, ready to be looked up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usual {
    groups: BTreeMap<String, [Option<Figure>; Part::COUNT]>,
}

impl Usual {
    /// The figures of all that was taken.
    pub fn of(took: &[Took]) -> Usual {
        let mut by_group: BTreeMap<(String, Part), Group> = BTreeMap::new();
        for one in took {
            for (like, group) in groups(&one.kind) {
                let of = by_group.entry((group, one.part)).or_insert_with(|| Group { like, took: Vec::new() });
                of.took.push((one.at, one.seconds));
            }
        }
        let mut usual = Usual::default();
        for ((group, part), Group { like, mut took }) in by_group {
            // Of the same moment the longer ones last, so that the order in which they came changes nothing.
            took.sort_unstable();
            let latest: Vec<u64> = took.iter().rev().take(LAST).map(|(_, seconds)| *seconds).collect();
            if latest.len() >= LEAST {
                let figure = Figure { runs: latest.len(), seconds: median(latest), like };
                usual.groups.entry(group).or_default()[part.place()] = Some(figure);
            }
        }
        usual
    }

    /// What a part usually takes on a host of a kind: of the runs that are most alike and known well enough.
    pub fn figure(&self, part: Part, kind: &Kind) -> Option<Figure> {
        groups(kind).into_iter().find_map(|(_, group)| self.groups.get(&group)?[part.place()])
    }

    /// As [`Usual::figure`], for the whole run and all phases.
    pub fn figures(&self, kind: &Kind) -> Figures {
        let mut all = [None; Part::COUNT];
        for (_, group) in groups(kind) {
            for (known, of) in all.iter_mut().zip(self.groups.get(&group).into_iter().flatten()) {
                *known = known.or(*of);
            }
        }
        Figures { all }
    }
}

/// What everything usually takes on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    all: [Option<Figure>; Part::COUNT],
}

impl Figures {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.all.iter().all(Option::is_none)
    }

    pub fn get(&self, part: Part) -> Option<Figure> {
        self.all[part.place()]
    }

    /// The figure of a phase, where it has taken, or takes by now, far longer than that.
    pub fn exceeded(&self, phase: &PhaseView, now: Timestamp) -> Option<Figure> {
        let counts = matches!(
            phase.status,
            PhaseStatus::Running | PhaseStatus::Done | PhaseStatus::Warned | PhaseStatus::Failed
        );
        let figure = self.get(Part::Phase(phase.phase)).filter(|_| counts)?;
        figure.is_far_below(phase_s(phase, now)?).then_some(figure)
    }

    /// The figure of the whole run, where it has taken, or takes by now, far longer than that.
    pub fn exceeded_by_run(&self, view: &RunView, now: Timestamp) -> Option<Figure> {
        let took = run_s(view, now)?;
        self.get(Part::Run).filter(|figure| figure.is_far_below(took))
    }
}

/// How long a phase took, or has been at work: seconds; `None` before it began.
pub fn phase_s(phase: &PhaseView, now: Timestamp) -> Option<u64> {
    Some(seconds(phase.started_at?, phase.ended_at.unwrap_or(now)))
}

/// How long a run took from its first phase on, or has been at work; `None` while it is queued.
pub fn run_s(view: &RunView, now: Timestamp) -> Option<u64> {
    let began = view.phases.iter().filter_map(|phase| phase.started_at).min()?;
    Some(seconds(began, view.finished_at.unwrap_or(now)))
}

/// What is to be learned from a run that has ended: how long each phase took that it succeeded in.
///
/// A phase during which nobody drove the run is no measure, and neither is a run that found everything done before. An
/// inspection counts only where one was made: to look at the data at hand takes a moment.
pub fn learned(records: &[RunRecord]) -> Vec<(Part, Timestamp, u64)> {
    let mut lesson = Lesson::default();
    for record in records {
        match &record.body {
            Body::Observation(observation) => lesson.saw(record.at, observation),
            Body::Journal(Event::Finished { outcome }) => return lesson.ended(record.at, outcome),
            Body::Journal(_) => {}
        }
    }
    Vec::new()
}

#[derive(Default)]
struct Lesson {
    /// Since when a phase is under way; `None`: it is no measure.
    open: BTreeMap<Phase, Option<Timestamp>>,
    done: Vec<(Part, Timestamp, u64)>,
    began: Option<Timestamp>,
    was_away: bool,
    inspected: bool,
}

impl Lesson {
    fn saw(&mut self, at: Timestamp, observation: &Observation) {
        match observation {
            Observation::PhaseStarted { phase, .. } => {
                self.began.get_or_insert(at);
                // A phase that is begun again has been under way since it was begun first.
                self.open.entry(*phase).or_insert(Some(at));
            }
            Observation::PhaseDone { phase, .. } => {
                if let Some(Some(since)) = self.open.remove(phase) {
                    self.done.push((Part::Phase(*phase), at, seconds(since, at)));
                }
            }
            Observation::PhaseSkipped { phase, .. } => drop(self.open.remove(phase)),
            Observation::Resumed { .. } => {
                self.was_away = true;
                self.open.values_mut().for_each(|since| *since = None);
            }
            Observation::Verified { fresh: true, .. } => self.inspected = true,
            Observation::Warned { .. }
            | Observation::Attempt { .. }
            | Observation::AttemptFailed { .. }
            | Observation::Note { .. }
            | Observation::Wrote { .. }
            | Observation::Links { .. }
            | Observation::Verified { fresh: false, .. }
            | Observation::Node { .. }
            | Observation::Cleaning { .. }
            | Observation::Stopped { .. }
            | Observation::Outlived
            | Observation::Requests { .. } => {}
        }
    }

    fn ended(mut self, at: Timestamp, outcome: &Outcome) -> Vec<(Part, Timestamp, u64)> {
        let result = match outcome {
            Outcome::Succeeded { result } => result.as_ref(),
            Outcome::Failed { .. } | Outcome::Cancelled { .. } => None,
        };
        if result.is_some_and(|result| result.already_enrolled) {
            return Vec::new();
        }
        if !self.inspected {
            self.done.retain(|(part, ..)| *part != Part::Phase(Phase::Inspection));
        }
        let is_whole = result.is_some() && self.inspected && !self.was_away;
        if let Some(began) = self.began.filter(|_| is_whole) {
            self.done.push((Part::Run, at, seconds(began, at)));
        }
        self.done
    }
}

/// The groups that a host belongs to, the ones most alike first.
fn groups(kind: &Kind) -> Vec<(Like, String)> {
    let mut groups = Vec::with_capacity(4);
    if let Some(class) = &kind.platform_class {
        groups.push((Like::PlatformClass, format!("class {class}")));
    }
    if let Some(device_type) = &kind.device_type {
        groups.push((Like::DeviceType, format!("type {device_type}")));
    }
    groups.push((Like::Site, format!("site {}", kind.site)));
    groups.push((Like::All, "all".to_owned()));
    groups
}

/// The middle one; of two the mean.
fn median(mut of: Vec<u64>) -> u64 {
    of.sort_unstable();
    let middle = of.len() / 2;
    match (of.len() % 2, of.get(middle)) {
        (_, None) => 0,
        (1, Some(one)) => *one,
        (_, Some(upper)) => of[middle - 1].midpoint(*upper),
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
