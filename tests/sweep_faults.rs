//! Answers each request of an enrollment with each kind of fault, and proves that every run ends: done after all, or failed
//! with a code, an owner and an action.
//!
//! By default each kind of request (system, method, path) is met once, in the shortest run that makes it, and a few of them
//! by a fault that stays; the BMC of each further vendor by the faults that differ most. With `MUSTER_FULL_SWEEP=1` every
//! single request of a whole enrollment, and of each vendor's BMC, is (in a release build that takes minutes). After each, whatever came of it, the vault's credential works on the BMC or is
//! about to, a NIC and a disk can boot, and nothing that muster staged is left.

#[path = "support/pool.rs"]
mod pool;
#[path = "support/site.rs"]
mod site;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster::clients::vault::Vault;
use muster::domain::event::{Body, Observation, Outcome, RunRecord};
use muster::domain::failure::FailureCode;
use muster::domain::request::EnrollRequest;
use muster::lab::ledger::{Entry, System};
use muster::lab::machine::{Quirk, Vendor};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use site::{Ended, HOST, Site, bootable_now_and_next, kept, of_vendor, once_only};

/// Much longer than any run takes, however busy the machine is.
const HANG: Duration = Duration::from_secs(60);

/// What is done to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Timeout,
    Reset,
    /// Done, and the answer lost.
    TimeoutAfter,
    ResetAfter,
    Status(u16),
    Html,
    CutJson,
    /// 50 MB.
    Huge,
    Drip,
    /// Of the DHCP host: a command ends badly, a transfer is refused.
    Refused,
    Late,
}

const HTTP: &[Kind] = &[
    Kind::Timeout,
    Kind::Reset,
    Kind::Status(401),
    Kind::Status(403),
    Kind::Status(404),
    Kind::Status(409),
    Kind::Status(500),
    Kind::Status(503),
    Kind::Html,
    Kind::CutJson,
    Kind::Huge,
    Kind::Drip,
];
const SSH: &[Kind] = &[Kind::Timeout, Kind::Reset, Kind::Refused, Kind::Late];
/// For each further vendor: what differs most.
const BRIEF: &[Kind] = &[Kind::Reset, Kind::Status(401), Kind::Status(404), Kind::Status(503), Kind::CutJson];
const AFTER: &[Kind] = &[Kind::TimeoutAfter, Kind::ResetAfter];

impl Kind {
    fn rule(self, system: System) -> Value {
        match self {
            Kind::Timeout => json!({"hang": true}),
            Kind::Reset => json!({"drop": true}),
            Kind::TimeoutAfter => json!({"hang": true, "after_effect": true}),
            Kind::ResetAfter => json!({"drop": true, "after_effect": true}),
            Kind::Status(503) => {
                json!({"status": 503, "headers": {"Retry-After": "1"}, "body": said(system, "busy, come again")})
            }
            Kind::Status(status) => json!({"status": status, "body": said(system, "the lab says no")}),
            Kind::Html => json!({"status": 200, "body": "<html><body><h1>Sign in</h1></body></html>"}),
            Kind::CutJson => json!({"cut_body": true}),
            Kind::Huge => json!({"body_bytes": 50 * 1024 * 1024}),
            Kind::Drip => json!({"drip_s": 50}),
            Kind::Refused => json!({"status": 1, "body": "Permission denied\u{1b}[31m"}),
            Kind::Late => json!({"delay_s": 2000}),
        }
    }

    /// Passes by itself: a run that meets it once must not fail of it.
    fn is_passing(self) -> bool {
        matches!(self, Kind::Timeout | Kind::Reset | Kind::TimeoutAfter | Kind::ResetAfter | Kind::Drip | Kind::Late)
            || matches!(self, Kind::Status(500 | 503))
    }

    fn name(self) -> String {
        match self {
            Kind::Status(status) => status.to_string(),
            other => format!("{other:?}"),
        }
    }
}

/// A refusal in the words of each system.
fn said(system: System, text: &str) -> Value {
    match system {
        System::Netbox | System::Dhcp => json!({"detail": text}),
        System::Ironic => json!({"error_message": json!({"faultstring": text, "faultcode": "Client"}).to_string()}),
        System::Bmc => json!({"error": {"code": "Base.1.10.GeneralError", "message": text}}),
    }
}

/// Which part of an enrollment is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Dhcp,
    Bmc,
    /// As the vendor left the BMC.
    Dell,
    Lenovo,
    Ami,
    Ironic,
    Whole,
}

impl Part {
    /// Of a vendor whose BMC is set up from the factory's state.
    fn vendor(self) -> Option<Vendor> {
        match self {
            Part::Dell => Some(Vendor::Dell),
            Part::Lenovo => Some(Vendor::Lenovo),
            Part::Ami => Some(Vendor::Ami),
            Part::Dhcp | Part::Bmc | Part::Ironic | Part::Whole => None,
        }
    }

    fn site(self) -> Site {
        match self.vendor() {
            Some(vendor) => of_vendor(vendor, &[Quirk::FactoryPassword]),
            None => Site::start(|_| {}),
        }
    }

    fn request(self, site: &Site) -> EnrollRequest {
        let mut request = site.request();
        let options = &mut request.options;
        let whole = self == Part::Whole;
        options.platform_class_activity_ready = whole || self == Part::Dhcp;
        options.configure_dhcp = whole || self == Part::Dhcp;
        options.configure_bmc = whole || self == Part::Bmc || self.vendor().is_some();
        options.ironic_enrol = whole || self == Part::Ironic;
        request
    }
}

/// A request that is met by a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    part: Part,
    system: System,
    method: String,
    /// With `*` for names that servers gave.
    path: String,
    /// So many of the same kind pass first.
    skip: u32,
    write: bool,
}

#[derive(Debug, Clone)]
struct Try {
    spot: Spot,
    kind: Kind,
    stays: bool,
}

/// How an undisturbed run of a part went.
struct Undisturbed {
    ledger: Vec<Entry>,
    state: Value,
    writes: BTreeMap<String, usize>,
    warnings: usize,
}

fn undisturbed(part: Part) -> Undisturbed {
    let site = part.site();
    let life = site.begin_sound();
    let run = life.submit(part.request(&site));
    let ended = life.wait(run, HANG);
    assert!(matches!(ended, Some(Ended::Run(Outcome::Succeeded { .. }))), "{part:?}: {ended:?}");
    let ledger = site.ledger();
    let warnings = warnings(&life.store.records(run).unwrap());
    let found = Undisturbed { writes: once_only(&ledger), state: site.end_state(&life), ledger, warnings };
    life.end();
    found
}

fn warnings(records: &[RunRecord]) -> usize {
    let warned = |record: &&RunRecord| matches!(record.body, Body::Observation(Observation::Warned { .. }));
    records.iter().filter(warned).count()
}

fn pattern(path: &str) -> String {
    site::plain(path).replace("UUID", "*")
}

/// Each kind of request in the parts that make it; the first part wins.
fn kinds_of_requests(parts: &BTreeMap<Part, Undisturbed>) -> Vec<Spot> {
    let mut seen = BTreeMap::new();
    for (part, run) in parts {
        for entry in &run.ledger {
            let (system, method, path) = (entry.system, entry.method.clone(), pattern(&entry.path));
            // What one vendor's BMC makes of an answer says nothing of another's.
            let of = part.vendor().filter(|_| system == System::Bmc).map(|_| *part);
            seen.entry((of, system, method.clone(), path.clone())).or_insert(Spot {
                part: *part,
                system,
                method,
                path,
                skip: 0,
                write: entry.write,
            });
        }
    }
    seen.into_values().collect()
}

/// Every single request of each part; of a vendor's, what its BMC is asked.
fn all_requests(parts: &BTreeMap<Part, Undisturbed>) -> Vec<Spot> {
    let mut spots = Vec::new();
    for (part, run) in parts {
        let mut count = BTreeMap::new();
        for entry in &run.ledger {
            let (system, method, path) = (entry.system, entry.method.clone(), pattern(&entry.path));
            let skip = count.entry((system, method.clone(), path.clone())).or_insert(0);
            *skip += 1;
            if part.vendor().is_none() || system == System::Bmc {
                spots.push(Spot { part: *part, system, method, path, skip: *skip - 1, write: entry.write });
            }
        }
    }
    spots
}

fn tries(spots: &[Spot]) -> Vec<Try> {
    let mut all = Vec::new();
    let mut stayed = BTreeMap::new();
    for spot in spots {
        let kinds = match (spot.system, spot.part.vendor()) {
            (System::Dhcp, _) => SSH,
            (_, Some(_)) => BRIEF,
            (_, None) => HTTP,
        };
        let after = if spot.write { AFTER } else { &[] };
        for kind in kinds.iter().chain(after) {
            all.push(Try { spot: spot.clone(), kind: *kind, stays: false });
        }
        // A fault that stays: for the first request of each system and method.
        if stayed.insert((spot.system, spot.method.clone()), ()).is_none() {
            for kind in kinds {
                all.push(Try { spot: spot.clone(), kind: *kind, stays: true });
            }
        }
    }
    all
}

/// What one try came to.
struct Came {
    code: Option<FailureCode>,
    /// The fault was met.
    met: bool,
    wrong: Vec<String>,
    took: Duration,
}

fn attempt(this: &Try, expected: &Undisturbed) -> Came {
    let Try { spot, kind, stays } = this;
    let began = Instant::now();
    let site = spot.part.site();
    // What lies below a path with a server's name at its end is another kind of request.
    if spot.path.ends_with('*') {
        site.fault(json!({"kind": "http", "system": spot.system, "path": format!("{}/*", spot.path)}));
    }
    let mut rule = kind.rule(spot.system);
    rule["kind"] = json!("http");
    rule["system"] = json!(spot.system);
    rule["method"] = json!(spot.method);
    rule["path"] = json!(spot.path);
    rule["skip"] = json!(spot.skip);
    if !stays {
        rule["count"] = json!(1);
    }
    site.fault(rule);
    let life = site.begin_sound();
    let run = life.submit(spot.part.request(&site));
    let ended = life.wait(run, HANG);
    let mut wrong = Vec::new();
    let mut code = None;
    match ended {
        Some(Ended::Run(Outcome::Succeeded { .. })) => {
            let mut state = site.end_state(&life);
            // A file that was made long after its deadline may come when all is done: empty, under a name that no server
            // reads, and taken away by the next upload.
            if *kind == Kind::Late
                && let Some(files) = state["dhcp"].as_object_mut()
            {
                files.retain(|name, content| !(name.ends_with(".muster-tmp") && content == ""));
            }
            // What a machine lacks is left as it is, and said; nothing else may end otherwise.
            if state != expected.state && warnings(&life.store.records(run).unwrap()) <= expected.warnings {
                wrong.push(format!("another end:\n{}", differences(&expected.state, &state)));
            }
        }
        Some(Ended::Run(Outcome::Failed { failure })) => {
            code = Some(failure.code);
            if std::env::var_os("MUSTER_SWEEP_SAY").is_some() {
                println!(
                    "SAY {kind:?} {} {:?} {} {} skip {} => {} [{:?} {}] {} || {}",
                    if *stays { "stays" } else { "once" },
                    spot.system,
                    spot.method,
                    spot.path,
                    spot.skip,
                    failure.code,
                    failure.owner,
                    failure.retryable,
                    failure.message,
                    failure.action
                );
            }
            if matches!(failure.code, FailureCode::InternalError | FailureCode::JournalDiverged) {
                wrong.push(format!("not classified: {failure:?}"));
            }
            if failure.message.trim().is_empty() || failure.action.trim().len() < 8 {
                wrong.push(format!("without sentence or action: {failure:?}"));
            }
            if kind.is_passing() && !stays {
                wrong.push(format!("failed of a fault that passed: {failure:?}"));
            }
            let text = format!("{} {}", failure.message, failure.action);
            if text.chars().any(char::is_control) || text.len() > 1500 {
                wrong.push(format!("no sentence: {failure:?}"));
            }
        }
        Some(Ended::Run(other)) => wrong.push(format!("{other:?}")),
        Some(Ended::Killed) | None => wrong.push("hang".to_owned()),
    }
    // Nothing that sets off a process happens twice because its answer was spoilt.
    let ledger = site.ledger();
    let refused = |e: &&Entry| e.status.is_some_and(|status| status >= 400);
    let is_done = |e: &&Entry| !e.injected && !refused(e) || matches!(kind, Kind::TimeoutAfter | Kind::ResetAfter);
    let done: Vec<Entry> = ledger.iter().filter(is_done).cloned().collect();
    if !stays && code.is_none() {
        for (write, count) in once_only(&done) {
            if expected.writes.get(&write).is_none_or(|wanted| count > *wanted) {
                // What was asked around it says why.
                let path = write.split(' ').nth(1).unwrap_or_default();
                let around =
                    |entry: &&Entry| site::plain(&entry.path).starts_with(path) || entry.write || entry.injected;
                let told = ledger.iter().filter(around).map(|entry| {
                    format!("    {} {} {} {:?} {}", entry.n, entry.method, entry.path, entry.status, entry.injected)
                });
                wrong.push(format!("{write}: {count} times\n{}", told.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    let met = site.lab.world().rules().uses().last().is_some_and(|uses| *uses > 0);
    wrong.extend(told_secrets(&site, &life.store.records(run).unwrap()));
    wrong.extend(left_behind(&site));
    life.end();
    Came { code, met, wrong, took: began.elapsed() }
}

/// What no end of a run may leave at a BMC.
fn left_behind(site: &Site) -> Vec<String> {
    let machine = site.lab.world().machine(HOST).unwrap();
    let mut wrong = Vec::new();
    let item = format!("bmc-{HOST}");
    let vault = Vault::new(site.settings.vault.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let word = format!("{:?}", machine.bmc.vendor).to_lowercase();
    let (user, _) = machine.bmc.vendor.factory_login();
    let known = [(item.as_str(), "password"), (&item, "password_next"), (&format!("bmc-factory-{word}"), "password")];
    let known: Vec<String> = known
        .iter()
        .filter_map(|(item, field)| Some(runtime.block_on(vault.ask(item, field)).ok()?.expose_secret().to_owned()))
        .collect();
    if !machine.bmc.accounts.get(user).is_some_and(|now| known.contains(now)) {
        wrong.push("no password of the vault works on the BMC".to_owned());
    }
    for (nics, others) in bootable_now_and_next(&machine).into_iter().flatten() {
        wrong.extend((nics == 0).then(|| "no NIC can boot".to_owned()));
        wrong.extend((others == 0).then(|| "no disk can boot".to_owned()));
    }
    // Those of Redfish live in the server itself: one that was never asked for is none that is open.
    let sessions = site.ledger().iter().filter(|e| e.method == "POST" && e.path.contains("/Sessions")).count();
    if sessions + machine.bmc.ipmi_sessions as usize > 0 {
        wrong.push(format!("a session is left open ({sessions} of Redfish, {} of IPMI)", machine.bmc.ipmi_sessions));
    }
    for job in kept(&machine, "jobs") {
        if ["new", "scheduled", "New", "Scheduled"].iter().any(|state| job["state"] == *state) {
            wrong.push(format!("a job is left: {job}"));
        }
    }
    wrong
}

/// Secrets of the site that a journal tells.
fn told_secrets(site: &Site, records: &[RunRecord]) -> Vec<String> {
    let text = serde_json::to_string(records).unwrap();
    let machine = site.lab.world().machine(HOST).unwrap();
    let (_, factory) = machine.bmc.vendor.factory_login();
    let mut secrets: Vec<String> = machine.bmc.accounts.into_values().collect();
    // What everybody knows is none; AMI's is a word that stands in any text about it.
    secrets.retain(|secret| secret != factory);
    secrets.push(site.lab.netbox_token());
    secrets.retain(|secret| text.contains(secret));
    secrets.into_iter().map(|secret| format!("the journal tells the secret {secret}")).collect()
}

fn differences(expected: &Value, found: &Value) -> String {
    let (expected, found) = (format!("{expected:#}"), format!("{found:#}"));
    similar::TextDiff::from_lines(&expected, &found).unified_diff().context_radius(1).to_string()
}

/// Proves: G11, G12
#[test]
fn every_request_answered_by_every_fault_ends_the_run_classified() {
    let full = std::env::var_os("MUSTER_FULL_SWEEP").is_some_and(|value| value == "1");
    let panics = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&panics);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    let parts = if full {
        vec![Part::Dell, Part::Lenovo, Part::Ami, Part::Whole]
    } else {
        vec![Part::Dhcp, Part::Bmc, Part::Dell, Part::Lenovo, Part::Ami, Part::Ironic]
    };
    let parts: BTreeMap<Part, Undisturbed> = parts.into_iter().map(|part| (part, undisturbed(part))).collect();
    let spots = if full { all_requests(&parts) } else { kinds_of_requests(&parts) };
    let mut all = tries(&spots);
    if let Ok(only) = std::env::var("MUSTER_SWEEP_ONLY") {
        all.retain(|this| format!("{this:?}").contains(&only));
    }
    let began = Instant::now();
    let came = pool::each(&all, |this| attempt(this, &parts[&this.spot.part]));

    let mut table: BTreeMap<(String, bool), [usize; 3]> = BTreeMap::new();
    let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut unclassified, mut hangs, mut wrong, mut unmet) = (0, 0, Vec::new(), Vec::new());
    for (this, came) in all.iter().zip(&came) {
        let row = table.entry((this.kind.name(), this.stays)).or_default();
        row[0] += 1;
        row[if came.code.is_none() { 1 } else { 2 }] += 1;
        if let Some(code) = came.code {
            *codes.entry(code.as_str()).or_default() += 1;
        }
        unclassified += usize::from(came.wrong.iter().any(|w| w.starts_with("not classified")));
        hangs += usize::from(came.wrong.iter().any(|w| w == "hang"));
        for what in &came.wrong {
            wrong.push(format!("{this:?} ({:?}):\n  {what}", came.took));
        }
        if !came.met {
            unmet.push(this);
        }
    }
    println!("{:<16} {:>6} {:>6} {:>10} {:>7}", "fault", "", "runs", "succeeded", "failed");
    for ((kind, stays), [runs, succeeded, failed]) in &table {
        println!("{kind:<16} {:>6} {runs:>6} {succeeded:>10} {failed:>7}", if *stays { "stays" } else { "once" });
    }
    println!("codes: {codes:?}");
    let panics = panics.load(Ordering::SeqCst);
    println!(
        "{} requests, {} runs in {:.0?}: {unclassified} unclassified, {panics} panics, {hangs} hangs",
        spots.len(),
        all.len(),
        began.elapsed()
    );
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    // How often a poll looks depends on the clock: a run may have ended before its last looks. The first of each kind is met.
    let (first, later): (Vec<_>, Vec<_>) = unmet.into_iter().partition(|this| this.spot.skip == 0);
    println!("{} met no fault: the run had ended before so many looks", later.len());
    assert!(first.is_empty(), "never met:\n{first:#?}");
    let filtered = std::env::var_os("MUSTER_SWEEP_ONLY").is_some();
    assert!(filtered || later.len() * 10 < all.len(), "too many were never met:\n{later:#?}");
    assert_eq!(panics, 0);
}
