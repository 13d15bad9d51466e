//! Reads known_hosts in every form that OpenSSH writes, and judges the key that a server shows (D4).
//!
//! russh's own check takes a revoked key for a known one, a second key of a type for a change, and knows no patterns; so
//! the decision is made here, by OpenSSH's rules.

use std::fmt;

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use russh::keys::{Algorithm, HashAlg, PublicKey};
use sha1::Sha1;

/// A known_hosts file, line by line. A line that cannot be read loses nothing but itself.
#[derive(Debug, Clone, Default)]
pub struct KnownHosts {
    entries: Vec<Entry>,
    unreadable: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Entry {
    line: usize,
    marker: Marker,
    hosts: Hosts,
    key: PublicKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    CertAuthority,
    Revoked,
}

#[derive(Debug, Clone)]
enum Hosts {
    /// Lower-case patterns; `true` where the pattern is negated.
    Patterns(Vec<(bool, String)>),
    Hashed {
        salt: Vec<u8>,
        hash: Vec<u8>,
    },
}

/// What known_hosts says of the key that a server shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Match {
        line: usize,
    },
    /// No line for this host has a key of this type. That is no change: a host has a key of each type (C-41).
    Unknown {
        shown: KeyName,
        /// Key types that known_hosts has for the host.
        known_types: Vec<String>,
        /// Lines that could not be read: the key may be in one of them.
        unreadable: Vec<usize>,
    },
    /// A line has another key of the same type.
    Changed {
        shown: KeyName,
        recorded: KeyName,
        line: usize,
    },
    Revoked {
        shown: KeyName,
        line: usize,
    },
    /// The host is known only by a certificate authority, and certificates are not checked here.
    CertificateAuthorityOnly {
        shown: KeyName,
        line: usize,
    },
}

/// A key as messages name it: `ssh-ed25519 SHA256:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&PublicKey> for KeyName {
    fn from(key: &PublicKey) -> Self {
        KeyName(format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256)))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Match { line } => write!(f, "known_hosts line {line} has the key"),
            Verdict::Unknown { shown, known_types, unreadable } => {
                write!(f, "the server shows '{shown}', and known_hosts has ")?;
                if known_types.is_empty() {
                    f.write_str("no key for it")?;
                } else {
                    write!(f, "only keys of other types for it ('{}')", known_types.join("', '"))?;
                }
                if known_types.iter().any(|name| name == "ssh-rsa") {
                    f.write_str("; RSA host keys are not checked by this program")?;
                }
                if let Some(first) = unreadable.first() {
                    let more = unreadable.len() - 1;
                    write!(f, "; line {first} of it cannot be read")?;
                    if more > 0 {
                        write!(f, ", nor can {more} more")?;
                    }
                }
                Ok(())
            }
            Verdict::Changed { shown, recorded, line } => {
                write!(f, "the server shows '{shown}', known_hosts line {line} has '{recorded}'")
            }
            Verdict::Revoked { shown, line } => {
                write!(f, "the server shows '{shown}', which known_hosts line {line} revokes")
            }
            Verdict::CertificateAuthorityOnly { shown, line } => write!(
                f,
                "the server shows '{shown}', and known_hosts has only a certificate authority for it (line {line}), \
                 which this program does not check"
            ),
        }
    }
}

impl KnownHosts {
    /// Reads the text of a known_hosts file.
    pub fn parse(text: &str) -> Self {
        let mut all = KnownHosts::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match Entry::parse(index + 1, line) {
                Some(entry) => all.entries.push(entry),
                None => all.unreadable.push(index + 1),
            }
        }
        all
    }

    /// Judges the key that `host` shows at `port`.
    ///
    /// A host on another port than 22 is looked up as `[host]:port` first and, where that says nothing of the key, by its
    /// bare name, as OpenSSH does: some versions of ssh-keyscan hash the bare name. A key is accepted by the bare name
    /// only if it is equal; a difference there says nothing, since it may be another service's key.
    pub fn judge(&self, host: &str, port: u16, key: &PublicKey) -> Verdict {
        let shown = KeyName::from(key);
        let equal = |entry: &&Entry| entry.key.key_data() == key.key_data();
        let exact = self.entries_for(&exact_name(host, port));
        let bare = if port == 22 { Vec::new() } else { self.entries_for(&host.to_ascii_lowercase()) };
        let of = |marker: Marker| exact.iter().chain(&bare).copied().filter(move |e| e.marker == marker);

        if let Some(entry) = of(Marker::Revoked).find(equal) {
            return Verdict::Revoked { shown, line: entry.line };
        }
        let plain: Vec<&Entry> = exact.iter().copied().filter(|e| e.marker == Marker::None).collect();
        if let Some(entry) = plain.iter().copied().find(equal) {
            return Verdict::Match { line: entry.line };
        }
        if let Some(entry) = plain.iter().find(|e| e.key.algorithm() == key.algorithm()) {
            return Verdict::Changed { shown, recorded: KeyName::from(&entry.key), line: entry.line };
        }
        if let Some(entry) = of(Marker::None).find(equal) {
            return Verdict::Match { line: entry.line };
        }
        if let Some(entry) = of(Marker::CertAuthority).next() {
            return Verdict::CertificateAuthorityOnly { shown, line: entry.line };
        }
        let mut known_types: Vec<String> = plain.iter().map(|e| e.key.algorithm().to_string()).collect();
        known_types.dedup();
        Verdict::Unknown { shown, known_types, unreadable: self.unreadable.clone() }
    }

    /// `offered`, with the types first that known_hosts has a good key of for this host: else a file with only an ECDSA
    /// line would meet the server's ed25519 key.
    pub fn preferred(&self, host: &str, port: u16, offered: &[Algorithm]) -> Vec<Algorithm> {
        let mut named = self.entries_for(&exact_name(host, port));
        if !named.iter().any(|e| e.marker == Marker::None) {
            named.extend(self.entries_for(&host.to_ascii_lowercase()));
        }
        let revoked =
            |key: &PublicKey| named.iter().any(|e| e.marker == Marker::Revoked && e.key.key_data() == key.key_data());
        let has = |algorithm: &Algorithm| {
            named.iter().any(|e| e.marker == Marker::None && e.key.algorithm() == *algorithm && !revoked(&e.key))
        };
        let (mut first, rest): (Vec<Algorithm>, Vec<Algorithm>) = offered.iter().cloned().partition(has);
        first.extend(rest);
        first
    }

    fn entries_for(&self, name: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.hosts.matches(name)).collect()
    }
}

/// The name that known_hosts has a service under: the bare host at port 22, else `[host]:port`.
pub fn exact_name(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    if port == 22 { host } else { format!("[{host}]:{port}") }
}

impl Entry {
    /// One line: optional marker, hosts, key type, key, comment; any run of blanks and tabs between them.
    fn parse(line: usize, text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut hosts = words.next()?;
        let marker = match hosts {
            "@cert-authority" => Marker::CertAuthority,
            "@revoked" => Marker::Revoked,
            other if other.starts_with('@') => return None,
            _ => Marker::None,
        };
        if marker != Marker::None {
            hosts = words.next()?;
        }
        let key = format!("{} {}", words.next()?, words.next()?);
        Some(Entry { line, marker, hosts: Hosts::parse(hosts)?, key: PublicKey::from_openssh(&key).ok()? })
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Self> {
        if let Some(hashed) = text.strip_prefix("|1|") {
            let (salt, hash) = hashed.split_once('|')?;
            let decode = |part: &str| base64::engine::general_purpose::STANDARD.decode(part).ok();
            return Some(Hosts::Hashed { salt: decode(salt)?, hash: decode(hash)? });
        }
        let pattern = |word: &str| match word.strip_prefix('!') {
            Some(rest) => (true, rest.to_ascii_lowercase()),
            None => (false, word.to_ascii_lowercase()),
        };
        Some(Hosts::Patterns(text.split(',').filter(|word| !word.is_empty()).map(pattern).collect()))
    }

    /// Whether the line is about this (lower-case) name. A negated pattern that fits wins over all others.
    fn matches(&self, name: &str) -> bool {
        match self {
            Hosts::Hashed { salt, hash } => Hmac::<Sha1>::new_from_slice(salt)
                .is_ok_and(|mac| mac.chain_update(name.as_bytes()).verify_slice(hash).is_ok()),
            Hosts::Patterns(patterns) => {
                let fits = |negated: bool| {
                    patterns.iter().any(|(n, pattern)| *n == negated && glob(pattern.as_bytes(), name.as_bytes()))
                };
                fits(false) && !fits(true)
            }
        }
    }
}

/// `*` and `?` as OpenSSH reads them. Linear in practice: only the last star is ever taken back.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    t = from + 1;
                    star = Some((at, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILoBjdoBcFr5x8fMPgNpPuv7p8qgpuw6me7DS2C6yWVh";
    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBGd0V6Q5wEFC6BRNwK9GM/EZxUojMTk+7Hd5bVSU6FOrbd2XQxU8+eZLSqwr2RFsuFEiCHc+xxcO5guxmzN8R3Q=";

    fn key(text: &str) -> PublicKey {
        PublicKey::from_openssh(text).unwrap()
    }

    fn other() -> String {
        russh::keys::PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519)
            .unwrap()
            .public_key()
            .to_openssh()
            .unwrap()
    }

    fn judge(file: &str, host: &str, port: u16) -> Verdict {
        KnownHosts::parse(file).judge(host, port, &key(A))
    }

    /// Proves: D4
    #[test]
    fn a_revoked_key_is_revoked_wherever_else_it_stands() {
        for file in [format!("h {A}\n@revoked h {A}\n"), format!("@revoked * {A}\n[h]:2222 {A}\nh {A}\n")] {
            assert!(matches!(judge(&file, "h", 22), Verdict::Revoked { .. }), "{file}");
            assert!(matches!(judge(&file, "h", 2222), Verdict::Revoked { .. }), "{file}");
        }
        assert!(matches!(judge(&format!("@revoked other {A}\nh {A}\n"), "h", 22), Verdict::Match { line: 2 }));
    }

    /// Proves: D4
    /// Case: C-41
    #[test]
    fn changed_names_both_keys_and_only_within_one_type() {
        let recorded = other();
        let verdict = judge(&format!("h {ECDSA}\nh {recorded}\n"), "h", 22);
        let Verdict::Changed { line: 2, .. } = &verdict else { panic!("{verdict:?}") };
        let text = verdict.to_string();
        assert!(text.contains(&key(A).fingerprint(HashAlg::Sha256).to_string()), "{text}");
        assert!(text.contains(&key(&recorded).fingerprint(HashAlg::Sha256).to_string()), "{text}");
        assert_eq!(judge(&format!("h {recorded}\nh {A}\n"), "h", 22), Verdict::Match { line: 2 });
        let verdict = judge(&format!("h {ECDSA}\n"), "h", 22);
        let Verdict::Unknown { known_types, .. } = &verdict else { panic!("{verdict:?}") };
        assert_eq!(known_types, &["ecdsa-sha2-nistp256"]);
    }

    #[test]
    fn tabs_comments_case_and_broken_lines_lose_nothing() {
        let file = format!("# a comment\nbroken\nh ssh-ed25519 AAAA\n\tH\t \t{} the comment # of a key\r\n", A);
        assert_eq!(judge(&file, "h", 22), Verdict::Match { line: 4 });
        let Verdict::Unknown { unreadable, .. } = judge(&file, "x", 22) else { panic!() };
        assert_eq!(unreadable, [2, 3]);
        assert!(judge(&file, "x", 22).to_string().contains("line 2 of it cannot be read, nor can 1 more"));
    }

    #[test]
    fn a_certificate_authority_alone_knows_no_plain_key() {
        let verdict = judge(&format!("@cert-authority *.example.net {ECDSA}\n"), "dhcp.example.net", 22);
        assert!(verdict.to_string().contains("certificate authority"), "{verdict}");
        assert!(matches!(verdict, Verdict::CertificateAuthorityOnly { line: 1, .. }));
    }

    #[test]
    fn an_address_of_ipv6_is_looked_up_with_and_without_a_port() {
        let file = format!("2001:db8::29 {A}\n[2001:db8::30]:2222 {A}\n");
        assert_eq!(judge(&file, "2001:DB8::29", 22), Verdict::Match { line: 1 });
        assert_eq!(judge(&file, "2001:db8::30", 2222), Verdict::Match { line: 2 });
    }

    #[test]
    fn the_types_that_known_hosts_has_are_asked_for_first() {
        let ecdsa = key(ECDSA).algorithm();
        let offered = [Algorithm::Ed25519, ecdsa.clone()];
        let prefer = |file: &str| KnownHosts::parse(file).preferred("h", 2222, &offered);
        assert_eq!(prefer(&format!("[h]:2222 {ECDSA}\n")), [ecdsa.clone(), Algorithm::Ed25519]);
        assert_eq!(prefer(&format!("h {ECDSA}\n")), [ecdsa.clone(), Algorithm::Ed25519]);
        assert_eq!(prefer(""), offered);
        let revoked = format!("@revoked * {A}\n[h]:2222 {A}\n[h]:2222 {ECDSA}\n");
        assert_eq!(prefer(&revoked), [ecdsa, Algorithm::Ed25519]);
    }

    #[test]
    fn patterns_are_read_as_openssh_reads_them() {
        for (pattern, text, fits) in [
            ("*", "anything", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abd", false),
            ("a?c", "ac", false),
            ("a**b*", "axxbyy", true),
            ("", "", true),
            ("", "a", false),
            ("*.example.net", "a.b.example.net", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }
}
