//! A story as Markdown: a page for a ticket. Everything from outside stands in a table's cell, so that it cannot begin a
//! block of its own.

mod escape;
mod parts;

use escape::{code, prose};

use super::{MomentKind, Story, clock, plain, span};
use crate::domain::failure::Failure;
use crate::domain::run_view::{PhaseStatus, RunState};

pub(super) fn page(story: &Story) -> String {
    let mut page = Page::default();
    page.line(&format!("# Enrollment of {} {}", code(&story.host), ending(story)));
    head(&mut page, story);
    if let Some(failure) = &story.failure {
        failed(&mut page, failure);
    }
    parts::left(&mut page, story);
    asked(&mut page, story);
    phases(&mut page, story);
    timeline(&mut page, story);
    parts::changes(&mut page, story);
    parts::guards(&mut page, story);
    parts::inspection(&mut page, story);
    parts::states(&mut page, story);
    parts::requests(&mut page, story);
    page.text
}

/// A page that grows by sections and tables.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn section(&mut self, title: &str) {
        self.line(&format!("\n## {title}\n"));
    }

    /// The cells are Markdown already.
    fn table(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.line(&format!("| {} |", head.join(" | ")));
        self.line(&format!("|{}", " --- |".repeat(head.len())));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }
}

fn ending(story: &Story) -> &'static str {
    match story.status {
        RunState::Queued => "is queued",
        RunState::Running => "is under way",
        RunState::Cancelling => "is being cancelled",
        RunState::Succeeded => "succeeded",
        RunState::Failed => "failed",
        RunState::Cancelled => "was cancelled",
    }
}

fn head(page: &mut Page, story: &Story) {
    let stamp = |at: jiff::Timestamp| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let ended = match story.finished_at {
        Some(at) => format!("{} after {}", stamp(at), span(story.took_s())),
        None => format!("not yet; this is as of {}", stamp(story.last_at)),
    };
    let ironic = match (&story.routing.ironic, story.result.as_ref().and_then(|r| r.node)) {
        (Some(ironic), Some(node)) => format!("{}, node `{node}`", code(ironic)),
        (Some(ironic), None) => code(ironic),
        (None, _) => "none manages this device class".to_owned(),
    };
    let class = story.device_class.as_deref().map_or("no device class".to_owned(), code);
    let mut rows = vec![
        ("run", format!("`{}`", story.run)),
        (
            "host",
            format!("{}, site {}, device {} of NetBox, {class}", code(&story.host), code(&story.site), story.netbox_id),
        ),
        ("submitted", format!("{} by {}", stamp(story.submitted_at), code(&story.submitted_by))),
        ("ended", ended),
        ("Ironic", ironic),
    ];
    let times = match story.interruptions.len() {
        0 => None,
        1 => Some("once".to_owned()),
        n => Some(format!("{n} times")),
    };
    if let Some(times) = times {
        let away = span(story.away_s());
        rows.push(("interrupted", format!("{times}, {away} in all; each time it went on where it was")));
    }
    if let Some(before) = story.retry_of {
        rows.push(("repeats", format!("run `{before}`")));
    }
    if !story.retried_by.is_empty() {
        let runs: Vec<String> = story.retried_by.iter().map(|run| format!("`{run}`")).collect();
        rows.push(("repeated by", runs.join(", ")));
    }
    if let Some(result) = &story.result {
        if let Some(class) = &result.platform_class {
            rows.push(("platform class", code(class)));
        }
        let proven = match (result.already_enrolled, result.qualifying) {
            (true, _) => "it was enrolled already",
            (false, true) => "it proves the enrollment",
            (false, false) => "it proves no enrollment: a diagnostic bypass, or Ironic's gate is off",
        };
        rows.push(("result", proven.to_owned()));
    }
    page.line("");
    page.table(&["", ""], rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]));
}

fn failed(page: &mut Page, failure: &Failure) {
    page.section("Failure");
    let retry = if failure.retryable { "can help by itself" } else { "does not help by itself" };
    let mut rows = vec![
        vec!["code".to_owned(), format!("`{}` in {}", failure.code, failure.phase.label())],
        vec!["for".to_owned(), format!("**{}**", failure.owner)],
        vec!["what".to_owned(), prose(&failure.message)],
        vec!["**do**".to_owned(), format!("**{}**", prose(&failure.action))],
        vec!["a retry".to_owned(), retry.to_owned()],
    ];
    let evidence = failure.evidence.iter();
    rows.extend(evidence.map(|e| vec![format!("read at {}", prose(&e.source)), prose(&e.read)]));
    page.table(&["", ""], rows);
}

fn asked(page: &mut Page, story: &Story) {
    page.section("What was asked");
    let of = |map: &serde_json::Map<String, serde_json::Value>| {
        let pairs = map.iter().map(|(key, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            code(&format!("{key} = {value}"))
        });
        pairs.collect::<Vec<_>>().join(", ")
    };
    let params = match serde_json::to_value(&story.params) {
        Ok(serde_json::Value::Object(map)) => of(&map),
        _ => "–".to_owned(),
    };
    let classes = story.routing.by_class.iter().map(|(class, ironic)| code(&format!("{class} → {ironic}")));
    let classes: Vec<String> = classes.collect();
    let rows = [
        ("switches", params),
        ("gates", of(&story.gates)),
        ("options", of(&story.options)),
        ("budgets", of(&story.budgets)),
        ("routing", if classes.is_empty() { "–".to_owned() } else { classes.join(", ") }),
    ];
    page.table(&["", "as it stood at the submission"], rows.map(|(name, value)| vec![name.to_owned(), value]));
}

fn phases(page: &mut Page, story: &Story) {
    page.section("Phases");
    let rows = story.phases.iter().map(|phase| {
        let status = match phase.status {
            PhaseStatus::Pending => "○ not begun",
            PhaseStatus::Running => "» running",
            PhaseStatus::Done => "✓ done",
            PhaseStatus::Warned => "! warned",
            PhaseStatus::Skipped => "– skipped",
            PhaseStatus::Failed => "✗ failed",
            PhaseStatus::Cancelled => "x cancelled",
        };
        let took = match (phase.started_at, phase.ended_at) {
            (Some(start), Some(end)) => span(super::seconds(start, end)),
            _ => String::new(),
        };
        let attempts = if phase.attempt > 1 { phase.attempt.to_string() } else { String::new() };
        vec![phase.phase.label().to_owned(), status.to_owned(), took, attempts, prose(&phase.note)]
    });
    page.table(&["phase", "status", "took", "attempts", "what"], rows);
}

fn timeline(page: &mut Page, story: &Story) {
    page.section("Timeline");
    page.line(&format!("Times are UTC; the run began on {}.\n", story.submitted_at.strftime("%Y-%m-%d")));
    let rows = story.timeline.iter().map(|moment| {
        let kind = match moment.kind {
            MomentKind::Info => "",
            MomentKind::Wrote => "changed",
            MomentKind::Done => "✓ done",
            MomentKind::Skipped => "– skipped",
            MomentKind::Warned => "! warned",
            MomentKind::Failed => "✗ failed",
            MomentKind::Begun => "»",
            MomentKind::Waited => "~ waiting",
            MomentKind::Interrupted => "◌",
        };
        vec![clock(story, moment.at), kind.to_owned(), prose(&moment.place), prose(&plain::sentence(moment))]
    });
    page.table(&["at", "", "where", "what"], rows);
}
