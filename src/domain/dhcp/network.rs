//! Which addresses a DHCP server may be told to give to a device: inside its subnets, and nobody else's (D9).
//!
//! ISC and dnsmasq take an address outside the subnet with a test that says ok, and the device then gets a pool address;
//! all three hand out the broadcast address, and two of them their own.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use super::EntryError;

/// What a DHCP server serves, as far as the configuration tells. What is left out is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Served subnets; empty: not known.
    pub subnets: Vec<IpNet>,
    /// The server's own addresses, and others that no device may get: a router's.
    pub reserved: Vec<IpAddr>,
    /// Ranges that are given to whoever asks.
    pub pools: Vec<Pool>,
}

/// Addresses from `first` to `last`, both of them included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    pub first: IpAddr,
    pub last: IpAddr,
}

impl Pool {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && (self.first..=self.last).contains(&address)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// `FIRST-LAST`, both addresses of one family.
impl FromStr for Pool {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, last) = text.split_once('-').ok_or("is not two addresses with a hyphen between them")?;
        let address = |part: &str| part.trim().parse::<IpAddr>().map_err(|_| "is not two addresses");
        let (first, last) = (address(first)?, address(last)?);
        match first.is_ipv4() == last.is_ipv4() {
            true if first <= last => Ok(Pool { first, last }),
            true => Err("ends before it begins"),
            false => Err("is of IPv4 and IPv6"),
        }
    }
}

impl Network {
    /// Whether the server may be told to give this address to a device.
    pub fn check(&self, address: IpAddr) -> Result<(), EntryError> {
        let bad = |why| Err(EntryError::Address { address, why });
        if !self.subnets.is_empty() {
            let Some(subnet) = self.subnets.iter().find(|subnet| subnet.contains(&address)) else {
                return Err(EntryError::Outside { address, subnets: self.subnets.clone() });
            };
            // The last two prefix lengths are links of two hosts and of one, without addresses of their own.
            let has_own = subnet.prefix_len() < subnet.max_prefix_len() - 1;
            if has_own && address == subnet.network() {
                return bad("it is the address of the network itself");
            }
            if has_own && address.is_ipv4() && address == subnet.broadcast() {
                return bad("it is the broadcast address of its network");
            }
        }
        if self.reserved.contains(&address) {
            return bad("it is the DHCP server's own, or reserved in the configuration");
        }
        if self.pools.iter().any(|pool| pool.contains(address)) {
            return bad("it lies in a pool, so the server may have given it to somebody else");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        Network {
            subnets: ["10.10.8.0/24", "10.10.9.0/31", "2001:db8:8::/64"].map(|text| text.parse().unwrap()).into(),
            reserved: vec!["10.10.8.2".parse().unwrap()],
            pools: vec!["10.10.8.200-10.10.8.219".parse().unwrap()],
        }
    }

    /// Proves: D9
    /// Case: C-42
    #[test]
    fn an_address_is_the_devices_own_inside_a_served_subnet() {
        for (address, part) in [
            ("10.10.8.42", None),
            ("10.10.8.1", None),
            ("10.10.8.220", None),
            ("10.10.9.0", None),
            ("10.10.9.1", None),
            ("2001:db8:8::29", None),
            ("2001:db8:8:0:ffff:ffff:ffff:ffff", None),
            ("192.0.2.41", Some("outside the subnets '10.10.8.0/24', '10.10.9.0/31', '2001:db8:8::/64'")),
            ("2001:db8:9::29", Some("outside")),
            ("10.10.8.0", Some("of the network itself")),
            ("2001:db8:8::", Some("of the network itself")),
            ("10.10.8.255", Some("broadcast")),
            ("10.10.8.2", Some("own")),
            ("10.10.8.200", Some("pool")),
            ("10.10.8.219", Some("pool")),
        ] {
            let checked = network().check(address.parse().unwrap()).map_err(|error| error.to_string());
            match part {
                None => assert_eq!(checked, Ok(()), "{address}"),
                Some(part) => assert!(checked.as_ref().unwrap_err().contains(part), "{address}: {checked:?}"),
            }
        }
        let anything = Network::default();
        assert_eq!(anything.check("192.0.2.255".parse().unwrap()), Ok(()), "what is not known is not checked");
    }

    #[test]
    fn a_pool_is_two_addresses_in_their_order() {
        for (text, why) in [
            ("10.0.0.1", "hyphen"),
            ("10.0.0.1-x", "two addresses"),
            ("10.0.0.2-10.0.0.1", "before"),
            ("10.0.0.1-::1", "IPv4 and IPv6"),
        ] {
            assert!(text.parse::<Pool>().unwrap_err().contains(why), "{text}");
        }
        let pool: Pool = "2001:db8::10 - 2001:db8::1f".parse().unwrap();
        assert!(pool.contains("2001:db8::1a".parse().unwrap()) && !pool.contains("10.0.0.1".parse().unwrap()));
    }
}
