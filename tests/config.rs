//! The configuration as a whole: the example, files that are right, and files that are wrong with what is said of them.

#[path = "support/schema.rs"]
mod schema;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster::config;
use muster::config::settings::{
    AgeVault, ConnectVault, DhcpServerKind, IronicAuth, KeyringVault, KeystoneAccount, KeystoneMethod, KeystoneScope,
    OpVault, SecretRef, Settings, Trust, VaultKind, default_options,
};
use schema::fits;
use serde_json::json;

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

/// Proves: K1
#[test]
fn the_example_is_right_as_it_stands_and_with_every_key_switched_on() {
    let example = loaded(&at("config.example.toml"));
    assert_eq!(example.warnings, []);
    let text = config::example::switched_on();
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
    assert_eq!(as_is.console.on_end, on.console.on_end);
    assert_eq!(on.console.keys["retry+inspect"], ["ctrl-f", "f"]);
    muster::tui::keymap::Keymap::with(on.console.keys.clone()).unwrap();
    assert_eq!(on.ironic.len(), 6);
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
    let KeystoneAccount::Given { method: KeystoneMethod::Password { scope, user_domain, .. }, .. } = &auth.account
    else {
        panic!("{:?}", auth.account)
    };
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

/// Proves: K2
#[test]
fn every_kind_of_vault_is_read_as_it_is_meant() {
    let kind = |name: &str| loaded(&at(&format!("tests/config/valid/vault-{name}.toml"))).settings.vault.kind;
    let age = AgeVault {
        path: at("tests/config/valid/vault.toml.age"),
        identity: SecretRef::File(at("tests/config/valid/identity.txt")),
        recipients: vec![],
    };
    assert_eq!(kind("age"), VaultKind::Age(age));
    let connect = ConnectVault {
        url: "https://connect.example.com:8443/v1".parse().unwrap(),
        token: SecretRef::Env("OP_CONNECT_TOKEN".into()),
        vault: "bare metal".into(),
        trust: Trust::Ca(at("tests/config/valid/ca.pem")),
        timeout: Duration::from_millis(2500),
    };
    assert_eq!(kind("connect"), VaultKind::Connect(connect));
    let op = OpVault {
        program: at("tests/config/valid/bin/op"),
        vault: "ionaiwtdvgclrixbt6ztpqcxnq".into(),
        account: Some("example.1password.com".into()),
        timeout: Duration::from_secs(30),
    };
    assert_eq!(kind("op"), VaultKind::Op(op));
    let keyring = KeyringVault { program: "secret-tool".into(), timeout: Duration::from_secs(30) };
    assert_eq!(kind("keyring"), VaultKind::Keyring(keyring));
}

/// Proves: K1. What the example shows of the kinds that it does not use: each block is a whole `[vault]`.
#[test]
fn every_other_vault_of_the_example_is_right() {
    let example = std::fs::read_to_string(at("config.example.toml")).unwrap();
    let mut blocks: Vec<String> = vec![];
    for line in example.lines().filter_map(|line| line.strip_prefix("#   ")).filter(|line| line.contains(" = ")) {
        if line.starts_with("kind = ") {
            blocks.push(String::new());
        }
        *blocks.last_mut().unwrap() += &format!("{line}\n");
    }
    let minimal = std::fs::read_to_string(at("tests/config/valid/minimal.toml")).unwrap();
    assert!(!minimal.contains("[vault]"));
    let mut shown: Vec<String> = vec!["env".into(), "file".into()];
    for block in &blocks {
        let text = format!("{minimal}\n[vault]\n{block}");
        muster::config::parse(&text, "example").unwrap_or_else(|errors| panic!("{block}{errors}"));
        let kind =
            muster::config::vault::KINDS.iter().find(|k| block.contains(&format!("kind = \"{}\"", k.word))).unwrap();
        for key in kind.keys {
            assert!(block.lines().any(|line| line.starts_with(&format!("{key} = "))), "{} lacks {key}", kind.word);
        }
        shown.push(kind.word.to_owned());
    }
    assert_eq!(shown, muster::config::vault::KINDS.map(|kind| kind.word.to_owned()));
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

/// Proves: K1
#[test]
fn the_schema_takes_every_right_file_and_refuses_what_it_can_see_to_be_wrong() {
    let schema = config::schema();
    let json = |text: &str| serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let mut right = vec![config::example::EXAMPLE.to_owned(), config::example::switched_on()];
    right.extend(files("tests/config/valid").iter().map(|path| std::fs::read_to_string(path).unwrap()));
    for text in &right {
        assert!(fits(&schema, &json(text)), "{text}");
    }
    let example = json(config::example::EXAMPLE);
    // Each is one change of what is right.
    for (pointer, key, wrong) in [
        ("/netbox", "urll", json!("https://netbox.example.com")),
        ("/netbox", "url", json!("netbox.example.com")),
        ("/netbox", "token", json!("0123456789abcdef")),
        ("/netbox", "poll_s", json!(0)),
        ("/netbox", "poll_s", json!("60")),
        ("/vault", "kind", json!("filee")),
        ("/sites/osl1", "gatess", json!({})),
        ("", "netboks", json!({})),
    ] {
        let mut changed = example.clone();
        changed.pointer_mut(pointer).unwrap()[key] = wrong.clone();
        assert!(!fits(&schema, &changed), "{pointer} {key} {wrong}");
    }
    let mut without = example.clone();
    without["netbox"].as_object_mut().unwrap().remove("token");
    assert!(!fits(&schema, &without));
    let poll = &schema["properties"]["netbox"]["properties"]["poll_s"];
    assert_eq!(
        (&poll["default"], poll["description"].as_str()),
        (&json!(60), Some("Between two reads of the devices that changed."))
    );
}

/// Proves: K1
#[test]
fn a_mistake_is_shown_under_its_line_and_never_with_what_stands_behind_the_equals_sign() {
    let text = "[netbox]\nurll = \"https://canary@netbox\"\ntoken = 'canary'\n[sites.osl1]\n";
    let errors = config::parse(text, "config.toml").unwrap_err().pointed();
    assert!(errors.contains("\n  2 | urll = …\n    | ^^^^\n"), "{errors}");
    assert!(errors.contains("\n  3 | token = …\n    | ^^^^^"), "{errors}");
    assert!(!errors.contains("canary"), "{errors}");
    for text in [
        "x = \"\"\"\ncanary = canary\n",
        "canary\n",
        "[canary secret\n",
        "[netbox]\ntoken = \"\"\"\nab= canary\n\"\"\"\n",
    ] {
        let errors = config::parse(text, "config.toml").unwrap_err().pointed();
        assert!(!errors.contains("| canary = canary") && !errors.contains("= canary"), "{errors}");
    }
}

/// What the binary says to `muster config …`, away from the environment of whoever runs the tests.
fn command(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_muster"));
    command.arg("config").args(arguments).stdin(std::process::Stdio::null()).current_dir(folder);
    for name in ["MUSTER_CONFIG", "MUSTER_STATE_DIR", "MUSTER_LOG", "NO_COLOR", "LC_ALL", "LANG"] {
        command.env_remove(name);
    }
    let out = command.env("HOME", folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// Proves: K1
#[test]
fn a_first_configuration_of_flags_is_right_and_never_written_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let (code, example, _) = command(folder.path(), &["init"]);
    assert_eq!((code, example.trim_end()), (Some(0), config::example::EXAMPLE.trim_end()), "piped, it is the example");
    let flags = ["init", "--site", "osl1", "--netbox-url", "https://netbox.example", "--out", "etc/muster.toml"];
    let (code, _, said) = command(folder.path(), &flags);
    assert_eq!((code, said.contains("--ironic-url not given")), (Some(2), true), "{said}");
    let whole: Vec<&str> = flags.iter().copied().chain(["--ironic-url", "https://ironic.example"]).collect();
    let (code, said, wrong) = command(folder.path(), &whole);
    assert_eq!((code, said.contains("muster doctor")), (Some(0), true), "{said}{wrong}");
    let written = loaded(&folder.path().join("etc/muster.toml"));
    assert_eq!((&written.warnings[..], written.settings.sites.keys().next().unwrap().as_str()), (&[][..], "osl1"));
    let (code, _, said) = command(folder.path(), &whole);
    assert_eq!((code, said.contains("is there already")), (Some(2), true), "{said}");
    let wrong: Vec<&str> =
        whole.iter().map(|word| if *word == "https://ironic.example" { "ironic.example" } else { word }).collect();
    let (code, _, said) = command(folder.path(), &wrong);
    assert_eq!((code, said.contains("ironic.main.url")), (Some(2), true), "{said}");

    let (code, said, wrong) = command(folder.path(), &["check", "--origins", "--config", "etc/muster.toml"]);
    assert_eq!(code, Some(0), "{wrong}");
    let row = |key: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(key));
        line.unwrap_or_else(|| panic!("{key}: {said}")).split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!([row("configuration '"), row("state '"), row("netbox.poll_s")], ["--config", "folder", "default"]);
    let line = std::fs::read_to_string(folder.path().join("etc/muster.toml")).unwrap();
    let at = line.lines().position(|line| line.starts_with("token")).unwrap() + 1;
    assert_eq!(row("netbox.token "), at.to_string());
    assert!(!said.contains("netbox  "), "a table is no key: {said}");
}
