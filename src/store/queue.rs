//! What admission knows of the active runs, and the limits of the engine that leads: every process reads the same line (G13).

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::rows::{bad, from_json, get, key, run_id, time};
use super::runs::{RunRow, RunStatus};
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::queue::{Canary, Caps, Entry, Queued, Verdict, line};

/// Where the limits are kept.
const CAPS: &str = "limits";

/// The canary is joined by its own row: how it stands is read with the run that waits for it.
const ENTRY: &str =
    "SELECT run.id, run.site, run.placement, run.submitted_at, run.status, run.canary, c.host AS c_host,
                     c.status AS c_status, c.failure AS c_failure
                     FROM run LEFT JOIN run c ON c.id = run.canary WHERE run.finished_at IS NULL";

impl Store {
    /// Keeps the limits that the leading engine admits by, for whoever shows the line.
    pub async fn put_caps(&self, caps: &Caps) -> Result<(), StoreError> {
        let text = serde_json::to_string(caps).map_err(|e| bad(format!("meta.{CAPS}"), e))?;
        self.put_meta(CAPS, &text).await
    }

    /// An active run as admission sees it; `None`: it is over, or there is none.
    pub fn queue_entry(&self, run: RunId) -> Result<Option<Entry>, StoreError> {
        self.read(|sql| sql.first(&format!("{ENTRY} AND run.id = ?1"), params![key(run)], read_entry))
    }

    /// The runs that were not begun, in their order, each with what holds it.
    pub fn queue(&self) -> Result<Vec<Queued>, StoreError> {
        self.read(queue)
    }
}

fn queue(sql: &Sql<'_>) -> Result<Vec<Queued>, StoreError> {
    let entries = sql.all(ENTRY, [], read_entry)?;
    if entries.iter().all(|entry| entry.begun) {
        return Ok(Vec::new());
    }
    let caps =
        sql.first("SELECT value FROM meta WHERE key = ?1", params![CAPS], |row| from_json(row, "value", "meta"))?;
    Ok(line(&entries, &caps.unwrap_or_default()))
}

/// Puts the places of those that wait into rows.
pub(super) fn placed(sql: &Sql<'_>, mut rows: Vec<RunRow>) -> Result<Vec<RunRow>, StoreError> {
    if rows.iter().any(|row| row.status == RunStatus::Queued) {
        let mut places: BTreeMap<RunId, Queued> = queue(sql)?.into_iter().map(|queued| (queued.run, queued)).collect();
        rows.iter_mut().for_each(|row| row.queued = places.remove(&row.run));
    }
    Ok(rows)
}

fn read_entry(row: &Row<'_>) -> Result<Entry, StoreError> {
    let known: Option<String> = get(row, "placement", "run")?;
    let status: String = get(row, "status", "run")?;
    let canary: Option<[u8; 16]> = get(row, "canary", "run")?;
    Ok(Entry {
        run: run_id(row, "id", "run")?,
        site: get(row, "site", "run")?,
        placement: if known.is_some() { from_json(row, "placement", "run")? } else { Default::default() },
        submitted_at: time(row, "submitted_at", "run")?,
        begun: status != RunStatus::Queued.as_str(),
        canary: canary.map(|bytes| read_canary(RunId(uuid::Uuid::from_bytes(bytes)), row)).transpose()?,
    })
}

fn read_canary(run: RunId, row: &Row<'_>) -> Result<Canary, StoreError> {
    let host: Option<String> = get(row, "c_host", "run")?;
    let status: Option<String> = get(row, "c_status", "run")?;
    let failed: Option<String> = get(row, "c_failure", "run")?;
    let verdict = match (status.as_deref().and_then(RunStatus::parse), failed) {
        (Some(RunStatus::Queued | RunStatus::Running), _) => Verdict::Pending,
        (Some(RunStatus::Succeeded), _) => Verdict::Succeeded,
        (Some(RunStatus::Cancelled), _) => Verdict::Ended("was cancelled".to_owned()),
        (Some(RunStatus::Failed), Some(_)) => {
            let failure: Failure = from_json(row, "c_failure", "run")?;
            Verdict::Ended(format!("failed with {}", failure.code))
        }
        (Some(RunStatus::Failed), None) => Verdict::Ended("failed".to_owned()),
        (None, _) => Verdict::Ended("is not in the store".to_owned()),
    };
    Ok(Canary { run, host: host.unwrap_or_else(|| run.short()), verdict })
}
