//! The BMC's part of a run: prove or set the credential, restart it where asked for, converge its settings and what it keeps
//! for the host's next boot, read the links.
//!
//! What a setting is in a vendor's tree is known by `clients/redfish`; what is wanted, in which order, and what a failure
//! means is decided here.

mod access;
mod classify;
mod configure;
mod flow;
mod ipmi_login;
mod ipmi_user;
mod links;
mod locator;
mod password;
mod power;
mod prepare;
mod reset;
mod reset_due;
mod restart;
mod stage;
mod wrong_tries;

pub use configure::configure;
pub use ipmi_login::prove_ipmi;
pub use ipmi_user::unfit;
pub use links::read_links;
pub use locator::locator;
pub use power::power;
pub use prepare::prepare;
pub use reset::{back, reset};
pub use restart::restart_host;
pub use stage::{stage, staged, withdraw};

/// The word of the event list for this system.
const BMC: &str = "bmc";
