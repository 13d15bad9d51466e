//! Looks at some BMCs of a site, without a login: wrong tries are counted there. Whether they take connections, whether their
//! certificates are trusted, and whether their service roots name a vendor that is known (B1, C-35).

use std::net::IpAddr;
use std::time::Duration;

use futures::{StreamExt, stream};
use url::Url;

use super::check::Cause;
use super::fields::Host;
use super::reach::{SOON, in_clear, opted_out, trusted, untrusted};
use super::site::Place;
use super::{Check, Level};
use crate::clients::http::{self, HttpError};
use crate::clients::look_at_bmc;
use crate::clients::redfish::address::base_of;
use crate::clients::redfish::vendor::{Detected, detect};
use crate::clients::redfish::{RedfishError, RedfishOptions};
use crate::config::settings::{BmcSettings, Trust};
use crate::domain::failure::Owner;
use crate::domain::text::neutralize_to;

/// BMCs of a site that are asked, and how many of them at once.
const MOST: usize = 5;
const AT_ONCE: usize = 5;
const STEP: Duration = Duration::from_secs(10);
const LINES: [&str; 3] = ["bmc.tcp", "bmc.tls", "bmc.redfish"];

/// A BMC that was asked.
struct Seen {
    /// Host and address, for messages.
    who: String,
    /// It has to be there: its host is in service.
    active: bool,
    /// It is on this machine.
    here: bool,
    reached: Result<(), HttpError>,
    /// Whether its certificate is good for long; only of one that was reached by TLS.
    tls: Option<Result<bool, HttpError>>,
    /// Why its service root is of no use; only of one whose certificate is trusted.
    redfish: Option<Result<(), String>>,
}

pub(super) async fn look(place: &Place<'_>, hosts: Result<&[Host], Cause>, tell: &mut dyn FnMut(Check)) {
    let names = LINES.map(|part| place.name(part));
    let hosts = match hosts {
        Ok(hosts) => hosts,
        Err(cause) => return names.into_iter().for_each(|name| tell(Check::blocked(name, &cause))),
    };
    let settings = &place.site().bmc;
    let mut wanted: Vec<(&Host, IpAddr)> = hosts
        .iter()
        .filter(|host| matches!(host.record.status.value.as_str(), "active" | "staged"))
        .filter_map(|host| {
            let address = host.record.oob_ip.as_ref()?.address.split('/').next()?.parse().ok()?;
            Some((host, address))
        })
        .collect();
    // Hosts in service tell the most: others may have no address from DHCP yet.
    wanted.sort_by_key(|(host, _)| host.record.status.value != "active");
    let asked = wanted.into_iter().take(MOST).map(|(host, address)| ask(settings, host, address));
    let seen: Vec<Seen> = stream::iter(asked).buffered(AT_ONCE).collect().await;

    let [tcp, tls, redfish] = names;
    let line = reached(tcp, &seen, place.slug);
    let nobody = (!seen.iter().any(|bmc| bmc.reached.is_ok())).then(|| line.cause());
    tell(line);
    if let Some(cause) = nobody {
        tell(Check::blocked(tls, &cause));
        return tell(Check::blocked(redfish, &cause));
    }
    let line = certificates(tls, &seen, settings, place);
    let (passes, cause) = (line.lets_pass(), line.cause());
    tell(line);
    match seen.iter().any(|bmc| bmc.redfish.is_some()) {
        true => tell(roots(redfish, &seen)),
        false if !passes => tell(Check::blocked(redfish, &cause)),
        false => tell(roots(redfish, &[])),
    }
}

async fn ask(settings: &BmcSettings, host: &Host, address: IpAddr) -> Seen {
    let name = neutralize_to(host.record.name.as_deref().unwrap_or("?"), 60);
    let active = host.record.status.value == "active";
    let (who, here) = (format!("{name} ({address})"), address.is_loopback());
    let mut seen = Seen { who, active, here, reached: Ok(()), tls: None, redfish: None };
    let Ok(base) = base_of(address, &settings.scheme, settings.port) else {
        seen.redfish = Some(Err("its address makes no URL".to_owned()));
        return seen;
    };
    let port = base.port_or_known_default().unwrap_or(443);
    let limit = settings.connect_timeout.min(STEP);
    let stream = match http::connect(&[(address, port).into()], limit).await {
        Ok(stream) => stream,
        Err(error) => {
            seen.reached = Err(error);
            return seen;
        }
    };
    if settings.scheme == "https" {
        let shaken = http::handshake(stream, &address.to_string(), &settings.trust, SOON, STEP).await;
        let failed = shaken.is_err();
        seen.tls = Some(shaken);
        if failed {
            return seen;
        }
    }
    seen.redfish = Some(root(&base, settings).await);
    seen
}

async fn root(base: &Url, settings: &BmcSettings) -> Result<(), String> {
    let options = RedfishOptions {
        trust: settings.trust.clone(),
        connect_timeout: settings.connect_timeout,
        timeout: settings.timeout,
        busy_budget: Duration::ZERO,
    };
    let redfish = look_at_bmc(base, options).map_err(|e| e.to_string())?;
    match redfish.root().await {
        Ok(root) => match detect(&root) {
            Detected::Known(_) => Ok(()),
            Detected::Unknown { read } => Err(format!("its service root names {read}: no vendor that muster knows")),
        },
        // Some firmware wants a login even there, and none is made here.
        Err(RedfishError::Unauthorized { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn reached(name: String, seen: &[Seen], slug: &str) -> Check {
    if seen.is_empty() {
        let action = format!("set oob_ip of the hosts of '{slug}' in NetBox");
        return Check::to_mend(Level::Unknown, name, "NetBox tells no staged or active host with a BMC", action);
    }
    let there = seen.iter().filter(|bmc| bmc.reached.is_ok()).count();
    let silent = |active: bool| seen.iter().filter(move |bmc| bmc.active == active && bmc.reached.is_err());
    let told: Vec<String> = silent(true)
        .map(|bmc| format!("{}: {}", bmc.who, bmc.reached.as_ref().err().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let not_yet = silent(false).count();
    let yet = if not_yet > 0 { format!(", {not_yet} of staged hosts do not yet") } else { String::new() };
    if !told.is_empty() {
        let message = format!("{there} of {} BMCs take connections{yet}; not {}", seen.len(), told.join("; "));
        let action =
            "look whether the BMC has power, a cable and a lease, and whether its network is reached from here";
        return Check::to_mend(Level::Warn, name, message, action).owned_by(Owner::Onsite);
    }
    if there == 0 {
        let message = format!("none of {} BMCs answers, and all of them are of staged hosts", seen.len());
        let action = "enroll a host: its BMC gets its address then";
        return Check::to_mend(Level::Unknown, name, message, action).owned_by(Owner::Onsite);
    }
    Check::ok(name, format!("{there} of {} BMCs take connections{yet}", seen.len()))
}

fn certificates(name: String, seen: &[Seen], settings: &BmcSettings, place: &Place<'_>) -> Check {
    let table = format!("[sites.{}.bmc]", place.slug);
    let what = format!("the BMCs of '{}'", place.slug);
    if settings.scheme == "http" {
        let here = seen.iter().all(|bmc| bmc.here);
        return in_clear(name, here, &what, &format!("scheme in {table}"));
    }
    let failed: Vec<(&Seen, &HttpError)> =
        seen.iter().filter_map(|bmc| Some((bmc, bmc.tls.as_ref()?.as_ref().err()?))).collect();
    if let Some((first, error)) = failed.first() {
        let told: Vec<String> = failed.iter().map(|(bmc, error)| format!("{}: {error}", bmc.who)).collect();
        return Check::to_mend(Level::Fail, name, told.join("; "), untrusted(error, &first.who, &table));
    }
    if settings.trust == Trust::Anything {
        return opted_out(name, &what, &table);
    }
    let soon = seen.iter().find(|bmc| matches!(bmc.tls, Some(Ok(false))));
    trusted(name, &settings.trust, soon.is_none(), soon.map_or(&what, |bmc| &bmc.who), &table)
}

fn roots(name: String, seen: &[Seen]) -> Check {
    let asked = seen.iter().filter_map(|bmc| Some((bmc, bmc.redfish.as_ref()?))).collect::<Vec<_>>();
    let bad: Vec<String> =
        asked.iter().filter_map(|(bmc, root)| Some(format!("{}: {}", bmc.who, root.as_ref().err()?))).collect();
    if bad.is_empty() {
        return Check::ok(name, format!("{} service roots name a vendor that is known", asked.len()));
    }
    let action = "look at that BMC's web page, and whether the address in NetBox is its own";
    Check::to_mend(Level::Warn, name, bad.join("; "), action)
}
