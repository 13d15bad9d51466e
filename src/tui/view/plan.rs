//! The plan: what would be written where, with what stands there now, before anything happens.

use ratatui::layout::Rect;

use crate::domain::plan::{LineKind, PlanLine};
use crate::domain::text::neutralize;
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::plan::PlanPopup;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, piece, row};

pub fn draw(pen: &mut Pen, model: &Model, popup: &PlanPopup) {
    let host = popup.host().map_or("", |candidate| candidate.host.as_str());
    let of = popup.launch.starting().count();
    let title = match of {
        0 | 1 => format!("plan {host}"),
        _ => format!("plan {host} · {} of {of}", popup.at + 1),
    };
    let inside = frame(pen, layout::plan(model, popup), &title, Meaning::Accent);
    let rows = layout::plan_rows(model, popup);
    let len = popup.rows();
    let top = popup.top.min(len.saturating_sub(rows));
    let heading = row(inside, 0);
    match &popup.page {
        None => drop(pen.write(
            heading,
            1,
            "asking NetBox, the DHCP host, the BMC and Ironic; nothing is written",
            Meaning::Muted,
        )),
        Some(Err(refused)) => {
            pen.sign(heading, 1, Status::Refused);
            pen.column(
                heading,
                3,
                heading.width.saturating_sub(4),
                &neutralize(&refused.message),
                Meaning::Fail,
                Keep::Start,
            );
            let line = row(inside, 1);
            let at = pen.write(line, 3, pen.skin.glyphs.arrow(), Meaning::Action);
            let room = line.width.saturating_sub(at + 2);
            pen.column(line, at + 1, room, &neutralize(&refused.action), Meaning::Action, Keep::Start);
        }
        Some(Ok(page)) => {
            pen.write(heading, 1, &page.summary, Meaning::Strong);
            for (at, line) in page.lines.iter().skip(top).take(rows).enumerate() {
                draw_line(pen, line, row(inside, 1 + at));
            }
        }
    }
    last_line(pen, popup, (top, rows, len), row(inside, usize::from(inside.height).saturating_sub(1)));
}

fn draw_line(pen: &mut Pen, what: &PlanLine, line: Rect) {
    let (at, sign, meaning) = match what.kind {
        LineKind::Phase => (1, "", Meaning::Accent),
        LineKind::Off => (1, "", Meaning::Muted),
        LineKind::Write => (3, "write", Meaning::Text),
        LineKind::Same => (9, " ", Meaning::Muted),
        LineKind::Gone => (9, "-", Meaning::Fail),
        LineKind::New => (9, "+", Meaning::Ok),
        LineKind::Wait => (3, "wait", Meaning::Muted),
        LineKind::Warning => (3, "!", Meaning::Warn),
        LineKind::Note => (3, "", Meaning::Muted),
        LineKind::Unforeseen => (3, "?", Meaning::Unknown),
        LineKind::Fails => (3, "x", Meaning::Fail),
    };
    let text_at = match what.kind {
        LineKind::Phase | LineKind::Off => 1,
        LineKind::Same | LineKind::Gone | LineKind::New => 11,
        _ => 9,
    };
    let sign_meaning = if what.kind == LineKind::Write { Meaning::Action } else { meaning };
    pen.write(line, at, sign, sign_meaning);
    pen.column(line, text_at, line.width.saturating_sub(text_at + 1), &what.text, meaning, Keep::Start);
}

fn last_line(pen: &mut Pen, popup: &PlanPopup, (top, rows, len): (usize, usize, usize), line: Rect) {
    let mut at = 1;
    if len > rows {
        let place = format!("{}–{} of {len}  ", top + 1, (top + rows).min(len));
        at = pen.write(line, at, &place, Meaning::Muted);
        at = pen.write(line, at, "j k", Meaning::Key);
        at = pen.write(line, at, " scroll  ", Meaning::Text);
    }
    if popup.launch.starting().count() > 1 {
        at = pen.write(line, at, "h l", Meaning::Key);
        at = pen.write(line, at, " host  ", Meaning::Text);
    }
    if popup.launch.obstacle().is_none() {
        at = pen.write(line, at, "enter", Meaning::Key);
        let what = text::count(popup.launch.starting().count(), "host");
        pen.write(line, at, &format!(" starts {what}"), Meaning::Text);
    }
    pen.right(line, &[piece("esc", Meaning::Key), piece(" back ", Meaning::Text)]);
}
