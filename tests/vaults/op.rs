//! 1Password's program, against a program of the tests that keeps what it is asked, and with which environment.
//!
//! The real one can't be had without an account. The words of the refusals are the ones that it is known to print.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use muster::clients::vault::{Vault, VaultError};
use muster::config::settings::{OpVault, VaultKind};

use super::{CANARY, asked, fields, told, vault};

/// Items are files by their ids. What `mode` holds it does instead, once or for good.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, sys
home = os.path.dirname(os.path.abspath(__file__))
with open(home + "/argv", "a") as f: f.write(json.dumps(sys.argv[1:]) + "\n")
with open(home + "/environ", "a") as f: f.write(json.dumps(dict(os.environ)) + "\n")
mode = open(home + "/mode").read() if os.path.exists(home + "/mode") else ""
def fail(text):
    print("[ERROR] 2026/11/30 10:00:00 " + text, file=sys.stderr); sys.exit(1)
if mode == "hang":
    os.system("sleep 600")
if mode == "garbage":
    print('{"id": "i", "title": ["c4n-p4ss"'); sys.exit(0)
if mode.startswith("says "): fail(mode[5:])
if mode == "news":
    print("1Password CLI 2.31.0 is available. Run `op update` to install it.")
    print("another line of news", file=sys.stderr)
def items():
    return [json.load(open(home + "/items/" + n)) for n in sorted(os.listdir(home + "/items"))]
def keep(item):
    with open(home + "/items/" + item["id"], "w") as f: json.dump(item, f)
args = sys.argv[1:]
vault = args[args.index("--vault") + 1] if "--vault" in args else args[2]
if vault != "bare metal": fail('"%s" isn\'t a vault in this account. Specify the vault with its ID or name.' % vault)
if args[:2] == ["vault", "get"]:
    print(json.dumps({"id": "v", "name": vault})); sys.exit(0)
if args[:2] == ["item", "create"]:
    item = json.load(sys.stdin)
    if mode == "refuse": fail("can't take " + json.dumps(item["fields"]))
    item["id"] = "new%d" % len(items())
    for n, field in enumerate(item["fields"]): field.setdefault("id", "f%d" % n)
    keep(item); print(json.dumps(item)); sys.exit(0)
found = [i for i in items() if args[2] in (i["id"], i["title"]) or args[2].lower() == i["title"].lower()]
if not found: fail('"%s" isn\'t an item in the "%s" vault. Specify the item with its UUID, name, or domain.' % (args[2], vault))
if len(found) > 1: fail('More than one item matches "%s". Try again and specify the item by its ID:' % args[2])
item = found[0]
if args[:2] == ["item", "edit"]:
    given = json.load(sys.stdin)
    for n, field in enumerate(given["fields"]): field.setdefault("id", "g%d" % n)
    item["fields"] = given["fields"]
    keep(item)
print(json.dumps(item, indent=2))
"#;

struct Rig {
    vault: Vault,
    folder: tempfile::TempDir,
}

fn rig() -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("op");
    std::fs::create_dir(folder.path().join("items")).unwrap();
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let rig = Rig { vault: of(&program, "bare metal"), folder };
    rig.item("i1", "bmc-a", CANARY);
    rig
}

fn of(program: &Path, name: &str) -> Vault {
    let settings = OpVault {
        program: program.to_owned(),
        vault: name.into(),
        account: Some("example.1password.com".into()),
        timeout: Duration::from_secs(10),
    };
    vault(VaultKind::Op(settings))
}

impl Rig {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn item(&self, id: &str, title: &str, password: &str) {
        let fields = serde_json::json!([
            {"id": "username", "type": "STRING", "purpose": "USERNAME", "label": "username", "value": "root"},
            {"id": "password", "type": "CONCEALED", "purpose": "PASSWORD", "label": "password", "value": password},
        ]);
        let item =
            serde_json::json!({"id": id, "title": title, "category": "LOGIN", "tags": ["kept"], "fields": fields});
        std::fs::write(self.at("items").join(id), item.to_string()).unwrap();
    }

    fn mode(&self, mode: &str) {
        std::fs::write(self.at("mode"), mode).unwrap();
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.at("argv")).unwrap()
    }
}

/// Proves: K2, Z1
#[tokio::test]
async fn items_are_read_and_written_and_no_secret_is_in_arguments_or_environment() {
    let rig = rig();
    rig.vault.open().await.unwrap();
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, CANARY);
    rig.mode("news");
    assert_eq!(asked(&rig.vault, "bmc-a", "username").await, "root");
    rig.vault
        .put("bmc-a", fields(&[("password", Some("s3cret-n\"ew")), ("password_next", Some("s3cret-2"))]))
        .await
        .unwrap();
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, "s3cret-n\"ew");
    rig.vault.put("bmc-a", fields(&[("password", Some("s3cret-2")), ("password_next", None)])).await.unwrap();
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(rig.at("items/i1")).unwrap()).unwrap();
    assert_eq!((kept["fields"].as_array().unwrap().len(), &kept["tags"][0]), (2, &"kept".into()));
    let calls = rig.calls().lines().count();
    rig.vault.put("bmc-a", fields(&[("password", Some("s3cret-2"))])).await.unwrap();
    assert_eq!(rig.calls().lines().count(), calls + 1, "what is so already is only read");
    rig.mode("");
    rig.vault.put("bmc-b", fields(&[("username", Some("ADMIN")), ("password", Some("s3cret-b"))])).await.unwrap();
    assert_eq!(asked(&rig.vault, "bmc-b", "password").await, "s3cret-b");
    // Somebody rotates it while muster runs.
    rig.item("i1", "bmc-a", "rotated");
    assert_eq!(asked(&rig.vault, "bmc-a", "password").await, "rotated");

    let (arguments, environment) = (rig.calls(), std::fs::read_to_string(rig.at("environ")).unwrap());
    assert!(
        arguments.contains(r#"["item", "edit", "i1", "--vault", "bare metal", "--format", "json", "--account""#),
        "{arguments}"
    );
    for text in [&arguments, &environment] {
        assert!(!text.contains("s3cret") && !text.contains("c4n") && !text.contains("rotated"), "{text}");
    }
    let names: serde_json::Map<_, _> = serde_json::from_str(environment.lines().next().unwrap()).unwrap();
    assert!(!names.keys().any(|name| name.starts_with("CARGO") || name.starts_with("MUSTER")), "{names:?}");
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")), "the test itself has such");
}

/// Proves: K2, Z1
#[tokio::test]
async fn what_the_program_says_is_told_apart_and_shows_no_secret() {
    let rig = rig();
    let error = rig.vault.ask("bmc-z", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::Missing { .. }) && told(&error).contains("bare metal"), "{error:?}");
    // By another spelling, or by its id, it is another item.
    for title in ["BMC-A", "i1"] {
        assert!(matches!(rig.vault.ask(title, "password").await, Err(VaultError::Missing { .. })), "{title}");
    }
    assert!(matches!(rig.vault.ask("--all", "password").await, Err(VaultError::Unusable { .. })));
    rig.item("i2", "bmc-a", "second");
    let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::Ambiguous { .. }) && told(&error).contains("'bmc-a'"), "{error:?}");
    let error = of(&rig.at("op"), "elsewhere").open().await.unwrap_err();
    assert!(matches!(error, VaultError::Refused { .. }), "{error:?}");
    rig.mode("garbage");
    let error = rig.vault.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::Unusable { .. }), "{error:?}");
    told(&error);
    rig.mode("says You are not currently signed in. Please run `op signin --help` for instructions");
    assert!(matches!(rig.vault.open().await, Err(VaultError::Refused { .. })));
    rig.mode("says couldn't reach 1password.com: dial tcp: i/o timeout \u{1b}[31m");
    let error = rig.vault.open().await.unwrap_err();
    assert!(matches!(error, VaultError::Unavailable { .. }) && !told(&error).contains('\u{1b}'), "{error:?}");
    rig.mode("refuse");
    let error = rig.vault.put("bmc-n", fields(&[("password", Some(CANARY))])).await.unwrap_err();
    assert!(told(&error).contains("can't take"), "{error}");
    let error = of(Path::new("/no/such/op"), "bare metal").open().await.unwrap_err();
    assert!(matches!(&error, VaultError::Unusable { remedy, .. } if remedy.contains("install")), "{error:?}");
}

/// Proves: Z3
#[tokio::test]
async fn a_program_that_hangs_is_killed_at_its_deadline() {
    let rig = rig();
    rig.mode("hang");
    let VaultKind::Op(settings) = rig.vault.settings().kind.clone() else { panic!() };
    let hasty = vault(VaultKind::Op(OpVault { timeout: Duration::from_millis(700), ..settings }));
    let began = Instant::now();
    let error = hasty.ask("bmc-a", "password").await.unwrap_err();
    assert!(matches!(error, VaultError::NoAnswer { .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
