//! The lists of a NetBox that a test fills and changes: filters by id, device and time, pages, and what goes wrong with them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// All lists, by path.
#[derive(Clone, Default)]
pub struct Lists(Arc<Mutex<State>>);

#[derive(Default)]
pub struct State {
    rows: BTreeMap<String, BTreeMap<u64, Value>>,
    /// Answers of lists, instead.
    pub broken: BTreeMap<String, ResponseTemplate>,
    pub ignores_filters: bool,
    /// A row that is counted and not listed: list and id.
    pub lost: Option<(&'static str, u64)>,
    /// Path and query of every request.
    pub asked: Vec<String>,
}

impl Lists {
    pub async fn serve(&self) -> MockServer {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(self.clone()).mount(&server).await;
        server
    }

    /// Writes a row as NetBox does: `last_updated` is now, or what the row says.
    pub fn put(&self, list: &str, row: Value) {
        let mut row = row;
        if row.get("last_updated").is_none() {
            row["last_updated"] = json!(Timestamp::now().to_string());
        }
        let mut state = self.0.lock().unwrap();
        state.rows.entry(list.to_owned()).or_default().insert(row["id"].as_u64().unwrap(), row);
    }

    /// Changes a row. Whether its time moves is up to the change.
    pub fn change(&self, list: &str, id: u64, change: impl FnOnce(&mut Value)) {
        change(self.0.lock().unwrap().rows.get_mut(list).unwrap().get_mut(&id).unwrap());
    }

    pub fn delete(&self, list: &str, id: u64) {
        self.0.lock().unwrap().rows.get_mut(list).unwrap().remove(&id).unwrap();
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// What was asked since the last call, as path and query.
    pub fn take_asked(&self) -> Vec<String> {
        self.with(|state| std::mem::take(&mut state.asked))
    }
}

impl Respond for Lists {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut state = self.0.lock().unwrap();
        let path = request.url.path();
        let list = path.split('/').nth(3).unwrap_or_default().to_owned();
        state.asked.push(format!("{list}?{}", request.url.query().unwrap_or_default()));
        if let Some(broken) = state.broken.get(&list) {
            return broken.clone();
        }
        let rows = state.rows.get(&list).cloned().unwrap_or_default();
        if let Some(id) = path.split('/').nth(4).filter(|id| !id.is_empty()) {
            return match rows.get(&id.parse().unwrap()) {
                Some(row) => ResponseTemplate::new(200).set_body_json(row),
                None => {
                    ResponseTemplate::new(404).set_body_json(json!({"detail": "No object matches the given query."}))
                }
            };
        }
        let all = |key: &str| -> Vec<String> {
            request.url.query_pairs().filter(|(k, _)| k == key).map(|(_, v)| v.into_owned()).collect()
        };
        let one = |key: &str| all(key).pop();
        let number = |key: &str| one(key).map(|text| text.parse::<u64>().unwrap());
        let (ids, devices) = (all("id"), all("device_id"));
        let since: Option<Timestamp> = one("last_updated__gte").map(|at| at.parse().unwrap());
        let device_of = |row: &Value| row["device"]["id"].as_u64().or(row["assigned_object"]["device"]["id"].as_u64());
        let filters = !state.ignores_filters;
        let passes = |row: &&Value| {
            let id = row["id"].as_u64().unwrap();
            let at: Timestamp = row["last_updated"].as_str().unwrap().parse().unwrap();
            (ids.is_empty() || ids.contains(&id.to_string()))
                && number("id__gte").is_none_or(|from| id >= from)
                && number("id__lt").is_none_or(|until| id < until)
                && (devices.is_empty() || device_of(row).is_some_and(|d| devices.contains(&d.to_string())))
                && (!filters || since.is_none_or(|since| at >= since))
        };
        let mut found: Vec<&Value> = rows.values().filter(passes).collect();
        if one("ordering").as_deref() == Some("-last_updated") {
            found.sort_by_key(|row| {
                std::cmp::Reverse(row["last_updated"].as_str().unwrap().parse::<Timestamp>().unwrap())
            });
        }
        let (limit, offset) = (number("limit").unwrap_or(50) as usize, number("offset").unwrap_or(0) as usize);
        let lost = |row: &&&Value| !state.lost.is_some_and(|(of, id)| of == list && row["id"].as_u64() == Some(id));
        let page: Vec<&&Value> = found.iter().skip(offset).take(limit).filter(lost).collect();
        let next = (offset + limit < found.len()).then_some("http://elsewhere.example.com/");
        ResponseTemplate::new(200)
            .set_body_json(json!({"count": found.len(), "next": next, "previous": null, "results": page}))
    }
}
