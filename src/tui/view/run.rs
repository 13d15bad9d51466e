//! A run: who started it, its phases, what it does now, and the panes that tell more.

use ratatui::layout::Rect;

use super::{cleaning, diff, events, links, now, phases};
use crate::domain::lines::{self, Sign, has_lines};
use crate::domain::run_view::{RunState, RunView, WriteLine};
use crate::domain::usual::{Figures, Part};
use crate::tui::action::{Action, def_of};
use crate::tui::glyphs::Status;
use crate::tui::layout::{self, WIDE};
use crate::tui::model::Model;
use crate::tui::model::run_screen::{self, Row, RunPane, RunScreen, elapsed_s};
use crate::tui::model::tape::Tape;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, pieces_width, row};
use crate::tui::widgets::refusal::refusal;

pub fn draw(pen: &mut Pen, model: &Model, screen: &RunScreen) {
    let body = layout::body(model);
    let Some(view) = model.open_run() else {
        let run = format!("run {} of {}", screen.run.short(), screen.host);
        if model.loading.contains(&screen.run) {
            pen.write(row(body, 1), 2, &format!("reading {run}"), Meaning::Muted);
        } else {
            let (why, action) = match model.lost.get(&screen.run) {
                Some(refused) => (format!(": {}", refused.message), format!("{}; then ", refused.action)),
                None => Default::default(),
            };
            let action = format!("{action}leave the view and open it again to try once more");
            refusal(pen, body, 1, &format!("{run} could not be read{why}"), &action);
        }
        return;
    };
    let areas = layout::run(model);
    let figures = model.figures(&screen.host);
    title(pen, model, view, &figures, areas.title);
    if !areas.phases.is_empty() {
        if model.width < WIDE {
            phases::strip(pen, view, &figures, areas.phases);
        } else {
            phases::wrapped(pen, view, &figures, areas.phases);
        }
    }
    now::draw(pen, model, areas.now);
    let focus = screen.focus(view);
    for (pane, area) in &areas.panes {
        draw_pane(pen, view, screen, &figures, *pane, *area, *pane == focus && model.popup.is_none());
    }
    if !areas.tabs.is_empty() {
        tabs(pen, view, focus, areas.tabs);
    }
    if !areas.side.is_empty() {
        side(pen, view, &figures, areas.side);
    }
}

/// The status of a run as a whole.
pub fn run_status(view: &RunView) -> Status {
    match view.state() {
        RunState::Running if view.wait.is_some() => Status::Waiting,
        state => Status::of(state),
    }
}

fn title(pen: &mut Pen, model: &Model, view: &RunView, figures: &Figures, line: Rect) {
    let status = run_status(view);
    let meaning = meaning_of(status);
    let id = view.run.map(|r| r.short()).unwrap_or_default();
    pen.sign(line, 1, status);
    let mut pieces = vec![
        piece(format!("run {id}"), Meaning::Strong),
        piece(" · ", Meaning::Muted),
        piece(view.state().as_str(), meaning),
        piece(" · ", Meaning::Muted),
        piece(text::clock(elapsed_s(view, model.moment())), Meaning::Strong),
    ];
    if let Some(phase) = view.phase().filter(|p| p.attempt > 1) {
        pieces.push(piece(format!(" · {} attempt {}", phase.phase.label(), phase.attempt), Meaning::Text));
    }
    let at = pen.pieces(line, 3, &pieces);
    if let Some(tape) = model.replay() {
        return replay(pen, model, tape, line, at);
    }
    if model.winding == view.run && view.run.is_some() {
        pen.right(line, &[piece("replay ", Meaning::Warn), piece("reading the journal ", Meaning::Muted)]);
        return;
    }
    let Some(request) = &view.request else { return };
    let mut end = vec![piece(format!("by {}", request.submitted_by), Meaning::Muted)];
    for (on, word) in [
        (!request.params.run_inspection, "no inspection"),
        (request.params.force_inspection, "forced inspection"),
        (request.params.force_bmc_restart, "BMC restart"),
    ] {
        if on {
            end.insert(0, piece(format!("{word} · "), Meaning::Warn));
        }
    }
    if let Some(before) = request.retry_of {
        end.push(piece(format!(" · repeats {}", before.short()), Meaning::Muted));
    }
    if let Some(figure) = figures.get(Part::Run) {
        let usually = format!("usually {}", text::rough(figure.seconds));
        match figures.exceeded_by_run(view, pen.now) {
            Some(_) => end.push(piece(format!(" · ! longer than usual, {usually}"), Meaning::Warn)),
            None => end.push(piece(format!(" · {usually}"), Meaning::Muted)),
        }
    }
    end.push(piece(" ", Meaning::Muted));
    // What is switched on stays, however little room there is; who started it and what is usual go first.
    while at + 2 + (pieces_width(&end) as u16) > line.width && end.len() > 2 {
        end.pop();
        end.pop();
        end.push(piece(" ", Meaning::Muted));
    }
    if at + 2 + (pieces_width(&end) as u16) <= line.width {
        pen.right(line, &end);
    }
}

/// That this is the past, how far back, and the way to now.
fn replay(pen: &mut Pen, model: &Model, tape: &Tape, line: Rect, from: u16) {
    let place = format!("{} of {}", tape.at, tape.records.len());
    let ago = text::ago(model.now, tape.moment());
    let key = |action| model.keymap.shown(def_of(action)).to_owned();
    let mut end = vec![piece("replay ", Meaning::Warn), piece(place, Meaning::Strong)];
    end.push(piece(format!(" · {ago}"), Meaning::Muted));
    let keys = [
        piece(" · ", Meaning::Muted),
        piece(format!("{} {}", key(Action::Rewind), key(Action::Forward)), Meaning::Key),
        piece(" turn  ", Meaning::Muted),
        piece(key(Action::Back), Meaning::Key),
        piece(" now ", Meaning::Muted),
    ];
    if from + 2 + (pieces_width(&end) + pieces_width(&keys)) as u16 <= line.width {
        end.extend(keys);
    } else {
        end.push(piece(" ", Meaning::Muted));
    }
    pen.right(line, &end);
}

fn draw_pane(
    pen: &mut Pen,
    view: &RunView,
    screen: &RunScreen,
    figures: &Figures,
    pane: RunPane,
    area: Rect,
    focused: bool,
) {
    let lines = run_screen::rows(view, pane, screen.show_all, area.width);
    let height = usize::from(area.height.saturating_sub(1));
    let top = screen.top(pane).min(lines.len().saturating_sub(height));
    let mut end = match pane {
        RunPane::Links => links::end(pen, view),
        RunPane::Diff => diff::end(pen, view),
        RunPane::Cleaning => cleaning::end(pen, view),
        RunPane::Phases => phases::end(pen, view, figures),
        RunPane::Events => events::end(view),
    };
    let hidden = lines.len().saturating_sub(height);
    if hidden > 0 && height > 0 {
        let text = format!(" · {}–{} of {}", top + 1, top + height, lines.len());
        end.push(piece(text, Meaning::Muted));
    }
    // Where it is narrow the first of it counts most.
    while end.len() > 1 && text::width(pane.title()) + pieces_width(&end) + 9 > usize::from(area.width) {
        end.pop();
    }
    pen.heading(row(area, 0), &[piece(pane.title(), Meaning::Accent)], &end, focused);
    for (at, line) in lines.iter().skip(top).take(height).enumerate() {
        let target = row(area, at + 1);
        match line {
            Row::Link(_) | Row::LinkCable(_) | Row::LinkPort(_) | Row::LinkRule => {
                links::line(pen, view, *line, target)
            }
            Row::Diff(_) | Row::Expected(_) | Row::Observed(_) | Row::Rule(_) => diff::line(pen, view, *line, target),
            Row::Step | Row::States | Row::Looks | Row::LastFailure => cleaning::line(pen, view, *line, target),
            Row::Phase(n) => {
                if let Some(phase) = view.phases.get(*n) {
                    let inner = Rect { x: target.x + 2, width: target.width.saturating_sub(3), ..target };
                    phases::line(pen, phase, view, figures, inner);
                }
            }
            Row::Event(n) => {
                if let Some(event) = view.events.get(*n) {
                    events::line(
                        pen,
                        view,
                        event,
                        Rect { x: target.x + 1, width: target.width.saturating_sub(1), ..target },
                    );
                }
            }
        }
    }
}

/// The names of all panes, where only one shows; those with nothing in them step back.
fn tabs(pen: &mut Pen, view: &RunView, focus: RunPane, line: Rect) {
    let mut at = pen.write(line, 1, "tab ", Meaning::Key);
    for pane in RunPane::ALL {
        let empty = match pane {
            RunPane::Links => view.guard().is_none(),
            RunPane::Diff => view.verification.is_none(),
            RunPane::Cleaning => view.cleaning.is_none(),
            RunPane::Phases => view.phase().is_none(),
            RunPane::Events => view.events.is_empty(),
        };
        let meaning = match (pane == focus, empty) {
            (true, _) => Meaning::Accent,
            (_, true) => Meaning::Muted,
            (_, false) => Meaning::Text,
        };
        at = pen.write(line, at + 1, pane.short(), meaning) + 1;
    }
}

/// Phases with their notes, then everything that was changed.
fn side(pen: &mut Pen, view: &RunView, figures: &Figures, area: Rect) {
    let (main, bar) = layout::left(area, area.width.saturating_sub(1));
    let sign = pen.skin.glyphs.bar();
    pen.fill(bar, sign, Meaning::Rule);
    let end = phases::end(pen, view, figures);
    pen.heading(row(main, 1), &[piece("phases", Meaning::Strong)], &end, false);
    let inner = Rect { x: main.x + 1, width: main.width.saturating_sub(2), ..main };
    let mut at = 2;
    for phase in &view.phases {
        phases::line(pen, phase, view, figures, row(inner, at));
        at += 1;
    }
    at += 1;
    let count: [Piece; 1] = [piece(view.writes.len().to_string(), Meaning::Muted)];
    pen.heading(row(main, at), &[piece("changes", Meaning::Strong)], &count, false);
    at += 1;
    if view.writes.is_empty() {
        let text = if view.outcome.is_some() { "nothing was changed" } else { "nothing was changed so far" };
        pen.write(row(inner, at), 2, text, Meaning::Muted);
        return;
    }
    let arrow = pen.skin.glyphs.arrow();
    // The latest that fit, in the order in which they were made.
    let mut room = usize::from(main.height).saturating_sub(at);
    let fits = |write: &&WriteLine| {
        let height =
            if has_lines(&write.before, &write.after) { 1 + lines::diff(&write.before, &write.after).len() } else { 2 };
        let left = room.checked_sub(height);
        room = left.unwrap_or(0);
        left.is_some()
    };
    let shown = view.writes.iter().rev().take_while(fits).count();
    for write in &view.writes[view.writes.len() - shown..] {
        let line = row(inner, at);
        pen.column(line, 0, 9, &write.system, Meaning::Muted, Keep::Start);
        let own = view.request.as_ref().is_some_and(|r| r.host == write.target);
        let what = match write.target.is_empty() || own {
            true => write.what.clone(),
            false => format!("{} · {}", write.what, write.target),
        };
        pen.column(line, 9, line.width.saturating_sub(9), &what, Meaning::Text, Keep::Start);
        if has_lines(&write.before, &write.after) {
            for (sign, text) in lines::diff(&write.before, &write.after) {
                at += 1;
                let line = row(inner, at);
                let meaning = match sign {
                    Sign::Same => Meaning::Muted,
                    Sign::Gone => Meaning::Fail,
                    Sign::New => Meaning::Ok,
                };
                pen.write(line, 9, sign.as_str(), meaning);
                pen.column(line, 11, line.width.saturating_sub(11), &text, meaning, Keep::Start);
            }
            at += 1;
            continue;
        }
        let line = row(inner, at + 1);
        if write.before.is_empty() && write.after.is_empty() {
            at += 1;
            continue;
        }
        let before = if write.before.is_empty() { "(absent)" } else { &write.before };
        let after = if write.after.is_empty() { "(removed)" } else { &write.after };
        let half = line.width.saturating_sub(9 + 4) / 2;
        let before = text::cut(before, usize::from(half), Keep::Start);
        let next = pen.write(line, 9, &before, Meaning::Muted);
        let next = pen.write(line, next + 1, arrow, Meaning::Muted);
        pen.column(line, next + 1, line.width.saturating_sub(next + 1), after, Meaning::Strong, Keep::Start);
        at += 2;
    }
}
