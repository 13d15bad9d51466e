//! Makes what an export says harmless: no control characters, and no secret that something put into a sentence.
//!
//! Secrets never enter a journal (`SecretString` prints nothing). This is the second lock: an address with a password in
//! it, or a header, as another system may quote it in an error.

use serde_json::Value;

use crate::domain::text::neutralize;

const HIDDEN: &str = "***";

/// A text as it may leave the program.
pub(super) fn text(text: &str) -> String {
    let mut text = neutralize(text).into_owned();
    hide_userinfo(&mut text);
    hide_values(&mut text);
    text
}

/// A whole JSON value, names of fields included.
pub(super) fn value(value: Value) -> Value {
    match value {
        Value::String(said) => Value::String(text(&said)),
        Value::Array(items) => items.into_iter().map(self::value).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, v)| (text(&key), self::value(v))).collect(),
        other => other,
    }
}

/// `https://name:password@host` → `https://***@host`
fn hide_userinfo(text: &mut String) {
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"' | '?' | '#' | '<' | '>');
        let end = text[start..].find(is_end).map_or(text.len(), |n| start + n);
        if let Some(at) = text[start..end].rfind('@') {
            text.replace_range(start..start + at, HIDDEN);
        }
        from = start;
    }
}

/// `password=x`, `"token": "x"`, `X-Auth-Token: x`, `Authorization: Basic x` → the name and `***`.
fn hide_values(text: &mut String) {
    const NAMES: [&str; 6] = ["password", "passwd", "secret", "token", "authorization", "private_key"];
    for name in NAMES {
        let mut from = 0;
        // ASCII only, so that places stay the same.
        while let Some(found) = text[from..].to_ascii_lowercase().find(name) {
            let end = from + found + name.len();
            from = end;
            if let Some((start, stop)) = value_behind(text, end) {
                text.replace_range(start..stop, HIDDEN);
                from = start + HIDDEN.len();
            }
        }
    }
}

/// Where the value of a name lies that ends here; `None` where the name is only a word of a sentence.
fn value_behind(text: &str, end: usize) -> Option<(usize, usize)> {
    let rest = &text[end..];
    let name_rest = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    let rest = &rest[name_rest..];
    let quoted = rest.strip_prefix('"').or_else(|| rest.strip_prefix("\\\""));
    let after = quoted.unwrap_or(rest);
    let value = match after.strip_prefix('=') {
        Some(value) => value,
        // A colon alone is prose (`field 'token': add it`); after a quoted name or a header's it is not.
        None => after.strip_prefix(':').filter(|_| quoted.is_some() || is_header(text, end))?.trim_start(),
    };
    let value = value.trim_start_matches(['"', '\'', '\\']);
    let value = ["Basic ", "Bearer ", "basic ", "bearer "].iter().find_map(|s| value.strip_prefix(s)).unwrap_or(value);
    let start = text.len() - value.len();
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '&' | ';' | '}' | ')' | '\\');
    let length = value.find(is_end).unwrap_or(value.len());
    (length > 0).then_some((start, start + length))
}

/// `X-Auth-Token`, `Authorization`: names that stand before a colon in a request only.
fn is_header(text: &str, end: usize) -> bool {
    let before = text[..end].to_ascii_lowercase();
    before.ends_with("authorization") || before.ends_with("-token")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: G15, Z1
    #[test]
    fn what_looks_like_a_secret_is_hidden_and_a_sentence_about_one_is_not() {
        for (said, told) in [
            ("GET https://jo:hunter2@bmc.example.com/x failed", "GET https://***@bmc.example.com/x failed"),
            ("see https://netbox.example.com/dcim/?q=a@b", "see https://netbox.example.com/dcim/?q=a@b"),
            ("redfish_password=hunter2&x=1", "redfish_password=***&x=1"),
            (r#"{"password": "hunter2", "n": 1}"#, r#"{"password": "***", "n": 1}"#),
            (r#"{"ipmi_password":"hunter2"}"#, r#"{"ipmi_password":"***"}"#),
            ("X-Auth-Token: hunter2", "X-Auth-Token: ***"),
            ("Authorization: Basic aHVudGVyMg==", "Authorization: Basic ***"),
            ("authorization: Bearer abc.def", "authorization: Bearer ***"),
            ("password=a password=b", "password=*** password=***"),
            ("the vault's item has no field 'password': add it", "the vault's item has no field 'password': add it"),
            ("NetBox refused the token: mend it", "NetBox refused the token: mend it"),
            ("password was rotated", "password was rotated"),
            ("ünïcode password=ß; ok", "ünïcode password=***; ok"),
            ("a\u{1b}[2Jb\nc", "a\u{fffd}[2Jb c"),
        ] {
            assert_eq!(text(said), told);
        }
    }
}
