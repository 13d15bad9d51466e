//! What muster reads of NetBox. NetBox ignores filters that it does not know, so every filtered list is filtered once more
//! here.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::error::NetBoxError;
use super::pages::{AT_ONCE, Identified, Listing};
use super::records::{
    CableRecord, DeviceRecord, DeviceTypeRecord, InterfaceOwner, InterfaceRecord, IpAddressRecord, OnlyId, RoleRecord,
    SiteRecord,
};
use super::{NetBox, Versioned};

/// The fields of a device without its config context, which makes lists slow.
pub(super) const DEVICE_FIELDS: &str = "id,name,device_type,role,site,location,rack,position,face,status,serial,asset_tag,tenant,tags,\
                             oob_ip,custom_fields,last_updated";
pub(super) const INTERFACE_FIELDS: &str = "id,name,device,type,enabled,mgmt_only,label,description,lag,mac_address,\
                                           mac_addresses,cable,link_peers,link_peers_type,connected_endpoints,\
                                           connected_endpoints_type,last_updated";
/// Ids in one query: keeps the URL below what proxies take.
const IDS_AT_ONCE: usize = 100;

impl NetBox {
    /// A device with its config context and its ETag.
    pub async fn device(&self, id: u64) -> Result<Versioned<DeviceRecord>, NetBoxError> {
        self.get_versioned(&format!("/api/dcim/devices/{id}/"), vec![]).await
    }

    /// A device without its config context, with its ETag.
    pub async fn device_plain(&self, id: u64) -> Result<Versioned<DeviceRecord>, NetBoxError> {
        self.get_versioned(&format!("/api/dcim/devices/{id}/"), vec![("fields".into(), DEVICE_FIELDS.into())]).await
    }

    /// The devices of exactly this name; there may be one in each site. Without their config contexts.
    pub async fn devices_named(&self, name: &str) -> Result<Vec<DeviceRecord>, NetBoxError> {
        let query = vec![("name".to_owned(), name.to_owned()), ("fields".to_owned(), DEVICE_FIELDS.to_owned())];
        let mut listing = self.list::<DeviceRecord>("/api/dcim/devices/", query).await?;
        listing.rows.retain(|device| device.name.as_deref() == Some(name));
        Ok(listing.rows)
    }

    /// All devices without their config contexts, or those changed at or after a time with them. The filter may be ignored:
    /// the caller looks at `last_updated` (C-39).
    pub async fn devices(&self, since: Option<Timestamp>) -> Result<Listing<DeviceRecord>, NetBoxError> {
        let query = match since {
            None => vec![
                ("fields".to_owned(), DEVICE_FIELDS.to_owned()),
                // Before NetBox 4 there is no `fields`, and this is how the context is left out there.
                ("exclude".to_owned(), "config_context".to_owned()),
            ],
            Some(since) => vec![
                ("fields".to_owned(), format!("{DEVICE_FIELDS},config_context")),
                ("last_updated__gte".to_owned(), since.to_string()),
            ],
        };
        self.list("/api/dcim/devices/", query).await
    }

    /// Devices by their ids, with their config contexts; those that NetBox does not tell are left out.
    pub async fn devices_by_id(&self, ids: &[u64]) -> Result<Vec<DeviceRecord>, NetBoxError> {
        self.by_ids("/api/dcim/devices/", ids, &format!("{DEVICE_FIELDS},config_context")).await
    }

    /// Whether NetBox has a device of this id, asked for by its own address. What the token may not see is not there.
    pub async fn has_device(&self, id: u64) -> Result<bool, NetBoxError> {
        let path = format!("/api/dcim/devices/{id}/");
        match self.get::<OnlyId>(&path, vec![("fields".into(), "id".into())]).await {
            Ok(_) => Ok(true),
            Err(NetBoxError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the token sees at least one of these devices; of a hundred at most.
    pub async fn sees_any_device(&self, ids: &[u64]) -> Result<bool, NetBoxError> {
        let ids = &ids[..ids.len().min(IDS_AT_ONCE)];
        if ids.is_empty() {
            return Ok(false);
        }
        let found: Vec<OnlyId> = self.by_ids("/api/dcim/devices/", ids, "id").await?;
        Ok(!found.is_empty())
    }

    /// The interfaces of a device, by id.
    pub async fn interfaces_of(&self, device: u64) -> Result<Vec<InterfaceRecord>, NetBoxError> {
        let query =
            vec![("device_id".to_owned(), device.to_string()), ("fields".to_owned(), INTERFACE_FIELDS.to_owned())];
        let mut listing = self.list::<InterfaceRecord>("/api/dcim/interfaces/", query).await?;
        // The master of a virtual chassis is answered with the interfaces of all its members.
        listing.rows.retain(|interface| interface.device.id == device);
        Ok(listing.rows)
    }

    /// Interfaces by their ids.
    pub async fn interfaces(&self, ids: &[u64]) -> Result<Vec<InterfaceRecord>, NetBoxError> {
        self.by_ids("/api/dcim/interfaces/", ids, INTERFACE_FIELDS).await
    }

    /// The devices that these interfaces belong to. Interfaces that are gone have none.
    pub async fn devices_of_interfaces(&self, ids: &[u64]) -> Result<BTreeSet<u64>, NetBoxError> {
        let found: Vec<InterfaceOwner> = self.by_ids("/api/dcim/interfaces/", ids, "id,device").await?;
        Ok(found.into_iter().filter(|row| ids.contains(&row.id)).map(|row| row.device.id).collect())
    }

    /// Cables by their ids.
    pub async fn cables(&self, ids: &[u64]) -> Result<Vec<CableRecord>, NetBoxError> {
        self.by_ids("/api/dcim/cables/", ids, "id,label,color").await
    }

    pub(super) async fn by_ids<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        path: &str,
        ids: &[u64],
        fields: &str,
    ) -> Result<Vec<T>, NetBoxError> {
        let wanted: BTreeSet<u64> = ids.iter().copied().collect();
        let mut rows: Vec<T> = self.rows_by("id", path, ids, fields).await?;
        rows.retain(|row| wanted.contains(&row.id()));
        Ok(rows)
    }

    /// Rows of a list by a filter that takes several ids.
    pub(super) async fn rows_by<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        filter: &str,
        path: &str,
        ids: &[u64],
        fields: &str,
    ) -> Result<Vec<T>, NetBoxError> {
        let some = |ids: &[u64]| {
            let mut query: Vec<(String, String)> = ids.iter().map(|id| (filter.to_owned(), id.to_string())).collect();
            query.push(("fields".to_owned(), fields.to_owned()));
            self.list::<T>(path, query)
        };
        let mut rows = Vec::with_capacity(ids.len());
        let mut parts = stream::iter(ids.chunks(IDS_AT_ONCE).map(some)).buffered(AT_ONCE);
        while let Some(part) = parts.try_next().await? {
            rows.extend(part.rows);
        }
        Ok(rows)
    }

    /// An IP address with what it is assigned to.
    pub async fn ip_address(&self, id: u64) -> Result<IpAddressRecord, NetBoxError> {
        self.get(&format!("/api/ipam/ip-addresses/{id}/"), vec![]).await
    }

    /// A site with its custom fields.
    pub async fn site(&self, id: u64) -> Result<SiteRecord, NetBoxError> {
        self.get(&format!("/api/dcim/sites/{id}/"), vec![]).await
    }

    pub async fn sites(&self) -> Result<Listing<SiteRecord>, NetBoxError> {
        self.list("/api/dcim/sites/", vec![]).await
    }

    /// A device type with its custom fields.
    pub async fn device_type(&self, id: u64) -> Result<DeviceTypeRecord, NetBoxError> {
        self.get(&format!("/api/dcim/device-types/{id}/"), vec![]).await
    }

    pub async fn device_types(&self) -> Result<Listing<DeviceTypeRecord>, NetBoxError> {
        self.list("/api/dcim/device-types/", vec![]).await
    }

    /// A device role with its custom fields.
    pub async fn role(&self, id: u64) -> Result<RoleRecord, NetBoxError> {
        self.get(&format!("/api/dcim/device-roles/{id}/"), vec![]).await
    }

    pub async fn roles(&self) -> Result<Listing<RoleRecord>, NetBoxError> {
        self.list("/api/dcim/device-roles/", vec![]).await
    }
}
