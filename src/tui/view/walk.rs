//! What waits for a person, in walking order: where, what is to be done, by which cable. The selected stop is told in full.

use super::table::owner_meaning;
use crate::domain::failure::Owner;
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, standing};
use crate::tui::model::walk::{self, INDENT, Line, Part, Walk};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::cable::{cable_name, far_end};
use crate::tui::widgets::pen::{Pen, Piece, piece, row};
use ratatui::layout::Rect;

/// `B07 U37` and the name stand in columns of their own.
const PLACE: u16 = 10;

pub fn draw(pen: &mut Pen, model: &Model, walk: &Walk) {
    let stops = walk::stops(model);
    let hands = stops.iter().filter(|host| host.needs_hands()).count();
    let elsewhere = model.fleet.waiting.len() - stops.len();
    let place = &model.fleet.place;
    let title: [Piece; 2] = [
        piece("for you", Meaning::Accent),
        piece(if place.0.is_empty() { String::new() } else { format!(" · {}", place.0.join(" › ")) }, Meaning::Strong),
    ];
    let counts = [(hands, "with hands"), (stops.len() - hands, "for others"), (elsewhere, "elsewhere")];
    let counts = counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"));
    let mut end = vec![piece(counts.collect::<Vec<_>>().join(" · "), Meaning::Muted)];
    end.retain(|counts| !counts.text.is_empty());
    pen.heading(row(layout::body(model), 0), &title, &end, model.popup.is_none());
    let body = layout::walk_body(model);
    if !model.fleet.loaded {
        pen.write(row(body, 1), 2, "reading the store", Meaning::Muted);
        return;
    }
    if stops.is_empty() {
        return nothing(pen, model, body, elsewhere);
    }
    let shown = walk::lines(model, walk, body.width).into_iter().skip(walk.top).take(usize::from(body.height));
    for (n, line) in shown.enumerate() {
        let area = row(body, n);
        match line {
            Line::Blank => {}
            Line::Owner(owner, count) => owner_line(pen, owner, count, area),
            Line::Place(place) => {
                pen.write(area, 2, &place, Meaning::Muted);
            }
            Line::Stop { at, part } => {
                let Some(host) = stops.get(at) else { continue };
                let selected = at == walk.at;
                part_line(pen, model, host, &part, area, selected);
                if selected {
                    pen.tint(area, Meaning::Selection);
                    if part == Part::Head {
                        let sign = pen.skin.glyphs.cursor();
                        pen.write(area, 0, sign, Meaning::Accent);
                    }
                }
            }
        }
    }
}

fn nothing(pen: &mut Pen, model: &Model, body: Rect, elsewhere: usize) {
    pen.sign(row(body, 1), 2, Status::Ok);
    pen.write(row(body, 1), 4, "nothing waits for a person here", Meaning::Text);
    if elsewhere > 0 {
        let place = model.fleet.place.name();
        let said = format!("{elsewhere} elsewhere: this is {place} only, go one place up in the fleet");
        pen.write(row(body, 2), 4, &said, Meaning::Muted);
    }
}

fn owner_line(pen: &mut Pen, owner: Owner, count: usize, area: Rect) {
    let (words, meaning) = match owner {
        Owner::Onsite => ("with hands at the rack".to_owned(), Meaning::Action),
        other => (format!("waits for {}", other.in_column()), Meaning::Strong),
    };
    let at = pen.write(area, 1, &words, meaning);
    pen.write(area, at + 2, &count.to_string(), Meaning::Muted);
}

fn part_line(pen: &mut Pen, model: &Model, host: &Host, part: &Part, area: Rect, selected: bool) {
    match part {
        Part::Head => head(pen, model, host, area, selected),
        Part::Fact(text) => {
            pen.write(area, INDENT + 2, text, Meaning::Fail);
        }
        Part::Action { text, first } => {
            if *first {
                let arrow = pen.skin.glyphs.arrow();
                pen.write(area, INDENT, arrow, Meaning::Action);
            }
            let meaning = host.failure().map_or(Meaning::Text, |failure| owner_meaning(failure.owner));
            pen.write(area, INDENT + 2, text, meaning);
        }
        Part::Cable { interface, end } => {
            let pieces = [
                piece(interface.clone(), Meaning::Strong),
                piece("  to  ", Meaning::Muted),
                piece(far_end(end), Meaning::Text),
                piece("   ", Meaning::Muted),
                piece(cable_name(end), Meaning::Action),
            ];
            pen.pieces(area, INDENT + 2, &pieces);
        }
    }
}

fn head(pen: &mut Pen, model: &Model, host: &Host, area: Rect, selected: bool) {
    let standing = standing(host, None, None, model.now);
    let place = walk::rack_and_unit(host);
    let width = PLACE.max(text::width(&place) as u16);
    pen.sign(area, 2, standing.status);
    pen.column(area, INDENT, width, &place, Meaning::Strong, Keep::Start);
    let name_at = INDENT + width + 2;
    let name = model.fleet.widths.name as u16;
    pen.column(area, name_at, name, &host.device.name, Meaning::Strong, Keep::End);
    let time_at = area.width.saturating_sub(text::width(&standing.time) as u16 + 1);
    pen.write(area, time_at, &standing.time, Meaning::Muted);
    // The selected one has its whole sentence below.
    if selected {
        return;
    }
    let at = name_at + name + 2;
    let room = usize::from(time_at.saturating_sub(at + 1));
    let fits = |text: &&String| text::width(text) <= room;
    let told = std::iter::once(&standing.text).chain(&standing.shorter).find(fits);
    if let Some(told) = told {
        pen.write(area, at, told, Meaning::Fail);
    }
}
