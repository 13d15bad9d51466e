//! What enrollment does in Ironic, one small step each. Every step reads first and writes on difference only; a node lock
//! comes back as an answer, for the workflow to wait out (E15). Nova is never called (E17).

mod cables;
mod cleaning;
mod common;
mod converge;
mod create;
mod driver_info;
mod failure;
mod inspection;
mod networking;
mod prelude;
mod recover;
mod switch;

pub use cleaning::{power_on, provide};
pub use inspection::{abort, inspect, look, manage, raid_target, verify};
pub use networking::networking;
pub use prelude::prelude;
pub use recover::put_back;
pub use switch::switch_driver;
