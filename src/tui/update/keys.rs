//! Keys, pastes and the mouse: from what hands do to actions, and what tells hands from a paste (C-45).

use jiff::Timestamp;

use super::{BURST_MS, fleet, history, popups, power, rack, run, scan, walk};
use crate::tui::action::{self, Action, Where, def_of};
use crate::tui::effect::{Effect, LogScroll};
use crate::tui::event::{Code, Key};
use crate::tui::keymap::Resolved;
use crate::tui::layout;
use crate::tui::model::input::Input;
use crate::tui::model::launch::Field;
use crate::tui::model::palette::Palette;
use crate::tui::model::{Confirm, Held, Model, Popup, Screen, ToastKind};
use crate::tui::text::count;

/// A key went down.
pub(super) fn press(model: &mut Model, key: Key, at: Timestamp) -> Vec<Effect> {
    model.now = model.now.max(at);
    let gap = model.keys.last_at.map_or(i64::MAX, |last| ms(last, at));
    model.keys.last_at = Some(at);
    let (mut effects, taken) = scan::take(model, key, at, gap);
    if !taken {
        effects.extend(alone(model, key, at, gap));
    }
    effects
}

/// A key that counts for itself, so many milliseconds behind the one before it.
pub(super) fn alone(model: &mut Model, key: Key, at: Timestamp, gap: i64) -> Vec<Effect> {
    let mut effects = Vec::new();
    if let Some(held) = model.keys.held.take() {
        if ms(held.at, at) < BURST_MS {
            refuse_burst(model, held.action);
        } else {
            effects.extend(act(model, held.action));
        }
    }
    if takes_text(model) && !is_command(key) && typed(model, key) {
        model.keys.prefix = None;
        return effects;
    }
    let prefix = model.keys.prefix.take();
    match model.keymap.resolve(action::here(model), prefix, key) {
        Resolved::Prefix => model.keys.prefix = Some(key),
        Resolved::Nothing => {}
        Resolved::Action(action) if def_of(action).acts => {
            if gap < BURST_MS {
                refuse_burst(model, action);
            } else {
                model.keys.held = Some(Held { action, at });
            }
        }
        Resolved::Action(action) => effects.extend(act(model, action)),
    }
    effects
}

/// Time went on: an action that waited whether more keys come is done.
pub(super) fn release(model: &mut Model) -> Vec<Effect> {
    let due = model.keys.held.as_ref().is_some_and(|h| ms(h.at, model.now) >= BURST_MS);
    match model.keys.held.take_if(|_| due) {
        Some(held) => act(model, held.action),
        None => Vec::new(),
    }
}

/// A bracketed paste: text for a field, never keys.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    (model.keys.held, model.burst) = (None, None);
    let text = text.trim();
    let text = text.lines().next().unwrap_or_default();
    let here = action::here(model);
    match &mut model.popup {
        Some(Popup::Palette(palette)) => palette.input.insert(text),
        Some(Popup::Launch(launch)) if launch.field == Field::NodeUuid => launch.node_uuid.insert(text),
        Some(Popup::Confirm(Confirm { typed: Some(_), .. })) => {
            model.toast(ToastKind::Warning, "a name that confirms is typed, not pasted", None);
        }
        None if here == Where::Filter => {
            model.fleet.filter.insert(text);
            model.fleet.narrow_and_select();
        }
        _ => model.toast(
            ToastKind::Warning,
            "paste ignored: no field to type in is open",
            Some("press / first to paste into the filter".to_owned()),
        ),
    }
    Vec::new()
}

/// The wheel turns what is under it.
pub(super) fn wheel(model: &mut Model, column: u16, row: u16, notches: i16) -> Vec<Effect> {
    let action = if notches < 0 { Action::Up } else { Action::Down };
    if model.popup.is_none() && model.screens.is_empty() {
        fleet::focus_under(model, column, row);
    } else if model.popup.is_none() {
        run::focus_under(model, column, row);
    }
    (0..notches.unsigned_abs().min(10)).flat_map(|_| act(model, action)).collect()
}

/// A click focuses and selects; on a key of the footer it does what the key does.
pub(super) fn click(model: &mut Model, column: u16, row: u16, at: Timestamp) -> Vec<Effect> {
    model.now = model.now.max(at);
    if let Some(action) = layout::footer_hit(model, column, row) {
        return act(model, action);
    }
    if model.popup.is_some() {
        return Vec::new();
    }
    match model.screens.last() {
        None => fleet::click(model, column, row),
        Some(Screen::Walk(_)) => walk::click(model, column, row),
        Some(Screen::Rack(_)) => rack::click(model, column, row),
        Some(Screen::History(_)) => history::click(model, column, row),
        Some(Screen::Run(_) | Screen::Compare(_) | Screen::Log) => run::focus_under(model, column, row),
    }
    Vec::new()
}

/// Does an action, or says why not.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(reason) = action::reason_against(model, action) {
        model.toast(ToastKind::Warning, reason, None);
        return Vec::new();
    }
    match action {
        Action::Quit => return quit(model),
        Action::Exit => return exit(model),
        Action::Redraw => return vec![Effect::Redraw],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Sync => {
            model.toast(ToastKind::Info, "asking NetBox and Ironic", None);
            return vec![Effect::SyncNow];
        }
        Action::Back => return back(model),
        _ => {}
    }
    if model.popup.is_some() {
        return popups::act(model, action);
    }
    match action {
        Action::Help => {
            model.popup = Some(Popup::Help { top: 0 });
            Vec::new()
        }
        Action::Palette => {
            model.popup = Some(Popup::Palette(Default::default()));
            Vec::new()
        }
        Action::Themes => {
            let palette = Palette { input: Input::with("theme "), cursor: 0 };
            model.popup = Some(Popup::Palette(palette));
            Vec::new()
        }
        Action::Log => {
            model.screens.push(Screen::Log);
            Vec::new()
        }
        Action::Walk => walk::open(model),
        Action::Elevation => rack::open(model),
        Action::Plan => popups::open_plan(model),
        Action::History => history::open(model),
        Action::Export => export(model),
        Action::Enroll => popups::open_launch(model),
        Action::Retry => run::retry(model, false),
        Action::RetryForced => run::retry(model, true),
        Action::Cancel => popups::ask_cancel(model),
        Action::Locate => locate(model),
        Action::Power => power::open(model),
        Action::Mend => mend(model),
        Action::Copy => super::copy::copy(model),
        _ => match model.screens.last() {
            Some(Screen::Run(_)) => run::act(model, action),
            Some(Screen::Walk(_)) => walk::act(model, action),
            Some(Screen::Rack(_)) => rack::act(model, action),
            Some(Screen::History(_)) => history::act(model, action),
            Some(Screen::Compare(_)) => history::act_beside(model, action),
            Some(Screen::Log) => log(action),
            None => fleet::act(model, action),
        },
    }
}

/// A BMC takes a moment: that it is asked is said at once.
fn locate(model: &mut Model) -> Vec<Effect> {
    let Some(host) = model.target().map(|host| host.device.name.to_string()) else { return Vec::new() };
    model.toast(ToastKind::Info, format!("asking the BMC of {host} for its locator"), None);
    vec![Effect::Locate { host }]
}

/// The demo has no racks to walk to: its hands are a key.
fn mend(model: &mut Model) -> Vec<Effect> {
    let Some(host) = model.target().map(|host| host.device.name.to_string()) else { return Vec::new() };
    vec![Effect::Mend { host }]
}

/// Reading a long journal takes a moment: what came of it is told when it is done.
fn export(model: &Model) -> Vec<Effect> {
    model.run_screen().map(|screen| Effect::Export(screen.run)).into_iter().collect()
}

fn log(action: Action) -> Vec<Effect> {
    match action {
        Action::Up | Action::HalfUp | Action::First => vec![Effect::ScrollLog(LogScroll::Older)],
        Action::Down | Action::HalfDown => vec![Effect::ScrollLog(LogScroll::Newer)],
        Action::Last => vec![Effect::ScrollLog(LogScroll::Newest)],
        _ => Vec::new(),
    }
}

/// One step out: dialog, message, filter, marks, view.
fn back(model: &mut Model) -> Vec<Effect> {
    match model.popup.take() {
        // The plan lies on the dialog that it was asked from.
        Some(Popup::Plan(plan)) => {
            model.popup = Some(Popup::Launch(plan.launch));
            return Vec::new();
        }
        Some(_) => return Vec::new(),
        None => {}
    }
    if model.fleet.filtering && model.screens.is_empty() {
        model.fleet.filtering = false;
        model.fleet.filter = Default::default();
        model.fleet.narrow_and_select();
        return Vec::new();
    }
    if model.toasts.pop().is_some() {
        return Vec::new();
    }
    if model.replay().is_some() {
        (model.tape, model.winding) = (None, None);
        return Vec::new();
    }
    if model.rack_screen().is_some() && !model.fleet.marks.is_empty() {
        model.fleet.marks.clear();
        return Vec::new();
    }
    match model.screens.last() {
        Some(Screen::Log) => {
            model.screens.pop();
            vec![Effect::ScrollLog(LogScroll::Newest)]
        }
        Some(Screen::Run(_) | Screen::Walk(_) | Screen::Rack(_) | Screen::History(_) | Screen::Compare(_)) => {
            model.screens.pop();
            Vec::new()
        }
        None => {
            fleet::back(model);
            Vec::new()
        }
    }
}

/// Leaves the view; at the fleet the program.
fn quit(model: &mut Model) -> Vec<Effect> {
    if model.popup.take().is_some() || model.screens.pop().is_some() {
        return Vec::new();
    }
    exit(model)
}

/// Leaves the program, after a question while runs are live. Asked twice it doesn't ask again.
fn exit(model: &mut Model) -> Vec<Effect> {
    if matches!(&model.popup, Some(Popup::Confirm(c)) if c.effects == [Effect::Quit]) {
        return vec![Effect::Quit];
    }
    let live = model.fleet.totals.running + model.fleet.totals.queued;
    if live == 0 {
        return vec![Effect::Quit];
    }
    let under_way = if model.fleet.is_partial { "runs".to_owned() } else { count(live, "run") };
    model.popup = Some(Popup::Confirm(Confirm {
        title: format!("quit · {under_way} under way"),
        lines: vec![
            "Nothing is cancelled and nothing is lost: every run stops where it is".to_owned(),
            "and goes on from there when muster starts again.".to_owned(),
        ],
        yes: "quit".to_owned(),
        no: "stay".to_owned(),
        on_yes: false,
        typed: None,
        effects: vec![Effect::Quit],
    }));
    Vec::new()
}

pub(super) fn refuse_burst(model: &mut Model, action: Action) {
    let name = def_of(action).name;
    model.toast(
        ToastKind::Warning,
        format!("several keys came at once, as from a paste: '{name}' was not done"),
        Some("press the key again if you meant it".to_owned()),
    );
}

/// Whether a line of text is open for typing.
pub(super) fn takes_text(model: &Model) -> bool {
    match &model.popup {
        Some(Popup::Palette(_)) => true,
        Some(Popup::Launch(launch)) => launch.field == Field::NodeUuid,
        Some(Popup::Confirm(confirm)) => confirm.typed.is_some(),
        Some(Popup::Help { .. } | Popup::Plan(_) | Popup::Power(_)) => false,
        None => action::here(model) == Where::Filter,
    }
}

/// Keys that are never text, even in a field.
fn is_command(key: Key) -> bool {
    matches!(key.code, Code::Enter | Code::Esc | Code::Tab | Code::BackTab | Code::Up | Code::Down)
        || (key.ctrl && matches!(key.code, Code::Char('c' | 'z' | 'l' | 'n' | 'p')))
}

/// Gives a key to the line of text that is open. Returns whether it took it.
fn typed(model: &mut Model, key: Key) -> bool {
    match &mut model.popup {
        Some(Popup::Palette(palette)) => {
            palette.cursor = 0;
            palette.input.key(key)
        }
        Some(Popup::Launch(launch)) => launch.node_uuid.key(key),
        Some(Popup::Confirm(Confirm { typed: Some((_, input)), .. })) => input.key(key),
        _ => {
            let took = model.fleet.filter.key(key);
            model.fleet.narrow_and_select();
            took
        }
    }
}

/// Milliseconds from one moment to the next. A clock that was set back in between tells nothing: that counts as long ago,
/// or a key would wait until the clock has caught up.
pub(super) fn ms(from: Timestamp, to: Timestamp) -> i64 {
    match i64::try_from(to.duration_since(from).as_millis()) {
        Ok(ms) if ms >= 0 => ms,
        _ => i64::MAX,
    }
}
