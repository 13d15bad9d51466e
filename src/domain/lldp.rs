//! Reads what a switch says of itself on a cable: LLDP, parsed or raw (IEEE 802.1AB).

mod frame;
mod ids;
mod organization;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use frame::{Capabilities, Fault, Frame, Key, LONGEST, Management};
pub use ids::{Address, ChassisKind, Id, PortKind};
pub use organization::{Aggregation, Dot1, Dot3, MacPhy, Organizations, Power, ProtocolVlan};

use self::frame::Reader;
use super::text::neutralize_to;

/// So many TLVs of one interface are read: more than any number of frames that a ramdisk keeps.
const MOST_TLVS: usize = 4096;

/// What one neighbour says. Text is kept as sent, but for the NULs that some switches end it with: equality is strict
/// (V8). What was not sent is `None`, and so is what was sent empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Neighbour {
    pub system_name: Option<String>,
    /// A port name, an index, or a MAC with colons: switches differ.
    pub port_id: Option<String>,
    pub port_description: Option<String>,
    pub chassis_id: Option<String>,
    /// It said in two ways who it is; what it said so is `None` above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contradicts: bool,
    /// The VLAN of untagged frames, for whoever looks for the port. Decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Where the switch itself is reached. Decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub management: Vec<String>,
}

impl Neighbour {
    /// Whether this is exactly that port of that switch: the system name equals the switch's name, and the port's name
    /// equals the port ID or the port description, since switches differ in which of the two carries it (V8). Who contradicts
    /// itself is nobody.
    pub fn is(&self, switch: &str, port: &str) -> Option<MatchedBy> {
        if self.contradicts || self.system_name.as_deref() != Some(switch) {
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

    /// Whether this is a VLAN sub-interface of a port of the same switch (`swp14.665` of `swp14`), which leaves by the same
    /// cable.
    pub fn is_below(&self, whole: &Neighbour) -> bool {
        let names = || whole.port_id.iter().chain(&whole.port_description);
        self.system_name.is_some()
            && self.system_name == whole.system_name
            && names().any(|port| self.is_sub_interface_of(port))
    }

    fn is_sub_interface_of(&self, port: &str) -> bool {
        let sub = self.port_id.as_deref().and_then(|id| id.strip_prefix(port)?.strip_prefix('.'));
        sub.is_some_and(|vlan| !vlan.is_empty() && vlan.bytes().all(|b| b.is_ascii_digit()))
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
        self.system_name.is_none() && self.port_id.is_none() && self.port_description.is_none() && !self.contradicts
    }

    /// What tells one neighbour from another.
    fn identity(&self) -> [&Option<String>; 4] {
        [&self.system_name, &self.port_id, &self.port_description, &self.chassis_id]
    }

    /// Whether nothing that one of the two says of the port is said otherwise by the other. A chassis is spelled in too many
    /// ways to tell.
    fn agrees_with(&self, other: &Neighbour) -> bool {
        let both = self.identity().into_iter().zip(other.identity()).take(3);
        both.into_iter().all(|(a, b)| a.is_none() || b.is_none() || a == b)
    }

    /// Fields that are missing here, from the same neighbour read another way.
    fn or(mut self, other: &Neighbour) -> Neighbour {
        self.system_name = self.system_name.or_else(|| other.system_name.clone());
        self.port_id = self.port_id.or_else(|| other.port_id.clone());
        self.port_description = self.port_description.or_else(|| other.port_description.clone());
        self.chassis_id = self.chassis_id.or_else(|| other.chassis_id.clone());
        self.contradicts |= other.contradicts;
        self.vlan = self.vlan.or(other.vlan);
        if self.management.is_empty() {
            self.management = other.management.clone();
        }
        self
    }
}

/// Whether exactly that port was heard and nobody else: beside it only VLAN sub-interfaces of it, which leave by the same cable
/// (C-15). Beside a stranger it is no match: something on the way passes foreign frames, and nobody can tell which cable is
/// in.
pub fn is_only(heard: &[Neighbour], switch: &str, port: &str) -> bool {
    let is_right = |n: &Neighbour| n.is(switch, port).is_some();
    let is_sub = |n: &Neighbour| n.system_name.as_deref() == Some(switch) && n.is_sub_interface_of(port);
    heard.iter().any(is_right) && heard.iter().all(|n| is_right(n) || is_sub(n))
}

/// Which field carried the port's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchedBy {
    PortId,
    PortDescription,
}

impl From<Frame> for Neighbour {
    fn from(frame: Frame) -> Self {
        let shown = |id: &Id| id.to_string();
        Neighbour {
            contradicts: frame.contradicts_itself(),
            system_name: frame.system_name.as_ref().map(shown),
            port_id: frame.port.as_ref().map(|(_, id)| shown(id)),
            port_description: frame.port_description.as_ref().map(shown),
            chassis_id: frame.chassis.as_ref().map(|(_, id)| shown(id)),
            vlan: frame.organizations.dot1.port_vlan.filter(|vlan| *vlan != 0),
            management: frame.management.iter().map(|m| m.address.to_string()).collect(),
        }
    }
}

/// All neighbours that an interface heard, each once, in an order that does not depend on their arrival (C-15).
///
/// `parsed` is the inspector's own form, which holds one neighbour only: the first value to arrive of each kind. So the raw
/// TLVs decide where they are there, and the parsed form adds what it alone has. Where the two disagree, both were heard.
pub fn neighbours(parsed: &Value, raw: &Value) -> Vec<Neighbour> {
    let raw = decode(raw);
    match (parse(parsed), &raw[..]) {
        (Some(parsed), []) => vec![parsed],
        // What contradicts itself in the raw form is told by the parsed one as if it were clear.
        (Some(parsed), [one]) if one.agrees_with(&parsed) && !one.contradicts => vec![parsed.or(one)],
        (Some(parsed), [one]) if !one.contradicts => each_once(vec![parsed, one.clone()]),
        _ => raw,
    }
}

/// The inspector's parsed form: `switch_system_name`, `switch_port_id`, `switch_port_description`.
fn parse(parsed: &Value) -> Option<Neighbour> {
    let get = |key: &str| parsed[key].as_str().map(|t| t.trim_end_matches('\0')).filter(|t| !t.is_empty());
    let addresses = parsed["switch_mgmt_addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let neighbour = Neighbour {
        system_name: get("switch_system_name").map(str::to_owned),
        port_id: get("switch_port_id").map(str::to_owned),
        port_description: get("switch_port_description").map(str::to_owned),
        chassis_id: get("switch_chassis_id").map(str::to_owned),
        contradicts: false,
        vlan: parsed["switch_port_untagged_vlan_id"].as_u64().and_then(|id| id.try_into().ok()).filter(|id| *id != 0),
        management: addresses.iter().take(16).filter_map(|a| a.as_str().map(str::to_owned)).collect(),
    };
    (!neighbour.is_empty()).then_some(neighbour)
}

/// Raw TLVs, `[[type, hex], …]`, of one or more neighbours in a row: each one's list starts with its chassis ID and may
/// end with the end TLV. What cannot be decoded is left out. A sender that takes back its word is no neighbour.
fn decode(raw: &Value) -> Vec<Neighbour> {
    let mut found = Vec::new();
    let mut reader = Reader::default();
    let mut take = |reader: Reader| {
        let frame = reader.finish();
        if !frame.is_withdrawn() {
            found.push(Neighbour::from(frame));
        }
    };
    for tlv in raw.as_array().map_or(&[][..], Vec::as_slice).iter().take(MOST_TLVS) {
        let Some(kind) = tlv[0].as_u64().and_then(|kind| u8::try_from(kind).ok()).filter(|kind| *kind < 128) else {
            continue;
        };
        if kind == 0 || (kind == 1 && reader.has_begun()) {
            take(std::mem::take(&mut reader));
        }
        match tlv[1].as_str().map(bytes) {
            Some(Ok(value)) if kind != 0 => reader.take(kind, &value),
            Some(Ok(_)) | None => {}
            Some(Err(NoBytes)) => reader.spoil(kind),
        }
    }
    take(reader);
    found.retain(|neighbour| !neighbour.is_empty());
    each_once(found)
}

/// Each neighbour once. Two frames of one port of one chassis are one neighbour, as long as they don't contradict each other:
/// the first ones of a switch that starts lack what the later ones have (C-16).
fn each_once(mut found: Vec<Neighbour>) -> Vec<Neighbour> {
    // The fuller one of two first, so that the order of arrival decides nothing.
    found.sort_by(|a, b| b.cmp(a));
    let mut each: Vec<Neighbour> = Vec::new();
    for neighbour in found {
        let is_same = |known: &&mut Neighbour| {
            known.identity() == neighbour.identity()
                || (known.port_id.is_some()
                    && known.chassis_id.is_some()
                    && known.port_id == neighbour.port_id
                    && known.chassis_id == neighbour.chassis_id
                    && known.agrees_with(&neighbour))
        };
        match each.iter_mut().find(is_same) {
            Some(known) => *known = known.clone().or(&neighbour),
            None => each.push(neighbour),
        }
    }
    each.sort();
    each
}

/// Not an even number of hex digits, or more of them than a TLV holds.
struct NoBytes;

/// Hex digits, with or without separators. A TLV holds at most 511 bytes.
fn bytes(text: &str) -> Result<Vec<u8>, NoBytes> {
    let mut value = Vec::new();
    let mut high = None;
    for byte in text.bytes().filter(|b| !matches!(b, b':' | b'-' | b' ')) {
        let digit = (byte as char).to_digit(16).ok_or(NoBytes)? as u8;
        match high.take() {
            None => high = Some(digit),
            Some(_) if value.len() == LONGEST => return Err(NoBytes),
            Some(high) => value.push(high << 4 | digit),
        }
    }
    if high.is_some() { Err(NoBytes) } else { Ok(value) }
}

#[cfg(test)]
mod tests;
