//! NetBox's objects as it shows them: whole, brief, or with the fields that a request names.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::records::{Device, Interface, Records};
use super::kind::Kind;

/// Shows objects. `base` is how clients reach the server.
pub(super) struct Render<'a> {
    pub records: &'a Records,
    pub base: &'a str,
}

impl Render<'_> {
    /// An object as the query wants it: `brief`, `fields`, `omit`, else whole.
    pub fn shown(&self, kind: Kind, id: u64, query: &[(String, String)]) -> Option<Value> {
        let get = |key: &str| query.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        kind.stamps(self.records, id)?;
        let brief = get("brief").is_some_and(|v| ["true", "True", "1"].contains(&v));
        let mut value = if brief { self.brief(kind, id) } else { self.whole(kind, id) };
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        if let Value::Object(map) = &mut value {
            if let Some(fields) = get("fields").map(names) {
                map.retain(|key, _| fields.contains(key));
            } else if let Some(omit) = get("omit").map(names) {
                map.retain(|key, _| !omit.contains(key));
            }
        }
        Some(value)
    }

    /// The weak tag of a detail: its `last_updated`.
    pub fn etag(&self, kind: Kind, id: u64) -> Option<String> {
        let at = kind.stamps(self.records, id)?.last_updated;
        Some(format!("W/\"{}+00:00\"", at.strftime("%Y-%m-%dT%H:%M:%S%.6f")))
    }

    fn url(&self, kind: Kind, id: u64) -> String {
        format!("{}/api/{}/{id}/", self.base, kind.tail())
    }

    fn display_url(&self, kind: Kind, id: u64) -> String {
        format!("{}/{}/{id}/", self.base, kind.tail())
    }

    /// The nested form.
    pub fn brief(&self, kind: Kind, id: u64) -> Value {
        let r = self.records;
        let head = |display: &str| {
            let mut map = Map::new();
            map.insert("id".to_owned(), json!(id));
            map.insert("url".to_owned(), json!(self.url(kind, id)));
            map.insert("display".to_owned(), json!(display));
            map
        };
        let with = |display: &str, more: Value| {
            let mut map = head(display);
            if let Value::Object(more) = more {
                map.extend(more);
            }
            Value::Object(map)
        };
        match kind {
            Kind::Sites => {
                r.sites.get(&id).map(|o| with(&o.name, json!({"name": o.name, "slug": o.slug, "description": ""})))
            }
            Kind::Locations => r.locations.get(&id).map(|o| {
                let more = json!({"name": o.name, "slug": o.slug, "description": "", "rack_count": 0, "_depth": 0});
                with(&o.name, more)
            }),
            Kind::Racks => r.racks.get(&id).map(|o| with(&o.name, json!({"name": o.name, "description": ""}))),
            Kind::Manufacturers => r
                .manufacturers
                .get(&id)
                .map(|o| with(&o.name, json!({"name": o.name, "slug": o.slug, "description": ""}))),
            Kind::DeviceTypes => r.device_types.get(&id).map(|o| {
                let more = json!({
                    "manufacturer": self.brief(Kind::Manufacturers, o.manufacturer),
                    "model": o.model, "slug": o.slug, "description": "", "device_count": 0,
                });
                with(&o.model, more)
            }),
            Kind::DeviceRoles => r.roles.get(&id).map(|o| {
                let more = json!({
                    "name": o.name, "slug": o.slug, "description": "", "device_count": 0, "virtualmachine_count": 0,
                    "_depth": 0,
                });
                with(&o.name, more)
            }),
            Kind::Tags => r.tags.get(&id).map(|o| {
                json!({
                    "id": id, "url": self.url(kind, id), "display_url": self.display_url(kind, id),
                    "display": o.name, "name": o.name, "slug": o.slug, "color": o.color,
                })
            }),
            Kind::Devices => {
                r.devices.get(&id).map(|o| with(&display(o), json!({"name": o.name, "description": o.description})))
            }
            Kind::Interfaces => r.interfaces.get(&id).map(|o| {
                let more = json!({
                    "device": self.brief(Kind::Devices, o.device), "name": o.name, "description": o.description,
                    "cable": o.cable.map(|c| self.brief(Kind::Cables, c)), "_occupied": o.cable.is_some(),
                });
                with(&interface_display(o), more)
            }),
            Kind::MacAddresses => {
                r.macs.get(&id).map(|o| with(&o.address, json!({"mac_address": o.address, "description": ""})))
            }
            Kind::IpAddresses => r.ips.get(&id).map(|o| {
                let more = json!({
                    "family": family(&o.address), "address": o.address, "nat_inside": null, "nat_outside": [],
                    "dns_name": o.dns_name, "description": "",
                });
                with(&o.address, more)
            }),
            Kind::Cables => r.cables.get(&id).map(|o| with(&o.label, json!({"label": o.label, "description": ""}))),
            Kind::JournalEntries => {
                r.journal.get(&id).map(|o| with(&o.kind, json!({"created": time(o.stamps.created)})))
            }
        }
        .unwrap_or(Value::Null)
    }

    /// The whole object.
    fn whole(&self, kind: Kind, id: u64) -> Value {
        let r = self.records;
        let mut map = Map::new();
        map.insert("id".to_owned(), json!(id));
        map.insert("url".to_owned(), json!(self.url(kind, id)));
        map.insert("display_url".to_owned(), json!(self.display_url(kind, id)));
        let body = match kind {
            Kind::Devices => r.devices.get(&id).map(|o| self.device(o)),
            Kind::Interfaces => r.interfaces.get(&id).map(|o| self.interface(o)),
            Kind::Sites => r.sites.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "slug": o.slug, "status": choice("active"), "region": null,
                    "group": null, "tenant": null, "facility": "", "time_zone": "UTC", "description": "",
                    "physical_address": "", "shipping_address": "", "latitude": null, "longitude": null, "owner": null,
                    "comments": "", "asns": [], "tags": [], "custom_fields": o.custom_fields, "circuit_count": 0,
                    "device_count": r.devices.values().filter(|d| d.site == id).count(), "prefix_count": 0,
                    "rack_count": r.racks.values().filter(|x| x.site == id).count(), "virtualmachine_count": 0,
                    "vlan_count": 0,
                })
            }),
            Kind::Locations => r.locations.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "slug": o.slug, "site": self.brief(Kind::Sites, o.site),
                    "parent": null, "status": choice("active"), "tenant": null, "facility": "", "description": "",
                    "tags": [], "custom_fields": {},
                    "rack_count": r.racks.values().filter(|x| x.location == Some(id)).count(),
                    "device_count": r.devices.values().filter(|d| d.location == Some(id)).count(), "prefix_count": 0,
                    "owner": null, "comments": "", "_depth": 0,
                })
            }),
            Kind::Racks => r.racks.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "facility_id": null, "site": self.brief(Kind::Sites, o.site),
                    "location": o.location.map(|l| self.brief(Kind::Locations, l)), "group": null, "tenant": null,
                    "status": choice("active"), "role": null, "serial": "", "asset_tag": null, "rack_type": null,
                    "form_factor": null, "width": {"value": 19, "label": "19 inches"}, "u_height": o.u_height,
                    "starting_unit": o.starting_unit, "weight": null, "max_weight": null, "weight_unit": null, "desc_units": o.desc_units,
                    "outer_width": null, "outer_height": null, "outer_depth": null, "outer_unit": null,
                    "mounting_depth": null, "airflow": null, "cooling_capability": null, "cooling_capacity": null,
                    "description": "", "owner": null, "comments": "", "tags": [], "custom_fields": {},
                    "device_count": r.devices.values().filter(|d| d.rack == Some(id)).count(), "powerfeed_count": 0,
                })
            }),
            Kind::Manufacturers => r.manufacturers.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "slug": o.slug, "description": "", "owner": null, "comments": "",
                    "tags": [], "custom_fields": {},
                    "devicetype_count": r.device_types.values().filter(|t| t.manufacturer == id).count(),
                    "inventoryitem_count": 0, "platform_count": 0,
                })
            }),
            Kind::DeviceTypes => r.device_types.get(&id).map(|o| {
                json!({
                    "display": o.model, "manufacturer": self.brief(Kind::Manufacturers, o.manufacturer),
                    "default_platform": null, "model": o.model, "slug": o.slug, "part_number": "",
                    "u_height": o.u_height, "exclude_from_utilization": false, "is_full_depth": o.is_full_depth,
                    "subdevice_role": null, "airflow": null, "cooling_method": null, "weight": null,
                    "weight_unit": null, "end_of_life": null, "front_image": null, "rear_image": null,
                    "description": "", "owner": null, "comments": "", "tags": [], "custom_fields": o.custom_fields,
                    "device_count": r.devices.values().filter(|d| d.device_type == id).count(),
                    "console_port_template_count": 0, "console_server_port_template_count": 0,
                    "power_port_template_count": 0, "power_outlet_template_count": 0,
                    "cooling_intake_template_count": 0, "cooling_outflow_template_count": 0,
                    "interface_template_count": 0, "front_port_template_count": 0, "rear_port_template_count": 0,
                    "device_bay_template_count": 0, "module_bay_template_count": 0, "inventory_item_template_count": 0,
                })
            }),
            Kind::DeviceRoles => r.roles.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "slug": o.slug, "color": o.color, "vm_role": true,
                    "config_template": null, "parent": null, "description": "", "tags": [],
                    "custom_fields": o.custom_fields,
                    "device_count": r.devices.values().filter(|d| d.role == id).count(), "virtualmachine_count": 0,
                    "owner": null, "comments": "", "_depth": 0,
                })
            }),
            Kind::Tags => r.tags.get(&id).map(|o| {
                json!({
                    "display": o.name, "name": o.name, "slug": o.slug, "color": o.color, "description": "",
                    "weight": 1000, "object_types": [],
                    "tagged_items": r.devices.values().filter(|d| d.tags.contains(&id)).count(),
                })
            }),
            Kind::MacAddresses => r.macs.get(&id).map(|o| {
                let primary = r.interfaces.get(&o.interface).is_some_and(|i| i.macs.first() == Some(&id));
                json!({
                    "display": o.address, "mac_address": o.address, "assigned_object_type": "dcim.interface",
                    "assigned_object_id": o.interface, "assigned_object": self.brief(Kind::Interfaces, o.interface),
                    "is_primary": primary, "description": "", "owner": null, "comments": "", "tags": [],
                    "custom_fields": {},
                })
            }),
            Kind::IpAddresses => r.ips.get(&id).map(|o| {
                json!({
                    "display": o.address, "family": family(&o.address), "address": o.address, "vrf": null,
                    "tenant": null, "status": choice("active"), "role": null,
                    "assigned_object_type": "dcim.interface", "assigned_object_id": o.interface,
                    "assigned_object": self.brief(Kind::Interfaces, o.interface), "nat_inside": null,
                    "nat_outside": [], "dns_name": o.dns_name, "description": "", "owner": null, "comments": "",
                    "tags": [], "custom_fields": {},
                })
            }),
            Kind::Cables => r.cables.get(&id).map(|o| {
                let end = |end: u64| {
                    json!([{"object_type": "dcim.interface", "object_id": end, "object": self.brief(Kind::Interfaces, end)}])
                };
                json!({
                    "display": o.label, "type": "dac-passive", "a_terminations": end(o.a), "b_terminations": end(o.b),
                    "status": choice("connected"), "profile": null, "tenant": null, "bundle": null, "label": o.label,
                    "color": o.color, "length": o.length_m, "length_unit": {"value": "m", "label": "Meters"},
                    "description": "", "owner": null, "comments": "", "tags": [], "custom_fields": {},
                })
            }),
            Kind::JournalEntries => r.journal.get(&id).map(|o| {
                json!({
                    "display": format!("{} ({})", o.stamps.created.strftime("%Y-%m-%d %H:%M"), label(&o.kind)),
                    "assigned_object_type": "dcim.device", "assigned_object_id": o.device,
                    "assigned_object": self.brief(Kind::Devices, o.device), "created_by": 2, "kind": choice(&o.kind),
                    "comments": o.comments, "tags": [], "custom_fields": {},
                })
            }),
        };
        if let Some(Value::Object(body)) = body {
            map.extend(body);
        }
        if let Some(stamps) = kind.stamps(r, id) {
            map.insert("created".to_owned(), json!(time(stamps.created)));
            map.insert("last_updated".to_owned(), json!(time(stamps.last_updated)));
        }
        Value::Object(map)
    }

    fn device(&self, o: &Device) -> Value {
        let r = self.records;
        let ip = |id: Option<u64>| id.map(|id| self.brief(Kind::IpAddresses, id));
        let first = json!({
            "display": display(o), "name": o.name, "device_type": self.brief(Kind::DeviceTypes, o.device_type),
            "role": self.brief(Kind::DeviceRoles, o.role), "tenant": null, "platform": null, "serial": o.serial,
            "asset_tag": o.asset_tag, "site": self.brief(Kind::Sites, o.site),
            "location": o.location.map(|l| self.brief(Kind::Locations, l)),
            "rack": o.rack.map(|x| self.brief(Kind::Racks, x)), "position": o.position,
            "face": o.face.as_deref().map(choice), "latitude": null, "longitude": null, "parent_device": null,
            "status": choice(&o.status), "airflow": null, "cooling_method": null, "primary_ip": ip(o.primary_ip4),
            "primary_ip4": ip(o.primary_ip4),
        });
        let second = json!({
            "primary_ip6": null, "oob_ip": ip(o.oob_ip), "cluster": null,
            "virtual_chassis": null, "vc_position": null, "vc_priority": null, "description": o.description,
            "owner": null, "comments": o.comments, "config_template": null, "config_context": o.config_context,
            "local_context_data": o.local_context, "tags": self.tags(&o.tags), "custom_fields": o.custom_fields,
            "console_port_count": 0, "console_server_port_count": 0, "power_port_count": 0, "power_outlet_count": 0,
            "cooling_intake_count": 0, "cooling_outflow_count": 0, "interface_count": r.interfaces_of(o.id).count(),
            "front_port_count": 0, "rear_port_count": 0, "device_bay_count": 0, "module_bay_count": 0,
            "inventory_item_count": 0,
        });
        joined(first, second)
    }

    fn tags(&self, ids: &[u64]) -> Vec<Value> {
        let mut ids: Vec<u64> = ids.to_vec();
        ids.sort_by_key(|id| self.records.tags.get(id).map(|t| t.name.clone()));
        ids.into_iter().map(|id| self.brief(Kind::Tags, id)).collect()
    }

    fn interface(&self, o: &Interface) -> Value {
        let r = self.records;
        let macs: Vec<Value> = o.macs.iter().map(|m| self.brief(Kind::MacAddresses, *m)).collect();
        let peers: Vec<Value> = r.peer(o).iter().map(|p| self.brief(Kind::Interfaces, p.id)).collect();
        let cabled = !peers.is_empty();
        let end = o.cable.and_then(|c| r.cables.get(&c)).map(|c| if c.a == o.id { "A" } else { "B" });
        let first = json!({
            "display": interface_display(o), "device": self.brief(Kind::Devices, o.device), "vdcs": [],
            "module": null, "name": o.name, "label": o.label,
            "type": {"value": o.kind, "label": interface_label(&o.kind)}, "channels": null, "channel_id": null,
            "enabled": true, "parent": null, "bridge": null, "bridge_interfaces": [],
            "lag": o.lag.map(|l| self.lag(l)), "mtu": null,
            "mac_address": o.macs.first().and_then(|m| r.macs.get(m)).map(|m| &m.address),
            "primary_mac_address": macs.first(), "mac_addresses": macs, "speed": null, "duplex": null, "wwn": null,
        });
        let second = json!({
            "mgmt_only": o.mgmt_only, "description": o.description, "mode": null, "rf_role": null, "rf_channel": null,
            "poe_mode": null, "poe_type": null, "rf_channel_frequency": null, "rf_channel_width": null,
            "tx_power": null, "untagged_vlan": null, "tagged_vlans": [], "qinq_svlan": null,
            "vlan_translation_policy": null, "mark_connected": false,
            "cable": o.cable.map(|c| self.brief(Kind::Cables, c)), "cable_end": end, "wireless_link": null,
            "link_peers": peers, "link_peers_type": cabled.then_some("dcim.interface"), "wireless_lans": [],
            "vrf": null, "l2vpn_termination": null, "connected_endpoints": cabled.then_some(&peers),
            "connected_endpoints_type": cabled.then_some("dcim.interface"), "connected_endpoints_reachable": cabled,
            "owner": null, "tags": [], "custom_fields": {},
            "count_ipaddresses": r.ips.values().filter(|ip| ip.interface == o.id).count(), "count_fhrp_groups": 0,
            "_occupied": o.cable.is_some(),
        });
        joined(first, second)
    }

    /// A LAG has a nested form of its own.
    fn lag(&self, id: u64) -> Value {
        let Some(o) = self.records.interfaces.get(&id) else { return Value::Null };
        let device = self.records.devices.get(&o.device).map(|d| {
            json!({
                "id": d.id, "url": self.url(Kind::Devices, d.id), "display_url": self.display_url(Kind::Devices, d.id),
                "display": display(d), "name": d.name,
            })
        });
        json!({
            "id": id, "url": self.url(Kind::Interfaces, id), "display_url": self.display_url(Kind::Interfaces, id),
            "display": interface_display(o), "device": device, "name": o.name, "cable": o.cable,
            "_occupied": o.cable.is_some(),
        })
    }
}

/// The members of two objects in one: the macro that makes them has its limits.
fn joined(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}

fn display(o: &Device) -> String {
    o.asset_tag.as_ref().map_or_else(|| o.name.clone(), |tag| format!("{} ({tag})", o.name))
}

fn interface_display(o: &Interface) -> String {
    if o.label.is_empty() { o.name.clone() } else { format!("{} ({})", o.name, o.label) }
}

fn interface_label(kind: &str) -> &str {
    match kind {
        "lag" => "Link Aggregation Group (LAG)",
        "1000base-t" => "1000BASE-T (1GE)",
        "100gbase-x-qsfp28" => "QSFP28 (100GE)",
        other => other,
    }
}

fn family(address: &str) -> Value {
    if address.contains(':') { json!({"value": 6, "label": "IPv6"}) } else { json!({"value": 4, "label": "IPv4"}) }
}

/// A choice as it is read: value and label.
fn choice(value: &str) -> Value {
    json!({"value": value, "label": label(value)})
}

fn label(value: &str) -> String {
    let mut chars = value.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
