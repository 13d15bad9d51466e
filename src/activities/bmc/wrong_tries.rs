//! Counts refused logins per BMC over all runs and restarts, so that nobody's account is locked by trying (C-28).

use std::time::Duration;

use jiff::Timestamp;

use super::access::{kept, store_failure};
use crate::activities::env::ActivityCx;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::Target;

/// One below the smallest threshold met in the field (3).
const LIMIT: usize = 2;

/// No BMC met counts over a longer time.
const WINDOW: Duration = Duration::from_secs(5 * 60);

fn key(target: &Target) -> String {
    format!("bmc.wrong_tries.{}", target.netbox_id)
}

fn recent(cx: &ActivityCx, target: &Target, now: Timestamp, phase: Phase) -> Result<Vec<Timestamp>, Failure> {
    Ok(within(&kept(cx, &key(target), phase)?, now))
}

/// The times of a kept list that still count.
fn within(kept: &str, now: Timestamp) -> Vec<Timestamp> {
    let begins = now.checked_sub(WINDOW).unwrap_or(Timestamp::MIN);
    // A time ahead of now is of a clock that was set back: it counts no longer.
    kept.split_whitespace().filter_map(|text| text.parse().ok()).filter(|at| (begins..=now).contains(at)).collect()
}

/// Refuses to log in where one more wrong try could lock the account.
pub(super) fn check(cx: &ActivityCx, target: &Target, phase: Phase, item: &str) -> Result<(), Failure> {
    let now = Timestamp::now();
    let tries = recent(cx, target, now, phase)?;
    if tries.len() < LIMIT {
        return Ok(());
    }
    let safe = tries[0].checked_add(WINDOW).unwrap_or(Timestamp::MAX);
    let seconds = safe.duration_since(now).as_secs().max(1);
    Err(Failure::new(
        FailureCode::BmcAuthFailed,
        phase,
        format!(
            "the BMC of '{}' refused {} logins in the last {} min: not tried again, so that it locks nobody out",
            target.host,
            tries.len(),
            WINDOW.as_secs() / 60
        ),
        format!("put the BMC's right credential into the item '{item}' of the vault, then retry in {seconds} s"),
    ))
}

/// Remembers a wrong try.
pub(super) async fn remember(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    let now = Timestamp::now();
    let mut tries = recent(cx, target, now, phase)?;
    tries.push(now);
    keep(cx, target, &tries, phase).await
}

/// Forgets them: the credential works.
pub(super) async fn forget(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    if recent(cx, target, Timestamp::now(), phase)?.is_empty() { Ok(()) } else { keep(cx, target, &[], phase).await }
}

async fn keep(cx: &ActivityCx, target: &Target, tries: &[Timestamp], phase: Phase) -> Result<(), Failure> {
    let text = tries.iter().map(Timestamp::to_string).collect::<Vec<_>>().join(" ");
    // A plan logs in too: a wrong try counts, whoever made it.
    cx.env.store.lasting().put_meta(&key(target), &text).await.map_err(|error| store_failure(&error, phase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case: C-28
    #[test]
    fn only_tries_within_the_window_count() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let kept = "2026-01-01T11:54:59Z 2026-01-01T11:55:01Z nonsense 2026-01-01T11:59:59Z 2026-01-01T12:00:01Z";
        assert_eq!(within(kept, now).len(), 2);
        assert!(within("", now).is_empty());
    }
}
