//! Short messages above the footer: they leave by themselves, errors when they are dismissed.

use ratatui::layout::Rect;

use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::{Model, Toast, ToastKind};
use crate::tui::text;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, meaning_of, row};

pub fn draw(pen: &mut Pen, model: &Model) {
    let width = usize::from(model.width.saturating_sub(6)).min(86);
    let mut bottom = floor(model);
    for toast in model.toasts.iter().rev() {
        let lines = lines(toast, width);
        let height = lines.len() as u16;
        // Messages never hide the header, nor more than half of what they are about.
        if bottom < height + 4 {
            break;
        }
        bottom -= height;
        let widest = lines.iter().map(|(l, _)| text::width(l)).max().unwrap_or(0) as u16 + 5;
        let area = Rect::new(model.width.saturating_sub(widest + 1), bottom, widest, height);
        pen.ground(area, Meaning::Float);
        let status = match toast.kind {
            ToastKind::Info => Status::Ok,
            ToastKind::Warning => Status::Warned,
            ToastKind::Error => Status::Failed,
        };
        let edge = pen.skin.glyphs.cursor();
        for (at, (line, meaning)) in lines.iter().enumerate() {
            pen.write(row(area, at), 0, edge, meaning_of(status));
            pen.write(row(area, at), 4, line, *meaning);
        }
        pen.sign(row(area, 0), 2, status);
    }
}

/// Messages stand above what tells what to do: the strip of the fleet, or the footer.
fn floor(model: &Model) -> u16 {
    let footer = model.height.saturating_sub(1);
    let areas = layout::fleet(model);
    let strip = model.screens.is_empty() && model.popup.is_none() && !areas.detail_at_side && !areas.detail.is_empty();
    if strip { areas.detail.y } else { footer }
}

fn lines(toast: &Toast, width: usize) -> Vec<(String, Meaning)> {
    let mut out: Vec<(String, Meaning)> =
        text::wrap(&toast.text, width.saturating_sub(5)).into_iter().map(|l| (l, Meaning::Strong)).collect();
    if let Some(action) = &toast.action {
        out.extend(text::wrap(action, width.saturating_sub(5)).into_iter().map(|l| (l, Meaning::Action)));
    }
    if toast.kind == ToastKind::Error {
        out.push(("esc dismisses".to_owned(), Meaning::Muted));
    }
    out
}
