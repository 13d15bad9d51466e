//! What headless commands print: lines for people, JSON objects for scripts.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::SubmitError;
use crate::domain::compare::Comparison;
use crate::domain::event::{Body, Event, Observation, Outcome, RunRecord};
use crate::domain::failure::Failure;
use crate::domain::ids::RunId;
use crate::domain::lines::{diff, has_lines, squeezed};
use crate::domain::queue::Queued;
use crate::domain::run_view::{PhaseStatus, RunView};
use crate::domain::text::neutralize;
use crate::domain::usual::{Figure, Figures, Part, phase_s, run_s};

/// Prints a line. A reader that went away (a closed pipe) ends the printing, not the run.
pub fn line(text: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

/// Prints words that are no whole line, such as a question.
pub fn words(text: &str) {
    let mut out = io::stdout().lock();
    write!(out, "{text}").and_then(|()| out.flush()).ok();
}

/// Prints one JSON object.
pub fn object(value: &Value) {
    line(&value.to_string());
}

/// A record as one line of `--json`: journal events by their name, observations as `{"event":"observation", …}`. The end
/// of a run is told by [`finished`] alone.
pub fn record(host: &str, record: &RunRecord) -> Option<Value> {
    if matches!(&record.body, Body::Journal(Event::Finished { .. })) {
        return None;
    }
    let mut value = serde_json::to_value(record).ok()?;
    let map = value.as_object_mut()?;
    map.insert("host".to_owned(), host.into());
    if matches!(record.body, Body::Observation(_)) {
        map.insert("event".to_owned(), "observation".into());
    }
    Some(value)
}

/// The last line of a host in `--json`: a contract.
pub fn finished(run: RunId, host: &str, status: &str, failure: Option<&Failure>) -> Value {
    json!({ "event": "finished", "run": run, "host": host, "status": status, "failure": failure.map(failure_fields) })
}

/// That a host is not enrolled now, in `--json`.
pub fn refused(host: &str, refusal: &SubmitError) -> Value {
    json!({
        "event": "refused", "host": host, "code": refusal.code(),
        "message": refusal.to_string(), "action": refusal.action(),
    })
}

/// How long a run and its phases took beside what they usually take, in `--json`. What too few runs are known of is null.
pub fn usual(run: RunId, host: &str, view: &RunView, figures: &Figures, now: Timestamp) -> Value {
    let told = |took: Option<u64>, figure: Option<Figure>, longer: bool| {
        json!({
            "took_s": took, "usually_s": figure.map(|f| f.seconds), "runs": figure.map(|f| f.runs),
            "of": figure.map(|f| f.like), "longer_than_usual": longer,
        })
    };
    let phases = view.phases.iter().map(|phase| {
        let (took, figure) = (phase_s(phase, now), figures.get(Part::Phase(phase.phase)));
        (phase.phase.as_str().to_owned(), told(took, figure, figures.exceeded(phase, now).is_some()))
    });
    let whole = told(run_s(view, now), figures.get(Part::Run), figures.exceeded_by_run(view, now).is_some());
    let phases: serde_json::Map<String, Value> = phases.collect();
    json!({ "event": "usual", "run": run, "host": host, "whole": whole, "phases": phases })
}

/// Two runs side by side, in `--json`, without anything that a terminal could act on.
pub fn comparison(compared: &Comparison) -> Value {
    let (differing, rows) = compared.differing();
    let mut value = json!({ "event": "compared", "rows": rows, "differing": differing });
    if let (Value::Object(all), Ok(Value::Object(told))) = (&mut value, serde_json::to_value(compared)) {
        all.extend(told.into_iter().map(|(key, told)| (key, harmless(told))));
    }
    value
}

fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => neutralize(&text).into(),
        Value::Array(all) => all.into_iter().map(harmless).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, harmless(value))).collect(),
        other => other,
    }
}

pub fn failure_fields(failure: &Failure) -> Value {
    json!({
        "code": failure.code,
        "phase": failure.phase,
        "owner": failure.owner,
        "retryable": failure.retryable,
        "message": failure.message,
        "action": failure.action,
        "evidence": failure.evidence,
    })
}

/// What of a record a person follows on a plain terminal; most records say nothing here.
pub fn sentence(record: &RunRecord) -> Option<String> {
    let text = match &record.body {
        Body::Observation(observation) => match observation {
            Observation::PhaseStarted { phase, attempt: 1 } => format!("{}: begins", phase.label()),
            Observation::PhaseStarted { phase, attempt } => format!("{}: attempt {attempt}", phase.label()),
            Observation::PhaseSkipped { phase, why } => format!("{}: skipped, {why}", phase.label()),
            Observation::PhaseDone { phase, note } => format!("{}: done, {note}", phase.label()),
            Observation::Warned { phase, message } => format!("{}: warning: {message}", phase.label()),
            Observation::AttemptFailed { attempt, failure, .. } => {
                format!("{}: attempt {attempt} failed: {}", failure.phase.label(), failure.message)
            }
            Observation::Note { system, text } => format!("{system}: {text}"),
            Observation::Wrote { system, target, what, before, after } if has_lines(before, after) => {
                format!("{system}: {target}: {what} → {}", squeezed(after))
            }
            Observation::Wrote { system, target, what, before, after } => match before.is_empty() {
                true => format!("{system}: {target}: {what} → {after}"),
                false => format!("{system}: {target}: {what} {before} → {after}"),
            },
            Observation::Resumed { by } => format!("was interrupted, goes on under {by}"),
            Observation::Requests { .. }
            | Observation::Stopped { .. }
            | Observation::Outlived
            | Observation::Attempt { .. }
            | Observation::Links { .. }
            | Observation::Verified { .. }
            | Observation::Node { .. }
            | Observation::Cleaning { .. } => return None,
        },
        Body::Journal(Event::TimerSet { reason, .. }) => format!("{}: waiting: {}", reason.phase.label(), reason.text),
        Body::Journal(Event::CancelRequested { by }) => format!("cancel asked for by {by}"),
        Body::Journal(_) => return None,
    };
    Some(neutralize(&text).into_owned())
}

/// Where a run stands that has not begun, and what holds it.
pub fn place(queued: &Queued) -> String {
    format!("queued at place {}: {}", queued.place, queued.reason)
}

/// The failure as a person reads it: fact, owner, action.
pub fn failure_lines(failure: &Failure) -> Vec<String> {
    vec![
        format!("{} in {} ({})", failure.code, failure.phase.label(), failure.owner),
        format!("  {}", neutralize(&failure.message)),
        format!("  → {}", neutralize(&failure.action)),
    ]
}

/// A whole run on a page.
pub fn page(view: &RunView, figures: &Figures, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let request = view.request.as_deref();
    let host = request.map_or("?", |r| r.host.as_str());
    let by = request.map_or("?", |r| r.submitted_by.as_str());
    let run = view.run.map_or(String::new(), |run| run.to_string());
    lines.push(format!("run {run}  {}  {}  by {}", neutralize(host), view.state().as_str(), neutralize(by)));
    let seconds = |seconds| span(jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)));
    if let (Some(took), Some(figure)) = (run_s(view, now), figures.get(Part::Run)) {
        let mark = if figure.is_far_below(took) { "  ! longer than usual" } else { "" };
        let usually = format!("usually {}, of {} runs {}", seconds(figure.seconds), figure.runs, figure.like.words());
        lines.push(format!("  took {}, {usually}{mark}", seconds(took)));
    }
    for phase in &view.phases {
        let (glyph, word) = match phase.status {
            PhaseStatus::Pending => ("○", "not yet"),
            PhaseStatus::Running => ("»", "running"),
            PhaseStatus::Done => ("✓", "done"),
            PhaseStatus::Warned => ("!", "warned"),
            PhaseStatus::Skipped => ("–", "skipped"),
            PhaseStatus::Failed => ("✗", "failed"),
            PhaseStatus::Cancelled => ("x", "cancelled"),
        };
        let took = match (phase.started_at, phase.ended_at) {
            (Some(start), end) => span(end.unwrap_or(now).duration_since(start)),
            (None, _) => String::new(),
        };
        let usually =
            figures.get(Part::Phase(phase.phase)).map(|figure| format!("usually {}", seconds(figure.seconds)));
        let usually = usually.filter(|_| phase.status != PhaseStatus::Skipped).unwrap_or_default();
        let far = figures.exceeded(phase, now).map_or("", |_| "! longer than usual  ");
        let note = neutralize(&phase.note);
        let line = format!("  {glyph} {word:<9} {:<15} {took:>7}  {usually:<16}  {far}{note}", phase.phase.label());
        lines.push(line.trim_end().to_owned());
    }
    if let Some(wait) = view.wait.as_ref().filter(|_| view.outcome.is_none()) {
        let gives_up = wait
            .reason
            .gives_up_at
            .map_or(String::new(), |at| format!(", gives up in {}", span(at.duration_since(now))));
        lines.push(format!(
            "waiting for {}, since {}{gives_up}",
            neutralize(&wait.reason.text),
            span(now.duration_since(wait.since))
        ));
    }
    if !view.writes.is_empty() {
        lines.push("changed:".to_owned());
        for write in &view.writes {
            let is_text = has_lines(&write.before, &write.after);
            let change = if is_text { String::new() } else { format!(" {} → {}", write.before, write.after) };
            let text = format!("  {}: {}: {}{change}", write.system, write.target, write.what);
            lines.push(neutralize(&text).into_owned());
            if is_text {
                let changes = diff(&write.before, &write.after);
                lines.extend(changes.into_iter().map(|(sign, line)| format!("    {} {line}", sign.as_str())));
            }
        }
    }
    if let Some(failure) = view.failure() {
        lines.extend(failure_lines(failure));
    }
    lines.extend(cancelled_because(view).map(|why| neutralize(&format!("cancelled: {why}")).into_owned()));
    lines
}

/// Why a run was cancelled that nobody cancelled.
pub fn cancelled_because(view: &RunView) -> Option<&str> {
    match &view.outcome {
        Some(Outcome::Cancelled { why, .. }) => why.as_deref(),
        _ => None,
    }
}

/// A length of time as `7:12` or `1:02:03`; a negative one is nothing.
pub fn span(length: jiff::SignedDuration) -> String {
    let seconds = length.as_secs().max(0);
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds % 3600 / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::failure::FailureCode;
    use crate::domain::phase::Phase;

    #[test]
    fn the_last_line_of_a_host_has_the_fields_of_the_contract() {
        let failure = Failure::new(FailureCode::LinkAllDown, Phase::Inspection, "m", "a");
        let run: RunId = "0193b7c6-0000-7000-8000-000000000001".parse().unwrap();
        let value = finished(run, "gpu-1", "failed", Some(&failure));
        let keys: Vec<&str> = value["failure"].as_object().unwrap().keys().map(String::as_str).collect();
        for key in ["code", "phase", "owner", "retryable", "message", "action", "evidence"] {
            assert!(keys.contains(&key), "{key}");
        }
        assert_eq!(value["failure"]["code"], "LINK_ALL_DOWN");
        assert_eq!(value["failure"]["owner"], "ONSITE");
        assert!(finished(run, "gpu-1", "succeeded", None)["failure"].is_null());
    }

    #[test]
    fn an_observation_is_an_event_of_its_own_kind() {
        let observed = RunRecord {
            run: "0193b7c6-0000-7000-8000-000000000001".parse().unwrap(),
            n: 3,
            at: Timestamp::UNIX_EPOCH,
            body: Body::Observation(Observation::Note { system: "ironic".into(), text: "x\u{1b}[2J".into() }),
        };
        let value = record("gpu-1", &observed).unwrap();
        assert_eq!(
            (&value["event"], &value["observed"], &value["host"]),
            (&json!("observation"), &json!("note"), &json!("gpu-1"))
        );
        assert_eq!(sentence(&observed).unwrap(), "ironic: x\u{fffd}[2J");
    }
}
