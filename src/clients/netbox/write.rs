//! The three writes: status, one custom field, one tag (O11). Whoever calls them has compared before and reads back after:
//! NetBox ignores fields of a body that it does not know, and a write without a change still moves the object's ETag.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::NetBoxError;
use super::records::{DeviceRecord, Slugged};
use super::{NetBox, Versioned};

/// What adding a tag came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagOutcome {
    /// Slugs before and after, sorted.
    pub before: Vec<String>,
    pub after: Vec<String>,
    /// Somebody else changed the device meanwhile, so often, that the tag did not stay.
    pub lost: bool,
}

#[derive(Debug, Deserialize)]
struct Tagged {
    tags: Vec<Slugged>,
}

/// The answer of a write, of which nothing is used: what counts is read back.
#[derive(Debug, Deserialize)]
struct Written {}

impl NetBox {
    /// Sets a device's status, if it still is the version of the ETag.
    pub async fn set_status(&self, id: u64, status: &str, etag: Option<&str>) -> Result<(), NetBoxError> {
        self.write(id, json!({ "status": status }), etag).await
    }

    /// Sets one custom field of a device and leaves all others, if it still is the version of the ETag.
    pub async fn set_custom_field(
        &self,
        id: u64,
        field: &str,
        value: &str,
        etag: Option<&str>,
    ) -> Result<(), NetBoxError> {
        self.write(id, json!({ "custom_fields": { field: value } }), etag).await
    }

    /// Adds a tag to a device and keeps all others (C-36): by `add_tags` where the server has it, else by a union of what
    /// stands there, written under the ETag where one is offered, read back, and merged again where it got lost. Writes
    /// nothing where the tag is there.
    pub async fn add_tag(&self, device: &DeviceRecord, slug: &str) -> Result<TagOutcome, NetBoxError> {
        let id = device.id;
        let before = slugs(&device.tags);
        if before.iter().any(|tag| tag == slug) {
            return Ok(TagOutcome { after: before.clone(), before, lost: false });
        }
        if !self.ignores_add_tags.load(Ordering::Relaxed) {
            let body = json!({ "add_tags": [{ "slug": slug }] });
            self.write(id, body, None).await.map_err(|error| unknown_tag(error, slug))?;
            let after = slugs(&self.tags_of(id).await?.record.tags);
            if after.iter().any(|tag| tag == slug) {
                return Ok(TagOutcome { before, after, lost: false });
            }
            self.ignores_add_tags.store(true, Ordering::Relaxed);
        }
        self.add_tag_by_union(id, slug, before).await
    }

    async fn add_tag_by_union(&self, id: u64, slug: &str, before: Vec<String>) -> Result<TagOutcome, NetBoxError> {
        let mut wanted = BTreeSet::from([slug.to_owned()]);
        for _ in 0..3 {
            let Versioned { record, etag } = self.tags_of(id).await?;
            let there = slugs(&record.tags);
            if wanted.iter().all(|tag| there.contains(tag)) {
                return Ok(TagOutcome { before, after: there, lost: false });
            }
            wanted.extend(there);
            let union: Vec<Value> = wanted.iter().map(|tag| json!({ "slug": tag })).collect();
            match self.write(id, json!({ "tags": union }), etag.as_deref()).await {
                Ok(()) => {}
                // Changed between read and write: the next round starts from what stands there now, so that a tag which
                // somebody took away meanwhile is not brought back.
                Err(NetBoxError::Conflict { .. }) => wanted = BTreeSet::from([slug.to_owned()]),
                Err(error) => return Err(unknown_tag(error, slug)),
            }
        }
        let after = slugs(&self.tags_of(id).await?.record.tags);
        Ok(TagOutcome { before, lost: !after.iter().any(|tag| tag == slug), after })
    }

    async fn tags_of(&self, id: u64) -> Result<Versioned<Tagged>, NetBoxError> {
        self.get_versioned(&device_path(id), vec![("fields".into(), "id,tags".into())]).await
    }

    async fn write(&self, id: u64, body: Value, etag: Option<&str>) -> Result<(), NetBoxError> {
        self.patch::<Written>(&device_path(id), body, etag).await.map(|_| ())
    }
}

/// A tag that does not exist is refused with 400 in `tags` and, by NetBox 4.7.3, with an exception and 500 in `add_tags`.
fn unknown_tag(error: NetBoxError, slug: &str) -> NetBoxError {
    match error {
        NetBoxError::Invalid { asked, host, words } | NetBoxError::Server { asked, host, words, .. }
            if words.contains("Related object not found") =>
        {
            NetBoxError::UnknownTag { asked, host, slug: slug.to_owned(), words }
        }
        other => other,
    }
}

fn device_path(id: u64) -> String {
    format!("/api/dcim/devices/{id}/")
}

fn slugs(tags: &[Slugged]) -> Vec<String> {
    let mut slugs: Vec<String> = tags.iter().map(|tag| tag.slug.clone()).collect();
    slugs.sort();
    slugs.dedup();
    slugs
}
