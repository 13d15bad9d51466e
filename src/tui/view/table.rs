//! The hosts of a place, from the top of the rack down. Columns leave by their worth: name and standing last.

use ratatui::layout::Rect;

use crate::domain::failure::Owner;
use crate::domain::provision::ProvisionState;
use crate::tui::action::{self, Where};
use crate::tui::model::Model;
use crate::tui::model::fleet::{Fleet, Pane};
use crate::tui::model::host::{Host, standing, unit_text};
use crate::tui::model::sort::{By, Sort};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::field::field;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, pieces_width, row};

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
    if !model.fleet.hosts.is_empty() {
        names(pen, row(area, 1), &columns, model.fleet.sort);
    }
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
    let shown = if fleet.is_partial {
        format!("the first {}, reading the others", fleet.shown.len())
    } else if fleet.filter.is_empty() {
        text::count(fleet.in_place, "device")
    } else {
        format!("{} of {}", fleet.shown.len(), fleet.in_place)
    };
    let mut end = vec![piece(shown, Meaning::Muted)];
    if !fleet.sort.is_usual() {
        let arrow = pen.skin.glyphs.sorted(fleet.sort.reversed);
        end.push(piece(format!(" by {} {arrow}", fleet.sort.by.words()), Meaning::Key));
    }
    let title = [piece(fleet.place.name().to_owned(), Meaning::Accent)];
    pen.heading(line, &title, &end, focused);
    if typing || !fleet.filter.is_empty() {
        let at = 2 + text::width(fleet.place.name()) as u16;
        let at = pen.write(line, at, "/", Meaning::Key);
        let end_at = line.width.saturating_sub(pieces_width(&end) as u16 + 5);
        let width = end_at.saturating_sub(at).min(44);
        field(pen, line, at, width, &fleet.filter, typing);
    }
}

/// Columns of a time or an owner.
const END: u16 = 10;
/// How a host stands has at least so many columns.
const STANDING: u16 = 18;
/// Names have at most so many where it gets narrow.
const SHORT_NAME: u16 = 14;

/// What may leave when the screen narrows, the least important first. Name and standing never do.
const FOLDS: [Fold; 6] = [Fold::Owner, Fold::Status, Fold::Name, Fold::Ironic, Fold::Rack, Fold::Unit];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// The owner stands where the time would.
    Owner,
    Status,
    Ironic,
    Rack,
    Unit,
    /// The name is cut at its beginning.
    Name,
}

fn columns(model: &Model, width: u16) -> Columns {
    let fleet = &model.fleet;
    let folds: Vec<&[Fold]> = (0..=FOLDS.len()).map(|n| &FOLDS[..n]).collect();
    let fit = folds.into_iter().map(|folded| laid_out(fleet, width, folded));
    let wide = |columns: &Columns| columns.standing.1 >= STANDING;
    let mut fit = fit.skip_while(|columns| !wide(columns));
    fit.next().unwrap_or_else(|| laid_out(fleet, width, &FOLDS))
}

/// The columns from left to right, with what is left for how a host stands.
fn laid_out(fleet: &Fleet, width: u16, folded: &[Fold]) -> Columns {
    let has = |fold: Fold| !folded.contains(&fold);
    let name = fleet.widths.name as u16;
    let mut at = 2;
    let mut take = |want: bool, w: u16| {
        let column = if want { (at, w) } else { (at, 0) };
        at += if want { w + 2 } else { 0 };
        column
    };
    let mut out = Columns {
        rack: take(fleet.place.depth() < 3 && has(Fold::Rack), fleet.widths.rack as u16),
        unit: take(has(Fold::Unit), 3),
        name: take(true, if has(Fold::Name) { name } else { name.min(SHORT_NAME) }),
        status: take(has(Fold::Status), fleet.widths.status as u16),
        ironic: take(has(Fold::Ironic), fleet.widths.ironic as u16),
        ..Columns::default()
    };
    let owner = if has(Fold::Owner) { END + 2 } else { 0 };
    let rest = width.saturating_sub(at + END + 2 + owner + 1);
    out.standing = (at, rest);
    out.time = (at + rest + 2, END);
    out.owner = (at + rest + 2 + END + 2, if has(Fold::Owner) { END } else { 0 });
    out
}

fn names(pen: &mut Pen, line: Rect, columns: &Columns, sort: Sort) {
    let arrow = pen.skin.glyphs.sorted(sort.reversed);
    let mut column = |(at, width): (u16, u16), name: &str, by: Option<By>| {
        if width == 0 {
            return;
        }
        let is_it = by == Some(sort.by) && !sort.is_usual();
        let meaning = if is_it { Meaning::Key } else { Meaning::Muted };
        pen.column(line, at, width, name, meaning, Keep::Start);
        if is_it {
            // Beside the name where there is room for it, else in its last cell.
            let beside = (text::width(name) as u16 + 1).min(width - 1);
            pen.write(line, at + beside, arrow, meaning);
        }
    };
    column(columns.rack, "rack", Some(By::Place));
    // At the right end, as the numbers are.
    let unit = (columns.unit.0 + columns.unit.1.saturating_sub(1), columns.unit.1.min(1));
    column(unit, "U", None);
    column(columns.name, "device", Some(By::Name));
    column(columns.status, "netbox", Some(By::Status));
    column(columns.ironic, "ironic", Some(By::Ironic));
    column((columns.standing.0 + 2, columns.standing.1.saturating_sub(2)), "last run", Some(By::Need));
    column(columns.owner, "for", None);
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
            pen.column_right(line, time_column.0, time_column.1, owner.in_column(), owner_meaning(owner));
        }
        owner => {
            pen.column_right(line, time_column.0, time_column.1, &standing.time, time_meaning(&standing.time));
            if let Some(owner) = owner {
                let meaning = owner_meaning(owner);
                pen.column(line, owner_column.0, owner_column.1, owner.in_column(), meaning, Keep::Start);
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
            // A NetBox that was heard has none; one that was not may have any.
            match model.health.iter().find(|system| system.name == "netbox") {
                Some(netbox) if netbox.error.is_some() => {
                    piece("no device yet: NetBox does not answer  ", Meaning::Text)
                }
                Some(netbox) if netbox.ok_at.is_some() => piece("NetBox has no racked host here  ", Meaning::Text),
                _ => piece("no device yet: NetBox is being read  ", Meaning::Text),
            },
            piece("ctrl-r", Meaning::Key),
            piece(" asks it now", Meaning::Text),
        ]
    };
    pen.pieces(row(lines, 1), 3, &say);
}
