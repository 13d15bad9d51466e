//! The selected host's story: a strip under the table, or a column at the side where there is room for all of it.

use ratatui::layout::Rect;

use super::table::{ironic, owner_meaning};
use super::{events, links, phases};
use crate::domain::failure::Owner;
use crate::domain::run_view::RunView;
use crate::domain::usual::Figures;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, standing, unit_text};
use crate::tui::model::run_screen::{RunPane, rows};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, row};

/// Of the host that keys act on. Returns the lines that are left below it.
pub fn draw(pen: &mut Pen, model: &Model, area: Rect, at_side: bool) -> Rect {
    let host = model.target();
    let inside = frame(pen, area, at_side);
    if at_side {
        column(pen, model, host, inside);
        return Rect { height: 0, ..inside };
    }
    match host {
        Some(host) => {
            let used = strip(pen, model, host, inside);
            layout::top(inside, used).1
        }
        None => {
            pen.write(row(inside, 0), 1, "no host is selected", Meaning::Muted);
            Rect { height: 0, ..inside }
        }
    }
}

/// The line that parts it from the rest. Returns what is left.
pub fn frame(pen: &mut Pen, area: Rect, at_side: bool) -> Rect {
    if at_side {
        let bar = pen.skin.glyphs.bar();
        let (line, rest) = layout::left(area, 1);
        pen.fill(line, bar, Meaning::Rule);
        return rest;
    }
    let rule = pen.skin.glyphs.rule();
    pen.fill(row(area, 0), rule, Meaning::Rule);
    layout::top(area, 1).1
}

/// What is to be said of how a host stands: the fact, then what to do.
struct Story {
    fact: String,
    meaning: Meaning,
    sign: crate::tui::glyphs::Status,
    owner: Option<Owner>,
    action: Option<String>,
}

fn story(model: &Model, host: &Host) -> Story {
    let standing = standing(host, model.live_view(host), model.queued(host), model.now);
    let meaning = meaning_of(standing.status);
    let mut story =
        Story { fact: standing.text.clone(), meaning, sign: standing.status, owner: standing.owner, action: None };
    if let Some(failure) = host.failure() {
        story.action = Some(failure.action.clone());
    } else if let Some(refusal) = host.refused().filter(|_| standing.owner.is_some()) {
        story.action = Some(refusal.action);
    } else if let Some(last) = host.last_run.as_ref().filter(|r| r.is_live()) {
        let head = format!("run {} · by {} · ", last.run.short(), last.by);
        let view = model.live_view(host);
        let waits = view.and_then(|v| v.wait.as_ref()).map(|w| w.reason.text.clone());
        story.fact = format!("{head}{}", waits.unwrap_or(standing.text));
        if !standing.time.is_empty() {
            story.fact.push_str(&format!(" · {}", standing.time));
        }
    } else if let Some(last) = &host.last_run {
        story.fact = format!("{} {} · run {} · by {}", standing.text, standing.time, last.run.short(), last.by);
        if host.is_proven {
            story.fact.push_str(" · proven");
        }
    } else if host.is_bystander() {
        story.fact = host.refused().map(|refusal| refusal.message).unwrap_or_default();
    } else if host.is_deployed() {
        story.fact = "never enrolled by muster; deployed: an enrollment could restart it".to_owned();
    } else {
        story.fact = "never enrolled by muster".to_owned();
    }
    story
}

/// Returns how many lines it took.
fn strip(pen: &mut Pen, model: &Model, host: &Host, area: Rect) -> u16 {
    let d = &host.device;
    let story = story(model, host);
    let line = row(area, 0);
    let at = pen.write(line, 1, &d.name, Meaning::Strong);
    let owner = story.owner.map(|o| piece(format!("for {}", o.as_str()), owner_meaning(o)));
    let end = match owner {
        Some(owner) => pen.right(line, &[owner, piece(" ", Meaning::Text)]),
        None => line.width,
    };
    let facts = facts(host).into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(" · ");
    pen.column(line, at + 3, end.saturating_sub(at + 5), &facts, Meaning::Muted, Keep::Start);
    let width = usize::from(area.width.saturating_sub(4));
    let rows = usize::from(area.height.saturating_sub(1));
    // The action has its lines first: the fact is cut for it, never the other way round.
    let action = story.action.as_deref().map(|a| text::wrap_to(a, width, rows.saturating_sub(1))).unwrap_or_default();
    let fact = text::wrap_to(&story.fact, width, rows.saturating_sub(action.len()));
    pen.sign(row(area, 1), 1, story.sign);
    for (at, line) in fact.iter().enumerate() {
        pen.write(row(area, 1 + at), 3, line, story.meaning);
    }
    let arrow = pen.skin.glyphs.arrow();
    for (at, line) in action.iter().enumerate() {
        let target = row(area, 1 + fact.len() + at);
        if at == 0 {
            pen.write(target, 1, arrow, Meaning::Action);
        }
        pen.write(target, 3, line, Meaning::Action);
    }
    (1 + fact.len() + action.len()) as u16
}

/// What NetBox and Ironic know of a host, by name and value.
fn facts(host: &Host) -> Vec<(&'static str, String)> {
    let d = &host.device;
    let mut out = vec![("model", format!("{} {}", d.manufacturer, d.model))];
    if let Some(class) = d.platform_class.as_ref().or(d.device_class.as_ref()) {
        out.push(("class", class.to_string()));
    }
    if let Some(ip) = &d.oob_ip {
        out.push(("BMC", format!("BMC {}", ip.split('/').next().unwrap_or(ip))));
    }
    if let Some(serial) = &d.serial {
        out.push(("serial", format!("serial {serial}")));
    }
    out
}

fn column(pen: &mut Pen, model: &Model, host: Option<&Host>, area: Rect) {
    pen.heading(row(area, 0), &[piece("host", Meaning::Strong)], &[], false);
    let Some(host) = host else {
        pen.write(row(area, 2), 2, "no host is selected", Meaning::Muted);
        return;
    };
    let d = &host.device;
    let mut at = 1;
    let inner = Rect { x: area.x + 2, width: area.width.saturating_sub(4), ..area };
    let place = match (&d.rack, d.position) {
        (Some(rack), Some(_)) => format!("{rack} U{}", unit_text(d.position)),
        (Some(rack), None) => format!("{rack}, no unit"),
        (None, _) => "no rack".to_owned(),
    };
    let line = row(inner, at);
    pen.write(line, 0, &d.name, Meaning::Strong);
    pen.right(line, &[piece(place, Meaning::Text)]);
    at += 2;
    let (state, state_meaning) = ironic(host);
    let mut lines: Vec<(&str, String, Meaning)> =
        vec![("netbox", d.status.to_string(), Meaning::Text), ("ironic", ironic_line(host, &state), state_meaning)];
    for (name, value) in facts(host) {
        let value = value.strip_prefix(name).map_or(value.clone(), |v| v.trim().to_owned());
        lines.push((name, value, Meaning::Text));
    }
    if !d.tags.is_empty() {
        lines.push(("tags", d.tags.join(", "), Meaning::Text));
    }
    for (name, value, meaning) in lines {
        let line = row(inner, at);
        pen.write(line, 0, name, Meaning::Muted);
        pen.column(line, 8, line.width.saturating_sub(8), &value, meaning, Keep::Start);
        at += 1;
    }
    at += 1;
    at = story_lines(pen, model, host, inner, at);
    if let Some(view) = host.last_run.as_ref().and_then(|r| model.runs.get(&r.run)) {
        run_lines(pen, view, &model.figures(&d.name), area, inner, at + 1);
    }
}

fn ironic_line(host: &Host, state: &str) -> String {
    let Some(ironic) = &host.ironic else { return "no node".to_owned() };
    let mut out = format!("{state} · {}", ironic.instance);
    if ironic.maintenance {
        out.push_str(" · maintenance");
    }
    if ironic.instance_uuid.is_some() {
        out.push_str(" · has an instance");
    }
    out
}

fn story_lines(pen: &mut Pen, model: &Model, host: &Host, inner: Rect, mut at: usize) -> usize {
    let story = story(model, host);
    let width = usize::from(inner.width.saturating_sub(2));
    pen.sign(row(inner, at), 0, story.sign);
    for line in text::wrap(&story.fact, width) {
        pen.write(row(inner, at), 2, &line, story.meaning);
        at += 1;
    }
    if let Some(failure) = host.failure() {
        let pieces: [Piece; 2] = [
            piece(failure.code.as_str(), Meaning::Muted),
            piece(format!(" in {}", failure.phase.label()), Meaning::Muted),
        ];
        pen.pieces(row(inner, at), 2, &pieces);
        at += 1;
    }
    if let Some(action) = &story.action {
        at += 1;
        let arrow = pen.skin.glyphs.arrow();
        pen.write(row(inner, at), 0, arrow, Meaning::Action);
        for line in text::wrap(action, width) {
            pen.write(row(inner, at), 2, &line, Meaning::Action);
            at += 1;
        }
        if let Some(owner) = story.owner {
            pen.pieces(row(inner, at), 2, &[piece(owner.as_str(), owner_meaning(owner))]);
            at += 1;
        }
    }
    at
}

/// The last run in short: phases, links, the latest events.
fn run_lines(pen: &mut Pen, view: &RunView, figures: &Figures, area: Rect, inner: Rect, mut at: usize) {
    let height = usize::from(area.height);
    let id = view.run.map(|r| r.short()).unwrap_or_default();
    pen.heading(row(area, at), &[piece(format!("run {id}"), Meaning::Strong)], &[], false);
    at += 1;
    for phase in &view.phases {
        phases::line(pen, phase, view, figures, row(inner, at));
        at += 1;
    }
    let link_rows = rows(view, RunPane::Links, false, inner.width);
    if !link_rows.is_empty() && at + link_rows.len() + 6 < height {
        at += 1;
        pen.heading(row(area, at), &[piece("link guard", Meaning::Strong)], &links::end(pen, view), false);
        at += 1;
        for link in link_rows {
            links::line(pen, view, link, row(inner, at));
            at += 1;
        }
    }
    if at + 3 < height {
        at += 1;
        pen.heading(row(area, at), &[piece("events", Meaning::Strong)], &[], false);
        at += 1;
        for event in view.events.iter().rev().take(height.saturating_sub(at)) {
            events::line(pen, view, event, row(inner, at));
            at += 1;
        }
    }
}
