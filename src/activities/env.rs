//! What an activity is given: clients, store, settings, and a way to say what it sees.

use std::sync::Arc;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::vault;
use crate::clients::Clients;
use crate::clients::vault::Vault;
use crate::config::settings::{Settings, SiteSettings};
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::store::Store;

/// The world as all activities share it. Made once by whoever joins the parts.
pub struct Env {
    pub settings: Arc<Settings>,
    pub vault: Vault,
    pub store: Store,
    /// Told when the projection of Ironic's nodes is wanted sooner than its cadence (T1).
    pub refresh_nodes: tokio::sync::Notify,
    pub clients: Clients,
}

/// One attempt of one activity.
#[derive(Clone)]
pub struct ActivityCx {
    pub env: Arc<Env>,
    pub run: RunId,
    /// Place of the activity in the run; with `run` it names the activity for ever.
    pub seq: u32,
    /// From 1.
    pub attempt: u32,
    /// Ends when the run is cancelled or the program stops: long waits watch it.
    pub stop: CancellationToken,
    /// Where observations go.
    pub sink: Arc<dyn Fn(Observation) + Send + Sync>,
}

impl ActivityCx {
    /// Says what was seen or done, for panes and the event list.
    pub fn observe(&self, observation: Observation) {
        (self.sink)(observation);
    }

    /// A sentence for the event list.
    pub fn note(&self, system: &str, text: impl Into<String>) {
        self.observe(Observation::Note { system: system.to_owned(), text: text.into() });
    }

    /// Records a write: what was changed where, from what to what. Never called with a secret.
    pub fn wrote(&self, system: &str, target: &str, what: &str, before: impl ToString, after: impl ToString) {
        self.observe(Observation::Wrote {
            system: system.to_owned(),
            target: target.to_owned(),
            what: what.to_owned(),
            before: before.to_string(),
            after: after.to_string(),
        });
    }

    /// The site's settings. A site that the configuration no longer has is a failure, not a panic.
    pub fn site(&self, site: &str, phase: Phase) -> Result<&SiteSettings, Failure> {
        self.env.settings.sites.get(site).ok_or_else(|| {
            Failure::new(
                FailureCode::InternalError,
                phase,
                format!("the configuration has no site '{site}'"),
                format!("add [sites.{site}] to the configuration and start muster again"),
            )
        })
    }

    /// A secret of the vault, read anew.
    pub async fn secret(&self, item: &str, field: &str, phase: Phase) -> Result<SecretString, Failure> {
        self.env.vault.ask(item, field).await.map_err(|error| vault::failure(&error, phase))
    }
}
