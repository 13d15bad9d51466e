//! Cleaning: attempt n of m, the step that runs, the states over time, the next look and the deadline.

use ratatui::layout::Rect;

use crate::domain::phase::Phase;
use crate::domain::provision::{Power, ProvisionState};
use crate::domain::run_view::{PhaseStatus, RunView, StateSpan};
use crate::tui::glyphs::Status;
use crate::tui::model::run_screen::Row;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, piece, pieces_width};

/// What stands at the end of the heading.
pub fn end(pen: &Pen, view: &RunView) -> Vec<Piece<'static>> {
    let Some(cleaning) = &view.cleaning else { return vec![piece("not yet", Meaning::Muted)] };
    let attempt = piece(format!("attempt {} of {}", cleaning.attempt, cleaning.max_attempts), Meaning::Muted);
    if view.phase_of(Phase::Cleaning).status != PhaseStatus::Running {
        return vec![attempt];
    }
    let left = format!("{} left", text::left(pen.now, cleaning.deadline));
    vec![attempt, piece(" · ", Meaning::Muted), piece(left, Meaning::Wait)]
}

pub fn line(pen: &mut Pen, view: &RunView, which: Row, line: Rect) {
    match which {
        Row::Step => step(pen, view, line),
        Row::States => states(pen, view, line),
        Row::Looks => looks(pen, view, line),
        Row::LastFailure => {
            let Some(failure) = view.cleaning.as_ref().and_then(|c| c.last_failure.as_ref()) else { return };
            pen.sign(line, 2, Status::Warned);
            let text = format!("last failure: {failure}");
            pen.column(line, 4, line.width.saturating_sub(4), &text, Meaning::Warn, Keep::Start);
        }
        _ => {}
    }
}

fn step(pen: &mut Pen, view: &RunView, line: Rect) {
    let Some(node) = &view.node else {
        pen.write(line, 2, "the node was not looked at yet", Meaning::Muted);
        return;
    };
    let power = match node.power {
        Power::On => "powered on",
        Power::Off => "powered off",
        Power::Unknown => "power unknown",
    };
    let mut pieces = vec![piece(node.state.to_string(), state_meaning(&node.state))];
    if let Some(step) = &node.clean_step {
        pieces.push(piece(" · step ", Meaning::Muted));
        pieces.push(piece(step.clone(), Meaning::Strong));
    }
    pieces.push(piece(format!(" · {power}"), Meaning::Muted));
    if let Some(holder) = &node.reservation {
        pieces.push(piece(format!(" · locked by {holder}"), Meaning::Warn));
    }
    let seen = piece(format!(" · seen {}", text::ago(pen.now, node.at)), Meaning::Muted);
    if pieces_width(&pieces) + text::width(&seen.text) + 2 < usize::from(line.width) {
        pieces.push(seen);
    }
    pen.pieces(line, 2, &pieces);
}

/// The states with how long each was seen, the latest always in view.
fn states(pen: &mut Pen, view: &RunView, line: Rect) {
    let spans: Vec<&StateSpan> = view.states.iter().filter(|s| s.phase == Some(Phase::Cleaning)).collect();
    let arrow = format!(" {} ", pen.skin.glyphs.step());
    let words: Vec<(String, String)> =
        spans.iter().map(|s| (s.state.to_string(), text::rough(text::seconds(s.since, s.until)))).collect();
    let width = |from: usize| -> usize {
        let parts = words[from..].iter().map(|(s, t)| text::width(s) + 1 + text::width(t)).sum::<usize>();
        parts + 3 * (words.len() - from).saturating_sub(1) + if from > 0 { 2 } else { 0 }
    };
    let room = usize::from(line.width.saturating_sub(3));
    let mut from = 0;
    while from + 1 < words.len() && width(from) > room {
        from += 1;
    }
    let mut at = if from > 0 { pen.write(line, 2, "… ", Meaning::Muted) } else { 2 };
    for (n, (state, time)) in words.iter().enumerate().skip(from) {
        if n > from {
            at = pen.write(line, at, &arrow, Meaning::Muted);
        }
        at = pen.write(line, at, state, state_meaning(&spans[n].state));
        at = pen.write(line, at + 1, time, Meaning::Muted);
    }
}

fn state_meaning(state: &ProvisionState) -> Meaning {
    match state {
        ProvisionState::Available => Meaning::Ok,
        ProvisionState::CleanFailed | ProvisionState::Error => Meaning::Fail,
        state if !state.is_stable() => Meaning::Run,
        _ => Meaning::Text,
    }
}

fn looks(pen: &mut Pen, view: &RunView, line: Rect) {
    let Some(cleaning) = &view.cleaning else { return };
    let running = view.phase_of(Phase::Cleaning).status == PhaseStatus::Running;
    let mut at = 2;
    if running {
        at = pen.write(line, at, "next look in ", Meaning::Muted);
        at = pen.write(line, at, &text::left(pen.now, cleaning.next_look_at), Meaning::Text) + 3;
    }
    let pauses: Vec<String> = cleaning.pauses_s.iter().map(|s| text::rough(*s)).collect();
    if !pauses.is_empty() {
        let arrow = format!(" {} ", pen.skin.glyphs.step());
        pen.write(line, at, &format!("looks after {}", pauses.join(&arrow)), Meaning::Muted);
    }
}
