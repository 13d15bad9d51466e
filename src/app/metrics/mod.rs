//! What a monitoring system asks a serving muster for: runs by state, ends by failure code, phases, the journal, and how stale
//! each system is. No label names a host: a fleet of 10,000 would be as many series.

mod listen;
mod tally;

use std::sync::PoisonError;

use jiff::Timestamp;

use super::handle::App;
use crate::domain::exposition::{Kind, Page};
use crate::store::RunStatus;

pub use listen::Listening;
use tally::Tally;

impl App {
    /// The page of all figures, of which `tally` has what was counted since the start.
    fn figures(&self, tally: &Tally) -> String {
        let mut page = Page::default();
        page.family("muster_build_info", Kind::Gauge, "The version that serves.");
        page.sample("muster_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        page.family("muster_leads", Kind::Gauge, "1 where this process carries out the runs.");
        page.sample("muster_leads", &[], f64::from(u8::from(self.leads_since().is_some())));
        self.runs_by_status(&mut page);
        tally.tell(&mut page);
        page.family("muster_journal_write_seconds", Kind::Histogram, "From a write to its commit on the disk.");
        page.times("muster_journal_write_seconds", &[], &self.inner.store.write_times());
        let commits = self.inner.store.commits();
        page.family("muster_journal_commits_total", Kind::Counter, "Commits of the store.");
        page.sample("muster_journal_commits_total", &[], commits.commits as f64);
        self.webhooks(&mut page);
        self.staleness(&mut page);
        page.text()
    }

    fn runs_by_status(&self, page: &mut Page) {
        let rows = self.runs().unwrap_or_else(|error| {
            tracing::warn!(%error, "runs are missing in the figures");
            Vec::new()
        });
        page.family("muster_runs", Kind::Gauge, "Runs in the store by what became of them.");
        use RunStatus::{Cancelled, Failed, Queued, Running, Succeeded};
        for status in [Queued, Running, Succeeded, Failed, Cancelled] {
            let count = rows.iter().filter(|row| row.status == status).count();
            page.sample("muster_runs", &[("status", status.as_str())], count as f64);
        }
        page.family(
            "muster_runs_waiting",
            Kind::Gauge,
            "Active runs of a site, and of them those that wait for something.",
        );
        for site in self.settings().sites.keys() {
            let active = rows.iter().filter(|row| row.site == *site && row.status.is_active());
            let waiting = active.clone().filter(|row| row.waiting.is_some()).count();
            page.sample("muster_runs_waiting", &[("site", site), ("waits", "yes")], waiting as f64);
            page.sample("muster_runs_waiting", &[("site", site), ("waits", "no")], (active.count() - waiting) as f64);
        }
    }

    fn webhooks(&self, page: &mut Page) {
        let told = self.inner.office.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.family(
            "muster_webhook_deliveries_total",
            Kind::Counter,
            "Deliveries to a webhook: taken, given up, and tries that were not taken.",
        );
        for (name, counts) in &told {
            let results = [("delivered", counts.delivered), ("refused", counts.refused), ("given_up", counts.given_up)];
            for (result, count) in results {
                let labels = [("webhook", name.as_str()), ("result", result)];
                page.sample("muster_webhook_deliveries_total", &labels, count as f64);
            }
        }
        page.family("muster_webhook_waiting", Kind::Gauge, "Ends of runs that a webhook has not taken yet.");
        for (name, counts) in &told {
            page.sample("muster_webhook_waiting", &[("webhook", name)], counts.waiting as f64);
        }
    }

    fn staleness(&self, page: &mut Page) {
        let systems = self.fleet().map(|fleet| fleet.systems).unwrap_or_default();
        let now = Timestamp::now();
        page.family(
            "muster_system_age_seconds",
            Kind::Gauge,
            "Since a system last answered as it should; +Inf: never.",
        );
        for system in &systems {
            let age = system.ok_at.map_or(f64::INFINITY, |at| now.duration_since(at).as_secs_f64().max(0.0));
            page.sample("muster_system_age_seconds", &[("system", &system.name)], age);
        }
        page.family("muster_system_up", Kind::Gauge, "1 where a system's last answer was as it should be.");
        for system in &systems {
            let up = system.error.is_none() && system.ok_at.is_some();
            page.sample("muster_system_up", &[("system", &system.name)], f64::from(u8::from(up)));
        }
    }
}
