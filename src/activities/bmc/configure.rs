//! Converges a BMC's settings: read, compare, write on difference, read back.

use std::time::{Duration, Instant};

use super::BMC;
use super::access::{Bmc, Trouble, credential};
use super::flow::{Flow, Setting, flow};
use super::ipmi_user;
use super::prepare::vendor;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::accounts;
use crate::clients::redfish::converge::{Located, Spot, Wanted};
use crate::clients::redfish::dialect::{At, Dialect};
use crate::clients::redfish::error;
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::vendor::Vendor;
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::{BmcPart, ConfigureBmcIn, ConfigureBmcOut};

/// Converges a part of a vendor's settings in its order (B2, B5, B10, B11, B16). Everything that can be known to be wrong is
/// found before the BMC is asked anything.
pub async fn configure(cx: &ActivityCx, input: ConfigureBmcIn) -> Result<ConfigureBmcOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let (settings, monitoring) = match input.part {
        BmcPart::Whole => (true, true),
        BmcPart::Settings => (true, false),
        BmcPart::Monitoring => (false, true),
    };
    let wanted = match Vendor::of_label(&input.vendor) {
        Some(vendor) if settings => wanted(&bmc, flow(vendor))?,
        _ => vec![],
    };
    let outcome = converge(&bmc, wanted, monitoring).await;
    bmc.settle(outcome).await
}

async fn converge(bmc: &Bmc<'_>, wanted: Vec<Wanted>, monitoring: bool) -> Result<ConfigureBmcOut, Trouble> {
    let root = bmc.redfish.root().await?;
    let (vendor, dialect) = vendor(bmc, &root)?;
    let flow = flow(vendor);
    bmc.redfish.prefer(dialect.first_form());
    let parts = bmc.parts(&root).await?;
    let accounts = if monitoring { accounts::read(&bmc.redfish, &root).await? } else { None };
    let user = match &accounts {
        Some(accounts) => {
            bmc.report_skipped(&accounts.skipped);
            let credential = credential(bmc.cx, &bmc.cx.env.vault.settings().ipmi_item, bmc.phase).await?;
            let rules = dialect.password_rules(parts.at(&bmc.redfish), accounts).await?;
            ipmi_user::check_policy(bmc, rules, &credential)?;
            Some((accounts, credential))
        }
        None => None,
    };
    let mut out = ConfigureBmcOut { changed: vec![], satisfied: vec![], skipped: vec![], no_monitoring_user: false };
    let at = parts.at(&bmc.redfish);
    for wanted in wanted {
        let done = setting(bmc, dialect, at, &wanted).await?;
        note(bmc, &mut out, wanted.label(), done);
    }
    if !monitoring {
        return Ok(out);
    }
    let username = user.as_ref().map(|(_, credential)| credential.username.clone());
    let done = match user {
        Some((accounts, credential)) => ipmi_user::ensure(bmc, dialect, accounts, at, credential).await?,
        None => Done::Skipped("the BMC has no accounts to manage".to_owned()),
    };
    out.no_monitoring_user = matches!(done, Done::Skipped(_));
    note(bmc, &mut out, ipmi_user::LABEL, done);
    let privilege = username.filter(|_| flow.ipmi_privilege).map(|username| Wanted::MonitoringPrivilege { username });
    for wanted in privilege.into_iter().chain([Wanted::IpmiOverLan]) {
        let done = setting(bmc, dialect, at, &wanted).await?;
        note(bmc, &mut out, wanted.label(), done);
    }
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

/// What the site and the device want of a vendor's settings. A field that the site lacks is found here, before anything is
/// asked or written (B6).
fn wanted(bmc: &Bmc<'_>, flow: &Flow) -> Result<Vec<Wanted>, Failure> {
    let (facts, names) = (&bmc.facts, &bmc.cx.env.settings.netbox.fields);
    let field = |name: &String| facts.site.fields.get(name).map(|value| value.trim().to_owned()).unwrap_or_default();
    let mut missing = Vec::new();
    let mut needed = |name: &String| {
        let value = field(name);
        if value.is_empty() {
            missing.push(format!("'{name}'"));
        }
        value
    };
    let mut wanted = Vec::new();
    for setting in flow.settings {
        wanted.push(match setting {
            Setting::Hostname => Wanted::Hostname { name: hostname(bmc)?, address: facts.oob_ip },
            Setting::Dhcp => Wanted::DhcpOnNic { address: facts.oob_ip },
            Setting::TlsMinimum => Wanted::TlsMinimum,
            Setting::PlainServicesOff => Wanted::PlainServicesOff,
            Setting::HostInterfaceOff => Wanted::HostInterfaceOff,
            Setting::Ntp => Wanted::Ntp { server: needed(&names.ntp_server) },
            Setting::Syslog => Wanted::Syslog { server: needed(&names.syslog_server), port: bmc.site.bmc.syslog_port },
            Setting::VirtualMedia => Wanted::VirtualMedia,
        });
    }
    if missing.is_empty() {
        return Ok(wanted);
    }
    let fields = missing.join(" and ");
    Err(bmc
        .fail(
            FailureCode::BmcSiteFieldMissing,
            format!("the NetBox site '{}' has no value in {fields}", facts.site.slug),
            format!("fill {fields} of the site '{}' in NetBox, then retry", facts.site.slug),
        )
        .with_evidence(format!("netbox /api/dcim/sites/{}/", facts.site.netbox_id), format!("{fields} empty")))
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
