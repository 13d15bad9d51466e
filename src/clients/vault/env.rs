//! Secrets in muster's own environment.

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use secrecy::SecretString;

use super::{Backend, Fields, VaultError, missing};

#[derive(Debug)]
pub(super) struct Env;

impl Backend for Env {
    fn place(&self) -> String {
        "muster's environment".to_owned()
    }

    fn get<'a>(&'a self, item: &'a str, field: &'a str) -> BoxFuture<'a, Result<SecretString, VaultError>> {
        let name = variable(item, field);
        ready(match std::env::var(&name) {
            Ok(value) if !value.is_empty() => Ok(value.into()),
            _ => Err(missing(item, field, &format!("environment variable '{name}'"))),
        })
        .boxed()
    }

    fn put<'a>(&'a self, item: &'a str, _: Fields) -> BoxFuture<'a, Result<(), VaultError>> {
        ready(Err(VaultError::ReadOnly { item: item.to_owned() })).boxed()
    }

    fn open(&self) -> BoxFuture<'_, Result<(), VaultError>> {
        ready(Ok(())).boxed()
    }
}

/// The environment variable of an item's field: `MUSTER_SECRET_BMC_GPU_B07_37_PASSWORD`.
fn variable(item: &str, field: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
    };
    format!("MUSTER_SECRET_{}_{}", plain(item), plain(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_by_item_and_field() {
        assert_eq!(variable("bmc-gpu-b07-37", "password"), "MUSTER_SECRET_BMC_GPU_B07_37_PASSWORD");
    }

    #[tokio::test]
    async fn the_environment_is_not_written() {
        let error = Env.put("bmc-a", vec![("password", Some("x".into()))]).await.unwrap_err();
        assert!(error.to_string().contains("bmc-a"), "{error}");
    }
}
