//! Finds out what a token may do, by reads alone: lists of one row, OPTIONS, and what NetBox says of the account.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use secrecy::ExposeSecret;
use serde::Deserialize;

use super::NetBox;
use super::error::NetBoxError;
use super::pages::Identified;
use super::read::DEVICE_FIELDS;
use super::records::{DeviceRecord, OnlyId, TagRecord};
use crate::clients::http::{Method, Request};

/// Devices that are looked at for what they point at.
const SAMPLE: usize = 50;

/// Who the token belongs to, with what is granted directly; what comes by groups stands nowhere that a token may read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Account {
    pub username: String,
    #[serde(default)]
    pub groups: Vec<Named>,
    #[serde(default)]
    pub permissions: Vec<Grant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Named {
    pub name: String,
}

/// An object permission.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Grant {
    pub name: String,
    #[serde(default)]
    pub enabled: Option<bool>,
    /// `dcim.device`, …
    #[serde(default)]
    pub object_types: Vec<String>,
    /// `view`, `add`, `change`, `delete`, or an action of its own.
    #[serde(default)]
    pub actions: Vec<String>,
}

/// What NetBox says of the token itself. An older NetBox leaves some of it out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TokenFacts {
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub write_enabled: Option<bool>,
    #[serde(default)]
    pub expires: Option<Timestamp>,
}

/// A device with the ids of what it points at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Pointing {
    pub id: u64,
    #[serde(default)]
    pub name: Option<String>,
    pub site: OnlyId,
    #[serde(default)]
    pub location: Option<OnlyId>,
    #[serde(default)]
    pub rack: Option<OnlyId>,
    pub role: OnlyId,
    pub device_type: OnlyId,
    #[serde(default)]
    pub tags: Vec<OnlyId>,
    #[serde(default)]
    pub oob_ip: Option<OnlyId>,
    /// NetBox's own count, whatever the token may see.
    #[serde(default)]
    pub interface_count: Option<usize>,
}

/// An interface with the ids of what it points at.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Port {
    pub id: u64,
    #[serde(default)]
    pub cable: Option<OnlyId>,
    #[serde(default)]
    pub mac_addresses: Vec<OnlyId>,
}

/// Rows and how many there are.
#[derive(Debug, Clone, Deserialize)]
struct Rows<T> {
    count: usize,
    results: Vec<T>,
}

#[derive(Debug, Clone, Deserialize)]
struct TypeCount {
    id: u64,
    #[serde(default)]
    device_count: Option<usize>,
}

impl Identified for TypeCount {
    fn id(&self) -> u64 {
        self.id
    }
}

#[derive(Debug, Deserialize)]
struct Status {
    #[serde(rename = "netbox-version")]
    version: String,
}

#[derive(Debug, Deserialize)]
struct Options {
    #[serde(default)]
    actions: BTreeMap<String, serde_json::Value>,
}

impl NetBox {
    /// Whose token this is. An older NetBox (before 4.5) has no such page.
    pub async fn account(&self) -> Result<Account, NetBoxError> {
        self.get("/api/authentication-check/", vec![]).await
    }

    /// What NetBox says of this token, where it can be told from others of the account.
    pub async fn token_facts(&self) -> Result<Option<TokenFacts>, NetBoxError> {
        let query = vec![("limit".to_owned(), "200".to_owned())];
        let own: Rows<TokenFacts> = self.get("/api/users/tokens/", query).await?;
        let token = self.token.now();
        let text = token.expose_secret();
        let key = text.split_once("nbt_").and_then(|(_, rest)| rest.split_once('.')).map(|(key, _)| key);
        Ok(match key {
            Some(key) => own.results.into_iter().find(|token| token.key.as_deref() == Some(key)),
            None if own.count == 1 => own.results.into_iter().next(),
            None => None,
        })
    }

    /// Which NetBox this is: `4.7.3`.
    pub async fn version(&self) -> Result<String, NetBoxError> {
        self.get::<Status>("/api/status/", vec![]).await.map(|status| status.version)
    }

    /// Some hosts of a role at a site, with their config contexts.
    pub async fn some_hosts(&self, site: &str, role: u64, most: usize) -> Result<Vec<DeviceRecord>, NetBoxError> {
        let query = vec![
            ("site".to_owned(), site.to_owned()),
            ("role_id".to_owned(), role.to_string()),
            ("limit".to_owned(), most.to_string()),
            ("ordering".to_owned(), "id".to_owned()),
            ("fields".to_owned(), format!("{DEVICE_FIELDS},config_context")),
        ];
        let mut rows = self.get::<Rows<DeviceRecord>>("/api/dcim/devices/", query).await?.results;
        rows.retain(|device| device.site.slug == site && device.role.id == role);
        Ok(rows)
    }

    /// Those of these tags that there are.
    pub async fn known_tags(&self, slugs: &BTreeSet<String>) -> Result<BTreeSet<String>, NetBoxError> {
        if slugs.is_empty() {
            return Ok(BTreeSet::new());
        }
        let query = slugs.iter().map(|slug| ("slug".to_owned(), slug.clone())).collect();
        let found = self.list::<TagRecord>("/api/extras/tags/", query).await?;
        Ok(found.rows.into_iter().map(|tag| tag.slug).filter(|slug| slugs.contains(slug)).collect())
    }

    /// How many objects of a list the token sees.
    pub async fn sees(&self, path: &str) -> Result<usize, NetBoxError> {
        let query = vec![("limit".to_owned(), "1".to_owned()), ("fields".to_owned(), "id".to_owned())];
        self.get::<Rows<OnlyId>>(path, query).await.map(|rows| rows.count)
    }

    /// Which methods beyond reading the token may use here. Asking changes nothing.
    pub async fn actions(&self, path: &str) -> Result<BTreeSet<String>, NetBoxError> {
        let answer = self.send(Request::new(Method::OPTIONS, path)).await?;
        self.decode::<Options>(answer).map(|found| found.record.actions.into_keys().collect())
    }

    /// Those of these objects that the token sees.
    pub async fn seen_of(&self, path: &str, ids: &BTreeSet<u64>) -> Result<BTreeSet<u64>, NetBoxError> {
        let ids: Vec<u64> = ids.iter().copied().collect();
        let found: Vec<OnlyId> = self.by_ids(path, &ids, "id").await?;
        Ok(found.into_iter().map(|row| row.id).filter(|id| ids.contains(id)).collect())
    }

    /// Some devices, with what they point at.
    pub async fn pointing_devices(&self) -> Result<Vec<Pointing>, NetBoxError> {
        let fields = "id,name,site,location,rack,role,device_type,tags,oob_ip,interface_count";
        let query = vec![
            ("limit".to_owned(), SAMPLE.to_string()),
            ("ordering".to_owned(), "id".to_owned()),
            ("fields".to_owned(), fields.to_owned()),
        ];
        self.get::<Rows<Pointing>>("/api/dcim/devices/", query).await.map(|rows| rows.results)
    }

    /// Some interfaces of a device with what they point at, and how many of it the token sees.
    pub async fn pointing_ports(&self, device: u64) -> Result<(usize, Vec<Port>), NetBoxError> {
        let query = vec![
            ("device_id".to_owned(), device.to_string()),
            ("limit".to_owned(), SAMPLE.to_string()),
            ("fields".to_owned(), "id,cable,mac_addresses".to_owned()),
        ];
        self.get::<Rows<Port>>("/api/dcim/interfaces/", query).await.map(|rows| (rows.count, rows.results))
    }

    /// How many devices there are, whatever the token may see of them: NetBox counts them in their types. `None` where it
    /// does not say.
    pub async fn devices_by_types(&self) -> Result<Option<usize>, NetBoxError> {
        let fields = vec![("fields".to_owned(), "id,device_count".to_owned())];
        let types = self.list::<TypeCount>("/api/dcim/device-types/", fields).await?;
        Ok(types.rows.iter().map(|row| row.device_count).sum())
    }
}
