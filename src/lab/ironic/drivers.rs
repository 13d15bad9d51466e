//! The hardware types of the lab's Ironic, with their interfaces.

use serde_json::{Map, Value, json};

use super::reply::CONDUCTOR;

/// The kinds of interfaces.
pub(super) const KINDS: [&str; 12] = [
    "bios",
    "boot",
    "console",
    "deploy",
    "firmware",
    "inspect",
    "management",
    "network",
    "power",
    "raid",
    "rescue",
    "vendor",
];

/// `storage` is beside the others: it has only one implementation.
pub(super) const STORAGE: &str = "noop";

pub(super) struct Driver {
    pub name: &'static str,
    /// The class, as messages name it.
    class: &'static str,
    /// By kind: the default first.
    interfaces: &'static [(&'static str, &'static [&'static str])],
}

pub(super) const DRIVERS: [Driver; 4] = [
    Driver {
        name: "fake-hardware",
        class: "FakeHardware",
        interfaces: &[
            ("bios", &["fake", "no-bios"]),
            ("boot", &["fake", "ipxe", "pxe"]),
            ("console", &["fake", "no-console"]),
            ("deploy", &["fake", "direct"]),
            ("firmware", &["fake", "no-firmware"]),
            ("inspect", &["fake", "no-inspect", "agent"]),
            ("management", &["fake", "noop"]),
            ("network", &["noop"]),
            ("power", &["fake"]),
            ("raid", &["fake", "no-raid", "agent"]),
            ("rescue", &["fake", "no-rescue"]),
            ("vendor", &["fake", "no-vendor"]),
        ],
    },
    Driver {
        name: "idrac",
        class: "IDRACHardware",
        interfaces: &[
            ("bios", &["idrac-redfish", "no-bios"]),
            ("boot", &["ipxe", "pxe", "idrac-redfish-virtual-media"]),
            ("console", &["no-console"]),
            ("deploy", &["direct", "ramdisk"]),
            ("firmware", &["redfish", "no-firmware"]),
            ("inspect", &["idrac-redfish", "agent", "no-inspect"]),
            ("management", &["idrac-redfish", "noop"]),
            ("network", &["noop", "flat"]),
            ("power", &["idrac-redfish"]),
            ("raid", &["idrac-redfish", "no-raid", "agent"]),
            ("rescue", &["no-rescue"]),
            ("vendor", &["idrac-redfish", "no-vendor"]),
        ],
    },
    Driver {
        name: "ipmi",
        class: "IPMIHardware",
        interfaces: &[
            ("bios", &["no-bios"]),
            ("boot", &["ipxe", "pxe"]),
            ("console", &["no-console"]),
            ("deploy", &["direct", "ramdisk"]),
            ("firmware", &["no-firmware"]),
            ("inspect", &["no-inspect", "agent"]),
            ("management", &["ipmitool", "noop"]),
            ("network", &["noop", "flat"]),
            ("power", &["ipmitool"]),
            ("raid", &["no-raid", "agent"]),
            ("rescue", &["no-rescue"]),
            ("vendor", &["ipmitool", "no-vendor"]),
        ],
    },
    Driver {
        name: "redfish",
        class: "RedfishHardware",
        interfaces: &[
            ("bios", &["redfish", "no-bios"]),
            ("boot", &["ipxe", "pxe", "redfish-virtual-media"]),
            ("console", &["no-console"]),
            ("deploy", &["direct", "ramdisk"]),
            ("firmware", &["redfish", "no-firmware"]),
            ("inspect", &["redfish", "no-inspect", "agent"]),
            ("management", &["redfish", "noop"]),
            ("network", &["noop", "flat"]),
            ("power", &["redfish"]),
            ("raid", &["redfish", "no-raid", "agent"]),
            ("rescue", &["no-rescue"]),
            ("vendor", &["redfish", "no-vendor"]),
        ],
    },
];

/// A driver by its name.
pub(super) fn named(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|d| d.name == name)
}

impl Driver {
    fn of(&self, kind: &str) -> &'static [&'static str] {
        self.interfaces.iter().find(|(k, _)| *k == kind).map_or(&[], |(_, names)| names)
    }

    /// What a node gets where it names no interface of this kind.
    pub fn default(&self, kind: &str) -> &'static str {
        self.of(kind).first().copied().unwrap_or("noop")
    }

    /// Refuses an interface that the hardware type cannot use.
    pub fn check(&self, kind: &str, interface: &str) -> Result<(), String> {
        if self.of(kind).contains(&interface) || (kind == "storage" && interface == STORAGE) {
            return Ok(());
        }
        Err(format!("{kind} interface implementation '{interface}' is not supported by hardware type {}.", self.class))
    }

    /// As the list of drivers shows it.
    pub fn brief(&self, base: &str) -> Value {
        let link = |tail: &str| {
            json!([
                {"href": format!("{base}/v1/drivers/{}{tail}", self.name), "rel": "self"},
                {"href": format!("{base}/drivers/{}{tail}", self.name), "rel": "bookmark"},
            ])
        };
        json!({
            "name": self.name, "hosts": [CONDUCTOR], "links": link(""), "properties": link("/properties"),
            "type": "dynamic",
        })
    }

    /// With all its interfaces.
    pub fn whole(&self, base: &str) -> Value {
        let mut map: Map<String, Value> = Map::new();
        if let Value::Object(brief) = self.brief(base) {
            map.extend(brief);
        }
        for kind in KINDS {
            map.insert(format!("default_{kind}_interface"), json!(self.default(kind)));
            map.insert(format!("enabled_{kind}_interfaces"), json!(self.of(kind)));
        }
        map.insert("default_storage_interface".to_owned(), json!(STORAGE));
        map.insert("enabled_storage_interfaces".to_owned(), json!([STORAGE]));
        Value::Object(map)
    }
}
