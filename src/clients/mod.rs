//! Clients: one protocol each. They know timeouts, sizes, redaction and error classes, and no policy.

pub mod http;
pub mod ironic;
pub mod keystone;
pub mod netbox;
pub mod redfish;
pub mod ssh;
pub mod trail;
pub mod vault;

use indexmap::IndexMap;

/// The clients that live as long as the program. Those of BMCs and DHCP hosts live as long as one activity.
pub struct Clients {
    pub netbox: netbox::NetBox,
    /// By the name of the instance in the configuration.
    pub ironic: IndexMap<String, ironic::Ironic>,
}
