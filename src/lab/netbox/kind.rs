//! The lists of the lab's NetBox: their paths, names, filters and orders.

use super::super::records::{Records, Stamps};

/// The lists that the lab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sites,
    Locations,
    Racks,
    Manufacturers,
    DeviceTypes,
    DeviceRoles,
    Tags,
    Devices,
    Interfaces,
    MacAddresses,
    IpAddresses,
    Cables,
    JournalEntries,
}

impl Kind {
    pub fn of(app: &str, list: &str) -> Option<Kind> {
        Some(match (app, list) {
            ("dcim", "sites") => Kind::Sites,
            ("dcim", "locations") => Kind::Locations,
            ("dcim", "racks") => Kind::Racks,
            ("dcim", "manufacturers") => Kind::Manufacturers,
            ("dcim", "device-types") => Kind::DeviceTypes,
            ("dcim", "device-roles") => Kind::DeviceRoles,
            ("extras", "tags") => Kind::Tags,
            ("dcim", "devices") => Kind::Devices,
            ("dcim", "interfaces") => Kind::Interfaces,
            ("dcim", "mac-addresses") => Kind::MacAddresses,
            ("ipam", "ip-addresses") => Kind::IpAddresses,
            ("dcim", "cables") => Kind::Cables,
            ("extras", "journal-entries") => Kind::JournalEntries,
            _ => return None,
        })
    }

    /// The list's path.
    pub fn path(self) -> String {
        format!("/api/{}/", self.tail())
    }

    /// The list's path without its frame.
    pub fn tail(self) -> &'static str {
        match self {
            Kind::Sites => "dcim/sites",
            Kind::Locations => "dcim/locations",
            Kind::Racks => "dcim/racks",
            Kind::Manufacturers => "dcim/manufacturers",
            Kind::DeviceTypes => "dcim/device-types",
            Kind::DeviceRoles => "dcim/device-roles",
            Kind::Tags => "extras/tags",
            Kind::Devices => "dcim/devices",
            Kind::Interfaces => "dcim/interfaces",
            Kind::MacAddresses => "dcim/mac-addresses",
            Kind::IpAddresses => "ipam/ip-addresses",
            Kind::Cables => "dcim/cables",
            Kind::JournalEntries => "extras/journal-entries",
        }
    }

    /// The model's name, as messages have it.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Sites => "Site",
            Kind::Locations => "Location",
            Kind::Racks => "Rack",
            Kind::Manufacturers => "Manufacturer",
            Kind::DeviceTypes => "DeviceType",
            Kind::DeviceRoles => "DeviceRole",
            Kind::Tags => "Tag",
            Kind::Devices => "Device",
            Kind::Interfaces => "Interface",
            Kind::MacAddresses => "MACAddress",
            Kind::IpAddresses => "IPAddress",
            Kind::Cables => "Cable",
            Kind::JournalEntries => "JournalEntry",
        }
    }

    /// Whether the list has a filter of this name, besides those that all lists have.
    pub fn has_filter(self, field: &str) -> bool {
        let own: &[&str] = match self {
            Kind::Sites => &["name", "slug", "status"],
            Kind::Locations => &["name", "slug", "site", "site_id"],
            Kind::Racks => &["name", "site", "site_id", "location_id"],
            Kind::Manufacturers | Kind::DeviceRoles | Kind::Tags => &["name", "slug"],
            Kind::DeviceTypes => &["model", "slug", "manufacturer", "manufacturer_id", "part_number"],
            Kind::Devices => &[
                "name",
                "status",
                "serial",
                "asset_tag",
                "description",
                "position",
                "site",
                "site_id",
                "location",
                "location_id",
                "rack_id",
                "role",
                "role_id",
                "device_type",
                "device_type_id",
                "model",
                "manufacturer",
                "manufacturer_id",
                "tag",
                "mac_address",
            ],
            Kind::Interfaces => &[
                "name",
                "label",
                "description",
                "type",
                "mgmt_only",
                "enabled",
                "cabled",
                "lag_id",
                "device",
                "device_id",
                "site",
                "site_id",
                "rack_id",
                "mac_address",
            ],
            Kind::MacAddresses => &["mac_address", "interface_id", "device", "device_id"],
            Kind::IpAddresses => &["address", "dns_name", "status", "interface_id", "device", "device_id"],
            Kind::Cables => &["label", "color", "status", "device", "device_id", "site", "site_id", "rack_id"],
            Kind::JournalEntries => &[],
        };
        ["id", "created", "last_updated"].contains(&field) || own.contains(&field)
    }

    pub fn ids(self, records: &Records) -> Vec<u64> {
        match self {
            Kind::Sites => records.sites.keys().copied().collect(),
            Kind::Locations => records.locations.keys().copied().collect(),
            Kind::Racks => records.racks.keys().copied().collect(),
            Kind::Manufacturers => records.manufacturers.keys().copied().collect(),
            Kind::DeviceTypes => records.device_types.keys().copied().collect(),
            Kind::DeviceRoles => records.roles.keys().copied().collect(),
            Kind::Tags => records.tags.keys().copied().collect(),
            Kind::Devices => records.devices.keys().copied().collect(),
            Kind::Interfaces => records.interfaces.keys().copied().collect(),
            Kind::MacAddresses => records.macs.keys().copied().collect(),
            Kind::IpAddresses => records.ips.keys().copied().collect(),
            Kind::Cables => records.cables.keys().copied().collect(),
            Kind::JournalEntries => records.journal.keys().copied().collect(),
        }
    }

    pub fn stamps(self, records: &Records, id: u64) -> Option<Stamps> {
        match self {
            Kind::Sites => records.sites.get(&id).map(|o| o.stamps),
            Kind::Locations => records.locations.get(&id).map(|o| o.stamps),
            Kind::Racks => records.racks.get(&id).map(|o| o.stamps),
            Kind::Manufacturers => records.manufacturers.get(&id).map(|o| o.stamps),
            Kind::DeviceTypes => records.device_types.get(&id).map(|o| o.stamps),
            Kind::DeviceRoles => records.roles.get(&id).map(|o| o.stamps),
            Kind::Tags => records.tags.get(&id).map(|o| o.stamps),
            Kind::Devices => records.devices.get(&id).map(|o| o.stamps),
            Kind::Interfaces => records.interfaces.get(&id).map(|o| o.stamps),
            Kind::MacAddresses => records.macs.get(&id).map(|o| o.stamps),
            Kind::IpAddresses => records.ips.get(&id).map(|o| o.stamps),
            Kind::Cables => records.cables.get(&id).map(|o| o.stamps),
            Kind::JournalEntries => records.journal.get(&id).map(|o| o.stamps),
        }
    }

    /// What the list is sorted by where nobody says otherwise.
    pub fn sort_name(self, records: &Records, id: u64) -> String {
        let name = match self {
            Kind::Sites => records.sites.get(&id).map(|o| o.name.clone()),
            Kind::Locations => records.locations.get(&id).map(|o| format!("{:06} {}", o.site, o.name)),
            Kind::Racks => records.racks.get(&id).map(|o| format!("{:06} {}", o.site, o.name)),
            Kind::Manufacturers => records.manufacturers.get(&id).map(|o| o.name.clone()),
            Kind::DeviceTypes => records.device_types.get(&id).map(|o| {
                let maker = records.manufacturers.get(&o.manufacturer).map(|m| m.name.as_str()).unwrap_or_default();
                format!("{maker} {}", o.model)
            }),
            Kind::DeviceRoles => records.roles.get(&id).map(|o| o.name.clone()),
            Kind::Tags => records.tags.get(&id).map(|o| o.name.clone()),
            Kind::Devices => records.devices.get(&id).map(|o| o.name.clone()),
            Kind::Interfaces => records.interfaces.get(&id).map(|o| {
                let device = records.devices.get(&o.device).map(|d| d.name.as_str()).unwrap_or_default();
                format!("{device}\u{0}{}", o.name)
            }),
            Kind::MacAddresses | Kind::IpAddresses | Kind::Cables | Kind::JournalEntries => None,
        };
        name.unwrap_or_else(|| format!("{id:012}"))
    }
}
