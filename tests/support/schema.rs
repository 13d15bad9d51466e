//! Holds documents against JSON schemas.

use serde_json::Value;

/// Whether a document is one of a schema: of draft 7, the words that the schemas of this tree have.
pub fn fits(schema: &Value, value: &Value) -> bool {
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().any(|form| fits(form, value));
    }
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("a schema with '{other}'"),
    };
    let typed = match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        _ => true,
    };
    let number = value.as_f64();
    let bound = |key: &str, fine: fn(f64, f64) -> bool| {
        schema[key].as_f64().zip(number).is_none_or(|(limit, number)| fine(number, limit))
    };
    let begins = schema["pattern"].as_str().zip(value.as_str()).is_none_or(|(pattern, text)| match pattern {
        "^https?://" => text.starts_with("http://") || text.starts_with("https://"),
        // References and trust: the words before the colon are enough to tell one from a secret in clear.
        _ => ["env:", "file:", "vault:", "system", "anything", "ca:", "sha256:"]
            .iter()
            .any(|word| text.trim().starts_with(word)),
    });
    typed
        && begins
        && bound("minimum", |number, limit| number >= limit)
        && bound("maximum", |number, limit| number <= limit)
        && bound("exclusiveMinimum", |number, limit| number > limit)
        && schema["enum"].as_array().is_none_or(|words| words.contains(value))
        && schema["required"]
            .as_array()
            .is_none_or(|keys| !value.is_object() || keys.iter().all(|key| value.get(key.as_str().unwrap()).is_some()))
        && value
            .as_array()
            .is_none_or(|items| items.iter().all(|item| schema.get("items").is_none_or(|of| fits(of, item))))
        && value.as_object().is_none_or(|map| {
            map.iter().all(|(key, inner)| match (schema["properties"].get(key), &schema["additionalProperties"]) {
                (Some(of), _) => fits(of, inner),
                (None, Value::Bool(allowed)) => *allowed,
                (None, Value::Null) => true,
                (None, of) => fits(of, inner),
            })
        })
}
