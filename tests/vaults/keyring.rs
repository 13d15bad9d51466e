//! The desktop's keyring: a real gnome-keyring on a session bus of the test's own, and no keyring at all.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster::clients::vault::{Vault, VaultError};
use muster::config::settings::{KeyringVault, VaultKind};

use super::{CANARY, asked, fields, installed, told, vault};

/// A session bus with an unlocked keyring on it, in a home of its own. Ends with the test.
struct Session {
    child: Child,
    folder: tempfile::TempDir,
}

impl Session {
    /// `None`: this machine lacks a part of it.
    fn start() -> Option<Session> {
        let parts = [
            ("secret-tool", "libsecret-tools"),
            ("gnome-keyring-daemon", "gnome-keyring"),
            ("dbus-run-session", "dbus"),
        ];
        if !parts.iter().all(|(program, package)| installed(program, package)) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // The daemon forks and ends with its bus; the session lasts until its input is closed.
        let script = "printf test | gnome-keyring-daemon --unlock --components=secrets >/dev/null && \
                      echo \"$DBUS_SESSION_BUS_ADDRESS\" && read -r _";
        let mut child = Command::new("dbus-run-session")
            .args(["--", "sh", "-c", script])
            .env("HOME", folder.path())
            .env("XDG_RUNTIME_DIR", folder.path())
            .env("XDG_DATA_HOME", folder.path().join("data"))
            .env_remove("DISPLAY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim();
        assert!(!address.is_empty(), "no keyring came up");
        // muster hands its own session on; the test has none, so the program is told of this one by a wrapper.
        let wrapper = folder.path().join("secret-tool");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{0}/argv'\nexport DBUS_SESSION_BUS_ADDRESS='{address}' XDG_RUNTIME_DIR='{0}'\nexec secret-tool \"$@\"\n",
            folder.path().display()
        );
        std::fs::write(&wrapper, text).unwrap();
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        Some(Session { child, folder })
    }

    fn vault(&self) -> Vault {
        of(&self.folder.path().join("secret-tool"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.stdin.take().map(|mut stdin| stdin.write_all(b"\n")));
        self.child.wait().ok();
    }
}

fn of(program: &Path) -> Vault {
    vault(VaultKind::Keyring(KeyringVault { program: program.to_owned(), timeout: Duration::from_secs(10) }))
}

/// Proves: K2, Z1
#[tokio::test]
async fn a_real_keyring_keeps_what_is_stored_and_its_arguments_hold_no_secret() {
    let Some(session) = Session::start() else { return };
    let vault = session.vault();
    vault.open().await.unwrap();
    assert!(matches!(vault.ask("bmc-a", "password").await, Err(VaultError::Missing { .. })));
    let many = "-----BEGIN KEY-----\nc4n p4ss\n-----END KEY-----\n";
    vault
        .put("bmc-a", fields(&[("username", Some("root")), ("password", Some(CANARY)), ("key", Some(many))]))
        .await
        .unwrap();
    assert_eq!(asked(&vault, "bmc-a", "password").await, CANARY);
    assert_eq!(asked(&vault, "bmc-a", "key").await, many);
    vault.put("bmc-a", fields(&[("password", Some("rotated")), ("key", None)])).await.unwrap();
    assert_eq!(asked(&vault, "bmc-a", "password").await, "rotated");
    assert!(matches!(vault.ask("bmc-a", "key").await, Err(VaultError::Missing { .. })));
    assert_eq!(asked(&vault, "bmc-a", "username").await, "root");
    let arguments = std::fs::read_to_string(session.folder.path().join("argv")).unwrap();
    assert!(arguments.contains("store --label=muster bmc-a password application muster item bmc-a field password"));
    assert!(!arguments.contains("c4n") && !arguments.contains("rotated"), "{arguments}");
}

#[tokio::test]
async fn where_there_is_none_that_is_said() {
    let error = of(Path::new("/no/such/secret-tool")).open().await.unwrap_err();
    assert!(matches!(&error, VaultError::Unusable { remedy, .. } if remedy.contains("libsecret-tools")), "{error:?}");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("secret-tool");
    let script = |text: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("echo 'secret-tool: The name org.freedesktop.secrets was not provided by any .service files' >&2; exit 1");
    let error = of(&program).ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::Unusable { .. }) && told(&error).contains("none in this session"), "{error:?}");
    script("cat >&2; exit 1");
    let error = of(&program).put("bmc-a", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    told(&error);
    // The same of the real program, in a session without one.
    if installed("secret-tool", "libsecret-tools") {
        script("export DBUS_SESSION_BUS_ADDRESS=unix:path=/no/such/bus; exec secret-tool \"$@\"");
        let error = of(&program).ask("bmc-a", "password").await.unwrap_err();
        assert!(matches!(error, VaultError::Unusable { .. }), "{error:?}");
    }
}
