//! The power dialog: how the host stands, and what may be asked of it.

use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::power::{PowerDialog, WISHES, about};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, piece, row};

/// Where facts and descriptions begin.
const ABOUT_AT: u16 = 19;

pub fn draw(pen: &mut Pen, model: &Model, dialog: &PowerDialog) {
    let width = model.width.min(82);
    let facts = facts(dialog, usize::from(width.saturating_sub(ABOUT_AT + 5)));
    // The frame, air between the parts, and the line of keys.
    let wanted = (facts.len() + WISHES.len() + 2 + 4) as u16;
    let area = layout::popup(model, width, wanted);
    let inside = frame(pen, area, &format!("power {}", dialog.host), Meaning::Accent);
    let air = usize::from(area.height >= wanted);
    let mut at = air;
    for (label, line, meaning) in &facts {
        pen.write(row(inside, at), 1, label, Meaning::Muted);
        pen.column(row(inside, at), ABOUT_AT, inside.width.saturating_sub(ABOUT_AT), line, *meaning, Keep::Start);
        at += 1;
    }
    at += air;
    for (n, wish) in WISHES.into_iter().enumerate() {
        let line = row(inside, at + n);
        let chosen = n == dialog.choice;
        pen.write(line, 2, wish.words(), if chosen { Meaning::Strong } else { Meaning::Text });
        pen.column(line, ABOUT_AT, line.width.saturating_sub(ABOUT_AT), about(wish), Meaning::Muted, Keep::Start);
        if chosen {
            pen.tint(line, Meaning::Selection);
            let sign = pen.skin.glyphs.cursor();
            pen.write(line, 0, sign, Meaning::Accent);
        }
    }
    last_line(pen, dialog, row(inside, usize::from(inside.height).saturating_sub(1)));
}

/// What BMC and Ironic say: label, text, meaning.
fn facts(dialog: &PowerDialog, width: usize) -> Vec<(&'static str, String, Meaning)> {
    let Some(looked) = &dialog.looked else {
        return vec![("BMC and Ironic", "are asked how it stands …".to_owned(), Meaning::Muted)];
    };
    let power = match &looked.power {
        Ok(state) => (format!("power is {state}"), Meaning::Strong),
        Err(why) => (why.message.clone(), Meaning::Warn),
    };
    let lives = match &looked.lives {
        None => ("nobody lives on it".to_owned(), Meaning::Text),
        Some(what) => (what.clone(), Meaning::Warn),
    };
    let mut out = Vec::new();
    for (label, (said, meaning)) in [("BMC", power), ("Ironic", lives)] {
        for (n, line) in text::wrap_to(&said, width, 3).into_iter().enumerate() {
            out.push((if n == 0 { label } else { "" }, line, meaning));
        }
    }
    out
}

fn last_line(pen: &mut Pen, dialog: &PowerDialog, line: ratatui::layout::Rect) {
    let wish = dialog.wish();
    let lives = dialog.looked.as_ref().is_some_and(|looked| looked.lives.is_some());
    let what = match (wish.interrupts(), lives) {
        (false, _) => " does it: it interrupts nothing",
        (true, false) => " goes on to a question",
        (true, true) => " goes on to a question that wants its name",
    };
    match dialog.obstacle() {
        Some(obstacle) => {
            let width = line.width.saturating_sub(12);
            pen.column(line, 1, width, &obstacle, Meaning::Warn, Keep::Start);
        }
        None => {
            pen.pieces(line, 1, &[piece("enter", Meaning::Key), piece(what, Meaning::Text)]);
        }
    }
    pen.right(line, &[piece("esc", Meaning::Key), piece(" back ", Meaning::Text)]);
}
