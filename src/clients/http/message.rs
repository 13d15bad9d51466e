//! What is asked and what is answered.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::error::HttpError;
use crate::domain::text::neutralize_to;

/// A request. The path is joined to the client's base. Printed without its body, which may hold a secret.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    /// Path and query, percent-encoded; or a whole URL of the same origin.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub auth: Auth,
    pub body: Option<Value>,
    pub timeout: Option<Duration>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = self.body.as_ref().map(|_| "***");
        write!(f, "Request({} {}, body: {body:?})", self.method, self.path)
    }
}

/// Who asks. Printed as nothing.
#[derive(Clone, Default)]
pub enum Auth {
    #[default]
    None,
    Basic {
        username: String,
        password: SecretString,
    },
    /// The whole value of the header `Authorization`.
    Authorization(SecretString),
    /// The value of a header of its own, such as `X-Auth-Token`.
    Header {
        name: &'static str,
        value: SecretString,
    },
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth(***)")
    }
}

impl Request {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Request {
            method,
            path: path.into(),
            query: vec![],
            headers: vec![],
            auth: Auth::None,
            body: None,
            timeout: None,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn query(mut self, key: impl Into<String>, value: impl ToString) -> Self {
        self.query.push((key.into(), value.to_string()));
        self
    }

    /// Adds a header; a value that no header can carry is left out, since it came from outside.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((HeaderName::from_static(name), value));
        }
        self
    }

    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// What was asked, for messages: `GET /v1/nodes`.
    pub asked: String,
}

impl Answer {
    /// The body as JSON. An empty body is `null`.
    pub fn json(&self) -> Result<Value, HttpError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|e| self.not_json(&e, "the server"))
    }

    /// What an error of the JSON means. A document that ends in the middle may be whole the next time; everything else
    /// never was JSON.
    pub fn not_json(&self, error: &serde_json::Error, host: &str) -> HttpError {
        let (asked, host) = (self.asked.clone(), host.to_owned());
        if error.is_eof() {
            return HttpError::CutShort { asked, host, bytes: self.body.len() };
        }
        HttpError::NotJson { asked, host, cause: format!("{error}; it begins '{}'", self.excerpt()) }
    }

    /// The first characters of the body, safe to show.
    pub fn excerpt(&self) -> String {
        let head = &self.body[..self.body.len().min(600)];
        neutralize_to(String::from_utf8_lossy(head).trim(), 300)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A secret as a header value that debug output does not show. An impossible value becomes an empty one, which the
/// server refuses.
pub(super) fn sensitive(value: &SecretString) -> HeaderValue {
    let mut header = HeaderValue::from_str(value.expose_secret()).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}
