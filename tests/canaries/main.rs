//! A canary in every secret that muster is given, hands out or makes, and a search of everything that it puts out: what commands
//! print, logs at every level, journal and store, exports, screens and the clipboard, panics, dumps, the arguments and the
//! environment of the programs that it starts, messages and figures. In every form of writing.
//!
//! What muster is given to keep (vaults, files that references name) is not searched, and is where the canaries have to be.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../support/binary.rs"]
mod binary;
#[path = "../support/connect.rs"]
mod connect_server;
mod console;
mod dumps;
mod panics;
mod peers;
#[path = "../support/pty.rs"]
mod pty;
mod search;
mod site;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binary::{Ended, Running, muster};
use search::Search;
use serde_json::Value;
use site::{BAD, GOOD, Place, Site, files};

/// Outputs with what they are.
type Outputs = Vec<(String, Vec<u8>)>;

impl Place {
    /// A command of the binary on this place, as talkative as it can be.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = muster(&["--config"]);
        command.arg(&self.config).arg("--state-dir").arg(&self.state).args(arguments);
        command.env("MUSTER_LOG", "trace").env("RUST_BACKTRACE", "full").envs(self.environment.iter().cloned());
        command
    }

    fn run(&self, name: &str, arguments: &[&str], outputs: &mut Outputs) -> Ended {
        let ended = Running::start(self.command(arguments)).end();
        keep(&format!("{name}: {arguments:?}"), &ended, outputs);
        ended
    }
}

fn keep(what: &str, ended: &Ended, outputs: &mut Outputs) {
    outputs.push((format!("stdout of {what}"), ended.stdout.clone().into_bytes()));
    outputs.push((format!("stderr of {what}"), ended.stderr.clone().into_bytes()));
}

/// Everything that can be said of runs, and what ends nothing.
fn look_around(name: &str, place: &Place, host: &str, outputs: &mut Outputs) {
    let mut run = |arguments: &[&str]| place.run(name, arguments, outputs);
    let runs = run(&["runs", "list", "--json"]).events();
    let ids: Vec<&str> = runs.iter().map(|row| row["run"].as_str().unwrap()).collect();
    for id in &ids {
        for arguments in [
            &["runs", "show", id][..],
            &["runs", "show", id, "--json"],
            &["runs", "export", id],
            &["runs", "export", id, "--format", "json"],
            &["runs", "replay", id, "--json"],
        ] {
            assert_eq!(run(arguments).code(), Some(0), "{name}: {arguments:?}");
        }
    }
    run(&["plan", host, "--json"]);
    run(&["doctor", "--json"]);
    run(&["locate", host, "on", "--json"]);
    run(&["power", host, "--json"]);
    if name == "file" {
        run(&["plan", host]);
        run(&["doctor"]);
        run(&["config", "check"]);
        run(&["config", "check", "--origins"]);
        run(&["inventory", "list", "--json"]);
        run(&["inventory", "show", host, "--json"]);
        run(&["runs", "compare", ids[0], ids[1], "--json"]);
        run(&["platform-class", "backfill", "--json"]);
        run(&["cables", "osl1", "--json"]);
        run(&["runs", "retry", ids[0], "--max-attempts", "1"]);
    }
}

/// Enrolls every host of a place: those that go well, and with the file's those that fail.
fn enroll(site: &Site, name: &'static str, hosts: &[&str]) -> Outputs {
    let (place, mut outputs) = (&site.places[name], Outputs::new());
    let mut arguments = vec!["enroll", "--json", "--max-attempts", "1"];
    arguments.extend(hosts);
    let ended = place.run(name, &arguments, &mut outputs);
    let mut otherwise = Vec::new();
    for host in hosts {
        let finished = ended.finished(host);
        let told = (&finished["status"], &finished["failure"]["phase"]);
        let is_so = match BAD.iter().find(|(bad, _)| bad == host) {
            None => told.0 == "succeeded",
            Some((_, phase)) => told.0 == "failed" && told.1 == *phase,
        };
        if !is_so {
            otherwise.push(format!("{host}: {finished:#}"));
        }
    }
    assert!(otherwise.is_empty(), "{}\n{}", otherwise.join("\n"), ended.stderr);
    look_around(name, place, hosts[0], &mut outputs);
    outputs
}

/// The service with its figures, until what stands beside it has been asked.
fn serve(place: &Place, outputs: &mut Outputs) {
    let mut running = Running::start(place.command(&["serve"]));
    let line = running.wait_for("figures", |line| line.starts_with("figures at ")).expect("it serves figures");
    let url = line.trim_start_matches("figures at ").to_owned();
    let deadline = Instant::now() + Duration::from_secs(20);
    // The log tells that NATS and PostgreSQL have refused the login and said so.
    let log = place.state.join("muster.log");
    let refused = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("Authorization Violation") && text.contains("no role takes")
    };
    while !refused() {
        assert!(Instant::now() < deadline, "no refusal of NATS and PostgreSQL in the log");
        std::thread::sleep(Duration::from_millis(50));
    }
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let figures = runtime.block_on(async { client.get(&url).send().await.unwrap().text().await.unwrap() });
    assert!(figures.contains("muster_"), "{figures}");
    outputs.push(("figures".to_owned(), figures.into_bytes()));
    let id = running.pid().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
    keep("serve", &running.end(), outputs);
}

/// What refuses muster and quotes it in the refusal: Keystone, Connect, the programs.
fn refusals(site: &mut Site, outputs: &mut Outputs) {
    *site.quotes.lock().unwrap() = true;
    for name in ["connect", "op"] {
        let ended = site.places[name].run("refused by Keystone", &["doctor"], outputs);
        assert_ne!(ended.code(), Some(0), "{ended}");
    }
    *site.quotes.lock().unwrap() = false;
    let token = site.connect.state().token.clone();
    for _ in 0..3 {
        let body = serde_json::json!({"status": 401, "message": format!("Invalid token signature: {token}")});
        site.connect.state().instead.push(wiremock::ResponseTemplate::new(401).set_body_json(body));
    }
    site.places["connect"].run("refused by Connect", &["doctor", "--json"], outputs);
    site.connect.state().instead.clear();
    for name in ["op", "keyring"] {
        let quote = site.folder.path().join(name).join("quote");
        std::fs::write(&quote, "").unwrap();
        site.places[name].run("refused by the program", &["doctor", "--json"], outputs);
        site.places[name].run("refused by the program", &["enroll", name, "--json", "--max-attempts", "1"], outputs);
        std::fs::remove_file(quote).unwrap();
    }
    // Secrets where none may be. TOML's own quotes would stand in the way of a canary's.
    let token = format!("Cn4{:016x}", rand::random::<u64>());
    site.search.plant("a secret in a configuration", &token);
    for (name, text) in [
        ("url", format!("[netbox]\nurl = \"https://u:{token}@netbox.example.com\"\ntoken = \"{token}\"\n")),
        ("dsn", format!("[netbox.push.postgres]\ndsn = \"postgres://m:{token}@db/netbox\"\npassword = \"{token}\"\n")),
        (
            "nats",
            format!(
                "[nats]\nservers = [\"tls://u:{token}@nats\"]\nauth = {{ kind = \"token\", token = \"{token}\" }}\n"
            ),
        ),
        ("broken", format!("[netbox]\ntoken = {token}\n")),
    ] {
        let path = site.folder.path().join("etc").join(format!("wrong-{name}.toml"));
        std::fs::write(&path, text).unwrap();
        let ended = Running::start(muster(&["--config", path.to_str().unwrap(), "config", "check"])).end();
        assert_eq!(ended.code(), Some(2), "{ended}");
        keep(&format!("a configuration with a secret in it: {name}"), &ended, outputs);
    }
}

/// The children of this process and theirs, with what anybody on the machine can see of them.
fn watch_children(stop: &AtomicBool) -> BTreeSet<(String, Vec<u8>)> {
    let mut seen = BTreeSet::new();
    let me = std::process::id();
    while !stop.load(Ordering::SeqCst) {
        let parents = |pid: u32| -> Vec<u32> {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
            children.flat_map(|text| text.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
        };
        for child in parents(me) {
            // muster itself is given secrets by its environment here: only its arguments are of interest.
            let read = |pid: u32, what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            seen.insert(("the arguments of muster".to_owned(), read(child, "cmdline")));
            for program in parents(child) {
                seen.insert(("the arguments of a program".to_owned(), read(program, "cmdline")));
                let mut environ = read(program, "environ");
                // Between fork and exec it is muster's own.
                if environ.windows(7).any(|w| w == b"CARGO_M") {
                    environ.clear();
                }
                seen.insert(("the environment of a program".to_owned(), environ));
            }
        }
        std::thread::sleep(Duration::from_millis(15));
    }
    seen
}

/// Proves: Z1, K2
#[test]
fn no_secret_is_in_any_output_in_any_form() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut site = runtime.block_on(Site::start());
    let stop = Arc::new(AtomicBool::new(false));
    let watching = Arc::clone(&stop);
    let watcher = std::thread::spawn(move || watch_children(&watching));

    let of_file: Vec<&str> = GOOD
        .iter()
        .map(|(name, ..)| *name)
        .filter(|name| name.starts_with("file-"))
        .chain(BAD.iter().map(|b| b.0))
        .collect();
    let mut outputs = Outputs::new();
    std::thread::scope(|scope| {
        let site = &site;
        let work = [
            ("file", of_file),
            ("connect", vec!["connect"]),
            ("op", vec!["op"]),
            ("age", vec!["age"]),
            ("keyring", vec!["keyring"]),
        ];
        let tasks: Vec<_> = work.map(|(name, hosts)| scope.spawn(move || enroll(site, name, &hosts))).into();
        for task in tasks {
            outputs.extend(task.join().unwrap());
        }
    });
    assert!(*site.tokens_handed_out.lock().unwrap() >= 2, "Keystone was asked");
    serve(&site.places["file"], &mut outputs);
    serve_briefly(&site, &mut outputs);
    refusals(&mut site, &mut outputs);
    let screens = console::walk(&site.places["file"], &mut outputs);

    stop.store(true, Ordering::SeqCst);
    outputs.extend(watcher.join().unwrap());
    let made = site.plant_what_was_made();
    assert!(made >= 3, "passwords were made for BMCs: {made}");
    for name in ["op", "keyring"] {
        for file in ["argv", "environ"] {
            let mut bytes = std::fs::read(site.folder.path().join(name).join(file)).unwrap();
            // What op is signed in by can't be given to it in another way (docs/vaults.md).
            if (name, file) == ("op", "environ") {
                let text = String::from_utf8(bytes).unwrap();
                let signed_in =
                    &site.places["op"].environment.iter().find(|(n, _)| n == "OP_SERVICE_ACCOUNT_TOKEN").unwrap().1;
                let quoted = Value::from(signed_in.as_str()).to_string();
                assert!(text.contains(&quoted), "op is not signed in");
                bytes = text.replace(&quoted, "\"\"").into_bytes();
            }
            outputs.push((format!("{file} of {name}"), bytes));
        }
    }
    let mut search = std::mem::take(&mut site.search);
    for (what, bytes) in &outputs {
        // op's own token is in its environment while it runs, too.
        if what == "the environment of a program" && bytes.windows(3).any(|w| w == b"OP_") {
            continue;
        }
        search.output(what, bytes);
    }
    let mut found = Vec::new();
    files(&site.folder.path().join("out"), &mut found);
    assert!(found.iter().any(|path| path.extension().is_some_and(|e| e == "md")), "no export among {found:?}");
    for path in found {
        search.output(&path.display().to_string(), &std::fs::read(&path).unwrap());
    }
    println!(
        "canaries planted: {} ({} forms of them), outputs searched: {} ({} MB, {screens} screens among them), {} found",
        search.planted(),
        search.needles(),
        search.outputs,
        search.bytes >> 20,
        search.found.len(),
    );
    assert!(search.found.is_empty(), "{:#?}", search.found);

    // That the search finds what is there: the vaults, and a canary in a log on purpose.
    for name in ["etc/vault.toml", "op/items.json"] {
        assert!(!search.look(&std::fs::read(site.folder.path().join(name)).unwrap()).is_empty(), "{name}");
    }
    leaks_are_seen(&site.folder.path().join("out/file/muster.log"), search);
}

/// Every canary in turn, written into a log as a careless line would.
fn leaks_are_seen(log: &Path, mut search: Search) {
    use std::io::Write;
    let secret = site::canary();
    search.plant("one more", &secret);
    let mut file = std::fs::OpenOptions::new().append(true).open(log).unwrap();
    writeln!(file, "DEBUG request body={}", serde_json::json!({"Password": secret})).unwrap();
    search.output("the log", &std::fs::read(log).unwrap());
    assert!(search.found.iter().any(|told| told.starts_with("one more (JSON) in the log")), "{:?}", search.found);
}

/// Those whose NATS quotes a token and credentials: until it has.
fn serve_briefly(site: &Site, outputs: &mut Outputs) {
    for name in ["age", "keyring"] {
        let place = &site.places[name];
        let running = Running::start(place.command(&["serve"]));
        let log = place.state.join("muster.log");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !std::fs::read_to_string(&log).unwrap_or_default().contains("Authorization Violation") {
            assert!(Instant::now() < deadline, "{name}: NATS was not asked");
            std::thread::sleep(Duration::from_millis(50));
        }
        let id = running.pid().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        keep(&format!("serve of {name}"), &running.end(), outputs);
    }
}
