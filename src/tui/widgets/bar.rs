//! A bar that shows how much of something is left.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::tui::theme::Meaning;

/// Fills `part` of `whole` of the cells from a column on. What is left at all has at least one cell.
pub fn bar(pen: &mut Pen, row: Rect, at: u16, cells: u16, part: u64, whole: u64, meaning: Meaning) {
    let glyphs = pen.skin.glyphs;
    let full = (u128::from(cells) * u128::from(part.min(whole))).div_ceil(u128::from(whole.max(1))) as u16;
    for cell in 0..cells {
        let (sign, meaning) = if cell < full { (glyphs.filled(), meaning) } else { (glyphs.track(), Meaning::Track) };
        pen.write(row, at + cell, sign, meaning);
    }
}
