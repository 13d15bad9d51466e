//! `muster enroll` before anything begins: the whole list is judged, shown and asked about, then submitted as one (C-52).

use std::io::IsTerminal;
use std::path::Path;

use serde_json::json;

use super::args::Enroll;
use super::enroll::Followed;
use super::exit::{Ending, Exit};
use super::{list, open, output};
use crate::app::{App, Judged, Name, RunSummary, Sorted, SubmitError, Verdict};
use crate::domain::request::EnrollParams;
use crate::domain::run_view::RunView;
use crate::domain::text::neutralize;

/// What is to be followed, and how the command ends if that goes well.
pub struct Started {
    pub runs: Vec<Followed>,
    pub exit: Exit,
}

/// Judges all names, and starts them if nothing stands in the way.
pub async fn start(app: &App, command: &Enroll, listed: &[String]) -> Result<Started, Ending> {
    let by = open::operator();
    let params = EnrollParams::from(&command.switches);
    let named = command.hosts.iter().map(|text| Name { text: text.clone(), even_deployed: command.yes });
    // A list is long and old: no deployed host is touched because its name stands in one.
    let listed = listed.iter().map(|text| Name { text: text.clone(), even_deployed: false });
    let names: Vec<Name> = named.chain(listed).collect();
    let mut judged = app.judge(&names, &params, &by).await;
    judged.iter_mut().for_each(|judged| follow_what_ended(app, judged));
    let asks = command.file.is_some() && !command.yes;
    if command.json {
        judged.iter().filter_map(object).for_each(|value| output::object(&value));
    } else if command.file.is_some() {
        page(&judged, command.canary).iter().for_each(|line| output::line(line));
    }
    if command.json || command.file.is_none() {
        judged.iter().for_each(tell_refused);
    }
    let Sorted { requests, go_on, refused } = Sorted::of(judged);
    let (begins, refused) = (requests.len(), refused.len());
    if refused > 0 && !command.skip_refused {
        return match names.len() {
            // Its refusal says everything.
            1 => Ok(Started { runs: Vec::new(), exit: Exit::Refused }),
            all => Err(Ending::refused(format!("{refused} of {all} names were refused: nothing was started"))
                .with_action("mend or remove them, or start the others with --skip-refused")),
        };
    }
    if asks && begins > 0 {
        ask(command.file.as_deref(), command.json, begins).await?;
    }
    let mut runs: Vec<Followed> = go_on.into_iter().map(|(host, run, _)| Followed { run, host }).collect();
    if !requests.is_empty() {
        let started =
            app.submit_batch(requests, command.canary).await.map_err(|(host, refusal)| overtaken(&host, &refusal))?;
        for (run, host) in started {
            if command.json {
                output::object(&json!({ "event": "accepted", "run": run, "host": host }));
            } else {
                output::line(&format!("{}: run {} is submitted", neutralize(&host), run.short()));
            }
            runs.push(Followed { run, host });
        }
    }
    Ok(Started { runs, exit: if refused > 0 { Exit::Refused } else { Exit::Done } })
}

/// A run of before goes on with this process, and may have come to its end while NetBox was read: then it is what was asked
/// for, and its end is told.
fn follow_what_ended(app: &App, judged: &mut Judged) {
    let (Verdict::Enroll(request), Some(since), Ok(rows)) = (&judged.verdict, app.leads_since(), app.runs()) else {
        return;
    };
    let went_on = |row: &&RunSummary| row.submitted_at < since && row.finished_at.is_some_and(|ended| ended >= since);
    let Some(row) = rows.iter().find(|row| row.netbox_id == request.netbox_id).filter(went_on) else { return };
    let Ok(records) = app.records(row.run) else { return };
    if RunView::of(&records).request.is_some_and(|before| before.params == request.params) {
        judged.verdict = Verdict::GoesOn { host: request.host.clone(), run: row.run, by: row.by.clone() };
    }
}

/// Somebody was faster between the judgement and the submission.
fn overtaken(host: &str, refusal: &SubmitError) -> Ending {
    let fact = neutralize(&format!("{host}: {refusal}: nothing was started")).into_owned();
    Ending::refused(fact).with_action(neutralize(&refusal.action()).into_owned())
}

/// Asks the person who has just seen the list.
async fn ask(file: Option<&Path>, json: bool, begins: usize) -> Result<(), Ending> {
    let piped = file.is_some_and(list::is_stdin);
    if json || piped || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Ending::refused("nobody can be asked whether the list is to be started: nothing was started")
            .with_action("repeat the command with --yes, or in a terminal"));
    }
    output::words(&format!(
        "start {}? [y/N] ",
        if begins == 1 { "this run".to_owned() } else { format!("these {begins} runs") }
    ));
    // A person may take long; the runs of before go on meanwhile.
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.ok().and_then(Result::ok).unwrap_or_default();
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Ending::refused("nothing was started")),
    }
}

/// What is told of a name before anything begins; of one that begins its `accepted` follows.
fn object(judged: &Judged) -> Option<serde_json::Value> {
    let name = &judged.name;
    match &judged.verdict {
        Verdict::Enroll(_) => None,
        Verdict::GoesOn { host, run, .. } => Some(json!({ "event": "resumed", "run": run, "host": host })),
        Verdict::Again { host } => Some(json!({ "event": "repeated", "name": name, "host": host })),
        Verdict::Refused(refusal) => Some(json!({
            "event": "refused", "host": name, "code": refusal.code(), "message": refusal.to_string(),
            "action": refusal.action(),
        })),
    }
}

fn tell_refused(judged: &Judged) {
    if let Verdict::Refused(refusal) = &judged.verdict {
        eprintln!("muster: {}", neutralize(&format!("{}: {refusal}", judged.name)));
        eprintln!("        {}", neutralize(&refusal.action()));
    }
}

/// The list as a person looks it over: every name once more, and what would come of it.
fn page(judged: &[Judged], canary: bool) -> Vec<String> {
    let width = judged.iter().map(|judged| judged.name.chars().count()).max().unwrap_or(0).min(40);
    let (mut begin, mut go_on, mut again, mut refused) = (0, 0, 0, 0);
    let mut lines = Vec::new();
    for Judged { name, verdict } in judged {
        let (sign, text) = match verdict {
            Verdict::Enroll(request) => {
                begin += 1;
                let renamed = if request.host == *name { String::new() } else { format!(" as {}", request.host) };
                let rack = request.placement.rack.as_deref().map_or(String::new(), |rack| format!(", rack {rack}"));
                let held = match (canary, begin) {
                    (true, 1) => ", the canary: the others wait for it",
                    (true, _) => ", waits for the canary",
                    (false, _) => "",
                };
                ('+', format!("enroll{renamed} at {}{rack}{held}", request.site))
            }
            Verdict::GoesOn { run, .. } => {
                go_on += 1;
                ('=', format!("run {} is under way and goes on", run.short()))
            }
            Verdict::Again { host } => {
                again += 1;
                ('=', format!("is {host}, which stands above"))
            }
            Verdict::Refused(refusal) => {
                refused += 1;
                ('x', format!("refused: {refusal}"))
            }
        };
        lines.push(neutralize(&format!("{sign} {name:<width$}  {text}")).into_owned());
        if let Verdict::Refused(refusal) = verdict {
            lines.push(neutralize(&format!("  {:<width$}  → {}", "", refusal.action())).into_owned());
        }
    }
    lines.push(format!("{begin} to enroll, {go_on} under way, {again} named again, {refused} refused"));
    lines
}
