//! The console on a pseudo terminal, as fast as it is at a rack: `cargo bench --bench console [DEVICES [RUNS]]`. Prints
//! figures, asserts none (N1). 100,000 devices in the store, and 1,000 runs that another process carries out.
//!
//! `fzf` and `tig` stand beside as the measure, over as many lines, in turn with muster, where they are installed.

#[allow(dead_code, reason = "each binary uses its part of the support")]
#[path = "../tests/support/many.rs"]
mod many;
#[path = "../tests/support/engine.rs"]
mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use muster::config::settings::Limits;
use muster::domain::event::{EnrollResult, Observation, WaitKind, WaitReason};
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::provision::{Power, ProvisionState};
use muster::domain::request::EnrollRequest;
use muster::engine::{LocalCx, SystemClock, Workflows};
use muster::store::{Lead, Store};
use muster::workflows::cx::{ActivityError, Cx};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use support::{A, World, limited, options, request};
use uuid::Uuid;

const COLUMNS: u16 = 100;
const ROWS: u16 = 32;
/// Keys of one measurement, a hand's pace apart.
const KEYS: usize = 200;
const PACE: Duration = Duration::from_millis(60);
/// Nothing more comes of a key after so long.
const SETTLED: Duration = Duration::from_millis(25);

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (devices, runs) = (given.next().unwrap_or(100_000), given.next().unwrap_or(1_000));
    let folder = std::env::current_dir().unwrap().join("target/bench-console");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let state = folder.join("state");
    let store = Store::open(&state).unwrap();
    let fleet: Vec<_> = (0..devices).map(many::device).collect();
    for some in fleet.chunks(5_000) {
        runtime.block_on(store.put_devices(some.to_vec())).unwrap();
    }
    // This process leads: the console follows, as beside a `muster serve`.
    let lead = Lead::take(&state).unwrap();
    let config = configure(&folder);
    let muster = || {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_muster"));
        command.args([Path::new("--config"), &config, Path::new("--state-dir"), &state]);
        command
    };

    println!("{devices} devices, {COLUMNS}×{ROWS}, no run");
    for round in 1..=3 {
        let mut program = Program::start(muster());
        let all = format!("{devices} devices");
        let [first, whole] = program.shows(["gpu-0000", &all]);
        println!(
            "  muster     first frame with the fleet after {:.1} ms, the whole fleet after {:.1} ms",
            ms(first),
            ms(whole)
        );
        if round == 1 {
            idle(&mut program, "muster");
        }
        keys(&mut program, "muster", b"j");
        peers(&folder, devices);
    }

    println!("{runs} runs at once, each with something new every 2 s");
    let world = World::new();
    let limits = Limits { runs, activities: 64, ..Limits::default() };
    let engine = {
        let _inside = runtime.enter();
        let workflows = Workflows::new().with("enroll", streaming);
        limited(Arc::new(store.clone()), &world, workflows, Arc::new(SystemClock::default()), limits)
    };
    runtime.block_on(async {
        for (n, device) in fleet.iter().take(runs).enumerate() {
            // A run's time begins with its submission: one of tomorrow would sleep until then.
            let asked = EnrollRequest {
                host: device.name.clone(),
                site: device.site.clone(),
                submitted_at: Timestamp::now(),
                ..request(n as u64 + 1)
            };
            store.submit_as(RunId(Uuid::now_v7()), "enroll", asked).await.unwrap();
        }
        engine.resume_all().await.unwrap();
    });
    let mut program = Program::start(muster());
    program.shows(["gpu-0000"]);
    thread::sleep(Duration::from_secs(5));
    let (before, spent, began) = (program.heard(), program.cpu(), Instant::now());
    thread::sleep(Duration::from_secs(10));
    let bytes = program.heard() - before;
    let took = began.elapsed().as_secs_f64();
    println!(
        "  muster     {:.1} KB/s written, {:.1} % of a processor, {:.0} MB resident",
        bytes as f64 / took / 1000.0,
        (program.cpu() - spent) / took * 100.0,
        program.resident()
    );
    keys(&mut program, "muster", b"j");
    drop(program);
    runtime.block_on(engine.shutdown());
    drop(lead);
    std::fs::remove_dir_all(&folder).ok();
}

/// A run without an end: it looks at its node, says what it saw, and waits.
async fn streaming(cx: LocalCx, request: EnrollRequest) -> Result<EnrollResult, ActivityError> {
    let states = [ProvisionState::Inspecting, ProvisionState::InspectWait, ProvisionState::CleanWait];
    // Not all at the same moment.
    cx.sleep_until(cx.now() + Duration::from_millis(request.netbox_id % 100 * 20), waiting()).await?;
    for state in states.iter().cycle() {
        cx.activity::<A>(request.host.clone(), options()).await?;
        cx.report(Observation::Node {
            state: state.clone(),
            power: Power::On,
            clean_step: None,
            reservation: None,
            last_error: None,
        });
        cx.sleep_until(cx.now() + Duration::from_secs(2), waiting()).await?;
    }
    unreachable!("the states go round")
}

fn waiting() -> WaitReason {
    WaitReason { phase: Phase::Inspection, kind: WaitKind::Inspection, text: "inspecting".into(), gives_up_at: None }
}

/// A configuration whose systems answer nothing: the console shows what it has.
fn configure(folder: &Path) -> PathBuf {
    let config = folder.join("muster.toml");
    let text = "[netbox]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:MUSTER_BENCH_TOKEN\"\n[vault]\nkind = \"env\"\n\
                [ironic.none]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_GPU\"]\nauth = { kind = \"none\" }\n\
                [sites.site00.gates]\nconfigure_dhcp = false\n";
    std::fs::write(&config, text).unwrap();
    config
}

/// What others need for a key over as many lines, where they are installed.
fn peers(folder: &Path, lines: usize) {
    let list = folder.join("lines.txt");
    if !list.exists() {
        let text: String = (0..lines).map(|n| many::device(n).name + "\n").collect();
        std::fs::write(&list, text).unwrap();
    }
    for (name, key, script) in [("fzf", &b"\x1b[A"[..], "fzf < lines.txt"), ("tig", b"j", "tig < lines.txt")] {
        let there = std::process::Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
        if !there.status.success() {
            println!("  {name:<10} is not installed: not measured");
            continue;
        }
        let mut command = CommandBuilder::new("sh");
        command.args(["-c", script]);
        command.cwd(folder);
        let mut program = Program::start(command);
        program.shows(["gpu-0000"]);
        thread::sleep(Duration::from_secs(1));
        keys(&mut program, name, key);
    }
}

/// From a key that moves the selection to the first bytes and to the last, and how many they are.
fn keys(program: &mut Program, name: &str, key: &[u8]) {
    thread::sleep(Duration::from_millis(500));
    let (mut first, mut bytes) = (Vec::new(), Vec::new());
    for _ in 0..KEYS {
        program.drain();
        let began = Instant::now();
        program.keyboard.write_all(key).unwrap();
        program.keyboard.flush().unwrap();
        let Some((came, mut count)) = program.next(Duration::from_millis(500)) else { continue };
        first.push(came.duration_since(began));
        while let Some((_, more)) = program.next(SETTLED) {
            count += more;
        }
        bytes.push(count);
        thread::sleep(PACE.saturating_sub(began.elapsed()));
    }
    first.sort();
    bytes.sort_unstable();
    let of = |share: usize| ms(first[(first.len() * share / 100).min(first.len() - 1)]);
    println!(
        "  {name:<10} key to screen: p50 {:.2} ms, p99 {:.2} ms of {} keys; bytes a key: p50 {}, most {}",
        of(50),
        of(99),
        first.len(),
        bytes[bytes.len() / 2],
        bytes.last().unwrap()
    );
}

/// What it costs to show a fleet that nothing happens to.
fn idle(program: &mut Program, name: &str) {
    thread::sleep(Duration::from_secs(3));
    let (wakes, spent, before, began) = (program.wakes(), program.cpu(), program.heard(), Instant::now());
    thread::sleep(Duration::from_secs(20));
    let took = began.elapsed().as_secs_f64();
    println!(
        "  {name:<10} idle: {:.2} % of a processor, {:.1} wake-ups/s, {:.0} bytes/s written, {:.0} MB resident",
        (program.cpu() - spent) / took * 100.0,
        (program.wakes() - wakes) as f64 / took,
        (program.heard() - before) as f64 / took,
        program.resident()
    );
}

/// A program on a terminal of its own.
struct Program {
    child: Box<dyn Child + Send + Sync>,
    keyboard: Box<dyn Write + Send>,
    drawn: Receiver<(Instant, Vec<u8>)>,
    began: Instant,
    heard: usize,
    _master: Box<dyn MasterPty + Send>,
}

impl Program {
    fn start(mut command: CommandBuilder) -> Program {
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        command.env("LANG", "C.UTF-8");
        command.env("MUSTER_BENCH_TOKEN", "none");
        command.env_remove("TMUX");
        command.env_remove("NO_COLOR");
        let pair = native_pty_system()
            .openpty(PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, drawn) = channel();
        let began = Instant::now();
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                if sender.send((Instant::now(), bytes[..n].to_vec())).is_err() {
                    break;
                }
            }
        });
        let keyboard = pair.master.take_writer().unwrap();
        Program { child, keyboard, drawn, began, heard: 0, _master: pair.master }
    }

    /// The next bytes that it draws: when, and how many.
    fn next(&mut self, patience: Duration) -> Option<(Instant, usize)> {
        match self.drawn.recv_timeout(patience) {
            Ok((at, bytes)) => {
                self.heard += bytes.len();
                Some((at, bytes.len()))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("it ended: {:?}", self.child.try_wait()),
        }
    }

    fn drain(&mut self) {
        while self.drawn.try_recv().map(|(_, bytes)| self.heard += bytes.len()).is_ok() {}
    }

    /// Bytes drawn so far.
    fn heard(&mut self) -> usize {
        self.drain();
        self.heard
    }

    /// Waits for texts on the screen, one after the other, and says how long after the start each was there.
    fn shows<const N: usize>(&mut self, texts: [&str; N]) -> [Duration; N] {
        let mut screen = vt100::Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 0);
        let mut last = self.began;
        texts.map(|text| {
            while !screen.screen().contents().contains(text) {
                let (at, bytes) = self.drawn.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|e| {
                    panic!("'{text}' did not come ({e}); the screen was:\n{}", screen.screen().contents())
                });
                self.heard += bytes.len();
                screen.process(&bytes);
                last = at;
            }
            last.duration_since(self.began)
        })
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.process_id().unwrap())).unwrap()
    }

    /// Seconds of processor time so far.
    fn cpu(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
    }

    /// Megabytes.
    fn resident(&self) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1000.0
    }

    /// How often its threads have slept and come back.
    fn wakes(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.process_id().unwrap())).unwrap();
        let of = |task: std::io::Result<std::fs::DirEntry>| {
            let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        threads.map(of).sum()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
