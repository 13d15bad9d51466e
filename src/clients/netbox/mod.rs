//! NetBox's REST API: one token, typed answers, errors that name what was asked and which field surprised.

pub mod error;
pub mod failure;
pub mod observe;
pub mod pages;
pub mod permissions;
pub mod read;
pub mod records;
pub mod write;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use self::error::NetBoxError;
use super::http::{Answer, Auth, Carrier, HttpClient, HttpError, HttpOptions, Method, Request};
use super::rehearsal::Rehearsal;
use super::vault::{Held, Vault};
use crate::config::settings::{NetboxSettings, SecretRef};

/// A NetBox, asked with one token. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct NetBox {
    pub(crate) http: HttpClient,
    token: Token,
    /// Learned at the first tag that was added: this server ignores `add_tags`.
    ignores_add_tags: Arc<AtomicBool>,
}

/// One object with the ETag that came with it, where the server offers one.
#[derive(Debug, Clone, PartialEq)]
pub struct Versioned<T> {
    pub record: T,
    pub etag: Option<String>,
}

/// The token as it was last read, and where it comes from.
#[derive(Clone)]
struct Token {
    now: Arc<RwLock<SecretString>>,
    /// `None`: it stays as it is.
    source: Option<Held>,
}

impl Token {
    fn now(&self) -> SecretString {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another token than the one that was refused, where the vault has one by now.
    async fn beside(&self, refused: &SecretString) -> Option<SecretString> {
        match self.source.as_ref()?.renewed(refused).await {
            Ok(other) => {
                let other = other?;
                *self.now.write().unwrap_or_else(PoisonError::into_inner) = other.clone();
                Some(other)
            }
            Err(error) => {
                tracing::warn!(%error, "NetBox refuses the token, and there is no other");
                None
            }
        }
    }
}

impl NetBox {
    /// A client. The URL may end with `/api` or not.
    pub fn new(settings: &NetboxSettings, token: SecretString) -> Result<Self, HttpError> {
        let options =
            HttpOptions { trust: settings.trust.clone(), timeout: settings.timeout, ..HttpOptions::default() };
        let mut base = settings.url.clone();
        let path = base.path().trim_end_matches('/').to_owned();
        base.set_path(path.strip_suffix("/api").unwrap_or(&path));
        Ok(NetBox {
            http: HttpClient::new("netbox", &base, &options)?,
            token: Token { now: Arc::new(RwLock::new(token)), source: None },
            ignores_add_tags: Arc::new(AtomicBool::new(false)),
        })
    }

    /// The same client, which reads its token anew where NetBox refuses it: it may have been rotated.
    pub fn renewing(mut self, vault: &Vault, token: &SecretRef) -> Self {
        self.token.source = Some(Held::new(vault, token));
        self
    }

    /// The same NetBox as a plan asks it: nothing is changed there (G14).
    pub fn rehearsed(&self, rehearsal: &Rehearsal) -> NetBox {
        NetBox {
            http: self.http.clone().rehearsed(rehearsal),
            token: self.token.clone(),
            // What a rehearsal learns of a server that it only imagines is of no use to anybody else.
            ignores_add_tags: Arc::new(AtomicBool::new(self.ignores_add_tags.load(Ordering::Relaxed))),
        }
    }

    /// The same NetBox, reached by another carrier than the wire.
    pub fn over(&self, carrier: Arc<dyn Carrier>) -> NetBox {
        NetBox {
            http: self.http.clone().over(carrier),
            token: self.token.clone(),
            ignores_add_tags: Arc::clone(&self.ignores_add_tags),
        }
    }

    /// Where this NetBox is, without `/api`.
    pub fn url(&self) -> &Url {
        self.http.base()
    }

    /// Reads one answer into `T`. A filter with an empty value is never sent: NetBox would answer with everything (C-05).
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Vec<(String, String)>,
    ) -> Result<T, NetBoxError> {
        self.get_versioned(path, query).await.map(|found| found.record)
    }

    pub(crate) async fn get_versioned<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Vec<(String, String)>,
    ) -> Result<Versioned<T>, NetBoxError> {
        if let Some((key, _)) = query.iter().find(|(_, value)| value.trim().is_empty()) {
            return Err(NetBoxError::EmptyFilter { asked: format!("GET {path}"), filter: key.clone() });
        }
        let mut request = Request::get(path);
        request.query = query;
        self.decode(self.send(request).await?)
    }

    /// A page of a long list that is read in lanes, on a connection of its own. A server with several processes gives a
    /// connection to one of them for as long as it lasts: kept ones crowd in some of them while others have nothing to do.
    /// Says how long the answer was.
    pub(crate) async fn get_page<T: DeserializeOwned>(
        &self,
        path: &str,
        query: Vec<(String, String)>,
    ) -> Result<(T, usize), NetBoxError> {
        let mut request = Request::get(path).header("connection", "close");
        request.query = query;
        let answer = self.send(request).await?;
        let bytes = answer.body.len();
        Ok((self.decode::<T>(answer)?.record, bytes))
    }

    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
        if_match: Option<&str>,
    ) -> Result<Versioned<T>, NetBoxError> {
        let mut request = Request::new(Method::PATCH, path).json(body);
        if let Some(etag) = if_match {
            request = request.header("if-match", etag);
        }
        self.decode(self.send(request).await?)
    }

    async fn send(&self, request: Request) -> Result<Answer, NetBoxError> {
        let request = request.header("accept", "application/json");
        let token = self.token.now();
        let with = |token: &SecretString| Auth::Authorization(authorization(token));
        let answer = self.http.send(request.clone().auth(with(&token))).await?;
        match error::check(answer, &self.http.host()) {
            // The refused request did nothing.
            Err(error @ NetBoxError::Token { .. }) => match self.token.beside(&token).await {
                Some(other) => error::check(self.http.send(request.auth(with(&other))).await?, &self.http.host()),
                None => Err(error),
            },
            outcome => outcome,
        }
    }

    fn decode<T: DeserializeOwned>(&self, answer: Answer) -> Result<Versioned<T>, NetBoxError> {
        let etag = answer.header("etag").map(str::to_owned);
        Ok(Versioned { record: records::decode(&answer, &self.http.host())?, etag })
    }
}

/// The whole header for a token. The version is in the token itself: `nbt_KEY.SECRET` is v2, all others are v1. A keyword
/// that somebody stored with the token is taken off.
fn authorization(token: &SecretString) -> SecretString {
    let text = token.expose_secret().trim();
    let bare = ["Bearer ", "Token "].iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text).trim();
    let keyword = if bare.starts_with("nbt_") { "Bearer" } else { "Token" };
    format!("{keyword} {bare}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_itself_says_its_version() {
        let header = |token: &str| authorization(&token.to_owned().into()).expose_secret().to_owned();
        assert_eq!(header("nbt_abc.def"), "Bearer nbt_abc.def");
        assert_eq!(header("0123456789abcdef\n"), "Token 0123456789abcdef");
        assert_eq!(header("Token 0123"), "Token 0123");
        assert_eq!(header("Token nbt_abc.def"), "Bearer nbt_abc.def");
    }
}
