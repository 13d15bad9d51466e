//! The other entries of a DHCP server, and whether a new one takes something away from them (D9).
//!
//! No server minds all of it: ISC takes a MAC and an address twice, dnsmasq a MAC, Kea a name; and what a server does mind
//! keeps it down. Files that people made are read as far as they can be: what is looked for is who has which MAC, address
//! and name.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use super::{Entry, Server, entries_of};
use crate::domain::mac::Mac;

/// What an entry holds: people write more into one than this program does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    pub names: Vec<String>,
    pub macs: Vec<Mac>,
    pub addresses: Vec<IpAddr>,
}

/// Whose MAC, address or name a new entry would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The file that has it.
    pub file: String,
    pub what: Same,
}

/// What two entries have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Same {
    Mac(Mac),
    Address(IpAddr),
    Name(String),
}

impl fmt::Display for Same {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Same::Mac(mac) => write!(f, "the MAC '{mac}'"),
            Same::Address(address) => write!(f, "the address '{address}'"),
            Same::Name(name) => write!(f, "the name '{name}'"),
        }
    }
}

/// The entry files of one server, by their names.
#[derive(Debug, Default)]
pub struct Others {
    files: BTreeMap<String, Vec<Held>>,
    unclear: Vec<String>,
}

impl Others {
    /// Reads all files of the server's folder.
    pub fn read(server: Server, files: BTreeMap<String, String>) -> Others {
        let mut others = Others::default();
        for (name, content) in files {
            let (held, is_clear) = entries_of(server, &content);
            if !is_clear {
                others.unclear.push(name.clone());
            }
            others.files.insert(name, held);
        }
        others
    }

    /// Files with something in them that could not be understood: a collision with that is not seen.
    pub fn unclear(&self) -> &[String] {
        &self.unclear
    }

    /// What the entry would take from another file than its own.
    pub fn collision(&self, file: &str, entry: &Entry) -> Option<Collision> {
        let others = self.files.iter().filter(|(name, _)| *name != file);
        others.flat_map(|(name, held)| held.iter().map(move |held| (name, held))).find_map(|(name, held)| {
            let what = if held.macs.contains(&entry.mac) {
                Same::Mac(entry.mac)
            } else if held.addresses.contains(&entry.address) {
                Same::Address(entry.address)
            } else if held.names.iter().any(|name| name.eq_ignore_ascii_case(&entry.name)) {
                Same::Name(entry.name.clone())
            } else {
                return None;
            };
            Some(Collision { file: name.clone(), what })
        })
    }

    /// A file is there now, or gone.
    pub fn put(&mut self, server: Server, file: &str, content: Option<&str>) {
        match content {
            Some(content) => self.files.insert(file.to_owned(), entries_of(server, content).0),
            None => self.files.remove(file),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dhcp::render;

    fn entry(name: &str, mac: &str, address: &str) -> Entry {
        Entry { name: name.into(), mac: mac.parse().unwrap(), address: address.parse().unwrap() }
    }

    /// Proves: D9
    /// Case: C-42
    #[test]
    fn a_mac_an_address_or_a_name_of_another_file_is_found_for_every_kind() {
        let base = entry("base-bmc", "02:aa:00:00:00:01", "10.10.8.11");
        for server in Server::ALL {
            let file = render(server, &base).unwrap();
            let others = Others::read(server, BTreeMap::from([(file.name.clone(), file.content)]));
            assert_eq!(others.unclear(), [] as [String; 0], "{server}");
            for (name, mac, address, what) in [
                ("new", "02:aa:00:00:00:02", "10.10.8.12", None),
                ("new", "02:aa:00:00:00:01", "10.10.8.12", Some("the MAC '02:aa:00:00:00:01'")),
                ("new", "02:aa:00:00:00:02", "10.10.8.11", Some("the address '10.10.8.11'")),
                ("BASE-bmc", "02:aa:00:00:00:02", "10.10.8.12", Some("the name 'BASE-bmc'")),
            ] {
                let found = others.collision("new.conf", &entry(name, mac, address));
                assert_eq!(found.as_ref().map(|c| c.what.to_string()).as_deref(), what, "{server} {name}");
                assert!(found.is_none_or(|collision| collision.file == file.name));
            }
            // Its own file is the one that is replaced.
            assert_eq!(others.collision(&file.name, &base), None);
        }
    }

    /// Proves: D9
    #[test]
    fn what_is_put_into_its_place_counts_from_then_on() {
        let mut others = Others::default();
        let (a, b) = (entry("a", "02:aa:00:00:00:01", "10.0.0.1"), entry("b", "02:aa:00:00:00:02", "10.0.0.1"));
        let file = render(Server::Kea, &a).unwrap();
        assert_eq!(others.collision("b.json", &b), None);
        others.put(Server::Kea, &file.name, Some(&file.content));
        assert_eq!(others.collision("b.json", &b).unwrap().file, "a.json");
        others.put(Server::Kea, &file.name, None);
        assert_eq!(others.collision("b.json", &b), None);
    }
}
