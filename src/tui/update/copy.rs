//! What `y` puts on the clipboard: plain text that reads well in a ticket.

use std::fmt::Write;

use crate::domain::failure::Failure;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;
use crate::domain::verify::{Verdict, Verification};
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, unit_text};
use crate::tui::model::place::Place;
use crate::tui::model::run_screen::RunPane;

/// Copies what the focused thing says.
pub(super) fn copy(model: &mut Model) -> Vec<Effect> {
    let text = match (model.run_screen(), model.open_run()) {
        (Some(screen), Some(view)) => run_text(&screen.host, view, screen.focus(view), screen.pinned),
        _ => match model.target() {
            Some(host) => host_text(host),
            None => return Vec::new(),
        },
    };
    let text: String = text.lines().map(|l| neutralize(l).into_owned()).collect::<Vec<_>>().join("\n");
    vec![Effect::Copy(text)]
}

fn host_text(host: &Host) -> String {
    let place = Place::of(host).0.join(" › ");
    let unit = match host.device.position {
        Some(_) => format!(" U{}", unit_text(host.device.position)),
        None => String::new(),
    };
    let mut out = format!("{} · {place}{unit}", host.device.name);
    if let Some(failure) = host.failure() {
        let _ = write!(out, "\n{}", failure_text(failure));
    } else if let Some(refusal) = &host.refusal {
        let _ = write!(out, "\n{}: {}\n{}", refusal.code, refusal.message, refusal.action);
    }
    out
}

fn failure_text(failure: &Failure) -> String {
    let mut out = format!(
        "{} in {}, for {}\n{}\n{}",
        failure.code,
        failure.phase.label(),
        failure.owner,
        failure.message,
        failure.action
    );
    for evidence in &failure.evidence {
        let _ = write!(out, "\n  {}: {}", evidence.source, evidence.read);
    }
    out
}

fn run_text(host: &str, view: &RunView, pane: RunPane, pinned: bool) -> String {
    let id = view.run.map(|r| r.to_string()).unwrap_or_default();
    let head = format!("{host} · run {id}");
    let body = match (pane, view.failure(), &view.verification) {
        // What a person wants from a failed run is its failure, unless another pane was chosen.
        (_, Some(failure), _) if !pinned => failure_text(failure),
        (RunPane::Diff, _, Some(v)) => diff_text(&v.verification),
        (RunPane::Links, ..) if view.guard().is_some() => links_text(view),
        (_, Some(failure), _) => failure_text(failure),
        _ => events_text(view),
    };
    format!("{head}\n{body}")
}

fn diff_text(verification: &Verification) -> String {
    let failed = verification.failed().count();
    let mut out = format!("{failed} of {} checks differ", verification.checks.len());
    for check in verification.checks.iter().filter(|c| c.verdict == Verdict::Fail) {
        let _ =
            write!(out, "\n{} {}: expected {}, observed {}", check.kind, check.subject, check.expected, check.observed);
        if let Some(action) = &check.action {
            let _ = write!(out, "\n  {action}");
        }
    }
    if let Some(diagnosis) = &verification.diagnosis {
        let _ = write!(out, "\n{diagnosis}");
    }
    out
}

fn links_text(view: &RunView) -> String {
    let Some(guard) = view.guard() else { return String::new() };
    let lines = guard.links.iter().map(|l| {
        let cable = l.reading.cable.as_ref();
        let end = cable.map(|c| format!(" · {} {} · cable {}", c.switch, c.port, c.label.as_deref().unwrap_or("–")));
        format!("{} {}{}", l.reading.interface, l.reading.state.as_str(), end.unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn events_text(view: &RunView) -> String {
    let lines = view.events.iter().map(|e| format!("{}  {}  {}", e.at, e.system, e.text));
    lines.collect::<Vec<_>>().join("\n")
}
