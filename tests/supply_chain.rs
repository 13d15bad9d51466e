//! Holds the crates of the tree against `deny.toml` as cargo-deny would: licences, bans, sources. Its advisories need a
//! database that is not always to be had; `cargo deny check` looks at them where the program is installed (.ci/run).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

/// One crate of the tree.
#[derive(Debug, Clone)]
struct Crate {
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    /// What its dependencies ask for: name and versions.
    asks: Vec<(String, String)>,
}

fn policy() -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml");
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &toml::Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// All crates that any of the shipped targets is made of, what tests need included.
fn tree(policy: &toml::Table) -> Vec<Crate> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    for target in texts(&policy["graph"]["targets"]) {
        cargo.args(["--filter-platform", &target]);
    }
    let out = cargo.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).unwrap();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let all = metadata["packages"].as_array().unwrap().iter().map(|package| Crate {
        name: text(&package["name"]).unwrap(),
        version: text(&package["version"]).unwrap(),
        license: text(&package["license"]),
        source: text(&package["source"]),
        asks: package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|asked| (text(&asked["name"]).unwrap(), text(&asked["req"]).unwrap()))
            .collect(),
    });
    all.collect()
}

/// Everything in the tree that the policy does not allow, and everything in the policy that nothing needs.
fn faults(policy: &toml::Table, tree: &[Crate]) -> Vec<String> {
    let mut faults = Vec::new();
    let licenses = &policy["licenses"];
    let allowed = texts(&licenses["allow"]);
    let mut exceptions = BTreeMap::new();
    for exception in licenses["exceptions"].as_array().unwrap() {
        exceptions.insert(exception["crate"].as_str().unwrap().to_owned(), texts(&exception["allow"]));
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    for one in tree {
        let id = format!("{} {}", one.name, one.version);
        let Some(license) = &one.license else {
            faults.push(format!("{id} names no licence"));
            continue;
        };
        let expression = match Expression::parse_mode(license, ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => {
                faults.push(format!("{id}: '{license}' can't be read: {}", error.reason));
                continue;
            }
        };
        let excepted = exceptions.get(&one.name).cloned().unwrap_or_default();
        for requirement in expression.requirements() {
            used.insert(requirement.req.to_string());
        }
        let fine = |name: &String| allowed.contains(name) || excepted.contains(name);
        if !expression.evaluate(|requirement| fine(&requirement.to_string())) {
            faults.push(format!("{id}: the licence '{license}' is not allowed"));
        }
        match &one.source {
            None if one.name == "muster" => {}
            Some(source) if source.starts_with("registry+") && source.ends_with("/crates.io-index") => {}
            other => faults.push(format!("{id} comes from {other:?}")),
        }
        let wild = one.asks.iter().filter(|(_, version)| one.source.is_none() && version == "*");
        faults.extend(wild.map(|(name, _)| format!("{id} takes any version of {name}")));
    }
    faults.extend(allowed.iter().filter(|name| !used.contains(*name)).map(|name| format!("nothing has {name}")));
    for (name, allow) in &exceptions {
        let there = tree.iter().any(|one| one.name == *name) && allow.iter().all(|license| used.contains(license));
        faults.extend((!there).then(|| format!("nothing needs the exception for {name}")));
    }
    for ban in policy["bans"]["deny"].as_array().unwrap() {
        let name = ban["crate"].as_str().unwrap();
        let found: Vec<&Crate> = tree.iter().filter(|one| one.name == name).collect();
        let one_is_fine = ban.get("deny-multiple-versions").is_some_and(|only| only.as_bool() == Some(true));
        match (one_is_fine, found.len()) {
            (false, 0) | (true, 1) => {}
            (true, 0) => faults.push(format!("{name} is not in the tree: its ban keeps nothing out")),
            _ => faults.push(format!("{name} is banned: {:?}", found.iter().map(|c| &c.version).collect::<Vec<_>>())),
        }
    }
    faults
}

#[test]
fn every_crate_is_of_an_allowed_licence_and_source_and_none_is_banned() {
    let policy = policy();
    for (table, key) in [("sources", "unknown-registry"), ("sources", "unknown-git"), ("bans", "wildcards")] {
        assert_eq!(policy[table][key].as_str(), Some("deny"), "{table}.{key}");
    }
    let tree = tree(&policy);
    assert!(tree.len() > 300, "{} crates", tree.len());
    let faults = faults(&policy, &tree);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn what_is_not_allowed_is_found() {
    let policy = policy();
    let tree = tree(&policy);
    let told = |change: &dyn Fn(&mut Vec<Crate>)| {
        let mut changed = tree.clone();
        change(&mut changed);
        faults(&policy, &changed)
    };
    let at = |tree: &[Crate], name: &str| tree.iter().position(|one| one.name == name).unwrap();
    let found = |faults: Vec<String>, needle: &str| {
        assert!(faults.len() == 1 && faults[0].contains(needle), "'{needle}' in {faults:#?}");
    };
    let licensed = |license: &'static str| {
        told(&move |tree| {
            let place = at(tree, "serde");
            tree[place].license = Some(license.to_owned());
        })
    };
    found(licensed("GPL-3.0-only"), "'GPL-3.0-only' is not allowed");
    found(licensed("MIT AND AGPL-3.0-only"), "is not allowed");
    found(licensed("MPL-2.0"), "is not allowed");
    found(licensed("made up"), "can't be read");
    assert_eq!(licensed("GPL-2.0-only OR MIT"), [] as [String; 0]);
    let added = |name: &'static str, source: &'static str| {
        told(&move |tree| {
            let mut one = tree[at(tree, "serde")].clone();
            (one.name, one.source) = (name.to_owned(), Some(source.to_owned()));
            tree.push(one);
        })
    };
    let usual = tree.iter().find(|one| one.name == "serde").unwrap().source.clone().unwrap().leak();
    found(added("openssl-sys", usual), "openssl-sys is banned");
    found(added("rustls", usual), "rustls is banned");
    found(added("harmless", "git+https://example.com/x"), "comes from");
    found(told(&|tree| tree.retain(|one| one.name != "terminfo")), "exception for terminfo");
    let wild = told(&|tree| {
        let place = at(tree, "muster");
        tree[place].asks.push(("serde".into(), "*".into()));
    });
    found(wild, "takes any version of serde");
}
