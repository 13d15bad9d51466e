//! The stops: moving from one to the next, and going on to the next when one is done.

use super::fleet::{half, moved};
use super::{run, scrolled};
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::model::walk::{self, Line, Walk};
use crate::tui::model::{Model, Screen};

/// Opens the view, at the host that is selected in the fleet where it is one of them.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let selected = model.target().map(|host| host.device.netbox_id);
    let at = walk::stops(model).iter().position(|host| Some(host.device.netbox_id) == selected).unwrap_or(0);
    model.screens.push(Screen::Walk(Walk { selected: None, at, top: 0 }));
    Vec::new()
}

/// Does an action of the view.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let rows = usize::from(layout::walk_body(model).height);
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        // A stop takes about three lines.
        Action::HalfUp => -half(rows / 3),
        Action::HalfDown => half(rows / 3),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::Enter => return run::open_last(model),
        _ => return Vec::new(),
    };
    let ids: Vec<u64> = walk::stops(model).iter().map(|host| host.device.netbox_id).collect();
    if let Some(Screen::Walk(walk)) = model.screens.last_mut() {
        walk.at = moved(walk.at, by, ids.len());
        walk.selected = ids.get(walk.at).copied();
    }
    Vec::new()
}

/// A click selects the stop under it.
pub(super) fn click(model: &mut Model, column: u16, row: u16) {
    let body = layout::walk_body(model);
    let Some(Screen::Walk(walk)) = model.screens.last() else { return };
    if !layout::within(body, column, row) {
        return;
    }
    let line = walk.top + usize::from(row - body.y);
    let Some(Line::Stop { at, .. }) = walk::lines(model, walk, body.width).get(line).cloned() else { return };
    let id = walk::stops(model).get(at).map(|host| host.device.netbox_id);
    if let Some(Screen::Walk(walk)) = model.screens.last_mut() {
        (walk.at, walk.selected) = (at, id);
    }
}

/// Keeps the selection on a stop that is there and in view, and asks for the run that it is about.
pub(super) fn settle(model: &mut Model) -> Vec<Effect> {
    let Some(Screen::Walk(walk)) = model.screens.last() else { return Vec::new() };
    let stops = walk::stops(model);
    let place = stops.iter().position(|host| Some(host.device.netbox_id) == walk.selected);
    let at = place.unwrap_or(walk.at).min(stops.len().saturating_sub(1));
    let run = stops.get(at).and_then(|host| Some(host.last_run.as_ref()?.run));
    let selected = stops.get(at).map(|host| host.device.netbox_id);
    let walk = Walk { at, selected, top: walk.top };
    let body = layout::walk_body(model);
    let lines = walk::lines(model, &walk, body.width);
    let of_it = |line: &Line| matches!(line, Line::Stop { at: of, .. } if *of == at);
    let first = lines.iter().position(of_it).unwrap_or(0);
    let last = lines.iter().rposition(of_it).unwrap_or(0);
    // The heading above the first stop shows with it.
    let first = if at == 0 { 0 } else { first };
    let rows = usize::from(body.height);
    let top = scrolled(scrolled(walk.top, last, rows, lines.len()), first, rows, lines.len());
    if let Some(screen @ Screen::Walk(_)) = model.screens.last_mut() {
        *screen = Screen::Walk(Walk { top, ..walk });
    }
    // On the way out the fleet stands at the host that was walked to last.
    if let Some(id) = selected {
        model.fleet.select(id);
    }
    run.map(|id| run::want(model, id)).unwrap_or_default()
}
