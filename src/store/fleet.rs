//! The fleet as NetBox and Ironic last told it: a projection, which can be made anew at any time.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::heard;
use super::listing::{coming, stamp_gone, stamp_named};
use super::objects::remove_parts;
use super::rows::{from_json, get, json, nanos, signed, time, unsigned};
use crate::domain::device::{Device, IronicRef};

const DEVICE: &str = "SELECT netbox_id, body, platform_class, read_at FROM device";

impl Store {
    /// Takes devices as NetBox has them, by NetBox's id; says how many differ from what was here. The platform class is
    /// this program's own record: what stands here stays (P10).
    pub async fn put_devices(&self, devices: Vec<Device>) -> Result<usize, StoreError> {
        if devices.is_empty() {
            return Ok(0);
        }
        let changed = self
            .write(move |sql| {
                let mut changed = 0;
                for device in &devices {
                    changed += usize::from(put_device(sql, device)?);
                }
                count_change(sql, changed > 0)?;
                Ok(changed)
            })
            .await?;
        if changed > 0 {
            self.fleet_changed();
        }
        Ok(changed)
    }

    /// Takes out devices that NetBox has no more.
    pub async fn remove_devices(&self, netbox_ids: Vec<u64>) -> Result<(), StoreError> {
        let removed = self
            .write(move |sql| {
                let mut removed = 0;
                for id in netbox_ids {
                    removed += sql.execute("DELETE FROM device WHERE netbox_id = ?1", params![signed(id)])?;
                    remove_parts(sql, id)?;
                    heard::remove(sql, id)?;
                    stamp_gone(sql, id)?;
                }
                count_change(sql, removed > 0)?;
                Ok(removed)
            })
            .await?;
        if removed > 0 {
            self.fleet_changed();
        }
        Ok(())
    }

    /// All devices, by name.
    pub fn devices(&self) -> Result<Vec<Device>, StoreError> {
        self.read(|sql| sql.all(&format!("{DEVICE} ORDER BY name, netbox_id"), [], read_device))
    }

    /// The devices of a rack, whatever they are. `location`: as the devices have it.
    pub fn devices_of_rack(&self, site: &str, location: Option<&str>, rack: &str) -> Result<Vec<Device>, StoreError> {
        let select = format!(
            "{DEVICE} WHERE site = ?1 AND json_extract(body, '$.rack') = ?2
             AND json_extract(body, '$.location') IS ?3 ORDER BY netbox_id"
        );
        self.read(|sql| sql.all(&select, params![site, rack, location], read_device))
    }

    /// NetBox's ids of all devices.
    pub fn device_ids(&self) -> Result<BTreeSet<u64>, StoreError> {
        let row = |row: &Row<'_>| unsigned(row, "netbox_id", "device");
        self.read(|sql| Ok(sql.all("SELECT netbox_id FROM device", [], row)?.into_iter().collect()))
    }

    /// The device of that id.
    pub fn device_by_id(&self, netbox_id: u64) -> Result<Option<Device>, StoreError> {
        self.read(|sql| sql.first(&format!("{DEVICE} WHERE netbox_id = ?1"), params![signed(netbox_id)], read_device))
    }

    /// The device of that name; of several the one with the lowest NetBox id.
    pub fn device(&self, name: &str) -> Result<Option<Device>, StoreError> {
        Ok(self.devices_named(name)?.into_iter().next())
    }

    /// Every device of that name: NetBox allows one a site, so that a name alone may mean several.
    pub fn devices_named(&self, name: &str) -> Result<Vec<Device>, StoreError> {
        self.read(|sql| sql.all(&format!("{DEVICE} WHERE name = ?1 ORDER BY netbox_id"), params![name], read_device))
    }

    /// The devices that a person means by a name: those of exactly this name, else those that are spelled so but for the
    /// case, else the one that had the name when it was enrolled last.
    pub fn devices_meant(&self, name: &str) -> Result<Vec<Device>, StoreError> {
        let by = [
            "name = ?1",
            "name = ?1 COLLATE NOCASE",
            "netbox_id = (SELECT netbox_id FROM run WHERE host = ?1 ORDER BY submitted_at DESC, id DESC LIMIT 1)",
        ];
        self.read(|sql| {
            for fits in by {
                let found =
                    sql.all(&format!("{DEVICE} WHERE {fits} ORDER BY netbox_id"), params![name], read_device)?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        })
    }

    /// Records the platform class; says whether that changed anything (P10).
    pub async fn set_platform_class(&self, netbox_id: u64, value: &str) -> Result<bool, StoreError> {
        let value = value.to_owned();
        let differs = {
            let value = value.clone();
            move |sql: &Sql<'_>| {
                let known: Option<Option<String>> = sql.first(
                    "SELECT platform_class FROM device WHERE netbox_id = ?1",
                    params![signed(netbox_id)],
                    |row| get(row, "platform_class", "device"),
                )?;
                known.map(|known| known.as_deref() != Some(&*value)).ok_or(StoreError::NoDevice(netbox_id))
            }
        };
        if self.is_rehearsing() {
            return self.read(differs);
        }
        let changed = self
            .write(move |sql| {
                let differs = differs(sql)?;
                if differs {
                    let id = signed(netbox_id);
                    sql.execute(
                        "UPDATE device SET platform_class = ?2, changed = ?3 WHERE netbox_id = ?1",
                        params![id, value, coming(sql)?],
                    )?;
                }
                count_change(sql, differs)?;
                Ok(differs)
            })
            .await?;
        if changed {
            self.fleet_changed();
        }
        Ok(changed)
    }

    /// Takes the full list of an Ironic instance's nodes, by device name. In the same commit every proof falls whose
    /// device has another node now, or none (T3).
    pub async fn put_ironic_refs(&self, refs: Vec<(String, IronicRef)>, instance: &str) -> Result<(), StoreError> {
        let instance = instance.to_owned();
        let changed = self
            .write(move |sql| {
                let changed = replace_refs(sql, &refs, &instance)?;
                count_change(sql, changed)?;
                Ok(changed)
            })
            .await?;
        if changed {
            self.fleet_changed();
        }
        Ok(())
    }

    /// Each device's node. Where two instances have a node of that name, the first instance by name is shown; a caller
    /// that knows the device's instance asks [`Store::ironic_ref`].
    pub fn ironic_refs(&self) -> Result<BTreeMap<String, IronicRef>, StoreError> {
        let mut refs = BTreeMap::new();
        for (device, reference) in self.all_ironic_refs()? {
            refs.entry(device).or_insert(reference);
        }
        Ok(refs)
    }

    /// Every node of every instance with the device that it is projected on, by instance and device.
    pub fn all_ironic_refs(&self) -> Result<Vec<(String, IronicRef)>, StoreError> {
        self.read(|sql| {
            sql.all("SELECT device, body FROM ironic_ref ORDER BY instance, device", [], |row| {
                Ok((get(row, "device", "ironic_ref")?, from_json(row, "body", "ironic_ref")?))
            })
        })
    }

    /// The node that an instance has for a device.
    pub fn ironic_ref(&self, instance: &str, device: &str) -> Result<Option<IronicRef>, StoreError> {
        self.read(|sql| {
            sql.first(
                "SELECT body FROM ironic_ref WHERE instance = ?1 AND device = ?2",
                params![instance, device],
                |row| from_json(row, "body", "ironic_ref"),
            )
        })
    }
}

/// Where the changes of the fleet are counted, for those who follow the store.
const CHANGES: &str = "fleet.changes";

/// Counts a change of devices, references or proofs in the commit that makes it.
pub(super) fn count_change(sql: &Sql<'_>, changed: bool) -> Result<(), StoreError> {
    if !changed {
        return Ok(());
    }
    sql.execute(
        "INSERT INTO meta (key, value) VALUES (?1, '1')
         ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        params![CHANGES],
    )
    .map(drop)
}

/// How often the fleet changed so far; `None`: never.
pub(super) fn changes(sql: &Sql<'_>) -> Result<Option<String>, StoreError> {
    sql.first("SELECT value FROM meta WHERE key = ?1", params![CHANGES], |row| get(row, "value", "meta"))
}

fn read_device(row: &Row<'_>) -> Result<Device, StoreError> {
    let mut device: Device = from_json(row, "body", "device")?;
    device.platform_class = get(row, "platform_class", "device")?;
    device.read_at = time(row, "read_at", "device")?;
    Ok(device)
}

/// Writes one device; `true` where it differs from what was here.
fn put_device(sql: &Sql<'_>, device: &Device) -> Result<bool, StoreError> {
    let id = signed(device.netbox_id);
    // What changes at every reading, and what isn't NetBox's, stands in columns of its own.
    let bare = Device { platform_class: None, read_at: jiff::Timestamp::UNIX_EPOCH, ..device.clone() };
    let body = json(&bare, "device.body")?;
    let known: Option<(String, String)> =
        sql.first("SELECT name, body FROM device WHERE netbox_id = ?1", params![id], |row| {
            Ok((get(row, "name", "device")?, get(row, "body", "device")?))
        })?;
    let read_at = nanos(device.read_at);
    if known.as_ref().is_some_and(|(_, same)| *same == body) {
        sql.execute("UPDATE device SET read_at = ?2 WHERE netbox_id = ?1", params![id, read_at])?;
        return Ok(false);
    }
    sql.execute(
        "INSERT INTO device (netbox_id, name, site, body, platform_class, read_at, changed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (netbox_id) DO UPDATE SET name = excluded.name, site = excluded.site, body = excluded.body,
                                               read_at = excluded.read_at, changed = excluded.changed",
        params![id, device.name, device.site, body, device.platform_class, read_at, coming(sql)?],
    )?;
    match known {
        // A node belongs to a device by name: who takes another name takes another reference (T3, O5).
        Some((former, _)) if former != device.name => {
            sql.execute("DELETE FROM proof WHERE device IN (?1, ?2)", params![former, device.name])?;
            stamp_named(sql, &former)?;
            stamp_named(sql, &device.name)?;
        }
        // A new device under the name of an older one doesn't inherit its proof.
        None => {
            let others = "DELETE FROM proof WHERE device = ?1 AND netbox_id <> ?2";
            if sql.execute(others, params![device.name, id])? > 0 {
                stamp_named(sql, &device.name)?;
            }
        }
        Some(_) => {}
    }
    Ok(true)
}

/// Replaces an instance's references; `true` where more than the time of reading changed.
fn replace_refs(sql: &Sql<'_>, refs: &[(String, IronicRef)], instance: &str) -> Result<bool, StoreError> {
    let bare = |reference: &IronicRef| IronicRef { read_at: jiff::Timestamp::UNIX_EPOCH, ..reference.clone() };
    let former: BTreeMap<String, IronicRef> = sql
        .all("SELECT device, body FROM ironic_ref WHERE instance = ?1", params![instance], |row| {
            let reference: IronicRef = from_json(row, "body", "ironic_ref")?;
            Ok((get(row, "device", "ironic_ref")?, bare(&reference)))
        })?
        .into_iter()
        .collect();
    let now: BTreeMap<String, IronicRef> = refs.iter().map(|(device, r)| (device.clone(), bare(r))).collect();
    sql.execute("DELETE FROM ironic_ref WHERE instance = ?1", params![instance])?;
    for (device, reference) in refs {
        let reference = IronicRef { instance: instance.to_owned(), ..reference.clone() };
        sql.execute(
            "INSERT OR REPLACE INTO ironic_ref (instance, device, node, body) VALUES (?1, ?2, ?3, ?4)",
            params![instance, device, reference.node.to_string(), json(&reference, "ironic_ref.body")?],
        )?;
    }
    let fallen = sql.all(
        "DELETE FROM proof WHERE instance = ?1 AND NOT EXISTS (
             SELECT 1 FROM ironic_ref r WHERE r.instance = proof.instance AND r.device = proof.device AND r.node = proof.node)
         RETURNING device",
        params![instance],
        |row| get::<String>(row, "device", "proof"),
    )?;
    let left = former.keys().filter(|device| !now.contains_key(*device));
    let came = now.iter().filter(|(device, reference)| former.get(*device) != Some(*reference));
    let changed: BTreeSet<&String> = left.chain(came.map(|(device, _)| device)).chain(&fallen).collect();
    for device in &changed {
        stamp_named(sql, device)?;
    }
    Ok(!changed.is_empty())
}
