//! The header: where you are, what runs, what waits for you, and how fresh each system is.

use ratatui::layout::Rect;

use crate::app::Role;
use crate::domain::text::neutralize;
use crate::tui::glyphs::Status;
use crate::tui::layout::WIDE;
use crate::tui::model::host::SystemHealth;
use crate::tui::model::place::Place;
use crate::tui::model::{Model, Screen};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, piece, pieces_width};

/// After so many seconds without an answer a system's age is shown as stale.
const STALE_S: u64 = 120;

pub fn draw(pen: &mut Pen, model: &Model) {
    let row = Rect::new(0, 0, model.width, 1);
    pen.ground(row, Meaning::Bar);
    let brand = if model.width >= WIDE { 8 } else { 0 };
    let names = names(model);
    // The end of the header gives way to the place, step by step: fresh systems first, then what is queued, then the names
    // of the troubled systems, whose number stays.
    // That certificates are not checked is always said, with fewer words where there is less room.
    let [whole, short, sign] = unchecked(model);
    let ends = [
        (Systems::All, true, &whole, true),
        (Systems::Troubled, true, &whole, true),
        (Systems::Troubled, true, &short, true),
        (Systems::Troubled, false, &short, false),
        (Systems::Number, false, &short, false),
        (Systems::Number, false, &sign, false),
    ];
    let mut chosen = Vec::new();
    for (systems, queued, mark, all_names) in ends {
        chosen = end(pen, model, systems, queued, mark.as_deref());
        let room = usize::from(row.width).saturating_sub(pieces_width(&chosen) + 2 + brand);
        let wanted = if all_names { path_width(&names) } else { names.last().map_or(0, |n| text::width(n)) };
        if wanted <= room {
            break;
        }
    }
    let room = usize::from(row.width).saturating_sub(pieces_width(&chosen) + 1) as u16;
    let left = Rect { width: room, ..row };
    let mut at = 1;
    if brand > 0 {
        pen.write(left, at, "muster", Meaning::Accent);
        at += brand as u16;
    }
    let path = path_width(&names) as u16;
    // What there is room for, the rest is left out: the place goes first.
    let mut beside = at + path + 3;
    for told in [model.title.as_deref().map(|title| vec![title.to_owned()]), follows(model)].into_iter().flatten() {
        let fits = |text: &String| usize::from(beside) + text::width(text) < usize::from(left.width);
        if let Some(text) = told.iter().find(|text| fits(text)) {
            beside = pen.write(left, beside, text, Meaning::Bar) + 3;
        }
    }
    breadcrumb(pen, &names, left, at);
    pen.right(row, &chosen);
}

/// That another process runs the engine, in full and in short; `None` where this one does.
fn follows(model: &Model) -> Option<Vec<String>> {
    let Some(Role::Following { leader }) = &model.role else { return None };
    let Some(leader) = leader else { return Some(vec!["follows another process".to_owned()]) };
    let words = [format!("follows {leader}"), format!("follows process {}", leader.pid)];
    Some(words.iter().map(|text| neutralize(text).into_owned()).collect())
}

/// How much is said of the systems.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Systems {
    All,
    /// Those that are old or do not answer.
    Troubled,
    /// How many these are.
    Number,
}

/// Counts and health, as much of them as is asked for.
fn end(pen: &Pen, model: &Model, systems: Systems, queued: bool, mark: Option<&str>) -> Vec<Piece<'static>> {
    let mut out = counts(model, queued);
    if let Some(mark) = mark {
        let sign = pen.skin.glyphs.status(Status::Warned, pen.now);
        out.insert(0, piece(format!("{sign} {mark}"), Meaning::Warn));
        if out.len() > 1 {
            out.insert(1, piece("   ", Meaning::Bar));
        }
    }
    let health = health(model, systems);
    if !out.is_empty() && !health.is_empty() {
        out.push(piece("   ", Meaning::Bar));
    }
    out.extend(health);
    out.push(piece(" ", Meaning::Bar));
    out
}

/// Which systems of the sites that show are asked without a look at their certificates: in full, in short, and as short as a
/// host's name beside it needs (B20).
fn unchecked(model: &Model) -> [Option<String>; 3] {
    let shown = model.sites_shown();
    let here = |site: &str| shown.as_ref().is_none_or(|shown| shown.contains(site));
    let found: Vec<(&String, &Vec<String>)> = model.unchecked.iter().filter(|(site, _)| here(site)).collect();
    let whole = match (found.as_slice(), &shown) {
        ([], _) => return [None, None, None],
        ([(_, systems)], Some(_)) => systems.join(", "),
        ([(site, systems)], None) => format!("{site} {}", systems.join(", ")),
        (several, _) => several.iter().map(|(site, _)| site.as_str()).collect::<Vec<_>>().join(", "),
    };
    let short = "TLS unchecked".to_owned();
    [Some(format!("{short}: {}", neutralize(&whole))), Some(short), Some("TLS?".to_owned())]
}

fn path_width(names: &[String]) -> usize {
    names.iter().map(|n| text::width(n)).sum::<usize>() + 3 * names.len().saturating_sub(1)
}

/// The way to where you are; the last name is the one that is looked for.
fn breadcrumb(pen: &mut Pen, names: &[String], area: Rect, at: u16) {
    let step = format!(" {} ", pen.skin.glyphs.step());
    let room = usize::from(area.width.saturating_sub(at));
    // The large places go first when there is no room: the person knows the site.
    let mut from = 0;
    while from + 1 < names.len() && path_width(&names[from..]) > room {
        from += 1;
    }
    let mut at = at;
    for (n, name) in names.iter().enumerate().skip(from) {
        let last = n + 1 == names.len();
        if n > from {
            at = pen.write(area, at, &step, Meaning::Bar);
        }
        let left = usize::from(area.width.saturating_sub(at));
        let meaning = if last { Meaning::Strong } else { Meaning::BarStrong };
        at = pen.write(area, at, &text::cut(name, left, Keep::End), meaning);
    }
}

fn names(model: &Model) -> Vec<String> {
    let place = |p: &Place| if p.0.is_empty() { vec!["all sites".to_owned()] } else { p.0.clone() };
    match model.screens.last() {
        Some(Screen::Run(screen)) => of_host(model, &screen.host),
        Some(Screen::History(screen)) => [of_host(model, &screen.host), vec!["history".to_owned()]].concat(),
        Some(Screen::Compare(screen)) => [of_host(model, &screen.host), vec!["compare".to_owned()]].concat(),
        Some(Screen::Walk(_)) => [place(&model.fleet.place), vec!["for you".to_owned()]].concat(),
        Some(Screen::Rack(screen)) => [place(&screen.place), vec!["units".to_owned()]].concat(),
        Some(Screen::Log) => vec!["log".to_owned()],
        None => place(&model.fleet.place),
    }
}

fn of_host(model: &Model, host: &str) -> Vec<String> {
    let mut names = model.fleet.by_name(host).map(|h| Place::of(h).0).unwrap_or_default();
    names.push(host.to_owned());
    names
}

/// Running, queued, and what waits for the hands at the rack. Nothing where there is nothing.
fn counts(model: &Model, with_queued: bool) -> Vec<Piece<'static>> {
    let totals = model.fleet.totals;
    let mut out: Vec<Piece> = Vec::new();
    if model.fleet.is_partial {
        // What runs and what waits is not known before all hosts are.
        return vec![piece("reading the fleet", Meaning::BarStrong)];
    }
    let parts = [
        (totals.running, "running", Meaning::Run),
        (if with_queued { totals.queued } else { 0 }, "queued", Meaning::BarStrong),
        (totals.for_hands, "for you", Meaning::Fail),
    ];
    for (n, word, meaning) in parts.into_iter().filter(|(n, ..)| *n > 0) {
        if !out.is_empty() {
            out.push(piece("  ", Meaning::Bar));
        }
        out.push(piece(n.to_string(), meaning));
        out.push(piece(format!(" {word}"), Meaning::BarStrong));
    }
    out
}

/// For each system the time since it was last heard, or only for those that are in trouble.
fn health(model: &Model, systems: Systems) -> Vec<Piece<'static>> {
    let mut out: Vec<Piece> = Vec::new();
    let (mut silent, mut old) = (0, 0);
    // A reading of its own of a system that stands here anyway: said only where that one is well and it is not.
    let well = |name: &str| model.health.iter().any(|system| system.name == name && system.error.is_none());
    let shown = |system: &&SystemHealth| system.name != "netbox:wiring" || (system.error.is_some() && well("netbox"));
    for system in model.health.iter().filter(shown) {
        let (text, meaning) = health_text(system, model);
        silent += usize::from(meaning == Meaning::Fail);
        old += usize::from(meaning == Meaning::Warn);
        if systems != Systems::All && meaning == Meaning::Bar {
            continue;
        }
        if !out.is_empty() {
            out.push(piece(" · ", Meaning::Bar));
        }
        out.push(piece(text, meaning));
    }
    match (systems, silent, old) {
        (Systems::Number, 0, 0) => Vec::new(),
        (Systems::Number, 0, old) => vec![piece(format!("{} old", text::count(old, "system")), Meaning::Warn)],
        (Systems::Number, silent, _) => vec![piece(format!("{} down", text::count(silent, "system")), Meaning::Fail)],
        (Systems::All | Systems::Troubled, ..) => out,
    }
}

fn health_text(system: &SystemHealth, model: &Model) -> (String, Meaning) {
    let name = match system.name.split_once(':') {
        Some(("ironic", instance)) if model.health.iter().filter(|h| h.name.starts_with("ironic")).count() > 1 => {
            format!("Ironic {instance}")
        }
        Some(("ironic", _)) => "Ironic".to_owned(),
        _ if system.name == "netbox" => "NetBox".to_owned(),
        _ if system.name == "netbox:wiring" => "NetBox wiring".to_owned(),
        _ if system.name == "ironic" => "Ironic".to_owned(),
        _ => system.name.clone(),
    };
    let age = system.ok_at.map(|at| text::seconds(at, model.now));
    match (&system.error, age) {
        (Some(_), Some(age)) => (format!("{name} no answer {}", text::rough(age)), Meaning::Fail),
        (Some(_), None) => (format!("{name} no answer"), Meaning::Fail),
        (None, None) => (format!("{name} not read"), Meaning::Warn),
        (None, Some(age)) if age > STALE_S => (format!("{name} {}", text::rough(age)), Meaning::Warn),
        (None, Some(age)) => (format!("{name} {}", text::rough(age)), Meaning::Bar),
    }
}
