//! What `y` puts on the clipboard: plain text that reads well in a ticket.

use std::fmt::Write;

use crate::domain::compare::{Cell, Comparison, Mark, Side};
use crate::domain::failure::Failure;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;
use crate::domain::usual::{self, Figures, Part};
use crate::domain::verify::{Verdict, Verification};
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, unit_text};
use crate::tui::model::place::Place;
use crate::tui::model::run_screen::{DiffRow, RunPane, diff_rows};
use crate::tui::text;
use crate::tui::widgets::cable::{cable_name, far_end};

/// Copies what the focused thing says.
pub(super) fn copy(model: &mut Model) -> Vec<Effect> {
    let text = match (model.run_screen(), model.open_run(), model.comparison()) {
        (_, _, Some(compared)) => compared_text(&compared),
        (Some(screen), Some(view), None) => {
            run_text(&screen.host, view, screen.focus(view), screen.pinned, &model.figures(&screen.host))
        }
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
    } else if let Some(refusal) = host.refused() {
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

fn run_text(host: &str, view: &RunView, pane: RunPane, pinned: bool, figures: &Figures) -> String {
    let id = view.run.map(|r| r.to_string()).unwrap_or_default();
    let head = format!("{host} · run {id}");
    let body = match (pane, view.failure(), &view.verification) {
        // What a person wants from a failed run is its failure, unless another pane was chosen.
        (_, Some(failure), _) if !pinned => failure_text(failure),
        (RunPane::Diff, _, Some(v)) => diff_text(&v.verification),
        (RunPane::Links, ..) if view.guard().is_some() => links_text(view),
        (RunPane::Phases, ..) => phases_text(view, figures),
        (_, Some(failure), _) => failure_text(failure),
        _ => events_text(view),
    };
    format!("{head}\n{body}")
}

/// Every check with its verdict and its rule, the mismatches first.
fn diff_text(verification: &Verification) -> String {
    let failed = verification.failed().count();
    let mut out = format!("{failed} of {} checks differ", verification.checks.len());
    if let Some(diagnosis) = &verification.diagnosis {
        let _ = write!(out, "\n{diagnosis}");
    }
    for row in diff_rows(verification, true) {
        let DiffRow::Check(at) = row else { continue };
        let check = &verification.checks[at];
        let (verdict, observed) = match check.verdict {
            Verdict::Fail => ("differs", check.observed.as_str()),
            Verdict::Pass => ("agrees", check.observed.as_str()),
            Verdict::Unknown => ("passes", "not reported"),
            Verdict::Skipped => ("skipped", "not asked for"),
        };
        let (title, expected) = (check.title(), &check.expected);
        let _ = write!(out, "\n{verdict}  {title}: expected {expected}, observed {observed}");
        if !check.rule.is_empty() {
            let _ = write!(out, " ({})", check.rule);
        }
        if let Some(action) = &check.action {
            let _ = write!(out, "\n  {action}");
        }
    }
    out
}

fn links_text(view: &RunView) -> String {
    let Some(guard) = view.guard() else { return String::new() };
    let lines = guard.links.iter().map(|link| {
        let reading = &link.reading;
        let mut parts = vec![format!("{} {}", reading.interface, reading.state.as_str())];
        match &reading.cable {
            Some(cable) => {
                parts.push(far_end(cable));
                parts.push(format!(
                    "cable {}",
                    Some(cable_name(cable)).filter(|name| !name.is_empty()).unwrap_or("–".into())
                ));
            }
            None => parts.push("no cable in NetBox".to_owned()),
        }
        parts.extend(reading.mac.map(|mac| mac.to_string()));
        parts.extend(reading.slot.clone());
        parts.join(" · ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn phases_text(view: &RunView, figures: &Figures) -> String {
    let until = view.finished_at.or(view.last_at).unwrap_or_default();
    let lines = view.phases.iter().filter_map(|phase| {
        let took = text::clock(usual::phase_s(phase, until)?);
        let figure =
            figures.get(Part::Phase(phase.phase)).map(|figure| format!(", usually {}", text::clock(figure.seconds)));
        let far = figures.exceeded(phase, until).map_or("", |_| ", longer than usual");
        Some(format!("{}: {took}{}{far}", phase.phase.label(), figure.unwrap_or_default()))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Two runs: what differs, both sides of it.
fn compared_text(compared: &Comparison) -> String {
    let id = |side: &Side| format!("{} · run {}", side.host, side.run.map(|run| run.to_string()).unwrap_or_default());
    let mut out = format!("1  {}\n2  {}", id(&compared.left), id(&compared.right));
    for section in &compared.sections {
        let _ = write!(out, "\n{}: {} of {} differ", section.topic.title(), section.differing(), section.rows.len());
        for row in section.rows.iter().filter(|row| row.mark != Mark::Same) {
            let side = |cell: &Option<Cell>| cell.as_ref().map_or("–".to_owned(), |cell| cell.text.clone());
            let _ = write!(out, "\n  {}: 1 {} / 2 {}", row.name, side(&row.left), side(&row.right));
        }
    }
    out
}

fn events_text(view: &RunView) -> String {
    let lines = view.events.iter().map(|e| format!("{}  {}  {}", e.at, e.system, e.text));
    lines.collect::<Vec<_>>().join("\n")
}
