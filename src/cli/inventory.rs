//! `muster inventory …`: the racked devices, from the fleet store.

use serde_json::json;

use super::args::{Inventory, Place};
use super::exit::{Ending, Exit};
use super::{leave, open, output};
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
        Inventory::Show { host, json } => {
            let Some(row) = rows.iter().find(|row| row.device.name == host) else {
                return Err(Ending::refused(format!("NetBox has no racked device '{host}'"))
                    .with_action("see `muster inventory list` for the names"));
            };
            let written =
                if json { serde_json::to_string(&row.device) } else { serde_json::to_string_pretty(&row.device) };
            let text = written.map_err(|e| Ending::failed(e.to_string()))?;
            output::line(&text);
        }
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
