//! One look at a host's frontend links, as its BMC reports them.

use super::access::{Bmc, Trouble};
use crate::activities::env::ActivityCx;
use crate::clients::redfish::host::find_system;
use crate::clients::redfish::links::{self, LinksError};
use crate::clients::redfish::vendor::{Detected, detect};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::HostInterface;
use crate::domain::link::{LinkReading, LinkState};
use crate::workflows::defs::{LinksOut, PhaseTarget};

/// Reads the links of the host's frontend interfaces, each matched by its MAC. What the BMC does not tell is UNKNOWN (L2);
/// a BMC that cannot tell links at all, or that answers with errors, fails the attempt (L3). Asks the BMC whatever driver
/// the node has (L4), and whichever vendor it is. Writes nothing.
pub async fn read_links(cx: &ActivityCx, input: PhaseTarget) -> Result<LinksOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, input.phase).await?;
    let frontend = bmc.facts.frontend();
    if frontend.is_empty() {
        let host = &input.target.host;
        return Err(bmc.fail(
            FailureCode::NetboxDataMissing,
            format!("NetBox names no frontend interface of '{host}'"),
            format!("set ironic_settings.interfaces or ironic_settings.interface_type of '{host}' in NetBox"),
        ));
    }
    let outcome = look(&bmc, &frontend).await;
    bmc.settle(outcome).await
}

async fn look(bmc: &Bmc<'_>, frontend: &[&HostInterface]) -> Result<LinksOut, Trouble> {
    let root = bmc.redfish.root().await?;
    let vendor = match detect(&root) {
        Detected::Known(vendor) => Some(vendor),
        Detected::Unknown { .. } => None,
    };
    let found = find_system(&bmc.redfish, &root, bmc.system_id().as_deref()).await?;
    let macs: Vec<_> = frontend.iter().filter_map(|interface| interface.mac).collect();
    let read = links::read(&bmc.redfish, &root, &found.system, vendor, &macs).await;
    let mut read = match read {
        Ok(read) => read,
        Err(LinksError::Redfish(error)) => return Err(error.into()),
        Err(error @ LinksError::Unsupported { .. }) => {
            let host = &bmc.target.host;
            return Err(bmc
                .fail(
                    FailureCode::BmcLinkUnsupported,
                    format!("BMC of '{host}': {error}"),
                    format!("update the firmware of the BMC of '{host}' to one that reports its NICs"),
                )
                .into());
        }
    };
    // Looks come every few seconds: only what may be why a link is not told is worth an event each time.
    if read.by_mac.values().any(|link| link.state == LinkState::Unknown) {
        bmc.report_skipped(&read.skipped);
    }
    let readings = frontend.iter().map(|interface| {
        let found = interface.mac.and_then(|mac| read.by_mac.remove(&mac));
        let (state, slot, raw) = match found {
            Some(link) => (link.state, link.slot, link.raw),
            None => (LinkState::Unknown, None, Some("no MAC in NetBox".to_owned())),
        };
        let cable = interface.peer.as_ref().map(|peer| peer.end());
        LinkReading { interface: interface.name.clone(), mac: interface.mac, state, slot, cable, raw }
    });
    Ok(LinksOut { readings: readings.collect() })
}
