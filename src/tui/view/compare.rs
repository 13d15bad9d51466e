//! Two runs side by side, or one under the other where it is narrow: what differs has a sign and a word.

use ratatui::layout::Rect;

use crate::domain::compare::{Comparison, Mark, Side as Which};
use crate::domain::ids::RunId;
use crate::tui::glyphs::Status;
use crate::tui::layout::{self, WIDE};
use crate::tui::model::Model;
use crate::tui::model::compare::{self, Compare, Line, NAME, NAME_AT, PAIR_NAME, Side, WORD, side_width};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, meaning_of, piece, row};
use crate::tui::widgets::refusal::refusal;

pub fn draw(pen: &mut Pen, model: &Model, screen: &Compare) {
    let area = layout::body(model);
    let title = [piece("two runs", Meaning::Accent), piece(format!(" · {}", screen.host), Meaning::Strong)];
    let Some(compared) = model.comparison() else {
        if let Some((run, refused)) = screen.runs.iter().find_map(|run| Some((run, model.lost.get(run)?))) {
            pen.heading(row(area, 0), &title, &[piece("not read", Meaning::Fail)], model.popup.is_none());
            let fact = format!("run {} could not be read: {}", run.short(), refused.message);
            return refusal(pen, area, 2, &fact, &refused.action);
        }
        pen.heading(row(area, 0), &title, &[piece("reading", Meaning::Muted)], model.popup.is_none());
        let missing = screen.runs.iter().filter(|run| !model.runs.contains_key(run)).map(|run| RunId::short(*run));
        let text = format!("reading run {}", missing.collect::<Vec<_>>().join(" and "));
        pen.write(row(area, 2), 2, &text, Meaning::Muted);
        return;
    };
    let (differ, all) = compared.differing();
    let end = match differ {
        0 => piece("nothing differs", Meaning::Ok),
        n => piece(format!("{n} of {all} differ"), Meaning::Warn),
    };
    pen.heading(row(area, 0), &title, &[end], model.popup.is_none());
    heads(pen, model, &compared, area);
    let body = layout::compare_body(model);
    let lines = compare::lines(&compared, screen.show_all, body.width);
    // Fewer lines, or a larger screen, than when it was scrolled.
    let top = screen.top.min(lines.len().saturating_sub(usize::from(body.height)));
    for (n, line) in lines.iter().skip(top).take(usize::from(body.height)).enumerate() {
        draw_line(pen, line, row(body, n));
    }
}

/// Which runs they are: beside each other above their columns, or one line each.
fn heads(pen: &mut Pen, model: &Model, compared: &Comparison, area: Rect) {
    let sides = [("1", &compared.left), ("2", &compared.right)];
    if area.width < WIDE {
        for (at, (n, side)) in sides.into_iter().enumerate() {
            let line = row(area, 1 + at);
            pen.write(line, 2, n, Meaning::Accent);
            let at = pen.sign(line, 4, Status::of(side.status));
            let words = format!("{} · {}", words(side), when(model, side));
            pen.column(line, at + 1, line.width.saturating_sub(at + 2), &words, Meaning::Text, Keep::Start);
        }
        return;
    }
    let width = side_width(area.width);
    for (at, (n, side)) in [columns(area.width).0, columns(area.width).1].into_iter().zip(sides) {
        let line = row(area, 1);
        pen.write(line, at, n, Meaning::Accent);
        let next = pen.sign(line, at + 2, Status::of(side.status));
        pen.column(line, next + 1, width.saturating_sub(next + 1 - at), &words(side), Meaning::Strong, Keep::Start);
        pen.column(row(area, 2), at + 4, width.saturating_sub(4), &when(model, side), Meaning::Muted, Keep::Start);
    }
}

fn columns(width: u16) -> (u16, u16) {
    let left = NAME_AT + NAME + 1;
    (left, left + side_width(width) + 1)
}

fn words(side: &Which) -> String {
    let run = side.run.map_or(String::new(), RunId::short);
    format!("run {run} · {}", side.status.as_str())
}

fn when(model: &Model, side: &Which) -> String {
    let ago = side.submitted_at.map_or(String::new(), |at| format!("{} · ", text::ago(model.now, at)));
    format!("{ago}by {}", side.by)
}

fn draw_line(pen: &mut Pen, line: &Line, area: Rect) {
    match line {
        Line::Blank => {}
        Line::Heading(topic, differ, all) => {
            let end = match differ {
                0 => piece("all the same", Meaning::Muted),
                n => piece(format!("{n} of {all} differ"), Meaning::Warn),
            };
            pen.heading(area, &[piece(topic.title(), Meaning::Strong)], &[end], false);
        }
        Line::Beside { name, mark, left, right } => {
            if let Some(name) = name {
                sign(pen, *mark, area);
                pen.column(area, NAME_AT, NAME, name, name_meaning(*mark), Keep::End);
                word(pen, *mark, area);
            }
            let (at_left, at_right) = columns(area.width);
            let width = side_width(area.width);
            side(pen, left, *mark, area, at_left, width);
            side(pen, right, *mark, area, at_right, width);
        }
        Line::Pair { name, mark, left, right } => {
            sign(pen, *mark, area);
            let at = pen.write(area, NAME_AT, name, name_meaning(*mark)).max(NAME_AT + PAIR_NAME) + 1;
            let at = pen.write(area, at, "1 ", Meaning::Muted);
            let at = side(pen, left, *mark, area, at, area.width) + 2;
            let at = pen.write(area, at, "2 ", Meaning::Muted);
            side(pen, right, *mark, area, at, area.width);
            word(pen, *mark, area);
        }
        Line::Name { name, mark } => {
            sign(pen, *mark, area);
            let width = area.width.saturating_sub(NAME_AT + WORD + 2);
            pen.column(area, NAME_AT, width, name, name_meaning(*mark), Keep::End);
            word(pen, *mark, area);
        }
        Line::Under { n, side: of } => {
            if let Some(n) = n {
                pen.write(area, NAME_AT, &n.to_string(), Meaning::Muted);
            }
            side(pen, of, Mark::Differs, area, NAME_AT + 2, area.width.saturating_sub(NAME_AT + 3));
        }
        Line::Both { name, text } => {
            let at = pen.write(area, NAME_AT, name, Meaning::Muted).max(NAME_AT + PAIR_NAME) + 1;
            pen.column(area, at, area.width.saturating_sub(at + 1), text, Meaning::Muted, Keep::Start);
        }
        Line::Alike { rows, more } => {
            let more = if *more { " more" } else { "" };
            let at = pen.write(area, NAME_AT, &format!("{rows}{more} agree  "), Meaning::Muted);
            let at = pen.write(area, at, "a", Meaning::Key);
            pen.write(area, at, " shows them", Meaning::Muted);
        }
    }
}

fn sign(pen: &mut Pen, mark: Mark, area: Rect) {
    let sign = pen.skin.glyphs.mark(mark);
    pen.write(area, 2, sign, Meaning::Warn);
}

fn word(pen: &mut Pen, mark: Mark, area: Rect) {
    if mark != Mark::Same {
        pen.write(area, area.width.saturating_sub(WORD), mark.word(), Meaning::Warn);
    }
}

fn name_meaning(mark: Mark) -> Meaning {
    if mark == Mark::Same { Meaning::Muted } else { Meaning::Strong }
}

/// Returns the column behind.
fn side(pen: &mut Pen, side: &Side, mark: Mark, area: Rect, at: u16, width: u16) -> u16 {
    match side {
        Side::None => pen.sign(area, at, Status::Skipped),
        Side::Text { text, bad } => {
            let meaning = match (mark, bad) {
                (Mark::Same, false) => Meaning::Muted,
                (_, true) => meaning_of(Status::Failed),
                (_, false) => Meaning::Text,
            };
            pen.column(area, at, width, text, meaning, Keep::Start);
            at + (text::width(text) as u16).min(width)
        }
    }
}
