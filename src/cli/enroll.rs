//! `muster enroll`: submits hosts and follows their runs to the end.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::broadcast;

use super::args::{Enroll, Place};
use super::exit::{Ending, Exit};
use super::{open, output};
use crate::app::{App, FeedEvent, Role, RunSummary};
use crate::domain::event::{Body, Event, RunRecord};
use crate::domain::ids::RunId;
use crate::domain::request::EnrollParams;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;

/// A run that a command follows.
#[derive(Debug, Clone)]
pub struct Followed {
    pub run: RunId,
    pub host: String,
}

pub async fn enroll(place: &Place, command: Enroll) -> Result<Exit, Ending> {
    let app = if command.detach { open::aside(place).await? } else { open::headless(place).await? };
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
        if runs.is_empty() {
            continue;
        }
        if !command.detach {
            worst = worst.max(follow(app, runs, command.json).await?);
        } else if !app.is_led() {
            eprintln!("muster: nobody carries runs out now: they begin when a console or `muster serve` is started");
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
        // The run of an earlier process that ended without finishing it: it was resumed, and is followed.
        if let Some(run) = resumed_here(app, host, params) {
            if json {
                output::object(&serde_json::json!({ "event": "resumed", "run": run, "host": host }));
            } else {
                output::line(&format!("{host}: run {} goes on", run.short()));
            }
            runs.push(Followed { run, host: (*host).clone() });
            continue;
        }
        match app.submit(host, params.clone(), &by).await {
            Ok(run) => {
                if json {
                    output::object(&serde_json::json!({ "event": "accepted", "run": run, "host": host }));
                } else {
                    output::line(&format!("{host}: run {} begins", run.short()));
                }
                runs.push(Followed { run, host: (*host).clone() });
            }
            Err(refusal) => {
                exit = Exit::Refused;
                if json {
                    output::object(&output::refused(host, &refusal));
                }
                eprintln!("muster: {}", neutralize(&format!("{host}: {refusal}")));
                eprintln!("        {}", neutralize(&refusal.action()));
            }
        }
    }
    (runs, exit)
}

/// The host's run that was submitted with the same switches before this process took the lead, and went on here: repeating
/// the command follows it, also where it has come to its end meanwhile. Any other run is somebody's and refuses this one (G8).
fn resumed_here(app: &App, host: &str, params: &EnrollParams) -> Option<RunId> {
    let since = app.leads_since()?;
    let rows = app.runs().ok()?;
    let went_on = |row: &&RunSummary| row.submitted_at < since && row.finished_at.is_none_or(|ended| ended >= since);
    let run = rows.iter().filter(|row| row.host == host).find(went_on)?.run;
    let request = RunView::of(&app.records(run).ok()?).request;
    request.is_some_and(|request| request.params == *params).then_some(run)
}

/// Follows runs until all have ended, or the process is asked to stop. What was recorded before is told first.
pub async fn follow(app: &App, runs: Vec<Followed>, json: bool) -> Result<Exit, Ending> {
    let mut feed = app.feed();
    let hosts: BTreeMap<RunId, String> = runs.iter().map(|f| (f.run, f.host.clone())).collect();
    let mut views: BTreeMap<RunId, RunView> = hosts.keys().map(|run| (*run, RunView::default())).collect();
    let mut open: BTreeSet<RunId> = hosts.keys().copied().collect();
    let mut worst = Exit::Done;
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
                        let where_ = match app.role() {
                            Role::Following { .. } => "goes on with the process that leads",
                            Role::Leading | Role::Aside => "goes on at the next start of muster",
                        };
                        output::line(&format!("{host}: interrupted; run {} {where_}", run.short()));
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
                Ok(FeedEvent::Role(Role::Leading)) => {
                    eprintln!("muster: the process that led is gone; this one carries the runs out now");
                }
                Ok(FeedEvent::Role(role)) => open::carried_out_by(&role).iter().for_each(|text| eprintln!("muster: {text}")),
                Ok(FeedEvent::FleetChanged | FeedEvent::SystemHealth(_)) => {}
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
