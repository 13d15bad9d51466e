//! `muster plan` over the lab: it writes nothing, whatever the host, and a run then writes exactly what it said.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use binary::LabProcess;
use muster::app::{App, Planner, SubmitError};
use muster::clients::rehearsal::PlannedRequest;
use muster::domain::event::{Body, Event, Observation, Outcome};
use muster::domain::phase::Phase;
use muster::domain::plan::{Gate, Plan, PlannedStep, what};
use muster::domain::request::EnrollParams;
use muster::engine::Rehearsed;
use muster::lab::Lab;
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::{Entry, System};
use muster::lab::machine::{Quirk, Vendor};
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};

const FRESH: &str = "gpu-b07-29";
const SWAPPED: &str = "gpu-b07-37";
const DEPLOYED: &str = "gpu-b06-41";

/// A lab of a few hosts, and muster's state beside it.
struct Site {
    lab: Lab,
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Site {
    async fn start() -> Site {
        Site::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Scenario)) -> Site {
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| [FRESH, SWAPPED, DEPLOYED].contains(&host.name.as_str()));
        scenario.faults.retain(|fault| fault.device() == Some(SWAPPED));
        change(&mut scenario);
        let lab = Lab::start(scenario, 100.0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = lab.write_config(&folder.path().join("etc")).unwrap();
        Site { lab, folder, config }
    }

    fn settings(&self) -> muster::config::settings::Settings {
        muster::config::load(&self.config).unwrap()
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Plans a host on a lab that refuses every write, and proves that none was even tried.
    async fn plan(&self, host: &str, params: EnrollParams) -> Rehearsed {
        self.refuse_writes();
        let planner = Planner::open(self.settings(), &self.state()).await.unwrap();
        planner.sync().await.unwrap();
        self.lab.world().ledger().reset();
        let store = fingerprint(&self.state());
        let rehearsed = planner.rehearse(host, params).await.unwrap();
        let tried: Vec<String> = self.lab.world().ledger().writes().iter().map(request).collect();
        assert_eq!(tried, [] as [&str; 0], "a plan tried to write");
        assert_eq!(fingerprint(&self.state()), store, "a plan changed muster's own store");
        let asked = self.lab.ledger().iter().filter(|entry| !matches!(&*entry.method, "connect" | "login")).count();
        let reads: u32 = rehearsed.plan.phases.iter().map(|phase| phase.reads).sum();
        assert!(reads as usize >= asked.saturating_sub(2), "{reads} reads are told, {asked} were made");
        self.lab.world().rules().clear();
        rehearsed
    }

    /// Every write to any system answers 500.
    fn refuse_writes(&self) {
        let rule = |method: &str, path: Option<&str>| {
            let rule = HttpRule {
                method: Some(method.to_owned()),
                path: path.map(str::to_owned),
                status: Some(500),
                ..HttpRule::default()
            };
            self.lab.world().add_fault(Fault::Http(rule));
        };
        // A question that Redfish has no GET for.
        let asks = HttpRule { path: Some("*GetRemoteServicesAPIStatus".into()), ..HttpRule::default() };
        self.lab.world().add_fault(Fault::Http(asks));
        for method in ["POST", "PUT", "PATCH", "DELETE", "sftp_write", "sftp_rename", "sftp_remove"] {
            rule(method, None);
        }
        for command in ["mkdir*", "mv *", "rm *", "dhcp-restart*"] {
            rule("exec", Some(command));
        }
    }

    /// Enrolls a host: the outcome, what the run says that it wrote, and what the systems say.
    async fn enroll(&self, host: &str, params: EnrollParams) -> Ran {
        self.lab.world().ledger().reset();
        let app = App::open(self.settings(), &self.state()).await.unwrap();
        app.sync_now().await.unwrap();
        let run = app.submit(host, params, "jo").await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        let outcome = loop {
            let records = app.records(run).unwrap();
            if let Some(Body::Journal(Event::Finished { outcome })) = records.last().map(|record| record.body.clone()) {
                break outcome;
            }
            assert!(Instant::now() < deadline, "the run does not end: {:#?}", records.last());
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let checks = app.records(run).unwrap().into_iter().rev().find_map(|record| match record.body {
            Body::Observation(Observation::Verified { verification, .. }) => Some(verification.checks.len()),
            _ => None,
        });
        let wrote = app.records(run).unwrap().into_iter().filter_map(|record| match record.body {
            Body::Observation(Observation::Wrote { system, target, what, before, after }) => {
                Some(PlannedStep { system, target, what, before, after, write: true })
            }
            _ => None,
        });
        let wrote = wrote.collect();
        app.shutdown().await;
        // The site's own commands are nobody's to judge: a plan counts its test and its validation among the writes.
        let dhcp = self.settings().sites["osl1"].dhcp.clone().unwrap();
        let own = [dhcp.test, Some(dhcp.validate)];
        let counts = |entry: &Entry| {
            let is_command = entry.method == "exec" && own.iter().flatten().any(|command| *command == entry.path);
            // A BMC whose host boots is busy, and is asked again: that no plan can know.
            (entry.write || is_command) && entry.status != Some(503)
        };
        let requests = self.lab.world().ledger().select(counts);
        Ran { outcome, wrote, checks, requests: requests.iter().map(request).collect() }
    }
}

struct Ran {
    outcome: Outcome,
    wrote: Vec<PlannedStep>,
    /// Of the last inventory that was judged.
    checks: Option<usize>,
    requests: Vec<String>,
}

/// A request without its identifiers, which a plan cannot know.
fn request(entry: &Entry) -> String {
    let system = match entry.system {
        System::Netbox => "netbox",
        System::Ironic => "ironic",
        System::Bmc => "bmc",
        System::Dhcp => "dhcp",
    };
    nameless(&format!("{system} {} {}", entry.method, entry.path))
}

fn planned(request: &PlannedRequest) -> String {
    nameless(&format!("{} {} {}", request.system, request.method, request.path))
}

/// Replaces UUIDs.
fn nameless(text: &str) -> String {
    let mut out = text.replace("(a new UUID)", "UUID");
    let is_uuid = |word: &str| word.len() == 36 && word.parse::<uuid::Uuid>().is_ok();
    let words: Vec<String> = out
        .split(|c: char| !c.is_ascii_hexdigit() && c != '-')
        .filter(|word| is_uuid(word))
        .map(str::to_owned)
        .collect();
    for word in words {
        out = out.replace(&word, "UUID");
    }
    out.replace("?nocatalog", "")
}

fn shown(step: &PlannedStep) -> String {
    let PlannedStep { system, what, target, before, after, .. } = step;
    nameless(&format!("{system}: {target}: {what}: {before} -> {after}"))
}

fn page(plan: &Plan) -> String {
    serde_json::to_string_pretty(plan).unwrap()
}

/// What is in the store, but for the times at which systems were heard.
fn fingerprint(state: &Path) -> BTreeMap<String, String> {
    let store = muster::store::Store::open(state).unwrap();
    let mut all = BTreeMap::new();
    all.insert("devices".to_owned(), format!("{:?}", store.devices().unwrap()));
    all.insert("nodes".to_owned(), format!("{:?}", store.all_ironic_refs().unwrap()));
    all.insert("proofs".to_owned(), format!("{:?}", store.proofs().unwrap()));
    all.insert("runs".to_owned(), format!("{:?}", store.runs().unwrap()));
    all
}

/// The plan of a host and the run that follows say the same: step by step in the change lists, request by request in the
/// ledger of the systems.
async fn plan_is_what_a_run_does(site: &Site, host: &str, params: EnrollParams) -> (Rehearsed, Ran) {
    let rehearsed = site.plan(host, params.clone()).await;
    let ran = site.enroll(host, params).await;
    // A run has its commands in its events, and not among its changes.
    let (commands, changes): (Vec<_>, Vec<_>) = rehearsed.plan.writes().partition(|step| step.what == what::COMMAND);
    let steps: Vec<String> = changes.into_iter().map(shown).collect();
    let wrote: Vec<String> = ran.wrote.iter().map(shown).collect();
    assert_eq!(steps, wrote, "steps\n{}", page(&rehearsed.plan));
    let requests: Vec<String> = rehearsed.requests.iter().map(planned).collect();
    assert_eq!(requests, ran.requests, "requests\n{}", page(&rehearsed.plan));
    assert_eq!(rehearsed.plan.writes, wrote.len() + commands.len());
    (rehearsed, ran)
}

fn steps<'a>(plan: &'a Plan, phase: Phase, what: &str) -> Vec<&'a PlannedStep> {
    plan.phase(phase).unwrap().steps.iter().filter(|step| step.what == what).collect()
}

/// Proves: G14
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_fresh_host_is_what_its_run_writes_and_the_plan_after_it_is_empty() {
    let site = Site::start().await;
    let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, EnrollParams::default()).await;
    assert_eq!(ran.outcome.status(), "succeeded", "{:?}", ran.outcome);
    let plan = &rehearsed.plan;
    assert!(plan.writes > 10, "{}", page(plan));
    let phases: Vec<Phase> = plan.phases.iter().map(|phase| phase.phase).collect();
    assert_eq!(phases, Phase::ALL);
    for phase in &plan.phases {
        let gate = if phase.phase == Phase::DriverSwitch { Gate::Off } else { Gate::On };
        assert_eq!(phase.gate, gate, "{}", page(plan));
        let asks_nobody = matches!(phase.phase, Phase::ResolveIronicInstance | Phase::DriverSwitch);
        assert_eq!(phase.reads == 0, asks_nobody, "{}", page(plan));
    }
    let commands = steps(plan, Phase::Dhcp, what::COMMAND);
    assert!(commands.iter().any(|step| step.after == "dhcp-restart"), "{}", page(plan));
    // What is waited for, and what nobody can know.
    assert!(!steps(plan, Phase::Inspection, what::WAIT).is_empty(), "{}", page(plan));
    assert!(!steps(plan, Phase::Cleaning, what::WAIT).is_empty(), "{}", page(plan));
    let unknown = steps(plan, Phase::Inspection, what::NOT_FORESEEN);
    assert!(unknown.len() == 1 && unknown[0].after.contains("checks will be made"), "{}", page(plan));
    let told = format!("{} checks will be made", ran.checks.unwrap());
    assert!(unknown[0].after.contains(&told), "{told}: {}", unknown[0].after);
    for phase in [Phase::Inspection, Phase::Cleaning] {
        assert_eq!(steps(plan, phase, "link guard").len(), 1, "{}", page(plan));
    }

    let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, EnrollParams::default()).await;
    assert_eq!(ran.outcome.status(), "succeeded", "{:?}", ran.outcome);
    assert_eq!((rehearsed.plan.writes, rehearsed.requests.len()), (0, 0), "{}", page(&rehearsed.plan));
    assert_eq!(rehearsed.plan.phase(Phase::Cleaning).unwrap().gate, Gate::Skipped);
}

/// Proves: G14
///
/// With the password set, the cold reset, what is staged for the next boot and the restart for it.
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_host_is_what_its_run_does_to_the_bmc_of_each_vendor() {
    for vendor in [Vendor::Lenovo, Vendor::Dell, Vendor::Ami] {
        let site = Site::with(|scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            for host in &mut scenario.hosts {
                host.bmc_quirks = [Quirk::FactoryPassword].into();
            }
        })
        .await;
        let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, EnrollParams::default()).await;
        assert_eq!(ran.outcome.status(), "succeeded", "{vendor:?}: {:?}", ran.outcome);
        let plan = &rehearsed.plan;
        for what in ["admin password", "cold reset", "boot order"] {
            assert_eq!(steps(plan, Phase::Bmc, what).len(), 1, "{vendor:?}: {what}\n{}", page(plan));
        }
        let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, EnrollParams::default()).await;
        assert_eq!(ran.outcome.status(), "succeeded", "{vendor:?}: {:?}", ran.outcome);
        assert_eq!((rehearsed.plan.writes, rehearsed.requests.len()), (0, 0), "{vendor:?}: {}", page(&rehearsed.plan));
    }
}

/// Proves: G14
#[tokio::test(flavor = "multi_thread")]
async fn switches_of_a_run_are_switches_of_its_plan() {
    let site = Site::start().await;
    let params = EnrollParams {
        force_bmc_restart: true,
        node_uuid: Some("6ba7b810-9dad-41d1-80b4-00c04fd430c8".parse().unwrap()),
        ..EnrollParams::default()
    };
    let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, params).await;
    assert_eq!(ran.outcome.status(), "succeeded", "{:?}", ran.outcome);
    let plan = page(&rehearsed.plan);
    assert!(plan.contains("cold reset") && plan.contains("6ba7b810-9dad-41d1-80b4-00c04fd430c8"), "{plan}");
    assert_eq!(steps(&rehearsed.plan, Phase::Bmc, what::WAIT).len(), 1, "{plan}");
}

/// Proves: G14
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stopped_half_way_is_planned_from_where_it_stands() {
    for state in ["enroll", "manageable", "inspect failed", "clean failed"] {
        let site = Site::with(|scenario| {
            let host = scenario.hosts.iter_mut().find(|host| host.name == FRESH).unwrap();
            host.node = Some(state.to_owned());
        })
        .await;
        let (rehearsed, ran) = plan_is_what_a_run_does(&site, FRESH, EnrollParams::default()).await;
        assert_eq!(ran.outcome.status(), "succeeded", "{state}: {:?}", ran.outcome);
        let created = rehearsed.requests.iter().any(|request| request.path.ends_with("/v1/nodes"));
        assert!(!created, "{state}: a node that is there is not created: {}", page(&rehearsed.plan));
    }
}

/// Proves: G14
#[tokio::test(flavor = "multi_thread")]
async fn a_miscabled_host_with_an_inventory_shows_its_mismatches_and_a_fresh_inspection() {
    let site = Site::start().await;
    let ran = site.enroll(SWAPPED, EnrollParams::default()).await;
    assert_eq!(ran.outcome.status(), "failed", "{:?}", ran.outcome);
    let rehearsed = site.plan(SWAPPED, EnrollParams::default()).await;
    let plan = &rehearsed.plan;
    for interface in ["eth0", "eth1"] {
        let found = steps(plan, Phase::Inspection, &format!("check lldp {interface}"));
        assert_eq!(found.len(), 1, "{}", page(plan));
        assert_ne!(found[0].before, found[0].after);
    }
    let inspects = steps(plan, Phase::Inspection, "provision state");
    assert_eq!(inspects.iter().filter(|step| step.after.contains("inspect")).count(), 1, "{}", page(plan));
}

/// Proves: B19, G14
#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_deployed_host_warns_and_leaves_its_node_alone() {
    let site = Site::start().await;
    let rehearsed = site.plan(DEPLOYED, EnrollParams { run_inspection: false, ..EnrollParams::default() }).await;
    let warned = steps(&rehearsed.plan, Phase::Bmc, what::WARNING);
    assert!(warned.iter().any(|step| step.after.contains("instance")), "{}", page(&rehearsed.plan));
    assert!(!rehearsed.requests.iter().any(|request| request.system == "ironic"), "{:#?}", rehearsed.requests);
}

/// Proves: X1, G14
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_who_would_log_in_over_ipmi_and_only_the_run_does() {
    let site = Site::with(|scenario| {
        let options = &mut scenario.sites.get_mut("osl1").unwrap().options;
        options.insert("prove_ipmi".into(), true.into());
        options.insert("switch_to_ipmi_after_inspection".into(), true.into());
    })
    .await;
    let logins =
        || site.lab.world().ledger().select(|entry| entry.method == "IPMI" && entry.path == "open session").len();
    let rehearsed = site.plan(FRESH, EnrollParams::default()).await;
    let notes = steps(&rehearsed.plan, Phase::Bmc, what::NOTE);
    let would: Vec<&str> = notes.iter().map(|step| &*step.after).filter(|text| text.contains("would prove")).collect();
    assert_eq!(would.len(), 2, "{}", page(&rehearsed.plan));
    assert!(would[0].contains("USER") && would[1].contains("ADMINISTRATOR"), "{would:?}");
    assert_eq!(logins(), 0);
    let ran = site.enroll(FRESH, EnrollParams::default()).await;
    assert_eq!(ran.outcome.status(), "succeeded", "{:?}", ran.outcome);
    assert_eq!(logins(), 2);
    let requests: Vec<String> = rehearsed.requests.iter().map(planned).collect();
    assert_eq!(requests, ran.requests, "{}", page(&rehearsed.plan));
}

/// Proves: G14, S1
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_a_run_would_be_refused_for_or_fail_with() {
    let site = Site::with(|scenario| {
        let mut bare = scenario.hosts.iter().find(|host| host.name == FRESH).unwrap().clone();
        (bare.name, bare.unit, bare.port, bare.oob_ip) = ("gpu-b07-23".to_owned(), Some(23), None, false);
        scenario.hosts.push(bare);
    })
    .await;
    let rehearsed = site.plan("gpu-b07-23", EnrollParams::default()).await;
    let ends = steps(&rehearsed.plan, Phase::Dhcp, what::FAILS);
    assert!(ends.len() == 1 && ends[0].before.starts_with("NETBOX_DATA_MISSING"), "{}", page(&rehearsed.plan));
    assert_eq!(rehearsed.plan.phase(Phase::Bmc).unwrap().gate, Gate::Skipped);
    let planner = Planner::open(site.settings(), &site.state()).await.unwrap();
    let refused = planner.plan("no-such-host", EnrollParams::default()).await.unwrap_err();
    assert!(matches!(refused, SubmitError::UnknownHost(_)), "{refused}");
}

/// Proves: Z1, G14
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_a_plan() {
    let site = Site::start().await;
    let etc = site.folder.path().join("etc");
    let vault: toml::Table = toml::from_str(&std::fs::read_to_string(etc.join("vault.toml")).unwrap()).unwrap();
    let mut secrets = vec![std::fs::read_to_string(etc.join("netbox.token")).unwrap().trim().to_owned()];
    for item in vault.values().filter_map(toml::Value::as_table) {
        for (field, value) in item {
            let text = value.as_str().unwrap_or_default();
            if !matches!(field.as_str(), "username" | "known_hosts") {
                secrets.extend(
                    text.lines().filter(|line| line.len() >= 8 && !line.starts_with("-----")).map(str::to_owned),
                );
            }
        }
    }
    assert!(secrets.len() > 4, "{}", secrets.len());
    for params in [
        EnrollParams::default(),
        EnrollParams { force_bmc_restart: true, run_inspection: false, ..EnrollParams::default() },
    ] {
        let rehearsed = site.plan(FRESH, params).await;
        let told = format!("{} {:?}", page(&rehearsed.plan), rehearsed.requests);
        let found = secrets.iter().filter(|secret| told.contains(secret.as_str())).count();
        assert_eq!(found, 0, "{found} secrets are in the plan");
    }
}

/// Proves: G14, G16
#[test]
fn the_command_prints_the_fields_of_the_contract_and_no_others() {
    let lab = LabProcess::start(60, None);
    let ended = lab.run(&["plan", FRESH, FRESH, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    let plans = ended.events();
    assert_eq!(plans.len(), 1, "a host that is named twice is planned once: {ended}");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&plans[0]), ["host", "phases", "writes"]);
    assert_eq!(plans[0]["host"], json!(FRESH));
    let phases = plans[0]["phases"].as_array().unwrap();
    let mut writes = 0;
    for phase in phases {
        assert_eq!(keys(phase), ["gate", "phase", "reads", "steps"]);
        assert!(["on", "off", "skipped"].contains(&phase["gate"].as_str().unwrap()));
        for step in phase["steps"].as_array().unwrap() {
            assert_eq!(keys(step), ["after", "before", "system", "target", "what", "write"]);
            writes += usize::from(step["write"] == json!(true));
        }
    }
    assert_eq!(plans[0]["writes"], json!(writes));
    assert!(lab.writes().is_empty(), "{:#?}", lab.writes());

    let ended = lab.run(&["plan", FRESH]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    for part in ["writes", "wait", "cannot be foreseen", "inspection"] {
        assert!(ended.stdout.contains(part), "{part}: {ended}");
    }
    let ended = lab.run(&["plan", "gpu-b07-35", FRESH, "--json"]);
    assert_eq!(ended.code(), Some(2), "{ended}");
    assert_eq!(ended.events().len(), 1, "a refusal stops no other host: {ended}");
    assert!(ended.stderr.contains("position"), "{ended}");
    assert!(lab.writes().is_empty(), "{:#?}", lab.writes());
}
