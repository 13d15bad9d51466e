//! NetBox's REST API.

use secrecy::SecretString;

use super::http::{HttpClient, HttpError, HttpOptions};
use crate::config::settings::NetboxSettings;

/// A NetBox, asked with one token.
#[derive(Clone)]
pub struct NetBox {
    pub(crate) http: HttpClient,
    pub(crate) token: SecretString,
}

impl NetBox {
    pub fn new(settings: &NetboxSettings, token: SecretString) -> Result<Self, HttpError> {
        let options =
            HttpOptions { trust: settings.trust.clone(), timeout: settings.timeout, ..HttpOptions::default() };
        Ok(NetBox { http: HttpClient::new("netbox", &settings.url, &options)?, token })
    }
}
