//! Reads `[eligibility]`: which devices may be enrolled, and which are somebody else's (S1).

use std::collections::BTreeSet;

use super::site::is_slug;
use super::table::{Section, shown};
use crate::domain::eligibility::Rules;

/// Takes what the file says in place of the rules of the house; a key that is left out keeps them.
pub(super) fn read(t: &Section<'_>, rules: &mut Rules) {
    let taken = t.item("device_classes").and_then(|item| {
        let classes = item.texts()?;
        if classes.is_empty() { item.fault("is empty: nothing could be enrolled") } else { Some(classes) }
    });
    if let Some(classes) = taken {
        rules.device_classes = classes.into_iter().collect();
    }
    for (key, slugs) in [
        ("custody_tags", &mut rules.custody_tags),
        ("custody_tenants", &mut rules.custody_tenants),
        ("blocking_tags", &mut rules.blocking_tags),
    ] {
        if let Some(given) = slugs_of(t, key) {
            *slugs = given;
        }
    }
    if let Some(tag) = rules.blocking_tags.intersection(&rules.custody_tags).next() {
        t.fault_at(
            "blocking_tags",
            format!("has {}, which is a tag of custody_tags too: which of both is meant?", shown(tag)),
        );
    }
}

/// Names as NetBox has them in its addresses: a tag's or tenant's displayed name would never be met.
fn slugs_of(t: &Section<'_>, key: &'static str) -> Option<BTreeSet<String>> {
    let item = t.item(key)?;
    let slugs = item.texts()?;
    match slugs.iter().find(|slug| !is_slug(slug)) {
        Some(other) => item.fault(format!("has {}, which is not a slug of NetBox", shown(other))),
        None => Some(slugs.into_iter().collect()),
    }
}
