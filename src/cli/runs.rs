//! `muster runs …`: looks at runs and steers them.

use std::io::IsTerminal;

use jiff::Timestamp;
use serde_json::json;

use super::args::{Place, Runs, Switches};
use super::enroll::{Followed, follow};
use super::exit::{Ending, Exit};
use super::{compare, leave, open, output, story};
use crate::app::{App, AppError, RunSummary, Runs as History};
use crate::domain::ids::RunId;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;
use crate::store::RunStatus;

pub async fn runs(place: &Place, command: Runs) -> Result<Exit, Ending> {
    // Looking needs no engine: it works beside the console that has it.
    match &command {
        Runs::List { host, json } => return list(&history(place)?, place, host.as_deref(), *json),
        Runs::Show { run, json } => {
            let runs = history(place)?;
            let run = runs.find(run).map_err(unknown)?;
            return show(&runs, run, *json);
        }
        Runs::Compare { one, other, all, json } => {
            let runs = history(place)?;
            let (one, other) = (runs.find(one).map_err(unknown)?, runs.find(other).map_err(unknown)?);
            return compare::compare(&runs, one, other, *all, *json);
        }
        Runs::Export { run, format } => {
            let runs = history(place)?;
            let run = runs.find(run).map_err(unknown)?;
            return story::export(&runs, run, *format);
        }
        Runs::Replay { run, json } => {
            let runs = history(place)?;
            let run = runs.find(run).map_err(unknown)?;
            return story::replay(&runs, run, *json);
        }
        Runs::Watch { .. } | Runs::Retry { .. } | Runs::Cancel { .. } => {}
    }
    let app = open::headless(place).await?;
    let done = carry_out(&app, command).await;
    leave::leave(app).await;
    done
}

async fn carry_out(app: &App, command: Runs) -> Result<Exit, Ending> {
    match command {
        // Answered above, without an engine.
        Runs::List { .. } | Runs::Show { .. } | Runs::Compare { .. } | Runs::Export { .. } | Runs::Replay { .. } => {
            Ok(Exit::Done)
        }
        Runs::Watch { run, json } => {
            let run = find(app, &run)?;
            watch(app, run, json).await
        }
        Runs::Retry { run, switches, json } => {
            let run = find(app, &run)?;
            retry(app, run, &switches, json).await
        }
        Runs::Cancel { run, json } => {
            let run = find(app, &run)?;
            cancel(app, run, json).await
        }
    }
}

async fn retry(app: &App, run: RunId, switches: &Switches, json: bool) -> Result<Exit, Ending> {
    match app.retry(run, |params| switches.change(params), &open::operator()).await {
        Ok(next) => watch(app, next, json).await,
        Err(refusal) => {
            let host = host_of(app, run)?;
            if json {
                output::object(&output::refused(&host, &refusal));
            }
            Err(Ending::refused(neutralize(&format!("{host}: {refusal}"))).with_action(neutralize(&refusal.action())))
        }
    }
}

/// Done: the run ended as cancelled. One that came to its own end before the cancel reached it failed to be.
async fn cancel(app: &App, run: RunId, json: bool) -> Result<Exit, Ending> {
    let (host, by) = (host_of(app, run)?, open::operator());
    app.cancel(run, &by).await.map_err(|error| uncancelled(app, run, &host, error, json))?;
    if json {
        output::object(&json!({ "event": "cancelling", "run": run, "host": host, "by": by }));
    } else {
        output::line(&neutralize(&format!("{host}: run {} is being cancelled", run.short())));
    }
    let ended = watch(app, run, json).await?;
    let cancelled = app.runs().map_err(failed)?.iter().any(|row| row.run == run && row.status == RunStatus::Cancelled);
    Ok(if cancelled { Exit::Done } else { ended.max(Exit::Failed) })
}

/// Why a run could not be cancelled: one that has ended is refused, the rest failed.
fn uncancelled(app: &App, run: RunId, host: &str, error: AppError, json: bool) -> Ending {
    if !matches!(error, AppError::RunEnded(_)) {
        return failed(error);
    }
    let rows = app.runs().unwrap_or_default();
    let how = match rows.iter().find(|row| row.run == run).map(|row| row.status) {
        Some(RunStatus::Cancelled) => ": it was cancelled",
        Some(RunStatus::Succeeded) => ": it succeeded",
        Some(RunStatus::Failed) => ": it failed",
        Some(RunStatus::Queued | RunStatus::Running) | None => "",
    };
    let (message, action) = (format!("{error}{how}"), format!("see `muster runs show {}`", run.short()));
    if json {
        output::object(&json!({
            "event": "refused", "run": run, "host": host, "code": "run_ended", "message": message, "action": action,
        }));
    }
    Ending::refused(message).with_action(action)
}

fn host_of(app: &App, run: RunId) -> Result<String, Ending> {
    let records = app.records(run).map_err(failed)?;
    Ok(RunView::of(&records).request.map_or(String::new(), |request| request.host))
}

fn list(runs: &History, place: &Place, host: Option<&str>, json: bool) -> Result<Exit, Ending> {
    let all = runs.list().map_err(failed)?;
    // A device that was renamed keeps its runs.
    let device = host.and_then(|name| all.iter().find(|row| row.host == name)).map(|row| row.netbox_id);
    let is_meant = |row: &&RunSummary| {
        place.site.as_ref().is_none_or(|site| &row.site == site) && (host.is_none() || device == Some(row.netbox_id))
    };
    let rows: Vec<&RunSummary> = all.iter().filter(is_meant).collect();
    if rows.is_empty() && !json {
        match host {
            Some(host) => output::line(&neutralize(&format!("no runs of '{host}'"))),
            None => output::line("no runs yet; `muster enroll HOST` starts one"),
        }
    }
    for row in rows {
        if json {
            let mut line = summary(row);
            line["retried_by"] = json!(retried_by(&all, row.run));
            output::object(&line);
        } else {
            let code = match (&row.failure, &row.queued) {
                (Some(f), _) => format!("  {}: {}", f.code, f.message),
                (None, Some(queued)) => format!("  {}", output::place(queued)),
                (None, None) => String::new(),
            };
            let at = row.submitted_at.strftime("%Y-%m-%d %H:%M:%S");
            let text =
                format!("{}  {at}  {:<16} {:<11} by {}{code}", row.run.short(), row.host, row.status.as_str(), row.by);
            output::line(&neutralize(&text));
        }
    }
    Ok(Exit::Done)
}

fn summary(row: &RunSummary) -> serde_json::Value {
    json!({
        "run": row.run,
        "host": row.host,
        "site": row.site,
        "by": row.by,
        "status": row.status.as_str(),
        "submitted_at": row.submitted_at,
        "finished_at": row.finished_at,
        "phase": row.phase,
        "attempts": row.attempts,
        "took_s": row.finished_at.map(|end| end.duration_since(row.submitted_at).as_secs().max(0)),
        "failure": row.failure,
        "retry_of": row.retry_of,
        "place": row.queued.as_ref().map(|queued| queued.place),
        "reason": row.queued.as_ref().map(|queued| queued.reason.to_string()),
        "held_by": row.queued.as_ref().map(|queued| queued.reason.kind()),
    })
}

fn show(runs: &History, run: RunId, json: bool) -> Result<Exit, Ending> {
    let records = runs.records(run).map_err(failed)?;
    let view = RunView::of(&records);
    let queued = runs.row(run).map_err(failed)?.queued;
    let (figures, now) = (runs.figures(run).map_err(failed)?, Timestamp::now());
    if json {
        let host = view.request.as_ref().map_or(String::new(), |r| r.host.clone());
        for line in records.iter().filter_map(|record| output::record(&host, record)) {
            output::object(&line);
        }
        output::object(&output::usual(run, &host, &view, &figures, now));
        if let Some(outcome) = &view.outcome {
            output::object(&output::finished(run, &host, outcome.status(), view.failure()));
        }
        if let Some(queued) = queued {
            output::object(&json!({
                "event": "queued", "run": run, "host": host, "place": queued.place,
                "reason": queued.reason.to_string(), "held_by": queued.reason.kind(),
            }));
        }
    } else {
        output::page(&view, &figures, now).iter().for_each(|line| output::line(line));
        if let Some(queued) = queued {
            output::line(&neutralize(&output::place(&queued)));
        }
        if let Some(before) = view.request.as_ref().and_then(|request| request.retry_of) {
            output::line(&format!("repeats run {before}"));
        }
        for after in retried_by(&runs.list().map_err(failed)?, run) {
            output::line(&format!("repeated by run {after}"));
        }
    }
    Ok(Exit::Done)
}

/// The runs that repeat this one, the oldest first.
fn retried_by(all: &[RunSummary], run: RunId) -> Vec<RunId> {
    all.iter().rev().filter(|row| row.retry_of == Some(run)).map(|row| row.run).collect()
}

async fn watch(app: &App, run: RunId, json: bool) -> Result<Exit, Ending> {
    let host = host_of(app, run)?;
    if !json && std::io::stdout().is_terminal() {
        output::line(&format!("run {run} of {}", neutralize(&host)));
    }
    let ended = follow(app, vec![Followed { run, host }], json).await?;
    Ok(ended)
}

/// The run that a person means by a full id or its last characters.
fn find(app: &App, text: &str) -> Result<RunId, Ending> {
    app.find_run(text).map_err(unknown)
}

fn history(place: &Place) -> Result<History, Ending> {
    let state = open::state_dir(place)?;
    History::open(&state).map_err(|e| Ending::refused(e.to_string()))
}

fn unknown(e: AppError) -> Ending {
    Ending::refused(e.to_string()).with_action("see `muster runs list` for the ids")
}

pub(super) fn failed(e: AppError) -> Ending {
    Ending::failed(e.to_string())
}
