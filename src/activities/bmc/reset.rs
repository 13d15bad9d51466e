//! Restarts a BMC, and tells whether it is really back.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::BMC;
use super::access::{Bmc, Parts, Trouble, keep, kept};
use super::prepare::vendor;
use super::reset_due;
use crate::activities::env::ActivityCx;
use crate::clients::http::HttpError;
use crate::clients::redfish::dialect::Dialect;
use crate::clients::redfish::error::{RedfishError, TlsTrouble, tls_trouble};
use crate::clients::redfish::host::reset_types;
use crate::clients::redfish::{Redfish, Resource};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{BmcBackIn, BmcBackOut, Changed, Target};

/// After a request for a reset a BMC goes on answering for a while: so long an unchanged start time proves nothing.
const STILL_ANSWERS: Duration = Duration::from_secs(90);

/// How far the two ends' ideas of "now" may be apart within one look.
const SLACK_S: i64 = 5;

/// Asks the BMC for a cold reset (B4), once: an attempt that finds that a former one of the same step has asked already does
/// not ask again.
pub async fn reset(cx: &ActivityCx, target: Target) -> Result<Changed, Failure> {
    let bmc = Bmc::open(cx, &target, Phase::Bmc).await?;
    let outcome = ask(&bmc).await;
    bmc.settle(outcome).await
}

async fn ask(bmc: &Bmc<'_>) -> Result<Changed, Trouble> {
    let asked_before = Asked::load(bmc)?;
    let looked = look(&bmc.redfish, bmc).await;
    if let Some(asked) = &asked_before {
        let gone = matches!(&looked, Err(Trouble::Redfish(e)) if is_away(e));
        let restarted = matches!(&looked, Ok((_, manager)) if start_of(manager) != asked.start);
        let fresh = Timestamp::now().duration_since(asked.at).unsigned_abs() < STILL_ANSWERS;
        if gone || restarted || fresh {
            let note = "the reset was asked for before".to_owned();
            bmc.cx.note(BMC, note.clone());
            return Ok(Changed { changed: true, note });
        }
    }
    let (dialect, manager) = looked?;
    let (path, kind) = action(&bmc.redfish, &manager, dialect).await?;
    Asked { at: Timestamp::now(), start: start_of(&manager) }.keep(bmc).await?;
    loop {
        match bmc.redfish.post(&path, &json!({"ResetType": kind})).await {
            Ok(_) => break,
            // The BMC may go before it answers.
            Err(RedfishError::Http(HttpError::Broken { .. } | HttpError::Timeout { .. })) => break,
            Err(busy @ RedfishError::Busy { .. }) => {
                bmc.redfish.be_patient(busy).await?;
                match bmc.redfish.get(&manager.path).await {
                    Ok(now) if start_of(&now) == start_of(&manager) => {}
                    Ok(_) => break,
                    Err(error) if is_away(&error) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            Err(refused) => {
                Asked::forget(bmc).await?;
                return Err(refused.into());
            }
        }
    }
    bmc.cx.wrote(BMC, &bmc.target.host, "cold reset", "", &kind);
    Ok(Changed { changed: true, note: format!("{kind} asked for") })
}

async fn look(redfish: &Redfish, bmc: &Bmc<'_>) -> Result<(&'static dyn Dialect, Resource), Trouble> {
    let root = redfish.root().await?;
    let (_, dialect) = vendor(bmc, &root)?;
    let Parts { manager, .. } = bmc.parts(&root).await?;
    Ok((dialect, manager))
}

/// Where to ask for a reset, and for which: the gentle one where the BMC lists it.
async fn action(
    redfish: &Redfish,
    manager: &Resource,
    dialect: &dyn Dialect,
) -> Result<(String, String), RedfishError> {
    let unusable = |what: &str| RedfishError::Unusable { path: manager.path.clone(), what: what.to_owned() };
    let target = manager.text("/Actions/#Manager.Reset/target").ok_or_else(|| unusable("no action 'Manager.Reset'"))?;
    let allowed = reset_types(redfish, manager, "Manager.Reset").await;
    let wanted = ["GracefulRestart", "ForceRestart"].into_iter().find(|kind| allowed.iter().any(|word| word == kind));
    let kind = wanted.map(str::to_owned).or_else(|| allowed.first().cloned());
    Ok((target, kind.unwrap_or_else(|| dialect.reset_type().to_owned())))
}

/// What is remembered of a request for a reset, so that a second attempt of the same step knows of it.
struct Asked {
    at: Timestamp,
    /// The start time that the BMC told before; `-` where it tells none.
    start: String,
}

impl Asked {
    fn key(bmc: &Bmc<'_>) -> String {
        format!("bmc.reset.{}.{}", bmc.cx.run, bmc.cx.seq)
    }

    fn load(bmc: &Bmc<'_>) -> Result<Option<Asked>, Failure> {
        let kept = kept(bmc.cx, &Asked::key(bmc), bmc.phase)?;
        let parsed = kept.split_once(' ').and_then(|(at, start)| Some((at.parse().ok()?, start.to_owned())));
        Ok(parsed.map(|(at, start)| Asked { at, start }))
    }

    async fn keep(&self, bmc: &Bmc<'_>) -> Result<(), Failure> {
        Asked::put(bmc, &format!("{} {}", self.at, self.start)).await
    }

    /// The BMC said no: nothing was asked.
    async fn forget(bmc: &Bmc<'_>) -> Result<(), Failure> {
        Asked::put(bmc, "").await
    }

    async fn put(bmc: &Bmc<'_>, value: &str) -> Result<(), Failure> {
        keep(bmc.cx, &Asked::key(bmc), value, bmc.phase).await
    }
}

fn start_of(manager: &Resource) -> String {
    manager.text("LastResetTime").unwrap_or_else(|| "-".to_owned())
}

/// The BMC is not there, or not yet: no verdict on anything else.
fn is_away(error: &RedfishError) -> bool {
    match error {
        // A connection that is cut in the handshake looks like a port without TLS.
        RedfishError::Http(error) => {
            error.is_transient() && matches!(tls_trouble(error), None | Some(TlsTrouble::NotTls))
        }
        _ => false,
    }
}

/// One look whether the BMC is back (B4): it went away after the reset was asked for, and answers a login. Each look asks
/// once and waits for nothing.
pub async fn back(cx: &ActivityCx, input: BmcBackIn) -> Result<BmcBackOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let outcome = look_again(&bmc, &input).await;
    let out = bmc.settle(outcome).await?;
    if out.back {
        reset_due::forget(cx, &input.target, Phase::Bmc).await?;
    }
    let budget = bmc.site.bmc.reset_budget;
    if !out.back
        && input.asked_at.unwrap_or_else(Timestamp::now).duration_since(input.since)
            > jiff::SignedDuration::try_from(budget).unwrap_or(jiff::SignedDuration::MAX)
    {
        return Err(bmc.fail(
            FailureCode::BmcResetTimeout,
            format!("the BMC of '{}' is not back {} s after its reset: {}", input.target.host, budget.as_secs(), out.note),
            "look whether the BMC has power and link; take AC power from the tray for a minute if it stays dark, then retry",
        ));
    }
    Ok(out)
}

async fn look_again(bmc: &Bmc<'_>, input: &BmcBackIn) -> Result<BmcBackOut, Trouble> {
    let redfish = bmc.redfish.impatient();
    let looked = match redfish.root().await {
        Ok(root) => bmc.parts_by(&redfish, &root).await,
        Err(error) => Err(error),
    };
    let parts = match looked {
        Ok(parts) => parts,
        Err(error) if is_away(&error) => {
            return Ok(BmcBackOut { back: false, away: true, note: "it does not answer".to_owned() });
        }
        // A web server that is up before what it serves.
        Err(error @ (RedfishError::Busy { .. } | RedfishError::NotFound { .. } | RedfishError::Unusable { .. })) => {
            return Ok(BmcBackOut { back: false, away: false, note: format!("it is not ready: {error}") });
        }
        Err(error) => return Err(error.into()),
    };
    let manager = &parts.manager;
    let asked_at = input.asked_at.unwrap_or_else(Timestamp::now);
    let went_away = input.seen_away
        || restarted_since(manager, input.since, asked_at)
        // Nobody looked while it was away, and it does not tell when it started: no BMC answers for so long before it goes.
        || start_of(manager) == "-" && asked_at.duration_since(input.since).unsigned_abs() >= STILL_ANSWERS * 2;
    let state = manager.text("/Status/State");
    let (back, note) = match (went_away, state.as_deref()) {
        (false, _) => (false, "it answers, and has not gone away yet".to_owned()),
        (true, Some(state)) if !state.eq_ignore_ascii_case("Enabled") => {
            (false, format!("it answers, and is '{state}'"))
        }
        (true, _) => match not_ready(bmc, &redfish, &parts).await? {
            Some(why) => (false, format!("it went away and answers again, and is not ready: {why}")),
            None => (true, "it went away and answers again".to_owned()),
        },
    };
    Ok(BmcBackOut { back, away: went_away, note })
}

/// What a BMC that answers still has to do before it can be written to.
async fn not_ready(bmc: &Bmc<'_>, redfish: &Redfish, parts: &Parts) -> Result<Option<String>, Trouble> {
    let (_, dialect) = vendor(bmc, &parts.root)?;
    match dialect.not_ready(parts.at(redfish)).await {
        Err(error) if is_away(&error) => Ok(Some("it does not answer".to_owned())),
        Err(error @ RedfishError::Busy { .. }) => Ok(Some(error.to_string())),
        other => Ok(other?),
    }
}

/// Whether the BMC itself says that it started after `since`. Its clock may be wrong, so only the span counts that it has
/// been up for by its own two readings.
fn restarted_since(manager: &Resource, since: Timestamp, now: Timestamp) -> bool {
    let time = |member| manager.text(member).and_then(|text| text.parse::<Timestamp>().ok());
    let (Some(its_now), Some(its_start)) = (time("DateTime"), time("LastResetTime")) else { return false };
    let up_s = its_now.duration_since(its_start).as_secs();
    up_s >= 0 && up_s < now.duration_since(since).as_secs() + SLACK_S
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: B4
    #[test]
    fn a_bmc_has_restarted_when_it_is_up_for_less_than_the_time_since_the_reset() {
        let manager = |now: &str, start: &str| {
            let body = json!({"DateTime": now, "LastResetTime": start});
            Resource { path: "/m".into(), body: body.as_object().unwrap().clone(), etag: None }
        };
        let since: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-01T12:03:00Z".parse().unwrap();
        // The BMC's clock is years behind: its own span decides.
        assert!(restarted_since(&manager("2020-05-05T00:01:00Z", "2020-05-05T00:00:00Z"), since, now));
        assert!(!restarted_since(&manager("2020-05-05T00:09:00Z", "2020-05-05T00:00:00Z"), since, now));
        assert!(!restarted_since(&manager("2020-05-05T00:00:00Z", "2020-05-05T00:00:09Z"), since, now));
        assert!(!restarted_since(&manager("soon", "0000-00-00T00:00:00+00:00"), since, now));
    }
}
