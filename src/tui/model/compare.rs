//! Two runs side by side on the screen: which, how far it is scrolled, and what lines there are for a width.

use serde::{Deserialize, Serialize};

use super::Model;
use crate::domain::compare::{Cell, Comparison, Mark, Row, Topic};
use crate::domain::ids::RunId;
use crate::tui::layout::WIDE;
use crate::tui::text;

/// The view of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compare {
    pub host: String,
    /// The older one first.
    pub runs: [RunId; 2],
    pub top: usize,
    /// Rows that agree show everywhere.
    pub show_all: bool,
}

/// A line of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Blank,
    /// What follows, how many of its rows differ, of how many.
    Heading(Topic, usize, usize),
    /// Name, and a line of each side beside each other. The name and the mark stand on the first line of a row.
    Beside {
        name: Option<String>,
        mark: Mark,
        left: Side,
        right: Side,
    },
    /// A row that has room for both sides behind its name, where it is narrow.
    Pair {
        name: String,
        mark: Mark,
        left: Side,
        right: Side,
    },
    /// The name of a row whose sides stand below.
    Name {
        name: String,
        mark: Mark,
    },
    /// A line of the first (`1`) or the second run.
    Under {
        n: Option<u8>,
        side: Side,
    },
    /// What is the same in both, in one line.
    Both {
        name: String,
        text: String,
    },
    /// So many rows that agree do not show; whether others do.
    Alike {
        rows: usize,
        more: bool,
    },
}

/// A line of one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// That run has no such part.
    None,
    Text {
        text: String,
        bad: bool,
    },
}

/// Columns: sign, name, and the word at the end.
pub const NAME_AT: u16 = 4;
pub const NAME: u16 = 20;
pub const WORD: u16 = 8;
/// Where it is narrow, names take as little as those of phases do.
pub const PAIR_NAME: u16 = 14;
/// A long sentence takes so many lines at most.
const LINES: usize = 4;

impl Model {
    /// The comparison that shows, once both runs are read.
    pub fn comparison(&self) -> Option<Comparison> {
        let [left, right] = self.compare()?.runs;
        Some(Comparison::of(self.runs.get(&left)?, self.runs.get(&right)?))
    }
}

/// Columns of each side, where they stand beside each other.
pub fn side_width(width: u16) -> u16 {
    width.saturating_sub(NAME_AT + NAME + WORD + 4) / 2
}

/// The lines for so many columns.
pub fn lines(compared: &Comparison, show_all: bool, width: u16) -> Vec<Line> {
    let mut out = Vec::new();
    for section in &compared.sections {
        if !out.is_empty() {
            out.push(Line::Blank);
        }
        let differ = section.differing();
        out.push(Line::Heading(section.topic, differ, section.rows.len()));
        let folds = section.topic.is_long() && !show_all;
        for row in section.rows.iter().filter(|row| !folds || row.mark != Mark::Same) {
            if width < WIDE { under(row, width, &mut out) } else { beside(row, width, &mut out) }
        }
        if folds && section.rows.len() > differ {
            out.push(Line::Alike { rows: section.rows.len() - differ, more: differ > 0 });
        }
    }
    out
}

fn beside(row: &Row, width: u16, out: &mut Vec<Line>) {
    let room = usize::from(side_width(width));
    let (left, right) = (wrapped(&row.left, room), wrapped(&row.right, room));
    for n in 0..left.len().max(right.len()) {
        let side = |of: &[Side]| of.get(n).cloned().unwrap_or(Side::Text { text: String::new(), bad: false });
        let name = (n == 0).then(|| row.name.clone());
        out.push(Line::Beside { name, mark: row.mark, left: side(&left), right: side(&right) });
    }
}

fn under(row: &Row, width: u16, out: &mut Vec<Line>) {
    let fits = |cell: &Cell| text::width(&cell.text) <= usize::from(width.saturating_sub(NAME_AT + PAIR_NAME + 4));
    if let (Mark::Same, Some(left), Some(right)) = (row.mark, &row.left, &row.right)
        && fits(left)
    {
        let text = if left.text == right.text { left.text.clone() } else { same_but(left, right) };
        return out.push(Line::Both { name: row.name.clone(), text });
    }
    let room = |cell: &Option<Cell>| cell.as_ref().map_or(1, |cell| text::width(&cell.text));
    let name = text::width(&row.name).max(usize::from(PAIR_NAME));
    // `1 24:40  2 11:44`, and the word at the end.
    let pair = usize::from(NAME_AT) + name + 1 + room(&row.left) + room(&row.right) + 6 + 1 + usize::from(WORD);
    if pair <= usize::from(width) {
        let side = |cell| wrapped(cell, usize::MAX).into_iter().next().unwrap_or(Side::None);
        let (left, right) = (side(&row.left), side(&row.right));
        return out.push(Line::Pair { name: row.name.clone(), mark: row.mark, left, right });
    }
    out.push(Line::Name { name: row.name.clone(), mark: row.mark });
    let is_one = row.mark == Mark::Same && row.left == row.right;
    let sides = [(Some(1).filter(|_| !is_one), &row.left), (Some(2), &row.right)];
    for (n, cell) in sides.into_iter().take(if is_one { 1 } else { 2 }) {
        let lines = wrapped(cell, usize::from(width.saturating_sub(NAME_AT + 4)));
        out.extend(lines.into_iter().enumerate().map(|(at, side)| Line::Under { n: n.filter(|_| at == 0), side }));
    }
}

/// `3:10 and 2:58 · done`: what agrees although it took other seconds.
fn same_but(left: &Cell, right: &Cell) -> String {
    match (left.text.split_once(" · "), right.text.split_once(" · ")) {
        (Some((a, rest)), Some((b, _))) if left.seconds.is_some() => format!("{a} and {b} · {rest}"),
        _ => format!("{} and {}", left.text, right.text),
    }
}

fn wrapped(cell: &Option<Cell>, room: usize) -> Vec<Side> {
    let Some(cell) = cell else { return vec![Side::None] };
    let lines = text::wrap_to(&crate::domain::text::neutralize(&cell.text), room, LINES);
    let side = |text| Side::Text { text, bad: cell.bad };
    if lines.is_empty() { vec![side(String::new())] } else { lines.into_iter().map(side).collect() }
}
