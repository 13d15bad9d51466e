//! A fleet of any size: twenty hosts a rack, fifty racks a hall, ten halls a site.

use muster::domain::device::Device;
use muster::tui::model::host::Host;
use serde_json::json;

pub fn device(n: usize) -> Device {
    let (rack, hall, site) = (n / 20, n / 1_000, n / 10_000);
    serde_json::from_value(json!({
        "netbox_id": n + 1, "name": format!("gpu-{rack:04}-{:02}", n % 20 + 1), "site": format!("site{site:02}"),
        "location": format!("hall {hall:03}"), "rack": format!("R{rack:04}"), "position": (n % 20 + 1) * 2, "face": "front",
        "u_height": 2.0, "status": if n.is_multiple_of(9) { "staged" } else { "active" }, "role": "GPU compute",
        "device_class": "COMPUTE_GPU", "manufacturer": "Supermicro", "model": "SYS-222GE-NB",
        "serial": format!("S{n:08}"), "asset_tag": format!("A{n:08}"), "tags": ["ironic", "burn-in"],
        "oob_ip": format!("10.{}.{}.{}", n / 65_536, n / 256 % 256, n % 256),
        "custom_fields": {"platform_class": "B200_SUPERMICROSYS222GENB_IB_01", "owner": "infra"},
        "last_updated": "2026-11-01T10:00:00Z", "read_at": "2026-11-30T06:00:00Z",
    }))
    .unwrap()
}

pub fn host(device: Device) -> Host {
    Host::of(&device)
}
