//! The events of a run, the newest first.

use ratatui::layout::Rect;

use crate::domain::run_view::{EventKind, EventLine, RunView};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, piece};

/// What stands at the end of the heading.
pub fn end(view: &RunView) -> Vec<Piece<'static>> {
    let count = text::count(view.events.len(), "event");
    match view.writes.len() {
        0 => vec![piece(count, Meaning::Muted)],
        n => vec![piece(format!("{count} · {}", text::count(n, "change")), Meaning::Muted)],
    }
}

/// One event: time since the start, where, what.
pub fn line(pen: &mut Pen, view: &RunView, event: &EventLine, line: Rect) {
    let start = view.submitted_at().unwrap_or(event.at);
    pen.column_right(line, 0, 7, &text::clock(text::seconds(start, event.at)), Meaning::Muted);
    let system = if line.width < 76 { 10 } else { 14 };
    pen.column(line, 9, system, &event.system, Meaning::Muted, Keep::Start);
    let meaning = match event.kind {
        EventKind::Info => Meaning::Text,
        EventKind::Wrote => Meaning::Strong,
        EventKind::Done => Meaning::Ok,
        EventKind::Skipped => Meaning::Muted,
        EventKind::Warned => Meaning::Warn,
        EventKind::Failed => Meaning::Fail,
    };
    let at = 9 + system + 1;
    pen.column(line, at, line.width.saturating_sub(at), &event.text, meaning, Keep::Start);
}
