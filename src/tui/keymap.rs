//! From keys to actions, by the table of actions.

use std::sync::LazyLock;

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

/// Every key or pair of keys with the row that it belongs to.
static KEYS: LazyLock<Vec<(Vec<Key>, &'static Def)>> = LazyLock::new(|| {
    let mut out = Vec::new();
    for def in TABLE {
        for keys in def.keys {
            let parsed = keys.split(' ').map(|k| k.parse().expect("a test parses every key of the table")).collect();
            out.push((parsed, def));
        }
    }
    out
});

/// Looks a key up in a place. `prefix` is the key before it, where that one was the first of two.
pub fn resolve(place: Where, prefix: Option<Key>, key: Key) -> Resolved {
    let here = || KEYS.iter().filter(|(_, def)| def.works_in(place));
    if let Some(first) = prefix
        && let Some((_, def)) = here().find(|(keys, _)| keys[..] == [first, key])
    {
        return Resolved::Action(def.action);
    }
    // A pair that came to nothing: the second key counts for itself.
    if let Some((_, def)) = here().find(|(keys, _)| keys[..] == [key]) {
        return Resolved::Action(def.action);
    }
    let begins = here().any(|(keys, _)| keys.len() == 2 && keys[0] == key);
    if begins { Resolved::Prefix } else { Resolved::Nothing }
}

/// How a key list reads on the screen: `g g` as it is, the arrows as words.
pub fn shown(def: &Def) -> &'static str {
    def.keys.first().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn two_keys_make_one_action_and_a_lost_pair_is_no_trap() {
        assert_eq!(resolve(Where::Fleet, None, key("g")), Resolved::Prefix);
        assert_eq!(resolve(Where::Fleet, Some(key("g")), key("g")), Resolved::Action(Action::First));
        assert_eq!(resolve(Where::Fleet, Some(key("g")), key("j")), Resolved::Action(Action::Down));
        assert_eq!(resolve(Where::Palette, None, key("g")), Resolved::Nothing);
        assert_eq!(resolve(Where::Fleet, None, key("tab")), Resolved::Action(Action::NextPane));
        assert_eq!(resolve(Where::Launch, None, key("tab")), Resolved::Action(Action::Down));
    }
}
