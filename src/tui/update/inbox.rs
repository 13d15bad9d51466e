//! What comes from outside: the fleet, records of runs, answers.

use super::{ends, history, run};
use crate::app::Role;
use crate::domain::event::RunRecord;
use crate::domain::ids::RunId;
use crate::domain::plan::Plan;
use crate::domain::request::EnrollParams;
use crate::domain::run_view::{RunState, RunView};
use crate::domain::text::neutralize;
use crate::domain::word::Word;
use crate::tui::effect::Effect;
use crate::tui::event::Refused;
use crate::tui::model::fleet::Fleet;
use crate::tui::model::host::{Host, LastRun, SystemHealth};
use crate::tui::model::plan::Page;
use crate::tui::model::{Model, Popup, Screen, ToastKind};

/// Views of runs that are over are kept for so many runs besides those on the screen.
const KEPT_RUNS: usize = 32;

/// The first hosts, while the others are being read.
pub(super) fn fleet_begins(model: &mut Model, mut hosts: Vec<Host>) -> Vec<Effect> {
    // A reading that comes late shows less than there is.
    if model.fleet.loaded && !model.fleet.is_partial {
        return Vec::new();
    }
    catch_up(model, &mut hosts);
    model.fleet.set_first(hosts);
    ask_live(model)
}

/// The fleet as the store has it. Runs under way that are not known yet are asked for.
pub(super) fn fleet(model: &mut Model, mut hosts: Vec<Host>) -> Vec<Effect> {
    catch_up(model, &mut hosts);
    take_in(model, |fleet| fleet.set_hosts(hosts))
}

/// What changed of it.
pub(super) fn hosts(model: &mut Model, mut changed: Vec<Host>, gone: &[u64]) -> Vec<Effect> {
    catch_up(model, &mut changed);
    take_in(model, |fleet| fleet.change(changed, gone))
}

fn take_in(model: &mut Model, take: impl FnOnce(&mut Fleet)) -> Vec<Effect> {
    let before = ends::live(model);
    take(&mut model.fleet);
    ends::unheard(model, &before);
    let mut effects = ask_live(model);
    effects.extend(super::rack::ask(model));
    effects
}

/// The last runs of some hosts, because records may have been missed.
pub(super) fn last_runs(model: &mut Model, runs: Vec<(u64, LastRun)>) -> Vec<Effect> {
    let before = ends::live(model);
    let mut changed = false;
    for (id, mut last) in runs {
        if let Some(view) = model.runs.get(&last.run) {
            take_state(&mut last, view);
        }
        let Some(host) = model.fleet.host_mut(id) else { continue };
        let newer = host.last_run.as_ref().is_none_or(|of| of.run == last.run || of.submitted_at <= last.submitted_at);
        if newer && host.last_run.as_deref() != Some(&last) {
            host.last_run = Some(Box::new(last));
            changed = true;
        }
    }
    if changed {
        recount(model);
        ends::unheard(model, &before);
    }
    ask_live(model)
}

/// The feed may be ahead of a list that was read.
fn catch_up(model: &Model, hosts: &mut [Host]) {
    for host in hosts {
        if let Some(last) = &mut host.last_run
            && let Some(view) = model.runs.get(&last.run)
        {
            take_state(last, view);
        }
    }
}

/// Asks for the runs under way that are not known yet.
fn ask_live(model: &mut Model) -> Vec<Effect> {
    let live: Vec<RunId> = model.live_runs().filter_map(|h| Some(h.last_run.as_ref()?.run)).collect();
    live.into_iter().flat_map(|id| run::want(model, id)).collect()
}

/// Hosts stand otherwise than before.
fn recount(model: &mut Model) {
    model.fleet.count();
    model.fleet.stands_otherwise();
    if !model.fleet.filter.is_empty() {
        model.fleet.narrow_and_select();
    }
}

pub(super) fn health(model: &mut Model, health: SystemHealth) -> Vec<Effect> {
    match model.health.iter_mut().find(|h| h.name == health.name) {
        Some(known) => *known = health,
        None => model.health.push(health),
    }
    Vec::new()
}

/// Who leads. The first word of it is no news; later ones are.
pub(super) fn role(model: &mut Model, role: Role) -> Vec<Effect> {
    let before = model.role.replace(role);
    let (Some(before), Some(now)) = (before, &model.role) else { return Vec::new() };
    if before == *now {
        return Vec::new();
    }
    let text = match (before, now) {
        (Role::Following { leader: Some(gone) }, Role::Leading) => {
            format!("process {} has ended: this console carries the runs out now", gone.pid)
        }
        (_, Role::Leading) => "this console carries the runs out now".to_owned(),
        (_, Role::Following { leader: Some(leader) }) => format!("{leader} carries the runs out now"),
        (_, Role::Following { leader: None } | Role::Aside) => return Vec::new(),
    };
    model.toast(ToastKind::Info, neutralize(&text), None);
    Vec::new()
}

/// A run's records from the first on. Records that came by the feed meanwhile are among them or follow.
pub(super) fn run_loaded(model: &mut Model, run: RunId, records: &[RunRecord]) -> Vec<Effect> {
    model.loading.remove(&run);
    model.lost.remove(&run);
    let mut view = RunView::of(records);
    for record in model.early.remove(&run).unwrap_or_default() {
        // What is still missing between the two comes with the next record, which finds a gap and reads anew.
        if record.n == view.next_n {
            view.apply(&record);
        }
    }
    model.runs.insert(run, view);
    settle(model, run);
    Vec::new()
}

/// A plan that was asked for. It may come when nobody looks at it any more, or with other switches than are set now.
pub(super) fn planned(
    model: &mut Model,
    host: &str,
    params: &EnrollParams,
    plan: &Result<Plan, Refused>,
) -> Vec<Effect> {
    if let Some(Popup::Plan(popup)) = &mut model.popup
        && popup.host().is_some_and(|candidate| candidate.host == host)
        && popup.launch.read_params() == *params
    {
        popup.page = Some(plan.as_ref().map(Page::of).map_err(Clone::clone));
    }
    Vec::new()
}

/// One record of the feed.
pub(super) fn record(model: &mut Model, record: &RunRecord) -> Vec<Effect> {
    let id = record.run;
    if model.loading.contains(&id) {
        model.early.entry(id).or_default().push(record.clone());
        return Vec::new();
    }
    let view = match model.runs.get_mut(&id) {
        Some(view) => view,
        // The first record begins a view; a later one needs those before it, which are read whole.
        None if record.n == 0 => model.runs.entry(id).or_default(),
        None => {
            model.early.entry(id).or_default().push(record.clone());
            return run::want(model, id);
        }
    };
    if record.n > view.next_n {
        // A gap: the feed was too fast for this console. Read the run anew.
        model.runs.remove(&id);
        return run::want(model, id);
    }
    view.apply(record);
    settle(model, id);
    history::follow(model, record)
}

/// Writes a run's state into the fleet's list and counts anew where it changed.
fn settle(model: &mut Model, id: RunId) {
    let Some(view) = model.runs.get(&id) else { return };
    let Some(request) = &view.request else { return };
    let netbox_id = request.netbox_id;
    let fresh = LastRun {
        run: id,
        state: view.state(),
        by: Word::from(&*request.submitted_by),
        submitted_at: request.submitted_at,
        finished_at: view.finished_at,
        failure: view.failure().cloned().map(Box::new),
    };
    let Some(host) = model.fleet.host_mut(netbox_id) else { return };
    // An older run that is looked at changes nothing of how the host stands.
    let newer = host.last_run.as_ref().is_none_or(|last| last.run == id || last.submitted_at <= fresh.submitted_at);
    if newer && host.last_run.as_deref() != Some(&fresh) {
        let ended = host.last_run.as_ref().is_some_and(|last| last.run == id && last.is_live()) && !fresh.is_live();
        let name = host.device.name.to_string();
        host.last_run = Some(Box::new(fresh.clone()));
        if ended {
            ends::seen(model, &name, &fresh);
        }
        recount(model);
    }
    forget(model);
}

fn take_state(last: &mut LastRun, view: &RunView) {
    if view.request.is_some() {
        last.state = view.state();
        last.finished_at = view.finished_at.or(last.finished_at);
        if last.state == RunState::Failed {
            last.failure = view.failure().cloned().map(Box::new);
        }
    }
}

/// Drops views of runs that are over, the oldest first, so that a long session doesn't grow.
fn forget(model: &mut Model) {
    if model.runs.len() <= KEPT_RUNS {
        return;
    }
    let open: Vec<RunId> = model
        .screens
        .iter()
        .flat_map(|s| match s {
            Screen::Run(screen) => vec![screen.run],
            Screen::Compare(compare) => compare.runs.to_vec(),
            Screen::Walk(_) | Screen::Rack(_) | Screen::History(_) | Screen::Log => Vec::new(),
        })
        .collect();
    let over = |id: &RunId, view: &RunView| view.outcome.is_some() && !open.contains(id);
    let mut old: Vec<RunId> = model.runs.iter().filter(|(id, v)| over(id, v)).map(|(id, _)| *id).collect();
    let extra = old.len().saturating_sub(KEPT_RUNS);
    old.truncate(extra);
    for id in old {
        model.runs.remove(&id);
    }
}

/// A submission or a retry was accepted or refused.
pub(super) fn submitted(
    model: &mut Model,
    host: &str,
    of: Option<RunId>,
    open: bool,
    answer: Result<RunId, Refused>,
) -> Vec<Effect> {
    match answer {
        Ok(id) => {
            let word = if of.is_some() { "repeats as" } else { "starts as" };
            model.toast(ToastKind::Info, format!("{host} {word} run {}", id.short()), None);
            // The person may have gone elsewhere meanwhile: the view follows only where it was asked for.
            let still_there = match (of, model.run_screen()) {
                (Some(before), Some(screen)) => screen.run == before,
                (Some(_), None) => false,
                (None, Some(screen)) => screen.host == host,
                (None, None) => true,
            };
            if open && still_there { run::open(model, id, host) } else { run::want(model, id) }
        }
        Err(refused) => {
            model.toast(ToastKind::Error, format!("{host}: {}", refused.message), Some(refused.action));
            Vec::new()
        }
    }
}

/// Something else that was asked for was done or refused.
pub(super) fn answered(model: &mut Model, answer: Result<String, Refused>) -> Vec<Effect> {
    match answer {
        Ok(text) => model.toast(ToastKind::Info, text, None),
        Err(refused) => model.toast(ToastKind::Error, refused.message, Some(refused.action)),
    }
    Vec::new()
}
