//! The failures that wait for a person, as stops in walking order: hands first, then by owner, rack by rack from the top
//! down (U5). A stop leaves when its host's last run is no failure any more.

use serde::{Deserialize, Serialize};

use super::Model;
use super::host::{Host, unit_text};
use super::place::{NO_LOCATION, NO_RACK};
use crate::domain::failure::Owner;
use crate::domain::link::CableEnd;
use crate::domain::run_view::RunView;
use crate::domain::verify::Verdict;
use crate::tui::text;

/// The view of the stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Walk {
    /// NetBox id of the host at the stop that is selected.
    pub selected: Option<u64>,
    /// Its place among the stops: when it leaves, the one that moves up is next.
    pub at: usize,
    /// First visible line.
    pub top: usize,
}

/// Rows of a stop that is not selected may take so many lines for what is to be done.
const BRIEF: usize = 2;

/// A line of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Blank,
    /// Who mends what follows, and how many stops that is.
    Owner(Owner, usize),
    /// Site and location of what follows.
    Place(String),
    Stop {
        at: usize,
        part: Part,
    },
}

/// A part of a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Rack, unit, name, what is wrong in short, since when.
    Head,
    /// The whole sentence, of the selected stop.
    Fact(String),
    /// What to do; the first of its lines has the arrow.
    Action { text: String, first: bool },
    /// Interface and both ends of a cable that the failure is about.
    Cable { interface: String, end: CableEnd },
}

/// The hosts with a failure in the fleet's place, in walking order.
pub fn stops(model: &Model) -> Vec<&Host> {
    let fleet = &model.fleet;
    let waiting = fleet.waiting.iter().map(|at| &fleet.hosts[*at as usize]);
    waiting.filter(|host| fleet.place.holds(host)).collect()
}

/// The lines for so many columns.
pub fn lines(model: &Model, walk: &Walk, width: u16) -> Vec<Line> {
    let stops = stops(model);
    let mut out = Vec::new();
    let mut before: Option<(Owner, String)> = None;
    for (at, host) in stops.iter().enumerate() {
        let Some(failure) = host.failure() else { continue };
        let place = above_rack(model, host);
        let owner_is_new = before.as_ref().is_none_or(|(owner, _)| *owner != failure.owner);
        if owner_is_new {
            let count = stops.iter().filter(|h| h.failure().is_some_and(|f| f.owner == failure.owner)).count();
            out.extend((!out.is_empty()).then_some(Line::Blank));
            out.push(Line::Owner(failure.owner, count));
        }
        if !place.is_empty() && (owner_is_new || before.as_ref().is_some_and(|(_, known)| *known != place)) {
            out.push(Line::Place(place.clone()));
        }
        before = Some((failure.owner, place));
        let selected = walk.selected == Some(host.device.netbox_id);
        out.extend(parts(model, host, selected, width).into_iter().map(|part| Line::Stop { at, part }));
    }
    out
}

fn parts(model: &Model, host: &Host, selected: bool, width: u16) -> Vec<Part> {
    let Some(failure) = host.failure() else { return Vec::new() };
    let room = usize::from(width).saturating_sub(usize::from(INDENT) + 4);
    let mut out = vec![Part::Head];
    let action = |text: String, first| Part::Action { text, first };
    if !selected {
        let words = text::wrap_to(&failure.action, room, BRIEF);
        out.extend(words.into_iter().enumerate().map(|(n, text)| action(text, n == 0)));
        return out;
    }
    out.extend(text::wrap(&failure.message, room).into_iter().map(Part::Fact));
    out.extend(text::wrap(&failure.action, room).into_iter().enumerate().map(|(n, text)| action(text, n == 0)));
    let view = host.last_run.as_ref().and_then(|last| model.runs.get(&last.run));
    let cables = view.map(cables).unwrap_or_default();
    out.extend(cables.into_iter().map(|(interface, end)| Part::Cable { interface, end }));
    out
}

/// Columns before a stop's sentences.
pub const INDENT: u16 = 4;

/// Where a stop is, without what all stops have in common: `osl1 › hall B`, or nothing.
fn above_rack(model: &Model, host: &Host) -> String {
    let device = &host.device;
    let names = [device.site.as_str(), device.location.as_deref().unwrap_or(NO_LOCATION)];
    names[model.fleet.place.depth().min(2)..].join(" › ")
}

/// `B07 U37`, as it is written on the rack.
pub fn rack_and_unit(host: &Host) -> String {
    let rack = host.device.rack.as_deref().unwrap_or(NO_RACK);
    match host.device.position {
        Some(_) => format!("{rack} U{}", unit_text(host.device.position)),
        None => rack.to_owned(),
    }
}

/// The cables of the interfaces that a run failed of: those of the checks that failed, or all where the guard gave up.
fn cables(view: &RunView) -> Vec<(String, CableEnd)> {
    let Some(guard) = view.guards.last() else { return Vec::new() };
    let checks = view.verification.as_ref().map(|v| &v.verification.checks[..]).unwrap_or_default();
    let failed =
        |interface: &str| checks.iter().any(|check| check.verdict == Verdict::Fail && check.subject == interface);
    let readings = guard.links.iter().map(|line| &line.reading);
    let concerned = readings.filter(|reading| failed(&reading.interface) || (guard.all_down() && guard.over));
    concerned.filter_map(|reading| Some((reading.interface.clone(), reading.cable.clone()?))).collect()
}
