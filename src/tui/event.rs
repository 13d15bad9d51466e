//! Everything that can happen to the console, as values: one channel carries them, so a session can be played again.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::model::history::Past;
use super::model::host::{Host, LastRun, SystemHealth};
use super::model::place::Place;
use super::model::power::Looked;
use crate::app::Role;
use crate::domain::elevation::Elevation;
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::domain::plan::Plan;
use crate::domain::queue::Queued;
use crate::domain::request::EnrollParams;
use crate::domain::usual::Usual;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Time goes on. The only place where the model learns what time it is.
    Tick(Timestamp),
    Resize {
        width: u16,
        height: u16,
    },
    /// A key went down. The time tells a person from a paste (C-45).
    Key {
        key: Key,
        at: Timestamp,
    },
    /// A bracketed paste.
    Paste(String),
    /// The wheel, over a cell: up or down by so many notches.
    Wheel {
        column: u16,
        row: u16,
        notches: i16,
    },
    /// The left button, on a cell.
    Click {
        column: u16,
        row: u16,
        at: Timestamp,
    },
    /// The first hosts of a fleet whose others are still being read.
    FleetBegins(Vec<Host>),
    /// The fleet as the store has it.
    Fleet(Vec<Host>),
    /// What changed in it since: hosts that are others now or came, and the NetBox ids of those that are gone.
    Hosts {
        changed: Vec<Host>,
        gone: Vec<u64>,
    },
    /// The runs that are under way or ended lately, by the NetBox id of their host, the older first: records of them may
    /// have been missed.
    LastRuns(Vec<(u64, LastRun)>),
    Health(SystemHealth),
    /// A rack that was asked for.
    Rack {
        place: Place,
        answer: Result<Box<Elevation>, Refused>,
    },
    /// Who leads the state folder now.
    Role(Role),
    /// The runs that have not begun, in their order.
    Queue(Vec<Queued>),
    /// A run's records from its first one on.
    RunLoaded {
        run: RunId,
        records: Vec<RunRecord>,
    },
    /// The records of a run that somebody looks back at.
    Tape {
        run: RunId,
        records: Vec<RunRecord>,
    },
    /// The runs of a host, the newest first.
    History {
        netbox_id: u64,
        runs: Result<Vec<Past>, Refused>,
    },
    /// What everything usually takes.
    Usual(Usual),
    /// A run's records could not be read.
    RunLost {
        run: RunId,
        why: Refused,
    },
    /// One record more of a run under way.
    Record(RunRecord),
    /// What became of a submission or of a retry (`of` is the run that was repeated).
    Submitted {
        host: String,
        of: Option<RunId>,
        /// Show the run at once.
        open: bool,
        answer: Result<RunId, Refused>,
    },
    /// The plan of a host's enrollment with these switches.
    Planned {
        host: String,
        params: EnrollParams,
        plan: Result<Plan, Refused>,
    },
    /// How a host's power stands, and who lives on it.
    PowerLooked {
        host: String,
        looked: Looked,
    },
    /// What became of something else that was asked for.
    Answered(Result<String, Refused>),
    /// Somebody wants the program to stop for now (SIGTSTP from outside: a Ctrl-Z in the terminal is a key).
    Stopped,
    /// The program goes on after it was stopped, by itself or without being asked.
    Resumed,
    /// The terminal or the system wants the program to end.
    Ended(Ending),
}

impl Event {
    /// Whether somebody does it here and waits for what comes of it.
    pub fn is_by_hand(&self) -> bool {
        matches!(self, Event::Key { .. } | Event::Paste(_) | Event::Wheel { .. } | Event::Click { .. })
    }
}

/// A refusal in words: the fact, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub code: String,
    pub message: String,
    pub action: String,
}

/// Why the console ends without being asked by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The terminal is gone (SIGHUP).
    HungUp,
    /// SIGTERM.
    Terminated,
    /// SIGINT from outside: a Ctrl-C in the terminal is a key.
    Interrupted,
}

/// A key with its modifiers. Shift is part of the character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    pub code: Code,
    pub ctrl: bool,
    pub alt: bool,
}

/// Which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Code {
    Char(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
}

/// The words for keys in key lists and on the screen.
const NAMED: [(Code, &str); 15] = [
    (Code::Char(' '), "space"),
    (Code::Enter, "enter"),
    (Code::Esc, "esc"),
    (Code::Tab, "tab"),
    (Code::BackTab, "shift-tab"),
    (Code::Backspace, "backspace"),
    (Code::Delete, "delete"),
    (Code::Left, "left"),
    (Code::Right, "right"),
    (Code::Up, "up"),
    (Code::Down, "down"),
    (Code::Home, "home"),
    (Code::End, "end"),
    (Code::PageUp, "pgup"),
    (Code::PageDown, "pgdn"),
];

impl Key {
    /// A key without modifiers.
    pub const fn plain(code: Code) -> Self {
        Key { code, ctrl: false, alt: false }
    }

    /// A character with Ctrl.
    pub const fn ctrl(c: char) -> Self {
        Key { code: Code::Char(c), ctrl: true, alt: false }
    }

    /// The character that the key types, where it types one.
    pub fn typed(self) -> Option<char> {
        match self.code {
            Code::Char(c) if !self.ctrl && !self.alt => Some(c),
            _ => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match (NAMED.iter().find(|(code, _)| *code == self.code), self.code) {
            (Some((_, name)), _) => f.write_str(name),
            (None, Code::Char(c)) => write!(f, "{c}"),
            (None, other) => write!(f, "{other:?}"),
        }
    }
}

/// What a text is that names no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no key (examples: 'e', 'ctrl-d', 'space', 'enter', 'pgdn')")]
pub struct KeyError(String);

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (ctrl, rest) = match text.strip_prefix("ctrl-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (alt, rest) = match rest.strip_prefix("alt-") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if let Some((code, _)) = NAMED.iter().find(|(_, name)| *name == rest) {
            return Ok(Key { code: *code, ctrl, alt });
        }
        let mut chars = rest.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if !c.is_control() => Ok(Key { code: Code::Char(c), ctrl, alt }),
            _ => Err(KeyError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_as_it_is_written() {
        for text in ["e", "G", "?", "/", "ctrl-d", "alt-x", "space", "enter", "shift-tab", "pgdn", "["] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        assert!("spacebar".parse::<Key>().is_err());
        assert!("".parse::<Key>().is_err());
    }
}
