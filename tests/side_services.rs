//! One service that is dead stalls nobody who does not need it (C-49): NetBox, the vault, one BMC.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use binary::LabProcess;
use muster::app::App;
use muster::domain::failure::FailureCode;
use muster::domain::ids::RunId;
use muster::domain::phase::Phase;
use muster::domain::request::EnrollParams;
use muster::domain::run_view::{RetryView, RunView};
use muster::store::RunStatus;
use serde_json::json;

const SPEED: u32 = 60;

/// The application on a lab, in this process: what a console has in its hands.
struct Bench {
    lab: LabProcess,
    app: App,
}

impl Bench {
    async fn start() -> Bench {
        rustls::crypto::ring::default_provider().install_default().ok();
        let lab = tokio::task::spawn_blocking(|| LabProcess::start(SPEED, None)).await.unwrap();
        // How long a service may be away is another test's matter: this one must not run into it on a slow machine.
        let text = std::fs::read_to_string(&lab.config).unwrap();
        let patient: String = text
            .lines()
            .map(|line| if line.starts_with("outage_s") { "outage_s = 900.0\n".into() } else { format!("{line}\n") })
            .collect();
        assert_ne!(text, patient);
        std::fs::write(&lab.config, patient).unwrap();
        let app = App::open(muster::config::load(&lab.config).unwrap(), &lab.state()).await.unwrap();
        app.sync_now().await.unwrap();
        Bench { lab, app }
    }

    async fn fault(&self, fault: serde_json::Value) {
        tokio::task::block_in_place(|| self.lab.fault(fault));
    }

    async fn submit(&self, host: &str) -> RunId {
        self.app.submit(host, EnrollParams::default(), "ada").await.unwrap_or_else(|e| panic!("{host}: {e}"))
    }

    fn view(&self, run: RunId) -> RunView {
        RunView::of(&self.app.records(run).unwrap())
    }

    fn status(&self, run: RunId) -> RunStatus {
        self.app.runs().unwrap().into_iter().find(|row| row.run == run).unwrap().status
    }

    /// What an attempt failed with that is waited for now.
    fn retry(&self, run: RunId) -> Option<RetryView> {
        self.view(run).activity()?.retry.clone()
    }

    async fn until(&self, what: &str, run: RunId, patience: Duration, true_now: impl Fn(&Bench) -> bool) {
        let began = Instant::now();
        while !true_now(self) {
            let view = self.view(run);
            let now = format!("{:?} {:?} {:?}", view.phase(), view.activities, view.outcome);
            assert!(began.elapsed() < patience, "waited {patience:?} in vain for: {what}: {now}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn succeeds(&self, run: RunId, patience: Duration) {
        self.until("the end", run, patience, |bench| !bench.status(run).is_active()).await;
        let view = self.view(run);
        assert_eq!(self.status(run), RunStatus::Succeeded, "{:?}", view.outcome);
    }

    fn vault(&self) -> PathBuf {
        let settings = self.app.settings();
        match &settings.vault.kind {
            muster::config::settings::VaultKind::File(path) => path.clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// Twenty minutes of a lab, and what is left of them at its speed.
const OUTAGE_LAB_S: u32 = 20 * 60;
const OUTAGE: Duration = Duration::from_secs(OUTAGE_LAB_S as u64 / SPEED as u64);

/// Proves: O6, G12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_netbox_answers_502_whoever_needs_it_waits_and_says_so_and_all_go_on_after() {
    let bench = Bench::start().await;
    let cleaning = bench.submit("gpu-b07-29").await;
    bench
        .until("the first host cleans", cleaning, Duration::from_secs(60), |bench| {
            bench.view(cleaning).cleaning.is_some()
        })
        .await;

    bench.fault(json!({"kind": "http", "system": "netbox", "status": 502, "for_s": OUTAGE_LAB_S})).await;
    let began = Instant::now();
    let new = bench.submit("cpu-c01-37").await;
    bench.until("it waits for NetBox", new, OUTAGE / 2, |bench| bench.retry(new).is_some()).await;
    let retry = bench.retry(new).unwrap();
    assert_eq!(retry.failure.code, FailureCode::NetboxUnreachable);
    assert!(retry.failure.message.contains("502"), "says for what: {}", retry.failure.message);
    // Who needs Ironic alone goes on, and the console has the fleet as it was, with its age.
    bench
        .until("the clean ends", cleaning, OUTAGE, |bench| {
            bench.view(cleaning).phase().is_some_and(|phase| phase.phase != Phase::Cleaning)
        })
        .await;
    let fleet = bench.app.fleet().unwrap();
    assert!(fleet.rows.len() > 20, "{}", fleet.rows.len());
    bench
        .until("NetBox is said to be ill", new, OUTAGE, |bench| {
            let systems = bench.app.fleet().unwrap().systems;
            systems.iter().any(|s| s.name == "netbox" && s.error.is_some() && s.ok_at.is_some())
        })
        .await;
    assert!(began.elapsed() < OUTAGE, "all of this was while NetBox was away");
    assert!(bench.status(new).is_active() && bench.status(cleaning).is_active());

    for run in [new, cleaning] {
        bench.succeeds(run, Duration::from_secs(120)).await;
    }
    assert!(began.elapsed() >= OUTAGE, "it was waited out");
    bench
        .until("NetBox is well again", new, Duration::from_secs(60), |bench| {
            bench.app.fleet().unwrap().systems.iter().any(|s| s.name == "netbox" && s.error.is_none())
        })
        .await;
    bench.app.shutdown().await;
}

/// Proves: Z3, G12
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bmc_that_drips_and_a_vault_that_hangs_stall_only_those_that_ask_them() {
    let bench = Bench::start().await;
    // A byte a second, in the time of whoever waits for it.
    bench.fault(json!({"kind": "http", "system": "bmc", "device": "gpu-b07-31", "drip_s": SPEED})).await;
    let dripping = bench.submit("gpu-b07-31").await;
    bench
        .until("its BMC drips", dripping, Duration::from_secs(60), |bench| {
            bench.view(dripping).phase().is_some_and(|phase| phase.phase == Phase::Bmc)
        })
        .await;
    let began = Instant::now();
    let others = [bench.submit("gpu-b07-29").await, bench.submit("gpu-a11-36").await];
    for run in others {
        bench.succeeds(run, Duration::from_secs(60)).await;
    }
    let undisturbed = began.elapsed();
    assert!(bench.status(dripping).is_active(), "{:?}", bench.view(dripping).outcome);

    // A vault on a file system that does not answer: opening it never comes back.
    let vault = bench.vault();
    let kept = std::fs::read(&vault).unwrap();
    let cleaning = bench.submit("cpu-a12-39").await;
    bench
        .until("it needs the vault no more", cleaning, Duration::from_secs(60), |bench| {
            bench.view(cleaning).cleaning.is_some()
        })
        .await;
    let pipe = Pipe::instead_of(&vault);
    let (began, records) = (Instant::now(), bench.app.records(cleaning).unwrap().len());
    let asking: Vec<RunId> =
        [bench.submit("cpu-c01-37").await, bench.submit("cpu-c01-35").await, bench.submit("hv-c02-36").await].into();
    for run in &asking {
        bench.until("it waits for the vault", *run, Duration::from_secs(60), |bench| bench.retry(*run).is_some()).await;
        let retry = bench.retry(*run).unwrap();
        assert_eq!(retry.failure.code, FailureCode::VaultUnreachable, "{:?}", retry.failure);
        assert!(retry.failure.message.contains(vault.to_str().unwrap()), "{}", retry.failure.message);
    }
    // Each read that hangs keeps a thread until the file answers, and these never will: so this is all of the outage.
    assert!(bench.app.records(cleaning).unwrap().len() > records, "who needs no vault goes on meanwhile");
    let answered = Instant::now();
    bench.app.fleet().unwrap();
    assert!(answered.elapsed() < Duration::from_secs(2), "the console goes on");

    // It answers again, and whoever waited goes on.
    let beside = vault.with_extension("new");
    std::fs::write(&beside, kept).unwrap();
    std::fs::set_permissions(&beside, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(&beside, &vault).unwrap();
    for run in asking.into_iter().chain([cleaning]) {
        bench.succeeds(run, Duration::from_secs(120)).await;
    }
    // What still hangs at the pipe is let go only now: it was nobody's matter any more.
    drop(pipe);
    println!("two hosts beside a dripping BMC took {undisturbed:?}, the vault was away for {:?}", began.elapsed());
    bench.app.shutdown().await;
}

/// A pipe that nobody writes to in the place of a file. Whoever hangs at it is let go with it.
struct Pipe(PathBuf);

impl Pipe {
    fn instead_of(path: &std::path::Path) -> Pipe {
        let pipe = path.with_extension("pipe");
        let made = std::process::Command::new("mkfifo").arg("-m").arg("600").arg(&pipe).status().unwrap();
        assert!(made.success());
        std::fs::hard_link(&pipe, path.with_extension("link")).unwrap();
        std::fs::rename(path.with_extension("link"), path).unwrap();
        Pipe(pipe)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // Both ends: opening one alone would wait for the other.
        std::fs::OpenOptions::new().read(true).write(true).open(&self.0).ok();
    }
}
