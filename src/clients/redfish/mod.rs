//! Redfish, thin and tolerant: one client for all BMCs, one file a vendor for what only that vendor does.
//!
//! What is here knows the protocol and its field bugs. Which settings are wanted, and what a failure means for a run, is
//! decided by `activities/bmc`.

pub mod accounts;
pub mod address;
pub mod ami;
pub mod collection;
pub mod condition;
pub mod converge;
pub mod dell;
pub mod dialect;
pub mod error;
pub mod firmware;
pub mod host;
pub mod lenovo;
pub mod links;
pub mod locator;
pub mod resource;
pub mod said;
pub mod service;
pub mod standard;
pub mod supermicro;
mod turn;
pub mod vendor;

pub use error::RedfishError;
pub use resource::Resource;
pub use service::{Credential, Redfish, RedfishOptions};
