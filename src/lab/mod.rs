//! A simulated site on loopback sockets: NetBox, Ironic, BMCs and a DHCP host that share one world.

pub mod bmc;
pub mod build;
pub mod clock;
mod control;
pub mod dhcp_host;
pub mod faults;
pub mod http;
pub mod inside;
pub mod ironic;
pub mod ledger;
pub mod machine;
pub mod netbox;
pub mod records;
pub mod scenario;
mod start;
pub mod world;
mod write_config;

pub use start::{IRONIC_USER, Lab, ironic_password};

/// Why the lab could not start.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("the lab could not listen on {what}: {source}")]
    Listen { what: String, source: std::io::Error },
    #[error("the lab could not write '{path}': {source}")]
    Write { path: std::path::PathBuf, source: std::io::Error },
    #[error("the scenario is not valid: {0}")]
    Scenario(String),
    #[error("the lab's DHCP host could not start: {0}")]
    DhcpHost(String),
}
