//! Turns one frame into the next with few bytes: over a slow line they are what a key costs (issue: at most 600 for one that
//! moves the selection).
//!
//! What a plain difference of cells leaves on the table: the foreground of a blank is never seen, so it needs no change of
//! colour; what looks alike is drawn together, since going elsewhere costs less than other colours; of a style only that is
//! sent which differs from the one before; and lines that moved are moved by the terminal itself (DECSTBM with SU or SD,
//! ECMA-48), where that is less.

use std::cmp::Ordering;
use std::io::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// What a blank shows besides its ground.
const SHOWS_ON_BLANK: Modifier = Modifier::UNDERLINED.union(Modifier::REVERSED).union(Modifier::CROSSED_OUT);
/// Bytes that moving lines costs: the margins, the move, the margins back.
const SHIFT_COST: i64 = 16;
/// Bytes that going elsewhere costs, and about what other colours do where they are shared.
const MOVE_COST: i64 = 6;
const INK_COST: i64 = 8;
/// So many cells that stand there already are written once more rather than leapt over.
const LEAP_LEAST: usize = 4;
/// Fewer lines than this are written anew rather than looked for elsewhere.
const SHIFT_LEAST: usize = 3;

/// Knows what the terminal writes with, from frame to frame.
#[derive(Debug, Default)]
pub struct Painter {
    /// `None`: something else may have written meanwhile.
    ink: Option<Ink>,
}

/// How characters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ink {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

const PLAIN: Ink = Ink { fg: Color::Reset, bg: Color::Reset, modifier: Modifier::empty() };

impl Painter {
    /// The terminal was somebody else's, or will be: the next frame assumes nothing.
    pub fn forget(&mut self) {
        self.ink = None;
    }

    /// Writes what makes `after` of `before`; without a `before` of the same size the whole screen is cleared and drawn.
    pub fn paint(&mut self, before: Option<&Buffer>, after: &Buffer, out: &mut Vec<u8>) {
        let height = usize::from(after.area.height);
        let before = before.filter(|before| before.area == after.area);
        // Which line of `before` stands where a line of `after` shall stand.
        let stands: Vec<Option<usize>> = match before {
            Some(before) => match shift(before, after) {
                Some(shift) => shift.carry_out(height, out),
                None => (0..height).map(Some).collect(),
            },
            None => {
                out.extend(b"\x1b[m\x1b[2J");
                self.ink = Some(PLAIN);
                vec![None; height]
            }
        };
        let mut strokes = Vec::new();
        for (row, stands) in stands.into_iter().enumerate() {
            let old = before.zip(stands).map(|(before, line)| line_of(before, line));
            strokes_of(row, old, line_of(after, row), &mut strokes);
        }
        self.draw(&strokes, after, out);
    }

    /// Draws strokes, those that look alike one after the other: a move costs less than a change of colours.
    fn draw(&mut self, strokes: &[Stroke], after: &Buffer, out: &mut Vec<u8>) {
        let mut inks: Vec<Ink> = Vec::new();
        for stroke in strokes {
            if let Some(ink) = stroke.ink
                && !inks.contains(&ink)
            {
                inks.push(ink);
            }
        }
        // What the terminal writes with already comes first.
        if let Some(at) = inks.iter().position(|ink| Some(*ink) == self.ink) {
            inks[..=at].rotate_right(1);
        }
        // Blanks go with the first that has their ground.
        let of = |stroke: &Stroke| match stroke.ink {
            Some(ink) => inks.iter().position(|known| *known == ink),
            None => {
                inks.iter().position(|known| known.bg == stroke.ground && !known.modifier.intersects(SHOWS_ON_BLANK))
            }
        };
        let mut order: Vec<(usize, usize)> =
            strokes.iter().enumerate().map(|(at, stroke)| (of(stroke).unwrap_or(usize::MAX), at)).collect();
        order.sort_unstable();
        let mut cursor = None;
        for (group, at) in order {
            let stroke = &strokes[at];
            let cells = &line_of(after, stroke.row)[stroke.from..stroke.to];
            go(cursor, (stroke.row, stroke.from), out);
            let now = self.ink.unwrap_or(PLAIN);
            let blank = Ink { fg: now.fg, bg: stroke.ground, modifier: now.modifier.difference(SHOWS_ON_BLANK) };
            self.dip(inks.get(group).copied().unwrap_or(blank), out);
            let mut column = 0;
            while let Some(cell) = cells.get(column) {
                out.extend(cell.symbol().as_bytes());
                column += width_of(cell);
            }
            // Behind the last column, and behind what terminals disagree about, the cursor is somewhere.
            cursor =
                Some((stroke.row, stroke.to)).filter(|_| stroke.is_sure && stroke.to < usize::from(after.area.width));
        }
    }

    /// Makes the terminal write with an ink.
    fn dip(&mut self, want: Ink, out: &mut Vec<u8>) {
        if self.ink == Some(want) {
            return;
        }
        let anew = {
            let mut codes = vec!["0".to_owned()];
            PLAIN.codes(want, &mut codes);
            codes.join(";")
        };
        let changed = self.ink.map(|ink| {
            let mut codes = Vec::new();
            ink.codes(want, &mut codes);
            codes.join(";")
        });
        let codes = changed.filter(|changed| changed.len() <= anew.len()).unwrap_or(anew);
        out.extend(b"\x1b[");
        out.extend(codes.as_bytes());
        out.push(b'm');
        self.ink = Some(want);
    }
}

/// Cells of a line that are written in one go, with one ink.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stroke {
    row: usize,
    from: usize,
    to: usize,
    ground: Color,
    /// `None`: blanks only, any will do that has the ground.
    ink: Option<Ink>,
    /// It ends in a character of which all terminals think alike how wide it is.
    is_sure: bool,
}

impl Stroke {
    /// Takes one more cell on, where it can be written with the same ink.
    fn takes(&mut self, cell: &Cell) -> bool {
        match (is_blank(cell), self.ink) {
            (true, ink) => cell.bg == self.ground && !ink.is_some_and(|ink| ink.modifier.intersects(SHOWS_ON_BLANK)),
            (false, Some(ink)) => ink == Ink::of(cell),
            (false, None) if cell.bg == self.ground && !cell.modifier.intersects(SHOWS_ON_BLANK) => {
                self.ink = Some(Ink::of(cell));
                true
            }
            (false, None) => false,
        }
    }
}

/// What has to be written of a line.
fn strokes_of(row: usize, old: Option<&[Cell]>, new: &[Cell], strokes: &mut Vec<Stroke>) {
    // Strokes of this line begin here.
    let first = strokes.len();
    // Up to here a wide character of the old line has been cut.
    let mut torn = 0;
    let mut at = 0;
    while at < new.len() {
        let cell = &new[at];
        let width = width_of(cell);
        if old.is_some_and(|old| at >= torn && looks_same(&old[at], cell)) {
            at += width;
            continue;
        }
        for (n, cut) in old.unwrap_or_default().iter().enumerate().skip(at).take(width) {
            torn = torn.max(n + width_of(cut));
        }
        // Terminals differ in how wide they think that something is that isn't one plain character.
        let is_sure = width == 1 && cell.symbol().chars().nth(1).is_none();
        let to = at + width;
        let joins = strokes.len() > first
            && strokes.last_mut().is_some_and(|last| {
                let gap = &new[last.to..at];
                let stays = |gap: &[Cell], last: &mut Stroke| gap.iter().all(|cell| is_plain(cell) && last.takes(cell));
                // Tried on a copy: a gap that ends elsewhere leaves no trace.
                let mut longer = last.clone();
                let joins = last.is_sure && gap.len() <= LEAP_LEAST && stays(gap, &mut longer) && longer.takes(cell);
                if joins {
                    *last = Stroke { to, is_sure, ..longer };
                }
                joins
            });
        if !joins {
            let ink = (!is_blank(cell)).then(|| Ink::of(cell));
            strokes.push(Stroke { row, from: at, to, ground: cell.bg, ink, is_sure });
        }
        at = to;
    }
}

/// Moves the cursor from where it is, if that is known, to a row and a column.
fn go(cursor: Option<(usize, usize)>, (row, column): (usize, usize), out: &mut Vec<u8>) {
    let there = match column {
        0 => format!("\x1b[{}H", row + 1),
        _ => format!("\x1b[{};{}H", row + 1, column + 1),
    };
    let by = |count: usize, sign: char| match count {
        0 => String::new(),
        1 => format!("\x1b[{sign}"),
        _ => format!("\x1b[{count}{sign}"),
    };
    let from_here = cursor.filter(|(from, _)| *from <= row).map(|(from, at)| {
        let sideways = match at.cmp(&column) {
            Ordering::Less => by(column - at, 'C'),
            Ordering::Equal => String::new(),
            Ordering::Greater if at - column <= 3 => "\x08".repeat(at - column),
            Ordering::Greater => by(at - column, 'D'),
        };
        by(row - from, 'B') + &sideways
    });
    let shorter = from_here.filter(|way| way.len() < there.len()).unwrap_or(there);
    out.extend(shorter.as_bytes());
}

impl Ink {
    fn of(cell: &Cell) -> Ink {
        Ink { fg: cell.fg, bg: cell.bg, modifier: cell.modifier }
    }

    /// The parameters of SGR that lead from this to another.
    fn codes(self, to: Ink, codes: &mut Vec<String>) {
        let gone = self.modifier.difference(to.modifier);
        let mut come = to.modifier.difference(self.modifier);
        let weight = Modifier::BOLD.union(Modifier::DIM);
        for (off, of) in [
            ("22", weight),
            ("23", Modifier::ITALIC),
            ("24", Modifier::UNDERLINED),
            ("25", Modifier::SLOW_BLINK.union(Modifier::RAPID_BLINK)),
            ("27", Modifier::REVERSED),
            ("28", Modifier::HIDDEN),
            ("29", Modifier::CROSSED_OUT),
        ] {
            if gone.intersects(of) {
                codes.push(off.to_owned());
                // It takes all of its kind away.
                come |= to.modifier.intersection(of);
            }
        }
        for (on, of) in [
            ("1", Modifier::BOLD),
            ("2", Modifier::DIM),
            ("3", Modifier::ITALIC),
            ("4", Modifier::UNDERLINED),
            ("5", Modifier::SLOW_BLINK),
            ("6", Modifier::RAPID_BLINK),
            ("7", Modifier::REVERSED),
            ("8", Modifier::HIDDEN),
            ("9", Modifier::CROSSED_OUT),
        ] {
            if come.contains(of) {
                codes.push(on.to_owned());
            }
        }
        if self.fg != to.fg {
            codes.push(colour(to.fg, 30));
        }
        if self.bg != to.bg {
            codes.push(colour(to.bg, 40));
        }
    }
}

/// A colour's parameters; `base`: 30 for the foreground, 40 for the ground.
fn colour(colour: Color, base: u8) -> String {
    let of = |n: u8| (base + n).to_string();
    match colour {
        Color::Reset => of(9),
        Color::Black => of(0),
        Color::Red => of(1),
        Color::Green => of(2),
        Color::Yellow => of(3),
        Color::Blue => of(4),
        Color::Magenta => of(5),
        Color::Cyan => of(6),
        Color::Gray => of(7),
        Color::DarkGray => of(60),
        Color::LightRed => of(61),
        Color::LightGreen => of(62),
        Color::LightYellow => of(63),
        Color::LightBlue => of(64),
        Color::LightMagenta => of(65),
        Color::LightCyan => of(66),
        Color::White => of(67),
        Color::Indexed(n) => format!("{};5;{n}", of(8)),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", of(8)),
    }
}

/// Lines `top..=bottom` move up by so many, or down where it is negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shift {
    top: usize,
    bottom: usize,
    by: i64,
}

impl Shift {
    /// Has the terminal move the lines. What comes in at the end is whatever the terminal makes of it.
    fn carry_out(self, height: usize, out: &mut Vec<u8>) -> Vec<Option<usize>> {
        let sign = if self.by > 0 { 'S' } else { 'T' };
        write!(out, "\x1b[{};{}r\x1b[{}{sign}\x1b[r", self.top + 1, self.bottom + 1, self.by.abs())
            .expect("memory takes every byte");
        (0..height)
            .map(|line| match (self.top..=self.bottom).contains(&line) {
                true => source(line, self.by).filter(|from| (self.top..=self.bottom).contains(from)),
                false => Some(line),
            })
            .collect()
    }
}

/// The line that comes to stand at a line when all move up by so many.
fn source(line: usize, by: i64) -> Option<usize> {
    usize::try_from(i64::try_from(line).ok()? + by).ok()
}

/// The move of lines that saves most, where one saves anything.
fn shift(before: &Buffer, after: &Buffer) -> Option<Shift> {
    let height = usize::from(before.area.height);
    let lines: Vec<(&[Cell], &[Cell])> =
        (0..height).map(|line| (line_of(before, line), line_of(after, line))).collect();
    // Between which columns a line is another one.
    let spans: Vec<Option<(usize, usize)>> = lines
        .iter()
        .map(|(old, new)| {
            let differ = |at: &usize| old[*at].symbol() != new[*at].symbol();
            let first = (0..old.len()).find(differ)?;
            Some((first, (0..old.len()).rev().find(differ)? + 1))
        })
        .collect();
    if spans.iter().flatten().count() < SHIFT_LEAST {
        return None;
    }
    let most = i64::try_from(height / 2).unwrap_or(i64::MAX);
    let found = |by: i64| {
        let is_there = |line: usize| {
            let ((from, to), at) = spans[line].zip(source(line, by).filter(|at| *at < height))?;
            let same = |column: usize| lines[at].0[column].symbol() == lines[line].1[column].symbol();
            (from..to).all(same).then_some(())
        };
        (0..height).filter_map(is_there).count()
    };
    let (lines_found, by) =
        (1..=most).flat_map(|by| [by, -by]).map(|by| (found(by), by)).rev().max_by_key(|(n, _)| *n)?;
    if lines_found < SHIFT_LEAST {
        return None;
    }
    let plain: Vec<i64> = lines.iter().map(|(old, new)| weight(Some(old), new)).collect();
    let anew: Vec<i64> = lines.iter().map(|(_, new)| weight(None, new)).collect();
    // What a line gains when it comes from elsewhere, and loses when something unknown comes in.
    let gain: Vec<i64> = (0..height)
        .map(|line| match source(line, by).filter(|at| *at < height) {
            Some(at) => plain[line] - weight(Some(lines[at].0), lines[line].1),
            None => 0,
        })
        .collect();
    let cells = by.unsigned_abs() as usize;
    let mut best: Option<(i64, Shift)> = None;
    for top in 0..height {
        let mut gained = 0;
        for bottom in top + cells..height {
            // One line more is moved within; the lines that come in are at the other end of the move.
            let (moved, came) = match by > 0 {
                true => (bottom - cells, bottom + 1 - cells..bottom + 1),
                false => (bottom, top..top + cells),
            };
            gained += gain[moved];
            let lost: i64 = came.map(|line| anew[line] - plain[line]).sum();
            let saved = gained - lost - SHIFT_COST;
            if saved > best.map_or(0, |(most, _)| most) {
                best = Some((saved, Shift { top, bottom, by }));
            }
        }
    }
    best.map(|(_, shift)| shift)
}

/// About how many bytes make a line of another one, or of nothing that is known.
fn weight(old: Option<&[Cell]>, new: &[Cell]) -> i64 {
    let mut strokes = Vec::new();
    strokes_of(0, old, new, &mut strokes);
    let cells: usize = strokes.iter().map(|stroke| stroke.to - stroke.from).sum();
    let leaps = strokes.windows(2).filter(|pair| pair[0].to != pair[1].from).count() + usize::from(!strokes.is_empty());
    let bytes = |count: usize| i64::try_from(count).unwrap_or(i64::MAX / 64);
    bytes(cells) + MOVE_COST * bytes(leaps) + INK_COST * bytes(strokes.len())
}

fn line_of(buffer: &Buffer, line: usize) -> &[Cell] {
    let width = usize::from(buffer.area.width);
    &buffer.content[line * width..(line + 1) * width]
}

fn is_blank(cell: &Cell) -> bool {
    cell.symbol() == " " && !cell.modifier.intersects(SHOWS_ON_BLANK)
}

/// One column wide whatever the terminal.
fn is_plain(cell: &Cell) -> bool {
    cell.symbol().len() == 1
}

fn looks_same(one: &Cell, other: &Cell) -> bool {
    if is_blank(one) && is_blank(other) {
        return one.bg == other.bg;
    }
    one.fg == other.fg && one.bg == other.bg && one.modifier == other.modifier && one.symbol() == other.symbol()
}

/// Columns that a cell's character takes.
fn width_of(cell: &Cell) -> usize {
    let symbol = cell.symbol();
    if symbol.len() == 1 { 1 } else { symbol.width().max(1) }
}

#[cfg(test)]
mod tests;
