//! Renders and checks a device's DHCP entry (D2).
//!
//! A server's own test proves little: ISC and dnsmasq serve a wrong entry with a test that says ok, and one bad entry can
//! keep a server down for everybody (C-42). So what can be told from the entry alone is told here, before any upload.

pub mod network;
pub mod others;
mod read;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

pub use self::read::entries_of;
use super::mac::Mac;

/// The kind of a DHCP server, which decides the entry's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// ISC dhcpd, of either family: a `host` declaration.
    Isc,
    /// Kea's DHCPv4 or DHCPv6: one reservation as a JSON object.
    Kea,
    /// dnsmasq: a `dhcp-host` line.
    Dnsmasq,
}

impl Server {
    pub const ALL: [Server; 3] = [Server::Isc, Server::Kea, Server::Dnsmasq];

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Server::Isc => "isc",
            Server::Kea => "kea",
            Server::Dnsmasq => "dnsmasq",
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Server::Isc => "ISC dhcpd",
            Server::Kea => "Kea",
            Server::Dnsmasq => "dnsmasq",
        })
    }
}

/// What a DHCP server is to know of a device: its management interface, address and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The device's name; also the host name that the server hands out.
    pub name: String,
    pub mac: Mac,
    pub address: IpAddr,
}

/// Why an entry would not be served as meant, or would stop the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("the name '{name}' is no host name: {why}")]
    Name { name: String, why: &'static str },
    #[error("the address '{address}' cannot be a host's: {why}")]
    Address { address: IpAddr, why: &'static str },
    #[error("the address '{address}' is outside the subnets '{}'", list(.subnets))]
    Outside { address: IpAddr, subnets: Vec<IpNet> },
}

fn list(subnets: &[IpNet]) -> String {
    subnets.iter().map(IpNet::to_string).collect::<Vec<_>>().join("', '")
}

/// The device's own file on the DHCP host: its name and its whole content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFile {
    pub name: String,
    pub content: String,
}

/// The entry's file for a kind of server. Equal input, equal bytes.
pub fn render(server: Server, entry: &Entry) -> Result<EntryFile, EntryError> {
    check(server, entry)?;
    let Entry { name, mac, address } = entry;
    let (ending, content) = match (server, address) {
        (Server::Isc, IpAddr::V4(v4)) => (
            "conf",
            format!(
                "host {name} {{\n  hardware ethernet {mac};\n  fixed-address {v4};\n  option host-name \"{name}\";\n}}\n"
            ),
        ),
        // DHCPv6 has no option for a bare host name; the declaration's own is what dhcpd keeps.
        (Server::Isc, IpAddr::V6(v6)) => {
            ("conf", format!("host {name} {{\n  hardware ethernet {mac};\n  fixed-address6 {v6};\n}}\n"))
        }
        (Server::Kea, IpAddr::V4(v4)) => {
            ("json", format!("{{\"hw-address\": \"{mac}\", \"ip-address\": \"{v4}\", \"hostname\": \"{name}\"}}\n"))
        }
        (Server::Kea, IpAddr::V6(v6)) => {
            ("json", format!("{{\"hw-address\": \"{mac}\", \"ip-addresses\": [\"{v6}\"], \"hostname\": \"{name}\"}}\n"))
        }
        // Without a lease time of its own: `infinite` is sent as a lease that the client never comes back to renew, so
        // that a changed entry would wait for its reboot.
        (Server::Dnsmasq, IpAddr::V4(v4)) => ("conf", format!("dhcp-host={mac},{v4},{name}\n")),
        (Server::Dnsmasq, IpAddr::V6(v6)) => ("conf", format!("dhcp-host={mac},[{v6}],{name}\n")),
    };
    Ok(EntryFile { name: format!("{name}.{ending}"), content })
}

/// Whether the entry would be served as meant, as far as it can be told without the others. Its MAC is right by its type.
pub fn check(server: Server, entry: &Entry) -> Result<(), EntryError> {
    check_name(&entry.name)?;
    if server == Server::Dnsmasq && is_dnsmasq_word(&entry.name) {
        return Err(EntryError::Name {
            name: entry.name.clone(),
            why: "dnsmasq takes it for a lease time or a command",
        });
    }
    if server == Server::Dnsmasq && is_strange_to_idna(&entry.name) {
        return Err(EntryError::Name {
            name: entry.name.clone(),
            why: "dnsmasq takes no two hyphens behind two characters where a letter is upper case",
        });
    }
    let address = entry.address;
    let bad = |why| Err(EntryError::Address { address, why });
    match address {
        IpAddr::V4(v4) => match v4_fault(v4) {
            Some(why) => bad(why),
            None => Ok(()),
        },
        IpAddr::V6(v6) => match v6_fault(v6) {
            Some(why) => bad(why),
            None => Ok(()),
        },
    }
}

/// One label of letters, digits and hyphens: what all three servers take. It is also what keeps the name from being a path
/// or a piece of configuration.
fn check_name(name: &str) -> Result<(), EntryError> {
    let why = if name.is_empty() {
        "it is empty"
    } else if name.len() > 63 {
        "it is longer than 63 characters"
    } else if let Some(other) = name.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
        match other {
            '.' => "it has a dot, and a DHCP entry takes the first label only",
            '_' => "it has an underscore",
            c if c.is_whitespace() => "it has a blank",
            _ => "it has a character other than letters, digits and hyphens",
        }
    } else if name.starts_with('-') || name.ends_with('-') {
        "it begins or ends with a hyphen"
    } else {
        return Ok(());
    };
    Err(EntryError::Name { name: name.to_owned(), why })
}

/// What dnsmasq reads as something else than a name: a time with or without its unit, and two words.
fn is_dnsmasq_word(name: &str) -> bool {
    let digits = name.strip_suffix(|c: char| "smhdwSMHDW".contains(c)).unwrap_or(name);
    matches!(name, "infinite" | "ignore") || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A name with an upper-case letter goes through dnsmasq's IDNA, which has such labels reserved.
fn is_strange_to_idna(name: &str) -> bool {
    name.get(2..4) == Some("--") && name.bytes().any(|b| b.is_ascii_uppercase())
}

fn v4_fault(v4: Ipv4Addr) -> Option<&'static str> {
    match v4 {
        a if a.octets()[0] == 0 => Some("it is no address of a network"),
        // Loopback is let through: the BMCs of a lab live there.
        a if a.is_link_local() => Some("it is a link-local address"),
        a if a.is_multicast() => Some("it is a multicast address"),
        a if a.octets()[0] >= 240 => Some("it is a reserved or broadcast address"),
        _ => None,
    }
}

fn v6_fault(v6: Ipv6Addr) -> Option<&'static str> {
    match v6 {
        a if a.is_unspecified() => Some("it is no address of a network"),
        a if a.is_loopback() => Some("it is a loopback address"),
        a if a.is_unicast_link_local() => Some("it is a link-local address"),
        a if a.is_multicast() => Some("it is a multicast address"),
        a if a.to_ipv4_mapped().is_some() => Some("it is an IPv4 address in IPv6 form"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, address: &str) -> Entry {
        Entry { name: name.into(), mac: "02:AA:00:00:00:02".parse().unwrap(), address: address.parse().unwrap() }
    }

    /// Proves: D2
    #[test]
    fn each_server_kind_has_its_own_form() {
        let entry = entry("gpu-b07-37", "10.10.8.42");
        let file = render(Server::Isc, &entry).unwrap();
        assert_eq!(file.name, "gpu-b07-37.conf");
        assert_eq!(
            file.content,
            "host gpu-b07-37 {\n  hardware ethernet 02:aa:00:00:00:02;\n  fixed-address 10.10.8.42;\n  option host-name \"gpu-b07-37\";\n}\n"
        );
        let file = render(Server::Kea, &entry).unwrap();
        assert_eq!(file.name, "gpu-b07-37.json");
        let json: serde_json::Value = serde_json::from_str(&file.content).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"hw-address": "02:aa:00:00:00:02", "ip-address": "10.10.8.42", "hostname": "gpu-b07-37"})
        );
        let file = render(Server::Dnsmasq, &entry).unwrap();
        assert_eq!(file.name, "gpu-b07-37.conf");
        assert_eq!(file.content, "dhcp-host=02:aa:00:00:00:02,10.10.8.42,gpu-b07-37\n");
    }

    /// Proves: D2
    /// Case: C-08
    #[test]
    fn the_spelling_of_a_mac_never_reaches_the_entry() {
        for spelling in ["02:AA:00:00:00:02", "02-aa-00-00-00-02", "02aa.0000.0002", "02AA00000002"] {
            let entry = Entry { mac: spelling.parse().unwrap(), ..entry("a", "10.0.0.1") };
            assert!(render(Server::Isc, &entry).unwrap().content.contains("02:aa:00:00:00:02;"), "{spelling}");
        }
    }

    /// Proves: D2
    /// Case: C-25
    #[test]
    fn an_ipv6_management_address_has_its_own_form_with_each_kind() {
        let entry = entry("a", "2001:DB8:7:0::29");
        for (server, content) in [
            (Server::Isc, "host a {\n  hardware ethernet 02:aa:00:00:00:02;\n  fixed-address6 2001:db8:7::29;\n}\n"),
            (
                Server::Kea,
                "{\"hw-address\": \"02:aa:00:00:00:02\", \"ip-addresses\": [\"2001:db8:7::29\"], \"hostname\": \"a\"}\n",
            ),
            (Server::Dnsmasq, "dhcp-host=02:aa:00:00:00:02,[2001:db8:7::29],a\n"),
        ] {
            assert_eq!(render(server, &entry).unwrap().content, content);
        }
        let link_local = render(Server::Dnsmasq, &self::entry("a", "fe80::29")).unwrap_err();
        assert_eq!(link_local.to_string(), "the address 'fe80::29' cannot be a host's: it is a link-local address");
    }

    /// Case: C-42
    #[test]
    fn a_name_that_could_stop_a_server_is_refused_for_all_of_them() {
        let long = "a".repeat(64);
        for name in [
            "gpu b07 41",
            "gpu-b07-41\"; }",
            "a_b",
            "-a",
            "a-",
            "a/b",
            "../a",
            "a.example.net",
            "",
            &long,
            "grün",
            "a\nb",
            "a,b",
            "a{",
            "a;",
        ] {
            for server in Server::ALL {
                let refused = render(server, &entry(name, "10.0.0.1"));
                assert!(matches!(refused, Err(EntryError::Name { .. })), "{name:?} {server}: {refused:?}");
            }
        }
        for name in ["7", "12h", "3D", "infinite", "ignore", "1H--G"] {
            let refused = render(Server::Dnsmasq, &entry(name, "10.0.0.1"));
            assert!(matches!(refused, Err(EntryError::Name { .. })), "{name}: {refused:?}");
            assert!(check(Server::Isc, &entry(name, "10.0.0.1")).is_ok(), "{name}");
        }
        for name in ["a", "7", "GPU-b07", &"a".repeat(63), "1-2"] {
            assert!(check(Server::Isc, &entry(name, "10.0.0.1")).is_ok(), "{name}");
        }
    }

    #[test]
    fn an_address_that_no_host_can_have_is_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "ff02::1",
            "::ffff:10.0.0.1",
        ] {
            let refused = check(Server::Dnsmasq, &entry("a", address));
            assert!(matches!(refused, Err(EntryError::Address { .. })), "{address}: {refused:?}");
        }
    }

    proptest! {
        /// Proves: D2
        #[test]
        fn an_accepted_entry_is_one_plain_statement_and_always_the_same_bytes(
            name in ".{0,70}", octets in any::<[u8; 6]>(), address in any::<u32>()
        ) {
            let mac = octets.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":").parse::<Mac>();
            prop_assume!(mac.is_ok());
            let entry = Entry { name, mac: mac.unwrap(), address: Ipv4Addr::from(address).into() };
            for server in Server::ALL {
                let Ok(file) = render(server, &entry) else { continue };
                let again = render(server, &entry.clone()).unwrap();
                prop_assert_eq!(&file, &again);
                prop_assert!(file.content.is_ascii() && file.content.ends_with('\n'));
                prop_assert!(!file.name.contains('/') && !file.name.starts_with('.'));
                let braces = file.content.matches('{').count();
                prop_assert_eq!(braces, if server == Server::Dnsmasq { 0 } else { 1 });
                prop_assert_eq!(file.content.matches(';').count(), if server == Server::Isc { 3 } else { 0 });
            }
        }

        /// Proves: D2
        #[test]
        fn a_valid_name_is_accepted_by_every_kind(name in "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?") {
            let is_odd = is_dnsmasq_word(&name) || is_strange_to_idna(&name);
            for server in Server::ALL.into_iter().filter(|kind| *kind != Server::Dnsmasq || !is_odd) {
                prop_assert!(render(server, &entry(&name, "10.0.0.1")).is_ok());
            }
        }
    }
}
