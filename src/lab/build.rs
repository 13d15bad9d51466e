//! Builds the world of a scenario: NetBox's records, and the machines as they are.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::LabError;
use super::clock::LabTime;
use super::machine::{Bmc, Machine, Nic, Plug, Power, Preset, Quirk, Troubles, Vendor};
use super::records::{
    Cable, Device, DeviceType, Interface, IpAddress, Location, MacAddress, Manufacturer, Rack, Records, Role, Site,
    Stamps, Tag, Token, next_id,
};
use super::scenario::{HostScenario, RackScenario, Scenario, SiteScenario, SwitchStyle, merge, to_json};
use crate::domain::mac::Mac;

/// The administrator of a Supermicro BMC, which most hosts of the lab have.
pub const BMC_USER: &str = "ADMIN";
/// The NICs of a host that have cables.
const FRONTEND: [&str; 2] = ["eth0", "eth1"];

/// What a scenario describes.
#[derive(Debug, Clone, Default)]
pub struct Built {
    pub records: Records,
    pub machines: Vec<Machine>,
}

/// Builds records and machines. Ids, addresses and MACs depend on the scenario alone.
pub fn build(scenario: &Scenario) -> Result<Built, LabError> {
    let long_ago = Timestamp::now().checked_sub(SignedDuration::from_hours(24 * 30)).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut builder = Builder { scenario, built: Built::default(), at: long_ago, ports: BTreeMap::new() };
    builder.catalogue();
    for (slug, site) in &scenario.sites {
        builder.site(slug, site);
    }
    for host in &scenario.hosts {
        builder.host(host)?;
    }
    Ok(builder.built)
}

/// The administrator of a vendor's BMCs.
pub fn bmc_user(vendor: Vendor) -> &'static str {
    vendor.factory_login().0
}

/// The password of a host's BMC, the same in every lab.
pub fn bmc_password(host: &str) -> String {
    format!("Lab-{}", secret(&["bmc", host], 8))
}

/// The key (K_g) of a host's BMC, where a quirk gives it one: twenty bytes.
pub fn bmc_key(host: &str) -> String {
    secret(&["ipmi key", host], 10)
}

/// A made-up secret that depends on nothing but its names.
pub fn secret(names: &[&str], bytes: usize) -> String {
    let digest = Sha256::digest(format!("muster lab {}", names.join(" ")));
    digest.iter().take(bytes).map(|b| format!("{b:02x}")).collect()
}

/// The token of the configuration for muster.
pub fn netbox_token(version: u8, who: &str) -> String {
    if version == 1 {
        secret(&["netbox", who], 20)
    } else {
        format!("nbt_{}.{}", secret(&["netbox key", who], 6), secret(&["netbox", who], 20))
    }
}

struct Builder<'a> {
    scenario: &'a Scenario,
    built: Built,
    at: Timestamp,
    /// Ports in use on the leaves of a rack.
    ports: BTreeMap<(String, String), Vec<u32>>,
}

impl Builder<'_> {
    /// Stamps of the next object: each a little later than the one before, as a person would have made them.
    fn stamps(&mut self) -> Stamps {
        self.at = self.at.checked_add(SignedDuration::from_micros(1_237_411)).unwrap_or(self.at);
        Stamps { created: self.at, last_updated: self.at }
    }

    fn manufacturer(&mut self, name: &str) -> u64 {
        let found = self.built.records.manufacturers.values().find(|m| m.name == name).map(|m| m.id);
        found.unwrap_or_else(|| {
            let (id, stamps) = (next_id(&self.built.records.manufacturers), self.stamps());
            let manufacturer = Manufacturer { id, name: name.to_owned(), slug: slug(name), stamps };
            self.built.records.manufacturers.insert(id, manufacturer);
            id
        })
    }

    fn device_type(
        &mut self,
        manufacturer: &str,
        model: &str,
        slug: &str,
        (u_height, is_full_depth): (f64, bool),
        gpu_type: Option<&str>,
    ) -> u64 {
        let manufacturer = self.manufacturer(manufacturer);
        let (id, stamps) = (next_id(&self.built.records.device_types), self.stamps());
        let custom_fields = fields([("gpu_type", gpu_type)]);
        let (model, slug) = (model.to_owned(), slug.to_owned());
        let device_type = DeviceType { id, manufacturer, model, slug, u_height, is_full_depth, custom_fields, stamps };
        self.built.records.device_types.insert(id, device_type);
        id
    }

    fn role(&mut self, slug: &str, name: &str, color: &str, device_class: &str) -> u64 {
        let (id, stamps) = (next_id(&self.built.records.roles), self.stamps());
        let custom_fields = fields([("device_class", Some(device_class))]);
        let (name, slug, color) = (name.to_owned(), slug.to_owned(), color.to_owned());
        self.built.records.roles.insert(id, Role { id, name, slug, color, custom_fields, stamps });
        id
    }

    /// What is not at a place: tags, types, roles, tokens.
    fn catalogue(&mut self) {
        let scenario = self.scenario;
        let mut tags = vec!["ironic".to_owned(), "ipmi_exporter".to_owned()];
        tags.extend(scenario.tags.iter().filter(|t| !["ironic", "ipmi_exporter"].contains(&t.as_str())).cloned());
        for slug in tags {
            let (id, stamps) = (next_id(&self.built.records.tags), self.stamps());
            let tag = Tag { id, name: slug.clone(), slug, color: "4caf50".to_owned(), stamps };
            self.built.records.tags.insert(id, tag);
        }
        for (slug, t) in &scenario.types {
            self.device_type(&t.manufacturer, &t.model, slug, (t.u_height, !t.half_depth), t.gpu_type.as_deref());
        }
        self.device_type("Edgecore", "AS7726-32X", "as7726-32x", (1.0, false), None);
        self.device_type("Edgecore", "AS4610-54T", "as4610-54t", (1.0, false), None);
        for (slug, role) in &scenario.roles {
            self.role(slug, &role.name, &role.color, &role.device_class);
        }
        self.role("switch", "Switch", "607d8b", "SWITCH");
        let token = |who: &str, version, write, view| Token { secret: netbox_token(version, who), write, view };
        self.built.records.tokens = vec![
            token("muster", 1, true, true),
            token("muster", 2, true, true),
            token("readonly", 2, false, true),
            token("nothing", 2, true, false),
        ];
    }

    fn site(&mut self, slug_: &str, site: &SiteScenario) {
        let (id, stamps) = (next_id(&self.built.records.sites), self.stamps());
        let custom_fields =
            fields([("ntp_server_1", site.ntp_server.as_deref()), ("syslog_server", site.syslog_server.as_deref())]);
        let record = Site { id, name: site.name.clone(), slug: slug_.to_owned(), custom_fields, stamps };
        self.built.records.sites.insert(id, record);
        for (name, rack) in &site.racks {
            self.rack(id, slug_, name, rack);
        }
    }

    fn rack(&mut self, site_id: u64, site_slug: &str, name: &str, rack: &RackScenario) {
        let hall = self.built.records.locations.values().find(|l| l.site == site_id && l.name == rack.hall);
        let location = hall.map(|l| l.id).unwrap_or_else(|| {
            let (id, stamps) = (next_id(&self.built.records.locations), self.stamps());
            let slug = format!("{site_slug}-{}", slug(&rack.hall));
            let location = Location { id, name: rack.hall.clone(), slug, site: site_id, stamps };
            self.built.records.locations.insert(id, location);
            id
        });
        let (id, stamps) = (next_id(&self.built.records.racks), self.stamps());
        let (name_, u_height) = (name.to_owned(), rack.u_height);
        let (starting_unit, desc_units) = (rack.starting_unit, rack.desc_units);
        let record = Rack {
            id,
            name: name_,
            site: site_id,
            location: Some(location),
            u_height,
            starting_unit,
            desc_units,
            stamps,
        };
        self.built.records.racks.insert(id, record);
        let low = name.to_lowercase();
        // Switch names must not repeat between sites: LLDP tells nothing else.
        let prefix = if self.rack_is_unique(name) { low } else { format!("{site_slug}-{low}") };
        for (n, (switch, type_slug)) in [
            (format!("leaf-{prefix}-1"), "as7726-32x"),
            (format!("leaf-{prefix}-2"), "as7726-32x"),
            (format!("oob-{prefix}"), "as4610-54t"),
        ]
        .into_iter()
        .enumerate()
        {
            // The first ones from the top.
            let below_top = if rack.desc_units { n as u64 } else { rack.u_height.saturating_sub(1 + n as u64) };
            let unit = (rack.starting_unit + below_top) as f64;
            let serial = format!("LABSW{site_id}{id:02}{n}");
            let device = self.device(
                &switch,
                type_slug,
                "switch",
                "active",
                (site_id, Some(location), Some(id)),
                Some(unit),
                &serial,
            );
            self.interface(device, "eth0", "mgmt", "1000base-t", true, "", None);
        }
    }

    fn rack_is_unique(&self, name: &str) -> bool {
        self.scenario.sites.values().filter(|s| s.racks.contains_key(name)).count() == 1
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of one table row, each named where it is made")]
    fn device(
        &mut self,
        name: &str,
        type_slug: &str,
        role_slug: &str,
        status: &str,
        place: (u64, Option<u64>, Option<u64>),
        position: Option<f64>,
        serial: &str,
    ) -> u64 {
        let records = &self.built.records;
        let device_type = records.device_types.values().find(|t| t.slug == type_slug).map_or(0, |t| t.id);
        let role = records.roles.values().find(|r| r.slug == role_slug).map_or(0, |r| r.id);
        let (id, stamps) = (next_id(&self.built.records.devices), self.stamps());
        let device = Device {
            id,
            name: name.to_owned(),
            device_type,
            role,
            site: place.0,
            location: place.1,
            rack: place.2,
            position,
            face: position.map(|_| "front".to_owned()),
            status: status.to_owned(),
            serial: serial.to_owned(),
            asset_tag: None,
            description: String::new(),
            comments: String::new(),
            oob_ip: None,
            primary_ip4: None,
            tags: vec![],
            custom_fields: fields([("platform_class", None), ("rack_unit_note", None)]),
            config_context: json!({}),
            local_context: None,
            stamps,
        };
        self.built.records.devices.insert(id, device);
        id
    }

    #[expect(clippy::too_many_arguments, reason = "the columns of one table row, each named where it is made")]
    fn interface(
        &mut self,
        device: u64,
        name: &str,
        label: &str,
        kind: &str,
        mgmt_only: bool,
        description: &str,
        mac: Option<Mac>,
    ) -> u64 {
        let (id, stamps) = (next_id(&self.built.records.interfaces), self.stamps());
        let mut macs = vec![];
        if let Some(mac) = mac {
            let (mac_id, stamps) = (next_id(&self.built.records.macs), self.stamps());
            let address = mac.to_string().to_uppercase();
            self.built.records.macs.insert(mac_id, MacAddress { id: mac_id, address, interface: id, stamps });
            macs.push(mac_id);
        }
        let (name, label, kind) = (name.to_owned(), label.to_owned(), kind.to_owned());
        let description = description.to_owned();
        let interface =
            Interface { id, device, name, label, kind, mgmt_only, description, lag: None, macs, cable: None, stamps };
        self.built.records.add_interface(interface);
        id
    }

    fn cable(&mut self, a: u64, b: u64, label: &str, color: &str, length_m: f64) {
        let (id, stamps) = (next_id(&self.built.records.cables), self.stamps());
        let (label, color) = (label.to_owned(), color.to_owned());
        self.built.records.cables.insert(id, Cable { id, a, b, label, color, length_m, stamps });
        for end in [a, b] {
            if let Some(interface) = self.built.records.interfaces.get_mut(&end) {
                interface.cable = Some(id);
                interface.stamps.last_updated = stamps.last_updated;
            }
        }
    }

    /// An interface of a switch, found or made.
    fn switch_port(&mut self, switch: u64, name: &str, kind: &str) -> u64 {
        let found = self.built.records.interfaces_of(switch).find(|i| i.name == name).map(|i| i.id);
        found.unwrap_or_else(|| self.interface(switch, name, "", kind, false, "", None))
    }

    fn host(&mut self, host: &HostScenario) -> Result<(), LabError> {
        let wrong = |what: String| LabError::Scenario(format!("host '{}': {what}", host.name));
        let scenario = self.scenario;
        let site = scenario.sites.get(&host.site).ok_or_else(|| wrong(format!("there is no site '{}'", host.site)))?;
        if !site.racks.contains_key(&host.rack) {
            return Err(wrong(format!("site '{}' has no rack '{}'", host.site, host.rack)));
        }
        let model = scenario.types.get(&host.device_type);
        let model = model.ok_or_else(|| wrong(format!("there is no type '{}'", host.device_type)))?;
        let role = scenario.roles.get(&host.role).ok_or_else(|| wrong(format!("there is no role '{}'", host.role)))?;
        if self.built.records.device_named(&host.name).is_some() {
            return Err(wrong("there are two of this name".to_owned()));
        }
        let rack_number = site.racks.keys().position(|name| *name == host.rack).map_or(0, |n| n + 1) as u8;
        let used = self.ports.entry((host.site.clone(), host.rack.clone())).or_default();
        let port = host.port.unwrap_or_else(|| (1..).find(|p| !used.contains(p)).unwrap_or(1));
        if used.contains(&port) {
            return Err(wrong(format!("port {port} of rack '{}' is in use", host.rack)));
        }
        used.push(port);
        // Units are below 100; hosts without one get a number of their own.
        let number = host.unit.unwrap_or(100 + port.min(100) as u8);
        let address = Ipv4Addr::new(127, site.octet, rack_number, number);
        let mac = |n: u8| {
            let text = format!("02:4d:{:02x}:{rack_number:02x}:{number:02x}:{n:02x}", site.octet);
            text.parse::<Mac>().map_err(|e| wrong(e.to_string()))
        };

        let mut context = to_json(&scenario.context);
        for more in [&role.context, &model.context, &host.context] {
            merge(&mut context, to_json(more));
        }
        let settings = &context["ironic_settings"];
        let bond = settings["bond"]["name"].as_str().map(str::to_owned);
        let is_lag = settings["bond"]["mode"] == "802.3ad";
        let serial = format!("LAB{:02}{rack_number:02}{number:03}", site.octet);

        let place = self.place(&host.site, &host.rack);
        let position = host.unit.map(f64::from);
        let device = self.device(&host.name, &host.device_type, &host.role, &host.status, place, position, &serial);
        let bmc_mac = mac(0)?;
        let oob = self.interface(device, "BMC", "oob", "1000base-t", true, "", Some(bmc_mac));
        let bond_id = bond.map(|name| self.interface(device, &name, "", "lag", false, "", None));
        let style = site.switches;
        let low = host.rack.to_lowercase();
        let prefix = if self.rack_is_unique(&host.rack) { low } else { format!("{}-{low}", host.site) };
        let mut nics = vec![];
        for (n, name) in FRONTEND.iter().enumerate() {
            let (slot, nic_mac) = (format!("PCIe {}", n + 1), mac(1 + n as u8)?);
            let id = self.interface(device, name, &slot, "100gbase-x-qsfp28", false, "frontend", Some(nic_mac));
            self.lag(id, bond_id);
            let switch = format!("leaf-{prefix}-{}", n + 1);
            let port_name = port_name(style, port);
            let switch_id = self.built.records.device_named(&switch).map_or(0, |d| d.id);
            let far = self.switch_port(switch_id, &port_name, "100gbase-x-qsfp28");
            if is_lag {
                let channel = self.switch_port(switch_id, &channel_name(style, port), "lag");
                self.lag(far, Some(channel));
            }
            let label = format!("{}-{}", host.name, name);
            self.cable(id, far, &label, ["2196f3", "ff9800"][n % 2], 3.0);
            nics.push(self.nic(name, nic_mac, &slot, Some(Plug { switch, port: port_name }), host.links_unreported));
        }
        for n in 0..model.extra_nics {
            let name = format!("eth{}", FRONTEND.len() as u32 + n);
            let (slot, nic_mac) = (format!("PCIe {}", 3 + n), mac(3 + n as u8)?);
            self.interface(device, &name, &slot, "100gbase-x-qsfp28", false, "backend", Some(nic_mac));
            let mut nic = self.nic(&name, nic_mac, &slot, None, host.links_unreported);
            nic.frontend = false;
            nics.push(nic);
        }
        let oob_switch = self.built.records.device_named(&format!("oob-{prefix}")).map_or(0, |d| d.id);
        let far = self.switch_port(oob_switch, &port_name(style, port), "1000base-t");
        self.cable(oob, far, &format!("{}-oob", host.name), "9e9e9e", 2.0);
        if host.oob_ip {
            let (id, stamps) = (next_id(&self.built.records.ips), self.stamps());
            let dns_name = format!("{}-bmc.{}.example.com", host.name, host.site);
            let ip = IpAddress { id, address: format!("{address}/24"), interface: oob, dns_name, stamps };
            self.built.records.ips.insert(id, ip);
            if let Some(device) = self.built.records.devices.get_mut(&device) {
                device.oob_ip = Some(id);
            }
        }
        let tags = host.tags.clone().unwrap_or_else(|| {
            let enrolled = matches!(host.node.as_deref(), Some("available" | "active"));
            if enrolled { vec!["ironic".to_owned(), "ipmi_exporter".to_owned()] } else { vec![] }
        });
        let tags = tags.iter().map(|slug| {
            let found = self.built.records.tags.values().find(|t| t.slug == *slug).map(|t| t.id);
            found.ok_or_else(|| wrong(format!("there is no tag '{slug}'")))
        });
        let tags = tags.collect::<Result<Vec<u64>, _>>()?;
        if let Some(record) = self.built.records.devices.get_mut(&device) {
            record.asset_tag = Some(format!("A{device:05}"));
            record.config_context = context;
            record.tags = tags;
            if let Some(class) = &host.platform_class {
                record.custom_fields.insert("platform_class".to_owned(), json!(class));
            }
        }
        let preset = if host.node.is_some() { Preset::Converged } else { Preset::Factory };
        let (user, factory) = model.bmc.factory_login();
        let is_factory = [Quirk::FactoryPassword, Quirk::ForcedPasswordChange, Quirk::ForcedChangeByAttribute];
        let unchanged = host.bmc_quirks.iter().any(|quirk| is_factory.contains(quirk));
        let password = if unchanged { factory.to_owned() } else { bmc_password(&host.name) };
        let accounts = [(user.to_owned(), password)].into();
        let on = host.power.unwrap_or(matches!(host.node.as_deref(), Some("available" | "active")));
        self.built.machines.push(Machine {
            name: host.name.clone(),
            site: host.site.clone(),
            manufacturer: model.manufacturer.clone(),
            model: model.model.clone(),
            serial,
            nics,
            hardware: model.hardware.clone(),
            bmc: Bmc {
                address,
                mac: bmc_mac,
                vendor: model.bmc,
                firmware: model.bmc_firmware.clone(),
                accounts,
                preset,
                quirks: host.bmc_quirks.clone(),
                settings: BTreeMap::new(),
                away: None,
                web_away: None,
                resets: 0,
                ipmi_sessions: 0,
            },
            power: Power { on, since: LabTime::ZERO, target: None, request: 0 },
            boots: 0,
            troubles: Troubles::default(),
        });
        Ok(())
    }

    fn nic(&self, name: &str, mac: Mac, slot: &str, plug: Option<Plug>, unreported: bool) -> Nic {
        let number = slot.rsplit(' ').next().and_then(|n| n.parse::<u32>().ok()).unwrap_or(1);
        Nic {
            name: name.to_owned(),
            mac,
            slot: slot.to_owned(),
            port: 1,
            frontend: true,
            speed_mbps: 100_000,
            vendor_id: "15b3".to_owned(),
            product_id: "1021".to_owned(),
            pci_address: format!("0000:{:02x}:00.0", 0x80 + number),
            recorded: plug.clone(),
            plugged: plug,
            up_at: LabTime::ZERO,
            unreported,
        }
    }

    fn lag(&mut self, interface: u64, lag: Option<u64>) {
        if let Some(interface) = self.built.records.interfaces.get_mut(&interface) {
            interface.lag = lag;
        }
    }

    fn place(&self, site: &str, rack: &str) -> (u64, Option<u64>, Option<u64>) {
        let site = self.built.records.sites.values().find(|s| s.slug == site).map_or(0, |s| s.id);
        let rack = self.built.records.racks.values().find(|r| r.site == site && r.name == rack);
        (site, rack.and_then(|r| r.location), rack.map(|r| r.id))
    }
}

/// A switch port's name.
fn port_name(style: SwitchStyle, number: u32) -> String {
    match style {
        SwitchStyle::Cumulus => format!("swp{number}"),
        SwitchStyle::Arista => format!("Ethernet{number}"),
    }
}

/// The LAG of a switch port.
fn channel_name(style: SwitchStyle, number: u32) -> String {
    match style {
        SwitchStyle::Cumulus => format!("bond{number}"),
        SwitchStyle::Arista => format!("Port-Channel{number}"),
    }
}

fn fields<const N: usize>(pairs: [(&str, Option<&str>); N]) -> Map<String, Value> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

fn slug(name: &str) -> String {
    name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}
