//! `runs export` and `runs replay` of the real binary: a run killed twelve times, journals that fit and one that doesn't,
//! and a search of every output for the secrets that the runs used.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/histories.rs"]
mod histories;
#[path = "export/looking_back.rs"]
mod looking_back;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use binary::{Ended, LabProcess, Running, muster};
use muster::domain::event::{Body, Event};
use muster::store::{Store, Submit};
use serde_json::Value;

const HOST: &str = "gpu-b07-29";

fn place(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).ok().and_then(|line| line["n"].as_u64()).unwrap_or(0)
}

/// Proves: G15, G16
#[test]
fn a_run_killed_twelve_times_is_exported_as_one_story() {
    let lab = LabProcess::start(40, None);
    let mut seen = 0;
    for kill in 1..=12 {
        let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
        // Something that is new in the journal, and not the telling of what was there: only then has this process gone on.
        let line = running.wait_for("progress", |line| place(line) >= seen + 5);
        assert!(line.is_some(), "the run ended before kill {kill}: {}", running.end());
        if kill == 6 {
            // Beside the process that drives the run, and half-way.
            let id = lab.run(&["runs", "list", "--json"]).events()[0]["run"].as_str().unwrap().to_owned();
            let half = lab.run(&["runs", "export", &id]);
            assert_eq!(half.code(), Some(0), "{half}");
            assert!(half.stdout.contains("is under way"), "{half}");
            assert_eq!(lab.run(&["runs", "replay", &id]).code(), Some(0));
        }
        running.kill();
        let id = lab.run(&["runs", "list", "--json"]).events()[0]["run"].as_str().unwrap().to_owned();
        seen = lab.run(&["runs", "show", &id, "--json"]).events().iter().filter_map(|r| r["n"].as_u64()).max().unwrap();
    }
    let ended = lab.run(&["enroll", HOST, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");

    let runs = lab.run(&["runs", "list", "--json"]).events();
    assert_eq!(runs.len(), 1, "it was resumed each time, not begun anew: {runs:#?}");
    let id = runs[0]["run"].as_str().unwrap();
    let page = lab.run(&["runs", "export", id]);
    assert_eq!((page.code(), page.stderr.as_str()), (Some(0), ""), "{page}");
    let page = page.stdout;
    assert!(page.starts_with(&format!("# Enrollment of `{HOST}` succeeded")), "{page}");
    assert!(page.contains("| interrupted | 12 times, "), "{page}");
    assert_eq!(page.matches("| ◌ | run | interrupted while ").count(), 12, "{page}");
    for part in ["## What was asked", "## Phases", "## Timeline", "## Changes", "## Inspection", "## Requests made"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let begun: Vec<&str> = page.lines().filter(|line| line.contains("| » |")).collect();
    assert_eq!(begun.len(), 9, "each phase begins once: {begun:#?}");

    let told = lab.run(&["runs", "export", id, "--format", "json"]).events().remove(0);
    assert_eq!((&told["export"], &told["status"], &told["host"]), (&1.into(), &"succeeded".into(), &HOST.into()));
    assert_eq!(told["interruptions"].as_array().unwrap().len(), 12);
    let requests = told["steps"].as_array().unwrap().iter().flat_map(|step| step["requests"].as_array().unwrap());
    let systems: std::collections::BTreeSet<&str> = requests.map(|r| r["system"].as_str().unwrap()).collect();
    for system in ["netbox", "ironic", "redfish", "ssh"] {
        assert!(systems.contains(system), "{system}: {systems:?}");
    }
    assert!(told["changes"].as_array().unwrap().len() > 5, "{}", told["changes"]);

    let replayed = lab.run(&["runs", "replay", id]);
    assert_eq!(replayed.code(), Some(0), "{replayed}");
    assert!(replayed.stdout.contains("the run ends as it did: succeeded"), "{replayed}");
    assert!(replayed.stdout.contains("interrupted while"), "{replayed}");
    let replayed = lab.run(&["runs", "replay", id, "--json"]).events().remove(0);
    assert_eq!((&replayed["fits"], &replayed["stand"]), (&true.into(), &"ended".into()), "{replayed:#}");
    if let Some(folder) = std::env::var_os("MUSTER_KEEP_EXPORT") {
        std::fs::write(Path::new(&folder).join("twelve.md"), page).unwrap();
    }
}

/// Puts a journal of a file into a store of its own; gives the run's id and the folder.
async fn stored(name: &str, change: impl Fn(&mut Event)) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let mut records = histories::read(&histories::current().join(format!("{name}.jsonl"))).into_iter();
    let first = records.next().unwrap();
    let Body::Journal(Event::Submitted { request, .. }) = first.body else { panic!("{first:?}") };
    assert_eq!(store.submit(first.run, *request).await.unwrap(), Submit::Accepted);
    let rest = records.map(|record| {
        let mut body = record.body;
        if let Body::Journal(event) = &mut body {
            change(event);
        }
        (record.at, body)
    });
    store.append(first.run, 1, rest.collect()).await.unwrap();
    (folder, first.run.to_string())
}

fn on(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = muster(&["--state-dir"]);
    command.arg(folder).args(arguments);
    Running::start(command).end()
}

/// Proves: G7, G16
#[tokio::test]
async fn a_journal_that_fits_no_more_is_told_with_both_sides_and_nothing_is_written() {
    let (folder, run) = stored("fresh", |event| {
        if let Event::ActivityScheduled { name, .. } = event
            && name == "bmc.configure"
        {
            "bmc.configure_v0".clone_into(name);
        }
    })
    .await;
    let records = || Store::open(folder.path()).unwrap().records(run.parse().unwrap()).unwrap();
    let before = records();
    let replayed = on(folder.path(), &["runs", "replay", &run]);
    assert_eq!(replayed.code(), Some(1), "{replayed}");
    for part in ["JOURNAL_DIVERGED", "'bmc.configure_v0'", "'bmc.configure'", "the journal does not fit", "begins"] {
        assert!(replayed.stdout.contains(part), "{part}: {replayed}");
    }
    let told = on(folder.path(), &["runs", "replay", &run, "--json"]);
    assert_eq!(told.code(), Some(1), "{told}");
    assert_eq!(told.events()[0]["failure"]["code"], "JOURNAL_DIVERGED", "{told}");
    assert_eq!(records(), before);
    // It is exported all the same.
    assert_eq!(on(folder.path(), &["runs", "export", &run]).code(), Some(0));
}

/// Proves: G15, G16
#[tokio::test]
async fn a_miscabled_hosts_export_names_owner_action_and_both_cables() {
    let (folder, run) = stored("miscabled", |_| {}).await;
    let page = on(folder.path(), &["runs", "export", &run[run.len() - 6..], "--format", "md"]);
    assert_eq!(page.code(), Some(0), "{page}");
    for part in [
        "# Enrollment of `gpu-b07-37` failed",
        "## Failure",
        "`CABLES_WRONG` in inspection",
        "**ONSITE**",
        "leaf-b07-1",
        "leaf-b07-2",
        "swapped",
        "✗ **differs**",
        "read at ",
    ] {
        assert!(page.stdout.contains(part), "{part}: {page}");
    }
    for (arguments, part) in [
        (&["runs", "export", "ffffffff"][..], "no run 'ffffffff'"),
        (&["runs", "replay", "ffffffff"], "no run 'ffffffff'"),
        (&["runs", "export", &run, "--format", "pdf"], "pdf"),
    ] {
        let refused = on(folder.path(), arguments);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains(part), "{part}: {refused}");
    }
}

/// Everything secret in the lab's configuration, by what it is.
fn secrets(lab: &LabProcess) -> BTreeMap<String, String> {
    let file = |name: &str| std::fs::read_to_string(lab.folder.path().join(name)).unwrap();
    let mut found = BTreeMap::new();
    let vault: toml::Table = file("vault.toml").parse().unwrap();
    // What BMCs leave the factory with is no secret, and AMI's is a word of any text about passwords.
    for (item, fields) in vault.iter().filter(|(item, _)| !item.starts_with("bmc-factory-")) {
        for (field, value) in fields.as_table().unwrap() {
            let value = value.as_str().unwrap();
            match field.as_str() {
                "password" => {
                    found.insert(format!("{item} {field}"), value.to_owned());
                    // What goes over the wire as basic authentication.
                    let user = fields["username"].as_str().unwrap();
                    found.insert(format!("{item} basic"), STANDARD.encode(format!("{user}:{value}")));
                }
                "private_key" => {
                    let lines = value.lines().filter(|line| line.len() > 30 && !line.contains("---"));
                    // The first line of an OpenSSH key is the same in all of them.
                    found.extend(lines.skip(1).enumerate().map(|(n, l)| (format!("{item} key {n}"), l.to_owned())));
                }
                _ => {}
            }
        }
    }
    let token = file("netbox.token").trim().to_owned();
    found.insert("netbox token's secret".to_owned(), token.rsplit('.').next().unwrap().to_owned());
    let password = file("ironic.password").trim().to_owned();
    found.insert("ironic basic".to_owned(), STANDARD.encode(format!("{}:{password}", muster::lab::IRONIC_USER)));
    found.insert("ironic password".to_owned(), password);
    let plain: Vec<(String, String)> = found.clone().into_iter().collect();
    found.extend(plain.into_iter().map(|(what, secret)| (format!("{what} in base64"), STANDARD.encode(secret))));
    assert!(found.len() > 40, "{} secrets", found.len());
    found
}

fn leaks(what: &str, bytes: &[u8], secrets: &BTreeMap<String, String>, found: &mut Vec<String>) {
    for (name, secret) in secrets {
        assert!(secret.len() >= 12, "'{name}' is too short to be searched for");
        if bytes.windows(secret.len()).any(|window| window == secret.as_bytes()) {
            found.push(format!("{name} in {what}"));
        }
    }
}

/// Proves: Z1, G15
#[test]
fn no_secret_that_the_runs_used_is_in_any_output() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("basic.toml");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/demo.toml")).unwrap();
    let basic = text.replace("auth = \"none\"", "auth = \"http_basic\"");
    assert_ne!(text, basic);
    std::fs::write(&scenario, basic).unwrap();
    let lab = LabProcess::start(60, Some(&scenario));
    // A password that no BMC takes: it must not show up in the failure either.
    let vault = lab.folder.path().join("vault.toml");
    let mut items: toml::Table = std::fs::read_to_string(&vault).unwrap().parse().unwrap();
    let canary = "Canary-7f3a9c51e08b4d26";
    items["bmc-cpu-c01-37"].as_table_mut().unwrap().insert("password".into(), canary.into());
    std::fs::write(&vault, items.to_string()).unwrap();
    std::fs::set_permissions(&vault, std::fs::Permissions::from_mode(0o600)).unwrap();
    let secrets = secrets(&lab);
    assert!(secrets.values().any(|secret| secret == canary));

    let mut outputs: Vec<(String, String)> = Vec::new();
    let mut run = |arguments: &[&str]| -> Ended {
        let mut command = lab.command(arguments);
        // As talkative as it can be.
        command.env("MUSTER_LOG", "trace").env("RUST_BACKTRACE", "1");
        let ended = Running::start(command).end();
        outputs.push((format!("stdout of {arguments:?}"), ended.stdout.clone()));
        outputs.push((format!("stderr of {arguments:?}"), ended.stderr.clone()));
        ended
    };
    run(&["config", "check"]);
    let ended = run(&["enroll", HOST, "gpu-b07-37", "cpu-c01-37", "--json"]);
    assert_eq!(ended.finished(HOST)["status"], "succeeded", "{ended}");
    assert_eq!(ended.finished("cpu-c01-37")["failure"]["code"], "BMC_AUTH_FAILED", "{ended}");
    run(&["enroll", "cpu-c01-35"]);
    run(&["inventory", "list", "--json"]);
    let runs = run(&["runs", "list", "--json"]).events();
    assert_eq!(runs.len(), 4);
    for row in &runs {
        let id = row["run"].as_str().unwrap();
        for arguments in [
            &["runs", "show", id][..],
            &["runs", "show", id, "--json"],
            &["runs", "export", id],
            &["runs", "export", id, "--format", "json"],
            &["runs", "replay", id],
            &["runs", "replay", id, "--json"],
        ] {
            assert_eq!(run(arguments).code(), Some(0), "{arguments:?}");
        }
    }

    let mut found = Vec::new();
    let mut bytes = 0;
    for (what, text) in &outputs {
        leaks(what, text.as_bytes(), &secrets, &mut found);
        bytes += text.len();
    }
    for entry in std::fs::read_dir(lab.state()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            leaks(&path.file_name().unwrap().to_string_lossy(), &content, &secrets, &mut found);
            bytes += content.len();
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    println!("searched {bytes} bytes of {} outputs and the state folder for {} secrets", outputs.len(), secrets.len());

    // That the search finds what is there: the same secrets in the vault itself.
    let mut control = Vec::new();
    leaks("vault.toml", &std::fs::read(&vault).unwrap(), &secrets, &mut control);
    assert!(control.iter().any(|leak| leak.contains("bmc-cpu-c01-37 password")), "{control:#?}");
}
