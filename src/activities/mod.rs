//! Activities: one file a phase. Each reads the world, decides by domain/, writes on difference, reads back, classifies.

pub mod bmc;
pub mod dhcp;
pub mod env;
pub mod facts;
pub mod ironic;
pub mod netbox;
pub mod proof;
pub mod registry;
pub mod vault;
