//! `muster platform-class backfill`: which platform classes are missing, and writing them.

use serde_json::{Value, json};

use super::args::{Backfill, Place};
use super::exit::{Ending, Exit};
use super::{log, open, output};
use crate::app::{BackfillError, Backfilled, Coverage, Planner};
use crate::domain::failure::Failure;
use crate::domain::text::neutralize;
use crate::workflows::defs::PlatformClassOut;

pub async fn backfill(place: &Place, command: Backfill) -> Result<Exit, Ending> {
    let (_, settings) = open::settings(place)?;
    let state = open::state_dir(place)?;
    log::to_file(&state, &settings.log)?;
    let planner = Planner::open(settings, &state).await.map_err(|e| Ending::refused(e.to_string()))?;
    planner.sync_devices().await.map_err(|e| Ending::failed(e.to_string()))?;
    let Backfill { hosts, apply, json } = command;
    let each = |one: &Backfilled| match json {
        true => output::object(&object(one, apply)),
        false => output::line(&neutralize(&line(one, apply))),
    };
    let (all, coverage) =
        planner.backfill(&hosts, place.site.as_deref(), apply, each).await.map_err(|error| match error {
            BackfillError::Device(refused) => Ending::refused(refused.to_string()).with_action(refused.action()),
            other => Ending::failed(other.to_string()),
        })?;
    let tally = Tally::of(&all);
    match json {
        true => output::object(&summary(&tally, &coverage, apply)),
        false => closing(&tally, &coverage, apply).iter().for_each(|line| output::line(&neutralize(line))),
    }
    Ok(if tally.failed == 0 { Exit::Done } else { Exit::Failed })
}

/// How many devices came to what.
#[derive(Debug, PartialEq, Eq, Default)]
struct Tally {
    written: usize,
    right: usize,
    kept: usize,
    failed: usize,
}

impl Tally {
    fn of(all: &[Backfilled]) -> Tally {
        let mut tally = Tally::default();
        for one in all {
            *match &one.outcome {
                Err(_) => &mut tally.failed,
                Ok(out) if out.wrote_netbox => &mut tally.written,
                Ok(out) if out.effective != out.computed => &mut tally.kept,
                Ok(_) => &mut tally.right,
            } += 1;
        }
        tally
    }
}

/// The word of the contract for an outcome.
fn word(outcome: &Result<PlatformClassOut, Failure>, apply: bool) -> &'static str {
    match outcome {
        Err(_) => "failed",
        Ok(out) if out.wrote_netbox && apply => "written",
        Ok(out) if out.wrote_netbox => "missing",
        Ok(out) if out.effective != out.computed => "kept",
        Ok(_) => "right",
    }
}

fn object(one: &Backfilled, apply: bool) -> Value {
    let Backfilled { host, site, outcome } = one;
    let out = outcome.as_ref().ok();
    json!({
        "host": host,
        "site": site,
        "outcome": word(outcome, apply),
        "computed": out.map(|out| &out.computed),
        "effective": out.map(|out| &out.effective),
        "failure": outcome.as_ref().err().map(output::failure_fields),
    })
}

fn line(one: &Backfilled, apply: bool) -> String {
    let host = format!("{:<8} {:<16}", one.site, one.host);
    match &one.outcome {
        Err(failure) => format!("{host} failed: {}; {}", failure.message, failure.action),
        Ok(out) if out.wrote_netbox && apply => format!("{host} {}: written", out.effective),
        Ok(out) if out.wrote_netbox => format!("{host} {}: is missing and would be written", out.effective),
        Ok(out) if out.effective != out.computed => {
            format!("{host} {}: kept, though '{}' is computed", out.effective, out.computed)
        }
        Ok(out) => format!("{host} {}: is there", out.effective),
    }
}

fn summary(tally: &Tally, coverage: &Coverage, apply: bool) -> Value {
    json!({
        "summary": true,
        "apply": apply,
        (if apply { "written" } else { "missing" }): tally.written,
        "right": tally.right,
        "kept": tally.kept,
        "failed": tally.failed,
        "gpu_type": {
            "devices": coverage.gpu_devices,
            "with": coverage.with_gpu_type,
            "missing": coverage.missing,
        },
    })
}

fn closing(tally: &Tally, coverage: &Coverage, apply: bool) -> Vec<String> {
    let Tally { written, right, kept, failed } = tally;
    let verb = if apply { "written" } else { "to write (--apply does)" };
    let mut lines = vec![format!("{written} {verb}, {right} right, {kept} kept, {failed} failed")];
    let Coverage { gpu_devices, with_gpu_type, missing } = coverage;
    if *gpu_devices > 0 {
        lines.push(format!("gpu_type: known for {with_gpu_type} of {gpu_devices} GPU devices"));
    }
    lines.extend(missing.iter().map(|(kind, devices)| {
        format!("  the device type '{kind}' has none ({devices} devices): set its custom field in NetBox")
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(wrote_netbox: bool, effective: &str) -> Backfilled {
        let out = PlatformClassOut {
            effective: effective.to_owned(),
            computed: "NOGPU_X_NORDMA_01".to_owned(),
            wrote_netbox,
            wrote_store: false,
            warning: None,
        };
        Backfilled { host: "cpu-1".to_owned(), site: "osl1".to_owned(), outcome: Ok(out) }
    }

    #[test]
    fn a_line_says_whether_it_was_written_or_would_be() {
        let missing = with(true, "NOGPU_X_NORDMA_01");
        assert!(line(&missing, false).ends_with("would be written"));
        assert!(line(&missing, true).ends_with(": written"));
        assert_eq!((word(&missing.outcome, false), word(&missing.outcome, true)), ("missing", "written"));
        let kept = with(false, "NOGPU_Y_NORDMA_01");
        assert!(line(&kept, true).contains("NOGPU_Y_NORDMA_01: kept, though 'NOGPU_X_NORDMA_01'"));
        assert_eq!(Tally::of(&[missing, kept]), Tally { written: 1, kept: 1, ..Tally::default() });
    }
}
