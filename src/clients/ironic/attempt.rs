//! The hands of one attempt on an Ironic: what it reads is remembered, and what its readings forbid does not leave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::access::BmcAccess;
use super::change::{Interface, NewNode, NodeChange};
use super::error::IronicError;
use super::guard::{Seen, Write};
use super::model::{Inventory, LinkConnection, NewPort, NewPortgroup, Node, Port, Portgroup};
use super::nodes::Verb;
use super::session::Ironic;
use crate::clients::rehearsal::Rehearsal;
use crate::domain::ids::NodeUuid;
use crate::domain::mac::Mac;

/// The only way to change something in Ironic. Made anew for each attempt of an activity, so that no request is ever sent on
/// what an earlier one has read. Clones share what was read.
#[derive(Clone)]
pub struct Attempt {
    ironic: Ironic,
    seen: Arc<Mutex<Seen>>,
}

impl Ironic {
    /// Hands for one attempt, which has read nothing yet.
    pub fn attempt(&self) -> Attempt {
        Attempt { ironic: self.clone(), seen: Arc::default() }
    }
}

/// Reading.
impl Attempt {
    /// The instance's name in the configuration.
    pub fn name(&self) -> &str {
        self.ironic.name()
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        self.ironic.host()
    }

    pub fn rehearsal(&self) -> Option<&Rehearsal> {
        self.ironic.rehearsal()
    }

    /// A node by UUID or name; `None` where there is none, or none that may be seen.
    pub async fn node(&self, ident: &str) -> Result<Option<Node>, IronicError> {
        let at = Timestamp::now();
        let found = self.ironic.node(ident).await?;
        match &found {
            Some(node) => self.seen().node(node, at),
            None => self.seen().no_node(ident),
        }
        Ok(found)
    }

    pub async fn inventory(&self, node: NodeUuid) -> Result<Option<Inventory>, IronicError> {
        self.ironic.inventory(node).await
    }

    pub async fn ports_of(&self, node: NodeUuid) -> Result<Vec<Port>, IronicError> {
        let ports = self.ironic.ports_of(node).await?;
        self.seen().ports_of(node, &ports);
        Ok(ports)
    }

    pub async fn ports_by_address(&self, mac: Mac) -> Result<Vec<Port>, IronicError> {
        let ports = self.ironic.ports_by_address(mac).await?;
        ports.iter().for_each(|port| self.seen().port(port));
        Ok(ports)
    }

    pub async fn portgroups_of(&self, node: NodeUuid) -> Result<Vec<Portgroup>, IronicError> {
        self.ironic.portgroups_of(node).await
    }

    pub async fn portgroups_by_address(&self, mac: Mac) -> Result<Vec<Portgroup>, IronicError> {
        self.ironic.portgroups_by_address(mac).await
    }
}

/// Changing.
impl Attempt {
    /// Names an account that Ironic must never be given: the shared one for monitoring (B10).
    pub fn shun(&self, username: &str) {
        self.seen().shun(username);
    }

    /// Creates a node and returns it as Ironic has it.
    pub async fn create_node(&self, node: &NewNode) -> Result<Node, IronicError> {
        self.seen().may_create(&node.name, node.uuid)?;
        self.seen().may_log_in_as(&node.access.username)?;
        let at = Timestamp::now();
        let made = self.ironic.create_node(node).await?;
        self.seen().node(&made, at);
        Ok(made)
    }

    pub async fn change_node(&self, node: NodeUuid, changes: &[NodeChange]) -> Result<Node, IronicError> {
        self.may(Write::Converge, node).await?;
        for change in changes {
            if let NodeChange::Access(access) = change {
                self.seen().may_log_in_as(&access.username)?;
            }
        }
        let at = Timestamp::now();
        let changed = self.ironic.change_node(node, changes).await?;
        self.seen().node(&changed, at);
        Ok(changed)
    }

    /// The driver becomes `ipmi`; interfaces that are not kept get that driver's defaults (X1).
    pub async fn switch_to_ipmi(
        &self,
        node: NodeUuid,
        access: &BmcAccess,
        kept: &BTreeMap<Interface, String>,
    ) -> Result<Node, IronicError> {
        self.may(Write::SwitchDriver, node).await?;
        self.seen().may_log_in_as(&access.username)?;
        let at = Timestamp::now();
        let changed = self.ironic.switch_to_ipmi(node, access, kept).await?;
        self.seen().node(&changed, at);
        Ok(changed)
    }

    pub async fn provision(&self, node: NodeUuid, verb: Verb) -> Result<(), IronicError> {
        self.may(verb.write(), node).await?;
        self.ironic.provision(node, verb).await
    }

    pub async fn power_on(&self, node: NodeUuid) -> Result<(), IronicError> {
        self.may(Write::PowerOn, node).await?;
        self.ironic.power_on(node).await
    }

    /// Puts a maintenance flag back, with its reason.
    pub async fn restore_maintenance(&self, node: NodeUuid, reason: Option<&str>) -> Result<(), IronicError> {
        self.may(Write::RestoreMaintenance, node).await?;
        self.ironic.set_maintenance(node, reason).await
    }

    pub async fn clear_maintenance(&self, node: NodeUuid) -> Result<(), IronicError> {
        self.may(Write::ClearMaintenance, node).await?;
        self.ironic.clear_maintenance(node).await
    }

    /// Adds one trait and keeps all others.
    pub async fn add_trait(&self, node: NodeUuid, name: &str) -> Result<(), IronicError> {
        self.may(Write::AddTrait, node).await?;
        self.ironic.add_trait(node, name).await
    }

    /// Sets the RAID that the next clean is to build.
    pub async fn set_raid_target(&self, node: NodeUuid, config: &Map<String, Value>) -> Result<(), IronicError> {
        self.may(Write::SetRaidTarget, node).await?;
        self.ironic.set_raid_target(node, config).await
    }

    pub async fn create_port(&self, port: &NewPort) -> Result<Port, IronicError> {
        self.may(Write::CreatePort, port.node).await?;
        self.seen().may_create_port(port.node, port.pxe_enabled)?;
        let made = self.ironic.create_port(port).await?;
        self.seen().port(&made);
        Ok(made)
    }

    /// Records where a port's cable goes, where that is not recorded.
    pub async fn record_link(&self, port: &str, link: &LinkConnection) -> Result<Port, IronicError> {
        let node = self.seen().node_of_port(port);
        if let Some(node) = node {
            self.may(Write::RecordLink, node).await?;
        }
        self.seen().may_record_link(port)?;
        let made = self.ironic.set_port_link(port, link).await?;
        self.seen().port(&made);
        Ok(made)
    }

    pub async fn create_portgroup(&self, group: &NewPortgroup) -> Result<Portgroup, IronicError> {
        self.may(Write::CreatePortgroup, group.node).await?;
        self.ironic.create_portgroup(group).await
    }

    /// Lets a request pass, or says why not. A reading that has become old is made anew first.
    async fn may(&self, write: Write, node: NodeUuid) -> Result<(), IronicError> {
        if self.seen().is_old(node, Timestamp::now()) {
            tracing::debug!(%node, write = write.words(), "read again: the last reading is too old to write on");
            self.node(&node.to_string()).await?;
        }
        Ok(self.seen().may(write, node)?)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
