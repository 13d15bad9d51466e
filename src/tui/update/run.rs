//! The run view: opening, panes, scrolling, retry.

use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::tui::action::Action;
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::model::run_screen::{RunPane, RunScreen};
use crate::tui::model::tape::{Move, Tape};
use crate::tui::model::{Model, Screen};

/// Shows a run, and asks for its records where they are not here.
pub(super) fn open(model: &mut Model, run: RunId, host: &str) -> Vec<Effect> {
    (model.tape, model.winding) = (None, None);
    let screen = Screen::Run(RunScreen::new(run, host));
    match model.screens.last_mut() {
        // A retry takes the place of the run that it repeats.
        Some(top @ Screen::Run(_)) => *top = screen,
        _ => model.screens.push(screen),
    }
    want(model, run)
}

/// Shows the last run of the host that keys act on.
pub(super) fn open_last(model: &mut Model) -> Vec<Effect> {
    let Some(host) = model.target() else { return Vec::new() };
    let (Some(last), name) = (&host.last_run, host.device.name.to_string()) else { return Vec::new() };
    let run = last.run;
    open(model, run, &name)
}

/// Asks for a run's records, once.
pub(super) fn want(model: &mut Model, run: RunId) -> Vec<Effect> {
    let missing = !model.runs.contains_key(&run) && model.loading.insert(run);
    if missing {
        model.lost.remove(&run);
    }
    if missing { vec![Effect::LoadRun(run)] } else { Vec::new() }
}

/// Does an action of the run view.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let step = match action {
        Action::Rewind => Some(Move::Back),
        Action::Forward => Some(Move::On),
        Action::RewindPhase => Some(Move::BackPhase),
        Action::ForwardPhase => Some(Move::OnPhase),
        _ => None,
    };
    if let Some(step) = step {
        return turn_tape(model, step);
    }
    let Some(pane) = focus(model) else { return Vec::new() };
    let height = layout::run(model).pane_rows(pane) as i64;
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::HalfUp => -(height / 2).max(1),
        Action::HalfDown => (height / 2).max(1),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::NextPane | Action::Right => return turn(model, true),
        Action::PrevPane | Action::Left => return turn(model, false),
        Action::ShowAll => {
            if let Some(screen) = model.run_screen_mut() {
                screen.show_all = !screen.show_all;
                (screen.pane, screen.pinned) = (RunPane::Diff, true);
            }
            return Vec::new();
        }
        _ => return Vec::new(),
    };
    if let Some(screen) = model.run_screen_mut() {
        let top = &mut screen.tops[pane.index()];
        *top = (*top as i64).saturating_add(by).clamp(0, i64::from(u32::MAX)) as usize;
        (screen.pane, screen.pinned) = (pane, true);
    }
    Vec::new()
}

/// Moves in what happened. The first move asks for the records.
fn turn_tape(model: &mut Model, step: Move) -> Vec<Effect> {
    let Some(run) = model.run_screen().map(|screen| screen.run) else { return Vec::new() };
    if model.replay().is_none() {
        let asked = model.winding.replace(run) == Some(run);
        return if asked { Vec::new() } else { vec![Effect::LoadTape(run)] };
    }
    if let Some(tape) = &mut model.tape
        && !tape.turn(step)
    {
        // Past its end is now.
        model.tape = None;
    }
    Vec::new()
}

/// The records of a run that somebody looks back at, from its last one but one.
pub(super) fn look_back(model: &mut Model, run: RunId, records: Vec<RunRecord>) -> Vec<Effect> {
    model.winding.take_if(|asked| *asked == run);
    if model.run_screen().is_some_and(|screen| screen.run == run) && !records.is_empty() {
        let mut tape = Tape::new(run, records);
        tape.turn(Move::Back);
        model.tape = Some(tape);
    }
    Vec::new()
}

/// The pane with the focus.
fn focus(model: &Model) -> Option<RunPane> {
    Some(model.run_screen()?.focus(model.open_run()?))
}

fn turn(model: &mut Model, forward: bool) -> Vec<Effect> {
    let Some(pane) = focus(model) else { return Vec::new() };
    let shown = layout::run_panes(model);
    if let Some(screen) = model.run_screen_mut() {
        screen.turn(pane, forward, shown);
    }
    Vec::new()
}

/// Repeats the run that keys act on.
pub(super) fn retry(model: &mut Model, force_inspection: bool) -> Vec<Effect> {
    let Some((run, host, _)) = model.target_run() else { return Vec::new() };
    let open = model.run_screen().is_some();
    vec![Effect::Retry { run, host, force_inspection, open }]
}

/// Gives the pane under a cell the focus.
pub(super) fn focus_under(model: &mut Model, column: u16, row: u16) {
    let areas = layout::run(model);
    let Some((pane, _)) = areas.panes.iter().find(|(_, area)| layout::within(*area, column, row)) else { return };
    let pane = *pane;
    if let Some(screen) = model.run_screen_mut() {
        (screen.pane, screen.pinned) = (pane, true);
    }
}

/// No pane is scrolled past its end.
pub(super) fn clamp(model: &mut Model) {
    if model.open_run().is_none() {
        return;
    }
    let areas = layout::run(model);
    let ends = RunPane::ALL.map(|p| layout::pane_len(model, p, areas.width).saturating_sub(areas.pane_rows(p)));
    if let Some(screen) = model.run_screen_mut() {
        for (top, end) in screen.tops.iter_mut().zip(ends) {
            *top = (*top).min(end);
        }
    }
}
