//! What could not be read, in the place where it would stand.

use ratatui::layout::Rect;

use super::pen::{Pen, row};
use crate::tui::glyphs::Status;
use crate::tui::text;
use crate::tui::theme::Meaning;

/// The fact and what mends it, wrapped, from a line of an area on.
pub fn refusal(pen: &mut Pen, area: Rect, from: usize, fact: &str, action: &str) {
    let width = usize::from(area.width.saturating_sub(6));
    let fact = text::wrap(fact, width);
    pen.sign(row(area, from), 1, Status::Failed);
    for (at, line) in fact.iter().enumerate() {
        pen.write(row(area, from + at), 3, line, Meaning::Fail);
    }
    for (at, line) in text::wrap(action, width).iter().enumerate() {
        pen.write(row(area, from + 1 + fact.len() + at), 3, line, Meaning::Action);
    }
}
