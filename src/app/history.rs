//! Looking back: a host's runs, what is usual, and two runs side by side. From the store alone.

use super::handle::{App, AppError};
use super::runs::{RunSummary, Runs};
use crate::domain::compare::{Comparison, older_first};
use crate::domain::ids::RunId;
use crate::domain::run_view::RunView;
use crate::domain::usual::{Figures, Kind, Usual};

impl App {
    /// The runs of a device, the newest first.
    pub fn history(&self, netbox_id: u64) -> Result<Vec<RunSummary>, AppError> {
        Ok(self.inner.store.runs_of(netbox_id)?)
    }

    /// What everything usually takes, by what is known now.
    pub fn usual(&self) -> Result<Usual, AppError> {
        Ok(self.inner.store.usual()?)
    }
}

impl Runs {
    /// What everything usually takes on the host of a run.
    pub fn figures(&self, run: RunId) -> Result<Figures, AppError> {
        let row = self.store.run(run)?;
        let device = self.store.device_by_id(row.netbox_id)?;
        let kind = device.as_ref().map_or(Kind { site: row.site, ..Kind::default() }, Kind::from);
        Ok(self.store.usual()?.figures(&kind))
    }

    /// Two runs side by side, the older one on the left.
    pub fn compare(&self, one: RunId, other: RunId) -> Result<Comparison, AppError> {
        let submitted = |run| Ok::<_, AppError>((run, Some(self.store.run(run)?.submitted_at)));
        let [left, right] = older_first(submitted(one)?, submitted(other)?);
        let view = |run| Ok::<_, AppError>(RunView::of(&self.store.records(run)?));
        Ok(Comparison::of(&view(left)?, &view(right)?))
    }
}
