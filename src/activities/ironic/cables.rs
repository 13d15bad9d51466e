//! Keeps what an inspection heard on a host's cables, and asks the cable doctor what all hosts of the site make of it (V12).

use jiff::Timestamp;

use crate::activities::env::ActivityCx;
use crate::domain::cable_doctor::{HeardHost, diagnose};
use crate::domain::host::HostFacts;
use crate::domain::verify::Verification;
use crate::inventory::survey::survey;
use crate::store::StoreError;

/// Keeps what was heard; where a cable is wrong, says what it is by what the others of the site heard. The verdicts stand
/// whatever comes of it: neither a store that can't be written nor one that can't be read fails a host or passes it.
pub(super) async fn consult(
    cx: &ActivityCx,
    facts: &HostFacts,
    heard: Option<HeardHost>,
    is_timed: bool,
    verification: &mut Verification,
) {
    if let Err(error) = ask(cx, facts, heard, is_timed, verification).await {
        cx.note("muster", format!("the cables of other hosts are not taken into account: {error}"));
    }
}

async fn ask(
    cx: &ActivityCx,
    facts: &HostFacts,
    heard: Option<HeardHost>,
    is_timed: bool,
    verification: &mut Verification,
) -> Result<(), StoreError> {
    let store = &cx.env.store;
    let Some(heard) = heard else { return store.forget_heard(facts.netbox_id).await };
    let kept = store.put_heard(heard.clone(), is_timed).await;
    if verification.failed().any(|check| check.kind == "lldp") {
        let survey = survey(store, &facts.site.slug, Timestamp::now(), Some(heard))?;
        verification.explain(&facts.name, &diagnose(&survey));
    }
    kept.map(drop)
}
