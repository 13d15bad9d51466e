//! The records of runs as rows: one order a run, and one order of commits over all runs.
//!
//! A record is first written to `recent`, whose rows stand in the order of the commits: the records of a commit share a
//! few pages, however many runs they belong to. Every so often all of them are moved to `record`, where a run's records
//! stand together. For each run, what is in `record` comes before what is in `recent`.

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::Sql;
use super::rows::{get, json, key, nanos, run_id, signed, time, unsigned};
use crate::domain::event::{Body, Event, Observation, RunRecord};
use crate::domain::ids::RunId;

/// How many records stand in `recent` at most. Of 64 busy runs, each move then carries some 30 records to a page.
const RECENT: i64 = 2048;

/// A record in words.
pub(super) struct Written {
    pub at: Timestamp,
    pub observed: bool,
    pub body: String,
}

impl Written {
    pub(super) fn new(at: Timestamp, body: &Body) -> Result<Written, StoreError> {
        Ok(Written { at, observed: matches!(body, Body::Observation(_)), body: json(body, "record.body")? })
    }
}

/// Adds records at the end of a run, which the caller knows, and tells those who follow.
pub(super) fn append(sql: &Sql<'_>, run: RunId, end: u64, records: &[Written]) -> Result<(), StoreError> {
    for (n, record) in (end..).zip(records) {
        sql.execute(
            "INSERT INTO recent (run, n, at, observed, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![key(run), signed(n), nanos(record.at), record.observed, record.body],
        )?;
    }
    // The places of `recent` begin anew with each move: the last one is the number of its rows.
    let (stand, new) = (sql.last_place(), signed(records.len() as u64));
    sql.execute("INSERT INTO appended (run, n, records) VALUES (?1, ?2, ?3)", params![key(run), signed(end), new])?;
    if stand / RECENT > (stand - new) / RECENT { settle(sql) } else { Ok(()) }
}

/// Moves the recent records to their runs. One that can't be read any more keeps them all where they are: that costs time
/// and space, and no run but its own.
fn settle(sql: &Sql<'_>) -> Result<(), StoreError> {
    let moved = sql.attempt(|| {
        sql.execute(
            "INSERT INTO record (run, n, at, observed, body)
             SELECT run, n, at, observed, body FROM recent ORDER BY run, n",
            [],
        )?;
        sql.execute("DELETE FROM recent", [])
    })?;
    if let Err(error) = moved {
        tracing::error!(%error, "the newest records could not be moved to their runs; they stay readable where they are");
    }
    Ok(())
}

/// The place of a run's next record, as a term of a statement whose first parameter is the run.
pub(super) const END: &str =
    "coalesce((SELECT max(n) FROM recent WHERE run = ?1), (SELECT max(n) FROM record WHERE run = ?1), -1) + 1";

/// The records of a run from a place on.
pub(super) fn read_from(sql: &Sql<'_>, run: RunId, n: u64) -> Result<Vec<RunRecord>, StoreError> {
    of_run(sql, "n, at, observed, body", "n >= ?2", params![key(run), signed(n)], |row| record(run, row))
}

/// The journal of a run without its observations, and without what only a newer version can read.
pub(super) fn events(sql: &Sql<'_>, run: RunId) -> Result<Vec<Event>, StoreError> {
    let event = |row: &Row<'_>| Ok(serde_json::from_str(&get::<String>(row, "body", "record")?).ok());
    let events = of_run(sql, "body", "observed = 0", params![key(run)], event)?;
    Ok(events.into_iter().flatten().collect())
}

/// What both tables have of the run that is the first parameter, in its order.
fn of_run<T>(
    sql: &Sql<'_>,
    columns: &str,
    which: &str,
    params: impl rusqlite::Params + Copy,
    row: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    for table in ["record", "recent"] {
        let select = format!("SELECT {columns} FROM {table} WHERE run = ?1 AND {which} ORDER BY n");
        found.extend(sql.all(&select, params, &row)?);
    }
    Ok(found)
}

/// The records of all runs that were appended behind one place in the order of commits and up to another.
pub(super) fn appended(sql: &Sql<'_>, from: i64, upto: i64) -> Result<Vec<RunRecord>, StoreError> {
    let read = sql.all(
        "SELECT a.place AS place, r.run AS run, r.n AS n, r.at AS at, r.observed AS observed, r.body AS body
         FROM appended a JOIN record r ON r.run = a.run AND r.n >= a.n AND r.n < a.n + a.records
         WHERE a.place > ?1 AND a.place <= ?2
         UNION ALL
         SELECT a.place, r.run, r.n, r.at, r.observed, r.body
         FROM appended a JOIN recent r ON r.run = a.run AND r.n >= a.n AND r.n < a.n + a.records
         WHERE a.place > ?1 AND a.place <= ?2
         ORDER BY place, n",
        params![from, upto],
        |row| {
            let run = run_id(row, "run", "record")?;
            // A record of a newer version stops its own run's readers, and not all that follow the others.
            Ok(record(run, row).inspect_err(|error| tracing::warn!(%run, %error, "a record can't be told")).ok())
        },
    )?;
    Ok(read.into_iter().flatten().collect())
}

fn record(run: RunId, row: &Row<'_>) -> Result<RunRecord, StoreError> {
    let n = unsigned(row, "n", "record")?;
    let observed: bool = get(row, "observed", "record")?;
    let text: String = get(row, "body", "record")?;
    let body = if observed {
        // Nothing depends on an observation: one that only a newer version knows must not hide the rest of the run.
        Body::Observation(serde_json::from_str(&text).unwrap_or_else(|_| Observation::Note {
            system: "muster".to_owned(),
            text: "an observation that this version of muster doesn't know".to_owned(),
        }))
    } else {
        let event = serde_json::from_str(&text);
        Body::Journal(event.map_err(|e| StoreError::Record { run, n, cause: e.to_string() })?)
    };
    Ok(RunRecord { run, n, at: time(row, "at", "record")?, body })
}
