//! Why there is no answer, in the words of whoever asked.

use std::time::Duration;

use crate::domain::text::neutralize_to;

/// Why there is no answer, or none that can be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum HttpError {
    #[error("{asked}: {host} refused the connection")]
    Refused { asked: String, host: String },
    #[error("{asked}: the name '{host}' could not be resolved")]
    Dns { asked: String, host: String },
    #[error("{asked}: no connection to {host}: {cause}")]
    Connect { asked: String, host: String, cause: String },
    #[error("{asked}: no answer from {host} in {seconds} s")]
    Timeout { asked: String, host: String, seconds: u64 },
    #[error("{asked}: the certificate of {host} is not trusted: {cause}")]
    Tls { asked: String, host: String, cause: String },
    #[error("{asked}: the connection to {host} broke off: {cause}")]
    Broken { asked: String, host: String, cause: String },
    #[error("{asked}: the answer of {host} is larger than {limit} bytes")]
    TooLarge { asked: String, host: String, limit: usize },
    /// Short enough, and of so many values that it would fill the memory.
    #[error("{asked}: the answer of {host} would take more than {} MB of memory", limit >> 20)]
    TooHeavy { asked: String, host: String, limit: usize },
    /// Cut on its way: what stands between, or a server that dies while it answers.
    #[error("{asked}: the JSON in the answer of {host} ends in the middle, after {bytes} bytes")]
    CutShort { asked: String, host: String, bytes: usize },
    #[error("{asked}: the answer of {host} is not JSON: {cause}")]
    NotJson { asked: String, host: String, cause: String },
    #[error("'{url}' is not on {host}: credentials go only to the host they are for")]
    ForeignUrl { url: String, host: String },
    #[error("no HTTP client for {host}: {cause}")]
    Setup { host: String, cause: String },
    /// This client only reads, and what the request would come to cannot be imagined (G14).
    #[error("{asked}: a plan sends nothing that changes something, and cannot foresee what {host} would answer")]
    ReadOnly { asked: String, host: String },
}

impl HttpError {
    /// Whether the same request can succeed later: the server was not reached, or did not answer in time, or not to the end.
    pub fn is_transient(&self) -> bool {
        match self {
            HttpError::Refused { .. }
            | HttpError::Dns { .. }
            | HttpError::Connect { .. }
            | HttpError::Timeout { .. }
            | HttpError::CutShort { .. }
            | HttpError::Broken { .. } => true,
            HttpError::Tls { .. }
            | HttpError::TooLarge { .. }
            | HttpError::TooHeavy { .. }
            | HttpError::NotJson { .. }
            | HttpError::ForeignUrl { .. }
            | HttpError::Setup { .. }
            | HttpError::ReadOnly { .. } => false,
        }
    }

    /// Why there is no answer, in a word or two.
    pub(super) fn word(&self) -> &'static str {
        match self {
            HttpError::Refused { .. } => "refused",
            HttpError::Dns { .. } => "name not resolved",
            HttpError::Connect { .. } => "no connection",
            HttpError::Timeout { .. } => "no answer in time",
            HttpError::Tls { .. } => "certificate not trusted",
            HttpError::Broken { .. } => "broken off",
            HttpError::TooLarge { .. } | HttpError::TooHeavy { .. } => "too large",
            HttpError::CutShort { .. } => "ends in the middle",
            HttpError::NotJson { .. } => "not JSON",
            HttpError::ForeignUrl { .. } | HttpError::Setup { .. } | HttpError::ReadOnly { .. } => "not sent",
        }
    }

    /// What an error of the library means for a request that had so much time.
    pub(super) fn of(error: reqwest::Error, asked: &str, host: String, limit: Duration) -> HttpError {
        let asked = asked.to_owned();
        if error.is_timeout() {
            return HttpError::Timeout { asked, host, seconds: limit.as_secs() };
        }
        let cause = chain(&error.without_url());
        let low = cause.to_ascii_lowercase();
        if low.contains("certificate") || low.contains("unknownissuer") || low.contains("notvalidforname") {
            HttpError::Tls { asked, host, cause }
        } else if low.contains("connection refused") {
            HttpError::Refused { asked, host }
        } else if low.contains("dns error") || low.contains("failed to lookup") {
            HttpError::Dns { asked, host }
        } else if low.contains("error trying to connect") || low.contains("client error (connect)") {
            HttpError::Connect { asked, host, cause }
        } else {
            HttpError::Broken { asked, host, cause }
        }
    }
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    neutralize_to(&text, 300)
}
