//! Nodes that exist when the lab starts, as an enrollment would have left them.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::super::build::{BMC_USER, bmc_password, bmc_user};
use super::super::world::State;
use super::node::Node;
use super::ports::{Portgroup, bare_port};
use super::{drivers, inventory};
use crate::domain::provision::ProvisionState;

/// A node that a scenario wants to be there.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The host's name.
    pub name: String,
    pub state: ProvisionState,
    pub instance: bool,
    pub owner: Option<String>,
    /// `ironic_settings` of its config context.
    pub settings: Value,
    /// Address of its BMC as a URL.
    pub redfish_address: String,
}

/// A UUID that depends on a name alone.
pub fn uuid_of(what: &str, name: &str) -> Uuid {
    let digest = Sha256::digest(format!("muster lab {what} {name}"));
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// Puts the nodes into Ironic, with ports, traits and inventory.
pub(in super::super) fn plant(state: &mut State, seeds: &[Seed]) {
    for seed in seeds {
        plant_one(state, seed);
    }
}

fn plant_one(state: &mut State, seed: &Seed) {
    let settings = &seed.settings;
    let driver = drivers::named(settings["driver"].as_str().unwrap_or("redfish")).unwrap_or(&drivers::DRIVERS[3]);
    let mut body = Map::new();
    body.insert("name".into(), json!(seed.name));
    for kind in drivers::KINDS {
        let key = format!("{kind}_interface");
        if let Some(interface) = settings[&key].as_str().filter(|name| driver.check(kind, name).is_ok()) {
            body.insert(key, json!(interface));
        }
    }
    let prefix = if driver.name == "ipmi" { "ipmi" } else { "redfish" };
    let user = state.machines.get(&seed.name).map_or(BMC_USER, |machine| bmc_user(machine.bmc.vendor));
    body.insert(
        "driver_info".into(),
        json!({
            format!("{prefix}_address"): seed.redfish_address, format!("{prefix}_username"): user,
            format!("{prefix}_password"): bmc_password(&seed.name),
        }),
    );
    let mut properties = json!({"cpu_arch": settings["cpu_arch"], "capabilities": settings["capabilities"]});
    if let Some(map) = properties.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
    body.insert("properties".into(), properties);
    body.insert("resource_class".into(), settings["resource_class"].clone());
    if let Some(owner) = &seed.owner {
        body.insert("owner".into(), json!(owner));
        body.insert("lessee".into(), json!(owner));
    }
    if seed.instance {
        body.insert("instance_uuid".into(), json!(uuid_of("instance", &seed.name)));
    }
    let (uuid, id, at) = (uuid_of("node", &seed.name), state.ironic.next_id(), state.stamp());
    let mut node = Node::new(uuid, id, driver, body, at);
    node.state = seed.state.clone();
    node.provision_updated_at = Some(at);
    node.traits.insert("HW_ARCH_X86_64".to_owned());
    if node.state != ProvisionState::Enroll {
        node.knows_power = true;
        node.set("boot_mode", "uefi");
        node.set("secure_boot", false);
        node.set("inspection_finished_at", super::node::time(at));
    }
    // An inspection sees the links with the power on.
    if let Some(mut machine) = state.machines.get(&seed.name).cloned() {
        machine.power.on = true;
        node.inventory = (node.state != ProvisionState::Enroll).then(|| inventory::of(state, &machine));
        let group = settings["bond"]["name"]
            .as_str()
            .map(|bond| plant_group(state, seed, uuid, bond, &machine.nics[0].mac.to_string()));
        for (n, nic) in machine.nics.iter().filter(|nic| nic.frontend).enumerate() {
            let name = format!("{} {}", seed.name, nic.name);
            let mut port = bare_port(state, uuid_of("port", &name), uuid, nic.mac.to_string());
            port.portgroup = group;
            port.fields.insert("pxe_enabled".into(), json!(n == 0));
            if let Some(plug) = &nic.recorded {
                let link = json!({
                    "switch_id": "00:00:00:00:00:00", "port_id": lag_of(state, &plug.switch, &plug.port),
                    "switch_info": plug.switch,
                });
                port.fields.insert("local_link_connection".into(), link);
            }
            state.ironic.ports.insert(port.uuid, port);
        }
    }
    state.ironic.nodes.insert(uuid, node);
}

/// The LAG that NetBox has a switch port in, else the port itself.
fn lag_of(state: &State, switch: &str, port: &str) -> String {
    let records = &state.records;
    let lag = records
        .device_named(switch)
        .and_then(|d| records.interfaces_of(d.id).find(|i| i.name == port))
        .and_then(|i| records.interfaces.get(&i.lag?));
    lag.map_or_else(|| port.to_owned(), |lag| lag.name.clone())
}

fn plant_group(state: &mut State, seed: &Seed, node: Uuid, bond: &str, address: &str) -> Uuid {
    let name = format!("{}-{bond}", seed.name);
    let settings = &seed.settings["bond"];
    let fields = json!({
        "address": address, "name": name, "mode": settings["mode"], "standalone_ports_supported": true, "extra": {},
        "properties": {
            "miimon": settings["miimon"].to_string(), "xmit_hash_policy": settings["xmit_hash_policy"],
        },
    });
    let fields = fields.as_object().cloned().unwrap_or_default();
    let (uuid, id, created_at) = (uuid_of("portgroup", &name), state.ironic.next_id(), state.stamp());
    state.ironic.portgroups.insert(uuid, Portgroup { uuid, node, fields, created_at, updated_at: None, id });
    uuid
}
