//! Computes the platform class and records it where NetBox has none (P2–P11). The resource class is not touched (P13).

use serde_json::Value;

use super::NETBOX;
use crate::activities::env::ActivityCx;
use crate::activities::facts::{Depth, find};
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::records::{DeviceRecord, text_field};
use crate::clients::netbox::{NetBox, Versioned};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::domain::platform_class::{Inputs, Settled, Unresolvable, compute, settle};
use crate::domain::text::{neutralize, neutralize_to};
use crate::workflows::defs::{PlatformClassOut, Target};

const PHASE: Phase = Phase::PlatformClass;

/// Records the platform class. A rerun on an unchanged host writes nothing (P10).
pub async fn platform_class(cx: &ActivityCx, target: Target) -> Result<PlatformClassOut, Failure> {
    let netbox = &cx.env.clients.netbox;
    let fields = &cx.env.settings.netbox.fields;
    let field = fields.platform_class.as_str();
    let failed = |error: NetBoxError| netbox.failure(&error, PHASE);

    let mut found = find(cx, &target, PHASE, Depth::WithContext).await?;
    let (device_type, role) =
        futures::try_join!(netbox.device_type(found.record.device_type.id), netbox.role(found.record.role.id))
            .map_err(failed)?;
    let computed = compute(&Inputs {
        device_class: text_field(&role.custom_fields, &fields.device_class),
        gpu_type: text_field(&device_type.custom_fields, &fields.gpu_type),
        manufacturer: &device_type.manufacturer.name,
        model: &device_type.model,
        ztp: found.record.config_context.as_ref().and_then(|context| context.get("ztp")),
    })
    .map_err(|why| unresolvable(&target, why))?;

    let mut wrote_netbox = false;
    let mut settled = settled(&target, &found.record, field, &computed)?;
    if settled == Settled::Write {
        match netbox.set_custom_field(found.record.id, field, &computed, found.etag.as_deref()).await {
            Ok(()) => wrote_netbox = true,
            // Somebody else changed the device; once more from what stands there now, which is never overwritten (P9).
            Err(NetBoxError::Conflict { .. }) => {
                found = find(cx, &target, PHASE, Depth::Plain).await?;
                settled = self::settled(&target, &found.record, field, &computed)?;
                if settled == Settled::Write {
                    netbox
                        .set_custom_field(found.record.id, field, &computed, found.etag.as_deref())
                        .await
                        .map_err(|error| record_failed(netbox, field, &target, &error))?;
                    wrote_netbox = true;
                }
            }
            Err(error) => return Err(record_failed(netbox, field, &target, &error)),
        }
    }
    if wrote_netbox {
        cx.wrote(NETBOX, &target.host, field, "", &computed);
        let Versioned { record, .. } = netbox.device_plain(found.record.id).await.map_err(failed)?;
        if text_field(&record.custom_fields, field) != Some(computed.as_str()) {
            return Err(failure_of_record(
                field,
                &target,
                format!("it was written as '{computed}' and does not read back"),
            ));
        }
    }

    let (effective, warning) = match settled {
        Settled::Write | Settled::Equal => (computed.clone(), None),
        Settled::Kept(kept) => {
            let warning = format!(
                "NetBox has {field} '{}' for '{}', the computed one is '{computed}'; NetBox's is kept",
                neutralize(&kept),
                target.host
            );
            tracing::warn!(host = target.host, kept, computed, "a divergent platform class is kept");
            (kept, Some(warning))
        }
    };
    let wrote_store = cx.env.store.set_platform_class(found.record.id, &effective).await.map_err(|error| {
        let mut failure = failure_of_record(field, &target, format!("muster's own store does not take it: {error}"));
        failure.action = format!(
            "do what the message says about muster's own store, then retry; '{field}' in NetBox is right already"
        );
        failure
    })?;
    if wrote_store {
        cx.wrote("store", &target.host, "platform_class", "", neutralize(&effective));
    }
    Ok(PlatformClassOut { effective, computed, wrote_netbox, wrote_store, warning })
}

fn settled(target: &Target, device: &DeviceRecord, field: &str, computed: &str) -> Result<Settled, Failure> {
    let recorded = match device.custom_fields.get(field) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(other) => {
            let shown = neutralize_to(&other.to_string(), 60);
            let why = format!("NetBox holds '{shown}' there, which is no text");
            return Err(failure_of_record(field, target, why).final_now());
        }
    };
    settle(recorded, computed).map_err(|why| unresolvable(target, why))
}

fn unresolvable(target: &Target, why: Unresolvable) -> Failure {
    let message = format!("no platform class for '{}': {}", target.host, why.message);
    Failure::new(FailureCode::PlatformClassUnresolvable, PHASE, message, why.action)
}

/// P11. The custom field is to blame only where NetBox itself objects to the write.
fn record_failed(netbox: &NetBox, field: &str, target: &Target, error: &NetBoxError) -> Failure {
    let mut failure = failure_of_record(field, target, error.to_string());
    if !matches!(error, NetBoxError::Invalid { .. } | NetBoxError::Permission { .. }) {
        let action = netbox.failure(error, PHASE).action;
        failure.action = format!("{action}; the custom field '{field}' is still to be written");
    }
    failure
}

fn failure_of_record(field: &str, target: &Target, why: String) -> Failure {
    Failure::new(
        FailureCode::PlatformClassRecordFailed,
        PHASE,
        format!("the platform class of '{}' could not be recorded: {why}", target.host),
        format!("check that this NetBox has the text custom field '{field}' for devices and lets the token write it"),
    )
}
