//! The driver becomes `ipmi` after inspection, where the site wants it (X1, X2).

use std::collections::BTreeMap;

use super::common::{Desk, Did, changed, step, unchanged};
use super::driver_info::{access, address, given};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::ironic::{Interface, Node, Protocol};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::provision::ProvisionState;
use crate::workflows::defs::{NodeTarget, Step};

/// Only on an unowned node in `manageable` with a Redfish driver; every other node is left alone.
pub async fn switch_driver(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    step(switch(&desk, &input).await)
}

async fn switch(desk: &Desk, input: &NodeTarget) -> Did {
    let node = desk.node(input.node).await?;
    if let Some(why) = left_alone(&node) {
        return unchanged(why);
    }
    let facts = facts::read(&desk.cx, &input.target, input.phase).await?;
    let settings = desk.settings(&facts)?;
    let credential = desk.credential().await?;
    let bmc = &desk.cx.site(&input.target.site, input.phase)?.bmc;
    let ip = address(Protocol::Ipmi, settings, desk.oob_ip(&facts)?, bmc);
    let wanted = access(Protocol::Ipmi, ip.clone(), &credential);
    let doing = format!("switching '{}' to the driver ipmi", desk.host);
    let switched = desk.ironic.switch_to_ipmi(node.uuid, &wanted, &kept(&node)).await;
    let after = switched.map_err(|e| desk.stop(e, &node, &doing))?;
    desk.wrote("driver", &node.driver, format!("ipmi at {ip} as '{}', password of the vault", credential.username));
    if after.driver != "ipmi" {
        return Err(desk
            .failure(
                FailureCode::IronicAnswerUnexpected,
                format!("the driver of '{}' reads back as '{}' after the switch to 'ipmi'", desk.host, after.driver),
                "look at the node in Ironic, then retry",
            )
            .into());
    }
    given().remember(&desk.ironic, node.uuid, &credential);
    changed("the driver is ipmi now")
}

fn left_alone(node: &Node) -> Option<String> {
    if node.instance_uuid.is_some() {
        return Some("an instance lives on the node: its driver is left alone".to_owned());
    }
    if node.state != ProvisionState::Manageable {
        return Some(format!("the node is '{}': its driver is left alone", node.state));
    }
    let redfish = Protocol::of(&node.driver) == Some(Protocol::Redfish);
    (!redfish).then(|| format!("the driver is '{}': left alone", node.driver))
}

/// Interfaces that any driver has keep their values; resetting gives all others the new driver's defaults.
fn kept(node: &Node) -> BTreeMap<Interface, String> {
    const ANY_DRIVER: [(Interface, &[&str]); 6] = [
        (Interface::Network, &["noop", "flat", "neutron"]),
        (Interface::Deploy, &["direct", "ramdisk", "anaconda", "custom-agent", "bootc"]),
        (Interface::Boot, &["ipxe", "pxe", "http", "http-ipxe"]),
        (Interface::Inspect, &["agent", "no-inspect"]),
        (Interface::Raid, &["agent", "no-raid"]),
        (Interface::Storage, &["noop", "cinder", "external"]),
    ];
    let has = |(interface, values): &(Interface, &[&str])| {
        let has = node.interfaces.get(interface.key()).filter(|has| values.contains(&has.as_str()))?;
        Some((*interface, has.clone()))
    };
    ANY_DRIVER.iter().filter_map(has).collect()
}
