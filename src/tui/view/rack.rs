//! A rack as it stands: both faces unit by unit, the front with how each host stands, the rear with where its cables go.

use ratatui::layout::Rect;

use super::detail;
use super::rack_device::{front, link_line, loose, rear};
use crate::domain::elevation::{Elevation, Face, Loose, Racked};
use crate::tui::layout::rack::areas;
use crate::tui::model::Model;
use crate::tui::model::rack::{Line, RackScreen, Read, at_line, halves_a_line, lines, links, name_width};
use crate::tui::text::Keep;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, piece, row};
use crate::tui::widgets::refusal::refusal;

/// Columns of the numbers, with a blank behind them.
const NUMBERS: u16 = 4;

pub fn draw(pen: &mut Pen, model: &Model, screen: &RackScreen) {
    let areas = areas(model);
    let bar = pen.skin.glyphs.bar();
    pen.fill(areas.divider, bar, Meaning::Rule);
    for (face, body) in areas.faces() {
        let area = if face == Face::Front { areas.front } else { areas.rear };
        let alone = areas.divider.is_empty();
        heading(pen, model, screen, row(area, 0), face, alone);
        match &screen.read {
            Read::NotYet => {
                pen.write(row(body, 1), 3, "reading the rack from the store", Meaning::Muted);
            }
            Read::Failed(refused) => {
                let fact = format!("the rack could not be read: {}", refused.message);
                refusal(pen, body, 1, &fact, &refused.action);
            }
            Read::Here(elevation) if elevation.devices.is_empty() => {
                pen.write(row(body, 1), 3, "NetBox has no device in this rack any more", Meaning::Text);
            }
            Read::Here(elevation) => face_lines(pen, model, screen, elevation, face, body, alone),
        }
    }
    story(pen, model, screen, areas.detail, areas.detail_at_side);
}

/// The rack and its face; at the end how it is numbered, and what is not known of that.
fn heading(pen: &mut Pen, model: &Model, screen: &RackScreen, line: Rect, face: Face, alone: bool) {
    let focused = screen.face == face && model.popup.is_none();
    let title =
        [piece(screen.place.name().to_owned(), Meaning::Accent), piece(format!(" {}", face.word()), Meaning::Accent)];
    let mut end: Vec<Piece> = Vec::new();
    if let Some(elevation) = screen.elevation() {
        let units = elevation.units;
        let whole = format!("{} U", units.height);
        let numbered = match (units.first, units.top_down) {
            (1, false) => String::new(),
            (first, false) => format!(" from {first} up"),
            (first, true) => format!(" from {first} down"),
        };
        match (elevation.is_measured, elevation.is_numbered) {
            (false, _) => end.push(piece("height not in NetBox's list", Meaning::Unknown)),
            (true, false) => end.push(piece(format!("{whole}, numbering not read yet"), Meaning::Unknown)),
            (true, true) => end.push(piece(format!("{whole}{numbered}"), Meaning::Muted)),
        }
        if alone {
            let key = pen.skin.glyphs.step();
            end.push(piece(format!("  tab {key} {}", face.other().word()), Meaning::Muted));
        }
    }
    pen.heading(line, &title, &end, focused);
}

fn face_lines(
    pen: &mut Pen,
    model: &Model,
    screen: &RackScreen,
    elevation: &Elevation,
    face: Face,
    body: Rect,
    alone: bool,
) {
    let step = halves_a_line(elevation);
    let all = lines(elevation);
    let names = name_width(elevation);
    for (at, line) in all.iter().skip(screen.top.unwrap_or(0)).take(usize::from(body.height)).enumerate() {
        let target = row(body, at);
        match line {
            Line::Blank => {}
            Line::Heading(reason) => {
                // What takes no unit is in order so.
                let meaning = if *reason == Loose::Beside { Meaning::Muted } else { Meaning::Warn };
                pen.write(target, NUMBERS + 2, reason.words(), meaning);
            }
            Line::Loose(index) => {
                let Some(racked) = elevation.devices.get(*index) else { continue };
                let inner =
                    Rect { x: target.x + NUMBERS + 2, width: target.width.saturating_sub(NUMBERS + 5), ..target };
                loose(pen, model, racked, face, inner, names);
                selection(pen, screen, racked, face, sides(target));
            }
            Line::Unit { half, number } => {
                let found = at_line(elevation, face, line);
                let meaning = match found {
                    Some((_, racked)) if is_its_unit(racked, *number) => Meaning::Strong,
                    _ => Meaning::Muted,
                };
                if let Some(number) = number {
                    pen.column_right(target, 0, NUMBERS - 1, &number.to_string(), meaning);
                }
                match found {
                    Some((_, racked)) => {
                        let Ok(span) = racked.stand else { continue };
                        let (nth, of) = ((half - span.top) / step, span.height.div_ceil(step));
                        let inner = slot(pen, screen, racked, target, nth, of);
                        let nth = nth as usize;
                        match face {
                            Face::Front => front(pen, model, racked, inner, nth, names),
                            Face::Rear => {
                                let named = alone || !racked.shows_at(Face::Front);
                                rear(pen, model, racked, inner, (nth, of as usize), named.then_some(names));
                            }
                        }
                        selection(pen, screen, racked, face, sides(target));
                    }
                    None => rails(pen, target),
                }
            }
        }
    }
}

/// Whether this is the unit that a device is looked for by: the one that NetBox has as its position.
fn is_its_unit(racked: &Racked, number: Option<u32>) -> bool {
    racked.device.position.is_some_and(|position| Some(position.floor() as u32) == number)
}

/// An empty unit: the rails of the rack.
fn rails(pen: &mut Pen, line: Rect) {
    let bar = pen.skin.glyphs.rail();
    pen.write(line, NUMBERS, bar, Meaning::Rule);
    pen.write(line, line.width.saturating_sub(2), bar, Meaning::Rule);
}

/// From the left side of the rack to the right one, in a line.
fn sides(line: Rect) -> Rect {
    Rect { x: line.x + NUMBERS, width: line.width.saturating_sub(NUMBERS + 1), ..line }
}

/// The sides of a device, which tell where it begins and ends. Returns what is between them.
fn slot(pen: &mut Pen, screen: &RackScreen, racked: &Racked, line: Rect, nth: u32, of: u32) -> Rect {
    let selected = Some(racked.device.netbox_id) == screen.selected;
    let meaning = if selected { Meaning::Accent } else { Meaning::Side };
    let whole = sides(line);
    // A blank at each side.
    let inner = Rect { x: whole.x + 2, width: whole.width.saturating_sub(4), ..whole };
    pen.tint(whole, Meaning::Device);
    let [left, right] = pen.skin.glyphs.sides(nth == 0, nth + 1 == of);
    pen.write(line, NUMBERS, left, meaning);
    pen.write(line, line.width.saturating_sub(2), right, meaning);
    inner
}

/// The selected device has the ground of the selection at the face with the focus, over its whole height.
fn selection(pen: &mut Pen, screen: &RackScreen, racked: &Racked, face: Face, area: Rect) {
    if Some(racked.device.netbox_id) == screen.selected && screen.face == face {
        pen.tint(area, Meaning::Selection);
    }
}

/// The selected device's story: a host's as below the fleet, of anything else what it is.
fn story(pen: &mut Pen, model: &Model, screen: &RackScreen, area: Rect, at_side: bool) {
    let stranger = screen.device().map(|(_, racked)| racked);
    let Some(racked) = stranger.filter(|_| model.target().is_none()) else {
        let rest = detail::draw(pen, model, area, at_side);
        if let Some(racked) = stranger {
            // Where there is nothing more to say of the host, its cables have room for their names and ages.
            for (at, link) in links(model, racked).iter().take(usize::from(rest.height)).enumerate() {
                let line = row(rest, at);
                link_line(pen, link, Rect { x: line.x + 3, width: line.width.saturating_sub(4), ..line });
            }
        }
        return;
    };
    let inside = detail::frame(pen, area, at_side);
    let device = &racked.device;
    pen.write(row(inside, 0), 1, &device.name, Meaning::Strong);
    let serial = device.serial.as_ref().map(|serial| format!(" · serial {serial}")).unwrap_or_default();
    let facts = format!("{} {} · {}{serial}", device.manufacturer, device.model, device.role);
    let width = inside.width.saturating_sub(2);
    pen.column(row(inside, 1), 1, width, &facts, Meaning::Muted, Keep::Start);
    pen.column(row(inside, 2), 1, width, "nothing of this is done to it here", Meaning::Muted, Keep::Start);
}
