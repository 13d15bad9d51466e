//! Runs and their records: the journal that engines resume from, and what lists show of it.

use std::sync::LazyLock;

use jiff::Timestamp;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::journal::{self, Written};
use super::proofs;
use super::queue::placed;
use super::rows::{bad, from_json, get, json, key, nanos, run_id, signed, time, time_maybe, unsigned};
use crate::domain::event::{Body, Event, Observation, Outcome, RunRecord, WaitReason};
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::proof;
use crate::domain::queue::Queued;
use crate::domain::request::EnrollRequest;
use crate::workflows::enroll;

/// What came of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submit {
    Accepted,
    /// The device has an active run already (G8).
    Busy {
        run: RunId,
        by: String,
    },
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Submitted, and nothing of it was begun.
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl RunStatus {
    /// The word of the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Queued => "queued",
            RunStatus::Running => "running",
            RunStatus::Succeeded => "succeeded",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// Whether the run has its device.
    pub fn is_active(self) -> bool {
        match self {
            RunStatus::Queued | RunStatus::Running => true,
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled => false,
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

/// What a run waits for, and until when it does so before it looks again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub seq: u32,
    pub until: Timestamp,
    pub reason: WaitReason,
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub run: RunId,
    pub netbox_id: u64,
    pub host: String,
    pub site: String,
    pub by: String,
    pub submitted_at: Timestamp,
    pub retry_of: Option<RunId>,
    pub status: RunStatus,
    /// The phase that it was last seen in.
    pub phase: Option<Phase>,
    /// The most whole-phase attempts that any of its phases took so far (I13, C4).
    pub attempts: u32,
    /// What it waits for now.
    pub waiting: Option<Waiting>,
    pub finished_at: Option<Timestamp>,
    pub failure: Option<Failure>,
    /// Its place and what holds it, where it was not begun.
    pub queued: Option<Queued>,
}

const ROW: &str = "SELECT id, netbox_id, host, site, submitted_by, submitted_at, retry_of, status, phase, waiting,
                   finished_at, failure, attempts FROM run";

/// Of each host the newest run.
const NEWEST: &str = "id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY host ORDER BY submitted_at DESC, \
                      id DESC) AS place FROM run) WHERE place = 1)";

impl Store {
    /// Writes the first record of an enrollment, if no other run has the device: one active run a device (G8).
    pub async fn submit(&self, run: RunId, request: EnrollRequest) -> Result<Submit, StoreError> {
        self.submit_as(run, enroll::NAME, request).await
    }

    /// As [`Store::submit`], for a workflow by name.
    pub async fn submit_as(&self, run: RunId, workflow: &str, request: EnrollRequest) -> Result<Submit, StoreError> {
        let workflow = workflow.to_owned();
        self.write(move |sql| {
            if let Some(busy) = busy(sql, &request)? {
                return Ok(busy);
            }
            begin(sql, run, &workflow, request)?;
            Ok(Submit::Accepted)
        })
        .await
    }

    /// Submits the runs of a batch: all of them, or where a device has a run already none. The answers are in the order
    /// of the requests.
    pub async fn submit_batch(&self, batch: Vec<(RunId, EnrollRequest)>) -> Result<Vec<Submit>, StoreError> {
        self.write(move |sql| {
            let busy = batch.iter().map(|(_, request)| Ok(busy(sql, request)?.unwrap_or(Submit::Accepted)));
            let answers = busy.collect::<Result<Vec<Submit>, StoreError>>()?;
            if answers.iter().all(|answer| *answer == Submit::Accepted) {
                for (run, request) in batch {
                    begin(sql, run, enroll::NAME, request)?;
                }
            }
            Ok(answers)
        })
        .await
    }

    /// Adds records at the end of a run's journal, all or none; answered after they are on the disk. `expect_n` is the
    /// place that the caller knows as the end: whoever finds another one there isn't the only writer any more.
    /// `Finished` releases the device.
    pub async fn append(
        &self,
        run: RunId,
        expect_n: u64,
        events: Vec<(Timestamp, Body)>,
    ) -> Result<Vec<RunRecord>, StoreError> {
        // Put into words here: the writer's thread serves all runs, and does nothing that another one could.
        let written =
            events.iter().map(|(at, body)| Written::new(*at, body)).collect::<Result<Vec<_>, StoreError>>()?;
        let appended = self.write_checked(move |sql| {
            let (status, found) = end_of(sql, run)?;
            if !status.is_active() {
                return Err(StoreError::RunFinished(run));
            }
            if found != expect_n {
                return Err(StoreError::JournalMoved { run, expected: expect_n, found });
            }
            journal::append(sql, run, expect_n, &written)?;
            let mut records = Vec::with_capacity(events.len());
            let mut unproven = false;
            for (n, (at, body)) in (expect_n..).zip(events) {
                project(sql, run, at, &body)?;
                if let Body::Journal(Event::Finished { outcome }) = &body {
                    unproven = settle_proof(sql, run, outcome)?;
                }
                records.push(RunRecord { run, n, at, body });
            }
            if status == RunStatus::Queued {
                sql.execute(
                    "UPDATE run SET status = 'running' WHERE id = ?1 AND status = 'queued'",
                    params![key(run)],
                )?;
            }
            Ok((records, unproven))
        });
        let (records, unproven) = appended.await?;
        if unproven {
            self.fleet_changed();
        }
        if records.iter().any(|record| matches!(record.body, Body::Journal(Event::Finished { .. }))) {
            self.run_ended();
        }
        Ok(records)
    }

    /// All records of a run, in their order.
    pub fn records(&self, run: RunId) -> Result<Vec<RunRecord>, StoreError> {
        self.records_from(run, 0)
    }

    /// The records of a run from a place on.
    pub fn records_from(&self, run: RunId, n: u64) -> Result<Vec<RunRecord>, StoreError> {
        self.read(|sql| {
            let records = journal::read_from(sql, run, n)?;
            if records.is_empty() {
                end_of(sql, run)?;
            }
            Ok(records)
        })
    }

    /// How many records a run has: the place of the next one.
    pub fn journal_end(&self, run: RunId) -> Result<u64, StoreError> {
        self.read(|sql| Ok(end_of(sql, run)?.1))
    }

    /// All runs, the newest first.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.read(|sql| placed(sql, sql.all(&format!("{ROW} ORDER BY submitted_at DESC, id DESC"), [], read_row)?))
    }

    /// The runs of a device, the newest first, by whatever names it had.
    pub fn runs_of(&self, netbox_id: u64) -> Result<Vec<RunRow>, StoreError> {
        let select = format!("{ROW} WHERE netbox_id = ?1 ORDER BY submitted_at DESC, id DESC");
        self.read(|sql| placed(sql, sql.all(&select, params![signed(netbox_id)], read_row)?))
    }

    /// One run.
    pub fn run(&self, run: RunId) -> Result<RunRow, StoreError> {
        self.read(|sql| {
            let row = sql.first(&format!("{ROW} WHERE id = ?1"), params![key(run)], read_row)?;
            placed(sql, vec![row.ok_or(StoreError::NoRun(run))?])?.pop().ok_or(StoreError::NoRun(run))
        })
    }

    /// The run that a device has now, and who started it.
    pub fn active_run_of(&self, netbox_id: u64) -> Result<Option<(RunId, String)>, StoreError> {
        self.read(|sql| {
            sql.first(
                "SELECT id, submitted_by FROM run WHERE netbox_id = ?1 AND finished_at IS NULL",
                params![signed(netbox_id)],
                |row| Ok((run_id(row, "id", "run")?, get(row, "submitted_by", "run")?)),
            )
        })
    }

    /// The newest run of each host.
    pub fn last_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.read(|sql| placed(sql, sql.all(&format!("{ROW} WHERE {NEWEST}"), [], read_row)?))
    }

    /// The newest run of a host.
    pub fn last_run_of(&self, host: &str) -> Result<Option<RunId>, StoreError> {
        self.read(|sql| {
            let select = "SELECT id FROM run WHERE host = ?1 ORDER BY submitted_at DESC, id DESC LIMIT 1";
            sql.first(select, params![host], |row| run_id(row, "id", "run"))
        })
    }

    /// The runs that are to go on: those under way before those that were only queued, each in their order.
    pub fn active_runs(&self) -> Result<Vec<RunId>, StoreError> {
        self.read(|sql| {
            sql.all(
                "SELECT id FROM run WHERE finished_at IS NULL ORDER BY status = 'queued', submitted_at, id",
                [],
                |row| run_id(row, "id", "run"),
            )
        })
    }
}

/// Hands over each host's newest run, without its place in the line.
pub(super) fn each_last_run(sql: &Sql<'_>, mut take: impl FnMut(RunRow)) -> Result<(), StoreError> {
    sql.each(&format!("{ROW} WHERE {NEWEST}"), [], |row| {
        take(read_row(row)?);
        Ok(())
    })
}

/// A host's newest run, without its place in the line.
pub(super) fn last_run_row(sql: &Sql<'_>, host: &str) -> Result<Option<RunRow>, StoreError> {
    sql.first(&format!("{ROW} WHERE host = ?1 ORDER BY submitted_at DESC, id DESC LIMIT 1"), params![host], read_row)
}

/// Active runs and those that ended since then, the older first.
pub(super) fn rows_since(sql: &Sql<'_>, since: i64) -> Result<Vec<RunRow>, StoreError> {
    let select = format!("{ROW} WHERE finished_at IS NULL OR finished_at >= ?1 ORDER BY submitted_at, id");
    sql.all(&select, params![since], read_row)
}

/// The active run that has the device already (G8).
fn busy(sql: &Sql<'_>, request: &EnrollRequest) -> Result<Option<Submit>, StoreError> {
    sql.first(
        "SELECT id, submitted_by FROM run WHERE netbox_id = ?1 AND finished_at IS NULL",
        params![signed(request.netbox_id)],
        |row| Ok(Submit::Busy { run: run_id(row, "id", "run")?, by: get(row, "submitted_by", "run")? }),
    )
}

/// A run's row and first record.
fn begin(sql: &Sql<'_>, run: RunId, workflow: &str, request: EnrollRequest) -> Result<(), StoreError> {
    let placement = (!request.placement.is_unknown()).then(|| json(&request.placement, "run.placement")).transpose()?;
    sql.execute(
        "INSERT INTO run (id, netbox_id, host, site, workflow, submitted_by, submitted_at, retry_of, status, placement,
                          canary)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', ?9, ?10)",
        params![
            key(run),
            signed(request.netbox_id),
            request.host,
            request.site,
            workflow,
            request.submitted_by,
            nanos(request.submitted_at),
            request.retry_of.map(key),
            placement,
            request.canary.map(key),
        ],
    )?;
    let at = request.submitted_at;
    let event = Event::Submitted { workflow: workflow.to_owned(), request: Box::new(request) };
    journal::append(sql, run, 0, &[Written::new(at, &Body::Journal(event))?])
}

/// Where a run stands, and how many records it has.
fn end_of(sql: &Sql<'_>, run: RunId) -> Result<(RunStatus, u64), StoreError> {
    static END: LazyLock<String> =
        LazyLock::new(|| format!("SELECT status, {} AS next FROM run WHERE id = ?1", journal::END));
    sql.first(&END, params![key(run)], |row| Ok((read_status(row)?, unsigned(row, "next", "record")?)))?
        .ok_or(StoreError::NoRun(run))
}

/// Keeps what lists show of a run beside its journal, in the same commit.
fn project(sql: &Sql<'_>, run: RunId, at: Timestamp, body: &Body) -> Result<(), StoreError> {
    let id = key(run);
    match body {
        Body::Journal(Event::Finished { outcome }) => {
            let failure = match outcome {
                Outcome::Failed { failure } => Some(json(failure, "run.failure")?),
                Outcome::Succeeded { .. } | Outcome::Cancelled { .. } => None,
            };
            sql.execute(
                "UPDATE run SET status = ?2, finished_at = ?3, failure = ?4, waiting = NULL WHERE id = ?1",
                params![id, outcome.status(), nanos(at), failure],
            )?;
        }
        Body::Journal(Event::TimerSet { seq, until, reason }) => {
            let waiting = Waiting { seq: *seq, until: *until, reason: reason.clone() };
            sql.execute("UPDATE run SET waiting = ?2 WHERE id = ?1", params![id, json(&waiting, "run.waiting")?])?;
        }
        // The one timer fired, or another thing was begun although it had not: the run doesn't wait for it any more.
        Body::Journal(Event::TimerFired { .. } | Event::ActivityScheduled { .. } | Event::Signalled { .. }) => {
            sql.execute("UPDATE run SET waiting = NULL WHERE id = ?1 AND waiting IS NOT NULL", params![id])?;
        }
        Body::Observation(Observation::PhaseStarted { phase, attempt }) => {
            sql.execute(
                "UPDATE run SET phase = ?2, attempts = max(attempts, ?3) WHERE id = ?1",
                params![id, phase.as_str(), attempt],
            )?;
        }
        Body::Journal(_) | Body::Observation(_) => {}
    }
    Ok(())
}

/// What the end of a run means for its device's proof, in the same commit: no crash comes between the two (T4, T5).
fn settle_proof(sql: &Sql<'_>, run: RunId, outcome: &Outcome) -> Result<bool, StoreError> {
    let Some(identity) = proof::failed(&journal::events(sql, run)?, outcome) else { return Ok(false) };
    let host =
        sql.first("SELECT host FROM run WHERE id = ?1", params![key(run)], |row| get::<String>(row, "host", "run"))?;
    host.map_or(Ok(false), |host| proofs::failed(sql, &host, &identity))
}

fn read_status(row: &Row<'_>) -> Result<RunStatus, StoreError> {
    let text: String = get(row, "status", "run")?;
    RunStatus::parse(&text).ok_or_else(|| bad("run.status".to_owned(), format!("'{text}'")))
}

fn read_row(row: &Row<'_>) -> Result<RunRow, StoreError> {
    let maybe = |column: &str| get::<Option<String>>(row, column, "run");
    let retry_of: Option<[u8; 16]> = get(row, "retry_of", "run")?;
    let phase = maybe("phase")?;
    Ok(RunRow {
        run: run_id(row, "id", "run")?,
        netbox_id: unsigned(row, "netbox_id", "run")?,
        host: get(row, "host", "run")?,
        site: get(row, "site", "run")?,
        by: get(row, "submitted_by", "run")?,
        submitted_at: time(row, "submitted_at", "run")?,
        retry_of: retry_of.map(|bytes| RunId(uuid::Uuid::from_bytes(bytes))),
        status: read_status(row)?,
        attempts: get(row, "attempts", "run")?,
        phase: phase.and_then(|text| Phase::ALL.into_iter().find(|phase| phase.as_str() == text)),
        waiting: if maybe("waiting")?.is_some() { Some(from_json(row, "waiting", "run")?) } else { None },
        finished_at: time_maybe(row, "finished_at", "run")?,
        failure: if maybe("failure")?.is_some() { Some(from_json(row, "failure", "run")?) } else { None },
        queued: None,
    })
}
