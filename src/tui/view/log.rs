//! The log pane, kept by tui-logger. Its place is the one thing that decides a frame and is not in the model: the lines
//! live in that crate, and so does the pointer to the one in the middle.

use std::sync::Mutex;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use tui_logger::{ExtLogRecord, LogFormatter, TuiLoggerWidget, TuiWidgetEvent, TuiWidgetState};

use crate::domain::text::neutralize;
use crate::tui::effect::LogScroll;
use crate::tui::glyphs::to_ascii;
use crate::tui::text;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Skin, piece, row};

/// The pane's own state.
pub struct LogPane {
    state: TuiWidgetState,
    /// Lines carry the time at which they were written; pictures of tests can't.
    times: bool,
    scrolled: Mutex<bool>,
}

impl LogPane {
    pub fn new(times: bool) -> LogPane {
        LogPane { state: TuiWidgetState::new(), times, scrolled: Mutex::new(false) }
    }

    /// Takes over what was logged since. Called now and then although the pane doesn't show: what waits is bounded.
    pub fn collect(&self) {
        tui_logger::move_events();
    }

    /// Moves the pane.
    pub fn scroll(&self, to: LogScroll) {
        let event = match to {
            LogScroll::Older => TuiWidgetEvent::PrevPageKey,
            LogScroll::Newer => TuiWidgetEvent::NextPageKey,
            LogScroll::Newest => TuiWidgetEvent::EscapeKey,
        };
        self.state.transition(event);
        if let Ok(mut scrolled) = self.scrolled.lock() {
            *scrolled = to != LogScroll::Newest;
        }
    }

    fn is_scrolled(&self) -> bool {
        self.scrolled.lock().is_ok_and(|s| *s)
    }
}

pub fn draw(pen: &mut Pen, area: Rect, pane: &LogPane) {
    let end = match pane.is_scrolled() {
        true => vec![piece("G", Meaning::Key), piece(" follows the newest", Meaning::Muted)],
        false => vec![piece("newest at the end", Meaning::Muted)],
    };
    pen.heading(row(area, 0), &[piece("log", Meaning::Accent)], &end, true);
    let inside = Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(1),
    };
    let inside = inside.intersection(pen.buf.area);
    // tui-logger subtracts its indent from the width without asking.
    if inside.width < 40 || inside.height == 0 {
        return;
    }
    let format = Format { skin: pen.skin.clone(), times: pane.times };
    TuiLoggerWidget::default().formatter(Box::new(format)).state(&pane.state).render(inside, pen.buf);
}

/// Time, level, where it comes from, what: in columns, neutralised, wrapped under the text.
struct Format {
    skin: Skin,
    times: bool,
}

const LEVEL: usize = 6;
const TARGET: usize = 18;

impl LogFormatter for Format {
    fn min_width(&self) -> u16 {
        40
    }

    fn format(&self, width: usize, record: &ExtLogRecord) -> Vec<Line<'_>> {
        let style = |meaning| Style { bg: None, ..self.skin.theme.style(meaning) };
        let level = record.level.as_str();
        let meaning = match level {
            "ERROR" => Meaning::Fail,
            "WARN" => Meaning::Warn,
            "INFO" => Meaning::Text,
            _ => Meaning::Muted,
        };
        let clean = |text: &str| {
            let clean = neutralize(text.trim()).into_owned();
            if self.skin.glyphs.ascii { to_ascii(&clean) } else { clean }
        };
        let time = if self.times { record.timestamp.strftime("%H:%M:%S  ").to_string() } else { String::new() };
        // `muster::clients::http` tells no more than `clients::http`.
        let target = record.target();
        let target = clean(target.strip_prefix("muster::").unwrap_or(target));
        let indent = text::width(&time) + LEVEL + TARGET + 1;
        let mut lines = Vec::new();
        for (at, part) in text::wrap(&clean(record.msg()), width.saturating_sub(indent).max(8)).into_iter().enumerate()
        {
            lines.push(if at == 0 {
                Line::from(vec![
                    Span::styled(time.clone(), style(Meaning::Muted)),
                    Span::styled(text::pad(&level.to_lowercase(), LEVEL, text::Keep::Start), style(meaning)),
                    Span::styled(text::pad(&target, TARGET, text::Keep::End), style(Meaning::Muted)),
                    Span::styled(format!(" {part}"), style(meaning)),
                ])
            } else {
                Line::from(vec![Span::raw(" ".repeat(indent)), Span::styled(part, style(meaning))])
            });
        }
        lines
    }
}
