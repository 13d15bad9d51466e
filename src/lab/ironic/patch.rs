//! JSON patches as Ironic takes them: `add`, `replace`, `remove`; `add` on a key that is there replaces it.

use serde_json::{Map, Value};

use super::reply::Refusal;

/// One operation.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub op: String,
    pub path: Vec<String>,
    pub value: Value,
    /// As messages show it.
    text: String,
}

/// The operations of a body.
pub(super) fn read(body: &Value) -> Result<Vec<Op>, Refusal> {
    let Some(items) = body.as_array() else {
        return Err(Refusal::bad(format!("Schema error for patch: {} is not of type 'array'", python(body))));
    };
    items.iter().map(op).collect()
}

fn op(item: &Value) -> Result<Op, Refusal> {
    let op = item["op"].as_str().unwrap_or_default();
    if !["add", "replace", "remove"].contains(&op) {
        let text = format!("Schema error for patch: '{op}' is not one of ['add', 'replace', 'remove']");
        return Err(Refusal::bad(text));
    }
    let path = item["path"].as_str().unwrap_or_default();
    let path: Vec<String> =
        path.trim_start_matches('/').split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    if path.iter().all(String::is_empty) {
        return Err(Refusal::bad("Schema error for patch: 'path' is a required property"));
    }
    Ok(Op { op: op.to_owned(), path, value: item["value"].clone(), text: python(item) })
}

/// Applies an operation to an object. What is removed at the top gets its value of `defaults` back, or null.
pub(super) fn apply(map: &mut Map<String, Value>, op: &Op, defaults: &Value) -> Result<(), Refusal> {
    let cannot = |what: String| Refusal::bad(format!("Couldn't apply patch '{}'. Reason: {what}", op.text));
    let Some((last, parents)) = op.path.split_last() else { return Ok(()) };
    if parents.is_empty() {
        let value = match op.op.as_str() {
            "remove" => defaults.get(last).cloned().unwrap_or(Value::Null),
            _ => op.value.clone(),
        };
        map.insert(last.clone(), value);
        return Ok(());
    }
    let mut place = map.get_mut(&parents[0]);
    for part in &parents[1..] {
        place = match place {
            Some(Value::Object(inner)) => inner.get_mut(part),
            Some(Value::Array(items)) => part.parse::<usize>().ok().and_then(|n| items.get_mut(n)),
            _ => None,
        };
    }
    let Some(Value::Object(inner)) = place else {
        return Err(cannot(format!("member '{}' not found", parents.last().map_or("", String::as_str))));
    };
    match op.op.as_str() {
        "replace" if !inner.contains_key(last) => Err(cannot(format!("can't replace a non-existent object '{last}'"))),
        "remove" => {
            inner.remove(last).map(|_| ()).ok_or_else(|| cannot(format!("can't remove a non-existent object '{last}'")))
        }
        _ => {
            inner.insert(last.clone(), op.value.clone());
            Ok(())
        }
    }
}

/// A value as Python prints it. Secrets don't get here: Ironic itself prints what it was sent.
pub(super) fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            // The order of a client that writes op, path, value.
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_by_key(|key| ["op", "path", "value"].iter().position(|k| k == key).unwrap_or(9));
            let inner: Vec<String> = keys.iter().map(|k| format!("'{k}': {}", python(&map[*k]))).collect();
            format!("{{{}}}", inner.join(", "))
        }
    }
}
