//! Looks at a site: what NetBox has of it and of its hosts, its DHCP host, its BMCs.

use std::collections::{BTreeMap, BTreeSet};

use super::check::Cause;
use super::context::{Asks, misfits};
use super::fields::{Host, Known};
use super::vault::SshKeys;
use super::{Check, Level, bmc, dhcp};
use crate::clients::netbox::NetBox;
use crate::clients::netbox::records::{SiteRecord, text_field};
use crate::config::settings::{Settings, SiteSettings};
use crate::domain::failure::Owner;
use crate::domain::platform_class::GPU_COMPUTE;
use crate::domain::text::neutralize_to;

/// Wrong keys that one line names.
const SHOWN: usize = 8;

/// A site of the configuration.
pub(super) struct Place<'a> {
    pub settings: &'a Settings,
    pub slug: &'a str,
    /// Of the DHCP hosts, where the vault was asked for them.
    pub keys: Option<&'a Result<SshKeys, Cause>>,
}

impl Place<'_> {
    pub fn site(&self) -> &SiteSettings {
        &self.settings.sites[self.slug]
    }

    pub fn name(&self, part: &str) -> String {
        format!("site.{}.{part}", self.slug)
    }
}

pub(super) async fn look(
    place: &Place<'_>,
    netbox: Result<&NetBox, Cause>,
    known: Result<&Known, Cause>,
    tell: &mut dyn FnMut(Check),
) {
    let options = &place.site().options;
    let record = known.as_ref().map_err(Clone::clone).and_then(|known| known.sites.as_ref().map_err(Clone::clone));
    let line = site_line(place, record.as_ref().map(|sites| sites.as_slice()).map_err(Clone::clone));
    let there = if line.lets_pass() { Ok(()) } else { Err(line.cause()) };
    tell(line);
    if options.configure_bmc {
        let name = place.name("fields");
        tell(match (&there, &record) {
            (Err(cause), _) | (_, Err(cause)) => Check::blocked(name, cause),
            (Ok(()), Ok(sites)) => values(place, name, sites),
        });
    }
    let hosts: Result<&[Host], Cause> = match (there, known.as_ref()) {
        (Err(cause), _) => Err(cause),
        (Ok(()), Err(cause)) => Err(cause.clone()),
        (Ok(()), Ok(known)) => match known.hosts.get(place.slug) {
            Some(found) => found.as_deref().map_err(Clone::clone),
            None => Ok(&[]),
        },
    };
    let line = hosts_line(place, hosts.clone());
    let hosts = match hosts {
        Ok([]) => Err(line.cause()),
        hosts => hosts,
    };
    tell(line);
    if options.ironic_enrol || options.platform_class_activity_ready {
        let name = place.name("context");
        tell(match &hosts {
            Ok(hosts) => contexts(place, name, hosts),
            Err(cause) => Check::blocked(name, cause),
        });
    }
    if options.platform_class_activity_ready {
        let name = place.name("gpu_types");
        let types = known.as_ref().map_err(Clone::clone).and_then(|known| known.types.as_ref().map_err(Clone::clone));
        tell(match (&hosts, types) {
            (Ok(hosts), Ok(types)) => {
                let field = &place.settings.netbox.fields.gpu_type;
                let with = types.iter().filter(|kind| text_field(&kind.custom_fields, field).is_some());
                gpu_types(name, field, hosts, &with.map(|kind| kind.id).collect())
            }
            (Err(cause), _) => Check::blocked(name, cause),
            (_, Err(cause)) => Check::blocked(name, &cause),
        });
    }
    if options.configure_dhcp
        && let (Some(settings), Some(keys)) = (&place.site().dhcp, place.keys)
    {
        dhcp::look(place, settings, keys.as_ref().map_err(Clone::clone), tell).await;
    }
    if options.configure_bmc {
        bmc::look(place, netbox.and(hosts), tell).await;
    }
}

fn site_line(place: &Place<'_>, sites: Result<&[SiteRecord], Cause>) -> Check {
    let (name, slug) = (place.name("netbox"), place.slug);
    match sites {
        Err(cause) => Check::blocked(name, &cause),
        Ok(sites) if sites.iter().any(|site| site.slug == slug) => Check::ok(name, format!("NetBox has '{slug}'")),
        Ok(_) => Check::to_mend(
            Level::Fail,
            name,
            format!("NetBox has no site with the slug '{slug}'"),
            format!("correct the name of [sites.{slug}], or the slug of the site in NetBox"),
        ),
    }
}

/// B6: what a BMC is told of its site.
fn values(place: &Place<'_>, name: String, sites: &[SiteRecord]) -> Check {
    let fields = &place.settings.netbox.fields;
    let Some(site) = sites.iter().find(|site| site.slug == place.slug) else {
        return Check::blocked(name, &Cause { check: place.name("netbox"), owner: Owner::InfraEng });
    };
    let wanted = [fields.ntp_server.as_str(), fields.syslog_server.as_str()];
    // A field that is not there at all has a line of its own.
    if let Some(field) = wanted.into_iter().find(|field| !site.custom_fields.contains_key(*field)) {
        return Check::blocked(
            name,
            &Cause { check: format!("netbox.field.dcim.site.{field}"), owner: Owner::InfraEng },
        );
    }
    let empty = |field: &&str| text_field(&site.custom_fields, field).is_none();
    let empty: Vec<&str> = wanted.into_iter().filter(empty).collect();
    if empty.is_empty() {
        return Check::ok(name, format!("'{}' are set on the site '{}'", wanted.join("' and '"), place.slug));
    }
    let empty = empty.join("' and '");
    Check::to_mend(
        Level::Fail,
        name,
        format!("'{empty}' of the site '{}' is empty in NetBox: no BMC there can be configured", place.slug),
        format!("set '{empty}' on the site '{}' in NetBox, or switch configure_bmc off", place.slug),
    )
}

fn hosts_line(place: &Place<'_>, hosts: Result<&[Host], Cause>) -> Check {
    let name = place.name("hosts");
    match hosts {
        Err(cause) => Check::blocked(name, &cause),
        Ok([]) => {
            let classes: Vec<&str> = place.settings.eligibility.device_classes.iter().map(String::as_str).collect();
            Check::to_mend(
                Level::Warn,
                name,
                format!("NetBox tells no host of '{}' whose role has one of '{}'", place.slug, classes.join("', '")),
                format!("add the hosts of '{}' to NetBox, or correct the classes of their roles", place.slug),
            )
        }
        Ok(hosts) => {
            // R2: a class that nobody manages is refused at submission.
            let routing = place.settings.routing(place.slug);
            let astray: BTreeSet<&str> = hosts
                .iter()
                .map(|host| host.class.as_str())
                .filter(|class| !routing.by_class.contains_key(*class))
                .collect();
            if place.site().options.ironic_enrol && !astray.is_empty() {
                let astray = astray.into_iter().collect::<Vec<_>>().join("', '");
                return Check::to_mend(
                    Level::Warn,
                    name,
                    format!("no Ironic of '{}' manages the device classes '{astray}' of hosts there", place.slug),
                    format!("add '{astray}' to device_classes of an Ironic of the site in the configuration"),
                );
            }
            Check::ok(name, format!("{} hosts of '{}' are looked at", hosts.len(), place.slug))
        }
    }
}

/// Each wrong key with the hosts whose contexts have it.
fn contexts(place: &Place<'_>, name: String, hosts: &[Host]) -> Check {
    let platform_class = place.site().options.platform_class_activity_ready;
    let mut wrong: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for host in hosts {
        let asks = Asks { class: &host.class, platform_class };
        for misfit in misfits(host.record.config_context.as_ref(), asks) {
            wrong.entry(misfit).or_default().push(host.record.name.as_deref().unwrap_or("?"));
        }
    }
    if wrong.is_empty() {
        return Check::ok(name, format!("the config contexts of {} hosts fit", hosts.len()));
    }
    let level = if wrong.keys().any(|misfit| misfit.fatal) { Level::Fail } else { Level::Warn };
    let more = wrong.len().saturating_sub(SHOWN);
    let mut lines: Vec<String> = wrong
        .iter()
        .take(SHOWN)
        .map(|(misfit, of)| {
            let others = if of.len() > 1 { format!(" and {} more", of.len() - 1) } else { String::new() };
            format!("config_context.{} {} ({}{others})", misfit.path, misfit.problem, neutralize_to(of[0], 60))
        })
        .collect();
    if more > 0 {
        lines.push(format!("{more} more"));
    }
    let paths: Vec<&str> = wrong.keys().take(SHOWN).map(|misfit| misfit.path.as_str()).collect();
    let action = format!("correct '{}' in the NetBox config contexts that apply there", paths.join("', '"));
    Check::to_mend(level, name, lines.join("; "), action)
}

/// P3, P12: how far the GPU types are known that platform classes are made from.
fn gpu_types(name: String, field: &str, hosts: &[Host], with: &BTreeSet<u64>) -> Check {
    let gpus: Vec<&Host> = hosts.iter().filter(|host| host.class == GPU_COMPUTE).collect();
    let lacks = |host: &&&Host| !with.contains(&host.record.device_type.id);
    let lacking: Vec<&&Host> = gpus.iter().filter(lacks).collect();
    if lacking.is_empty() {
        return Check::ok(name, format!("'{field}' is known for {} of {} GPU hosts", gpus.len(), gpus.len()));
    }
    let model = |host: &&&Host| {
        let kind = &host.record.device_type;
        format!("'{} {}'", neutralize_to(&kind.manufacturer.name, 60), neutralize_to(&kind.model, 60))
    };
    let models: Vec<String> = lacking.iter().map(model).collect::<BTreeSet<_>>().into_iter().collect();
    let known = gpus.len() - lacking.len();
    Check::to_mend(
        Level::Fail,
        name,
        format!(
            "'{field}' is known for {known} of {} GPU hosts: the device types {} lack it",
            gpus.len(),
            models.join(", ")
        ),
        format!("set '{field}' on the device types {} in NetBox", models.join(", ")),
    )
}
