//! The pen: the one place where text gets onto the screen. It clips, neutralises what comes from outside (U8), and keeps
//! to ASCII where the terminal has nothing else.

use std::borrow::Cow;

use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::domain::text::neutralize;
use crate::tui::glyphs::{Glyphs, Status, to_ascii};
use crate::tui::text::{self, Keep};
use crate::tui::theme::{Meaning, Theme};

/// What the console looks like: colours by meaning, and the set of signs.
#[derive(Debug, Clone, PartialEq)]
pub struct Skin {
    pub theme: Theme,
    pub glyphs: Glyphs,
}

/// A piece of a line: a text and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    pub text: Cow<'a, str>,
    pub meaning: Meaning,
}

/// A piece.
pub fn piece<'a>(text: impl Into<Cow<'a, str>>, meaning: Meaning) -> Piece<'a> {
    Piece { text: text.into(), meaning }
}

/// Columns of pieces side by side.
pub fn pieces_width(pieces: &[Piece]) -> usize {
    pieces.iter().map(|p| text::width(&p.text)).sum()
}

/// Draws into a buffer.
pub struct Pen<'a> {
    pub buf: &'a mut Buffer,
    pub skin: &'a Skin,
    pub now: Timestamp,
}

impl Pen<'_> {
    /// Writes into a row from a column of it on, to at most the row's end. Returns the column behind.
    pub fn write(&mut self, row: Rect, at: u16, text: &str, meaning: Meaning) -> u16 {
        let style = self.skin.theme.style(meaning);
        self.write_styled(row, at, text, Style { bg: None, ..style })
    }

    /// As [`Pen::write`], with the meaning's background too.
    pub fn write_on(&mut self, row: Rect, at: u16, text: &str, meaning: Meaning) -> u16 {
        let style = self.skin.theme.style(meaning);
        self.write_styled(row, at, text, style)
    }

    fn write_styled(&mut self, row: Rect, at: u16, text: &str, style: Style) -> u16 {
        let row = row.intersection(self.buf.area);
        if row.is_empty() || at >= row.width {
            return at;
        }
        let clean = neutralize(text);
        let clean = if self.skin.glyphs.ascii && !clean.is_ascii() { Cow::Owned(to_ascii(&clean)) } else { clean };
        let room = usize::from(row.width - at);
        self.part(row.x + at, row.y);
        let x = self.put(row.x + at, row.y, &clean, room, style);
        x - row.x
    }

    /// Puts a neutralized text into cells, a cell or two for each character as terminals count them: not by what reads as
    /// one sign, which may be any number of characters and columns.
    fn put(&mut self, from: u16, y: u16, text: &str, room: usize, style: Style) -> u16 {
        let end = from.saturating_add(u16::try_from(room).unwrap_or(u16::MAX));
        let mut x = from;
        let mut last = None;
        for c in text.chars() {
            let wide = text::columns(c) as u16;
            if wide == 0 {
                if let Some(cell) = last.and_then(|at| self.buf.cell_mut((at, y))) {
                    let with_mark = format!("{}{c}", cell.symbol());
                    cell.set_symbol(&with_mark);
                }
                continue;
            }
            if x.saturating_add(wide) > end {
                break;
            }
            self.buf[(x, y)].set_char(c).set_style(style);
            for behind in x + 1..x + wide {
                self.buf[(behind, y)].set_symbol(" ").set_style(style);
            }
            (last, x) = (Some(x), x + wide);
        }
        x
    }

    /// Writes pieces one after the other.
    pub fn pieces(&mut self, row: Rect, at: u16, pieces: &[Piece]) -> u16 {
        pieces.iter().fold(at, |at, piece| self.write(row, at, &piece.text, piece.meaning))
    }

    /// Writes pieces so that they end at the row's end. Returns the column where they begin.
    pub fn right(&mut self, row: Rect, pieces: &[Piece]) -> u16 {
        let at = row.width.saturating_sub(pieces_width(pieces) as u16);
        self.pieces(row, at, pieces);
        at
    }

    /// Writes a text into a column of so many cells; what doesn't fit is cut with an ellipsis.
    pub fn column(&mut self, row: Rect, at: u16, width: u16, text: &str, meaning: Meaning, keep: Keep) {
        let clean = neutralize(text);
        let cut = text::cut(&clean, usize::from(width), keep);
        let cell = Rect { width: row.width.min(at.saturating_add(width)), ..row };
        self.write(cell, at, &cut, meaning);
    }

    /// As [`Pen::column`], at its right end: for numbers.
    pub fn column_right(&mut self, row: Rect, at: u16, width: u16, text: &str, meaning: Meaning) {
        let clean = neutralize(text);
        let cut = text::cut(&clean, usize::from(width), Keep::Start);
        let indent = width.saturating_sub(text::width(&cut) as u16);
        self.write(Rect { width: row.width.min(at.saturating_add(width)), ..row }, at + indent, &cut, meaning);
    }

    /// The sign of a status.
    pub fn sign(&mut self, row: Rect, at: u16, status: Status) -> u16 {
        let sign = self.skin.glyphs.status(status, self.now);
        self.write(row, at, sign, meaning_of(status))
    }

    /// Blanks an area and gives it a ground.
    pub fn ground(&mut self, area: Rect, meaning: Meaning) {
        let style = self.skin.theme.style(meaning);
        let area = area.intersection(self.buf.area);
        for y in area.top()..area.bottom() {
            self.part(area.left(), y);
            self.part(area.right(), y);
            for x in area.left()..area.right() {
                let cell = &mut self.buf[(x, y)];
                cell.reset();
                cell.set_style(style);
            }
        }
    }

    /// Takes away a character of two columns whose second half is about to be written over: what stays of it would push
    /// everything behind it.
    fn part(&mut self, x: u16, y: u16) {
        let Some(before) = x.checked_sub(1) else { return };
        if x < self.buf.area.right()
            && let Some(cell) = self.buf.cell_mut((before, y))
            && text::width(cell.symbol()) > 1
        {
            cell.set_symbol(" ");
        }
    }

    /// Gives the cells of an area another ground and keeps what stands in them: a selected row keeps its colours.
    pub fn tint(&mut self, area: Rect, meaning: Meaning) {
        let style = Style { fg: None, ..self.skin.theme.style(meaning) };
        self.buf.set_style(area.intersection(self.buf.area), style);
    }

    /// Fills a row with a sign.
    pub fn fill(&mut self, row: Rect, sign: &str, meaning: Meaning) {
        let style = Style { bg: None, ..self.skin.theme.style(meaning) };
        let row = row.intersection(self.buf.area);
        for y in row.top()..row.bottom() {
            self.part(row.left(), y);
            for x in row.left()..row.right() {
                self.buf[(x, y)].set_symbol(sign).set_style(style);
            }
        }
    }

    /// A pane's heading: its title, a rule, and what stands at the end. The focused one is thick, marked and bright.
    pub fn heading(&mut self, row: Rect, title: &[Piece], end: &[Piece], focused: bool) {
        let glyphs = self.skin.glyphs;
        let (rule, rule_meaning) =
            if focused { (glyphs.thick_rule(), Meaning::Accent) } else { (glyphs.rule(), Meaning::Rule) };
        self.fill(row, rule, if focused { Meaning::Key } else { rule_meaning });
        let at = match focused {
            true => self.write(row, 0, glyphs.cursor(), Meaning::Accent),
            false => self.write(row, 0, " ", Meaning::Muted),
        };
        let mut at = at;
        for piece in title {
            let meaning = match piece.meaning {
                Meaning::Accent if !focused => Meaning::Strong,
                other => other,
            };
            at = self.write(row, at, &piece.text, meaning);
        }
        self.write(row, at, " ", Meaning::Muted);
        if end.is_empty() {
            return;
        }
        let width = pieces_width(end) as u16 + 3;
        // A title that needs the room keeps it.
        if at + 4 + width > row.width {
            return;
        }
        let from = row.width - width;
        let at = self.write(row, from, " ", Meaning::Muted);
        let at = self.pieces(row, at, end);
        self.write(row, at, " ", Meaning::Muted);
    }
}

/// What a status means in colour.
pub fn meaning_of(status: Status) -> Meaning {
    match status {
        Status::Ok => Meaning::Ok,
        Status::Failed => Meaning::Fail,
        Status::Warned | Status::Refused => Meaning::Warn,
        Status::Unknown => Meaning::Unknown,
        Status::Running => Meaning::Run,
        Status::Waiting => Meaning::Wait,
        Status::Queued => Meaning::Queued,
        Status::Stale => Meaning::Stale,
        Status::Skipped | Status::None => Meaning::Muted,
    }
}

/// A row of an area; empty where the area has no such row.
pub fn row(area: Rect, at: usize) -> Rect {
    let at = u16::try_from(at).unwrap_or(u16::MAX);
    if at >= area.height {
        return Rect { height: 0, ..area };
    }
    Rect { y: area.y.saturating_add(at), height: 1, ..area }
}
