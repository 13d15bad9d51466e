//! What a configuration may look like, written down while one is read: which keys are asked for, and as what. So the reader
//! stays the only list of keys, and an editor's schema cannot lack one.

use std::collections::{BTreeMap, BTreeSet};

/// What a value has to be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text,
    Flag,
    Texts,
    Whole {
        min: u64,
        max: u64,
    },
    /// At most so many.
    Seconds(f64),
    Choice(Vec<String>),
    Url,
    Secret,
    Trust,
    /// Texts, whole numbers and flags under names of one's own.
    TextsByName,
    /// Texts or lists of texts under names of one's own.
    ListsByName,
    /// Tables under names of one's own.
    Named,
}

/// Where a key stands; a name of one's own is `*`.
pub(super) type Place = Vec<String>;

/// A key of some table.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// How often, and how often it was one that may not be left out.
    pub times: usize,
    pub required: usize,
    /// The first line that has it.
    pub line: Option<usize>,
    /// More than one where the forms of a table differ.
    pub kinds: Vec<Kind>,
}

/// Everything that was asked for so far.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub keys: BTreeMap<Place, Asked>,
    /// How often each table was read.
    pub tables: BTreeMap<Place, usize>,
}

impl Shape {
    pub fn table(&mut self, place: &Place) {
        *self.tables.entry(place.clone()).or_default() += 1;
    }

    pub fn asked(&mut self, place: &Place, line: Option<usize>) {
        let asked = self.keys.entry(place.clone()).or_default();
        asked.times += 1;
        asked.line = asked.line.or(line);
    }

    pub fn required(&mut self, place: &Place) {
        self.keys.entry(place.clone()).or_default().required += 1;
    }

    pub fn is(&mut self, place: &Place, kind: Kind) {
        let kinds = &mut self.keys.entry(place.clone()).or_default().kinds;
        // A text that is then read as something narrower is that; forms of one table bring their words together.
        let known = kinds.iter().position(|known| matches!(known, Kind::Choice(_)));
        match (kind, known) {
            (Kind::Text, _) if !kinds.is_empty() => {}
            (Kind::Choice(words), Some(at)) => {
                let before = match &kinds[at] {
                    Kind::Choice(before) => before.clone(),
                    _ => Vec::new(),
                };
                let all: BTreeSet<String> = before.into_iter().chain(words).collect();
                kinds[at] = Kind::Choice(all.into_iter().collect());
            }
            (kind, _) if kinds.contains(&kind) => {}
            (kind, _) => {
                kinds.retain(|known| *known != Kind::Text);
                kinds.push(kind);
            }
        }
    }
}
