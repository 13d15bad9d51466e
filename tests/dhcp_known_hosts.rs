//! known_hosts as people have it, against what is expected of each host.

use muster::clients::ssh::known_hosts::{KnownHosts, Verdict};
use russh::keys::{Algorithm, PrivateKey, PublicKey};

const FILE: &str = include_str!("fixtures/cases/c41-known-hosts.txt");
const EXPECT: &str = include_str!("fixtures/cases/c41-known-hosts-expect.json");

/// The key that all services of the case show.
fn server_key() -> PublicKey {
    let line = FILE.lines().find(|line| line.starts_with("dhcp1.") && line.contains("ssh-ed25519")).unwrap();
    PublicKey::from_openssh(line.split_once(' ').unwrap().1).unwrap()
}

/// Proves: D4
/// Case: C-41
#[test]
fn every_form_of_known_hosts_is_read() {
    let known_hosts = KnownHosts::parse(FILE);
    let expect: serde_json::Value = serde_json::from_str(EXPECT).unwrap();
    for check in expect["checks"].as_array().unwrap() {
        let (host, port, word) = (check[0].as_str().unwrap(), check[1].as_u64().unwrap(), check[2].as_str().unwrap());
        let verdict = known_hosts.judge(host, port as u16, &server_key());
        match word {
            "known" => assert!(matches!(verdict, Verdict::Match { .. }), "{host}:{port}: {verdict}"),
            "unknown" => assert!(matches!(verdict, Verdict::Unknown { .. }), "{host}:{port}: {verdict}"),
            // The decision that the case leaves open: an equal key under the bare name is taken, as OpenSSH does.
            other => {
                assert!(other.starts_with("written decision"), "{other}");
                assert!(matches!(verdict, Verdict::Match { .. }), "{host}:{port}: {verdict}");
            }
        }
    }
}

/// Proves: D4
/// Case: C-41
#[test]
fn another_key_is_changed_within_its_type_and_unknown_beyond_it() {
    let known_hosts = KnownHosts::parse(FILE);
    let other = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap().public_key().clone();
    let verdict = known_hosts.judge("dhcp1.example.net", 22, &other);
    assert!(matches!(verdict, Verdict::Changed { .. }), "{verdict}");
    let curve = Algorithm::Ecdsa { curve: russh::keys::EcdsaCurve::NistP384 };
    let new_type = PrivateKey::random(&mut rand::rng(), curve).unwrap().public_key().clone();
    let verdict = known_hosts.judge("dhcp1.example.net", 22, &new_type);
    assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict}");
    // A different key under the bare name may be another service's: no change for the service on the port.
    let verdict = known_hosts.judge("dhcp1.example.net", 2222, &other);
    assert!(matches!(verdict, Verdict::Unknown { .. }), "{verdict}");
}
