//! What processes that don't lead ask of the one that does, and its answers.
//!
//! A command stays until it is answered, over the death of whoever had begun it: the next leader takes it up. So each one
//! can be carried out again, or its carrier looks first whether it was.

use jiff::Timestamp;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::handle::Store;
use super::rows::{from_json, get, json, nanos, time, time_maybe};
use crate::domain::ids::RunId;
use crate::workflows::cx::Signal;

/// Answered commands are kept for so long: whoever asked has read the answer or has gone.
const KEPT: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// What is asked. The names are a contract between processes that may be of two versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Wish {
    /// End a run at its next await.
    Cancel { run: RunId, by: String },
    /// Say something to a run under way.
    Signal {
        run: RunId,
        #[serde(flatten)]
        signal: Signal,
    },
    /// Read NetBox and every Ironic now.
    ReadSystems,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Done,
    /// The run had ended before.
    RunEnded {
        run: RunId,
    },
    /// The run waits for its turn.
    NotBegun {
        run: RunId,
    },
    Failed {
        message: String,
    },
}

/// A command that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub id: i64,
    pub asked_at: Timestamp,
    /// `None`: of a newer version, which this one doesn't understand.
    pub wish: Option<Wish>,
}

/// How far a command has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandState {
    /// When a leader last began it.
    pub taken_at: Option<Timestamp>,
    pub answer: Option<Answer>,
}

impl Store {
    /// Asks the leader for something; the number is what the answer is found by.
    pub async fn ask(&self, wish: Wish, at: Timestamp) -> Result<i64, StoreError> {
        self.write(move |sql| {
            let old = nanos(at.checked_sub(KEPT).unwrap_or(Timestamp::MIN));
            sql.execute("DELETE FROM command WHERE answered_at < ?1", params![old])?;
            let id = sql.first(
                "INSERT INTO command (body, asked_at) VALUES (?1, ?2) RETURNING id",
                params![json(&wish, "command.body")?, nanos(at)],
                |row| get(row, "id", "command"),
            )?;
            id.ok_or(StoreError::Closed)
        })
        .await
    }

    /// The commands that are still to be carried out, in the order in which they were asked.
    pub fn asked(&self) -> Result<Vec<Command>, StoreError> {
        self.read(|sql| {
            sql.all("SELECT id, body, asked_at FROM command WHERE answer IS NULL ORDER BY id", [], read_command)
        })
    }

    /// Writes down that somebody carries a command out.
    pub async fn take_command(&self, id: i64, at: Timestamp) -> Result<(), StoreError> {
        self.write(move |sql| {
            sql.execute("UPDATE command SET taken_at = ?2 WHERE id = ?1", params![id, nanos(at)]).map(drop)
        })
        .await
    }

    /// Answers a command, once.
    pub async fn answer_command(&self, id: i64, at: Timestamp, answer: Answer) -> Result<(), StoreError> {
        self.write(move |sql| {
            let answer = json(&answer, "command.answer")?;
            sql.execute(
                "UPDATE command SET answer = ?2, answered_at = ?3 WHERE id = ?1 AND answer IS NULL",
                params![id, answer, nanos(at)],
            )
            .map(drop)
        })
        .await
    }

    /// How far a command has come; `None`: it was answered long ago.
    pub fn command(&self, id: i64) -> Result<Option<CommandState>, StoreError> {
        self.read(|sql| {
            sql.first("SELECT taken_at, answer FROM command WHERE id = ?1", params![id], |row| {
                let answered = get::<Option<String>>(row, "answer", "command")?.is_some();
                Ok(CommandState {
                    taken_at: time_maybe(row, "taken_at", "command")?,
                    answer: if answered { Some(from_json(row, "answer", "command")?) } else { None },
                })
            })
        })
    }
}

fn read_command(row: &Row<'_>) -> Result<Command, StoreError> {
    let body: String = get(row, "body", "command")?;
    Ok(Command {
        id: get(row, "id", "command")?,
        asked_at: time(row, "asked_at", "command")?,
        wish: serde_json::from_str(&body).ok(),
    })
}
