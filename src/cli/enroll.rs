//! `muster enroll`: submits hosts and follows their runs to the end.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::broadcast;

use super::args::{Enroll, Place};
use super::exit::{Ending, Exit};
use super::{open, output};
use crate::app::{App, AppError, FeedEvent, SubmitError};
use crate::domain::event::{Body, Event, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::request::EnrollParams;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;
use crate::store::StoreError;

/// A run that a command follows.
#[derive(Debug, Clone)]
pub struct Followed {
    pub run: RunId,
    pub host: String,
}

pub async fn enroll(place: &Place, command: Enroll) -> Result<Exit, Ending> {
    let app = open::headless(place).await?;
    let ended = carry_out(&app, command).await;
    app.shutdown().await;
    ended
}

async fn carry_out(app: &App, command: Enroll) -> Result<Exit, Ending> {
    // A batch list may name a host twice; it is enrolled once, in the place of its first name (C-52).
    let mut seen = BTreeSet::new();
    let hosts: Vec<&String> = command.hosts.iter().filter(|host| seen.insert(host.as_str())).collect();
    // The lists of a first start are empty: what NetBox has is read before anything is judged.
    app.sync_now().await.map_err(|e| Ending::failed(e.to_string()))?;
    let params = EnrollParams::from(&command.switches);
    warn_of_deployed(app, &hosts, &command)?;

    let (first, rest) = match command.canary {
        true => hosts.split_at(1),
        false => hosts.split_at(hosts.len()),
    };
    let mut worst = Exit::Done;
    for group in [first, rest] {
        if group.is_empty() {
            continue;
        }
        if worst != Exit::Done {
            let left: Vec<&str> = group.iter().map(|host| host.as_str()).collect();
            eprintln!("muster: the canary did not succeed; not started: {}", left.join(", "));
            break;
        }
        let (runs, refused) = submit(app, group, &params, command.json).await;
        worst = worst.max(refused);
        if !command.detach && !runs.is_empty() {
            worst = worst.max(follow(app, runs, command.json).await?);
        }
    }
    Ok(worst)
}

/// BMC convergence runs before the Nova guard: a host that is deployed wants a yes (B19).
fn warn_of_deployed(app: &App, hosts: &[&String], command: &Enroll) -> Result<(), Ending> {
    let fleet = app.fleet().map_err(|e| Ending::failed(e.to_string()))?;
    let deployed: Vec<&str> = fleet
        .rows
        .iter()
        .filter(|row| hosts.iter().any(|host| **host == row.device.name))
        .filter(|row| row.ironic.as_ref().is_some_and(|ironic| ironic.instance_uuid.is_some()))
        .map(|row| row.device.name.as_str())
        .collect();
    if deployed.is_empty() || command.yes {
        return Ok(());
    }
    Err(Ending::refused(format!(
        "an instance lives on {}: converging the BMC can restart its host",
        deployed.join(", ")
    ))
    .with_action("leave it out, or repeat the command with --yes if that is meant"))
}

/// Submits hosts one by one. A refusal of one stops none of the others.
async fn submit(app: &App, hosts: &[&String], params: &EnrollParams, json: bool) -> (Vec<Followed>, Exit) {
    let by = open::operator();
    let mut runs = Vec::new();
    let mut exit = Exit::Done;
    for host in hosts {
        match app.submit(host, params.clone(), &by).await {
            Ok(run) => {
                if json {
                    output::object(&serde_json::json!({ "event": "accepted", "run": run, "host": host }));
                } else {
                    output::line(&format!("{host}: run {} begins", run.short()));
                }
                runs.push(Followed { run, host: (*host).clone() });
            }
            Err(SubmitError::Busy { run, by }) => match same_params(app, run, params) {
                // The run of an earlier process that ended without finishing it: it has been resumed, and is followed.
                Ok(true) => {
                    if json {
                        output::object(&serde_json::json!({ "event": "resumed", "run": run, "host": host }));
                    } else {
                        output::line(&format!("{host}: run {} goes on", run.short()));
                    }
                    runs.push(Followed { run, host: (*host).clone() });
                }
                Ok(false) => {
                    exit = exit.max(Exit::Refused);
                    tell_refusal(host, &SubmitError::Busy { run, by }, json);
                }
                // It is there, and nobody can read it.
                Err(error) => {
                    exit = exit.max(Exit::Refused);
                    tell_refusal(host, &SubmitError::Store(error), json);
                }
            },
            Err(refusal) => {
                exit = exit.max(Exit::Refused);
                tell_refusal(host, &refusal, json);
            }
        }
    }
    (runs, exit)
}

fn tell_refusal(host: &str, refusal: &SubmitError, json: bool) {
    if json {
        output::object(&serde_json::json!({
            "event": "refused", "host": host, "code": refusal.code(),
            "message": refusal.to_string(), "action": refusal.action(),
        }));
    }
    eprintln!("muster: {}", neutralize(&format!("{host}: {refusal}")));
    eprintln!("        {}", neutralize(&refusal.action()));
}

fn same_params(app: &App, run: RunId, params: &EnrollParams) -> Result<bool, StoreError> {
    let records = match app.records(run) {
        Ok(records) => records,
        Err(AppError::Store(error)) => return Err(error),
        Err(_) => return Ok(false),
    };
    Ok(RunView::of(&records).request.is_some_and(|request| request.params == *params))
}

/// Follows runs until all have ended, or the process is asked to stop. What was recorded before is told first.
pub async fn follow(app: &App, runs: Vec<Followed>, json: bool) -> Result<Exit, Ending> {
    let mut feed = app.feed();
    let hosts: BTreeMap<RunId, String> = runs.iter().map(|f| (f.run, f.host.clone())).collect();
    let mut views: BTreeMap<RunId, RunView> = hosts.keys().map(|run| (*run, RunView::default())).collect();
    let mut open: BTreeSet<RunId> = hosts.keys().copied().collect();
    let mut worst = Exit::Done;
    let mut told = BTreeSet::new();
    let stop = open::stop_asked();
    tokio::pin!(stop);
    for run in hosts.keys() {
        catch_up(app, *run, &hosts, &mut views, json)?;
    }
    loop {
        let ended: Vec<RunId> = open.iter().copied().filter(|run| views[run].outcome.is_some()).collect();
        for run in ended {
            open.remove(&run);
            worst = worst.max(tell_end(run, &hosts[&run], &views[&run], json));
        }
        if open.is_empty() {
            return Ok(worst);
        }
        tokio::select! {
            () = &mut stop => {
                for run in &open {
                    let host = &hosts[run];
                    if json {
                        output::object(&output::finished(*run, host, "interrupted", None));
                    } else {
                        output::line(&format!("{host}: interrupted; run {} goes on at the next start of muster", run.short()));
                    }
                }
                return Ok(worst.max(Exit::Interrupted));
            }
            event = feed.recv() => match event {
                Ok(FeedEvent::Record(record)) => {
                    let run = record.run;
                    let Some(view) = views.get_mut(&run) else { continue };
                    if record.n > view.next_n {
                        catch_up(app, run, &hosts, &mut views, json)?;
                    } else {
                        let repeated = is_repeated(view, &record);
                        if view.apply(&record) && (json || !repeated) {
                            tell(&hosts[&run], &record, json);
                        }
                    }
                }
                Ok(FeedEvent::StoreTrouble(Some((run, error)))) => {
                    let Some(host) = hosts.get(&run) else { continue };
                    let lost = matches!(error, StoreError::Damaged { .. });
                    let sentence = neutralize(&format!("{host}: {error}")).into_owned();
                    if told.insert(sentence.clone()) {
                        eprintln!("muster: {sentence}");
                        let what = if lost { "can't go on on this store" } else { "waits, and goes on once that is mended" };
                        eprintln!("        run {} {what}", run.short());
                    }
                    if lost && open.remove(&run) {
                        worst = worst.max(Exit::Failed);
                    }
                }
                Ok(_) => {}
                // Too slow for the feed: the journal has what was missed.
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    for run in open.clone() {
                        catch_up(app, run, &hosts, &mut views, json)?;
                    }
                }
                Err(broadcast::error::RecvError::Closed) => {
                    return Err(Ending::failed("the engine has stopped; the runs go on at the next start"));
                }
            }
        }
    }
}

/// Tells everything that the journal has and the view has not.
fn catch_up(
    app: &App,
    run: RunId,
    hosts: &BTreeMap<RunId, String>,
    views: &mut BTreeMap<RunId, RunView>,
    json: bool,
) -> Result<(), Ending> {
    let records = app.records(run).map_err(|e| Ending::failed(e.to_string()))?;
    let Some(view) = views.get_mut(&run) else { return Ok(()) };
    for record in &records {
        let repeated = is_repeated(view, record);
        if view.apply(record) && (json || !repeated) {
            tell(&hosts[&run], record, json);
        }
    }
    Ok(())
}

/// A wait that goes on is told once: its looks are what a watching person knows already.
fn is_repeated(view: &RunView, record: &RunRecord) -> bool {
    let Body::Journal(Event::TimerSet { reason, .. }) = &record.body else { return false };
    view.wait.as_ref().is_some_and(|wait| wait.reason.kind == reason.kind && wait.reason.text == reason.text)
}

fn tell(host: &str, record: &RunRecord, json: bool) {
    if json {
        if let Some(value) = output::record(host, record) {
            output::object(&value);
        }
    } else if let Some(sentence) = output::sentence(record) {
        output::line(&format!("{host}: {sentence}"));
    }
}

fn tell_end(run: RunId, host: &str, view: &RunView, json: bool) -> Exit {
    let status = view.outcome.as_ref().map_or("interrupted", |outcome| outcome.status());
    if json {
        output::object(&output::finished(run, host, status, view.failure()));
    } else {
        output::line(&format!("{host}: {status}"));
        for line in view.failure().map(output::failure_lines).unwrap_or_default() {
            output::line(&format!("  {line}"));
        }
    }
    if status == "succeeded" { Exit::Done } else { Exit::Failed }
}
