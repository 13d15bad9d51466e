//! `muster cables`: what is plugged into the wrong place in a rack, and the moves that mend it.

use jiff::Timestamp;
use serde_json::json;

use super::args::{Cables as Arguments, Place};
use super::exit::{Ending, Exit};
use super::{leave, open, output};
use crate::app::{App, AppError, Cables};
use crate::domain::cable_doctor::{Diagnosis, Kind};
use crate::domain::text::neutralize;
use crate::inventory::survey::RECENT;

pub async fn cables(place: &Place, arguments: Arguments) -> Result<Exit, Ending> {
    let Arguments { of, rack, json } = arguments;
    let site = Place { site: Some(of.clone()), ..place.clone() };
    // It looks and leaves: whoever leads goes on leading.
    let app = open::aside(&site).await?;
    let done = show(&app, &of, rack.as_deref(), json).await;
    leave::leave(app).await;
    done
}

async fn show(app: &App, site: &str, rack: Option<&str>, json: bool) -> Result<Exit, Ending> {
    let failed = |e: AppError| Ending::failed(e.to_string());
    // Where NetBox does not answer, its last view is held against what was heard, and that is said (O6).
    let stale = app.read_cables().await.err().map(|error| error.to_string());
    let cables = app.cables(site, rack).map_err(failed)?;
    if let Some(rack) = rack.filter(|_| cables.inspected.is_empty() && cables.not_inspected.is_empty()) {
        let what = format!("site '{}' has no rack '{}' with hosts in it", neutralize(site), neutralize(rack));
        return Err(Ending::refused(what).with_action("see `muster inventory list` for the racks"));
    }
    match json {
        true => objects(&cables, site, rack, stale.as_deref()).iter().for_each(output::object),
        false => lines(&cables, site, rack, stale.as_deref(), Timestamp::now()).iter().for_each(|l| output::line(l)),
    }
    Ok(if cables.findings.diagnoses.is_empty() { Exit::Done } else { Exit::Failed })
}

fn objects(cables: &Cables, site: &str, rack: Option<&str>, stale: Option<&str>) -> Vec<serde_json::Value> {
    let findings = &cables.findings;
    let mut objects: Vec<serde_json::Value> = Vec::new();
    for diagnosis in &findings.diagnoses {
        let mut object = json!(diagnosis);
        object["event"] = json!("diagnosis");
        object["steps"] = json!(diagnosis.steps(None));
        objects.push(object);
    }
    for unknown in &findings.unknown {
        let mut object = json!(unknown);
        object["event"] = json!("unknown");
        objects.push(object);
    }
    let inspected = cables.inspected.iter().map(|(host, at)| json!({"host": host, "inspected_at": at}));
    objects.push(json!({
        "event": "summary", "site": site, "rack": rack, "right": findings.right.len(), "wrong": wrong(cables),
        "spelled_otherwise": spelled_otherwise(cables),
        "unknown": findings.unknown.len(), "moves": findings.diagnoses.iter().map(|d| d.moves().len()).sum::<usize>(),
        "inspected": inspected.collect::<Vec<_>>(), "not_inspected": cables.not_inspected, "stale": stale,
    }));
    objects
}

/// Cables that have to be moved.
fn wrong(cables: &Cables) -> usize {
    let members = |diagnosis: &Diagnosis| diagnosis.members.len();
    cables.findings.diagnoses.iter().filter(|d| d.kind != Kind::Spelling).map(members).sum()
}

/// Cables that are where they belong, and that no verification passes before somebody renames something.
fn spelled_otherwise(cables: &Cables) -> usize {
    cables.findings.diagnoses.iter().filter(|d| d.kind == Kind::Spelling).count()
}

fn lines(cables: &Cables, site: &str, rack: Option<&str>, stale: Option<&str>, now: Timestamp) -> Vec<String> {
    let findings = &cables.findings;
    let place = rack.map_or_else(|| site.to_owned(), |rack| format!("{site} {rack}"));
    let oldest = cables.inspected.iter().map(|(_, at)| *at).min();
    let age = oldest.map_or(String::new(), |at| format!(", the oldest {} ago", output::span(now.duration_since(at))));
    let spelled = match spelled_otherwise(cables) {
        0 => String::new(),
        n => format!(", {n} right but for the spelling"),
    };
    let mut lines = vec![format!(
        "{place}: {} cables right, {} wrong{spelled}, {} unknown · {} hosts inspected{age}",
        findings.right.len(),
        wrong(cables),
        findings.unknown.len(),
        cables.inspected.len()
    )];
    lines.extend(stale.map(|why| format!("not fresh: {why}")));
    for diagnosis in &findings.diagnoses {
        lines.push(String::new());
        lines.extend(diagnosis_lines(diagnosis));
    }
    if !findings.unknown.is_empty() {
        lines.push(String::new());
        lines.extend(findings.unknown.iter().map(|unknown| format!("unknown  {}", unknown.sentence())));
    }
    if !cables.not_inspected.is_empty() {
        let days = RECENT.as_hours() / 24;
        lines.push(String::new());
        lines.push(format!("not inspected within {days} days: {}", cables.not_inspected.join(", ")));
    }
    lines.into_iter().map(|line| neutralize(line.trim_end()).into_owned()).collect()
}

/// The finding, where the hosts stand, and what to do: in one line where it is one thing, else move by move.
fn diagnosis_lines(diagnosis: &Diagnosis) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for member in &diagnosis.members {
        let place = member.place.as_ref().map(|place| format!("{} in {place}", member.spot.host));
        places.extend(place.filter(|place| !places.contains(place)));
    }
    let mut lines = vec![format!("wrong    {}", diagnosis.sentence(None))];
    if !places.is_empty() {
        lines.push(format!("         {}", places.join(", ")));
    }
    let steps = diagnosis.steps(None);
    let owner = diagnosis.owner();
    if diagnosis.members.len() <= 2 || steps.is_empty() {
        lines.push(format!("  {owner}: {}", diagnosis.action(None)));
    } else {
        lines.push(format!("  {owner}, {} moves in this order:", diagnosis.moves().len()));
        lines.extend(steps.iter().enumerate().map(|(n, step)| format!("  {:>3}. {step}", n + 1)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::cable_doctor::{HeardCable, HeardHost, Survey, diagnose};
    use crate::domain::link::CableEnd;
    use crate::domain::lldp::Neighbour;

    fn cable(n: usize, hears: &str) -> HeardCable {
        let neighbour =
            Neighbour { system_name: Some("leaf-1".into()), port_id: Some(hears.into()), ..Default::default() };
        HeardCable {
            interface: format!("eth{n}"),
            recorded: Some(CableEnd { switch: "leaf-1".into(), port: format!("swp{n}"), label: None, color: None }),
            seen: true,
            carrier: Some(true),
            neighbours: if hears.is_empty() { vec![] } else { vec![neighbour] },
            ..Default::default()
        }
    }

    /// Proves: V12
    #[test]
    fn a_page_counts_each_kind_and_numbers_the_moves_of_more_than_two_cables() {
        let hears = ["swp1", "swp2", "swp0", "Swp3", "swp4", ""];
        let host = HeardHost {
            netbox_id: 1,
            host: "gpu-1".into(),
            site: "osl1".into(),
            rack: Some("B07".into()),
            place: Some("B07 U1".into()),
            inspected_at: Timestamp::UNIX_EPOCH,
            cables: hears.iter().enumerate().map(|(n, hears)| cable(n, hears)).collect(),
        };
        let findings = diagnose(&Survey::of_host(host));
        let inspected = vec![("gpu-1".to_owned(), Timestamp::UNIX_EPOCH)];
        let cables = Cables { findings, inspected, not_inspected: vec!["gpu-2".into()] };
        let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(5);
        let text = lines(&cables, "osl1", Some("B07"), Some("no answer"), now).join("\n");
        for part in [
            "osl1 B07: 1 cables right, 3 wrong, 1 right but for the spelling, 1 unknown · 1 hosts inspected, the oldest 5:00 ago",
            "not fresh: no answer",
            "3 moves in this order:",
            "    1. pull the cable of eth0 of gpu-1 out of leaf-1 swp1 and hold it",
            "    4. plug the cable that you hold into leaf-1 swp0",
            "INFRA_ENG: rename leaf-1 swp3 in NetBox, or the switch; no cable is moved",
            "unknown  eth5 of gpu-1: no LLDP heard",
            "not inspected within 7 days: gpu-2",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let summary = objects(&cables, "osl1", None, None).pop().unwrap();
        assert_eq!(
            (&summary["wrong"], &summary["spelled_otherwise"], &summary["moves"]),
            (&json!(3), &json!(1), &json!(3))
        );
    }
}
