//! Ironic's REST API. Reads are asked of [`Ironic`]; what changes something is asked for by an [`Attempt`], whose guard
//! lets nothing pass that the rules of enrollment forbid.

mod access;
mod attempt;
mod change;
mod error;
mod guard;
mod model;
mod nodes;
mod ports;
mod session;
mod versions;

pub use access::{BmcAccess, MANAGED, Protocol};
pub use attempt::Attempt;
pub use change::{Interface, NewNode, NodeChange, RootDevice, RootDeviceHint, SoftwareRaid};
pub use error::{ConflictKind, IronicError};
pub use guard::{Refusal, Write};
pub use model::{Inventory, LinkConnection, NewPort, NewPortgroup, Node, Port, Portgroup};
pub use nodes::Verb;
pub use session::Ironic;
pub use versions::{Apart, CALLS, Call, Microversion, Need, Spoken};
