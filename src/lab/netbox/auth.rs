//! Who asks NetBox: v1 and v2 tokens, refused with the words of the real one. Every refusal is a 403.

use axum::http::StatusCode;

use serde_json::{Value, json};

use super::super::records::Token;
use super::Refusal;
use super::kind::Kind;

/// The token of a request, or why it is refused.
pub(super) fn check(tokens: &[Token], header: Option<&str>) -> Result<Token, Refusal> {
    let refused = |text: &str| Err(Refusal::detail(StatusCode::FORBIDDEN, text));
    let words: Vec<&str> = header.unwrap_or_default().split_whitespace().collect();
    let Some(keyword) = words.first() else {
        return refused("Authentication credentials were not provided.");
    };
    if !keyword.eq_ignore_ascii_case("bearer") && !keyword.eq_ignore_ascii_case("token") {
        return refused("Authentication credentials were not provided.");
    }
    let [_, secret] = words[..] else {
        return refused(
            "Invalid authorization header: Must be in the form \"Bearer <key>.<token>\" or \"Token <token>\"",
        );
    };
    // The prefix tells the version, whatever the keyword.
    let version = if secret.starts_with("nbt_") { 2 } else { 1 };
    if version == 2 && !secret.contains('.') {
        return refused(
            "Invalid authorization header: Could not parse key from v2 token. Did you mean to use 'Token' instead of \
             'Bearer'?",
        );
    }
    match tokens.iter().find(|t| t.secret == secret) {
        Some(token) => Ok(token.clone()),
        None => refused(&format!("Invalid v{version} token")),
    }
}

/// Whose token it is, with what is granted.
pub(super) fn account(token: &Token) -> Value {
    let every = [
        "dcim.site",
        "dcim.location",
        "dcim.rack",
        "dcim.manufacturer",
        "dcim.devicetype",
        "dcim.devicerole",
        "dcim.device",
        "dcim.interface",
        "dcim.macaddress",
        "dcim.cable",
        "ipam.ipaddress",
        "extras.tag",
    ];
    let mut grants = vec![];
    if token.view {
        grants.push(json!({"id": 1, "name": "lab reads", "enabled": true, "object_types": every, "actions": ["view"]}));
    }
    if token.view && token.write {
        grants.push(json!({"id": 2, "name": "lab changes", "enabled": true, "object_types": ["dcim.device"], "actions": ["change"]}));
    }
    json!({"id": 2, "username": "muster", "is_active": true, "groups": [], "permissions": grants})
}

/// What OPTIONS tells of a list: the fields of each method that the account may use.
pub(super) fn options(token: &Token, kind: Kind) -> Value {
    let mut answer = json!({"name": kind.noun(), "renders": ["application/json"], "parses": ["application/json"]});
    if token.view && token.write && kind == Kind::Devices {
        answer["actions"] = json!({"PUT": {"status": {"type": "field", "required": false, "read_only": false}}});
    }
    answer
}

/// What an account may not do.
pub(super) fn forbidden() -> Refusal {
    Refusal::detail(StatusCode::FORBIDDEN, "You do not have permission to perform this action.")
}
