//! The runs of a host: when each was, how it ended, where and why, how long it took. The selected one is told below.

use ratatui::layout::Rect;

use super::table::owner_meaning;
use crate::domain::usual::Part;
use crate::tui::glyphs::Status;
use crate::tui::layout::{self, WIDE};
use crate::tui::model::Model;
use crate::tui::model::history::{History, Past};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, row};
use crate::tui::widgets::refusal::refusal;

/// Where the columns begin; what has no width doesn't show.
struct Columns {
    when: u16,
    run: u16,
    outcome: u16,
    phase: (u16, u16),
    code: (u16, u16),
    tries: (u16, u16),
    took: u16,
    by: (u16, u16),
}

const TOOK: u16 = 8;

fn columns(width: u16) -> Columns {
    if width < WIDE {
        // Outcome and code share a column: a code says that it failed.
        let by = (width.saturating_sub(9), 8);
        let took = by.0.saturating_sub(TOOK + 2);
        let code = (22, took.saturating_sub(23));
        return Columns { when: 5, run: 14, outcome: 22, phase: (0, 0), code, tries: (0, 0), took, by };
    }
    let by = (width.saturating_sub(11), 10);
    let took = by.0.saturating_sub(TOOK + 2);
    let tries = (took.saturating_sub(6), 5);
    let code = (48, tries.0.saturating_sub(49));
    Columns { when: 5, run: 14, outcome: 22, phase: (33, 14), code, tries, took, by }
}

pub fn draw(pen: &mut Pen, model: &Model, history: &History) {
    let areas = layout::history(model);
    let title: [Piece; 2] = [piece("history", Meaning::Accent), piece(format!(" · {}", history.host), Meaning::Strong)];
    let end = match (&history.runs, history.marks.len()) {
        _ if history.refused.is_some() => piece("not read", Meaning::Fail),
        (None, _) => piece("reading", Meaning::Muted),
        (Some(runs), 0) => piece(text::count(runs.len(), "run"), Meaning::Muted),
        (Some(runs), marks) => {
            piece(format!("{} · {marks} of 2 marked", text::count(runs.len(), "run")), Meaning::Strong)
        }
    };
    pen.heading(areas.heading, &title, &[end], model.popup.is_none());
    let Some(runs) = &history.runs else {
        if let Some(refused) = &history.refused {
            let fact = format!("the runs of {} could not be read: {}", history.host, refused.message);
            return refusal(pen, areas.list, 0, &fact, &refused.action);
        }
        pen.write(row(areas.list, 0), 2, &format!("reading the runs of {}", history.host), Meaning::Muted);
        return;
    };
    if runs.is_empty() {
        pen.write(row(areas.list, 0), 2, "no runs yet: press e in the fleet to enroll it", Meaning::Muted);
        return;
    }
    let at = columns(areas.list.width);
    names(pen, &at, areas.columns);
    let cursor = history.cursor();
    for (n, past) in runs.iter().enumerate().skip(history.top).take(areas.rows()) {
        let line = row(areas.list, n - history.top);
        let past = past.as_of(model.runs.get(&past.run));
        let marked = history.marks.contains(&past.run);
        if n == cursor {
            pen.tint(line, Meaning::Selection);
        }
        past_line(pen, model, &at, &past, marked, line);
        if n == cursor {
            let sign = pen.skin.glyphs.cursor();
            pen.write(line, 0, sign, Meaning::Accent);
            strip(pen, model, history, &past, areas.strip);
        }
    }
}

fn names(pen: &mut Pen, at: &Columns, line: Rect) {
    pen.write(line, at.when, "when", Meaning::Muted);
    pen.write(line, at.run, "run", Meaning::Muted);
    pen.write(line, at.outcome, "ended", Meaning::Muted);
    if at.phase.1 > 0 {
        pen.write(line, at.phase.0, "in", Meaning::Muted);
        pen.write(line, at.code.0, "code", Meaning::Muted);
        pen.column_right(line, at.tries.0, at.tries.1, "tries", Meaning::Muted);
    }
    pen.column_right(line, at.took, TOOK, "took", Meaning::Muted);
    pen.write(line, at.by.0, "by", Meaning::Muted);
}

fn past_line(pen: &mut Pen, model: &Model, at: &Columns, past: &Past, marked: bool, line: Rect) {
    let status = Status::of(past.state);
    if marked {
        let sign = pen.skin.glyphs.marked();
        pen.write(line, 1, sign, Meaning::Accent);
    }
    pen.sign(line, 3, status);
    pen.column(
        line,
        at.when,
        at.run - at.when - 1,
        &text::ago(model.now, past.submitted_at),
        Meaning::Muted,
        Keep::Start,
    );
    pen.write(line, at.run, &past.run.short(), Meaning::Text);
    let code = past.failure.as_ref().map_or("", |failure| failure.code.as_str());
    if at.phase.1 == 0 {
        let said = if code.is_empty() { past.state.as_str() } else { code };
        pen.column(line, at.code.0, at.code.1, said, meaning_of(status), Keep::Start);
    } else {
        pen.write(line, at.outcome, past.state.as_str(), meaning_of(status));
        let phase = past.failure.as_ref().map(|failure| failure.phase).or(past.phase);
        let phase = phase.map_or("", |phase| phase.label());
        pen.column(line, at.phase.0, at.phase.1, phase, Meaning::Text, Keep::Start);
        pen.column(line, at.code.0, at.code.1, code, meaning_of(status), Keep::Start);
        let meaning = if past.attempts > 1 { Meaning::Warn } else { Meaning::Muted };
        pen.column_right(line, at.tries.0, at.tries.1, &past.attempts.to_string(), meaning);
    }
    pen.column_right(line, at.took, TOOK, &past.took(model.now), Meaning::Text);
    pen.column(line, at.by.0, at.by.1, &past.by, Meaning::Muted, Keep::Start);
}

/// The selected run in words: what went wrong and what to do, and how long it took beside what is usual.
fn strip(pen: &mut Pen, model: &Model, history: &History, past: &Past, area: Rect) {
    let rule = pen.skin.glyphs.rule();
    pen.fill(row(area, 0), rule, Meaning::Rule);
    let mut facts = vec![format!("run {}", past.run.short()), past.state.as_str().to_owned()];
    if past.failure.is_none() {
        facts.extend(past.phase.map(|phase| format!("last in {}", phase.label())));
    }
    facts.push(format!("took {}", past.took(model.now)));
    let figure = model.figures(&history.host).get(Part::Run);
    facts.extend(figure.map(|figure| format!("usually {}", text::rough(figure.seconds))));
    if past.attempts > 1 {
        facts.push(text::count(past.attempts as usize, "attempt"));
    }
    facts.extend(past.retry_of.map(|run| format!("repeats {}", run.short())));
    let line = row(area, 1);
    pen.sign(line, 1, Status::of(past.state));
    pen.column(line, 3, line.width.saturating_sub(4), &facts.join(" · "), Meaning::Text, Keep::Start);
    let Some(failure) = &past.failure else { return };
    let width = usize::from(area.width.saturating_sub(4));
    let rows = usize::from(area.height.saturating_sub(2));
    let action = text::wrap_to(&failure.action, width, rows.saturating_sub(1));
    let fact = text::wrap_to(&failure.message, width, rows.saturating_sub(action.len()));
    for (at, line) in fact.iter().enumerate() {
        pen.write(row(area, 2 + at), 3, line, meaning_of(Status::Failed));
    }
    for (at, line) in action.iter().enumerate() {
        let target = row(area, 2 + fact.len() + at);
        if at == 0 {
            let arrow = pen.skin.glyphs.arrow();
            pen.write(target, 1, arrow, Meaning::Action);
        }
        pen.write(target, 3, line, owner_meaning(failure.owner));
    }
}
