//! Recovers nodes that failed an inspection or a clean, through `manage` (E9, E10).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::common::{Desk, Stop, maintenance};
use super::driver_info::given;
use crate::activities::env::ActivityCx;
use crate::clients::ironic::{Node, Verb};
use crate::clients::trail::carried;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::provision::ProvisionState;
use crate::workflows::defs::{Changed, PhaseTarget};

/// After a cancel: a flag that a recovery took away, and that `manage` has not followed, is put back (G9).
pub async fn put_back(cx: &ActivityCx, input: PhaseTarget) -> Result<Changed, Failure> {
    Desk::new(cx, &input.target, input.phase)?.put_back_what_is_remembered().await
}

impl Desk {
    /// `inspect failed` goes back to `manageable`.
    pub async fn recover_inspection(&self, node: &Node) -> Result<(), Stop> {
        given().forget(&self.ironic, node.uuid);
        self.ask(node, Verb::Manage).await
    }

    /// `clean failed` goes back to `manageable`, out of maintenance. Where the `manage` fails, the flag is put back (E10).
    pub async fn recover_clean(&self, node: &Node) -> Result<(), Stop> {
        given().forget(&self.ironic, node.uuid);
        // A task of its own: a cancel drops this future, and must not leave the flag half-way (G9). It ends by the
        // deadlines of its few requests.
        let (desk, node) = (self.clone(), node.clone());
        let task = tokio::spawn(carried(async move { desk.manage_out_of_maintenance(&node).await }));
        task.await.unwrap_or_else(|e| {
            Err(self
                .failure(FailureCode::InternalError, format!("the recovery of '{}' broke off: {e}", self.host), "retry")
                .into())
        })
    }

    async fn manage_out_of_maintenance(&self, node: &Node) -> Result<(), Stop> {
        let alone = alone(&self.key(node.uuid));
        let (_held, again) = match alone.try_lock() {
            Ok(held) => (held, None),
            // A recovery that a cancel had dropped has ended meanwhile: what it came to is read, not remembered.
            Err(_) => (alone.lock().await, Some(self.node(node.uuid).await?)),
        };
        let node = again.as_ref().unwrap_or(node);
        if node.state != ProvisionState::CleanFailed || node.instance_uuid.is_some() {
            return Ok(());
        }
        if node.maintenance {
            // On disk before the flag goes: a run that is killed between the two requests still knows that it was set.
            self.remember(node.uuid, Some(&json!({"reason": node.maintenance_reason}))).await?;
            if let Err(error) = self.ironic.clear_maintenance(node.uuid).await {
                // Where the answer was lost the flag may be gone: then it is still owed to a manage that fails.
                if error.is_refusal() {
                    self.remember(node.uuid, None).await?;
                }
                return Err(self.stop(error, node, &format!("clearing maintenance of '{}'", self.host)));
            }
            self.wrote("maintenance", maintenance(node), "off");
        }
        let Err(stop) = self.ask(node, Verb::Manage).await else {
            self.remember(node.uuid, None).await?;
            return Ok(());
        };
        let Some(flag) = self.remembered(node.uuid)? else { return Err(stop) };
        // An answer that was lost may have been a good one; and where somebody has set the flag anew it is theirs.
        if let Ok(now) = self.node(node.uuid).await {
            if now.state != ProvisionState::CleanFailed {
                self.remember(node.uuid, None).await?;
                return Ok(());
            }
            if now.maintenance || now.instance_uuid.is_some() {
                self.remember(node.uuid, None).await?;
                return Err(stop);
            }
        }
        match self.ironic.restore_maintenance(node.uuid, flag["reason"].as_str()).await {
            Ok(()) => {
                self.wrote("maintenance", "off", format!("{} (put back: manage failed)", maintenance_of(node, &flag)));
                self.remember(node.uuid, None).await?;
            }
            // The next attempt knows it still.
            Err(e) => self.warn(format!("maintenance of '{}' could not be put back yet: {e}", self.host)),
        }
        Err(stop)
    }

    async fn put_back_what_is_remembered(&self) -> Result<Changed, Failure> {
        let unchanged = |note: &str| Ok(Changed { changed: false, note: note.to_owned() });
        let doing = format!("looking for the node of '{}'", self.host);
        let named = self.ironic.node(&self.host).await.map_err(|e| self.failed(e, &doing))?;
        let Some(node) = named else { return unchanged("there is no node") };
        let alone = alone(&self.key(node.uuid));
        let _held = alone.lock().await;
        let Some(flag) = self.remembered(node.uuid)? else { return unchanged("no maintenance flag was taken away") };
        let node = self.node(node.uuid).await?;
        if node.state != ProvisionState::CleanFailed || node.maintenance || node.instance_uuid.is_some() {
            self.remember(node.uuid, None).await?;
            return unchanged("the node needs no maintenance flag put back");
        }
        let doing = format!("putting the maintenance of '{}' back", self.host);
        let put_back = self.ironic.restore_maintenance(node.uuid, flag["reason"].as_str()).await;
        put_back.map_err(|e| self.failed(e, &doing))?;
        self.wrote("maintenance", "off", format!("{} (put back: cancelled)", maintenance_of(&node, &flag)));
        self.remember(node.uuid, None).await?;
        Ok(Changed { changed: true, note: "the maintenance flag was put back".to_owned() })
    }

    /// A node that is not in its failed clean any more needs no flag put back, whoever took it from there.
    pub async fn recovered(&self, node: NodeUuid) -> Result<(), Failure> {
        match self.remembered(node)? {
            Some(_) => self.remember(node, None).await,
            None => Ok(()),
        }
    }

    async fn remember(&self, node: NodeUuid, flag: Option<&Value>) -> Result<(), Failure> {
        let text = flag.map(Value::to_string).unwrap_or_default();
        self.cx.env.store.put_meta(&self.key(node), &text).await.map_err(|e| self.store_failed(&e))
    }

    /// The maintenance flag that this program took away and may have to put back.
    fn remembered(&self, node: NodeUuid) -> Result<Option<Value>, Failure> {
        let text = self.cx.env.store.get_meta(&self.key(node)).map_err(|e| self.store_failed(&e))?;
        Ok(text.filter(|t| !t.is_empty()).and_then(|t| serde_json::from_str(&t).ok()))
    }

    fn key(&self, node: NodeUuid) -> String {
        format!("maintenance/{}/{node}", self.ironic.name())
    }

    fn store_failed(&self, error: &dyn std::error::Error) -> Failure {
        self.failure(
            FailureCode::StoreFailed,
            format!("the maintenance flag of '{}' could not be remembered: {error}", self.host),
            "look at the disk that holds muster's state folder, then retry",
        )
    }
}

/// A recovery that was dropped ends by itself; whoever puts the flag back waits for that.
fn alone(key: &str) -> Arc<tokio::sync::Mutex<()>> {
    static NODES: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let mut nodes = NODES.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(nodes.entry(key.to_owned()).or_default())
}

/// The flag as it was before this program touched it.
fn maintenance_of(node: &Node, flag: &Value) -> String {
    match flag["reason"].as_str() {
        Some(reason) => format!("on: {}", super::common::short(reason)),
        None => maintenance(node),
    }
}
