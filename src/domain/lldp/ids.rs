//! What names a chassis or a port in LLDP: subtypes, MACs, network addresses, and text that may be none.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a chassis ID is (IEEE 802.1AB, 8.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChassisKind {
    Component,
    InterfaceAlias,
    PortComponent,
    Mac,
    Network,
    InterfaceName,
    Local,
    Reserved(u8),
}

/// What a port ID is (8.5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    InterfaceAlias,
    Component,
    Mac,
    Network,
    InterfaceName,
    AgentCircuit,
    Local,
    Reserved(u8),
}

/// A name as it was sent. Equality is of what was sent, but for the NULs that some switches end text with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    Text(String),
    Mac([u8; 6]),
    Network(Address),
    /// Neither text nor what the subtype promises.
    Bytes(Vec<u8>),
}

/// An address of a family in IANA's numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    Other { family: u8, bytes: Vec<u8> },
}

impl From<u8> for ChassisKind {
    fn from(subtype: u8) -> Self {
        match subtype {
            1 => ChassisKind::Component,
            2 => ChassisKind::InterfaceAlias,
            3 => ChassisKind::PortComponent,
            4 => ChassisKind::Mac,
            5 => ChassisKind::Network,
            6 => ChassisKind::InterfaceName,
            7 => ChassisKind::Local,
            other => ChassisKind::Reserved(other),
        }
    }
}

impl From<u8> for PortKind {
    fn from(subtype: u8) -> Self {
        match subtype {
            1 => PortKind::InterfaceAlias,
            2 => PortKind::Component,
            3 => PortKind::Mac,
            4 => PortKind::Network,
            5 => PortKind::InterfaceName,
            6 => PortKind::AgentCircuit,
            7 => PortKind::Local,
            other => PortKind::Reserved(other),
        }
    }
}

impl ChassisKind {
    /// The value behind the subtype; `None`: empty.
    pub fn read(self, value: &[u8]) -> Option<Id> {
        match self {
            ChassisKind::Mac => Id::mac(value),
            ChassisKind::Network => Id::network(value),
            _ => Id::text(value),
        }
    }
}

impl PortKind {
    /// The value behind the subtype; `None`: empty.
    pub fn read(self, value: &[u8]) -> Option<Id> {
        match self {
            PortKind::Mac => Id::mac(value),
            PortKind::Network => Id::network(value),
            _ => Id::text(value),
        }
    }
}

impl Id {
    /// Text without NULs at its end; bytes where it is none. `None`: nothing is left.
    pub fn text(value: &[u8]) -> Option<Id> {
        match std::str::from_utf8(value) {
            Ok(text) => {
                let text = text.trim_end_matches('\0');
                (!text.is_empty()).then(|| Id::Text(text.to_owned()))
            }
            Err(_) => Some(Id::Bytes(value.to_vec())),
        }
    }

    fn mac(value: &[u8]) -> Option<Id> {
        match <[u8; 6]>::try_from(value) {
            Ok(octets) => Some(Id::Mac(octets)),
            Err(_) => (!value.is_empty()).then(|| Id::Bytes(value.to_vec())),
        }
    }

    fn network(value: &[u8]) -> Option<Id> {
        Address::read(value).map(Id::Network)
    }
}

impl Address {
    /// The family, and the address. One whose length is not its family's is kept as bytes.
    pub fn read(value: &[u8]) -> Option<Address> {
        let (family, bytes) = value.split_first()?;
        Some(match (family, bytes.len()) {
            (1, 4) => Address::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
            (2, 16) => Address::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
            _ => Address::Other { family: *family, bytes: bytes.to_vec() },
        })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Text(text) => f.write_str(text),
            Id::Mac(octets) => f.write_str(&hex(octets, ":")),
            Id::Network(address) => address.fmt(f),
            Id::Bytes(bytes) => write!(f, "0x{}", hex(bytes, "")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::V4(v4) => v4.fmt(f),
            Address::V6(v6) => v6.fmt(f),
            // A MAC as the address of a switch's management.
            Address::Other { family: 6, bytes } if bytes.len() == 6 => f.write_str(&hex(bytes, ":")),
            Address::Other { bytes, .. } => write!(f, "0x{}", hex(bytes, "")),
        }
    }
}

fn hex(value: &[u8], separator: &str) -> String {
    let mut out = String::with_capacity(value.len() * (2 + separator.len()));
    for (n, byte) in value.iter().enumerate() {
        if n > 0 {
            out.push_str(separator);
        }
        for digit in [byte >> 4, byte & 15] {
            out.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    out
}
