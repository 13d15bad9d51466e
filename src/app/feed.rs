//! One feed of everything that changes, for whoever shows it. It is the same in every process of a state folder.

use jiff::Timestamp;

use super::lead::Role;
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::store::{StoreError, SyncState};

/// Something changed.
#[derive(Debug, Clone)]
pub enum FeedEvent {
    /// A run went on.
    Record(Box<RunRecord>),
    /// Devices, Ironic references or proofs are others now: ask for the fleet.
    FleetChanged,
    /// A system was heard, or did not answer.
    SystemHealth(SystemHealth),
    /// Another process leads now, or this one does.
    Role(Role),
    /// A run was put aside because the store did not take or give its journal; `None`: the store is well again.
    StoreTrouble(Option<(RunId, StoreError)>),
}

/// When a system was last heard, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemHealth {
    /// `netbox`, `ironic:NAME`.
    pub name: String,
    /// When it last answered as it should.
    pub ok_at: Option<Timestamp>,
    /// What is wrong since then; `None`: nothing.
    pub error: Option<String>,
}

impl From<SyncState> for SystemHealth {
    fn from(state: SyncState) -> Self {
        SystemHealth { name: state.key, ok_at: state.ok_at, error: state.error }
    }
}
