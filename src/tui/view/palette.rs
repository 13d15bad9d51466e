//! The command palette.

use ratatui::layout::Rect;

use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::palette::{Entry, Palette, entries};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::field::field;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, piece, row};

/// Lines of the list at most.
const ROWS: u16 = 14;

pub fn draw(pen: &mut Pen, model: &Model, palette: &Palette) {
    let entries = entries(model, &palette.input.text);
    let area = layout::popup(model, 84, ROWS + 4);
    let inside = frame(pen, area, "command", Meaning::Accent);
    let first = row(inside, 0);
    pen.write(first, 0, ":", Meaning::Key);
    field(pen, first, 1, first.width.saturating_sub(1), &palette.input, true);
    let rows = usize::from(inside.height.saturating_sub(2));
    if entries.is_empty() {
        pen.write(row(inside, 2), 2, "nothing is called that", Meaning::Muted);
    }
    let top = palette.cursor.saturating_sub(rows.saturating_sub(1));
    for (at, entry) in entries.iter().skip(top).take(rows).enumerate() {
        let line = row(inside, at + 2);
        entry_line(pen, entry, line);
        if top + at == palette.cursor {
            pen.tint(line, Meaning::Selection);
            let sign = pen.skin.glyphs.cursor();
            pen.write(line, 0, sign, Meaning::Accent);
        }
    }
}

fn entry_line(pen: &mut Pen, entry: &Entry, line: Rect) {
    let dimmed = entry.reason.is_some();
    let name = if dimmed { Meaning::Muted } else { Meaning::Strong };
    pen.column(line, 2, 24, &entry.text, name, Keep::End);
    let keys = text::width(&entry.keys) as u16;
    let about = entry.reason.as_ref().map_or(entry.about.clone(), |r| format!("not now: {r}"));
    let room = line.width.saturating_sub(27 + keys + 2);
    pen.column(line, 27, room, &about, if dimmed { Meaning::Muted } else { Meaning::Text }, Keep::Start);
    if !entry.keys.is_empty() {
        pen.right(line, &[piece(entry.keys.clone(), Meaning::Key), piece(" ", Meaning::Text)]);
    }
}
