//! A second client of the rig's Ironic: the person, or the other program, that muster has to reckon with.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

/// Asks Ironic as nobody's friend: whatever verb, whatever patch.
#[derive(Clone)]
pub struct Second {
    url: String,
    http: reqwest::Client,
}

impl Second {
    pub fn of(url: &str) -> Second {
        rustls::crypto::ring::default_provider().install_default().ok();
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Second { url: url.trim_end_matches('/').to_owned(), http }
    }

    /// Status and body of an answer.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        request = request.header("X-OpenStack-Ironic-API-Version", "1.95").timeout(Duration::from_secs(60));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// An answer that has to be a good one. A lock is waited out, of the node, or of a database with one writer.
    pub async fn must(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let (status, answer) = self.ask(method.clone(), path, body.clone()).await;
            if status < 300 {
                return answer;
            }
            let said = answer.to_string();
            let locked = said.contains("is locked by host") || said.contains("database is locked");
            assert!(locked && Instant::now() < deadline, "{method} {path}: {status} {answer}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    pub async fn node(&self, node: &str) -> Option<Value> {
        match self.ask(Method::GET, &format!("/v1/nodes/{node}"), None).await {
            (404, _) => None,
            (200, body) => Some(body),
            (status, body) => panic!("{node}: {status} {body}"),
        }
    }

    pub async fn patch(&self, node: &str, path: &str, value: Value) -> Value {
        let op = if value.is_null() { "remove" } else { "add" };
        let patch = json!([{"op": op, "path": path, "value": value}]);
        self.must(Method::PATCH, &format!("/v1/nodes/{node}"), Some(patch)).await
    }

    pub async fn maintenance(&self, node: &str, on: bool) {
        let method = if on { Method::PUT } else { Method::DELETE };
        let body = on.then(|| json!({"reason": "set by hand"}));
        self.must(method, &format!("/v1/nodes/{node}/maintenance"), body).await;
    }

    /// Asks for a provision change and waits until the node rests in a state.
    pub async fn verb(&self, node: &str, body: Value, until: &str) {
        self.must(Method::PUT, &format!("/v1/nodes/{node}/states/provision"), Some(body)).await;
        self.until(node, until).await;
    }

    /// Waits until the node is in a state and nobody holds it.
    pub async fn until(&self, node: &str, state: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let now = self.node(node).await.unwrap();
            if now["provision_state"] == state && now["reservation"].is_null() {
                return;
            }
            let so_far = format!("{} {} {}", now["provision_state"], now["reservation"], now["last_error"]);
            assert!(Instant::now() < deadline, "{node} waits for '{state}': {so_far}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A node of the hardware type whose interfaces do nothing, but for those that are named.
    pub async fn fake(&self, name: &str, interfaces: Value) -> String {
        let mut body = json!({"name": name, "driver": "fake-hardware", "network_interface": "noop"});
        body.as_object_mut().unwrap().extend(interfaces.as_object().cloned().unwrap_or_default());
        let made = self.must(Method::POST, "/v1/nodes", Some(body)).await;
        made["uuid"].as_str().unwrap().to_owned()
    }

    /// Removes a node, whatever it is at.
    pub async fn remove(&self, node: &str) {
        let Some(now) = self.node(node).await else { return };
        if now["provision_state"].as_str().is_some_and(|state| state.ends_with("wait")) {
            let abort = Some(json!({"target": "abort"}));
            self.ask(Method::PUT, &format!("/v1/nodes/{node}/states/provision"), abort).await;
        }
        let path = format!("/v1/nodes/{node}");
        if !now["instance_uuid"].is_null() {
            let patch = json!([{"op": "remove", "path": "/instance_uuid"}]);
            self.ask(Method::PATCH, &path, Some(patch)).await;
        }
        self.ask(Method::PUT, &format!("{path}/maintenance"), Some(json!({"reason": "a test ends"}))).await;
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.ask(Method::DELETE, &path, None).await {
                (204 | 404, _) => return,
                (status, body) => assert!(Instant::now() < deadline, "{node} can't be removed: {status} {body}"),
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}
