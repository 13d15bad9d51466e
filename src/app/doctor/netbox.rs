//! Looks at NetBox and tells a line for each thing. Reads only: GET and OPTIONS.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use jiff::Timestamp;

use super::check::Cause;
use super::permissions::{Known, Needed, Sight, VIEW, change, token, too_much, view};
use super::{Check, Level};
use crate::clients::netbox::NetBox;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::permissions::{Account, Pointing};
use crate::domain::phase::Phase;
use crate::domain::text::neutralize;

/// Questions at once.
const AT_ONCE: usize = 4;
/// Devices whose interfaces are looked at.
const SINGLY: usize = 5;

/// The object types that can't be read as they should, with what stands in the way.
pub(super) type Hidden = BTreeMap<&'static str, Cause>;

/// The oldest NetBox that has out-of-band addresses, and the oldest that has MAC addresses as objects.
const OLDEST: (u32, u32) = (3, 6);
const WHOLE: (u32, u32) = (4, 2);

/// `Err`: nothing can be asked.
pub(super) async fn look(netbox: &NetBox, tell: &mut dyn FnMut(Check)) -> Result<Hidden, Cause> {
    let account = netbox.account().await;
    // Whatever refuses the token or does not answer here does so everywhere.
    if let Err(error @ (NetBoxError::Token { .. } | NetBoxError::Http(_) | NetBoxError::Redirect { .. })) = &account {
        let (said, action) = words(netbox, error);
        let level = if matches!(error, NetBoxError::Http(_)) { Level::Unknown } else { Level::Fail };
        let check = Check::to_mend(level, "netbox.token", said, action);
        let cause = check.cause();
        without_token(check, tell);
        return Err(cause);
    }
    // An older NetBox does not say whose token it is.
    let account: Option<Account> = account.ok();
    let user = account.as_ref().map_or("the token's user".to_owned(), |a| neutralize(&a.username).into_owned());
    let facts = netbox.token_facts().await.ok().flatten();
    tell(token(facts.as_ref(), Timestamp::now(), &user));
    let version = netbox.version().await.map_err(|error| words(netbox, &error));
    tell(version_line(version.as_ref().map(String::as_str)));

    let sights: Vec<Sight> = stream::iter(&VIEW).map(|needed| sight(netbox, needed)).buffered(AT_ONCE).collect().await;
    let sample = netbox.pointing_devices().await.unwrap_or_default();
    let known = known(netbox, &sample, &sights).await;
    let mut hidden = Hidden::new();
    for (needed, sight) in VIEW.iter().zip(&sights) {
        let check = view(needed, sight, known.get(needed.object).copied().unwrap_or_default(), &user);
        if !check.lets_pass() {
            hidden.insert(needed.object, check.cause());
        }
        tell(check);
    }

    let methods: Vec<_> = stream::iter(&VIEW)
        .map(|needed| async move { (needed.object, netbox.actions(needed.path).await) })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut allowed, mut unasked) = (BTreeMap::new(), Vec::new());
    for (object, methods) in methods {
        match methods {
            Ok(methods) => drop(allowed.insert(object, methods)),
            // Where nothing may be seen nothing may be done either.
            Err(NetBoxError::Permission { .. }) => {}
            Err(error) => unasked.push((object, error)),
        }
    }
    match unasked.iter().find(|(object, _)| *object == "dcim.device") {
        // NetBox offers no write on what is not seen.
        _ if hidden.contains_key("dcim.device") => {
            tell(Check::blocked("netbox.change.dcim.device", &hidden["dcim.device"]));
        }
        Some((_, error)) => {
            let (said, action) = words(netbox, error);
            tell(Check::to_mend(Level::Unknown, "netbox.change.dcim.device", said, action));
        }
        None => {
            let may = allowed.get("dcim.device").is_some_and(|methods| methods.contains("PUT"));
            tell(change(may, facts.as_ref(), &user));
        }
    }
    for check in too_much(account.as_ref(), &allowed, &user) {
        tell(check);
    }
    for (object, error) in unasked.iter().filter(|(object, _)| *object != "dcim.device") {
        let (said, action) = words(netbox, error);
        tell(Check::to_mend(Level::Unknown, format!("netbox.more.{object}"), said, action));
    }
    if netbox.sees("/api/users/permissions/").await.is_ok() {
        let message =
            format!("'{user}' sees the permissions of others: it is an administrator, or has more than muster needs");
        let action = "give muster an account of its own with the permissions above and no others";
        tell(Check::to_mend(Level::Warn, "netbox.more.users.objectpermission", message, action));
    }
    if let Some(account) = account.filter(|account| !account.groups.is_empty()) {
        let groups: Vec<&str> = account.groups.iter().map(|group| group.name.as_str()).collect();
        let groups = neutralize(&groups.join("', '")).into_owned();
        let message = format!("'{user}' is in '{groups}': what these give beyond add and change is not told by NetBox");
        let action = format!("look through the permissions of '{groups}' in NetBox");
        tell(Check::to_mend(Level::Unknown, "netbox.more.groups", message, action));
    }
    Ok(hidden)
}

/// The line of NetBox's version.
fn version_line(version: Result<&str, &(String, String)>) -> Check {
    let name = "netbox.version";
    let version = match version {
        Ok(version) => neutralize(version).into_owned(),
        Err((said, action)) => return Check::to_mend(Level::Unknown, name, said.clone(), action.clone()),
    };
    let mut parts = version.trim_start_matches('v').split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (parts.next(), parts.next()) else {
        let message = format!("NetBox says that its version is '{version}', which is none that is known");
        return Check::to_mend(Level::Unknown, name, message, "check that NetBox itself answers there");
    };
    let lacks = |level, what: &str, (major, minor): (u32, u32)| {
        let message = format!("NetBox is {version} and has no {what}");
        Check::to_mend(level, name, message, format!("bring NetBox to {major}.{minor} or later"))
    };
    match (major, minor) {
        old if old < OLDEST => lacks(Level::Fail, "out-of-band addresses of devices", OLDEST),
        old if old < WHOLE => lacks(Level::Warn, "MAC addresses of their own: new ones are seen late", WHOLE),
        _ => Check::ok(name, format!("NetBox is {version}")),
    }
}

/// The first line, where without it nothing more can be looked at.
pub(super) fn without_token(first: Check, tell: &mut dyn FnMut(Check)) {
    let cause = first.cause();
    tell(first);
    tell(Check::blocked("netbox.version", &cause));
    for Needed { object, .. } in &VIEW {
        tell(Check::blocked(format!("netbox.view.{object}"), &cause));
    }
    tell(Check::blocked("netbox.change.dcim.device", &cause));
}

async fn sight(netbox: &NetBox, needed: &Needed) -> Sight {
    match netbox.sees(needed.path).await {
        Ok(count) => Sight::Sees(count),
        Err(NetBoxError::Permission { .. }) => Sight::Refused,
        Err(error) => {
            let (said, action) = words(netbox, &error);
            Sight::Unknown(said, action)
        }
    }
}

/// What to say of an error.
fn words(netbox: &NetBox, error: &NetBoxError) -> (String, String) {
    let failure = netbox.failure(error, Phase::StatusGate);
    (failure.message, failure.action)
}

/// How many objects NetBox is known to have, told by what points at them, and how many of these the token sees.
async fn known(netbox: &NetBox, sample: &[Pointing], sights: &[Sight]) -> BTreeMap<&'static str, Known> {
    let mut there: BTreeMap<&'static str, BTreeSet<u64>> = BTreeMap::new();
    let mut found: BTreeMap<&'static str, Known> = BTreeMap::new();
    for device in sample {
        let mut put = |object, ids: Vec<u64>| there.entry(object).or_default().extend(ids);
        let one = |id: &Option<crate::clients::netbox::records::OnlyId>| id.iter().map(|o| o.id).collect::<Vec<_>>();
        put("dcim.site", vec![device.site.id]);
        put("dcim.location", one(&device.location));
        put("dcim.rack", one(&device.rack));
        put("dcim.devicerole", vec![device.role.id]);
        put("dcim.devicetype", vec![device.device_type.id]);
        put("extras.tag", device.tags.iter().map(|tag| tag.id).collect());
        put("ipam.ipaddress", one(&device.oob_ip));
    }
    // Those with the most interfaces tell the most.
    let mut by_ports: Vec<&Pointing> = sample.iter().filter(|d| d.interface_count.is_some_and(|n| n > 0)).collect();
    by_ports.sort_by_key(|device| std::cmp::Reverse(device.interface_count));
    for device in by_ports.into_iter().take(SINGLY) {
        let Ok((seen, ports)) = netbox.pointing_ports(device.id).await else { continue };
        let known = found.entry("dcim.interface").or_default();
        let count = device.interface_count.unwrap_or_default();
        // The master of a virtual chassis is answered with those of all members.
        (known.seen, known.there) = (known.seen + seen.min(count), known.there + count);
        for port in ports {
            there.entry("dcim.cable").or_default().extend(port.cable.map(|cable| cable.id));
            there.entry("dcim.macaddress").or_default().extend(port.mac_addresses.iter().map(|mac| mac.id));
        }
    }
    for (needed, sight) in VIEW.iter().zip(sights) {
        let Sight::Sees(count) = sight else { continue };
        if needed.object == "dcim.device" {
            if let Ok(Some(all)) = netbox.devices_by_types().await {
                found.insert(needed.object, Known { seen: *count, there: all });
            }
        } else if let Some(ids) = there.get(needed.object).filter(|ids| !ids.is_empty())
            && let Ok(seen) = netbox.seen_of(needed.path, ids).await
        {
            found.insert(needed.object, Known { seen: seen.len(), there: ids.len() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: K4
    #[test]
    fn a_netbox_that_is_too_old_is_told_from_one_that_lacks_a_little() {
        let level = |version: &str| version_line(Ok(version)).level;
        assert_eq!((level("3.5.9"), level("4.1.11"), level("4.7.3")), (Level::Fail, Level::Warn, Level::Ok));
        assert_eq!((level("v4.2-beta1"), level("yes")), (Level::Ok, Level::Unknown));
    }
}
