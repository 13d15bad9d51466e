//! The frame of a dialog: the only boxes of the console.

use ratatui::layout::Rect;

use super::pen::Pen;
use crate::tui::theme::Meaning;

/// Draws a frame with a title and returns its inside, one column of air at each side.
pub fn frame(pen: &mut Pen, area: Rect, title: &str, meaning: Meaning) -> Rect {
    pen.ground(area, Meaning::Float);
    if area.width < 4 || area.height < 3 {
        return Rect { height: 0, ..area };
    }
    let glyphs = pen.skin.glyphs;
    let [tl, tr, bl, br] = glyphs.corners();
    let first = Rect { height: 1, ..area };
    let last = Rect { y: area.bottom() - 1, height: 1, ..area };
    for (row, l, r) in [(first, tl, tr), (last, bl, br)] {
        pen.fill(row, glyphs.thick_rule(), Meaning::Rule);
        pen.write(row, 0, l, Meaning::Rule);
        pen.write(row, area.width - 1, r, Meaning::Rule);
    }
    for y in area.y + 1..area.bottom() - 1 {
        let row = Rect { y, height: 1, ..area };
        pen.write(row, 0, glyphs.thick_bar(), Meaning::Rule);
        pen.write(row, area.width - 1, glyphs.thick_bar(), Meaning::Rule);
    }
    let title_row = Rect { width: area.width.saturating_sub(2), ..first };
    let at = pen.write(title_row, 2, " ", meaning);
    let at = pen.write(title_row, at, title, meaning);
    pen.write(title_row, at, " ", meaning);
    Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 }
}
