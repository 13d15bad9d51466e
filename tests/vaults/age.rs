//! A TOML file encrypted with age: read, written, and exchanged with age's own program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use muster::clients::vault::{Vault, VaultError};
use muster::config::settings::{AgeVault, SecretRef, VaultKind};

use super::{CANARY, asked, fields, installed, private, told, vault};

const TEXT: &str = "# kept\n[bmc-a]\nusername = \"root\" # by hand\npassword = 'c4n\"ary-p4ss'\n\n[other]\nx = \"y\"\n";

fn keygen(identity: &Identity) -> String {
    format!("# created: 2026-11-30\n# public key: {}\n{}\n", identity.to_public(), identity.to_string().expose_secret())
}

fn of(folder: &Path, recipients: Vec<String>) -> Vault {
    let identity = SecretRef::File(folder.join("identity"));
    vault(VaultKind::Age(AgeVault { path: folder.join("vault.age"), identity, recipients }))
}

/// Proves: K2, Z1
#[tokio::test]
async fn an_encrypted_file_is_read_and_written_back_to_all_who_are_to_read_it() {
    for armored in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (Identity::generate(), Identity::generate());
        private(folder.path(), "identity", &keygen(&own));
        let path = folder.path().join("vault.age");
        let sealed = if armored {
            age::encrypt_and_armor(&own.to_public(), TEXT.as_bytes()).unwrap().into_bytes()
        } else {
            age::encrypt(&own.to_public(), TEXT.as_bytes()).unwrap()
        };
        std::fs::write(&path, sealed).unwrap();
        let vault = of(folder.path(), vec![other.to_public().to_string()]);
        vault.open().await.unwrap();
        assert_eq!(asked(&vault, "bmc-a", "password").await, CANARY);
        let error = vault.ask("bmc-b", "password").await.unwrap_err();
        assert!(matches!(error, VaultError::Missing { .. }) && told(&error).contains("vault.age"), "{error:?}");

        vault.put("bmc-a", fields(&[("password", Some("n\"ew")), ("password_next", None)])).await.unwrap();
        vault.put("bmc-b", fields(&[("password", Some("two"))])).await.unwrap();
        assert_eq!(asked(&vault, "bmc-a", "password").await, "n\"ew");
        let now = std::fs::read(&path).unwrap();
        assert_eq!(now.starts_with(b"-----BEGIN AGE"), armored, "the form stays");
        assert!(!String::from_utf8_lossy(&now).contains("root"));
        for identity in [&own, &other] {
            let text = String::from_utf8(age::decrypt(identity, &now).unwrap()).unwrap();
            assert!(text.contains("# kept") && text.contains("# by hand") && text.contains("x = \"y\""), "{text}");
            assert!(text.contains("two"), "{text}");
        }
        // Nothing of it is left beside.
        let beside: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(beside.len(), 3, "{beside:?}");
        // Somebody rotates it while muster runs.
        let rotated = TEXT.replace("c4n\"ary-p4ss", "rotated");
        std::fs::write(&path, age::encrypt(&own.to_public(), rotated.as_bytes()).unwrap()).unwrap();
        assert_eq!(asked(&vault, "bmc-a", "password").await, "rotated");
    }
}

#[tokio::test]
async fn what_does_not_open_says_why_and_shows_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (Identity::generate(), Identity::generate());
    let path = folder.path().join("vault.age");
    std::fs::write(&path, age::encrypt(&other.to_public(), TEXT.as_bytes()).unwrap()).unwrap();
    private(folder.path(), "identity", &keygen(&own));
    let vault = of(folder.path(), vec![]);
    let error = vault.open().await.unwrap_err();
    assert!(
        matches!(error, VaultError::Refused { .. }) && told(&error).contains("not encrypted to the identity"),
        "{error:?}"
    );
    let error = vault.put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    assert!(matches!(error, VaultError::Refused { .. }), "{error:?}");

    std::fs::write(&path, TEXT).unwrap();
    let error = vault.open().await.unwrap_err();
    assert!(matches!(error, VaultError::Unusable { .. }) && told(&error).contains("no file of age"), "{error:?}");
    let broken = format!("[bmc-a]\nok = \"\"\npassword = {CANARY}\n");
    std::fs::write(&path, age::encrypt(&own.to_public(), broken.as_bytes()).unwrap()).unwrap();
    let error = vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::Malformed { line: 3, .. }), "{error:?}");
    told(&error);
    private(folder.path(), "identity", "AGE-SECRET-KEY-1c4n-p4ss\n");
    let error = vault.open().await.unwrap_err();
    assert!(told(&error).contains("no X25519 identity"), "{error}");
    let mistyped = of(folder.path(), vec![format!("age1{}", "q".repeat(58))]);
    private(folder.path(), "identity", &keygen(&own));
    std::fs::write(&path, age::encrypt(&own.to_public(), TEXT.as_bytes()).unwrap()).unwrap();
    let error = mistyped.put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    assert!(told(&error).contains("mistyped"), "{error}");
    assert_eq!(asked(&mistyped, "bmc-a", "password").await, CANARY, "the file stays as it was");
}

#[tokio::test]
async fn many_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let own = Identity::generate();
    private(folder.path(), "identity", &keygen(&own));
    std::fs::write(folder.path().join("vault.age"), age::encrypt(&own.to_public(), b"").unwrap()).unwrap();
    let vault = of(folder.path(), vec![]);
    let names: Vec<String> = (0..16).map(|n| format!("bmc-{n}")).collect();
    let all = names.iter().map(|name| vault.put(name, fields(&[("password", Some(name))])));
    for outcome in futures::future::join_all(all).await {
        outcome.unwrap();
    }
    for name in &names {
        assert_eq!(asked(&vault, name, "password").await, *name);
    }
}

fn piped(program: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success());
    ended.stdout
}

/// Proves: K2
#[tokio::test]
async fn ages_own_program_writes_what_muster_reads_and_reads_what_muster_writes() {
    if !installed("age", "age") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let identity = piped("age-keygen", &[], b"");
    let own = private(folder.path(), "identity", std::str::from_utf8(&identity).unwrap());
    let recipient = String::from_utf8(piped("age-keygen", &["-y"], &identity)).unwrap().trim().to_owned();
    let path = folder.path().join("vault.age");
    std::fs::write(&path, piped("age", &["-a", "-r", &recipient], TEXT.as_bytes())).unwrap();
    let vault = of(folder.path(), vec![]);
    assert_eq!(asked(&vault, "bmc-a", "password").await, CANARY);
    vault.put("bmc-a", fields(&[("password", Some("written by muster"))])).await.unwrap();
    let text = piped("age", &["-d", "-i", own.to_str().unwrap()], &std::fs::read(&path).unwrap());
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("written by muster") && text.contains("# kept"), "{text}");
}
