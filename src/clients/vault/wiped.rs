//! JSON and bytes with secrets in them: zeroed where they were, as far as the libraries let us.
//!
//! What they do not let us: serde_json unescapes a text in a buffer of its own, and HTTP and TLS keep theirs.

use secrecy::zeroize::{Zeroize, Zeroizing};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A document whose texts are zeroed when it is dropped.
pub(super) struct Wiped(pub Value);

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Wiped {
    /// As it goes over a pipe.
    pub fn bytes(&self) -> Zeroizing<Vec<u8>> {
        // Large enough, so that no copy is left behind by a buffer that grows: escapes make six bytes of one at most.
        let mut bytes = Zeroizing::new(Vec::with_capacity(6 * weight(&self.0) + 1024));
        serde_json::to_writer(&mut *bytes, &self.0).expect("a document with text keys into memory");
        bytes
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 4,
        Value::Array(items) => items.iter().map(|item| weight(item) + 2).sum(),
        Value::Object(members) => members.iter().map(|(name, item)| name.len() + weight(item) + 8).sum(),
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 32,
    }
}

/// Reads a document. The library's own message quotes what it read, so only the place is told.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| {
        format!("its answer is not the JSON that is documented (line {}, column {})", e.line(), e.column())
    })
}

/// Text of another system without the secrets that it was given, in plain or as JSON writes them, also in texts within texts.
pub fn without(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let mut form = Zeroizing::new((*secret).to_owned());
        for _ in 0..4 {
            text = text.replace(form.as_str(), "***");
            let quoted = Zeroizing::new(Value::String(form.to_string()).to_string());
            form = Zeroizing::new(quoted[1..quoted.len() - 1].to_owned());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_text_of_a_document_is_wiped_and_none_of_it_is_quoted() {
        let mut value = json!({"a": ["s3cret", {"b": "s3cret"}], "c": "s3cret", "d": 1});
        wipe(&mut value);
        assert!(!value.to_string().contains("s3cret"), "{value}");
        let error = read::<Vec<u8>>(br#"["s3cret"]"#).unwrap_err();
        assert!(!error.contains("s3cret") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn a_document_fits_into_the_buffer_that_is_made_for_it() {
        let document = Wiped(json!({"\"quoted\"": "\u{1}\u{2}\"\\".repeat(500), "n": [1.5e300, null, true]}));
        let room = 6 * weight(&document.0) + 1024;
        assert!(document.bytes().len() <= room && document.bytes().capacity() == room);
    }

    #[test]
    fn a_secret_is_taken_out_of_what_others_say_of_it() {
        assert_eq!(without("no 'pa\"ss' and no 'pa\\\"ss'", &["pa\"ss", ""]), "no '***' and no '***'");
    }
}
