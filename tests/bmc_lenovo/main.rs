//! The dialect of Lenovo XCC: against the lab's XCC with every odd habit that the lab knows, and against captured trees.

mod accounts;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../support/bmc.rs"]
mod bmc;
mod captured;
#[path = "../support/resources.rs"]
mod resources;
mod settings;
mod staging;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../bmc_redfish/tree.rs"]
mod tree;

use muster::clients::redfish::lenovo::Lenovo;
use muster::lab::machine::{Quirk, Vendor};

use bmc::Rig;

pub async fn fresh(quirks: &[Quirk]) -> Rig {
    Rig::fresh(Vendor::Lenovo, &Lenovo, quirks).await
}

pub async fn converged() -> Rig {
    Rig::converged(Vendor::Lenovo, &Lenovo).await
}
