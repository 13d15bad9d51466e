//! The fleet: moving in tree and table, marks, the filter, and going in.

use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::fleet::Pane;
use crate::tui::model::sort::Sort;

/// Does an action of the fleet.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let areas = layout::fleet(model);
    match action {
        Action::Up => step(model, -1),
        Action::Down => step(model, 1),
        Action::HalfUp => step(model, -(half(areas.rows(model.fleet.pane)))),
        Action::HalfDown => step(model, half(areas.rows(model.fleet.pane))),
        Action::First => step(model, i64::MIN),
        Action::Last => step(model, i64::MAX),
        Action::Left => left(model),
        Action::Right => right(model),
        Action::NextPane | Action::PrevPane => {
            model.fleet.pane = match model.fleet.pane {
                Pane::Tree => Pane::Table,
                Pane::Table => Pane::Tree,
            };
        }
        Action::Enter => return enter(model),
        Action::Mark => {
            if let Some(id) = model.fleet.selected {
                if !model.fleet.marks.remove(&id) {
                    model.fleet.marks.insert(id);
                }
                step_table(model, 1);
            }
        }
        Action::Filter => {
            model.fleet.filtering = true;
            model.fleet.pane = Pane::Table;
        }
        Action::Sort => {
            let sort = model.fleet.sort.next();
            model.fleet.sort_by(sort);
        }
        Action::SortBack => {
            let sort = model.fleet.sort;
            model.fleet.sort_by(Sort { reversed: !sort.reversed, ..sort });
        }
        Action::KeepFilter => model.fleet.filtering = false,
        Action::NextMatch => step_table(model, 1),
        Action::PrevMatch => step_table(model, -1),
        _ => {}
    }
    Vec::new()
}

/// One step out, at the end of the stack: filter, marks, then from the table to the tree.
pub(super) fn back(model: &mut Model) {
    let fleet = &mut model.fleet;
    if !fleet.filter.is_empty() {
        fleet.filter = Default::default();
        fleet.narrow_and_select();
    } else if !fleet.marks.is_empty() {
        fleet.marks.clear();
    } else if fleet.pane == Pane::Table {
        fleet.pane = Pane::Tree;
    }
}

/// Gives the pane under a cell the focus.
pub(super) fn focus_under(model: &mut Model, column: u16, row: u16) {
    let areas = layout::fleet(model);
    if layout::within(areas.tree, column, row) {
        model.fleet.pane = Pane::Tree;
    } else if layout::within(areas.table, column, row) {
        model.fleet.pane = Pane::Table;
    }
}

/// A click selects the line under it.
pub(super) fn click(model: &mut Model, column: u16, row: u16) {
    focus_under(model, column, row);
    let areas = layout::fleet(model);
    if layout::within(areas.tree_body(), column, row) {
        let line = model.fleet.tree_top + usize::from(row.saturating_sub(areas.tree_body().y));
        let place = model.fleet.tree_lines().get(line).map(|n| n.place.clone());
        if let Some(place) = place {
            // A second click on the same place opens or closes it.
            if place == model.fleet.place && !model.fleet.open.remove(&place) {
                model.fleet.open.insert(place.clone());
            }
            model.fleet.go(place);
        }
    } else if layout::within(areas.table_body(), column, row) {
        let line = model.fleet.table_top + usize::from(row.saturating_sub(areas.table_body().y));
        if line < model.fleet.shown.len() {
            model.fleet.select_row(line);
        }
    }
}

fn step(model: &mut Model, by: i64) {
    match model.fleet.pane {
        Pane::Tree => step_tree(model, by),
        Pane::Table => step_table(model, by),
    }
}

fn step_table(model: &mut Model, by: i64) {
    let Some(at) = model.fleet.cursor() else { return model.fleet.select_row(0) };
    model.fleet.select_row(moved(at, by, model.fleet.shown.len()));
}

fn step_tree(model: &mut Model, by: i64) {
    let at = model.fleet.tree_cursor();
    let lines = model.fleet.tree_lines();
    let to = moved(at, by, lines.len());
    let place = lines.get(to).map(|n| n.place.clone());
    if let Some(place) = place {
        model.fleet.go(place);
    }
}

/// A place so many lines away; the ends hold.
pub(super) fn moved(at: usize, by: i64, len: usize) -> usize {
    let last = len.saturating_sub(1) as i64;
    (at as i64).saturating_add(by).clamp(0, last) as usize
}

pub(super) fn half(rows: usize) -> i64 {
    (rows / 2).max(1) as i64
}

fn left(model: &mut Model) {
    if model.fleet.pane == Pane::Table {
        model.fleet.pane = Pane::Tree;
        return;
    }
    let place = model.fleet.place.clone();
    if model.fleet.open.remove(&place) {
        return;
    }
    if let Some(parent) = place.parent() {
        model.fleet.go(parent);
    }
}

fn right(model: &mut Model) {
    if model.fleet.pane == Pane::Table {
        return;
    }
    let place = model.fleet.place.clone();
    let inner = model.fleet.tree.iter().find(|n| n.place == place).is_some_and(|n| n.has_children);
    if inner && place.depth() > 0 && !model.fleet.open.contains(&place) {
        model.fleet.open.insert(place);
    } else {
        model.fleet.pane = Pane::Table;
    }
}

fn enter(model: &mut Model) -> Vec<Effect> {
    if model.fleet.pane == Pane::Tree {
        model.fleet.pane = Pane::Table;
        return Vec::new();
    }
    super::run::open_last(model)
}
