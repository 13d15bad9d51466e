//! Reads `src/` and proves that imports point down the list of layers, and that each heavy crate stays in its layer.

use std::fs;
use std::path::{Path, PathBuf};

/// From top to bottom. A file may import its own layer and those below it.
const LAYERS: &[&str] = &[
    "main",
    "cli",
    "tui",
    "app",
    "engine",
    "activities",
    "inventory",
    "clients",
    "store",
    "config",
    "workflows",
    "domain",
];

/// A crate, and the places that may use it.
const HOMES: &[(&str, &[&str])] = &[
    ("rusqlite", &["store"]),
    ("reqwest", &["clients"]),
    ("russh", &["clients/ssh", "lab"]),
    ("russh_sftp", &["clients/ssh", "lab"]),
    ("ratatui", &["tui"]),
    ("crossterm", &["tui"]),
    ("tui_logger", &["tui"]),
    ("axum", &["lab"]),
    // Where muster is asked: NetBox's webhooks and a monitoring system. Their limits are of hyper itself, not of axum's server.
    ("hyper", &["inventory/push", "app/metrics"]),
    // A database that is only listened to; nothing is read from it, so that it is no client of NetBox.
    ("tokio_postgres", &["inventory/push"]),
    ("async_nats", &["clients/nats"]),
    ("age", &["clients/vault"]),
    ("clap", &["cli"]),
];

/// What the pure layers must not touch.
const IMPURE: &[&str] = &[
    "tokio",
    "std::time::SystemTime",
    "std::time::Instant",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "std::fs",
    "std::net::Tcp",
    "std::env",
    "rand::",
    "std::thread",
    "std::process",
];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.sort();
    assert!(found.len() > 20, "only {} files found", found.len());
    found
}

/// The code of a file: without comments, and without the unit tests at its end, which may use what they like.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    body.lines()
        .map(|line| match line.find("//") {
            // `://` is an address in a string, not a comment.
            Some(at) if at == 0 || line.as_bytes()[at - 1] != b':' => &line[..at],
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

/// Path below `src/`, with `/`.
fn place(path: &Path) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    path.strip_prefix(src).unwrap().to_string_lossy().replace('\\', "/")
}

fn layer_of(place: &str) -> &str {
    place.split(['/', '.']).next().unwrap()
}

/// Names that follow `crate::` in the code, the groups of `use crate::{a, b}` included.
fn imported(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for after in code.split("crate::").skip(1) {
        if let Some(group) = after.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            let mut first = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => first = true,
                    c if depth == 0 && first && (c.is_alphanumeric() || c == '_') => word.push(c),
                    c if depth == 0 && !c.is_whitespace() => first = false,
                    _ => {}
                }
                if (!first || c == ',') && !word.is_empty() {
                    names.push(std::mem::take(&mut word));
                }
            }
            if !word.is_empty() {
                names.push(word);
            }
        } else {
            names.push(after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
}

fn is_test_file(place: &str) -> bool {
    place.ends_with("/tests.rs") || place.contains("/tests/")
}

#[test]
fn imports_point_down() {
    let rank = |layer: &str| LAYERS.iter().position(|l| *l == layer);
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let place = place(&path);
        let layer = layer_of(&place);
        if layer == "lib" || is_test_file(&place) {
            continue;
        }
        for name in imported(&code(&text)) {
            let ok = match (layer, name.as_str()) {
                ("lab", "lab" | "domain") => true,
                ("lab", other) => rank(other).is_none(),
                ("cli", "lab") => true,
                (_, "lab") => false,
                (from, to) => match (rank(from), rank(to)) {
                    (Some(from), Some(to)) => from <= to,
                    (None, _) => false,
                    // A macro or a type at the root of the crate, not a layer.
                    (Some(_), None) => true,
                },
            };
            if !ok {
                wrong.push(format!("{place} imports crate::{name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "imports that do not point down:\n{}", wrong.join("\n"));
}

#[test]
fn crates_stay_in_their_layer() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let place = place(&path);
        let code = code(&text);
        for (name, homes) in HOMES {
            let part_of_a_word = |at: usize| code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let used = code.match_indices(&format!("{name}::")).any(|(at, _)| !part_of_a_word(at))
                || code.contains(&format!("use {name};"));
            if used && !homes.iter().any(|home| place.starts_with(home)) {
                wrong.push(format!("{place} uses {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "crates out of their layer:\n{}", wrong.join("\n"));
}

/// Proves: G7
#[test]
fn domain_and_workflows_reach_no_clock_and_no_io() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let place = place(&path);
        if !matches!(layer_of(&place), "domain" | "workflows") || is_test_file(&place) {
            continue;
        }
        let code = code(&text);
        for word in IMPURE.iter().filter(|word| code.contains(**word)) {
            wrong.push(format!("{place} has {word}"));
        }
        if layer_of(&place) == "workflows" && code.contains("HashMap") {
            wrong.push(format!("{place} has a HashMap, whose order differs from replay to replay"));
        }
    }
    assert!(wrong.is_empty(), "impure:\n{}", wrong.join("\n"));
}

#[test]
fn nothing_unfinished_stands_in_the_tree() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for word in ["todo!(", "unimplemented!(", "dbg!("] {
            if text.contains(word) {
                wrong.push(format!("{} has {word}", place(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_imports_reads_groups() {
    let code =
        "use crate::domain::{a, b};\nuse crate::{store::Store, clients::{http, ssh}, tui};\nlet x = crate::app::y();";
    let mut names = imported(code);
    names.sort();
    assert_eq!(names, ["app", "clients", "domain", "store", "tui"]);
}

/// Proves: G14. A plan's clients are made by `Clients`, which hands its rehearsal on; one that an activity made for itself
/// could write.
#[test]
fn only_the_clients_make_clients_of_bmcs_and_ssh_hosts() {
    for (path, text) in sources() {
        let place = place(&path);
        if place.starts_with("clients/") {
            continue;
        }
        for maker in ["Redfish::new(", "SshClient::connect(", "HttpClient::new(", "ipmi::prove("] {
            assert!(!code(&text).contains(maker), "{place} calls {maker}…): ask env.clients for it");
        }
    }
}
