//! Which ends of runs are told: those that this person started, and the one on the screen (U10).

use std::collections::BTreeSet;

use crate::domain::ids::RunId;
use crate::domain::run_view::RunState;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::host::{Host, LastRun};

/// A host's run as it stands now, which was under way before. Where it has ended, that is to be told.
pub(super) fn seen(model: &mut Model, host: &str, last: &LastRun) {
    let word = match last.state {
        RunState::Succeeded => "is enrolled",
        RunState::Failed => "failed",
        RunState::Cancelled => "was cancelled",
        RunState::Queued | RunState::Running | RunState::Cancelling => return,
    };
    let is_own = !model.user.is_empty() && last.by == model.user;
    let is_open = model.run_screen().is_some_and(|screen| screen.run == last.run);
    if is_own || is_open {
        let why = last.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
        model.ends.ended(last.run, format!("{host} {word}{why}"));
    }
}

/// The runs under way, before the fleet is read anew.
pub(super) fn live(model: &Model) -> BTreeSet<RunId> {
    model.live_runs().filter_map(|host| Some(host.last_run.as_ref()?.run)).collect()
}

/// Those of them that the fleet has as ended now: their last records were not heard.
pub(super) fn unheard(model: &mut Model, live: &BTreeSet<RunId>) {
    let over = |host: &Host| {
        let last = host.last_run.as_ref().filter(|last| !last.is_live() && live.contains(&last.run))?;
        Some((host.device.name.to_string(), LastRun::clone(last)))
    };
    let over: Vec<(String, LastRun)> =
        if live.is_empty() { Vec::new() } else { model.fleet.hosts.iter().filter_map(over).collect() };
    for (host, last) in over {
        seen(model, &host, &last);
    }
}

/// Tells what is due.
pub(super) fn ring(model: &mut Model) -> Option<Effect> {
    model.ends.due(model.now).map(Effect::Tell)
}
