//! Vaults against what stands behind them: a Connect server, 1Password's program, age, a keyring.

mod age;
mod connect;
#[path = "../support/connect.rs"]
mod connect_server;
mod keyring;
mod op;
mod rotation;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use muster::clients::vault::{Fields, Vault, VaultError};
use muster::config::settings::{VaultKind, VaultSettings};
use secrecy::{ExposeSecret, SecretString};

/// What none of the vaults shows.
pub const CANARY: &str = "c4n\"ary-p4ss";

pub fn vault(kind: VaultKind) -> Vault {
    Vault::new(VaultSettings {
        kind,
        dhcp_item: "ssh-config-dhcp".into(),
        bmc_item: "bmc-{host}".into(),
        ipmi_item: "ipmi_exporter".into(),
        factory_item: "bmc-factory-{vendor}".into(),
    })
}

pub fn fields(pairs: &[(&'static str, Option<&str>)]) -> Fields {
    pairs.iter().map(|(name, text)| (*name, text.map(SecretString::from))).collect()
}

pub async fn asked(vault: &Vault, item: &str, field: &str) -> String {
    vault.ask(item, field).await.unwrap_or_else(|e| panic!("{item}/{field}: {e}")).expose_secret().to_owned()
}

/// The error's sentence; it shows no secret in any form.
pub fn told(error: &VaultError) -> String {
    let text = format!("{error} {error:?}");
    assert!(!text.contains("c4n") && !text.contains("p4ss"), "{text}");
    error.to_string()
}

pub fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Whether a program is installed; where it has to be (tests/run) its lack is a failure.
pub fn installed(program: &str, package: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no {program} (install {package})");
        eprintln!("could not run: no {program} (install {package})");
    }
    found
}
