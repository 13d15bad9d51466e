//! The TLVs that IEEE 802.1 and 802.3 define themselves: VLANs, link aggregation, what a port can do.

use std::collections::BTreeSet;

use super::frame::{Fault, Key, Once};
use super::ids::Id;

const DOT1: [u8; 3] = [0x00, 0x80, 0xc2];
const DOT3: [u8; 3] = [0x00, 0x12, 0x0f];

/// Of IEEE 802.1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dot1 {
    /// The VLAN of untagged frames; 0: none.
    pub port_vlan: Option<u16>,
    pub protocol_vlans: BTreeSet<ProtocolVlan>,
    /// VLANs by number, with their names.
    pub vlan_names: BTreeSet<(u16, Option<Id>)>,
    /// What each protocol's frames begin with.
    pub protocols: BTreeSet<Vec<u8>>,
    pub vid_digest: Option<u32>,
    pub management_vlan: Option<u16>,
    pub aggregation: Option<Aggregation>,
}

/// A VLAN that a protocol's frames go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVlan {
    pub supported: bool,
    pub enabled: bool,
    pub vlan: u16,
}

/// Whether the port is in a LAG, and the LAG's number there. Moved from 802.3 to 802.1; both are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregation {
    pub capable: bool,
    pub enabled: bool,
    pub port: u32,
}

/// Of IEEE 802.3.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dot3 {
    pub mac_phy: Option<MacPhy>,
    pub power: Option<Power>,
    /// The older place of the same.
    pub aggregation: Option<Aggregation>,
    /// Octets of the longest frame.
    pub max_frame: Option<u16>,
}

/// Speed and duplex: what is negotiated, offered and in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacPhy {
    pub negotiates: bool,
    pub negotiation_enabled: bool,
    /// Bits of ifMauAutoNegCapAdvertisedBits.
    pub advertised: u16,
    /// Number of dot3MauType.
    pub mau: u16,
}

/// Power over the cable. Nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    pub support: u8,
    pub pair: u8,
    pub class: u8,
    /// Type, source and priority; tenths of a watt asked for and given.
    pub wanted: Option<(u8, u16, u16)>,
}

/// What all organizations said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Organizations {
    pub dot1: Dot1,
    pub dot3: Dot3,
    /// Those that are not read: OUI and subtype.
    pub others: BTreeSet<([u8; 3], u8)>,
}

impl Organizations {
    /// Takes the value of a TLV of type 127.
    pub(super) fn take(&mut self, value: &[u8], once: &mut Once) {
        let [a, b, c, subtype, rest @ ..] = value else {
            once.faults.insert(Fault::Length(Key::Kind(127)));
            return;
        };
        let (oui, subtype) = ([*a, *b, *c], *subtype);
        let key = Key::Organization(oui, subtype);
        let read = match oui {
            DOT1 => self.dot1.take(subtype, rest, key, once),
            DOT3 => self.dot3.take(subtype, rest, key, once),
            _ => Read::NotKnown,
        };
        match read {
            Read::Done => {}
            Read::WrongLength => {
                once.faults.insert(Fault::Length(key));
            }
            Read::NotKnown => {
                self.others.insert((oui, subtype));
            }
        }
    }
}

enum Read {
    Done,
    WrongLength,
    NotKnown,
}

impl Dot1 {
    fn take(&mut self, subtype: u8, value: &[u8], key: Key, once: &mut Once) -> Read {
        match (subtype, value) {
            (1, [a, b]) => once.set(&mut self.port_vlan, key, u16::from_be_bytes([*a, *b])),
            (2, [flags, a, b]) => {
                let vlan = u16::from_be_bytes([*a, *b]);
                self.protocol_vlans.insert(ProtocolVlan { supported: flags & 2 != 0, enabled: flags & 4 != 0, vlan });
            }
            (3, [a, b, length, name @ ..]) if name.len() == usize::from(*length) && name.len() <= 32 => {
                self.vlan_names.insert((u16::from_be_bytes([*a, *b]), Id::text(name)));
            }
            (4, [length, protocol @ ..]) if protocol.len() == usize::from(*length) => {
                self.protocols.insert(protocol.to_vec());
            }
            (5, [a, b, c, d]) => once.set(&mut self.vid_digest, key, u32::from_be_bytes([*a, *b, *c, *d])),
            (6, [a, b]) => once.set(&mut self.management_vlan, key, u16::from_be_bytes([*a, *b])),
            (7, value) => match Aggregation::read(value) {
                Some(read) => once.set(&mut self.aggregation, key, read),
                None => return Read::WrongLength,
            },
            (1..=6, _) => return Read::WrongLength,
            _ => return Read::NotKnown,
        }
        Read::Done
    }
}

impl Dot3 {
    fn take(&mut self, subtype: u8, value: &[u8], key: Key, once: &mut Once) -> Read {
        match (subtype, value) {
            (1, [support, a, b, c, d]) => {
                let read = MacPhy {
                    negotiates: support & 1 != 0,
                    negotiation_enabled: support & 2 != 0,
                    advertised: u16::from_be_bytes([*a, *b]),
                    mau: u16::from_be_bytes([*c, *d]),
                };
                once.set(&mut self.mac_phy, key, read);
            }
            (2, [support, pair, class]) => {
                let read = Power { support: *support, pair: *pair, class: *class, wanted: None };
                once.set(&mut self.power, key, read);
            }
            // Longer ones are of newer standards, which add to the end.
            (2, [support, pair, class, kind, a, b, c, d, ..]) => {
                let wanted = (*kind, u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                let read = Power { support: *support, pair: *pair, class: *class, wanted: Some(wanted) };
                once.set(&mut self.power, key, read);
            }
            (3, value) => match Aggregation::read(value) {
                Some(read) => once.set(&mut self.aggregation, key, read),
                None => return Read::WrongLength,
            },
            (4, [a, b]) => once.set(&mut self.max_frame, key, u16::from_be_bytes([*a, *b])),
            (1..=4, _) => return Read::WrongLength,
            _ => return Read::NotKnown,
        }
        Read::Done
    }
}

impl Aggregation {
    fn read(value: &[u8]) -> Option<Self> {
        let [status, a, b, c, d] = value else { return None };
        Some(Aggregation {
            capable: status & 1 != 0,
            enabled: status & 2 != 0,
            port: u32::from_be_bytes([*a, *b, *c, *d]),
        })
    }
}
