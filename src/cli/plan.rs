//! `muster plan`: what an enrollment would read, write and wait for.

use std::collections::BTreeSet;

use super::args::{Place, Plan as Arguments};
use super::exit::{Ending, Exit};
use super::{list, log, open, output};
use crate::app::Planner;
use crate::domain::lines::{diff, has_lines};
use crate::domain::plan::{Plan, PlannedPhase, PlannedStep, what};
use crate::domain::request::EnrollParams;
use crate::domain::text::neutralize;

pub async fn plan(place: &Place, command: Arguments) -> Result<Exit, Ending> {
    let mut hosts = command.hosts.clone();
    hosts.extend(command.file.as_deref().map(list::read).transpose()?.unwrap_or_default());
    let (_, settings) = open::settings(place)?;
    let state = open::state_dir(place)?;
    log::to_file(&state)?;
    // Without the engine: nothing that was interrupted goes on because somebody wanted to look.
    let planner = Planner::open(settings, &state).map_err(|e| Ending::refused(e.to_string()))?;
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
    let reads: u32 = plan.phases.iter().map(|phase| phase.reads).sum();
    let writes = match plan.writes {
        0 => "nothing would be written".to_owned(),
        1 => "1 write".to_owned(),
        n => format!("{n} writes"),
    };
    let mut lines = vec![format!("{}: {writes}, {reads} reads", neutralize(&plan.host))];
    for PlannedPhase { phase, gate, reads, steps } in &plan.phases {
        let reads = if *reads == 0 { String::new() } else { format!("{reads} reads") };
        lines.push(format!("  {:<15} {:<8} {reads}", phase.label(), gate.as_str()).trim_end().to_owned());
        for step in steps {
            lines.push(neutralize(&line(step)).into_owned());
            if step.write && has_lines(&step.before, &step.after) {
                let changes = diff(&step.before, &step.after);
                lines.extend(changes.into_iter().map(|(sign, line)| format!("           {} {line}", sign.as_str())));
            }
        }
    }
    lines
}

fn line(step: &PlannedStep) -> String {
    let PlannedStep { system, what, target, before, after, write } = step;
    match (write, what.as_str()) {
        (true, what::COMMAND) => format!("    write  {system}: {target}: run '{after}'"),
        (true, _) if has_lines(before, after) => match before.contains('\n') {
            true => format!("    write  {system}: {target}: {what}"),
            false => format!("    write  {system}: {target}: {what} ({before})"),
        },
        (true, _) if before.is_empty() => format!("    write  {system}: {target}: {what} → {after}"),
        (true, _) => format!("    write  {system}: {target}: {what}: {before} → {after}"),
        (false, what::WAIT) => format!("    wait   {system}: {before}, {after}"),
        (false, what::WARNING) => format!("    !      {after}"),
        (false, what::NOTE) => format!("           {system}: {after}"),
        (false, what::SKIPPED) => format!("           {after}"),
        (false, what::NOT_FORESEEN) => format!("    ?      {what}: {after}"),
        (false, what::FAILS) => format!("    x      {what}: {before}: {after}"),
        (false, _) if before.is_empty() => format!("           {system}: {what}: {after}"),
        (false, _) => format!("           {system}: {what}: {before} → {after}"),
    }
}
