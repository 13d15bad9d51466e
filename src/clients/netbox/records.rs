//! NetBox's objects, with the fields that muster reads. What NetBox may leave empty is an `Option`; what it may not, and a
//! value of another type, is an error that names the field (O7).

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::NetBoxError;
use crate::clients::http::Answer;
use crate::domain::text::neutralize_to;

/// Reads an answer into `T`, naming the place of what does not fit.
pub(crate) fn decode<T: DeserializeOwned>(answer: &Answer, host: &str) -> Result<T, NetBoxError> {
    // Watching the path costs three times the reading itself, and is of use only where something does not fit.
    if let Ok(value) = serde_json::from_slice(&answer.body) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(&answer.body);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (asked, host) = (answer.asked.clone(), host.to_owned());
        if error.inner().is_data() {
            let field = neutralize_to(&error.path().to_string(), 120);
            // The place in the text says nothing that the path does not.
            let whole = error.inner().to_string();
            let problem = whole.split(" at line ").next().unwrap_or(&whole);
            NetBoxError::Schema { asked, host, field, problem: neutralize_to(problem, 200) }
        } else if error.inner().is_eof() && !answer.body.is_empty() {
            answer.not_json(error.inner(), &host).into()
        } else {
            let excerpt = neutralize_to(&answer.excerpt(), 120);
            NetBoxError::NotJson { asked, host, status: answer.status.as_u16(), excerpt }
        }
    })
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub struct Page<T> {
    /// All rows of the list.
    pub count: Option<usize>,
    pub next: Option<String>,
    pub results: Vec<T>,
}

/// Any object, of which only the id is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct OnlyId {
    pub id: u64,
}

/// Any object, with when it was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Stamped {
    pub id: u64,
    pub last_updated: Option<Timestamp>,
}

/// A device's config context, alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ContextOf {
    pub id: u64,
    pub config_context: Option<Map<String, Value>>,
}

/// An interface, or what is assigned to one, with the device that it belongs to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PartOfDevice {
    pub id: u64,
    /// Of an interface.
    pub device: Option<DeviceOfInterface>,
    /// Of an address: an interface of a device, or something else.
    pub assigned_object: Option<Assigned>,
    pub last_updated: Option<Timestamp>,
}

/// What an address is assigned to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id'")]
pub struct Assigned {
    pub id: u64,
    /// Absent where it is no interface of a device.
    pub device: Option<DeviceOfInterface>,
}

impl PartOfDevice {
    /// The device, where there is one.
    pub fn device(&self) -> Option<u64> {
        self.device.as_ref().or_else(|| self.assigned_object.as_ref()?.device.as_ref()).map(|device| device.id)
    }
}

/// An interface, of which only the device is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct InterfaceOwner {
    pub id: u64,
    pub device: OnlyId,
}

/// A choice as NetBox reads it out: `{"value": "staged", "label": "Staged"}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'value' and 'label'")]
pub struct Choice {
    pub value: String,
}

/// An object that another one points at, with its name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id' and 'name'")]
pub struct Named {
    pub id: u64,
    pub name: String,
}

/// An object that another one points at, with name and slug.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id', 'name' and 'slug'")]
pub struct Slugged {
    pub id: u64,
    pub name: String,
    pub slug: String,
}

/// The device type within a device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id', 'manufacturer' and 'model'")]
pub struct TypeOfDevice {
    pub id: u64,
    pub manufacturer: Named,
    pub model: String,
}

/// An address within a device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id' and 'address'")]
pub struct AddressOfDevice {
    pub id: u64,
    /// With prefix length.
    pub address: String,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeviceRecord {
    pub id: u64,
    /// NetBox has devices without a name.
    pub name: Option<String>,
    pub device_type: TypeOfDevice,
    pub role: Slugged,
    pub site: Slugged,
    pub location: Option<Slugged>,
    pub rack: Option<Named>,
    pub position: Option<f64>,
    pub face: Option<Choice>,
    pub status: Choice,
    #[serde(default)]
    pub serial: Option<String>,
    pub asset_tag: Option<String>,
    pub tenant: Option<Slugged>,
    pub tags: Vec<Slugged>,
    /// `oob_ip` exists since NetBox 3.6.
    pub oob_ip: Option<AddressOfDevice>,
    #[serde(default)]
    pub custom_fields: Map<String, Value>,
    /// Only in whole records.
    pub config_context: Option<Map<String, Value>>,
    pub last_updated: Option<Timestamp>,
}

/// A site.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SiteRecord {
    pub id: u64,
    pub name: String,
    pub slug: String,
    #[serde(default)]
    pub custom_fields: Map<String, Value>,
}

/// A location of a site.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LocationRecord {
    pub id: u64,
    pub name: String,
    pub slug: String,
    pub site: Slugged,
    pub parent: Option<Slugged>,
}

/// A rack.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RackRecord {
    pub id: u64,
    pub name: String,
    pub site: Slugged,
    pub location: Option<Slugged>,
    /// Its height in units.
    pub u_height: Option<f64>,
    /// The lowest number of its units. NetBox has it since 3.6; before, that is 1.
    #[serde(default)]
    pub starting_unit: Option<u32>,
    /// Its units are numbered from the top down.
    #[serde(default)]
    pub desc_units: Option<bool>,
}

/// A device type.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeviceTypeRecord {
    pub id: u64,
    pub model: String,
    pub manufacturer: Named,
    pub u_height: Option<f64>,
    /// It fills a rack from front to rear.
    #[serde(default)]
    pub is_full_depth: Option<bool>,
    #[serde(default)]
    pub custom_fields: Map<String, Value>,
}

/// A device role.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RoleRecord {
    pub id: u64,
    pub name: String,
    pub slug: String,
    #[serde(default)]
    pub custom_fields: Map<String, Value>,
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TagRecord {
    pub id: u64,
    pub name: String,
    pub slug: String,
}

/// An interface.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InterfaceRecord {
    pub id: u64,
    pub name: String,
    pub device: DeviceOfInterface,
    #[serde(rename = "type")]
    pub kind: Choice,
    #[serde(default)]
    pub enabled: Option<bool>,
    #[serde(default)]
    pub mgmt_only: bool,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    pub lag: Option<Named>,
    /// Since NetBox 4.2 a copy of the primary MAC address object.
    pub mac_address: Option<String>,
    /// Since NetBox 4.2: all of them, primary or not.
    #[serde(default)]
    pub mac_addresses: Vec<MacOfInterface>,
    pub cable: Option<CableOfInterface>,
    /// What the cable itself goes to. May be a port of a patch panel.
    #[serde(default)]
    pub link_peers: Option<Vec<Endpoint>>,
    pub link_peers_type: Option<String>,
    /// What the whole path goes to, through patch panels. Null where it ends nowhere.
    #[serde(default)]
    pub connected_endpoints: Option<Vec<Endpoint>>,
    pub connected_endpoints_type: Option<String>,
    pub last_updated: Option<Timestamp>,
}

/// The device within an interface.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id' and 'name'")]
pub struct DeviceOfInterface {
    pub id: u64,
    pub name: Option<String>,
}

/// A MAC address within an interface.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'mac_address'")]
pub struct MacOfInterface {
    pub mac_address: String,
}

/// The cable within an interface.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id'")]
pub struct CableOfInterface {
    pub id: u64,
    #[serde(default)]
    pub label: Option<String>,
}

/// An end of a cable or of a path: an interface, or a port of something else.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'id'")]
pub struct Endpoint {
    pub id: u64,
    pub name: Option<String>,
    /// Absent where the end is no part of a device (a circuit, a power feed).
    pub device: Option<DeviceOfInterface>,
}

/// A cable.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CableRecord {
    pub id: u64,
    #[serde(default)]
    pub label: Option<String>,
    /// Six hex digits, or empty.
    #[serde(default)]
    pub color: Option<String>,
}

/// A cable with its ends.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CableDetail {
    pub id: u64,
    #[serde(default)]
    pub label: Option<String>,
    /// Six hex digits, or empty.
    #[serde(default)]
    pub color: Option<String>,
    pub status: Option<Choice>,
    pub a_terminations: Vec<Termination>,
    pub b_terminations: Vec<Termination>,
    pub last_updated: Option<Timestamp>,
}

/// An end of a cable, as the cable has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with 'object_type' and 'object_id'")]
pub struct Termination {
    /// `dcim.interface`, `dcim.frontport`, …
    pub object_type: String,
    pub object_id: u64,
    pub object: Option<Endpoint>,
}

/// An IP address with what it is assigned to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct IpAddressRecord {
    pub id: u64,
    pub address: String,
    pub assigned_object_type: Option<String>,
    pub assigned_object_id: Option<u64>,
    #[serde(default)]
    pub dns_name: Option<String>,
    pub last_updated: Option<Timestamp>,
}

/// A MAC address with what it is assigned to (NetBox 4.2 and later).
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MacAddressRecord {
    pub id: u64,
    pub mac_address: String,
    pub assigned_object_type: Option<String>,
    pub assigned_object_id: Option<u64>,
    pub last_updated: Option<Timestamp>,
}

/// A custom field's text: `None` where it is null, absent or nothing but blanks (C-37). A choice is its value.
pub fn text_field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    let value = fields.get(name)?;
    let text = value.as_str().or_else(|| value.get("value")?.as_str())?.trim();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_field_has_three_ways_to_be_empty() {
        let fields = |value: Value| value.as_object().cloned().unwrap();
        for empty in [json!({"f": null}), json!({"f": ""}), json!({}), json!({"f": "  "})] {
            assert_eq!(text_field(&fields(empty), "f"), None);
        }
        assert_eq!(text_field(&fields(json!({"f": " GB300 "})), "f"), Some("GB300"));
        assert_eq!(text_field(&fields(json!({"f": {"value": "GB300", "label": "GB 300"}})), "f"), Some("GB300"));
    }
}
