//! From keys to actions, by the table of actions and what the configuration says otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::action::{Action, Def, TABLE, Where};
use super::event::Key;

/// What a key, after an earlier one, stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    Action(Action),
    /// The first of two keys.
    Prefix,
    Nothing,
}

/// The keys of the table, with those that the configuration sets in place of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Keymap {
    /// By the name of the action.
    own: BTreeMap<String, Vec<String>>,
}

/// Why keys cannot be set so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeymapError {
    #[error("[console.keys] has '{name}', which is no action; the nearest is '{nearest}'")]
    Unknown { name: String, nearest: String },
    #[error(
        "[console.keys] '{name}': '{key}' is no key (a character, ctrl-x, enter, tab, f5, or two of them with a blank between)"
    )]
    Key { name: String, key: String },
    #[error("[console.keys] '{key}' would mean both '{one}' and '{other}' in {place}")]
    Twice { key: String, one: String, other: String, place: String },
    #[error("[console.keys] '{name}' needs a key: there is no other way to it")]
    Needed { name: String },
}

impl Keymap {
    /// The table with other keys for some actions. Of two rows with one name the first is meant: the other one is for
    /// fields to type in.
    pub fn with(own: BTreeMap<String, Vec<String>>) -> Result<Keymap, KeymapError> {
        for (name, keys) in &own {
            let Some(def) = TABLE.iter().find(|def| def.name == name) else {
                let names: Vec<&str> = TABLE.iter().map(|def| def.name).collect();
                let nearest = similar::get_close_matches(name.as_str(), &names, 1, 0.0);
                let nearest = nearest.first().copied().unwrap_or_default().to_owned();
                return Err(KeymapError::Unknown { name: name.clone(), nearest });
            };
            if keys.is_empty() && !def.in_palette {
                return Err(KeymapError::Needed { name: name.clone() });
            }
            let unread = keys.iter().find(|keys| !matches!(parsed(keys).as_deref(), Some([_] | [_, _])));
            if let Some(key) = unread {
                return Err(KeymapError::Key { name: name.clone(), key: key.clone() });
            }
        }
        let map = Keymap { own };
        map.unambiguous()?;
        Ok(map)
    }

    /// The keys of a row; the first is the one that is shown.
    pub fn keys<'a>(&'a self, def: &'a Def) -> Vec<&'a str> {
        // Asked at every key and frame: the table is looked through only where something was set.
        let is_first =
            || TABLE.iter().find(|other| other.name == def.name).is_some_and(|other| other.places == def.places);
        match self.own.get(def.name).filter(|_| is_first()) {
            Some(own) => own.iter().map(String::as_str).collect(),
            None => def.keys.to_vec(),
        }
    }

    /// How a row's key reads on the screen; empty where it has none.
    pub fn shown<'a>(&'a self, def: &'a Def) -> &'a str {
        self.keys(def).first().copied().unwrap_or_default()
    }

    /// Looks a key up in a place. `prefix` is the key before it, where that one was the first of two.
    pub fn resolve(&self, place: Where, prefix: Option<Key>, key: Key) -> Resolved {
        let here: Vec<(Vec<Key>, &Def)> =
            TABLE.iter().filter(|def| def.works_in(place)).flat_map(|def| self.of(def)).collect();
        if let Some(first) = prefix
            && let Some((_, def)) = here.iter().find(|(keys, _)| keys[..] == [first, key])
        {
            return Resolved::Action(def.action);
        }
        // A pair that came to nothing: the second key counts for itself.
        if let Some((_, def)) = here.iter().find(|(keys, _)| keys[..] == [key]) {
            return Resolved::Action(def.action);
        }
        let begins = here.iter().any(|(keys, _)| keys.len() == 2 && keys[0] == key);
        if begins { Resolved::Prefix } else { Resolved::Nothing }
    }

    fn of<'a>(&'a self, def: &'a Def) -> impl Iterator<Item = (Vec<Key>, &'a Def)> {
        self.keys(def).into_iter().filter_map(move |keys| Some((parsed(keys)?, def)))
    }

    /// A key that was set must not mean two things in a place. Of the table's own rows the first that works is meant.
    fn unambiguous(&self) -> Result<(), KeymapError> {
        for place in Where::ALL {
            let rows = || TABLE.iter().filter(|def| def.works_in(place));
            for def in rows().filter(|def| self.own.contains_key(def.name)) {
                let clash =
                    rows().filter(|other| other.name != def.name && other.action != def.action).find_map(|other| {
                        let key = self.keys(def).into_iter().find(|key| self.keys(other).contains(key))?;
                        Some((key.to_owned(), other))
                    });
                if let Some((key, other)) = clash {
                    let (one, other) = (def.name.to_owned(), other.name.to_owned());
                    return Err(KeymapError::Twice { key, one, other, place: place.words().to_owned() });
                }
            }
        }
        Ok(())
    }
}

/// One key or two; `None` where one of them is none.
fn parsed(keys: &str) -> Option<Vec<Key>> {
    keys.split(' ').map(|key| key.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    fn own(keys: &[(&str, &[&str])]) -> Result<Keymap, KeymapError> {
        let keys = keys.iter().map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|k| (*k).to_owned()).collect()));
        Keymap::with(keys.collect())
    }

    #[test]
    fn two_keys_make_one_action_and_a_lost_pair_is_no_trap() {
        let map = Keymap::default();
        assert_eq!(map.resolve(Where::Fleet, None, key("g")), Resolved::Prefix);
        assert_eq!(map.resolve(Where::Fleet, Some(key("g")), key("g")), Resolved::Action(Action::First));
        assert_eq!(map.resolve(Where::Fleet, Some(key("g")), key("j")), Resolved::Action(Action::Down));
        assert_eq!(map.resolve(Where::Palette, None, key("g")), Resolved::Nothing);
        assert_eq!(map.resolve(Where::Fleet, None, key("tab")), Resolved::Action(Action::NextPane));
        assert_eq!(map.resolve(Where::Launch, None, key("tab")), Resolved::Action(Action::Down));
    }

    #[test]
    fn keys_that_were_set_take_the_place_of_the_tables() {
        let map = own(&[("retry+inspect", &["F5", "ctrl-f"]), ("log", &[])]);
        assert!(matches!(map, Err(KeymapError::Key { .. })), "{map:?}");
        let map = own(&[("retry+inspect", &["ctrl-f"]), ("retry", &["f"]), ("log", &[])]).unwrap();
        assert_eq!(map.resolve(Where::Run, None, key("ctrl-f")), Resolved::Action(Action::RetryForced));
        assert_eq!(map.resolve(Where::Run, None, key("f")), Resolved::Action(Action::Retry));
        assert_eq!(map.resolve(Where::Run, None, key("r")), Resolved::Nothing);
        assert_eq!(map.resolve(Where::Fleet, None, key("v")), Resolved::Nothing, "the palette has it still");
        let map = own(&[("up", &["w"]), ("for you", &["W"])]).unwrap();
        assert_eq!(map.resolve(Where::Fleet, None, key("w")), Resolved::Action(Action::Up));
        assert_eq!(
            map.resolve(Where::Palette, None, key("ctrl-p")),
            Resolved::Action(Action::Up),
            "fields keep theirs"
        );
    }

    #[test]
    fn keys_that_cannot_be_set_say_why() {
        let said = |keys: &[(&str, &[&str])]| own(keys).unwrap_err().to_string();
        assert!(said(&[("retry+inspct", &["f"])]).ends_with("the nearest is 'retry+inspect'"));
        assert!(said(&[("retry", &["hyper-r"])]).contains("'hyper-r' is no key"));
        assert_eq!(said(&[("retry", &["e"])]), "[console.keys] 'e' would mean both 'retry' and 'enroll' in the fleet");
        assert!(said(&[("back", &[])]).contains("needs a key"));
    }
}
