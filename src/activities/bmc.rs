//! The BMC's part of a run: prove the credential, restart it where asked for, converge its settings, read the links.
//!
//! What a setting is in a vendor's tree is known by `clients/redfish`; what is wanted, in which order, and what a failure
//! means is decided here.

mod access;
mod classify;
mod configure;
mod ipmi_user;
mod links;
mod prepare;
mod reset;
mod wrong_tries;

pub use configure::configure;
pub use links::read_links;
pub use prepare::prepare;
pub use reset::{back, reset};

/// The word of the event list for this system.
const BMC: &str = "bmc";
