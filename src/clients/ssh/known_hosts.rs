//! Reads known_hosts in every form that OpenSSH writes, and judges the key that a server shows (D4).
//!
//! russh's own check takes a revoked key for a known one, a second key of a type for a change, and knows no patterns; so
//! the decision is made here, by OpenSSH's rules.

use std::fmt;

use base64::Engine as _;
use hmac::{Hmac, KeyInit, Mac};
use russh::keys::ssh_key::certificate::CertType;
use russh::keys::{Algorithm, Certificate, HashAlg, PublicKey};
use sha1::Sha1;

use super::algorithms::same_type;
use crate::domain::text::neutralize_to;

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
    /// The host is known only by a certificate authority, and shows a key without a certificate of it.
    CertificateAuthorityOnly {
        shown: KeyName,
        line: usize,
    },
    /// A certificate of an authority that is known, and that is good for something else than this host and now.
    BadCertificate {
        shown: KeyName,
        authority: KeyName,
        line: usize,
        why: String,
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
                "the server shows '{shown}' without a certificate, and known_hosts has only a certificate authority for it \
                 (line {line})"
            ),
            Verdict::BadCertificate { shown, authority, line, why } => write!(
                f,
                "the server shows a certificate for '{shown}' of the authority '{authority}' (known_hosts line {line}): {why}"
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
        if let Some(entry) = plain.iter().find(|e| same_type(&e.key.algorithm(), &key.algorithm())) {
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

    /// Judges the certificate that `host` shows at `port`, at a time in seconds since 1970, by OpenSSH's rules: it is a host's, of
    /// an authority that known_hosts has for this host, in force, for this name, and neither its key nor its authority is revoked.
    /// A certificate of anybody else says nothing; then the key in it is judged as if it came alone.
    pub fn judge_certificate(&self, host: &str, port: u16, certificate: &Certificate, now: u64) -> Verdict {
        let key = PublicKey::new(certificate.public_key().clone(), "");
        let authority = PublicKey::new(certificate.signature_key().clone(), "");
        let named = self.named(host, port);
        let find = |marker: Marker, key: &PublicKey| {
            named.iter().find(|e| e.marker == marker && e.key.key_data() == key.key_data()).copied()
        };
        for key in [&key, &authority] {
            if let Some(entry) = find(Marker::Revoked, key) {
                return Verdict::Revoked { shown: KeyName::from(key), line: entry.line };
            }
        }
        let Some(entry) = find(Marker::CertAuthority, &authority) else { return self.judge(host, port, &key) };
        match certificate_fault(certificate, &host.to_ascii_lowercase(), now) {
            None => Verdict::Match { line: entry.line },
            Some(why) => Verdict::BadCertificate {
                shown: KeyName::from(&key),
                authority: KeyName::from(&authority),
                line: entry.line,
                why,
            },
        }
    }

    /// Whether an authority is known for this host.
    pub fn has_authority(&self, host: &str, port: u16) -> bool {
        self.named(host, port).iter().any(|entry| entry.marker == Marker::CertAuthority)
    }

    /// All lines for a service, those for its bare name included.
    fn named(&self, host: &str, port: u16) -> Vec<&Entry> {
        let mut named = self.entries_for(&exact_name(host, port));
        if port != 22 {
            named.extend(self.entries_for(&host.to_ascii_lowercase()));
        }
        named
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
            named
                .iter()
                .any(|e| e.marker == Marker::None && same_type(&e.key.algorithm(), algorithm) && !revoked(&e.key))
        };
        let (mut first, rest): (Vec<Algorithm>, Vec<Algorithm>) = offered.iter().cloned().partition(has);
        first.extend(rest);
        first
    }

    fn entries_for(&self, name: &str) -> Vec<&Entry> {
        self.entries.iter().filter(|entry| entry.hosts.matches(name)).collect()
    }
}

/// Why a certificate is not good for a (lower-case) host now.
fn certificate_fault(certificate: &Certificate, host: &str, now: u64) -> Option<String> {
    if certificate.verify_signature().is_err() {
        return Some("its signature is wrong".to_owned());
    }
    if matches!(certificate.signature().algorithm(), Algorithm::Rsa { hash: None } | Algorithm::Dsa) {
        return Some(format!("it is signed with '{}'", certificate.signature().algorithm()));
    }
    if certificate.cert_type() != CertType::Host {
        return Some("it is a user's, not a host's".to_owned());
    }
    if !certificate.critical_options().is_empty() {
        return Some("it has critical options, and a host's has none that are known".to_owned());
    }
    if now < certificate.valid_after() {
        return Some("it is not valid yet".to_owned());
    }
    if now >= certificate.valid_before() {
        return Some("it has expired".to_owned());
    }
    let principals = certificate.valid_principals();
    let fits = |name: &String| glob(name.to_ascii_lowercase().as_bytes(), host.as_bytes());
    // Without a name it is for every host of the authority.
    if !principals.is_empty() && !principals.iter().any(fits) {
        return Some(format!("it is for '{}'", neutralize_to(&principals.join("', '"), 120)));
    }
    None
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

    /// Proves: D4
    #[test]
    fn a_certificate_is_good_for_its_host_and_its_time_and_of_a_known_authority() {
        use russh::keys::PrivateKey;
        use russh::keys::ssh_key::certificate::Builder;

        let random = || PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
        let (subject, authority, stranger) = (random(), random(), random());
        let made = |kind: CertType, principals: &[&str], signer: &PrivateKey, option: bool| {
            let public = subject.public_key().clone();
            let mut builder = Builder::new_with_random_nonce(&mut rand::rng(), public, 1000, 2000).unwrap();
            builder.cert_type(kind).unwrap().key_id("dhcp1").unwrap();
            if principals.is_empty() {
                builder.all_principals_valid().unwrap();
            }
            for name in principals {
                builder.valid_principal(*name).unwrap();
            }
            if option {
                builder.critical_option("force-command", "true").unwrap();
            }
            builder.sign(signer).unwrap()
        };
        let line = |marker: &str, key: &PrivateKey| {
            format!("{marker} *.example.net {}\n", key.public_key().to_openssh().unwrap())
        };
        let known = line("@cert-authority", &authority);
        let judge = |file: &str, certificate: &Certificate, now| {
            KnownHosts::parse(file).judge_certificate("DHCP1.example.net", 2222, certificate, now)
        };
        let good = made(CertType::Host, &["dhcp2.example.net", "dhcp1.example.net"], &authority, false);
        assert_eq!(judge(&known, &good, 1000), Verdict::Match { line: 1 });
        assert_eq!(
            judge(&known, &made(CertType::Host, &["*.example.net"], &authority, false), 1999),
            Verdict::Match { line: 1 }
        );
        assert_eq!(judge(&known, &made(CertType::Host, &[], &authority, false), 1500), Verdict::Match { line: 1 });
        for (certificate, now, part) in [
            (good.clone(), 999, "not valid yet"),
            (good.clone(), 2000, "expired"),
            (made(CertType::Host, &["dhcp2.example.net"], &authority, false), 1500, "it is for 'dhcp2.example.net'"),
            (made(CertType::User, &["dhcp1.example.net"], &authority, false), 1500, "a user's"),
            (made(CertType::Host, &["dhcp1.example.net"], &authority, true), 1500, "critical options"),
        ] {
            let verdict = judge(&known, &certificate, now);
            assert!(matches!(verdict, Verdict::BadCertificate { .. }), "{verdict}");
            assert!(verdict.to_string().contains(part), "{verdict}");
            assert_eq!(verdict.to_string().matches("SHA256:").count(), 2, "{verdict}");
        }
        // Another's certificate says nothing; the key in it may be known by itself.
        let others = made(CertType::Host, &["dhcp1.example.net"], &stranger, false);
        assert!(matches!(judge(&known, &others, 1500), Verdict::CertificateAuthorityOnly { .. }));
        let plain = format!("[dhcp1.example.net]:2222 {}\n", subject.public_key().to_openssh().unwrap());
        assert_eq!(judge(&(known.clone() + &plain), &others, 1500), Verdict::Match { line: 2 });
        for revoked in [&subject, &authority] {
            let verdict = judge(&(known.clone() + &line("@revoked", revoked)), &good, 1500);
            assert!(matches!(verdict, Verdict::Revoked { line: 2, .. }), "{verdict}");
        }
        assert!(KnownHosts::parse(&known).has_authority("a.example.net", 2222));
        assert!(!KnownHosts::parse(&known).has_authority("example.org", 22));
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
