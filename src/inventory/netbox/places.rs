//! Reads what changes rarely: sites, locations, racks, device types, roles, and the firmware policies of all devices (O1).

use serde_json::{Map, Value};

use super::parts::is_closed;
use super::{ObserveError, Observer, Seen, SyncReport};
use crate::clients::netbox::observe::Observed;
use crate::clients::netbox::pages::Listing;
use crate::clients::netbox::records::{DeviceTypeRecord, LocationRecord, RackRecord, RoleRecord, SiteRecord};
use crate::domain::wiring::Place;
use crate::inventory::project::Catalogue;
use crate::store::ObjectKind;

impl Observer {
    pub(super) async fn read_places(&self, seen: &mut Seen) -> Result<SyncReport, ObserveError> {
        let mut changed = 0;
        changed += self.take_places(ObjectKind::Site, site).await?.1;
        changed += self.take_places(ObjectKind::Location, location).await?.1;
        changed += self.take_places(ObjectKind::Rack, rack).await?.1;
        let (types, of_types) = self.take_places(ObjectKind::DeviceType, device_type).await?;
        let (roles, of_roles) = self.take_places(ObjectKind::Role, role).await?;
        let catalogue = Catalogue::new(&types, &roles, &self.settings.fields);
        if seen.cursor.is_some() && catalogue != seen.catalogue {
            tracing::info!("device types or roles changed: all devices are read again");
            self.sync_soon();
        }
        seen.catalogue = catalogue;
        changed += of_types + of_roles + self.read_policies().await?;
        tracing::debug!(changed, "places and firmware policies read from NetBox");
        Ok(SyncReport::default())
    }

    /// Takes a list of places; says how it reads and whether it changed.
    async fn take_places<T: Observed>(
        &self,
        kind: ObjectKind,
        place: fn(&T) -> Place,
    ) -> Result<(Vec<T>, usize), ObserveError> {
        let listing: Listing<T> = match self.netbox.observe_all().await {
            // Nothing but names and heights hangs on them; what was known of them stays.
            Err(error) if is_closed(&error) => {
                tracing::warn!(%error, "this list is not followed");
                return Ok((Vec::new(), 0));
            }
            listing => listing?,
        };
        // A list that does not add up, or is empty all of a sudden, removes nothing.
        let all = listing.complete && !listing.rows.is_empty();
        let changed = self.store.put_places(kind, listing.rows.iter().map(place).collect(), all).await?;
        Ok((listing.rows, usize::from(changed)))
    }
}

fn bare(netbox_id: u64, name: &str, slug: Option<&str>, fields: &Map<String, Value>) -> Place {
    Place {
        netbox_id,
        name: name.to_owned(),
        slug: slug.map(str::to_owned),
        site: None,
        within: None,
        u_height: None,
        starting_unit: None,
        desc_units: None,
        is_full_depth: None,
        custom_fields: fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect(),
    }
}

fn site(row: &SiteRecord) -> Place {
    bare(row.id, &row.name, Some(&row.slug), &row.custom_fields)
}

fn location(row: &LocationRecord) -> Place {
    let within = row.parent.as_ref().map(|parent| parent.name.clone());
    Place { site: Some(row.site.slug.clone()), within, ..bare(row.id, &row.name, Some(&row.slug), &Map::new()) }
}

fn rack(row: &RackRecord) -> Place {
    let within = row.location.as_ref().map(|location| location.name.clone());
    let (site, u_height) = (Some(row.site.slug.clone()), row.u_height);
    let (starting_unit, desc_units) = (row.starting_unit, row.desc_units);
    Place { site, within, u_height, starting_unit, desc_units, ..bare(row.id, &row.name, None, &Map::new()) }
}

fn device_type(row: &DeviceTypeRecord) -> Place {
    let within = Some(row.manufacturer.name.clone());
    let (u_height, is_full_depth) = (row.u_height, row.is_full_depth);
    Place { within, u_height, is_full_depth, ..bare(row.id, &row.model, None, &row.custom_fields) }
}

fn role(row: &RoleRecord) -> Place {
    bare(row.id, &row.name, Some(&row.slug), &row.custom_fields)
}
