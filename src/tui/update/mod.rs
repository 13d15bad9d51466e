//! What each event makes of the model, and what it asks the outside to do. Pure: the same events give the same frames.

mod copy;
mod ends;
mod fleet;
mod history;
mod inbox;
mod keys;
mod popups;
mod power;
mod rack;
mod run;
pub mod scan;
mod walk;

use super::effect::Effect;
use super::event::{Ending, Event};
use super::layout;
use super::model::{Model, Popup, TOAST_S, ToastKind};
use super::text;

/// Keys closer than this come from a paste or a script, not from hands (C-45).
pub const BURST_MS: i64 = 25;

/// Takes an event.
pub fn update(model: &mut Model, event: Event) -> Vec<Effect> {
    let effects = match event {
        Event::Tick(now) => {
            // A clock that is set back would let messages stay and countdowns grow.
            model.now = now;
            leave_toasts(model);
            // Once a frame, however many runs began or ended.
            if model.fleet.is_unsorted {
                model.fleet.narrow_and_select();
            }
            let mut effects = scan::release(model);
            effects.extend(keys::release(model));
            effects
        }
        Event::Resize { width, height } => {
            (model.width, model.height) = (width, height);
            rack::resized(model);
            Vec::new()
        }
        Event::Key { key, at } => keys::press(model, key, at),
        Event::Paste(text) => keys::paste(model, &text),
        Event::Wheel { column, row, notches } => keys::wheel(model, column, row, notches),
        Event::Click { column, row, at } => keys::click(model, column, row, at),
        Event::FleetBegins(hosts) => inbox::fleet_begins(model, hosts),
        Event::Fleet(hosts) => inbox::fleet(model, hosts),
        Event::Hosts { changed, gone } => inbox::hosts(model, changed, &gone),
        Event::LastRuns(runs) => inbox::last_runs(model, runs),
        Event::Health(health) => inbox::health(model, health),
        Event::Rack { place, answer } => rack::read(model, &place, answer),
        Event::Role(role) => inbox::role(model, role),
        Event::Queue(queue) => {
            model.queue = queue.into_iter().map(|queued| (queued.run, queued)).collect();
            Vec::new()
        }
        Event::RunLoaded { run, records } => inbox::run_loaded(model, run, &records),
        Event::Tape { run, records } => run::look_back(model, run, records),
        Event::History { netbox_id, runs } => history::loaded(model, netbox_id, runs),
        Event::Usual(usual) => {
            model.usual = usual;
            Vec::new()
        }
        Event::RunLost { run, why } => {
            model.loading.remove(&run);
            model.early.remove(&run);
            model.winding.take_if(|asked| *asked == run);
            model.lost.insert(run, why.clone());
            inbox::answered(model, Err(why))
        }
        Event::Record(record) => inbox::record(model, &record),
        Event::Submitted { host, of, open, answer } => inbox::submitted(model, &host, of, open, answer),
        Event::Planned { host, params, plan } => inbox::planned(model, &host, &params, &plan),
        Event::PowerLooked { host, looked } => power::looked(model, &host, looked),
        Event::Answered(answer) => inbox::answered(model, answer),
        Event::Stopped => vec![Effect::Suspend],
        Event::Resumed => vec![Effect::TakeAgain],
        // The runs go on in the engine until the process ends, and at its next start: nothing is asked.
        Event::Ended(Ending::HungUp | Ending::Terminated | Ending::Interrupted) => vec![Effect::Quit],
    };
    keep_in_view(model);
    let mut effects = effects;
    effects.extend(walk::settle(model));
    effects.extend(rack::settle(model));
    effects.extend(load_details(model));
    effects.extend(ends::ring(model));
    effects
}

/// Where details stand at the side, the selected host's last run is among them.
fn load_details(model: &mut Model) -> Vec<Effect> {
    if !model.screens.is_empty() || !layout::fleet(model).detail_at_side {
        return Vec::new();
    }
    match model.fleet.host().and_then(|h| h.last_run.as_ref()).map(|r| r.run) {
        Some(id) => run::want(model, id),
        None => Vec::new(),
    }
}

fn leave_toasts(model: &mut Model) {
    let now = model.now;
    model.toasts.retain(|t| t.kind == ToastKind::Error || text::seconds(t.at, now) < TOAST_S);
}

/// Scrolls so that what is selected shows, whatever changed: selection, size or data.
fn keep_in_view(model: &mut Model) {
    let areas = layout::fleet(model);
    let cursor = model.fleet.cursor().unwrap_or(0);
    let rows = model.fleet.shown.len();
    model.fleet.table_top = scrolled(model.fleet.table_top, cursor, areas.table_rows(), rows);
    let lines = model.fleet.tree_lines().len();
    let at = model.fleet.tree_cursor();
    model.fleet.tree_top = scrolled(model.fleet.tree_top, at, areas.tree_rows(), lines);
    run::clamp(model);
    history::settle(model);
    popups::clamp(model);
    if let Some(Popup::Launch(launch)) = &mut model.popup {
        launch.top = launch.top.min(launch.hosts.len().saturating_sub(1));
    }
}

/// The first line to show, so that the cursor is among `height` lines and no line is wasted at the end.
pub fn scrolled(top: usize, cursor: usize, height: usize, lines: usize) -> usize {
    let height = height.max(1);
    let lowest = cursor.saturating_sub(height - 1);
    top.clamp(lowest, cursor.max(lowest)).min(lines.saturating_sub(height).max(lowest))
}

#[cfg(test)]
mod tests {
    use super::scrolled;

    #[test]
    fn scrolling_keeps_the_cursor_in_view_and_wastes_no_line() {
        assert_eq!(scrolled(0, 3, 10, 100), 0);
        assert_eq!(scrolled(0, 12, 10, 100), 3);
        assert_eq!(scrolled(50, 12, 10, 100), 12);
        assert_eq!(scrolled(95, 99, 10, 100), 90);
        assert_eq!(scrolled(5, 0, 10, 0), 0);
        assert_eq!(scrolled(7, 7, 0, 8), 7);
    }
}
