//! The link guard: each frontend link over time, where its cable goes, and how much patience is left.

use jiff::{Span, Timestamp};
use ratatui::layout::Rect;

use crate::domain::link::LinkState;
use crate::domain::run_view::{GuardView, LinkLine, RunView};
use crate::tui::model::run_screen::{ONE_LINE, Row};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::bar::bar;
use crate::tui::widgets::cable::{cable_name, far_end};
use crate::tui::widgets::pen::{Pen, Piece, piece};

/// What stands at the end of the heading.
pub fn end(pen: &Pen, view: &RunView) -> Vec<Piece<'static>> {
    let Some(guard) = view.guard() else { return vec![piece("not yet", Meaning::Muted)] };
    let phase = guard.phase.label();
    if !guard.over {
        return vec![
            piece(format!("{phase} · "), Meaning::Muted),
            piece(format!("{} left", text::clock(left_s(guard, pen.now))), Meaning::Wait),
        ];
    }
    let verdict = if guard.any(LinkState::Up) {
        piece("a link is up", Meaning::Ok)
    } else if guard.any(LinkState::Unknown) {
        piece("not reported: went on", Meaning::Unknown)
    } else {
        piece("all down", Meaning::Fail)
    };
    vec![piece(format!("{phase} · "), Meaning::Muted), verdict]
}

/// What is left now: the last reading's rest, less what went by since, as long as the guard counts.
fn left_s(guard: &GuardView, now: Timestamp) -> u64 {
    guard.budget_left_s.saturating_sub(text::seconds(guard.read_at, now))
}

pub fn line(pen: &mut Pen, view: &RunView, which: Row, line: Rect) {
    let Some(guard) = view.guard() else { return };
    match which {
        Row::Link(at) => {
            if let Some(link) = guard.links.get(at) {
                link_line(pen, guard, link, line);
            }
        }
        Row::LinkCable(at) => {
            if let Some(link) = guard.links.get(at) {
                cable_line(pen, link, line);
            }
        }
        Row::LinkPort(at) => {
            if let Some(link) = guard.links.get(at) {
                port_line(pen, link, line);
            }
        }
        Row::LinkRule => rule_line(pen, guard, line),
        _ => {}
    }
}

fn link_line(pen: &mut Pen, guard: &GuardView, link: &LinkLine, line: Rect) {
    let reading = &link.reading;
    pen.column(line, 2, 8, &reading.interface, Meaning::Strong, Keep::End);
    pen.write(line, 11, reading.state.as_str(), state_meaning(reading.state));
    let narrow = line.width < ONE_LINE;
    let roomy = line.width >= 120;
    let cells = match (narrow, roomy) {
        (true, _) => line.width.saturating_sub(22).min(24),
        (false, true) => 30,
        (false, false) => 15,
    };
    history(pen, guard, link, line, 19, cells);
    if narrow {
        return;
    }
    let mut at = 19 + cells + 2;
    let mac = reading.mac.map(|mac| mac.to_string()).unwrap_or_default();
    let (mac, mac_width) = if roomy { (mac, 17) } else { (short_mac(&mac), 8) };
    pen.column(line, at, mac_width, &mac, Meaning::Muted, Keep::End);
    at += mac_width + 2;
    // The columns of all links of the guard, so that they stand under each other. The slot gives way to the cable.
    let widest = |of: fn(&LinkLine) -> usize| guard.links.iter().map(of).max().unwrap_or(0) as u16;
    let slots = widest(|link| text::width(&slot_words(link)));
    let far = widest(|link| text::width(&cable_words(link).0));
    let names =
        widest(|link| text::width(&name_words(link)) + tail(link).map_or(0, |(text, _)| text::width(&text) + 2));
    let slots = slots.min(line.width.saturating_sub(at + far + names + 5)).max(slots.min(9));
    pen.column(line, at, slots, &slot_words(link), Meaning::Muted, Keep::Start);
    at += slots + 2;
    let (cable, meaning) = cable_words(link);
    // What came and went, or a strange word, stands behind the cable; where there is no room for both the cable's name is
    // cut, and its far end never.
    pen.write(line, at, &cable, meaning);
    at += far + 2;
    let name = name_words(link);
    let tail = tail(link);
    let room = line.width.saturating_sub(at + 1);
    let tail_width = tail.as_ref().map_or(0, |(text, _)| text::width(text) as u16 + 2);
    let name_width = (text::width(&name) as u16).min(room.saturating_sub(tail_width));
    pen.column(line, at, name_width, &name, Meaning::Text, Keep::Start);
    if let Some((text, meaning)) = tail {
        pen.column(line, at + name_width + 2, room.saturating_sub(name_width + 2), &text, meaning, Keep::Start);
    }
}

/// The far end of the cable.
fn cable_words(link: &LinkLine) -> (String, Meaning) {
    match &link.reading.cable {
        Some(cable) => (far_end(cable), Meaning::Text),
        None => ("no cable in NetBox".to_owned(), Meaning::Warn),
    }
}

fn name_words(link: &LinkLine) -> String {
    link.reading.cable.as_ref().map(cable_name).unwrap_or_default()
}

fn slot_words(link: &LinkLine) -> String {
    link.reading.slot.as_deref().map(short_slot).unwrap_or_default()
}

fn cable_line(pen: &mut Pen, link: &LinkLine, line: Rect) {
    let (far, meaning) = cable_words(link);
    let at = pen.write(line, 11, &far, meaning);
    pen.column(line, at + 2, line.width.saturating_sub(at + 3), &name_words(link), Meaning::Text, Keep::Start);
}

fn port_line(pen: &mut Pen, link: &LinkLine, line: Rect) {
    let mac = link.reading.mac.map_or("no MAC".to_owned(), |mac| mac.to_string());
    let at = pen.write(line, 11, &mac, Meaning::Muted);
    let at = pen.write(line, at + 2, &slot_words(link), Meaning::Muted);
    if let Some((text, meaning)) = tail(link) {
        pen.column(line, at + 2, line.width.saturating_sub(at + 3), &text, meaning, Keep::Start);
    }
}

/// `9c:6b…:01`: maker and end, by which the ports of one host differ.
fn short_mac(mac: &str) -> String {
    match (mac.get(..5), mac.len().checked_sub(3).and_then(|from| mac.get(from..))) {
        (Some(start), Some(end)) if mac.len() == 17 => format!("{}…{end}", &start[..4]),
        _ => mac.to_owned(),
    }
}

/// `slot 3 p0`.
fn short_slot(slot: &str) -> String {
    slot.replace(" port ", " p")
}

/// A word that the BMC used, or that the link came and went.
fn tail(link: &LinkLine) -> Option<(String, Meaning)> {
    if let Some(up) = link.was_up_s() {
        return Some((format!("was up for {}", text::rough(up.max(1) as u64)), Meaning::Warn));
    }
    link.reading.raw.as_ref().map(|raw| (format!("'{raw}'"), Meaning::Muted))
}

fn state_meaning(state: LinkState) -> Meaning {
    match state {
        LinkState::Up => Meaning::Ok,
        LinkState::Down => Meaning::Fail,
        LinkState::Unknown => Meaning::Unknown,
    }
}

/// The link's states over the whole budget: what is not read yet is empty.
fn history(pen: &mut Pen, guard: &GuardView, link: &LinkLine, line: Rect, at: u16, cells: u16) {
    let whole_s = text::seconds(guard.started_at, guard.read_at).max(guard.budget_s).max(1) as i64;
    let moment = |cell: u16| {
        let ms = whole_s * 1000 * i64::from(cell) / i64::from(cells.max(1));
        guard.started_at.checked_add(Span::new().milliseconds(ms)).unwrap_or(guard.started_at)
    };
    for cell in 0..cells {
        let (from, to) = (moment(cell), moment(cell + 1));
        // A short moment up is what a person looks for: it shows however short it was.
        let mut seen: Option<LinkState> = None;
        for span in link.spans.iter().filter(|s| s.since < to && s.until >= from) {
            seen = Some(match (seen, span.state) {
                (Some(LinkState::Up), _) | (_, LinkState::Up) => LinkState::Up,
                (Some(LinkState::Down), LinkState::Unknown) => LinkState::Unknown,
                (_, state) => state,
            });
        }
        let level = seen.map(|s| match s {
            LinkState::Up => Some(true),
            LinkState::Down => Some(false),
            LinkState::Unknown => None,
        });
        let meaning = seen.map_or(Meaning::Track, state_meaning);
        let sign = pen.skin.glyphs.level(level);
        pen.write(line, at + cell, sign, meaning);
    }
}

fn rule_line(pen: &mut Pen, guard: &GuardView, line: Rect) {
    let mut at = 2;
    if !guard.over {
        let cells = if line.width < 110 { 12 } else { 24 };
        bar(pen, line, at, cells, left_s(guard, pen.now), guard.budget_s, Meaning::Wait);
        at += cells + 2;
        let left = text::clock(left_s(guard, pen.now));
        at = pen.write(line, at, &left, Meaning::Wait) + 2;
    }
    let read = format!("read {}", text::ago(pen.now, guard.read_at));
    at = pen.write(line, at, &read, Meaning::Muted);
    if !guard.over && line.width >= ONE_LINE {
        let budget = text::clock(guard.budget_s);
        let dot = pen.skin.glyphs.dot();
        let rule = format!(" {dot} UP or UNKNOWN goes on {dot} all DOWN for {budget} stops the run");
        pen.write(line, at, &rule, Meaning::Muted);
    }
}
