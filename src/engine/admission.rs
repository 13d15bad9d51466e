//! Lets runs begin where the limits give room, in the order of the queue, and ends those whose canary did not succeed.

use tokio::sync::mpsc;

use super::driver;
use super::supervisor::Supervisor;
use crate::domain::event::{Event, Outcome};
use crate::domain::ids::RunId;
use crate::domain::queue::{Canary, Entry, Reason, Verdict, line};
use crate::store::StoreError;

impl Supervisor {
    /// Starts whatever may go on or begin now. What was begun goes on at once, whatever the limits are by now: half an
    /// enrollment is worse than one too many.
    pub(super) async fn start_what_fits(&mut self) {
        if self.waiting.is_empty() {
            self.queued().clear();
            return;
        }
        if self.shared.hands.halt.is_cancelled() {
            return;
        }
        self.read_entries();
        self.give_up_behind_canaries().await;
        let begun: Vec<RunId> = self.waiting_where(|entry| entry.begun).map(|entry| entry.run).collect();
        begun.into_iter().for_each(|run| self.start(run));
        let counted: Vec<Entry> =
            self.entries.values().filter(|entry| entry.begun || !self.resting.contains(&entry.run)).cloned().collect();
        let mut queued = line(&counted, &self.caps);
        let begin = queued.iter().take_while(|queued| queued.reason == Reason::Next).count();
        for next in queued.drain(..begin) {
            self.start(next.run);
        }
        *self.queued() = queued.into_iter().map(|queued| queued.run).collect();
    }

    /// Reads what is not known yet of the runs that wait.
    fn read_entries(&mut self) {
        let unknown = |run: &&RunId| !self.entries.contains_key(run) && !self.resting.contains(run);
        for run in self.waiting.iter().filter(unknown).copied().collect::<Vec<_>>() {
            match self.shared.journal.entry(run) {
                Ok(Some(entry)) => drop(self.entries.insert(run, entry)),
                Ok(None) => self.forget(run),
                Err(error) => self.put_aside(run, error),
            }
        }
    }

    /// A batch whose first host did not succeed ends without being begun (C-52).
    async fn give_up_behind_canaries(&mut self) {
        let behind: Vec<(RunId, String)> =
            self.waiting_where(|entry| !entry.begun).filter_map(|entry| Some((entry.run, gone(entry)?))).collect();
        for (run, why) in behind {
            self.forget(run);
            let by = "muster".to_owned();
            let outcome = Outcome::Cancelled { by: by.clone(), left: Vec::new(), why: Some(why) };
            let events = vec![Event::CancelRequested { by }, Event::Finished { outcome }];
            match driver::finish(&self.shared, run, events).await {
                // Somebody else ended it meanwhile.
                Ok(()) | Err(StoreError::RunFinished(_)) => {}
                Err(error) => self.put_aside(run, error),
            }
        }
    }

    /// The canary of some has ended: they are looked at anew.
    pub(super) fn forget_verdict_of(&mut self, canary: RunId) {
        self.entries.retain(|_, entry| entry.begun || entry.canary.as_ref().is_none_or(|c| c.run != canary));
    }

    fn waiting_where(&self, fits: impl Fn(&Entry) -> bool) -> impl Iterator<Item = &Entry> {
        let waiting = self.waiting.iter().filter(|run| !self.resting.contains(run));
        waiting.filter_map(|run| self.entries.get(run)).filter(move |entry| fits(entry))
    }

    fn start(&mut self, run: RunId) {
        let (say, inbox) = mpsc::unbounded_channel();
        self.waiting.remove(&run);
        self.running.insert(run, say.clone());
        if let Some(entry) = self.entries.get_mut(&run) {
            entry.begun = true;
        }
        let after = self.aside.remove(&run);
        let driving = driver::drive(std::rc::Rc::clone(&self.shared), run, say, inbox, after);
        self.drivers.spawn_local(async move { (run, driving.await) });
    }
}

/// Why a run is not to begin at all.
fn gone(entry: &Entry) -> Option<String> {
    match entry.canary.as_ref()? {
        Canary { run, host, verdict: Verdict::Ended(words) } => {
            Some(format!("its canary {host} {words} (run {})", run.short()))
        }
        Canary { verdict: Verdict::Pending | Verdict::Succeeded, .. } => None,
    }
}
