//! Enrolls a thousand hosts at once on the lab: `cargo bench --bench fleet [HOSTS [SPEED]]`. Prints figures, asserts
//! only that all runs succeed (N1). SPEED is how many seconds of the lab pass in one; at 1 a healthy host takes 5 min.
//!
//! The lab is a process of its own; what is measured is the process that has engine, clients and store, as `muster serve`
//! is.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use muster::app::App;
use muster::config;
use muster::domain::event::{Body, Event, Observation};
use muster::domain::request::EnrollParams;
use muster::store::RunStatus;
use toml::{Table, Value, toml};

/// Units of a rack that have a host.
const UNITS: usize = 40;

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|arg| arg.parse::<f64>().ok());
    let (hosts, speed) = (given.next().unwrap_or(1000.0) as usize, given.next().unwrap_or(1.0));
    let folder = PathBuf::from("target/bench-fleet");
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).unwrap();
    let lab = Lab::start(&folder, hosts, speed);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(enroll(&lab.config, &folder.join("state"), hosts));
    drop(lab);
    std::fs::remove_dir_all(&folder).ok();
}

async fn enroll(config: &Path, state: &Path, hosts: usize) {
    let app = App::open(config::load(config).unwrap(), state).await.unwrap();
    let reading = Instant::now();
    app.sync_now().await.unwrap();
    println!("{hosts} hosts and their switches read in {:.2} s", reading.elapsed().as_secs_f64());
    let (memory, cpu, began) = (Memory::now(), cpu_time(), Instant::now());
    let mut runs = Vec::new();
    for name in names(hosts) {
        runs.push(app.submit(&name, EnrollParams::default(), "bench").await.unwrap());
    }
    println!("{hosts} submissions in {:.2} s", began.elapsed().as_secs_f64());
    let (mut peak, mut at_once) = (0, 0);
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let rows = app.runs().unwrap();
        peak = peak.max(Memory::now().resident - memory.resident);
        at_once = at_once.max(rows.iter().filter(|row| row.status == RunStatus::Running).count());
        if rows.iter().all(|row| !row.status.is_active()) {
            break;
        }
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_time() - cpu);
    let (mut activities, mut attempts, mut records) = (0usize, 0usize, 0usize);
    for run in &runs {
        for record in app.records(*run).unwrap() {
            records += 1;
            match record.body {
                Body::Journal(Event::ActivityScheduled { .. }) => activities += 1,
                Body::Observation(Observation::Attempt { .. }) => attempts += 1,
                _ => {}
            }
        }
    }
    let rows = app.runs().unwrap();
    let failed: Vec<_> = rows.iter().filter(|row| row.status != RunStatus::Succeeded).collect();
    println!(
        "{hosts} runs, {at_once} at once: {seconds:.1} s, {activities} activities in {attempts} attempts, {records} records, {:.2} ms CPU an \
         activity with all protocols, {:.0} % of a processor, at most {:.0} KB resident a run",
        cpu.as_secs_f64() * 1000.0 / activities as f64,
        cpu.as_secs_f64() / seconds * 100.0,
        peak as f64 / hosts as f64,
    );
    app.shutdown().await;
    assert!(failed.is_empty(), "{} failed, the first: {:#?}", failed.len(), failed[0].failure);
}

fn names(hosts: usize) -> impl Iterator<Item = String> {
    (0..hosts).map(|n| format!("cpu-{:02}-{:02}", n / UNITS + 1, n % UNITS + 1))
}

/// The lab of this benchmark, ended with it.
struct Lab {
    child: Child,
    config: PathBuf,
}

impl Lab {
    fn start(folder: &Path, hosts: usize, speed: f64) -> Lab {
        let (scenario, config) = (folder.join("scenario.toml"), folder.join("muster.toml"));
        std::fs::write(&scenario, scenario_of(hosts).to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_muster"))
            .args(["lab", "--speed", &speed.to_string(), "--scenario"])
            .arg(&scenario)
            .arg("--write-config")
            .arg(&config)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.contains("\"ready\""), "the lab is not ready: {ready}");
        let mut settings: Table = std::fs::read_to_string(&config).unwrap().parse().unwrap();
        let limits = settings.entry("limits").or_insert_with(|| Value::Table(Table::new())).as_table_mut().unwrap();
        limits.insert("runs".to_owned(), Value::Integer(hosts as i64));
        std::fs::write(&config, settings.to_string()).unwrap();
        Lab { child, config }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The demo's CPU hosts, as many of them as are wanted, with nothing wrong.
fn scenario_of(hosts: usize) -> Table {
    let mut scenario: Table = include_str!("../scenarios/demo.toml").parse().unwrap();
    let of_a_host = |(n, name): (usize, String)| {
        let (rack, unit) = (format!("R{:02}", n / UNITS + 1), (n % UNITS + 1) as i64);
        Value::Table(toml! {
            name = name
            site = "osl1"
            rack = rack
            unit = unit
            type = "sys-121c-tn10r"
            role = "cpu-baremetal"
        })
    };
    scenario.insert("hosts".to_owned(), Value::Array(names(hosts).enumerate().map(of_a_host).collect()));
    scenario.insert("faults".to_owned(), Value::Array(vec![]));
    let racks = (0..hosts.div_ceil(UNITS)).map(|n| (format!("R{:02}", n + 1), Value::Table(toml! { hall = "hall R" })));
    let site = scenario["sites"]["osl1"].as_table_mut().unwrap();
    site.insert("racks".to_owned(), Value::Table(racks.collect()));
    scenario
}

/// Kilobytes.
struct Memory {
    resident: i64,
}

impl Memory {
    fn now() -> Memory {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        Memory { resident: line.split_whitespace().nth(1).unwrap().parse().unwrap() }
    }
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
