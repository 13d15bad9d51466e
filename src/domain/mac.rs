//! A MAC address in the one form that every border of the program uses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An Ethernet hardware address (EUI-48). Reads every spelling met in the field (`AA:BB…`, `aa-bb…`, `aabb.ccdd.eeff`,
/// `AABBCCDDEEFF`, `a:b:…` without
/// leading zeros), prints lower case with colons. All-zero, broadcast and multicast values name no NIC and are refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac([u8; 6]);

/// Why a text is not the address of a NIC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MacError {
    #[error("'{0}' is not a MAC address (12 hex digits)")]
    Form(String),
    #[error("'{0}' is no NIC's own address (all zero, broadcast or multicast)")]
    NotUnicast(String),
}

impl Mac {
    /// The six octets in transmission order.
    pub fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Twelve upper-case hex digits without separators, as UEFI device paths write it.
    pub fn bare_upper(self) -> String {
        self.0.iter().map(|b| format!("{b:02X}")).collect()
    }
}

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let form = || MacError::Form(text.to_owned());
        let trimmed = text.trim();
        let separator = trimmed.chars().find(|c| matches!(c, ':' | '-' | '.'));
        let parts: Vec<&str> = separator.map_or_else(|| vec![trimmed], |c| trimmed.split(c).collect());
        let digits: String = match (separator, parts.len()) {
            (None, _) => trimmed.to_owned(),
            (Some('.'), 3) if parts.iter().all(|part| part.len() == 4) => parts.concat(),
            // Some tools leave out a leading zero.
            (Some(':' | '-'), 6) if parts.iter().all(|part| matches!(part.len(), 1 | 2)) => {
                parts.iter().map(|part| format!("{part:0>2}")).collect()
            }
            _ => return Err(form()),
        };
        if digits.len() != 12 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(form());
        }
        let mut octets = [0u8; 6];
        for (octet, pair) in octets.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let hex = |b: u8| (b as char).to_digit(16);
            let (Some(high), Some(low)) = (hex(pair[0]), hex(pair[1])) else { return Err(form()) };
            *octet = (high * 16 + low) as u8;
        }
        if octets == [0; 6] || octets[0] & 1 == 1 {
            return Err(MacError::NotUnicast(text.to_owned()));
        }
        Ok(Mac(octets))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_field_is_one_address() {
        for text in ["7c:8a:e1:01:00:0f", "7C-8A-E1-01-00-0F", "7c8a.e101.000f", "7C8AE101000F", " 7c:8a:e1:01:00:0f "]
        {
            assert_eq!(text.parse::<Mac>().unwrap().to_string(), "7c:8a:e1:01:00:0f", "{text}");
        }
        for text in ["7c:8a:e1:1:0:f", "7C-8A-E1-1-0-F", "7c:8a:e1:01:0:0f"] {
            assert_eq!(text.parse::<Mac>().unwrap().to_string(), "7c:8a:e1:01:00:0f", "{text}");
        }
    }

    #[test]
    fn what_is_no_nics_address_is_refused() {
        for text in ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:0e"] {
            assert!(matches!(text.parse::<Mac>(), Err(MacError::NotUnicast(_))), "{text}");
        }
        for text in [
            "",
            "7c:8a:e1:01:00",
            "7c:8a:e1:01:00:0g",
            "7c:8a-e1:01:00:0f",
            "7c8ae101000f00",
            "7:c8ae1:01:00:0f",
            "é7c8ae101000",
            "7c8a.e1.01000f",
            "7c:8a:e1::01:00:0f",
            "7c:8a:e1:001:0:f",
            "7c8:ae101:000f",
            "N/A",
            "::::::",
        ] {
            assert!(matches!(text.parse::<Mac>(), Err(MacError::Form(_))), "{text}");
        }
    }
}
