//! Which algorithms are offered to an SSH server: what OpenSSH 9 offers, and older ones only where a site asks for them.

use std::borrow::Cow;

use russh::keys::{Algorithm, EcdsaCurve, HashAlg};
use russh::{Preferred, cipher, kex, mac};

use super::known_hosts::KnownHosts;

/// Key exchanges, the strongest habit first. russh has no `sntrup761x25519`; ML-KEM is its successor.
const KEX: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_GEX_SHA256,
    kex::DH_G16_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA256,
];
/// Only with `legacy_algorithms`.
const LEGACY_KEX: &[kex::Name] = &[kex::DH_GEX_SHA1, kex::DH_G14_SHA1, kex::DH_G1_SHA1];
/// Not algorithms but what the client understands; without the last one an attacker could drop the first packets (Terrapin).
const KEX_EXTENSIONS: &[kex::Name] = &[
    kex::EXTENSION_SUPPORT_AS_CLIENT,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

const CIPHERS: &[cipher::Name] = &[
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];
const LEGACY_CIPHERS: &[cipher::Name] = &[cipher::AES_256_CBC, cipher::AES_192_CBC, cipher::AES_128_CBC];

const MACS: &[mac::Name] = &[mac::HMAC_SHA256_ETM, mac::HMAC_SHA512_ETM, mac::HMAC_SHA256, mac::HMAC_SHA512];
const LEGACY_MACS: &[mac::Name] = &[mac::HMAC_SHA1_ETM, mac::HMAC_SHA1];

/// What is offered to a host: the key types that known_hosts has of it first, certificates only where it has an authority.
pub(super) fn offered(known_hosts: &KnownHosts, host: &str, port: u16, legacy: bool) -> Preferred {
    let types = key_types(legacy);
    let certificates = if known_hosts.has_authority(host, port) { types.clone() } else { Vec::new() };
    let with =
        |modern: &[kex::Name], old: &[kex::Name]| [modern, if legacy { old } else { &[] }, KEX_EXTENSIONS].concat();
    Preferred {
        kex: Cow::Owned(with(KEX, LEGACY_KEX)),
        key: Cow::Owned(known_hosts.preferred(host, port, &types)),
        host_key_certificates: Cow::Owned(certificates),
        cipher: Cow::Owned([CIPHERS, if legacy { LEGACY_CIPHERS } else { &[] }].concat()),
        mac: Cow::Owned([MACS, if legacy { LEGACY_MACS } else { &[] }].concat()),
        ..Preferred::DEFAULT
    }
}

/// Types of host keys with the hash of their signature. `ssh-rsa` is RSA with SHA-1.
fn key_types(legacy: bool) -> Vec<Algorithm> {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let rsa = |hash| Algorithm::Rsa { hash };
    let mut types = vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
        rsa(Some(HashAlg::Sha512)),
        rsa(Some(HashAlg::Sha256)),
    ];
    if legacy {
        types.push(rsa(None));
    }
    types
}

/// Whether two names are of one type of key: RSA is one type with three names.
pub(super) fn same_type(a: &Algorithm, b: &Algorithm) -> bool {
    matches!((a, b), (Algorithm::Rsa { .. }, Algorithm::Rsa { .. })) || a == b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_with_sha_1_or_cbc_is_offered_unless_a_site_asks_for_it() {
        let names = |legacy| {
            let offered = offered(&KnownHosts::default(), "h", 22, legacy);
            let mut names: Vec<String> = offered.kex.iter().map(|name| name.as_ref().to_owned()).collect();
            names.extend(offered.cipher.iter().map(|name| name.as_ref().to_owned()));
            names.extend(offered.mac.iter().map(|name| name.as_ref().to_owned()));
            names.extend(offered.key.iter().map(ToString::to_string));
            names
        };
        let is_old = |name: &String| {
            name.ends_with("sha1") || name.contains("-sha1-") || name.contains("-cbc") || name == "ssh-rsa"
        };
        assert_eq!(names(false).into_iter().filter(is_old).collect::<Vec<_>>(), [] as [String; 0]);
        assert_eq!(names(true).into_iter().filter(is_old).count(), 3 + 3 + 2 + 1);
        for name in
            ["curve25519-sha256", "ecdh-sha2-nistp256", "aes128-gcm@openssh.com", "rsa-sha2-512", "rsa-sha2-256"]
        {
            assert!(names(false).iter().any(|known| known == name), "{name}");
        }
    }
}
