//! Whether two names differ in their spelling only. A hint explains a mismatch and never turns it into a pass (V8).

use crate::domain::lldp::Neighbour;

/// Short forms of port names, as switches write them. Only whole prefixes count, letter case included: an expander of
/// prefixes would turn `et-0/0/1`, `eno1` and `etp1` into Ethernet ports (C-12).
const SHORT: [(&str, &[&str]); 13] = [
    ("Ethernet", &["Et", "Eth"]),
    ("FastEthernet", &["Fa"]),
    ("GigabitEthernet", &["Gi", "Gig", "GigE"]),
    ("TwoGigabitEthernet", &["Tw"]),
    ("FiveGigabitEthernet", &["Fi"]),
    ("TenGigabitEthernet", &["Te", "Ten"]),
    ("TenGigE", &["Te"]),
    ("TwentyFiveGigE", &["Twe"]),
    ("FortyGigabitEthernet", &["Fo"]),
    ("FortyGigE", &["Fo"]),
    ("HundredGigE", &["Hu"]),
    ("HundredGigabitEthernet", &["Hu"]),
    ("FourHundredGigE", &["FH"]),
];

/// Names that switches have before anybody gave them one.
const FACTORY: [&str; 7] = ["sonic", "cumulus", "localhost", "localhost.localdomain", "switch", "router", "default"];

/// How a port's name in NetBox and the one that was heard are the same port, spelled differently.
pub(in crate::domain) fn port(netbox: &str, heard: &str) -> Option<&'static str> {
    if let Some(hint) = case_or_space(netbox, heard) {
        return Some(hint);
    }
    if shorter(netbox, heard) || shorter(heard, netbox) {
        return Some("same port, shorter name");
    }
    if breakout(netbox, heard) || breakout(heard, netbox) {
        return Some("breakout of the same cage");
    }
    None
}

/// How a switch's name in NetBox and the one that was heard belong together.
pub(in crate::domain) fn switch(netbox: &str, heard: &str) -> Option<&'static str> {
    if let Some(hint) = case_or_space(netbox, heard) {
        return Some(hint);
    }
    // Two full names that differ in the domain are two switches.
    let host_of = |full: &str, short: &str| full.split_once('.').is_some_and(|(host, _)| host == short);
    (host_of(netbox, heard) || host_of(heard, netbox)).then_some("same host part")
}

/// The name of a switch that nobody has named.
pub(in crate::domain) fn is_factory_name(heard: &str) -> bool {
    FACTORY.contains(&heard.trim().to_ascii_lowercase().as_str())
}

fn case_or_space(a: &str, b: &str) -> Option<&'static str> {
    if a == b {
        return None;
    }
    if a.to_lowercase() == b.to_lowercase() {
        return Some("letter case only");
    }
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    (bare(a) == bare(b)).then_some("white space only")
}

/// `Ethernet1/47` and `Eth1/47`: a known long prefix, a known short one, the same numbers.
fn shorter(long: &str, short: &str) -> bool {
    let split = |text: &str| text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let ((long_name, long_rest), (short_name, short_rest)) = (long.split_at(split(long)), short.split_at(split(short)));
    long_rest == short_rest
        && long_rest.starts_with(|c: char| c.is_ascii_digit())
        && SHORT.iter().any(|(name, forms)| *name == long_name && forms.contains(&short_name))
}

/// `swp1` and `swp1s0`, `et-0/0/1` and `et-0/0/1:0`: one of the lanes of a cage.
fn breakout(cage: &str, lane: &str) -> bool {
    let Some(rest) = lane.strip_prefix(cage) else { return false };
    let digits = rest.strip_prefix(['s', ':']).unwrap_or("");
    cage.ends_with(|c: char| c.is_ascii_digit())
        && !digits.is_empty()
        && digits.len() <= 2
        && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a text can be the name of a switch port: letters, numbers and the separators between them. `to gpu-b07-41` and
/// `gpu-b07-41` cannot.
pub(in crate::domain) fn looks_like_port(text: &str) -> bool {
    let prefix = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let (name, numbers) = text.split_at(prefix);
    let named = !name.is_empty()
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    named && numbers.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'/' | b':' | b'.' | b's' | b'_'))
}

/// Whether a port ID tells no name: an index, or a MAC.
pub(in crate::domain) fn tells_no_name(port_id: &str) -> Option<&'static str> {
    if !port_id.is_empty() && port_id.bytes().all(|b| b.is_ascii_digit()) {
        return Some("an index");
    }
    let octets: Vec<&str> = port_id.split([':', '-']).collect();
    let is_mac = octets.len() == 6 && octets.iter().all(|o| o.len() == 2 && o.bytes().all(|b| b.is_ascii_hexdigit()));
    is_mac.then_some("its MAC")
}

/// Why nobody can tell from what was heard which port of the switch it is; `None`: it can be told.
pub(in crate::domain) fn nameless(heard: &Neighbour) -> Option<&'static str> {
    if heard.port_description.as_deref().is_some_and(looks_like_port) {
        return None;
    }
    match heard.port_id.as_deref() {
        None => Some("no port ID"),
        Some(id) => tells_no_name(id),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::case;
    use super::*;

    /// Case: C-12. Proves: V8
    #[test]
    fn a_port_hint_stands_where_the_spelling_is_the_only_difference_and_nowhere_else() {
        let case = case(include_str!("../../../tests/fixtures/cases/c12-abbreviated-port-names.json"));
        for pair in case["pairs"].as_array().unwrap() {
            let (netbox, heard) = (pair["netbox"].as_str().unwrap(), pair["lldp_port_id"].as_str().unwrap());
            assert_eq!(port(netbox, heard), pair["hint"].as_str(), "{pair}");
            assert_eq!(port(heard, netbox), pair["hint"].as_str(), "{pair}, the other way round");
        }
        for (a, b) in
            [("swp1", "swp14"), ("swp1", "swp1s"), ("swp1", "swp1s0s1"), ("Ethernet1", "Eth2"), ("Ethernet", "Eth")]
        {
            assert_eq!(port(a, b), None, "{a} {b}");
        }
    }

    /// Case: C-13. Proves: V8
    #[test]
    fn a_switch_hint_never_joins_two_domains() {
        let case = case(include_str!("../../../tests/fixtures/cases/c13-fqdn-against-short-name.json"));
        for pair in case["pairs"].as_array().unwrap() {
            let (netbox, heard) = (pair["netbox"].as_str().unwrap(), pair["lldp"].as_str().unwrap());
            let hint = switch(netbox, heard).or(is_factory_name(heard).then_some("switch still has its factory name"));
            assert_eq!(hint, pair["hint"].as_str(), "{pair}");
        }
    }

    #[test]
    fn port_names_are_told_from_host_names_indices_and_macs() {
        for name in ["swp14", "xe-0/0/19", "Ethernet1/47", "et-0/0/1:0", "Eth1/1.665", "swp1s0"] {
            assert!(looks_like_port(name), "{name}");
        }
        for name in ["gpu-b07-41", "to gpu-b07-41", "uplink", "-", "", "510", "gpu-b07-41:swp14"] {
            assert!(!looks_like_port(name), "{name}");
        }
        assert_eq!(tells_no_name("510"), Some("an index"));
        assert_eq!(tells_no_name("fc:bd:67:00:0f:90"), Some("its MAC"));
        for name in ["swp14", "", "fc:bd:67:00:0f"] {
            assert_eq!(tells_no_name(name), None, "{name}");
        }
    }
}
