//! The permissions that muster needs in NetBox, and what is told of each: pure decisions on what was found.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Level};
use crate::clients::netbox::permissions::{Account, TokenFacts};
use crate::domain::text::neutralize;

/// An object type that has to be seen.
pub(super) struct Needed {
    pub object: &'static str,
    pub path: &'static str,
    /// What goes wrong without it.
    pub why: &'static str,
}

const fn needed(object: &'static str, path: &'static str, why: &'static str) -> Needed {
    Needed { object, path, why }
}

/// Every `view` that is needed.
pub(super) const VIEW: [Needed; 11] = [
    needed("dcim.device", "/api/dcim/devices/", "there is no fleet"),
    needed("dcim.interface", "/api/dcim/interfaces/", "no host can be enrolled"),
    needed("dcim.cable", "/api/dcim/cables/", "cables of wrong hosts are not told by label and colour"),
    needed("dcim.macaddress", "/api/dcim/mac-addresses/", "a BMC's or a NIC's new address is seen late"),
    needed("ipam.ipaddress", "/api/ipam/ip-addresses/", "a BMC's address can't be proven to be on its interface"),
    needed("dcim.site", "/api/dcim/sites/", "BMCs get no NTP and syslog server"),
    needed("dcim.location", "/api/dcim/locations/", "halls are told by what devices say alone"),
    needed("dcim.rack", "/api/dcim/racks/", "racks are told by what devices say alone"),
    needed("dcim.devicetype", "/api/dcim/device-types/", "heights and GPU types are missing"),
    needed("dcim.devicerole", "/api/dcim/device-roles/", "no device has a class, and none can be enrolled"),
    needed("extras.tag", "/api/extras/tags/", "a missing tag can't be told from a refused one"),
];

/// What may be seen beside it without a word: what devices point at, and what is merged into their config context.
const TOLERATED: [&str; 14] = [
    "dcim.manufacturer",
    "dcim.platform",
    "dcim.region",
    "dcim.sitegroup",
    "dcim.rackrole",
    "dcim.racktype",
    "dcim.virtualchassis",
    "dcim.modulebay",
    "extras.configcontext",
    "extras.customfield",
    "extras.customfieldchoiceset",
    "ipam.prefix",
    "tenancy.tenant",
    "tenancy.tenantgroup",
];

/// What was found of one object type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sight {
    /// NetBox refuses the list.
    Refused,
    /// The list came with so many rows.
    Sees(usize),
    /// It could not be looked at: what was said, and what to do.
    Unknown(String, String),
}

/// How many of an object type the token sees of those that are known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Known {
    pub seen: usize,
    pub there: usize,
}

/// The line of one needed `view`. A list that is empty or short may be a permission with constraints: NetBox then leaves
/// objects out and refuses nothing (C-37).
pub(super) fn view(needed: &Needed, sight: &Sight, known: Known, user: &str) -> Check {
    let Needed { object, why, .. } = *needed;
    let check = format!("netbox.view.{object}");
    let widen = format!("widen the constraints of the permission that gives '{user}' 'view' on {object} in NetBox");
    match sight {
        Sight::Refused => Check::to_mend(
            Level::Fail,
            check,
            format!("'{user}' may not view {object}: {why}"),
            format!("grant '{user}' 'view' on {object} in NetBox"),
        ),
        Sight::Unknown(said, action) => Check::to_mend(Level::Unknown, check, said.clone(), action.clone()),
        Sight::Sees(_) if known.seen < known.there => Check::to_mend(
            Level::Warn,
            check,
            format!(
                "of {} {object} that NetBox is known to have '{user}' sees {}: an object permission hides the others",
                known.there, known.seen
            ),
            format!("{widen}, unless that is meant"),
        ),
        Sight::Sees(0) => Check::to_mend(
            Level::Warn,
            check,
            format!(
                "'{user}' may view {object} and sees none: NetBox has none, or an object permission hides them all"
            ),
            format!("look in NetBox whether there is any; if so, {widen}"),
        ),
        Sight::Sees(count) => Check::ok(check, format!("sees {count}")),
    }
}

/// The line of `change` on devices: the only write there is. What constraints of that permission leave out can't be found
/// out by reading: NetBox offers the write for every device that the token sees, and hides constraints from it.
pub(super) fn change(may: bool, facts: Option<&TokenFacts>, user: &str) -> Check {
    let check = "netbox.change.dcim.device";
    let grant = format!("grant '{user}' 'change' on dcim.device in NetBox");
    if facts.and_then(|token| token.write_enabled) == Some(false) {
        let message = format!("the token of '{user}' may not write: status, tags and platform class stay as they are");
        return Check::to_mend(Level::Fail, check, message, "switch on 'write enabled' of that token in NetBox");
    }
    if !may {
        let message = format!("'{user}' may not change dcim.device: status, tags and platform class stay as they are");
        return Check::to_mend(Level::Fail, check, message, grant);
    }
    Check::ok(
        check,
        "may change devices, unless constraints of that permission leave some out: these NetBox does not tell",
    )
}

/// The line of the token itself.
pub(super) fn token(facts: Option<&TokenFacts>, now: jiff::Timestamp, user: &str) -> Check {
    let check = "netbox.token";
    match facts.map(|token| token.expires) {
        None => Check::ok(check, format!("belongs to '{user}'; NetBox does not tell which of its tokens it is")),
        Some(None) => Check::ok(check, format!("belongs to '{user}' and does not expire")),
        Some(Some(at)) if at.duration_since(now) < jiff::SignedDuration::from_hours(14 * 24) => Check::to_mend(
            Level::Warn,
            check,
            format!("the token of '{user}' expires at {at}"),
            "make a new token in NetBox and put it where token in [netbox] of the configuration points",
        ),
        Some(Some(at)) => Check::ok(check, format!("belongs to '{user}' and expires at {at}")),
    }
}

/// What is granted beyond need, a line for each object type. `methods`: what OPTIONS tells of the lists that are read.
pub(super) fn too_much(
    account: Option<&Account>,
    methods: &BTreeMap<&'static str, BTreeSet<String>>,
    user: &str,
) -> Vec<Check> {
    let mut more: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (object, methods) in methods {
        for (method, action) in [("POST", "add"), ("PUT", "change")] {
            if methods.contains(method) && !is_needed(object, action) {
                more.entry((*object).to_owned()).or_default().insert(action.to_owned());
            }
        }
    }
    let grants = account.map_or(&[][..], |account| &account.permissions);
    for grant in grants.iter().filter(|grant| grant.enabled != Some(false)) {
        for object in &grant.object_types {
            let actions = grant.actions.iter().filter(|action| !is_needed(object, action)).cloned();
            let actions: BTreeSet<String> = actions.collect();
            if !actions.is_empty() {
                more.entry(object.clone()).or_default().extend(actions);
            }
        }
    }
    let line = |(object, actions): (String, BTreeSet<String>)| {
        let actions: Vec<String> = actions.into_iter().collect();
        let (object, actions) = (neutralize(&object).into_owned(), neutralize(&actions.join("', '")).into_owned());
        Check::to_mend(
            Level::Warn,
            format!("netbox.more.{object}"),
            format!("'{user}' has '{actions}' on {object}, which muster never uses"),
            format!("take '{actions}' on {object} from '{user}' in NetBox"),
        )
    };
    more.into_iter().map(line).collect()
}

fn is_needed(object: &str, action: &str) -> bool {
    match action {
        "view" => VIEW.iter().any(|needed| needed.object == object) || TOLERATED.contains(&object),
        "change" => object == "dcim.device",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::netbox::permissions::Grant;

    /// Proves: O12
    #[test]
    fn a_list_that_is_refused_short_empty_or_whole_is_told_apart() {
        let of = |sight: Sight, seen, there| view(&VIEW[0], &sight, Known { seen, there }, "muster");
        let refused = of(Sight::Refused, 0, 0);
        assert_eq!((refused.level, refused.check.as_str()), (Level::Fail, "netbox.view.dcim.device"));
        assert_eq!(refused.action.as_deref(), Some("grant 'muster' 'view' on dcim.device in NetBox"));
        let hidden = of(Sight::Sees(5), 5, 19);
        assert!(hidden.level == Level::Warn && hidden.message.contains("of 19") && hidden.message.contains("sees 5"));
        let hidden = of(Sight::Sees(0), 0, 19);
        assert!(hidden.level == Level::Warn && hidden.message.contains("of 19"), "{hidden:?}");
        let none = of(Sight::Sees(0), 0, 0);
        assert!(none.level == Level::Warn && none.message.contains("NetBox has none, or"), "{none:?}");
        assert_eq!(of(Sight::Sees(19), 19, 19), Check::ok("netbox.view.dcim.device", "sees 19"));
        assert_eq!(of(Sight::Unknown("503".into(), "look".into()), 0, 0).level, Level::Unknown);
    }

    /// Proves: O12
    #[test]
    fn the_one_write_is_told_with_what_stands_in_its_way() {
        let facts = |write| TokenFacts { key: None, write_enabled: Some(write), expires: None };
        assert_eq!(change(true, Some(&facts(true)), "m").level, Level::Ok);
        let token = change(false, Some(&facts(false)), "m");
        assert!(token.level == Level::Fail && token.message.contains("token"), "{token:?}");
        assert!(change(false, None, "m").action.unwrap().contains("'change' on dcim.device"));
    }

    /// Proves: O12
    #[test]
    fn what_is_too_much_is_named_whether_netbox_tells_it_of_the_account_or_of_a_list() {
        let grant = |objects: &[&str], actions: &[&str]| Grant {
            name: "p".into(),
            enabled: Some(true),
            object_types: objects.iter().map(|o| (*o).to_owned()).collect(),
            actions: actions.iter().map(|a| (*a).to_owned()).collect(),
        };
        let all_that_is_needed: Vec<&str> = VIEW.iter().map(|needed| needed.object).collect();
        let mut account = Account {
            username: "m".into(),
            groups: vec![],
            permissions: vec![grant(&all_that_is_needed, &["view"]), grant(&["dcim.device"], &["change"])],
        };
        let mut methods = BTreeMap::from([("dcim.device", BTreeSet::from(["PUT".to_owned()]))]);
        assert_eq!(too_much(Some(&account), &methods, "m"), []);
        account.permissions.push(grant(&["dcim.device", "users.token"], &["view", "delete"]));
        account.permissions.push(Grant { enabled: Some(false), ..grant(&["ipam.vrf"], &["add"]) });
        methods.insert("dcim.site", BTreeSet::from(["PUT".to_owned(), "POST".to_owned()]));
        let told = too_much(Some(&account), &methods, "m");
        let names: Vec<&str> = told.iter().map(|check| check.check.as_str()).collect();
        assert_eq!(names, ["netbox.more.dcim.device", "netbox.more.dcim.site", "netbox.more.users.token"]);
        assert!(told[0].message.contains("'delete' on dcim.device"), "{told:#?}");
        assert!(told[1].message.contains("'add', 'change'") && told[2].message.contains("'delete', 'view'"));
        assert!(told.iter().all(|check| check.level == Level::Warn));
    }
}
