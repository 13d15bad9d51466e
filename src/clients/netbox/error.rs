//! Tells apart how NetBox says no.

use serde_json::Value;

use crate::clients::http::{Answer, HttpError, StatusCode};
use crate::domain::text::neutralize_to;

/// Why a request to NetBox brought nothing usable. All text of the server is safe to show.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NetBoxError {
    #[error(transparent)]
    Http(#[from] HttpError),
    /// No token, an unknown, expired or disabled one, or one that may not come from here. NetBox answers that with 403.
    #[error("{asked}: NetBox at {host} refused the token: {words}")]
    Token { asked: String, host: String, words: String },
    /// The token is good and lacks a permission, or may not write.
    #[error("{asked}: NetBox at {host} allows this token too little: {words}")]
    Permission { asked: String, host: String, words: String },
    /// There is no such object, or the token may not see it: NetBox answers the same to both.
    #[error("{asked}: NetBox at {host} has no such object, or the token may not see it")]
    NotFound { asked: String, host: String },
    #[error("{asked}: NetBox at {host} refused the request: {words}")]
    Invalid { asked: String, host: String, words: String },
    #[error("{asked}: NetBox at {host} has no tag with the slug '{slug}': {words}")]
    UnknownTag { asked: String, host: String, slug: String, words: String },
    #[error("{asked}: somebody else changed the object meanwhile")]
    Conflict { asked: String },
    #[error("{asked}: NetBox at {host} asks to wait{}", after(.retry_after_s))]
    Throttled { asked: String, host: String, retry_after_s: Option<u64> },
    #[error("{asked}: NetBox at {host} answered {status}: {words}")]
    Server { asked: String, host: String, status: u16, words: String },
    #[error("{asked}: {host} redirects to '{location}'")]
    Redirect { asked: String, host: String, location: String },
    #[error("{asked}: {host} answered {status} with something that is not NetBox's JSON: '{excerpt}'")]
    NotJson { asked: String, host: String, status: u16, excerpt: String },
    #[error("{asked}: NetBox at {host} answered with another shape than expected: {field}: {problem}")]
    Schema { asked: String, host: String, field: String, problem: String },
    #[error("{asked}: the list of {host} is longer than {limit} rows")]
    TooLong { asked: String, host: String, limit: usize },
    /// It answered with rows that were not asked for: a list can't be read page by page there.
    #[error("{asked}: {host} ignores '{filter}'")]
    Ignored { asked: String, host: String, filter: String },
    #[error("{asked}: the filter '{filter}' would have been sent without a value")]
    EmptyFilter { asked: String, filter: String },
}

fn after(seconds: &Option<u64>) -> String {
    seconds.map_or_else(String::new, |s| format!(" {s} s"))
}

/// Lets a 2xx answer pass and classifies every other.
pub(crate) fn check(answer: Answer, host: &str) -> Result<Answer, NetBoxError> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let (asked, host, status) = (answer.asked.clone(), host.to_owned(), answer.status);
    if status.is_redirection() {
        let location = neutralize_to(answer.header("location").unwrap_or("nowhere"), 200);
        return Err(NetBoxError::Redirect { asked, host, location });
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        let retry_after_s = answer.header("retry-after").and_then(|text| text.trim().parse().ok());
        return Err(NetBoxError::Throttled { asked, host, retry_after_s });
    }
    if status == StatusCode::PRECONDITION_FAILED {
        return Err(NetBoxError::Conflict { asked });
    }
    let body = answer.json().ok().filter(|body| !body.is_null());
    let words = body.as_ref().map(words).unwrap_or_default();
    if status.is_server_error() {
        let words = if words.is_empty() { title(&answer) } else { words };
        return Err(NetBoxError::Server { asked, host, status: status.as_u16(), words });
    }
    if body.is_none() {
        // A proxy, another server, or a path that NetBox does not have: it answers those with a page.
        return Err(NetBoxError::NotJson { asked, host, status: status.as_u16(), excerpt: title(&answer) });
    }
    Err(match status {
        StatusCode::UNAUTHORIZED => NetBoxError::Token { asked, host, words },
        StatusCode::FORBIDDEN if words.contains("permission to perform") => {
            NetBoxError::Permission { asked, host, words }
        }
        StatusCode::FORBIDDEN => NetBoxError::Token { asked, host, words },
        StatusCode::NOT_FOUND => NetBoxError::NotFound { asked, host },
        _ => NetBoxError::Invalid { asked, host, words },
    })
}

/// NetBox's own words: `detail`, `error` of an exception, or every field with its complaints.
fn words(body: &Value) -> String {
    let text = match body.get("detail").or(body.get("error")).and_then(Value::as_str) {
        Some(words) => words.to_owned(),
        None => complaints(body, 0),
    };
    neutralize_to(text.trim(), 400)
}

fn complaints(value: &Value, depth: usize) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if depth < 4 => list.iter().map(|v| complaints(v, depth + 1)).collect::<Vec<_>>().join("; "),
        Value::Object(map) if depth < 4 => {
            let named = |(key, v): (&String, &Value)| match key.as_str() {
                // The names that Django gives to complaints about the whole object say nothing.
                "__all__" | "non_field_errors" => complaints(v, depth + 1),
                _ => format!("{key}: {}", complaints(v, depth + 1)),
            };
            map.iter().map(named).collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

/// What a page that is no JSON says in its title, else its beginning.
fn title(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let found = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map(|(title, _)| title);
    match found {
        Some(title) if !title.trim().is_empty() => neutralize_to(title.trim(), 120),
        _ => neutralize_to(&answer.excerpt(), 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(status: u16, body: &str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: Default::default(),
            body: body.as_bytes().to_vec(),
            asked: "GET /api/dcim/devices/".into(),
        }
    }

    fn refused(status: u16, body: &str) -> NetBoxError {
        check(answer(status, body), "netbox.example.com:443").unwrap_err()
    }

    /// NetBox answers 403 to everything about tokens; only its words tell which.
    #[test]
    fn a_bad_token_and_a_missing_permission_are_told_apart_by_the_words() {
        for words in [
            "Invalid v1 token",
            "Invalid v2 token",
            "Token expired",
            "User inactive",
            "Authentication credentials were not provided.",
            "Source IP 192.0.2.7 is not permitted to authenticate using this token.",
        ] {
            let error = refused(403, &json!({ "detail": words }).to_string());
            assert!(matches!(error, NetBoxError::Token { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        let error = refused(403, r#"{"detail":"You do not have permission to perform this action."}"#);
        assert!(matches!(error, NetBoxError::Permission { .. }), "{error}");
        assert!(matches!(refused(401, r#"{"detail":"no"}"#), NetBoxError::Token { .. }));
    }

    #[test]
    fn a_page_is_named_by_its_title_whatever_its_status() {
        let error = refused(404, "<html><head><title>Page Not Found | NetBox</title></head></html>");
        assert!(
            matches!(&error, NetBoxError::NotJson { excerpt, .. } if excerpt == "Page Not Found | NetBox"),
            "{error}"
        );
        let error = refused(502, "<html><head><title>502 Bad Gateway</title></head></html>");
        assert!(
            matches!(&error, NetBoxError::Server { status: 502, words, .. } if words == "502 Bad Gateway"),
            "{error}"
        );
    }

    #[test]
    fn a_refused_write_says_what_netbox_said() {
        let body = json!({"custom_fields": {"nosuch": "Custom field 'nosuch' does not exist for this object type."}});
        let error = refused(400, &body.to_string()).to_string();
        assert!(error.contains("custom_fields: nosuch: Custom field 'nosuch' does not exist"), "{error}");
        let error = refused(400, &json!({"__all__": ["Value must be a string."]}).to_string()).to_string();
        assert!(error.ends_with("refused the request: Value must be a string."), "{error}");
    }

    /// Proves: U8
    #[test]
    fn words_of_the_server_cannot_act_on_a_terminal() {
        let error = refused(400, &json!({"detail": "\u{1b}[2Jgone"}).to_string()).to_string();
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn being_asked_to_wait_keeps_the_seconds() {
        let mut limited = answer(429, "{}");
        limited.headers.insert("retry-after", "17".parse().unwrap());
        let error = check(limited, "n").unwrap_err();
        assert!(matches!(error, NetBoxError::Throttled { retry_after_s: Some(17), .. }), "{error}");
    }
}
