//! Dialogs: launch, confirmation, palette, help.

use super::fleet::{half, moved};
use super::{power, run};
use crate::domain::ids::RunId;
use crate::tui::action::{self, Action, Where};
use crate::tui::effect::Effect;
use crate::tui::layout;
use crate::tui::model::input::Input;
use crate::tui::model::launch::{Candidate, Field, Launch, Verdict};
use crate::tui::model::palette::{self, Command};
use crate::tui::model::place::Place;
use crate::tui::model::plan::PlanPopup;
use crate::tui::model::{Confirm, Keeping, Model, Popup, ToastKind};

/// Does an action of the dialog that is open.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match model.popup.take() {
        Some(Popup::Help { top }) => {
            let rows = usize::from(model.height);
            let by = match action {
                Action::Up => -1,
                Action::Down => 1,
                Action::HalfUp => -half(rows),
                Action::HalfDown => half(rows),
                Action::First => i64::MIN,
                Action::Last => i64::MAX,
                _ => 0,
            };
            let top = moved(top, by, layout::help_len(model) + 1);
            model.popup = Some(Popup::Help { top });
            Vec::new()
        }
        Some(Popup::Launch(launch)) => launch_act(model, launch, action),
        Some(Popup::Plan(plan)) => plan_act(model, plan, action),
        Some(Popup::Power(dialog)) => power::act(model, dialog, action),
        Some(Popup::Confirm(confirm)) => confirm_act(model, confirm, action),
        Some(Popup::Palette(palette)) => palette_act(model, palette, action),
        None => Vec::new(),
    }
}

/// Nothing in a dialog is scrolled past its end.
pub(super) fn clamp(model: &mut Model) {
    let end = layout::help_len(model).saturating_sub(layout::help_rows(model));
    if let Some(Popup::Help { top }) = &mut model.popup {
        *top = (*top).min(end);
    }
    if let Some(Popup::Palette(palette)) = &model.popup {
        let last = palette::entries(model, &palette.input.text).len().saturating_sub(1);
        if let Some(Popup::Palette(palette)) = &mut model.popup {
            palette.cursor = palette.cursor.min(last);
        }
    }
    model.look.trying = match &model.popup {
        Some(Popup::Palette(palette)) => palette::theme_under_cursor(model, palette),
        _ => None,
    };
}

/// Opens the launch dialog for the marked hosts, the selected one, or that of the run.
pub(super) fn open_launch(model: &mut Model) -> Vec<Effect> {
    model.popup = Some(Popup::Launch(launch_of(model)));
    Vec::new()
}

/// Opens the plan of the same, on the dialog that it belongs to.
pub(super) fn open_plan(model: &mut Model) -> Vec<Effect> {
    let launch = launch_of(model);
    match launch.obstacle() {
        Some(obstacle) => {
            model.toast(ToastKind::Warning, obstacle, None);
            model.popup = Some(Popup::Launch(launch));
            Vec::new()
        }
        None => ask_plan(model, PlanPopup::new(launch)),
    }
}

/// Marks belong to the fleet, in its table and in a rack: on a screen of its own a host is meant alone.
fn launch_of(model: &Model) -> Launch {
    let marked = !model.fleet.marks.is_empty() && matches!(action::view(model), Where::Fleet | Where::Rack);
    match marked {
        true => Launch::new(model.fleet.chosen()),
        false => Launch::new(model.target()),
    }
}

fn launch_act(model: &mut Model, mut launch: Launch, action: Action) -> Vec<Effect> {
    match action {
        Action::Up => launch.step(false),
        Action::Down => launch.step(true),
        Action::First => launch.field = launch.fields()[0],
        Action::Last => launch.field = launch.fields()[launch.fields().len() - 1],
        Action::HalfDown => launch.top = moved(launch.top, 5, launch.hosts.len()),
        Action::HalfUp => launch.top = moved(launch.top, -5, launch.hosts.len()),
        Action::Toggle => launch.toggle(),
        Action::Left | Action::Right => match launch.field {
            Field::Attempts => launch.attempts(action == Action::Right),
            Field::NodeUuid => {}
            _ => launch.toggle(),
        },
        Action::Plan => return ask_plan(model, PlanPopup::new(launch)),
        Action::Start => return start(model, launch),
        _ => {}
    }
    model.popup = Some(Popup::Launch(launch));
    Vec::new()
}

/// Shows a plan, and asks for it.
fn ask_plan(model: &mut Model, popup: PlanPopup) -> Vec<Effect> {
    let params = popup.launch.read_params();
    let asked = popup.host().map(|candidate| Effect::Plan { host: candidate.host.clone(), params });
    model.popup = Some(Popup::Plan(popup));
    asked.into_iter().collect()
}

fn plan_act(model: &mut Model, mut plan: PlanPopup, action: Action) -> Vec<Effect> {
    let rows = layout::plan_rows(model, &plan);
    let by = match action {
        Action::Up => -1,
        Action::Down => 1,
        Action::HalfUp => -half(rows),
        Action::HalfDown => half(rows),
        Action::First => i64::MIN,
        Action::Last => i64::MAX,
        Action::Left | Action::Right => {
            if plan.step(action == Action::Right) {
                return ask_plan(model, plan);
            }
            0
        }
        Action::Start => return start(model, plan.launch),
        _ => 0,
    };
    plan.top = moved(plan.top, by, plan.rows().saturating_sub(rows) + 1);
    model.popup = Some(Popup::Plan(plan));
    Vec::new()
}

/// Starts what may go; a deployed host only after its name is typed.
fn start(model: &mut Model, launch: Launch) -> Vec<Effect> {
    if let Some(obstacle) = launch.obstacle() {
        model.toast(ToastKind::Warning, obstacle, None);
        model.popup = Some(Popup::Launch(launch));
        return Vec::new();
    }
    let params = launch.read_params();
    let starting: Vec<&Candidate> = launch.starting().collect();
    let open = starting.len() == 1 && launch.hosts.len() == 1;
    let hosts = starting.iter().map(|c| c.host.clone());
    let effects: Vec<Effect> = match launch.canary && starting.len() > 1 {
        true => vec![Effect::SubmitBehindCanary { hosts: hosts.collect(), params }],
        false => hosts.map(|host| Effect::Submit { host, params: params.clone(), open }).collect(),
    };
    let deployed = starting.iter().find(|c| c.verdict == Verdict::Deployed).map(|c| c.host.clone());
    let Some(host) = deployed else {
        model.fleet.marks.clear();
        return effects;
    };
    model.popup = Some(Popup::Confirm(Confirm {
        title: format!("enroll {host} · deployed"),
        lines: vec![
            "A workload may run on this host. Its node is left alone, but BMC settings that".to_owned(),
            "drifted are put right, and that restarts the host. Type its name to go on.".to_owned(),
        ],
        yes: "enroll".to_owned(),
        no: "back".to_owned(),
        on_yes: false,
        typed: Some((host, Input::default())),
        effects,
    }));
    Vec::new()
}

/// Asks before a run is cancelled.
pub(super) fn ask_cancel(model: &mut Model) -> Vec<Effect> {
    let Some((run, host, _)) = model.target_run() else { return Vec::new() };
    let phase = model.runs.get(&run).and_then(|v| v.phase()).map(|p| p.phase.label());
    let now = match phase {
        Some(phase) => format!("It is in phase {phase}. It ends at its next step; what it changed"),
        None => "It did not begin yet. It ends at its next step; what it changed".to_owned(),
    };
    model.popup = Some(Popup::Confirm(Confirm {
        title: format!("cancel run {} · {host}", run.short()),
        lines: vec![now, "so far stays, and the run says what was left in place.".to_owned()],
        yes: "cancel the run".to_owned(),
        no: "let it run".to_owned(),
        on_yes: false,
        typed: None,
        effects: vec![Effect::Cancel { run }],
    }));
    Vec::new()
}

fn confirm_act(model: &mut Model, mut confirm: Confirm, action: Action) -> Vec<Effect> {
    match action {
        Action::Other => confirm.on_yes = !confirm.on_yes,
        Action::Choose => {
            let typed = confirm.typed.as_ref().map(|(name, input)| *name == input.text.trim());
            match (typed, confirm.on_yes) {
                (Some(true), _) | (None, true) => {
                    let starts = |effect: &Effect| matches!(effect, Effect::Submit { .. });
                    if confirm.effects.iter().any(starts) {
                        model.fleet.marks.clear();
                    }
                    return confirm.effects;
                }
                (Some(false), true) => {
                    model.toast(ToastKind::Warning, "the name that was typed is another", None);
                }
                (Some(false) | None, false) => return Vec::new(),
            }
        }
        _ => {}
    }
    model.popup = Some(Popup::Confirm(confirm));
    Vec::new()
}

fn palette_act(model: &mut Model, mut open: palette::Palette, action: Action) -> Vec<Effect> {
    let entries = palette::entries(model, &open.input.text);
    match action {
        Action::Up => open.cursor = moved(open.cursor, -1, entries.len()),
        Action::Down => open.cursor = moved(open.cursor, 1, entries.len()),
        Action::RunCommand => {
            let Some(entry) = entries.into_iter().nth(open.cursor) else {
                model.popup = Some(Popup::Palette(open));
                return Vec::new();
            };
            return run_entry(model, open, entry);
        }
        _ => {}
    }
    model.popup = Some(Popup::Palette(open));
    Vec::new()
}

fn run_entry(model: &mut Model, mut open: palette::Palette, entry: palette::Entry) -> Vec<Effect> {
    // `rack …` asks for its argument: the word is put into the line, and the palette stays.
    if entry.command == Command::Act(Action::Palette)
        && let Some(word) = entry.text.strip_suffix('…')
    {
        open.input = Input::with(word);
        open.cursor = 0;
        model.popup = Some(Popup::Palette(open));
        return Vec::new();
    }
    model.palette_history.retain(|h| *h != entry.text);
    model.palette_history.insert(0, entry.text.clone());
    model.palette_history.truncate(20);
    match entry.command {
        Command::Act(action) => super::keys::act(model, action),
        Command::Theme(name) => {
            model.look.theme = name.clone();
            let (told, effects) = match model.look.keeping {
                Keeping::Kept => (None, vec![Effect::KeepTheme(name.clone())]),
                Keeping::Configured => {
                    (Some("until this console ends: the configuration names another".to_owned()), Vec::new())
                }
                Keeping::Nowhere => (Some("until this console ends".to_owned()), Vec::new()),
            };
            model.toast(ToastKind::Info, format!("theme {name}"), told);
            effects
        }
        Command::Go(place) => {
            go_to(model, place);
            Vec::new()
        }
        Command::Host(id) => {
            if let Some(host) = model.fleet.by_id(id) {
                let place = Place::of(host);
                go_to(model, place);
                model.fleet.selected = Some(id);
            }
            Vec::new()
        }
        Command::Run(run, host) => open_run(model, run, &host),
        Command::SyncNow => super::keys::act(model, Action::Sync),
    }
}

fn open_run(model: &mut Model, run: RunId, host: &str) -> Vec<Effect> {
    run::open(model, run, host)
}

/// Back at the fleet, in a place, with everything of it showing.
pub(super) fn go_to(model: &mut Model, place: Place) {
    model.screens.clear();
    model.fleet.filter = Input::default();
    model.fleet.filtering = false;
    model.fleet.pane = crate::tui::model::fleet::Pane::Table;
    model.fleet.go(place);
    debug_assert!(action::view(model) == action::Where::Fleet);
}
