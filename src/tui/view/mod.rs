//! Draws the model. Reads `model.now`, never a clock; formats only what shows; works at any size.

mod cleaning;
mod compare;
mod confirm;
mod detail;
mod diff;
mod events;
mod fleet;
mod footer;
mod header;
mod help;
mod history;
mod launch;
mod links;
mod log;
pub mod now;
mod palette;
pub mod phases;
mod plan;
mod power;
mod rack;
mod rack_device;
mod run;
mod table;
mod toasts;
mod walk;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::layout::{self, LEAST};
use super::model::{Model, Popup, Screen};
use super::theme::Meaning;
use super::widgets::pen::{Pen, Skin, row};

pub use log::LogPane;

/// Draws one frame.
pub fn draw(model: &Model, skin: &Skin, log: &LogPane, buf: &mut Buffer) {
    let mut pen = Pen { buf, skin, now: model.moment() };
    let area = pen.buf.area;
    pen.ground(area, Meaning::Text);
    if !layout::fits(model) {
        return too_small(&mut pen, area, model);
    }
    header::draw(&mut pen, model);
    match model.screens.last() {
        Some(Screen::Run(screen)) => run::draw(&mut pen, model, screen),
        Some(Screen::Walk(screen)) => walk::draw(&mut pen, model, screen),
        Some(Screen::Rack(screen)) => rack::draw(&mut pen, model, screen),
        Some(Screen::History(screen)) => history::draw(&mut pen, model, screen),
        Some(Screen::Compare(screen)) => compare::draw(&mut pen, model, screen),
        Some(Screen::Log) => log::draw(&mut pen, layout::body(model), log),
        None => fleet::draw(&mut pen, model),
    }
    match &model.popup {
        Some(Popup::Help { top }) => help::draw(&mut pen, model, *top),
        Some(Popup::Launch(launch)) => launch::draw(&mut pen, model, launch),
        Some(Popup::Plan(popup)) => plan::draw(&mut pen, model, popup),
        Some(Popup::Power(dialog)) => power::draw(&mut pen, model, dialog),
        Some(Popup::Confirm(confirm)) => confirm::draw(&mut pen, model, confirm),
        Some(Popup::Palette(palette)) => palette::draw(&mut pen, model, palette),
        None => {}
    }
    toasts::draw(&mut pen, model);
    footer::draw(&mut pen, model);
}

/// A calm line: runs go on whether somebody looks or not.
fn too_small(pen: &mut Pen, area: Rect, model: &Model) {
    let (width, height) = LEAST;
    let lines = [
        format!("muster needs {width}×{height},"),
        format!("this is {}×{}.", area.width, area.height),
        "Runs go on.".to_owned(),
    ];
    let live = model.fleet.totals.running + model.fleet.totals.queued;
    let top = usize::from(area.height.saturating_sub(3) / 2);
    for (at, line) in lines.iter().enumerate() {
        let text = if at == 2 && live > 0 && !model.fleet.is_partial {
            format!("{live} under way go on.")
        } else {
            line.clone()
        };
        let indent = usize::from(area.width).saturating_sub(crate::tui::text::width(&text)) / 2;
        let meaning = if at == 0 { Meaning::Strong } else { Meaning::Text };
        pen.write(row(area, top + at), indent as u16, &text, meaning);
    }
}
