//! `muster runs export` and `muster runs replay`: a run's whole story, and whether its journal still fits the program.

use serde_json::{Value, json};

use super::args::ExportFormat;
use super::exit::{Ending, Exit};
use super::output;
use super::runs::failed;
use crate::app::Runs;
use crate::domain::event::Outcome;
use crate::domain::ids::RunId;
use crate::domain::text::neutralize;
use crate::engine::{Review, Stand};

/// Prints the story in the form that was asked for.
pub fn export(runs: &Runs, run: RunId, format: ExportFormat) -> Result<Exit, Ending> {
    let story = runs.story(run).map_err(failed)?;
    match format {
        ExportFormat::Md => output::line(story.markdown().trim_end()),
        ExportFormat::Json => output::object(&story.json()),
    }
    Ok(Exit::Done)
}

/// Replays the journal and says where it stands. Exit 1 where journal and program part.
pub fn replay(runs: &Runs, run: RunId, json: bool) -> Result<Exit, Ending> {
    let review = runs.review(run).map_err(failed)?;
    let story = runs.story(run);
    if json {
        let host = story.map_or(String::new(), |story| story.host);
        output::object(&told(run, &host, &review));
    } else {
        // A journal without a beginning has no timeline; that it has none is what the replay says.
        if let Ok(story) = story {
            output::line(&format!("run {run} of {}, submitted {}", neutralize(&story.host), day(&story.submitted_at)));
            story.lines().iter().for_each(|line| output::line(line));
        }
        verdict(&review).iter().for_each(|line| output::line(line));
    }
    Ok(if review.fits() { Exit::Done } else { Exit::Failed })
}

fn day(at: &jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn told(run: RunId, host: &str, review: &Review) -> Value {
    let (stand, asked, failure) = match &review.stand {
        Stand::Ended(_) => ("ended", Vec::new(), None),
        Stand::NeverBegun(_) => ("never_begun", Vec::new(), None),
        Stand::Stopped(_) => ("stopped", Vec::new(), None),
        Stand::UnderWay(asked) => ("under_way", asked.clone(), None),
        Stand::Diverged(failure) => ("diverged", Vec::new(), Some(output::failure_fields(failure))),
    };
    let status = match &review.stand {
        Stand::Ended(outcome) | Stand::NeverBegun(outcome) | Stand::Stopped(outcome) => Some(outcome.status()),
        Stand::UnderWay(_) | Stand::Diverged(_) => None,
    };
    json!({
        "event": "replayed", "run": run, "host": neutralize(host), "fits": review.fits(), "events": review.events,
        "stand": stand, "status": status, "asked_for": asked, "failure": failure,
    })
}

fn verdict(review: &Review) -> Vec<String> {
    let fits = format!("the journal fits this version: {} events replayed", review.events);
    match &review.stand {
        Stand::Ended(outcome) => vec![format!("{fits}, and the run ends as it did: {}", words(outcome))],
        Stand::NeverBegun(outcome) => vec![format!("{fits}; the run never began: {}", words(outcome))],
        Stand::Stopped(outcome) => {
            vec![format!("{fits}; it was not the workflow that ended the run, but the engine: {}", words(outcome))]
        }
        Stand::UnderWay(asked) => vec![format!("{fits}; the run stands where it waits for {}", asked.join(" and "))],
        Stand::Diverged(failure) => {
            let mut lines = vec![format!("the journal does not fit this version after {} events", review.events)];
            lines.extend(output::failure_lines(failure));
            lines
        }
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Succeeded { .. } => "succeeded".to_owned(),
        Outcome::Failed { failure } => format!("failed with {}", failure.code),
        Outcome::Cancelled { by, why: None, .. } => format!("cancelled by {}", neutralize(by)),
        Outcome::Cancelled { why: Some(why), .. } => format!("cancelled: {}", neutralize(why)),
    }
}
