//! Makes a run's driver from its journal: the past for the replay, and what the records say beside it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::attempts;
use super::driver::{Driver, End, Message, Shared};
use super::history::{Divergence, History, Past};
use super::replay::{LocalCx, State};
use super::trial::Trial;
use crate::domain::event::{Body, Event, Observation, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::lines::squeezed;
use crate::domain::text::{neutralize_to, panic_message};
use crate::store::StoreError;

/// What a run has done to the world so far, in words: for whoever cancels it (G9).
#[derive(Debug, Default)]
pub(super) struct Changes {
    sentences: Vec<String>,
    /// Names of the activities, by their place.
    names: BTreeMap<u32, String>,
}

impl Changes {
    /// Takes a record into account: the last value of each place that was written, and activities that were broken off.
    pub(super) fn note(&mut self, body: &Body) {
        match body {
            Body::Observation(Observation::Wrote { system, target, what, after, .. }) => {
                let place = format!("{system} {target}: {what} is ");
                self.sentences.retain(|sentence| !sentence.starts_with(&place));
                self.sentences.push(format!("{place}'{}'", neutralize_to(&squeezed(after), 200)));
            }
            Body::Journal(Event::ActivityScheduled { seq, name, .. }) => {
                self.names.insert(*seq, name.clone());
            }
            Body::Journal(Event::ActivityDone { seq, .. } | Event::ActivityFailed { seq, .. }) => {
                self.names.remove(seq);
            }
            Body::Journal(Event::ActivityCancelled { seq }) => {
                let name = self.names.remove(seq).unwrap_or_else(|| format!("activity {seq}"));
                self.sentences.push(format!("'{name}' was broken off: it may have happened, whole or in part"));
            }
            Body::Journal(_) | Body::Observation(_) => {}
        }
    }

    pub(super) fn words(&self) -> Vec<String> {
        self.sentences.clone()
    }
}

impl Driver {
    /// Reads the journal and makes the workflow anew. What has no workflow here ends the run.
    pub(super) fn load(shared: Rc<Shared>, run: RunId, say: mpsc::UnboundedSender<Message>) -> Result<Driver, End> {
        let records = shared.journal.records(run)?;
        let next_n = records.len() as u64;
        let mut records = records.into_iter();
        let first = records.next().map(|record| (record.at, record.body));
        let Some((submitted_at, Body::Journal(Event::Submitted { workflow, request }))) = first else {
            let cause = "it does not begin with a submission".to_owned();
            return Err(StoreError::Record { run, n: 0, cause }.into());
        };
        let outage = match request.params.max_attempts {
            None => request.options.budgets.outage,
            Some(_) => Duration::ZERO,
        };
        let mut events = Vec::new();
        let mut tail = Vec::new();
        let mut past: BTreeMap<u32, attempts::Past> = BTreeMap::new();
        let mut cancelled_by = None;
        let mut changes = Changes::default();
        let mut last_at = submitted_at;
        for RunRecord { n, at, body, .. } in records {
            last_at = at;
            changes.note(&body);
            match body {
                Body::Journal(Event::Finished { .. }) => return Err(End::Finished),
                Body::Journal(event) => {
                    if let Event::CancelRequested { by } = &event {
                        cancelled_by = Some(by.clone());
                    }
                    tail.clear();
                    events.push(Past { n, at, event });
                }
                Body::Observation(observation) => {
                    if let Observation::AttemptFailed { seq, retry_at, failure, .. } = &observation {
                        let past = past.entry(*seq).or_default();
                        past.take(at, failure, outage);
                        past.retry_at = Some(*retry_at);
                    }
                    tail.push(observation);
                }
            }
        }
        if next_n > 1 {
            shared.hands.clock.continue_from(last_at);
        }
        let lost_starts = lost_starts(&tail);
        let state = State::new(run, submitted_at, History::new(events), tail);
        let code = shared.workflows.get(&workflow).cloned();
        let mut driver = Driver {
            shared,
            run,
            site: request.site.as_str().into(),
            max_attempts: request.params.max_attempts,
            outage,
            state: Rc::new(RefCell::new(state)),
            workflow: None,
            result: None,
            effects: BTreeMap::new(),
            past,
            cancelled_by,
            changes,
            resumed: None,
            lost_starts,
            trial: Trial::None,
            batch: Vec::new(),
            next_n,
            say,
        };
        let Some(code) = code else {
            let code = format!("has no workflow '{workflow}'");
            driver.diverge(&Divergence { n: 0, journal: format!("a run of '{workflow}'"), code });
            return Ok(driver);
        };
        // The call makes the future; like every poll of it, it may panic.
        let cx = LocalCx::new(Rc::clone(&driver.state));
        match catch_unwind(AssertUnwindSafe(|| code(cx, *request))) {
            Ok(workflow) => driver.workflow = Some(workflow),
            Err(panic) => driver.fail_internal(format!("the workflow broke: {}", panic_message(&*panic))),
        }
        Ok(driver)
    }
}

/// How often the program went on with what was at work, and ended again, out of order, with nothing come of it: nothing
/// became known, and nothing was written anywhere.
fn lost_starts(tail: &[Observation]) -> u32 {
    let (mut lost, mut in_order) = (0, false);
    for observation in tail {
        match observation {
            Observation::Resumed { .. } => {
                lost += u32::from(!in_order);
                in_order = false;
            }
            Observation::Stopped { .. } => in_order = true,
            Observation::Outlived => lost = lost.saturating_sub(1),
            Observation::Wrote { .. } => lost = 0,
            _ => {}
        }
    }
    // This start is none that was lost where the last one was stopped.
    if in_order { 0 } else { lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_lost_unless_it_was_stopped_in_order_or_excused() {
        let resumed = || Observation::Resumed { by: "muster 1".into() };
        let stopped = || Observation::Stopped { by: "muster 1".into() };
        assert_eq!(lost_starts(&[]), 0);
        assert_eq!(lost_starts(&[resumed(), resumed()]), 2);
        assert_eq!(lost_starts(&[resumed(), resumed(), stopped()]), 0);
        assert_eq!(lost_starts(&[resumed(), Observation::Outlived, resumed()]), 1);
        assert_eq!(lost_starts(&[resumed(), resumed(), Observation::Outlived]), 1);
    }
}
