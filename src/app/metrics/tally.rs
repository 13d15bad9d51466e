//! What ended since the process began: counted as it is heard, so that no scrape reads journals.

use std::collections::BTreeMap;

use crate::domain::event::{Body, Event, Outcome, RunRecord};
use crate::domain::exposition::{Kind, Page, Times};
use crate::domain::phase::Phase;
use crate::domain::run_view::{PhaseStatus, RunView};

/// From a phase that only looks to a clean of many disks.
const BOUNDS: [f64; 12] = [1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 86400.0];

/// Ends of runs and times of phases.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// By outcome, code and owner; the last two are empty where nothing failed.
    ends: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    phases: BTreeMap<Phase, Times>,
    runs: Option<Times>,
}

/// Whether a record is the last of its run.
pub(super) fn is_end(record: &RunRecord) -> bool {
    matches!(record.body, Body::Journal(Event::Finished { .. }))
}

impl Tally {
    /// Counts a run that has ended, by its records.
    pub fn ended(&mut self, records: &[RunRecord]) {
        let view = RunView::of(records);
        let Some(outcome) = &view.outcome else { return };
        let key = match outcome {
            Outcome::Succeeded { .. } => ("succeeded", "", ""),
            Outcome::Failed { failure } => ("failed", failure.code.as_str(), failure.owner.as_str()),
            Outcome::Cancelled { .. } => ("cancelled", "", ""),
        };
        *self.ends.entry(key).or_default() += 1;
        let seconds = |from: Option<jiff::Timestamp>, to: Option<jiff::Timestamp>| {
            from.zip(to).map(|(from, to)| to.duration_since(from).as_secs_f64().max(0.0))
        };
        for phase in view.phases.iter().filter(|phase| matches!(phase.status, PhaseStatus::Done | PhaseStatus::Warned))
        {
            if let Some(took) = seconds(phase.started_at, phase.ended_at) {
                self.phases.entry(phase.phase).or_insert_with(|| Times::new(&BOUNDS)).add(took);
            }
        }
        let began = records.first().map(|record| record.at);
        if let Some(took) = seconds(began, view.finished_at) {
            self.runs.get_or_insert_with(|| Times::new(&BOUNDS)).add(took);
        }
    }

    pub fn tell(&self, page: &mut Page) {
        page.family(
            "muster_runs_ended_total",
            Kind::Counter,
            "Runs that ended since the start, by outcome and failure code.",
        );
        for ((outcome, code, owner), count) in &self.ends {
            let labels = [("outcome", *outcome), ("code", *code), ("owner", *owner)];
            page.sample("muster_runs_ended_total", &labels, *count as f64);
        }
        page.family("muster_run_seconds", Kind::Histogram, "From the submission of a run to its end.");
        page.times("muster_run_seconds", &[], self.runs.as_ref().unwrap_or(&Times::new(&BOUNDS)));
        page.family("muster_phase_seconds", Kind::Histogram, "Phases that were done, all their attempts together.");
        for (phase, times) in &self.phases {
            page.times("muster_phase_seconds", &[("phase", phase.as_str())], times);
        }
    }
}
