//! Looks for secrets in bytes, in every form in which a program may have written them.

use std::collections::{BTreeMap, HashMap};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Shorter texts are in outputs by chance.
const LEAST: usize = 8;

/// The secrets that were planted, by what they are, and all forms of them.
#[derive(Default)]
pub struct Search {
    planted: BTreeMap<String, String>,
    needles: Vec<(String, Vec<u8>)>,
    /// Needles by their first four bytes.
    by_head: HashMap<[u8; 4], Vec<usize>>,
    heads: Vec<bool>,
    /// What was searched: so many outputs, so many bytes.
    pub outputs: usize,
    pub bytes: usize,
    pub found: Vec<String>,
}

impl Search {
    pub fn plant(&mut self, what: impl Into<String>, secret: &str) {
        let what = what.into();
        assert!(secret.len() >= LEAST, "'{what}' is too short to be searched for");
        if self.planted.values().any(|known| known == secret) {
            return;
        }
        for (form, bytes) in forms(secret.as_bytes()) {
            if bytes.len() < LEAST || self.needles.iter().any(|(_, known)| *known == bytes) {
                continue;
            }
            self.by_head.entry(head(&bytes)).or_default().push(self.needles.len());
            self.heads.resize(1 << 16, false);
            self.heads[usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))] = true;
            self.needles.push((format!("{what} ({form})"), bytes));
        }
        self.planted.insert(what, secret.to_owned());
    }

    pub fn planted(&self) -> usize {
        self.planted.len()
    }

    pub fn needles(&self) -> usize {
        self.needles.len()
    }

    /// Searches an output; what is found is kept with its place.
    pub fn output(&mut self, what: &str, bytes: &[u8]) {
        self.outputs += 1;
        self.bytes += bytes.len();
        let found = self.look(bytes);
        self.found.extend(found.into_iter().map(|(needle, at)| {
            let around = &bytes[at.saturating_sub(60)..(at + 20).min(bytes.len())];
            format!("{needle} in {what}: …{}…", String::from_utf8_lossy(around).escape_debug())
        }));
    }

    /// Each needle that is there, with the place of its first occurrence.
    pub fn look(&self, bytes: &[u8]) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for at in 0..bytes.len().saturating_sub(3) {
            if !self.heads[usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))] {
                continue;
            }
            let Some(candidates) = self.by_head.get(&head(&bytes[at..])) else { continue };
            for (name, needle) in candidates.iter().map(|n| &self.needles[*n]) {
                if bytes[at..].starts_with(needle) {
                    found.entry(name.clone()).or_insert(at);
                }
            }
        }
        found
    }
}

fn head(bytes: &[u8]) -> [u8; 4] {
    [bytes[0], bytes[1], bytes[2], bytes[3]]
}

/// A text as it is and as JSON, debug output, URLs, hex and base64 have it.
pub fn forms(secret: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let text = String::from_utf8(secret.to_vec()).unwrap();
    let json = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let once = json(&text);
    let hex: String = secret.iter().map(|b| format!("{b:02x}")).collect();
    let percent = |upper: bool, all: bool| -> String {
        let one = |b: &u8| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' if !all => char::from(*b).to_string(),
            b if upper => format!("%{b:02X}"),
            b => format!("%{b:02x}"),
        };
        secret.iter().map(one).collect()
    };
    let mut address = url::Url::parse("https://x/").unwrap();
    address.set_password(Some(&text)).unwrap();
    let userinfo = address.password().unwrap().to_owned();
    let mut all = vec![
        ("plain", secret.to_vec()),
        ("JSON", once.clone().into_bytes()),
        ("JSON in JSON", json(&once).into_bytes()),
        ("JSON in JSON in JSON", json(&json(&once)).into_bytes()),
        ("JSON with a solidus", once.replace('/', "\\/").into_bytes()),
        ("debug", text.escape_debug().to_string().into_bytes()),
        ("URL", percent(true, false).into_bytes()),
        ("url", percent(false, false).into_bytes()),
        ("URL, whole", percent(true, true).into_bytes()),
        ("userinfo", userinfo.into_bytes()),
        ("form", url::form_urlencoded::byte_serialize(secret).collect::<String>().into_bytes()),
        ("HEX", hex.to_ascii_uppercase().into_bytes()),
        ("hex", hex.into_bytes()),
    ];
    // A journal may hold a list of numbers where somebody keeps bytes.
    let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
    all.push(("numbers", numbers.join(",").into_bytes()));
    all.push(("numbers", numbers.join(", ").into_bytes()));
    for (name, engine) in [("base64", &STANDARD), ("base64url", &URL_SAFE)] {
        // With so many bytes before it in the text that was encoded, only these characters are its own.
        for before in 0..3 {
            let encoded = engine.encode([&vec![0; before][..], secret].concat());
            let (from, to) = ((8 * before).div_ceil(6), 8 * (before + secret.len()) / 6);
            all.push((name, encoded.as_bytes()[from..to].to_vec()));
        }
    }
    all
}

/// A search that finds nothing proves nothing unless it can find: each form, wherever it stands.
#[test]
fn a_secret_is_found_in_each_form_and_nothing_else_is() {
    let secret = "Qz\"7/+&%ä x\\k";
    let mut search = Search::default();
    search.plant("it", secret);
    let mut tried = 0;
    let mut shows = |text: String| {
        let found = search.look(text.as_bytes());
        assert!(!found.is_empty(), "not found in {text}");
        tried += 1;
    };
    shows(format!("a {secret} b"));
    shows(serde_json::json!({"a": secret}).to_string());
    shows(serde_json::json!({"a": serde_json::json!([secret]).to_string()}).to_string());
    shows(format!("{:?}", Some(secret)));
    shows(format!("{:?}", secret.as_bytes()));
    shows(serde_json::json!(secret.as_bytes()).to_string());
    shows(format!("{:02x?}", secret.as_bytes()).replace(", ", ""));
    shows(url::form_urlencoded::Serializer::new(String::new()).append_pair("p", secret).finish());
    let mut url = url::Url::parse("https://x/").unwrap();
    url.set_password(Some(secret)).ok();
    url.set_username("u").unwrap();
    shows(url.to_string());
    for prefix in ["", "u", "us", "user:", "someone:"] {
        shows(STANDARD.encode(format!("{prefix}{secret}")));
        shows(URL_SAFE.encode(format!("{prefix}{secret}:")));
    }
    assert!(tried > 15);
    for other in ["Qz\"7/+&%ä x", "", "abc", "Qz", &STANDARD.encode("something else")] {
        assert!(search.look(other.as_bytes()).is_empty(), "{other}");
    }
    search.output("a log", format!("x {secret}").as_bytes());
    assert!(search.found.iter().any(|told| told.starts_with("it (plain) in a log")), "{:?}", search.found);
}
