//! Reads what a switch says of itself on a cable: LLDP, parsed or raw (IEEE 802.1AB).

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::text::neutralize_to;

/// What one neighbour says. Text is kept as sent, but for the NULs that some switches end it with: equality is strict
/// (V8). What was not sent is `None`, and so is what was sent empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Neighbour {
    pub system_name: Option<String>,
    /// A port name, an index, or a MAC with colons: switches differ.
    pub port_id: Option<String>,
    pub port_description: Option<String>,
    pub chassis_id: Option<String>,
}

impl Neighbour {
    /// Whether this is exactly that port of that switch: the system name equals the switch's name, and the port's name
    /// equals the port ID or the port description, since switches differ in which of the two carries it (V8).
    pub fn is(&self, switch: &str, port: &str) -> Option<MatchedBy> {
        if self.system_name.as_deref() != Some(switch) {
            return None;
        }
        if self.port_id.as_deref() == Some(port) {
            Some(MatchedBy::PortId)
        } else if self.port_description.as_deref() == Some(port) {
            Some(MatchedBy::PortDescription)
        } else {
            None
        }
    }

    /// `leaf-b07-1 swp14 (gpu-b07-37 eth0)`: safe to show. What was not sent is a question mark.
    pub fn shown(&self) -> String {
        let safe = |text: &Option<String>| text.as_deref().map_or_else(|| "?".to_owned(), |t| neutralize_to(t, 80));
        let mut out = format!("{} {}", safe(&self.system_name), safe(&self.port_id));
        if let Some(description) = self.port_description.as_ref().filter(|d| Some(*d) != self.port_id.as_ref()) {
            out.push_str(&format!(" ({})", neutralize_to(description, 80)));
        }
        out
    }

    fn is_empty(&self) -> bool {
        self.system_name.is_none() && self.port_id.is_none() && self.port_description.is_none()
    }

    /// Fields that are missing here, from the same neighbour read another way.
    fn or(mut self, other: &Neighbour) -> Neighbour {
        self.system_name = self.system_name.or_else(|| other.system_name.clone());
        self.port_id = self.port_id.or_else(|| other.port_id.clone());
        self.port_description = self.port_description.or_else(|| other.port_description.clone());
        self.chassis_id = self.chassis_id.or_else(|| other.chassis_id.clone());
        self
    }
}

/// Which field carried the port's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedBy {
    PortId,
    PortDescription,
}

/// All neighbours that an interface heard, each once, in an order that does not depend on their arrival (C-15).
///
/// `parsed` is the inspector's own form, which holds one neighbour only: the first to arrive. So it decides where the raw
/// TLVs are absent or tell of one neighbour, and the raw ones where they tell of several.
pub fn neighbours(parsed: &Value, raw: &Value) -> Vec<Neighbour> {
    let raw = decode(raw);
    match (parse(parsed), raw.len()) {
        (Some(parsed), 0) => vec![parsed],
        (Some(parsed), 1) => vec![parsed.or(&raw[0])],
        _ => raw,
    }
}

/// The inspector's parsed form: `switch_system_name`, `switch_port_id`, `switch_port_description`.
fn parse(parsed: &Value) -> Option<Neighbour> {
    let get = |key: &str| parsed[key].as_str().map(|t| t.trim_end_matches('\0')).filter(|t| !t.is_empty());
    let neighbour = Neighbour {
        system_name: get("switch_system_name").map(str::to_owned),
        port_id: get("switch_port_id").map(str::to_owned),
        port_description: get("switch_port_description").map(str::to_owned),
        chassis_id: get("switch_chassis_id").map(str::to_owned),
    };
    (!neighbour.is_empty()).then_some(neighbour)
}

/// Raw TLVs, `[[type, hex], …]`, of one or more neighbours in a row: each one's list starts with its chassis ID and may
/// end with the end TLV. What cannot be decoded is left out.
fn decode(raw: &Value) -> Vec<Neighbour> {
    let mut found = BTreeSet::new();
    let mut current = Neighbour::default();
    for tlv in raw.as_array().map_or(&[][..], Vec::as_slice) {
        let Some(kind) = tlv[0].as_u64() else { continue };
        if (kind == 0 || (kind == 1 && current.chassis_id.is_some())) && !current.is_empty() {
            found.insert(std::mem::take(&mut current));
        }
        let Some(value) = tlv[1].as_str().and_then(bytes) else { continue };
        match kind {
            1 => current.chassis_id = chassis(&value),
            2 => current.port_id = port(&value),
            4 => current.port_description = text(&value),
            5 => current.system_name = text(&value),
            _ => {}
        }
    }
    if !current.is_empty() {
        found.insert(current);
    }
    found.into_iter().collect()
}

/// Subtypes of a chassis ID: 4 is a MAC, 5 a network address, the others text.
fn chassis(value: &[u8]) -> Option<String> {
    let (subtype, rest) = value.split_first()?;
    match subtype {
        4 => Some(mac(rest)),
        5 => address(rest),
        _ => text(rest),
    }
}

/// Subtypes of a port ID: 3 is a MAC, 4 a network address; names, aliases and local ids are text.
fn port(value: &[u8]) -> Option<String> {
    let (subtype, rest) = value.split_first()?;
    match subtype {
        3 => Some(mac(rest)),
        4 => address(rest),
        _ => text(rest),
    }
}

fn text(value: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(value) {
        Ok(text) => text.trim_end_matches('\0').to_owned(),
        // No name at all: shown as what it is.
        Err(_) => format!("0x{}", hex(value, "")),
    };
    (!text.is_empty()).then_some(text)
}

fn mac(value: &[u8]) -> String {
    hex(value, ":")
}

fn address(value: &[u8]) -> Option<String> {
    match value {
        [1, rest @ ..] => Some(Ipv4Addr::from(<[u8; 4]>::try_from(rest).ok()?).to_string()),
        [2, rest @ ..] => Some(Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?).to_string()),
        _ => text(value),
    }
}

fn hex(value: &[u8], separator: &str) -> String {
    value.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(separator)
}

/// Hex digits, with or without separators. A TLV holds at most 511 bytes.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|b| !matches!(b, b':' | b'-' | b' ')).take(2048).collect();
    if digits.len() % 2 == 1 {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| {
            let digit = |b: u8| (b as char).to_digit(16);
            Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn neighbour(system: &str, port: &str, description: &str) -> (Option<String>, Option<String>, Option<String>) {
        let some = |t: &str| (!t.is_empty()).then(|| t.to_owned());
        (some(system), some(port), some(description))
    }

    fn read(parsed: Value, raw: Value) -> Vec<(Option<String>, Option<String>, Option<String>)> {
        neighbours(&parsed, &raw).into_iter().map(|n| (n.system_name, n.port_id, n.port_description)).collect()
    }

    /// Proves: V11
    #[test]
    fn raw_tlvs_of_a_real_inventory_read_like_the_parsed_form() {
        let body: Value = serde_json::from_str(include_str!("../../tests/fixtures/ironic/114-inventory.json")).unwrap();
        let body = &body["response"]["body"];
        for interface in ["eth0", "eth1"] {
            let parsed = read(body["plugin_data"]["parsed_lldp"][interface].clone(), Value::Null);
            let raw = read(Value::Null, body["plugin_data"]["lldp_raw"][interface].clone());
            assert_eq!(parsed, raw, "{interface}");
        }
        let raw = read(Value::Null, body["inventory"]["interfaces"][0]["lldp"].clone());
        assert_eq!(raw, [neighbour("leaf-1a", "swp1", "rack1-u01 eth0")]);
    }

    /// Case: C-10. Proves: V11
    #[test]
    fn a_mac_as_port_id_is_written_as_a_mac() {
        let raw = json!([
            [1, "04fcbd67000f90"],
            [2, "03fcbd67000f90"],
            [3, "0078"],
            [4, "45746865726e65743332"],
            [5, "6c6561662d6230372d31"]
        ]);
        assert_eq!(read(Value::Null, raw), [neighbour("leaf-b07-1", "fc:bd:67:00:0f:90", "Ethernet32")]);
    }

    /// Case: C-15. Proves: V8, V11
    #[test]
    fn two_neighbours_are_both_read_in_any_order_even_beside_the_parsed_form_of_one() {
        let one = [json!([1, "04443839000001"]), json!([2, "057377703134"]), json!([5, "6c6561662d6230372d31"])];
        let two = [json!([1, "04443839000002"]), json!([2, "0573777039"]), json!([5, "6d676d742d73772d33"])];
        let end = [json!([0, ""])];
        let both = [neighbour("leaf-b07-1", "swp14", ""), neighbour("mgmt-sw-3", "swp9", "")];
        let parsed = json!({"switch_system_name": "mgmt-sw-3", "switch_port_id": "swp9"});
        for raw in [
            [&one[..], &two[..]].concat(),
            [&two[..], &one[..]].concat(),
            [&one[..], &end[..], &two[..], &end[..]].concat(),
            [&two[..], &one[..], &two[..]].concat(),
        ] {
            assert_eq!(read(Value::Null, json!(raw)), both);
            assert_eq!(read(parsed.clone(), json!(raw)), both);
        }
    }

    /// Case: C-09. Proves: V11
    #[test]
    fn nothing_heard_and_nonsense_are_no_neighbours_and_no_panic() {
        for raw in [
            Value::Null,
            json!([]),
            json!({}),
            json!("x"),
            json!([[1], [2, 5], ["a", "b"], 7, [2, "0"], [2, "zz"], [2, ""], [5, "00"]]),
            json!([[0, ""], [0, ""]]),
        ] {
            assert!(read(Value::Null, raw.clone()).is_empty(), "{raw}");
            assert!(read(json!({"switch_port_id": "", "switch_system_name": null}), raw).is_empty());
        }
    }

    proptest::proptest! {
        /// Proves: V11, Z3
        #[test]
        fn no_sequence_of_tlvs_panics_and_two_neighbours_swap_places_unnoticed(
            a in proptest::collection::vec((2u64..130, "[0-9a-f]{0,12}"), 0..6),
            b in proptest::collection::vec((2u64..130, "\\PC{0,8}"), 0..6),
        ) {
            let list = |chassis: &str, tlvs: &[(u64, String)]| -> Vec<Value> {
                [json!([1, chassis])].into_iter().chain(tlvs.iter().map(|(k, v)| json!([k, v]))).collect()
            };
            let (a, b) = (list("040200000000aa", &a), list("040200000000bb", &b));
            let one = neighbours(&Value::Null, &json!([&a[..], &b[..]].concat()));
            let other = neighbours(&Value::Null, &json!([&b[..], &a[..]].concat()));
            proptest::prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn every_subtype_has_a_readable_form() {
        for (hex, shown) in [
            ("0573777031", "swp1"),
            ("0773777031", "swp1"),
            ("01737770310000", "swp1"),
            ("0401c0000201", "192.0.2.1"),
            ("040220010db8000000000000000000000001", "2001:db8::1"),
            ("05ff00fe", "0xff00fe"),
            ("07353130", "510"),
        ] {
            assert_eq!(port(&bytes(hex).unwrap()).as_deref(), Some(shown), "{hex}");
        }
    }

    /// Proves: V8
    #[test]
    fn only_the_whole_name_in_one_of_the_two_fields_matches() {
        let n = |system: &str, port: &str, description: &str| {
            parse(
                &json!({"switch_system_name": system, "switch_port_id": port, "switch_port_description": description}),
            )
            .unwrap()
        };
        assert_eq!(n("leaf", "swp14", "x").is("leaf", "swp14"), Some(MatchedBy::PortId));
        assert_eq!(n("leaf", "510", "swp14").is("leaf", "swp14"), Some(MatchedBy::PortDescription));
        for other in
            [n("leaf", "swp140", "to swp14"), n("Leaf", "swp14", ""), n("", "swp14", ""), n("leaf", "swp14 ", "")]
        {
            assert_eq!(other.is("leaf", "swp14"), None, "{other:?}");
        }
    }

    #[test]
    fn what_is_shown_is_safe_and_names_both_fields() {
        let n = Neighbour {
            system_name: Some("le\u{1b}[1maf".into()),
            port_id: Some("510".into()),
            port_description: Some("xe-0/0/19".into()),
            chassis_id: None,
        };
        assert_eq!(n.shown(), "le\u{fffd}[1maf 510 (xe-0/0/19)");
        assert_eq!(Neighbour { port_id: Some("a".into()), ..Default::default() }.shown(), "? a");
    }
}
