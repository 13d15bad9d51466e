//! The phases of a run: one line for all of them, one line each, or a strip of signs.

use ratatui::layout::Rect;

use crate::domain::run_view::{PhaseStatus, PhaseView, RunState, RunView};
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, meaning_of, row};

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
pub fn duration(phase: &PhaseView, pen: &Pen) -> String {
    let Some(from) = phase.started_at else { return String::new() };
    match (phase.status, phase.ended_at) {
        (PhaseStatus::Running, _) => text::clock(text::seconds(from, pen.now)),
        (_, Some(to)) if text::seconds(from, to) > 0 => text::rough(text::seconds(from, to)),
        _ => String::new(),
    }
}

/// All phases, wrapped.
pub fn wrapped(pen: &mut Pen, view: &RunView, area: Rect) {
    let (mut line, mut at) = (0, 1);
    for phase in &view.phases {
        let time = duration(phase, pen);
        let width = layout::phase_width(phase.phase.label(), &time) as u16;
        if at + width > area.width && at > 1 {
            line += 1;
            at = 1;
        }
        let target = row(area, line);
        let status = status(phase, view);
        pen.sign(target, at, status);
        let next = pen.write(target, at + 2, phase.phase.label(), label_meaning(phase));
        pen.write(target, next + 1, &time, Meaning::Muted);
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

/// One phase with its duration and its note.
pub fn line(pen: &mut Pen, phase: &PhaseView, view: &RunView, line: Rect) {
    let status = status(phase, view);
    pen.sign(line, 0, status);
    pen.write(line, 2, phase.phase.label(), label_meaning(phase));
    let time = duration(phase, pen);
    pen.column_right(line, 17, 6, &time, Meaning::Muted);
    let meaning = match phase.status {
        PhaseStatus::Failed | PhaseStatus::Warned => meaning_of(status),
        _ => Meaning::Muted,
    };
    let note = match (phase.status, phase.attempt, phase.warnings.last()) {
        (PhaseStatus::Running, 2.., _) => format!("attempt {}", phase.attempt),
        (PhaseStatus::Warned, _, Some(warning)) => warning.clone(),
        _ => phase.note.clone(),
    };
    pen.column(line, 25, line.width.saturating_sub(25), &note, meaning, Keep::Start);
}

/// The signs alone, then the name of the phase that counts now.
pub fn strip(pen: &mut Pen, view: &RunView, line: Rect) {
    let mut at = 1;
    for phase in &view.phases {
        at = pen.sign(line, at, status(phase, view));
    }
    at += 2;
    let over = matches!(view.state(), RunState::Succeeded);
    match view.phase() {
        Some(phase) if !over => {
            at = pen.write(line, at, phase.phase.label(), label_meaning(phase));
            let time = duration(phase, pen);
            pen.write(line, at + 1, &time, Meaning::Muted);
        }
        _ => {}
    }
}
