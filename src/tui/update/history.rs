//! The runs of a host: opening the list, moving in it, and putting two runs side by side.

use super::fleet::{half, moved};
use super::{run, scrolled};
use crate::domain::compare::older_first;
use crate::domain::event::{Body, Event as Journal, RunRecord};
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::event::Refused;
use crate::tui::layout;
use crate::tui::model::compare::{self, Compare};
use crate::tui::model::history::{History, Past};
use crate::tui::model::{Model, Screen};

/// Opens the list of the host that keys act on, at the run that shows where one does.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let Some(host) = model.target() else { return Vec::new() };
    let (netbox_id, name) = (host.device.netbox_id, host.device.name.to_string());
    let selected = model.run_screen().map(|screen| screen.run);
    // From one of its runs the way to the list leads back.
    if matches!(model.screens.iter().rev().nth(1), Some(Screen::History(history)) if history.netbox_id == netbox_id) {
        model.screens.pop();
        return vec![Effect::LoadHistory { netbox_id }];
    }
    model.screens.push(Screen::History(History::new(netbox_id, &name, selected)));
    vec![Effect::LoadHistory { netbox_id }]
}

/// The runs came. A refresh moves no cursor.
pub(super) fn loaded(model: &mut Model, netbox_id: u64, runs: Result<Vec<Past>, Refused>) -> Vec<Effect> {
    let lists = model.screens.iter_mut().filter_map(|screen| match screen {
        Screen::History(history) if history.netbox_id == netbox_id => Some(history),
        _ => None,
    });
    let runs = match runs {
        Ok(runs) => runs,
        Err(refused) => {
            lists.for_each(|history| history.refused = Some(refused.clone()));
            return super::inbox::answered(model, Err(refused));
        }
    };
    for history in lists {
        history.marks.retain(|run| runs.iter().any(|past| past.run == *run));
        let is_there = runs.iter().any(|past| Some(past.run) == history.selected);
        if !is_there {
            history.selected = runs.first().map(|past| past.run);
        }
        (history.runs, history.refused) = (Some(runs.clone()), None);
    }
    Vec::new()
}

/// A run of the host began or ended: the list is another one.
pub(super) fn follow(model: &Model, record: &RunRecord) -> Vec<Effect> {
    let moves = record.n == 0 || matches!(record.body, Body::Journal(Journal::Finished { .. }));
    let netbox_id = model.runs.get(&record.run).and_then(|view| Some(view.request.as_ref()?.netbox_id));
    let is_listed =
        |screen: &Screen| matches!(screen, Screen::History(history) if Some(history.netbox_id) == netbox_id);
    match netbox_id.filter(|_| moves && model.screens.iter().any(is_listed)) {
        Some(netbox_id) => vec![Effect::LoadHistory { netbox_id }],
        None => Vec::new(),
    }
}

/// Does an action of the list.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let rows = layout::history(model).rows();
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::HalfUp => -half(rows),
        Action::HalfDown => half(rows),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::Enter => return enter(model),
        Action::Compare => return put_beside(model),
        Action::Mark => {
            if let Some(Screen::History(history)) = model.screens.last_mut() {
                history.mark();
            }
            1
        }
        _ => return Vec::new(),
    };
    if let Some(Screen::History(history)) = model.screens.last_mut() {
        let at = moved(history.cursor(), by, history.known().len());
        history.selected = history.known().get(at).map(|past| past.run);
    }
    Vec::new()
}

/// Opens the selected run.
fn enter(model: &mut Model) -> Vec<Effect> {
    let Some((run, host)) = model.history().and_then(|h| Some((h.past()?.run, h.host.clone()))) else {
        return Vec::new();
    };
    run::open(model, run, &host)
}

/// Shows two runs side by side, the older one first.
fn put_beside(model: &mut Model) -> Vec<Effect> {
    let Some(history) = model.history() else { return Vec::new() };
    let Some((one, other)) = history.pair() else { return Vec::new() };
    let runs = older_first((one.run, Some(one.submitted_at)), (other.run, Some(other.submitted_at)));
    let compare = Compare { host: history.host.clone(), runs, top: 0, show_all: false };
    model.screens.push(Screen::Compare(compare));
    runs.into_iter().flat_map(|run| run::want(model, run)).collect()
}

/// Does an action of two runs side by side.
pub(super) fn act_beside(model: &mut Model, action: Action) -> Vec<Effect> {
    let rows = layout::compare_body(model).height;
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::HalfUp => -half(usize::from(rows)),
        Action::HalfDown => half(usize::from(rows)),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::ShowAll => {
            if let Some(Screen::Compare(compare)) = model.screens.last_mut() {
                compare.show_all = !compare.show_all;
            }
            return Vec::new();
        }
        _ => return Vec::new(),
    };
    let width = layout::compare_body(model).width;
    let lines = model
        .comparison()
        .zip(model.compare())
        .map_or(0, |(compared, screen)| compare::lines(&compared, screen.show_all, width).len());
    if let Some(Screen::Compare(compare)) = model.screens.last_mut() {
        let end = lines.saturating_sub(usize::from(rows));
        compare.top = moved(compare.top.min(end), by, end + 1);
    }
    Vec::new()
}

/// A click selects the run under it.
pub(super) fn click(model: &mut Model, column: u16, row: u16) {
    let list = layout::history(model).list;
    if !layout::within(list, column, row) {
        return;
    }
    if let Some(Screen::History(history)) = model.screens.last_mut()
        && let Some(past) = history.known().get(history.top + usize::from(row - list.y))
    {
        history.selected = Some(past.run);
    }
}

/// Keeps the selected run in view.
pub(super) fn settle(model: &mut Model) {
    let rows = layout::history(model).rows();
    if let Some(Screen::History(history)) = model.screens.last_mut() {
        history.top = scrolled(history.top, history.cursor(), rows, history.known().len());
    }
}
