//! A 1Password Connect server as its documentation has it: filters, versions, patches of fields, tokens, refusals.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

pub const VAULT: &str = "ionaiwtdvgclrixbt6ztpqcxnq";
pub const VAULT_NAME: &str = "bare \"metal\"";

pub type Told = dyn Fn(&[Value]) + Send;

#[derive(Default)]
pub struct State {
    pub token: String,
    pub items: Vec<Value>,
    next: u32,
    /// Answers the next requests in its place, the first one first.
    pub instead: Vec<ResponseTemplate>,
    /// Method and path of each request.
    pub asked: Vec<String>,
    /// Whether every request came with a bearer token, whichever.
    pub tokens: Vec<String>,
    /// The title filter is not understood: everything is told.
    pub no_filter: bool,
    /// Reads go on showing the old item for so many looks behind a write.
    pub lag: u32,
    stale: Option<(u32, Value)>,
    /// Called with the items behind each write.
    pub behind_writes: Option<Box<Told>>,
    /// Somebody else writes before the next patch, so often.
    pub conflicts: u32,
}

pub struct Connect {
    pub server: MockServer,
    state: Arc<Mutex<State>>,
}

struct Answers(Arc<Mutex<State>>);

impl Connect {
    pub async fn start(token: &str) -> Connect {
        let state = Arc::new(Mutex::new(State { token: token.to_owned(), ..State::default() }));
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(Answers(Arc::clone(&state))).mount(&server).await;
        Connect { server, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Puts an item there, with fields of a section of its own behind the built-in ones.
    pub fn add(&self, title: &str, fields: &[(&str, &str)]) -> String {
        let mut state = self.state();
        let fields: Vec<Value> = fields.iter().map(|(label, value)| json!({"label": label, "value": value})).collect();
        state.create(json!({"title": title, "category": "LOGIN", "fields": fields}))["id"].as_str().unwrap().to_owned()
    }

    /// The value of a field, as the server has it.
    pub fn value(&self, title: &str, label: &str) -> Option<String> {
        let state = self.state();
        let item = state.items.iter().find(|item| item["title"] == title)?;
        let field = item["fields"].as_array()?.iter().find(|field| field["label"] == label)?;
        field["value"].as_str().map(str::to_owned)
    }

    pub fn set(&self, title: &str, label: &str, value: &str) {
        let mut state = self.state();
        let item = state.items.iter_mut().find(|item| item["title"] == title).unwrap();
        let fields = item["fields"].as_array_mut().unwrap();
        fields.iter_mut().find(|field| field["label"] == label).unwrap()["value"] = value.into();
    }

    pub fn remove(&self, title: &str) {
        self.state().items.retain(|item| item["title"] != title);
    }
}

impl Respond for Answers {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        self.0.lock().unwrap().answer(request)
    }
}

fn error(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"status": status, "message": message}))
}

impl State {
    fn create(&mut self, mut item: Value) -> Value {
        self.next += 1;
        item["id"] = format!("item{:022}", self.next).into();
        item["vault"] = json!({"id": VAULT});
        item["version"] = 1.into();
        let mut fields = item["fields"].take();
        for field in fields.as_array_mut().unwrap() {
            self.next += 1;
            if field["id"].is_null() {
                field["id"] = format!("f{:025}", self.next).into();
            }
        }
        item["fields"] = fields;
        self.items.push(item.clone());
        item
    }

    fn answer(&mut self, request: &Request) -> ResponseTemplate {
        let path = request.url.path().to_owned();
        self.asked.push(format!("{} {path}", request.method));
        let bearer = request.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.tokens.push(bearer.to_owned());
        if !self.instead.is_empty() {
            return self.instead.remove(0);
        }
        if bearer != format!("Bearer {}", self.token) {
            return error(401, "Invalid token signature");
        }
        let filter = request.url.query_pairs().find(|(key, _)| key == "filter").map(|(_, value)| value.into_owned());
        // `title eq "…"`, with the text as JSON writes it.
        let wanted: Option<String> = filter.and_then(|f| serde_json::from_str(f.split_once(" eq ")?.1).ok());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (request.method.as_str(), &parts[..]) {
            ("GET", ["v1", "vaults"]) => {
                let all = [json!({"id": VAULT, "name": VAULT_NAME}), json!({"id": "x".repeat(26), "name": "Private"})];
                let fits = |row: &&Value| wanted.as_ref().is_none_or(|name| row["name"] == *name);
                ResponseTemplate::new(200).set_body_json(all.iter().filter(fits).collect::<Vec<_>>())
            }
            (_, ["v1", "vaults", id, ..]) if *id != VAULT => error(403, &format!("vault {id} is not in scope")),
            ("GET", ["v1", "vaults", _]) => {
                ResponseTemplate::new(200).set_body_json(json!({"id": VAULT, "name": VAULT_NAME}))
            }
            ("GET", ["v1", "vaults", _, "items"]) => {
                let fits = |item: &&Value| {
                    self.no_filter
                        || wanted
                            .as_ref()
                            .is_none_or(|title| item["title"].as_str().is_some_and(|t| t.eq_ignore_ascii_case(title)))
                };
                let mut rows: Vec<Value> = self.items.iter().filter(fits).cloned().collect();
                rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("fields")));
                ResponseTemplate::new(200).set_body_json(rows)
            }
            ("POST", ["v1", "vaults", _, "items"]) => {
                let item: Value = serde_json::from_slice(&request.body).unwrap();
                if item["vault"]["id"] != VAULT || item["category"].as_str().is_none() {
                    return error(400, "Invalid item category");
                }
                let made = self.create(item);
                self.told();
                ResponseTemplate::new(200).set_body_json(made)
            }
            ("GET", ["v1", "vaults", _, "items", id]) => {
                if let Some((left, old)) = &mut self.stale
                    && *left > 0
                {
                    *left -= 1;
                    return ResponseTemplate::new(200).set_body_json(old.clone());
                }
                match self.items.iter().find(|item| item["id"] == *id) {
                    Some(item) => ResponseTemplate::new(200).set_body_json(item),
                    None => error(404, &format!("item {id} not found")),
                }
            }
            ("PATCH", ["v1", "vaults", _, "items", id]) => {
                if self.conflicts > 0 {
                    self.conflicts -= 1;
                    return error(409, "the item was changed");
                }
                let Some(at) = self.items.iter().position(|item| item["id"] == *id) else {
                    return error(404, &format!("item {id} not found"));
                };
                let (old, mut item) = (self.items[at].clone(), self.items[at].clone());
                for op in serde_json::from_slice::<Vec<Value>>(&request.body).unwrap() {
                    if let Err(why) = self.patch(&mut item, &op) {
                        return error(400, &why);
                    }
                }
                item["version"] = (item["version"].as_u64().unwrap() + 1).into();
                self.items[at] = item.clone();
                self.stale = Some((self.lag, old));
                self.told();
                ResponseTemplate::new(200).set_body_json(item)
            }
            _ => error(404, "no such path"),
        }
    }

    /// All or none: the caller keeps the item as it was where one operation does not fit.
    fn patch(&mut self, item: &mut Value, op: &Value) -> Result<(), String> {
        let (verb, path) = (op["op"].as_str().unwrap_or_default(), op["path"].as_str().unwrap_or_default());
        let fields = item["fields"].as_array_mut().unwrap();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let at = |fields: &[Value], id: &str| {
            fields.iter().position(|field| field["id"] == *id).ok_or(format!("no field {id}"))
        };
        match (verb, &parts[..]) {
            ("add", ["fields"]) => {
                let mut field = op["value"].clone();
                self.next += 1;
                field["id"] = format!("f{:025}", self.next).into();
                fields.push(field);
            }
            ("remove", ["fields", id]) => {
                let at = at(fields, id)?;
                fields.remove(at);
            }
            ("add", ["fields", id, "value"]) => {
                let at = at(fields, id)?;
                fields[at]["value"] = op["value"].clone();
            }
            ("replace", ["fields", id, "value"]) => {
                let at = at(fields, id)?;
                if fields[at]["value"].is_null() {
                    return Err(format!("nothing to replace at {path} by {}", op["value"]));
                }
                fields[at]["value"] = op["value"].clone();
            }
            _ => return Err(format!("{verb} {path} is not known")),
        }
        Ok(())
    }

    fn told(&self) {
        if let Some(behind) = &self.behind_writes {
            behind(&self.items);
        }
    }
}

/// An answer that takes its time.
pub fn slow(by: Duration) -> ResponseTemplate {
    ResponseTemplate::new(200).set_delay(by).set_body_json(json!([]))
}
