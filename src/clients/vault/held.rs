//! A secret that goes with every request of a client: not read anew for each of them, and read anew when it is refused.

use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::{Vault, VaultError};
use crate::config::settings::SecretRef;

/// Long enough for a vault not to be asked for every request, short enough for a secret that is no longer in use.
const HELD: Duration = Duration::from_secs(60);
/// A secret that is refused is looked for no more often than this: it may be the vault's that is wrong.
const AGAIN: Duration = Duration::from_secs(10);
/// Others who wait for the same secret take no longer.
const QUEUE: Duration = Duration::from_secs(60);

/// Clones share what is held. One of them asks the vault, the others wait for what it is told: the lock is held across
/// that, which has a deadline.
#[derive(Debug, Clone)]
pub struct Held {
    vault: Vault,
    reference: SecretRef,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    secret: Option<(SecretString, Instant)>,
    refused: Option<Instant>,
}

impl Held {
    pub fn new(vault: &Vault, reference: &SecretRef) -> Self {
        Held { vault: vault.clone(), reference: reference.clone(), kept: Arc::default() }
    }

    /// The secret as it was a minute ago at most.
    pub async fn get(&self) -> Result<SecretString, VaultError> {
        let mut kept = self.lock().await?;
        match &kept.secret {
            Some((secret, read)) if read.elapsed() < HELD => Ok(secret.clone()),
            _ => self.read(&mut kept).await,
        }
    }

    /// Another secret than the one that a service has just refused, where there is one by now.
    pub async fn renewed(&self, refused: &SecretString) -> Result<Option<SecretString>, VaultError> {
        let mut kept = self.lock().await?;
        let other = |secret: &SecretString| secret.expose_secret() != refused.expose_secret();
        if let Some((secret, _)) = kept.secret.as_ref().filter(|(secret, _)| other(secret)) {
            return Ok(Some(secret.clone()));
        }
        if kept.refused.is_some_and(|at| at.elapsed() < AGAIN) {
            return Ok(None);
        }
        kept.refused = Some(Instant::now());
        Ok(Some(self.read(&mut kept).await?).filter(other))
    }

    async fn lock(&self) -> Result<tokio::sync::MutexGuard<'_, Kept>, VaultError> {
        let late = |_| VaultError::NoAnswer { place: self.vault.place(), patience: QUEUE };
        tokio::time::timeout(QUEUE, self.kept.lock()).await.map_err(late)
    }

    async fn read(&self, kept: &mut Kept) -> Result<SecretString, VaultError> {
        let secret = self.vault.resolve(&self.reference).await?;
        kept.secret = Some((secret.clone(), Instant::now()));
        Ok(secret)
    }
}
