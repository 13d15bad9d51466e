//! What the leader runs beside its observers: push from NetBox, and notifications about what changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::activities::env::Env;
use crate::inventory::netbox::Observer;
use crate::inventory::notify::{self, Notifier};
use crate::inventory::push::{self, Push};
use crate::inventory::wiring::WiringObserver;

/// Devices whose wiring is read one by one. Of more at once it is compared as a whole.
const SINGLY: usize = 40;
/// After a read that failed.
const BREATHER: Duration = Duration::from_secs(5);

/// Starts what the configuration asks for, before the observers run. The notifier is to be told when something changed.
pub(super) fn spawn_beside(
    env: &Arc<Env>,
    devices: &Arc<Observer>,
    wiring: &Arc<WiringObserver>,
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
            let readers = Arc::new(Readers {
                devices: Arc::clone(devices),
                wiring: Arc::clone(wiring),
                wanted: Mutex::default(),
                woken: Notify::new(),
            });
            let (vault, netbox) = (env.vault.clone(), env.clients.netbox.clone());
            let reader = Arc::clone(&readers) as Arc<dyn push::Reader>;
            let push = Push::new(push, settings.netbox.poll, vault, netbox, store.clone(), reader);
            let (stop, notifier) = (stop.clone(), notifier.clone());
            tasks.spawn(async move {
                let told = || notifier.iter().for_each(|notifier| notifier.look());
                tokio::join!(push.run(stop.clone()), readers.read_wiring(stop, told));
            });
        }
        None => {
            tasks.spawn(forget(Arc::clone(env), false));
        }
    }
    notifier
}

/// Both observers, as push tells them.
struct Readers {
    devices: Arc<Observer>,
    wiring: Arc<WiringObserver>,
    wanted: Mutex<Wanted>,
    woken: Notify,
}

/// What of the wiring is to be read.
#[derive(Default)]
struct Wanted {
    devices: BTreeSet<u64>,
    delta: bool,
    everything: bool,
}

impl push::Reader for Readers {
    fn requeue(&self, devices: Vec<u64>) {
        self.want(|wanted| wanted.devices.extend(&devices));
        self.devices.requeue(devices);
    }

    fn delta_soon(&self) {
        self.want(|wanted| wanted.delta = true);
        self.devices.delta_soon();
    }

    fn sync_soon(&self) {
        self.want(|wanted| wanted.everything = true);
        self.devices.sync_soon();
    }

    fn stretch(&self, poll: Option<Duration>) {
        self.wiring.stretch(poll);
        self.devices.stretch(poll);
    }
}

impl Readers {
    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_one();
    }

    /// Reads the wiring that push names, until cancelled. What could not be read is tried again.
    async fn read_wiring(&self, stop: CancellationToken, told: impl Fn()) {
        let read = async {
            loop {
                self.woken.notified().await;
                let wanted = std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner));
                let well = self.read(&wanted).await;
                told();
                if !well {
                    tokio::time::sleep(BREATHER).await;
                    self.want(|again| {
                        again.devices.extend(&wanted.devices);
                        (again.delta, again.everything) =
                            (again.delta | wanted.delta, again.everything | wanted.everything);
                    });
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = read => {}
        }
    }

    /// Whether all of it was read. What it came to is in the store and in the log.
    async fn read(&self, wanted: &Wanted) -> bool {
        if wanted.everything || wanted.devices.len() > SINGLY {
            return self.wiring.resync().await.is_ok();
        }
        let mut well = true;
        for device in &wanted.devices {
            well &= self.wiring.sync_device(*device).await.is_ok();
        }
        if wanted.delta {
            well &= self.wiring.sync_delta().await.is_ok() && self.wiring.sync_cables().await.is_ok();
        }
        well
    }
}

/// Takes out the health of what is not configured any more.
async fn forget(env: Arc<Env>, nats: bool) {
    let done =
        if nats { env.store.forget_sync(notify::SYSTEM).await } else { push::forget_others(&env.store, None).await };
    if let Err(error) = done {
        tracing::warn!(%error, "the health of a system that is asked no more stays");
    }
}
