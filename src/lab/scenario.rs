//! Scenario files: a site, its devices and what goes wrong, in TOML.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::LabError;
use super::faults::Fault;
use super::machine::{Hardware, Quirk, Vendor};
use super::world::Timing;

/// A whole scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// Lab seconds in a real one, where the caller says nothing else.
    #[serde(default = "one")]
    pub speed: f64,
    #[serde(default)]
    pub timing: Timing,
    #[serde(default)]
    pub netbox: NetboxScenario,
    #[serde(default)]
    pub ironic: IronicScenario,
    /// Config context that every host gets.
    #[serde(default)]
    pub context: toml::Table,
    /// By NetBox slug.
    pub sites: BTreeMap<String, SiteScenario>,
    /// By slug.
    pub types: BTreeMap<String, TypeScenario>,
    /// By slug.
    pub roles: BTreeMap<String, RoleScenario>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub hosts: Vec<HostScenario>,
    #[serde(default)]
    pub faults: Vec<Fault>,
}

fn one() -> f64 {
    1.0
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetboxScenario {
    /// 1 or 2: which kind of token the configuration for muster gets.
    pub token_version: u8,
    pub max_page_size: usize,
}

impl Default for NetboxScenario {
    fn default() -> Self {
        NetboxScenario { token_version: 2, max_page_size: 1000 }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IronicScenario {
    /// Its name in muster's configuration.
    pub name: String,
    pub device_classes: Vec<String>,
    pub auth: IronicAuth,
    /// What created nodes are to have as their owner; not configured where it is left out.
    pub project: Option<String>,
    /// Inspection creates ports for every NIC that the BMC reports.
    pub pre_create_ports: bool,
    /// The `parse-lldp` hook is on: inventories have `parsed_lldp`.
    pub parse_lldp: bool,
}

impl Default for IronicScenario {
    fn default() -> Self {
        IronicScenario {
            name: "lab".to_owned(),
            device_classes: ["COMPUTE_GPU", "COMPUTE_CPU", "HYPERVISOR"].map(str::to_owned).to_vec(),
            auth: IronicAuth::None,
            project: None,
            pre_create_ports: true,
            parse_lldp: true,
        }
    }
}

/// How the lab's Ironic asks who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IronicAuth {
    None,
    HttpBasic,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteScenario {
    pub name: String,
    /// Second octet of the site's BMC addresses, `127.N.rack.unit`: from 1 to 254, its own for each site.
    pub octet: u8,
    #[serde(default)]
    pub ntp_server: Option<String>,
    #[serde(default)]
    pub syslog_server: Option<String>,
    /// How the leaf switches name themselves and their ports.
    #[serde(default)]
    pub switches: SwitchStyle,
    /// Gates of the site in muster's configuration; unset ones are the program's own defaults.
    #[serde(default)]
    pub gates: toml::Table,
    #[serde(default)]
    pub options: toml::Table,
    /// By name.
    pub racks: BTreeMap<String, RackScenario>,
}

/// What LLDP carries, and how ports are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchStyle {
    /// `swp14`: the port's name is the LLDP port id, the description names the host.
    #[default]
    Cumulus,
    /// `Ethernet14`: the LLDP port id is a number of the switch's own, the description is the port's name.
    Arista,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackScenario {
    /// NetBox's location.
    pub hall: String,
    #[serde(default = "forty_eight")]
    pub u_height: u64,
    #[serde(default = "unit_one")]
    pub starting_unit: u64,
    /// Its units are numbered from the top down.
    #[serde(default)]
    pub desc_units: bool,
}

fn unit_one() -> u64 {
    1
}

fn forty_eight() -> u64 {
    48
}

/// A device type with what is inside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeScenario {
    pub manufacturer: String,
    pub model: String,
    #[serde(default = "two")]
    pub u_height: f64,
    /// Hosts of this type leave the other face of the rack free.
    #[serde(default)]
    pub half_depth: bool,
    #[serde(default)]
    pub gpu_type: Option<String>,
    pub bmc: Vendor,
    pub bmc_firmware: String,
    pub hardware: Hardware,
    /// Further NICs, which no cable is recorded for, beside the two frontend ones.
    #[serde(default)]
    pub extra_nics: u32,
    #[serde(default)]
    pub context: toml::Table,
}

fn two() -> f64 {
    2.0
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleScenario {
    pub name: String,
    pub device_class: String,
    #[serde(default = "grey")]
    pub color: String,
    #[serde(default)]
    pub context: toml::Table,
}

fn grey() -> String {
    "9e9e9e".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostScenario {
    pub name: String,
    pub site: String,
    pub rack: String,
    /// Left out: in the rack, but not in a unit.
    #[serde(default)]
    pub unit: Option<u8>,
    #[serde(rename = "type")]
    pub device_type: String,
    pub role: String,
    #[serde(default = "staged")]
    pub status: String,
    /// Port number on both leaves; the next free one of the rack where it is left out.
    #[serde(default)]
    pub port: Option<u32>,
    /// NetBox knows the BMC's address.
    #[serde(default = "yes")]
    pub oob_ip: bool,
    /// An Ironic node that exists from the start, in this state.
    #[serde(default)]
    pub node: Option<String>,
    /// The node is an instance's.
    #[serde(default)]
    pub instance: bool,
    #[serde(default)]
    pub power: Option<bool>,
    /// The BMC does not tell link states.
    #[serde(default)]
    pub links_unreported: bool,
    /// Odd habits of its BMC.
    #[serde(default)]
    pub bmc_quirks: BTreeSet<Quirk>,
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    #[serde(default)]
    pub platform_class: Option<String>,
    #[serde(default)]
    pub context: toml::Table,
}

fn staged() -> String {
    "staged".to_owned()
}

fn yes() -> bool {
    true
}

/// The scenario of `muster demo`.
pub const DEMO: &str = include_str!("../../scenarios/demo.toml");
/// One rack of healthy hosts, for tests.
pub const RACK: &str = include_str!("../../scenarios/rack.toml");

impl Scenario {
    /// Reads a scenario; the error names line and key.
    pub fn parse(text: &str) -> Result<Scenario, LabError> {
        toml::from_str(text).map_err(|e| LabError::Scenario(e.to_string().trim_end().to_owned()))
    }

    /// The scenario of `muster demo`.
    pub fn demo() -> Result<Scenario, LabError> {
        Self::parse(DEMO)
    }

    /// One rack of healthy hosts, for tests.
    pub fn rack() -> Result<Scenario, LabError> {
        Self::parse(RACK)
    }
}

/// A TOML table as JSON. Dates become text.
pub fn to_json(table: &toml::Table) -> Value {
    serde_json::to_value(table).unwrap_or_default()
}

/// Merges `over` into `base` as NetBox merges contexts: objects key by key, everything else replaced.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}
