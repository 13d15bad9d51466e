//! Reads the members of a request as firmware does: the right type, or a refusal that names the member.

use serde_json::{Map, Value};

use super::said::Refusal;

pub(super) fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, Refusal> {
    value.as_object().ok_or_else(|| Refusal::value(key))
}

pub(super) fn text(value: &Value, key: &str) -> Result<String, Refusal> {
    let text = value.as_str().ok_or_else(|| Refusal::value(key))?;
    if text.len() > 255 { Err(Refusal::value(key)) } else { Ok(text.to_owned()) }
}

pub(super) fn flag(value: &Value, key: &str) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| Refusal::value(key))
}

/// A flag that this firmware has as a word: then it takes the word only.
pub(super) fn flag_word(value: &Value, key: &str, as_word: bool) -> Result<bool, Refusal> {
    match (value, as_word) {
        (Value::Bool(flag), false) => Ok(*flag),
        (Value::String(word), true) if word == "Enabled" => Ok(true),
        (Value::String(word), true) if word == "Disabled" => Ok(false),
        _ => Err(Refusal::value(key)),
    }
}

/// A list of texts.
pub(super) fn texts(value: &Value, key: &str) -> Result<Vec<String>, Refusal> {
    value.as_array().ok_or_else(|| Refusal::value(key))?.iter().map(|entry| text(entry, key)).collect()
}

/// A letter first, then letters, digits and hyphens: at most 63.
pub(super) fn hostname(value: &Value) -> Result<String, Refusal> {
    let name = text(value, "HostName")?;
    let good = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if good { Ok(name) } else { Err(Refusal::value("HostName")) }
}
