//! Reads out of an event what is to be read again, gathers that, and passes it on.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Reader;
use crate::clients::netbox::NetBox;

/// Events that come close together are passed on together: an import makes hundreds.
const TOGETHER: Duration = Duration::from_millis(150);
/// Between two full reads that events ask for.
const BETWEEN_SYNCS: Duration = Duration::from_secs(60);
/// Ids beyond this are no list of changes any more but a reason to read everything.
const IDS_MAX: usize = 20_000;

/// What is to be read again. Ids are NetBox's, and nothing else of an event is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Again {
    pub devices: BTreeSet<u64>,
    /// Interfaces whose device is to be read again.
    pub interfaces: BTreeSet<u64>,
    /// Whatever changed lately: what changed is not known, or not by id.
    pub delta: bool,
    /// Everything: something changed that many devices may point at.
    pub everything: bool,
}

impl Again {
    pub fn delta() -> Self {
        Again { delta: true, ..Again::default() }
    }

    pub fn everything() -> Self {
        Again { everything: true, ..Again::default() }
    }

    /// Of a body that NetBox's webhook sends: `object_type`, `data`, `snapshots`. `None`: it is none of these.
    pub fn of_event(body: &[u8]) -> Option<Again> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let object_type = body.get("object_type").or_else(|| body.get("model"))?.as_str()?;
        // Before NetBox 4.3 the model stands there without its application.
        let model = object_type.rsplit('.').next().unwrap_or(object_type);
        let data = body.get("data")?;
        let sides = [&body["snapshots"]["prechange"], &body["snapshots"]["postchange"]];
        let mut again = Again::default();
        match model {
            "device" => again.devices.extend(data["id"].as_u64()),
            "interface" => {
                again.devices.extend(data["device"]["id"].as_u64());
                // The device that it leaves stands in the former state only.
                again.devices.extend(sides.iter().filter_map(|side| side["device"].as_u64()));
            }
            "ipaddress" | "macaddress" => {
                again.devices.extend(data["assigned_object"]["device"]["id"].as_u64());
                // Whether these are interfaces of devices says a number that only NetBox knows: another interface of
                // that id costs a read and does no harm.
                again.interfaces.extend(sides.iter().filter_map(|side| side["assigned_object_id"].as_u64()));
            }
            "cable" => {
                let ends = ["a_terminations", "b_terminations"].into_iter().filter_map(|end| data[end].as_array());
                again.devices.extend(ends.flatten().filter_map(|end| end["object"]["device"]["id"].as_u64()));
                again.delta = true;
            }
            "site" | "location" | "rack" | "devicetype" | "devicerole" | "manufacturer" | "tenant" | "tag"
            | "configcontext" => again.everything = true,
            // Of no meaning here: NetBox was told to send too much.
            _ => return Some(again),
        }
        Some(again.or_delta())
    }

    /// Of a payload of the trigger: `{"t": table, "op": …, "id": …, "d": [devices], "i": [interfaces]}`. `None`: it is none.
    pub fn of_notification(payload: &str) -> Option<Again> {
        let payload: Value = serde_json::from_str(payload).ok()?;
        let table = payload["t"].as_str()?;
        let ids = |key: &str| payload[key].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let mut again = Again { devices: ids("d").collect(), interfaces: ids("i").collect(), ..Again::default() };
        match table {
            "dcim_device" | "dcim_interface" | "ipam_ipaddress" | "dcim_macaddress" => {}
            "dcim_cable" | "dcim_cabletermination" => again.delta = true,
            _ => again.everything = true,
        }
        Some(again.or_delta())
    }

    /// Something changed, and it is not known what belongs to it.
    fn or_delta(mut self) -> Self {
        self.delta |= self.devices.is_empty() && self.interfaces.is_empty() && !self.everything;
        self
    }

    fn merge(&mut self, other: Again) {
        self.devices.extend(other.devices);
        self.interfaces.extend(other.interfaces);
        self.delta |= other.delta;
        self.everything |= other.everything;
        if self.devices.len() + self.interfaces.len() > IDS_MAX {
            *self = Again::everything();
        }
    }

    fn is_nothing(&self) -> bool {
        *self == Again::default()
    }
}

/// Gathers what the sources say. Never full and never waiting: it holds ids, each once.
#[derive(Default)]
pub struct Sink {
    gathered: Mutex<Again>,
    something: Notify,
}

impl Sink {
    pub fn take(&self, again: Again) {
        if again.is_nothing() {
            return;
        }
        self.locked().merge(again);
        self.something.notify_one();
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Again> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on until cancelled.
    pub(super) async fn pass_on(&self, netbox: &NetBox, reader: &dyn Reader, cancel: &CancellationToken) {
        let mut sync_at = Instant::now();
        let mut sync_wanted = false;
        loop {
            tokio::select! {
                () = cancel.cancelled() => return,
                () = self.something.notified() => tokio::time::sleep(TOGETHER).await,
                () = tokio::time::sleep_until(sync_at), if sync_wanted => {}
            }
            let again = std::mem::take(&mut *self.locked());
            tracing::debug!(
                devices = again.devices.len(),
                interfaces = again.interfaces.len(),
                delta = again.delta,
                everything = again.everything,
                "NetBox says that something changed"
            );
            let (mut devices, mut delta) = (again.devices, again.delta);
            if !again.interfaces.is_empty() {
                let ids: Vec<u64> = again.interfaces.into_iter().collect();
                tokio::select! {
                    () = cancel.cancelled() => return,
                    owners = netbox.devices_of_interfaces(&ids) => match owners {
                        Ok(owners) => devices.extend(owners),
                        Err(error) => {
                            tracing::warn!(%error, "the devices of changed interfaces could not be read");
                            delta = true;
                        }
                    },
                }
            }
            if !devices.is_empty() {
                reader.requeue(devices.into_iter().collect());
            }
            if delta {
                reader.delta_soon();
            }
            sync_wanted |= again.everything;
            if sync_wanted && Instant::now() >= sync_at {
                reader.sync_soon();
                (sync_wanted, sync_at) = (false, Instant::now() + BETWEEN_SYNCS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(event: Value) -> Option<(Vec<u64>, Vec<u64>, bool, bool)> {
        let again = Again::of_event(event.to_string().as_bytes())?;
        let list = |ids: BTreeSet<u64>| ids.into_iter().collect();
        Some((list(again.devices), list(again.interfaces), again.delta, again.everything))
    }

    /// Proves: O9
    #[test]
    fn an_event_names_the_devices_that_it_is_about_and_those_that_something_left() {
        let device = json!({"object_type": "dcim.device", "event": "deleted", "data": {"id": 7, "name": "lies"}});
        assert_eq!(of(device), Some((vec![7], vec![], false, false)));
        let before_4_3 = json!({"model": "device", "event": "created", "data": {"id": 8}});
        assert_eq!(of(before_4_3), Some((vec![8], vec![], false, false)));
        let moved = json!({
            "object_type": "dcim.interface", "data": {"id": 70, "device": {"id": 8}},
            "snapshots": {"prechange": {"device": 7}, "postchange": {"device": 8}},
        });
        assert_eq!(of(moved), Some((vec![7, 8], vec![], false, false)));
        let address = json!({
            "object_type": "ipam.ipaddress", "data": {"id": 1, "assigned_object": {"id": 71, "device": {"id": 9}}},
            "snapshots": {"prechange": {"assigned_object_id": 70}, "postchange": {"assigned_object_id": 71}},
        });
        assert_eq!(of(address), Some((vec![9], vec![70, 71], false, false)));
        let of_nothing = json!({"object_type": "dcim.macaddress", "data": {"id": 1, "assigned_object": null},
                                "snapshots": {"prechange": null, "postchange": {"assigned_object_id": null}}});
        assert_eq!(of(of_nothing), Some((vec![], vec![], true, false)));
        let cable = json!({"object_type": "dcim.cable", "data": {"id": 3,
            "a_terminations": [{"object": {"device": {"id": 1}}}], "b_terminations": [{"object": {"device": {"id": 2}}}]}});
        assert_eq!(of(cable), Some((vec![1, 2], vec![], true, false)));
        let rack = json!({"object_type": "dcim.rack", "data": {"id": 3}});
        assert_eq!(of(rack), Some((vec![], vec![], false, true)));
        let of_no_meaning = json!({"object_type": "circuits.circuit", "data": {"id": 3}});
        assert_eq!(of(of_no_meaning), Some((vec![], vec![], false, false)));
    }

    #[test]
    fn what_is_no_event_or_has_odd_types_in_it_is_told_from_one() {
        for body in [&b"{"[..], b"[]", b"null", b"{\"object_type\": 7}", b"{\"object_type\": \"dcim.device\"}"] {
            assert_eq!(Again::of_event(body), None, "{}", String::from_utf8_lossy(body));
        }
        let odd = json!({"object_type": "dcim.device", "data": {"id": "7; DROP"}});
        assert_eq!(of(odd), Some((vec![], vec![], true, false)), "something changed, and it is not known what");
        let odd = json!({"object_type": "dcim.interface", "data": {"device": [1]}, "snapshots": 4});
        assert_eq!(of(odd), Some((vec![], vec![], true, false)));
    }

    /// Proves: O9
    #[test]
    fn a_notification_names_devices_and_interfaces() {
        let of = |payload: &str| Again::of_notification(payload);
        let again = of(r#"{"t":"dcim_interface","op":"u","id":70,"d":[7,8],"i":[]}"#).unwrap();
        assert_eq!((again.devices, again.delta), (BTreeSet::from([7, 8]), false));
        let again = of(r#"{"t":"ipam_ipaddress","op":"u","id":1,"d":[],"i":[70,71]}"#).unwrap();
        assert_eq!((again.interfaces, again.delta), (BTreeSet::from([70, 71]), false));
        assert!(of(r#"{"t":"dcim_cable","op":"u","id":1,"d":[],"i":[]}"#).unwrap().delta);
        assert!(of(r#"{"t":"extras_tag","op":"d","id":1,"d":[],"i":[]}"#).unwrap().everything);
        assert_eq!((of("7"), of("{}"), of("anything")), (None, None, None));
    }

    #[test]
    fn more_ids_than_a_list_of_changes_has_become_a_full_read() {
        let sink = Sink::default();
        let many = |from: u64| Again { devices: (from..from + 15_000).collect(), ..Again::default() };
        sink.take(many(0));
        sink.take(many(10));
        assert_eq!(sink.locked().devices.len(), 15_010);
        sink.take(many(100_000));
        assert_eq!(*sink.locked(), Again::everything());
    }
}
