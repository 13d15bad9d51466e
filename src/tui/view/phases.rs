//! The phases of a run: one line for all of them, one line each, or a strip of signs.

use jiff::Timestamp;
use ratatui::layout::Rect;

use crate::domain::run_view::{PhaseStatus, PhaseView, RunState, RunView};
use crate::domain::usual::{Figures, Part};
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, row};

/// The sign of a phase. One that waits for a timer waits; one that works turns.
pub fn status(phase: &PhaseView, view: &RunView) -> Status {
    match phase.status {
        PhaseStatus::Pending => Status::None,
        PhaseStatus::Running => match &view.wait {
            Some(wait) if wait.reason.phase == phase.phase => Status::Waiting,
            _ => Status::Running,
        },
        PhaseStatus::Done => Status::Ok,
        PhaseStatus::Warned => Status::Warned,
        PhaseStatus::Skipped => Status::Skipped,
        PhaseStatus::Failed => Status::Failed,
        PhaseStatus::Cancelled => Status::Skipped,
    }
}

/// How long a phase took or has been at work; nothing for a blink.
pub fn duration(phase: &PhaseView, now: Timestamp) -> String {
    let Some(from) = phase.started_at else { return String::new() };
    match (phase.status, phase.ended_at) {
        (PhaseStatus::Running, _) => text::clock(text::seconds(from, now)),
        (_, Some(to)) if text::seconds(from, to) > 0 => text::rough(text::seconds(from, to)),
        _ => String::new(),
    }
}

/// `usually 9m`, with a sign before it where the phase takes far longer. In short only where it is looked for: at the phase
/// that runs, and at those that took too long.
pub fn usually(phase: &PhaseView, figures: &Figures, now: Timestamp, in_short: bool) -> String {
    if let Some(figure) = figures.exceeded(phase, now) {
        return format!("! usually {}", text::rough(figure.seconds));
    }
    let counts = match phase.status {
        PhaseStatus::Running => true,
        PhaseStatus::Skipped => false,
        PhaseStatus::Pending
        | PhaseStatus::Done
        | PhaseStatus::Warned
        | PhaseStatus::Failed
        | PhaseStatus::Cancelled => !in_short,
    };
    // What takes less than a second is shown nowhere.
    let figure = figures.get(Part::Phase(phase.phase)).filter(|figure| counts && figure.seconds > 0);
    figure.map_or(String::new(), |figure| format!("usually {}", text::rough(figure.seconds)))
}

/// What stands at the end of the heading: which runs the figures are of.
pub fn end(pen: &Pen, view: &RunView, figures: &Figures) -> Vec<Piece<'static>> {
    let slow = view.phases.iter().filter(|phase| figures.exceeded(phase, pen.now).is_some()).count();
    let told = match (slow, figures.get(Part::Run)) {
        (0, Some(figure)) => piece(format!("usual of {} runs {}", figure.runs, figure.like.words()), Meaning::Muted),
        (0, None) if figures.is_empty() => return Vec::new(),
        (0, None) => piece("beside what is usual", Meaning::Muted),
        (n, _) => piece(format!("! {} longer than usual", text::count(n, "phase")), Meaning::Warn),
    };
    vec![told]
}

fn usually_meaning(text: &str) -> Meaning {
    if text.starts_with('!') { Meaning::Warn } else { Meaning::Muted }
}

/// All phases, wrapped.
pub fn wrapped(pen: &mut Pen, view: &RunView, figures: &Figures, area: Rect) {
    let (mut line, mut at) = (0, 1);
    for phase in &view.phases {
        let time = duration(phase, pen.now);
        let usually = usually(phase, figures, pen.now, true);
        let width = layout::phase_width(phase.phase.label(), &time, &usually) as u16;
        if at + width > area.width && at > 1 {
            line += 1;
            at = 1;
        }
        let target = row(area, line);
        let status = status(phase, view);
        pen.sign(target, at, status);
        let next = pen.write(target, at + 2, phase.phase.label(), label_meaning(phase));
        let next = pen.write(target, next + 1, &time, Meaning::Muted);
        pen.write(target, next + 1, &usually, usually_meaning(&usually));
        at += width;
    }
}

fn label_meaning(phase: &PhaseView) -> Meaning {
    match phase.status {
        PhaseStatus::Running => Meaning::Strong,
        PhaseStatus::Failed => Meaning::Fail,
        PhaseStatus::Done | PhaseStatus::Warned => Meaning::Text,
        PhaseStatus::Pending | PhaseStatus::Skipped | PhaseStatus::Cancelled => Meaning::Muted,
    }
}

/// One phase with its duration, what it usually takes, and its note.
pub fn line(pen: &mut Pen, phase: &PhaseView, view: &RunView, figures: &Figures, line: Rect) {
    let status = status(phase, view);
    pen.sign(line, 0, status);
    pen.write(line, 2, phase.phase.label(), label_meaning(phase));
    let time = duration(phase, pen.now);
    pen.column_right(line, 17, 6, &time, Meaning::Muted);
    let usually = usually(phase, figures, pen.now, false);
    // Without a sign the words stand where they stand with one.
    let mut at = if figures.is_empty() { 25 } else { 39 };
    let usually_at = if usually.starts_with('!') { 24 } else { 26 };
    pen.write(line, usually_at, &usually, usually_meaning(&usually));
    if usually.starts_with('!') {
        at = pen.write(line, at, "longer than usual", Meaning::Warn) + 2;
    }
    let meaning = match phase.status {
        PhaseStatus::Failed | PhaseStatus::Warned => meaning_of(status),
        _ => Meaning::Muted,
    };
    let note = match (phase.status, phase.attempt, phase.warnings.last()) {
        (PhaseStatus::Running, 2.., _) => format!("attempt {}", phase.attempt),
        (PhaseStatus::Warned, _, Some(warning)) => warning.clone(),
        _ => phase.note.clone(),
    };
    pen.column(line, at, line.width.saturating_sub(at), &note, meaning, Keep::Start);
}

/// The signs alone, then the name of the phase that counts now.
pub fn strip(pen: &mut Pen, view: &RunView, figures: &Figures, line: Rect) {
    let mut at = 1;
    for phase in &view.phases {
        at = pen.sign(line, at, status(phase, view));
    }
    at += 2;
    let over = matches!(view.state(), RunState::Succeeded);
    match view.phase() {
        Some(phase) if !over => {
            at = pen.write(line, at, phase.phase.label(), label_meaning(phase));
            let time = duration(phase, pen.now);
            let at = pen.write(line, at + 1, &time, Meaning::Muted);
            let usually = usually(phase, figures, pen.now, true);
            pen.write(line, at + 1, &usually, usually_meaning(&usually));
        }
        _ => {}
    }
}
