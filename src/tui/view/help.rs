//! The help: keys of this place, then the signs, then the codes that stand on the screen.

use ratatui::layout::Rect;

use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::help::{HelpLine, lines};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, piece, row};

pub fn draw(pen: &mut Pen, model: &Model, top: usize) {
    let lines = lines(model);
    let inside = frame(pen, layout::help(model), "help", Meaning::Accent);
    let rows = layout::help_rows(model);
    let end = lines.len().saturating_sub(rows);
    let top = top.min(end);
    for (at, line) in lines.iter().skip(top).take(rows).enumerate() {
        draw_line(pen, line, row(inside, at));
    }
    let last = row(inside, usize::from(inside.height).saturating_sub(1));
    if end > 0 {
        let place = format!("{}–{} of {}  ", top + 1, (top + rows).min(lines.len()), lines.len());
        let at = pen.write(last, 1, &place, Meaning::Muted);
        let at = pen.write(last, at, "j k", Meaning::Key);
        pen.write(last, at, " scroll", Meaning::Text);
    }
    pen.right(last, &[piece("esc", Meaning::Key), piece(" back ", Meaning::Text)]);
}

fn draw_line(pen: &mut Pen, what: &HelpLine, line: Rect) {
    let rest = |at: u16| line.width.saturating_sub(at);
    match what {
        HelpLine::Blank => {}
        HelpLine::Heading(heading) => {
            pen.column(line, 1, rest(1), heading, Meaning::Accent, Keep::Start);
        }
        HelpLine::Key { keys, name, about, reason } => {
            let meaning = if reason.is_some() { Meaning::Muted } else { Meaning::Key };
            // Without room for three columns the name goes: what it does says enough.
            let (keys_width, about_at) = if line.width < 74 { (14, 16) } else { (19, 38) };
            pen.column(line, 1, keys_width, &keys.join(", "), meaning, Keep::Start);
            let name_meaning = if reason.is_some() { Meaning::Muted } else { Meaning::Strong };
            if about_at == 38 {
                pen.column(line, 21, 16, name, name_meaning, Keep::Start);
            }
            let text = match reason {
                Some(reason) => format!("not now: {reason}"),
                None => (*about).to_owned(),
            };
            let meaning = if reason.is_some() { Meaning::Muted } else { Meaning::Text };
            pen.column(line, about_at, rest(about_at), &text, meaning, Keep::Start);
        }
        HelpLine::Filter { key, about } => {
            pen.write(line, 1, &format!("{key}:"), Meaning::Key);
            let at = if line.width < 74 { 16 } else { 21 };
            pen.column(line, at, rest(at), about, Meaning::Text, Keep::Start);
        }
        HelpLine::Sign(status) => {
            pen.sign(line, 1, *status);
            pen.write(line, 5, status.word(), Meaning::Text);
        }
        HelpLine::Code(code) => {
            let width = text::width(code.as_str()) as u16;
            pen.write(line, 1, code.as_str(), Meaning::Strong);
            let at = 38.max(width + 3);
            pen.column(line, at, rest(at), code.meaning(), Meaning::Text, Keep::Start);
        }
    }
}
