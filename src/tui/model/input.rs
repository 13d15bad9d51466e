//! A line of text that is being typed.

use serde::{Deserialize, Serialize};

use crate::domain::text::neutralize;
use crate::tui::event::{Code, Key};

/// Text with a cursor. Longer than `MAX` characters it doesn't grow: nobody types that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Input {
    pub text: String,
    /// In characters from the start.
    pub cursor: usize,
}

const MAX: usize = 200;

impl Input {
    /// With a text, the cursor behind it.
    pub fn with(text: &str) -> Input {
        Input { text: text.to_owned(), cursor: text.chars().count() }
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes a key. Returns whether it was one for a line of text.
    pub fn key(&mut self, key: Key) -> bool {
        if let Some(c) = key.typed() {
            self.insert(&c.to_string());
            return true;
        }
        match (key.code, key.ctrl) {
            (Code::Backspace, false) | (Code::Char('h'), true) => {
                if self.cursor > 0 {
                    self.cursor -= 1;
                    self.remove(self.cursor, self.cursor + 1);
                }
            }
            (Code::Delete, _) => self.remove(self.cursor, self.cursor + 1),
            (Code::Left, _) => self.cursor = self.cursor.saturating_sub(1),
            (Code::Right, _) => self.cursor = (self.cursor + 1).min(self.len()),
            (Code::Home, _) | (Code::Char('a'), true) => self.cursor = 0,
            (Code::End, _) | (Code::Char('e'), true) => self.cursor = self.len(),
            (Code::Char('u'), true) => {
                self.remove(0, self.cursor);
                self.cursor = 0;
            }
            (Code::Char('w'), true) | (Code::Backspace, true) => {
                let before: Vec<char> = self.text.chars().take(self.cursor).collect();
                let word = before.iter().rev().skip_while(|c| c.is_whitespace()).skip_while(|c| !c.is_whitespace());
                let from = word.count();
                self.remove(from, self.cursor);
                self.cursor = from;
            }
            _ => return false,
        }
        true
    }

    /// Puts a text in at the cursor: typed, or pasted and then made harmless.
    pub fn insert(&mut self, text: &str) {
        let room = MAX.saturating_sub(self.len());
        let clean: String = neutralize(text).chars().take(room).collect();
        let at = self.byte(self.cursor);
        self.text.insert_str(at, &clean);
        self.cursor += clean.chars().count();
    }

    fn remove(&mut self, from: usize, to: usize) {
        let (from, to) = (self.byte(from), self.byte(to));
        self.text.replace_range(from..to, "");
    }

    fn len(&self) -> usize {
        self.text.chars().count()
    }

    fn byte(&self, chars: usize) -> usize {
        self.text.char_indices().nth(chars).map_or(self.text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn type_keys(input: &mut Input, keys: &str) {
        for word in keys.split(' ') {
            assert!(input.key(word.parse().unwrap()), "{word}");
        }
    }

    #[test]
    fn the_keys_of_a_line_do_what_hands_expect() {
        let mut input = Input::default();
        type_keys(&mut input, "a ä space b c");
        assert_eq!((input.text.as_str(), input.cursor), ("aä bc", 5));
        type_keys(&mut input, "ctrl-w");
        assert_eq!(input.text, "aä ");
        type_keys(&mut input, "home delete x end y left backspace");
        assert_eq!((input.text.as_str(), input.cursor), ("xäy", 2));
        type_keys(&mut input, "ctrl-u");
        assert_eq!((input.text.as_str(), input.cursor), ("y", 0));
        assert!(!input.key("enter".parse().unwrap()));
    }

    #[test]
    fn a_paste_brings_no_line_ends_and_no_escapes() {
        let mut input = Input::default();
        input.insert("gpu\r\n\u{1b}[2J");
        assert_eq!(input.text, "gpu  \u{fffd}[2J");
    }

    proptest! {
        #[test]
        fn the_cursor_never_leaves_the_text(keys in prop::collection::vec(0usize..9, 0..40)) {
            let mut input = Input::default();
            for key in keys {
                let name = ["a", "ä", "space", "backspace", "delete", "left", "right", "ctrl-w", "ctrl-u"][key];
                input.key(name.parse().unwrap());
                prop_assert!(input.cursor <= input.text.chars().count());
            }
        }
    }
}
