//! Observes the nodes of every Ironic instance and projects them onto devices by name.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::clients::ironic::{Ironic, IronicError};
use crate::domain::device::IronicRef;
use crate::store::{Store, StoreError};

const FIELDS: &[&str] = &["uuid", "name", "provision_state", "maintenance", "instance_uuid"];

/// Keeps the projected references of one Ironic instance.
#[derive(Clone)]
pub struct NodeObserver {
    ironic: Ironic,
    store: Store,
    poll: Duration,
}

/// Why a sync did not come to its end. What was here before still stands.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error(transparent)]
    Ironic(#[from] IronicError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl NodeObserver {
    pub fn new(ironic: Ironic, store: Store, poll: Duration) -> Self {
        NodeObserver { ironic, store, poll }
    }

    /// The name under which the store keeps this instance's health: `ironic:NAME`.
    pub fn system(&self) -> String {
        format!("ironic:{}", self.ironic.name())
    }

    /// Reads all nodes and replaces the instance's references. Says how many nodes have a name.
    pub async fn sync(&self) -> Result<usize, ObserveError> {
        let outcome = self.read().await;
        let error = outcome.as_ref().err().map(ToString::to_string);
        if let Some(error) = &error {
            tracing::warn!(instance = self.ironic.name(), error, "nodes could not be read, the last view stays");
        }
        if let Err(error) = self.store.put_sync(&self.system(), Timestamp::now(), error).await {
            tracing::error!(instance = self.ironic.name(), %error, "Ironic's health could not be recorded");
        }
        outcome
    }

    async fn read(&self) -> Result<usize, ObserveError> {
        let nodes = self.ironic.nodes(FIELDS).await?;
        let read_at = Timestamp::now();
        let refs: Vec<(String, IronicRef)> = nodes
            .into_iter()
            .filter_map(|node| {
                let reference = IronicRef {
                    instance: self.ironic.name().to_owned(),
                    node: node.uuid,
                    state: node.state,
                    maintenance: node.maintenance,
                    instance_uuid: node.instance_uuid,
                    read_at,
                };
                Some((node.name?, reference))
            })
            .collect();
        let named = refs.len();
        self.store.put_ironic_refs(refs, self.ironic.name()).await?;
        Ok(named)
    }

    /// Goes on until cancelled: reads on its cadence, and at once when `wanted` moves.
    async fn run(
        &self,
        cancel: CancellationToken,
        mut wanted: watch::Receiver<u64>,
        on_change: &(impl Fn() + Send + Sync),
    ) {
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                // What it came to is in the store already.
                _ = self.sync() => on_change(),
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                moved = wanted.changed() => if moved.is_err() { return },
                () = tokio::time::sleep(self.poll.max(Duration::from_millis(10))) => {}
            }
        }
    }
}

/// Runs the observers of all instances until cancelled. `refresh` asks all of them for a look now: one `notify_one` reaches
/// every instance, and none is lost while a look is under way.
pub async fn run_all(
    observers: Vec<NodeObserver>,
    cancel: CancellationToken,
    refresh: &Notify,
    on_change: impl Fn() + Send + Sync,
) {
    let (wanted, _) = watch::channel(0u64);
    let relay = async {
        loop {
            refresh.notified().await;
            wanted.send_modify(|count| *count += 1);
        }
    };
    let all = futures::future::join_all(
        observers.iter().map(|observer| observer.run(cancel.clone(), wanted.subscribe(), &on_change)),
    );
    tokio::select! {
        () = relay => {}
        _ = all => {}
    }
}
