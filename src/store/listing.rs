//! The fleet as lists read it: row by row, only what a list keeps, the first places of the walk at once, and later no more
//! than what changed.

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Params, Row, params};
use serde::Deserialize;

use super::error::StoreError;
use super::fleet::{changes, count_change};
use super::handle::{Sql, Store};
use super::rows::{bad, from_json, nanos, signed, unsigned};
use super::runs::{RunRow, each_last_run, last_run_row, rows_since};
use crate::domain::device::IronicRef;
use crate::domain::listed::Alike;
use crate::domain::word::Word;

/// A device as its row says it, with the words that it may share with others still its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Brief {
    pub netbox_id: u64,
    pub name: Word,
    pub position: Option<f64>,
    pub serial: Option<Word>,
    pub asset_tag: Option<Word>,
    pub oob_ip: Option<Word>,
    pub alike: Alike,
}

/// How far the changes of the fleet were read. A store counts them, so that a mark is of use only where it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark(i64);

/// The place of a device, from large to small. What follows a name that is left out is left out too.
#[derive(Debug, Clone, Copy)]
pub enum Around<'a> {
    Everywhere,
    Site(&'a str),
    Location(&'a str, Option<&'a str>),
}

/// What of a device's body a list keeps. The rest is skipped, not decoded.
#[derive(Deserialize)]
struct Body {
    name: Word,
    site: Word,
    #[serde(default)]
    location: Option<Word>,
    #[serde(default)]
    rack: Option<Word>,
    #[serde(default)]
    position: Option<f64>,
    status: Word,
    role: Word,
    #[serde(default)]
    device_class: Option<Word>,
    manufacturer: Word,
    model: Word,
    #[serde(default)]
    serial: Option<Word>,
    #[serde(default)]
    asset_tag: Option<Word>,
    #[serde(default)]
    tags: Vec<Word>,
    #[serde(default)]
    tenant: Option<Word>,
    #[serde(default)]
    oob_ip: Option<Word>,
}

const BRIEF: &str = "SELECT netbox_id, body, platform_class FROM device";
const LOCATION: &str = "json_extract(body, '$.location')";
const RACK: &str = "json_extract(body, '$.rack')";

impl Store {
    /// How far the changes of the fleet go now.
    pub fn fleet_mark(&self) -> Result<Mark, StoreError> {
        self.read(mark)
    }

    /// Hands over every device, one at a time.
    pub fn each_brief(&self, take: impl FnMut(Brief)) -> Result<(), StoreError> {
        self.read(|sql| each(sql, BRIEF, [], take))
    }

    /// Hands over the devices that changed since a mark, and says which are gone, and the mark of now. `None`: the mark is
    /// of another store, and all has to be read.
    pub fn briefs_since(&self, since: Mark, take: impl FnMut(Brief)) -> Result<Option<(Vec<u64>, Mark)>, StoreError> {
        self.read(|sql| {
            let mark = mark(sql)?;
            if mark < since {
                return Ok(None);
            }
            let gone = sql.all("SELECT netbox_id FROM device_gone WHERE changed > ?1", params![since.0], |row| {
                unsigned(row, "netbox_id", "device_gone")
            })?;
            each(sql, &format!("{BRIEF} WHERE changed > ?1"), params![since.0], take)?;
            Ok(Some((gone, mark)))
        })
    }

    /// How many devices there are.
    pub fn device_count(&self) -> Result<u64, StoreError> {
        let count = |row: &Row<'_>| unsigned(row, "n", "device");
        self.read(|sql| Ok(sql.first("SELECT count(*) AS n FROM device", [], count)?.unwrap_or(0)))
    }

    /// The names of what is directly within a place: sites, locations or racks, in no order that means anything. Devices
    /// without a rack are in none.
    pub fn places_within(&self, around: Around<'_>) -> Result<Vec<Option<Word>>, StoreError> {
        self.read(|sql| match around {
            Around::Everywhere => leap(sql, "site", "TRUE", []),
            Around::Site(site) => {
                let mut found = leap(sql, LOCATION, "site = ?2", [Some(site)])?;
                let without = format!("SELECT 1 FROM device WHERE site = ?1 AND {LOCATION} IS NULL LIMIT 1");
                found.extend(sql.first(&without, params![site], |_| Ok(None))?);
                Ok(found)
            }
            Around::Location(site, location) => {
                leap(sql, RACK, &format!("site = ?2 AND {LOCATION} IS ?3"), [Some(site), location])
            }
        })
    }

    /// Hands over the devices of a rack.
    pub fn briefs_of_rack(
        &self,
        (site, location, rack): (&str, Option<&str>, &str),
        take: impl FnMut(Brief),
    ) -> Result<(), StoreError> {
        let select = format!("{BRIEF} WHERE site = ?1 AND {LOCATION} IS ?2 AND {RACK} = ?3");
        self.read(|sql| each(sql, &select, params![site, location, rack], take))
    }

    /// As [`Store::ironic_refs`], for one device.
    pub fn ironic_ref_of(&self, device: &str) -> Result<Option<IronicRef>, StoreError> {
        self.read(|sql| {
            let select = "SELECT body FROM ironic_ref WHERE device = ?1 ORDER BY instance LIMIT 1";
            sql.first(select, params![device], |row| from_json(row, "body", "ironic_ref"))
        })
    }

    /// Hands over every node of every instance with the device that it is projected on, by instance and device.
    pub fn each_ironic_ref(&self, mut take: impl FnMut(Word, IronicRef)) -> Result<(), StoreError> {
        self.read(|sql| {
            sql.each("SELECT device, body FROM ironic_ref ORDER BY instance, device", [], |row| {
                take(text(row, "device", "ironic_ref")?, from_json(row, "body", "ironic_ref")?);
                Ok(())
            })
        })
    }

    /// Hands over each host's newest run, without its place in the line.
    pub fn each_last_run(&self, take: impl FnMut(RunRow)) -> Result<(), StoreError> {
        self.read(|sql| each_last_run(sql, take))
    }

    /// A host's newest run, without its place in the line.
    pub fn last_run_row(&self, host: &str) -> Result<Option<RunRow>, StoreError> {
        self.read(|sql| last_run_row(sql, host))
    }

    /// Runs that are active, and those that ended since then; without their places in the line.
    pub fn runs_since(&self, since: Timestamp) -> Result<Vec<RunRow>, StoreError> {
        self.read(|sql| rows_since(sql, nanos(since)))
    }
}

/// The change that the commit which is being written makes: what it changes is stamped with it.
pub(super) fn coming(sql: &Sql<'_>) -> Result<i64, StoreError> {
    Ok(mark(sql)?.0 + 1)
}

/// Stamps the devices of a name, whose node or proof is another one now. To be followed by the count of the change.
pub(super) fn stamp_named(sql: &Sql<'_>, name: &str) -> Result<(), StoreError> {
    let stamp = coming(sql)?;
    sql.execute("UPDATE device SET changed = ?2 WHERE name = ?1", params![name, stamp]).map(drop)
}

/// As [`stamp_named`], counted at once.
pub(super) fn change_named(sql: &Sql<'_>, name: &str) -> Result<(), StoreError> {
    stamp_named(sql, name)?;
    count_change(sql, true)
}

/// Remembers that a device is gone. To be followed by the count of the change.
pub(super) fn stamp_gone(sql: &Sql<'_>, netbox_id: u64) -> Result<(), StoreError> {
    let stamp = coming(sql)?;
    sql.execute(
        "INSERT OR REPLACE INTO device_gone (netbox_id, changed) VALUES (?1, ?2)",
        params![signed(netbox_id), stamp],
    )
    .map(drop)
}

fn mark(sql: &Sql<'_>) -> Result<Mark, StoreError> {
    let Some(text) = changes(sql)? else { return Ok(Mark::default()) };
    text.parse().map(Mark).map_err(|e| bad("meta.fleet.changes".to_owned(), e))
}

/// The different values of a column of the index by place, each found by one leap over all that have the one before.
fn leap<const N: usize>(
    sql: &Sql<'_>,
    column: &str,
    within: &str,
    names: [Option<&str>; N],
) -> Result<Vec<Option<Word>>, StoreError> {
    let select =
        format!("SELECT {column} AS name FROM device WHERE {within} AND {column} > ?1 ORDER BY {column} LIMIT 1");
    let mut found: Vec<Option<Word>> = Vec::new();
    loop {
        // Every name of NetBox is longer than nothing.
        let last = found.last().cloned().flatten().unwrap_or_default();
        let values: Vec<Option<&str>> = std::iter::once(Some(last.as_str())).chain(names).collect();
        let next = sql.first(&select, rusqlite::params_from_iter(values), |row| text(row, "name", "device"))?;
        match next {
            Some(name) => found.push(Some(name)),
            None => return Ok(found),
        }
    }
}

fn each(sql: &Sql<'_>, select: &str, params: impl Params, mut take: impl FnMut(Brief)) -> Result<(), StoreError> {
    sql.each(select, params, |row| {
        take(brief(row)?);
        Ok(())
    })
}

fn brief(row: &Row<'_>) -> Result<Brief, StoreError> {
    let unreadable = |e: &dyn std::fmt::Display| bad("device.body".to_owned(), e);
    let body = row.get_ref("body").map_err(|e| unreadable(&e))?;
    let body: Body =
        serde_json::from_slice(body.as_bytes().map_err(|e| unreadable(&e))?).map_err(|e| unreadable(&e))?;
    let platform_class = match row.get_ref("platform_class").map_err(|e| bad("device.platform_class".to_owned(), e))? {
        ValueRef::Null => None,
        _ => Some(text(row, "platform_class", "device")?),
    };
    Ok(Brief {
        netbox_id: unsigned(row, "netbox_id", "device")?,
        name: body.name,
        position: body.position,
        serial: body.serial,
        asset_tag: body.asset_tag,
        oob_ip: body.oob_ip,
        alike: Alike {
            site: body.site,
            location: body.location,
            rack: body.rack,
            status: body.status,
            role: body.role,
            device_class: body.device_class,
            manufacturer: body.manufacturer,
            model: body.model,
            tags: body.tags,
            tenant: body.tenant,
            platform_class,
        },
    })
}

fn text(row: &Row<'_>, column: &str, place: &str) -> Result<Word, StoreError> {
    let at = || format!("{place}.{column}");
    let value = row.get_ref(column).map_err(|e| bad(at(), e))?;
    value.as_str().map(Word::from).map_err(|e| bad(at(), e))
}
