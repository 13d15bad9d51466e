//! A line of text that is being typed, with its cursor in view.

use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::pen::Pen;
use crate::tui::model::input::Input;
use crate::tui::text;
use crate::tui::theme::Meaning;

/// Draws the field into so many columns. The cursor is a cell in reverse, so that it shows without colour too.
pub fn field(pen: &mut Pen, row: Rect, at: u16, width: u16, input: &Input, focused: bool) {
    let cell = Rect { x: row.x.saturating_add(at), width: width.min(row.width.saturating_sub(at)), ..row };
    if cell.width == 0 {
        return;
    }
    pen.ground(cell, Meaning::Input);
    let before: String = input.text.chars().take(input.cursor).collect();
    let room = usize::from(cell.width.saturating_sub(1));
    // The text moves left when the cursor would leave the field.
    let mut skip = 0;
    let mut from = 0;
    for (at, c) in before.char_indices() {
        if text::width(&before[from..]) <= room {
            break;
        }
        from = at + c.len_utf8();
        skip += 1;
    }
    let visible: String = input.text.chars().skip(skip).collect();
    pen.write_on(cell, 0, &visible, Meaning::Input);
    if focused {
        let x = cell.x.saturating_add(text::width(&before[from..]) as u16);
        let cursor = Rect { x, width: 1, ..cell }.intersection(cell).intersection(pen.buf.area);
        if !cursor.is_empty() {
            pen.buf[(cursor.x, cursor.y)].modifier.insert(Modifier::REVERSED);
        }
    }
}
