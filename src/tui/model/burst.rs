//! Keys that come faster than hands: a scanner's, or those of a paste without brackets (U10, C-45).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::fleet::Fleet;
use super::{Model, Popup, Screen, ToastKind};
use crate::tui::action::Action;
use crate::tui::event::Key;

/// Characters that came one right behind the other, from the first one on, which may yet have come alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    pub text: String,
    pub began: Timestamp,
    /// When the latest of them came.
    pub at: Timestamp,
    last: Key,
    /// How often a key was another one than that before it. A key that is held down repeats itself, and hands that roll
    /// over two keys change once.
    changes: usize,
    /// Those that are not done yet.
    pub waiting: Vec<Waiting>,
    /// An action of the first key that had to wait, and will not be done.
    pub held: Option<Action>,
    before: Before,
}

/// A key that waits whether more come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub key: Key,
    pub at: Timestamp,
    /// Milliseconds since the key before it.
    pub gap: i64,
}

/// How the console stood before the first key, which is done at once: nobody is to wait for a key that comes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Before {
    fleet: Box<Fleet>,
    screens: Vec<Screen>,
    popup: Option<Popup>,
    replaying: bool,
}

impl Burst {
    /// Begins with a key that is about to be done.
    pub fn begin(model: &mut Model, key: Key, c: char, at: Timestamp) -> Burst {
        let before = Before {
            fleet: Box::new(model.fleet.stand()),
            screens: model.screens.clone(),
            popup: model.popup.clone(),
            replaying: model.tape.is_some(),
        };
        let (text, waiting) = (c.to_string(), Vec::new());
        Burst { text, began: at, at, last: key, changes: 0, waiting, held: None, before }
    }

    /// Takes one more character.
    pub fn take(&mut self, key: Key, c: char, at: Timestamp) {
        self.text.push(c);
        self.changes += usize::from(key != self.last);
        (self.last, self.at) = (key, at);
    }

    /// One key and its repeats so far: that is how hands hold a key down.
    pub fn is_one_key(&self) -> bool {
        self.changes == 0
    }

    /// Hands cannot have typed this.
    pub fn is_no_hand(&self) -> bool {
        self.changes >= 2
    }

    /// Puts the console back to where the first key found it.
    pub fn undo(&self, model: &mut Model) {
        model.fleet.stand_again(&self.before.fleet);
        model.screens.clone_from(&self.before.screens);
        model.popup.clone_from(&self.before.popup);
        if !self.before.replaying {
            model.tape = None;
        }
        // What the first key could not do it has said.
        model.toasts.retain(|toast| toast.kind != ToastKind::Warning || toast.at < self.began);
        (model.keys.prefix, model.keys.held) = (None, None);
    }
}
