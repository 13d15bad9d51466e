//! The footer: the keys that work here, now.

use ratatui::layout::Rect;

use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::Pen;

pub fn draw(pen: &mut Pen, model: &Model) {
    let row = Rect::new(0, model.height.saturating_sub(1), model.width, 1);
    pen.ground(row, Meaning::Bar);
    for item in layout::footer(model) {
        let at = pen.write(row, item.from, model.keymap.shown(item.def), Meaning::Key);
        pen.write(row, at + 1, item.def.name, Meaning::BarStrong);
    }
    let marks = model.fleet.marks.len();
    if marks > 0 && model.popup.is_none() && model.screens.is_empty() {
        let text = format!("{} {marks} marked ", pen.skin.glyphs.marked());
        let used = layout::footer(model).last().map_or(0, |i| i.to + 2);
        let width = crate::tui::text::width(&text) as u16;
        if used + width <= row.width {
            pen.write(row, row.width - width, &text, Meaning::Mark);
        }
    }
}
