//! What a run does or waits for at this moment, or how it ended: the sentence that a person reads first.

use ratatui::layout::Rect;

use crate::domain::event::{Outcome, WaitKind};
use crate::domain::failure::Failure;
use crate::domain::run_view::{PhaseStatus, RunState, RunView, WaitView, activity_words};
use crate::domain::usual;
use crate::tui::glyphs::Status;
use crate::tui::model::Model;
use crate::tui::model::run_screen::elapsed_s;
use crate::tui::text;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, pieces_width, row};

/// A line: the sign or arrow before it, and its pieces.
pub struct NowLine {
    pub lead: Lead,
    pub pieces: Vec<Piece<'static>>,
}

/// What stands before a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    None,
    Sign(Status),
    Arrow,
}

/// The lines, in at most `width` columns each, lead not counted.
pub fn lines(model: &Model, width: u16) -> Vec<NowLine> {
    let Some(view) = model.open_run() else { return Vec::new() };
    let width = usize::from(width);
    let mut out = match &view.outcome {
        Some(Outcome::Failed { failure }) => failed(failure, width, model.height),
        Some(Outcome::Succeeded { .. }) => succeeded(view, width),
        Some(Outcome::Cancelled { by, left, why }) => cancelled(by, left, why.as_deref(), width),
        None => under_way(model, view, width),
    };
    out.extend(slow(model, view, width));
    // The latest two: the events have them all.
    let warnings: Vec<_> = view.warnings().collect();
    let (most, rows) = if model.height >= 28 { (2, 2) } else { (1, 1) };
    for (phase, warning) in warnings.into_iter().rev().take(most) {
        let text = format!("{}: {warning}", phase.label());
        push_capped(&mut out, Lead::Sign(Status::Warned), &text, width, Meaning::Warn, rows);
    }
    out
}

/// Draws the lines, with a line of air above where the area has it.
pub fn draw(pen: &mut Pen, model: &Model, area: Rect) {
    let lines = lines(model, area.width.saturating_sub(4));
    let air = usize::from(usize::from(area.height) > lines.len());
    for (at, line) in lines.iter().enumerate() {
        let target = row(area, at + air);
        match line.lead {
            Lead::None => {}
            Lead::Sign(status) => {
                pen.sign(target, 1, status);
            }
            Lead::Arrow => {
                let arrow = pen.skin.glyphs.arrow();
                pen.write(target, 1, arrow, Meaning::Action);
            }
        }
        pen.pieces(target, 3, &line.pieces);
    }
}

fn push(out: &mut Vec<NowLine>, lead: Lead, text: &str, width: usize, meaning: Meaning) {
    push_capped(out, lead, text, width, meaning, usize::MAX);
}

fn push_capped(out: &mut Vec<NowLine>, lead: Lead, text: &str, width: usize, meaning: Meaning, most: usize) {
    let mut lead = lead;
    for line in text::wrap_to(text, width, most) {
        out.push(NowLine { lead, pieces: vec![piece(line, meaning)] });
        lead = Lead::None;
    }
}

fn failed(failure: &Failure, width: usize, height: u16) -> Vec<NowLine> {
    let mut out = Vec::new();
    let again = if failure.retryable { "a retry may help" } else { "a retry alone won't help" };
    let mut pieces = vec![
        piece(failure.code.as_str(), Meaning::Fail),
        piece(format!(" in {} · for ", failure.phase.label()), Meaning::Muted),
        piece(failure.owner.as_str(), Meaning::Strong),
    ];
    if pieces_width(&pieces) + again.len() + 3 <= width {
        pieces.push(piece(format!(" · {again}"), Meaning::Muted));
    }
    out.push(NowLine { lead: Lead::Sign(Status::Failed), pieces });
    // A sentence may name eight mismatches: the panes below keep their room, and the diff has them all.
    let most = if height >= 28 { 6 } else { 4 };
    push_capped(&mut out, Lead::None, &failure.message, width, Meaning::Fail, most);
    push_capped(&mut out, Lead::Arrow, &failure.action, width, Meaning::Action, most);
    if height >= 28 {
        for evidence in failure.evidence.iter().take(2) {
            let text = format!("{} · {}", evidence.source, evidence.read);
            let line = text::cut(&text, width, text::Keep::Start);
            out.push(NowLine { lead: Lead::None, pieces: vec![piece(line, Meaning::Muted)] });
        }
    }
    out
}

fn succeeded(view: &RunView, width: usize) -> Vec<NowLine> {
    let mut out = Vec::new();
    let took = text::clock(elapsed_s(view, view.finished_at.unwrap_or_default()));
    let result = view.result();
    let again = result.is_some_and(|r| r.already_enrolled);
    let what = if again { "was enrolled already, nothing of Ironic was changed" } else { "enrolled" };
    push(&mut out, Lead::Sign(Status::Ok), &format!("{what} · took {took}"), width, Meaning::Ok);
    let mut facts = Vec::new();
    if let Some(node) = result.and_then(|r| r.node) {
        facts.push(format!("node {node}"));
    }
    if let Some(class) = result.and_then(|r| r.platform_class.clone()) {
        facts.push(class);
    }
    facts.push(text::count(view.writes.len(), "change"));
    push(&mut out, Lead::None, &facts.join(" · "), width, Meaning::Muted);
    if result.is_some_and(|r| !r.qualifying) {
        let text = "without an inspection this proves nothing: a diagnostic bypass";
        push(&mut out, Lead::Sign(Status::Warned), text, width, Meaning::Warn);
    }
    out
}

fn cancelled(by: &str, left: &[String], why: Option<&str>, width: usize) -> Vec<NowLine> {
    let mut out = Vec::new();
    let text = why.map_or_else(|| format!("cancelled by {by}"), |why| format!("cancelled: {why}"));
    push_capped(&mut out, Lead::Sign(Status::Skipped), &text, width, Meaning::Text, 2);
    if left.is_empty() {
        push(&mut out, Lead::None, "nothing was left in place", width, Meaning::Muted);
    }
    for thing in left {
        push(&mut out, Lead::None, &format!("left in place: {thing}"), width, Meaning::Text);
    }
    out
}

fn under_way(model: &Model, view: &RunView, width: usize) -> Vec<NowLine> {
    let mut out = Vec::new();
    if let Some(cancel) = &view.cancel {
        let text = format!("{} asked for a cancel {}", cancel.by, text::ago(model.moment(), cancel.at));
        push(&mut out, Lead::Sign(Status::Warned), &text, width, Meaning::Warn);
    }
    match view.state() {
        RunState::Queued => queued(model, view, width, &mut out),
        _ => match (&view.wait, view.activity()) {
            (Some(wait), _) => waiting(model, view, wait, width, &mut out),
            (None, Some(activity)) => {
                let words = activity_words(&activity.name);
                let at_work = text::clock(text::seconds(activity.started_at, model.moment()));
                if let Some(retry) = &activity.retry {
                    let failed = &retry.failure;
                    let (sign, meaning, text) = match failed.code.is_outage() {
                        // It costs no attempt: what is said is what is waited for.
                        true => (
                            Status::Waiting,
                            Meaning::Strong,
                            format!("waiting, no attempt is lost: {}", failed.message),
                        ),
                        false => {
                            let n = format!("attempt {} of {}", activity.attempt, activity.max_attempts);
                            (Status::Warned, Meaning::Warn, format!("{n} failed: {}", failed.message))
                        }
                    };
                    push(&mut out, Lead::Sign(sign), &text, width, meaning);
                    let again = format!("{words} again in {}", text::left(model.moment(), retry.at));
                    push(&mut out, Lead::None, &again, width, Meaning::Muted);
                } else {
                    let attempt = match activity.attempt {
                        2.. => format!(" · attempt {} of {}", activity.attempt, activity.max_attempts),
                        _ => String::new(),
                    };
                    let text = format!("{words} · {at_work}{attempt}");
                    push(&mut out, Lead::Sign(Status::Running), &text, width, Meaning::Strong);
                }
            }
            (None, None) => push(&mut out, Lead::Sign(Status::Running), "between two steps", width, Meaning::Text),
        },
    }
    out
}

/// That the phase under way takes far longer than usual: past that time something is wrong that nothing says yet.
fn slow(model: &Model, view: &RunView, width: usize) -> Option<NowLine> {
    let (screen, now) = (model.run_screen()?, model.moment());
    let phase = view.phase().filter(|phase| phase.status == PhaseStatus::Running)?;
    let figure = model.figures(&screen.host).exceeded(phase, now)?;
    let took = text::clock(usual::phase_s(phase, now)?);
    let text = format!("longer than usual: {} {took}, usually {}", phase.phase.label(), text::rough(figure.seconds));
    let text = text::cut(&text, width, text::Keep::Start);
    Some(NowLine { lead: Lead::Sign(Status::Warned), pieces: vec![piece(text, Meaning::Warn)] })
}

/// At which place it stands and what holds it; what it would do is in the phases.
fn queued(model: &Model, view: &RunView, width: usize, out: &mut Vec<NowLine>) {
    let Some(queued) = view.run.and_then(|run| model.queue.get(&run)) else {
        return push(out, Lead::Sign(Status::Queued), "queued, not begun yet", width, Meaning::Text);
    };
    let place = format!("queued at place {} of {}", queued.place, model.queue.len());
    push(out, Lead::Sign(Status::Queued), &place, width, Meaning::Strong);
    push(out, Lead::None, &queued.reason.to_string(), width, Meaning::Text);
}

/// What for, since when, when the next look is, and when patience ends: never a bare spinner.
fn waiting(model: &Model, view: &RunView, wait: &WaitView, width: usize, out: &mut Vec<NowLine>) {
    push(out, Lead::Sign(Status::Waiting), &wait_words(wait), width, Meaning::Strong);
    let since = match view.submitted_at() {
        Some(start) => format!("since {}", text::clock(text::seconds(start, wait.since))),
        None => format!("for {}", text::clock(text::seconds(wait.since, model.moment()))),
    };
    let mut pieces = vec![piece(since, Meaning::Muted)];
    let look = match (wait.until, view.activity()) {
        (Some(until), _) => format!(" · looks in {}", text::left(model.moment(), until)),
        (None, Some(activity)) => format!(" · {}", activity_words(&activity.name)),
        (None, None) => " · looks now".to_owned(),
    };
    pieces.push(piece(look, Meaning::Muted));
    if let Some(end) = wait.reason.gives_up_at {
        pieces.push(piece(" · gives up in ", Meaning::Muted));
        pieces.push(piece(text::left(model.moment(), end), meaning_of(Status::Waiting)));
    }
    out.push(NowLine { lead: Lead::None, pieces });
}

/// What is waited for, in words; the reason's own text says what was seen last.
fn wait_words(wait: &WaitView) -> String {
    let text = &wait.reason.text;
    let what = match wait.reason.kind {
        WaitKind::LinkGuard => return format!("waiting for a frontend link: {text}"),
        WaitKind::NodeLock => "waiting for the lock of the node",
        WaitKind::Cleaning => "waiting for the clean to end",
        WaitKind::Rerun => "waiting before the next attempt",
        WaitKind::Proof => "waiting for the fleet view of Ironic",
        WaitKind::Staged => "waiting for the BMC to schedule its job",
        WaitKind::Applied => "the host boots to apply staged settings",
        // These say it themselves.
        WaitKind::StableState | WaitKind::PowerOn | WaitKind::Inspection => return text.clone(),
    };
    format!("{what} · {text}")
}
