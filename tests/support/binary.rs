//! Drives the real binary over a lab of its own: start, follow, kill, and read the lab's ledger.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything here may take before it is called stuck.
const PATIENCE: Duration = Duration::from_secs(180);

/// A command of the binary, away from the environment of whoever runs the tests.
pub fn muster(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["MUSTER_CONFIG", "MUSTER_STATE_DIR", "MUSTER_LOG", "NO_COLOR", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("RUST_BACKTRACE", "0").env("USER", "jo");
    command
}

/// What a finished command left.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The lines of `--json`.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines().filter(|line| !line.trim().is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON: {line}: {e}"))).collect()
    }

    /// The closing line of a host.
    pub fn finished(&self, host: &str) -> Value {
        let found = self.events().into_iter().rev().find(|event| event["event"] == "finished" && event["host"] == host);
        found.unwrap_or_else(|| panic!("{host} has no closing line\n{self}"))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- stdout\n{}\n--- stderr\n{}", self.status, self.stdout, self.stderr)
    }
}

/// A command under way whose lines are read as they come.
pub struct Running {
    child: Reaped,
    lines: Receiver<String>,
    seen: Vec<String>,
    stderr: std::thread::JoinHandle<()>,
    said: Arc<Mutex<String>>,
}

/// Goes with whoever holds it: a test that fails leaves no process behind.
struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let pipe = BufReader::new(child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let text = Arc::clone(&said);
        let stderr = std::thread::spawn(move || {
            for line in pipe.lines().map_while(Result::ok) {
                let mut text = text.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        Running { child: Reaped(child), lines, seen: vec![], stderr, said }
    }

    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Reads lines until one fits. `None`: the command ended before.
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if fits(&line) {
                        return Some(line);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.0.kill().ok();
                    panic!("no line for '{what}' within {PATIENCE:?}:\n{}", self.seen.join("\n"));
                }
            }
        }
    }

    /// Waits until it has said something on stderr.
    pub fn wait_to_say(&mut self, what: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said.lock().unwrap().contains(what) {
            if Instant::now() > deadline || self.child.0.try_wait().unwrap().is_some() {
                self.child.0.kill().ok();
                panic!("never said '{what}': {}\n{}", self.said.lock().unwrap(), self.seen.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// As pulling the plug does.
    pub fn kill(mut self) -> Ended {
        self.child.0.kill().ok();
        self.end()
    }

    /// Waits for the end.
    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            while let Ok(line) = self.lines.try_recv() {
                self.seen.push(line);
            }
            if let Some(status) = self.child.0.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                self.child.0.kill().ok();
                panic!("did not end within {PATIENCE:?}:\n{}", self.seen.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.seen.extend(self.lines.iter());
        self.stderr.join().unwrap();
        let stderr = self.said.lock().unwrap().clone();
        Ended { status, stdout: self.seen.join("\n"), stderr }
    }
}

impl Drop for LabProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `muster lab` in a process of its own, with its configuration in a folder that goes with it.
pub struct LabProcess {
    child: Child,
    pub folder: tempfile::TempDir,
    pub config: PathBuf,
    pub ready: Value,
    control: String,
}

impl LabProcess {
    /// A lab at this speed; `scenario` is the built-in one where it is `None`.
    pub fn start(speed: u32, scenario: Option<&Path>) -> LabProcess {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("muster.toml");
        let speed = speed.to_string();
        let mut command = muster(&["lab", "--speed", &speed, "--write-config"]);
        command.arg(&config);
        if let Some(scenario) = scenario {
            command.arg("--scenario").arg(scenario);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the lab starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("the lab is not ready: '{line}': {e}"));
        assert_eq!(ready["ready"], json!(true));
        let control = ready["control"].as_str().unwrap().trim_end_matches('/').to_owned();
        LabProcess { child, folder, config, ready, control }
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A command of the binary on this lab.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = muster(&[]);
        command.arg("--config").arg(&self.config).arg("--state-dir").arg(self.state()).args(arguments);
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(self.command(arguments)).end()
    }

    /// Every request that any system got since the last reset.
    pub fn ledger(&self) -> Vec<Value> {
        let answer = self.ask("GET", "/ledger", None);
        let entries = answer.as_array().or_else(|| answer["entries"].as_array()).expect("a list of requests");
        entries.clone()
    }

    /// The writes among them, as `system METHOD path`.
    pub fn writes(&self) -> Vec<String> {
        let writes = self.ledger().into_iter().filter(|entry| entry["write"] == true);
        writes
            .map(|entry| format!("{} {} {}", text(&entry["system"]), text(&entry["method"]), text(&entry["path"])))
            .collect()
    }

    /// What must not happen twice: requests that create something or set off a process, and how often each was made.
    pub fn once_only(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for write in self.writes() {
            let creates = write.contains(" POST ") && !write.contains("/traits");
            let sets_off = ["/states/provision", "/states/power", "restart"].iter().any(|part| write.contains(part));
            if creates || sets_off {
                *counts.entry(without_uuids(&write)).or_insert(0) += 1;
            }
        }
        counts
    }

    pub fn reset_ledger(&self) {
        self.ask("POST", "/ledger/reset", None);
    }

    pub fn fault(&self, fault: Value) {
        self.ask("POST", "/faults", Some(fault));
    }

    pub fn world(&self) -> Value {
        self.ask("GET", "/world", None)
    }

    /// One request to the control interface.
    fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        request(method, &format!("{}{path}", self.control), body)
    }
}

/// One HTTP request, for the control interface and for real services.
pub fn request(method: &str, url: &str, body: Option<Value>) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    rustls::crypto::ring::default_provider().install_default().ok();
    runtime.block_on(async {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        let mut request = client.request(method.parse().unwrap(), url);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap_or_else(|e| panic!("{method} {url}: {e}"));
        assert!(answer.status().is_success(), "{method} {url}: {}", answer.status());
        let bytes = answer.bytes().await.unwrap();
        if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() }
    })
}

/// The same request of another run: what the server named by itself differs.
fn without_uuids(write: &str) -> String {
    let is_uuid = |part: &str| part.len() == 36 && part.bytes().filter(|b| *b == b'-').count() == 4;
    write.split('/').map(|part| if is_uuid(part) { "UUID" } else { part }).collect::<Vec<_>>().join("/")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}
