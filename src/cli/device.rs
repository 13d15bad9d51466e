//! `muster inventory show`: a device with its interfaces and where their cables go, for people and for scripts.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::Wiring;
use crate::domain::device::Device;
use crate::domain::text::neutralize;
use crate::domain::wiring::{FarEnd, FirmwareRule, WiredInterface};

/// The device as the contract of `inventory show --json` has it. `stale`: why NetBox could not be asked now.
pub fn object(device: &Device, wiring: &Wiring, stale: Option<&str>) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(device)?;
    if let Value::Object(map) = &mut value {
        map.insert("interfaces".into(), json!(wiring.interfaces));
        let policy = wiring.firmware.as_ref();
        map.insert("firmware_policy".into(), json!(policy.map(|policy| &policy.rules)));
        map.insert(
            "firmware_problems".into(),
            json!(policy.map(|policy| &policy.problems).into_iter().flatten().collect::<Vec<_>>()),
        );
        map.insert("rack_units".into(), json!(wiring.rack.as_ref().and_then(|rack| rack.u_height)));
        map.insert("stale".into(), json!(stale));
    }
    Ok(value)
}

/// The same in lines.
pub fn lines(device: &Device, wiring: &Wiring, stale: Option<&str>, now: Timestamp) -> Vec<String> {
    let mut lines = vec![format!("{}  {}", device.name, place(device, wiring))];
    let class = device.device_class.as_ref().map_or(String::new(), |class| format!(" ({class})"));
    let mut facts = vec![device.status.clone(), format!("{}{class}", device.role)];
    facts.push(format!("{} {}", device.manufacturer, device.model));
    facts.extend(device.serial.as_ref().map(|serial| format!("serial {serial}")));
    facts.extend(device.asset_tag.as_ref().map(|tag| format!("asset tag {tag}")));
    lines.push(fact("NetBox", &facts.join(" · ")));
    lines.extend(device.oob_ip.as_ref().map(|ip| fact("out of band", ip)));
    lines.extend(device.platform_class.as_ref().map(|class| fact("platform", class)));
    if !device.tags.is_empty() {
        lines.push(fact("tags", &device.tags.join(", ")));
    }
    if let Some(policy) = &wiring.firmware {
        let rules: Vec<String> = policy.rules.iter().map(|(component, r)| format!("{component} {}", rule(r))).collect();
        if !rules.is_empty() {
            lines.push(fact("firmware", &rules.join(" · ")));
        }
        lines.extend(policy.problems.iter().map(|problem| fact("firmware", problem)));
    }
    let age = |at: Timestamp| format!("{} s ago", now.duration_since(at).as_secs().max(0));
    let oldest = wiring.interfaces.iter().map(|interface| interface.as_of).min();
    let wired = oldest.map_or(String::new(), |at| format!(" · interfaces {}", age(at)));
    lines.push(fact("read", &format!("{}{wired}", age(device.read_at))));
    lines.extend(stale.map(|why| fact("not fresh", why)));
    lines.push(String::new());
    lines.extend(table(&wiring.interfaces));
    lines.into_iter().map(|line| neutralize(line.trim_end()).into_owned()).collect()
}

fn fact(name: &str, text: &str) -> String {
    format!("  {name:<12} {text}")
}

fn place(device: &Device, wiring: &Wiring) -> String {
    let unit = device.position.map(|u| format!("U{u}"));
    let of = wiring.rack.as_ref().and_then(|rack| rack.u_height).map(|units| format!("of {units}"));
    let parts = [Some(device.site.clone()), device.location.clone(), device.rack.clone(), unit, of];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn rule(rule: &FirmwareRule) -> String {
    let min = rule.min.as_ref().map(|min| format!("at least {min}"));
    let allow = (!rule.allow.is_empty()).then(|| rule.allow.join(" or "));
    let parts: Vec<String> = min.into_iter().chain(allow).collect();
    if parts.is_empty() { "any".to_owned() } else { parts.join(", ") }
}

fn table(interfaces: &[WiredInterface]) -> Vec<String> {
    if interfaces.is_empty() {
        return vec!["  no interface is known".to_owned()];
    }
    let head = ["interface", "mac", "addresses", "cable", "goes to"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(interfaces.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row
                .iter()
                .zip(widths.iter().chain(&[0]))
                .map(|(cell, width)| format!("{cell:<width$}", width = *width));
            format!("  {}", cells.collect::<Vec<_>>().join("  "))
        })
        .collect()
}

fn row(interface: &WiredInterface) -> [String; 5] {
    let or_dash = |list: &[String]| if list.is_empty() { "-".to_owned() } else { list.join(" ") };
    let lag = interface.lag.as_ref().map_or(String::new(), |lag| format!(" in {lag}"));
    let (label, goes) = match &interface.cable {
        None => ("-".to_owned(), "-".to_owned()),
        Some(cable) => {
            let through = cable.through.iter().map(|end| format!(" through {}", end_text(end)));
            let far = cable.far.iter().map(end_text).collect::<Vec<_>>().join(" + ");
            let far = if far.is_empty() { "nothing".to_owned() } else { far };
            let label = cable.label.clone().unwrap_or_else(|| format!("#{}", cable.netbox_id));
            (label, format!("{far}{}", through.collect::<String>()))
        }
    };
    [format!("{}{lag}", interface.name), or_dash(&interface.macs), or_dash(&interface.addresses), label, goes]
}

fn end_text(end: &FarEnd) -> String {
    let lag = end.lag.as_ref().map_or(String::new(), |lag| format!(" in {lag}"));
    let parts = [end.device.as_deref(), end.interface.as_deref()];
    format!("{}{lag}", parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}
