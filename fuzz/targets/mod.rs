//! What is fuzzed: for each parser of outside data a function that takes any bytes. It panics where a promise is broken.
//!
//! The same functions are behind libFuzzer (`fuzz/run`) and behind an ordinary test (`tests/fuzz.rs`).

mod clients;
mod network;
mod records;
mod typed;

/// A parser under test. A name is that of its corpus, and of its dictionary where it has one.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("lldp_frame", network::lldp_frame),
    ("lldp_parsed", network::lldp_parsed),
    ("inventory", network::inventory),
    ("dhcp_isc", network::dhcp_isc),
    ("dhcp_kea", network::dhcp_kea),
    ("dhcp_dnsmasq", network::dhcp_dnsmasq),
    ("known_hosts", network::known_hosts),
    ("ipmi", network::ipmi),
    ("redfish", clients::redfish),
    ("redfish_said", clients::redfish_said),
    ("netbox", clients::netbox),
    ("netbox_event", clients::netbox_event),
    ("ironic", clients::ironic),
    ("journal", records::journal),
    ("rows", records::rows),
    ("config", typed::config),
    ("theme", typed::theme),
    ("query", typed::query),
    ("terminal_text", typed::terminal_text),
];

/// The parts of an input that is several documents: each ends with a line of three dashes.
fn parts(bytes: &[u8]) -> Vec<&[u8]> {
    const LINE: &[u8] = b"\n---\n";
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    while at + LINE.len() <= bytes.len() {
        if &bytes[at..at + LINE.len()] == LINE {
            parts.push(&bytes[from..at]);
            at += LINE.len();
            from = at;
        } else {
            at += 1;
        }
    }
    parts.push(&bytes[from..]);
    parts
}

/// Text from outside as it may be shown: nothing that a terminal acts on.
fn is_safe(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}
