//! Everything that can be done, in one table: name, description, keys, where it works, and the reason when it can't run.
//! Footer, help and palette are made from it.

use serde::{Deserialize, Serialize};

use super::model::fleet::Pane;
use super::model::history;
use super::model::{Model, Popup, Screen};
use crate::domain::run_view::RunState;

/// Something that a key or the palette does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Action {
    Up,
    Down,
    Left,
    Right,
    First,
    Last,
    HalfUp,
    HalfDown,
    Enter,
    Back,
    NextPane,
    PrevPane,
    Mark,
    Filter,
    Sort,
    SortBack,
    KeepFilter,
    NextMatch,
    PrevMatch,
    Rewind,
    Forward,
    RewindPhase,
    ForwardPhase,
    Walk,
    Elevation,
    History,
    Compare,
    Export,
    Enroll,
    Retry,
    RetryForced,
    Cancel,
    Locate,
    /// Opens the power dialog.
    Power,
    /// Does what the power dialog has chosen.
    SetPower,
    /// Puts right at the host what is wrong there: only where the console has hands of its own.
    Mend,
    Copy,
    ShowAll,
    Log,
    Palette,
    Themes,
    RunCommand,
    Help,
    Sync,
    Toggle,
    Plan,
    Start,
    Choose,
    Other,
    Redraw,
    Suspend,
    Quit,
    Exit,
}

/// Where keys are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Where {
    Fleet,
    Run,
    /// What waits for a person.
    Walk,
    /// A rack, unit by unit.
    Rack,
    /// The runs of a host.
    History,
    /// Two runs side by side.
    Compare,
    Log,
    Filter,
    Help,
    Launch,
    Plan,
    Power,
    Confirm,
    Palette,
}

impl Where {
    pub const ALL: [Where; 14] = [
        Where::Fleet,
        Where::Run,
        Where::Walk,
        Where::History,
        Where::Compare,
        Where::Rack,
        Where::Log,
        Where::Filter,
        Where::Help,
        Where::Launch,
        Where::Plan,
        Where::Power,
        Where::Confirm,
        Where::Palette,
    ];

    /// In a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Where::Fleet => "the fleet",
            Where::Run => "the run view",
            Where::Walk => "what waits for you",
            Where::Rack => "a rack",
            Where::History => "a host's runs",
            Where::Compare => "two runs side by side",
            Where::Log => "the log",
            Where::Filter => "the filter",
            Where::Help => "the help",
            Where::Launch => "the launch dialog",
            Where::Plan => "the plan",
            Where::Power => "the power dialog",
            Where::Confirm => "a question",
            Where::Palette => "the palette",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Def {
    pub action: Action,
    pub name: &'static str,
    pub about: &'static str,
    /// As `keymap` reads them; the first one is the one that is shown.
    pub keys: &'static [&'static str],
    pub places: &'static [Where],
    /// Starts, stops or ends something, or reaches outside of the console: never done by keys that come faster than hands
    /// (C-45), those of a scanner among them.
    pub acts: bool,
    pub in_palette: bool,
    /// Stands in the footer, in the order of the table.
    pub in_footer: bool,
}

impl Def {
    pub fn works_in(&self, place: Where) -> bool {
        self.places.contains(&place)
    }
}

use Where::{Compare, Confirm, Filter, Fleet, Help, History, Launch, Log, Palette, Plan, Rack, Run, Walk};
const VIEWS: &[Where] = &[Fleet, Run, Walk, Rack, History, Compare, Log];
/// Where one host is what keys act on.
const HOSTS: &[Where] = &[Fleet, Run, Walk, Rack];
const EVERYWHERE: &[Where] =
    &[Fleet, Run, Walk, Rack, History, Compare, Log, Filter, Help, Launch, Plan, Where::Power, Confirm, Palette];
const SCROLLS: &[Where] = &[Fleet, Run, Walk, Rack, History, Compare, Log, Help, Launch, Plan, Where::Power];
const TYPED: &[Where] = &[Palette, Filter];

const fn def(
    action: Action,
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
    places: &'static [Where],
) -> Def {
    Def { action, name, about, keys, places, acts: false, in_palette: false, in_footer: false }
}

impl Def {
    const fn acts(mut self) -> Def {
        self.acts = true;
        self
    }

    const fn palette(mut self) -> Def {
        self.in_palette = true;
        self
    }

    const fn footer(mut self) -> Def {
        self.in_footer = true;
        self
    }
}

/// The table. Of two rows with one key the first that works in a place is meant.
#[rustfmt::skip]
pub const TABLE: &[Def] = &[
    def(Action::Enter, "open", "go in: the place's hosts, the host's last run, the selected run", &["enter"], &[Fleet, Walk, Rack, History]).footer(),
    def(Action::Enroll, "enroll", "enroll the marked hosts, or the selected one", &["e"], HOSTS).palette().footer(),
    def(Action::Plan, "plan", "what would be read, written and waited for", &["p"], &[Fleet, Run, Walk, Rack, Launch]).footer(),
    def(Action::RetryForced, "retry+inspect", "repeat the run with a fresh inspection", &["f"], HOSTS).acts().palette().footer(),
    def(Action::Mend, "mend", "in the demo: plug the host's cables in where they belong", &["M"], HOSTS).acts().palette().footer(),
    def(Action::Retry, "retry", "repeat the run with the same switches", &["r"], HOSTS).acts().palette().footer(),
    def(Action::Cancel, "cancel", "cancel the run under way, after a question", &["x"], &[Fleet, Run, Rack]).palette().footer(),
    def(Action::Locate, "locator", "light the host's locator LED, or put it out", &["L"], HOSTS).acts().palette(),
    def(Action::Power, "power", "switch the host on or off, after a question", &["P"], HOSTS).acts().palette(),
    def(Action::Mark, "mark", "mark the host for a batch, or take the mark off", &["space"], &[Fleet, Rack]).footer(),
    def(Action::Mark, "mark run", "mark the run to put it beside another, or take the mark off", &["space"], &[History]).footer(),
    def(Action::Compare, "compare", "the two marked runs side by side; unmarked, the selected one and the one before", &["c"], &[History]).palette().footer(),
    def(Action::Filter, "filter", "narrow the hosts: words, key:value, ! inverts", &["/"], &[Fleet]).palette().footer(),
    def(Action::Elevation, "units", "the rack unit by unit, front and rear", &["u"], &[Fleet, Run, Walk]).palette().footer(),
    def(Action::NextPane, "pane", "give the next pane the focus", &["tab"], &[Fleet, Run, Rack]).footer(),
    def(Action::PrevPane, "pane back", "give the pane before the focus", &["shift-tab"], &[Fleet, Run, Rack]),
    def(Action::ShowAll, "all checks", "show the checks that agree, or hide them", &["a"], &[Run]).palette().footer(),
    def(Action::ShowAll, "all rows", "show the rows that agree, or hide them", &["a"], &[Compare]).footer(),
    def(Action::Sort, "sort", "sort by place, name, netbox, ironic, or need", &["s"], &[Fleet]).palette().footer(),
    def(Action::SortBack, "sort back", "sort the other way round", &["S"], &[Fleet]).palette(),
    def(Action::NextMatch, "next match", "the next host that the filter lets through", &["n"], &[Fleet]),
    def(Action::PrevMatch, "previous match", "the host before that the filter lets through", &["N"], &[Fleet]),
    def(Action::Rewind, "rewind", "one step back in what happened", &["["], &[Run]).palette(),
    def(Action::Forward, "forward", "one step on, at the end to where it is now", &["]"], &[Run]).palette(),
    def(Action::RewindPhase, "rewind phase", "back to where the phase began, or the one before", &["{"], &[Run]),
    def(Action::ForwardPhase, "forward phase", "on to where the next phase began", &["}"], &[Run]),
    def(Action::Walk, "for you", "what waits for a person, rack by rack", &["w"], &[Fleet, Run, Rack]).palette().footer(),
    def(Action::History, "history", "the host's runs: when, how each ended, how long it took", &["H"], HOSTS).palette().footer(),
    def(Action::Export, "export", "write the run's whole story into a file", &["E"], &[Run]).acts().palette().footer(),
    def(Action::Copy, "copy", "copy the sentence, the diff or the events to your clipboard", &["y"], &[Fleet, Run, Walk, Rack, Compare]).acts().palette().footer(),
    def(Action::Sync, "sync", "ask NetBox and Ironic now", &["ctrl-r"], VIEWS),
    def(Action::Log, "log", "show what the program writes to its log", &["v"], HOSTS).palette(),
    def(Action::Palette, "command", "do anything by its name", &[":"], VIEWS).footer(),
    def(Action::Themes, "themes", "try themes on and choose one", &["T"], VIEWS).palette(),
    def(Action::Help, "help", "keys that work here, signs and codes on the screen", &["?"], VIEWS).palette().footer(),
    def(Action::Toggle, "switch", "flip the switch, one attempt more", &["space"], &[Launch]).footer(),
    def(Action::Start, "start", "start the hosts that may go", &["enter"], &[Launch, Plan]).acts().footer(),
    def(Action::SetPower, "go on", "do what is chosen; what interrupts the host asks first", &["enter"], &[Where::Power]).acts().footer(),
    def(Action::Choose, "choose", "do what the focused button says", &["enter"], &[Confirm]).acts().footer(),
    def(Action::Other, "other button", "focus the other button", &["tab", "left", "right", "h", "l", "shift-tab"], &[Confirm]).footer(),
    def(Action::RunCommand, "run", "run the command", &["enter"], &[Palette]).acts().footer(),
    def(Action::KeepFilter, "keep", "keep the filter and go back to the hosts", &["enter"], &[Filter]).footer(),
    def(Action::Up, "up", "one line up", &["k", "up"], SCROLLS),
    def(Action::Down, "down", "one line down", &["j", "down"], SCROLLS),
    def(Action::Up, "up", "one line up", &["up", "ctrl-p"], TYPED),
    def(Action::Down, "down", "one line down", &["down", "ctrl-n"], TYPED),
    def(Action::Left, "left", "close the place, one attempt less, the host before", &["h", "left"], &[Fleet, Run, Rack, Launch, Plan]),
    def(Action::Right, "right", "open the place, one attempt more, the next host", &["l", "right"], &[Fleet, Run, Rack, Launch, Plan]),
    def(Action::Down, "next field", "the next field", &["tab"], &[Launch]),
    def(Action::Up, "field before", "the field before", &["shift-tab"], &[Launch]),
    def(Action::First, "first", "the first line", &["g g", "home"], SCROLLS),
    def(Action::Last, "last", "the last line", &["G", "end"], SCROLLS),
    def(Action::HalfDown, "half page down", "half a page down", &["ctrl-d", "pgdn"], SCROLLS),
    def(Action::HalfUp, "half page up", "half a page up", &["ctrl-u", "pgup"], SCROLLS),
    def(Action::Back, "back", "one step out: dialog, message, filter, marks, view", &["esc"], EVERYWHERE).footer(),
    def(Action::Redraw, "redraw", "clear the terminal and draw it anew", &["ctrl-l"], EVERYWHERE),
    def(Action::Suspend, "suspend", "give the terminal back to the shell; fg comes back", &["ctrl-z"], EVERYWHERE),
    def(Action::Quit, "quit", "leave the view; at the fleet leave the program", &["q"], &[Fleet, Run, Walk, Rack, History, Compare, Log, Help]).acts().palette().footer(),
    def(Action::Exit, "exit", "leave the program wherever you are", &["ctrl-c"], EVERYWHERE).acts(),
];

/// The row of an action; the first one where there are several.
pub fn def_of(action: Action) -> &'static Def {
    TABLE.iter().find(|d| d.action == action).expect("a test proves that every action has a row")
}

/// The view that shows, whatever dialog lies on it.
pub fn view(model: &Model) -> Where {
    match model.screens.last() {
        Some(Screen::Run(_)) => Run,
        Some(Screen::Walk(_)) => Walk,
        Some(Screen::Rack(_)) => Rack,
        Some(Screen::History(_)) => History,
        Some(Screen::Compare(_)) => Compare,
        Some(Screen::Log) => Log,
        None => Fleet,
    }
}

/// Where a key is looked up now.
pub fn here(model: &Model) -> Where {
    match &model.popup {
        Some(Popup::Help { .. }) => Help,
        Some(Popup::Launch(_)) => Launch,
        Some(Popup::Plan(_)) => Plan,
        Some(Popup::Power(_)) => Where::Power,
        Some(Popup::Confirm(_)) => Confirm,
        Some(Popup::Palette(_)) => Palette,
        None if model.screens.is_empty() && model.fleet.filtering => Filter,
        None => view(model),
    }
}

/// Why an action can't run now; `None` where it can.
pub fn reason_against(model: &Model, action: Action) -> Option<String> {
    let no_host = || Some(no_host(model));
    match action {
        Action::Enroll | Action::Plan if !matches!(model.popup, Some(Popup::Launch(_) | Popup::Plan(_))) => {
            match view(model) {
                Fleet | Rack if model.fleet.marks.is_empty() && model.target().is_none() => no_host(),
                Walk if model.target().is_none() => Some("nothing waits here".to_owned()),
                Run if model.target().is_none() => Some("the fleet has no such host any more".to_owned()),
                _ => None,
            }
        }
        Action::Retry | Action::RetryForced => match model.target_run() {
            None if model.run_screen().is_some() => Some("the run is still being read".to_owned()),
            None => match model.target() {
                Some(host) => Some(format!("{} has no run yet: press e to enroll it", host.device.name)),
                None => no_host(),
            },
            Some((run, host, state)) => match state {
                RunState::Failed | RunState::Cancelled => None,
                RunState::Succeeded => {
                    Some(format!("run {} of {host} succeeded: press e to enroll it again", run.short()))
                }
                RunState::Queued | RunState::Running | RunState::Cancelling => {
                    Some(format!("run {} of {host} is still under way", run.short()))
                }
            },
        },
        Action::Cancel => match model.target_run() {
            Some((_, _, RunState::Queued | RunState::Running)) => None,
            Some((run, host, RunState::Cancelling)) => {
                Some(format!("run {} of {host} is being cancelled already", run.short()))
            }
            Some((run, host, _)) => Some(format!("run {} of {host} is over", run.short())),
            None => match model.target() {
                Some(host) => Some(format!("{} has no run under way", host.device.name)),
                None => no_host(),
            },
        },
        Action::Locate if model.target().is_none() => no_host(),
        Action::Power => match model.target() {
            None => no_host(),
            Some(host) => {
                let live = host.last_run.as_ref().filter(|last| last.is_live())?;
                let (run, name) = (live.run.short(), &host.device.name);
                Some(format!("run {run} is at work on {name}: its power is left alone until that has ended"))
            }
        },
        Action::SetPower => match &model.popup {
            Some(Popup::Power(power)) => power.obstacle(),
            _ => None,
        },
        Action::Mend if !model.hands => Some("only the demo has hands of its own".to_owned()),
        Action::Mend => match model.target() {
            None => no_host(),
            Some(host) if !host.needs_hands() => Some(format!("nothing at {} waits for hands", host.device.name)),
            Some(_) => None,
        },
        Action::History => match model.target() {
            None => no_host(),
            Some(host) if host.last_run.is_none() => {
                Some(format!("{} has no run yet: press e to enroll it", host.device.name))
            }
            Some(_) => None,
        },
        Action::Enter | Action::Mark if view(model) == History => {
            match model.history().and_then(history::History::past) {
                None => Some("no run is selected".to_owned()),
                Some(_) => None,
            }
        }
        Action::Compare => match model.history().and_then(history::History::pair) {
            None => Some("there is no other run to put beside this one".to_owned()),
            Some(_) => None,
        },
        Action::Enter if view(model) == Walk => match model.target() {
            None => Some("nothing waits here".to_owned()),
            Some(_) => None,
        },
        Action::Enter if view(model) == Rack || model.fleet.pane == Pane::Table => match model.target() {
            None => no_host(),
            Some(host) if host.last_run.is_none() => {
                Some(format!("{} has no run yet: press e to enroll it", host.device.name))
            }
            Some(_) => None,
        },
        Action::Forward | Action::ForwardPhase if model.replay().is_none() => {
            Some("this is how it is now: press [ to look back".to_owned())
        }
        Action::Plan => match &model.popup {
            Some(Popup::Launch(launch)) => launch.obstacle(),
            _ => None,
        },
        Action::Mark if model.target().is_none() => no_host(),
        Action::Elevation if super::model::rack::wanted(model).is_none() => match view(model) {
            Fleet => Some("choose a rack in the tree, or a host".to_owned()),
            _ => no_host(),
        },
        Action::Copy if view(model) == Compare => match model.comparison() {
            None => Some("the runs are still being read".to_owned()),
            Some(_) => None,
        },
        Action::Copy if model.target().is_none() && model.run_screen().is_none() => no_host(),
        Action::NextMatch | Action::PrevMatch if model.fleet.filter.is_empty() => {
            Some("there is no filter: press / to type one".to_owned())
        }
        Action::ShowAll if view(model) == Compare => None,
        Action::ShowAll => match model.open_run() {
            Some(run) if run.verification.is_some() => None,
            _ => Some("no inspection was judged in this run yet".to_owned()),
        },
        _ => None,
    }
}

/// Whether a console has the action at all: none is shown that belongs to another kind of console.
pub fn is_here(model: &Model, def: &Def) -> bool {
    def.action != Action::Mend || model.hands
}

/// Why there is no host to act on.
fn no_host(model: &Model) -> String {
    let racked = model.rack_screen().and_then(|screen| screen.device());
    match racked.filter(|(_, racked)| !racked.is_host) {
        Some((_, racked)) => {
            let device = &racked.device;
            format!(
                "{} is a {}: nothing of this is done to it",
                device.name,
                device.device_class.as_ref().unwrap_or(&device.role)
            )
        }
        None => "no host is selected".to_owned(),
    }
}

/// The rows that stand in the footer now: those that work here and can run.
pub fn footer(model: &Model) -> Vec<&'static Def> {
    let here = here(model);
    let nothing_to_leave =
        here == Fleet && model.fleet.filter.is_empty() && model.fleet.marks.is_empty() && model.toasts.is_empty();
    TABLE
        .iter()
        .filter(|d| d.in_footer && d.works_in(here) && is_here(model, d) && reason_against(model, d.action).is_none())
        .filter(|d| !(d.action == Action::Back && nothing_to_leave))
        .filter(|d| !(d.action == Action::Quit && here != Fleet))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::event::Key;
    use std::collections::BTreeMap;

    #[test]
    fn every_key_can_be_read_and_means_one_thing_in_a_place() {
        for place in Where::ALL {
            let mut seen: BTreeMap<&str, Action> = BTreeMap::new();
            for def in TABLE.iter().filter(|d| d.works_in(place)) {
                for keys in def.keys {
                    for key in keys.split(' ') {
                        key.parse::<Key>().unwrap();
                    }
                    if let Some(other) = seen.insert(keys, def.action) {
                        panic!("{keys} in {place:?} means {other:?} and {:?}", def.action);
                    }
                }
            }
        }
    }

    #[test]
    fn what_starts_stops_or_ends_is_guarded_against_bursts() {
        for action in [
            Action::Retry,
            Action::RetryForced,
            Action::Locate,
            Action::Power,
            Action::SetPower,
            Action::Mend,
            Action::Copy,
            Action::Start,
            Action::Choose,
            Action::Quit,
            Action::Exit,
        ] {
            assert!(TABLE.iter().filter(|d| d.action == action).all(|d| d.acts), "{action:?}");
        }
    }
}
