//! NetBox's other objects (interfaces, addresses, cables, places, firmware policies): a projection of which only what
//! changed is ever written.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rusqlite::{Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::rows::{from_json, get, json, nanos, signed, time, time_maybe, unsigned};
use crate::domain::wiring::{Cable, FirmwarePolicy, Interface, IpAddress, MacAddress, Place};

/// What cables belong to that do not join two interfaces: so a change tells whether it may concern paths far away.
const INDIRECT: u64 = 0;
/// Rows of one commit of a removal.
const AT_ONCE: usize = 1000;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    Interface,
    MacAddress,
    IpAddress,
    Cable,
    FirmwarePolicy,
    Site,
    Location,
    Rack,
    DeviceType,
    Role,
}

impl ObjectKind {
    /// For messages.
    pub fn plural(self) -> &'static str {
        match self {
            ObjectKind::Interface => "interfaces",
            ObjectKind::MacAddress => "MAC addresses",
            ObjectKind::IpAddress => "IP addresses",
            ObjectKind::Cable => "cables",
            ObjectKind::FirmwarePolicy => "firmware policies",
            ObjectKind::Site => "sites",
            ObjectKind::Location => "locations",
            ObjectKind::Rack => "racks",
            ObjectKind::DeviceType => "device types",
            ObjectKind::Role => "roles",
        }
    }

    fn word(self) -> &'static str {
        match self {
            ObjectKind::Interface => "interface",
            ObjectKind::MacAddress => "mac",
            ObjectKind::IpAddress => "ip",
            ObjectKind::Cable => "cable",
            ObjectKind::FirmwarePolicy => "firmware",
            ObjectKind::Site => "site",
            ObjectKind::Location => "location",
            ObjectKind::Rack => "rack",
            ObjectKind::DeviceType => "device type",
            ObjectKind::Role => "role",
        }
    }
}

/// An object of a kind of its own.
pub trait Object: Serialize + DeserializeOwned + Send + 'static {
    const KIND: ObjectKind;
    fn id(&self) -> u64;
    /// What it belongs to: an interface to its device, an address to its interface, and a cable that does not join two
    /// interfaces to 0.
    fn owner(&self) -> Option<u64>;
    /// When NetBox wrote it last.
    fn stamp(&self) -> Option<Timestamp>;
}

macro_rules! object {
    ($($object:ident $id:ident, |$row:ident| $owner:expr, $stamp:expr;)*) => {
        $(impl Object for $object {
            const KIND: ObjectKind = ObjectKind::$object;
            fn id(&self) -> u64 { self.$id }
            #[allow(unused_variables, reason = "some objects belong to nothing")]
            fn owner(&self) -> Option<u64> { let $row = self; $owner }
            #[allow(unused_variables, reason = "some objects have no time of their own")]
            fn stamp(&self) -> Option<Timestamp> { let $row = self; $stamp }
        })*
    };
}

object! {
    Interface netbox_id, |row| Some(row.device), row.last_updated;
    MacAddress netbox_id, |row| row.interface, row.last_updated;
    IpAddress netbox_id, |row| row.interface, row.last_updated;
    Cable netbox_id, |row| (!row.is_direct()).then_some(INDIRECT), row.last_updated;
    FirmwarePolicy device, |row| None, None;
}

/// A change of the projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectChange {
    pub id: u64,
    /// What it belonged to before; `None` also where it is new.
    pub before: Option<u64>,
    /// What it belongs to now; `None` also where it is gone.
    pub now: Option<u64>,
}

/// An object with the time of its reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Read<T> {
    pub object: T,
    pub read_at: Timestamp,
}

/// A place as a row of its kind.
struct PlaceRow {
    id: u64,
    body: String,
}

impl Store {
    /// Takes objects as NetBox has them. Rows that are the same here are not touched; says what changed.
    pub async fn put_objects<T: Object>(
        &self,
        objects: Vec<T>,
        read_at: Timestamp,
    ) -> Result<Vec<ObjectChange>, StoreError> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        self.write(move |sql| {
            let mut changes = Vec::new();
            for object in &objects {
                let body = json(object, "netbox_object.body")?;
                let row = (T::KIND, object.id(), object.owner(), object.stamp());
                changes.extend(put(sql, row, &body, read_at)?);
            }
            Ok(changes)
        })
        .await
    }

    /// Takes the whole list of a kind of place; says whether anything changed.
    pub async fn put_places(&self, kind: ObjectKind, places: Vec<Place>, all: bool) -> Result<bool, StoreError> {
        let rows: Result<Vec<PlaceRow>, StoreError> = places
            .iter()
            .map(|place| Ok(PlaceRow { id: place.netbox_id, body: json(place, "netbox_object.body")? }))
            .collect();
        let (rows, read_at) = (rows?, Timestamp::now());
        self.write(move |sql| {
            let mut changed = false;
            for row in &rows {
                changed |= put(sql, (kind, row.id, None, None), &row.body, read_at)?.is_some();
            }
            if all {
                let told: BTreeSet<u64> = rows.iter().map(|row| row.id).collect();
                for id in ids(sql, kind)?.difference(&told) {
                    changed |= remove(sql, kind, *id)?.is_some();
                }
            }
            Ok(changed)
        })
        .await
    }

    /// Takes out objects that NetBox has no more; says which were here.
    pub async fn remove_objects(&self, kind: ObjectKind, gone: Vec<u64>) -> Result<Vec<ObjectChange>, StoreError> {
        let mut changes = Vec::new();
        for some in gone.chunks(AT_ONCE).map(<[u64]>::to_vec) {
            let removed = self.write(move |sql| {
                let removed: Result<Vec<_>, StoreError> = some.into_iter().map(|id| remove(sql, kind, id)).collect();
                Ok(removed?.into_iter().flatten())
            });
            changes.extend(removed.await?);
        }
        Ok(changes)
    }

    /// Ids of a kind, each with the time when NetBox wrote it last.
    pub fn object_stamps(&self, kind: ObjectKind) -> Result<BTreeMap<u64, Option<Timestamp>>, StoreError> {
        self.read(|sql| {
            let row =
                |row: &Row<'_>| Ok((unsigned(row, "id", "netbox_object")?, time_maybe(row, "stamp", "netbox_object")?));
            let found = sql.all("SELECT id, stamp FROM netbox_object WHERE kind = ?1", params![kind.word()], row)?;
            Ok(found.into_iter().collect())
        })
    }

    /// How many of a kind there are, and when NetBox wrote one of them last.
    pub fn object_count(&self, kind: ObjectKind) -> Result<(usize, Option<Timestamp>), StoreError> {
        let row = |row: &Row<'_>| {
            let count = unsigned(row, "n", "netbox_object")?;
            Ok((usize::try_from(count).unwrap_or(usize::MAX), time_maybe(row, "newest", "netbox_object")?))
        };
        let found = self.read(|sql| {
            sql.first(
                "SELECT count(*) AS n, max(stamp) AS newest FROM netbox_object WHERE kind = ?1",
                params![kind.word()],
                row,
            )
        })?;
        Ok(found.unwrap_or_default())
    }

    /// All objects of a kind, by id.
    pub fn objects<T: Object>(&self) -> Result<Vec<T>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body FROM netbox_object WHERE kind = ?1 ORDER BY id";
            sql.all(select, params![T::KIND.word()], |row| from_json(row, "body", "netbox_object"))
        })
    }

    /// The objects that belong to another one, by id.
    pub fn objects_of<T: Object>(&self, owner: u64) -> Result<Vec<Read<T>>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body, read_at FROM netbox_object WHERE kind = ?1 AND owner = ?2 ORDER BY id";
            sql.all(select, params![T::KIND.word(), signed(owner)], read)
        })
    }

    /// An object by its id.
    pub fn object<T: Object>(&self, id: u64) -> Result<Option<Read<T>>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body, read_at FROM netbox_object WHERE kind = ?1 AND id = ?2";
            sql.first(select, params![T::KIND.word(), signed(id)], read)
        })
    }

    /// Sites, locations, racks, device types or roles, by id.
    pub fn places(&self, kind: ObjectKind) -> Result<Vec<Place>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body FROM netbox_object WHERE kind = ?1 ORDER BY id";
            sql.all(select, params![kind.word()], |row| from_json(row, "body", "netbox_object"))
        })
    }
}

fn read<T: Object>(row: &Row<'_>) -> Result<Read<T>, StoreError> {
    Ok(Read { object: from_json(row, "body", "netbox_object")?, read_at: time(row, "read_at", "netbox_object")? })
}

fn ids(sql: &Sql<'_>, kind: ObjectKind) -> Result<BTreeSet<u64>, StoreError> {
    let row = |row: &Row<'_>| unsigned(row, "id", "netbox_object");
    Ok(sql.all("SELECT id FROM netbox_object WHERE kind = ?1", params![kind.word()], row)?.into_iter().collect())
}

/// Writes one object if it is another one than here; the time when NetBox wrote it is part of it.
fn put(
    sql: &Sql<'_>,
    (kind, id, owner, stamp): (ObjectKind, u64, Option<u64>, Option<Timestamp>),
    body: &str,
    read_at: Timestamp,
) -> Result<Option<ObjectChange>, StoreError> {
    let known: Option<(Option<i64>, String)> = sql.first(
        "SELECT owner, body FROM netbox_object WHERE kind = ?1 AND id = ?2",
        params![kind.word(), signed(id)],
        |row| Ok((get(row, "owner", "netbox_object")?, get(row, "body", "netbox_object")?)),
    )?;
    if known.as_ref().is_some_and(|(_, known)| known == body) {
        return Ok(None);
    }
    sql.execute(
        "INSERT INTO netbox_object (kind, id, owner, stamp, read_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (kind, id) DO UPDATE SET owner = excluded.owner, stamp = excluded.stamp, body = excluded.body,
                                              read_at = excluded.read_at",
        params![kind.word(), signed(id), owner.map(signed), stamp.map(nanos), nanos(read_at), body],
    )?;
    let before = known.and_then(|(owner, _)| owner).and_then(|owner| u64::try_from(owner).ok());
    Ok(Some(ObjectChange { id, before, now: owner }))
}

fn remove(sql: &Sql<'_>, kind: ObjectKind, id: u64) -> Result<Option<ObjectChange>, StoreError> {
    let owner: Option<Option<i64>> = sql.first(
        "SELECT owner FROM netbox_object WHERE kind = ?1 AND id = ?2",
        params![kind.word(), signed(id)],
        |row| get(row, "owner", "netbox_object"),
    )?;
    let Some(owner) = owner else { return Ok(None) };
    sql.execute("DELETE FROM netbox_object WHERE kind = ?1 AND id = ?2", params![kind.word(), signed(id)])?;
    Ok(Some(ObjectChange { id, before: owner.and_then(|owner| u64::try_from(owner).ok()), now: None }))
}

/// Takes out what belongs to a device that NetBox has no more. Cables stay until their own list tells.
pub(super) fn remove_parts(sql: &Sql<'_>, device: u64) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM netbox_object WHERE kind IN ('mac', 'ip')
         AND owner IN (SELECT id FROM netbox_object WHERE kind = 'interface' AND owner = ?1)",
        params![signed(device)],
    )?;
    sql.execute("DELETE FROM netbox_object WHERE kind = 'interface' AND owner = ?1", params![signed(device)])?;
    sql.execute("DELETE FROM netbox_object WHERE kind = 'firmware' AND id = ?1", params![signed(device)]).map(drop)
}
