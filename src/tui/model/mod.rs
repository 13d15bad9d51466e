//! Everything that decides a frame: serialisable, comparable, no handles, no clock.

pub mod burst;
pub mod compare;
pub mod ends;
pub mod filter;
pub mod fleet;
pub mod help;
pub mod history;
pub mod host;
pub mod input;
pub mod launch;
pub mod palette;
pub mod place;
pub mod plan;
pub mod power;
pub mod rack;
pub mod run_screen;
pub mod sort;
pub mod tape;
pub mod walk;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::effect::Effect;
use super::event::{Key, Refused};
use super::keymap::Keymap;
use crate::app::Role;
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::domain::queue::Queued;
use crate::domain::request::SiteOptions;
use crate::domain::run_view::{RunState, RunView};
use crate::domain::usual::{Figures, Kind, Usual};
use burst::Burst;
use compare::Compare;
use ends::Ends;
use fleet::Fleet;
use history::History;
use host::{Host, SystemHealth};
use launch::Launch;
use palette::Palette;
use plan::PlanPopup;
use power::PowerDialog;
use rack::RackScreen;
use run_screen::RunScreen;
use tape::Tape;
use walk::Walk;

/// The whole state of the console.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub now: Timestamp,
    pub width: u16,
    pub height: u16,
    pub look: Look,
    /// Stands in the header, such as the demo's name.
    pub title: Option<String>,
    /// Who sits here.
    #[serde(default)]
    pub user: String,
    /// There are hands that mend what is wrong at a host: the demo's.
    #[serde(default)]
    pub hands: bool,
    /// Whether this console runs the engine, or which process does; `None`: not told yet.
    #[serde(default)]
    pub role: Option<Role>,
    /// Gates and options of each site, for the launch dialog.
    pub sites: BTreeMap<String, SiteOptions>,
    /// By site: the systems whose certificates nobody checks, since the configuration says so. Sites without one are left out.
    #[serde(default)]
    pub unchecked: BTreeMap<String, Vec<String>>,
    pub fleet: Fleet,
    /// The places of the runs that have not begun, and what holds them.
    #[serde(default)]
    pub queue: BTreeMap<RunId, Queued>,
    /// Views of the runs under way, and of those that were opened.
    pub runs: BTreeMap<RunId, RunView>,
    /// Runs whose records were asked for and did not come yet.
    pub loading: BTreeSet<RunId>,
    /// Runs whose records could not be read, and why, until they are asked for again.
    #[serde(default)]
    pub lost: BTreeMap<RunId, Refused>,
    /// Records that came by the feed for runs that are being read.
    pub early: BTreeMap<RunId, Vec<RunRecord>>,
    pub health: Vec<SystemHealth>,
    /// What everything usually takes.
    #[serde(default)]
    pub usual: Usual,
    /// What lies on the fleet; the last one shows.
    pub screens: Vec<Screen>,
    pub popup: Option<Popup>,
    pub toasts: Vec<Toast>,
    pub keys: Keys,
    /// Keys that may be a scanner's.
    #[serde(default)]
    pub burst: Option<Box<Burst>>,
    #[serde(default)]
    pub keymap: Keymap,
    /// The run that is being looked back at.
    #[serde(default)]
    pub tape: Option<Tape>,
    /// The run whose records were asked for to look back at it.
    #[serde(default)]
    pub winding: Option<RunId>,
    /// Runs that ended while the console was open, and are to be told.
    #[serde(default)]
    pub ends: Ends,
    /// What the palette ran, newest first.
    pub palette_history: Vec<String>,
}

/// How the console looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub theme: String,
    /// The one that is tried on while the palette stands on it.
    #[serde(default)]
    pub trying: Option<String>,
    /// Those to choose from.
    #[serde(default)]
    pub themes: Vec<ThemeName>,
    pub ascii: bool,
    /// What becomes of a theme that is chosen.
    #[serde(default)]
    pub keeping: Keeping,
}

/// What becomes of a theme that is chosen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum Keeping {
    /// The next console begins with it.
    Kept,
    /// The configuration names one, and that is what the next console begins with.
    Configured,
    #[default]
    Nowhere,
}

/// A theme and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThemeName {
    pub name: String,
    pub about: String,
}

impl Look {
    /// The theme to draw with.
    pub fn shown(&self) -> &str {
        self.trying.as_deref().unwrap_or(&self.theme)
    }
}

/// A view on top of the fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Screen {
    Run(RunScreen),
    /// A rack, unit by unit (U1).
    Rack(RackScreen),
    /// What waits for a person (U5).
    Walk(Walk),
    /// The runs of a host.
    History(History),
    /// Two runs side by side.
    Compare(Compare),
    Log,
}

/// A dialog over the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Popup {
    Help { top: usize },
    Launch(Launch),
    Plan(PlanPopup),
    Power(PowerDialog),
    Confirm(Confirm),
    Palette(Palette),
}

/// A question before something that reboots, cancels or ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirm {
    /// Object, effect and number: `cancel run 4f2a1c · gpu-b07-39`.
    pub title: String,
    pub lines: Vec<String>,
    /// The word on the button that does it.
    pub yes: String,
    pub no: String,
    /// Cancel is focused first.
    pub on_yes: bool,
    /// The name that has to be typed, and what was typed so far.
    pub typed: Option<(String, input::Input)>,
    pub effects: Vec<Effect>,
}

/// A short message that leaves by itself, or when it is dismissed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toast {
    pub kind: ToastKind,
    pub text: String,
    /// What to do about it.
    pub action: Option<String>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToastKind {
    Info,
    Warning,
    /// Stays until it is dismissed.
    Error,
}

/// What the keyboard did last: a prefix that waits for its second key, and what tells a paste from a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Keys {
    pub prefix: Option<Key>,
    pub last_at: Option<Timestamp>,
    /// An action that starts or stops something waits a moment for the next key: if one comes, it was no person.
    pub held: Option<Held>,
    /// The key before this one ended a scan.
    #[serde(default)]
    pub scanned: bool,
}

/// An action that waits whether more keys come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub action: Action,
    pub at: Timestamp,
}

/// Seconds until an information or a warning leaves.
pub const TOAST_S: u64 = 8;

impl Model {
    /// An empty console of a size at a time.
    pub fn new(now: Timestamp, width: u16, height: u16) -> Model {
        Model {
            now,
            width,
            height,
            look: Look {
                theme: "dark".to_owned(),
                trying: None,
                themes: Vec::new(),
                ascii: false,
                keeping: Keeping::default(),
            },
            title: None,
            user: String::new(),
            hands: false,
            role: None,
            sites: BTreeMap::new(),
            unchecked: BTreeMap::new(),
            fleet: Fleet::default(),
            queue: BTreeMap::new(),
            runs: BTreeMap::new(),
            loading: BTreeSet::new(),
            lost: BTreeMap::new(),
            early: BTreeMap::new(),
            health: Vec::new(),
            usual: Usual::default(),
            screens: Vec::new(),
            popup: None,
            toasts: Vec::new(),
            keys: Keys::default(),
            burst: None,
            keymap: Keymap::default(),
            tape: None,
            winding: None,
            ends: Ends::default(),
            palette_history: Vec::new(),
        }
    }

    /// The run screen, where it is the one that shows.
    pub fn run_screen(&self) -> Option<&RunScreen> {
        match self.screens.last() {
            Some(Screen::Run(screen)) => Some(screen),
            _ => None,
        }
    }

    pub fn run_screen_mut(&mut self) -> Option<&mut RunScreen> {
        match self.screens.last_mut() {
            Some(Screen::Run(screen)) => Some(screen),
            _ => None,
        }
    }

    /// The rack that shows.
    pub fn rack_screen(&self) -> Option<&RackScreen> {
        match self.screens.last() {
            Some(Screen::Rack(screen)) => Some(screen),
            _ => None,
        }
    }

    /// The view of the run that shows: as it is now, or as it was where somebody looks back.
    pub fn open_run(&self) -> Option<&RunView> {
        match self.replay() {
            Some(tape) => Some(&tape.view),
            None => self.runs.get(&self.run_screen()?.run),
        }
    }

    /// The tape of the run that shows, while somebody looks back at it.
    pub fn replay(&self) -> Option<&Tape> {
        let run = self.run_screen()?.run;
        self.tape.as_ref().filter(|tape| tape.run == run)
    }

    /// The moment that the screen shows.
    pub fn moment(&self) -> Timestamp {
        self.replay().map_or(self.now, Tape::moment)
    }

    /// The list of a host's runs, where it is what shows.
    pub fn history(&self) -> Option<&History> {
        match self.screens.last() {
            Some(Screen::History(history)) => Some(history),
            _ => None,
        }
    }

    /// The two runs side by side, where they are what shows.
    pub fn compare(&self) -> Option<&Compare> {
        match self.screens.last() {
            Some(Screen::Compare(compare)) => Some(compare),
            _ => None,
        }
    }

    /// What everything usually takes on a host.
    pub fn figures(&self, host: &str) -> Figures {
        self.fleet
            .by_name(host)
            .map_or_else(Figures::default, |host| self.usual.figures(&Kind::from(&*host.device.alike)))
    }

    /// The sites whose things show, those of an open dialog included; `None`: it may be any.
    pub fn sites_shown(&self) -> Option<BTreeSet<&str>> {
        let of_host = |host: &str| self.fleet.by_name(host).map(|host| host.device.site.as_str());
        let of_place = |place: &'_ place::Place| place.0.first().map(String::as_str).map(str::to_owned);
        let place = match self.screens.last() {
            Some(Screen::Run(screen)) => of_host(&screen.host).map(str::to_owned),
            Some(Screen::History(screen)) => of_host(&screen.host).map(str::to_owned),
            Some(Screen::Compare(screen)) => of_host(&screen.host).map(str::to_owned),
            Some(Screen::Rack(screen)) => of_place(&screen.place),
            Some(Screen::Walk(_)) | None => of_place(&self.fleet.place),
            Some(Screen::Log) => None,
        }?;
        let launch = match &self.popup {
            Some(Popup::Launch(launch)) => Some(launch),
            Some(Popup::Plan(plan)) => Some(&plan.launch),
            _ => None,
        };
        let of_dialog = launch.into_iter().flat_map(|launch| launch.hosts.iter().map(|host| host.site.as_str()));
        let known = self.unchecked.keys().map(String::as_str).find(|site| *site == place);
        Some(known.into_iter().chain(of_dialog).collect())
    }

    /// The host that keys act on: of the run or the stop that shows, else the selected one.
    pub fn target(&self) -> Option<&Host> {
        match self.screens.last() {
            Some(Screen::Run(screen)) => self.fleet.by_name(&screen.host),
            Some(Screen::Walk(walk)) => self.fleet.by_id(walk.selected?),
            Some(Screen::Rack(rack)) => self.fleet.by_id(rack.selected?),
            Some(Screen::History(history)) => self.fleet.by_id(history.netbox_id),
            Some(Screen::Compare(_) | Screen::Log) => None,
            None => self.fleet.host(),
        }
    }

    /// The run that keys act on, with its host and how it stands.
    pub fn target_run(&self) -> Option<(RunId, String, RunState)> {
        if let Some(screen) = self.run_screen() {
            // While its records are still being read, the fleet's list knows how it stands.
            let listed = || self.target()?.last_run.as_ref().filter(|r| r.run == screen.run).map(|r| r.state);
            let state = self.runs.get(&screen.run).map(|v| v.state()).or_else(listed)?;
            return Some((screen.run, screen.host.clone(), state));
        }
        let host = self.target()?;
        let last = host.last_run.as_ref()?;
        Some((last.run, host.device.name.to_string(), last.state))
    }

    /// Runs under way or queued, of this store.
    pub fn live_runs(&self) -> impl Iterator<Item = &Host> {
        self.fleet.hosts.iter().filter(|h| h.last_run.as_ref().is_some_and(|r| r.is_live()))
    }

    /// The view of a host's run under way.
    pub fn live_view(&self, host: &Host) -> Option<&RunView> {
        self.runs.get(&host.last_run.as_ref()?.run)
    }

    /// The place of a host's run that has not begun.
    pub fn queued(&self, host: &Host) -> Option<&Queued> {
        self.queue.get(&host.last_run.as_ref()?.run)
    }

    /// Shows a message.
    pub fn toast(&mut self, kind: ToastKind, text: impl Into<String>, action: Option<String>) {
        let toast = Toast { kind, text: text.into(), action, at: self.now };
        // The same message again is the same message, with a new time.
        self.toasts.retain(|t| t.text != toast.text);
        self.toasts.push(toast);
        let extra = self.toasts.len().saturating_sub(4);
        self.toasts.drain(..extra);
    }

    /// When the screen has to be drawn again although nothing happens: milliseconds from now.
    pub fn next_tick_ms(&self) -> i64 {
        let waits = self.burst.as_ref().filter(|burst| !burst.waiting.is_empty());
        if let Some(burst) = waits {
            return super::update::scan::patience(burst);
        }
        if self.keys.held.is_some() {
            return super::update::BURST_MS;
        }
        let live = self.replay().is_none() && self.open_run().is_some_and(|run| run.outcome.is_none());
        let spins = self.fleet.totals.running > 0 || live;
        if spins && !self.look.ascii { super::glyphs::SPINNER_STEP_MS } else { 1000 }
    }
}
