//! Reads typed values out of TOML tables, and remembers every mistake with its place.
//!
//! A [`Section`] is asked for its keys one by one; at its end, keys that nobody asked for are the unknown ones. So the
//! reader is the only list of keys that there is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};
use url::Url;

use super::error::{ConfigError, Excerpt};
use super::nearest::nearest;
use super::settings::{SecretRef, Trust};
use super::shape::{Kind, Place, Shape};
use crate::domain::text::neutralize_to;

/// The file that is read, and what was found so far.
pub(super) struct Doc<'a> {
    /// As messages name it.
    pub file: &'a str,
    /// What relative paths are relative to.
    pub folder: &'a Path,
    pub text: &'a str,
    pub errors: RefCell<Vec<ConfigError>>,
    pub warnings: RefCell<Vec<ConfigError>>,
    /// Keys that were asked for and are not in the file.
    pub absent: RefCell<BTreeSet<String>>,
    /// Those that are, with their lines.
    pub given: RefCell<BTreeMap<String, usize>>,
    /// Everything that was asked for, and as what.
    pub shape: RefCell<Shape>,
}

impl<'a> Doc<'a> {
    pub fn new(file: &'a str, folder: &'a Path, text: &'a str) -> Self {
        Doc {
            file,
            folder,
            text,
            errors: RefCell::default(),
            warnings: RefCell::default(),
            absent: RefCell::default(),
            given: RefCell::default(),
            shape: RefCell::default(),
        }
    }

    /// A finding at a place of the text.
    pub fn finding(&self, at: usize, key: &str, message: impl Into<String>) -> ConfigError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let begins = before.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let text = self.text.get(begins..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let excerpt = Excerpt::of(text, self.text.get(begins..at).map_or(0, |before| before.chars().count()));
        ConfigError {
            file: self.file.to_owned(),
            line: Some(line),
            key: key.to_owned(),
            message: message.into(),
            excerpt,
        }
    }

    fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|b| **b == b'\n').count() + 1
    }

    fn error(&self, at: usize, key: &str, message: impl Into<String>) {
        let finding = self.finding(at, key, message);
        self.errors.borrow_mut().push(finding);
    }
}

/// A table of the file.
pub(super) struct Section<'a> {
    doc: &'a Doc<'a>,
    /// `sites.osl1.dhcp`; empty for the whole file.
    path: String,
    place: Place,
    /// Where it begins.
    at: usize,
    items: &'a DeTable<'a>,
    asked: RefCell<Vec<&'static str>>,
    missing: RefCell<Vec<&'static str>>,
}

/// A value of the file, with its place.
pub(super) struct Item<'a> {
    doc: &'a Doc<'a>,
    key: String,
    place: Place,
    at: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Section<'a> {
    pub fn root(doc: &'a Doc<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self::new(doc, String::new(), Place::new(), 0, table.get_ref())
    }

    fn new(doc: &'a Doc<'a>, path: String, place: Place, at: usize, items: &'a DeTable<'a>) -> Self {
        doc.shape.borrow_mut().table(&place);
        Section { doc, path, place, at, items, asked: RefCell::default(), missing: RefCell::default() }
    }

    fn place_of(&self, key: &str) -> Place {
        self.place.iter().cloned().chain([key.to_owned()]).collect()
    }

    fn is(&self, kind: Kind) {
        self.doc.shape.borrow_mut().is(&self.place, kind);
    }

    /// A key of this table as messages name it.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// An error about the table as a whole.
    pub fn fault(&self, message: impl Into<String>) {
        self.doc.error(self.at, &self.path, message);
    }

    /// An error at one of its keys, or at the table where the key is left out.
    pub fn fault_at(&self, key: &str, message: impl Into<String>) {
        let at =
            self.items.iter().find(|(name, _)| name.get_ref() == key).map_or(self.at, |(name, _)| name.span().start);
        self.doc.error(at, &self.path_of(key), message);
    }

    /// Something that is allowed and should be looked at.
    pub fn warn(&self, key: &str, message: impl Into<String>) {
        let at =
            self.items.iter().find(|(name, _)| name.get_ref() == key).map_or(self.at, |(name, _)| name.span().start);
        let finding = self.doc.finding(at, &self.path_of(key), message);
        self.doc.warnings.borrow_mut().push(finding);
    }

    /// Whether the key is there, right or wrong.
    pub fn has(&self, key: &str) -> bool {
        self.items.iter().any(|(name, _)| name.get_ref() == key)
    }

    /// A value that may be left out.
    pub fn item(&self, key: &'static str) -> Option<Item<'a>> {
        self.asked.borrow_mut().push(key);
        let found = self.items.iter().find(|(name, _)| name.get_ref() == key);
        let line = found.map(|(name, _)| self.doc.line(name.span().start));
        let place = self.place_of(key);
        self.doc.shape.borrow_mut().asked(&place, line);
        let Some((name, value)) = found else {
            self.doc.absent.borrow_mut().insert(self.path_of(key));
            return None;
        };
        self.doc.given.borrow_mut().extend(line.map(|line| (self.path_of(key), line)));
        Some(Item { doc: self.doc, key: self.path_of(key), place, at: name.span().start, value: value.get_ref() })
    }

    /// A key that another form of this table has: editors are to know it.
    pub fn known(&self, key: &'static str, kind: Kind) {
        let place = self.place_of(key);
        let mut shape = self.doc.shape.borrow_mut();
        shape.asked(&place, None);
        shape.is(&place, kind);
    }

    /// A value that may not be left out.
    pub fn required(&self, key: &'static str) -> Option<Item<'a>> {
        let item = self.item(key);
        self.doc.shape.borrow_mut().required(&self.place_of(key));
        if item.is_none() {
            self.missing.borrow_mut().push(key);
        }
        item
    }

    pub fn text_or(&self, key: &'static str, default: &str) -> String {
        self.item(key).and_then(|item| item.text()).unwrap_or(default).to_owned()
    }

    pub fn text(&self, key: &'static str) -> Option<String> {
        self.required(key)?.text().map(str::to_owned)
    }

    pub fn optional_text(&self, key: &'static str) -> Option<String> {
        self.item(key)?.text().map(str::to_owned)
    }

    pub fn flag_or(&self, key: &'static str, default: bool) -> bool {
        self.item(key).and_then(|item| item.flag()).unwrap_or(default)
    }

    /// Seconds, fractions allowed: more than nothing, and at most `max`.
    pub fn seconds_or(&self, key: &'static str, default: Duration, max: Duration) -> Duration {
        self.item(key).and_then(|item| item.seconds(max)).unwrap_or(default)
    }

    pub fn whole_or(&self, key: &'static str, default: u64, min: u64, max: u64) -> u64 {
        self.item(key).and_then(|item| item.whole(min, max)).unwrap_or(default)
    }

    pub fn url(&self, key: &'static str) -> Option<Url> {
        let url = self.required(key)?.url()?;
        if url.scheme() == "http" && !is_loopback(&url) {
            self.warn(key, "credentials travel in clear over http");
        }
        Some(url)
    }

    pub fn secret(&self, key: &'static str) -> Option<SecretRef> {
        self.required(key)?.secret()
    }

    pub fn trust(&self, key: &'static str) -> Trust {
        let trust = self.item(key).and_then(|item| item.trust()).unwrap_or(Trust::System);
        if trust == Trust::Anything {
            self.warn(key, "any certificate is taken: whoever is in between reads the credentials");
        }
        trust
    }

    /// One of some words.
    pub fn choice<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.required(key)?.choice(words)
    }

    /// A table inside this one.
    pub fn section(&self, key: &'static str) -> Option<Section<'a>> {
        self.item(key)?.section()
    }

    /// A table of tables that are named by whoever writes the file, in the order of the file.
    pub fn named(&self, key: &'static str) -> Vec<(String, Section<'a>)> {
        let Some(outer) = self.section(key) else { return Vec::new() };
        outer.is(Kind::Named);
        let mut inner: Vec<_> = outer.items.iter().collect();
        inner.sort_by_key(|(name, _)| name.span().start);
        inner
            .into_iter()
            .filter_map(|(name, value)| {
                let item = Item {
                    doc: self.doc,
                    key: outer.path_of(name.get_ref()),
                    place: outer.place_of("*"),
                    at: name.span().start,
                    value: value.get_ref(),
                };
                Some((name.get_ref().to_string(), item.section()?))
            })
            .collect()
    }

    /// Texts, whole numbers and flags under names that whoever writes the file knows, as text.
    pub fn texts_by_name(&self) -> BTreeMap<String, String> {
        self.is(Kind::TextsByName);
        let mut texts = BTreeMap::new();
        for (name, value) in self.items.iter() {
            let text = match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                DeValue::Boolean(flag) => Some(flag.to_string()),
                DeValue::Integer(number) => {
                    i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n.to_string())
                }
                _ => None,
            };
            match text {
                Some(text) => drop(texts.insert(name.get_ref().to_string(), text)),
                None => self.fault_at(name.get_ref(), "is no text, whole number or flag"),
            }
        }
        texts
    }

    /// Texts or lists of texts under names that whoever writes the file knows.
    pub fn lists_by_name(&self) -> BTreeMap<String, Vec<String>> {
        self.is(Kind::ListsByName);
        let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        };
        let mut lists = BTreeMap::new();
        for (name, value) in self.items.iter() {
            let list = match value.get_ref() {
                DeValue::Array(items) => items.iter().map(text).collect::<Option<Vec<String>>>(),
                _ => text(value).map(|text| vec![text]),
            };
            match list {
                Some(list) => drop(lists.insert(name.get_ref().to_string(), list)),
                None => self.fault_at(name.get_ref(), "is no text and no list of texts"),
            }
        }
        lists
    }

    /// Whether every key that was asked for so far was fine; tells what is missing and what nobody knows.
    pub fn finish(self) {
        let asked = self.asked.borrow();
        let mut missing = self.missing.borrow().clone();
        let mut unknown: Vec<_> = self.items.iter().filter(|(n, _)| !asked.contains(&n.get_ref().as_ref())).collect();
        unknown.sort_by_key(|(name, _)| name.span().start);
        for (name, _) in unknown {
            let meant = nearest(name.get_ref(), asked.iter().copied());
            let message = match meant {
                Some(meant) => format!("unknown key; is '{meant}' meant?"),
                None => format!("unknown key; known here: '{}'", sorted(&asked).join("', '")),
            };
            // A required key that is only misspelled is one mistake, not two.
            missing.retain(|key| meant != Some(*key));
            self.doc.error(name.span().start, &self.path_of(&neutralize_to(name.get_ref(), 60)), message);
        }
        for key in missing {
            self.doc.error(self.at, &self.path_of(key), "is missing");
        }
    }
}

fn sorted<'k>(keys: &[&'k str]) -> Vec<&'k str> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    keys
}

impl<'a> Item<'a> {
    /// Writes down what it is read as.
    fn is(&self, kind: Kind) {
        self.doc.shape.borrow_mut().is(&self.place, kind);
    }

    pub fn fault<T>(&self, message: impl Into<String>) -> Option<T> {
        self.doc.error(self.at, &self.key, message);
        None
    }

    /// A text that is not empty.
    pub fn text(&self) -> Option<&'a str> {
        self.is(Kind::Text);
        match self.value {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.as_ref()),
            DeValue::String(_) => self.fault("is empty"),
            other => self.wrong_type("a text in quotes", other),
        }
    }

    pub fn flag(&self) -> Option<bool> {
        self.is(Kind::Flag);
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            other => self.wrong_type("true or false", other),
        }
    }

    /// A list of texts, none of them twice.
    pub fn texts(&self) -> Option<Vec<String>> {
        self.is(Kind::Texts);
        let DeValue::Array(items) = self.value else { return self.wrong_type("a list of texts in quotes", self.value) };
        let mut texts: Vec<String> = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::String(text) if text.trim().is_empty() => return self.fault("has an empty text in it"),
                DeValue::String(text) if texts.iter().any(|t| t == text) => {
                    return self.fault(format!("has {} twice", shown(text)));
                }
                DeValue::String(text) => texts.push(text.to_string()),
                other => return self.wrong_type("a list of texts in quotes", other),
            }
        }
        Some(texts)
    }

    pub fn whole(&self, min: u64, max: u64) -> Option<u64> {
        self.is(Kind::Whole { min, max });
        let DeValue::Integer(number) = self.value else { return self.wrong_type("a whole number", self.value) };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) if (min..=max).contains(&value) => Some(value),
            _ => self.fault(format!("'{number}' is not between {min} and {max}")),
        }
    }

    pub fn seconds(&self, max: Duration) -> Option<Duration> {
        self.is(Kind::Seconds(max.as_secs_f64()));
        let text = match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => return self.wrong_type("a number of seconds", other),
        };
        let span = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
        match span {
            Some(span) if !span.is_zero() && span <= max => Some(span),
            _ => self.fault(format!("'{text}' is not more than 0 and at most {} seconds", max.as_secs())),
        }
    }

    pub fn choice<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        self.is(Kind::Choice(words.iter().map(|(word, _)| (*word).to_owned()).collect()));
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let allowed = names.join("', '");
        self.fault(match nearest(text, names.iter().copied()) {
            Some(meant) => format!("{} is not one of '{allowed}'; is '{meant}' meant?", shown(text)),
            None => format!("{} is not one of '{allowed}'", shown(text)),
        })
    }

    pub fn url(&self) -> Option<Url> {
        self.is(Kind::Url);
        let text = self.text()?;
        let url = match Url::parse(text) {
            // With an '@' in it there may be a password in it.
            Err(_) if text.contains('@') => return self.fault("is not a URL"),
            Err(cause) => return self.fault(format!("{} is not a URL: {cause}", shown(text))),
            Ok(url) => url,
        };
        if !url.username().is_empty() || url.password().is_some() {
            return self.fault("has credentials in it, which do not belong in this file");
        }
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return self.fault(format!("{} does not begin with 'https://' or 'http://' and a host", shown(text)));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return self.fault(format!("{} goes on after its path", shown(text)));
        }
        Some(url)
    }

    /// A reference to a secret. A value that is none may be a secret in clear, so it is never shown (K2).
    pub fn secret(&self) -> Option<SecretRef> {
        self.is(Kind::Secret);
        let how = "write 'env:NAME', 'file:PATH' or 'vault:ITEM/FIELD'";
        let DeValue::String(text) = self.value else {
            return self.fault(format!("expected a reference to a secret as a text in quotes; {how}"));
        };
        let text = text.trim();
        match text.split_once(':') {
            Some(("env", name)) if is_variable(name) => Some(SecretRef::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Some(SecretRef::File(self.path(path))),
            Some(("vault", place)) => match place.split_once('/') {
                Some((item, field)) if !item.is_empty() && !field.is_empty() => {
                    Some(SecretRef::Vault { item: item.to_owned(), field: field.to_owned() })
                }
                _ => self.fault("'vault:' is not followed by ITEM/FIELD"),
            },
            Some(("env", _)) => self.fault("'env:' is not followed by the name of an environment variable"),
            Some(("file", _)) => self.fault("'file:' is not followed by a path"),
            Some(("op", _)) => {
                self.fault(format!("1Password is a vault: set kind of [vault] to 'connect' or 'op', and {how}"))
            }
            _ => {
                self.fault(format!("is not a reference to a secret; {how}. The value is not shown: it may be a secret"))
            }
        }
    }

    pub fn trust(&self) -> Option<Trust> {
        self.is(Kind::Trust);
        let text = self.text()?;
        match text.split_once(':') {
            None if text == "system" => Some(Trust::System),
            None if text == "anything" => Some(Trust::Anything),
            Some(("ca", path)) if !path.is_empty() => Some(Trust::Ca(self.path(path))),
            Some(("sha256", digits)) => match fingerprint(digits) {
                Some(bytes) => Some(Trust::Pinned(bytes)),
                None => self.fault("'sha256:' is not followed by 64 hex digits"),
            },
            _ => self.fault(format!("{} is not one of 'system', 'ca:PATH', 'sha256:HEX', 'anything'", shown(text))),
        }
    }

    /// An address to listen at, with a port.
    pub fn socket(&self, like: &str) -> Option<SocketAddr> {
        let text = self.text()?;
        text.parse::<SocketAddr>().ok().filter(|at| at.port() != 0).or_else(|| {
            let (_, port) = like.rsplit_once(':').unwrap_or_default();
            self.fault(format!("{} is not an address and a port, as in '{like}' or '[::1]:{port}'", shown(text)))
        })
    }

    /// A path; a relative one is relative to the file.
    pub fn path(&self, text: &str) -> PathBuf {
        self.doc.folder.join(text)
    }

    pub fn section(&self) -> Option<Section<'a>> {
        match self.value {
            DeValue::Table(items) => Some(Section::new(self.doc, self.key.clone(), self.place.clone(), self.at, items)),
            other => self.wrong_type("a table", other),
        }
    }

    fn wrong_type<T>(&self, expected: &str, found: &DeValue<'_>) -> Option<T> {
        let found = match found {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(format!("expected {expected}, found {found}"))
    }
}

/// A value of the file as a message shows it.
pub(super) fn shown(text: &str) -> String {
    format!("'{}'", neutralize_to(text, 80))
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        // Of a scheme that the web does not know, an IPv4 address is taken for a name.
        Some(url::Host::Domain(name)) => {
            name == "localhost" || name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// 64 hex digits, with or without colons between the octets.
fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut bytes = [0u8; 32];
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}
