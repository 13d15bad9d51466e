//! What the leader runs beside its observers: push from NetBox, and notifications about what changed.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::activities::env::Env;
use crate::inventory::netbox::Observer;
use crate::inventory::notify::{self, Notifier};
use crate::inventory::push::{self, Push};

/// Starts what the configuration asks for, before the observer runs. The notifier is to be told when the fleet changed.
pub(super) fn spawn_beside(
    env: &Arc<Env>,
    observer: &Arc<Observer>,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) -> Option<Arc<Notifier>> {
    let (settings, store) = (&env.settings, &env.store);
    let nats = settings.nats.as_ref().and_then(|nats| {
        Notifier::new(nats, env.vault.clone(), store.clone()).unwrap_or_else(|error| {
            tracing::error!(%error, "nothing is told to NATS: the fleet could not be read");
            None
        })
    });
    let notifier = nats.map(Arc::new);
    match notifier.clone() {
        Some(notifier) => {
            let stop = stop.clone();
            tasks.spawn(async move { notifier.run(stop).await });
        }
        None => {
            tasks.spawn(forget(Arc::clone(env), true));
        }
    }
    match settings.push.clone() {
        Some(push) => {
            let reader = Arc::clone(observer) as Arc<dyn push::Reader>;
            let (vault, netbox) = (env.vault.clone(), env.clients.netbox.clone());
            let push = Push::new(push, settings.netbox.poll, vault, netbox, store.clone(), reader);
            let stop = stop.clone();
            tasks.spawn(async move { push.run(stop).await });
        }
        None => {
            tasks.spawn(forget(Arc::clone(env), false));
        }
    }
    notifier
}

/// Takes out the health of what is not configured any more.
async fn forget(env: Arc<Env>, nats: bool) {
    let done =
        if nats { env.store.forget_sync(notify::SYSTEM).await } else { push::forget_others(&env.store, None).await };
    if let Err(error) = done {
        tracing::warn!(%error, "the health of a system that is asked no more stays");
    }
}
