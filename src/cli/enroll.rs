//! `muster enroll`: submits hosts and follows their runs to the end.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::broadcast;

use super::args::{Enroll, Place};
use super::batch::{self, Started};
use super::exit::{Ending, Exit};
use super::{leave, list, open, output};
use crate::app::{App, FeedEvent, Role};
use crate::domain::event::{Body, Event, RunRecord};
use crate::domain::ids::RunId;
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
    // A list that can't be read is said before anything is opened.
    let listed = command.file.as_deref().map(list::read).transpose()?.unwrap_or_default();
    let app = if command.detach { open::aside(place).await? } else { open::headless(place).await? };
    let ended = carry_out(&app, command, &listed).await;
    leave::leave(app).await;
    ended
}

async fn carry_out(app: &App, command: Enroll, listed: &[String]) -> Result<Exit, Ending> {
    // The lists of a first start are empty: what NetBox has is read before anything is judged.
    app.sync_now().await.map_err(|e| Ending::failed(e.to_string()))?;
    let Started { runs, exit } = batch::start(app, &command, listed).await?;
    if runs.is_empty() {
        return Ok(exit);
    }
    if command.detach {
        if !app.is_led() {
            eprintln!("muster: nobody carries runs out now: they begin when a console or `muster serve` is started");
        }
        return Ok(exit);
    }
    Ok(exit.max(follow(app, runs, command.json).await?))
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
                Ok(FeedEvent::Role(Role::Leading)) => {
                    eprintln!("muster: the process that led is gone; this one carries the runs out now");
                }
                Ok(FeedEvent::Role(role)) => open::carried_out_by(&role).iter().for_each(|text| eprintln!("muster: {text}")),
                Ok(FeedEvent::FleetChanged | FeedEvent::SystemHealth(_) | FeedEvent::StoreTrouble(None)) => {}
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
    let why = output::cancelled_because(view);
    if json {
        let mut object = output::finished(run, host, status, view.failure());
        if let (Some(map), Some(why)) = (object.as_object_mut(), why) {
            map.insert("why".to_owned(), why.into());
        }
        output::object(&object);
    } else {
        let why = why.map_or(String::new(), |why| format!(": {}", neutralize(why)));
        output::line(&format!("{host}: {status}{why}"));
        for line in view.failure().map(output::failure_lines).unwrap_or_default() {
            output::line(&format!("  {line}"));
        }
    }
    if status == "succeeded" { Exit::Done } else { Exit::Failed }
}
