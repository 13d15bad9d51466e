//! Plain HTTP for tests that ask the lab as anybody could.

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    /// JSON, or text that is none; null where there is no body.
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// What is inside `error_message`, with its fault or description.
    pub fn error(&self) -> Value {
        serde_json::from_str(self.body["error_message"].as_str().unwrap_or("null")).unwrap_or_default()
    }
}

/// A client of one server.
pub struct Http {
    client: reqwest::Client,
    base: String,
    headers: Vec<(String, String)>,
}

impl Http {
    pub fn new(base: &str) -> Http {
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        let client = client.timeout(std::time::Duration::from_secs(20)).build().unwrap();
        Http { client, base: base.to_owned(), headers: vec![] }
    }

    /// Sends this header with every request.
    pub fn with(mut self, name: &str, value: &str) -> Http {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None, &[]).await.unwrap()
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body.to_string()), &[]).await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body.to_string()), &[]).await.unwrap()
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Some(body.to_string()), &[]).await.unwrap()
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None, &[]).await.unwrap()
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, reqwest::Error> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body = serde_json::from_str(&text).unwrap_or(if text.is_empty() { Value::Null } else { text.into() });
        Ok(Answer { status, headers, body })
    }
}
