//! What phases and runs took, of the runs that have ended: kept beside the journals, so that nobody has to read those again
//! to know what is usual.

use rusqlite::{Row, params};

use super::error::StoreError;
use super::handle::{Sql, Store};
use super::journal;
use super::rows::{get, key, nanos, run_id, signed, time, unsigned};
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::domain::run_view::RunView;
use crate::domain::usual::{Kind, LAST, Part, Took, Usual, learned};

/// So many runs are read and learned from in one go.
const AT_ONCE: u64 = 16;

impl Store {
    /// Learns from runs that have ended since it was asked last, some at a time. Returns how many there were; ask again
    /// until there are none.
    ///
    /// The journals are read here and not by the writer's thread, which serves all runs.
    pub async fn learn(&self) -> Result<usize, StoreError> {
        let ended = self.read(|sql| {
            sql.all(
                "SELECT id, netbox_id, site FROM run WHERE finished_at IS NOT NULL AND learned = 0
                 ORDER BY finished_at LIMIT ?1",
                params![signed(AT_ONCE)],
                |row| Ok((run_id(row, "id", "run")?, unsigned(row, "netbox_id", "run")?, get(row, "site", "run")?)),
            )
        })?;
        let count = ended.len();
        if count == 0 {
            return Ok(0);
        }
        let mut lessons = Vec::with_capacity(count);
        for (run, netbox_id, site) in ended {
            let records = match self.read(|sql| journal::read_from(sql, run, 0)) {
                Ok(records) => records,
                // One that can't be read teaches nothing, now and later.
                Err(error @ (StoreError::Record { .. } | StoreError::Value { .. })) => {
                    tracing::warn!(%run, %error, "nothing is learned from a run: its journal can't be read");
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            let device = self.device_by_id(netbox_id)?;
            let kind = device.as_ref().map_or(Kind { site, ..Kind::default() }, Kind::from);
            lessons.push(lesson(run, kind, &records));
        }
        self.write(move |sql| lessons.iter().try_for_each(|lesson| keep(sql, lesson))).await?;
        Ok(count)
    }

    /// What everything usually takes, of the latest runs of each kind.
    pub fn usual(&self) -> Result<Usual, StoreError> {
        self.read(|sql| {
            let rows = sql.all("SELECT part, class, type, site, at, seconds FROM took", [], read)?;
            Ok(Usual::of(&rows.into_iter().flatten().collect::<Vec<_>>()))
        })
    }
}

/// What one run teaches.
struct Lesson {
    run: RunId,
    attempts: u32,
    took: Vec<Took>,
}

fn lesson(run: RunId, mut kind: Kind, records: &[RunRecord]) -> Lesson {
    let view = RunView::of(records);
    // The device may have been read again, or be gone: what the run itself computed is what it was.
    if let Some(class) = view.result().and_then(|result| result.platform_class.clone()) {
        kind.platform_class = Some(class);
    }
    let attempts = view.phases.iter().map(|phase| phase.attempt).max().unwrap_or(0).max(1);
    let took = learned(records).into_iter().map(|(part, at, seconds)| Took { part, kind: kind.clone(), at, seconds });
    Lesson { run, attempts, took: took.collect() }
}

fn keep(sql: &Sql<'_>, lesson: &Lesson) -> Result<(), StoreError> {
    for Took { part, kind, at, seconds } in &lesson.took {
        let class = kind.platform_class.as_deref().unwrap_or_default();
        let device_type = kind.device_type.as_deref().unwrap_or_default();
        sql.execute(
            "INSERT OR REPLACE INTO took (part, class, type, site, at, run, seconds) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![part.as_str(), class, device_type, kind.site, nanos(*at), key(lesson.run), signed(*seconds)],
        )?;
        // What no figure can count any more goes: the table grows with the kinds of hosts and not with the runs.
        sql.execute(
            "DELETE FROM took WHERE part = ?1 AND class = ?2 AND type = ?3 AND site = ?4 AND at <
                 (SELECT at FROM took WHERE part = ?1 AND class = ?2 AND type = ?3 AND site = ?4
                  ORDER BY at DESC LIMIT 1 OFFSET ?5)",
            params![part.as_str(), class, device_type, kind.site, signed(LAST as u64 - 1)],
        )?;
    }
    sql.execute(
        "UPDATE run SET learned = 1, attempts = max(attempts, ?2) WHERE id = ?1",
        params![key(lesson.run), lesson.attempts],
    )
    .map(drop)
}

/// A row; `None`: it is about a phase that only another version knows.
fn read(row: &Row<'_>) -> Result<Option<Took>, StoreError> {
    let Some(part) = Part::named(&get::<String>(row, "part", "took")?) else { return Ok(None) };
    let maybe = |column: &str| Ok::<_, StoreError>(Some(get::<String>(row, column, "took")?).filter(|t| !t.is_empty()));
    let kind = Kind { platform_class: maybe("class")?, device_type: maybe("type")?, site: get(row, "site", "took")? };
    Ok(Some(Took { part, kind, at: time(row, "at", "took")?, seconds: unsigned(row, "seconds", "took")? }))
}
