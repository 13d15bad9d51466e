//! A node: its fields as the API names them, what is behind them, and how a version shows it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::clock::LabTime;
use super::super::machine::Machine;
use super::super::world::State;
use super::drivers::{Driver, KINDS, STORAGE};
use super::reply::{CONDUCTOR, Refusal};
use crate::domain::provision::ProvisionState;

/// A node of the lab's Ironic.
#[derive(Debug, Clone)]
pub struct Node {
    pub uuid: Uuid,
    /// Place in the database: lists are sorted by it.
    pub id: u64,
    /// Fields of the API that are nothing more than their value: name, driver, interfaces, properties, …
    pub fields: Map<String, Value>,
    pub state: ProvisionState,
    pub target: Option<ProvisionState>,
    pub created_at: Timestamp,
    pub updated_at: Option<Timestamp>,
    pub provision_updated_at: Option<Timestamp>,
    /// Ironic has spoken with the BMC: power is known.
    pub(super) knows_power: bool,
    /// Power of a node without a machine (`fake-hardware`).
    pub(super) fake_power: bool,
    pub(super) target_power: Option<&'static str>,
    /// A task of the conductor holds the node until then.
    pub(super) held: Option<LabTime>,
    /// Number of the last task: events of older ones are void.
    pub(super) task: u64,
    /// Steps of a clean that are still to be done.
    pub(super) steps_left: Vec<Value>,
    pub(super) traits: BTreeSet<String>,
    pub(super) inventory: Option<Value>,
    /// What the ramdisk has sent and the hooks have not yet stored.
    pub(super) pending: Option<Value>,
    pub(super) history: Vec<(Uuid, Timestamp, &'static str, String)>,
}

/// Since when a field is there; what is not named here is there from the start.
const SINCE: &[(&str, u32)] = &[
    ("driver_internal_info", 3),
    ("name", 5),
    ("inspection_started_at", 6),
    ("inspection_finished_at", 6),
    ("clean_step", 7),
    ("raid_config", 12),
    ("target_raid_config", 12),
    ("states", 14),
    ("network_interface", 20),
    ("resource_class", 21),
    ("portgroups", 24),
    ("boot_interface", 31),
    ("console_interface", 31),
    ("deploy_interface", 31),
    ("inspect_interface", 31),
    ("management_interface", 31),
    ("power_interface", 31),
    ("raid_interface", 31),
    ("vendor_interface", 31),
    ("volume", 32),
    ("storage_interface", 33),
    ("traits", 37),
    ("rescue_interface", 38),
    ("bios_interface", 40),
    ("fault", 42),
    ("deploy_step", 44),
    ("conductor_group", 46),
    ("automated_clean", 47),
    ("protected", 48),
    ("protected_reason", 48),
    ("conductor", 49),
    ("owner", 50),
    ("description", 51),
    ("allocation_uuid", 52),
    ("retired", 61),
    ("retired_reason", 61),
    ("lessee", 65),
    ("network_data", 66),
    ("boot_mode", 75),
    ("secure_boot", 75),
    ("shard", 82),
    ("parent_node", 83),
    ("firmware_interface", 86),
    ("service_step", 87),
    ("disable_power_off", 95),
    ("instance_name", 104),
    ("health", 109),
];

/// Since which minor version a node has a field.
pub(super) fn since(field: &str) -> u32 {
    SINCE.iter().find(|(name, _)| *name == field).map_or(1, |(_, version)| *version)
}

/// Fields with the values that a new node has, where nobody sets them.
fn fresh() -> Map<String, Value> {
    let value = json!({
        "automated_clean": null, "boot_mode": null, "clean_step": {}, "conductor_group": "",
        "console_enabled": false, "disable_power_off": false, "deploy_step": {}, "description": null,
        "driver_info": {}, "driver_internal_info": {}, "extra": {}, "fault": null, "health": null,
        "inspection_finished_at": null, "inspection_started_at": null, "instance_info": {}, "instance_name": null,
        "instance_uuid": null, "last_error": null, "lessee": null, "maintenance": false, "maintenance_reason": null,
        "name": null, "network_data": {}, "owner": null, "parent_node": null, "properties": {}, "protected": false,
        "protected_reason": null, "raid_config": {}, "resource_class": null, "retired": false,
        "retired_reason": null, "secure_boot": null, "service_step": {}, "shard": null,
        "storage_interface": STORAGE, "target_raid_config": {}, "allocation_uuid": null, "chassis_uuid": null,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What a body may set at creation.
pub(super) const CREATE: &[&str] = &[
    "uuid",
    "name",
    "driver",
    "driver_info",
    "properties",
    "extra",
    "instance_info",
    "resource_class",
    "owner",
    "lessee",
    "description",
    "conductor_group",
    "automated_clean",
    "network_data",
    "protected",
    "protected_reason",
    "retired",
    "retired_reason",
    "shard",
    "parent_node",
    "chassis_uuid",
    "instance_uuid",
    "maintenance",
    "disable_power_off",
    "storage_interface",
    "instance_name",
    "bios_interface",
    "boot_interface",
    "console_interface",
    "deploy_interface",
    "firmware_interface",
    "inspect_interface",
    "management_interface",
    "network_interface",
    "power_interface",
    "raid_interface",
    "rescue_interface",
    "vendor_interface",
];

/// What a patch may set, in the order of the real one's message.
pub(super) const PATCH: &[&str] = &[
    "automated_clean",
    "bios_interface",
    "boot_interface",
    "chassis_uuid",
    "conductor_group",
    "console_interface",
    "deploy_interface",
    "description",
    "disable_power_off",
    "driver",
    "driver_info",
    "extra",
    "inspect_interface",
    "instance_info",
    "instance_name",
    "instance_uuid",
    "lessee",
    "maintenance",
    "management_interface",
    "name",
    "network_data",
    "network_interface",
    "owner",
    "power_interface",
    "properties",
    "protected",
    "protected_reason",
    "raid_interface",
    "rescue_interface",
    "resource_class",
    "retired",
    "retired_reason",
    "shard",
    "storage_interface",
    "vendor_interface",
    "parent_node",
    "firmware_interface",
];

impl Node {
    /// A new node with the fields of a body over the defaults of its driver.
    pub(super) fn new(uuid: Uuid, id: u64, driver: &Driver, body: Map<String, Value>, at: Timestamp) -> Node {
        let mut fields = fresh();
        fields.insert("driver".to_owned(), json!(driver.name));
        for kind in KINDS {
            fields.insert(format!("{kind}_interface"), json!(driver.default(kind)));
        }
        fields.extend(body.into_iter().filter(|(key, _)| key != "uuid"));
        Node {
            uuid,
            id,
            fields,
            state: ProvisionState::Enroll,
            target: None,
            created_at: at,
            updated_at: None,
            provision_updated_at: None,
            knows_power: false,
            fake_power: false,
            target_power: None,
            held: None,
            task: 0,
            steps_left: vec![],
            traits: BTreeSet::new(),
            inventory: None,
            pending: None,
            history: vec![],
        }
    }

    /// Somebody puts the node into a state by hand: whatever the conductor was at with it is void.
    pub fn put_into(&mut self, state: ProvisionState, at: Timestamp) {
        (self.state, self.target, self.target_power) = (state, None, None);
        self.task += 1;
        self.held = None;
        self.provision_updated_at = Some(at);
        self.updated_at = Some(at);
    }

    /// It is of another hardware type, with that one's interfaces. A type that the lab does not have changes nothing.
    pub fn become_of(&mut self, driver: &str) {
        let Some(driver) = super::drivers::named(driver) else { return };
        self.set("driver", driver.name);
        for kind in KINDS {
            self.set(&format!("{kind}_interface"), driver.default(kind));
        }
    }

    /// Nobody has inspected it.
    pub fn forget_inventory(&mut self) {
        self.inventory = None;
    }

    /// A field that holds text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field).and_then(Value::as_str)
    }

    pub fn name(&self) -> Option<&str> {
        self.text("name")
    }

    pub fn in_maintenance(&self) -> bool {
        self.fields.get("maintenance").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Sets a field.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.fields.insert(field.to_owned(), value.into());
    }

    /// A value of `driver_info`.
    pub(super) fn driver_info(&self, key: &str) -> Option<&str> {
        self.fields.get("driver_info")?.get(key)?.as_str()
    }

    /// The machine that this node's BMC address leads to.
    pub(super) fn machine<'a>(&self, state: &'a State) -> Option<&'a Machine> {
        let address = match self.text("driver") {
            Some("ipmi") => self.driver_info("ipmi_address")?.to_owned(),
            _ => {
                let text = self.driver_info("redfish_address")?;
                let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
                url::Url::parse(&whole).ok()?.host_str()?.to_owned()
            }
        };
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        // Nearly always the machine of the same name.
        let namesake = self.name().and_then(|name| state.machines.get(name)).filter(|m| m.bmc.address == address);
        namesake.or_else(|| state.machines.values().find(|m| m.bmc.address == address))
    }

    /// Whether the machine's power is on; `None`: Ironic does not know.
    pub(super) fn power(&self, state: &State) -> Option<bool> {
        if !self.knows_power {
            return None;
        }
        Some(self.machine(state).map_or(self.fake_power, |m| m.power.on))
    }

    /// Whether a task or another operation holds the node. Looks only: begins no spell.
    pub(super) fn is_held(&self, state: &State) -> bool {
        let foreign = self.name().and_then(|name| state.machines.get(name));
        self.held.is_some_and(|until| state.now < until)
            || foreign.is_some_and(|m| m.troubles.locks.iter().any(|spell| spell.holds(state.now)))
    }

    /// All fields that a version has, as the API shows them.
    pub(super) fn whole(&self, state: &State, base: &str, version: u32) -> Map<String, Value> {
        let mut map: Map<String, Value> =
            self.fields.iter().map(|(key, value)| (key.clone(), shown(key, value))).collect();
        let power = |on: bool| if on { "power on" } else { "power off" };
        let stamp = |at: Option<Timestamp>| at.map(time);
        let mut set = |key: &str, value: Value| {
            map.insert(key.to_owned(), value);
        };
        set("uuid", json!(self.uuid));
        set("created_at", json!(time(self.created_at)));
        set("updated_at", json!(stamp(self.updated_at)));
        set("provision_updated_at", json!(stamp(self.provision_updated_at)));
        set("provision_state", state_shown(&self.state, version));
        set("target_provision_state", json!(self.target.as_ref().map(ProvisionState::as_str)));
        set("power_state", json!(self.power(state).map(power)));
        set("target_power_state", json!(self.target_power));
        set("reservation", json!(self.is_held(state).then_some(CONDUCTOR)));
        set("traits", json!(self.traits));
        set("conductor", json!(CONDUCTOR));
        set("links", self.links(base, ""));
        for part in ["ports", "states", "portgroups", "volume"] {
            set(part, self.links(base, &format!("/{part}")));
        }
        map.retain(|key, _| since(key) <= version);
        map
    }

    /// The fields of a list without `detail`.
    pub(super) fn summary(&self, state: &State, base: &str, version: u32) -> Value {
        let names = ["uuid", "instance_uuid", "maintenance", "power_state", "provision_state", "name"];
        self.picked(state, base, version, &names)
    }

    /// The named fields, and the links.
    pub(super) fn picked(&self, state: &State, base: &str, version: u32, names: &[&str]) -> Value {
        let mut map = self.whole(state, base, version);
        map.retain(|key, _| key == "links" || names.contains(&key.as_str()));
        Value::Object(map)
    }

    fn links(&self, base: &str, tail: &str) -> Value {
        let uuid = self.uuid;
        json!([
            {"href": format!("{base}/v1/nodes/{uuid}{tail}"), "rel": "self"},
            {"href": format!("{base}/nodes/{uuid}{tail}"), "rel": "bookmark"},
        ])
    }

    /// The states resource.
    pub(super) fn states(&self, state: &State, base: &str, version: u32) -> Value {
        let names = [
            "console_enabled",
            "last_error",
            "power_state",
            "provision_state",
            "target_power_state",
            "target_provision_state",
            "provision_updated_at",
            "raid_config",
            "target_raid_config",
            "boot_mode",
            "secure_boot",
        ];
        let mut map = self.whole(state, base, version);
        map.retain(|key, _| names.contains(&key.as_str()));
        Value::Object(map)
    }
}

/// Names of `fields=`: unknown ones are refused, ones above the version not acceptable.
pub(super) fn checked_fields(text: &str, version: u32) -> Result<Vec<&str>, Refusal> {
    let all = fresh();
    let more = [
        "uuid",
        "created_at",
        "updated_at",
        "provision_updated_at",
        "provision_state",
        "target_provision_state",
        "power_state",
        "target_power_state",
        "reservation",
        "traits",
        "conductor",
        "links",
        "driver",
    ];
    let names: Vec<&str> = text.split(',').filter(|name| !name.is_empty()).collect();
    for name in &names {
        let known = all.contains_key(*name) || more.contains(name) || name.ends_with("_interface");
        if !known {
            return Err(Refusal::bad(format!("Field {name} is not a valid field.")));
        }
        if since(name) > version {
            return Err(Refusal::unacceptable());
        }
    }
    Ok(names)
}

/// A provision state as an old client may see it.
fn state_shown(state: &ProvisionState, version: u32) -> Value {
    match state {
        ProvisionState::Available if version < 2 => Value::Null,
        ProvisionState::InspectWait if version < 39 => json!("inspecting"),
        state => json!(state.as_str()),
    }
}

/// A field's value with its secrets masked.
fn shown(key: &str, value: &Value) -> Value {
    if !["driver_info", "driver_internal_info", "instance_info"].contains(&key) {
        return value.clone();
    }
    let Value::Object(map) = value else { return value.clone() };
    let secret = |name: &str| name.contains("password") || name.contains("secret") || name.contains("private_key");
    let masked = map.iter().map(|(k, v)| (k.clone(), if secret(k) { json!("******") } else { v.clone() }));
    Value::Object(masked.collect())
}

/// A time as Ironic writes it.
pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}
