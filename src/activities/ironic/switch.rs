//! The driver becomes `ipmi` after inspection, where the site wants it (X1, X2).

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::common::{Desk, Did, changed, step, unchanged};
use super::driver_info::{Protocol, address, given};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::ironic::Node;
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
    let mut patch = vec![json!({"op": "replace", "path": "/driver", "value": "ipmi"})];
    patch.extend(kept(&node));
    for (key, value) in [
        ("ipmi_address", ip.as_str()),
        ("ipmi_username", &credential.username),
        ("ipmi_password", credential.password.expose_secret()),
    ] {
        patch.push(json!({"op": "add", "path": format!("/driver_info/{key}"), "value": value}));
    }
    let doing = format!("switching '{}' to the driver ipmi", desk.host);
    let after = desk.ironic.patch_node(node.uuid, patch, true).await.map_err(|e| desk.stop(e, &node, &doing))?;
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
fn kept(node: &Node) -> Vec<Value> {
    const ANY_DRIVER: [(&str, &[&str]); 6] = [
        ("network_interface", &["noop", "flat", "neutron"]),
        ("deploy_interface", &["direct", "ramdisk", "anaconda", "custom-agent", "bootc"]),
        ("boot_interface", &["ipxe", "pxe", "http", "http-ipxe"]),
        ("inspect_interface", &["agent", "no-inspect"]),
        ("raid_interface", &["agent", "no-raid"]),
        ("storage_interface", &["noop", "cinder", "external"]),
    ];
    ANY_DRIVER
        .iter()
        .filter_map(|(key, values)| {
            let has = node.interfaces.get(*key).filter(|has| values.contains(&has.as_str()))?;
            Some(json!({"op": "replace", "path": format!("/{key}"), "value": has}))
        })
        .collect()
}
