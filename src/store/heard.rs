//! What the last inspection of each host heard on its cables: kept over runs, for the cable doctor (V12).

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::rows::{from_json, json, nanos, signed};
use crate::domain::cable_doctor::HeardHost;

impl Store {
    /// Keeps what a host's inspection heard; says whether that is news. An older inspection replaces no newer one. Where
    /// Ironic does not tell when it was (`is_timed` is false), the same cables keep the time at which they were read first:
    /// reading old data again makes it no younger. A plan keeps nothing.
    pub async fn put_heard(&self, heard: HeardHost, is_timed: bool) -> Result<bool, StoreError> {
        if self.is_rehearsing() {
            return Ok(false);
        }
        let is_known = move |known: &HeardHost, heard: &HeardHost| match is_timed {
            true => known == heard || known.inspected_at > heard.inspected_at,
            false => known.cables == heard.cables,
        };
        // Most reads bring nothing new, and then nothing is written.
        if self.heard(heard.netbox_id)?.is_some_and(|known| is_known(&known, &heard)) {
            return Ok(false);
        }
        self.write(move |sql| {
            if one(sql, heard.netbox_id)?.is_some_and(|known| is_known(&known, &heard)) {
                return Ok(false);
            }
            sql.execute(
                "INSERT INTO heard (netbox_id, site, inspected_at, body) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (netbox_id) DO UPDATE SET site = excluded.site, inspected_at = excluded.inspected_at,
                                                       body = excluded.body",
                params![signed(heard.netbox_id), heard.site, nanos(heard.inspected_at), json(&heard, "heard.body")?],
            )?;
            Ok(true)
        })
        .await
    }

    /// Forgets what a host heard: its cables are not verified any more.
    pub async fn forget_heard(&self, netbox_id: u64) -> Result<(), StoreError> {
        if self.is_rehearsing() || self.heard(netbox_id)?.is_none() {
            return Ok(());
        }
        self.write(move |sql| remove(sql, netbox_id)).await
    }

    /// What a host's last inspection heard.
    pub fn heard(&self, netbox_id: u64) -> Result<Option<HeardHost>, StoreError> {
        self.read(|sql| one(sql, netbox_id))
    }

    /// What the hosts of a site heard that were inspected at this time or later, by NetBox's id.
    pub fn heard_at(&self, site: &str, since: Timestamp) -> Result<Vec<HeardHost>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body FROM heard WHERE site = ?1 AND inspected_at >= ?2 ORDER BY netbox_id";
            sql.all(select, params![site, nanos(since)], body)
        })
    }
}

fn one(sql: &Sql<'_>, netbox_id: u64) -> Result<Option<HeardHost>, StoreError> {
    sql.first("SELECT body FROM heard WHERE netbox_id = ?1", params![signed(netbox_id)], body)
}

fn body(row: &Row<'_>) -> Result<HeardHost, StoreError> {
    from_json(row, "body", "heard")
}

/// Takes out what belongs to a device that NetBox has no more.
pub(super) fn remove(sql: &Sql<'_>, netbox_id: u64) -> Result<(), StoreError> {
    sql.execute("DELETE FROM heard WHERE netbox_id = ?1", params![signed(netbox_id)]).map(drop)
}
