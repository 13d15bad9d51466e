//! Joins terminal, clock and application to the model: one channel of events in, effects out, frames when something changed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::EventStream;
use futures::StreamExt;
use jiff::Timestamp;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::effect::Effect;
use super::environment::{self, Found};
use super::event::{Ending, Event, Refused};
use super::glyphs::Glyphs;
use super::keymap::{Keymap, KeymapError};
use super::memory::Memory;
use super::model::{Keeping, Model, ToastKind};
use super::outside::Outside;
use super::shelf::Shelf;
use super::terminal::{Screen, telling, watch_panics};
use super::text::count;
use super::theme::ThemeError;
use super::update::update;
use super::view::{LogPane, draw};
use super::widgets::pen::Skin;
use super::{event, input};
use crate::app::App;
use crate::config::settings::OnEnd;

/// What the console is opened with.
#[derive(Debug, Clone, Default)]
pub struct TuiOptions {
    /// Name of a theme; else the environment decides.
    pub theme: Option<String>,
    /// Folder with themes of the user's own.
    pub themes: Option<PathBuf>,
    pub ascii: bool,
    pub mouse: bool,
    /// Keys in place of the table's, by the names of actions.
    pub keys: BTreeMap<String, Vec<String>>,
    /// Only this site (NetBox slug).
    pub site: Option<String>,
    /// Stands in the header, such as the demo's.
    pub title: Option<String>,
    /// Who sits here: recorded with everything that is started.
    pub user: String,
    /// How the end of a run is told.
    pub on_end: OnEnd,
    /// The folder that remembers what is chosen here; `None`: nothing is remembered.
    pub memory: Option<PathBuf>,
    /// What mends a host where there is nobody else to walk to it: the demo's.
    pub hands: Option<Hands>,
}

/// Mends what is wrong at a host, by its name. The sentence says what was done, or why nothing was.
pub type Mend = dyn Fn(&str) -> Result<String, Refused> + Send + Sync;

/// Whoever mends hosts.
#[derive(Clone)]
pub struct Hands(pub Arc<Mend>);

impl fmt::Debug for Hands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hands")
    }
}

/// Why the console could not be shown, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("the console needs a terminal; `muster enroll`, `muster runs` and `muster serve` need none")]
    NoTerminal,
    #[error(transparent)]
    Keys(#[from] KeymapError),
    #[error(transparent)]
    Theme(#[from] ThemeError),
    #[error("the terminal can't be used: {0}")]
    Terminal(#[from] io::Error),
}

/// Frames are at least so far apart.
const FRAME: Duration = Duration::from_millis(33);
/// Where nothing counts seconds, an age in minutes may be so late.
const STILL: Duration = Duration::from_secs(4);
/// And so far after what a hand did: it is waited for.
const HAND_FRAME: Duration = Duration::from_millis(2);
const SECOND: Duration = Duration::from_secs(1);
/// So many events are taken before a frame is due again: a flood must not starve the screen.
const BATCH: usize = 512;

/// Shows the console until the person leaves it, or the terminal does. The application goes on until its owner ends it.
pub async fn run(app: App, options: TuiOptions) -> Result<(), TuiError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(TuiError::NoTerminal);
    }
    let mut shelf = Shelf::new(options.themes);
    let remembered = options.memory.as_deref().and_then(|folder| Memory::read(folder).theme);
    // One that has gone meanwhile is no reason to stay shut; one that the configuration names is.
    let (remembered, gone) = match remembered.map(|name| shelf.theme(&name).map(|_| name)) {
        Some(Ok(name)) => (Some(name), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let wanted = options.theme.as_deref().or(remembered.as_deref());
    let var = |name: &str| std::env::var(name).ok();
    let found = environment::look(var, wanted, options.ascii);
    let theme = shelf.theme(&found.theme)?;
    let keymap = Keymap::with(options.keys)?;
    let (sender, events) = unbounded_channel();
    watch_panics();
    let screen = Screen::take(options.mouse)?;
    let user = options.user;
    let mut outside = Outside::new(app.clone(), user.clone(), options.site, sender.clone());
    let (width, height) = screen.size()?;
    let mut model = Model::new(Timestamp::now(), width, height);
    model.look.theme = found.theme.clone();
    model.look.themes = shelf.list();
    model.look.ascii = found.ascii;
    model.look.keeping = match (&options.theme, &options.memory) {
        (Some(_), _) => Keeping::Configured,
        (None, Some(_)) => Keeping::Kept,
        (None, None) => Keeping::Nowhere,
    };
    model.title = options.title;
    model.user = user;
    model.hands = options.hands.is_some();
    if let Some(error) = gone {
        let action = "T chooses another".to_owned();
        model.toast(ToastKind::Warning, format!("the theme of last time is gone: {error}"), Some(action));
    }
    model.keymap = keymap;
    let unchecked = |name: &String| (name.clone(), app.settings().unchecked(name));
    model.unchecked = app.settings().sites.keys().map(unchecked).filter(|(_, systems)| !systems.is_empty()).collect();
    model.sites = app.settings().sites.iter().map(|(name, site)| (name.clone(), site.options.clone())).collect();
    // The feed is heard before the fleet is read: nothing happens between the two unseen.
    outside.follow();
    let mut console = Console {
        skin: Skin { theme: theme.at_depth(found.depth), glyphs: Glyphs { ascii: found.ascii } },
        found,
        shelf,
        model,
        screen,
        outside,
        log: LogPane::new(true),
        on_end: options.on_end,
        memory: options.memory,
        hands: options.hands,
        sender: sender.clone(),
        events,
        leaving: false,
    };
    for event in console.outside.first_look().await {
        console.take(event)?;
    }
    let mut listeners = JoinSet::new();
    listeners.spawn(listen_terminal(sender.clone()));
    listeners.spawn(listen_signals(sender.clone()));
    listeners.spawn(listen_job_control(sender));
    let ended = console.run().await;
    listeners.abort_all();
    ended
}

struct Console {
    model: Model,
    skin: Skin,
    found: Found,
    shelf: Shelf,
    screen: Screen,
    outside: Outside,
    log: LogPane,
    on_end: OnEnd,
    memory: Option<PathBuf>,
    hands: Option<Hands>,
    sender: UnboundedSender<Event>,
    events: UnboundedReceiver<Event>,
    leaving: bool,
}

impl Console {
    async fn run(&mut self) -> Result<(), TuiError> {
        let mut drawn = self.draw()?.0;
        // With something to show, how far the next frame is from the last.
        let mut dirty: Option<Duration> = None;
        // Ticks in a row that changed nothing on the screen.
        let mut still = 0;
        while !self.leaving {
            let tick = Duration::from_millis(self.model.next_tick_ms().max(1) as u64);
            let tick =
                if tick < SECOND || !self.model.toasts.is_empty() { tick } else { (tick * (1 << still)).min(STILL) };
            // With something to show the next frame is waited for, else the next tick.
            let due = dirty.map_or(tick, |frame| frame.saturating_sub(drawn.elapsed()));
            tokio::select! {
                biased;
                event = self.events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    let frame = if self.take_batch(event)? { HAND_FRAME } else { FRAME };
                    let frame = dirty.map_or(frame, |other| other.min(frame));
                    dirty = Some(frame);
                    if drawn.elapsed() < frame {
                        continue;
                    }
                }
                () = tokio::time::sleep(due) => {}
            }
            self.take(Event::Tick(Timestamp::now()))?;
            let differs;
            (drawn, differs) = self.draw()?;
            still = if dirty.is_some() || differs { 0 } else { (still + 1).min(STILL.as_secs().ilog2()) };
            dirty = None;
        }
        Ok(())
    }

    /// An event and those that wait behind it. `true`: a hand was among them.
    fn take_batch(&mut self, first: Event) -> Result<bool, TuiError> {
        let mut by_hand = first.is_by_hand();
        self.take(first)?;
        for _ in 0..BATCH {
            let Ok(event) = self.events.try_recv() else { break };
            by_hand |= event.is_by_hand();
            self.take(event)?;
        }
        Ok(by_hand)
    }

    fn take(&mut self, event: Event) -> Result<(), TuiError> {
        for effect in update(&mut self.model, event) {
            self.carry_out(effect)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), TuiError> {
        match effect {
            Effect::Submit { host, params, open } => self.outside.submit(host, params, open),
            Effect::Plan { host, params } => self.outside.plan(host, params),
            Effect::SubmitBehindCanary { hosts, params } => self.outside.submit_behind_canary(hosts, params),
            Effect::Retry { run, host, force_inspection, open } => {
                self.outside.retry(run, host, force_inspection, open)
            }
            Effect::Cancel { run } => self.outside.cancel(run),
            Effect::Locate { host } => self.outside.locate(host),
            Effect::LookPower { host } => self.outside.look_power(host),
            Effect::Power { host, wish, typed } => self.outside.power(host, wish, typed),
            Effect::Mend { host } => self.mend(&host),
            Effect::Tell(sentence) => {
                let in_tmux = std::env::var_os("TMUX").is_some_and(|name| !name.is_empty());
                self.screen.tell(&telling(&sentence, self.on_end, in_tmux))?;
            }
            Effect::KeepTheme(name) => self.keep_theme(name),
            Effect::LoadRun(run) => self.outside.load_run(run),
            Effect::LoadRack(place) => self.outside.load_rack(place),
            Effect::LoadTape(run) => self.outside.load_tape(run),
            Effect::LoadHistory { netbox_id } => self.outside.load_history(netbox_id),
            Effect::Export(run) => self.outside.export(run),
            Effect::SyncNow => self.outside.sync_now(),
            Effect::Copy(text) => self.copy(&text),
            Effect::ScrollLog(to) => self.log.scroll(to),
            Effect::Redraw => self.screen.clear(),
            Effect::Suspend => {
                self.screen.suspend()?;
                let (width, height) = self.screen.size()?;
                self.sender.send(Event::Resize { width, height }).ok(); // the receiver is ours
            }
            Effect::TakeAgain => {
                self.screen.take_again()?;
                let (width, height) = self.screen.size()?;
                self.sender.send(Event::Resize { width, height }).ok(); // the receiver is ours
            }
            Effect::Quit => self.leaving = true,
        }
        Ok(())
    }

    /// Puts on the theme that is wanted, and the one that shows anew when its file has changed. One that cannot be used is
    /// told, and the one before stays.
    fn dress(&mut self) -> Result<(), TuiError> {
        let wanted = self.model.look.shown().to_owned();
        if wanted == self.skin.theme.name && !self.shelf.has_changed() {
            return Ok(());
        }
        match self.shelf.theme(&wanted) {
            Ok(theme) => self.skin.theme = theme.at_depth(self.found.depth),
            Err(error) => {
                // Asked for once, and not at every frame.
                self.skin.theme.name = wanted;
                let action = "mend the file; it is read again when it changes".to_owned();
                let refused = Refused { code: "theme_unusable".to_owned(), message: error.to_string(), action };
                self.take(Event::Answered(Err(refused)))?;
            }
        }
        Ok(())
    }

    /// Has the demo's hands mend a host.
    fn mend(&mut self, host: &str) {
        if let Some(Hands(mend)) = &self.hands {
            self.sender.send(Event::Answered(mend(host))).ok(); // the receiver is ours
        }
    }

    fn keep_theme(&mut self, name: String) {
        let Some(folder) = &self.memory else { return };
        if let Err(error) = (Memory { theme: Some(name) }).write(folder) {
            let refused = Refused {
                code: "theme_not_kept".to_owned(),
                message: format!("the next console will not know this theme: {error}"),
                action: "name it under [console] in the configuration, as theme".to_owned(),
            };
            self.sender.send(Event::Answered(Err(refused))).ok(); // the receiver is ours
        }
    }

    fn copy(&mut self, text: &str) {
        let answer = match self.screen.copy(text) {
            Ok(()) => Ok(format!("copied {}", count(text.lines().count(), "line"))),
            Err(error) => Err(Refused {
                code: "not_copied".to_owned(),
                message: format!("the terminal took no text to copy: {error}"),
                action: "select it with the mouse and shift".to_owned(),
            }),
        };
        self.sender.send(Event::Answered(answer)).ok(); // the receiver is ours
    }

    /// Draws a frame: when, and whether it was another one than the last.
    fn draw(&mut self) -> Result<(Instant, bool), TuiError> {
        self.log.collect();
        // A change of size before the reader of keys is up tells nobody; asking costs one system call.
        let (width, height) = self.screen.size()?;
        if (width, height) != (self.model.width, self.model.height) {
            self.take(Event::Resize { width, height })?;
        }
        self.dress()?;
        let (model, skin, log) = (&self.model, &self.skin, &self.log);
        let differs = self.screen.draw(|buf| draw(model, skin, log, buf))?;
        Ok((Instant::now(), differs))
    }
}

/// Keys, pastes, mouse and sizes. A terminal that is gone ends the console.
async fn listen_terminal(sender: UnboundedSender<Event>) {
    let mut stream = EventStream::new();
    while let Some(Ok(raw)) = stream.next().await {
        if let Some(event) = input::event(raw, Timestamp::now())
            && sender.send(event).is_err()
        {
            return;
        }
    }
    sender.send(Event::Ended(event::Ending::HungUp)).ok(); // the console is ending
}

async fn listen_signals(sender: UnboundedSender<Event>) {
    let listen = |kind| signal(kind);
    let (Ok(mut hup), Ok(mut term), Ok(mut int)) =
        (listen(SignalKind::hangup()), listen(SignalKind::terminate()), listen(SignalKind::interrupt()))
    else {
        tracing::error!("signals can't be heard: a closed terminal won't end the console");
        return;
    };
    let ending = tokio::select! {
        _ = hup.recv() => Ending::HungUp,
        _ = term.recv() => Ending::Terminated,
        _ = int.recv() => Ending::Interrupted,
    };
    sender.send(Event::Ended(ending)).ok(); // the console is ending
}

/// Hears when the program is stopped from outside, and when it goes on.
async fn listen_job_control(sender: UnboundedSender<Event>) {
    let listen = |signal: Signal| self::signal(SignalKind::from_raw(signal.as_raw()));
    let (Ok(mut stop), Ok(mut go_on)) = (listen(Signal::TSTP), listen(Signal::CONT)) else {
        tracing::error!("signals can't be heard: a stop from outside leaves the terminal as it is");
        return;
    };
    loop {
        let event = tokio::select! {
            _ = stop.recv() => Event::Stopped,
            _ = go_on.recv() => Event::Resumed,
        };
        if sender.send(event).is_err() {
            return;
        }
    }
}
