//! Converges a BMC's settings: read, compare, write on difference, read back.

use std::time::{Duration, Instant};

use super::BMC;
use super::access::{Bmc, Trouble, credential};
use super::ipmi_user;
use super::prepare::vendor;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::accounts;
use crate::clients::redfish::converge::{Located, Spot, Wanted};
use crate::clients::redfish::dialect::{At, Dialect};
use crate::clients::redfish::error;
use crate::clients::redfish::error::RedfishError;
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{ConfigureBmcIn, ConfigureBmcOut};

/// Converges hostname, NTP, syslog, the monitoring user and IPMI over LAN, in this order (B5, B10, B16). Everything that
/// can be known to be wrong is found before the first write.
pub async fn configure(cx: &ActivityCx, input: ConfigureBmcIn) -> Result<ConfigureBmcOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let wanted = wanted(&bmc)?;
    let outcome = converge(&bmc, &wanted).await;
    bmc.settle(outcome).await
}

async fn converge(bmc: &Bmc<'_>, wanted: &[Wanted]) -> Result<ConfigureBmcOut, Trouble> {
    let root = bmc.redfish.root().await?;
    let (_, dialect) = vendor(bmc, &root)?;
    bmc.redfish.prefer(dialect.first_form());
    let parts = bmc.parts(&root).await?;
    let accounts = accounts::read(&bmc.redfish, &root).await?;
    let user = match &accounts {
        Some(accounts) => {
            bmc.report_skipped(&accounts.skipped);
            let credential = credential(bmc.cx, &bmc.cx.env.vault.settings().ipmi_item, bmc.phase).await?;
            ipmi_user::check_policy(bmc, accounts, &credential)?;
            Some((accounts, credential))
        }
        None => None,
    };
    let mut out = ConfigureBmcOut { changed: vec![], satisfied: vec![], skipped: vec![] };
    for wanted in wanted {
        let done = setting(bmc, dialect, parts.at(&bmc.redfish), wanted).await?;
        note(bmc, &mut out, wanted.label(), done);
    }
    let done = match user {
        Some((accounts, credential)) => ipmi_user::ensure(bmc, accounts, &parts.manager, &root, credential).await?,
        None => Done::Skipped("the BMC has no accounts to manage".to_owned()),
    };
    note(bmc, &mut out, ipmi_user::LABEL, done);
    let done = setting(bmc, dialect, parts.at(&bmc.redfish), &Wanted::IpmiOverLan).await?;
    note(bmc, &mut out, Wanted::IpmiOverLan.label(), done);
    Ok(out)
}

/// What came of one setting.
pub(super) enum Done {
    Changed,
    Satisfied,
    Skipped(String),
}

fn note(bmc: &Bmc<'_>, out: &mut ConfigureBmcOut, label: &str, done: Done) {
    match done {
        Done::Changed => out.changed.push(label.to_owned()),
        Done::Satisfied => out.satisfied.push(label.to_owned()),
        Done::Skipped(why) => {
            let message = format!("{label} of '{}' is left as it is: {why}", bmc.target.host);
            bmc.cx.observe(Observation::Warned { phase: bmc.phase, message });
            out.skipped.push(format!("{label}: {why}"));
        }
    }
}

/// What the site and the device want. A field that the site lacks is found here, before anything is asked or written (B6).
fn wanted(bmc: &Bmc<'_>) -> Result<Vec<Wanted>, Failure> {
    let (facts, names) = (&bmc.facts, &bmc.cx.env.settings.netbox.fields);
    let field = |name: &String| facts.site.fields.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let (ntp, syslog) = (field(&names.ntp_server), field(&names.syslog_server));
    let (Some(ntp), Some(syslog)) = (ntp, syslog) else {
        let missing = [(ntp, &names.ntp_server), (syslog, &names.syslog_server)];
        let missing: Vec<String> =
            missing.iter().filter(|(value, _)| value.is_none()).map(|(_, name)| format!("'{name}'")).collect();
        let fields = missing.join(" and ");
        return Err(bmc
            .fail(
                FailureCode::BmcSiteFieldMissing,
                format!("the NetBox site '{}' has no value in {fields}", facts.site.slug),
                format!("fill {fields} of the site '{}' in NetBox, then retry", facts.site.slug),
            )
            .with_evidence(format!("netbox /api/dcim/sites/{}/", facts.site.netbox_id), format!("{fields} empty")));
    };
    Ok(vec![
        Wanted::Hostname { name: hostname(bmc)?, address: facts.oob_ip },
        Wanted::Ntp { server: ntp.to_owned() },
        Wanted::Syslog { server: syslog.to_owned(), port: bmc.site.bmc.syslog_port },
    ])
}

/// The device's name as a host name: its first label, since a BMC takes no domain there.
fn hostname(bmc: &Bmc<'_>) -> Result<String, Failure> {
    let name = &bmc.target.host;
    let label = name.split('.').next().unwrap_or_default();
    if is_hostname(label) {
        return Ok(label.to_owned());
    }
    Err(bmc.fail(
        FailureCode::NetboxDataInvalid,
        format!("'{name}' is no host name that BMCs take (a letter, then letters, digits and hyphens, at most 63)"),
        format!("rename the device '{name}' in NetBox, sync the inventory and submit it again"),
    ))
}

fn is_hostname(label: &str) -> bool {
    label.len() <= 63
        && label.starts_with(|c: char| c.is_ascii_alphabetic())
        && !label.ends_with('-')
        && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Converges one setting.
pub(super) async fn setting(
    bmc: &Bmc<'_>,
    dialect: &dyn Dialect,
    at: At<'_>,
    wanted: &Wanted,
) -> Result<Done, Trouble> {
    let spots = match dialect.locate(at, wanted).await {
        Ok(Located::At(spot)) => vec![spot],
        Ok(Located::Each(spots)) => spots,
        Ok(Located::Absent { why }) => return Ok(Done::Skipped(why)),
        // A feature that the board has no licence for is one that this machine lacks.
        Err(RedfishError::NotLicensed { reason, .. }) => return Ok(Done::Skipped(format!("not licensed: {reason}"))),
        Err(error) => return Err(error.into()),
    };
    let mut done = Done::Satisfied;
    for spot in spots.iter().filter(|spot| !spot.is_satisfied_by(&spot.resource)) {
        match write(bmc, spot, wanted.label()).await {
            Err(Trouble::Redfish(error)) => match *error {
                RedfishError::NotLicensed { reason, .. } => {
                    return Ok(Done::Skipped(format!("not licensed: {reason}")));
                }
                other => return Err(other.into()),
            },
            Err(other) => return Err(other),
            Ok(()) => done = Done::Changed,
        }
    }
    Ok(done)
}

/// Writes a setting and reads it back until it shows. Neither a good answer is proof, nor always a bad one: firmware
/// refuses what it has done (Q23), and a connection can break after the work.
async fn write(bmc: &Bmc<'_>, spot: &Spot, label: &str) -> Result<(), Trouble> {
    let redfish = &bmc.redfish;
    let (before, after) = (spot.describe(&spot.resource), spot.describe_wanted());
    let (task, doubt) = match spot.send(redfish).await {
        Ok(accepted) => (accepted.location, None),
        Err(error @ (RedfishError::Refused { .. } | RedfishError::Http(_))) => (None, Some(error)),
        Err(error) => return Err(error.into()),
    };
    let deadline = Instant::now() + bmc.read_back_budget();
    let mut pause = Duration::from_millis(50);
    let last = loop {
        match (spot.read(redfish).await, doubt.as_ref()) {
            (Ok(now), _) if spot.is_satisfied_by(&now) => {
                bmc.cx.wrote(BMC, &bmc.target.host, label, &before, &after);
                return Ok(());
            }
            (_, Some(error)) => return Err(error.clone().into()),
            (Ok(now), None) if Instant::now() >= deadline => break now,
            (Ok(_), None) => {}
            // Its web server may start anew with the setting.
            (Err(error::RedfishError::Http(e)), None) if e.is_transient() && Instant::now() < deadline => {}
            (Err(error), None) => return Err(error.into()),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(5));
    };
    let reads = spot.describe(&last);
    let mut failure = bmc.fail(
        FailureCode::BmcSettingNotApplied,
        format!("{label} of the BMC of '{}' was set to '{after}' and reads '{reads}'", bmc.target.host),
        format!("retry; if it stays so, reset the BMC of '{}' or set {label} there by hand", bmc.target.host),
    );
    if let Some(task) = task
        && let Ok(task) = redfish.get(&task).await
    {
        let state = task.text("TaskState").unwrap_or_else(|| "-".to_owned());
        let said = task.text("/Messages/0/Message").unwrap_or_default();
        failure = failure.with_evidence(format!("redfish {}", task.path), format!("{state} {said}"));
    }
    Err(failure.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_what_the_strictest_bmc_takes() {
        for good in ["gpu-b07-37", "a", "A1"] {
            assert!(is_hostname(good), "{good}");
        }
        for bad in ["", "7gpu", "gpu_b07", "gpu-", "-gpu", "gpu b07", "grün", &"a".repeat(64)] {
            assert!(!is_hostname(bad), "{bad}");
        }
    }
}
