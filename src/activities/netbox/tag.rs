//! Adds a tag to the device and keeps all others (C7, B17, O11).

use super::NETBOX;
use crate::activities::env::ActivityCx;
use crate::activities::facts::{Depth, find};
use crate::domain::failure::Failure;
use crate::domain::text::neutralize;
use crate::workflows::defs::{AddTagIn, Changed};

/// Adds the tag where it is missing. Writes nothing where the device has it.
pub async fn add_tag(cx: &ActivityCx, input: AddTagIn) -> Result<Changed, Failure> {
    let AddTagIn { target, phase, tag } = input;
    let netbox = &cx.env.clients.netbox;
    let host = &target.host;
    let device = find(cx, &target, phase, Depth::Plain).await?.record;
    let outcome = netbox.add_tag(&device, &tag).await.map_err(|error| netbox.failure(&error, phase))?;
    let list = |tags: &[String]| tags.iter().map(|tag| neutralize(tag).into_owned()).collect::<Vec<_>>().join(", ");
    if outcome.before == outcome.after && !outcome.lost {
        return Ok(Changed { changed: false, note: format!("'{host}' has the tag '{tag}'") });
    }
    cx.wrote(NETBOX, host, "tags", list(&outcome.before), list(&outcome.after));
    if outcome.lost {
        return Err(super::not_kept(host, "the tags", &tag, &list(&outcome.after), phase));
    }
    Ok(Changed { changed: true, note: format!("'{host}' got the tag '{tag}'") })
}
