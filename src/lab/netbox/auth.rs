//! Who asks NetBox: v1 and v2 tokens, refused with the words of the real one. Every refusal is a 403.

use axum::http::StatusCode;

use super::super::records::Token;
use super::Refusal;

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

/// What an account may not do.
pub(super) fn forbidden() -> Refusal {
    Refusal::detail(StatusCode::FORBIDDEN, "You do not have permission to perform this action.")
}
