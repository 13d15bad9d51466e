//! Decodes an LLDP frame (IEEE 802.1AB): from the wire, or from the list of types and values that a ramdisk makes of it.
//!
//! A frame comes from whoever has the other end of a cable. Nothing in it is believed that it says twice in two ways, nothing
//! behind its end or its first torn TLV is read, and no more is kept of it than it is long.

use std::collections::BTreeSet;
use std::fmt;

use super::ids::{Address, ChassisKind, Id, PortKind};
use super::organization::Organizations;

/// The longest value that the nine bits of a TLV's length allow.
pub const LONGEST: usize = 511;

/// What one frame says. What was not sent, was sent empty, or was sent twice with two values is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    pub chassis: Option<(ChassisKind, Id)>,
    pub port: Option<(PortKind, Id)>,
    /// Seconds for which the frame is right; 0: the sender takes back all that it said.
    pub ttl_s: Option<u16>,
    pub port_description: Option<Id>,
    pub system_name: Option<Id>,
    pub system_description: Option<Id>,
    pub capabilities: Option<Capabilities>,
    pub management: BTreeSet<Management>,
    pub organizations: Organizations,
    /// What is wrong with it.
    pub faults: BTreeSet<Fault>,
}

/// What the system is (bit 2: bridge, bit 4: router, …), and which of it is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub system: u16,
    pub enabled: u16,
}

/// Where the switch itself is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Management {
    pub address: Address,
    /// 1: unknown, 2: ifIndex, 3: a port number of the system's own.
    pub numbering: u8,
    pub interface: u32,
    pub oid: Vec<u8>,
}

/// A TLV by its type, or by what its organization calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Kind(u8),
    Organization([u8; 3], u8),
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// It ends within this TLV; nothing of that is read.
    Truncated(u8),
    /// A value of another length than the standard gives it; it is not read.
    Length(Key),
    /// Sent again with the same value.
    Twice(Key),
    /// Sent again with another value: neither is believed.
    Contradicts(Key),
    /// A mandatory TLV is not there.
    Missing(u8),
    /// Mandatory TLVs in another order than the standard's.
    Order,
    /// Something stands behind the end.
    AfterEnd,
    /// Text that is none.
    NotText(u8),
    /// A type that the standard keeps for later.
    Reserved(u8),
}

/// Takes each value once, and none that is told in two ways.
#[derive(Debug, Default)]
pub(super) struct Once {
    seen: BTreeSet<Key>,
    pub(super) faults: BTreeSet<Fault>,
}

impl Once {
    /// Takes a value for the first time; what comes again has to be the same.
    pub(super) fn set<T: PartialEq>(&mut self, slot: &mut Option<T>, key: Key, value: T) {
        self.set_maybe(slot, key, Some(value));
    }

    fn set_maybe<T: PartialEq>(&mut self, slot: &mut Option<T>, key: Key, value: Option<T>) {
        if self.seen.insert(key) {
            *slot = value;
        } else if *slot == value && !self.faults.contains(&Fault::Contradicts(key)) {
            self.faults.insert(Fault::Twice(key));
        } else {
            *slot = None;
            self.faults.insert(Fault::Contradicts(key));
        }
    }
}

/// Reads the TLVs of one frame one by one.
#[derive(Debug, Default)]
pub(super) struct Reader {
    frame: Frame,
    once: Once,
    /// Types in the order in which they came, as far as the mandatory ones go.
    first: Vec<u8>,
}

impl Frame {
    /// Reads a frame from the wire: what follows the Ethernet type 88-CC.
    pub fn read(wire: &[u8]) -> Frame {
        let mut reader = Reader::default();
        let mut rest = wire;
        let mut ended = false;
        while let [first, second, after @ ..] = rest {
            let (kind, length) = (first >> 1, usize::from(first & 1) << 8 | usize::from(*second));
            if after.len() < length {
                reader.once.faults.insert(Fault::Truncated(kind));
                ended = true;
                break;
            }
            let (value, next) = after.split_at(length);
            rest = next;
            reader.take(kind, value);
            if kind == 0 {
                ended = true;
                // Short frames are filled up with zeros.
                if rest.iter().any(|byte| *byte != 0) {
                    reader.once.faults.insert(Fault::AfterEnd);
                }
                break;
            }
        }
        if !ended {
            reader.once.faults.insert(if rest.is_empty() { Fault::Missing(0) } else { Fault::Truncated(rest[0] >> 1) });
        }
        reader.finish()
    }

    /// Whether it says anything of who sent it.
    pub fn is_empty(&self) -> bool {
        self.chassis.is_none() && self.port.is_none() && self.port_description.is_none() && self.system_name.is_none()
    }

    /// Whether its sender takes back what it said.
    pub fn is_withdrawn(&self) -> bool {
        self.ttl_s == Some(0)
    }

    /// Whether it says in two ways who sent it.
    pub fn contradicts_itself(&self) -> bool {
        [1, 2, 4, 5].iter().any(|kind| self.faults.contains(&Fault::Contradicts(Key::Kind(*kind))))
    }
}

impl Reader {
    /// Whether a chassis ID has come already, so that the next one is another frame's.
    pub(super) fn has_begun(&self) -> bool {
        self.once.seen.contains(&Key::Kind(1))
    }

    /// Takes a value that could not even be read as bytes.
    pub(super) fn spoil(&mut self, kind: u8) {
        self.once.faults.insert(Fault::Length(Key::Kind(kind)));
        // It was sent: what else comes under this type contradicts it.
        self.once.seen.insert(Key::Kind(kind));
    }

    pub(super) fn take(&mut self, kind: u8, value: &[u8]) {
        if self.first.len() < 3 {
            self.first.push(kind);
        }
        let key = Key::Kind(kind);
        let (frame, once) = (&mut self.frame, &mut self.once);
        let fits = match kind {
            0 => value.is_empty(),
            1 | 2 => (2..=256).contains(&value.len()),
            3 => value.len() >= 2,
            4..=6 => value.len() <= 255,
            7 => value.len() == 4,
            _ => value.len() <= LONGEST,
        };
        if !fits {
            once.faults.insert(Fault::Length(key));
        }
        match (kind, value) {
            (0, _) => {}
            (1, [subtype, id @ ..]) if fits => {
                let kind = ChassisKind::from(*subtype);
                once.set_maybe(&mut frame.chassis, key, kind.read(id).map(|id| (kind, id)));
            }
            (2, [subtype, id @ ..]) if fits => {
                let kind = PortKind::from(*subtype);
                once.set_maybe(&mut frame.port, key, kind.read(id).map(|id| (kind, id)));
            }
            (3, [a, b, ..]) => once.set(&mut frame.ttl_s, key, u16::from_be_bytes([*a, *b])),
            (4..=6, text) if fits => {
                let read = Id::text(text);
                if matches!(read, Some(Id::Bytes(_))) {
                    once.faults.insert(Fault::NotText(kind));
                }
                let slot = match kind {
                    4 => &mut frame.port_description,
                    5 => &mut frame.system_name,
                    _ => &mut frame.system_description,
                };
                once.set_maybe(slot, key, read);
            }
            (7, [a, b, c, d]) => {
                let (system, enabled) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
                once.set(&mut frame.capabilities, key, Capabilities { system, enabled });
            }
            // Those that don't fit were sent all the same: another one beside them is a contradiction.
            (1..=7, _) => {
                once.seen.insert(key);
            }
            (8, value) => match Management::read(value) {
                Some(management) => {
                    frame.management.insert(management);
                }
                None => {
                    once.faults.insert(Fault::Length(key));
                }
            },
            (127, value) if fits => frame.organizations.take(value, once),
            (127, _) => {}
            (reserved, _) => {
                once.faults.insert(Fault::Reserved(reserved));
            }
        }
    }

    pub(super) fn finish(self) -> Frame {
        let Reader { mut frame, mut once, first } = self;
        let missing: Vec<u8> = [1, 2, 3].into_iter().filter(|kind| !once.seen.contains(&Key::Kind(*kind))).collect();
        once.faults.extend(missing.iter().map(|kind| Fault::Missing(*kind)));
        if missing.is_empty() && first != [1, 2, 3] {
            once.faults.insert(Fault::Order);
        }
        frame.faults = once.faults;
        frame
    }
}

impl Management {
    /// The length of the address with its family, both, how the interface is numbered, its number, and an object's name.
    fn read(value: &[u8]) -> Option<Management> {
        let (length, rest) = value.split_first()?;
        let length = usize::from(*length);
        if !(2..=32).contains(&length) || rest.len() < length {
            return None;
        }
        let (address, rest) = rest.split_at(length);
        let [numbering, a, b, c, d, oid_length, oid @ ..] = rest else { return None };
        if usize::from(*oid_length) != oid.len() || oid.len() > 128 {
            return None;
        }
        Some(Management {
            address: Address::read(address)?,
            numbering: *numbering,
            interface: u32::from_be_bytes([*a, *b, *c, *d]),
            oid: oid.to_vec(),
        })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Kind(kind) => match kind {
                0 => f.write_str("end"),
                1 => f.write_str("chassis ID"),
                2 => f.write_str("port ID"),
                3 => f.write_str("time to live"),
                4 => f.write_str("port description"),
                5 => f.write_str("system name"),
                6 => f.write_str("system description"),
                7 => f.write_str("capabilities"),
                8 => f.write_str("management address"),
                other => write!(f, "TLV {other}"),
            },
            Key::Organization([a, b, c], subtype) => write!(f, "TLV {a:02x}-{b:02x}-{c:02x} {subtype}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Truncated(kind) => write!(f, "it ends within its {}", Key::Kind(*kind)),
            Fault::Length(key) => write!(f, "its {key} has no length that fits"),
            Fault::Twice(key) => write!(f, "its {key} comes twice"),
            Fault::Contradicts(key) => write!(f, "its {key} comes twice with two values"),
            Fault::Missing(kind) => write!(f, "it has no {}", Key::Kind(*kind)),
            Fault::Order => f.write_str("its TLVs are not in their order"),
            Fault::AfterEnd => f.write_str("something stands behind its end"),
            Fault::NotText(kind) => write!(f, "its {} is no text", Key::Kind(*kind)),
            Fault::Reserved(kind) => write!(f, "it has a TLV of the reserved type {kind}"),
        }
    }
}
