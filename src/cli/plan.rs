//! `muster plan`: what an enrollment would read, write and wait for.

use std::collections::BTreeSet;

use super::args::{Place, Plan as Arguments};
use super::exit::{Ending, Exit};
use super::{list, log, open, output};
use crate::app::Planner;
use crate::domain::plan::{LineKind, Plan, PlanLine};
use crate::domain::request::EnrollParams;
use crate::domain::text::neutralize;

pub async fn plan(place: &Place, command: Arguments) -> Result<Exit, Ending> {
    let mut hosts = command.hosts.clone();
    hosts.extend(command.file.as_deref().map(list::read).transpose()?.unwrap_or_default());
    let (_, settings) = open::settings(place)?;
    let state = open::state_dir(place)?;
    log::to_file(&state, &settings.log)?;
    // Without the engine: nothing that was interrupted goes on because somebody wanted to look.
    let planner = Planner::open(settings, &state).await.map_err(|e| Ending::refused(e.to_string()))?;
    planner.sync().await.map_err(|e| Ending::failed(e.to_string()))?;
    let params = EnrollParams::from(&command.switches);
    let mut exit = Exit::Done;
    let mut seen = BTreeSet::new();
    for host in hosts.iter().filter(|host| seen.insert(host.as_str())) {
        match planner.plan(host, params.clone()).await {
            Ok(plan) if command.json => {
                let value = serde_json::to_value(&plan).map_err(|e| Ending::failed(e.to_string()))?;
                output::object(&value);
            }
            Ok(plan) => page(&plan).iter().for_each(|line| output::line(line)),
            Err(refusal) => {
                exit = Exit::Refused;
                eprintln!("muster: {}", neutralize(&format!("{host}: {refusal}")));
                eprintln!("        {}", neutralize(&refusal.action()));
            }
        }
    }
    Ok(exit)
}

/// A plan on a page.
fn page(plan: &Plan) -> Vec<String> {
    let line = |PlanLine { kind, text }| match kind {
        LineKind::Phase | LineKind::Off => format!("  {text}"),
        LineKind::Write => format!("    write  {text}"),
        LineKind::Same => format!("             {text}"),
        LineKind::Gone => format!("           - {text}"),
        LineKind::New => format!("           + {text}"),
        LineKind::Wait => format!("    wait   {text}"),
        LineKind::Warning => format!("    !      {text}"),
        LineKind::Note => format!("           {text}"),
        LineKind::Unforeseen => format!("    ?      {text}"),
        LineKind::Fails => format!("    x      {text}"),
    };
    let head = format!("{}: {}", neutralize(&plan.host), plan.summary());
    std::iter::once(head).chain(plan.lines().into_iter().map(line)).collect()
}
