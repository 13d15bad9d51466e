//! Ironic's REST API.

use super::http::{HttpClient, HttpError, HttpOptions};
use super::vault::Vault;
use crate::config::settings::IronicInstance;

/// One Ironic, asked with the credentials of its configuration.
#[derive(Clone)]
pub struct Ironic {
    pub(crate) name: String,
    pub(crate) http: HttpClient,
    pub(crate) settings: IronicInstance,
    pub(crate) vault: Vault,
}

impl Ironic {
    /// A client for an instance; secrets are fetched from the vault when they are first needed.
    pub fn new(name: &str, settings: &IronicInstance, vault: &Vault) -> Result<Self, HttpError> {
        let options =
            HttpOptions { trust: settings.trust.clone(), timeout: settings.timeout, ..HttpOptions::default() };
        let http = HttpClient::new("ironic", &settings.url, &options)?;
        Ok(Ironic { name: name.to_owned(), http, settings: settings.clone(), vault: vault.clone() })
    }
}
