//! `muster inventory …`: the racked devices, from the fleet store.

use serde_json::json;

use super::args::{Inventory, Place};
use super::exit::{Ending, Exit};
use super::{device, leave, open, output};
use crate::app::FleetRow;
use crate::domain::text::neutralize;

pub async fn inventory(place: &Place, command: Inventory) -> Result<Exit, Ending> {
    // It looks and leaves: whoever leads goes on leading, and no run is resumed for a moment.
    let app = open::aside(place).await?;
    let done = show(&app, place, command).await;
    leave::leave(app).await;
    done
}

async fn show(app: &crate::app::App, place: &Place, command: Inventory) -> Result<Exit, Ending> {
    let failed = |e: crate::app::AppError| Ending::failed(e.to_string());
    if let Inventory::Show { host, json } = &command {
        return show_one(app, place, host, *json).await;
    }
    app.sync_now().await.map_err(failed)?;
    let fleet = app.fleet().map_err(failed)?;
    let mut rows: Vec<&FleetRow> = fleet.rows.iter().collect();
    rows.retain(|row| place.site.as_ref().is_none_or(|site| &row.device.site == site));
    match command {
        Inventory::Sync { json: true } => {
            let systems: Vec<_> = fleet
                .systems
                .iter()
                .map(|system| json!({ "system": system.name, "ok_at": system.ok_at, "error": system.error }))
                .collect();
            output::object(&json!({ "event": "synced", "devices": rows.len(), "systems": systems }));
        }
        Inventory::Sync { json: false } => output::line(&format!("{} devices", rows.len())),
        Inventory::List { json: true } => rows.iter().for_each(|row| output::object(&object(row))),
        Inventory::List { json: false } => rows.iter().for_each(|row| output::line(&plain(row))),
        Inventory::Show { .. } => {}
    }
    Ok(Exit::Done)
}

/// One device with its wiring. Where NetBox does not answer the last view is shown, and that it is one (O6).
async fn show_one(app: &crate::app::App, place: &Place, host: &str, json: bool) -> Result<Exit, Ending> {
    let failed = |e: crate::app::AppError| Ending::failed(e.to_string());
    let find = || -> Result<Option<FleetRow>, Ending> {
        let here = |row: &FleetRow| place.site.as_ref().is_none_or(|site| &row.device.site == site);
        Ok(app.fleet().map_err(failed)?.rows.into_iter().find(|row| row.device.name == host && here(row)))
    };
    let mut stale = app.sync_now().await.err();
    let Some(row) = find()? else {
        return Err(match stale {
            Some(error) => failed(error),
            None => Ending::refused(format!("NetBox has no racked device '{}'", neutralize(host)))
                .with_action("see `muster inventory list` for the names"),
        });
    };
    if stale.is_none() {
        stale = app.read_wiring(row.device.netbox_id).await.err();
    }
    let (stale, wiring) = (stale.map(|error| error.to_string()), app.wiring(row.device.netbox_id).map_err(failed)?);
    if json {
        let object = device::object(&row.device, &wiring, stale.as_deref());
        output::object(&object.map_err(|e| Ending::failed(e.to_string()))?);
    } else {
        let lines = device::lines(&row.device, &wiring, stale.as_deref(), jiff::Timestamp::now());
        lines.iter().for_each(|line| output::line(line));
    }
    Ok(Exit::Done)
}

/// A device as the contract of `inventory list --json` has it.
fn object(row: &FleetRow) -> serde_json::Value {
    let device = &row.device;
    let refusal = row.eligible.as_ref().err();
    json!({
        "host": device.name,
        "site": device.site,
        "location": device.location,
        "rack": device.rack,
        "position": device.position,
        "status": device.status,
        "ironic_state": row.ironic.as_ref().map(|ironic| ironic.state.to_string()),
        "platform_class": device.platform_class,
        "eligible": refusal.is_none(),
        "refusal": refusal.map(|r| json!({ "code": r.code, "message": r.message })),
    })
}

fn plain(row: &FleetRow) -> String {
    let device = &row.device;
    let unit = device.position.map_or("-".to_owned(), |u| format!("U{u}"));
    let rack = device.rack.as_deref().unwrap_or("-");
    let ironic = row.ironic.as_ref().map_or("-", |ironic| ironic.state.as_str());
    let word = match &row.eligible {
        Ok(()) => String::new(),
        Err(refusal) => format!("  {}: {}", refusal.code, refusal.message),
    };
    let text =
        format!("{:<8} {rack:<8} {unit:<4} {:<16} {:<9} {ironic:<14}{word}", device.site, device.name, device.status);
    neutralize(text.trim_end()).into_owned()
}
