//! A rack as it stands: its units as lines from the top down, the devices of both faces, and which one is selected (U1).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Model;
use super::fleet::Pane;
use super::place::Place;
use crate::domain::elevation::{Elevation, Face, Link, Loose, Racked};
use crate::domain::link::LinkState;
use crate::tui::action::{self, Where};
use crate::tui::event::Refused;
use crate::tui::text;

/// The view of a rack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RackScreen {
    pub place: Place,
    pub read: Read,
    /// NetBox id of the device that is selected.
    pub selected: Option<u64>,
    /// The face that has the focus; on a narrow screen the only one that shows.
    pub face: Face,
    /// First visible line; `None`: the selected device is to come into the middle.
    pub top: Option<usize>,
    /// It was asked for, and did not come yet.
    pub is_asked: bool,
    /// The fleet changed since then.
    pub is_stale: bool,
}

/// What is known of the rack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Read {
    /// It was asked for.
    NotYet,
    /// The store could not be read.
    Failed(Refused),
    Here(Box<Elevation>),
}

/// A line of the view, the same at both faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Of the units: it begins so many halves of a unit below the top. `number`: what is printed beside it.
    Unit {
        half: u32,
        number: Option<u32>,
    },
    Blank,
    /// Over devices that stand at no unit.
    Heading(Loose),
    /// Such a device, by its place in the list.
    Loose(usize),
}

impl RackScreen {
    pub fn new(place: Place, selected: Option<u64>) -> RackScreen {
        RackScreen {
            place,
            read: Read::NotYet,
            selected,
            face: Face::Front,
            top: None,
            is_asked: true,
            is_stale: false,
        }
    }

    pub fn elevation(&self) -> Option<&Elevation> {
        match &self.read {
            Read::Here(elevation) => Some(elevation),
            Read::NotYet | Read::Failed(_) => None,
        }
    }

    /// The device that is selected, and its place in the list.
    pub fn device(&self) -> Option<(usize, &Racked)> {
        let found = |(_, racked): &(usize, &Racked)| Some(racked.device.netbox_id) == self.selected;
        self.elevation()?.devices.iter().enumerate().find(found)
    }
}

/// The rack that a key would open, and the device to stand on: that of the tree's cursor, or of the host that keys act on.
pub fn wanted(model: &Model) -> Option<(Place, Option<u64>)> {
    let host = model.target();
    let fleet = &model.fleet;
    if action::view(model) == Where::Fleet && fleet.pane == Pane::Tree && fleet.place.depth() == 3 {
        return Some((fleet.place.clone(), host.map(|host| host.device.netbox_id)));
    }
    host.map(|host| (Place::of(host), Some(host.device.netbox_id)))
}

/// Columns of the longest name of a host here, so that nothing jumps while scrolling.
pub fn name_width(elevation: &Elevation) -> u16 {
    let hosts = elevation.devices.iter().filter(|racked| racked.is_host);
    hosts.map(|racked| text::width(&racked.device.name)).max().unwrap_or(0).clamp(6, 24) as u16
}

/// Halves of a unit that a line of the screen stands for: all of a unit, unless something in the rack begins or ends
/// between two.
pub fn halves_a_line(elevation: &Elevation) -> u32 {
    let whole =
        elevation.devices.iter().all(|racked| racked.stand.is_ok_and(|span| span.is_whole()) || racked.stand.is_err());
    if whole { 2 } else { 1 }
}

/// The lines from the top down.
pub fn lines(elevation: &Elevation) -> Vec<Line> {
    let (units, step) = (elevation.units, halves_a_line(elevation));
    let unit = |half: u32| Line::Unit { half, number: half.is_multiple_of(2).then(|| units.number(half / 2)) };
    let mut out: Vec<Line> = (0..units.height * 2).step_by(step as usize).map(unit).collect();
    for loose in Loose::ALL {
        let of_it = |(_, racked): &(usize, &Racked)| racked.stand == Err(loose);
        let mut devices = elevation.devices.iter().enumerate().filter(of_it).peekable();
        if devices.peek().is_some() {
            out.extend([Line::Blank, Line::Heading(loose)]);
            out.extend(devices.map(|(at, _)| Line::Loose(at)));
        }
    }
    out
}

/// The first and the last line of a device.
pub fn lines_of(elevation: &Elevation, at: usize) -> (usize, usize) {
    match elevation.devices.get(at).map(|racked| racked.stand) {
        Some(Ok(span)) => {
            let step = halves_a_line(elevation);
            ((span.top / step) as usize, (span.end().div_ceil(step).max(1) - 1) as usize)
        }
        _ => {
            let line = lines(elevation).iter().position(|line| *line == Line::Loose(at)).unwrap_or(0);
            (line, line)
        }
    }
}

/// The device that stands at a line, at a face.
pub fn at_line<'a>(elevation: &'a Elevation, face: Face, line: &Line) -> Option<(usize, &'a Racked)> {
    let mut devices = elevation.devices.iter().enumerate();
    match line {
        Line::Unit { half, .. } => {
            devices.find(|(_, racked)| racked.shows_at(face) && racked.stand.is_ok_and(|span| span.covers(*half)))
        }
        Line::Loose(at) => devices.nth(*at),
        Line::Blank | Line::Heading(_) => None,
    }
}

/// The links of a device, with what a run that is under way reads of them.
pub fn links<'a>(model: &Model, racked: &'a Racked) -> Vec<Cow<'a, Link>> {
    let host = model.fleet.by_id(racked.device.netbox_id);
    let guard = host.and_then(|host| model.live_view(host)).and_then(|view| view.guards.last());
    let Some(guard) = guard else { return racked.links.iter().map(Cow::Borrowed).collect() };
    let mut out: Vec<Cow<Link>> = Vec::new();
    for link in &racked.links {
        let reading = guard.links.iter().map(|line| &line.reading).find(|reading| reading.interface == link.interface);
        let newer = reading
            .filter(|reading| reading.state != LinkState::Unknown && link.state_at.is_none_or(|at| at < guard.read_at));
        out.push(match newer {
            Some(reading) => Cow::Owned(Link { state: reading.state, state_at: Some(guard.read_at), ..link.clone() }),
            None => Cow::Borrowed(link),
        });
    }
    out
}
