//! The configuration as a JSON schema (draft 7), for editors: they complete keys, and mark wrong ones while they are typed.

use serde_json::{Map, Value, json};

use super::example::{said_above, shows_default, switched_on};
use super::load;
use super::shape::{Asked, Kind, Place, Shape};

/// A reference to a secret, never the secret itself (K2).
const SECRET: &str = "^\\s*(env:[A-Za-z_][A-Za-z0-9_]*|file:.+|vault:[^/]+/.+)\\s*$";
const TRUST: &str = "^(system|anything|ca:.+|sha256:([0-9A-Fa-f]{2}:?){32})$";

/// The schema of what this version reads. Descriptions and defaults are those of the example.
pub fn schema() -> Value {
    let text = switched_on();
    let shape = load::shape_of(&text);
    let mut schema = table(&shape, &Vec::new(), &text.lines().collect::<Vec<_>>());
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("The configuration of muster");
    schema
}

/// A table with its keys, and no others.
fn table(shape: &Shape, place: &Place, lines: &[&str]) -> Value {
    let read = shape.tables.get(place).copied().unwrap_or_default();
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (key, asked) in shape.keys.iter().filter(|(key, _)| key.len() == place.len() + 1 && key.starts_with(place)) {
        let Some(name) = key.last() else { continue };
        properties.insert(name.clone(), value(shape, key, asked, lines));
        // Where the forms of a table differ, what each of them needs.
        if asked.required >= read {
            required.push(name.clone());
        }
    }
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn value(shape: &Shape, key: &Place, asked: &Asked, lines: &[&str]) -> Value {
    let mut kinds: Vec<Value> = asked.kinds.iter().map(|kind| of_kind(shape, key, kind, lines)).collect();
    if shape.tables.contains_key(key) && !asked.kinds.iter().any(is_open) {
        kinds.push(table(shape, key, lines));
    }
    let mut schema = match kinds.len() {
        1 => kinds.remove(0),
        // A key that the example does not show in any form.
        0 => json!({}),
        _ => json!({"anyOf": kinds}),
    };
    if let Some(line) = asked.line {
        let said = said_above(line);
        if !said.is_empty() {
            schema["description"] = json!(said);
        }
        if let Some(default) = default(line, lines).filter(|_| !shape.tables.contains_key(key)) {
            schema["default"] = default;
        }
    }
    schema
}

/// A table whose keys are whoever's who writes the file.
fn is_open(kind: &Kind) -> bool {
    matches!(kind, Kind::Named | Kind::TextsByName | Kind::ListsByName)
}

fn of_kind(shape: &Shape, key: &Place, kind: &Kind, lines: &[&str]) -> Value {
    match kind {
        Kind::Text => json!({"type": "string", "minLength": 1}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": true}),
        Kind::Whole { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Seconds(max) => json!({"type": "number", "exclusiveMinimum": 0, "maximum": max}),
        Kind::Choice(words) => json!({"type": "string", "enum": words}),
        Kind::Url => json!({"type": "string", "pattern": "^https?://"}),
        Kind::Secret => json!({"type": "string", "pattern": SECRET}),
        Kind::Trust => json!({"type": "string", "pattern": TRUST}),
        Kind::TextsByName => {
            json!({"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}})
        }
        Kind::ListsByName => json!({"type": "object", "additionalProperties": {"anyOf": [
            {"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}),
        Kind::Named => {
            let inside: Place = key.iter().cloned().chain(["*".to_owned()]).collect();
            json!({"type": "object", "additionalProperties": table(shape, &inside, lines)})
        }
    }
}

/// The value that the example shows as the default.
fn default(line: usize, lines: &[&str]) -> Option<Value> {
    let text = lines.get(line.checked_sub(1)?).filter(|_| shows_default(line))?;
    let table: toml::Table = toml::from_str(text).ok()?;
    serde_json::to_value(table.into_iter().next()?.1).ok()
}
