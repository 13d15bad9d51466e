//! The filter of the fleet: fuzzy words, `key:value`, and `!` before either to invert it.

use super::host::{Host, unit_text};
use crate::domain::run_view::RunState;
use crate::domain::word::Word;

/// A filter that is read once and asked for every host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    inverted: bool,
    key: Option<Key>,
    /// Lower case.
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Host,
    Site,
    Location,
    Rack,
    Unit,
    Status,
    Ironic,
    Run,
    State,
    Owner,
    Code,
    Class,
    Model,
    Serial,
    Tag,
}

/// The keys, as they are typed, with what they mean.
pub const KEYS: [(&str, &str); 15] = [
    ("host", "device name"),
    ("site", "NetBox site"),
    ("location", "NetBox location"),
    ("rack", "rack"),
    ("u", "rack unit"),
    ("status", "NetBox status"),
    ("ironic", "provision state, - for none"),
    ("run", "failed, running, queued, succeeded, cancelled, never, refused"),
    ("state", "either of these two"),
    ("owner", "who mends it, as the column has it: you, netops, infra-eng, fleet-mgr"),
    ("code", "failure or refusal code"),
    ("class", "device class or platform class"),
    ("model", "manufacturer and model"),
    ("serial", "serial or asset tag"),
    ("tag", "NetBox tag"),
];

const KEY_ORDER: [Key; 15] = [
    Key::Host,
    Key::Site,
    Key::Location,
    Key::Rack,
    Key::Unit,
    Key::Status,
    Key::Ironic,
    Key::Run,
    Key::State,
    Key::Owner,
    Key::Code,
    Key::Class,
    Key::Model,
    Key::Serial,
    Key::Tag,
];

impl Query {
    /// Reads what was typed. Everything is a filter: a word with an unknown key is a word.
    pub fn parse(text: &str) -> Query {
        Query { terms: words(text).into_iter().filter_map(|w| Term::parse(&w)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether every term agrees.
    pub fn matches(&self, host: &Host) -> bool {
        self.terms.iter().all(|term| term.matches(host) != term.inverted)
    }
}

impl Term {
    fn parse(word: &str) -> Option<Term> {
        let (inverted, rest) = match word.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let known = |key: &str| KEYS.iter().position(|(k, _)| *k == key).map(|at| KEY_ORDER[at]);
        let (key, value) = match rest.split_once(':') {
            Some((key, value)) if known(&key.to_lowercase()).is_some() => (known(&key.to_lowercase()), value),
            _ => (None, rest),
        };
        let value = value.to_lowercase();
        (!value.is_empty()).then_some(Term { inverted, key, value })
    }

    fn matches(&self, host: &Host) -> bool {
        let (d, v) = (&host.device, self.value.as_str());
        let has = |text: &str| contains(text, v);
        let opt = |text: &Option<Word>| text.as_deref().is_some_and(has);
        match self.key {
            None => subsequence(&d.name, v),
            Some(Key::Host) => has(&d.name),
            Some(Key::Site) => has(&d.site),
            Some(Key::Location) => opt(&d.location),
            Some(Key::Rack) => d.rack.as_deref().is_some_and(|r| r.eq_ignore_ascii_case(v)),
            Some(Key::Unit) => unit_text(d.position) == v,
            Some(Key::Status) => has(&d.status),
            Some(Key::Ironic) => is_in_state(host, v),
            Some(Key::Run) => run_word(host).starts_with(v),
            Some(Key::State) => is_in_state(host, v) || run_word(host).starts_with(v),
            Some(Key::Owner) => host.owner().is_some_and(|owner| {
                contains(owner.as_str(), &v.replace([' ', '-'], "_")) || contains(owner.in_column(), v)
            }),
            Some(Key::Code) => {
                host.failure().is_some_and(|f| contains(f.code.as_str(), v))
                    || host.refusal.as_ref().is_some_and(|r| has(&r.code))
            }
            Some(Key::Class) => opt(&d.device_class) || opt(&d.platform_class),
            Some(Key::Model) => has(&format!("{} {}", d.manufacturer, d.model)),
            Some(Key::Serial) => opt(&d.serial) || opt(&d.asset_tag),
            Some(Key::Tag) => d.tags.iter().any(|t| has(t)),
        }
    }
}

fn is_in_state(host: &Host, v: &str) -> bool {
    match &host.ironic {
        None => matches!(v, "-" | "–" | "none"),
        Some(ironic) => contains(ironic.state.as_str(), v),
    }
}

fn run_word(host: &Host) -> &'static str {
    match host.last_run.as_ref().map(|r| r.state) {
        Some(RunState::Queued) => "queued",
        Some(RunState::Running | RunState::Cancelling) => "running",
        Some(RunState::Failed) => "failed",
        _ if host.refusal.is_some() => "refused",
        Some(RunState::Succeeded) => "succeeded",
        Some(RunState::Cancelled) => "cancelled",
        None => "never",
    }
}

/// Words parted by blanks; quotes keep blanks together, as in `ironic:"clean failed"`.
fn words(text: &str) -> Vec<String> {
    let (mut out, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => out.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    out.push(word);
    out.retain(|w| !w.is_empty());
    out
}

/// Whatever the case; `needle` is lower case. ASCII, which nearly all names and codes are made of, is not copied for it.
fn contains(text: &str, needle: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(needle);
    }
    let (t, n) = (text.as_bytes(), needle.as_bytes());
    n.len() <= t.len() && t.windows(n.len().max(1)).any(|w| w.eq_ignore_ascii_case(n)) || n.is_empty()
}

/// Whether the characters of `needle` stand in `text` in their order: `b39` finds `gpu-b07-39`.
pub fn subsequence(text: &str, needle: &str) -> bool {
    let mut chars = text.chars().map(|c| c.to_ascii_lowercase());
    needle.chars().filter(|c| !c.is_whitespace()).all(|n| chars.any(|c| c == n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_what_is_quoted_together() {
        assert_eq!(words(r#"gpu ironic:"clean failed" !rack:B07"#), ["gpu", "ironic:clean failed", "!rack:B07"]);
        assert_eq!(words("  "), Vec::<String>::new());
    }

    #[test]
    fn a_word_with_an_unknown_key_is_a_word() {
        let query = Query::parse("a:b");
        assert_eq!(query.terms[0].key, None);
        assert!(Query::parse("rack:").is_empty(), "a key that still waits for its value filters nothing");
    }

    #[test]
    fn a_fuzzy_word_is_a_subsequence() {
        assert!(subsequence("gpu-b07-39", "b39"));
        assert!(!subsequence("gpu-b07-39", "39b"));
        assert!(contains("CABLES_WRONG", "cables") && !contains("ab", "abc"));
    }
}
