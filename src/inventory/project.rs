//! Projects NetBox's devices onto the fleet store's.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::clients::netbox::records::{DeviceRecord, DeviceTypeRecord, RoleRecord, text_field};
use crate::config::settings::NetboxFields;
use crate::domain::device::Device;

/// What a device's record only points at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Height in units, by the device type's id.
    heights: BTreeMap<u64, Option<f64>>,
    /// The device class, by the role's id.
    classes: BTreeMap<u64, Option<String>>,
}

impl Catalogue {
    pub fn new(types: &[DeviceTypeRecord], roles: &[RoleRecord], fields: &NetboxFields) -> Self {
        let class = |role: &RoleRecord| text_field(&role.custom_fields, &fields.device_class).map(str::to_owned);
        Catalogue {
            heights: types.iter().map(|kind| (kind.id, kind.u_height)).collect(),
            classes: roles.iter().map(|role| (role.id, class(role))).collect(),
        }
    }

    /// Whether it has all that a device points at; if not, it is older than the device.
    pub fn covers(&self, record: &DeviceRecord) -> bool {
        self.heights.contains_key(&record.device_type.id) && self.classes.contains_key(&record.role.id)
    }
}

/// A device of the fleet. `None` where NetBox has no name for it: nothing here goes by anything but names.
pub fn device(
    record: DeviceRecord,
    catalogue: &Catalogue,
    fields: &NetboxFields,
    read_at: Timestamp,
) -> Option<Device> {
    let text = |text: String| (!text.trim().is_empty()).then_some(text);
    let without_prefix = |address: &str| address.split('/').next().unwrap_or(address).trim().to_owned();
    Some(Device {
        netbox_id: record.id,
        name: record.name.and_then(text)?,
        site: record.site.slug,
        location: record.location.map(|location| location.name),
        rack: record.rack.map(|rack| rack.name),
        position: record.position,
        face: record.face.map(|face| face.value),
        u_height: catalogue.heights.get(&record.device_type.id).copied().flatten(),
        status: record.status.value,
        role: record.role.name,
        device_class: catalogue.classes.get(&record.role.id).cloned().flatten(),
        manufacturer: record.device_type.manufacturer.name,
        model: record.device_type.model,
        serial: record.serial.and_then(text),
        asset_tag: record.asset_tag.and_then(text),
        tags: record.tags.into_iter().map(|tag| tag.slug).collect(),
        tenant: record.tenant.map(|tenant| tenant.slug),
        oob_ip: record.oob_ip.map(|oob| without_prefix(&oob.address)),
        // The store keeps what it has recorded already; a new store starts from NetBox's own record.
        platform_class: text_field(&record.custom_fields, &fields.platform_class).map(str::to_owned),
        custom_fields: record.custom_fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        last_updated: record.last_updated,
        read_at,
    })
}
