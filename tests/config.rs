//! The configuration as a whole: the example, files that are right, and files that are wrong with what is said of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster::config;
use muster::config::settings::{
    DhcpServerKind, IronicAuth, KeystoneMethod, KeystoneScope, SecretRef, Settings, Trust, VaultKind, default_options,
};

fn at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(at(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

fn loaded(path: &Path) -> config::Loaded {
    config::read(path).unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()))
}

/// Every line that is a comment with a key or a table is switched on.
fn switched_on(example: &str) -> String {
    let is_key = |rest: &str| rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| is_bare(key));
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if is_key(rest) => rest.to_owned(),
        _ => line.to_owned(),
    };
    example.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A bare key, or one in quotes.
fn is_bare(key: &str) -> bool {
    let inside = key.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.is_some() || !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Proves: K1
#[test]
fn the_example_is_right_as_it_stands_and_with_every_key_switched_on() {
    let example = loaded(&at("config.example.toml"));
    assert_eq!(example.warnings, []);
    let text = switched_on(&std::fs::read_to_string(at("config.example.toml")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.toml");
    std::fs::write(&path, text).unwrap();
    let all = loaded(&path);

    // What the comments show are the defaults.
    let (as_is, on) = (&example.settings, &all.settings);
    assert_eq!(as_is.netbox, on.netbox);
    assert_eq!(as_is.limits, on.limits);
    assert_eq!(as_is.eligibility, on.eligibility);
    assert_eq!(as_is.sites["osl1"].options, on.sites["osl1"].options);
    assert_eq!(as_is.sites["osl1"].options, default_options());
    let bmc = &on.sites["osl1"].bmc;
    assert_eq!(bmc.port, Some(443));
    assert_eq!(bmc.ipmi_key.as_ref().map(ToString::to_string).as_deref(), Some("vault:bmc-{host}/ipmi_key"));
    let without = muster::config::settings::BmcSettings { port: None, ipmi_key: None, ..bmc.clone() };
    assert_eq!(as_is.sites["osl1"].bmc, without);
    assert_eq!(as_is.vault.bmc_item, on.vault.bmc_item);
    assert_eq!((&on.console.theme, on.console.mouse), (&Some("dark".to_owned()), as_is.console.mouse));
    assert_eq!(on.console.keys["retry+inspect"], ["ctrl-f", "f"]);
    muster::tui::keymap::Keymap::with(on.console.keys.clone()).unwrap();
    assert_eq!(on.ironic.len(), 4);
    assert!(on.ironic["with-system-scope"] != on.ironic["with-project"]);
    // What is left out even then are alternatives of keys that are there, and what an emulated site needs not.
    let left_out: Vec<&str> = all
        .left_out
        .iter()
        .map(String::as_str)
        .filter(|key| !key.contains(".auth.") && !key.starts_with("ironic.with-"))
        .collect();
    assert_eq!(left_out, [] as [&str; 0], "the example does not show these keys");
}

/// Proves: K1
#[test]
fn every_valid_file_is_read_as_it_is_meant() {
    for path in files("tests/config/valid") {
        loaded(&path);
    }
    let minimal = loaded(&at("tests/config/valid/minimal.toml"));
    assert_eq!(minimal.warnings, [], "http to this machine is nothing to warn of");
    assert_eq!(minimal.settings.vault.kind, VaultKind::Env);
    assert_eq!(minimal.settings.routing("osl1").resolve(Some("COMPUTE_GPU")), Some("lab"));

    let two = loaded(&at("tests/config/valid/two-sites.toml"));
    let Settings { netbox, ironic, sites, .. } = &two.settings;
    assert_eq!(netbox.token, SecretRef::File("/run/secrets/netbox".into()));
    assert!(matches!(netbox.trust, Trust::Pinned(bytes) if bytes[..2] == [0xab, 0xcd]));
    assert_eq!(ironic["north"].trust, Trust::Ca(at("tests/config/valid/ca.pem")), "relative to the file");
    let IronicAuth::Keystone(auth) = &ironic["north"].auth else { panic!("{:?}", ironic["north"].auth) };
    let KeystoneMethod::Password { scope, user_domain, .. } = &auth.method else { panic!("{:?}", auth.method) };
    assert_eq!(scope, &KeystoneScope::Project { name: "p".into(), domain: "Default".into() });
    assert_eq!(user_domain, "Default");
    assert_eq!(sites.keys().collect::<Vec<_>>(), ["zrh", "osl1"], "the order of the file");
    assert_eq!(two.settings.routing("zrh").resolve(Some("COMPUTE_GPU")), Some("south"));
    assert_eq!(two.settings.routing("osl1").resolve(Some("COMPUTE_GPU")), Some("north"));
    let dhcp = sites["zrh"].dhcp.as_ref().unwrap();
    assert_eq!((dhcp.port, dhcp.server, dhcp.directory.as_str()), (2222, DhcpServerKind::Isc, "/etc/dhcp/hosts.d"));
    assert_eq!((dhcp.command, dhcp.connect), (Duration::from_millis(250), Duration::from_secs(120)));
    let budgets = &sites["osl1"].options.budgets;
    assert_eq!((budgets.max_attempts, budgets.link_guard), (1, Duration::from_millis(1500)));
    assert!(!sites["osl1"].options.configure_bmc && sites["osl1"].options.ironic_enrol);
    let warned: Vec<&str> = two.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(warned, ["sites.osl1.bmc.scheme", "sites.osl1.bmc.trust", "eligibility.device_classes"]);
    let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<BTreeSet<String>>();
    let rules = &two.settings.eligibility;
    assert_eq!((&rules.sites, &rules.device_classes), (&set(&["osl1", "zrh"]), &set(&["COMPUTE_GPU", "STORAGE"])));
    assert_eq!((&rules.custody_tags, &rules.custody_tenants), (&set(&[]), &set(&["acme"])));
    assert_eq!(rules.blocking_tags, set(&["do-not-enroll"]), "what is left out stays as it is");
}

/// The expected text stands beside each file. `UPDATE_EXPECTED=1` writes it anew.
///
/// Proves: K1
#[test]
fn every_mistake_of_an_invalid_file_is_told_with_its_place() {
    let mut wrong = String::new();
    for path in files("tests/config/invalid") {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let errors = config::parse(&text, name).err().unwrap_or_else(|| panic!("{name} is valid")).to_string() + "\n";
        let beside = path.with_extension("txt");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&beside, &errors).unwrap();
        }
        let expected = std::fs::read_to_string(&beside).unwrap_or_default();
        if errors != expected {
            wrong += &format!("--- {name}, expected:\n{expected}--- found:\n{errors}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Toward K2 and Z1: the configuration holds no secret, and its errors show none.
#[test]
fn a_secret_in_clear_is_refused_and_never_shown() {
    for path in files("tests/config/invalid") {
        let text = std::fs::read_to_string(&path).unwrap();
        let errors = config::parse(&text, "config.toml").unwrap_err();
        assert!(!errors.to_string().contains("canary"), "{errors}");
        assert!(!format!("{errors:?}").contains("canary"), "{errors:?}");
    }
}

/// Proves: K1
#[test]
fn a_file_that_is_not_there_says_what_to_do() {
    let errors = config::load(Path::new("/no/such/config.toml")).unwrap_err().to_string();
    assert!(
        errors.starts_with("/no/such/config.toml: there is no configuration; copy config.example.toml"),
        "{errors}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, b"[netbox]\nurl = \"\xff\"\n").unwrap();
    assert!(config::load(&path).unwrap_err().to_string().ends_with("line 2 is not UTF-8 text"));
}
