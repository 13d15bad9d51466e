//! The dialect of AMI MegaRAC: against the lab's MegaRAC with every odd habit that the lab knows, and against a captured tree.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../support/bmc.rs"]
mod bmc;
mod boot;
mod captured;
#[path = "../support/resources.rs"]
mod resources;
mod settings;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../bmc_redfish/tree.rs"]
mod tree;

use muster::clients::redfish::ami::Ami;
use muster::lab::machine::{Quirk, Vendor};

use bmc::Rig;

pub async fn fresh(quirks: &[Quirk]) -> Rig {
    Rig::fresh(Vendor::Ami, &Ami, quirks).await
}

pub async fn converged() -> Rig {
    Rig::converged(Vendor::Ami, &Ami).await
}
