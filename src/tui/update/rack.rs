//! A rack: opening it, moving from device to device, turning it round, and reading it anew when the fleet changed.

use super::fleet::{half, moved};
use super::{run, scrolled};
use crate::domain::elevation::{Elevation, Face};
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::event::Refused;
use crate::tui::layout;
use crate::tui::model::place::Place;
use crate::tui::model::rack::{self, RackScreen, Read};
use crate::tui::model::{Model, Screen};

/// Opens a rack.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let Some((place, selected)) = rack::wanted(model) else { return Vec::new() };
    // One rack at a time: going round from rack to run to rack must not pile up.
    if let Some(at) = model.screens.iter().position(|screen| matches!(screen, Screen::Rack(_))) {
        model.screens.truncate(at);
    }
    model.screens.push(Screen::Rack(RackScreen::new(place.clone(), selected)));
    vec![Effect::LoadRack(place)]
}

/// The rack that was asked for. It may come when nobody looks at it any more.
pub(super) fn read(model: &mut Model, place: &Place, answer: Result<Box<Elevation>, Refused>) -> Vec<Effect> {
    for screen in &mut model.screens {
        if let Screen::Rack(rack) = screen
            && rack.place == *place
        {
            rack.read = match answer {
                Ok(elevation) => Read::Here(elevation),
                Err(refused) => Read::Failed(refused),
            };
            rack.is_asked = false;
            return if std::mem::take(&mut rack.is_stale) { ask(model) } else { Vec::new() };
        }
    }
    Vec::new()
}

/// The fleet changed: so may the rack have.
pub(super) fn ask(model: &mut Model) -> Vec<Effect> {
    for screen in &mut model.screens {
        if let Screen::Rack(rack) = screen {
            if rack.is_asked {
                rack.is_stale = true;
                return Vec::new();
            }
            rack.is_asked = true;
            return vec![Effect::LoadRack(rack.place.clone())];
        }
    }
    Vec::new()
}

/// Does an action of the view.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let rows = layout::rack::areas(model).rows();
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        // A device takes about two lines.
        Action::HalfUp => -half(rows / 2),
        Action::HalfDown => half(rows / 2),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::NextPane | Action::PrevPane => return turn(model, Face::other),
        Action::Left => return turn(model, |_| Face::Front),
        Action::Right => return turn(model, |_| Face::Rear),
        Action::Enter => return run::open_last(model),
        Action::Mark => {
            if let Some(host) = model.target() {
                let id = host.device.netbox_id;
                if !model.fleet.marks.remove(&id) {
                    model.fleet.marks.insert(id);
                }
            }
            1
        }
        _ => return Vec::new(),
    };
    let Some(screen) = model.rack_screen() else { return Vec::new() };
    let Some(elevation) = screen.elevation() else { return Vec::new() };
    let at = screen.device().map_or(0, |(at, _)| moved(at, by, elevation.devices.len()));
    let id = elevation.devices.get(at).map(|racked| racked.device.netbox_id);
    select(model, id);
    Vec::new()
}

fn turn(model: &mut Model, to: fn(Face) -> Face) -> Vec<Effect> {
    if let Some(Screen::Rack(screen)) = model.screens.last_mut() {
        screen.face = to(screen.face);
    }
    Vec::new()
}

/// Selects a device here, and in the table below where it shows there.
fn select(model: &mut Model, id: Option<u64>) {
    if let Some(Screen::Rack(screen)) = model.screens.last_mut() {
        screen.selected = id;
    }
    let before = model.fleet.selected;
    model.fleet.selected = id;
    if model.fleet.cursor().is_none() {
        model.fleet.selected = before;
    }
}

/// A click selects the device under it and gives its face the focus.
pub(super) fn click(model: &mut Model, column: u16, row: u16) {
    let areas = layout::rack::areas(model);
    let Some((face, body)) = areas.faces().find(|(_, area)| layout::within(*area, column, row)) else { return };
    let Some(screen) = model.rack_screen() else { return };
    let line = screen.top.unwrap_or(0) + usize::from(row - body.y);
    let Some(elevation) = screen.elevation() else { return };
    let line = rack::lines(elevation).get(line).copied();
    let id = line.and_then(|line| rack::at_line(elevation, face, &line)).map(|(_, racked)| racked.device.netbox_id);
    if let Some(Screen::Rack(screen)) = model.screens.last_mut() {
        screen.face = face;
    }
    if id.is_some() {
        select(model, id);
    }
}

/// The screen has another size: the selected device comes into the middle, so that growing back restores what was there.
pub(super) fn resized(model: &mut Model) {
    if let Some(Screen::Rack(screen)) = model.screens.last_mut() {
        screen.top = None;
    }
}

/// Keeps the selection on a device that is there and in view, and asks for the run that it is about where that shows.
pub(super) fn settle(model: &mut Model) -> Vec<Effect> {
    let Some(screen) = model.rack_screen() else { return Vec::new() };
    let Some(elevation) = screen.elevation() else { return Vec::new() };
    let at = screen.device().map_or(0, |(at, _)| at);
    let selected = elevation.devices.get(at).map(|racked| racked.device.netbox_id);
    let (first, last) = rack::lines_of(elevation, at);
    let lines = rack::lines(elevation).len();
    let areas = layout::rack::areas(model);
    let rows = areas.rows();
    let top = match screen.top {
        Some(top) => scrolled(scrolled(top, last, rows, lines), first, rows, lines),
        None => (first + 1).saturating_sub(rows / 2).min(lines.saturating_sub(rows)),
    };
    if let Some(Screen::Rack(screen)) = model.screens.last_mut() {
        (screen.selected, screen.top) = (selected, Some(top));
    }
    let run = model.target().and_then(|host| host.last_run.as_ref()).map(|last| last.run);
    match run.filter(|_| areas.detail_at_side) {
        Some(run) => run::want(model, run),
        None => Vec::new(),
    }
}
