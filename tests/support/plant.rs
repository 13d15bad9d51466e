//! Plants hostile text in a model: wherever it keeps a text that could be another one. The same text becomes the same hostile
//! one everywhere, so that what belongs together still does.

use std::collections::{BTreeMap, BTreeSet};

use muster::tui::model::Model;
use serde_json::Value;

/// Numbers that look random and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635_d1f4_bb21)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// What hostile text is made of.
const PIECES: [&str; 40] = [
    "\u{1b}[2J",
    "\u{1b}]0;owned\u{7}",
    "\u{1b}]52;c;cm0gLXJm\u{1b}\\",
    "\u{1b}[6n",
    "\u{1b}P$q\u{1b}\\",
    "\u{9b}31m",
    "\u{90}x\u{9c}",
    "\u{0}",
    "\u{7}",
    "\u{8}\u{8}",
    "\u{7f}",
    "\r\n",
    "\t",
    "\u{b}\u{c}",
    "\u{85}",
    "\u{202e}",
    "\u{202a}x\u{202c}",
    "\u{2066}y\u{2069}",
    "\u{200f}",
    "\u{61c}",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{ad}",
    "\u{34f}",
    "\u{e0041}\u{e0042}",
    "漢字仮名",
    "ｗｉｄｅ",
    "한국어",
    "👍🏽",
    "👩\u{200d}👩\u{200d}👧",
    "❤\u{fe0f}",
    "1\u{fe0f}\u{20e3}",
    "🇳🇴",
    "e\u{301}o\u{308}",
    "لا إله",
    "क्षत्रिय",
    "…–│×",
    "swp14 'quoted' : b",
];

/// Stands in every planted text.
const SIGN: char = '¤';

pub fn is_planted(text: &str) -> bool {
    text.contains(SIGN)
}

/// A hostile text: mostly short, now and then of ten thousand characters.
fn hostile(dice: &mut Dice) -> String {
    let mut out = SIGN.to_string();
    let pieces = match dice.below(40) {
        0 => {
            // One piece over and over: long words without a blank, heaps of marks, walls of escapes.
            let piece = ["x", "\u{301}", "漢", "\u{1b}[2J", "\u{200b}", " y", "🇳"][dice.below(7)];
            out.extend(std::iter::repeat_n(piece, 10_000));
            return out;
        }
        1 => 1500,
        _ => 1 + dice.below(8),
    };
    for _ in 0..pieces {
        out.push_str(PIECES[dice.below(PIECES.len())]);
    }
    out
}

/// Knows which places of a model take any text.
#[derive(Default)]
pub struct Planter {
    /// By the path with `*` for indexes and keys that are none of a field.
    takes_any: BTreeMap<String, bool>,
}

impl Planter {
    /// The model with hostile text everywhere.
    pub fn plant(&mut self, model: &Model, dice: &mut Dice) -> Model {
        let whole = serde_json::to_value(model).unwrap();
        let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        collect(&whole, &mut String::new(), &mut texts);
        let small = pruned(&whole, &mut String::new(), &mut BTreeSet::new());
        // Lists of a length that is laid down cannot be pruned.
        let small = if serde_json::from_value::<Model>(small.clone()).is_ok() { small } else { whole.clone() };
        for (path, found) in &texts {
            if !self.takes_any.contains_key(path) {
                let other: BTreeMap<&str, String> =
                    found.iter().map(|text| (text.as_str(), format!("{SIGN}{text}"))).collect();
                let mut tried = small.clone();
                replace(&mut tried, &mut String::new(), &|at| at == path, &|text| other.get(text).cloned());
                self.takes_any.insert(path.clone(), serde_json::from_value::<Model>(tried).is_ok());
            }
        }
        let mut others: BTreeMap<&str, String> = BTreeMap::new();
        for (_, found) in texts.iter().filter(|(path, _)| self.takes_any[*path]) {
            for text in found {
                others.entry(text).or_insert_with(|| hostile(dice));
            }
        }
        let mut planted = whole.clone();
        let here = |path: &str| self.takes_any.get(path).copied().unwrap_or(false);
        replace(&mut planted, &mut String::new(), &here, &|text| others.get(text).cloned());
        serde_json::from_value(planted).expect("each place takes any text")
    }

    /// The places where text is planted.
    pub fn places(&self) -> Vec<&str> {
        self.takes_any.iter().filter(|(_, any)| **any).map(|(path, _)| path.as_str()).collect()
    }
}

/// The model with one item of each shape in its lists and maps: quicker to read than all of it, and as good to try with.
fn pruned(value: &Value, path: &mut String, seen: &mut BTreeSet<String>) -> Value {
    let mut is_new = |item: &Value, path: &mut String| {
        let mut texts = BTreeMap::new();
        collect(item, path, &mut texts);
        // Texts of all places of an item are to be tried with one that has them.
        let before = seen.len();
        seen.extend(texts.into_keys());
        seen.len() > before
    };
    match value {
        Value::Array(_) if path.starts_with(".usual") => value.clone(),
        Value::Array(items) => within(path, "*", |path| {
            let few: Vec<&Value> = items.iter().filter(|item| is_new(item, path)).collect();
            few.into_iter().map(|item| pruned(item, path, &mut BTreeSet::new())).collect()
        }),
        Value::Object(fields) => {
            let mut out = serde_json::Map::new();
            for (name, field) in fields {
                let kept = part(name) != "*" || within(path, "*", |path| is_new(field, path));
                if kept {
                    let field = within(path, part(name), |path| pruned(field, path, &mut BTreeSet::new()));
                    out.insert(name.clone(), field);
                }
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

/// The texts of each place.
fn collect(value: &Value, path: &mut String, texts: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::String(text) => texts.entry(path.clone()).or_default().push(text.clone()),
        Value::Array(items) => within(path, "*", |path| items.iter().for_each(|item| collect(item, path, texts))),
        Value::Object(fields) => {
            for (name, field) in fields {
                within(path, part(name), |path| collect(field, path, texts));
            }
        }
        _ => {}
    }
}

/// Puts other texts in some places; keys that are one of those texts go along.
fn replace(value: &mut Value, path: &mut String, here: &dyn Fn(&str) -> bool, other: &dyn Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) if here(path) => {
            if let Some(other) = other(text) {
                *text = other;
            }
        }
        Value::Array(items) => {
            within(path, "*", |path| items.iter_mut().for_each(|item| replace(item, path, here, other)));
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                within(path, part(name), |path| replace(field, path, here, other));
            }
            let named: Vec<String> = fields.keys().filter(|name| part(name) == "*").cloned().collect();
            for name in named {
                if let Some(other) = other(&name)
                    && let Some(field) = fields.remove(&name)
                {
                    fields.insert(other, field);
                }
            }
        }
        _ => {}
    }
}

/// A key that is a word of the program, or any.
fn part(name: &str) -> &str {
    let is_word = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    if is_word { name } else { "*" }
}

fn within<T>(path: &mut String, part: &str, work: impl FnOnce(&mut String) -> T) -> T {
    let before = path.len();
    path.push('.');
    path.push_str(part);
    let done = work(path);
    path.truncate(before);
    done
}
