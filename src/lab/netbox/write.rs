//! Writes to NetBox: PATCH of devices one by one or in bulk, journal entries. Everything else is beyond the account.

use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::records::{Device, JournalEntry, Records, Stamps, next_id};
use super::auth::forbidden;
use super::kind::Kind;
use super::render::Render;
use super::{Asked, Refusal, Reply, not_found};

type Refused = (Refusal, Option<String>);

const STATUS: [&str; 7] = ["offline", "active", "planned", "staged", "failed", "inventory", "decommissioning"];

/// Carries out a write.
pub(super) fn write(
    records: &mut Records,
    base: &str,
    asked: &Asked,
    body: &[u8],
    now: Timestamp,
) -> Result<Reply, Refused> {
    let allowed = match (asked.kind, &asked.method) {
        (Kind::Devices, &Method::PATCH) => true,
        (Kind::JournalEntries, &Method::POST) => asked.id.is_none(),
        _ => false,
    };
    if !asked.may_write || !allowed {
        return Err((forbidden(), None));
    }
    if let Some(id) = asked.id
        && !records.devices.contains_key(&id)
    {
        return Err((not_found(asked.kind), None));
    }
    if let Some((id, wanted)) = asked.id.zip(asked.if_match.as_deref()) {
        let etag = Render { records, base }.etag(asked.kind, id);
        if wanted != "*" && etag.as_deref() != Some(wanted) {
            return Err((Refusal::detail(StatusCode::PRECONDITION_FAILED, "Precondition failed."), etag));
        }
    }
    let body: Value = serde_json::from_slice(body).map_err(|e| (not_json(&e), None))?;
    match (asked.kind, asked.id, body) {
        (Kind::JournalEntries, _, Value::Object(body)) => journal(records, base, &body, now),
        (_, Some(id), Value::Object(body)) => {
            let device = patched(records, id, &body, now).map_err(|errors| (Refusal::bad(errors), None))?;
            records.devices.insert(id, device);
            let render = Render { records, base };
            let shown = render.shown(asked.kind, id, &asked.query).unwrap_or_default();
            Ok(Reply { etag: render.etag(asked.kind, id), ..Reply::ok(shown) })
        }
        (_, None, Value::Array(rows)) => bulk(records, base, asked, &rows, now),
        (_, _, other) => {
            let kind = match other {
                Value::Array(_) => "list",
                Value::String(_) => "str",
                Value::Null => "NoneType",
                Value::Bool(_) => "bool",
                _ => "int",
            };
            let text = format!("Invalid data. Expected a dictionary, but got {kind}.");
            Err((Refusal::bad(json!({"non_field_errors": [text]})), None))
        }
    }
}

fn not_json(e: &serde_json::Error) -> Refusal {
    let text =
        format!("JSON parse error - Expecting value: line {} column {} (char {})", e.line(), e.column(), e.column());
    Refusal::detail(StatusCode::BAD_REQUEST, text)
}

/// All rows or none.
fn bulk(records: &mut Records, base: &str, asked: &Asked, rows: &[Value], now: Timestamp) -> Result<Reply, Refused> {
    let refuse = |what: &str, errors: Vec<Value>| {
        let detail = format!("{} of {} objects {what}.", errors.len(), rows.len());
        Err((Refusal::bad(json!({"detail": detail, "errors": errors})), None))
    };
    let without_id: Vec<Value> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.get("id").and_then(Value::as_u64).is_none())
        .map(|(index, _)| json!({"index": index, "errors": {"id": ["This field is required."]}}))
        .collect();
    if !without_id.is_empty() {
        return refuse("failed validation", without_id);
    }
    let rows_by_id: Vec<(u64, Map<String, Value>)> =
        rows.iter().filter_map(|row| Some((row["id"].as_u64()?, row.as_object()?.clone()))).collect();
    let missing: Vec<Value> = rows_by_id
        .iter()
        .filter(|(id, _)| !records.devices.contains_key(id))
        .map(|(id, _)| json!({"id": id, "errors": {"id": [format!("Object with ID {id} does not exist")]}}))
        .collect();
    if !missing.is_empty() {
        return refuse("could not be found", missing);
    }
    let (mut devices, mut errors) = (vec![], vec![]);
    for (id, row) in &rows_by_id {
        match patched(records, *id, row, now) {
            Ok(device) => devices.push(device),
            Err(e) => errors.push(json!({"id": id, "errors": e})),
        }
    }
    if !errors.is_empty() {
        return refuse("could not be updated", errors);
    }
    for device in devices {
        records.devices.insert(device.id, device);
    }
    let render = Render { records, base };
    let shown = rows_by_id.iter().filter_map(|(id, _)| render.shown(asked.kind, *id, &asked.query));
    Ok(Reply::ok(shown.collect()))
}

/// A device with a change applied, or the errors by field. Every write moves `last_updated`, an empty one too.
fn patched(records: &Records, id: u64, body: &Map<String, Value>, now: Timestamp) -> Result<Device, Value> {
    let Some(mut device) = records.devices.get(&id).cloned() else { return Err(json!({})) };
    let mut errors = Map::new();
    let mut bad = |field: &str, text: String| {
        errors.insert(field.to_owned(), json!([text]));
    };
    for (key, value) in body {
        match (key.as_str(), value) {
            ("status", Value::Object(_) | Value::Array(_)) => bad(
                key,
                "Value must be passed directly (e.g. \"foo\": 123); do not use a dictionary or list.".to_owned(),
            ),
            ("status", value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                if STATUS.contains(&text.as_str()) {
                    device.status = text;
                } else {
                    bad(key, format!("{text} is not a valid choice."));
                }
            }
            ("tags" | "add_tags" | "remove_tags", value) => match tags(records, value) {
                Ok(ids) if key == "tags" => device.tags = ids,
                Ok(ids) if key == "add_tags" => {
                    let new: Vec<u64> = ids.into_iter().filter(|id| !device.tags.contains(id)).collect();
                    device.tags.extend(new);
                }
                Ok(ids) => device.tags.retain(|id| !ids.contains(id)),
                Err(text) => bad(key, text),
            },
            ("custom_fields", Value::Object(fields)) => {
                for (name, value) in fields {
                    let known = device.custom_fields.contains_key(name);
                    if !known {
                        let text = format!("Custom field '{name}' does not exist for this object type.");
                        return Err(json!({"custom_fields": {name: text}}));
                    }
                    if !value.is_string() && !value.is_null() {
                        let text = format!("Invalid value for custom field '{name}': Value must be a string.");
                        return Err(json!({"__all__": [text]}));
                    }
                    device.custom_fields.insert(name.clone(), value.clone());
                }
            }
            ("comments", Value::String(text)) => device.comments.clone_from(text),
            ("description", Value::String(text)) => device.description.clone_from(text),
            ("serial", Value::String(text)) => device.serial.clone_from(text),
            ("asset_tag", value) => device.asset_tag = value.as_str().map(str::to_owned),
            ("local_context_data", value) => device.local_context = Some(value.clone()).filter(|v| !v.is_null()),
            ("position", value) => device.position = value.as_f64(),
            ("face", value) => device.face = value.as_str().map(str::to_owned),
            ("name", Value::String(text)) => {
                let twin = records.devices.values().any(|d| d.id != id && d.site == device.site && d.name == *text);
                if twin {
                    return Err(json!({"__all__": ["Device name must be unique per site and tenant."]}));
                }
                device.name.clone_from(text);
            }
            ("oob_ip", value) => {
                let ip = value.as_u64().and_then(|ip| records.ips.get(&ip));
                let own = ip.is_none_or(|ip| records.interfaces.get(&ip.interface).is_some_and(|i| i.device == id));
                match ip {
                    Some(ip) if !own => {
                        bad(key, format!("The specified IP address ({}) is not assigned to this device.", ip.address))
                    }
                    ip => device.oob_ip = ip.map(|ip| ip.id),
                }
            }
            // Unknown fields are ignored without a word.
            _ => {}
        }
    }
    if !errors.is_empty() {
        return Err(Value::Object(errors));
    }
    device.stamps.last_updated = now.max(device.stamps.last_updated);
    Ok(device)
}

/// Tags by id, `{"id"}`, `{"slug"}` or `{"name"}`; each once.
fn tags(records: &Records, value: &Value) -> Result<Vec<u64>, String> {
    let Some(items) = value.as_array() else {
        return Err("Expected a list of items but got another type.".to_owned());
    };
    let mut ids = vec![];
    for item in items {
        let id = match item {
            Value::Number(n) => n
                .as_u64()
                .filter(|id| records.tags.contains_key(id))
                .ok_or_else(|| format!("Related object not found using the provided numeric ID: {n}"))?,
            Value::Object(map) => {
                let found = records.tags.values().find(|tag| {
                    map.iter().all(|(key, value)| match key.as_str() {
                        "id" => value.as_u64() == Some(tag.id),
                        "slug" => value.as_str() == Some(&tag.slug),
                        "name" => value.as_str() == Some(&tag.name),
                        _ => false,
                    })
                });
                found.map(|tag| tag.id).ok_or_else(|| {
                    let text: Vec<String> = map.iter().map(|(k, v)| format!("'{k}': {}", python(v))).collect();
                    format!("Related object not found using the provided attributes: {{{}}}", text.join(", "))
                })?
            }
            other => {
                let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
                return Err(format!(
                    "Related objects must be referenced by numeric ID or by dictionary of attributes. Received an \
                     unrecognized value: {text}"
                ));
            }
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn python(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| format!("'{text}'"))
}

fn journal(records: &mut Records, base: &str, body: &Map<String, Value>, now: Timestamp) -> Result<Reply, Refused> {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or("info").to_owned();
    if !["info", "success", "warning", "danger"].contains(&kind.as_str()) {
        return Err((Refusal::bad(json!({"kind": [format!("{kind} is not a valid choice.")]})), None));
    }
    let device = body.get("assigned_object_id").and_then(Value::as_u64).unwrap_or_default();
    if text("assigned_object_type") != "dcim.device" || !records.devices.contains_key(&device) {
        let text = "Invalid assigned_object: dcim.device ID None";
        return Err((Refusal::bad(json!({"non_field_errors": [text]})), None));
    }
    let id = next_id(&records.journal);
    let stamps = Stamps { created: now, last_updated: now };
    records.journal.insert(id, JournalEntry { id, device, kind, comments: text("comments"), stamps });
    let render = Render { records, base };
    let shown = render.shown(Kind::JournalEntries, id, &[]).unwrap_or_default();
    let location = Some(format!("{base}{}{id}/", Kind::JournalEntries.path()));
    Ok(Reply { status: StatusCode::CREATED, body: shown, etag: render.etag(Kind::JournalEntries, id), location })
}
