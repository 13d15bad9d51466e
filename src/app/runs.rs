//! Runs as lists and pages show them, from the store alone.

use std::path::Path;

use super::handle::{App, AppError};
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::domain::queue::Queued;
use crate::domain::story::Story;
use crate::engine::{Review, Workflows, review};
use crate::store::{RunRow, Store};

/// A run as a list shows it.
pub type RunSummary = RunRow;

/// The runs of a state folder. Needs no lead: it can be looked at beside the process that runs the engine.
#[derive(Clone)]
pub struct Runs {
    pub(super) store: Store,
}

impl Runs {
    /// The runs of a folder that another process may lead.
    pub fn open(state_dir: &Path) -> Result<Runs, AppError> {
        Ok(Runs { store: Store::open(state_dir)? })
    }

    pub(super) fn of(store: Store) -> Runs {
        Runs { store }
    }

    /// All of them, the newest first.
    pub fn list(&self) -> Result<Vec<RunSummary>, AppError> {
        Ok(self.store.runs()?)
    }

    /// One of them.
    pub fn row(&self, run: RunId) -> Result<RunSummary, AppError> {
        Ok(self.store.run(run)?)
    }

    /// A run's whole journal with its observations.
    pub fn records(&self, run: RunId) -> Result<Vec<RunRecord>, AppError> {
        Ok(self.store.records(run)?)
    }

    /// A run's whole story.
    pub fn story(&self, run: RunId) -> Result<Story, AppError> {
        let mut story = Story::of(&self.store.records(run)?).ok_or(AppError::Untold(run))?;
        story.retried_by =
            self.store.runs()?.iter().filter(|row| row.retry_of == Some(run)).map(|row| row.run).collect();
        story.retried_by.reverse();
        Ok(story)
    }

    /// Replays a run's journal against this version of the program. Nothing is carried out and nothing written.
    pub fn review(&self, run: RunId) -> Result<Review, AppError> {
        Ok(review(&Workflows::all(), &self.store.records(run)?))
    }

    /// The run that a person means by its whole id, or by its last characters (four or more).
    pub fn find(&self, text: &str) -> Result<RunId, AppError> {
        let wanted = text.trim().to_ascii_lowercase().replace('-', "");
        let runs = self.store.runs()?;
        let simple = |run: RunId| run.0.simple().to_string();
        let fits: Vec<RunId> = runs
            .iter()
            .map(|row| row.run)
            .filter(|run| simple(*run) == wanted || (wanted.len() >= 4 && simple(*run).ends_with(&wanted)))
            .collect();
        match fits[..] {
            [run] => Ok(run),
            [] => Err(AppError::NoRun(text.to_owned())),
            _ => Err(AppError::AmbiguousRun(text.to_owned())),
        }
    }
}

impl App {
    /// The runs that have not begun, in their order, each with what holds it.
    pub fn queue(&self) -> Result<Vec<Queued>, AppError> {
        Ok(self.inner.store.queue()?)
    }

    /// All runs, the newest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, AppError> {
        self.inner.runs.list()
    }

    /// A run's whole journal with its observations.
    pub fn records(&self, run: RunId) -> Result<Vec<RunRecord>, AppError> {
        self.inner.runs.records(run)
    }

    /// The run that a person means by its id or its last characters.
    pub fn find_run(&self, text: &str) -> Result<RunId, AppError> {
        self.inner.runs.find(text)
    }
}
