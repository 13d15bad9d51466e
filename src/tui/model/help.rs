//! What the help view says: for where you are.

use super::Model;
use crate::domain::failure::FailureCode;
use crate::tui::action::{self, Def, TABLE, Where};
use crate::tui::glyphs::Status;
use crate::tui::model::filter;

/// A line of the help.
#[derive(Debug, Clone, PartialEq)]
pub enum HelpLine {
    Heading(String),
    Blank,
    Key { keys: Vec<String>, name: &'static str, about: &'static str, reason: Option<String> },
    Filter { key: &'static str, about: &'static str },
    Sign(Status),
    Code(FailureCode),
}

/// The lines of the help for the view that shows.
pub fn lines(model: &Model) -> Vec<HelpLine> {
    let view = action::view(model);
    let mut out = vec![HelpLine::Heading(match view {
        Where::Run => "keys of the run view".to_owned(),
        Where::Walk => "keys of what waits for you".to_owned(),
        Where::Rack => "keys of a rack".to_owned(),
        Where::History => "keys of a host's runs".to_owned(),
        Where::Compare => "keys of two runs side by side".to_owned(),
        Where::Log => "keys of the log".to_owned(),
        _ => "keys of the fleet".to_owned(),
    })];
    let everywhere = |def: &Def| {
        [Where::Fleet, Where::Run, Where::Walk, Where::Rack, Where::History, Where::Log]
            .into_iter()
            .all(|view| def.works_in(view))
    };
    for def in TABLE.iter().filter(|d| d.works_in(view) && !everywhere(d) && action::is_here(model, d)) {
        out.push(key(model, def));
    }
    out.extend([HelpLine::Blank, HelpLine::Heading("everywhere".to_owned())]);
    for def in TABLE.iter().filter(|d| everywhere(d)) {
        out.push(key(model, def));
    }
    if view == Where::Fleet {
        let heading = "filter: words find letters in their order; key:value looks in one column; ! inverts";
        out.extend([HelpLine::Blank, HelpLine::Heading(heading.to_owned())]);
        out.extend(filter::KEYS.iter().map(|(key, about)| HelpLine::Filter { key, about }));
    }
    out.extend([HelpLine::Blank, HelpLine::Heading("signs".to_owned())]);
    out.extend(Status::ALL.into_iter().map(HelpLine::Sign));
    let codes = codes_on_screen(model);
    if !codes.is_empty() {
        out.extend([HelpLine::Blank, HelpLine::Heading("failure codes on the screen".to_owned())]);
        out.extend(codes.into_iter().map(HelpLine::Code));
    }
    out
}

fn key(model: &Model, def: &Def) -> HelpLine {
    let reason = action::reason_against(model, def.action);
    let keys = model.keymap.keys(def).into_iter().map(str::to_owned).collect();
    HelpLine::Key { keys, name: def.name, about: def.about, reason }
}

/// The codes of the failures that a person can see now, in the order of the table.
fn codes_on_screen(model: &Model) -> Vec<FailureCode> {
    let shown: Vec<FailureCode> = match model.open_run() {
        Some(run) => run.failure().map(|f| f.code).into_iter().collect(),
        None => {
            let hosts = (0..model.fleet.shown.len()).filter_map(|row| model.fleet.row(row));
            hosts.filter_map(|h| Some(h.failure()?.code)).collect()
        }
    };
    FailureCode::ALL.iter().copied().filter(|c| shown.contains(c)).collect()
}
