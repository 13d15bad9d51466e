//! `muster doctor`: looks whether what is needed of other systems is there.

use serde_json::json;

use super::args::{Doctor, Place};
use super::exit::{Ending, Exit};
use super::{open, output};
use crate::app::doctor::{Check, Level, doctor as look};
use crate::domain::text::neutralize;

pub async fn doctor(place: &Place, Doctor { json }: Doctor) -> Result<Exit, Ending> {
    let (_, settings) = open::settings(place)?;
    let mut tell = |check: &Check| match json {
        // It is made of texts and enums: it always has a form.
        true => output::object(&serde_json::to_value(check).unwrap_or_default()),
        false => lines(check).iter().for_each(|line| output::line(&neutralize(line))),
    };
    let state = open::state_dir(place).ok(); // without one all else is looked at
    let checks =
        look(&settings, state.as_deref(), &mut tell).await.map_err(|error| Ending::refused(error.to_string()))?;
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (ok, warn, unknown, fail) = (count(Level::Ok), count(Level::Warn), count(Level::Unknown), count(Level::Fail));
    match json {
        true => output::object(&json!({"summary": true, "ok": ok, "warn": warn, "unknown": unknown, "fail": fail})),
        false => output::line(&format!("{ok} ok, {warn} to look at, {unknown} could not be looked at, {fail} failed")),
    }
    Ok(if fail + unknown == 0 { Exit::Done } else { Exit::Failed })
}

/// A line for the fact, and one for what to do.
fn lines(check: &Check) -> Vec<String> {
    let word = match check.level {
        Level::Ok => "ok",
        Level::Warn => "warn",
        Level::Unknown => "unknown",
        Level::Fail => "FAIL",
    };
    let mut lines = vec![format!("{word:<8} {:<28} {}", check.check, check.message)];
    if let (Some(owner), Some(action)) = (check.owner, &check.action) {
        lines.push(format!("{:<8} {:<28} {owner}: {action}", "", ""));
    }
    lines
}
