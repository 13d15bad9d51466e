//! An activity's context over settings that a test has read from a configuration.

use std::path::Path;
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;
use muster::activities::env::{ActivityCx, Env};
use muster::clients::Clients;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::config::settings::Settings;
use muster::domain::event::Observation;
use muster::domain::ids::RunId;
use muster::store::Store;

/// What an activity said, in its order.
pub type Seen = Arc<Mutex<Vec<Observation>>>;

/// The context of one attempt; the store is made in `folder`.
pub fn context(settings: Settings, folder: &Path) -> (ActivityCx, Seen) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let vault = Vault::new(settings.vault.clone());
    // Tests that never ask NetBox need no token.
    let token = muster::clients::vault::plain(&settings.netbox.token).unwrap_or_else(|_| "none".to_owned().into());
    let env = Env {
        vault,
        store: Store::open(&folder.join("state")).unwrap(),
        refresh_nodes: tokio::sync::Notify::new(),
        clients: Clients { netbox: NetBox::new(&settings.netbox, token).unwrap(), ironic: IndexMap::new() },
        settings: Arc::new(settings),
    };
    let seen = Seen::default();
    let sink = Arc::clone(&seen);
    let cx = ActivityCx {
        env: Arc::new(env),
        run: RunId(uuid::Uuid::now_v7()),
        seq: 0,
        attempt: 1,
        stop: tokio_util::sync::CancellationToken::new(),
        sink: Arc::new(move |observation| sink.lock().unwrap().push(observation)),
    };
    (cx, seen)
}
