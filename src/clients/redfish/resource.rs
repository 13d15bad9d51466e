//! A Redfish resource as it was read: tolerant of nulls, wrong types and odd links.

use serde_json::{Map, Value};

use crate::domain::text::neutralize_to;

/// A resource: where it was read, what it holds, and its tag.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// The path as the BMC gave it: that spelling is asked again.
    pub path: String,
    pub body: Map<String, Value>,
    /// The header `ETag`.
    pub etag: Option<String>,
}

impl Resource {
    /// A member by JSON pointer (`/Boot/BootOrder`), or by its plain name.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        let mut parts = pointer.trim_start_matches('/').split('/');
        let mut value = self.body.get(parts.next()?)?;
        for part in parts {
            value = value.get(part)?;
        }
        Some(value).filter(|value| !value.is_null())
    }

    /// A text that says something: trimmed and safe to show. Numbers count as text (Q29); null, empty and the word that
    /// some firmware writes for null do not.
    pub fn text(&self, pointer: &str) -> Option<String> {
        text_of(self.at(pointer)?)
    }

    /// `true` or `false`, also as a word (Q35).
    pub fn flag(&self, pointer: &str) -> Option<bool> {
        match self.at(pointer)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(word) if ["true", "enabled"].contains(&word.to_ascii_lowercase().as_str()) => Some(true),
            Value::String(word) if ["false", "disabled"].contains(&word.to_ascii_lowercase().as_str()) => Some(false),
            _ => None,
        }
    }

    /// A whole number, also as a text.
    pub fn number(&self, pointer: &str) -> Option<u64> {
        match self.at(pointer)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// A link: an object with `@odata.id`, a plain text, or the first of a list (Q32).
    pub fn link(&self, pointer: &str) -> Option<String> {
        link_of(self.at(pointer)?)
    }

    /// All links of a list; one where there is only one.
    pub fn links(&self, pointer: &str) -> Vec<String> {
        match self.at(pointer) {
            Some(Value::Array(list)) => list.iter().filter_map(link_of).collect(),
            Some(value) => link_of(value).into_iter().collect(),
            None => vec![],
        }
    }

    /// `Id`, safe to show; the last part of the path where the BMC gives none.
    pub fn id(&self) -> String {
        self.text("Id").unwrap_or_else(|| {
            neutralize_to(self.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default(), 80)
        })
    }

    /// Has what every resource has. An empty object is none (C-33).
    pub fn is_whole(&self) -> bool {
        self.text("Id").is_some() || self.text("@odata.id").is_some()
    }
}

/// Whether two paths name one resource: case and a last slash differ between links of one BMC (Q63).
pub fn same_path(a: &str, b: &str) -> bool {
    a.trim_end_matches('/').eq_ignore_ascii_case(b.trim_end_matches('/'))
}

/// The target of a link in any of its forms.
pub fn link_of(value: &Value) -> Option<String> {
    let path = match value {
        Value::Object(object) => object.get("@odata.id")?.as_str()?,
        Value::String(path) => path,
        Value::Array(list) => return list.iter().find_map(link_of),
        _ => return None,
    };
    let path = path.trim();
    (path.starts_with('/') || path.starts_with("http")).then(|| path.to_owned())
}

/// A scalar as a text that says something.
pub fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    (!text.is_empty() && text != "(null)").then(|| neutralize_to(&text, 300))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(body: Value) -> Resource {
        Resource { path: "/redfish/v1/Systems/1/".into(), body: body.as_object().unwrap().clone(), etag: None }
    }

    #[test]
    fn null_empty_missing_and_wrong_types_are_not_reported() {
        let it = resource(json!({"a": null, "b": "", "c": "(null)", "d": [], "e": {"f": null}, "g": 5, "h": " x "}));
        for pointer in ["a", "b", "c", "d", "e", "/e/f", "/e/f/g", "missing", "/g/h"] {
            assert_eq!(it.text(pointer), None, "{pointer}");
        }
        assert_eq!(it.text("g").as_deref(), Some("5"));
        assert_eq!(it.text("h").as_deref(), Some("x"));
        assert_eq!(it.id(), "1");
        assert!(!resource(json!({})).is_whole());
    }

    #[test]
    fn a_link_is_an_object_a_text_or_a_list() {
        let it = resource(json!({"a": {"@odata.id": "/x"}, "b": "/y", "c": [{"@odata.id": "/z"}, "/w"], "d": [],
            "e": {"@odata.id": null}, "f": "javascript:x"}));
        assert_eq!(it.link("a").as_deref(), Some("/x"));
        assert_eq!(it.link("b").as_deref(), Some("/y"));
        assert_eq!(it.links("c"), ["/z", "/w"]);
        for pointer in ["d", "e", "f"] {
            assert_eq!(it.link(pointer), None, "{pointer}");
        }
        assert!(same_path("/redfish/v1/Systems/1", "/redfish/v1/systems/1/"));
    }

    #[test]
    fn flags_and_numbers_come_as_words_too() {
        let it = resource(json!({"a": "Enabled", "b": false, "c": "maybe", "d": "514", "e": 514, "f": -1}));
        assert_eq!((it.flag("a"), it.flag("b"), it.flag("c")), (Some(true), Some(false), None));
        assert_eq!((it.number("d"), it.number("e"), it.number("f")), (Some(514), Some(514), None));
    }
}
