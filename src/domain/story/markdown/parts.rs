//! The sections that a run has only where it got so far: changes, link guards, the inspection's diff, states, requests.

use super::escape::{code, prose};
use super::{Page, clock, span};
use crate::domain::phase::Phase;
use crate::domain::run_view::{GuardView, LinkLine, StateSpan};
use crate::domain::story::{Story, seconds};
use crate::domain::verify::{Check, Verdict};

/// What a cancelled run left in place.
pub(super) fn left(page: &mut Page, story: &Story) {
    if story.left.is_empty() {
        return;
    }
    page.section("Left in place");
    page.table(&["what"], story.left.iter().map(|what| vec![prose(what)]));
}

pub(super) fn changes(page: &mut Page, story: &Story) {
    page.section("Changes");
    if story.changes.is_empty() {
        return page.line("None: nothing was written to any system.");
    }
    let rows = story.changes.iter().map(|c| {
        vec![clock(story, c.at), prose(&c.system), prose(&c.target), prose(&c.what), code(&c.before), code(&c.after)]
    });
    page.table(&["at", "system", "where", "what", "before", "after"], rows);
}

pub(super) fn guards(page: &mut Page, story: &Story) {
    for guard in &story.guards {
        page.section(&format!("Link guard of the {}{}", guard.phase.label(), attempt(guard.attempt)));
        page.line(&format!("{}\n", guard_words(story, guard)));
        page.table(&["interface", "MAC", "slot", "cable", "seen"], guard.links.iter().map(link));
    }
}

fn attempt(n: u32) -> String {
    if n > 1 { format!(", attempt {n}") } else { String::new() }
}

fn guard_words(story: &Story, guard: &GuardView) -> String {
    let (from, to) = (clock(story, guard.started_at), clock(story, guard.read_at));
    let (left, budget) = (span(guard.budget_left_s as i64), span(guard.budget_s as i64));
    format!("Looked from {from} to {to}; {left} of {budget} was left.")
}

fn link(line: &LinkLine) -> Vec<String> {
    let reading = &line.reading;
    let cable = reading.cable.as_ref().map_or("no cable in NetBox".to_owned(), |end| {
        let label = end.label.as_ref().map_or(String::new(), |label| format!(", label {label}"));
        let color = end.color.as_ref().map_or(String::new(), |color| format!(", {color}"));
        prose(&format!("{} {}{label}{color}", end.switch, end.port))
    });
    let seen = line.spans.iter().map(|s| format!("{} {}", s.state.as_str(), span(seconds(s.since, s.until))));
    vec![
        code(&reading.interface),
        reading.mac.map_or("–".to_owned(), |mac| format!("`{mac}`")),
        reading.slot.as_deref().map_or("–".to_owned(), prose),
        cable,
        seen.collect::<Vec<_>>().join(" → "),
    ]
}

pub(super) fn inspection(page: &mut Page, story: &Story) {
    let Some(view) = &story.inspection else { return };
    let checks = &view.verification.checks;
    page.section("Inspection");
    let (failed, of) =
        (view.verification.failed().count(), if view.fresh { "a fresh inspection" } else { "the data at hand" });
    page.line(&format!("Judged at {}, on {of}: {failed} of {} checks differ.\n", clock(story, view.at), checks.len()));
    if let Some(diagnosis) = &view.verification.diagnosis {
        page.table(&["diagnosis"], [vec![format!("**{}**", prose(diagnosis))]]);
        page.line("");
    }
    // Mismatches first (V13), then what could not be read.
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| match check.verdict {
        Verdict::Fail => 0,
        Verdict::Unknown => 1,
        Verdict::Pass => 2,
        Verdict::Skipped => 3,
    });
    page.table(&["", "check", "expected", "observed", "what to do", "rule"], sorted.into_iter().map(check));
}

fn check(check: &Check) -> Vec<String> {
    let verdict = match check.verdict {
        Verdict::Pass => "✓ agrees",
        Verdict::Fail => "✗ **differs**",
        Verdict::Unknown => "? unknown",
        Verdict::Skipped => "– skipped",
    };
    let todo = [check.hint.clone(), check.action.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let owner = check.owner.filter(|_| check.verdict == Verdict::Fail).map_or(String::new(), |o| format!("{o}: "));
    vec![
        verdict.to_owned(),
        prose(&check.title()),
        prose(&check.expected),
        prose(&check.observed),
        if todo.is_empty() { String::new() } else { format!("{owner}{}", prose(&todo)) },
        prose(&check.rule),
    ]
}

pub(super) fn states(page: &mut Page, story: &Story) {
    if story.states.is_empty() {
        return;
    }
    page.section("Node and cleaning");
    let strip = |spans: &mut dyn Iterator<Item = &StateSpan>| {
        let words: Vec<String> =
            spans.map(|s| format!("{} {}", prose(s.state.as_str()), span(seconds(s.since, s.until)))).collect();
        words.join(" → ")
    };
    let mut rows = vec![vec!["all states".to_owned(), strip(&mut story.states.iter())]];
    if let Some(cleaning) = &story.cleaning {
        let own = &mut story.states.iter().filter(|s| s.phase == Some(Phase::Cleaning));
        rows.push(vec!["while cleaning".to_owned(), strip(own)]);
        let attempts = format!("{} of {}", cleaning.attempt, cleaning.max_attempts);
        rows.push(vec!["clean attempts".to_owned(), attempts]);
        let deadline = cleaning.deadline.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        rows.push(vec!["cleaning deadline".to_owned(), deadline]);
        if let Some(failure) = &cleaning.last_failure {
            rows.push(vec!["a clean failed".to_owned(), prose(failure)]);
        }
    }
    page.table(&["", ""], rows);
}

/// One row for all requests of a phase that are alike, in the order of the first of them.
pub(super) fn requests(page: &mut Page, story: &Story) {
    let mut rows: Vec<(Phase, &str, &str, &str, u32)> = Vec::new();
    for step in &story.steps {
        for asked in &step.requests {
            let (system, request, answer) = (asked.system.as_str(), asked.request.as_str(), asked.answer.as_str());
            match rows.iter_mut().find(|r| (r.0, r.1, r.2, r.3) == (step.phase, system, request, answer)) {
                Some(row) => row.4 += asked.times,
                None => rows.push((step.phase, system, request, answer, asked.times)),
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.section("Requests made");
    let more: u32 = step_sum(story);
    let rows = rows.into_iter().map(|(phase, system, request, answer, times)| {
        vec![phase.label().to_owned(), prose(system), code(request), prose(answer), times.to_string()]
    });
    page.table(&["phase", "system", "request", "answer", "times"], rows);
    if !story.interruptions.is_empty() {
        page.line("\nWhat an attempt asked that an interruption cut off is not known, and not in this list.");
    }
    if more > 0 {
        page.line(&format!("\nAnd {more} more that were not kept one by one."));
    }
}

fn step_sum(story: &Story) -> u32 {
    story.steps.iter().map(|step| step.requests_more).sum()
}
