//! Reads entries of a DHCP server, those that people wrote too: who has which MAC, address and name.
//!
//! This is no checker. What is not understood is passed over, and the file is then called unclear.

use super::Server;
use super::others::Held;

/// The entries in a file, and whether all of it was understood.
pub fn entries_of(server: Server, content: &str) -> (Vec<Held>, bool) {
    match server {
        Server::Isc => isc::read(content),
        Server::Kea => kea::read(content),
        Server::Dnsmasq => dnsmasq::read(content),
    }
}

/// ISC dhcpd: `host` declarations at any depth.
mod isc {
    use super::Held;

    #[derive(Debug, PartialEq)]
    enum Token {
        Word(String),
        Open,
        Close,
        End,
    }

    pub fn read(content: &str) -> (Vec<Held>, bool) {
        let Some(tokens) = tokens(content) else { return (Vec::new(), false) };
        let (mut held, mut is_clear) = (Vec::new(), true);
        let mut statement: Vec<&str> = Vec::new();
        // For each open block: whether it is a host's.
        let mut blocks: Vec<bool> = Vec::new();
        for token in &tokens {
            match token {
                Token::Word(word) => statement.push(word),
                Token::Open => {
                    let is_host = statement.first().is_some_and(|word| word.eq_ignore_ascii_case("host"));
                    if is_host {
                        let names = statement.iter().skip(1).take(1).map(|name| (*name).to_owned()).collect();
                        held.push(Held { names, ..Held::default() });
                    }
                    blocks.push(is_host);
                    statement.clear();
                }
                Token::Close => {
                    is_clear &= blocks.pop().is_some() && statement.is_empty();
                    statement.clear();
                }
                Token::End => {
                    if blocks.contains(&true)
                        && let Some(host) = held.last_mut()
                    {
                        is_clear &= property(host, &statement);
                    }
                    statement.clear();
                }
            }
        }
        (held, is_clear && blocks.is_empty() && statement.is_empty())
    }

    /// One statement in a host's block; `false` where it should say something and does not.
    fn property(host: &mut Held, statement: &[&str]) -> bool {
        let lower: Vec<String> = statement.iter().map(|word| word.to_ascii_lowercase()).collect();
        let words: Vec<&str> = lower.iter().map(String::as_str).collect();
        match words[..] {
            ["hardware", "ethernet", mac] => match mac.parse() {
                Ok(mac) => host.macs.push(mac),
                Err(_) => return false,
            },
            // Names are resolved by the server; whose address they have is not known here.
            ["fixed-address" | "fixed-address6", ref addresses @ ..] => {
                for address in addresses.iter().flat_map(|list| list.split(',')).filter(|part| !part.is_empty()) {
                    match address.parse() {
                        Ok(address) => host.addresses.push(address),
                        Err(_) => return false,
                    }
                }
            }
            ["option", "host-name", name] if !host.names.iter().any(|known| known.eq_ignore_ascii_case(name)) => {
                host.names.push(statement[2].to_owned());
            }
            _ => {}
        }
        true
    }

    /// `None` where a string has no end.
    fn tokens(content: &str) -> Option<Vec<Token>> {
        let mut tokens = Vec::new();
        let mut chars = content.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '#' => while chars.next_if(|c| *c != '\n').is_some() {},
                '{' => tokens.push(Token::Open),
                '}' => tokens.push(Token::Close),
                ';' => tokens.push(Token::End),
                '"' => {
                    let mut text = String::new();
                    loop {
                        match chars.next()? {
                            '"' => break,
                            '\\' => text.extend(chars.next()),
                            c => text.push(c),
                        }
                    }
                    tokens.push(Token::Word(text));
                }
                c if c.is_whitespace() => {}
                c => {
                    let mut word = String::from(c);
                    while let Some(c) =
                        chars.next_if(|c| !c.is_whitespace() && !matches!(c, '{' | '}' | ';' | '"' | '#'))
                    {
                        word.push(c);
                    }
                    tokens.push(Token::Word(word));
                }
            }
        }
        Some(tokens)
    }
}

/// Kea: every JSON object that has something of a reservation, at any depth.
mod kea {
    use serde_json::{Map, Value};

    use super::Held;

    pub fn read(content: &str) -> (Vec<Held>, bool) {
        let plain = without_comments(content);
        let text = plain.trim().trim_end_matches(',');
        let (mut held, mut is_clear) = (Vec::new(), true);
        // One value, or several with commas between them: both are pieces that a configuration can include.
        match serde_json::from_str::<Value>(&format!("[{text}]")) {
            Ok(value) => walk(&value, &mut held, &mut is_clear),
            Err(_) => match serde_json::from_str::<Value>(&format!("{{{text}}}")) {
                Ok(value) => walk(&value, &mut held, &mut is_clear),
                Err(_) => return (held, false),
            },
        }
        (held, is_clear)
    }

    fn walk(value: &Value, held: &mut Vec<Held>, is_clear: &mut bool) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, held, is_clear)),
            Value::Object(members) => {
                if ["hw-address", "duid", "client-id", "ip-address", "ip-addresses"]
                    .iter()
                    .any(|k| members.contains_key(*k))
                {
                    held.push(reservation(members, is_clear));
                }
                members.values().for_each(|member| walk(member, held, is_clear));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn reservation(members: &Map<String, Value>, is_clear: &mut bool) -> Held {
        let mut held = Held::default();
        let texts = |key: &str| match members.get(key) {
            Some(Value::String(text)) => vec![text.as_str()],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        for mac in texts("hw-address") {
            match mac.parse() {
                Ok(mac) => held.macs.push(mac),
                Err(_) => *is_clear = false,
            }
        }
        for address in texts("ip-address").into_iter().chain(texts("ip-addresses")) {
            match address.parse() {
                Ok(address) => held.addresses.push(address),
                Err(_) => *is_clear = false,
            }
        }
        // An empty name is none.
        held.names.extend(texts("hostname").into_iter().filter(|name| !name.is_empty()).map(str::to_owned));
        held
    }

    /// Kea takes `#`, `//` and `/* */`, and a comma behind the last member.
    fn without_comments(content: &str) -> String {
        let mut plain = String::with_capacity(content.len());
        let mut chars = content.chars().peekable();
        let mut in_text = false;
        while let Some(c) = chars.next() {
            match c {
                '\\' if in_text => {
                    plain.push(c);
                    plain.extend(chars.next());
                    continue;
                }
                '"' => in_text = !in_text,
                '#' if !in_text => {
                    while chars.next_if(|c| *c != '\n').is_some() {}
                    continue;
                }
                '/' if !in_text && chars.peek() == Some(&'/') => {
                    while chars.next_if(|c| *c != '\n').is_some() {}
                    continue;
                }
                '/' if !in_text && chars.peek() == Some(&'*') => {
                    chars.next();
                    let mut before = ' ';
                    for c in chars.by_ref() {
                        if before == '*' && c == '/' {
                            break;
                        }
                        before = c;
                    }
                    continue;
                }
                ']' | '}' if !in_text => {
                    let kept = plain.trim_end().trim_end_matches(',').len();
                    plain.truncate(kept);
                }
                _ => {}
            }
            plain.push(c);
        }
        plain
    }
}

/// dnsmasq: `dhcp-host=` lines, and bare ones as in a `dhcp-hostsdir`.
mod dnsmasq {
    use std::net::IpAddr;

    use super::Held;
    use crate::domain::mac::Mac;

    pub fn read(content: &str) -> (Vec<Held>, bool) {
        let (mut held, mut is_clear) = (Vec::new(), true);
        for line in content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (option, value) = match line.split_once('=') {
                Some((option, value)) => (option.trim().trim_start_matches("--"), value),
                None if line.contains(',') => ("dhcp-host", line),
                // A flag of a configuration, or a word that says nothing of a host.
                None => {
                    is_clear &= line.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
                    continue;
                }
            };
            if option == "dhcp-host" {
                let value = value.split(" #").next().unwrap_or_default();
                held.push(host(value));
            }
        }
        (held, is_clear)
    }

    fn host(value: &str) -> Held {
        let mut held = Held::default();
        for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            // A hardware type may stand before the address: `1-02:aa:…`.
            let bare =
                part.split_once('-').filter(|(kind, _)| kind.parse::<u8>().is_ok()).map_or(part, |(_, rest)| rest);
            let address = part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(part);
            if let Ok(address) = address.parse::<IpAddr>() {
                held.addresses.push(address);
            } else if part.contains(':') {
                // A client identifier, a tag, or a pattern with `*` names no one card.
                held.macs.extend(bare.parse::<Mac>());
            } else if !is_lease_time(part) && part != "ignore" {
                held.names.push(part.to_owned());
            }
        }
        held
    }

    /// `infinite`, or a number with a unit. A bare number is taken for a time too, as dnsmasq does.
    fn is_lease_time(part: &str) -> bool {
        let digits = part.strip_suffix(['s', 'm', 'h', 'd', 'w']).unwrap_or(part);
        part == "infinite" || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::dhcp::{Entry, render};

    fn held(names: &[&str], macs: &[&str], addresses: &[&str]) -> Held {
        Held {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            macs: macs.iter().map(|mac| mac.parse().unwrap()).collect(),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        }
    }

    /// Proves: D9
    #[test]
    fn isc_declarations_are_read_as_people_write_them() {
        let file = "# the old hall; host in a comment { \n\
            group {\n  option routers 10.0.0.1;\n  HOST a { hardware ethernet 02-AA-00-00-00-01; fixed-address 10.0.0.1,10.0.0.2;}\n\
            host \"b\"{\n hardware ethernet 2:aa:0:0:0:2 ; fixed-address 10.0.0.3 , 10.0.0.4;\n option host-name \"b.example.net\"; }\n}\n\
            host c { dynamic; if known { option domain-name \"x;y}\"; } fixed-address6 2001:db8::1; }\n";
        let expected = [
            held(&["a"], &["02:aa:00:00:00:01"], &["10.0.0.1", "10.0.0.2"]),
            held(&["b", "b.example.net"], &["02:aa:00:00:00:02"], &["10.0.0.3", "10.0.0.4"]),
            held(&["c"], &[], &["2001:db8::1"]),
        ];
        assert_eq!(entries_of(Server::Isc, file), (expected.to_vec(), true));
        for unclear in [
            "host a { hardware ethernet 02:aa; fixed-address 10.0.0.1; }",
            "host a { fixed-address dhcp.example.net; }",
            "host a { fixed-address 10.0.0.1; ",
            "host a { fixed-address 10.0.0.1; }}",
            "host a { option host-name \"a; }",
            "a stray line",
        ] {
            assert!(!entries_of(Server::Isc, unclear).1, "{unclear}");
        }
    }

    /// Proves: D9
    #[test]
    fn kea_reservations_are_read_in_every_piece_that_can_be_included() {
        let one = held(&["a"], &["02:aa:00:00:00:01"], &["10.0.0.1"]);
        for file in [
            "{\"hw-address\": \"02:AA:00:00:00:01\", \"ip-address\": \"10.0.0.1\", \"hostname\": \"a\"},\n",
            "// by hand\n[ { \"hw-address\": \"02aa00000001\", # card\n \"ip-address\": \"10.0.0.1\", \"hostname\": \"a\", } ]",
            "\"reservations\": [ { \"hw-address\": \"02-aa-00-00-00-01\", /* ] */ \"ip-address\": \"10.0.0.1\", \"hostname\": \"a\" } ]",
            "{\"Dhcp4\": {\"subnet4\": [{\"subnet\": \"10.0.0.0/24\", \"reservations\": [{\"hw-address\": \"2:aa:0:0:0:1\", \
             \"ip-address\": \"10.0.0.1\", \"hostname\": \"a\", \"user-context\": {\"comment\": \"# no \\\"comment\"}}]}]}}",
        ] {
            assert_eq!(entries_of(Server::Kea, file), (vec![one.clone()], true), "{file}");
        }
        let (six, is_clear) = entries_of(
            Server::Kea,
            "{\"duid\": \"01:02\", \"ip-addresses\": [\"2001:db8::1\", \"2001:db8::2\"], \"hostname\": \"\"}, {\"flex-id\": \"1\"}",
        );
        assert_eq!((six, is_clear), (vec![held(&[], &[], &["2001:db8::1", "2001:db8::2"])], true));
        for unclear in ["{\"hw-address\": \"02:aa\"}", "{\"ip-address\": \"here\"}", "{ not json", "\"a\": \"b"] {
            assert!(!entries_of(Server::Kea, unclear).1, "{unclear}");
        }
        assert_eq!(entries_of(Server::Kea, "\n"), (vec![], true));
    }

    /// Proves: D9
    #[test]
    fn dnsmasq_lines_are_read_with_tags_times_and_both_families() {
        let file = "# a comment\ndhcp-host=02:AA:00:00:00:01,10.0.0.1,a,infinite\n  --dhcp-host=1-02:aa:00:00:00:02,set:known,id:01:02,\
            [2001:db8::1], b , 12h\n02:aa:00:00:00:03,02:aa:00:00:00:04,10.0.0.3,45m,c\ndhcp-host=02:aa:00:*:*:*,ignore\n\
            dhcp-option=3,10.0.0.254\nbogus-priv\n";
        let expected = [
            held(&["a"], &["02:aa:00:00:00:01"], &["10.0.0.1"]),
            held(&["b"], &["02:aa:00:00:00:02"], &["2001:db8::1"]),
            held(&["c"], &["02:aa:00:00:00:03", "02:aa:00:00:00:04"], &["10.0.0.3"]),
            held(&[], &[], &[]),
        ];
        assert_eq!(entries_of(Server::Dnsmasq, file), (expected.to_vec(), true));
        assert!(!entries_of(Server::Dnsmasq, "What is this?\n").1);
    }

    proptest! {
        /// Proves: D2, D9
        #[test]
        fn what_is_rendered_is_read_back_as_it_was(
            name in "[a-zA-Z][a-zA-Z0-9-]{0,61}[a-zA-Z]", octets in any::<[u8; 6]>(), v4 in any::<u32>(),
            v6 in prop::option::of(any::<u128>())
        ) {
            let mac = octets.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":");
            prop_assume!(mac.parse::<crate::domain::mac::Mac>().is_ok());
            let v4 = std::net::Ipv4Addr::from(v4).to_string();
            let address = v6.map_or(v4, |v6| std::net::Ipv6Addr::from(v6).to_string());
            let entry = Entry { name: name.clone(), mac: mac.parse().unwrap(), address: address.parse().unwrap() };
            for server in Server::ALL {
                let Ok(file) = render(server, &entry) else { continue };
                prop_assert_eq!(entries_of(server, &file.content), (vec![held(&[&name], &[&mac], &[&address])], true));
            }
        }

        #[test]
        fn no_content_stops_the_reader(content in ".{0,300}") {
            for server in Server::ALL {
                entries_of(server, &content);
            }
        }
    }
}
