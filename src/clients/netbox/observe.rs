//! What observers read of NetBox: the same few questions of every list that they follow.

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::NetBox;
use super::error::NetBoxError;
use super::pages::{Identified, Listing, Sweep};
use super::read::INTERFACE_FIELDS;
use super::records::{
    CableDetail, ContextOf, DeviceTypeRecord, InterfaceRecord, IpAddressRecord, LocationRecord, MacAddressRecord, Page,
    PartOfDevice, RackRecord, RoleRecord, SiteRecord, Stamped,
};

/// A list that is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    Devices,
    Interfaces,
    MacAddresses,
    IpAddresses,
    Cables,
    Sites,
    Locations,
    Racks,
    DeviceTypes,
    DeviceRoles,
}

impl List {
    pub fn path(self) -> &'static str {
        match self {
            List::Devices => "/api/dcim/devices/",
            List::Interfaces => "/api/dcim/interfaces/",
            List::MacAddresses => "/api/dcim/mac-addresses/",
            List::IpAddresses => "/api/ipam/ip-addresses/",
            List::Cables => "/api/dcim/cables/",
            List::Sites => "/api/dcim/sites/",
            List::Locations => "/api/dcim/locations/",
            List::Racks => "/api/dcim/racks/",
            List::DeviceTypes => "/api/dcim/device-types/",
            List::DeviceRoles => "/api/dcim/device-roles/",
        }
    }
}

/// A record as observers read it: where from, and with which fields.
pub trait Observed: DeserializeOwned + Identified + Send + 'static {
    const LIST: List;
    /// NetBox makes only what is named, and a field less is time less there.
    const FIELDS: &'static str;
    /// `None` where the record is read without it.
    fn last_updated(&self) -> Option<Timestamp>;
}

macro_rules! observed {
    ($($record:ident $list:ident $fields:expr, |$row:ident| $at:expr;)*) => {
        $(impl Observed for $record {
            const LIST: List = List::$list;
            const FIELDS: &'static str = $fields;
            fn last_updated(&self) -> Option<Timestamp> {
                let $row = self;
                $at
            }
        })*
    };
}

observed! {
    InterfaceRecord Interfaces INTERFACE_FIELDS, |row| row.last_updated;
    MacAddressRecord MacAddresses "id,mac_address,assigned_object_type,assigned_object_id,last_updated", |row| row.last_updated;
    IpAddressRecord IpAddresses "id,address,dns_name,assigned_object_type,assigned_object_id,last_updated", |row| row.last_updated;
    CableDetail Cables "id,label,color,status,a_terminations,b_terminations,last_updated", |row| row.last_updated;
    SiteRecord Sites "id,name,slug,custom_fields", |_row| None;
    LocationRecord Locations "id,name,slug,site,parent", |_row| None;
    RackRecord Racks "id,name,site,location,u_height,starting_unit,desc_units", |_row| None;
    DeviceTypeRecord DeviceTypes "id,model,manufacturer,u_height,is_full_depth,custom_fields", |_row| None;
    RoleRecord DeviceRoles "id,name,slug,custom_fields", |_row| None;
}

impl NetBox {
    /// All rows of a list, or those written at or after a time, page by page. The filter may be ignored: the caller looks at
    /// `last_updated` (C-39).
    pub async fn observe<T: Observed>(&self, since: Option<Timestamp>) -> Result<Sweep<T>, NetBoxError> {
        self.sweep(T::LIST.path(), query(T::FIELDS, since)).await
    }

    /// The same as one list.
    pub async fn observe_all<T: Observed>(&self) -> Result<Listing<T>, NetBoxError> {
        self.list(T::LIST.path(), query(T::FIELDS, None)).await
    }

    /// Rows by their ids; those that NetBox does not tell are left out.
    pub async fn observe_by_id<T: Observed>(&self, ids: &[u64]) -> Result<Vec<T>, NetBoxError> {
        self.by_ids(T::LIST.path(), ids, T::FIELDS).await
    }

    /// The interfaces of some devices.
    pub async fn observe_interfaces_of(&self, devices: &[u64]) -> Result<Vec<InterfaceRecord>, NetBoxError> {
        let mut rows: Vec<InterfaceRecord> =
            self.rows_by("device_id", List::Interfaces.path(), devices, INTERFACE_FIELDS).await?;
        rows.retain(|row| devices.contains(&row.device.id));
        Ok(rows)
    }

    /// What is assigned to the interfaces of a device.
    pub async fn observe_of<T: Observed>(&self, device: u64) -> Result<Vec<T>, NetBoxError> {
        self.rows_by("device_id", T::LIST.path(), &[device], T::FIELDS).await
    }

    /// Ids and times of last writing of a list, or of what was written at or after a time.
    pub async fn stamps(&self, list: List, since: Option<Timestamp>) -> Result<Listing<Stamped>, NetBoxError> {
        self.list(list.path(), query("id,last_updated", since)).await
    }

    /// What was written at or after a time, each with the device that it belongs to.
    pub async fn parts(&self, list: List, since: Timestamp) -> Result<Vec<PartOfDevice>, NetBoxError> {
        let fields =
            if list == List::Interfaces { "id,device,last_updated" } else { "id,assigned_object,last_updated" };
        Ok(self.list(list.path(), query(fields, Some(since))).await?.rows)
    }

    /// When something of a list was written last. A server that sorts otherwise tells of an earlier time.
    pub async fn newest(&self, list: List) -> Result<Option<Timestamp>, NetBoxError> {
        let mut asked = query("id,last_updated", None);
        asked.extend([("ordering".to_owned(), "-last_updated".to_owned()), ("limit".to_owned(), "1".to_owned())]);
        let page: Page<Stamped> = self.get(list.path(), asked).await?;
        Ok(page.results.first().and_then(|row| row.last_updated))
    }

    /// How many rows a list has; `None` where the server does not count.
    pub async fn count(&self, list: List) -> Result<Option<usize>, NetBoxError> {
        let mut asked = query("id,last_updated", None);
        asked.push(("limit".to_owned(), "1".to_owned()));
        Ok(self.get::<Page<Stamped>>(list.path(), asked).await?.count)
    }

    /// The config contexts of all devices, page by page.
    pub async fn contexts(&self) -> Result<Sweep<ContextOf>, NetBoxError> {
        self.sweep(List::Devices.path(), query("id,config_context", None)).await
    }

    /// The config contexts of some devices.
    pub async fn contexts_of(&self, devices: &[u64]) -> Result<Vec<ContextOf>, NetBoxError> {
        self.by_ids(List::Devices.path(), devices, "id,config_context").await
    }
}

fn query(fields: &str, since: Option<Timestamp>) -> Vec<(String, String)> {
    let mut query = vec![("fields".to_owned(), fields.to_owned())];
    query.extend(since.map(|since| ("last_updated__gte".to_owned(), since.to_string())));
    query
}
