//! The hosts of a place, from the top of the rack down. Columns leave by their worth: name and standing last.

use ratatui::layout::Rect;

use crate::domain::failure::Owner;
use crate::domain::provision::ProvisionState;
use crate::tui::action::{self, Where};
use crate::tui::model::Model;
use crate::tui::model::fleet::Pane;
use crate::tui::model::host::{Host, standing, unit_text};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::field::field;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, row};

/// Where each column begins and how wide it is; none has no width.
#[derive(Debug, Clone, Copy, Default)]
struct Columns {
    rack: (u16, u16),
    unit: (u16, u16),
    name: (u16, u16),
    status: (u16, u16),
    ironic: (u16, u16),
    standing: (u16, u16),
    time: (u16, u16),
    owner: (u16, u16),
}

pub fn draw(pen: &mut Pen, model: &Model, area: Rect, lines: Rect) {
    let focused = model.fleet.pane == Pane::Table && model.popup.is_none();
    heading(pen, model, row(area, 0), focused);
    let columns = columns(model, area.width);
    names(pen, row(area, 1), &columns);
    if model.fleet.shown.is_empty() {
        return empty(pen, model, lines);
    }
    let cursor = model.fleet.cursor();
    for at in 0..usize::from(lines.height) {
        let index = model.fleet.table_top + at;
        let Some(host) = model.fleet.row(index) else { break };
        let line = row(lines, at);
        host_line(pen, model, host, line, &columns);
        if cursor == Some(index) {
            pen.tint(line, if focused { Meaning::Selection } else { Meaning::SelectionIdle });
            if focused {
                let sign = pen.skin.glyphs.cursor();
                pen.write(line, 0, sign, Meaning::Accent);
            }
        }
    }
}

/// The place, or the filter while one narrows it.
fn heading(pen: &mut Pen, model: &Model, line: Rect, focused: bool) {
    let fleet = &model.fleet;
    let typing = action::here(model) == Where::Filter;
    let shown = if fleet.filter.is_empty() {
        text::count(fleet.in_place, "device")
    } else {
        format!("{} of {}", fleet.shown.len(), fleet.in_place)
    };
    let end = [piece(shown, Meaning::Muted)];
    let title = [piece(fleet.place.name().to_owned(), Meaning::Accent)];
    pen.heading(line, &title, &end, focused);
    if typing || !fleet.filter.is_empty() {
        let at = 2 + text::width(fleet.place.name()) as u16;
        let at = pen.write(line, at, "/", Meaning::Key);
        let end_at = line.width.saturating_sub(text::width(&end[0].text) as u16 + 5);
        let width = end_at.saturating_sub(at).min(44);
        field(pen, line, at, width, &fleet.filter, typing);
    }
}

fn columns(model: &Model, width: u16) -> Columns {
    let rack_wanted = model.fleet.place.depth() < 3;
    let name = model.fleet.name_width as u16;
    let rack = model.fleet.rack_width as u16;
    let (status, ironic) = (model.fleet.status_width as u16, model.fleet.ironic_width as u16);
    let (time, owner) = (10, 10);
    let mut at = 2;
    let mut take = |want: bool, w: u16| {
        let column = if want { (at, w) } else { (at, 0) };
        at += if want { w + 2 } else { 0 };
        column
    };
    let roomy = width >= 66;
    let wide = width >= 96;
    let mut out = Columns {
        rack: take(rack_wanted, rack),
        unit: take(true, 3),
        name: take(true, if roomy { name } else { name.min(14) }),
        status: take(roomy, status),
        ironic: take(roomy, ironic),
        ..Columns::default()
    };
    let owner_width = if wide { owner + 2 } else { 0 };
    let rest = width.saturating_sub(at + time + 2 + owner_width + 1);
    out.standing = (at, rest);
    out.time = (at + rest + 2, time);
    out.owner = (at + rest + 2 + time + 2, if wide { owner } else { 0 });
    out
}

fn names(pen: &mut Pen, line: Rect, columns: &Columns) {
    pen.column(line, columns.rack.0, columns.rack.1, "rack", Meaning::Muted, Keep::Start);
    pen.column_right(line, columns.unit.0, columns.unit.1, "U", Meaning::Muted);
    pen.column(line, columns.name.0, columns.name.1, "device", Meaning::Muted, Keep::Start);
    pen.column(line, columns.status.0, columns.status.1, "netbox", Meaning::Muted, Keep::Start);
    pen.column(line, columns.ironic.0, columns.ironic.1, "ironic", Meaning::Muted, Keep::Start);
    pen.column(line, columns.standing.0, columns.standing.1, "  last run", Meaning::Muted, Keep::Start);
    if columns.owner.1 > 0 {
        pen.column(line, columns.owner.0, columns.owner.1, "for", Meaning::Muted, Keep::Start);
    }
}

fn host_line(pen: &mut Pen, model: &Model, host: &Host, line: Rect, columns: &Columns) {
    let d = &host.device;
    let marked = model.fleet.marks.contains(&d.netbox_id);
    if marked {
        let sign = pen.skin.glyphs.marked();
        pen.write(line, 1, sign, Meaning::Mark);
    }
    pen.column(line, columns.rack.0, columns.rack.1, d.rack.as_deref().unwrap_or("–"), Meaning::Muted, Keep::End);
    let unit = unit_text(d.position);
    let (unit, unit_meaning) = if unit.is_empty() { ("–", Meaning::Warn) } else { (unit.as_str(), Meaning::Muted) };
    pen.column_right(line, columns.unit.0, columns.unit.1, unit, unit_meaning);
    let name_meaning = match (marked, host.is_bystander()) {
        (true, _) => Meaning::Mark,
        (false, true) => Meaning::Muted,
        (false, false) => Meaning::Strong,
    };
    pen.column(line, columns.name.0, columns.name.1, &d.name, name_meaning, Keep::End);
    pen.column(line, columns.status.0, columns.status.1, &d.status, status_meaning(&d.status), Keep::Start);
    let (state, state_meaning) = ironic(host);
    pen.column(line, columns.ironic.0, columns.ironic.1, &state, state_meaning, Keep::Start);
    let standing = standing(host, model.live_view(host), model.queued(host), model.now);
    let meaning = meaning_of(standing.status);
    pen.sign(line, columns.standing.0, standing.status);
    let text_width = columns.standing.1.saturating_sub(2);
    // A sentence that is cut after its first words says less than a few words that are whole.
    let fits = |text: &&String| text::width(text).min(60) <= usize::from(text_width);
    let shortest = standing.shorter.last().unwrap_or(&standing.text);
    let text = std::iter::once(&standing.text).chain(&standing.shorter).find(fits).unwrap_or(shortest);
    pen.column(line, columns.standing.0 + 2, text_width, text, meaning, Keep::Start);
    // Without a column of its own the owner stands where the time would: who comes before when.
    let (owner_column, time_column) = (columns.owner, columns.time);
    match standing.owner {
        Some(owner) if owner_column.1 == 0 => {
            pen.column_right(line, time_column.0, time_column.1, owner_word(owner), owner_meaning(owner));
        }
        owner => {
            pen.column_right(line, time_column.0, time_column.1, &standing.time, time_meaning(&standing.time));
            if let Some(owner) = owner {
                let meaning = owner_meaning(owner);
                pen.column(line, owner_column.0, owner_column.1, owner_word(owner), meaning, Keep::Start);
            }
        }
    }
}

/// NetBox's status: what may be enrolled reads as text, the rest steps back.
fn status_meaning(status: &str) -> Meaning {
    match status {
        "active" | "staged" => Meaning::Text,
        _ => Meaning::Muted,
    }
}

/// Ironic's state; what a person has to look at stands out.
pub fn ironic(host: &Host) -> (String, Meaning) {
    let Some(ironic) = &host.ironic else { return ("–".to_owned(), Meaning::Muted) };
    let meaning = match &ironic.state {
        ProvisionState::Available | ProvisionState::Active => Meaning::Ok,
        ProvisionState::InspectFailed
        | ProvisionState::CleanFailed
        | ProvisionState::DeployFailed
        | ProvisionState::Error => Meaning::Fail,
        state if !state.is_stable() => Meaning::Run,
        _ => Meaning::Text,
    };
    (ironic.state.to_string(), meaning)
}

/// The owner in a column; `ONSITE` is who sits here.
pub fn owner_word(owner: Owner) -> &'static str {
    match owner {
        Owner::Onsite => "you",
        Owner::Netops => "netops",
        Owner::InfraEng => "infra-eng",
        Owner::FleetManager => "fleet-mgr",
    }
}

pub fn owner_meaning(owner: Owner) -> Meaning {
    if owner == Owner::Onsite { Meaning::Action } else { Meaning::Text }
}

fn time_meaning(time: &str) -> Meaning {
    if time.ends_with("left") { Meaning::Text } else { Meaning::Muted }
}

fn empty(pen: &mut Pen, model: &Model, lines: Rect) {
    let fleet = &model.fleet;
    let say: Vec<Piece> = if !fleet.filter.is_empty() {
        vec![
            piece(format!("no host of {} matches  ", fleet.place.name()), Meaning::Text),
            piece("esc", Meaning::Key),
            piece(" clears the filter", Meaning::Text),
        ]
    } else if !fleet.loaded {
        vec![piece("reading the store", Meaning::Muted)]
    } else {
        vec![
            piece("no device yet: NetBox is being read  ", Meaning::Text),
            piece("ctrl-r", Meaning::Key),
            piece(" asks it now", Meaning::Text),
        ]
    };
    pen.pieces(row(lines, 1), 3, &say);
}
