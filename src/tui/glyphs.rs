//! The signs of the console: one column wide, none with an emoji form, each with an ASCII twin.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar;

use crate::domain::compare::Mark;
use crate::domain::run_view::RunState;

/// How something stands. Each has a glyph of its own shape and a word; colour comes third.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    Ok,
    Failed,
    Warned,
    Unknown,
    Running,
    Waiting,
    Queued,
    Skipped,
    Refused,
    Stale,
    /// Nothing is there to stand anyhow.
    None,
}

impl Status {
    /// All of them, for the legend.
    pub const ALL: [Status; 11] = [
        Status::Ok,
        Status::Failed,
        Status::Warned,
        Status::Unknown,
        Status::Running,
        Status::Waiting,
        Status::Queued,
        Status::Skipped,
        Status::Refused,
        Status::Stale,
        Status::None,
    ];

    /// How a run stands as a whole.
    pub fn of(state: RunState) -> Status {
        match state {
            RunState::Queued => Status::Queued,
            RunState::Running | RunState::Cancelling => Status::Running,
            RunState::Succeeded => Status::Ok,
            RunState::Failed => Status::Failed,
            RunState::Cancelled => Status::Skipped,
        }
    }

    /// The word beside the glyph.
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "done",
            Status::Failed => "failed",
            Status::Warned => "warned",
            Status::Unknown => "unknown",
            Status::Running => "running",
            Status::Waiting => "waiting",
            Status::Queued => "queued",
            Status::Skipped => "skipped",
            Status::Refused => "refused",
            Status::Stale => "stale",
            Status::None => "none",
        }
    }
}

/// Which set of signs the terminal gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyphs {
    pub ascii: bool,
}

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Milliseconds of one step of the spinner.
pub const SPINNER_STEP_MS: i64 = 125;

impl Glyphs {
    fn pick(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.ascii { ascii } else { unicode }
    }

    /// The sign of a status. `now` turns the spinner of what runs.
    pub fn status(self, status: Status, now: Timestamp) -> &'static str {
        match status {
            Status::Ok => self.pick("✓", "+"),
            Status::Failed => self.pick("✗", "x"),
            Status::Warned => "!",
            Status::Unknown => "?",
            Status::Running if self.ascii => ">",
            Status::Running => {
                let step = now.as_millisecond().rem_euclid(SPINNER_STEP_MS * SPINNER.len() as i64) / SPINNER_STEP_MS;
                SPINNER[step as usize]
            }
            Status::Waiting => self.pick("◷", "~"),
            Status::Queued => self.pick("○", "o"),
            Status::Skipped => self.pick("–", "-"),
            Status::Refused => self.pick("⊘", "#"),
            Status::Stale => self.pick("◌", "."),
            Status::None => self.pick("·", "."),
        }
    }

    pub fn open(self) -> &'static str {
        self.pick("▾", "v")
    }

    pub fn closed(self) -> &'static str {
        self.pick("▸", ">")
    }

    /// The horizontal rule and the vertical one.
    pub fn rule(self) -> &'static str {
        self.pick("─", "-")
    }

    pub fn thick_rule(self) -> &'static str {
        self.pick("━", "=")
    }

    pub fn bar(self) -> &'static str {
        self.pick("│", "|")
    }

    /// The rail of a rack beside an empty unit.
    pub fn rail(self) -> &'static str {
        self.pick("┊", ":")
    }

    /// The left and the right side of a line of a device: its first line, its last, both or neither.
    pub fn sides(self, first: bool, last: bool) -> [&'static str; 2] {
        let [left, right] = match (first, last) {
            (true, true) => ["[", "]"],
            (true, false) => ["┌", "┐"],
            (false, false) => ["│", "│"],
            (false, true) => ["└", "┘"],
        };
        let ascii = if first || last { ["[", "]"] } else { ["|", "|"] };
        if self.ascii { ascii } else { [left, right] }
    }

    /// Where the focus or the cursor is.
    pub fn cursor(self) -> &'static str {
        self.pick("▌", ">")
    }

    pub fn marked(self) -> &'static str {
        self.pick("◆", "*")
    }

    pub fn arrow(self) -> &'static str {
        self.pick("→", "->")
    }

    /// Between the parts of a place.
    pub fn step(self) -> &'static str {
        self.pick("›", ">")
    }

    /// Beside the column that a table is sorted by.
    pub fn sorted(self, reversed: bool) -> &'static str {
        if reversed { self.pick("▴", "^") } else { self.pick("▾", "v") }
    }

    pub fn dot(self) -> &'static str {
        self.pick("·", "-")
    }

    pub fn checked(self, on: bool) -> &'static str {
        if on { self.pick("[✓]", "[x]") } else { "[ ]" }
    }

    /// The full and the empty part of a bar.
    pub fn filled(self) -> &'static str {
        self.pick("━", "#")
    }

    pub fn track(self) -> &'static str {
        self.pick("─", ".")
    }

    /// A cell of a link's history: up, down, not reported, not read.
    pub fn level(self, up: Option<Option<bool>>) -> &'static str {
        match up {
            Some(Some(true)) => self.pick("█", "#"),
            Some(Some(false)) => self.pick("▁", "_"),
            Some(None) => "?",
            None => self.pick("·", " "),
        }
    }

    /// How two runs stand to each other in a row.
    pub fn mark(self, mark: Mark) -> &'static str {
        match mark {
            Mark::Same => " ",
            Mark::Differs => self.pick("≠", "!"),
            Mark::OnlyLeft => "<",
            Mark::OnlyRight => ">",
        }
    }

    /// A corner or side of a frame: top left, top right, bottom left, bottom right.
    pub fn corners(self) -> [&'static str; 4] {
        if self.ascii { ["+"; 4] } else { ["┏", "┓", "┗", "┛"] }
    }

    pub fn thick_bar(self) -> &'static str {
        self.pick("┃", "|")
    }
}

/// What stands for a character on a terminal that has only ASCII.
pub fn to_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '…' => out.push('~'),
            '–' | '—' | '─' | '·' => out.push('-'),
            '→' => out.push_str("->"),
            '⇄' => out.push_str("<>"),
            '×' => out.push('x'),
            '‘' | '’' => out.push('\''),
            '“' | '”' => out.push('"'),
            '›' | '»' => out.push('>'),
            '✓' => out.push('+'),
            '✗' => out.push('x'),
            // As many columns as it had: what stands behind it stays where it is.
            c => out.extend(std::iter::repeat_n('?', c.width().unwrap_or(0))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Proves: U6
    #[test]
    fn no_two_statuses_share_a_shape_in_either_set() {
        let now = Timestamp::UNIX_EPOCH;
        for ascii in [false, true] {
            let glyphs = Glyphs { ascii };
            let mut seen = BTreeSet::new();
            // Nothing and stale are both a dot in ASCII; one of them never stands where the other can.
            for status in Status::ALL.into_iter().filter(|s| *s != Status::None) {
                let sign = glyphs.status(status, now);
                assert!(seen.insert(sign), "{status:?} looks like another");
                assert_eq!(unicode_width::UnicodeWidthStr::width(sign), 1, "{status:?}");
                assert!(!ascii || sign.is_ascii(), "{status:?}");
            }
        }
    }
}
