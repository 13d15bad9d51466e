//! Ironic's REST API.

mod error;
mod model;
mod nodes;
mod ports;
mod session;

pub use error::{ConflictKind, IronicError};
pub use model::{Inventory, LinkConnection, NewPort, NewPortgroup, Node, Port, Portgroup};
pub use session::{Ironic, Microversion};
