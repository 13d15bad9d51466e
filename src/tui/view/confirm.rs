//! A question before something that can't be taken back. The way out is focused.

use ratatui::layout::Rect;

use crate::tui::layout;
use crate::tui::model::{Confirm, Model};
use crate::tui::text;
use crate::tui::theme::Meaning;
use crate::tui::widgets::field::field;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, row};

pub fn draw(pen: &mut Pen, model: &Model, confirm: &Confirm) {
    let width = 78.min(model.width.saturating_sub(2));
    let lines = text::wrap(&confirm.lines.join(" "), usize::from(width.saturating_sub(6)));
    let typed_rows = if confirm.typed.is_some() { 2 } else { 0 };
    let area = layout::popup(model, width, lines.len() as u16 + typed_rows + 6);
    let inside = frame(pen, area, &confirm.title, Meaning::Warn);
    for (at, line) in lines.iter().enumerate() {
        pen.write(row(inside, at + 1), 1, line, Meaning::Text);
    }
    let mut at = lines.len() + 2;
    if let Some((_, input)) = &confirm.typed {
        field(pen, row(inside, at), 1, 40, input, true);
        at += 2;
    }
    let line = row(inside, at);
    let ready = confirm.typed.as_ref().is_none_or(|(name, input)| *name == input.text.trim());
    // The name that was typed is the choice: no second key is needed to reach the button.
    let on_yes = confirm.on_yes || (confirm.typed.is_some() && ready);
    let next = button(pen, line, 1, &confirm.no, !on_yes, true);
    button(pen, line, next + 3, &confirm.yes, on_yes, ready);
}

/// A button; the focused one is marked at both ends, so that it shows without colour too.
fn button(pen: &mut Pen, line: Rect, at: u16, word: &str, focused: bool, ready: bool) -> u16 {
    let (left, right) = if focused { ("[ ", " ]") } else { ("  ", "  ") };
    let meaning = match (focused, ready) {
        (true, _) => Meaning::Action,
        (false, true) => Meaning::Text,
        (false, false) => Meaning::Muted,
    };
    let next = pen.write(line, at, &format!("{left}{word}{right}"), meaning);
    if focused {
        let width = next.saturating_sub(at);
        pen.tint(Rect { x: line.x + at, width, ..line }, Meaning::Selection);
    }
    next
}
