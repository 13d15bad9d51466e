//! Compares resources of the lab with captured ones, and walks a tree by its links.

use serde_json::Value;

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How a resource differs from the captured one that it is shaped after: members that the capture lacks, and other types.
/// What the lab leaves out is no difference.
pub fn differences(at: &str, lab: &Value, captured: &Value, found: &mut Vec<String>) {
    match (lab, captured) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(lab), Value::Object(captured)) => {
            // The lab gives every resource a tag.
            for (key, value) in lab.iter().filter(|(key, _)| *key != "@odata.etag") {
                match captured.get(key) {
                    Some(theirs) => differences(&format!("{at}/{key}"), value, theirs, found),
                    None => found.push(format!("{at}/{key}: not in the capture")),
                }
            }
        }
        (Value::Array(lab), Value::Array(captured)) => {
            if let (Some(first), Some(theirs)) = (lab.first(), captured.first()) {
                differences(&format!("{at}/0"), first, theirs, found);
            }
        }
        _ if kind(lab) == kind(captured) => {}
        _ => found.push(format!("{at}: {} instead of {}", kind(lab), kind(captured))),
    }
}

/// All links of a resource.
pub fn links(body: &Value, queue: &mut Vec<String>) {
    match body {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(path) if key == "@odata.id" || key == "@Redfish.ActionInfo" => {
                        queue.push(path.trim_end_matches('/').to_owned());
                    }
                    other => links(other, queue),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| links(value, queue)),
        _ => {}
    }
}
