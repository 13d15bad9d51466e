//! Filters of NetBox's lists. An unknown one is ignored, as the real one does; a bad value is a 400.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::records::{Device, Interface, Records, Stamps};
use super::Refusal;
use super::kind::Kind;
use crate::domain::mac::Mac;

/// What a filter compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Time,
    Flag,
    /// A choice or a reference: an unknown value is an error.
    Choice,
    Mac,
}

/// A filter of a request: field, lookup, all its values.
struct Filter {
    key: String,
    field: String,
    lookup: String,
    kind: Type,
    values: Vec<String>,
}

const DEVICE_STATUS: [&str; 7] = ["offline", "active", "planned", "staged", "failed", "inventory", "decommissioning"];

/// Ids of the rows that pass, in no particular order.
pub(super) fn rows(records: &Records, kind: Kind, query: &[(String, String)]) -> Result<Vec<u64>, Refusal> {
    let filters = filters(records, kind, query)?;
    // The one filter that every run asks by, over the longest table.
    let of_device = filters.iter().find(|f| kind == Kind::Interfaces && f.key == "device_id");
    let candidates = match of_device {
        Some(filter) => {
            let devices = filter.values.iter().filter_map(|v| v.parse().ok());
            devices.flat_map(|id| records.interfaces_of(id).map(|i| i.id)).collect()
        }
        None => kind.ids(records),
    };
    Ok(candidates.into_iter().filter(|id| filters.iter().all(|f| f.passes(records, kind, *id))).collect())
}

fn filters(records: &Records, kind: Kind, query: &[(String, String)]) -> Result<Vec<Filter>, Refusal> {
    let mut filters: Vec<Filter> = vec![];
    for (key, value) in query {
        if let Some(known) = filters.iter_mut().find(|f| f.key == *key) {
            known.values.push(value.clone());
            continue;
        }
        let (field, lookup) = key.split_once("__").unwrap_or((key, ""));
        let Some(type_) = type_of(records, kind, field) else { continue };
        let known = match type_ {
            Type::Text => ["", "n", "ic", "nic", "isw", "iew", "ie", "empty"].contains(&lookup),
            Type::Number => ["", "n", "gt", "gte", "lt", "lte", "empty", "isnull"].contains(&lookup),
            Type::Time => ["", "n", "gt", "gte", "lt", "lte", "empty"].contains(&lookup),
            Type::Choice | Type::Mac => ["", "n"].contains(&lookup),
            Type::Flag => lookup.is_empty(),
        };
        if known {
            let (key, field, lookup) = (key.clone(), field.to_owned(), lookup.to_owned());
            filters.push(Filter { key, field, lookup, kind: type_, values: vec![value.clone()] });
        }
    }
    for filter in &filters {
        for value in &filter.values {
            filter.check(records, kind, value)?;
        }
    }
    Ok(filters)
}

fn type_of(records: &Records, kind: Kind, field: &str) -> Option<Type> {
    if let Some(name) = field.strip_prefix("cf_") {
        let known = kind == Kind::Devices && records.devices.values().any(|d| d.custom_fields.contains_key(name));
        return known.then_some(Type::Text);
    }
    let type_ = match field {
        "id" => Type::Number,
        "created" | "last_updated" => Type::Time,
        "name" | "slug" | "serial" | "asset_tag" | "model" | "label" | "description" | "color" | "address"
        | "dns_name" | "part_number" => Type::Text,
        "position" => Type::Number,
        "status" | "type" | "site" | "site_id" | "location" | "location_id" | "rack_id" | "role" | "role_id"
        | "device_type" | "device_type_id" | "manufacturer" | "manufacturer_id" | "tag" | "device" | "device_id"
        | "lag_id" | "interface_id" => Type::Choice,
        "mgmt_only" | "enabled" | "cabled" => Type::Flag,
        "mac_address" => Type::Mac,
        _ => return None,
    };
    kind.has_filter(field).then_some(type_)
}

impl Filter {
    fn check(&self, records: &Records, kind: Kind, value: &str) -> Result<(), Refusal> {
        let bad = |text: String| Refusal::bad(json!({ &self.key: [text] }));
        if ["empty", "isnull"].contains(&self.lookup.as_str()) {
            return Ok(());
        }
        match self.kind {
            Type::Text | Type::Flag => Ok(()),
            Type::Number if value.parse::<f64>().is_ok() => Ok(()),
            Type::Number => Err(bad("Enter a number.".to_owned())),
            Type::Time if time(value).is_some() => Ok(()),
            Type::Time => Err(bad("Enter a valid date/time.".to_owned())),
            Type::Mac if value.parse::<Mac>().is_ok() => Ok(()),
            Type::Mac => Err(bad(format!("Invalid MAC address: {value}"))),
            Type::Choice if self.known(records, kind, value) => Ok(()),
            Type::Choice => Err(bad(format!("Select a valid choice. {value} is not one of the available choices."))),
        }
    }

    fn known(&self, records: &Records, kind: Kind, value: &str) -> bool {
        let id = value.parse::<u64>().ok();
        let has = |found: Option<bool>| found.unwrap_or(false);
        match self.field.as_str() {
            "status" => kind != Kind::Devices || DEVICE_STATUS.contains(&value),
            "type" => true,
            "site" => records.sites.values().any(|s| s.slug == value),
            "site_id" => has(id.map(|id| records.sites.contains_key(&id))),
            "location" => records.locations.values().any(|l| l.slug == value),
            "location_id" => has(id.map(|id| records.locations.contains_key(&id))),
            "rack_id" => has(id.map(|id| records.racks.contains_key(&id))),
            "role" => records.roles.values().any(|r| r.slug == value),
            "role_id" => has(id.map(|id| records.roles.contains_key(&id))),
            "device_type" => records.device_types.values().any(|t| t.slug == value),
            "device_type_id" => has(id.map(|id| records.device_types.contains_key(&id))),
            "manufacturer" => records.manufacturers.values().any(|m| m.slug == value),
            "manufacturer_id" => has(id.map(|id| records.manufacturers.contains_key(&id))),
            "tag" => records.tags.values().any(|t| t.slug == value),
            "device" => records.devices.values().any(|d| d.name == value),
            "device_id" => has(id.map(|id| records.devices.contains_key(&id))),
            "lag_id" | "interface_id" => has(id.map(|id| records.interfaces.contains_key(&id))),
            _ => true,
        }
    }

    fn passes(&self, records: &Records, kind: Kind, id: u64) -> bool {
        let have = values(records, kind, id, &self.field);
        let any = |test: &dyn Fn(&str, &str) -> bool| have.iter().any(|h| self.values.iter().any(|v| test(h, v)));
        let low = |test: fn(&str, &str) -> bool| any(&|h, v| test(&h.to_lowercase(), &v.to_lowercase()));
        match (self.kind, self.lookup.as_str()) {
            (_, "empty" | "isnull") => {
                let empty = have.iter().all(String::is_empty);
                self.values.last().is_some_and(|v| is_true(v) == empty)
            }
            // Several tags have to be there all.
            (Type::Choice, "") if self.field == "tag" => self.values.iter().all(|v| have.contains(v)),
            (Type::Text, "") if self.field.starts_with("cf_") => match self.values.first().map(String::as_str) {
                Some("null") => have.is_empty(),
                _ => low(|h, v| h.contains(v)),
            },
            (Type::Mac, lookup) => {
                let same = any(&|h, v| v.parse::<Mac>().is_ok_and(|v| h.parse::<Mac>().is_ok_and(|h| h == v)));
                same != (lookup == "n")
            }
            (Type::Flag, _) => any(&|h, v| is_true(h) == is_true(v)),
            (Type::Text | Type::Choice, "") => any(&|h, v| h == v),
            (Type::Text | Type::Choice, "n") => !any(&|h, v| h == v),
            (_, "ic") => low(|h, v| h.contains(v)),
            (_, "nic") => !low(|h, v| h.contains(v)),
            (_, "isw") => low(|h, v| h.starts_with(v)),
            (_, "iew") => low(|h, v| h.ends_with(v)),
            (_, "ie") => low(|h, v| h == v),
            (Type::Time, lookup) => compare(lookup, &|h, v| Some(time(h)?.cmp(&time(v)?)), &have, &self.values),
            (_, lookup) => {
                let number = |h: &str, v: &str| h.parse::<f64>().ok()?.partial_cmp(&v.parse::<f64>().ok()?);
                compare(lookup, &number, &have, &self.values)
            }
        }
    }
}

fn compare(
    lookup: &str,
    order: &dyn Fn(&str, &str) -> Option<std::cmp::Ordering>,
    have: &[String],
    want: &[String],
) -> bool {
    let any =
        |test: fn(std::cmp::Ordering) -> bool| have.iter().any(|h| want.iter().any(|v| order(h, v).is_some_and(test)));
    match lookup {
        "gt" => any(std::cmp::Ordering::is_gt),
        "gte" => any(std::cmp::Ordering::is_ge),
        "lt" => any(std::cmp::Ordering::is_lt),
        "lte" => any(std::cmp::Ordering::is_le),
        "n" => !any(std::cmp::Ordering::is_eq),
        _ => any(std::cmp::Ordering::is_eq),
    }
}

/// The values of a row that a filter looks at; nothing where the row has none.
fn values(records: &Records, kind: Kind, id: u64, field: &str) -> Vec<String> {
    let some = |text: Option<String>| text.into_iter().collect::<Vec<_>>();
    match field {
        "id" => return vec![id.to_string()],
        "created" => return some(kind.stamps(records, id).map(|s: Stamps| s.created.to_string())),
        "last_updated" => return some(kind.stamps(records, id).map(|s: Stamps| s.last_updated.to_string())),
        _ => {}
    }
    match kind {
        Kind::Devices => records.devices.get(&id).map_or(vec![], |d| device_values(records, d, field)),
        Kind::Interfaces => records.interfaces.get(&id).map_or(vec![], |i| interface_values(records, i, field)),
        Kind::Sites => some(
            records
                .sites
                .get(&id)
                .and_then(|s| pick(field, &[("name", &s.name), ("slug", &s.slug), ("status", "active")])),
        ),
        Kind::Manufacturers => {
            some(records.manufacturers.get(&id).and_then(|m| pick(field, &[("name", &m.name), ("slug", &m.slug)])))
        }
        Kind::Tags => some(records.tags.get(&id).and_then(|t| pick(field, &[("name", &t.name), ("slug", &t.slug)]))),
        Kind::DeviceRoles => {
            some(records.roles.get(&id).and_then(|r| pick(field, &[("name", &r.name), ("slug", &r.slug)])))
        }
        Kind::Locations => some(records.locations.get(&id).and_then(|l| {
            let site = site_slug(records, l.site);
            pick(field, &[("name", &l.name), ("slug", &l.slug), ("site", &site), ("site_id", &l.site.to_string())])
        })),
        Kind::Racks => some(records.racks.get(&id).and_then(|r| {
            let (site, location) = (site_slug(records, r.site), r.location.map(|l| l.to_string()).unwrap_or_default());
            let pairs = [
                ("name", r.name.as_str()),
                ("site", &site),
                ("site_id", &r.site.to_string()),
                ("location_id", &location),
            ];
            pick(field, &pairs)
        })),
        Kind::DeviceTypes => some(records.device_types.get(&id).and_then(|t| {
            let maker = records.manufacturers.get(&t.manufacturer).map(|m| m.slug.clone()).unwrap_or_default();
            let pairs = [
                ("model", t.model.as_str()),
                ("slug", &t.slug),
                ("manufacturer", &maker),
                ("manufacturer_id", &t.manufacturer.to_string()),
                ("part_number", ""),
            ];
            pick(field, &pairs)
        })),
        Kind::MacAddresses => records.macs.get(&id).map_or(vec![], |m| match field {
            "mac_address" => vec![m.address.clone()],
            "interface_id" => vec![m.interface.to_string()],
            _ => records.interfaces.get(&m.interface).map_or(vec![], |i| interface_values(records, i, field)),
        }),
        Kind::IpAddresses => records.ips.get(&id).map_or(vec![], |ip| match field {
            "address" => vec![ip.address.clone()],
            "dns_name" => vec![ip.dns_name.clone()],
            "status" => vec!["active".to_owned()],
            "interface_id" => vec![ip.interface.to_string()],
            _ => records.interfaces.get(&ip.interface).map_or(vec![], |i| interface_values(records, i, field)),
        }),
        Kind::Cables => records.cables.get(&id).map_or(vec![], |c| match field {
            "label" => vec![c.label.clone()],
            "color" => vec![c.color.clone()],
            "status" => vec!["connected".to_owned()],
            _ => [c.a, c.b]
                .iter()
                .filter_map(|end| records.interfaces.get(end))
                .flat_map(|i| interface_values(records, i, field))
                .collect(),
        }),
        Kind::JournalEntries => vec![],
    }
}

fn device_values(records: &Records, d: &Device, field: &str) -> Vec<String> {
    let type_ = records.device_types.get(&d.device_type);
    let maker = type_.and_then(|t| records.manufacturers.get(&t.manufacturer));
    let one = match field {
        "name" => Some(d.name.clone()),
        "status" => Some(d.status.clone()),
        "serial" => Some(d.serial.clone()),
        "asset_tag" => d.asset_tag.clone(),
        "description" => Some(d.description.clone()),
        "position" => d.position.map(|p| p.to_string()),
        "site" => Some(site_slug(records, d.site)),
        "site_id" => Some(d.site.to_string()),
        "location" => d.location.and_then(|l| records.locations.get(&l)).map(|l| l.slug.clone()),
        "location_id" => d.location.map(|l| l.to_string()),
        "rack_id" => d.rack.map(|r| r.to_string()),
        "role" => records.roles.get(&d.role).map(|r| r.slug.clone()),
        "role_id" => Some(d.role.to_string()),
        "device_type" => type_.map(|t| t.slug.clone()),
        "device_type_id" => Some(d.device_type.to_string()),
        "model" => type_.map(|t| t.slug.clone()),
        "manufacturer" => maker.map(|m| m.slug.clone()),
        "manufacturer_id" => maker.map(|m| m.id.to_string()),
        "tag" => return d.tags.iter().filter_map(|t| records.tags.get(t)).map(|t| t.slug.clone()).collect(),
        "mac_address" => {
            let macs = records.interfaces_of(d.id).flat_map(|i| &i.macs);
            return macs.filter_map(|m| records.macs.get(m)).map(|m| m.address.clone()).collect();
        }
        _ => match d.custom_fields.get(field.strip_prefix("cf_").unwrap_or_default()) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => None,
            Some(other) => Some(other.to_string()),
        },
    };
    one.into_iter().collect()
}

fn interface_values(records: &Records, i: &Interface, field: &str) -> Vec<String> {
    let device = records.devices.get(&i.device);
    let one = match field {
        "name" => Some(i.name.clone()),
        "label" => Some(i.label.clone()),
        "description" => Some(i.description.clone()),
        "type" => Some(i.kind.clone()),
        "mgmt_only" => Some(i.mgmt_only.to_string()),
        "enabled" => Some("true".to_owned()),
        "cabled" => Some(i.cable.is_some().to_string()),
        "lag_id" => i.lag.map(|l| l.to_string()),
        "device" => device.map(|d| d.name.clone()),
        "device_id" => Some(i.device.to_string()),
        "site" => device.map(|d| site_slug(records, d.site)),
        "site_id" => device.map(|d| d.site.to_string()),
        "rack_id" => device.and_then(|d| d.rack).map(|r| r.to_string()),
        "mac_address" => return i.macs.iter().filter_map(|m| records.macs.get(m)).map(|m| m.address.clone()).collect(),
        _ => None,
    };
    one.into_iter().collect()
}

fn site_slug(records: &Records, id: u64) -> String {
    records.sites.get(&id).map(|s| s.slug.clone()).unwrap_or_default()
}

fn pick(field: &str, pairs: &[(&str, &str)]) -> Option<String> {
    pairs.iter().find(|(name, _)| *name == field).map(|(_, value)| (*value).to_owned())
}

fn is_true(text: &str) -> bool {
    ["true", "True", "1"].contains(&text)
}

/// A time as the real one takes it: ISO 8601, with or without an offset. Unix times are none.
fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if !text.contains('-') {
        return None;
    }
    // A `+` of an offset that nobody encoded arrives as a blank.
    let text = text.replace(' ', "+");
    text.parse::<Timestamp>().ok().or_else(|| format!("{text}Z").parse().ok())
}
