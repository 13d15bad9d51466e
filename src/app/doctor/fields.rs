//! Looks for the custom fields and tags in NetBox that enrollment reads and writes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::check::Cause;
use super::netbox::Hidden;
use super::{Check, Level};
use crate::clients::netbox::NetBox;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::records::{DeviceRecord, DeviceTypeRecord, RoleRecord, SiteRecord, text_field};
use crate::config::settings::Settings;
use crate::domain::failure::Owner;
use crate::domain::phase::Phase;

/// Hosts of a role at a site whose data is looked at.
const HOSTS: usize = 25;

/// What NetBox has of the places and kinds of hosts. A list that can't be read is the line that says so.
pub(super) struct Known {
    pub sites: Result<Vec<SiteRecord>, Cause>,
    pub types: Result<Vec<DeviceTypeRecord>, Cause>,
    /// By site, in the order of the configuration: some hosts of each role that is enrolled, with their config contexts.
    pub hosts: BTreeMap<String, Result<Vec<Host>, Cause>>,
}

/// A host with the class that its role gives it.
pub(super) struct Host {
    pub record: DeviceRecord,
    pub class: String,
}

/// A custom field that is needed: its object type, its name, and what it is for.
struct Field<'a> {
    object: &'static str,
    name: &'a str,
    key: &'static str,
}

impl Field<'_> {
    fn check(&self) -> String {
        format!("netbox.field.{}.{}", self.object, self.name)
    }
}

/// The fields that this configuration needs: what no site switches on is not asked for.
fn needed(settings: &Settings) -> Vec<Field<'_>> {
    let fields = &settings.netbox.fields;
    let mut needed = vec![class_field(settings)];
    if settings.sites.values().any(|site| site.options.platform_class_activity_ready) {
        needed.push(Field { object: "dcim.devicetype", name: &fields.gpu_type, key: "gpu_type" });
        needed.push(Field { object: "dcim.device", name: &fields.platform_class, key: "platform_class" });
    }
    if settings.sites.values().any(|site| site.options.configure_bmc) {
        needed.push(Field { object: "dcim.site", name: &fields.ntp_server, key: "ntp_server" });
        needed.push(Field { object: "dcim.site", name: &fields.syslog_server, key: "syslog_server" });
    }
    needed
}

fn class_field(settings: &Settings) -> Field<'_> {
    Field { object: "dcim.devicerole", name: &settings.netbox.fields.device_class, key: "device_class" }
}

/// The tags that a finished run sets, at the sites that let it come so far.
fn tags(settings: &Settings) -> BTreeSet<String> {
    let options = || settings.sites.values().map(|site| &site.options);
    let ironic = options().filter(|site| site.ironic_enrol).map(|site| site.ironic_tag.clone());
    ironic.chain(options().filter(|site| site.configure_bmc).map(|site| site.bmc_tag.clone())).collect()
}

/// The lines of the fields and tags, and what was read for them.
pub(super) async fn look(netbox: &NetBox, hidden: &Hidden, settings: &Settings, tell: &mut dyn FnMut(Check)) -> Known {
    let seen = |object: &str| hidden.get(object).map_or(Ok(()), |cause| Err(cause.clone()));
    // What can be seen and not be read is told by the lines below, in NetBox's words.
    let mut unread = BTreeMap::new();
    let mut kept = |object: &'static str, error: &NetBoxError| {
        let failure = netbox.failure(error, Phase::StatusGate);
        let check = Check::of_failure(Level::Unknown, format!("netbox.read.{object}"), &failure);
        let cause = check.cause();
        unread.insert(object, check);
        cause
    };
    let roles: Result<Vec<RoleRecord>, Cause> = match seen("dcim.devicerole") {
        Ok(()) => netbox.roles().await.map(|list| list.rows).map_err(|e| kept("dcim.devicerole", &e)),
        Err(cause) => Err(cause),
    };
    let types = match seen("dcim.devicetype") {
        Ok(()) => netbox.device_types().await.map(|list| list.rows).map_err(|e| kept("dcim.devicetype", &e)),
        Err(cause) => Err(cause),
    };
    let sites = match seen("dcim.site") {
        Ok(()) => netbox.sites().await.map(|list| list.rows).map_err(|e| kept("dcim.site", &e)),
        Err(cause) => Err(cause),
    };
    // Without their class no role is one of hosts.
    let class = line_of(&class_field(settings), roles.as_deref().map(role_fields));
    let mut hosts = BTreeMap::new();
    for slug in settings.sites.keys() {
        let found = match (&roles, seen("dcim.device")) {
            (Err(cause), _) => Err(cause.clone()),
            (_, Err(cause)) => Err(cause),
            _ if !class.lets_pass() => Err(class.cause()),
            // NetBox refuses to look for the devices of a site that it does not have.
            _ if sites.as_ref().is_ok_and(|sites| sites.iter().all(|site| site.slug != *slug)) => {
                Err(Cause { check: format!("site.{slug}.netbox"), owner: Owner::InfraEng })
            }
            (Ok(roles), Ok(())) => hosts_of(netbox, settings, slug, roles).await.map_err(|e| kept("dcim.device", &e)),
        };
        hosts.insert(slug.clone(), found);
    }
    unread.into_values().for_each(&mut *tell);

    for field in needed(settings) {
        let tables: Result<Vec<&Map<String, Value>>, &Cause> = match field.object {
            "dcim.devicerole" => roles.as_deref().map(role_fields),
            "dcim.devicetype" => types.as_ref().map(|rows| rows.iter().map(|row| &row.custom_fields).collect()),
            "dcim.site" => sites.as_ref().map(|rows| rows.iter().map(|row| &row.custom_fields).collect()),
            _ => {
                let found: Vec<_> = hosts.values().flatten().flatten().map(|host| &host.record.custom_fields).collect();
                match hosts.values().find_map(|found| found.as_ref().err()) {
                    Some(cause) if found.is_empty() => Err(cause),
                    _ => Ok(found),
                }
            }
        };
        tell(line_of(&field, tables));
    }
    let wanted = tags(settings);
    let found = match seen("extras.tag") {
        Ok(()) => {
            netbox.known_tags(&wanted).await.map_err(|error| netbox.failure(&error, Phase::StatusGate)).map_err(Some)
        }
        Err(_) => Err(None),
    };
    for tag in &wanted {
        let name = format!("netbox.tag.{tag}");
        tell(match &found {
            Ok(found) if found.contains(tag) => Check::ok(name, format!("NetBox has the tag '{tag}'")),
            Ok(_) => Check::to_mend(
                Level::Fail,
                name,
                format!("NetBox has no tag with the slug '{tag}': a run fails where it is to be set"),
                format!("create the tag '{tag}' in NetBox, or name another one in [sites.….options]"),
            ),
            Err(Some(failure)) => Check::of_failure(Level::Unknown, name, failure),
            Err(None) => Check::blocked(name, &hidden["extras.tag"]),
        });
    }
    Known { sites, types, hosts }
}

/// The same lines where NetBox can't be asked.
pub(super) fn blocked(settings: &Settings, cause: &Cause, tell: &mut dyn FnMut(Check)) {
    needed(settings).iter().for_each(|field| tell(Check::blocked(field.check(), cause)));
    tags(settings).iter().for_each(|tag| tell(Check::blocked(format!("netbox.tag.{tag}"), cause)));
}

async fn hosts_of(
    netbox: &NetBox,
    settings: &Settings,
    site: &str,
    roles: &[RoleRecord],
) -> Result<Vec<Host>, NetBoxError> {
    let mut hosts = Vec::new();
    for role in roles {
        let class = text_field(&role.custom_fields, &settings.netbox.fields.device_class);
        let Some(class) = class.filter(|class| settings.eligibility.device_classes.contains(*class)) else { continue };
        let found = netbox.some_hosts(site, role.id, HOSTS).await?;
        hosts.extend(found.into_iter().map(|record| Host { record, class: class.to_owned() }));
    }
    Ok(hosts)
}

fn role_fields(rows: &[RoleRecord]) -> Vec<&Map<String, Value>> {
    rows.iter().map(|row| &row.custom_fields).collect()
}

fn line_of(field: &Field<'_>, tables: Result<Vec<&Map<String, Value>>, &Cause>) -> Check {
    match tables {
        Ok(tables) => field_line(field, &tables),
        Err(cause) => Check::blocked(field.check(), cause),
    }
}

/// NetBox tells every custom field of an object type with each of its objects, empty or not.
fn field_line(field: &Field<'_>, tables: &[&Map<String, Value>]) -> Check {
    let Field { object, name, key } = field;
    if tables.is_empty() {
        let message = format!("NetBox tells no {object} to see its custom fields");
        return Check::to_mend(Level::Unknown, field.check(), message, format!("create a {object} in NetBox"));
    }
    if tables.iter().any(|table| table.contains_key(*name)) {
        return Check::ok(field.check(), format!("{object} has the custom field '{name}'"));
    }
    Check::to_mend(
        Level::Fail,
        field.check(),
        format!("{object} has no custom field '{name}' in NetBox"),
        format!("create the custom field '{name}' for {object} in NetBox, or correct {key} in [netbox.fields]"),
    )
}
