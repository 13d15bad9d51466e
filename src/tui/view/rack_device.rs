//! What stands in a device's lines: at the front how the host stands, at the rear its frontend links as last known.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::table::{ironic, owner_meaning};
use crate::domain::elevation::{Face, Heard, Link, Racked};
use crate::domain::link::LinkState;
use crate::tui::glyphs::Status;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, standing, unit_text};
use crate::tui::model::rack::links;
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::cable::{cable_name, far_end};
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, pieces_width};

/// Columns of a link's name and of its state.
const NAME: u16 = 6;
const STATE: u16 = 8;
/// Columns of a port and of a cable's name.
const PORT: u16 = 17;
const CABLE: u16 = 12;

/// The `nth` line of a device at the front. `names`: columns of names.
pub fn front(pen: &mut Pen, model: &Model, racked: &Racked, line: Rect, nth: usize, names: u16) {
    let device = &racked.device;
    let Some(host) = model.fleet.by_id(device.netbox_id) else {
        return stranger(pen, racked, line, nth);
    };
    match nth {
        0 => head(pen, model, host, line, names),
        1 => {
            let (state, meaning) = ironic(host);
            let mut pieces = vec![
                piece(device.status.clone(), Meaning::Muted),
                piece(" · ", Meaning::Muted),
                piece(state, if meaning == Meaning::Fail { meaning } else { Meaning::Muted }),
            ];
            pieces.extend(oddities(racked));
            pen.pieces(line, 2, &pieces);
        }
        2 => {
            let text = format!("{} {}", device.manufacturer, device.model);
            pen.column(line, 2, line.width.saturating_sub(2), &text, Meaning::Muted, Keep::Start);
        }
        _ => {}
    }
}

/// Sign and name, then the sentence, at the end who mends it or the time.
fn head(pen: &mut Pen, model: &Model, host: &Host, line: Rect, names: u16) {
    let standing = standing(host, model.live_view(host), model.queued(host), model.now);
    let marked = model.fleet.marks.contains(&host.device.netbox_id);
    let glyphs = pen.skin.glyphs;
    if marked {
        pen.write(line, 0, glyphs.marked(), Meaning::Mark);
    } else {
        pen.sign(line, 0, standing.status);
    }
    let name = if marked { Meaning::Mark } else { Meaning::Strong };
    let width = names.min(line.width.saturating_sub(2));
    pen.column(line, 2, width, &host.device.name, name, Keep::End);
    let end = match standing.owner {
        Some(owner) => piece(owner.in_column(), owner_meaning(owner)),
        None => piece(standing.time.clone(), Meaning::Muted),
    };
    let end_at = pen.right(line, &[end]);
    let at = 2 + width + 2;
    let room = usize::from(end_at.saturating_sub(at + 1));
    let fits = |text: &&String| text::width(text).min(60) <= room;
    let shortest = standing.shorter.last().unwrap_or(&standing.text);
    let text = std::iter::once(&standing.text).chain(&standing.shorter).find(fits).unwrap_or(shortest);
    pen.column(line, at, room as u16, text, meaning_of(standing.status), Keep::Start);
}

/// Something that is no host.
fn stranger(pen: &mut Pen, racked: &Racked, line: Rect, nth: usize) {
    let device = &racked.device;
    match nth {
        0 => {
            let at = pen.write(line, 2, &device.name, Meaning::Muted);
            let mut pieces = vec![piece(format!("  {}", device.role), Meaning::Muted)];
            pieces.extend(oddities(racked));
            pen.pieces(line, at, &pieces);
        }
        1 => {
            let text = format!("{} {}", device.manufacturer, device.model);
            pen.column(line, 2, line.width.saturating_sub(2), &text, Meaning::Muted, Keep::Start);
        }
        _ => {}
    }
}

/// What a person wonders about when they stand before it.
fn oddities(racked: &Racked) -> Vec<Piece<'static>> {
    let mut out = Vec::new();
    if racked.face == Face::Rear {
        out.push(piece(" · mounted at the rear", Meaning::Muted));
    }
    if racked.height_is_guessed() {
        out.push(piece(" · height unknown", Meaning::Unknown));
    }
    out
}

/// The `nth` of so many lines of a device at the rear. `names`: columns of names, where the front does not show beside it.
pub fn rear(
    pen: &mut Pen,
    model: &Model,
    racked: &Racked,
    mut line: Rect,
    (nth, of): (usize, usize),
    names: Option<u16>,
) {
    if let Some(names) = names {
        let width = if racked.is_host { names.min(line.width / 3) } else { line.width };
        if nth == 0 {
            let name = if racked.is_host { Meaning::Strong } else { Meaning::Muted };
            pen.column(line, 0, width, &racked.device.name, name, Keep::End);
        }
        line = Rect { x: line.x + width + 2, width: line.width.saturating_sub(width + 2), ..line };
    }
    if !racked.is_host {
        return;
    }
    let links = links(model, racked);
    if links.is_empty() {
        if nth == 0 {
            pen.column(line, 0, line.width, "no cable in NetBox", Meaning::Warn, Keep::Start);
        }
        return;
    }
    // One line each where there are lines enough; else the last line has all that are left.
    if nth + 1 < of || links.len() == nth + 1 {
        if let Some(link) = links.get(nth) {
            link_line(pen, link, line);
        }
    } else if let Some(rest) = links.get(nth..) {
        several(pen, rest, line);
    }
}

/// Links that share a line: with the ports that they are in instead, where there is room for that.
fn several(pen: &mut Pen, links: &[Cow<Link>], line: Rect) {
    let words = |brief: fn(&Link) -> Piece<'static>| {
        let pieces = links.iter().flat_map(|link| {
            [piece(format!("{} ", link.interface), Meaning::Text), brief(link), piece("  ", Meaning::Text)]
        });
        pieces.collect::<Vec<Piece>>()
    };
    let long = words(brief);
    let fits = pieces_width(&long) <= usize::from(line.width) + 2;
    pen.pieces(line, 0, &if fits { long } else { words(briefest) });
}

/// Interface, its state, and the port that it is in.
pub fn link_line(pen: &mut Pen, link: &Link, line: Rect) {
    pen.column(line, 0, NAME, &link.interface, Meaning::Text, Keep::End);
    pen.write(line, NAME + 1, link.state.as_str(), state_meaning(link));
    let at = NAME + 1 + STATE;
    let (status, place) = place(link);
    let is_new = is_unseen(link) && status == Status::Unknown;
    let sign = pen.skin.glyphs.status(status, pen.now);
    pen.write(line, at, sign, if is_new { Meaning::Muted } else { meaning_of(status) });
    let meaning = match status {
        Status::Failed => Meaning::Fail,
        Status::Warned => Meaning::Warn,
        _ => Meaning::Text,
    };
    let room = line.width.saturating_sub(at + 2);
    pen.column(line, at + 2, room, &place, meaning, Keep::Start);
    let cable = link.recorded.as_ref().map(cable_name).unwrap_or_default();
    let age = link.state_at.map(|then| text::ago(pen.now, then)).unwrap_or_default();
    // Below each other, as far as there is room: ports are seldom longer.
    let mut after = at + 2 + (text::width(&place) as u16).max(PORT) + 2;
    for (words, width) in [(cable, CABLE), (age, 0)] {
        if usize::from(after) + text::width(&words) <= usize::from(line.width) {
            pen.write(line, after, &words, Meaning::Muted);
        }
        after += width.max(text::width(&words) as u16) + 2;
    }
}

/// Where a cable is, and how that compares with NetBox.
fn place(link: &Link) -> (Status, String) {
    let recorded = link.recorded.as_ref().map(far_end);
    match (&link.heard, recorded) {
        (Heard::Elsewhere { port: Some((switch, port)), .. }, _) => (Status::Failed, format!("{switch} {port}")),
        (Heard::Elsewhere { port: None, .. }, Some(recorded)) => (Status::Failed, format!("not in {recorded}")),
        (Heard::Elsewhere { port: None, .. }, None) => (Status::Failed, "in nothing".to_owned()),
        (_, None) => (Status::Warned, "no cable in NetBox".to_owned()),
        (Heard::Right { .. }, Some(recorded)) => (Status::Ok, recorded),
        (Heard::Unknown { .. }, Some(recorded)) => (Status::Unknown, recorded),
    }
}

/// A link in a word, for a line that several share.
fn brief(link: &Link) -> Piece<'static> {
    match &link.heard {
        Heard::Elsewhere { port: Some((switch, port)), .. } => piece(format!("in {switch} {port}"), Meaning::Fail),
        _ => briefest(link),
    }
}

fn briefest(link: &Link) -> Piece<'static> {
    match &link.heard {
        Heard::Elsewhere { port: Some(_), .. } => piece("elsewhere", Meaning::Fail),
        _ => piece(link.state.as_str(), state_meaning(link)),
    }
}

/// Nobody looked at it yet: that is nothing to look at twice.
fn is_unseen(link: &Link) -> bool {
    link.state_at.is_none() && matches!(link.heard, Heard::Unknown { why: None })
}

fn state_meaning(link: &Link) -> Meaning {
    match link.state {
        LinkState::Unknown if is_unseen(link) => Meaning::Muted,
        LinkState::Up => Meaning::Ok,
        LinkState::Down => Meaning::Fail,
        LinkState::Unknown => Meaning::Unknown,
    }
}

/// A device that stands at no unit, in one line.
pub fn loose(pen: &mut Pen, model: &Model, racked: &Racked, face: Face, line: Rect, names: u16) {
    let device = &racked.device;
    let unit = device.position.map(|position| format!("U{}  ", unit_text(Some(position)))).unwrap_or_default();
    let at = pen.write(line, 0, &unit, Meaning::Muted);
    let inner = Rect { x: line.x + at, width: line.width.saturating_sub(at), ..line };
    match (face, model.fleet.by_id(device.netbox_id)) {
        (Face::Front, Some(host)) => head(pen, model, host, inner, names),
        (Face::Front, None) => stranger(pen, racked, inner, 0),
        (Face::Rear, _) => rear(pen, model, racked, inner, (0, 1), Some(names)),
    }
}
