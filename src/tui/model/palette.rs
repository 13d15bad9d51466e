//! The command palette: actions by name, and commands that take an argument.

use serde::{Deserialize, Serialize};

use super::Model;
use super::filter::subsequence;
use super::input::Input;
use super::place::Place;
use crate::domain::ids::RunId;
use crate::tui::action::{self, Action};

/// The palette while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Palette {
    pub input: Input,
    pub cursor: usize,
}

/// What a line of the palette does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Act(Action),
    Theme(String),
    Go(Place),
    Host(u64),
    Run(RunId, String),
    SyncNow,
}

/// A line of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What would be typed for it.
    pub text: String,
    pub about: String,
    pub keys: String,
    pub command: Command,
    /// Why it can't run now.
    pub reason: Option<String>,
}

/// At most so many lines: more are found by typing on.
const MAX: usize = 50;

/// The lines for what is typed: those used last first.
pub fn entries(model: &Model, typed: &str) -> Vec<Entry> {
    let typed = typed.trim().to_lowercase();
    let (word, argument) = typed.split_once(' ').unwrap_or((&typed, ""));
    let mut out = match word {
        "rack" | "site" | "location" => places(model, word, argument.trim()),
        "host" => hosts(model, argument.trim()),
        "run" => runs(model, argument.trim()),
        "theme" => themes(model, argument.trim()),
        _ => Vec::new(),
    };
    if out.is_empty() {
        out = actions(model);
        out.extend(themes(model, ""));
        out.push(Entry {
            text: "sync".into(),
            about: "ask NetBox and Ironic now".into(),
            keys: String::new(),
            command: Command::SyncNow,
            reason: None,
        });
        for (text, about) in [
            ("rack …", "go to a rack: rack B07"),
            ("site …", "go to a site: site osl1"),
            ("host …", "go to a host: host gpu-b07"),
            ("run …", "open a run by the end of its id"),
        ] {
            let command = Command::Act(Action::Palette);
            out.push(Entry { text: text.into(), about: about.into(), keys: String::new(), command, reason: None });
        }
        out.retain(|e| subsequence(&e.text, &typed));
    }
    let used = |e: &Entry| model.palette_history.iter().position(|h| *h == e.text).unwrap_or(usize::MAX);
    // Exact starts come before letters that are strewn about; within them what was used last.
    out.sort_by_key(|e| (!e.text.starts_with(&typed), used(e)));
    out.truncate(MAX);
    out
}

fn actions(model: &Model) -> Vec<Entry> {
    let view = action::view(model);
    let mut out = Vec::new();
    for def in action::TABLE.iter().filter(|d| d.in_palette && d.works_in(view) && action::is_here(model, d)) {
        out.push(Entry {
            text: def.name.to_owned(),
            about: def.about.to_owned(),
            keys: model.keymap.shown(def).to_owned(),
            command: Command::Act(def.action),
            reason: action::reason_against(model, def.action),
        });
    }
    out
}

fn places(model: &Model, word: &str, argument: &str) -> Vec<Entry> {
    let depth = match word {
        "site" => 1,
        "location" => 2,
        _ => 3,
    };
    let nodes = model.fleet.tree.iter().filter(|n| n.place.depth() == depth);
    let found = nodes.filter(|n| subsequence(n.place.name(), argument));
    found
        .map(|n| Entry {
            text: format!("{word} {}", n.place.name().to_lowercase()),
            about: format!("{} · {}", n.place.0.join(" › "), crate::tui::text::count(n.hosts, "host")),
            keys: String::new(),
            command: Command::Go(n.place.clone()),
            reason: None,
        })
        .take(MAX)
        .collect()
}

fn hosts(model: &Model, argument: &str) -> Vec<Entry> {
    let found = model.fleet.hosts.iter().filter(|h| subsequence(&h.device.name, argument));
    found
        .map(|h| Entry {
            text: format!("host {}", h.device.name.to_lowercase()),
            about: Place::of(h).0.join(" › "),
            keys: String::new(),
            command: Command::Host(h.device.netbox_id),
            reason: None,
        })
        .take(MAX)
        .collect()
}

fn runs(model: &Model, argument: &str) -> Vec<Entry> {
    let all = model.fleet.hosts.iter().filter_map(|h| Some((h, h.last_run.as_ref()?)));
    let found =
        all.filter(|(_, r)| r.run.0.simple().to_string().ends_with(argument) || r.run.short().contains(argument));
    found
        .map(|(h, r)| Entry {
            text: format!("run {}", r.run.short()),
            about: format!("{} · {}", h.device.name, crate::tui::text::ago(model.now, r.submitted_at)),
            keys: String::new(),
            command: Command::Run(r.run, h.device.name.to_string()),
            reason: None,
        })
        .take(MAX)
        .collect()
}

fn themes(model: &Model, argument: &str) -> Vec<Entry> {
    let found = model.look.themes.iter().filter(|theme| theme.name.to_lowercase().contains(argument));
    found
        .map(|theme| Entry {
            text: format!("theme {}", theme.name),
            about: theme.about.clone(),
            keys: String::new(),
            command: Command::Theme(theme.name.clone()),
            reason: None,
        })
        .collect()
}

/// The theme that the line under the cursor stands for: it is tried on.
pub fn theme_under_cursor(model: &Model, palette: &Palette) -> Option<String> {
    match entries(model, &palette.input.text).into_iter().nth(palette.cursor)?.command {
        Command::Theme(name) => Some(name),
        _ => None,
    }
}
